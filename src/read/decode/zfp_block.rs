//! Blocks of zfp: 4 numbers along each of 1 to 4 dimensions, decoded from a stream of bits.
//!
//! Written after the description of the algorithm (zfp.readthedocs.io, "Algorithm") and checked against the C library
//! of LLNL, version 1.0, bit by bit. A block is transformed to integers of a common exponent, decorrelated along each
//! dimension, and its coefficients are written plane by plane from the highest bit.

use super::zfp_order::order;

/// Numbers in the largest block.
pub(super) const MAX_BLOCK: usize = 256;

/// Bits of a chunk, the lowest of each 64-bit little-endian word first. Beyond the end all bits are 0.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Byte at which the next word begins.
    next: usize,
    /// Bits of the last word that are not used yet.
    buffer: u64,
    bits: u32,
}

impl<'a> BitReader<'a> {
    /// A reader at the first bit.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, next: 0, buffer: 0, bits: 0 }
    }

    /// Whether more bits were read than there are.
    pub(super) fn is_exhausted(&self) -> bool {
        let unused = self.next.saturating_mul(8).saturating_sub(usize::try_from(self.bits).unwrap_or(0));
        unused > self.bytes.len().saturating_mul(8)
    }

    fn word(&mut self) -> u64 {
        let rest = self.bytes.get(self.next..).unwrap_or_default();
        self.next = self.next.saturating_add(8);
        match rest.first_chunk::<8>() {
            Some(word) => u64::from_le_bytes(*word),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        }
    }

    /// The next bit.
    pub(super) fn bit(&mut self) -> bool {
        if self.bits == 0 {
            self.buffer = self.word();
            self.bits = 64;
        }
        let bit = self.buffer & 1 == 1;
        self.buffer >>= 1;
        self.bits -= 1;
        bit
    }

    /// The next `n` bits, at most 64.
    pub(super) fn read(&mut self, n: u32) -> u64 {
        if n <= self.bits {
            let value = self.buffer & mask(n);
            self.buffer = self.buffer.checked_shr(n).unwrap_or(0);
            self.bits -= n;
            return value;
        }
        let (low, have) = (self.buffer, self.bits);
        self.buffer = self.word();
        self.bits = 64;
        // Fewer than 64 bits were left, or none of `n` would be missing.
        let high = self.buffer & mask(n - have);
        self.buffer = self.buffer.checked_shr(n - have).unwrap_or(0);
        self.bits -= n - have;
        low | high.checked_shl(have).unwrap_or(0)
    }

    fn skip(&mut self, n: u32) {
        let mut left = n;
        while left > 0 {
            let step = left.min(64);
            self.read(step);
            left -= step;
        }
    }
}

fn mask(n: u32) -> u64 {
    u64::MAX.checked_shr(64 - n.min(64)).unwrap_or(0)
}

/// How blocks were encoded (zfp, "Compression modes").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameters {
    /// A block has at least so many bits.
    pub(super) min_bits: u32,
    /// A block has at most so many bits.
    pub(super) max_bits: u32,
    /// Bit planes that are encoded at most.
    pub(super) max_precision: u32,
    /// Exponent of the lowest bit plane that is encoded.
    pub(super) min_exponent: i32,
}

impl Parameters {
    /// `ZFP_MIN_EXP` of zfp.h; anything below asks for the reversible algorithm.
    pub(super) const MIN_EXPONENT: i32 = -1074;

    fn is_reversible(self) -> bool {
        self.min_exponent < Self::MIN_EXPONENT
    }
}

/// An integer as which a block is transformed.
pub(super) trait Integer: Copy + Default {
    /// Its bits.
    const BITS: u32;
    /// Bits of the number of bit planes in the reversible mode.
    const PRECISION_BITS: u32;
    fn from_negabinary(bits: u64) -> Self;
    /// Undo the decorrelating transform of four neighbours.
    fn lift(x: &mut Self, y: &mut Self, z: &mut Self, w: &mut Self);
    /// Undo the reversible one.
    fn lift_reversible(x: &mut Self, y: &mut Self, z: &mut Self, w: &mut Self);
    /// The sign and magnitude that this two's complement stands for.
    fn sign_magnitude(self) -> Self;
}

