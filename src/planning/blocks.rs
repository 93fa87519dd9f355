//! How the selected cells of a grid are cut into Blocks, the parts that are read at once.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use arrow::buffer::BooleanBuffer;

use super::boxes::{Product, cells, intersect, nth_cell};
use super::joint::{cut, projections};
use super::{IndexSet, Selection};
use crate::store::{Cuts, DimensionChunks};

/// A Block is at most so many times as long as one of rows without gaps would be.
const MAX_GAPS: u64 = 64;

/// The part of a grid that one read covers.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// Indices along each dimension: its cells are all combinations of them, in C order.
    pub(crate) indices: Vec<IndexSet>,
    /// The range along each dimension that belongs to this Block and to no other.
    pub(crate) ranges: Vec<Range<u64>>,
    /// Which of its cells are wanted, a bit each; `None` where all are.
    pub(crate) kept: Option<BooleanBuffer>,
}

impl Block {
    /// All cells of a grid of `sizes`.
    pub(crate) fn whole(sizes: &[u64]) -> Self {
        let ranges: Vec<Range<u64>> = sizes.iter().map(|n| 0..*n).collect();
        Self { indices: ranges.iter().cloned().map(IndexSet::range).collect(), ranges, kept: None }
    }

    /// Number of its cells, wanted or not; saturated.
    pub(crate) fn cells(&self) -> u64 {
        cells(&self.indices)
    }

    /// Number of its wanted cells.
    pub(crate) fn rows(&self) -> usize {
        let all = || usize::try_from(self.cells()).unwrap_or(usize::MAX);
        self.kept.as_ref().map_or_else(all, BooleanBuffer::count_set_bits)
    }

    /// The same without the indices that no wanted cell has.
    pub(crate) fn compact(self) -> Self {
        let Some(kept) = self.kept else { return self };
        let indices = projections(&kept, &self.indices);
        let kept = if indices == self.indices { kept } else { cut(&kept, &self.indices, &indices) };
        let kept = (kept.count_set_bits() < kept.len()).then_some(kept);
        Self { indices, kept, ..self }
    }
}

/// The Blocks of a grid: the selected cells of runs of whole chunks along every dimension, in C order of the runs.
#[derive(Debug, Clone)]
pub(crate) struct BlockGrid {
    /// The runs of chunks along each dimension.
    runs: Vec<DimensionChunks>,
    /// The Blocks that hold a selected cell, as numbers of runs.
    products: Vec<Product>,
}

/// Blocks that are left to do: some of a product, by their number in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    /// The runs of the next of them along each dimension.
    next: Vec<u64>,
    product: Product,
    numbers: Range<u64>,
}

impl Piece {
    /// `None` where `numbers` is empty.
    fn new(product: Product, numbers: Range<u64>) -> Option<Self> {
        let next = if numbers.is_empty() { None } else { nth_cell(&product, numbers.start) };
        Some(Self { next: next?, product, numbers })
    }
}

impl Ord for Piece {
    /// The first in C order is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.next.cmp(&self.next)
    }
}

impl PartialOrd for Piece {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The Blocks that a partition has left to do, in C order.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockQueue(BinaryHeap<Piece>);

impl BlockGrid {
    /// Blocks of the selected cells that follow the chunks `dims`, one entry a dimension of the grid. Fewer than `least` rows in a Block cost more
    /// in batches than in cells, so that small chunks are read several at once.
    pub(crate) fn following(dims: &[DimensionChunks], selection: &Selection, least: u64) -> Self {
        let mut runs = dims.to_vec();
        let chunks: Vec<IndexSet> = selection.dims.iter().zip(dims).map(|(set, d)| set.chunks(d)).collect();
        // Selected cells of a chunk along each dimension, on average.
        let length = |(set, chunks): (&IndexSet, &IndexSet)| set.len().div_ceil(chunks.len().max(1)).max(1);
        let mut rows = selection.dims.iter().zip(&chunks).map(length).fold(1u64, u64::saturating_mul);
        // Grow along the last dimension first, so that the rows of a Block stay neighbours.
        for (run, chunks) in runs.iter_mut().zip(&chunks).rev() {
            if rows >= least {
                break;
            }
            let wanted = least.div_ceil(rows).min(chunks.len()).max(1);
            // Between two chunks with a selected cell there may be others.
            let gaps = (chunks.bounds().end - chunks.bounds().start).div_ceil(chunks.len().max(1)).clamp(1, MAX_GAPS);
            *run = joined(run, wanted.saturating_mul(gaps));
            rows = rows.saturating_mul(wanted);
        }
        let products = selection.chunks(&runs);
        Self { runs, products }
    }

