//! Any box of an array, assembled from its chunks.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{StreamExt, stream};

use super::buffer::BufferPool;
use super::cells::{
    Cells, Layout, Region, Source, any_cell, copy_box, copy_listed, fill, fill_box, for_each_cell, strides,
};
use super::chunk_cache::{Chunk, ChunkCache};
use super::decode::{Codecs, Scratch, VariableElements};
use super::fetch::{LocalFiles, RawRead};
use crate::error::{Error, Result};
use crate::planning::{Block, IndexSet};
use crate::store::{ArrayMetadata, ByteRange, ChunkGrid, Cuts, DimensionChunks, ReadableStore};

/// Bytes of one decoded chunk, or of one region, above which a read is refused.
const MAX_BYTES: u64 = i32::MAX as u64;
/// Bytes of all texts of one region: Arrow's offsets have 32 bits.
const MAX_TEXT: usize = 1 << 30;
/// What an element of its own length costs in memory, its content apart.
const VARIABLE_ELEMENT: usize = 48;
/// Requests in flight for one region of a store that is not local.
const CONCURRENCY: usize = 16;
/// Entries of shard indices that are kept.
const MAX_INDEX_ENTRIES: usize = 1 << 22;

/// What one thread of reading needs again and again: buffers, codec contexts, decoded chunks.
#[derive(Default)]
pub(crate) struct ReadContext {
    pub(crate) pool: Arc<BufferPool>,
    files: LocalFiles,
    scratch: Scratch,
    cache: ChunkCache,
    indices: Arc<Mutex<ShardIndices>>,
    /// What reading has cost so far.
    pub(crate) counts: ReadCounts,
}

/// What reading has cost.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadCounts {
    /// Chunks, present or absent, that were read.
    pub(crate) chunks: u64,
    /// Those of them that belong to data variables.
    pub(crate) data_chunks: u64,
    /// Encoded bytes.
    pub(crate) bytes: u64,
    /// Reads of files, or requests to the store.
    pub(crate) requests: u64,
    /// Time spent on decoding.
    pub(crate) decode: Duration,
}

impl std::fmt::Debug for ReadContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Codec contexts have nothing to show.
        f.debug_struct("ReadContext").field("cache", &self.cache).finish_non_exhaustive()
    }
}

/// Byte ranges of the inner chunks of a shard, in C order; `None` for one that was never written.
type ShardIndex = Arc<Vec<Option<Range<u64>>>>;

/// Indices of the shards of all arrays, by array and shard; `None` for a shard that was never written. They live as long as one run of a plan.
#[derive(Debug, Default)]
struct ShardIndices {
    indices: HashMap<(String, Vec<u64>), Option<ShardIndex>>,
    entries: usize,
}

impl ShardIndices {
    fn put(&mut self, id: (String, Vec<u64>), index: Option<ShardIndex>) {
        let entries = 1 + index.as_ref().map_or(0, |i| i.len());
        if self.entries + entries > MAX_INDEX_ENTRIES {
            *self = Self::default();
        }
        self.entries += entries;
        self.indices.insert(id, index);
    }
}

/// Encoded bytes of a chunk, as far as they are here.
enum Encoded {
    /// In a local file, which is read where it is decoded.
    Local,
    /// The chunk was never written.
    Missing,
    Fetched(Bytes),
    /// Decoded already.
    Decoded(Arc<Chunk>),
}

/// Where the encoded bytes of a chunk lie.
struct Place {
    /// Key of the object, relative to the store.
    key: String,
    /// The part of it, where the chunk is inside a shard.
    range: Option<ByteRange>,
    /// More encoded bytes than the chunk can have.
    limit: u64,
}

/// Reads boxes of one array.
#[derive(Debug)]
pub(crate) struct ArrayReader {
    store: Arc<dyn ReadableStore>,
    array: Arc<ArrayMetadata>,
    codecs: Codecs,
    /// Grid of what is decoded at once: inner chunks where the array is sharded.
    grid: ChunkGrid,
    /// Inner chunks of a shard along each dimension, where single ones can be read.
    per_shard: Option<Vec<u64>>,
}

