//! Blocks as rows: data cells as they lie, coordinates as tiles that Blocks of one shape share.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use crate::dataset::Role;
use crate::error::{Error, Result};
use crate::planning::{Block, IndexSet, RowOrder, Values};
use crate::read::{ColumnReader, GridReader, ReadContext};

/// Rows of the largest tile.
const MAX_TILE_ROWS: usize = 1 << 22;
/// Bytes of tiles that a partition keeps.
const MAX_TILE_BYTES: usize = 64 << 20;

/// A column, and the part of a Block that its tile depends on.
type TileKey = (usize, Vec<IndexSet>);

/// The values of one column for the cells of a Block.
#[derive(Debug, Clone)]
pub(crate) enum CellColumn {
    /// One value a cell.
    Cells(ArrayRef),
    /// Values that repeat after `period` cells, and on for as many cells as a batch has.
    Tile { array: ArrayRef, period: usize },
    /// Values of a Block so large that a tile of it would not pay.
    Far { values: Arc<Values>, cells: RowOrder },
}

impl CellColumn {
    /// The values of `length` cells from `start` on.
    pub(crate) fn range(&self, start: usize, length: usize) -> Result<ArrayRef> {
        match self {
            Self::Tile { array, period } if start % period + length > array.len() => {
                let cells: Vec<u64> = (start..start + length).map(|c| c as u64).collect();
                self.pick(&cells)
            }
            _ => self.slice(start, length),
        }
    }

    /// The same, where a batch has no fewer: a tile is long enough for that.
    fn slice(&self, start: usize, length: usize) -> Result<ArrayRef> {
        match self {
            Self::Cells(array) => Ok(array.slice(start, length)),
            Self::Tile { array, period } => Ok(array.slice(start % period, length)),
            Self::Far { values, cells } => Ok(values.pick(cells, start, length)?),
        }
    }

    /// The values of `cells`.
    pub(crate) fn pick(&self, cells: &[u64]) -> Result<ArrayRef> {
        let (array, positions) = match self {
            Self::Cells(array) => (array, UInt64Array::from(cells.to_vec())),
            Self::Tile { array, period } => {
                (array, cells.iter().map(|c| c % (*period as u64)).collect::<Vec<_>>().into())
            }
            Self::Far { values, cells: order } => return Ok(values.pick_rows(order, cells)?),
        };
        Ok(take(array.as_ref(), &positions, None)?)
    }
}

/// Columns of one Block, and which of its cells are rows.
#[derive(Debug)]
struct Layer {
    /// By their place in the batch.
    columns: Vec<(usize, CellColumn)>,
    kept: Option<BooleanBuffer>,
    /// The next cell.
    next: usize,
}

/// Cells of a layer that are rows.
enum Cells {
    Run(usize, usize),
    Listed(Vec<u64>),
}

impl Layer {
    /// The next `rows` rows.
    fn advance(&mut self, rows: usize) -> Cells {
        let Some(kept) = &self.kept else {
            let start = self.next;
            self.next += rows;
            return Cells::Run(start, rows);
        };
        let rest = kept.slice(self.next, kept.len() - self.next);
        let cells: Vec<u64> = rest.set_indices().take(rows).map(|i| (self.next + i) as u64).collect();
        self.next = cells.last().and_then(|c| usize::try_from(*c).ok()).map_or(kept.len(), |last| last + 1);
        Cells::Listed(cells)
    }
}

/// The rows of one Block, handed out batch by batch.
#[derive(Debug)]
pub(crate) struct BlockRows {
    /// Each has the same rows in the same order; a later one has fewer cells.
    layers: Vec<Layer>,
    width: usize,
    /// Rows that are left.
    rows: usize,
}

