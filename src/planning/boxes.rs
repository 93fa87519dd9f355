//! Unions of boxes: products of index sets, one set an axis.

use std::collections::HashMap;
use std::ops::Range;

use super::IndexSet;

/// Steps that a product of a result counts for: it stays in memory.
const PRODUCT: usize = 16;

/// A product of index sets, one an axis.
pub(crate) type Product = Vec<IndexSet>;

/// Number of cells of a product; saturated.
pub(crate) fn cells(product: &[IndexSet]) -> u64 {
    product.iter().fold(1, |n, set| n.saturating_mul(set.len()))
}

/// Cell `number` of a product, in C order; `None` after the last.
pub(crate) fn nth_cell(product: &[IndexSet], number: u64) -> Option<Vec<u64>> {
    let mut rest = number;
    let mut cell = Vec::with_capacity(product.len());
    for set in product.iter().rev() {
        cell.push(set.nth(rest % set.len().max(1))?);
        rest /= set.len().max(1);
    }
    cell.reverse();
    (rest == 0).then_some(cell)
}

/// The cells of both products.
pub(crate) fn intersect(a: &[IndexSet], b: &[IndexSet]) -> Product {
    a.iter().zip(b).map(|(a, b)| a.intersect(b)).collect()
}

/// Products that hold the cells of any of `boxes`, each cell once; `None` where finding them takes more than `limit` steps.
///
/// Along the first axis, indices that lie in the same boxes are taken together, and the rest of those boxes is cut the same way.
pub(crate) fn disjoint(boxes: &[Product], limit: usize) -> Option<Vec<Product>> {
    let axes = boxes.first().map_or(0, Vec::len);
    let mut cutter = Cutter { boxes, axes, limit, out: Vec::new() };
    let all: Vec<usize> =
        boxes.iter().enumerate().filter(|(_, b)| !b.iter().any(IndexSet::is_empty)).map(|(i, _)| i).collect();
    if !all.is_empty() {
        cutter.cut(&mut Vec::new(), &all)?;
    }
    Some(cutter.out)
}

/// Indices along an axis, and the boxes that they lie in.
type Class = (Vec<Range<u64>>, Vec<usize>);

struct Cutter<'a> {
    boxes: &'a [Product],
    axes: usize,
    /// Steps left.
    limit: usize,
    out: Vec<Product>,
}

impl Cutter<'_> {
    /// Cut the boxes `members`, which have the same indices along the axes of `prefix`.
    fn cut(&mut self, prefix: &mut Vec<IndexSet>, members: &[usize]) -> Option<()> {
        let axis = prefix.len();
        if axis == self.axes {
            return self.put(prefix.clone());
        }
        if axis + 1 == self.axes || members.len() == 1 {
            // The rest is one product: of one box, or the union along the last axis.
            self.spend(members.len())?;
            let rest: Vec<IndexSet> = (axis..self.axes).map(|a| IndexSet::union(self.along(a, members))).collect();
            return self.put(prefix.iter().cloned().chain(rest).collect());
        }
        for (runs, members) in self.classes(axis, members)? {
            prefix.push(IndexSet::from_runs(runs));
            self.cut(prefix, &members)?;
            prefix.pop();
        }
        Some(())
    }

    /// The sets of `members` along `axis`.
    fn along<'b>(&'b self, axis: usize, members: &'b [usize]) -> impl Iterator<Item = &'b IndexSet> {
        members.iter().filter_map(|m| self.boxes.get(*m)).filter_map(move |b| b.get(axis))
    }

    fn put(&mut self, product: Product) -> Option<()> {
        self.spend(PRODUCT)?;
        self.out.push(product);
        Some(())
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        self.limit = self.limit.checked_sub(steps)?;
        Some(())
    }

    /// Indices along `axis` by the boxes that they lie in, in the order of their first index.
    fn classes(&mut self, axis: usize, members: &[usize]) -> Option<Vec<Class>> {
        // (position, box, whether it starts here)
        let mut events: Vec<(u64, usize, bool)> = Vec::new();
        for (member, set) in members.iter().zip(self.along(axis, members)) {
            for run in set.runs() {
                events.push((run.start, *member, true));
                events.push((run.end, *member, false));
            }
        }
        self.spend(events.len())?;
        events.sort_unstable();
        let mut classes: Vec<Class> = Vec::new();
        let mut numbers: HashMap<Vec<usize>, usize> = HashMap::new();
        let mut open: Vec<usize> = Vec::new();
        let mut start = 0;
        for (position, member, starts) in events {
            if position > start && !open.is_empty() {
                self.spend(open.len())?;
                let number = *numbers.entry(open.clone()).or_insert_with(|| {
                    classes.push((Vec::new(), open.clone()));
                    classes.len() - 1
                });
                if let Some((runs, _)) = classes.get_mut(number) {
                    runs.push(start..position);
                }
            }
            start = position;
            match (open.binary_search(&member), starts) {
                (Err(at), true) => open.insert(at, member),
                (Ok(at), false) => {
                    open.remove(at);
                }
                _ => {}
            }
        }
        Some(classes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_cell_of_a_union_is_in_one_product() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let axes = rng.usize(1..4);
            let boxes: Vec<Product> = (0..rng.usize(1..6))
                .map(|_| {
                    (0..axes)
                        .map(|_| IndexSet::from_runs((0..3).map(|i| i * 3 + rng.u64(0..2)..i * 3 + rng.u64(0..4))))
                        .collect()
                })
                .collect();
            let products = disjoint(&boxes, 1 << 20).unwrap();
            let mut seen: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
            let size = 9u64;
            for cell in 0..size.pow(u32::try_from(axes).unwrap()) {
                let index: Vec<u64> = (0..axes).map(|a| cell / size.pow(u32::try_from(a).unwrap()) % size).collect();
                let holds = |p: &Product| p.iter().zip(&index).all(|(set, i)| set.contains(*i));
                let count = products.iter().filter(|p| holds(p)).count();
                assert_eq!(count, usize::from(boxes.iter().any(holds)), "{boxes:?} {index:?}");
                seen.insert(index, count);
            }
            assert_eq!(products.iter().map(|p| cells(p)).sum::<u64>(), seen.values().sum::<usize>() as u64);
        }
    }

    #[test]
    fn a_thousand_points_are_a_thousand_products() {
        let point =
            |i: u64| vec![IndexSet::range(i..i + 1), IndexSet::range(i % 7..i % 7 + 1), IndexSet::range(i..i + 1)];
        let boxes: Vec<Product> = (0..1000).chain(0..10).map(|i| point(i * 3)).collect();
        assert_eq!(disjoint(&boxes, 1 << 20).unwrap().len(), 1000);
        assert!(disjoint(&boxes, 100).is_none());
        assert!(disjoint(&[], 1).unwrap().is_empty());
    }
}
