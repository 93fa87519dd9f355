//! The `sharding_indexed` codec (zarr-specs, codecs/sharding-indexed): a chunk that is an array of inner chunks, with
//! an index of where each of them lies.
//!
//! The index has for each inner chunk, in C order, two 64-bit integers: its offset in the shard and its number of
//! bytes, both 2⁶⁴ - 1 where the inner chunk is absent and so holds nothing but the fill value. It stands at the start
//! or at the end of the shard and has codecs of its own, whose output has a length that does not depend on its content.

use std::ops::Range;

use serde_json::{Map, Value};

use super::{
    Codecs, Fill, elements, guard,
    scratch::Scratch,
    shard_layout::Layout,
    variable::{self, Lengths, VariableElements},
};
use crate::store::{codec::CodecMetadata, data_type::DataType};

/// Bytes of an entry of the decoded index.
const ENTRY: usize = 16;

/// A codec that splits its chunk into inner chunks.
#[derive(Debug)]
pub(crate) struct Sharding {
    chunk_shape: Vec<u64>,
    inner: Codecs,
    index: Codecs,
    index_at_start: bool,
    fill: Fill,
}

impl Sharding {
    /// Read the configuration. `depth` counts the shards around this one.
    pub(super) fn new(
        configuration: &Map<String, Value>,
        data_type: &DataType,
        fill: Fill,
        depth: usize,
    ) -> Result<Self, String> {
        let shape = configuration.get("chunk_shape").ok_or("codec `sharding_indexed` has no `chunk_shape`")?;
        let length = |n: &Value| n.as_u64().filter(|&n| n > 0);
        let chunk_shape = shape.as_array().and_then(|lengths| lengths.iter().map(length).collect::<Option<Vec<u64>>>());
        let chunk_shape =
            chunk_shape.ok_or_else(|| format!("codec `sharding_indexed` has the `chunk_shape` {shape}"))?;
        let index_at_start = match configuration.get("index_location") {
            None => false,
            Some(location) => match location.as_str() {
                Some("end") => false,
                Some("start") => true,
                _ => return Err(format!("codec `sharding_indexed` has the unknown `index_location` {location}")),
            },
        };
        let inner = Codecs::build(&list(configuration, "codecs")?, data_type, fill.clone(), depth + 1)?;
        let index = Codecs::build(&list(configuration, "index_codecs")?, &DataType::UInt64, Fill::Null, depth + 1)?;
        if index.encoded_size(&vec![1; chunk_shape.len() + 1]).is_none() {
            return Err(
                "the `index_codecs` of codec `sharding_indexed` do not give an index of fixed length".to_owned()
            );
        }
        Ok(Self { chunk_shape, inner, index, index_at_start, fill })
    }

    /// Shape of the inner chunks.
    pub(crate) fn chunk_shape(&self) -> &[u64] {
        &self.chunk_shape
    }

    /// Decoder of the inner chunks.
    pub(crate) fn inner(&self) -> &Codecs {
        &self.inner
    }

    /// Whether the index stands at the start of the shard, not at its end.
    pub(crate) fn index_at_start(&self) -> bool {
        self.index_at_start
    }

    /// Bytes of the encoded index of a shard of this shape.
    ///
    /// # Errors
    /// Where inner chunks do not fill such a shard exactly, or are too many.
    pub(crate) fn index_size(&self, shard_shape: &[u64]) -> Result<u64, String> {
        let size = self.index.encoded_size(&self.index_shape(shard_shape)?);
        size.and_then(|size| u64::try_from(size).ok()).ok_or_else(|| "the shard has too many inner chunks".to_owned())
    }

