//! Which cells of a grid a query needs: a product of index sets, and what several dimensions have to say together.

use arrow::buffer::BooleanBuffer;

use super::IndexSet;
use super::boxes::{Product, cells};
use super::joint::{Joint, Union, spread};
use super::split::Boxes;
use crate::store::DimensionChunks;

/// Products of chunks that are told apart before a scan begins.
pub(super) const MAX_PRODUCTS: usize = 1 << 17;

/// The cells that static conditions on coordinates leave.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// Along each dimension, the indices that some selected cell may have.
    pub(crate) dims: Vec<IndexSet>,
    joints: Vec<Joint>,
}

impl Selection {
    /// Every cell of a grid of `sizes`.
    pub(crate) fn all(sizes: &[u64]) -> Self {
        Self { dims: sizes.iter().map(|n| IndexSet::range(0..*n)).collect(), joints: Vec::new() }
    }

    /// The cells that both select. Joint conditions are not merged, so that [`Self::rows`] may not be known.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let dims = self.dims.iter().zip(&other.dims).map(|(a, b)| a.intersect(b)).collect();
        let mut both = Self { dims, joints: self.joints.iter().chain(&other.joints).cloned().collect() };
        both.settle();
        both
    }

    /// Leave only the indices of `set` along `axis`.
    pub(super) fn narrow(&mut self, axis: usize, set: &IndexSet) {
        if let Some(dim) = self.dims.get_mut(axis) {
            *dim = dim.intersect(set);
        }
    }

    /// Leave no cell.
    pub(super) fn clear(&mut self) {
        self.dims.iter_mut().for_each(|d| *d = IndexSet::range(0..0));
        self.joints.clear();
        // A grid without dimensions has one cell that no index set can leave out.
        if self.dims.is_empty() {
            self.joints.push(Joint::Boxes { axes: Vec::new(), products: Union::new(Vec::new()) });
        }
    }

    /// Leave only the cells of `boxes`, which do not meet.
    pub(super) fn add_boxes(&mut self, Boxes { axes, mut products }: Boxes) {
        if let ([_], false) = (products.as_slice(), axes.is_empty()) {
            for (axis, set) in axes.iter().zip(products.pop().unwrap_or_default()) {
                self.narrow(*axis, &set);
            }
        } else {
            self.joints.push(Joint::Boxes { axes, products: Union::new(products) });
        }
    }

    /// Leave only the cells along `axes` whose bit is set, in C order of `sets`.
    pub(super) fn add_mask(&mut self, axes: Vec<usize>, sets: Vec<IndexSet>, bits: BooleanBuffer) {
        self.joints.push(Joint::Mask { axes, sets, bits });
    }

    /// Bring the index sets down to what the joint conditions leave, and drop joint conditions that leave everything.
    pub(super) fn settle(&mut self) {
        // What one condition leaves may leave less to another that has a dimension with it.
        loop {
            let before = self.dims.clone();
            self.joints = std::mem::take(&mut self.joints).into_iter().map(|joint| joint.within(&before)).collect();
            for (axis, set) in self.joints.iter().flat_map(Joint::projections).collect::<Vec<_>>() {
                self.narrow(axis, &set);
            }
            if self.dims == before {
                break;
            }
        }
        if self.is_empty() {
            self.clear();
        }
        let dims = self.dims.clone();
        self.joints.retain(|joint| !joint.holds_everywhere(&dims));
    }

    /// Whether it selects every cell of a grid of `sizes`.
    pub(crate) fn is_all(&self, sizes: &[u64]) -> bool {
        self.joints.is_empty() && self.dims.iter().zip(sizes).all(|(set, size)| set.len() == *size)
    }

    /// Whether no cell is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.dims.iter().any(IndexSet::is_empty) || self.joints.iter().any(Joint::is_empty)
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
            kept = Some(kept.map_or_else(|| bits.clone(), |kept| &kept & &bits));
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
