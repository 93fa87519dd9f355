//! Values along some of a grid's dimensions, and which of them each row of a Block has.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, UInt64Array};
use arrow::compute::take;
use datafusion::arrow::error::ArrowError;

use super::IndexSet;

/// The values of one column along its own axes, C order.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    /// The values; `None` where each position is its own value.
    pub(crate) array: Option<ArrayRef>,
    /// The dimensions of the grid that they vary along, ascending.
    pub(crate) axes: Vec<usize>,
    /// Distance of neighbours along each axis.
    pub(crate) strides: Vec<u64>,
    /// Whether they are those of the whole grid, and not only of a Block's cells.
    pub(crate) whole: bool,
}

impl Values {
    /// The numbers 0, 1, 2, … along `axis`.
    pub(crate) fn index(axis: usize) -> Self {
        Self { array: None, axes: vec![axis], strides: vec![1], whole: true }
    }

    /// Which of them the rows of `block` have, in C order of its dimensions.
    pub(crate) fn rows(&self, block: &[IndexSet]) -> RowOrder {
        let (mut offset, mut axes) = (0, Vec::with_capacity(block.len()));
        for (dim, set) in block.iter().enumerate() {
            let stride = self.axes.iter().position(|a| *a == dim).and_then(|i| self.strides.get(i)).copied();
            let step = match (stride, self.whole, set.runs()) {
                (None, ..) => Step::Even(0),
                (Some(stride), true, [run]) => {
                    offset += run.start * stride;
                    Step::Even(stride)
                }
                (Some(stride), true, _) => Step::Listed(set.iter().map(|i| i * stride).collect()),
                (Some(stride), false, _) => Step::Even(stride),
            };
            axes.push((set.len(), step));
        }
        RowOrder { offset, axes }
    }

    /// The values of `length` rows from row `start` on.
    ///
    /// # Errors
    /// Rows that have no value here.
    pub(crate) fn pick(&self, rows: &RowOrder, start: usize, length: usize) -> Result<ArrayRef, ArrowError> {
        match (&self.array, rows.first_of_run(start, length)) {
            (Some(array), Some(first)) if first.saturating_add(length) <= array.len() => Ok(array.slice(first, length)),
            (Some(array), _) => take(array.as_ref(), &UInt64Array::from(rows.positions(start, length)), None),
            (None, _) => {
                let index = |p: u64| i64::try_from(p).unwrap_or(i64::MAX);
                Ok(Arc::new(Int64Array::from_iter_values(rows.positions(start, length).into_iter().map(index))))
            }
        }
    }

    /// The values of `rows`, in that order.
    ///
    /// # Errors
    /// Rows that have no value here.
    pub(crate) fn pick_rows(&self, order: &RowOrder, rows: &[u64]) -> Result<ArrayRef, ArrowError> {
        let positions = rows.iter().map(|row| order.position(*row));
        match &self.array {
            Some(array) => take(array.as_ref(), &UInt64Array::from_iter_values(positions), None),
            None => Ok(Arc::new(Int64Array::from_iter_values(positions.map(|p| i64::try_from(p).unwrap_or(i64::MAX))))),
        }
    }
}

/// Distance of neighbours along each axis of a C-ordered array of `lengths`; saturated.
pub(crate) fn strides(lengths: &[u64]) -> Vec<u64> {
    let mut out = vec![1u64; lengths.len()];
    let mut step = 1u64;
    for (stride, length) in out.iter_mut().zip(lengths).rev() {
        *stride = step;
        step = step.saturating_mul(*length);
    }
    out
}

/// Go on to the next index inside `lengths`, last axis fastest; `false` after the last.
pub(crate) fn next_index(index: &mut [usize], lengths: &[usize]) -> bool {
    for (i, length) in index.iter_mut().zip(lengths).rev() {
        *i += 1;
        if *i < *length {
            return true;
        }
        *i = 0;
    }
    false
}

/// How positions advance along one axis.
#[derive(Debug, Clone)]
enum Step {
    /// By as much from each index to the next; 0 where the column does not vary.
    Even(u64),
    /// The distance of each index from the first position.
    Listed(Arc<[u64]>),
}

impl Step {
    fn at(&self, index: u64) -> u64 {
        match self {
            Self::Even(step) => index * step,
            Self::Listed(distances) => usize::try_from(index).ok().and_then(|i| distances.get(i)).copied().unwrap_or(0),
        }
    }
}

/// Which value of a column each row of a Block has.
#[derive(Debug, Clone)]
pub(crate) struct RowOrder {
    /// Position of the first row's value, where all steps are even.
    offset: u64,
    /// For each axis of the Block, its extent and how the values follow each other along it.
    axes: Vec<(u64, Step)>,
}

impl RowOrder {
    /// Rows after which the values repeat.
    pub(crate) fn period(&self) -> usize {
        let varies = |(extent, step): &(u64, Step)| *extent > 1 && !matches!(step, Step::Even(0));
        let outermost = self.axes.iter().position(varies);
        let inner = self.axes.get(outermost.unwrap_or(self.axes.len())..).unwrap_or_default();
        let period = inner.iter().fold(1u64, |n, (extent, _)| n.saturating_mul(*extent));
        usize::try_from(period).unwrap_or(usize::MAX)
    }

