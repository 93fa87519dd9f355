//! The columns of a grid, ready to be read.

use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use tokio::sync::OnceCell;

use super::array_reader::{ArrayReader, ReadContext};
use super::values::{ValueError, nan_test, to_arrow};
use crate::dataset::cf::{Calendar, Encoding, Kind};
use crate::dataset::{Column, Grid, LeftOut, Role, Source, Variable, field};
use crate::error::{Error, Result};
use crate::options::ZarrOptions;
use crate::planning::statistics::{Monotonic, monotonic};
use crate::planning::{Block, Coordinates, IndexSet, Known, Values, strides};
use crate::store::{DimensionChunks, ReadableStore};

/// Coordinates and fixed fields up to this size are read once and kept; larger ones are read Block by Block, like data.
const MAX_KEPT: u64 = 256 << 20;

/// Stored and decoded bytes of one variable for one Block above which a read is refused.
const MAX_DECODED: u64 = 4 << 30;

/// A grid whose columns can be read.
#[derive(Debug)]
pub(crate) struct GridReader {
    /// Length along each dimension.
    pub(crate) sizes: Vec<u64>,
    /// The columns of the table.
    pub(crate) columns: Vec<ColumnReader>,
    /// One field a column.
    pub(crate) schema: SchemaRef,
    /// Columns that cannot be read, and why.
    pub(crate) left_out: Vec<LeftOut>,
}

/// A column that can be read.
#[derive(Debug)]
pub(crate) struct ColumnReader {
    pub(crate) role: Role,
    /// The dimensions of the grid that the column varies along, ascending.
    pub(crate) axes: Vec<usize>,
    field: FieldRef,
    source: ColumnSource,
    monotonic: OnceLock<Option<Monotonic>>,
}

#[derive(Debug)]
enum ColumnSource {
    Index,
    Array(Box<EncodedArray>),
}

/// An array and how its elements become values.
#[derive(Debug)]
struct EncodedArray {
    variable: Variable,
    reader: ArrayReader,
    encoding: Encoding,
    /// Axes of the array in the order of the grid's dimensions; axes inside an element last.
    order: Vec<usize>,
    kept: OnceCell<ArrayRef>,
}

impl GridReader {
    /// Make the columns of `grid` ready, and read its dimension coordinates.
    ///
    /// # Errors
    /// Chunks of dimension coordinates that cannot be read, and a grid of which no data variable can be.
    pub(crate) async fn open(store: &Arc<dyn ReadableStore>, grid: &Grid, options: &ZarrOptions) -> Result<Self> {
        let mut context = ReadContext::default();
        let (mut columns, mut left_out): (Vec<ColumnReader>, _) = (Vec::new(), Vec::new());
        for column in &grid.columns {
            match ColumnReader::open(store, column, grid, options, &mut context).await {
                Ok(reader) => columns.push(reader),
                Err(Error::Unsupported { reason, .. }) => {
                    if column.role == Role::Dimension {
                        // Its name would promise values; the index says what it is.
                        let index = column.as_index();
                        if !grid.columns.iter().any(|c| c.name == index.name) {
                            columns.push(ColumnReader::open(store, &index, grid, options, &mut context).await?);
                        }
                    }
                    left_out.push(LeftOut { name: column.name.clone(), reason });
                }
                Err(e) => return Err(e),
            }
        }
        if !columns.iter().any(|c| c.role == Role::Data) {
            let reasons = left_out.iter().map(|l| format!("`{}`: {}", l.name, l.reason)).collect::<Vec<_>>().join("; ");
            return Err(Error::NoTable(format!(
                "no data variable of dimensions ({}) can be read: {reasons}",
                grid.dims.join(", ")
            )));
        }
        let schema = Arc::new(Schema::new(columns.iter().map(|c| Arc::clone(&c.field)).collect::<Vec<_>>()));
        Ok(Self { sizes: grid.sizes.clone(), columns, schema, left_out })
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.sizes.iter().product()
    }

