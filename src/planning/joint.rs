//! Conditions on several dimensions that no product of index sets is: unions of products, and masks.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::BooleanBuffer;

use super::boxes::{Product, cells, disjoint, intersect};
use super::selection::MAX_PRODUCTS;
use super::values::{next_index, strides};
use super::{IndexSet, Values};
use crate::store::DimensionChunks;

/// Steps that cutting boxes may take.
pub(super) const MAX_STEPS: usize = 1 << 24;

/// A condition that no product of index sets is.
#[derive(Debug, Clone)]
pub(super) enum Joint {
    /// The cell is in one of these products.
    Boxes {
        /// The dimensions that they are about, ascending.
        axes: Vec<usize>,
        /// One set for each axis.
        products: Union,
    },
    /// The bit of the cell is set.
    Mask {
        /// The dimensions that it is about, ascending.
        axes: Vec<usize>,
        /// The indices along each of them that there are bits for.
        sets: Vec<IndexSet>,
        /// In C order of `sets`.
        bits: BooleanBuffer,
    },
}

/// Products that do not meet, found by their indices along the first axis.
#[derive(Debug, Clone)]
pub(super) struct Union {
    /// By their first index along the first axis.
    products: Arc<[Product]>,
    /// The end along the first axis of all products up to each.
    ends: Arc<[u64]>,
}

impl Union {
    pub(super) fn new(mut products: Vec<Product>) -> Self {
        let bounds = |p: &Product| p.first().map_or(0..1, IndexSet::bounds);
        products.sort_by_key(|p| bounds(p).start);
        let mut end = 0;
        let ends = products.iter().map(|p| {
            end = bounds(p).end.max(end);
            end
        });
        Self { ends: ends.collect(), products: products.into() }
    }

    /// The products that hold a cell of `block`.
    fn reaching<'a>(&'a self, block: &'a [IndexSet]) -> impl Iterator<Item = &'a Product> {
        let along = block.first().map_or(0..1, IndexSet::bounds);
        let first = self.ends.partition_point(|end| *end <= along.start);
        let starts = |p: &Product| p.first().map_or(0, |set| set.bounds().start);
        let end = self.products.partition_point(|p| starts(p) < along.end);
        let near = self.products.get(first..end).unwrap_or_default();
        near.iter().filter(move |p| p.iter().zip(block).all(|(a, b)| a.meets(b)))
    }
}

/// Bits about the cells along `axes` of `block`, for all cells of the block.
pub(super) fn spread(bits: &BooleanBuffer, axes: &[usize], block: &[IndexSet]) -> BooleanBuffer {
    let extents: Vec<u64> = axes.iter().filter_map(|a| block.get(*a)).map(IndexSet::len).collect();
    let values = Values { array: None, axes: axes.to_vec(), strides: strides(&extents), whole: false };
    let order = values.rows(block);
    let total = usize::try_from(cells(block)).unwrap_or(usize::MAX);
    if order.is_run(bits.len()) {
        return repeated(bits, total);
    }
    let positions = order.positions(0, order.period().min(total));
    let at = |i: usize| positions.get(i).and_then(|p| usize::try_from(*p).ok()).is_some_and(|p| bits.value(p));
    repeated(&BooleanBuffer::collect_bool(positions.len(), at), total)
}

/// `bits` again and again, `total` in all.
fn repeated(bits: &BooleanBuffer, total: usize) -> BooleanBuffer {
    if bits.len() == total {
        return bits.clone();
    }
    let mut all = BooleanBufferBuilder::new(total);
    while !bits.is_empty() && all.len() < total {
        all.append_buffer(bits);
    }
    all.finish()
}

impl Joint {
    pub(super) fn axes(&self) -> &[usize] {
        match self {
            Self::Boxes { axes, .. } | Self::Mask { axes, .. } => axes,
        }
    }