impl ArrayReader {
    /// A reader of `array` in `store`.
    ///
    /// # Errors
    /// A codec that is not supported.
    pub(crate) fn try_new(store: Arc<dyn ReadableStore>, array: Arc<ArrayMetadata>) -> Result<Self> {
        let unsupported = |reason| Error::Unsupported { array: array.path.clone(), reason };
        let codecs = Codecs::new(&array.codecs, &array.data_type, array.fill_value.as_deref()).map_err(unsupported)?;
        if let Some(sharding) = codecs.sharding() {
            let shard = array.chunk_grid.stored_shape(&vec![0; array.shape.len()]);
            sharding.index_size(&shard).map_err(unsupported)?;
        }
        let inner = codecs.sharding().and_then(|s| inner_grid(&array.chunk_grid, s.chunk_shape()));
        let (grid, per_shard) = match inner {
            Some((grid, per_shard)) => (grid, Some(per_shard)),
            None => (array.chunk_grid.clone(), None),
        };
        Ok(Self { store, array, codecs, grid, per_shard })
    }

    /// The grid of what one read decodes.
    pub(crate) fn chunk_grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// The cells of `block`, whose dimensions are those of the array, laid out in C order of the dimensions `order`; so are the bits that it
    /// keeps, each for one cell, or for the characters of one text. Chunks without a wanted cell are not read: their cells are zero or empty.
    /// `is_missing` is asked where that costs nothing.
    ///
    /// # Errors
    /// Failures of the store, chunks that cannot be decoded, and regions above 2 GiB.
    pub(crate) async fn read(
        &self,
        block: &Block,
        order: &[usize],
        is_missing: Option<MissingTest>,
        context: &mut ReadContext,
    ) -> Result<Region> {
        let request = Request::new(self, block, order)?;
        let mut assembly = Assembly::new(&request, self.element_size(), is_missing, context);
        let wanted = |chunk: &Vec<u64>| block.kept.is_none() || request.wants(&request.part(&self.grid, chunk));
        let (chunks, unwanted): (Vec<_>, Vec<_>) = self.chunks_of(&block.indices).partition(wanted);
        for chunk in unwanted {
            assembly.clear(&request.part(&self.grid, &chunk));
        }
        if self.is_local() {
            for chunk in chunks {
                let known = self.cached(&chunk, &request, context);
                self.read_chunk(&chunk, known.unwrap_or(Encoded::Local), &request, &mut assembly, context).await?;
                // Nothing here waits, and a query has to end when it is dropped.
                tokio::task::consume_budget().await;
            }
        } else {
            let chunks =
                chunks.into_iter().map(|chunk| (self.cached(&chunk, &request, context), chunk)).collect::<Vec<_>>();
            let indices = Arc::clone(&context.indices);
            let fetch = |(known, chunk): (Option<Encoded>, Vec<u64>)| {
                let indices = &indices;
                async move {
                    let encoded = match known {
                        Some(known) => Ok(known),
                        None => self.fetch(&chunk, indices).await,
                    };
                    (encoded, chunk)
                }
            };
            let mut fetched = stream::iter(chunks).map(fetch).buffered(CONCURRENCY);
            while let Some((encoded, chunk)) = fetched.next().await {
                self.read_chunk(&chunk, encoded?, &request, &mut assembly, context).await?;
            }
        }
        assembly.finish(&self.array)
    }

    /// The chunk as an earlier read has decoded it, where it reaches over this one and so may have been kept.
    fn cached(&self, chunk: &[u64], request: &Request<'_>, context: &mut ReadContext) -> Option<Encoded> {
        if request.part(&self.grid, chunk).is_whole_chunk {
            return None;
        }
        context.cache.get(&self.array.path, chunk).map(Encoded::Decoded)
    }

    /// Codecs of what is decoded at once.
    fn chunk_codecs(&self) -> &Codecs {
        match (&self.per_shard, self.codecs.sharding()) {
            (Some(_), Some(sharding)) => sharding.inner(),
            _ => &self.codecs,
        }
    }

    fn element_size(&self) -> Option<usize> {
        self.array.data_type.fixed_size()
    }

    fn is_local(&self) -> bool {
        self.store.local_path("zarr.json").is_some()
    }

