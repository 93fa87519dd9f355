//! Which cells of a grid a query needs: a product of index sets, and what several dimensions have to say together.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::BooleanBuffer;
use datafusion::common::Result;

use super::boxes::{Product, cells, disjoint};
use super::condition::{Condition, When};
use super::coordinates::{About, Coordinates};
use super::split::{Boxes, split};
use super::{IndexSet, Values};
use crate::store::DimensionChunks;

/// Cells up to which a condition on several dimensions is evaluated at once; above that, Block by Block.
const MAX_FACTOR: u64 = 64 << 20;

/// Steps that cutting boxes may take.
const MAX_STEPS: usize = 1 << 24;

/// Products of chunks that are told apart before a scan begins.
const MAX_PRODUCTS: usize = 1 << 17;

/// The cells that static conditions on coordinates leave.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// Along each dimension, the indices that some selected cell may have.
    pub(crate) dims: Vec<IndexSet>,
    joints: Vec<Joint>,
}

/// A condition that no product of index sets is.
#[derive(Debug, Clone)]
enum Joint {
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
struct Union {
    /// By their first index along the first axis.
    products: Arc<[Product]>,
    /// The end along the first axis of all products up to each.
    ends: Arc<[u64]>,
}

impl Union {
    fn new(mut products: Vec<Product>) -> Self {
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

/// What becomes of the conditions of a scan.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The cells that may satisfy all of them.
    pub(crate) selection: Selection,
    /// Conditions on coordinates alone that are evaluated Block by Block, before its data is read.
    pub(crate) coordinates: Vec<Condition>,
    /// Conditions on data, and those that could not be evaluated on all coordinates.
    pub(crate) data: Vec<Condition>,
}

impl Plan {
    /// Whether the selected cells are those of which all conditions are true, no more.
    pub(crate) fn is_exact(&self) -> bool {
        self.coordinates.is_empty() && self.data.is_empty()
    }

    /// Evaluate `conditions` on `coordinates`. Those that have no value yet may be among them once the plan runs, and only then.
    ///
    /// # Errors
    /// None of the conditions' own: one that fails on a coordinate is kept for the rows that others leave.
    pub(crate) fn new(coordinates: &Coordinates, conditions: &[Condition]) -> Result<Self> {
        let mut builder = Builder {
            coordinates,
            plan: Self { selection: Selection::all(&coordinates.sizes), coordinates: Vec::new(), data: Vec::new() },
            several: Vec::new(),
        };
        for condition in conditions {
            builder.add(condition)?;
        }
        builder.join()?;
        Ok(builder.plan)
    }
}

struct Builder<'a> {
    coordinates: &'a Coordinates,
    plan: Plan,
    /// Conditions on several dimensions.
    several: Vec<(Vec<usize>, Condition)>,
}

impl Builder<'_> {
    fn add(&mut self, condition: &Condition) -> Result<()> {
        if condition.when() == When::Dynamic {
            self.plan.data.push(condition.clone());
            return Ok(());
        }
        match self.coordinates.about(condition) {
            About::Data => {
                // What it says about coordinates alone.
                for part in super::implied::coordinate_parts(self.coordinates, condition)? {
                    self.add(&part)?;
                }
                self.plan.data.push(condition.clone());
            }
            About::Unknown => self.plan.coordinates.push(condition.clone()),
            About::Axes(axes) => match axes.as_slice() {
                [] => self.constant(condition),
                [axis] => match along(self.coordinates, condition, *axis, &self.plan.selection.dims) {
                    Ok(set) => self.plan.selection.narrow(*axis, &set),
                    Err(_) => self.plan.data.push(condition.clone()),
                },
                _ => self.several.push((axes, condition.clone())),
            },
        }
        Ok(())
    }

    /// A condition on scalar coordinates, or on none.
    fn constant(&mut self, condition: &Condition) {
        let cell = self.coordinates.spread(&[], &[]);
        match self.coordinates.evaluate(condition, &cell) {
            Ok(holds) if holds.value(0) => {}
            Ok(_) => self.plan.selection.clear(),
            Err(_) => self.plan.data.push(condition.clone()),
        }
    }

    /// Conditions on several dimensions, inside what those on one have left.
    fn join(&mut self) -> Result<()> {
        let mut masks: Vec<(Vec<usize>, Vec<Condition>)> = Vec::new();
        for (axes, condition) in std::mem::take(&mut self.several) {
            let selection = &mut self.plan.selection;
            let boxes = match split(self.coordinates, &condition, &selection.dims) {
                Ok(boxes) => boxes.and_then(|b| Some(Boxes { products: disjoint(&b.products, MAX_STEPS)?, ..b })),
                Err(_) => None,
            };
            if let Some(boxes) = boxes {
                selection.add_boxes(boxes);
                continue;
            }
            // Conditions on the same dimensions are one factor.
            let (mut axes, mut conditions) = (axes, vec![condition]);
            while let Some(at) = masks.iter().position(|(other, _)| other.iter().any(|a| axes.contains(a))) {
                let (other, more) = masks.swap_remove(at);
                axes.extend(other);
                axes.sort_unstable();
                axes.dedup();
                conditions.extend(more);
            }
            masks.push((axes, conditions));
        }
        for (axes, conditions) in masks {
            self.mask(axes, conditions);
        }
        self.plan.selection.settle();
        Ok(())
    }

