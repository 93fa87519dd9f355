//! What is known about the rows of a selection without reading data.

use arrow::array::{Array, ArrayRef};
use arrow::compute::{SortOptions, sort_to_indices};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result, ScalarValue};

use super::boxes::cells;
use super::coordinates::Coordinates;
use super::{IndexSet, Selection, Values};

/// Values up to which the extremes of a coordinate of several dimensions are looked for.
const MAX_VALUES: u64 = 1 << 24;

/// Statistics of `column`; absent where its values are not in memory, or not known for these cells.
///
/// # Errors
/// Values that cannot be compared.
pub(crate) fn of_column(coordinates: &Coordinates, selection: &Selection, column: usize) -> Result<ColumnStatistics> {
    let unknown = ColumnStatistics::new_unknown();
    let (Some(values), Some(rows)) = (coordinates.values(column), selection.rows()) else { return Ok(unknown) };
    // Along one dimension the index sets hold what joint conditions leave; along several they do not.
    if rows == 0 || (values.axes.len() > 1 && values.axes.iter().any(|a| selection.is_joint(*a))) {
        return Ok(unknown);
    }
    let block = coordinates.spread(&values.axes, &selection.dims);
    let count = cells(&block);
    if count == 0 || (values.axes.len() > 1 && count > MAX_VALUES) {
        return Ok(unknown);
    }
    let Some(array) = &values.array else {
        return Ok(of_index(values.axes.first().and_then(|axis| block.get(*axis))));
    };
    let selected;
    let array = if count == array.len() as u64 {
        array
    } else {
        selected = values.pick(&values.rows(&block), 0, usize::try_from(count).unwrap_or(usize::MAX))?;
        &selected
    };
    let nulls = array.null_count() as u64;
    let null_count = if nulls == 0 {
        Precision::Exact(0)
    } else if values.axes.iter().any(|a| selection.is_joint(*a)) {
        Precision::Absent
    } else {
        usize::try_from(u128::from(nulls) * u128::from(rows) / u128::from(count))
            .map_or(Precision::Absent, Precision::Exact)
    };
    let extreme = |descending| extreme(array, descending);
    let (Some(min), Some(max)) = (extreme(false), extreme(true)) else {
        return Ok(ColumnStatistics { null_count, ..unknown });
    };
    Ok(ColumnStatistics { null_count, min_value: Precision::Exact(min), max_value: Precision::Exact(max), ..unknown })
}

/// Statistics of an index column along `set`.
fn of_index(set: Option<&IndexSet>) -> ColumnStatistics {
    let bounds = set.map_or(0..1, IndexSet::bounds);
    let value = |i: u64| i64::try_from(i).map_or(Precision::Absent, |i| Precision::Exact(ScalarValue::Int64(Some(i))));
    ColumnStatistics {
        null_count: Precision::Exact(0),
        min_value: value(bounds.start),
        max_value: value(bounds.end.saturating_sub(1)),
        ..ColumnStatistics::new_unknown()
    }
}

/// The least or greatest value that is not NULL; `None` where there is none, or the type has no order that SQL agrees with.
fn extreme(array: &ArrayRef, descending: bool) -> Option<ScalarValue> {
    use arrow::datatypes::DataType as T;
    let ordered = array.data_type().is_integer()
        || array.data_type().is_floating()
        || matches!(array.data_type(), T::Timestamp(..) | T::Duration(_) | T::Utf8View | T::Boolean);
    if !ordered || array.null_count() == array.len() {
        return None;
    }
    let first = sort_to_indices(array, Some(SortOptions { descending, nulls_first: false }), Some(1)).ok()?;
    let value = ScalarValue::try_from_array(array, usize::try_from(*first.values().first()?).ok()?).ok()?;
    let is_nan = match &value {
        ScalarValue::Float32(Some(v)) => v.is_nan(),
        ScalarValue::Float64(Some(v)) => v.is_nan(),
        _ => false,
    };
    (!is_nan).then_some(value)
}

/// How values follow each other along their only axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Monotonic {
    /// Whether they descend.
    pub(crate) descending: bool,
    /// Whether no two are equal.
    pub(crate) strict: bool,
}

/// How `values` follow each other; `None` where they do not ascend or descend, hold NULL or NaN, or have no order.
pub(crate) fn monotonic(values: &Values) -> Option<Monotonic> {
    let Some(array) = &values.array else { return Some(Monotonic { descending: false, strict: true }) };
    if values.axes.len() != 1 || array.null_count() > 0 || extreme(array, true).is_none() {
        return None;
    }
    let compare = arrow::array::make_comparator(array.as_ref(), array.as_ref(), SortOptions::default()).ok()?;
    let (mut ascends, mut descends, mut equal) = (false, false, false);
    for i in 1..array.len() {
        match compare(i - 1, i) {
            std::cmp::Ordering::Less => ascends = true,
            std::cmp::Ordering::Greater => descends = true,
            std::cmp::Ordering::Equal => equal = true,
        }
        if ascends && descends {
            return None;
        }
    }
    Some(Monotonic { descending: descends, strict: !equal })
}
