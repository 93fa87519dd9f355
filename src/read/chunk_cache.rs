//! Decoded chunks that the next Block needs again, where variables of one table have different chunk grids.

use std::collections::HashMap;
use std::sync::Arc;

use super::buffer::PooledBuffer;
use super::decode::VariableElements;

/// Bytes that the chunks of a cache may hold.
const MAX_BYTES: usize = 128 << 20;

/// Bytes of a key and its place in the map, roughly.
const KEY: usize = 256;

/// A chunk as stored, padding included.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// It was never written.
    Missing,
    /// Elements of one size.
    Fixed(PooledBuffer),
    /// Elements that have lengths of their own.
    Variable(VariableElements),
}

impl Chunk {
    /// Bytes that the cache pays for it, the key included.
    fn bytes(&self) -> usize {
        let elements = match self {
            Self::Missing => 0,
            Self::Fixed(buffer) => buffer.bytes().len(),
            Self::Variable(v) => v.bytes.len() + v.offsets.len() * size_of::<usize>(),
        };
        elements + KEY
    }
}

/// Which chunk of which array.
type Key = (String, Vec<u64>);

/// The chunks used last.
#[derive(Debug, Default)]
pub(crate) struct ChunkCache {
    chunks: HashMap<Key, (u64, Arc<Chunk>)>,
    clock: u64,
    bytes: usize,
}

impl ChunkCache {
    /// The chunk, if it is still here.
    pub(crate) fn get(&mut self, array: &str, chunk: &[u64]) -> Option<Arc<Chunk>> {
        self.clock += 1;
        let (used, found) = self.chunks.get_mut(&(array.to_owned(), chunk.to_vec()))?;
        *used = self.clock;
        Some(Arc::clone(found))
    }

    /// Keep a chunk, and drop those that were not used for the longest time.
    pub(crate) fn put(&mut self, array: &str, chunk: &[u64], decoded: Arc<Chunk>) {
        self.clock += 1;
        self.bytes += decoded.bytes();
        if let Some((_, old)) = self.chunks.insert((array.to_owned(), chunk.to_vec()), (self.clock, decoded)) {
            self.bytes -= old.bytes();
        }
        while self.bytes > MAX_BYTES && self.chunks.len() > 1 {
            let Some(oldest) = self.chunks.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone()) else {
                return;
            };
            if let Some((_, old)) = self.chunks.remove(&oldest) {
                self.bytes -= old.bytes();
            }
        }
    }
}
