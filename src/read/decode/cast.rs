//! Arithmetic on whole arrays of numbers, as numpy does it.

#![expect(
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "wrapping, rounding and cutting off is what these conversions are for"
)]

use std::array;

use half::f16;

use super::number::Number;

/// Numbers that are converted at a time, on the stack.
const BATCH: usize = 256;

/// Run an expression for the Rust type of a number type.
macro_rules! for_number {
    ($number:expr, $type:ident => $body:expr) => {
        match $number {
            Number::Bool => {
                type $type = Flag;
                $body
            }
            Number::Int8 => {
                type $type = i8;
                $body
            }
            Number::Int16 => {
                type $type = i16;
                $body
            }
            Number::Int32 => {
                type $type = i32;
                $body
            }
            Number::Int64 => {
                type $type = i64;
                $body
            }
            Number::UInt8 => {
                type $type = u8;
                $body
            }
            Number::UInt16 => {
                type $type = u16;
                $body
            }
            Number::UInt32 => {
                type $type = u32;
                $body
            }
            Number::UInt64 => {
                type $type = u64;
                $body
            }
            Number::Float16 => {
                type $type = f16;
                $body
            }
            Number::Float32 => {
                type $type = f32;
                $body
            }
            Number::Float64 => {
                type $type = f64;
                $body
            }
        }
    };
}

/// Convert numbers as numpy's `astype` does: integers wrap, floats are rounded to the nearest float and cut off towards
/// zero to integers. Floats that the integer type cannot hold become its nearest value, and NaN 0 (C leaves both
/// undefined, and numpy with it).
pub(super) fn cast(from: Number, to: Number, encoded: &[u8], out: &mut [u8]) {
    if from == to {
        for (out, byte) in out.iter_mut().zip(encoded) {
            *out = *byte;
        }
    } else if from.is_float() {
        map(from, to, encoded, out, |wide: f64| wide);
    } else if from == Number::UInt64 {
        map(from, to, encoded, out, |wide: u64| wide);
    } else {
        map(from, to, encoded, out, |wide: i64| wide);
    }
}

/// `encoded / scale + offset` as numpy computes it: in the type of the encoded numbers where that is a float, else as
/// 64-bit floats.
pub(super) fn scale_offset(from: Number, to: Number, scale: f64, offset: f64, encoded: &[u8], out: &mut [u8]) {
    match from {
        Number::Float32 => {
            let (scale, offset) = (scale as f32, offset as f32);
            map(from, to, encoded, out, |wide: f64| f64::from(wide as f32 / scale + offset));
        }
        Number::Float16 => {
            let (scale, offset) = (f16::from_f64(scale), f16::from_f64(offset));
            map(from, to, encoded, out, |wide: f64| (f16::from_f64(wide) / scale + offset).to_f64());
        }
        _ => map(from, to, encoded, out, |wide: f64| wide / scale + offset),
    }
}

/// The sum of all numbers up to each one, as numpy's `cumsum` computes it into an array of type `to`: in the type that
/// both are promoted to. Integers wrap, floats are added one by one.
pub(super) fn cumulate(from: Number, to: Number, encoded: &[u8], out: &mut [u8]) {
    match sum_type(from, to) {
        Number::Float64 if to != Number::Float64 => {
            let mut sum = -0.0;
            map(from, to, encoded, out, |wide: f64| {
                sum += wide;
                sum
            });
        }
        Number::Float32 if to != Number::Float32 => {
            let mut sum = -0.0_f32;
            map(from, to, encoded, out, |wide: f64| {
                sum += wide as f32;
                f64::from(sum)
            });
        }
        _ => {
            cast(from, to, encoded, out);
            accumulate(to, out);
        }
    }
}

/// `numpy.result_type` for sums into `to`.
fn sum_type(from: Number, to: Number) -> Number {
    let float = match from {
        Number::Bool | Number::Int8 | Number::UInt8 => Number::Float16,
        Number::Int16 | Number::UInt16 => Number::Float32,
        Number::Int32 | Number::UInt32 | Number::Int64 | Number::UInt64 => Number::Float64,
        float => float,
    };
    if to.is_float() && float.size() > to.size() { float } else { to }
}

fn accumulate(number: Number, bytes: &mut [u8]) {
    for_number!(number, T => {
        let mut sum = T::ZERO;
        for chunk in T::chunks_mut(bytes) {
            sum = sum.plus(T::unpack(*chunk));
            *chunk = sum.pack();
        }
    });
}

/// Convert by way of a wide type, batch after batch.
fn map<W: Wide>(from: Number, to: Number, encoded: &[u8], out: &mut [u8], mut function: impl FnMut(W) -> W) {
    for (encoded, out) in encoded.chunks(BATCH * from.size()).zip(out.chunks_mut(BATCH * to.size())) {
        let mut wide: [W; BATCH] = array::from_fn(|_| W::default());
        widen(from, encoded, &mut wide);
        for wide in &mut wide {
            *wide = function(*wide);
        }
        narrow(to, &wide, out);
    }
}