    fn mask(&mut self, axes: Vec<usize>, conditions: Vec<Condition>) {
        let sets: Vec<IndexSet> = axes.iter().filter_map(|a| self.plan.selection.dims.get(*a)).cloned().collect();
        if cells(&sets) > MAX_FACTOR {
            self.plan.coordinates.extend(conditions);
            return;
        }
        let block = self.coordinates.spread(&axes, &self.plan.selection.dims);
        let mut bits: Option<BooleanBuffer> = None;
        for condition in conditions {
            match self.coordinates.evaluate(&condition, &block) {
                Ok(holds) => bits = Some(bits.map_or(holds.clone(), |bits| &bits & &holds)),
                Err(_) => self.plan.data.push(condition),
            }
        }
        if let Some(bits) = bits {
            self.plan.selection.joints.push(Joint::Mask { axes, sets, bits });
        }
    }
}

/// The indices along `axis`, among those of `bounds`, of which `condition` is true; it is about no other dimension.
///
/// # Errors
/// Failures of evaluation.
pub(crate) fn along(
    coordinates: &Coordinates,
    condition: &Condition,
    axis: usize,
    bounds: &[IndexSet],
) -> Result<IndexSet> {
    let holds = coordinates.evaluate(condition, &coordinates.spread(&[axis], bounds))?;
    let Some(set) = bounds.get(axis) else { return Ok(IndexSet::range(0..0)) };
    if let [run] = set.runs() {
        return Ok(IndexSet::from_mask(&holds, run.start));
    }
    let kept = holds.set_indices().filter_map(|i| set.nth(i as u64));
    Ok(IndexSet::from_runs(kept.map(|i| i..i + 1)))
}

impl Selection {
    /// Every cell of a grid of `sizes`.
    pub(crate) fn all(sizes: &[u64]) -> Self {
        Self { dims: sizes.iter().map(|n| IndexSet::range(0..*n)).collect(), joints: Vec::new() }
    }

    /// The cells that both select; `None` of the joint conditions is merged, so that [`Self::rows`] may not be known.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let dims = self.dims.iter().zip(&other.dims).map(|(a, b)| a.intersect(b)).collect();
        let mut both = Self { dims, joints: self.joints.iter().chain(&other.joints).cloned().collect() };
        both.settle();
        both
    }

    fn narrow(&mut self, axis: usize, set: &IndexSet) {
        if let Some(dim) = self.dims.get_mut(axis) {
            *dim = dim.intersect(set);
        }
    }

    fn clear(&mut self) {
        self.dims.iter_mut().for_each(|d| *d = IndexSet::range(0..0));
        self.joints.clear();
        // A grid without dimensions has one cell that no index set can leave out.
        if self.dims.is_empty() {
            self.joints.push(Joint::Boxes { axes: Vec::new(), products: Union::new(Vec::new()) });
        }
    }

    fn add_boxes(&mut self, Boxes { axes, mut products }: Boxes) {
        if let ([_], false) = (products.as_slice(), axes.is_empty()) {
            for (axis, set) in axes.iter().zip(products.pop().unwrap_or_default()) {
                self.narrow(*axis, &set);
            }
        } else {
            self.joints.push(Joint::Boxes { axes, products: Union::new(products) });
        }
    }

    /// Bring the index sets down to what the joint conditions leave, and drop joint conditions that leave everything.
    fn settle(&mut self) {
        for joint in &self.joints {
            for (axis, set) in joint.projections() {
                if let Some(dim) = self.dims.get_mut(axis) {
                    *dim = dim.intersect(&set);
                }
            }
        }
        if self.is_empty() {
            self.clear();
        }
        let dims = self.dims.clone();
        self.joints.retain(|joint| !joint.holds_everywhere(&dims));
    }

    /// Whether no cell is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.dims.iter().any(IndexSet::is_empty)
            || self.joints.iter().any(|j| matches!(j, Joint::Boxes { products, .. } if products.products.is_empty()))
    }

    /// For each joint condition, its dimensions and the number of cells that it leaves along them.
    pub(crate) fn joint_cells(&self) -> impl Iterator<Item = (&[usize], u64)> {
        self.joints.iter().map(|j| (j.axes(), j.cells(&self.dims)))
    }

    /// Whether a condition on several dimensions has a say about `axis`.
    pub(crate) fn is_joint(&self, axis: usize) -> bool {
        self.joints.iter().any(|j| j.axes().contains(&axis))
    }

    /// Number of selected cells; `None` where joint conditions are about the same dimension, so that it takes reading the Blocks to know.
    pub(crate) fn rows(&self) -> Option<u64> {
        if self.is_empty() {
            return Some(0);
        }
        let mut free: Vec<bool> = vec![true; self.dims.len()];
        let mut rows = 1u64;
        for joint in &self.joints {
            for axis in joint.axes() {
                let free = free.get_mut(*axis)?;
                *free = std::mem::take(free).then_some(false)?;
            }
            rows = rows.saturating_mul(joint.cells(&self.dims));
        }
        let rest = self.dims.iter().zip(free).filter(|(_, free)| *free);
        Some(rest.fold(rows, |n, (dim, _)| n.saturating_mul(dim.len())))
    }

    /// The cells of `block` that joint conditions select, in C order; `None` where those are all.
    pub(crate) fn kept(&self, block: &[IndexSet]) -> Option<BooleanBuffer> {
        let mut kept: Option<BooleanBuffer> = None;
        for joint in &self.joints {
            let (axes, bits) = (joint.axes(), joint.bits(block));
            if bits.count_set_bits() == bits.len() {
                continue;
            }
            let bits = spread(&bits, axes, block);
            kept = Some(kept.map_or(bits.clone(), |kept| &kept & &bits));
        }
        kept
    }

    /// The chunks of a grid cut like `chunks` that hold a selected cell, as products of chunk numbers that do not meet. A chunk may be among
    /// them of which each joint condition selects a cell, but none the same.
    pub(crate) fn chunks(&self, chunks: &[DimensionChunks]) -> Vec<Product> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut products = vec![self.dims.iter().zip(chunks).map(|(set, d)| set.chunks(d)).collect::<Product>()];
        for joint in &self.joints {
            let Some(parts) = joint.chunks(&self.dims, chunks) else { continue };
            if parts.len().saturating_mul(products.len()) > MAX_PRODUCTS {
                continue;
            }
            let cut = |product: &Product, part: &Product| {
                let mut product = product.clone();
                for (axis, set) in joint.axes().iter().zip(part) {
                    if let Some(slot) = product.get_mut(*axis) {
                        *slot = slot.intersect(set);
                    }
                }
                product
            };
            products = products.iter().flat_map(|p| parts.iter().map(|q| cut(p, q))).filter(|p| cells(p) > 0).collect();
        }
        products
    }
}

