//! Blocks as rows: data cells as they lie, coordinates as tiles that Blocks of one shape share.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use crate::dataset::Role;
use crate::error::{Error, Result};
use crate::planning;
use crate::read::{ColumnReader, GridReader, ReadContext, Values};

/// Rows of the largest tile.
const MAX_TILE_ROWS: usize = 1 << 22;
/// Bytes of tiles that a partition keeps.
const MAX_TILE_BYTES: usize = 64 << 20;

/// A column, and the part of a Block that its tile depends on.
type TileKey = (usize, Vec<Range<u64>>);

/// The values of one column for the rows of a Block.
#[derive(Debug, Clone)]
enum RowColumn {
    /// One value a row.
    Cells(ArrayRef),
    /// Values that repeat after `period` rows, and on for as many rows as a batch has.
    Tile { array: ArrayRef, period: usize },
    /// Values of a Block so large that a tile of it would not pay.
    Far { values: Arc<Values>, rows: RowOrder },
}

/// The rows of one Block, handed out batch by batch.
#[derive(Debug)]
pub(crate) struct BlockRows {
    columns: Vec<RowColumn>,
    rows: usize,
    next: usize,
}

impl BlockRows {
    /// The next rows, at most `limit`; `None` after the last.
    pub(crate) fn next_batch(&mut self, schema: &SchemaRef, limit: usize) -> Result<Option<RecordBatch>> {
        let length = limit.min(self.rows - self.next);
        if length == 0 {
            return Ok(None);
        }
        let slice = |column: &RowColumn| match column {
            RowColumn::Cells(array) => Ok(array.slice(self.next, length)),
            RowColumn::Tile { array, period } => Ok(array.slice(self.next % period, length)),
            RowColumn::Far { values, rows } => values.pick(rows.positions(self.next, length)),
        };
        let columns = self.columns.iter().map(slice).collect::<Result<_>>()?;
        self.next += length;
        let options = RecordBatchOptions::new().with_row_count(Some(length));
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?))
    }
}

/// Makes rows of Blocks for one partition.
#[derive(Debug)]
pub(crate) struct RowMaker {
    grid: Arc<GridReader>,
    projection: Arc<[usize]>,
    batch_size: usize,
    context: ReadContext,
    tiles: HashMap<TileKey, (ArrayRef, usize)>,
    tile_bytes: usize,
}

impl RowMaker {
    /// Rows of the columns `projection` in batches of `batch_size`.
    pub(crate) fn new(grid: Arc<GridReader>, projection: Arc<[usize]>, batch_size: usize) -> Self {
        Self {
            grid,
            projection,
            batch_size: batch_size.max(1),
            context: ReadContext::default(),
            tiles: HashMap::new(),
            tile_bytes: 0,
        }
    }

    /// Bytes that the columns of a Block need in memory: the cells of data, and for all other columns a tile and the positions that it is made by.
    pub(crate) fn bytes(&self, block: &[Range<u64>]) -> usize {
        let rows = planning::rows(block);
        let columns = self.projection.iter().filter_map(|i| self.grid.columns.get(*i));
        let row: u64 = columns.map(|c| c.value_bytes() + if c.role == Role::Data { 0 } else { 8 }).sum();
        usize::try_from(rows.saturating_mul(row)).unwrap_or(usize::MAX)
    }

    /// Read a Block.
    ///
    /// # Errors
    /// Whatever keeps one of its chunks from being read and decoded.
    pub(crate) async fn read(&mut self, block: &[Range<u64>]) -> Result<BlockRows> {
        let rows = usize::try_from(planning::rows(block)).unwrap_or(usize::MAX);
        let grid = Arc::clone(&self.grid);
        let mut columns = Vec::with_capacity(self.projection.len());
        for number in Arc::clone(&self.projection).iter() {
            let Some(column) = grid.columns.get(*number) else { continue };
            columns.push(if column.role == Role::Data {
                let values = column.values(block, &mut self.context).await?;
                RowColumn::Cells(values.array.ok_or_else(no_cells)?)
            } else {
                self.repeated(*number, column, block, rows).await?
            });
        }
        Ok(BlockRows { columns, rows, next: 0 })
    }

