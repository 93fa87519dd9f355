//! Decoded cells of a region, and how boxes of them are copied from chunks.

use super::buffer::PooledBuffer;
use super::decode::VariableElements;
use crate::planning::next_index;

/// Decoded elements in C order, native-endian.
#[derive(Debug)]
pub(crate) enum Cells {
    /// Elements of one size.
    Fixed(PooledBuffer),
    /// Elements that have lengths of their own.
    Variable(VariableElements),
}

/// The cells of a region of one array.
#[derive(Debug)]
pub(crate) struct Region {
    /// The elements.
    pub(crate) cells: Cells,
    /// One byte a cell, 1 where it was never written and the array has no fill value; `None` where there is no such cell.
    pub(crate) undefined: Option<Vec<u8>>,
    /// Whether some cell has a missing value, where that was found out while reading.
    pub(crate) has_missing: Option<bool>,
}

/// A box inside a C-ordered array: where its first element stands, its extents, and the distance of neighbours along each axis, in elements.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Element number of the first cell.
    pub(crate) offset: usize,
    /// Elements between neighbours along each axis.
    pub(crate) strides: Vec<usize>,
}

/// Where the cells of a product of indices stand inside a C-ordered array.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A box.
    Box(Layout),
    /// How far each index stands from the first element, along each axis.
    Listed(Vec<Vec<usize>>),
}

/// Elements between neighbours along each axis of a C-ordered array of `shape`. The caller has checked that the product fits.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut out = vec![1usize; shape.len()];
    let mut step = 1usize;
    for (stride, length) in out.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul(*length);
    }
    out
}

/// Call `run` with the element offsets (source, target) of each row along the last axis of a box of `extents`.
fn for_each_row(extents: &[usize], source: &Layout, target: &Layout, mut run: impl FnMut(usize, usize)) {
    let Some((_, outer)) = extents.split_last() else {
        run(source.offset, target.offset);
        return;
    };
    if extents.contains(&0) {
        return;
    }
    let mut index = vec![0usize; outer.len()];
    let (mut from, mut to) = (source.offset, target.offset);
    loop {
        run(from, to);
        // Advance like an odometer, keeping both offsets in step.
        let mut axis = outer.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return };
            axis = next;
            let (Some(i), Some(n), Some(s), Some(t)) =
                (index.get_mut(axis), outer.get(axis), source.strides.get(axis), target.strides.get(axis))
            else {
                return;
            };
            *i += 1;
            from += s;
            to += t;
            if *i < *n {
                break;
            }
            from -= s * *n;
            to -= t * *n;
            *i = 0;
        }
    }
}

/// Call `run` with the element offsets (source, target) of each row of listed cells along their last axis, whose own offsets come with it.
fn for_each_listed_row(lists: &[Vec<usize>], target: &Layout, mut run: impl FnMut(usize, usize, &[usize])) {
    let only = [0];
    let (last, outer) = lists.split_last().map_or((only.as_slice(), lists), |(last, outer)| (last.as_slice(), outer));
    if lists.iter().any(Vec::is_empty) {
        return;
    }
    let lengths: Vec<usize> = outer.iter().map(Vec::len).collect();
    let mut index = vec![0usize; outer.len()];
    loop {
        let from = index.iter().zip(outer).filter_map(|(i, list)| list.get(*i)).sum();
        let to = index.iter().zip(&target.strides).fold(target.offset, |to, (i, stride)| to + i * stride);
        run(from, to, last);
        if !next_index(&mut index, &lengths) {
            return;
        }
    }
}

/// Copy listed elements of `size` bytes to a box. All must lie inside their arrays; those that do not are left out.
pub(crate) fn copy_listed(lists: &[Vec<usize>], from: &[u8], to: &mut [u8], target: &Layout, size: usize) {
    let step = target.strides.last().copied().unwrap_or(1);
    for_each_listed_row(lists, target, |source, start, offsets| {
        let out = to.get_mut(start * size..).unwrap_or_default();
        match size {
            1 => gather::<1>(from, source, offsets, out, step),
            2 => gather::<2>(from, source, offsets, out, step),
            4 => gather::<4>(from, source, offsets, out, step),
            8 => gather::<8>(from, source, offsets, out, step),
            _ => {
                let targets = out.chunks_exact_mut(size.max(1)).step_by(step.max(1));
                for (offset, y) in offsets.iter().zip(targets) {
                    if let Some(x) = from.get((source + offset) * size..(source + offset + 1) * size) {
                        y.copy_from_slice(x);
                    }
                }
            }
        }
    });
}

