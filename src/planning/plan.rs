//! What becomes of the conditions of a scan: those on coordinates are evaluated, the others are kept.

use std::ops::Range;

use arrow::buffer::BooleanBuffer;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};

use super::boxes::{cells, disjoint};
use super::condition::{Condition, When};
use super::coordinates::{About, Coordinates};
use super::joint::MAX_STEPS;
use super::split::{Boxes, split};
use super::{IndexSet, Selection};

/// Cells up to which a condition on several dimensions is evaluated at once; above that, Block by Block.
pub(super) const MAX_FACTOR: u64 = 64 << 20;

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
    several: Vec<Joined>,
}

/// A condition on several dimensions, or more of them that are one factor.
struct Joined {
    axes: Vec<usize>,
    conditions: Vec<Condition>,
    /// Whether another condition says the same and more, so that these may be left out.
    is_implied: bool,
}

impl Builder<'_> {
    fn add(&mut self, condition: &Condition) -> Result<()> {
        if condition.when() == When::Dynamic {
            self.plan.data.push(condition.clone());
            return Ok(());
        }
        match self.coordinates.about(condition) {
            About::Data => {
                if let Some(part) = super::implied::coordinate_part(self.coordinates, condition)? {
                    self.add_known(&part, true);
                }
                self.plan.data.push(condition.clone());
            }
            About::Unknown => self.plan.coordinates.push(condition.clone()),
            About::Axes(_) => self.add_known(condition, false),
        }
        Ok(())
    }

    /// A condition on coordinates in memory.
    fn add_known(&mut self, condition: &Condition, is_implied: bool) {
        let About::Axes(axes) = self.coordinates.about(condition) else { return };
        match axes.as_slice() {
            [] => self.constant(condition),
            [one] => match along(self.coordinates, condition, *one, &self.plan.selection.dims) {
                Ok(Some(set)) => {
                    if set.is_empty() && !self.plan.selection.is_empty() {
                        self.plan.emptied_by = Some(condition.clone());
                    }
                    self.plan.selection.narrow(*one, &set);
                }
                _ if is_implied => {}
                Ok(None) => self.plan.coordinates.push(condition.clone()),
                // On the rows that others leave it may have a value.
                Err(_) => self.plan.data.push(condition.clone()),
            },
            _ => self.several.push(Joined { axes, conditions: vec![condition.clone()], is_implied }),
        }
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
        let mut masks: Vec<Joined> = Vec::new();
        for joined in std::mem::take(&mut self.several) {
            let selection = &mut self.plan.selection;
            let boxes = joined.conditions.first().and_then(|c| split(self.coordinates, c, &selection.dims).ok()?);
            let boxes = boxes.and_then(|b| Some(Boxes { products: disjoint(&b.products, MAX_STEPS)?, ..b }));
            match boxes {
                Some(boxes) => selection.add_boxes(boxes),
                None => self.merge(joined, &mut masks),
            }
        }
        for joined in masks {
            self.mask(joined);
        }
        self.plan.selection.settle();
    }

    /// Make conditions that share a dimension one factor, unless that would be too large.
    fn merge(&self, mut joined: Joined, masks: &mut Vec<Joined>) {
        let union = |a: &[usize], b: &[usize]| {
            let mut axes = [a, b].concat();
            axes.sort_unstable();
            axes.dedup();
            axes
        };
        let fits = |other: &Joined, joined: &Joined| {
            other.is_implied == joined.is_implied
                && other.axes.iter().any(|a| joined.axes.contains(a))
                && cells(&self.sets(&union(&other.axes, &joined.axes))) <= MAX_FACTOR
        };
        while let Some(at) = masks.iter().position(|other| fits(other, &joined)) {
            let other = masks.swap_remove(at);
            joined.axes = union(&other.axes, &joined.axes);
            joined.conditions.extend(other.conditions);
        }
        masks.push(joined);
    }

    /// What is left along each of `axes`.
    fn sets(&self, axes: &[usize]) -> Vec<IndexSet> {
        axes.iter().filter_map(|a| self.plan.selection.dims.get(*a)).cloned().collect()
    }

    fn mask(&mut self, joined: Joined) {
        let Joined { axes, conditions, is_implied } = joined;
        let sets = self.sets(&axes);
        if cells(&sets) > MAX_FACTOR {
            self.plan.coordinates.extend(conditions.into_iter().filter(|_| !is_implied));
            return;
        }
        let block = self.coordinates.spread(&axes, &self.plan.selection.dims);
        let mut bits: Option<BooleanBuffer> = None;
        for condition in conditions {
            match self.coordinates.evaluate(&condition, &block) {
                Ok(holds) => bits = Some(bits.map_or_else(|| holds.clone(), |bits| &bits & &holds)),
                Err(_) if is_implied => {}
                Err(_) => self.plan.data.push(condition),
            }
        }
        if let Some(bits) = bits {
            self.plan.selection.add_mask(axes, sets, bits);
        }
    }
}