    /// How the chunks of the heaviest data variable among `columns` cut the grid; `None` where no data is read.
    pub(crate) fn chunks(&self, columns: &[usize]) -> Option<Vec<DimensionChunks>> {
        let data = columns.iter().filter_map(|i| self.columns.get(*i));
        let heaviest = data.filter_map(|c| Some((c.chunk_bytes()?, c.chunks()?))).max_by_key(|(bytes, _)| *bytes)?;
        Some(heaviest.1)
    }

    /// What planning may know of the columns now.
    pub(crate) fn coordinates(&self) -> Coordinates {
        Coordinates { sizes: self.sizes.clone(), columns: self.columns.iter().map(ColumnReader::known).collect() }
    }

    /// Read those of `columns` that are coordinates or fixed fields and may stay in memory.
    ///
    /// # Errors
    /// Whatever keeps their chunks from being read and decoded.
    pub(crate) async fn load(&self, columns: &[usize]) -> Result<()> {
        let mut context = ReadContext::default();
        for column in columns {
            if let Some(column) = self.columns.get(*column) {
                column.keep(&mut context).await?;
            }
        }
        Ok(())
    }
}

impl ColumnReader {
    async fn open(
        store: &Arc<dyn ReadableStore>,
        column: &Column,
        grid: &Grid,
        options: &ZarrOptions,
        context: &mut ReadContext,
    ) -> Result<Self> {
        let mut encoding = column.encoding(options)?;
        let mut axes = column.axes.clone();
        axes.sort_unstable();
        let source = match (&column.source, &encoding) {
            (Source::Variable(variable), Some(encoding)) => {
                let reader = ArrayReader::try_new(Arc::clone(store), Arc::clone(&variable.array))?;
                let mut order: Vec<usize> = (0..column.axes.len()).collect();
                order.sort_by_key(|axis| column.axes.get(*axis).copied());
                order.extend(variable.trailing.is_some().then_some(column.axes.len()));
                ColumnSource::Array(Box::new(EncodedArray {
                    variable: variable.clone(),
                    reader,
                    encoding: encoding.clone(),
                    order,
                    kept: OnceCell::new(),
                }))
            }
            _ => ColumnSource::Index,
        };
        let mut reader = Self {
            role: column.role,
            axes,
            field: Arc::new(field(column, None, &grid.dims, false)),
            source,
            monotonic: OnceLock::new(),
        };
        let nullable = reader.prepare(context).await?;
        if let ColumnSource::Array(array) = &reader.source {
            encoding = Some(array.encoding.clone());
        }
        reader.field = Arc::new(field(column, encoding.as_ref(), &grid.dims, nullable));
        Ok(reader)
    }

    /// Read what the schema depends on: dimension coordinates, for whether they hold NULL, and dates that may have to be text. Returns whether the column is nullable.
    async fn prepare(&mut self, context: &mut ReadContext) -> Result<bool> {
        let ColumnSource::Array(array) = &mut self.source else { return Ok(false) };
        let julian = matches!(&array.encoding.kind, Kind::Time { encoding, text: false, .. } if encoding.calendar() == Calendar::Julian);
        if !array.is_kept() || (self.role != Role::Dimension && !julian) {
            return Ok(true);
        }
        match array.load(context).await {
            Ok(values) => {
                let nullable = values.null_count() > 0;
                array.kept = OnceCell::new_with(Some(values));
                Ok(nullable)
            }
            Err(ReadError::NotGregorian) => {
                if let Kind::Time { text, .. } = &mut array.encoding.kind {
                    *text = true;
                }
                let values = array.load(context).await.map_err(|e| array.error(e))?;
                let nullable = values.null_count() > 0;
                array.kept = OnceCell::new_with(Some(values));
                Ok(nullable)
            }
            Err(e) => Err(array.error(e)),
        }
    }

    /// Bytes of one decoded chunk.
    pub(crate) fn chunk_bytes(&self) -> Option<u64> {
        let ColumnSource::Array(array) = &self.source else { return None };
        let dims = array.reader.chunk_grid().0.iter().take(array.variable.dims.len());
        let lengths = dims.map(DimensionChunks::longest);
        Some(lengths.fold(array.variable.element_size(), u64::saturating_mul))
    }

