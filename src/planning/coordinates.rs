//! Coordinates in memory, and conditions evaluated on them.

use arrow::array::{Array, ArrayRef, BooleanBufferBuilder};
use arrow::buffer::BooleanBuffer;
use arrow::compute::concat;
use datafusion::common::Result;

use super::condition::Condition;
use super::{IndexSet, Values};

/// Cells on which a condition is evaluated at once.
const TILE: usize = 1 << 16;

/// What planning knows of a column.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    /// A coordinate or fixed field that is in memory.
    Values(Values),
    /// One that is read Block by Block, or has not been needed yet.
    Elsewhere,
    /// A data variable.
    Data,
}

/// The coordinates of a grid.
#[derive(Debug, Clone)]
pub(crate) struct Coordinates {
    /// Length along each dimension.
    pub(crate) sizes: Vec<u64>,
    /// One entry a column of the table.
    pub(crate) columns: Vec<Known>,
}

/// Which columns a condition is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum About {
    /// Coordinates in memory, which vary along these dimensions, ascending.
    Axes(Vec<usize>),
    /// Coordinates, some of which are not in memory.
    Unknown,
    /// A data variable, among others.
    Data,
}

impl Coordinates {
    /// Which columns `condition` is about.
    pub(crate) fn about(&self, condition: &Condition) -> About {
        let (mut axes, mut unknown) = (Vec::new(), false);
        for column in condition.columns() {
            match self.columns.get(*column) {
                Some(Known::Values(values)) => axes.extend_from_slice(&values.axes),
                Some(Known::Elsewhere) => unknown = true,
                Some(Known::Data) | None => return About::Data,
            }
        }
        axes.sort_unstable();
        axes.dedup();
        if unknown { About::Unknown } else { About::Axes(axes) }
    }

    /// The values of `column`, if they are in memory.
    pub(crate) fn values(&self, column: usize) -> Option<&Values> {
        match self.columns.get(column) {
            Some(Known::Values(values)) => Some(values),
            _ => None,
        }
    }

    /// All indices along each dimension of `axes`, and one along each other: the cells that a condition over `axes` has values for.
    pub(crate) fn spread(&self, axes: &[usize], along: &[IndexSet]) -> Vec<IndexSet> {
        let set = |axis: usize| along.get(axis).cloned().unwrap_or_else(|| IndexSet::range(0..0));
        (0..self.sizes.len()).map(|d| if axes.contains(&d) { set(d) } else { IndexSet::range(0..1) }).collect()
    }

    /// The cells of `block` of which `condition` is true, in C order. All its columns are in memory.
    ///
    /// # Errors
    /// Failures of evaluation.
    pub(crate) fn evaluate(&self, condition: &Condition, block: &[IndexSet]) -> Result<BooleanBuffer> {
        let mut holds = BooleanBufferBuilder::new(0);
        self.for_each_tile(condition, block, |values, rows| {
            holds.append_buffer(&condition.evaluate(values, rows)?);
            Ok(())
        })?;
        Ok(holds.finish())
    }

    /// The values of `condition`'s expression, which need not be a condition, for the cells of `block`, in C order.
    ///
    /// # Errors
    /// Failures of evaluation.
    pub(crate) fn value_of(&self, condition: &Condition, block: &[IndexSet]) -> Result<ArrayRef> {
        let mut parts = Vec::new();
        self.for_each_tile(condition, block, |values, rows| {
            parts.push(condition.value(values, rows)?);
            Ok(())
        })?;
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        match parts.as_slice() {
            [] => condition.value(self.for_no_row(condition)?, 0),
            parts => Ok(concat(parts)?),
        }
    }

    fn for_no_row(&self, condition: &Condition) -> Result<Vec<ArrayRef>> {
        let values = condition.columns().iter().filter_map(|c| self.values(*c));
        values.map(|v| Ok(v.pick(&v.rows(&[]), 0, 0)?)).collect()
    }

    fn for_each_tile(
        &self,
        condition: &Condition,
        block: &[IndexSet],
        mut tile: impl FnMut(Vec<ArrayRef>, usize) -> Result<()>,
    ) -> Result<()> {
        let cells = usize::try_from(super::boxes::cells(block)).unwrap_or(usize::MAX);
        let columns: Vec<&Values> = condition.columns().iter().filter_map(|c| self.values(*c)).collect();
        let orders: Vec<_> = columns.iter().map(|v| v.rows(block)).collect();
        let mut start = 0;
        while start < cells {
            let length = TILE.min(cells - start);
            let values = columns.iter().zip(&orders).map(|(v, order)| v.pick(order, start, length));
            tile(values.collect::<Result<_, _>>()?, length)?;
            start += length;
        }
        Ok(())
    }
}