fn gather<const N: usize>(from: &[u8], source: usize, offsets: &[usize], to: &mut [u8], step: usize) {
    let (from, _) = from.as_chunks::<N>();
    let (to, _) = to.as_chunks_mut::<N>();
    for (offset, y) in offsets.iter().zip(to.iter_mut().step_by(step.max(1))) {
        if let Some(x) = from.get(source + offset) {
            *y = *x;
        }
    }
}

/// Join axes that both layouts walk through without a gap, so that rows get as long as they can.
fn collapse(extents: &[usize], source: &Layout, target: &Layout) -> (Vec<usize>, Layout, Layout) {
    let (mut e, mut s, mut t): (Vec<usize>, Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new(), Vec::new());
    for ((extent, from), to) in extents.iter().zip(&source.strides).zip(&target.strides) {
        if let (Some(last_e), Some(last_s), Some(last_t)) = (e.last_mut(), s.last_mut(), t.last_mut())
            && *last_s == from * extent
            && *last_t == to * extent
        {
            (*last_e, *last_s, *last_t) = (*last_e * extent, *from, *to);
            continue;
        }
        e.push(*extent);
        s.push(*from);
        t.push(*to);
    }
    (e, Layout { offset: source.offset, strides: s }, Layout { offset: target.offset, strides: t })
}

/// Copy a box of elements of `size` bytes. Both layouts must lie inside their arrays; rows that do not are left out.
pub(crate) fn copy_box(extents: &[usize], from: &[u8], source: &Layout, to: &mut [u8], target: &Layout, size: usize) {
    let (extents, source, target) = collapse(extents, source, target);
    let length = extents.last().copied().unwrap_or(1);
    let (step_in, step_out) =
        (source.strides.last().copied().unwrap_or(1), target.strides.last().copied().unwrap_or(1));
    for_each_row(&extents, &source, &target, |a, b| {
        if step_in == 1 && step_out == 1 {
            if let (Some(row), Some(out)) =
                (from.get(a * size..(a + length) * size), to.get_mut(b * size..(b + length) * size))
            {
                out.copy_from_slice(row);
            }
            return;
        }
        let row = from.get(a * size..).unwrap_or_default();
        let out = to.get_mut(b * size..).unwrap_or_default();
        match size {
            1 => copy_strided::<1>(row, step_in, out, step_out, length),
            2 => copy_strided::<2>(row, step_in, out, step_out, length),
            4 => copy_strided::<4>(row, step_in, out, step_out, length),
            8 => copy_strided::<8>(row, step_in, out, step_out, length),
            _ => {
                for i in 0..length {
                    if let (Some(x), Some(y)) = (
                        row.get(i * step_in * size..(i * step_in + 1) * size),
                        out.get_mut(i * step_out * size..(i * step_out + 1) * size),
                    ) {
                        y.copy_from_slice(x);
                    }
                }
            }
        }
    });
}

fn copy_strided<const N: usize>(from: &[u8], step_in: usize, to: &mut [u8], step_out: usize, length: usize) {
    let (from, _) = from.as_chunks::<N>();
    let (to, _) = to.as_chunks_mut::<N>();
    for (x, y) in from.iter().step_by(step_in).zip(to.iter_mut().step_by(step_out)).take(length) {
        *y = *x;
    }
}

/// Fill a box with one element.
pub(crate) fn fill_box(extents: &[usize], to: &mut [u8], target: &Layout, element: &[u8]) {
    let size = element.len();
    let (extents, _, target) = collapse(extents, target, target);
    let (length, step) = (extents.last().copied().unwrap_or(1), target.strides.last().copied().unwrap_or(1));
    for_each_row(&extents, &target, &target, |_, b| {
        let out = to.get_mut(b * size..).unwrap_or_default();
        if step == 1 {
            fill(out.get_mut(..length * size).unwrap_or_default(), element);
        } else {
            out.chunks_mut(size.max(1)).step_by(step).take(length).for_each(|y| y.copy_from_slice(element));
        }
    });
}

/// Fill whole elements with one.
pub(crate) fn fill(to: &mut [u8], element: &[u8]) {
    match element.split_first() {
        None => {}
        Some((first, rest)) if rest.iter().all(|b| b == first) => to.fill(*first),
        Some(_) => to.chunks_exact_mut(element.len()).for_each(|y| y.copy_from_slice(element)),
    }
}