    /// Bytes of one value, stored and decoded.
    pub(crate) fn value_bytes(&self) -> u64 {
        match &self.source {
            ColumnSource::Index => 8,
            ColumnSource::Array(array) => array.value_bytes(),
        }
    }

    /// How the chunks of a data variable cut the grid; `None` for other columns.
    pub(crate) fn chunks(&self) -> Option<Vec<DimensionChunks>> {
        let ColumnSource::Array(array) = &self.source else { return None };
        let axes = array.order.iter().filter(|axis| **axis < array.variable.dims.len());
        let chunks = axes.filter_map(|axis| array.reader.chunk_grid().0.get(*axis)).cloned();
        (self.role == Role::Data).then(|| chunks.collect())
    }

    /// Whether it is a coordinate or fixed field that may be in memory and is not.
    pub(crate) fn is_missing(&self) -> bool {
        let ColumnSource::Array(array) = &self.source else { return false };
        self.role != Role::Data && array.is_kept() && array.kept.get().is_none()
    }

    /// How the values follow each other along their only axis; `None` where they do not ascend or descend, or are not in memory.
    pub(crate) fn monotonic(&self) -> Option<Monotonic> {
        let Known::Values(values) = self.known() else { return None };
        *self.monotonic.get_or_init(|| monotonic(&values))
    }

    fn known(&self) -> Known {
        match &self.source {
            ColumnSource::Index => Known::Values(Values::index(self.axes.first().copied().unwrap_or(0))),
            ColumnSource::Array(_) if self.role == Role::Data => Known::Data,
            ColumnSource::Array(array) => match array.kept.get() {
                Some(kept) => Known::Values(array.whole(kept, &self.axes)),
                None => Known::Elsewhere,
            },
        }
    }

    /// Read the values and keep them, where they may stay in memory; `None` where they may not.
    async fn keep(&self, context: &mut ReadContext) -> Result<Option<Values>> {
        let ColumnSource::Array(array) = &self.source else { return Ok(None) };
        if self.role == Role::Data || !array.is_kept() {
            return Ok(None);
        }
        let load = async || array.load(context).await.map_err(|e| array.error(e));
        let kept = array.kept.get_or_try_init(load).await?;
        Ok(Some(array.whole(kept, &self.axes)))
    }

    /// Its values along its own axes, for the cells of a Block.
    ///
    /// # Errors
    /// Whatever keeps its chunks from being read and decoded.
    pub(crate) async fn values(&self, block: &Block, context: &mut ReadContext) -> Result<Values> {
        let ColumnSource::Array(array) = &self.source else {
            return Ok(Values::index(self.axes.first().copied().unwrap_or(0)));
        };
        if let Some(whole) = self.keep(context).await? {
            return Ok(whole);
        }
        let part = Block {
            indices: self.axes.iter().filter_map(|a| block.indices.get(*a)).cloned().collect(),
            ranges: self.axes.iter().filter_map(|a| block.ranges.get(*a)).cloned().collect(),
            kept: block.kept.clone().filter(|_| self.axes.len() == block.indices.len()),
        };
        let before = context.counts.chunks;
        let values = array.read(&part, context).await.map_err(|e| array.error(e))?;
        if self.role == Role::Data {
            context.counts.data_chunks += context.counts.chunks - before;
        }
        let lengths: Vec<u64> = part.indices.iter().map(IndexSet::len).collect();
        Ok(Values { array: Some(values), axes: self.axes.clone(), strides: strides(&lengths), whole: false })
    }

    /// All its values, C order, where they are in memory.
    pub(crate) fn kept(&self) -> Option<ArrayRef> {
        match &self.source {
            ColumnSource::Index => None,
            ColumnSource::Array(array) => array.kept.get().cloned(),
        }
    }