macro_rules! integer {
    ($signed:ty, $unsigned:ty, $precision_bits:literal) => {
        impl Integer for $signed {
            const BITS: u32 = <$signed>::BITS;
            const PRECISION_BITS: u32 = $precision_bits;
            fn from_negabinary(bits: u64) -> Self {
                const MASK: $unsigned = <$unsigned>::MAX / 3 * 2;
                // The bits beyond the type are 0.
                (<$unsigned>::try_from(bits).unwrap_or(0) ^ MASK).wrapping_sub(MASK).cast_signed()
            }
            fn lift(x: &mut Self, y: &mut Self, z: &mut Self, w: &mut Self) {
                let [mut a, mut b, mut c, mut d] = [*x, *y, *z, *w];
                b = b.wrapping_add(d >> 1);
                d = d.wrapping_sub(b >> 1);
                b = b.wrapping_add(d);
                d = (d << 1).wrapping_sub(b);
                c = c.wrapping_add(a);
                a = (a << 1).wrapping_sub(c);
                b = b.wrapping_add(c);
                c = (c << 1).wrapping_sub(b);
                d = d.wrapping_add(a);
                a = (a << 1).wrapping_sub(d);
                [*x, *y, *z, *w] = [a, b, c, d];
            }
            fn lift_reversible(x: &mut Self, y: &mut Self, z: &mut Self, w: &mut Self) {
                *w = w.wrapping_add(*z);
                *z = z.wrapping_add(*y);
                *w = w.wrapping_add(*z);
                *y = y.wrapping_add(*x);
                *z = z.wrapping_add(*y);
                *w = w.wrapping_add(*z);
            }
            fn sign_magnitude(self) -> Self {
                if self < 0 { self ^ <$signed>::MAX } else { self }
            }
        }
    };
}
integer!(i32, u32, 5);
integer!(i64, u64, 6);

/// A number of an array.
pub(super) trait Scalar: Copy + Default {
    /// The integers as which it is transformed.
    type Integer: Integer;
    /// Bits of the exponent, 0 for an integer.
    const EXPONENT_BITS: u32;
    /// The number that the integer is, or whose bits it has.
    fn from_integer(value: Self::Integer) -> Self;
    /// The integer times 2 to this power.
    fn scaled(value: Self::Integer, exponent: i32) -> Self;
}

macro_rules! integer_scalar {
    ($type:ty) => {
        impl Scalar for $type {
            type Integer = Self;
            const EXPONENT_BITS: u32 = 0;
            fn from_integer(value: Self) -> Self {
                value
            }
            fn scaled(value: Self, _: i32) -> Self {
                value
            }
        }
    };
}
integer_scalar!(i32);
integer_scalar!(i64);

impl Scalar for f32 {
    type Integer = i32;
    const EXPONENT_BITS: u32 = 8;
    fn from_integer(value: i32) -> Self {
        Self::from_bits(value.cast_unsigned())
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "rounded as the C library does")]
    fn scaled(value: i32, exponent: i32) -> Self {
        power_of_two(exponent) as Self * value as Self
    }
}

impl Scalar for f64 {
    type Integer = i64;
    const EXPONENT_BITS: u32 = 11;
    fn from_integer(value: i64) -> Self {
        Self::from_bits(value.cast_unsigned())
    }
    #[expect(clippy::cast_precision_loss, reason = "rounded as the C library does")]
    fn scaled(value: i64, exponent: i32) -> Self {
        power_of_two(exponent) * value as Self
    }
}

/// 2 to this power, 0 where that is too small even for a subnormal number.
fn power_of_two(exponent: i32) -> f64 {
    let biased = exponent.saturating_add(1023);
    let bits = match u64::try_from(biased) {
        Ok(biased) if biased > 0 => biased.min(2047) << 52,
        _ => u32::try_from(exponent.saturating_add(1074)).ok().and_then(|shift| 1_u64.checked_shl(shift)).unwrap_or(0),
    };
    f64::from_bits(bits)
}

/// Decodes block after block.
pub(super) struct BlockDecoder<'a, T: Scalar> {
    reader: BitReader<'a>,
    parameters: Parameters,
    dimensions: usize,
    coefficients: [u64; MAX_BLOCK],
    integers: [T::Integer; MAX_BLOCK],
    block: [T; MAX_BLOCK],
}

