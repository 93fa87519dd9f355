//! Elements of arrays as they are stored.

use fastrand::Rng;
use half::f16;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Int {
        bytes: usize,
        signed: bool,
    },
    Float(usize),
    /// Text of any length.
    Text,
    /// Text of so many bytes, NUL-padded; in format 2.
    Bytes(usize),
    /// Text of so many UTF-32 characters, NUL-padded.
    Utf32(usize),
    /// Ticks of numpy's datetime64: unit, and ticks a value.
    Time(&'static str, i64),
}

impl Type {
    /// Bytes of an element; 0 where each has its own.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Int { bytes, .. } | Self::Float(bytes) | Self::Bytes(bytes) => bytes,
            Self::Utf32(characters) => 4 * characters,
            Self::Text => 0,
            Self::Time(..) => 8,
        }
    }
}

/// An element as stored.
#[derive(Debug, Clone)]
pub(crate) enum Element {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl Element {
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Bool(b) => json!(b),
            Self::Int(i) => json!(i),
            Self::Float(x) if x.is_nan() => json!("NaN"),
            Self::Float(x) if x.is_infinite() => json!(if *x > 0.0 { "Infinity" } else { "-Infinity" }),
            Self::Float(x) => json!(x),
            Self::Text(s) => json!(s),
        }
    }

    /// Native bytes, as zarrs takes them.
    pub(crate) fn bytes(&self, data_type: Type) -> Vec<u8> {
        match (self, data_type) {
            (Self::Bool(b), _) => vec![u8::from(*b)],
            // Unsigned 64-bit integers wrap.
            (Self::Int(i), _) => i.to_ne_bytes()[..data_type.size()].to_vec(),
            (Self::Float(x), Type::Float(2)) => f16::from_f64(*x).to_ne_bytes().to_vec(),
            #[expect(clippy::cast_possible_truncation, reason = "the nearest f32 is meant")]
            (Self::Float(x), Type::Float(4)) => (*x as f32).to_ne_bytes().to_vec(),
            (Self::Float(x), _) => x.to_ne_bytes().to_vec(),
            (Self::Text(s), Type::Utf32(n)) => {
                let mut characters: Vec<u32> = s.chars().map(u32::from).collect();
                characters.resize(n, 0);
                characters.iter().flat_map(|c| c.to_ne_bytes()).collect()
            }
            (Self::Text(s), _) => {
                let mut bytes = s.clone().into_bytes();
                bytes.resize(data_type.size(), 0);
                bytes
            }
        }
    }

    /// The text, where it is one.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(s) => s,
            _ => "",
        }
    }
}

/// Any of these.
pub(crate) fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())].clone()
}

/// True in `percent` of a hundred.
pub(crate) fn chance(rng: &mut Rng, percent: u8) -> bool {
    rng.u8(..100) < percent
}