    /// Indices of the chunks that hold a cell at some combination of `indices`, in C order.
    fn chunks_of(&self, indices: &[IndexSet]) -> impl Iterator<Item = Vec<u64>> + use<> {
        let sets: Vec<IndexSet> = self.grid.0.iter().zip(indices).map(|(d, set)| set.chunks(d)).collect();
        (0..crate::planning::cells(&sets)).filter_map(move |number| crate::planning::nth_cell(&sets, number))
    }

    /// Decode one chunk (fetched already, or local) and put its part of the request in place.
    async fn read_chunk(
        &self,
        chunk: &[u64],
        encoded: Encoded,
        request: &Request<'_>,
        assembly: &mut Assembly,
        context: &mut ReadContext,
    ) -> Result<()> {
        let part = request.part(&self.grid, chunk);
        if let (true, Assembly::Fixed { out, missing, .. }) = (part.is_whole_request, &mut *assembly) {
            let raw = matches!(encoded, Encoded::Local) && self.chunk_codecs().is_raw();
            let found = if raw {
                self.read_raw(chunk, out.bytes_mut(), missing, context).await?
            } else {
                self.with_encoded(chunk, encoded, context, |encoded, scratch| {
                    self.chunk_codecs().decode(encoded, &part.shape, out.bytes_mut(), scratch)
                })
                .await?
            };
            if !found {
                assembly.fill(&part, &self.array);
            }
            return Ok(());
        }
        let decoded = if let Encoded::Decoded(decoded) = encoded {
            decoded
        } else {
            let decoded = Arc::new(self.decode_chunk(chunk, &part.shape, encoded, context).await?);
            // A chunk that reaches over the request may be needed for the next one.
            if !part.is_whole_chunk {
                context.cache.put(&self.array.path, chunk, Arc::clone(&decoded));
            }
            decoded
        };
        assembly.place(decoded, &part, &self.array);
        Ok(())
    }

    async fn decode_chunk(
        &self,
        chunk: &[u64],
        shape: &[u64],
        encoded: Encoded,
        context: &mut ReadContext,
    ) -> Result<Chunk> {
        let Some(size) = self.element_size() else {
            let mut elements = None;
            let decode = |encoded: &[u8], scratch: &mut Scratch| {
                elements = Some(self.chunk_codecs().decode_variable(encoded, shape, scratch)?);
                Ok(())
            };
            self.with_encoded(chunk, encoded, context, decode).await?;
            return Ok(elements.map_or(Chunk::Missing, Chunk::Variable));
        };
        let mut buffer = context.pool.take(self.bytes_of(shape, size, "one chunk")?);
        let found = self
            .with_encoded(chunk, encoded, context, |encoded, scratch| {
                self.chunk_codecs().decode(encoded, shape, buffer.bytes_mut(), scratch)
            })
            .await?;
        Ok(if found { Chunk::Fixed(buffer) } else { Chunk::Missing })
    }

    /// Bytes of a decoded box of `shape`.
    fn bytes_of(&self, shape: &[u64], size: usize, what: &'static str) -> Result<usize> {
        let bytes = shape.iter().try_fold(size as u64, |n, l| n.checked_mul(*l)).unwrap_or(u64::MAX);
        let limit = || Error::Limit { array: self.array.path.clone(), what, needed: bytes, limit: MAX_BYTES };
        usize::try_from(bytes).ok().filter(|_| bytes <= MAX_BYTES).ok_or_else(limit)
    }

    /// Call `decode` with the encoded bytes of a chunk; `false` where the chunk was never written.
    async fn with_encoded(
        &self,
        chunk: &[u64],
        encoded: Encoded,
        context: &mut ReadContext,
        mut decode: impl FnMut(&[u8], &mut Scratch) -> Result<(), String>,
    ) -> Result<bool> {
        let ReadContext { files, scratch, indices, counts, .. } = context;
        counts.chunks += 1;
        let mut timed = |encoded: &[u8], scratch: &mut Scratch| {
            counts.requests += 1;
            counts.bytes += encoded.len() as u64;
            let start = Instant::now();
            let outcome = decode(encoded, scratch);
            counts.decode += start.elapsed();
            outcome
        };
        let outcome = match encoded {
            Encoded::Missing | Encoded::Decoded(_) => return Ok(false),
            Encoded::Fetched(bytes) => timed(&bytes, scratch),
            Encoded::Local => {
                let Some(place) = self.place(chunk, indices, Some((&mut *files, &mut *scratch))).await? else {
                    return Ok(false);
                };
                let path = self.local_path(&place.key)?;
                match files.read(&place.key, &path, place.range, place.limit)? {
                    Some(encoded) => timed(encoded, scratch),
                    None => return Ok(false),
                }
            }
        };
        outcome.map(|()| true).map_err(|reason| self.corrupt(chunk, &reason))
    }

