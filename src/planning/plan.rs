//! What becomes of the conditions of a scan: those on coordinates are evaluated, the others are kept.

use arrow::buffer::BooleanBuffer;
use datafusion::common::Result;

use super::boxes::{cells, disjoint};
use super::condition::{Condition, When};
use super::coordinates::{About, Coordinates};
use super::joint::MAX_STEPS;
use super::split::{Boxes, split};
use super::{IndexSet, Selection};

/// Cells up to which a condition on several dimensions is evaluated at once; above that, Block by Block.
const MAX_FACTOR: u64 = 64 << 20;

/// What becomes of the conditions of a scan.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The cells that may satisfy all of them.
    pub(crate) selection: Selection,
    /// Conditions on coordinates alone that are evaluated Block by Block, before its data is read.
    pub(crate) coordinates: Vec<Condition>,
    /// Conditions on data, and those that could not be evaluated on all coordinates.
    pub(crate) data: Vec<Condition>,
    /// The condition on one dimension after which no cell was left.
    pub(crate) emptied_by: Option<Condition>,
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
            plan: Self {
                selection: Selection::all(&coordinates.sizes),
                coordinates: Vec::new(),
                data: Vec::new(),
                emptied_by: None,
            },
            several: Vec::new(),
        };
        for condition in conditions {
            builder.add(condition)?;
        }
        builder.join();
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
                [one] => match along(self.coordinates, condition, *one, &self.plan.selection.dims) {
                    Ok(set) => {
                        if set.is_empty() && !self.plan.selection.is_empty() {
                            self.plan.emptied_by = Some(condition.clone());
                        }
                        self.plan.selection.narrow(*one, &set);
                    }
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
    fn join(&mut self) {
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
                Ok(holds) => bits = Some(bits.map_or_else(|| holds.clone(), |bits| &bits & &holds)),
                Err(_) => self.plan.data.push(condition),
            }
        }
        if let Some(bits) = bits {
            self.plan.selection.add_mask(axes, sets, bits);
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
