//! `cf_part`, `cf_trunc` and `cf_bin`: parts of dates, dates rounded down, and bins of dates, in the calendars of CF.
//!
//! The last argument is the name of the calendar. The analyzer rule adds it for columns of Zarr tables; without it, timestamps are proleptic
//! Gregorian. Text stays text of the same form, and timestamps stay timestamps of the same unit, in the whole range of their type.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, StringArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use arrow::datatypes::{DataType, Field, FieldRef, IntervalMonthDayNano, TimeUnit as ArrowUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::labels::{self, holds_labels, no_date};
use crate::dataset::cf::{Calendar, Date, Label, PARTS, Part, Precision, Stride, season};

const DAY: i128 = 86_400_000_000_000;

/// The three functions, to be registered.
pub(super) fn all() -> [ScalarUDF; 3] {
    [part(), trunc(), bin()]
}

/// `cf_part(part, time [, calendar])`.
pub(super) fn part() -> ScalarUDF {
    CfPart { signature: arguments(2, 3) }.into()
}

/// `cf_trunc(precision, time [, calendar])`.
pub(super) fn trunc() -> ScalarUDF {
    CfTrunc { signature: arguments(2, 3) }.into()
}

/// `cf_bin(stride, time [, origin [, calendar]])`.
pub(super) fn bin() -> ScalarUDF {
    CfBin { signature: arguments(2, 4) }.into()
}