    /// Whether it is a union of no boxes.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Boxes { products, .. } if products.products.is_empty())
    }

    /// The same about the cells inside `dims` alone.
    pub(super) fn within(self, dims: &[IndexSet]) -> Self {
        let own: Product = self.axes().iter().filter_map(|a| dims.get(*a)).cloned().collect();
        match self {
            Self::Boxes { axes, products } => {
                let inside = products.products.iter().map(|p| intersect(p, &own)).filter(|p| cells(p) > 0);
                Self::Boxes { axes, products: Union::new(inside.collect()) }
            }
            Self::Mask { axes, sets, bits } => {
                let inside = intersect(&sets, &own);
                let bits = if inside == sets { bits } else { cut(&bits, &sets, &inside) };
                Self::Mask { axes, sets: inside, bits }
            }
        }
    }

    /// For each axis, the indices that some cell has.
    pub(super) fn projections(&self) -> Vec<(usize, IndexSet)> {
        match self {
            Self::Boxes { axes, products } => {
                let along = |i: usize| IndexSet::union(products.products.iter().filter_map(|p| p.get(i)));
                axes.iter().enumerate().map(|(i, axis)| (*axis, along(i))).collect()
            }
            Self::Mask { axes, sets, bits } => {
                let found = projections(bits, sets);
                axes.iter().copied().zip(found).collect()
            }
        }
    }

    pub(super) fn holds_everywhere(&self, dims: &[IndexSet]) -> bool {
        let all: Product = self.axes().iter().filter_map(|a| dims.get(*a)).cloned().collect();
        !all.is_empty() && self.cells(dims) == cells(&all)
    }

    /// Number of cells along its axes, among those of `dims`.
    pub(super) fn cells(&self, dims: &[IndexSet]) -> u64 {
        match self {
            Self::Boxes { axes, products } => {
                let inside = |p: &Product| {
                    p.iter().zip(axes).filter_map(|(set, a)| Some(set.intersect(dims.get(*a)?).len())).product::<u64>()
                };
                products.products.iter().map(inside).sum()
            }
            Self::Mask { axes, sets, bits } => {
                let inside: Product = axes.iter().filter_map(|a| dims.get(*a)).cloned().collect();
                if inside == *sets {
                    return bits.count_set_bits() as u64;
                }
                self.bits(dims).count_set_bits() as u64
            }
        }
    }

    /// Which cells of `block` it selects, along its axes alone.
    pub(super) fn bits(&self, block: &[IndexSet]) -> BooleanBuffer {
        let own: Product = self.axes().iter().filter_map(|a| block.get(*a)).cloned().collect();
        let total = usize::try_from(cells(&own)).unwrap_or(usize::MAX);
        match self {
            Self::Boxes { products, .. } => {
                let mut bits = BooleanBufferBuilder::new(total);
                bits.append_n(total, false);
                for product in products.reaching(&own) {
                    let inside = intersect(product, &own);
                    for_each_run(&inside, &own, |run| (run.start..run.end).for_each(|i| bits.set_bit(i, true)));
                }
                bits.finish()
            }
            Self::Mask { sets, bits, .. } if own == *sets => bits.clone(),
            Self::Mask { sets, bits, .. } => cut(bits, sets, &own),
        }
    }

    /// The chunks that hold one of its cells, along its axes alone; `None` where there are too many products of them.
    pub(super) fn chunks(&self, dims: &[IndexSet], chunks: &[DimensionChunks]) -> Option<Vec<Product>> {
        let own: Vec<&DimensionChunks> = self.axes().iter().filter_map(|a| chunks.get(*a)).collect();
        let boxes: Vec<Product> = match self {
            Self::Boxes { axes, products } => products
                .products
                .iter()
                .map(|p| {
                    let inside = |(set, a): (&IndexSet, &usize)| dims.get(*a).map(|d| set.intersect(d));
                    p.iter().zip(axes).filter_map(inside).zip(&own).map(|(set, d)| set.chunks(d)).collect()
                })
                .collect(),
            Self::Mask { sets, bits, .. } => mask_chunks(bits, sets, &own)?,
        };
        disjoint(&boxes, MAX_STEPS).filter(|p| p.len() <= MAX_PRODUCTS)
    }
}

/// The bits of the cells of `block`, given those of the cells of `sets`; cells outside of those have none.
pub(super) fn cut(bits: &BooleanBuffer, sets: &[IndexSet], block: &[IndexSet]) -> BooleanBuffer {
    let total = usize::try_from(cells(block)).unwrap_or(usize::MAX);
    let mut out = BooleanBufferBuilder::new(total);
    out.append_n(total, false);
    let inside = intersect(sets, block);
    let mut from = Vec::new();
    for_each_run(&inside, sets, |run| from.push(run));
    let mut from = from.into_iter();
    // Both walk over the same cells in the same order; their runs end in different places.
    let mut rest = 0..0;
    for_each_run(&inside, block, |run| {
        let mut at = run.start;
        while at < run.end {
            if rest.is_empty() {
                rest = from.next().unwrap_or(0..usize::MAX);
            }
            let length = (run.end - at).min(rest.end - rest.start);
            let held = bits.slice(rest.start, length.min(bits.len().saturating_sub(rest.start)));
            held.set_slices().for_each(|(first, end)| (at + first..at + end).for_each(|i| out.set_bit(i, true)));
            rest.start += length;
            at += length;
        }
    });
    out.finish()
}