fn widen<W: Wide>(from: Number, encoded: &[u8], wide: &mut [W]) {
    for_number!(from, T => {
        for (wide, chunk) in wide.iter_mut().zip(T::chunks(encoded)) {
            *wide = W::widen(T::unpack(*chunk));
        }
    });
}

fn narrow<W: Wide>(to: Number, wide: &[W], out: &mut [u8]) {
    for_number!(to, T => {
        for (chunk, wide) in T::chunks_mut(out).iter_mut().zip(wide) {
            *chunk = wide.narrow::<T>().pack();
        }
    });
}

/// A bool of numpy, true where the byte is not 0.
#[derive(Clone, Copy)]
struct Flag(bool);

/// An element of an array.
trait Element: Copy {
    /// Its native bytes.
    type Packed: Copy;
    /// The neutral element of addition.
    const ZERO: Self;
    fn unpack(bytes: Self::Packed) -> Self;
    fn pack(self) -> Self::Packed;
    fn chunks(bytes: &[u8]) -> &[Self::Packed];
    fn chunks_mut(bytes: &mut [u8]) -> &mut [Self::Packed];
    fn plus(self, other: Self) -> Self;
    fn to_f64(self) -> f64;
    fn to_i64(self) -> i64;
    fn to_u64(self) -> u64;
    fn from_f64(wide: f64) -> Self;
    fn from_i64(wide: i64) -> Self;
    fn from_u64(wide: u64) -> Self;
}

/// A type that conversions pass through.
trait Wide: Copy + Default {
    fn widen<T: Element>(value: T) -> Self;
    fn narrow<T: Element>(self) -> T;
}

macro_rules! wide {
    ($type:ty, $to:ident, $from:ident) => {
        impl Wide for $type {
            fn widen<T: Element>(value: T) -> Self {
                value.$to()
            }
            fn narrow<T: Element>(self) -> T {
                T::$from(self)
            }
        }
    };
}
wide!(f64, to_f64, from_f64);
wide!(i64, to_i64, from_i64);
wide!(u64, to_u64, from_u64);

macro_rules! element {
    ($type:ty, $size:literal, zero $zero:expr, plus $plus:expr, unpack $unpack:expr, pack $pack:expr, to $value:ident $to:expr, from $wide:ident $from:expr) => {
        impl Element for $type {
            type Packed = [u8; $size];
            const ZERO: Self = $zero;
            fn unpack(bytes: [u8; $size]) -> Self {
                $unpack(bytes)
            }
            fn pack(self) -> [u8; $size] {
                $pack(self)
            }
            fn chunks(bytes: &[u8]) -> &[[u8; $size]] {
                bytes.as_chunks().0
            }
            fn chunks_mut(bytes: &mut [u8]) -> &mut [[u8; $size]] {
                bytes.as_chunks_mut().0
            }
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
            fn to_f64(self) -> f64 {
                let $value = self;
                $to as f64
            }
            fn to_i64(self) -> i64 {
                let $value = self;
                $to as i64
            }
            fn to_u64(self) -> u64 {
                let $value = self;
                $to as u64
            }
            fn from_f64($wide: f64) -> Self {
                $from
            }
            fn from_i64($wide: i64) -> Self {
                $from
            }
            fn from_u64($wide: u64) -> Self {
                $from
            }
        }
    };
    ($type:ty, $size:literal, zero $zero:expr, plus $plus:expr) => {
        element!($type, $size, zero $zero, plus $plus, unpack Self::from_ne_bytes, pack Self::to_ne_bytes, to value value, from wide wide as Self);
    };
}
element!(i8, 1, zero 0, plus Self::wrapping_add);
element!(i16, 2, zero 0, plus Self::wrapping_add);
element!(i32, 4, zero 0, plus Self::wrapping_add);
element!(i64, 8, zero 0, plus Self::wrapping_add);
element!(u8, 1, zero 0, plus Self::wrapping_add);
element!(u16, 2, zero 0, plus Self::wrapping_add);
element!(u32, 4, zero 0, plus Self::wrapping_add);
element!(u64, 8, zero 0, plus Self::wrapping_add);
// The sum of nothing is -0, so that a first -0 stays what it is.
element!(f32, 4, zero -0.0, plus std::ops::Add::add);
element!(f64, 8, zero -0.0, plus std::ops::Add::add);
element!(
    f16, 2, zero f16::NEG_ZERO, plus std::ops::Add::add,
    unpack Self::from_ne_bytes, pack Self::to_ne_bytes, to value value.to_f64(), from wide Self::from_f64(wide as f64)
);
element!(
    Flag, 1, zero Flag(false), plus |a: Flag, b: Flag| Flag(a.0 | b.0),
    unpack |[byte]: [u8; 1]| Flag(byte != 0), pack |flag: Flag| [u8::from(flag.0)], to value u8::from(value.0), from wide Flag(wide as f64 != 0.0)
);

