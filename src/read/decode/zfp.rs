//! `numcodecs.zfpy` and `zfp`: blocks of zfp, with a header and without.
//!
//! zfpy writes a full header before the blocks (numcodecs/zfpy.py: `write_header=True`), which says how to decode them.
//! The `zfp` codec of zarrs (`codec.zarrs.dev/array_to_bytes/zfp`) has no header: its configuration says it, and the
//! chunk's shape and type are those of the array; small integers are promoted to 32 bits, as zfp's utility functions
//! do.

use serde_json::Value;

use super::{
    elements,
    number::Number,
    zfp_block::{BitReader, BlockDecoder, Parameters, Scalar},
};
use crate::store::{codec::CodecMetadata, data_type::DataType};

/// `ZFP_MAX_BITS` of zfp.h.
const MAX_BITS: u32 = 16658;
/// `ZFP_MAX_PREC` of zfp.h.
const MAX_PRECISION: u32 = 64;

/// The array → bytes codec.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Zfp {
    name: String,
    number: Number,
    mode: Mode,
}

/// How blocks were encoded.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// The header says it.
    Header,
    /// So many bits a number.
    Rate(f64),
    /// These parameters.
    Fixed(Parameters),
}

/// The fields of a header.
struct Header {
    kind: u64,
    /// The fastest dimension first.
    dimensions: Vec<usize>,
    parameters: Parameters,
}

impl Zfp {
    /// Read the configuration.
    pub(super) fn new(codec: &CodecMetadata, data_type: &DataType) -> Result<Self, String> {
        let name = codec.name.clone();
        let number = Number::of(data_type).filter(|number| !matches!(number, Number::Bool | Number::Float16));
        let number = number.ok_or_else(|| format!("codec `{name}` does not have this data type"))?;
        let mode = if name == "numcodecs.zfpy" { Mode::Header } else { mode(codec)? };
        if mode == Mode::Header && !matches!(number, Number::Int32 | Number::Int64 | Number::Float32 | Number::Float64)
        {
            return Err(format!("codec `{name}` does not have this data type"));
        }
        Ok(Self { name, number, mode })
    }

    /// Decode an array of `shape` into `out`, exactly.
    pub(super) fn decode(&self, encoded: &[u8], shape: &[u64], out: &mut [u8]) -> Result<(), String> {
        self.run(encoded, shape, out).map_err(|reason| format!("codec `{}`: {reason}", self.name))
    }

    fn run(&self, encoded: &[u8], shape: &[u64], out: &mut [u8]) -> Result<(), String> {
        let mut reader = BitReader::new(encoded);
        let (dimensions, parameters) = match self.mode {
            Mode::Header => {
                let header = Header::read(&mut reader)?;
                let kind = match self.number {
                    Number::Int32 => 0,
                    Number::Int64 => 1,
                    Number::Float32 => 2,
                    _ => 3,
                };
                if header.kind != kind {
                    return Err("its header has another data type".to_owned());
                }
                let count = header.dimensions.iter().try_fold(1_usize, |count, &len| count.checked_mul(len));
                if count != Some(elements(shape)?) {
                    return Err(format!(
                        "its header has the dimensions {:?} where the shape is {shape:?}",
                        header.dimensions
                    ));
                }
                (header.dimensions, header.parameters)
            }
            Mode::Rate(rate) => {
                let dimensions = dimensions(shape)?;
                let parameters = at_rate(rate, dimensions.len(), self.number)?;
                (dimensions, parameters)
            }
            Mode::Fixed(parameters) => (dimensions(shape)?, parameters),
        };
        let blocks = Blocks { reader, parameters, dimensions };
        match self.number {
            Number::Float32 => blocks.decode(out, f32::to_ne_bytes),
            Number::Int32 => blocks.decode(out, i32::to_ne_bytes),
            Number::Int64 => blocks.decode(out, i64::to_ne_bytes),
            Number::Float64 => blocks.decode(out, f64::to_ne_bytes),
            // zfp's utility functions `zfp_demote_*`.
            Number::Int8 => {
                blocks.decode(out, |n: i32| i8::try_from((n >> 23).clamp(-0x80, 0x7f)).unwrap_or(0).to_ne_bytes())
            }
            Number::UInt8 => {
                blocks.decode(out, |n: i32| u8::try_from(((n >> 23) + 0x80).clamp(0, 0xff)).unwrap_or(0).to_ne_bytes())
            }
            Number::Int16 => {
                blocks.decode(out, |n: i32| i16::try_from((n >> 15).clamp(-0x8000, 0x7fff)).unwrap_or(0).to_ne_bytes())
            }
            Number::UInt16 => blocks
                .decode(out, |n: i32| u16::try_from(((n >> 15) + 0x8000).clamp(0, 0xffff)).unwrap_or(0).to_ne_bytes()),
            Number::UInt32 => blocks.decode(out, |n: i32| n.max(0).to_ne_bytes()),
            Number::UInt64 => blocks.decode(out, |n: i64| n.max(0).to_ne_bytes()),
            Number::Bool | Number::Float16 => Err("it does not have this data type".to_owned()),
        }
    }
}

