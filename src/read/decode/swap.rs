//! Byte order.

/// Reverse the bytes of each unit in place: of 2, 4, 8 or 16 bytes, else nothing.
pub(super) fn swap(unit: usize, bytes: &mut [u8]) {
    match unit {
        2 => swap_units::<2>(bytes, |unit| u16::from_ne_bytes(unit).swap_bytes().to_ne_bytes()),
        4 => swap_units::<4>(bytes, |unit| u32::from_ne_bytes(unit).swap_bytes().to_ne_bytes()),
        8 => swap_units::<8>(bytes, |unit| u64::from_ne_bytes(unit).swap_bytes().to_ne_bytes()),
        16 => swap_units::<16>(bytes, |unit| u128::from_ne_bytes(unit).swap_bytes().to_ne_bytes()),
        _ => {}
    }
}

fn swap_units<const N: usize>(bytes: &mut [u8], swap: impl Fn([u8; N]) -> [u8; N]) {
    for unit in bytes.as_chunks_mut::<N>().0 {
        *unit = swap(*unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        for (unit, expected) in [
            (1, [0, 1, 2, 3, 4, 5, 6, 7]),
            (2, [1, 0, 3, 2, 5, 4, 7, 6]),
            (4, [3, 2, 1, 0, 7, 6, 5, 4]),
            (8, [7, 6, 5, 4, 3, 2, 1, 0]),
        ] {
            let mut bytes = [0, 1, 2, 3, 4, 5, 6, 7];
            swap(unit, &mut bytes);
            assert_eq!(bytes, expected);
        }
    }
}
