//! Chunk grids: which cells a chunk holds, and under which key it is stored.

use std::ops::Range;

/// How one dimension of an array is cut into chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cuts {
    /// Chunks of one length; the last may reach over the end of the array.
    Regular(u64),
    /// The start of every chunk, and the end of the last one.
    Irregular(Vec<u64>),
}

/// One dimension of a chunk grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DimensionChunks {
    /// Length of the array along the dimension.
    pub(crate) size: u64,
    /// Where it is cut. Lengths are never 0.
    pub(crate) cuts: Cuts,
}

impl DimensionChunks {
    /// Number of chunks along the dimension.
    #[must_use]
    pub(crate) fn count(&self) -> u64 {
        match &self.cuts {
            Cuts::Regular(length) => self.size.div_ceil(*length),
            Cuts::Irregular(bounds) => u64::try_from(bounds.partition_point(|b| *b < self.size)).unwrap_or(u64::MAX),
        }
    }

    /// Cells of the array that the longest chunk holds.
    #[must_use]
    pub(crate) fn longest(&self) -> u64 {
        match &self.cuts {
            Cuts::Regular(length) => self.size.min(*length),
            Cuts::Irregular(bounds) => {
                let clipped = |b: &u64| (*b).min(self.size);
                bounds.windows(2).filter_map(|w| Some(clipped(w.last()?) - clipped(w.first()?))).max().unwrap_or(0)
            }
        }
    }

    /// The chunk that holds `index`, which must lie inside the array.
    #[must_use]
    pub(crate) fn chunk_of(&self, index: u64) -> u64 {
        match &self.cuts {
            Cuts::Regular(length) => index / length,
            Cuts::Irregular(bounds) => {
                u64::try_from(bounds.partition_point(|b| *b <= index).saturating_sub(1)).unwrap_or(u64::MAX)
            }
        }
    }

    /// Where `chunk` starts.
    #[must_use]
    pub(crate) fn start(&self, chunk: u64) -> u64 {
        match &self.cuts {
            Cuts::Regular(length) => chunk.saturating_mul(*length),
            Cuts::Irregular(bounds) => bound(bounds, chunk).unwrap_or(self.size),
        }
    }

    /// Length of `chunk` as stored, padding included.
    #[must_use]
    pub(crate) fn stored_length(&self, chunk: u64) -> u64 {
        match &self.cuts {
            Cuts::Regular(length) => *length,
            Cuts::Irregular(bounds) => {
                bound(bounds, chunk.saturating_add(1)).unwrap_or(self.size).saturating_sub(self.start(chunk))
            }
        }
    }

    /// Cells of the array that `chunk` holds.
    #[must_use]
    pub(crate) fn range(&self, chunk: u64) -> Range<u64> {
        let start = self.start(chunk);
        start.min(self.size)..start.saturating_add(self.stored_length(chunk)).min(self.size)
    }
}

fn bound(bounds: &[u64], i: u64) -> Option<u64> {
    bounds.get(usize::try_from(i).ok()?).copied()
}

/// The chunk grid of an array, one entry a dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkGrid(pub(crate) Vec<DimensionChunks>);

impl ChunkGrid {
    /// Shape of `chunk` as stored.
    #[must_use]
    pub(crate) fn stored_shape(&self, chunk: &[u64]) -> Vec<u64> {
        self.0.iter().zip(chunk).map(|(d, c)| d.stored_length(*c)).collect()
    }
}

/// How chunk indices become keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkKeyEncoding {
    /// Between the indices: `/` or `.`.
    pub(crate) separator: char,
    /// Whether keys start with `c` (format 3's `default`), and not with the first index (`v2`).
    pub(crate) prefixed: bool,
}

impl ChunkKeyEncoding {
    /// Key of `chunk`, relative to the array.
    #[must_use]
    pub(crate) fn key(self, chunk: &[u64]) -> String {
        use std::fmt::Write;
        let mut key = String::with_capacity(chunk.len() * 4 + 1);
        if self.prefixed {
            key.push('c');
        } else if chunk.is_empty() {
            key.push('0');
        }
        for (i, c) in chunk.iter().enumerate() {
            if i > 0 || self.prefixed {
                key.push(self.separator);
            }
            // Writing to a String cannot fail.
            let _ = write!(key, "{c}");
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_chunks_reach_over_the_end() {
        let d = DimensionChunks { size: 7, cuts: Cuts::Regular(3) };
        assert_eq!((d.count(), d.chunk_of(6), d.range(2), d.stored_length(2)), (3, 2, 6..7, 3));
        let empty = DimensionChunks { size: 0, cuts: Cuts::Regular(3) };
        assert_eq!(empty.count(), 0);
    }

    #[test]
    fn irregular_chunks_follow_their_bounds() {
        let d = DimensionChunks { size: 5, cuts: Cuts::Irregular(vec![0, 2, 3, 6]) };
        assert_eq!(d.count(), 3);
        assert_eq!((0..5).map(|i| d.chunk_of(i)).collect::<Vec<_>>(), [0, 0, 1, 2, 2]);
        assert_eq!((d.range(0), d.range(1), d.range(2), d.stored_length(2)), (0..2, 2..3, 3..5, 3));
    }

    #[test]
    fn keys_of_both_formats() {
        let v3 = ChunkKeyEncoding { separator: '/', prefixed: true };
        assert_eq!((v3.key(&[1, 20]), v3.key(&[])), ("c/1/20".into(), "c".into()));
        let v2 = ChunkKeyEncoding { separator: '.', prefixed: false };
        assert_eq!((v2.key(&[1, 20]), v2.key(&[])), ("1.20".into(), "0".into()));
    }
}