/// The runs of `inside` along the last axis, as ranges of positions in C order of `all`.
fn for_each_run(inside: &[IndexSet], all: &[IndexSet], mut found: impl FnMut(Range<usize>)) {
    let Some((last, outer)) = inside.split_last() else { return };
    let extents: Vec<u64> = all.iter().map(IndexSet::len).collect();
    let strides = strides(&extents);
    let ranks: Vec<Vec<u64>> = outer
        .iter()
        .zip(all)
        .zip(&strides)
        .map(|((set, all), stride)| set.iter().map(|i| all.rank(i) * stride).collect())
        .collect();
    let Some(along) = all.last() else { return };
    let runs: Vec<Range<u64>> = last
        .runs()
        .iter()
        .map(|r| {
            let first = along.rank(r.start);
            first..first + (r.end - r.start)
        })
        .collect();
    if ranks.iter().any(Vec::is_empty) {
        return;
    }
    let lengths: Vec<usize> = ranks.iter().map(Vec::len).collect();
    let mut index = vec![0usize; ranks.len()];
    let position = |p: u64| usize::try_from(p).unwrap_or(usize::MAX);
    loop {
        let offset: u64 = index.iter().zip(&ranks).filter_map(|(i, r)| r.get(*i)).sum();
        for run in &runs {
            found(position(offset + run.start)..position(offset + run.end));
        }
        if !next_index(&mut index, &lengths) {
            return;
        }
    }
}

/// For each axis of a mask, the indices that have a set bit.
pub(super) fn projections(bits: &BooleanBuffer, sets: &[IndexSet]) -> Vec<IndexSet> {
    let extents: Vec<usize> = sets.iter().map(|s| usize::try_from(s.len()).unwrap_or(usize::MAX)).collect();
    let mut seen: Vec<Vec<bool>> = extents.iter().map(|n| vec![false; *n]).collect();
    let Some(last) = extents.last().copied().filter(|n| *n > 0) else { return sets.to_vec() };
    for (start, end) in bits.set_slices() {
        let mut at = start;
        while at < end {
            let row = at / last;
            let stop = end.min((row + 1) * last);
            let mut rest = row;
            for (seen, extent) in seen.iter_mut().zip(&extents).rev().skip(1) {
                if let Some(slot) = seen.get_mut(rest % extent) {
                    *slot = true;
                }
                rest /= extent;
            }
            if let Some(seen) = seen.last_mut().and_then(|s| s.get_mut(at - row * last..stop - row * last)) {
                seen.fill(true);
            }
            at = stop;
        }
    }
    let members = |(seen, set): (Vec<bool>, &IndexSet)| {
        let kept = seen.iter().enumerate().filter(|(_, s)| **s).filter_map(|(i, _)| set.nth(i as u64));
        IndexSet::from_runs(kept.map(|i| i..i + 1))
    };
    seen.into_iter().zip(sets).map(members).collect()
}

/// The chunks that hold a set bit, a product for each combination of chunks along all axes but the last.
fn mask_chunks(bits: &BooleanBuffer, sets: &[IndexSet], chunks: &[&DimensionChunks]) -> Option<Vec<Product>> {
    let (last_set, outer_sets) = sets.split_last()?;
    let (last_chunks, outer_chunks) = chunks.split_last()?;
    // The chunk of each index along each axis.
    let chunk_of = |set: &IndexSet, d: &DimensionChunks| set.iter().map(|i| d.chunk_of(i)).collect::<Vec<u64>>();
    let outer: Vec<Vec<u64>> = outer_sets.iter().zip(outer_chunks).map(|(s, d)| chunk_of(s, d)).collect();
    let along = chunk_of(last_set, last_chunks);
    let length = along.len();
    let mut found: HashMap<Vec<u64>, Vec<Range<u64>>> = HashMap::new();
    for (start, end) in bits.set_slices() {
        let mut at = start;
        while at < end {
            let row = at / length;
            let stop = end.min((row + 1) * length);
            let (first, last) = (*along.get(at - row * length)?, *along.get(stop - 1 - row * length)?);
            let mut key = vec![0; outer.len()];
            let mut rest = row;
            for (slot, chunks) in key.iter_mut().zip(&outer).rev() {
                *slot = *chunks.get(rest % chunks.len())?;
                rest /= chunks.len();
            }
            let ranges = found.entry(key).or_default();
            match ranges.last_mut() {
                Some(range) if range.start <= first && range.end > last => {}
                Some(range) if range.start <= first && range.end >= first => range.end = last + 1,
                _ => ranges.push(first..last + 1),
            }
            if found.len() > MAX_PRODUCTS {
                return None;
            }
            at = stop;
        }
    }
    let product = |(key, mut ranges): (Vec<u64>, Vec<Range<u64>>)| {
        ranges.sort_unstable_by_key(|r| r.start);
        let outer = key.into_iter().map(|c| IndexSet::range(c..c + 1));
        outer.chain([IndexSet::from_runs(ranges)]).collect()
    };
    Some(found.into_iter().map(product).collect())
}