    /// Read a local chunk that needs no decoding; `false` where it was never written.
    async fn read_raw(
        &self,
        chunk: &[u64],
        out: &mut [u8],
        missing: &mut Missing,
        context: &mut ReadContext,
    ) -> Result<bool> {
        let ReadContext { files, scratch, indices, counts, .. } = context;
        counts.chunks += 1;
        let Some(place) = self.place(chunk, indices, Some((&mut *files, scratch))).await? else { return Ok(false) };
        let path = self.local_path(&place.key)?;
        let (mut any, test) = (false, missing.test);
        let seen = |piece: &[u8]| any |= test.is_some_and(|test| test(piece));
        match files.read_into(&place.key, &path, place.range, out, seen)? {
            RawRead::Done => {
                missing.found = test.map(|_| any);
                counts.requests += 1;
                counts.bytes += out.len() as u64;
                Ok(true)
            }
            RawRead::NoFile => Ok(false),
            RawRead::Holds(length) => {
                Err(self.corrupt(chunk, &format!("it has {length} bytes where {} are needed", out.len())))
            }
        }
    }

    fn local_path(&self, key: &str) -> Result<PathBuf> {
        let not_plain = || Error::Store { key: key.to_owned(), source: "it is no path inside the store".into() };
        self.store.local_path(key).ok_or_else(not_plain)
    }

    fn corrupt(&self, chunk: &[u64], reason: &str) -> Error {
        let (stored, inner) = self.stored_chunk(chunk);
        let reason = if inner.is_empty() { reason.to_owned() } else { format!("inner chunk {inner:?}: {reason}") };
        Error::Chunk { array: self.array.path.clone(), key: self.array.chunk_keys.key(&stored), reason }
    }

    /// The stored chunk (the shard, where there are any) that holds `chunk`, and its place inside.
    fn stored_chunk(&self, chunk: &[u64]) -> (Vec<u64>, Vec<u64>) {
        match &self.per_shard {
            None => (chunk.to_vec(), Vec::new()),
            Some(per_shard) => chunk.iter().zip(per_shard).map(|(c, n)| (c / n, c % n)).unzip(),
        }
    }

    /// Encoded bytes of a chunk of a store that is not local.
    async fn fetch(&self, chunk: &[u64], indices: &Mutex<ShardIndices>) -> Result<Encoded> {
        let Some(place) = self.place(chunk, indices, None).await? else { return Ok(Encoded::Missing) };
        let bytes = match place.range {
            None => self.store.get(&place.key, place.limit).await?,
            Some(range) => self.store.get_range(&place.key, range).await?,
        };
        Ok(bytes.map_or(Encoded::Missing, Encoded::Fetched))
    }

    /// Where a chunk's bytes lie; `None` where its shard's index says that it was never written.
    async fn place(
        &self,
        chunk: &[u64],
        indices: &Mutex<ShardIndices>,
        local: Option<(&mut LocalFiles, &mut Scratch)>,
    ) -> Result<Option<Place>> {
        let (stored, inner) = self.stored_chunk(chunk);
        let key = self.array.chunk_key(&stored);
        let limit = self.encoded_limit(chunk);
        let Some(per_shard) = &self.per_shard else { return Ok(Some(Place { key, range: None, limit })) };
        let Some(index) = self.shard_index(&stored, &key, indices, local).await? else { return Ok(None) };
        let position = inner.iter().zip(per_shard).fold(0u64, |p, (i, n)| p.saturating_mul(*n).saturating_add(*i));
        let entry = usize::try_from(position).ok().and_then(|p| index.get(p)).cloned().flatten();
        let Some(range) = entry else { return Ok(None) };
        let length = range.end.saturating_sub(range.start);
        if length > limit {
            return Err(self.corrupt(chunk, &format!("{length} bytes are more than the {limit} that it can need")));
        }
        Ok(Some(Place { key, range: Some(ByteRange::Offsets(range)), limit }))
    }

