//! `nearest(coordinate, value [, tolerance])`: true at the value of a dimension coordinate that is nearest to `value`, as xarray's
//! `.sel(method="nearest")`.
//!
//! The nearest value is one of the whole axis, whatever rows a query has left. So the rule looks it up in the table that the column comes from, and
//! puts `coordinate = <that value>` in place of the call.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, IntervalMonthDayNano, UInt64Type};
use arrow::util::display::array_value_to_string;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::datasource::DefaultTableSource;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TableScan, TypeSignature, Volatility,
    lit,
};

use super::axis::{self, Nearest};
use super::date_literals;
use super::lineage::{Origin, origin};
use super::scope::{Scope, Time, time_of_field};
use crate::dataset::Role;
use crate::dataset::cf::Calendar;
use crate::read::ColumnReader;
use crate::table::functions::wait_for;
use crate::table::{ZarrTable, labels};

/// Name of the function.
pub(super) const NAME: &str = "nearest";

/// The function, to be registered.
pub(super) fn function() -> ScalarUDF {
    Placeholder::new(NAME, &[2, 3]).into()
}

/// A function that the rule puts something else in place of.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Placeholder {
    name: &'static str,
    signature: Signature,
}

impl Placeholder {
    /// One that takes so many arguments.
    pub(super) fn new(name: &'static str, counts: &[usize]) -> Self {
        let counts = counts.iter().map(|n| TypeSignature::Any(*n)).collect();
        Self { name, signature: Signature::one_of(counts, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Placeholder {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Plan(format!(
            "`{}` needs columns of a Zarr table, in a session that `register_zarr` has prepared",
            self.name
        )))
    }
}

/// What stands for the call.
///
/// # Errors
/// An argument that is no dimension coordinate, or no literal; a value more than one step outside of the axis.
pub(super) fn replace(call: &ScalarFunction, scope: &Scope) -> Result<Expr> {
    let [column, value, tolerance @ ..] = call.args.as_slice() else { return Err(form()) };
    check_parameters(NAME, &call.args)?;
    if is_null(value) {
        return Ok(lit(ScalarValue::Boolean(None)));
    }
    let (table, index, _) = table_column(NAME, column, scope)?;
    let name = Scope::name(column);
    let axis = Axis::new(table, index, &name, value)?;
    let Some(chosen) = axis.nearest(value, tolerance.first())? else { return Ok(lit(false)) };
    Ok(column.clone().eq(Expr::Literal(chosen, None)))
}

/// Refuse parameters of a prepared statement: the nearest value is looked up before they are known.
///
/// # Errors
/// A parameter among the arguments.
pub(super) fn check_parameters(function: &str, args: &[Expr]) -> Result<()> {
    match args.iter().find_map(|e| match e {
        Expr::Placeholder(parameter) => Some(&parameter.id),
        _ => None,
    }) {
        None => Ok(()),
        Some(id) => Err(DataFusionError::Plan(format!(
            "{function} takes literals and `{id}` is a parameter without a value; give its value, or write the number in its place"
        ))),
    }
}

fn form() -> DataFusionError {
    DataFusionError::Plan(
        "write nearest(lat, 40.1), or nearest(lat, 40.1, 0.5) for nothing further away than 0.5".into(),
    )
}

/// The Zarr table that `column` comes from, its position there, and the way to the scan.
///
/// # Errors
/// Something else than a column of a Zarr table that is handed on unchanged.
pub(super) fn table_column<'a>(
    function: &str,
    expr: &Expr,
    scope: &Scope<'a>,
) -> Result<(&'a ZarrTable, usize, Vec<usize>)> {
    let refuse = |why: &str| {
        Err(DataFusionError::Plan(format!(
            "{function} takes a coordinate of a Zarr table and `{}` {why}; apply it to the column of the table, in a subquery where necessary",
            Scope::name(expr)
        )))
    };
    match expr {
        Expr::Column(column) => match origin(column, scope.inputs) {
            Some(Origin::Table { scan, index, path }) => match zarr_table(scan) {
                Some(table) => Ok((table, index, path)),
                None => refuse("is of another table"),
            },
            Some(Origin::Union(..)) => refuse("is of several tables of a UNION"),
            Some(Origin::Expr(..)) => refuse("is computed"),
            Some(Origin::Other) | None => refuse("cannot be traced to its table"),
        },
        Expr::OuterReferenceColumn(..) => refuse("is of the query around the subquery"),
        _ => refuse("is computed"),
    }
}

fn zarr_table(scan: &TableScan) -> Option<&ZarrTable> {
    let source = scan.source.as_ref().downcast_ref::<DefaultTableSource>()?;
    source.table_provider.as_ref().downcast_ref()
}

/// All values of a coordinate; `None` for an index. They are read where they are not in memory yet.
///
/// # Errors
/// Chunks that cannot be read.
pub(super) fn values_of(reader: &ColumnReader) -> Result<Option<ArrayRef>> {
    match reader.kept() {
        Some(values) => Ok(Some(values)),
        None => wait_for(reader.whole()),
    }
}

/// A dimension coordinate.
struct Axis<'a> {
    name: &'a str,
    field: &'a Field,
    values: ArrayRef,
}