    /// Blocks of a grid of which no data is read.
    pub(crate) fn of_cells(sizes: &[u64], selection: &Selection, least: u64) -> Self {
        let cells: Vec<_> = sizes.iter().map(|size| DimensionChunks { size: *size, cuts: Cuts::Regular(1) }).collect();
        Self::following(&cells, selection, least)
    }

    /// Number of Blocks; saturated.
    pub(crate) fn count(&self) -> u64 {
        self.products.iter().fold(0, |n, p| n.saturating_add(cells(p)))
    }

    /// Whether the rows of all Blocks, one after the other, ascend along the first `dims` dimensions, given the selected indices.
    pub(crate) fn is_ordered(&self, dims: usize, selected: &[IndexSet]) -> bool {
        let [product] = self.products.as_slice() else { return self.products.is_empty() };
        let one_block = |d: usize| product.get(d).is_none_or(|set| set.len() <= 1);
        let one_index = |d: usize| match (product.get(d), selected.get(d)) {
            // Each run of chunks then holds one index.
            (Some(runs), Some(set)) => runs.len() == set.len(),
            _ => true,
        };
        (0..dims).all(|d| one_index(d) || (d + 1..self.runs.len()).all(one_block))
    }

    /// The Blocks of share `partition` of `partitions`: running one share alone, or one twice, gives the same Blocks.
    pub(crate) fn share(&self, partition: usize, partitions: usize) -> BlockQueue {
        let mut wanted = super::share(self.count(), partition, partitions);
        let mut pieces = BinaryHeap::new();
        for product in &self.products {
            let all = cells(product);
            let numbers = wanted.start.min(all)..wanted.end.min(all);
            pieces.extend(Piece::new(product.clone(), numbers));
            wanted = wanted.start.saturating_sub(all)..wanted.end.saturating_sub(all);
        }
        BlockQueue(pieces)
    }

    /// The selected cells of a Block, given its runs of chunks; `None` where there is none.
    pub(crate) fn block(&self, runs: &[u64], selection: &Selection) -> Option<Block> {
        let ranges: Vec<Range<u64>> = self.runs.iter().zip(runs).map(|(d, run)| d.range(*run)).collect();
        let indices: Vec<IndexSet> = ranges.iter().zip(&selection.dims).map(|(r, set)| set.within(r)).collect();
        let kept = selection.kept(&indices);
        let block = Block { indices, ranges, kept };
        (block.rows() > 0).then(|| block.compact())
    }

    /// Drop the Blocks of `queue` that hold no cell of `selection`.
    pub(crate) fn narrow(&self, queue: &mut BlockQueue, selection: &Selection) {
        let kept = selection.chunks(&self.runs);
        let pieces = std::mem::take(&mut queue.0);
        for piece in pieces {
            for product in kept.iter().map(|k| intersect(&piece.product, k)).filter(|p| cells(p) > 0) {
                let numbers = piece.rank_in(&product, piece.numbers.start)..piece.rank_in(&product, piece.numbers.end);
                queue.0.extend(Piece::new(product, numbers));
            }
        }
    }
}

impl Piece {
    /// Blocks of `part`, which lies in this product, that come before this one's Block `number`.
    fn rank_in(&self, part: &[IndexSet], number: u64) -> u64 {
        let Some(block) = nth_cell(&self.product, number) else { return cells(part) };
        let mut rank = 0;
        for (d, (set, run)) in part.iter().zip(&block).enumerate() {
            let inner = cells(part.get(d + 1..).unwrap_or_default());
            rank += set.rank(*run) * inner;
            if !set.contains(*run) {
                break;
            }
        }
        rank
    }
}

impl Iterator for BlockQueue {
    type Item = Vec<u64>;