    /// More bytes than encoding can make of a chunk, so that a file of any size is refused before it is read.
    fn encoded_limit(&self, chunk: &[u64]) -> u64 {
        let Some(size) = self.element_size() else { return MAX_BYTES };
        let shape = self.grid.stored_shape(chunk);
        let decoded = shape.iter().fold(size as u64, |n, l| n.saturating_mul(*l));
        let index = self.chunk_codecs().sharding().and_then(|s| s.index_size(&shape).ok()).unwrap_or(0);
        decoded.saturating_mul(2).saturating_add(index.saturating_mul(8)).saturating_add(1 << 20)
    }

    /// The index of a shard; `None` where the shard was never written.
    async fn shard_index(
        &self,
        shard: &[u64],
        key: &str,
        indices: &Mutex<ShardIndices>,
        local: Option<(&mut LocalFiles, &mut Scratch)>,
    ) -> Result<Option<ShardIndex>> {
        let id = (self.array.path.clone(), shard.to_vec());
        if let Some(known) = indices.lock().unwrap_or_else(PoisonError::into_inner).indices.get(&id) {
            return Ok(known.clone());
        }
        let Some(sharding) = self.codecs.sharding() else { return Ok(None) };
        let corrupt =
            |reason| Error::Chunk { array: self.array.path.clone(), key: self.array.chunk_keys.key(shard), reason };
        let shape = self.array.chunk_grid.stored_shape(shard);
        let size = sharding.index_size(&shape).map_err(corrupt)?;
        if size > MAX_BYTES {
            return Err(Error::Limit {
                array: self.array.path.clone(),
                what: "a shard index",
                needed: size,
                limit: MAX_BYTES,
            });
        }
        let range = if sharding.index_at_start() { ByteRange::Offsets(0..size) } else { ByteRange::Suffix(size) };
        let index = match (local, self.store.local_path(key)) {
            (Some((files, scratch)), Some(path)) => match files.read(key, &path, Some(range), size)? {
                Some(encoded) => Some(sharding.decode_index(encoded, &shape, None, scratch).map_err(corrupt)?),
                None => None,
            },
            _ => match self.store.get_range(key, range).await? {
                Some(encoded) => {
                    Some(sharding.decode_index(&encoded, &shape, None, &mut Scratch::default()).map_err(corrupt)?)
                }
                None => None,
            },
        };
        let index = index.map(Arc::new);
        indices.lock().unwrap_or_else(PoisonError::into_inner).put(id, index.clone());
        Ok(index)
    }
}

/// Grid of the inner chunks of regular shards, and how many of them a shard has along each dimension.
fn inner_grid(shards: &ChunkGrid, inner: &[u64]) -> Option<(ChunkGrid, Vec<u64>)> {
    if inner.len() != shards.0.len() {
        return None;
    }
    let cut = |(d, inner): (&DimensionChunks, &u64)| match d.cuts {
        Cuts::Regular(shard) if *inner > 0 && shard % inner == 0 => {
            Some((DimensionChunks { size: d.size, cuts: Cuts::Regular(*inner) }, shard / inner))
        }
        _ => None,
    };
    let (grid, per_shard) = shards.0.iter().zip(inner).map(cut).collect::<Option<Vec<_>>>()?.into_iter().unzip();
    Some((ChunkGrid(grid), per_shard))
}

/// What is asked for, and how the answer is laid out.
struct Request<'a> {
    block: &'a Block,
    /// Elements between neighbours along each dimension of the array, in the answer.
    strides: Vec<usize>,
    cells: usize,
    /// Whether the answer has the order of the array.
    in_order: bool,
}

/// The part of a request that one chunk holds.
struct Part {
    /// Shape of the chunk as stored.
    shape: Vec<u64>,
    extents: Vec<usize>,
    source: Source,
    target: Layout,
    /// The chunk, padding included, is exactly the request.
    is_whole_request: bool,
    /// No other Block has a cell of the chunk.
    is_whole_chunk: bool,
}