    /// All its values, C order, and kept like those that a query reads; `None` where each position is its own value.
    ///
    /// It waits for no other task that may be reading the same values, so that a thread may block on it.
    ///
    /// # Errors
    /// As [`Self::values`].
    pub(crate) async fn whole(&self) -> Result<Option<ArrayRef>> {
        let ColumnSource::Array(array) = &self.source else { return Ok(None) };
        if let Some(values) = array.kept.get() {
            return Ok(Some(Arc::clone(values)));
        }
        let values = array.load(&mut ReadContext::default()).await.map_err(|e| array.error(e))?;
        if array.is_kept() && self.role != Role::Data {
            // Whoever was first has kept the same values.
            drop(array.kept.set(Arc::clone(&values)));
        }
        Ok(Some(values))
    }
}

fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Why values could not be read.
enum ReadError {
    NotGregorian,
    Other(Error),
}

impl EncodedArray {
    /// Whether all its values may stay in memory.
    fn is_kept(&self) -> bool {
        let bytes = self.variable.shape.iter().fold(self.variable.element_size(), |n, l| n.saturating_mul(*l));
        bytes <= MAX_KEPT
    }

    /// Bytes of one value, stored and decoded; numbers that are neither widened nor packed are decoded where they lie.
    fn value_bytes(&self) -> u64 {
        let stored = self.variable.element_size();
        match self.encoding.kind {
            Kind::Number { widen: false } => stored,
            _ => stored + self.encoding.arrow_type().primitive_width().unwrap_or(16) as u64,
        }
    }

    /// Lengths along its dimensions, in the order of the grid's.
    fn lengths(&self) -> Vec<u64> {
        self.order.iter().filter_map(|a| self.variable.shape.get(*a)).copied().collect()
    }

    /// All values.
    async fn load(&self, context: &mut ReadContext) -> Result<ArrayRef, ReadError> {
        self.read(&Block::whole(&self.lengths()), context).await
    }

    /// All values, along `axes`.
    fn whole(&self, kept: &ArrayRef, axes: &[usize]) -> Values {
        Values { array: Some(Arc::clone(kept)), axes: axes.to_vec(), strides: strides(&self.lengths()), whole: true }
    }

    /// The values of `block`, whose dimensions are in the order of the grid's.
    async fn read(&self, block: &Block, context: &mut ReadContext) -> Result<ArrayRef, ReadError> {
        let rows = block.cells();
        let needed = rows.saturating_mul(self.value_bytes());
        if needed > MAX_DECODED {
            let array = self.variable.array.path.clone();
            return Err(ReadError::Other(Error::Limit { array, what: "one Block", needed, limit: MAX_DECODED }));
        }
        let rows = to_usize(rows);
        let mut own = Block {
            indices: vec![IndexSet::range(0..0); self.order.len()],
            ranges: vec![0..0; self.order.len()],
            kept: block.kept.clone(),
        };
        let trailing = self.variable.trailing.iter().map(|r| (IndexSet::range(r.clone()), r.clone()));
        let along = block.indices.iter().cloned().zip(block.ranges.iter().cloned()).chain(trailing);
        for (axis, (indices, range)) in self.order.iter().zip(along) {
            if let (Some(a), Some(b)) = (own.indices.get_mut(*axis), own.ranges.get_mut(*axis)) {
                (*a, *b) = (indices, range);
            }
        }
        let mut region =
            self.reader.read(&own, &self.order, nan_test(&self.encoding), context).await.map_err(ReadError::Other)?;
        // The characters of a text are written or not written together.
        let elements = self.variable.trailing.as_ref().map_or(1, |r| to_usize(r.end - r.start)).max(1);
        if let Some(undefined) = region.undefined.as_mut().filter(|_| elements > 1) {
            *undefined = undefined.iter().copied().step_by(elements).collect();
        }
        to_arrow(rows, region, &self.encoding, &context.pool).map_err(|e| match e {
            ValueError::NotGregorian => ReadError::NotGregorian,
            ValueError::Other(reason) => {
                ReadError::Other(Error::Unsupported { array: self.variable.array.path.clone(), reason })
            }
        })
    }

    fn error(&self, error: ReadError) -> Error {
        match error {
            ReadError::Other(e) => e,
            ReadError::NotGregorian => Error::Unsupported {
                array: self.variable.array.path.clone(),
                reason: "it holds a date that the Gregorian calendar lacks; read the numbers with option `decode_times` = `false`".into(),
            },
        }
    }
}