/// Bits about the cells along `axes` of `block`, for all cells of the block.
fn spread(bits: &BooleanBuffer, axes: &[usize], block: &[IndexSet]) -> BooleanBuffer {
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

fn strides(extents: &[u64]) -> Vec<u64> {
    let mut step = 1u64;
    let mut out: Vec<u64> = extents
        .iter()
        .rev()
        .map(|n| {
            let stride = step;
            step = step.saturating_mul(*n);
            stride
        })
        .collect();
    out.reverse();
    out
}

impl Joint {
    fn axes(&self) -> &[usize] {
        match self {
            Self::Boxes { axes, .. } | Self::Mask { axes, .. } => axes,
        }
    }

    /// For each axis, the indices that some cell has.
    fn projections(&self) -> Vec<(usize, IndexSet)> {
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

    fn holds_everywhere(&self, dims: &[IndexSet]) -> bool {
        let all: Product = self.axes().iter().filter_map(|a| dims.get(*a)).cloned().collect();
        !all.is_empty() && self.cells(dims) == cells(&all)
    }

    /// Number of cells along its axes, among those of `dims`.
    fn cells(&self, dims: &[IndexSet]) -> u64 {
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
    fn bits(&self, block: &[IndexSet]) -> BooleanBuffer {
        let own: Product = self.axes().iter().filter_map(|a| block.get(*a)).cloned().collect();
        let total = usize::try_from(cells(&own)).unwrap_or(usize::MAX);
        match self {
            Self::Boxes { products, .. } => {
                let mut bits = BooleanBufferBuilder::new(total);
                bits.append_n(total, false);
                for product in products.reaching(&own) {
                    let inside = super::boxes::intersect(product, &own);
                    for_each_run(&inside, &own, |run| (run.start..run.end).for_each(|i| bits.set_bit(i, true)));
                }
                bits.finish()
            }
            Self::Mask { sets, bits, .. } if own == *sets => bits.clone(),
            Self::Mask { sets, bits, .. } => cut(bits, sets, &own),
        }
    }

    /// The chunks that hold one of its cells, along its axes alone; `None` where there are too many products of them.
    fn chunks(&self, dims: &[IndexSet], chunks: &[DimensionChunks]) -> Option<Vec<Product>> {
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
    let inside = super::boxes::intersect(sets, block);
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
    let mut index = vec![0usize; ranks.len()];
    let position = |p: u64| usize::try_from(p).unwrap_or(usize::MAX);
    loop {
        let offset: u64 = index.iter().zip(&ranks).filter_map(|(i, r)| r.get(*i)).sum();
        runs.iter().for_each(|r| found(position(offset + r.start)..position(offset + r.end)));
        let mut axis = index.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return };
            axis = next;
            let (Some(i), Some(r)) = (index.get_mut(axis), ranks.get(axis)) else { return };
            *i += 1;
            if *i < r.len() {
                break;
            }
            *i = 0;
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
