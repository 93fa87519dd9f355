//! What an expression of a plan node can know of its columns.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::{Cast, TryCast, WindowFunctionDefinition};
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
    /// Whether it is text that a query made of times, and means as text.
    pub(super) as_text: bool,
}

impl Time {
    /// Whether all of its dates are Gregorian.
    pub(super) fn is_gregorian(&self) -> bool {
        self.calendar.is_gregorian() && self.mixed_with.is_none_or(Calendar::is_gregorian)
    }

    /// The calendar that is not Gregorian, where there is one.
    pub(super) fn foreign(&self) -> Calendar {
        self.mixed_with.filter(|_| self.calendar.is_gregorian()).unwrap_or(self.calendar)
    }

    /// The times as values of `data_type`; `None` for what can hold no dates.
    fn converted(self, data_type: &DataType) -> Option<Self> {
        let as_text = match data_type {
            DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => false,
            DataType::Timestamp(_, Some(_)) if !self.is_gregorian() => false,
            t if t == &self.data_type => self.as_text,
            t if t.is_string() => true,
            _ => return None,
        };
        Some(Self { data_type: data_type.clone(), as_text, ..self })
    }

    /// Times of both kinds.
    fn mixed(self, other: &Self) -> Self {
        let others = [self.mixed_with, other.mixed_with, Some(other.calendar)];
        let others = others.into_iter().flatten().filter(|c| *c != self.calendar);
        let mixed_with = others.reduce(|first, next| if first.is_gregorian() { next } else { first });
        Self { mixed_with, as_text: self.as_text || other.as_text, ..self }
    }
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

    /// The times that `expr` is a column of, or takes its values from; `None` where it is no time of a Zarr table, or text made of one.
    pub(super) fn time(&self, expr: &Expr) -> Option<Time> {
        // Text that a query makes is meant as it is written.
        self.dates(expr).filter(|time| !time.as_text)
    }

    /// The times that `expr` is a column of, or takes its values from, also as text.
    pub(super) fn dates(&self, expr: &Expr) -> Option<Time> {
        match expr {
            Expr::Alias(alias) => self.dates(&alias.expr),
            Expr::Column(column) => self.dates_of_column(column),
            Expr::OuterReferenceColumn(field, _) => dates_of_field(field),
            Expr::ScalarSubquery(subquery) => self.dates_of_plan(&subquery.subquery, 0),
            Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
                self.cast(expr, field.data_type())
            }
            other => {
                let times = choices(other).into_iter().filter_map(|choice| self.dates(choice));
                let time = times.reduce(|all, time| all.mixed(&time))?;
                match other.get_type(&self.schema) {
                    Ok(data_type) => time.converted(&data_type),
                    Err(_) => Some(time),
                }
            }
        }
    }

    fn dates_of_column(&self, column: &Column) -> Option<Time> {
        let origin = origin(column, self.inputs);
        if let Some(Origin::Union(plans, index)) = origin {
            let branches = plans.iter().filter_map(|plan| self.dates_of_plan(plan, index));
            return branches.reduce(|all, time| all.mixed(&time));
        }
        let field = self.schema.field_from_column(column).ok()?;
        match origin {
            _ if is_zarr(field) => dates_of_field(field),
            // Aggregates lose metadata.
            Some(Origin::Expr(expr, input)) => self.over(input).dates(expr),
            _ => None,
        }
    }

    fn dates_of_plan(&self, plan: &LogicalPlan, index: usize) -> Option<Time> {
        plan.schema().fields().get(index)?;
        let column = Column::from(plan.schema().qualified_field(index));
        self.over(plan).dates(&Expr::Column(column))
    }

    /// A cast of times: the label stays, whatever the type. From text that was made of times as well.
    fn cast(&self, expr: &Expr, data_type: &DataType) -> Option<Time> {
        let written = Time { as_text: true, ..self.dates(expr)? };
        written.converted(data_type)
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

    /// The name of a column for messages.
    pub(super) fn name(expr: &Expr) -> String {
        match expr {
            Expr::Column(column) | Expr::OuterReferenceColumn(_, column) => column.name.clone(),
            Expr::Alias(alias) => alias.name.clone(),
            other => other.schema_name().to_string(),
        }
    }
}

/// What the values of an expression are taken from.
fn choices(expr: &Expr) -> Vec<&Expr> {
    let (name, args) = match expr {
        Expr::Case(case) => {
            let then = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
            return then.chain(case.else_expr.as_deref()).collect();
        }
        Expr::ScalarFunction(call) => (call.name(), &call.args),
        Expr::AggregateFunction(call) => (call.func.name(), &call.params.args),
        Expr::WindowFunction(call) => (call.fun.name(), &call.params.args),
        _ => return Vec::new(),
    };
    match name {
        "coalesce" | "nvl" | "ifnull" | "greatest" | "least" => args.iter().collect(),
        "nvl2" => args.iter().skip(1).collect(),
        "cf_trunc" | "cf_bin" | "date_trunc" | "date_bin" => args.get(1).into_iter().collect(),
        "arrow_cast" | "arrow_try_cast" => args.first().into_iter().collect(),
        _ if CHOOSING.contains(&name) => args.first().into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The times that a field says that it holds.
pub(super) fn time_of_field(field: &Field) -> Option<Time> {
    dates_of_field(field).filter(|time| !time.as_text)
}

/// The same with text that was cast from times which are not Gregorian.
fn dates_of_field(field: &Field) -> Option<Time> {
    if !is_zarr(field) {
        return None;
    }
    let attribute = |key: &str| field.metadata().get(key).map(String::as_str);
    let (units, calendar) = (attribute("units"), attribute("calendar"));
    let data_type = field.data_type().clone();
    let of_timestamps = calendar_of_timestamps(units, calendar);
    let (calendar, as_text) = match &data_type {
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => (of_timestamps, false),
        t if t.is_string() => match calendar_of_text(units, calendar) {
            Some(calendar) => (calendar, false),
            None if of_timestamps.is_gregorian() => return None,
            None => (of_timestamps, true),
        },
        _ => return None,
    };
    Some(Time { data_type, calendar, mixed_with: None, as_text })
}