impl<'a, T: Scalar> BlockDecoder<'a, T> {
    /// A decoder of the blocks from where the reader stands.
    pub(super) fn new(reader: BitReader<'a>, parameters: Parameters, dimensions: usize) -> Self {
        let integers = [T::Integer::default(); MAX_BLOCK];
        Self {
            reader,
            parameters,
            dimensions,
            coefficients: [0; MAX_BLOCK],
            integers,
            block: [T::default(); MAX_BLOCK],
        }
    }

    /// The next block, or why there is none.
    pub(super) fn next(&mut self) -> Result<&[T], String> {
        let min_bits = self.parameters.min_bits;
        let used = if T::EXPONENT_BITS == 0 { self.integer_block() } else { self.float_block() };
        if used < min_bits {
            self.reader.skip(min_bits - used);
        }
        if self.reader.is_exhausted() {
            return Err("the stream is cut off".to_owned());
        }
        Ok(self.block.get(..self.len()).unwrap_or_default())
    }

    fn len(&self) -> usize {
        order(self.dimensions).len()
    }

    /// Read a block of integers; return how many bits it has.
    fn integer_block(&mut self) -> u32 {
        let used = if self.parameters.is_reversible() {
            self.reversible(0)
        } else {
            self.lossy(0, self.parameters.max_precision)
        };
        self.store(T::from_integer);
        used
    }

    /// Read a block of floats; return how many bits it has.
    fn float_block(&mut self) -> u32 {
        let reversible = self.parameters.is_reversible();
        if !self.reader.bit() {
            let len = self.len();
            self.block.iter_mut().take(len).for_each(|value| *value = T::default());
            return 1;
        }
        if reversible && self.reader.bit() {
            let used = self.reversible(2);
            self.store(|value| T::from_integer(value.sign_magnitude()));
            return used;
        }
        let bias = (1 << (T::EXPONENT_BITS - 1)) - 1;
        let exponent = i32::try_from(self.reader.read(T::EXPONENT_BITS)).unwrap_or(0) - bias;
        let shift = i32::try_from(T::Integer::BITS).unwrap_or(0) - 2;
        if reversible {
            let used = self.reversible(2 + T::EXPONENT_BITS);
            if exponent == -bias {
                self.store(|_| T::default());
            } else {
                self.store(|value| T::scaled(value, exponent - shift));
            }
            return used;
        }
        let dimensions = i32::try_from(self.dimensions).unwrap_or(0);
        let planes = exponent.saturating_sub(self.parameters.min_exponent).saturating_add(2 * dimensions + 2).max(0);
        let used = self.lossy(1 + T::EXPONENT_BITS, self.parameters.max_precision.min(planes.cast_unsigned()));
        self.store(|value| T::scaled(value, exponent - shift));
        used
    }

    fn store(&mut self, convert: impl Fn(T::Integer) -> T) {
        let len = self.len();
        for (target, &value) in self.block.iter_mut().zip(&self.integers).take(len) {
            *target = convert(value);
        }
    }

    /// Read transformed integers after `used` bits of the block; return how many bits it has then.
    fn lossy(&mut self, used: u32, precision: u32) -> u32 {
        let used = used + self.planes(self.parameters.max_bits.wrapping_sub(used), precision);
        self.reorder();
        self.transform(T::Integer::lift);
        used
    }

    /// The same for the reversible transform.
    fn reversible(&mut self, used: u32) -> u32 {
        let used = used + T::Integer::PRECISION_BITS;
        let precision = u32::try_from(self.reader.read(T::Integer::PRECISION_BITS)).unwrap_or(0) + 1;
        let used = used + self.planes(self.parameters.max_bits.wrapping_sub(used), precision);
        self.reorder();
        self.transform(T::Integer::lift_reversible);
        used
    }

