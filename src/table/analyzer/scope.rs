//! What an expression of a plan node can know of its columns.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{ExprSchemable, LogicalPlan};

use super::lineage::{Origin, origin};
use crate::dataset::cf::{Calendar, calendar_of_text, calendar_of_timestamps};
use crate::options::ZarrConfig;

/// The columns of a node's inputs, and the settings of the session.
pub(super) struct Scope<'a> {
    pub(super) schema: DFSchema,
    pub(super) inputs: &'a [LogicalPlan],
    pub(super) config: ZarrConfig,
}

/// A column of times: its type, timestamp or text, and the calendar of its dates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Time {
    pub(super) data_type: DataType,
    pub(super) calendar: Calendar,
    /// Another calendar that some of its rows are of, from another branch of a UNION.
    pub(super) mixed_with: Option<Calendar>,
}

/// Whether the field is a column of a Zarr table.
pub(super) fn is_zarr(field: &Field) -> bool {
    field.metadata().contains_key("zarr.role")
}

/// Functions that give one of the values of their first argument.
const CHOOSING: [&str; 10] =
    ["min", "max", "first_value", "last_value", "nth_value", "lag", "lead", "any_value", "coalesce", "nullif"];

impl Scope<'_> {
    /// Whether `expr` is a Float32 column of Zarr, or the least or the greatest value of one.
    pub(super) fn is_float32(&self, expr: &Expr) -> bool {
        self.values_of(expr).is_some_and(|f| is_zarr(&f) && *f.data_type() == DataType::Float32)
    }

    /// The times that `expr` is a column of, or takes its values from; `None` where it is no time of a Zarr table.
    pub(super) fn time(&self, expr: &Expr) -> Option<Time> {
        match expr {
            Expr::Alias(alias) => self.time(&alias.expr),
            // A cast to anything else is meant as it is written.
            Expr::Cast(cast) => match cast.field.data_type() {
                t @ (DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64) => {
                    Some(Time { data_type: t.clone(), ..self.time(&cast.expr)? })
                }
                _ => None,
            },
            Expr::ScalarFunction(call) if matches!(call.name(), "cf_trunc" | "cf_bin") => self.time(call.args.get(1)?),
            Expr::Column(column) => {
                if let Some(Origin::Union(plans, index)) = origin(column, self.inputs) {
                    return self.union(&plans, index);
                }
                self.values_of(expr).and_then(|field| time_of_field(&field))
            }
            other => match self.chosen(other) {
                Some(argument) => self.time(argument),
                None => self.values_of(other).and_then(|field| time_of_field(&field)),
            },
        }
    }

    /// The field of the column that `expr` is, or takes its values from.
    fn values_of(&self, expr: &Expr) -> Option<FieldRef> {
        match expr {
            Expr::Alias(alias) => self.values_of(&alias.expr),
            Expr::OuterReferenceColumn(field, _) => Some(FieldRef::clone(field)),
            Expr::Column(column) => {
                let field = self.schema.field_from_column(column).ok()?;
                if is_zarr(field) {
                    return Some(FieldRef::clone(field));
                }
                // Aggregates lose metadata.
                match origin(column, self.inputs)? {
                    Origin::Expr(expr, input) => {
                        let inner = self.over(input);
                        inner.chosen(expr).and_then(|e| inner.values_of(e))
                    }
                    _ => None,
                }
            }
            other => self.values_of(self.chosen(other)?),
        }
    }

    /// The same for expressions over `input`.
    pub(super) fn over<'b>(&self, input: &'b LogicalPlan) -> Scope<'b> {
        Scope { schema: input.schema().as_ref().clone(), inputs: std::slice::from_ref(input), config: self.config }
    }

    /// The argument that a function takes its values from.
    fn chosen<'e>(&self, expr: &'e Expr) -> Option<&'e Expr> {
        let (name, args) = match expr {
            Expr::Alias(alias) => return self.chosen(&alias.expr),
            Expr::AggregateFunction(call) => (call.func.name(), &call.params.args),
            Expr::ScalarFunction(call) => (call.name(), &call.args),
            Expr::WindowFunction(call) => match &call.fun {
                WindowFunctionDefinition::AggregateUDF(f) => (f.name(), &call.params.args),
                WindowFunctionDefinition::WindowUDF(f) => (f.name(), &call.params.args),
            },
            _ => return None,
        };
        // The type tells an argument that was converted on the way.
        let argument = args.first().filter(|_| CHOOSING.contains(&name))?;
        let same = expr.get_type(&self.schema).ok()? == argument.get_type(&self.schema).ok()?;
        same.then_some(argument)
    }

    /// The times of the branches of a UNION.
    fn union(&self, plans: &[&LogicalPlan], index: usize) -> Option<Time> {
        let branches = plans.iter().filter_map(|plan| {
            let column = Column::from(plan.schema().qualified_field(index));
            self.over(plan).time(&Expr::Column(column))
        });
        branches.reduce(|all, time| {
            let other = (time.calendar != all.calendar).then_some(time.calendar);
            Time { mixed_with: all.mixed_with.or(time.mixed_with).or(other), ..all }
        })
    }

    /// The name of a column for messages.
    pub(super) fn name(expr: &Expr) -> String {
        match expr {
            Expr::Column(column) | Expr::OuterReferenceColumn(_, column) => column.name.clone(),
            Expr::Alias(alias) => alias.name.clone(),
            other => other.schema_name().to_string(),
        }
    }
}

/// The times that a field says that it holds.
pub(super) fn time_of_field(field: &Field) -> Option<Time> {
    if !is_zarr(field) {
        return None;
    }
    let attribute = |key: &str| field.metadata().get(key).map(String::as_str);
    let (units, calendar) = (attribute("units"), attribute("calendar"));
    let calendar = match field.data_type() {
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => calendar_of_timestamps(units, calendar),
        t if t.is_string() => calendar_of_text(units, calendar)?,
        _ => return None,
    };
    Some(Time { data_type: field.data_type().clone(), calendar, mixed_with: None })
}
