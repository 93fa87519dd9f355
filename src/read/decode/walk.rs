//! Walks over two arrays at a time that hold the same elements at different strides.

/// An axis: its length, and the distance of neighbours in the one array and in the other, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) len: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Call for each combination of indices, in C order, with the position in the one array and in the other.
pub(super) fn for_each(axes: &[Axis], mut call: impl FnMut(usize, usize)) {
    if axes.iter().any(|axis| axis.len == 0) {
        return;
    }
    let mut index = vec![0; axes.len()];
    let (mut from, mut to) = (0, 0);
    loop {
        call(from, to);
        let mut done = true;
        for (axis, i) in axes.iter().zip(&mut index).rev() {
            *i += 1;
            from += axis.from;
            to += axis.to;
            if *i < axis.len {
                done = false;
                break;
            }
            *i = 0;
            from -= axis.from * axis.len;
            to -= axis.to * axis.len;
        }
        if done {
            return;
        }
    }
}

/// Copy elements that are contiguous in both arrays.
pub(super) fn copy_run<T: Copy>(from: &[T], to: &mut [T], start: usize, target: usize, len: usize) {
    if let (Some(source), Some(target)) = (from.get(start..start + len), to.get_mut(target..target + len)) {
        target.copy_from_slice(source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions() {
        let mut seen = Vec::new();
        for_each(&[Axis { len: 2, from: 1, to: 10 }, Axis { len: 3, from: 2, to: 1 }], |from, to| {
            seen.push((from, to));
        });
        assert_eq!(seen, [(0, 0), (2, 1), (4, 2), (1, 10), (3, 11), (5, 12)]);
        seen.clear();
        for_each(&[], |from, to| seen.push((from, to)));
        assert_eq!(seen, [(0, 0)]);
        for_each(&[Axis { len: 5, from: 1, to: 1 }, Axis { len: 0, from: 1, to: 1 }], |_, _| {
            panic!("there is nothing")
        });
    }
}
