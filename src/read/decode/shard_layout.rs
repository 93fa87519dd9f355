//! Where the elements of inner chunks lie in their shard.

use super::walk::{Axis, copy_run, for_each};

/// The geometry of inner chunks in a shard, in elements.
pub(super) struct Layout {
    /// The inner chunks along each axis, and how far apart they start in the shard (`to`).
    grid: Vec<Axis>,
    /// The axes along which an inner chunk is cut into runs: `from` the stride in the inner chunk, `to` in the shard.
    rows: Vec<Axis>,
    /// Elements that lie together both in an inner chunk and in the shard.
    run: usize,
}

impl Layout {
    /// Inner chunks of `chunk` in a shard of `shard`, which they fill.
    pub(super) fn new(shard: &[u64], chunk: &[u64]) -> Result<Self, String> {
        let overflow = || "the shape of the shard is too large".to_owned();
        let (mut grid, mut rows) = (Vec::new(), Vec::new());
        let (mut run, mut whole) = (1_usize, true);
        let (mut from, mut to) = (1_usize, 1_usize);
        for (&shard, &chunk) in shard.iter().zip(chunk).rev() {
            let [shard, chunk] = [usize::try_from(shard), usize::try_from(chunk)].map(|n| n.map_err(|_| overflow()));
            let (shard, chunk) = (shard?, chunk?);
            let step = to.checked_mul(chunk).ok_or_else(overflow)?;
            grid.push(Axis { len: shard.checked_div(chunk).unwrap_or(0), from: 0, to: step });
            // As long as the inner chunk spans the shard along all later axes, its rows along this one follow each
            // other in both.
            if whole {
                run = run.checked_mul(chunk).ok_or_else(overflow)?;
            } else if chunk != 1 {
                rows.push(Axis { len: chunk, from, to });
            }
            whole = whole && shard == chunk;
            from = from.checked_mul(chunk).ok_or_else(overflow)?;
            to = to.checked_mul(shard).ok_or_else(overflow)?;
        }
        grid.reverse();
        rows.reverse();
        Ok(Self { grid, rows, run })
    }

    /// Elements of an inner chunk.
    pub(super) fn chunk_elements(&self) -> usize {
        self.rows.iter().fold(self.run, |n, axis| n * axis.len)
    }

    /// Whether an inner chunk lies in the shard as it is.
    pub(super) fn is_contiguous(&self) -> bool {
        self.rows.is_empty()
    }

    /// Position in the shard of the first element of each inner chunk, in C order.
    pub(super) fn origins(&self) -> impl Iterator<Item = usize> {
        let count = self.grid.iter().map(|axis| axis.len).product();
        (0..count).map(|mut i| {
            let mut origin = 0;
            for axis in self.grid.iter().rev() {
                origin += i % axis.len * axis.to;
                i /= axis.len;
            }
            origin
        })
    }

    /// Copy an inner chunk of elements of `size` bytes into the shard.
    pub(super) fn copy(&self, chunk: &[u8], origin: usize, size: usize, shard: &mut [u8]) {
        let bytes = self.run * size;
        for_each(&self.rows, |from, to| copy_run(chunk, shard, from * size, (origin + to) * size, bytes));
    }

    /// Write the same element to all places of an inner chunk; zeros where there is no element.
    pub(super) fn fill(&self, element: Option<&[u8]>, origin: usize, size: usize, shard: &mut [u8]) {
        let bytes = self.run * size;
        let element = element.filter(|element| element.iter().any(|&byte| byte != 0));
        for_each(&self.rows, |_, to| {
            let Some(run) = shard.get_mut((origin + to) * size..).and_then(|rest| rest.get_mut(..bytes)) else {
                return;
            };
            match element {
                None => run.fill(0),
                Some(element) => run.chunks_exact_mut(element.len()).for_each(|place| place.copy_from_slice(element)),
            }
        });
    }

    /// Call for each element of an inner chunk with its position there and in the shard.
    pub(super) fn for_each_element(&self, origin: usize, mut call: impl FnMut(usize, usize)) {
        for_each(&self.rows, |from, to| (0..self.run).for_each(|i| call(from + i, origin + to + i)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shard: &[u64], chunk: &[u64]) -> Layout {
        Layout::new(shard, chunk).unwrap()
    }

    /// Numbers each element of a shard by inner chunk and position, and checks against the definition.
    fn check(shard: [u64; 3], chunk: [u64; 3]) {
        let layout = layout(&shard, &chunk);
        let mut seen = vec![None; usize::try_from(shard.iter().product::<u64>()).unwrap()];
        for (n, origin) in layout.origins().enumerate() {
            layout.for_each_element(origin, |i, at| assert_eq!(seen[at].replace((n, i)), None));
        }
        let [shard, chunk] = [shard, chunk].map(|shape| shape.map(|n| usize::try_from(n).unwrap()));
        let grid: Vec<usize> = shard.iter().zip(chunk).map(|(n, inner)| n / inner).collect();
        for (at, &seen) in seen.iter().enumerate() {
            let index = [at / (shard[1] * shard[2]), at / shard[2] % shard[1], at % shard[2]];
            let (mut n, mut i) = (0, 0);
            for axis in 0..3 {
                n = n * grid[axis] + index[axis] / chunk[axis];
                i = i * chunk[axis] + index[axis] % chunk[axis];
            }
            assert_eq!(seen, Some((n, i)));
        }
        assert_eq!(layout.chunk_elements(), chunk.iter().product::<usize>());
    }

    #[test]
    fn every_element_has_its_place() {
        for chunk in [
            [1, 1, 1],
            [2, 3, 4],
            [4, 6, 8],
            [1, 6, 8],
            [2, 6, 8],
            [1, 3, 8],
            [4, 1, 8],
            [4, 6, 1],
            [1, 1, 8],
            [1, 1, 4],
            [2, 1, 2],
        ] {
            check([4, 6, 8], chunk);
        }
    }

    #[test]
    fn contiguous() {
        for (chunk, contiguous) in [
            ([4, 6, 8], true),
            ([2, 6, 8], true),
            ([1, 2, 8], true),
            ([1, 1, 4], true),
            ([2, 2, 8], false),
            ([1, 2, 4], false),
        ] {
            assert_eq!(layout(&[4, 6, 8], &chunk).is_contiguous(), contiguous, "{chunk:?}");
        }
        assert!(layout(&[], &[]).is_contiguous());
        assert_eq!(layout(&[], &[]).origins().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn copy_and_fill() {
        let layout = layout(&[2, 4], &[2, 2]);
        let mut shard = [0; 16];
        let origins: Vec<usize> = layout.origins().collect();
        layout.copy(&[1, 2, 3, 4, 5, 6, 7, 8], origins[1], 2, &mut shard);
        layout.fill(Some(&[8, 9]), origins[0], 2, &mut shard);
        assert_eq!(shard, [8, 9, 8, 9, 1, 2, 3, 4, 8, 9, 8, 9, 5, 6, 7, 8]);
        layout.fill(None, origins[1], 2, &mut shard);
        assert_eq!(shard, [8, 9, 8, 9, 0, 0, 0, 0, 8, 9, 8, 9, 0, 0, 0, 0]);
    }

    #[test]
    fn large_shapes_are_errors() {
        assert!(Layout::new(&[1 << 40, 1 << 40], &[1, 1]).is_err());
    }
}