/// The blocks of an array, one after the other along the fastest dimension first.
struct Blocks<'a> {
    reader: BitReader<'a>,
    parameters: Parameters,
    dimensions: Vec<usize>,
}

impl Blocks<'_> {
    fn decode<T: Scalar, const N: usize>(self, out: &mut [u8], pack: impl Fn(T) -> [u8; N]) -> Result<(), String> {
        let mut length = [1; 4];
        for (length, &dimension) in length.iter_mut().zip(&self.dimensions) {
            *length = dimension;
        }
        let [nx, ny, nz, nw] = length;
        let (out, _) = out.as_chunks_mut::<N>();
        let mut blocks = BlockDecoder::<T>::new(self.reader, self.parameters, self.dimensions.len());
        for w in (0..nw).step_by(4) {
            for z in (0..nz).step_by(4) {
                for y in (0..ny).step_by(4) {
                    for x in (0..nx).step_by(4) {
                        let rows = blocks.next()?.as_chunks::<4>().0;
                        for (i, row) in rows.iter().enumerate() {
                            let (y, z, w) = (y + i % 4, z + i / 4 % 4, w + i / 16);
                            if y < ny && z < nz && w < nw {
                                let start = ((w * nz + z) * ny + y) * nx;
                                let target = out.get_mut(start + x..start + nx.min(x + 4)).unwrap_or_default();
                                for (target, &value) in target.iter_mut().zip(row) {
                                    *target = pack(value);
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl Header {
    /// `zfp_read_header` with `ZFP_HEADER_FULL`: "zfp", the version of the codec, 52 bits of type and dimensions, 12 or
    /// 64 bits of mode.
    fn read(reader: &mut BitReader) -> Result<Self, String> {
        const VERSION: u64 = 5;
        if reader.read(24) != u64::from_le_bytes(*b"zfp\0\0\0\0\0") {
            return Err("it does not begin as a zfp stream".to_owned());
        }
        let version = reader.read(8);
        if version != VERSION {
            return Err(format!("version {version} of zfp is not supported"));
        }
        let kind = reader.read(2);
        let dimensions = match reader.read(2) {
            0 => vec![48],
            1 => vec![24, 24],
            2 => vec![16, 16, 16],
            _ => vec![12, 12, 12, 12],
        };
        let length = |bits| usize::try_from(reader.read(bits)).ok().and_then(|less_one| less_one.checked_add(1));
        let dimensions: Option<Vec<usize>> = dimensions.into_iter().map(length).collect();
        let parameters = read_mode(reader)?;
        if reader.is_exhausted() {
            return Err("its header is cut off".to_owned());
        }
        Ok(Self { kind, dimensions: dimensions.ok_or("its dimensions are too large")?, parameters })
    }
}

/// `zfp_stream_set_mode`.
fn read_mode(reader: &mut BitReader) -> Result<Parameters, String> {
    let variable = Parameters {
        min_bits: 1,
        max_bits: MAX_BITS,
        max_precision: MAX_PRECISION,
        min_exponent: Parameters::MIN_EXPONENT,
    };
    let small = |bits: u64| u32::try_from(bits).unwrap_or(0);
    let exponent = |bits: u64| i32::try_from(bits).unwrap_or(0);
    let parameters = match reader.read(12) {
        rate @ ..2048 => Parameters { min_bits: small(rate) + 1, max_bits: small(rate) + 1, ..variable },
        precision @ 2048..2176 => Parameters { max_precision: small(precision) + 1 - 2048, ..variable },
        2176 => Parameters { min_exponent: Parameters::MIN_EXPONENT - 1, ..variable },
        accuracy @ 2177..4095 => {
            Parameters { min_exponent: exponent(accuracy) + Parameters::MIN_EXPONENT - 2177, ..variable }
        }
        _ => Parameters {
            min_bits: small(reader.read(15)) + 1,
            max_bits: small(reader.read(15)) + 1,
            max_precision: small(reader.read(7)) + 1,
            min_exponent: exponent(reader.read(15)) - 16495,
        },
    };
    checked(parameters)
}

/// `zfp_stream_set_params`.
fn checked(parameters: Parameters) -> Result<Parameters, String> {
    let Parameters { min_bits, max_bits, max_precision, min_exponent } = parameters;
    if min_bits > max_bits
        || max_bits > 1 << 16
        || !(1..=MAX_PRECISION).contains(&max_precision)
        || min_exponent.abs() > 1 << 16
    {
        return Err(format!("blocks of {min_bits} to {max_bits} bits and precision {max_precision} are not possible"));
    }
    Ok(parameters)
}

/// The dimensions of an array of this shape, the fastest first.
fn dimensions(shape: &[u64]) -> Result<Vec<usize>, String> {
    if !(1..=4).contains(&shape.len()) {
        return Err(format!("it has no arrays of {} dimensions", shape.len()));
    }
    elements(shape)?;
    shape.iter().rev().map(|&len| usize::try_from(len).map_err(|_| "its shape is too large".to_owned())).collect()
}

/// `zfp_stream_set_rate` without alignment.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range as checked")]
fn at_rate(rate: f64, dimensions: usize, number: Number) -> Result<Parameters, String> {
    let least = match number {
        Number::Float32 => 1 + 8,
        Number::Float64 => 1 + 11,
        _ => 1,
    };
    let bits = (f64::from(1_u32 << (2 * dimensions)) * rate + 0.5).floor();
    if !(0.0..=f64::from(MAX_BITS)).contains(&bits) {
        return Err(format!("a rate of {rate} is not possible"));
    }
    let bits = (bits as u32).max(least);
    checked(Parameters {
        min_bits: bits,
        max_bits: bits,
        max_precision: MAX_PRECISION,
        min_exponent: Parameters::MIN_EXPONENT,
    })
}

/// The mode in the configuration of the `zfp` codec.
fn mode(codec: &CodecMetadata) -> Result<Mode, String> {
    let bad = |key: &str, value: Option<&Value>| {
        format!("codec `{}` has the `{key}` {}", codec.name, value.unwrap_or(&Value::Null))
    };
    let float = |key: &str| {
        let value = codec.configuration.get(key);
        value.and_then(Value::as_f64).ok_or_else(|| bad(key, value))
    };
    let integer = |key: &str| {
        let value = codec.configuration.get(key);
        value.and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok()).ok_or_else(|| bad(key, value))
    };
    let natural =
        |key: &str| integer(key).and_then(|n| u32::try_from(n).map_err(|_| bad(key, codec.configuration.get(key))));
    let variable = Parameters {
        min_bits: 1,
        max_bits: MAX_BITS,
        max_precision: MAX_PRECISION,
        min_exponent: Parameters::MIN_EXPONENT,
    };
    let parameters = match codec.configuration.get("mode").and_then(Value::as_str) {
        Some("fixed_rate") => return Ok(Mode::Rate(float("rate")?)),
        Some("fixed_precision") => {
            let precision = natural("precision")?.min(MAX_PRECISION);
            Parameters { max_precision: if precision == 0 { MAX_PRECISION } else { precision }, ..variable }
        }
        Some("fixed_accuracy") => {
            let tolerance = float("tolerance")?;
            Parameters {
                min_exponent: if tolerance > 0.0 { floor_log2(tolerance) } else { Parameters::MIN_EXPONENT },
                ..variable
            }
        }
        Some("reversible") => Parameters { min_exponent: Parameters::MIN_EXPONENT - 1, ..variable },
        Some("expert") => Parameters {
            min_bits: natural("minbits")?,
            max_bits: natural("maxbits")?,
            max_precision: natural("maxprec")?,
            min_exponent: integer("minexp")?,
        },
        _ => return Err(bad("mode", codec.configuration.get("mode"))),
    };
    checked(parameters).map(Mode::Fixed).map_err(|reason| format!("codec `{}`: {reason}", codec.name))
}

/// The power of two at or below a positive number.
fn floor_log2(value: f64) -> i32 {
    let exponent = |value: f64| i32::try_from(value.to_bits() >> 52 & 0x7ff).unwrap_or(0) - 1023;
    // Subnormal numbers are shifted into the range of the others first.
    if value < f64::MIN_POSITIVE { exponent(value * 2_f64.powi(64)) - 64 } else { exponent(value) }
}
