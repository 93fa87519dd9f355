//! The number types of numpy, by name.

use crate::store::data_type::{DataType, Endian};

/// A number type of numpy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// `b1`
    Bool,
    /// `i1`
    Int8,
    /// `i2`
    Int16,
    /// `i4`
    Int32,
    /// `i8`
    Int64,
    /// `u1`
    UInt8,
    /// `u2`
    UInt16,
    /// `u4`
    UInt32,
    /// `u8`
    UInt64,
    /// `f2`
    Float16,
    /// `f4`
    Float32,
    /// `f8`
    Float64,
}

impl Number {
    /// The type that a numpy name such as `<i4`, `|u1`, `f8` or `float32` stands for, and its byte order where it has
    /// one.
    pub(super) fn parse(name: &str) -> Option<(Self, Option<Endian>)> {
        let (endian, kind) = match name.split_at_checked(1)? {
            ("<", kind) => (Some(Endian::Little), kind),
            (">", kind) => (Some(Endian::Big), kind),
            ("=", kind) => (Some(Endian::NATIVE), kind),
            ("|", kind) => (None, kind),
            _ => (None, name),
        };
        let number = match kind {
            "b1" | "bool" => Self::Bool,
            "i1" | "int8" => Self::Int8,
            "i2" | "int16" => Self::Int16,
            "i4" | "int32" => Self::Int32,
            "i8" | "int64" => Self::Int64,
            "u1" | "uint8" => Self::UInt8,
            "u2" | "uint16" => Self::UInt16,
            "u4" | "uint32" => Self::UInt32,
            "u8" | "uint64" => Self::UInt64,
            "f2" | "float16" => Self::Float16,
            "f4" | "float32" => Self::Float32,
            "f8" | "float64" => Self::Float64,
            // Times are counted in 64-bit integers.
            _ if kind.starts_with("M8") || kind.starts_with("m8") => Self::Int64,
            _ => return None,
        };
        Some((number, endian.filter(|_| number.size() > 1)))
    }

    /// The number type of the elements, if they are numbers.
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Bool => Self::Bool,
            DataType::Int8 => Self::Int8,
            DataType::Int16 => Self::Int16,
            DataType::Int32 => Self::Int32,
            DataType::Int64 | DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => Self::Int64,
            DataType::UInt8 => Self::UInt8,
            DataType::UInt16 => Self::UInt16,
            DataType::UInt32 => Self::UInt32,
            DataType::UInt64 => Self::UInt64,
            DataType::Float16 => Self::Float16,
            DataType::Float32 => Self::Float32,
            DataType::Float64 => Self::Float64,
            _ => return None,
        })
    }

    /// Bytes of a number.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Bool | Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 | Self::Float16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 => 8,
        }
    }

    /// The data type of arrays of such numbers.
    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Bool,
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::UInt8 => DataType::UInt8,
            Self::UInt16 => DataType::UInt16,
            Self::UInt32 => DataType::UInt32,
            Self::UInt64 => DataType::UInt64,
            Self::Float16 => DataType::Float16,
            Self::Float32 => DataType::Float32,
            Self::Float64 => DataType::Float64,
        }
    }

    /// Whether it is a floating-point type.
    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::Float16 | Self::Float32 | Self::Float64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let little = Some(Endian::Little);
        for (name, expected) in [
            ("<i4", Some((Number::Int32, little))),
            (">f8", Some((Number::Float64, Some(Endian::Big)))),
            ("|u1", Some((Number::UInt8, None))),
            ("<u1", Some((Number::UInt8, None))),
            ("|b1", Some((Number::Bool, None))),
            ("i2", Some((Number::Int16, None))),
            ("float32", Some((Number::Float32, None))),
            ("<M8[ns]", Some((Number::Int64, little))),
            ("<U5", None),
            ("<", None),
            ("", None),
            ("é4", None),
            ("<f16", None),
        ] {
            assert_eq!(Number::parse(name), expected, "{name}");
        }
    }

    #[test]
    fn data_types() {
        for number in [Number::Bool, Number::Int16, Number::UInt32, Number::Float64] {
            assert_eq!(Number::of(&number.data_type()), Some(number));
            assert_eq!(number.data_type().fixed_size(), Some(number.size()));
        }
        assert_eq!(Number::of(&DataType::Complex64), None);
    }
}