    /// Where the values of `length` rows from `start` on begin, if they stand one after the other.
    fn first_of_run(&self, start: usize, length: usize) -> Option<usize> {
        let end = (start as u64).checked_add(length as u64)?;
        let mut next = 1;
        for (axis, (extent, step)) in self.axes.iter().enumerate().rev() {
            if end <= next {
                // Along the axes before, all of these rows are at the first index.
                let outer: u64 = self.axes.iter().take(axis + 1).map(|(_, step)| step.at(0)).sum();
                return usize::try_from(self.offset + outer + start as u64).ok();
            }
            match step {
                Step::Even(s) if *extent == 1 || *s == next => next *= extent,
                _ => return None,
            }
        }
        (end <= next).then(|| usize::try_from(self.offset + start as u64).ok())?
    }

    /// Whether the first `length` rows have the first values, one after the other.
    pub(crate) fn is_run(&self, length: usize) -> bool {
        self.first_of_run(0, length) == Some(0)
    }

    /// Position of the value of one row.
    fn position(&self, row: u64) -> u64 {
        let mut rest = row;
        let steps = self.axes.iter().rev().map(|(extent, step)| {
            let at = step.at(rest % extent.max(&1));
            rest /= extent.max(&1);
            at
        });
        self.offset + steps.sum::<u64>()
    }

    /// Positions of the values of `length` rows from row `start` on; after the last row comes the first.
    pub(crate) fn positions(&self, start: usize, length: usize) -> Vec<u64> {
        let mut out = Vec::with_capacity(length);
        let (mut index, mut rest) = (vec![0u64; self.axes.len()], start as u64);
        for (i, (extent, _)) in index.iter_mut().zip(&self.axes).rev() {
            (*i, rest) = (rest % extent.max(&1), rest / extent.max(&1));
        }
        let last_axis = (1, Step::Even(0));
        let (extent, step) = self.axes.last().unwrap_or(&last_axis);
        let outer = self.axes.len().saturating_sub(1);
        while out.len() < length {
            let first = index.iter().zip(&self.axes).take(outer).fold(self.offset, |p, (i, (_, step))| p + step.at(*i));
            let at = index.last().copied().unwrap_or(0);
            let run = (extent.saturating_sub(at)).min((length - out.len()) as u64).max(1);
            out.extend((at..at + run).map(|i| first + step.at(i)));
            // The last axis is done; advance the others like an odometer.
            if let Some(last) = index.last_mut() {
                *last = 0;
            }
            for (i, (extent, _)) in index.iter_mut().zip(&self.axes).rev().skip(1) {
                *i += 1;
                if *i < *extent {
                    break;
                }
                *i = 0;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(axes: &[usize], strides: &[u64], whole: bool) -> Values {
        Values { array: None, axes: axes.to_vec(), strides: strides.to_vec(), whole }
    }

    #[test]
    fn values_repeat_like_the_rows_of_a_block() {
        let block = [2..5, 0..2, 1..4].map(IndexSet::range);
        // A column over axes 0 and 2 of a grid whose lengths there are 6 and 4.
        let column = values(&[0, 2], &[4, 1], true);
        let order = column.rows(&block);
        let want: Vec<u64> = (2..5).flat_map(|a| (0..2).flat_map(move |_| (1..4).map(move |c| a * 4 + c))).collect();
        assert_eq!((order.positions(0, 18), order.period()), (want.clone(), 18));
        for (start, length) in [(0, 1), (1, 7), (5, 13), (17, 1)] {
            assert_eq!(order.positions(start, length), want[start..start + length]);
            assert_eq!(order.position(start as u64), want[start]);
        }
        // The same cells where only those of the Block were read.
        let order = values(&[0, 2], &[3, 1], false).rows(&block);
        assert_eq!(order.positions(0, 7), [0, 1, 2, 0, 1, 2, 3]);
        // Over axis 1 alone: a period of 6, and on.
        let order = values(&[1], &[1], true).rows(&block);
        assert_eq!((order.positions(0, 10), order.period()), (vec![0, 0, 0, 1, 1, 1, 0, 0, 0, 1], 6));
        // A scalar, in a Block and in a grid without dimensions.
        let order = values(&[], &[], true).rows(&block);
        assert_eq!((order.positions(0, 3), order.period()), (vec![0, 0, 0], 1));
        assert_eq!(values(&[], &[], true).rows(&[]).positions(0, 1), [0]);
    }

    #[test]
    fn indices_that_are_no_run_are_listed() {
        let block = [IndexSet::from_runs([1..2, 4..6]), IndexSet::from_runs([0..1, 3..4])];
        let order = values(&[0, 1], &[10, 1], true).rows(&block);
        assert_eq!((order.positions(0, 6), order.period()), (vec![10, 13, 40, 43, 50, 53], 6));
        assert_eq!(values(&[0], &[1], true).rows(&block).positions(1, 4), [1, 4, 4, 5]);
    }

    #[test]
    fn neighbours_are_a_slice() {
        let array: ArrayRef = Arc::new(Int64Array::from_iter_values(0..40));
        let column = Values { array: Some(Arc::clone(&array)), axes: vec![0, 1], strides: vec![10, 1], whole: true };
        let rows = column.rows(&[IndexSet::range(1..3), IndexSet::range(0..10)]);
        assert_eq!(rows.first_of_run(3, 5), Some(13));
        assert_eq!(&column.pick(&rows, 3, 5).unwrap(), &array.slice(13, 5));
        let part = column.rows(&[IndexSet::range(1..3), IndexSet::range(2..4)]);
        assert_eq!(
            (part.first_of_run(0, 2), part.first_of_run(0, 3), rows.first_of_run(18, 5)),
            (Some(12), None, None)
        );
        assert_eq!(column.pick(&part, 0, 4).unwrap().as_ref(), &Int64Array::from_iter_values([12, 13, 22, 23]));
    }
}