/// The indices along `axis`, among those of `bounds`, of which `condition` is true; it is about no other dimension. `None` where there are too
/// many to be looked at one by one.
///
/// # Errors
/// Failures of evaluation.
pub(super) fn along(
    coordinates: &Coordinates,
    condition: &Condition,
    axis: usize,
    bounds: &[IndexSet],
) -> Result<Option<IndexSet>> {
    let Some(set) = bounds.get(axis) else { return Ok(None) };
    if let Some(range) = index_range(coordinates, condition) {
        return Ok(Some(set.within(&range)));
    }
    if set.len() > MAX_FACTOR {
        return Ok(None);
    }
    let holds = coordinates.evaluate(condition, &coordinates.spread(&[axis], bounds))?;
    if let [run] = set.runs() {
        return Ok(Some(IndexSet::from_mask(&holds, run.start)));
    }
    let kept = holds.set_indices().filter_map(|i| set.nth(i as u64));
    Ok(Some(IndexSet::from_runs(kept.map(|i| i..i + 1))))
}

/// The indices that a comparison of an index column with a number leaves: there may be more of them than can be looked at one by one.
fn index_range(coordinates: &Coordinates, condition: &Condition) -> Option<Range<u64>> {
    let [column] = condition.columns() else { return None };
    if coordinates.values(*column)?.array.is_some() {
        return None;
    }
    let binary = condition.expr().downcast_ref::<BinaryExpr>()?;
    let (op, literal) = match (binary.left().is::<Column>(), binary.right().is::<Column>()) {
        (true, false) => (*binary.op(), binary.right().downcast_ref::<Literal>()?),
        (false, true) => (binary.op().swap()?, binary.left().downcast_ref::<Literal>()?),
        _ => return None,
    };
    let ScalarValue::Int64(Some(number)) = literal.value() else { return None };
    let at_least = |n: i64| u64::try_from(n.max(0)).unwrap_or(0);
    let after = number.checked_add(1).map_or(u64::MAX, at_least);
    match op {
        Operator::Eq if *number < 0 => Some(0..0),
        Operator::Eq => Some(at_least(*number)..after),
        Operator::Lt => Some(0..at_least(*number)),
        Operator::LtEq => Some(0..after),
        Operator::Gt => Some(after..u64::MAX),
        Operator::GtEq => Some(at_least(*number)..u64::MAX),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_expr::expressions::{binary, col, lit};

    use super::*;
    use crate::planning::{Known, Values};

    #[test]
    fn comparisons_of_indices_look_at_none() {
        let schema = Schema::new(vec![Field::new("x", DataType::Int64, false)]);
        let size = 1 << 60;
        let coordinates = Coordinates { sizes: vec![size], columns: vec![Known::Values(Values::index(0))] };
        let left = |op, number: i64, swapped: bool| {
            let (a, b) = (col("x", &schema).unwrap(), lit(number) as _);
            let expr = if swapped { binary(b, op, a, &schema) } else { binary(a, op, b, &schema) }.unwrap();
            let condition = Condition::try_new(&expr, &schema).unwrap();
            Plan::new(&coordinates, &[condition]).unwrap().selection.dims.remove(0).bounds()
        };
        assert_eq!(left(Operator::Lt, 5, false), 0..5);
        assert_eq!(left(Operator::Lt, 5, true), 6..size);
        assert_eq!(left(Operator::GtEq, -3, false), 0..size);
        assert_eq!((left(Operator::Eq, 7, false), left(Operator::Eq, -7, false)), (7..8, 0..0));
        assert_eq!((left(Operator::LtEq, i64::MAX, false), left(Operator::Gt, i64::MAX, false)), (0..size, 0..0));
        // What is no comparison of that kind is asked Block by Block.
        let even = binary(col("x", &schema).unwrap(), Operator::Modulo, lit(2i64) as _, &schema).unwrap();
        let even = binary(even, Operator::Eq, lit(0i64) as _, &schema).unwrap();
        let plan = Plan::new(&coordinates, &[Condition::try_new(&even, &schema).unwrap()]).unwrap();
        assert_eq!(plan.coordinates.len(), 1);
    }
}
