//! Zarr data types, of both formats under one name each.

/// Bytes of an element of fixed size above which its array is not read: nothing is allocated from larger numbers in metadata.
pub(crate) const MAX_ELEMENT: usize = 1 << 20;

/// Byte order of the elements of an array or of a structure's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// Byte order of this machine, and of every decoded element.
    pub(crate) const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };
}

/// Unit of a numpy `datetime64` or `timedelta64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumpyUnit {
    /// Calendar years since 1970.
    Year,
    /// Calendar months since January 1970.
    Month,
    /// Weeks.
    Week,
    /// Days.
    Day,
    /// Hours.
    Hour,
    /// Minutes.
    Minute,
    /// Seconds.
    Second,
    /// Milliseconds.
    Millisecond,
    /// Microseconds.
    Microsecond,
    /// Nanoseconds.
    Nanosecond,
    /// Picoseconds.
    Picosecond,
    /// Femtoseconds.
    Femtosecond,
    /// Attoseconds.
    Attosecond,
    /// No unit: every element is not a time (`NaT`).
    Generic,
}

/// A field of a structured data type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StructField {
    /// Name of the field.
    pub(crate) name: String,
    /// Its type; always of a fixed size.
    pub(crate) data_type: DataType,
    /// Offset of its first byte inside the element.
    pub(crate) offset: usize,
    /// Byte order in which the field is stored, since a structure is never byte-swapped as a whole.
    pub(crate) endian: Endian,
}

/// The type of the elements of an array, apart from byte order, which belongs to the codecs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DataType {
    /// One byte, zero or not.
    Bool,
    /// Signed 8-bit integer.
    Int8,
    /// Signed 16-bit integer.
    Int16,
    /// Signed 32-bit integer.
    Int32,
    /// Signed 64-bit integer.
    Int64,
    /// Unsigned 8-bit integer.
    UInt8,
    /// Unsigned 16-bit integer.
    UInt16,
    /// Unsigned 32-bit integer.
    UInt32,
    /// Unsigned 64-bit integer.
    UInt64,
    /// IEEE 754 binary16.
    Float16,
    /// The upper half of a binary32.
    BFloat16,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
    /// Two binary32, real part first.
    Complex64,
    /// Two binary64, real part first.
    Complex128,
    /// Text of so many bytes, padded with NUL (`|S5`, `null_terminated_bytes`).
    FixedBytes(usize),
    /// Text of so many UTF-32 code points, padded with NUL (`<U5`, `fixed_length_utf32`).
    FixedUtf32(usize),
    /// So many bytes without meaning (`|V3`, `r24`, `raw_bytes`).
    Raw(usize),
    /// Text of any length.
    String,
    /// Bytes of any length.
    Bytes,
    /// numpy `datetime64`: `scale` units a tick, `i64::MIN` is `NaT`.
    DateTime64 {
        /// Unit of a tick.
        unit: NumpyUnit,
        /// Units a tick.
        scale: u32,
    },
    /// numpy `timedelta64`, as above.
    TimeDelta64 {
        /// Unit of a tick.
        unit: NumpyUnit,
        /// Units a tick.
        scale: u32,
    },
    /// Fields at fixed offsets, and the size of the whole.
    Struct(Vec<StructField>, usize),
}

impl DataType {
    /// Bytes of one element, `None` where elements have lengths of their own.
    #[must_use]
    pub(crate) fn fixed_size(&self) -> Option<usize> {
        Some(match self {
            Self::Bool | Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 | Self::Float16 | Self::BFloat16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64
            | Self::UInt64
            | Self::Float64
            | Self::Complex64
            | Self::DateTime64 { .. }
            | Self::TimeDelta64 { .. } => 8,
            Self::Complex128 => 16,
            Self::FixedBytes(n) | Self::Raw(n) | Self::Struct(_, n) => *n,
            Self::FixedUtf32(n) => n.checked_mul(4)?,
            Self::String | Self::Bytes => return None,
        })
    }

    /// Bytes of the units whose byte order `endian` of the `bytes` codec speaks of; 1 where there is nothing to swap.
    #[must_use]
    pub(crate) fn swap_unit(&self) -> usize {
        match self {
            Self::FixedBytes(_) | Self::Raw(_) | Self::Struct(..) | Self::String | Self::Bytes => 1,
            Self::FixedUtf32(_) | Self::Complex64 => 4,
            Self::Complex128 => 8,
            other => other.fixed_size().unwrap_or(1),
        }
    }
}