    /// Decode the index: for each inner chunk in C order the range of its bytes in the shard, `None` where it is
    /// absent.
    ///
    /// # Errors
    /// Where the index is damaged, or a range overlaps the index or another range, or ends beyond the shard of
    /// `shard_size` bytes. Several inner chunks may have the very same range.
    pub(crate) fn decode_index(
        &self,
        encoded: &[u8],
        shard_shape: &[u64],
        shard_size: Option<u64>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Option<Range<u64>>>, String> {
        guard(scratch, |scratch| self.read_index(encoded, shard_shape, shard_size, scratch))
    }

    fn read_index(
        &self,
        encoded: &[u8],
        shard_shape: &[u64],
        shard_size: Option<u64>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Option<Range<u64>>>, String> {
        let shape = self.index_shape(shard_shape)?;
        let index_size = self.index_size(shard_shape)?;
        if u64::try_from(encoded.len()) != Ok(index_size) {
            return Err(format!("there are {} bytes where an index of {index_size} is expected", encoded.len()));
        }
        let content = self.content(index_size, shard_size)?;
        // What is allocated is no more than the encoded index, which is there.
        let too_many = || "the shard has too many inner chunks".to_owned();
        let mut buffer = scratch.take(elements(&shape)?.checked_mul(ENTRY / 2).ok_or_else(too_many)?)?;
        self.index
            .decode_chunk(encoded, &shape, buffer.as_mut_slice(), scratch)
            .map_err(|reason| format!("bad index: {reason}"))?;
        let (entries, _) = buffer.as_slice().as_chunks::<ENTRY>();
        let mut ranges = Vec::new();
        ranges.try_reserve_exact(entries.len()).map_err(|_| too_many())?;
        for (i, entry) in entries.iter().enumerate() {
            let range = parse_entry(entry, &content)
                .map_err(|reason| format!("inner chunk {}: {reason}", self.name(i, shard_shape)))?;
            ranges.push(range);
        }
        scratch.give(buffer);
        self.check_overlap(&ranges, shard_shape)?;
        Ok(ranges)
    }

    /// Decode a whole shard of elements of `size` bytes into `out`.
    pub(super) fn decode(
        &self,
        encoded: &[u8],
        shape: &[u64],
        size: usize,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), String> {
        let layout = Layout::new(shape, &self.chunk_shape)?;
        let chunk_bytes = layout.chunk_elements().checked_mul(size).ok_or("its inner chunks are too large")?;
        let chunks = self.chunks(encoded, shape, scratch)?;
        let mut origins = layout.origins();
        for (i, chunk) in chunks.into_iter().enumerate() {
            let origin = origins.next().unwrap_or_default();
            let decoded = match chunk {
                None => self.fill.of_size(size).map(|fill| layout.fill(fill, origin, size, out)),
                Some(bytes) if layout.is_contiguous() => {
                    let target =
                        out.get_mut(origin * size..).and_then(|rest| rest.get_mut(..chunk_bytes)).unwrap_or_default();
                    self.inner.decode_chunk(bytes, &self.chunk_shape, target, scratch)
                }
                Some(bytes) => scratch.take(chunk_bytes).and_then(|mut buffer| {
                    self.inner.decode_chunk(bytes, &self.chunk_shape, buffer.as_mut_slice(), scratch)?;
                    layout.copy(buffer.as_slice(), origin, size, out);
                    scratch.give(buffer);
                    Ok(())
                }),
            };
            decoded.map_err(|reason| format!("inner chunk {}: {reason}", self.name(i, shape)))?;
        }
        Ok(())
    }

    /// Decode a whole shard of text or bytes.
    pub(super) fn decode_variable(
        &self,
        encoded: &[u8],
        shape: &[u64],
        scratch: &mut Scratch,
    ) -> Result<VariableElements, String> {
        let layout = Layout::new(shape, &self.chunk_shape)?;
        let fill = self.fill.of_any_size();
        let mut lengths = Lengths::new(elements(shape)?, fill.as_ref().map_or(0, |fill| fill.len()))?;
        // Every element is looked up twice: for its length, and for its content.
        let (mut decoded, mut total) = (Vec::new(), 0_usize);
        for (i, (chunk, origin)) in self.chunks(encoded, shape, scratch)?.into_iter().zip(layout.origins()).enumerate()
        {
            let blame = |reason: String| format!("inner chunk {}: {reason}", self.name(i, shape));
            let Some(bytes) = chunk else {
                fill.clone().map_err(blame)?;
                decoded.push(None);
                continue;
            };
            let elements = self.inner.decode_variable_chunk(bytes, &self.chunk_shape, scratch).map_err(blame)?;
            total = total.saturating_add(elements.bytes.len());
            if total > variable::LIMIT {
                return Err(blame(format!("the elements of the shard take more than {} MiB", variable::LIMIT >> 20)));
            }
            layout.for_each_element(origin, |i, at| lengths.set(at, elements.get(i).len()));
            decoded.push(Some(elements));
        }
        let fill = fill.unwrap_or_default();
        let mut whole = VariableElements::with_lengths(lengths)?;
        for (elements, origin) in decoded.iter().zip(layout.origins()) {
            layout.for_each_element(origin, |i, at| {
                whole.set(at, elements.as_ref().map_or(fill, |elements| elements.get(i)));
            });
        }
        Ok(whole)
    }

    /// The bytes of the inner chunks of a whole shard.
    fn chunks<'a>(
        &self,
        encoded: &'a [u8],
        shape: &[u64],
        scratch: &mut Scratch,
    ) -> Result<Vec<Option<&'a [u8]>>, String> {
        let index_size = usize::try_from(self.index_size(shape)?).unwrap_or(usize::MAX);
        let Some(content) = encoded.len().checked_sub(index_size) else {
            return Err(format!("a shard of {} bytes is too short for its index of {index_size}", encoded.len()));
        };
        let index = if self.index_at_start { encoded.get(..index_size) } else { encoded.get(content..) };
        let size = u64::try_from(encoded.len()).ok();
        let ranges = self.read_index(index.unwrap_or_default(), shape, size, scratch)?;
        let bytes = |range: Range<u64>| {
            let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
            encoded.get(start..end).unwrap_or_default()
        };
        Ok(ranges.into_iter().map(|range| range.map(bytes)).collect())
    }