impl<'a> Request<'a> {
    fn new(reader: &ArrayReader, block: &'a Block, order: &[usize]) -> Result<Self> {
        let lengths: Vec<u64> = block.indices.iter().map(IndexSet::len).collect();
        let cells = reader.bytes_of(&lengths, 1, "one Block")?;
        reader.bytes_of(&lengths, reader.element_size().unwrap_or(VARIABLE_ELEMENT), "one Block")?;
        let lengths: Vec<usize> = lengths.iter().map(|l| usize::try_from(*l).unwrap_or(usize::MAX)).collect();
        let ordered: Vec<usize> = order.iter().filter_map(|axis| lengths.get(*axis).copied()).collect();
        let mut strides_of = vec![0usize; lengths.len()];
        for (axis, stride) in order.iter().zip(strides(&ordered)) {
            if let Some(slot) = strides_of.get_mut(*axis) {
                *slot = stride;
            }
        }
        let in_order = order.iter().copied().eq(0..lengths.len());
        Ok(Self { block, strides: strides_of, cells, in_order })
    }

    /// Whether a cell of `part` is needed.
    fn wants(&self, part: &Part) -> bool {
        let Some(bits) = &self.block.kept else { return true };
        let cells = (self.cells / bits.len().max(1)).max(1);
        any_cell(&part.extents, &part.target, |i| i / cells < bits.len() && bits.value(i / cells))
    }

    fn part(&self, grid: &ChunkGrid, chunk: &[u64]) -> Part {
        let shape = grid.stored_shape(chunk);
        let steps = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let lengths: Vec<usize> = shape.iter().copied().map(steps).collect();
        let held: Vec<(Range<u64>, IndexSet)> = grid
            .0
            .iter()
            .zip(chunk)
            .zip(&self.block.indices)
            .map(|((d, c), set)| (d.range(*c), set.within(&d.range(*c))))
            .collect();
        let mut target = Layout { offset: 0, strides: self.strides.clone() };
        let (mut is_whole_request, mut is_whole_chunk) = (self.in_order, true);
        let block = self.block.indices.iter().zip(&self.block.ranges);
        for ((((range, inside), (set, own)), stride), (d, c)) in
            held.iter().zip(block).zip(&self.strides).zip(grid.0.iter().zip(chunk))
        {
            let before = steps(set.rank(inside.bounds().start));
            target.offset = target.offset.saturating_add(before.saturating_mul(*stride));
            is_whole_chunk &= range.start >= own.start && range.end <= own.end;
            is_whole_request &= inside.len() == set.len() && inside.len() == d.stored_length(*c);
        }
        Part {
            extents: held.iter().map(|(_, inside)| steps(inside.len())).collect(),
            source: source(&held, &strides(&lengths)),
            target,
            is_whole_request,
            is_whole_chunk,
            shape,
        }
    }
}

/// Where cells of a chunk stand in it: for each dimension, the range that the chunk holds and the indices inside that are asked for.
fn source(held: &[(Range<u64>, IndexSet)], strides: &[usize]) -> Source {
    let distance = |n: u64, stride: usize| usize::try_from(n).unwrap_or(usize::MAX).saturating_mul(stride);
    if held.iter().all(|(_, inside)| inside.runs().len() <= 1) {
        let starts = held
            .iter()
            .zip(strides)
            .map(|((range, inside), stride)| distance(inside.bounds().start.saturating_sub(range.start), *stride));
        return Source::Box(Layout { offset: starts.fold(0, usize::saturating_add), strides: strides.to_vec() });
    }
    let list = |((range, inside), stride): (&(Range<u64>, IndexSet), &usize)| {
        inside.iter().map(|i| distance(i - range.start, *stride)).collect()
    };
    Source::Listed(held.iter().zip(strides).map(list).collect())
}

/// Whether elements, native-endian, have a missing value among them.
pub(crate) type MissingTest = fn(&[u8]) -> bool;

/// What is known about missing values.
#[derive(Default)]
struct Missing {
    test: Option<MissingTest>,
    /// Whether there are some, once all were tested.
    found: Option<bool>,
}

/// The answer in the making.
enum Assembly {
    Fixed {
        out: super::buffer::PooledBuffer,
        undefined: Option<Vec<u8>>,
        missing: Missing,
        /// Bytes of an element.
        size: usize,
    },
    /// For each cell, which element of which chunk it is.
    Variable { chunks: Vec<Arc<Chunk>>, cells: Vec<(usize, usize)> },
}

