//! How a grid is cut into Blocks, the parts that are read at once.

use std::ops::Range;

use crate::store::{Cuts, DimensionChunks};

/// Fewer rows than this in a Block cost more in batches than in cells, so that small chunks are read several at once.
const MIN_ROWS: u64 = 8192;

/// The Blocks of a grid: runs of whole chunks along every dimension, in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockGrid {
    dims: Vec<DimensionChunks>,
    /// Chunks of a Block along each dimension.
    chunks: Vec<u64>,
}

impl BlockGrid {
    /// Blocks that follow the chunks `dims`, one entry a dimension of the grid.
    pub(crate) fn following(dims: Vec<DimensionChunks>) -> Self {
        let lengths: Vec<u64> = dims.iter().map(|d| d.longest().max(1)).collect();
        let mut rows = lengths.iter().fold(1u64, |n, l| n.saturating_mul(*l));
        let mut chunks = vec![1; dims.len()];
        // Grow along the last dimension first, so that the rows of a Block stay neighbours.
        for (d, count) in dims.iter().zip(&mut chunks).rev() {
            if rows >= MIN_ROWS {
                break;
            }
            *count = MIN_ROWS.div_ceil(rows).min(d.count()).max(1);
            rows = rows.saturating_mul(*count);
        }
        Self { dims, chunks }
    }

    /// Blocks of a grid of which no data is read: runs of the last dimensions.
    pub(crate) fn of_shape(sizes: &[u64]) -> Self {
        Self::following(sizes.iter().map(|size| DimensionChunks { size: *size, cuts: Cuts::Regular(1) }).collect())
    }

    fn count_along(&self, dim: usize) -> u64 {
        match (self.dims.get(dim), self.chunks.get(dim)) {
            (Some(d), Some(chunks)) => d.count().div_ceil(*chunks),
            _ => 1,
        }
    }

    /// Number of Blocks. It fits, as the number of cells does.
    pub(crate) fn count(&self) -> u64 {
        (0..self.dims.len()).fold(1u64, |n, d| n.saturating_mul(self.count_along(d)))
    }

    /// The cells of Block `index`, a range along every dimension.
    pub(crate) fn block(&self, index: u64) -> Vec<Range<u64>> {
        let mut rest = index;
        let mut ranges = Vec::with_capacity(self.dims.len());
        for (i, (d, chunks)) in self.dims.iter().zip(&self.chunks).enumerate().rev() {
            let count = self.count_along(i).max(1);
            let first = (rest % count) * chunks;
            rest /= count;
            let last = (first + chunks).min(d.count()).saturating_sub(1);
            ranges.push(d.range(first).start..d.range(last).end);
        }
        ranges.reverse();
        ranges
    }
}

/// Number of cells of a Block.
pub(crate) fn rows(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|r| r.end.saturating_sub(r.start)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regular(size: u64, length: u64) -> DimensionChunks {
        DimensionChunks { size, cuts: Cuts::Regular(length) }
    }

    #[test]
    fn blocks_cover_every_cell_once() {
        for dims in [
            vec![regular(5, 2), regular(300, 7), regular(90, 40)],
            vec![regular(7, 9)],
            vec![],
            vec![DimensionChunks { size: 5, cuts: Cuts::Irregular(vec![0, 2, 3, 6]) }, regular(20_000, 5000)],
            vec![regular(0, 3), regular(4, 2)],
        ] {
            let grid = BlockGrid::following(dims.clone());
            let total: u64 = (0..grid.count()).map(|i| rows(&grid.block(i))).sum();
            assert_eq!(total, dims.iter().map(|d| d.size).product::<u64>(), "{dims:?}");
            let mut starts: Vec<Vec<u64>> =
                (0..grid.count()).map(|i| grid.block(i).iter().map(|r| r.start).collect()).collect();
            let sorted = starts.clone();
            starts.dedup();
            assert!(starts.is_sorted() && starts == sorted);
        }
    }

    #[test]
    fn small_chunks_are_read_together_and_large_ones_alone() {
        let grid = BlockGrid::following(vec![regular(10, 1), regular(100, 10), regular(100, 10)]);
        assert_eq!(grid.block(0), [0..1, 0..90, 0..100]);
        let grid = BlockGrid::following(vec![regular(10, 1), regular(721, 721), regular(1440, 1440)]);
        assert_eq!(grid.block(3), [3..4, 0..721, 0..1440]);
        assert_eq!(BlockGrid::of_shape(&[1_000_000, 1_000_000]).block(1), [0..1, 8192..16384]);
    }
}
