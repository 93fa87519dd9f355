//! Blocks as rows: data cells as they lie, coordinates as tiles that Blocks of one shape share.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use crate::dataset::Role;
use crate::error::Result;
use crate::planning;
use crate::read::{ColumnReader, GridReader, ReadContext, Values};

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
            RowColumn::Cells(array) => array.slice(self.next, length),
            RowColumn::Tile { array, period } => array.slice(self.next % period, length),
        };
        let columns = self.columns.iter().map(slice).collect();
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
                RowColumn::Cells(column.values(block, &mut self.context).await?.array)
            } else {
                let (array, period) = self.tile(*number, column, block, rows).await?;
                RowColumn::Tile { array, period }
            });
        }
        Ok(BlockRows { columns, rows, next: 0 })
    }

    /// The tile of a column for a Block, from an earlier Block where that has the same.
    async fn tile(
        &mut self,
        number: usize,
        column: &ColumnReader,
        block: &[Range<u64>],
        rows: usize,
    ) -> Result<(ArrayRef, usize)> {
        let own = |axis: usize| column.axes.contains(&axis);
        // Along other axes only the extent matters.
        let key =
            block.iter().enumerate().map(|(axis, r)| if own(axis) { r.clone() } else { 0..r.end - r.start }).collect();
        let key = (number, key);
        if let Some(known) = self.tiles.get(&key) {
            return Ok(known.clone());
        }
        let values = column.values(block, &mut self.context).await?;
        let (positions, period) = tile_positions(&values, &column.axes, block, rows.min(self.batch_size));
        let array = take(values.array.as_ref(), &UInt64Array::from(positions), None)?;
        let bytes = array.get_array_memory_size();
        if self.tile_bytes + bytes > MAX_TILE_BYTES {
            self.tiles.clear();
            self.tile_bytes = 0;
        }
        self.tile_bytes += bytes;
        self.tiles.insert(key, (Arc::clone(&array), period));
        Ok((array, period))
    }
}

/// For each row of a tile, the position of its value; and the number of rows after which they repeat.
///
/// The tile goes on for `batch` rows after its period, so that every batch is a slice of it.
fn tile_positions(values: &Values, axes: &[usize], block: &[Range<u64>], batch: usize) -> (Vec<u64>, usize) {
    let mut positions = vec![values.offset as u64];
    let outermost = axes.iter().find(|a| block.get(**a).is_some_and(|r| r.end - r.start > 1)).copied();
    // From the last axis outwards, each repeats what stands inside it.
    for (axis, range) in block.iter().enumerate().skip(outermost.unwrap_or(block.len())).rev() {
        let step =
            axes.iter().position(|a| *a == axis).and_then(|i| values.strides.get(i)).copied().unwrap_or(0) as u64;
        let inner = positions.len();
        for i in 1..range.end - range.start {
            positions.extend_from_within(..inner);
            let start = positions.len() - inner;
            if step > 0 {
                positions.iter_mut().skip(start).for_each(|p| *p += i * step);
            }
        }
    }
    let period = positions.len();
    let rows = usize::try_from(planning::rows(block)).unwrap_or(usize::MAX);
    let length = rows.min(period.saturating_add(batch));
    while positions.len() < length {
        let missing = length - positions.len();
        positions.extend_from_within(..missing.min(period));
    }
    (positions, period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;

    #[test]
    fn tiles_repeat_like_the_rows_of_a_block() {
        let block = [2..5, 0..2, 1..4];
        // A column over axes 0 and 2 of a grid whose lengths there are 6 and 4.
        let values =
            Values { array: Arc::new(Int64Array::from_iter_values(0..24)), offset: 2 * 4 + 1, strides: vec![4, 1] };
        let (positions, period) = tile_positions(&values, &[0, 2], &block, 5);
        let want: Vec<u64> = (2..5).flat_map(|a| (0..2).flat_map(move |_| (1..4).map(move |c| a * 4 + c))).collect();
        assert_eq!((positions, period), (want, 18));
        // Over axis 1 alone: a period of 6, and a batch more.
        let values = Values { array: Arc::new(Int64Array::from_iter_values(0..2)), offset: 0, strides: vec![1] };
        assert_eq!(tile_positions(&values, &[1], &block, 4), (vec![0, 0, 0, 1, 1, 1, 0, 0, 0, 1], 6));
        // A scalar.
        let values = Values { array: Arc::new(Int64Array::from_iter_values(0..1)), offset: 0, strides: vec![] };
        assert_eq!(tile_positions(&values, &[], &block, 2), (vec![0, 0, 0], 1));
    }
}
