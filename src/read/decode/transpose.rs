//! The `transpose` codec (zarr-specs, codecs/transpose): axis `i` of the encoded array is axis `order[i]` of the
//! decoded one.

use super::walk::{Axis, copy_run, for_each};

/// Elements along each side of the tiles in which elements change places, so that cache lines are read and written
/// whole. Measured: 3 GB/s of `float32`, with any strides; without tiles powers of two take 4 times as long.
const TILE: usize = 64;
/// Below this a tile is not worth its copy.
const THIN: usize = 16;

/// The shape of the encoded array, or why there is none.
pub(super) fn encoded_shape(order: &[usize], shape: &[u64]) -> Result<Vec<u64>, String> {
    if order.len() != shape.len() {
        return Err(format!("the order of {} axes does not fit an array of {}", order.len(), shape.len()));
    }
    order.iter().map(|&axis| shape.get(axis).copied().ok_or_else(|| format!("there is no axis {axis}"))).collect()
}

/// Write the elements of the encoded array in the order of the decoded one. Both have as many bytes as `shape` and
/// `size` say.
pub(super) fn decode(
    order: &[usize],
    shape: &[u64],
    size: usize,
    encoded: &[u8],
    out: &mut [u8],
) -> Result<(), String> {
    let axes = axes(order, shape)?;
    if out.is_empty() {
        return Ok(());
    }
    match size {
        1 => permute::<1>(&axes, encoded, out),
        2 => permute::<2>(&axes, encoded, out),
        4 => permute::<4>(&axes, encoded, out),
        8 => permute::<8>(&axes, encoded, out),
        16 => permute::<16>(&axes, encoded, out),
        _ => permute_any(&axes, size, encoded, out),
    }
    Ok(())
}

/// Where each element of the decoded array lies in the encoded one, in elements.
pub(super) fn positions(order: &[usize], shape: &[u64]) -> Result<Vec<usize>, String> {
    let axes = axes(order, shape)?;
    let count = axes.iter().map(|axis| axis.len).product();
    let mut positions = vec![0; count];
    if count == 0 {
        return Ok(positions);
    }
    for_each_run(&axes, |encoded, decoded, run| {
        for (i, position) in positions.iter_mut().skip(decoded).take(run.len).enumerate() {
            *position = encoded + i * run.from;
        }
    });
    Ok(positions)
}

/// The axes of the decoded array (`to`) with their strides in the encoded one (`from`); axes that stay neighbours are
/// merged, and at least one is left.
fn axes(order: &[usize], shape: &[u64]) -> Result<Vec<Axis>, String> {
    let encoded_shape = encoded_shape(order, shape)?;
    let overflow = || "its shape is too large".to_owned();
    let mut encoded = vec![0; shape.len()];
    let mut stride = 1_usize;
    for (&axis, &len) in order.iter().zip(&encoded_shape).rev() {
        if let Some(target) = encoded.get_mut(axis) {
            *target = stride;
        }
        stride = usize::try_from(len).ok().and_then(|len| stride.checked_mul(len)).ok_or_else(overflow)?;
    }
    let mut axes: Vec<Axis> = Vec::with_capacity(shape.len().max(1));
    let mut decoded = 1_usize;
    for (&len, &encoded) in shape.iter().zip(&encoded).rev() {
        let len = usize::try_from(len).map_err(|_| overflow())?;
        if len != 1 {
            match axes.last_mut() {
                Some(inner) if inner.from * inner.len == encoded => inner.len *= len,
                _ => axes.push(Axis { len, from: encoded, to: decoded }),
            }
        }
        decoded = decoded.checked_mul(len).ok_or_else(overflow)?;
    }
    if axes.is_empty() {
        axes.push(Axis { len: 1, from: 1, to: 1 });
    }
    axes.reverse();
    Ok(axes)
}

/// Call with the position in the encoded and in the decoded array of each run along the last axis.
fn for_each_run(axes: &[Axis], mut call: impl FnMut(usize, usize, Axis)) {
    if let Some((&run, outer)) = axes.split_last() {
        for_each(outer, |encoded, decoded| call(encoded, decoded, run));
    }
}