fn arguments(least: usize, most: usize) -> Signature {
    Signature::one_of((least..=most).map(TypeSignature::Any).collect(), Volatility::Immutable)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CfPart {
    signature: Signature,
}

impl ScalarUDFImpl for CfPart {
    fn name(&self) -> &'static str {
        "cf_part"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let part = parse_part(args.scalar_arguments.first().copied().flatten())?;
        let time = time_field(self.name(), &args)?;
        let data_type = if part == Part::Season { DataType::Utf8 } else { DataType::Int32 };
        Ok(Arc::new(Field::new(self.name(), data_type, time.is_nullable())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let part = parse_part(args.args.first().and_then(scalar))?;
        let time = Time::of(self.name(), &args)?;
        let calendar = calendar(self.name(), args.args.get(2), &time)?;
        if !part.exists_in(calendar) {
            return Err(no_weeks(calendar));
        }
        let number = |label: Label| part.of(label, calendar).ok_or_else(|| no_date(&label.text(), calendar));
        let numbers = labels::map(&time.array, calendar, number)?;
        let parts: ArrayRef = if part == Part::Season {
            Arc::new(numbers.into_iter().map(|m| m.map(season)).collect::<StringArray>())
        } else {
            Arc::new(Int32Array::from(numbers))
        };
        time.value(parts)
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CfTrunc {
    signature: Signature,
}

impl ScalarUDFImpl for CfTrunc {
    fn name(&self) -> &'static str {
        "cf_trunc"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        label_type(self.name(), types.get(1))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        time_of_the_same_kind(self.name(), &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let name = args.args.first().and_then(scalar).and_then(|s| s.try_as_str().flatten()).unwrap_or_default();
        let precision = Precision::parse(name).ok_or_else(|| {
            DataFusionError::Plan(format!(
                "`{name}` is no precision of dates; there are year, quarter, month, week, day, hour, minute, second, millisecond and microsecond"
            ))
        })?;
        let time = Time::of(self.name(), &args)?;
        let calendar = calendar(self.name(), args.args.get(2), &time)?;
        if precision == Precision::Week && !calendar.has_weeks() {
            return Err(no_weeks(calendar));
        }
        let begin = |label: Label| precision.truncate(label, calendar).ok_or_else(|| no_date(&label.text(), calendar));
        let begins = labels::map(&time.array, calendar, begin)?;
        time.value(labels::array(begins, time.array.data_type())?)
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        Ok(ordering_of_time(input))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CfBin {
    signature: Signature,
}

impl ScalarUDFImpl for CfBin {
    fn name(&self) -> &'static str {
        "cf_bin"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        label_type(self.name(), types.get(1))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        time_of_the_same_kind(self.name(), &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let time = Time::of(self.name(), &args)?;
        let calendar = calendar(self.name(), args.args.get(3), &time)?;
        let stride = parse_stride(args.args.first().and_then(scalar))?;
        let origin = match args.args.get(2) {
            None => Some(Label { date: Date { year: 1970, month: 1, day: 1 }, nanoseconds: 0 }),
            Some(ColumnarValue::Scalar(origin)) => labels::of_scalar(&as_labels(self.name(), origin)?, calendar)?,
            Some(ColumnarValue::Array(_)) => {
                return Err(DataFusionError::Plan("the origin of bins is one date, not a column".into()));
            }
        };
        let (Some(stride), Some(origin)) = (stride, origin) else {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(time.array.data_type())?));
        };
        let begin = |label: Label| {
            let begin = stride.bin(label, origin, calendar);
            begin.ok_or_else(|| {
                DataFusionError::Execution(format!(
                    "{} lies in no bin of calendar `{}` that begins at a date",
                    label.text(),
                    calendar.name()
                ))
            })
        };
        let begins = labels::map(&time.array, calendar, begin)?;
        time.value(labels::array(begins, time.array.data_type())?)
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        Ok(ordering_of_time(input))
    }
}

/// The constant that an argument is.
fn scalar(argument: &ColumnarValue) -> Option<&ScalarValue> {
    match argument {
        ColumnarValue::Scalar(value) => Some(value),
        ColumnarValue::Array(_) => None,
    }
}

fn parse_part(part: Option<&ScalarValue>) -> Result<Part> {
    let Some(name) = part.and_then(|p| p.try_as_str().flatten()) else {
        return Err(DataFusionError::Plan(format!("the first argument of `cf_part` is a text, one of {PARTS}")));
    };
    Part::parse(name).ok_or_else(|| {
        let why = if name.eq_ignore_ascii_case("epoch") { ": seconds since 1970 depend on the calendar" } else { "" };
        DataFusionError::Plan(format!("`{name}` is no part of dates of CF calendars{why}; there are {PARTS}"))
    })
}

pub(super) fn no_weeks(calendar: Calendar) -> DataFusionError {
    DataFusionError::Plan(format!("calendar `{}` has no weeks; use months, or days of the year", calendar.name()))
}

/// The width of bins; `None` for NULL.
fn parse_stride(stride: Option<&ScalarValue>) -> Result<Option<Stride>> {
    let invalid = |why: &str| DataFusionError::Plan(format!("the width of bins {why}; write INTERVAL '10 days'"));
    let Some(stride) = stride else { return Err(invalid("is one interval, not a column")) };
    if stride.is_null() {
        return Ok(None);
    }
    let parts = match stride {
        ScalarValue::IntervalMonthDayNano(Some(i)) => *i,
        ScalarValue::IntervalYearMonth(Some(months)) => IntervalMonthDayNano::new(*months, 0, 0),
        ScalarValue::IntervalDayTime(Some(i)) => {
            IntervalMonthDayNano::new(0, i.days, i64::from(i.milliseconds) * 1_000_000)
        }
        other => match other.try_as_str().flatten().map(parse_interval_month_day_nano) {
            Some(Ok(parsed)) => parsed,
            _ => return Err(invalid(&format!("is an interval, not {other}"))),
        },
    };
    let nanoseconds = i128::from(parts.days) * DAY + i128::from(parts.nanoseconds);
    match (parts.months, nanoseconds) {
        (0, n) if n > 0 => Ok(Some(Stride::Nanoseconds(n))),
        (m, 0) if m > 0 => Ok(Some(Stride::Months(m.into()))),
        (m, n) if m != 0 && n != 0 => Err(invalid("is months or days, not both")),
        _ => Err(invalid("is more than nothing")),
    }
}

/// The argument `time` of a call.
struct Time {
    array: ArrayRef,
    /// Whether the argument is a constant.
    constant: bool,
}

impl Time {
    fn of(function: &str, args: &ScalarFunctionArgs) -> Result<Self> {
        let (array, constant) = match args.args.get(1) {
            Some(ColumnarValue::Array(array)) => (Arc::clone(array), false),
            Some(ColumnarValue::Scalar(value)) => (value.to_array()?, true),
            None => return Err(no_time(function, &DataType::Null)),
        };
        let data_type = label_type(function, Some(array.data_type()))?;
        Ok(Self { array: cast(&array, &data_type)?, constant })
    }

    /// The result for the times.
    fn value(&self, result: ArrayRef) -> Result<ColumnarValue> {
        if self.constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// A date as something that has a label.
fn as_labels(function: &str, value: &ScalarValue) -> Result<ScalarValue> {
    value.cast_to(&label_type(function, Some(&value.data_type()))?)
}

/// The type that times of `data_type` have after a function: dates without a time of day are timestamps.
fn label_type(function: &str, data_type: Option<&DataType>) -> Result<DataType> {
    match data_type {
        Some(t) if holds_labels(t) => Ok(t.clone()),
        Some(DataType::Null | DataType::Date32 | DataType::Date64) => {
            Ok(DataType::Timestamp(ArrowUnit::Microsecond, None))
        }
        other => Err(no_time(function, other.unwrap_or(&DataType::Null))),
    }
}

fn no_time(function: &str, data_type: &DataType) -> DataFusionError {
    DataFusionError::Plan(format!(
        "the second argument of `{function}` is a time, as a timestamp without zone or as text of a date, not {data_type}"
    ))
}

fn time_field<'a>(function: &str, args: &ReturnFieldArgs<'a>) -> Result<&'a FieldRef> {
    let field = args.arg_fields.get(1).ok_or_else(|| no_time(function, &DataType::Null))?;
    label_type(function, Some(field.data_type()))?;
    Ok(field)
}

/// The field of a function that gives times of the kind that it takes: they keep what says so.
fn time_of_the_same_kind(function: &str, args: &ReturnFieldArgs) -> Result<FieldRef> {
    let time = time_field(function, args)?;
    let mut metadata = time.metadata().clone();
    metadata.retain(|key, _| matches!(key.as_str(), "zarr.role" | "units" | "calendar"));
    // A NULL among the other arguments makes a NULL, whatever the times are.
    let nullable = time.is_nullable() || args.arg_fields.iter().any(|f| f.is_nullable());
    let field = Field::new(function, label_type(function, Some(time.data_type()))?, nullable);
    Ok(Arc::new(field.with_metadata(metadata)))
}

/// The calendar that a call names, and where it names none, that of timestamps.
fn calendar(function: &str, argument: Option<&ColumnarValue>, time: &Time) -> Result<Calendar> {
    let Some(argument) = argument else {
        if time.array.data_type().is_string() && time.array.null_count() < time.array.len() {
            return Err(DataFusionError::Plan(format!(
                "`{function}` cannot know the calendar of this text, which is no time of a Zarr table; name it in the last argument, as '360_day'"
            )));
        }
        return Ok(Calendar::ProlepticGregorian);
    };
    let name = scalar(argument).and_then(|s| s.try_as_str().flatten()).unwrap_or_default();
    Calendar::parse(name).ok_or_else(|| {
        DataFusionError::Plan(format!(
            "the last argument of `{function}` is a calendar of CF, as 'noleap' or '360_day', not `{name}`"
        ))
    })
}

/// Both functions are monotonic in the time, where everything else is constant.
fn ordering_of_time(input: &[ExprProperties]) -> SortProperties {
    let constant = |(i, e): (usize, &ExprProperties)| i == 1 || e.sort_properties == SortProperties::Singleton;
    match input.get(1) {
        Some(time) if input.iter().enumerate().all(constant) => time.sort_properties,
        _ => SortProperties::Unordered,
    }
}

#[cfg(test)]
mod tests {
    use arrow::compute::SortOptions;

    use super::*;

    #[test]
    fn truncation_and_bins_keep_the_order_of_times() {
        let ordered = SortProperties::Ordered(SortOptions::default());
        let with = |order| ExprProperties::new_unknown().with_order(order);
        let constant = || with(SortProperties::Singleton);
        for function in [trunc(), bin()] {
            let ordering = |input: &[ExprProperties]| function.inner().output_ordering(input).unwrap();
            assert_eq!(ordering(&[constant(), with(ordered), constant()]), ordered);
            assert_eq!(ordering(&[with(ordered), with(ordered), constant()]), SortProperties::Unordered);
            assert_eq!(ordering(&[constant()]), SortProperties::Unordered);
        }
    }

    #[test]
    fn widths_of_bins() {
        let days = |n: i128| Some(Stride::Nanoseconds(n * DAY));
        let month_day_nano = |m, d, n| ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(m, d, n)));
        for (value, stride) in [
            (month_day_nano(0, 10, 0), days(10)),
            (month_day_nano(3, 0, 0), Some(Stride::Months(3))),
            (ScalarValue::from("36 hours"), Some(Stride::Nanoseconds(DAY * 3 / 2))),
            (ScalarValue::IntervalYearMonth(Some(12)), Some(Stride::Months(12))),
            (ScalarValue::Null, None),
        ] {
            assert_eq!(parse_stride(Some(&value)).unwrap(), stride, "{value}");
        }
        for value in
            [month_day_nano(1, 1, 0), month_day_nano(0, 0, 0), month_day_nano(-1, 0, 0), ScalarValue::from("x")]
        {
            assert!(parse_stride(Some(&value)).is_err(), "{value}");
        }
        assert!(parse_stride(None).is_err());
    }
}
