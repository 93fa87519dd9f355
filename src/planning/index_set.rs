//! Sets of indices along one dimension.

use std::ops::Range;
use std::sync::Arc;

use arrow::buffer::BooleanBuffer;

use crate::store::DimensionChunks;

/// Indices along one dimension, as ascending runs that do not touch: its cost is that of the runs, not of the indices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct IndexSet {
    runs: Arc<[Range<u64>]>,
    /// Members before each run, and of all runs.
    before: Arc<[u64]>,
}

impl IndexSet {
    /// The indices `range`.
    pub(crate) fn range(range: Range<u64>) -> Self {
        Self::from_runs([range])
    }

    /// The members of `runs`, which ascend and may touch but not overlap.
    pub(crate) fn from_runs(runs: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut joined: Vec<Range<u64>> = Vec::new();
        for run in runs.into_iter().filter(|r| !r.is_empty()) {
            match joined.last_mut() {
                Some(last) if last.end >= run.start => last.end = last.end.max(run.end),
                _ => joined.push(run),
            }
        }
        let mut before = Vec::with_capacity(joined.len() + 1);
        let mut members = 0;
        before.push(0);
        for run in &joined {
            members += run.end - run.start;
            before.push(members);
        }
        Self { runs: joined.into(), before: before.into() }
    }

    /// `start` + the position of every set bit.
    pub(crate) fn from_mask(mask: &BooleanBuffer, start: u64) -> Self {
        Self::from_runs(mask.set_slices().map(|(first, end)| start + first as u64..start + end as u64))
    }

    /// Number of members.
    pub(crate) fn len(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs, ascending.
    pub(crate) fn runs(&self) -> &[Range<u64>] {
        &self.runs
    }

    /// The members, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.iter().flat_map(Clone::clone)
    }

    /// From the first to the last member; empty where there is none.
    pub(crate) fn bounds(&self) -> Range<u64> {
        match (self.runs.first(), self.runs.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }

    /// Member number `ordinal`.
    pub(crate) fn nth(&self, ordinal: u64) -> Option<u64> {
        let run = self.before.partition_point(|b| *b <= ordinal).checked_sub(1)?;
        Some(self.runs.get(run)?.start + (ordinal - self.before.get(run)?))
    }

    /// Number of members below `index`.
    pub(crate) fn rank(&self, index: u64) -> u64 {
        let run = self.runs.partition_point(|r| r.start < index);
        let Some(last) = run.checked_sub(1) else { return 0 };
        match (self.runs.get(last), self.before.get(last)) {
            (Some(r), Some(before)) => before + (index.min(r.end) - r.start),
            _ => 0,
        }
    }

    /// Whether `index` is a member.
    pub(crate) fn contains(&self, index: u64) -> bool {
        let run = self.runs.partition_point(|r| r.end <= index);
        self.runs.get(run).is_some_and(|r| r.start <= index)
    }

    /// The members inside `range`.
    pub(crate) fn within(&self, range: &Range<u64>) -> Self {
        let first = self.runs.partition_point(|r| r.end <= range.start);
        let end = self.runs.partition_point(|r| r.start < range.end);
        if first == 0 && end == self.runs.len() && self.bounds().start >= range.start && self.bounds().end <= range.end
        {
            return self.clone();
        }
        let runs = self.runs.get(first..end.max(first)).unwrap_or_default();
        Self::from_runs(runs.iter().map(|r| r.start.max(range.start)..r.end.min(range.end)))
    }

    /// The members of both.
    pub(crate) fn intersect(&self, other: &Self) -> Self {
        if let [run] = other.runs() {
            return self.within(run);
        }
        if let [run] = self.runs() {
            return other.within(run);
        }
        let (mut a, mut b) = (self.runs.iter().peekable(), other.runs.iter().peekable());
        let mut runs = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            runs.push(x.start.max(y.start)..x.end.min(y.end));
            if x.end <= y.end {
                a.next();
            } else {
                b.next();
            }
        }
        Self::from_runs(runs)
    }

    /// The members of any of `sets`.
    pub(crate) fn union<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut runs: Vec<Range<u64>> = sets.into_iter().flat_map(|s| s.runs.iter().cloned()).collect();
        runs.sort_unstable_by_key(|r| r.start);
        Self::from_runs(runs)
    }

    /// Whether some member is in both.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let (few, many) = if self.runs.len() <= other.runs.len() { (self, other) } else { (other, self) };
        few.runs.iter().any(|r| {
            let next = many.runs.partition_point(|m| m.end <= r.start);
            many.runs.get(next).is_some_and(|m| m.start < r.end)
        })
    }

    /// Numbers of the chunks of `d` that hold a member.
    pub(crate) fn chunks(&self, d: &DimensionChunks) -> Self {
        let chunks = |r: &Range<u64>| d.chunk_of(r.start)..d.chunk_of(r.end - 1) + 1;
        let mut last = 0;
        Self::from_runs(self.runs.iter().map(chunks).map(|r| {
            // The end of one run and the start of the next may lie in one chunk.
            let run = r.start.max(last)..r.end;
            last = r.end;
            run
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::store::Cuts;

    fn random(rng: &mut fastrand::Rng, size: u64) -> (IndexSet, BTreeSet<u64>) {
        let density = rng.f64();
        let members: BTreeSet<u64> = (0..size).filter(|_| rng.f64() < density).collect();
        let mask = BooleanBuffer::collect_bool(usize::try_from(size).unwrap(), |i| members.contains(&(i as u64)));
        (IndexSet::from_mask(&mask, 0), members)
    }

    fn members(set: &IndexSet) -> BTreeSet<u64> {
        set.iter().collect()
    }

    #[test]
    fn sets_agree_with_sets_of_numbers() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..300 {
            let size = rng.u64(1..40);
            let ((a, x), (b, y)) = (random(&mut rng, size), random(&mut rng, size));
            assert_eq!(members(&a), x);
            assert_eq!((a.len(), a.is_empty()), (x.len() as u64, x.is_empty()));
            assert_eq!(members(&a.intersect(&b)), x.intersection(&y).copied().collect());
            assert_eq!(members(&IndexSet::union([&a, &b])), x.union(&y).copied().collect());
            assert_eq!(a.meets(&b), !x.is_disjoint(&y));
            let list: Vec<u64> = x.iter().copied().collect();
            for i in 0..size + 2 {
                assert_eq!(a.contains(i), x.contains(&i));
                assert_eq!(a.rank(i), x.iter().filter(|m| **m < i).count() as u64);
                assert_eq!(a.nth(i), list.get(usize::try_from(i).unwrap()).copied());
            }
            let (from, to) = (rng.u64(0..size), rng.u64(0..size + 2));
            assert_eq!(members(&a.within(&(from..to))), x.iter().copied().filter(|m| (from..to).contains(m)).collect());
            let chunks = DimensionChunks { size, cuts: Cuts::Regular(rng.u64(1..9)) };
            assert_eq!(members(&a.chunks(&chunks)), x.iter().map(|i| chunks.chunk_of(*i)).collect());
        }
    }
}