impl<'a> Axis<'a> {
    /// The axis that is column `index` of a table, for the literal `value`.
    fn new(table: &'a ZarrTable, index: usize, name: &'a str, value: &Expr) -> Result<Self> {
        let grid = table.grid();
        let (Some(reader), Some(field)) = (grid.columns.get(index), grid.schema.fields().get(index)) else {
            return Err(form());
        };
        if !matches!(reader.role, Role::Dimension | Role::Index) {
            return Err(DataFusionError::Plan(format!(
                "nearest takes a dimension coordinate and `{name}` is {}; `nearest_point` takes two coordinates of the same dimensions",
                article(reader.role.name())
            )));
        }
        let values = if let Some(values) = values_of(reader)? {
            values
        } else {
            let length = reader.axes.first().and_then(|a| grid.sizes.get(*a)).copied().unwrap_or(0);
            Arc::new(indices(length, number(value)))
        };
        Ok(Self { name, field, values })
    }

    /// The value nearest to the literal `value`; `None` where there is none, or none within the tolerance.
    fn nearest(&self, value: &Expr, tolerance: Option<&Expr>) -> Result<Option<ScalarValue>> {
        if let Some(time) = time_of_field(self.field) {
            let (target, within) = (self.instant(value, &time)?, tolerance.map(|t| self.duration(t)).transpose()?);
            return self.choose(&self.instants(time.calendar)?, target, within, None, value);
        }
        let (target, within) = (self.number(value)?, tolerance.map(|t| self.distance(t)).transpose()?);
        let data_type = self.field.data_type();
        match target {
            Number::Integer(target) if data_type.is_integer() && self.period().is_none() => {
                // A distance is not greater than a number where it is not greater than the integer below.
                #[expect(clippy::cast_possible_truncation, reason = "saturates, and is above any distance then")]
                let within = within.map(|w| w.floor() as i128);
                self.choose(&self.integers()?, target, within, None, value)
            }
            _ if data_type.is_integer() || data_type.is_floating() => {
                self.choose(&self.floats()?, target.as_f64(), within, self.period(), value)
            }
            _ => Err(DataFusionError::Plan(format!(
                "nearest takes a coordinate of numbers or times and `{}` is {data_type}",
                self.name
            ))),
        }
    }

    fn choose<T>(
        &self,
        values: &[Option<T>],
        target: T,
        within: Option<T>,
        period: Option<T>,
        literal: &Expr,
    ) -> Result<Option<ScalarValue>>
    where
        T: Copy + PartialOrd + std::ops::Sub<Output = T> + axis::Remainder,
    {
        let Nearest::Value { index, distance, outside, range: (low, high) } = axis::nearest(values, target, period)
        else {
            return Ok(None);
        };
        let near = within.is_some_and(|w| distance <= w);
        if outside && !near {
            let show = |i| array_value_to_string(&self.values, i);
            return Err(DataFusionError::Plan(format!(
                "{} is more than one step outside of `{}`, which runs from {} to {}",
                shown(literal),
                self.name,
                show(low)?,
                show(high)?
            )));
        }
        if within.is_some() && !near {
            return Ok(None);
        }
        ScalarValue::try_from_array(&self.values, index).map(Some)
    }

    /// 360 for longitudes in degrees.
    fn period(&self) -> Option<f64> {
        is_longitude(self.field).then_some(360.0)
    }

    fn floats(&self) -> Result<Vec<Option<f64>>> {
        let values = cast(&self.values, &DataType::Float64)?;
        Ok(values.as_primitive::<Float64Type>().iter().map(|v| v.filter(|v| v.is_finite())).collect())
    }

    fn integers(&self) -> Result<Vec<Option<i128>>> {
        if *self.values.data_type() == DataType::UInt64 {
            return Ok(self.values.as_primitive::<UInt64Type>().iter().map(|v| v.map(i128::from)).collect());
        }
        let values = cast(&self.values, &DataType::Int64)?;
        Ok(values.as_primitive::<Int64Type>().iter().map(|v| v.map(i128::from)).collect())
    }

    /// Nanoseconds in the calendar of the axis: a day of the calendar is as long as any other.
    fn instants(&self, calendar: Calendar) -> Result<Vec<Option<i128>>> {
        labels::map(&self.values, calendar, |label| {
            label.instant(calendar).ok_or_else(|| labels::no_date(&label.text(), calendar))
        })
    }

    fn instant(&self, value: &Expr, time: &Time) -> Result<i128> {
        let label = date_literals::label(time, self.name, value)?;
        label.and_then(|l| l.instant(time.calendar)).ok_or_else(|| {
            DataFusionError::Plan(format!(
                "`{}` holds times and {} is no date; write nearest({}, '2000-02-29T12')",
                self.name,
                shown(value),
                self.name
            ))
        })
    }