    /// Read bit planes of all coefficients, at most `budget` bits; return how many. In each plane the coefficients that
    /// have had a one-bit come first, as they are; for the others it is told again and again whether a one-bit is left,
    /// and the zeros before it.
    fn planes(&mut self, budget: u32, precision: u32) -> u32 {
        let len = self.len();
        let coefficients = self.coefficients.get_mut(..len).unwrap_or_default();
        coefficients.fill(0);
        let count = u32::try_from(len).unwrap_or(0);
        let lowest = T::Integer::BITS.saturating_sub(precision);
        let (mut left, mut seen, mut plane) = (budget, 0, T::Integer::BITS);
        while left > 0 && plane > lowest {
            plane -= 1;
            let known = seen.min(left);
            left -= known;
            for start in (0..known).step_by(64) {
                let mut bits = self.reader.read((known - start).min(64));
                while bits != 0 {
                    set(coefficients, start + bits.trailing_zeros(), plane);
                    bits &= bits - 1;
                }
            }
            while left > 0 && seen < count {
                left -= 1;
                if !self.reader.bit() {
                    break;
                }
                while left > 0 && seen < count - 1 {
                    left -= 1;
                    if self.reader.bit() {
                        break;
                    }
                    seen += 1;
                }
                set(coefficients, seen, plane);
                seen += 1;
            }
        }
        budget - left
    }

    /// Put the coefficients in their places.
    fn reorder(&mut self) {
        for (&place, &coefficient) in order(self.dimensions).iter().zip(&self.coefficients) {
            if let Some(target) = self.integers.get_mut(usize::from(place)) {
                *target = T::Integer::from_negabinary(coefficient);
            }
        }
    }

    /// Transform along each dimension, the slowest first.
    fn transform(&mut self, lift: impl Fn(&mut T::Integer, &mut T::Integer, &mut T::Integer, &mut T::Integer)) {
        let len = self.len();
        let block = self.integers.get_mut(..len).unwrap_or_default();
        along::<64, _>(block, &lift);
        along::<16, _>(block, &lift);
        along::<4, _>(block, &lift);
        along::<1, _>(block, &lift);
    }
}

/// Apply to all groups of four numbers that are `STRIDE` apart.
fn along<const STRIDE: usize, I>(block: &mut [I], lift: impl Fn(&mut I, &mut I, &mut I, &mut I)) {
    for [x, y, z, w] in block.as_chunks_mut::<STRIDE>().0.as_chunks_mut::<4>().0 {
        for (((x, y), z), w) in x.iter_mut().zip(y).zip(z).zip(w) {
            lift(x, y, z, w);
        }
    }
}

fn set(coefficients: &mut [u64], at: u32, plane: u32) {
    if let Some(coefficient) = usize::try_from(at).ok().and_then(|at| coefficients.get_mut(at)) {
        *coefficient |= 1 << plane;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits() {
        let bytes: Vec<u8> = (1..=20).collect();
        let whole = u128::from_le_bytes(bytes[..16].try_into().unwrap());
        for widths in [[1, 63, 64], [5, 64, 3], [64, 64, 0], [0, 33, 40]] {
            let mut reader = BitReader::new(&bytes);
            let mut at = 0;
            for n in widths {
                let expected = whole.checked_shr(at).unwrap_or(0) & ((1 << n) - 1);
                assert_eq!(u128::from(reader.read(n)), expected, "{n} at {at}");
                at += n;
            }
        }
        let mut reader = BitReader::new(&bytes);
        assert_eq!((0..9).map(|_| u8::from(reader.bit())).collect::<Vec<_>>(), [1, 0, 0, 0, 0, 0, 0, 0, 0]);
        reader.skip(160 - 9);
        assert!(!reader.is_exhausted());
        assert!(!reader.bit());
        assert!(reader.is_exhausted());
        assert_eq!(reader.read(64), 0);
    }

    #[test]
    fn powers_of_two() {
        for (exponent, expected) in
            [(0, 1_f64), (-1074, f64::from_bits(1)), (-1075, 0.0), (-1022, f64::MIN_POSITIVE), (1023, 2_f64.powi(1023))]
        {
            assert_eq!(power_of_two(exponent).to_bits(), expected.to_bits(), "{exponent}");
        }
    }

    #[test]
    fn negabinary() {
        // 0, 1, -2, -1, 4
        assert_eq!([0, 1, 2, 3, 4].map(i32::from_negabinary), [0, 1, -2, -1, 4]);
        assert_eq!([0, 1, 2, 3, 4].map(i64::from_negabinary), [0, 1, -2, -1, 4]);
    }
}