    /// The runs of the next Block along each dimension.
    fn next(&mut self) -> Option<Vec<u64>> {
        let Piece { next, product, numbers } = self.0.pop()?;
        self.0.extend(Piece::new(product, numbers.start + 1..numbers.end));
        Some(next)
    }
}

/// `d` with `count` chunks taken together.
fn joined(d: &DimensionChunks, count: u64) -> DimensionChunks {
    if count <= 1 {
        return d.clone();
    }
    let cuts = match &d.cuts {
        Cuts::Regular(length) => Cuts::Regular(length.saturating_mul(count)),
        Cuts::Irregular(bounds) => {
            let step = usize::try_from(count).unwrap_or(usize::MAX);
            let last = bounds.len().saturating_sub(1);
            let kept = bounds.iter().enumerate().filter(|(i, _)| i % step == 0 || *i == last);
            Cuts::Irregular(kept.map(|(_, b)| *b).collect())
        }
    };
    DimensionChunks { size: d.size, cuts }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regular(size: u64, length: u64) -> DimensionChunks {
        DimensionChunks { size, cuts: Cuts::Regular(length) }
    }

    fn all(dims: &[DimensionChunks]) -> Selection {
        Selection::all(&dims.iter().map(|d| d.size).collect::<Vec<_>>())
    }

    fn blocks(grid: &BlockGrid, selection: &Selection) -> Vec<Block> {
        grid.share(0, 1).filter_map(|b| grid.block(&b, selection)).collect()
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
            let selection = all(&dims);
            let grid = BlockGrid::following(&dims, &selection, 8192);
            let found = blocks(&grid, &selection);
            assert_eq!(found.len() as u64, grid.count());
            assert_eq!(found.iter().map(Block::cells).sum::<u64>(), dims.iter().map(|d| d.size).product::<u64>());
            let starts: Vec<Vec<u64>> = found.iter().map(|b| b.ranges.iter().map(|r| r.start).collect()).collect();
            assert!(starts.windows(2).all(|w| w[0] < w[1]), "{dims:?}");
            for partitions in [1, 2, 7] {
                let shared: Vec<_> = (0..partitions).flat_map(|p| grid.share(p, partitions)).collect();
                assert_eq!(shared, grid.share(0, 1).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn small_chunks_are_read_together_and_large_ones_alone() {
        let ranges = |block: &Block| block.indices.iter().map(IndexSet::bounds).collect::<Vec<_>>();
        let dims = [regular(10, 1), regular(100, 10), regular(100, 10)];
        let grid = BlockGrid::following(&dims, &all(&dims), 8192);
        assert_eq!(ranges(&blocks(&grid, &all(&dims))[0]), [0..1, 0..90, 0..100]);
        let dims = [regular(10, 1), regular(721, 721), regular(1440, 1440)];
        let grid = BlockGrid::following(&dims, &all(&dims), 8192);
        assert_eq!(ranges(&blocks(&grid, &all(&dims))[3]), [3..4, 0..721, 0..1440]);
        let sizes = [1_000_000, 1_000_000];
        let grid = BlockGrid::of_cells(&sizes, &Selection::all(&sizes), 8192);
        let second = grid.share(0, 1).nth(1).unwrap();
        assert_eq!(ranges(&grid.block(&second, &Selection::all(&sizes)).unwrap()), [0..1, 8192..16384]);
    }

    #[test]
    fn narrowing_leaves_the_blocks_that_hold_a_selected_cell() {
        let dims = [regular(40, 2), regular(60_000, 10_000), regular(6, 3)];
        let selection = all(&dims);
        let grid = BlockGrid::following(&dims, &selection, 8192);
        let mut narrow = selection.clone();
        narrow.dims[0] = IndexSet::from_runs([3..4, 7..9, 30..31]);
        narrow.dims[1] = IndexSet::from_runs([5..6, 41_000..41_001]);
        for (partition, partitions) in [(0, 1), (0, 3), (1, 3), (2, 3)] {
            let mut queue = grid.share(partition, partitions);
            for _ in 0..5 {
                queue.next();
            }
            let wanted: Vec<Vec<u64>> = queue.clone().filter(|b| grid.block(b, &narrow).is_some()).collect();
            grid.narrow(&mut queue, &narrow);
            assert_eq!(queue.collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn a_block_without_the_indices_of_no_wanted_cell() {
        let bits = |set: &[usize], n| BooleanBuffer::collect_bool(n, |i| set.contains(&i));
        let block = Block { kept: Some(bits(&[1, 3, 9, 11], 12)), ..Block::whole(&[3, 4]) }.compact();
        assert_eq!(block.indices, [IndexSet::from_runs([0..1, 2..3]), IndexSet::from_runs([1..2, 3..4])]);
        assert_eq!((block.kept.as_ref(), block.rows()), (None, 4));
        let block = Block { kept: Some(bits(&[0, 3], 4)), ..block }.compact();
        assert_eq!((block.kept.as_ref(), block.rows()), (Some(&bits(&[0, 3], 4)), 2));
        let block = Block { kept: Some(bits(&[], 4)), ..block }.compact();
        assert_eq!(block.rows(), 0);
    }

    #[test]
    fn order_ends_where_blocks_interleave() {
        let dims = [regular(10, 5), regular(20_000, 10_000), regular(4, 4)];
        let selection = all(&dims);
        let grid = BlockGrid::following(&dims, &selection, 8192);
        // Block after Block begins with the first index again.
        assert!(grid.is_ordered(0, &selection.dims) && !grid.is_ordered(1, &selection.dims));
        let mut one = selection.clone();
        one.dims[0] = IndexSet::from_runs([2..3, 7..8]);
        let grid = BlockGrid::following(&dims, &one, 8192);
        assert!(grid.is_ordered(3, &one.dims));
    }
}