/// Positions (source, target) of every element, for elements that have lengths of their own.
pub(crate) fn for_each_cell(extents: &[usize], source: &Source, target: &Layout, mut cell: impl FnMut(usize, usize)) {
    let step_out = target.strides.last().copied().unwrap_or(1);
    match source {
        Source::Box(source) => {
            let length = extents.last().copied().unwrap_or(1);
            let step_in = source.strides.last().copied().unwrap_or(1);
            for_each_row(extents, source, target, |a, b| {
                (0..length).for_each(|i| cell(a + i * step_in, b + i * step_out));
            });
        }
        Source::Listed(lists) => for_each_listed_row(lists, target, |from, to, offsets| {
            offsets.iter().enumerate().for_each(|(i, offset)| cell(from + offset, to + i * step_out));
        }),
    }
}

/// Whether some element of a box satisfies `holds`.
pub(crate) fn any_cell(extents: &[usize], target: &Layout, holds: impl Fn(usize) -> bool) -> bool {
    let mut found = false;
    let (length, step) = (extents.last().copied().unwrap_or(1), target.strides.last().copied().unwrap_or(1));
    for_each_row(extents, target, target, |_, b| found = found || (0..length).any(|i| holds(b + i * step)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_copied_and_transposed() {
        // Source 3×4×2 of u16 numbered in C order; take [1..3, 1..4, 0..2] into an array laid out as (axis 2, axis 0, axis 1).
        let from: Vec<u8> = (0..24u16).flat_map(u16::to_ne_bytes).collect();
        let source = Layout { offset: 8 + 2, strides: strides(&[3, 4, 2]) };
        let target = Layout { offset: 0, strides: vec![3, 1, 6] };
        let mut to = vec![0u8; 24];
        copy_box(&[2, 3, 2], &from, &source, &mut to, &target, 2);
        let got: Vec<u16> = to.chunks(2).map(|b| u16::from_ne_bytes([b[0], b[1]])).collect();
        assert_eq!(got, [10, 12, 14, 18, 20, 22, 11, 13, 15, 19, 21, 23]);
        let mut seen = vec![];
        for_each_cell(&[2, 3, 2], &Source::Box(source), &target, |a, b| seen.push((b, u16::try_from(a).unwrap())));
        seen.sort_unstable();
        assert_eq!(seen.into_iter().map(|(_, a)| a).collect::<Vec<_>>(), got);
    }

    #[test]
    fn listed_cells_are_gathered() {
        // Rows 2 and 0, columns 3, 0 and 1 of a 3×4 array, and the same laid out the other way round.
        let from: Vec<u8> = (0..12u16).flat_map(u16::to_ne_bytes).collect();
        let lists = vec![vec![8, 0], vec![3, 0, 1]];
        for (strides, want) in [(vec![3, 1], [11, 8, 9, 3, 0, 1]), (vec![1, 2], [11, 3, 8, 0, 9, 1])] {
            let target = Layout { offset: 0, strides };
            let mut to = vec![0u8; 12];
            copy_listed(&lists, &from, &mut to, &target, 2);
            let got: Vec<u16> = to.chunks(2).map(|b| u16::from_ne_bytes([b[0], b[1]])).collect();
            assert_eq!(got, want);
            let mut seen = vec![];
            for_each_cell(&[2, 3], &Source::Listed(lists.clone()), &target, |a, b| seen.push((b, a)));
            seen.sort_unstable();
            assert_eq!(seen.into_iter().map(|(_, a)| a).collect::<Vec<_>>(), want.map(usize::from));
        }
        let target = Layout { offset: 1, strides: vec![3, 1] };
        assert!(any_cell(&[2, 2], &target, |i| i == 5) && !any_cell(&[2, 2], &target, |i| i == 3));
    }

    #[test]
    fn contiguous_boxes_are_one_row() {
        let a = Layout { offset: 0, strides: strides(&[3, 4]) };
        assert_eq!(collapse(&[3, 4], &a, &a).0, [12]);
        let wide = Layout { offset: 0, strides: strides(&[3, 9]) };
        assert_eq!(collapse(&[3, 4], &a, &wide).0, [3, 4]);
        let mut to = vec![0u8; 4];
        copy_box(
            &[],
            &[1, 2, 3, 4],
            &Layout { offset: 0, strides: vec![] },
            &mut to,
            &Layout { offset: 0, strides: vec![] },
            4,
        );
        assert_eq!(to, [1, 2, 3, 4]);
    }

    #[test]
    fn boxes_are_filled() {
        let mut to = vec![0u8; 24];
        fill_box(&[2, 2], &mut to, &Layout { offset: 1, strides: strides(&[3, 4]) }, &[1, 2]);
        assert_eq!(to, [0, 0, 1, 2, 1, 2, 0, 0, 0, 0, 1, 2, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        fill_box(&[0, 2], &mut to, &Layout { offset: 0, strides: strides(&[3, 4]) }, &[9, 9]);
        assert_eq!(to[0], 0);
    }
}