    /// Number of inner chunks along each axis.
    fn grid(&self, shard_shape: &[u64]) -> Result<Vec<u64>, String> {
        let fits = shard_shape.len() == self.chunk_shape.len()
            && shard_shape.iter().zip(&self.chunk_shape).all(|(&n, &inner)| n.is_multiple_of(inner));
        if !fits {
            return Err(format!(
                "inner chunks of shape {:?} do not fill a shard of shape {shard_shape:?}",
                self.chunk_shape
            ));
        }
        Ok(shard_shape.iter().zip(&self.chunk_shape).map(|(&n, &inner)| n / inner).collect())
    }

    fn index_shape(&self, shard_shape: &[u64]) -> Result<Vec<u64>, String> {
        let mut shape = self.grid(shard_shape)?;
        shape.push(2);
        Ok(shape)
    }

    /// Where inner chunks may lie: everywhere but in the index.
    fn content(&self, index_size: u64, shard_size: Option<u64>) -> Result<Range<u64>, String> {
        let end = shard_size.unwrap_or(u64::MAX);
        let end_before_index = end
            .checked_sub(index_size)
            .ok_or_else(|| format!("a shard of {end} bytes is too short for its index of {index_size}"))?;
        Ok(match (self.index_at_start, shard_size) {
            (true, _) => index_size..end,
            (false, Some(_)) => 0..end_before_index,
            (false, None) => 0..end,
        })
    }

    fn check_overlap(&self, ranges: &[Option<Range<u64>>], shard_shape: &[u64]) -> Result<(), String> {
        let present = || {
            ranges
                .iter()
                .enumerate()
                .filter_map(|(i, range)| range.as_ref().filter(|range| !range.is_empty()).map(|range| (range, i)))
        };
        // Most often they are in order.
        if present().is_sorted_by(|(a, _), (b, _)| a.end <= b.start) {
            return Ok(());
        }
        let mut sorted: Vec<_> = present().map(|(range, i)| (range.start, range.end, i)).collect();
        sorted.sort_unstable();
        for pair in sorted.array_windows::<2>() {
            let [(start, end, i), (next_start, next_end, next)] = *pair;
            if next_start < end && (start, end) != (next_start, next_end) {
                let [a, b] = [i, next].map(|i| self.name(i, shard_shape));
                return Err(format!(
                    "inner chunk {b}: its bytes {next_start}..{next_end} overlap {start}..{end} of inner chunk {a}"
                ));
            }
        }
        Ok(())
    }

    /// The indices of an inner chunk.
    fn name(&self, mut i: usize, shard_shape: &[u64]) -> String {
        let grid = self.grid(shard_shape).unwrap_or_default();
        let mut index = vec![0; grid.len()];
        for (at, &len) in index.iter_mut().zip(&grid).rev() {
            let len = usize::try_from(len).unwrap_or(usize::MAX).max(1);
            *at = i % len;
            i /= len;
        }
        format!("{index:?}")
    }
}

/// The range of bytes of an index entry.
fn parse_entry(entry: &[u8; ENTRY], content: &Range<u64>) -> Result<Option<Range<u64>>, String> {
    let (numbers, _) = entry.as_chunks::<8>();
    let &[offset, size] = numbers else { return Ok(None) };
    let (offset, size) = (u64::from_ne_bytes(offset), u64::from_ne_bytes(size));
    if (offset, size) == (u64::MAX, u64::MAX) {
        return Ok(None);
    }
    match offset.checked_add(size) {
        Some(end) if offset >= content.start && end <= content.end => Ok(Some(offset..end)),
        _ => Err(format!(
            "its {size} bytes at offset {offset} are not inside the bytes {}..{} of the shard",
            content.start, content.end
        )),
    }
}

/// A list of codecs inside the configuration.
fn list(configuration: &Map<String, Value>, key: &str) -> Result<Vec<CodecMetadata>, String> {
    let bad = |what: &Value| format!("codec `sharding_indexed` has the codec {what} in its `{key}`");
    let codecs = configuration
        .get(key)
        .and_then(Value::as_array)
        .ok_or_else(|| format!("codec `sharding_indexed` has no list of `{key}`"))?;
    let parse = |codec: &Value| {
        let name = codec.as_str().or_else(|| codec.get("name")?.as_str()).ok_or_else(|| bad(codec))?;
        let configuration = match codec.get("configuration") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(configuration)) => configuration.clone(),
            Some(_) => return Err(bad(codec)),
        };
        Ok(CodecMetadata { name: name.to_owned(), configuration })
    };
    codecs.iter().map(parse).collect()
}