    /// The values of a column that varies along some axes only, with the tile of an earlier Block where that has the same.
    async fn repeated(
        &mut self,
        number: usize,
        column: &ColumnReader,
        block: &[Range<u64>],
        rows: usize,
    ) -> Result<RowColumn> {
        let own = |axis: usize| column.axes.contains(&axis);
        // Along other axes only the extent matters.
        let key =
            block.iter().enumerate().map(|(axis, r)| if own(axis) { r.clone() } else { 0..r.end - r.start }).collect();
        let key = (number, key);
        if let Some((array, period)) = self.tiles.get(&key) {
            return Ok(RowColumn::Tile { array: Arc::clone(array), period: *period });
        }
        let values = column.values(block, &mut self.context).await?;
        let order = RowOrder::new(&values, &column.axes, block);
        let period = order.period();
        if period > MAX_TILE_ROWS {
            return Ok(RowColumn::Far { values: Arc::new(values), rows: order });
        }
        // The tile goes on for a batch after its period, so that every batch is a slice of it.
        let array = values.pick(order.positions(0, rows.min(period + self.batch_size)))?;
        let bytes = array.get_array_memory_size();
        if self.tile_bytes + bytes > MAX_TILE_BYTES {
            self.tiles.clear();
            self.tile_bytes = 0;
        }
        self.tile_bytes += bytes;
        self.tiles.insert(key, (Arc::clone(&array), period));
        Ok(RowColumn::Tile { array, period })
    }
}

fn no_cells() -> Error {
    Error::Dimension("a data variable has no cells of its own".into())
}

/// Which value of a column each row of a Block has.
#[derive(Debug, Clone)]
struct RowOrder {
    /// Position of the first row's value.
    offset: u64,
    /// For each axis of the Block, its extent and the distance of neighbours among the values (0 where the column does not vary).
    axes: Vec<(u64, u64)>,
}

impl RowOrder {
    fn new(values: &Values, axes: &[usize], block: &[Range<u64>]) -> Self {
        let step = |axis: usize| axes.iter().position(|a| *a == axis).and_then(|i| values.strides.get(i)).copied();
        let extent = |(axis, r): (usize, &Range<u64>)| (r.end - r.start, step(axis).unwrap_or(0) as u64);
        Self { offset: values.offset as u64, axes: block.iter().enumerate().map(extent).collect() }
    }

    /// Rows after which the values repeat.
    fn period(&self) -> usize {
        let outermost = self.axes.iter().position(|(extent, step)| *extent > 1 && *step > 0);
        let inner = self.axes.get(outermost.unwrap_or(self.axes.len())..).unwrap_or_default();
        let period = inner.iter().fold(1u64, |n, (extent, _)| n.saturating_mul(*extent));
        usize::try_from(period).unwrap_or(usize::MAX)
    }

    /// Positions of the values of `length` rows from row `start` on.
    fn positions(&self, start: usize, length: usize) -> Vec<u64> {
        let mut out = Vec::with_capacity(length);
        let (mut index, mut rest) = (vec![0u64; self.axes.len()], start as u64);
        for (i, (extent, _)) in index.iter_mut().zip(&self.axes).rev() {
            (*i, rest) = (rest % extent, rest / extent);
        }
        let (extent, step) = self.axes.last().copied().unwrap_or((1, 0));
        while out.len() < length {
            let first = index.iter().zip(&self.axes).fold(self.offset, |p, (i, (_, step))| p + i * step);
            let run = (extent - index.last().copied().unwrap_or(0)).min((length - out.len()) as u64);
            out.extend((0..run).map(|i| first + i * step));
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

    #[test]
    fn values_repeat_like_the_rows_of_a_block() {
        let block = [2..5, 0..2, 1..4];
        // A column over axes 0 and 2 of a grid whose lengths there are 6 and 4.
        let values = Values { array: None, offset: 2 * 4 + 1, strides: vec![4, 1] };
        let order = RowOrder::new(&values, &[0, 2], &block);
        let want: Vec<u64> = (2..5).flat_map(|a| (0..2).flat_map(move |_| (1..4).map(move |c| a * 4 + c))).collect();
        assert_eq!((order.positions(0, 18), order.period()), (want.clone(), 18));
        for (start, length) in [(0, 1), (1, 7), (5, 13), (17, 1)] {
            assert_eq!(order.positions(start, length), want[start..start + length]);
        }
        // Over axis 1 alone: a period of 6, and on.
        let values = Values { array: None, offset: 0, strides: vec![1] };
        let order = RowOrder::new(&values, &[1], &block);
        assert_eq!((order.positions(0, 10), order.period()), (vec![0, 0, 0, 1, 1, 1, 0, 0, 0, 1], 6));
        // A scalar, in a Block and in a grid without dimensions.
        let values = Values { array: None, offset: 0, strides: vec![] };
        let order = RowOrder::new(&values, &[], &block);
        assert_eq!((order.positions(0, 3), order.period()), (vec![0, 0, 0], 1));
        assert_eq!(RowOrder::new(&values, &[], &[]).positions(0, 1), [0]);
    }
}