/// Permute elements of `N` bytes.
fn permute<const N: usize>(axes: &[Axis], encoded: &[u8], out: &mut [u8]) {
    let (encoded, out) = (encoded.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    let Some((&run, outer)) = axes.split_last() else { return };
    if run.from == 1 {
        for_each_run(axes, |start, decoded, run| copy_run(encoded, out, start, decoded, run.len));
        return;
    }
    // The axis along which the encoded array lies contiguous, if the last is not that one: the two are walked in tiles.
    let Some(across) = outer.iter().position(|axis| axis.from == 1) else {
        for_each_run(axes, |start, decoded, run| gather(encoded, out, start, decoded, run));
        return;
    };
    let mut outer = outer.to_vec();
    let rows = outer.remove(across);
    if rows.len < THIN || run.len < THIN {
        outer.push(rows);
        for_each(&outer, |start, decoded| gather(encoded, out, start, decoded, run));
        return;
    }
    let side = if N < 16 { TILE } else { TILE / 2 };
    let mut tile = [[[0; N]; TILE]; TILE];
    for_each(&outer, |start, decoded| {
        for first_row in (0..rows.len).step_by(side) {
            let height = side.min(rows.len - first_row);
            for first in (0..run.len).step_by(side) {
                let width = side.min(run.len - first);
                let (from, to) = (start + first_row + first * run.from, decoded + first_row * rows.to + first);
                for (i, line) in tile.iter_mut().enumerate().take(width) {
                    copy_run(encoded, line, from + i * run.from, 0, height);
                }
                for row in 0..height {
                    let target =
                        out.get_mut(to + row * rows.to..).and_then(|rest| rest.get_mut(..width)).unwrap_or_default();
                    for (target, line) in target.iter_mut().zip(&tile) {
                        *target = line.get(row).copied().unwrap_or([0; N]);
                    }
                }
            }
        }
    });
}

fn gather<T: Copy>(encoded: &[T], out: &mut [T], from: usize, to: usize, run: Axis) {
    let source = encoded.get(from..).unwrap_or_default().iter().step_by(run.from.max(1));
    for (target, value) in out.get_mut(to..to + run.len).unwrap_or_default().iter_mut().zip(source) {
        *target = *value;
    }
}

/// Permute elements of any size.
fn permute_any(axes: &[Axis], size: usize, encoded: &[u8], out: &mut [u8]) {
    for_each_run(axes, |start, decoded, run| {
        for i in 0..run.len {
            copy_run(encoded, out, (start + i * run.from) * size, (decoded + i) * size, size);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, element by element.
    fn by_definition(order: &[usize], shape: &[u64], size: usize, decoded: &[u8]) -> Vec<u8> {
        let shape: Vec<usize> = shape.iter().map(|&n| usize::try_from(n).unwrap()).collect();
        let encoded_shape: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let mut encoded = Vec::new();
        for mut i in 0..shape.iter().product::<usize>() {
            let mut index = vec![0; shape.len()];
            for (&axis, &len) in order.iter().zip(&encoded_shape).rev() {
                index[axis] = i % len;
                i /= len;
            }
            let at = index.iter().zip(&shape).fold(0, |at, (i, len)| at * len + i);
            encoded.extend_from_slice(&decoded[at * size..(at + 1) * size]);
        }
        encoded
    }

    #[test]
    fn every_order_of_four_axes() {
        let orders = (0..256)
            .map(|n| vec![n & 3, n >> 2 & 3, n >> 4 & 3, n >> 6])
            .filter(|order| (0..4).all(|axis| order.contains(&axis)));
        for order in orders {
            for shape in [[2, 3, 4, 5], [1, 35, 1, 33], [40, 1, 2, 37], [1, 1, 1, 1]] {
                for size in [1, 2, 3, 4, 8, 12, 16] {
                    let count = shape.iter().product::<u64>() * size;
                    let decoded: Vec<u8> = (0..count).map(|i| u8::try_from(i * i % 251).unwrap()).collect();
                    let size = usize::try_from(size).unwrap();
                    let encoded = by_definition(&order, &shape, size, &decoded);
                    let mut out = vec![0; decoded.len()];
                    decode(&order, &shape, size, &encoded, &mut out).unwrap();
                    assert!(out == decoded, "{order:?} {shape:?} {size}");
                    let positions = positions(&order, &shape).unwrap();
                    assert!(
                        positions
                            .iter()
                            .zip(decoded.chunks(size))
                            .all(|(&at, element)| &encoded[at * size..][..size] == element)
                    );
                }
            }
        }
    }

    #[test]
    fn few_or_no_elements() {
        let mut out = [0; 4];
        decode(&[], &[], 4, &[1, 2, 3, 4], &mut out).unwrap();
        assert_eq!(out, [1, 2, 3, 4]);
        decode(&[1, 0], &[0, 5], 4, &[], &mut []).unwrap();
        decode(&[1, 0], &[5, 0], 4, &[], &mut []).unwrap();
        decode(&[1, 0], &[5, 1], 0, &[], &mut []).unwrap();
        assert_eq!(positions(&[1, 0], &[2, 0]), Ok(vec![]));
    }

    #[test]
    fn shape_must_fit() {
        assert!(encoded_shape(&[1, 0], &[2]).is_err());
        assert!(decode(&[1, 0], &[1 << 40, 1 << 40], 1, &[], &mut []).is_err());
        decode(&[1, 0], &[1 << 63, 0], 1, &[], &mut []).unwrap();
    }

    #[test]
    fn axes_are_merged() {
        assert_eq!(axes(&[0, 1, 2], &[2, 3, 4]).unwrap(), [Axis { len: 24, from: 1, to: 1 }]);
        assert_eq!(
            axes(&[2, 0, 1], &[2, 3, 4]).unwrap(),
            [Axis { len: 6, from: 1, to: 4 }, Axis { len: 4, from: 6, to: 1 }]
        );
    }
}