    fn number(&self, value: &Expr) -> Result<Number> {
        number(value).ok_or_else(|| {
            DataFusionError::Plan(format!(
                "nearest takes a number as its value and {} is none; `{}` is {}",
                shown(value),
                self.name,
                self.field.data_type()
            ))
        })
    }

    fn distance(&self, tolerance: &Expr) -> Result<f64> {
        number(tolerance).map(Number::as_f64).filter(|t| *t >= 0.0).ok_or_else(|| {
            DataFusionError::Plan(format!(
                "the tolerance of nearest on `{}` is a number, 0 or more, not {}",
                self.name,
                shown(tolerance)
            ))
        })
    }

    /// Nanoseconds of an interval, as a literal or as text.
    fn duration(&self, tolerance: &Expr) -> Result<i128> {
        let invalid = || {
            DataFusionError::Plan(format!(
                "the tolerance of nearest on `{}` is an interval of days or less, as INTERVAL '6 hours', not {}",
                self.name,
                shown(tolerance)
            ))
        };
        let interval = match tolerance.as_literal().ok_or_else(invalid)? {
            ScalarValue::IntervalMonthDayNano(Some(i)) => *i,
            ScalarValue::IntervalDayTime(Some(i)) => {
                IntervalMonthDayNano::new(0, i.days, i64::from(i.milliseconds) * 1_000_000)
            }
            text => match text.try_as_str().flatten().map(parse_interval_month_day_nano) {
                Some(Ok(interval)) => interval,
                _ => return Err(invalid()),
            },
        };
        let nanoseconds = i128::from(interval.days) * 86_400_000_000_000 + i128::from(interval.nanoseconds);
        if interval.months == 0 && nanoseconds >= 0 { Ok(nanoseconds) } else { Err(invalid()) }
    }
}

/// Those of 0, 1, 2, … up to `length` that can be nearest to a number, and both ends: an axis without a coordinate may be of any length.
fn indices(length: u64, target: Option<Number>) -> Int64Array {
    let Some(last) = length.checked_sub(1) else { return Int64Array::from_iter_values([]) };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and is then beyond the axis"
    )]
    let floor = (target.map_or(0.0, Number::as_f64).floor() as u64).min(last);
    let mut indices = vec![0, 1, floor, floor.saturating_add(1), last.saturating_sub(1), last];
    indices.retain(|i| *i <= last);
    indices.sort_unstable();
    indices.dedup();
    Int64Array::from_iter_values(indices.into_iter().map(|i| i64::try_from(i).unwrap_or(i64::MAX)))
}

fn article(role: &str) -> String {
    let an = if role.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{an} {role} column")
}

/// Whether a coordinate is a longitude in degrees, which are the same 360 further.
pub(super) fn is_longitude(field: &Field) -> bool {
    let attribute = |key: &str| field.metadata().get(key).map(String::as_str).unwrap_or_default();
    let units = attribute("units").to_ascii_lowercase();
    let east =
        matches!(units.as_str(), "degrees_east" | "degree_east" | "degrees_e" | "degree_e" | "degreese" | "degreee");
    east || (attribute("standard_name") == "longitude" && !units.starts_with("rad"))
}

/// A number as it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    /// The number as a double.
    #[expect(clippy::cast_precision_loss, reason = "compared with doubles")]
    pub(super) fn as_f64(self) -> f64 {
        match self {
            Self::Integer(i) => i as f64,
            Self::Float(f) => f,
        }
    }
}

/// The finite number that a literal is, also a negative one.
pub(super) fn number(expr: &Expr) -> Option<Number> {
    match expr {
        Expr::Negative(inner) => Some(match number(inner)? {
            Number::Integer(i) => Number::Integer(i.checked_neg()?),
            Number::Float(f) => Number::Float(-f),
        }),
        Expr::Literal(value, _) if value.data_type().is_integer() => match value {
            ScalarValue::UInt64(value) => value.map(|v| Number::Integer(v.into())),
            value => match value.cast_to(&DataType::Int64).ok()? {
                ScalarValue::Int64(value) => value.map(|v| Number::Integer(v.into())),
                _ => None,
            },
        },
        Expr::Literal(value, _) if value.data_type().is_numeric() => match value.cast_to(&DataType::Float64).ok()? {
            ScalarValue::Float64(value) => value.filter(|v| v.is_finite()).map(Number::Float),
            _ => None,
        },
        _ => None,
    }
}

fn is_null(expr: &Expr) -> bool {
    expr.as_literal().is_some_and(ScalarValue::is_null)
}

/// A literal as people wrote it.
pub(super) fn shown(expr: &Expr) -> String {
    match expr {
        // Large and small numbers in scientific notation.
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => format!("{value:?}"),
        Expr::Literal(value, _) => match value.try_as_str() {
            Some(Some(text)) => format!("'{text}'"),
            _ => value.to_string(),
        },
        Expr::Negative(inner) => format!("-{}", shown(inner)),
        Expr::Cast(cast) => shown(&cast.expr),
        other => format!("`{}`", other.schema_name()),
    }
}
