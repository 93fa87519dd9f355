//! The columns of a grid, ready to be read.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use tokio::sync::OnceCell;

use super::array_reader::{ArrayReader, ReadContext};
use super::values::{ValueError, to_arrow};
use crate::dataset::cf::{Calendar, Encoding, Kind};
use crate::dataset::{Column, Grid, LeftOut, Role, Source, Variable, field};
use crate::error::{Error, Result};
use crate::options::ZarrOptions;
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

/// Values along some of a grid's dimensions: where the first one stands, and how far apart neighbours are along each axis of the column.
#[derive(Debug)]
pub(crate) struct Values {
    /// The values, C order; `None` where each position is its own value.
    pub(crate) array: Option<ArrayRef>,
    /// Position of the first value.
    pub(crate) offset: usize,
    /// Distance of neighbours along each axis of the column.
    pub(crate) strides: Vec<usize>,
}

impl Values {
    /// The values at `positions`.
    ///
    /// # Errors
    /// Positions outside the array.
    pub(crate) fn pick(&self, positions: Vec<u64>) -> Result<ArrayRef> {
        let Some(array) = &self.array else {
            let index = |p: u64| i64::try_from(p).unwrap_or(i64::MAX);
            return Ok(Arc::new(Int64Array::from_iter_values(positions.into_iter().map(index))));
        };
        Ok(take(array.as_ref(), &UInt64Array::from(positions), None)?)
    }
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

    /// How the chunks of the heaviest data variable among `projection` cut the grid; `None` where no data is read.
    pub(crate) fn chunks(&self, projection: &[usize]) -> Option<Vec<DimensionChunks>> {
        let projected = projection.iter().filter_map(|i| self.columns.get(*i)).filter(|c| c.role == Role::Data);
        let heaviest = projected.filter_map(|c| Some((c, c.chunk_bytes()?))).max_by_key(|(_, bytes)| *bytes)?.0;
        let ColumnSource::Array(array) = &heaviest.source else { return None };
        Some(
            array
                .order
                .iter()
                .filter_map(|axis| array.reader.chunk_grid().0.get(*axis))
                .take(self.sizes.len())
                .cloned()
                .collect(),
        )
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
        let mut reader =
            Self { role: column.role, axes, field: Arc::new(field(column, None, &grid.dims, false)), source };
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
    fn chunk_bytes(&self) -> Option<u64> {
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

    /// Its values along its own axes, for the cells of a Block.
    ///
    /// # Errors
    /// Whatever keeps its chunks from being read and decoded.
    pub(crate) async fn values(&self, block: &[Range<u64>], context: &mut ReadContext) -> Result<Values> {
        let ranges: Vec<Range<u64>> = self.axes.iter().filter_map(|a| block.get(*a)).cloned().collect();
        let lengths: Vec<usize> = ranges.iter().map(|r| to_usize(r.end - r.start)).collect();
        match &self.source {
            ColumnSource::Index => {
                let start = ranges.first().map_or(0, |r| to_usize(r.start));
                Ok(Values { array: None, offset: start, strides: vec![1] })
            }
            ColumnSource::Array(array) if self.role != Role::Data && array.is_kept() => {
                let whole = array
                    .kept
                    .get_or_try_init(|| async { array.load(context).await.map_err(|e| array.error(e)) })
                    .await?;
                let shape: Vec<usize> =
                    array.order.iter().filter_map(|a| array.variable.shape.get(*a)).map(|n| to_usize(*n)).collect();
                let strides = super::cells::strides(&shape);
                let offset = ranges.iter().zip(&strides).map(|(r, s)| to_usize(r.start) * s).sum();
                Ok(Values { array: Some(Arc::clone(whole)), offset, strides })
            }
            ColumnSource::Array(array) => {
                let values = array.read(&ranges, context).await.map_err(|e| array.error(e))?;
                Ok(Values { array: Some(values), offset: 0, strides: super::cells::strides(&lengths) })
            }
        }
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

    /// All values.
    async fn load(&self, context: &mut ReadContext) -> Result<ArrayRef, ReadError> {
        let whole: Vec<Range<u64>> =
            self.order.iter().filter_map(|a| self.variable.shape.get(*a)).map(|n| 0..*n).collect();
        self.read(&whole, context).await
    }

    /// The values of `ranges`, which are in the order of the grid's dimensions.
    async fn read(&self, ranges: &[Range<u64>], context: &mut ReadContext) -> Result<ArrayRef, ReadError> {
        let rows = ranges.iter().fold(1u64, |n, r| n.saturating_mul(r.end - r.start));
        let needed = rows.saturating_mul(self.value_bytes());
        if needed > MAX_DECODED {
            let array = self.variable.array.path.clone();
            return Err(ReadError::Other(Error::Limit { array, what: "one Block", needed, limit: MAX_DECODED }));
        }
        let rows = to_usize(rows);
        let mut own = vec![0..0; self.order.len()];
        for (axis, range) in self.order.iter().zip(ranges.iter().chain(&self.variable.trailing)) {
            if let Some(slot) = own.get_mut(*axis) {
                *slot = range.clone();
            }
        }
        let mut region = self.reader.read(&own, &self.order, context).await.map_err(ReadError::Other)?;
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
