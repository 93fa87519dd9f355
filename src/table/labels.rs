//! Arrow arrays of timestamps or ISO text as labels of a calendar.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit as ArrowUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};

use crate::dataset::cf::{Calendar, Label, TimeUnit, Written};

/// The unit of an Arrow type as the data model has it.
pub(super) fn unit_of(unit: ArrowUnit) -> TimeUnit {
    match unit {
        ArrowUnit::Second => TimeUnit::Second,
        ArrowUnit::Millisecond => TimeUnit::Millisecond,
        ArrowUnit::Microsecond => TimeUnit::Microsecond,
        ArrowUnit::Nanosecond => TimeUnit::Nanosecond,
    }
}

/// Whether values of this type are read as labels: timestamps without zone, and text.
pub(super) fn holds_labels(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, None)) || data_type.is_string()
}

/// What `f` makes of every label of `array`, which holds timestamps or text of dates of `calendar`; `None` where it holds NULL.
///
/// # Errors
/// Text that is no date of the calendar, and the errors of `f`.
pub(super) fn map<T>(
    array: &ArrayRef,
    calendar: Calendar,
    mut f: impl FnMut(Label) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    if let DataType::Timestamp(unit, _) = array.data_type() {
        let unit = unit_of(*unit);
        let ticks = cast(array, &DataType::Int64)?;
        let label = |tick| Label::of_timestamp(tick, unit).ok_or_else(|| no_date(&format!("{tick}"), calendar));
        return ticks.as_primitive::<Int64Type>().iter().map(|tick| tick.map(|t| f(label(t)?)).transpose()).collect();
    }
    let texts = cast(array, &DataType::Utf8View)?;
    let label = |text| Written::parse(text).and_then(|w| w.label(calendar)).ok_or_else(|| no_date(text, calendar));
    texts.as_string_view().iter().map(|text| text.map(|t| f(label(t)?)).transpose()).collect()
}

/// The label of a value, timestamp or text; `None` for NULL.
///
/// # Errors
/// As [`map`].
pub(super) fn of_scalar(value: &ScalarValue, calendar: Calendar) -> Result<Option<Label>> {
    Ok(map(&value.to_array()?, calendar, Ok)?.pop().flatten())
}

/// Labels as an array of `data_type`, timestamps (rounded down to their unit) or text.
///
/// # Errors
/// A date that a timestamp cannot hold.
pub(super) fn array(labels: Vec<Option<Label>>, data_type: &DataType) -> Result<ArrayRef> {
    let DataType::Timestamp(unit, _) = data_type else {
        let texts: StringViewArray = labels.into_iter().map(|l| l.map(Label::text)).collect();
        return Ok(cast(&texts, data_type)?);
    };
    let unit = unit_of(*unit);
    let tick = |label: Label| {
        label.floor(unit).timestamp(unit).ok_or_else(|| {
            DataFusionError::Execution(format!(
                "{} cannot be a timestamp of the column's type {data_type}; it is out of range, or no Gregorian date",
                label.text()
            ))
        })
    };
    let ticks: Vec<Option<i64>> = labels.into_iter().map(|l| l.map(tick).transpose()).collect::<Result<_>>()?;
    Ok(cast(&(Arc::new(Int64Array::from(ticks)) as ArrayRef), data_type)?)
}

/// `text` stands for no date of `calendar`.
pub(super) fn no_date(text: &str, calendar: Calendar) -> DataFusionError {
    DataFusionError::Execution(format!("`{text}` is no date of calendar `{}`", calendar.name()))
}