impl Assembly {
    fn new(request: &Request<'_>, size: Option<usize>, test: Option<MissingTest>, context: &ReadContext) -> Self {
        match size {
            Some(size) => Self::Fixed {
                out: context.pool.take(request.cells.saturating_mul(size)),
                undefined: None,
                missing: Missing { test, found: None },
                size,
            },
            None => Self::Variable { chunks: Vec::new(), cells: vec![(usize::MAX, 0); request.cells] },
        }
    }

    fn place(&mut self, chunk: Arc<Chunk>, part: &Part, array: &ArrayMetadata) {
        match (&mut *self, chunk.as_ref()) {
            (Self::Fixed { .. }, Chunk::Missing | Chunk::Variable(_)) => self.fill(part, array),
            (Self::Fixed { out, .. }, Chunk::Fixed(decoded)) => {
                let (from, to) = (decoded.bytes(), out.bytes_mut());
                let size = array.data_type.fixed_size().unwrap_or(1);
                match &part.source {
                    Source::Box(source) => copy_box(&part.extents, from, source, to, &part.target, size),
                    Source::Listed(lists) => copy_listed(lists, from, to, &part.target, size),
                }
            }
            (Self::Variable { chunks, cells }, _) => {
                let number = chunks.len();
                for_each_cell(&part.extents, &part.source, &part.target, |from, to| {
                    if let Some(cell) = cells.get_mut(to) {
                        *cell = (number, from);
                    }
                });
                chunks.push(chunk);
            }
        }
    }

    /// Zeros for all cells of a part, which nobody looks at.
    fn clear(&mut self, part: &Part) {
        if let Self::Fixed { out, size, .. } = self {
            fill_box(&part.extents, out.bytes_mut(), &part.target, &vec![0; *size]);
        }
    }

    /// The fill value for all cells of a part; cells of an array without one are undefined.
    fn fill(&mut self, part: &Part, array: &ArrayMetadata) {
        let Self::Fixed { out, undefined, size, .. } = self else { return };
        match &array.fill_value {
            Some(element) if part.is_whole_request => fill(out.bytes_mut(), element),
            Some(element) => fill_box(&part.extents, out.bytes_mut(), &part.target, element),
            None => {
                fill_box(&part.extents, out.bytes_mut(), &part.target, &vec![0; *size]);
                let cells = out.bytes().len() / (*size).max(1);
                fill_box(&part.extents, undefined.get_or_insert_with(|| vec![0; cells]), &part.target, &[1]);
            }
        }
    }

    fn finish(self, array: &ArrayMetadata) -> Result<Region> {
        match self {
            Self::Fixed { out, undefined, missing, .. } => {
                Ok(Region { cells: Cells::Fixed(out), undefined, has_missing: missing.found })
            }
            Self::Variable { chunks, cells } => {
                gather(&chunks, &cells, array.fill_value.as_deref()).map_err(|needed| Error::Limit {
                    array: array.path.clone(),
                    what: "the texts of one Block",
                    needed: needed as u64,
                    limit: MAX_TEXT as u64,
                })
            }
        }
    }
}

/// Elements of their own lengths, in the order of the answer.
///
/// # Errors
/// The bytes so far, where they are too many.
fn gather(chunks: &[Arc<Chunk>], cells: &[(usize, usize)], fill_value: Option<&[u8]>) -> Result<Region, usize> {
    let mut elements = VariableElements { offsets: Vec::with_capacity(cells.len() + 1), bytes: Vec::new() };
    elements.offsets.push(0);
    let mut undefined = Vec::with_capacity(cells.len());
    for (chunk, index) in cells {
        let element = match chunks.get(*chunk).map(Arc::as_ref) {
            Some(Chunk::Variable(v)) => Some(v.get(*index)),
            _ => fill_value,
        };
        let element_bytes = element.unwrap_or_default();
        let needed = elements.bytes.len().saturating_add(element_bytes.len());
        if needed > MAX_TEXT {
            return Err(needed);
        }
        elements.bytes.extend_from_slice(element_bytes);
        elements.offsets.push(elements.bytes.len());
        undefined.push(u8::from(element.is_none()));
    }
    let undefined = undefined.contains(&1).then_some(undefined);
    Ok(Region { cells: Cells::Variable(elements), undefined, has_missing: None })
}
