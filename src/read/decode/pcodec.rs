//! `numcodecs.pcodec`: the standalone format of pco (numcodecs/pcodec.py).
//!
//! Bad input can make pco reserve, but not touch, a window of 2²⁴ numbers; nothing else depends on what a file claims.

use std::any::type_name;

use half::f16;
use pco::{
    FULL_BATCH_N,
    data_types::Number as PcoNumber,
    standalone::{DecompressorItem, FileDecompressor},
};

use super::number::Number;

/// The array → bytes codec for numbers of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pcodec(Number);

impl Pcodec {
    /// The codec for such numbers, where pco has them.
    pub(super) fn new(number: Option<Number>) -> Result<Self, String> {
        number
            .filter(|&number| number != Number::Bool)
            .map(Self)
            .ok_or_else(|| "codec `numcodecs.pcodec` needs an array of numbers".to_owned())
    }

    /// Decode into `out`, exactly. Numbers pass through a batch of pco on the stack.
    pub(super) fn decode(self, encoded: &[u8], out: &mut [u8]) -> Result<(), String> {
        match self.0 {
            Number::Int8 => decode(encoded, out, i8::to_ne_bytes),
            Number::Int16 => decode(encoded, out, i16::to_ne_bytes),
            Number::Int32 => decode(encoded, out, i32::to_ne_bytes),
            Number::Int64 => decode(encoded, out, i64::to_ne_bytes),
            Number::Bool | Number::UInt8 => decode(encoded, out, u8::to_ne_bytes),
            Number::UInt16 => decode(encoded, out, u16::to_ne_bytes),
            Number::UInt32 => decode(encoded, out, u32::to_ne_bytes),
            Number::UInt64 => decode(encoded, out, u64::to_ne_bytes),
            Number::Float16 => decode(encoded, out, f16::to_ne_bytes),
            Number::Float32 => decode(encoded, out, f32::to_ne_bytes),
            Number::Float64 => decode(encoded, out, f64::to_ne_bytes),
        }
    }
}

fn decode<T: PcoNumber + Default, const N: usize>(
    encoded: &[u8],
    out: &mut [u8],
    bytes: impl Fn(T) -> [u8; N],
) -> Result<(), String> {
    let bad = |error| format!("codec `numcodecs.pcodec`: bad pco file: {error}");
    let expected = out.len() / N;
    let (mut left, _) = out.as_chunks_mut::<N>();
    let (file, mut source) = FileDecompressor::new(encoded).map_err(bad)?;
    let mut batch = [T::default(); FULL_BATCH_N];
    while let DecompressorItem::Chunk(mut chunk) = file.chunk_decompressor::<T, _>(source).map_err(bad)? {
        if chunk.n() > left.len() {
            return Err(format!(
                "codec `numcodecs.pcodec`: it holds more than {expected} numbers of {}",
                type_name::<T>()
            ));
        }
        loop {
            let progress = chunk.read(&mut batch).map_err(bad)?;
            let (now, later) = left
                .split_at_mut_checked(progress.n_processed)
                .ok_or("codec `numcodecs.pcodec`: it holds too many numbers")?;
            for (target, &number) in now.iter_mut().zip(&batch) {
                *target = bytes(number);
            }
            left = later;
            if progress.finished || progress.n_processed == 0 {
                break;
            }
        }
        source = chunk.into_src();
    }
    if left.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "codec `numcodecs.pcodec`: it holds {} numbers where {expected} are expected",
            expected - left.len()
        ))
    }
}