#[cfg(test)]
mod tests {
    use super::{super::testing::native, *};

    fn cast_i32(to: Number, values: &[i32]) -> Vec<u8> {
        let mut out = vec![0; values.len() * to.size()];
        cast(Number::Int32, to, &native(values, i32::to_ne_bytes), &mut out);
        out
    }

    #[test]
    fn integers_wrap_and_widen() {
        let values = [0, -1, 300, i32::MIN];
        assert_eq!(cast_i32(Number::UInt8, &values), [0, 255, 44, 0]);
        assert_eq!(cast_i32(Number::Int64, &values), native(&[0, -1, 300, i64::from(i32::MIN)], i64::to_ne_bytes));
        assert_eq!(cast_i32(Number::Float32, &values), native(&[0., -1., 300., -2_147_483_648_f32], f32::to_ne_bytes));
        assert_eq!(cast_i32(Number::Bool, &values), [0, 1, 1, 1]);
        assert_eq!(cast_i32(Number::Int32, &values), native(&values, i32::to_ne_bytes));
        let mut out = [0; 8];
        cast(Number::UInt64, Number::Float64, &u64::MAX.to_ne_bytes(), &mut out);
        assert_eq!(out, 18_446_744_073_709_551_615_f64.to_ne_bytes());
    }

    #[test]
    fn floats_are_rounded_or_cut_off() {
        let mut out = [0; 10];
        let values = native(&[1.9, -1.9, 1e300, f64::NAN, 65519.9], f64::to_ne_bytes);
        cast(Number::Float64, Number::Int16, &values, &mut out);
        assert_eq!(out[..], native(&[1, -1, i16::MAX, 0, i16::MAX], i16::to_ne_bytes));
        cast(Number::Float64, Number::Float16, &values, &mut out);
        assert_eq!(f16::from_ne_bytes([out[8], out[9]]), f16::MAX);
    }

    #[test]
    fn more_than_a_batch() {
        let values: Vec<i32> = (0..1000).collect();
        assert_eq!(cast_i32(Number::Int16, &values), native(&(0..1000).collect::<Vec<i16>>(), i16::to_ne_bytes));
    }

    #[test]
    fn scale_and_offset_in_the_type_of_the_encoded_numbers() {
        let mut out = [0; 8];
        scale_offset(Number::UInt8, Number::Float64, 10.0, 1000.0, &[7], &mut out);
        assert_eq!(out, (7.0 / 10.0 + 1000_f64).to_ne_bytes());
        // np.float32(7) / 10 + 273.15 is np.float32(273.85), np.float16(7) / 10 + 273.15 is np.float16(274).
        scale_offset(Number::Float32, Number::Float64, 10.0, 273.15, &7_f32.to_ne_bytes(), &mut out);
        assert_eq!(out, f64::from(273.85_f32).to_ne_bytes());
        scale_offset(Number::Float16, Number::Float64, 10.0, 273.15, &f16::from_f32(7.0).to_ne_bytes(), &mut out);
        assert_eq!(out, 274_f64.to_ne_bytes());
    }

    #[test]
    fn sums() {
        let sum = |from: Number, to: Number, encoded: &[u8]| {
            let mut out = vec![0; encoded.len() / from.size() * to.size()];
            cumulate(from, to, encoded, &mut out);
            out
        };
        assert_eq!(sum(Number::Int8, Number::Int8, &[100, 100, 100]), native(&[100, -56, 44_i8], i8::to_ne_bytes));
        let floats = native(&[0.1, 0.2, 0.3_f32], f32::to_ne_bytes);
        assert_eq!(
            sum(Number::Float32, Number::Float32, &floats),
            native(&[0.1, 0.1 + 0.2, 0.1_f32 + 0.2 + 0.3], f32::to_ne_bytes)
        );
        assert_eq!(sum(Number::Float64, Number::Float64, &(-0.0_f64).to_ne_bytes()), (-0.0_f64).to_ne_bytes());
        // np.cumsum(np.array([2**24, 1, 1], "i4"), out=np.empty(3, "f4")) adds as float64.
        let integers = native(&[1 << 24, 1, 1_i32], i32::to_ne_bytes);
        assert_eq!(
            sum(Number::Int32, Number::Float32, &integers),
            native(&[16_777_216.0, 16_777_216.0, 16_777_218.0_f32], f32::to_ne_bytes)
        );
    }
}