impl BlockRows {
    /// The next rows, at most `limit`; `None` after the last.
    pub(crate) fn next_batch(&mut self, schema: &SchemaRef, limit: usize) -> Result<Option<RecordBatch>> {
        let rows = limit.min(self.rows);
        if rows == 0 {
            return Ok(None);
        }
        self.rows -= rows;
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.width];
        for layer in &mut self.layers {
            let cells = layer.advance(rows);
            for (place, column) in &layer.columns {
                let values = match &cells {
                    Cells::Run(start, length) => column.slice(*start, *length)?,
                    Cells::Listed(cells) => column.pick(cells)?,
                };
                if let Some(slot) = columns.get_mut(*place) {
                    *slot = Some(values);
                }
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let columns = columns.into_iter().flatten().collect();
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?))
    }
}

/// Reads columns of Blocks for one partition, and makes rows of them.
#[derive(Debug)]
pub(crate) struct RowMaker {
    grid: Arc<GridReader>,
    projection: Arc<[usize]>,
    batch_size: usize,
    pub(crate) context: ReadContext,
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

    /// The rows of `block`, some of whose columns have been `read` for the cells of `before`, among which all its rows are.
    ///
    /// # Errors
    /// Whatever keeps a chunk of another column from being read and decoded.
    pub(crate) async fn rows(
        &mut self,
        block: &Block,
        read: HashMap<usize, CellColumn>,
        before: &Block,
    ) -> Result<BlockRows> {
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for (place, number) in Arc::clone(&self.projection).iter().enumerate() {
            match read.get(number) {
                Some(column) => early.push((place, column.clone())),
                None => late.push((place, self.column(*number, block).await?)),
            }
        }
        let layer = |columns, block: &Block| Layer { columns, kept: block.kept.clone(), next: 0 };
        Ok(BlockRows {
            layers: vec![layer(early, before), layer(late, block)],
            width: self.projection.len(),
            rows: block.rows(),
        })
    }

    /// The values of column `number` for the cells of `block`; those of chunks without a wanted cell are any.
    ///
    /// # Errors
    /// Whatever keeps its chunks from being read and decoded.
    pub(crate) async fn column(&mut self, number: usize, block: &Block) -> Result<CellColumn> {
        let grid = Arc::clone(&self.grid);
        let Some(column) = grid.columns.get(number) else { return Err(no_cells()) };
        if column.role == Role::Data {
            let values = column.values(block, &mut self.context).await?;
            return Ok(CellColumn::Cells(values.array.ok_or_else(no_cells)?));
        }
        self.repeated(number, column, block).await
    }

    /// The values of a column that varies along some axes only, with the tile of an earlier Block where that has the same.
    async fn repeated(&mut self, number: usize, column: &ColumnReader, block: &Block) -> Result<CellColumn> {
        // Along other axes only the extent matters.
        let part = |(axis, set): (usize, &IndexSet)| {
            if column.axes.contains(&axis) { set.clone() } else { IndexSet::range(0..set.len()) }
        };
        let key = (number, block.indices.iter().enumerate().map(part).collect());
        if let Some((array, period)) = self.tiles.get(&key) {
            return Ok(CellColumn::Tile { array: Arc::clone(array), period: *period });
        }
        let values = column.values(block, &mut self.context).await?;
        let order = values.rows(&block.indices);
        let period = order.period();
        if period > MAX_TILE_ROWS {
            return Ok(CellColumn::Far { values: Arc::new(values), cells: order });
        }
        // The tile goes on for a batch after its period, so that every batch is a slice of it.
        let cells = usize::try_from(block.cells()).unwrap_or(usize::MAX);
        let array = values.pick(&order, 0, cells.min(period + self.batch_size))?;
        // Of a slice of kept values, the slice alone.
        let bytes = array.to_data().get_slice_memory_size().unwrap_or(usize::MAX);
        if self.tile_bytes + bytes > MAX_TILE_BYTES {
            self.tiles.clear();
            self.tile_bytes = 0;
        }
        self.tile_bytes += bytes;
        self.tiles.insert(key, (Arc::clone(&array), period));
        Ok(CellColumn::Tile { array, period })
    }
}

fn no_cells() -> Error {
    Error::Dimension("a scan names a column that its table does not have".into())
}
