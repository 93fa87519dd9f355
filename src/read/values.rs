//! Decoded cells → Arrow arrays: masks, packing, times, text.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, BooleanArray, PrimitiveArray, StringViewBuilder, StructArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DurationNanosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit as ArrowUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use bytemuck::Pod;

use super::buffer::{BufferPool, PooledBuffer};
use super::cells::{Cells, Region};
use super::numpy_time;
use crate::dataset::cf::{
    Encoding, Kind, Missing, Packing, TimeEncoding, TimestampLabel, duration_from_float, struct_fields,
};
use crate::store::data_type::{DataType, Endian};

/// Why cells are no values of their column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueError {
    /// A date that the Gregorian calendar lacks, in a column of timestamps: the column has to be text.
    NotGregorian,
    /// One clause.
    Other(String),
}

type Result<T> = std::result::Result<T, ValueError>;

fn other(reason: impl Into<String>) -> ValueError {
    ValueError::Other(reason.into())
}

/// The `rows` cells of `region` as an array of `encoding.arrow_type()`.
///
/// # Errors
/// Times and durations that their type cannot hold.
pub(crate) fn to_arrow(rows: usize, region: Region, encoding: &Encoding, pool: &Arc<BufferPool>) -> Result<ArrayRef> {
    let Region { cells, undefined, has_missing } = region;
    let undefined = undefined.as_deref();
    if encoding.stored == DataType::FixedBytes(0) {
        return Ok(text(std::iter::repeat_n("", rows), &encoding.missing, undefined));
    }
    let cells = match cells {
        Cells::Fixed(buffer) => buffer,
        Cells::Variable(elements) => {
            let elements = (0..elements.offsets.len().saturating_sub(1)).map(|i| elements.get(i));
            return Ok(match encoding.kind {
                Kind::Binary => binary(elements, undefined),
                _ => text(elements.map(String::from_utf8_lossy), &encoding.missing, undefined),
            });
        }
    };
    match &encoding.kind {
        Kind::Boolean => Ok(Arc::new(BooleanArray::new(bits(cells.bytes()), nulls(undefined)))),
        Kind::Text => Ok(fixed_text(cells.bytes(), &encoding.stored, &encoding.missing, undefined)),
        Kind::Binary => Ok(binary(elements(cells.bytes(), &encoding.stored), undefined)),
        Kind::Complex | Kind::Struct => structure(cells.bytes(), &encoding.stored, nulls(undefined)),
        Kind::DateTime { unit, scale, target } => {
            let ticks: &[i64] = typed(&cells);
            let nulls = null_where(ticks, |t| *t == i64::MIN, undefined);
            let values = mapped(pool, ticks, |t| {
                if t == i64::MIN { Ok(0) } else { numpy_time::timestamp(t, *unit, *scale, *target).map_err(other) }
            })?;
            Ok(timestamps(values, crate::dataset::cf::arrow_unit(*target), nulls))
        }
        Kind::Number { widen: false } if has_missing == Some(false) => match &encoding.stored {
            DataType::Float32 => Ok(primitive::<Float32Type>(cells, nulls(undefined))),
            _ => Ok(primitive::<Float64Type>(cells, nulls(undefined))),
        },
        _ => numbers(cells, encoding, undefined, pool),
    }
}

/// Finds a missing value among stored elements, where NaN alone is one.
pub(crate) fn nan_test(encoding: &Encoding) -> Option<fn(&[u8]) -> bool> {
    #[expect(
        clippy::eq_op,
        clippy::needless_bitwise_bool,
        reason = "NaN alone differs from itself, and without branches it is vector code"
    )]
    fn any<T: Pod + PartialEq>(bytes: &[u8]) -> bool {
        let elements: &[T] = match bytemuck::try_cast_slice(bytes) {
            Ok(elements) => elements,
            Err(_) => return true,
        };
        elements.chunks(TILE).any(|tile| tile.iter().fold(false, |any, v| any | (v != v)))
    }
    let is_plain = matches!(encoding.kind, Kind::Number { widen: false });
    let nan_alone = encoding.nan_is_missing && encoding.missing.floats.iter().all(|m| m.is_nan());
    match (&encoding.stored, is_plain && nan_alone) {
        (DataType::Float32, true) => Some(any::<f32>),
        (DataType::Float64, true) => Some(any::<f64>),
        _ => None,
    }
}

/// Dispatch on the stored number type.
#[expect(clippy::cognitive_complexity, reason = "one arm a type, all alike")]
fn numbers(
    cells: PooledBuffer,
    encoding: &Encoding,
    undefined: Option<&[u8]>,
    pool: &Arc<BufferPool>,
) -> Result<ArrayRef> {
    macro_rules! integer {
        ($native:ty, $arrow:ty, $wide:ty) => {{
            let values: &[$native] = typed(&cells);
            let missing: Vec<$native> =
                encoding.missing.integers.iter().filter_map(|m| <$native>::try_from(*m).ok()).collect();
            // xarray writes NaT among CF times as the least i64.
            let is_time = matches!(encoding.kind, Kind::Time { .. }) && encoding.stored == DataType::Int64;
            let not_a_time =
                (is_time || matches!(encoding.stored, DataType::TimeDelta64 { .. })).then(|| <$native>::MIN);
            let nulls = match (missing.as_slice(), not_a_time) {
                ([], None) => nulls(undefined),
                ([one], None) => null_where(values, |v| v == one, undefined),
                (many, nat) => null_where(values, |v| many.contains(v) || Some(*v) == nat, undefined),
            };
            match &encoding.kind {
                Kind::Packed(packing) => packed(pool, values, nulls, *packing),
                Kind::Time { encoding, text, packing } => times(pool, values, nulls, encoding, *text, *packing),
                Kind::Duration { step, packing } => durations(pool, values, nulls, *step, *packing),
                Kind::Number { widen: true } => widened::<$native, $wide>(pool, values, nulls),
                _ => Ok(primitive::<$arrow>(cells, nulls)),
            }
        }};
    }
    macro_rules! float {
        ($native:ty, $arrow:ty, $rounded:expr) => {{
            let values: &[$native] = typed(&cells);
            let nulls = null_floats(values, encoding, undefined, $rounded);
            match &encoding.kind {
                Kind::Packed(packing) => packed(pool, values, nulls, *packing),
                Kind::Time { encoding, text, packing } => times(pool, values, nulls, encoding, *text, *packing),
                Kind::Duration { step, packing } => durations(pool, values, nulls, *step, *packing),
                _ => Ok(primitive::<$arrow>(cells, nulls)),
            }
        }};
    }
    match &encoding.stored {
        DataType::Int8 => integer!(i8, Int8Type, Int8Type),
        DataType::Int16 => integer!(i16, Int16Type, Int16Type),
        DataType::Int32 => integer!(i32, Int32Type, Int32Type),
        DataType::Int64 | DataType::TimeDelta64 { .. } => integer!(i64, Int64Type, Int64Type),
        DataType::UInt8 => integer!(u8, UInt8Type, Int16Type),
        DataType::UInt16 => integer!(u16, UInt16Type, Int32Type),
        DataType::UInt32 => integer!(u32, UInt32Type, Int64Type),
        DataType::UInt64 => integer!(u64, UInt64Type, UInt64Type),
        DataType::Float16 | DataType::BFloat16 => {
            let half = half_as_single(pool, &cells, &encoding.stored);
            let single = Encoding { stored: DataType::Float32, ..encoding.clone() };
            numbers(half, &single, undefined, pool)
        }
        DataType::Float32 => float!(f32, Float32Type, |mark| {
            #[expect(clippy::cast_possible_truncation, reason = "marks are rounded to the stored type already")]
            let mark = mark as f32;
            mark
        }),
        DataType::Float64 => float!(f64, Float64Type, |mark| mark),
        unexpected => Err(other(format!("{unexpected:?} is no number"))),
    }
}

/// The bytes of a buffer as elements; its memory is aligned for all of them.
fn typed<T: Pod>(cells: &PooledBuffer) -> &[T] {
    bytemuck::try_cast_slice(cells.bytes()).unwrap_or_default()
}

/// An array over the memory of `cells`, without a copy.
fn primitive<T: ArrowPrimitiveType>(cells: PooledBuffer, nulls: Option<NullBuffer>) -> ArrayRef {
    let length = cells.bytes().len() / size_of::<T::Native>();
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::new(cells.into_arrow(), 0, length), nulls))
}

/// A value for each cell, in memory of the pool.
fn mapped<A: Copy, B: Pod + arrow::datatypes::ArrowNativeType>(
    pool: &Arc<BufferPool>,
    cells: &[A],
    mut value: impl FnMut(A) -> Result<B>,
) -> Result<ScalarBuffer<B>> {
    let mut out = pool.take(size_of_val(cells) / size_of::<A>().max(1) * size_of::<B>());
    let values: &mut [B] = bytemuck::try_cast_slice_mut(out.bytes_mut()).unwrap_or_default();
    for (slot, cell) in values.iter_mut().zip(cells) {
        *slot = value(*cell)?;
    }
    Ok(ScalarBuffer::new(out.into_arrow(), 0, cells.len()))
}

fn half_as_single(pool: &Arc<BufferPool>, cells: &PooledBuffer, stored: &DataType) -> PooledBuffer {
    let raw: &[u16] = typed(cells);
    let mut out = pool.take(raw.len() * 4);
    let values: &mut [f32] = bytemuck::try_cast_slice_mut(out.bytes_mut()).unwrap_or_default();
    let brain = matches!(stored, DataType::BFloat16);
    for (slot, bits) in values.iter_mut().zip(raw) {
        *slot = if brain { half::bf16::from_bits(*bits).to_f32() } else { half::f16::from_bits(*bits).to_f32() };
    }
    out
}

/// A number of a stored type.
trait Number: Copy + Pod + PartialEq + std::fmt::Display {
    /// As numpy converts it to float64.
    fn to_f64(self) -> f64;
    /// The integer, where the type holds integers.
    fn to_integer(self) -> Option<i128>;
}

macro_rules! number {
    ($($integer:ty),* => $to_f64:expr) => {$(
        impl Number for $integer {
            fn to_f64(self) -> f64 { $to_f64(self) }
            fn to_integer(self) -> Option<i128> { Some(self.into()) }
        }
    )*};
}
number!(i8, i16, i32, u8, u16, u32 => f64::from);
number!(i64 => |v| {
    #[expect(clippy::cast_precision_loss, reason = "numpy rounds large integers too")]
    let v = v as f64;
    v
});
number!(u64 => |v| {
    #[expect(clippy::cast_precision_loss, reason = "numpy rounds large integers too")]
    let v = v as f64;
    v
});

impl Number for f32 {
    fn to_f64(self) -> f64 {
        self.into()
    }
    fn to_integer(self) -> Option<i128> {
        None
    }
}

impl Number for f64 {
    fn to_f64(self) -> f64 {
        self
    }
    fn to_integer(self) -> Option<i128> {
        None
    }
}

fn packed<T: Number>(
    pool: &Arc<BufferPool>,
    values: &[T],
    nulls: Option<NullBuffer>,
    packing: Packing,
) -> Result<ArrayRef> {
    let values = mapped(pool, values, |v| Ok(packing.unpack(v.to_f64())))?;
    Ok(Arc::new(PrimitiveArray::<Float64Type>::new(values, nulls)))
}

fn widened<T: Number, W: ArrowPrimitiveType>(
    pool: &Arc<BufferPool>,
    values: &[T],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef>
where
    W::Native: Pod + From<T>,
{
    Ok(Arc::new(PrimitiveArray::<W>::new(mapped(pool, values, |v| Ok(W::Native::from(v)))?, nulls)))
}

fn times<T: Number>(
    pool: &Arc<BufferPool>,
    values: &[T],
    nulls: Option<NullBuffer>,
    encoding: &TimeEncoding,
    as_text: bool,
    packing: Option<Packing>,
) -> Result<ArrayRef> {
    if let Some(packing) = packing {
        return times(pool, &unpacked(values, packing), nulls, encoding, as_text, None);
    }
    let is_null = |i: usize| nulls.as_ref().is_some_and(|n| n.is_null(i));
    let outside = |v: T| {
        other(format!(
            "time {v} is outside the range of its type; mask it with `_FillValue` or read the numbers with option `decode_times` = `false`"
        ))
    };
    if as_text {
        let mut out = StringViewBuilder::with_capacity(values.len());
        for (i, v) in values.iter().enumerate() {
            if is_null(i) {
                out.append_null();
            } else {
                let label =
                    v.to_integer().map_or_else(|| encoding.text_from_float(v.to_f64()), |n| encoding.text_from_int(n));
                out.append_value(label.ok_or_else(|| outside(*v))?);
            }
        }
        return Ok(Arc::new(out.finish()));
    }
    let mut i = 0;
    let values = mapped(pool, values, |v| {
        let null = is_null(i);
        i += 1;
        if null {
            return Ok(0i64);
        }
        let label = v
            .to_integer()
            .map_or_else(|| encoding.timestamp_from_float(v.to_f64()), |n| encoding.timestamp_from_int(n));
        match label {
            Some(TimestampLabel::Timestamp(t)) => Ok(t),
            Some(TimestampLabel::NotGregorian) => Err(ValueError::NotGregorian),
            None => Err(outside(v)),
        }
    })?;
    Ok(timestamps(values, crate::dataset::cf::arrow_unit(encoding.unit()), nulls))
}

fn unpacked<T: Number>(values: &[T], packing: Packing) -> Vec<f64> {
    values.iter().map(|v| packing.unpack(v.to_f64())).collect()
}

fn timestamps(values: ScalarBuffer<i64>, unit: ArrowUnit, nulls: Option<NullBuffer>) -> ArrayRef {
    match unit {
        ArrowUnit::Second => Arc::new(PrimitiveArray::<TimestampSecondType>::new(values, nulls)),
        ArrowUnit::Millisecond => Arc::new(PrimitiveArray::<TimestampMillisecondType>::new(values, nulls)),
        ArrowUnit::Microsecond => Arc::new(PrimitiveArray::<TimestampMicrosecondType>::new(values, nulls)),
        ArrowUnit::Nanosecond => Arc::new(PrimitiveArray::<TimestampNanosecondType>::new(values, nulls)),
    }
}

fn durations<T: Number>(
    pool: &Arc<BufferPool>,
    values: &[T],
    nulls: Option<NullBuffer>,
    step: i64,
    packing: Option<Packing>,
) -> Result<ArrayRef> {
    if let Some(packing) = packing {
        return durations(pool, &unpacked(values, packing), nulls, step, None);
    }
    let mut i = 0;
    let values = mapped(pool, values, |v| {
        let null = nulls.as_ref().is_some_and(|n| n.is_null(i));
        i += 1;
        if null {
            return Ok(0i64);
        }
        let nanoseconds = match v.to_integer() {
            Some(n) => n.checked_mul(step.into()).and_then(|n| i64::try_from(n).ok()),
            None => duration_from_float(v.to_f64(), step),
        };
        nanoseconds.ok_or_else(|| other(format!("duration {} is too long for nanoseconds", v.to_f64())))
    })?;
    Ok(Arc::new(PrimitiveArray::<DurationNanosecondType>::new(values, nulls)))
}

/// NULL where a float is a mark of `encoding`, or NaN where that is missing. `rounded`: a mark in the stored type, which holds it exactly.
#[expect(
    clippy::eq_op,
    clippy::needless_bitwise_bool,
    reason = "marks are equal or not, NaN alone differs from itself, and both compile to vector code"
)]
fn null_floats<T: Number>(
    values: &[T],
    encoding: &Encoding,
    undefined: Option<&[u8]>,
    rounded: impl Fn(f64) -> T,
) -> Option<NullBuffer> {
    let is_time = matches!(encoding.kind, Kind::Time { .. } | Kind::Duration { .. });
    let nan = encoding.nan_is_missing || encoding.missing.floats.iter().any(|m| m.is_nan());
    let marks: Vec<T> = encoding.missing.floats.iter().filter(|m| !m.is_nan()).map(|m| rounded(*m)).collect();
    match (marks.as_slice(), nan) {
        (marks, _) if is_time => null_where(values, |v| !v.to_f64().is_finite() || marks.contains(v), undefined),
        ([], false) => nulls(undefined),
        ([], true) => null_where(values, |v| v != v, undefined),
        ([mark], false) => null_where(values, |v| v == mark, undefined),
        ([mark], true) => null_where(values, |v| (v == mark) | (v != v), undefined),
        (marks, nan) => null_where(values, |v| marks.contains(v) | (nan & (v != v)), undefined),
    }
}

/// Cells that are never missing: only undefined ones are NULL.
fn nulls(undefined: Option<&[u8]>) -> Option<NullBuffer> {
    undefined.map(|u| NullBuffer::new(BooleanBuffer::collect_bool(u.len(), |i| u.get(i) == Some(&0))))
}

/// Cells tested at once: a few thousand stay in cache, and the test has no branch.
const TILE: usize = 4096;

/// NULL where `is_missing` says so or a cell is undefined; `None` where that is nowhere.
fn null_where<T>(values: &[T], is_missing: impl Fn(&T) -> bool, undefined: Option<&[u8]>) -> Option<NullBuffer> {
    let any = values.chunks(TILE).any(|tile| tile.iter().fold(false, |any, v| any | is_missing(v)));
    if !any {
        return nulls(undefined);
    }
    let word =
        |cells: &[T]| cells.iter().enumerate().fold(0u64, |word, (i, v)| word | (u64::from(!is_missing(v)) << i));
    let words: Vec<u64> = values.chunks(64).map(word).collect();
    let valid = BooleanBuffer::new(Buffer::from_vec(words), 0, values.len());
    Some(NullBuffer::new(match nulls(undefined) {
        Some(defined) => &valid & defined.inner(),
        None => valid,
    }))
}

fn bits(bytes: &[u8]) -> BooleanBuffer {
    BooleanBuffer::collect_bool(bytes.len(), |i| bytes.get(i).is_some_and(|b| *b != 0))
}

/// The elements of fixed size in `bytes`.
fn elements<'a>(bytes: &'a [u8], stored: &DataType) -> Box<dyn Iterator<Item = &'a [u8]> + 'a> {
    match stored.fixed_size() {
        Some(size) if size > 0 => Box::new(bytes.chunks_exact(size)),
        _ => Box::new(std::iter::empty()),
    }
}

fn fixed_text(bytes: &[u8], stored: &DataType, missing: &Missing, undefined: Option<&[u8]>) -> ArrayRef {
    let elements = elements(bytes, stored);
    if matches!(stored, DataType::FixedUtf32(_)) {
        text(elements.map(utf32), missing, undefined)
    } else {
        text(elements.map(|e| String::from_utf8_lossy(trim_nul(e))), missing, undefined)
    }
}

fn trim_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
    bytes.get(..end).unwrap_or_default()
}

/// UTF-32 of this machine's byte order; what is no character becomes U+FFFD.
fn utf32(bytes: &[u8]) -> String {
    let (units, _) = bytes.as_chunks::<4>();
    let text: String =
        units.iter().map(|u| char::from_u32(u32::from_ne_bytes(*u)).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    text.trim_end_matches('\0').to_owned()
}

fn text<S: AsRef<str>>(elements: impl Iterator<Item = S>, missing: &Missing, undefined: Option<&[u8]>) -> ArrayRef {
    let mut out = StringViewBuilder::new();
    for (i, element) in elements.enumerate() {
        let element = element.as_ref();
        if undefined.is_some_and(|u| u.get(i) == Some(&1)) || missing.texts.iter().any(|m| m == element) {
            out.append_null();
        } else {
            out.append_value(element);
        }
    }
    Arc::new(out.finish())
}

fn binary<'a>(elements: impl Iterator<Item = &'a [u8]>, undefined: Option<&[u8]>) -> ArrayRef {
    let mut out = BinaryBuilder::new();
    for (i, element) in elements.enumerate() {
        if undefined.is_some_and(|u| u.get(i) == Some(&1)) {
            out.append_null();
        } else {
            out.append_value(element);
        }
    }
    Arc::new(out.finish())
}

/// Complex numbers and structures: their fields are raw values.
fn structure(bytes: &[u8], stored: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let fields = struct_fields(stored);
    let arrays: Vec<ArrayRef> = match stored {
        DataType::Complex64 => vec![
            raw_field(bytes, 8, 0, &DataType::Float32, Endian::NATIVE)?,
            raw_field(bytes, 8, 4, &DataType::Float32, Endian::NATIVE)?,
        ],
        DataType::Complex128 => vec![
            raw_field(bytes, 16, 0, &DataType::Float64, Endian::NATIVE)?,
            raw_field(bytes, 16, 8, &DataType::Float64, Endian::NATIVE)?,
        ],
        DataType::Struct(members, size) => {
            members.iter().map(|m| raw_field(bytes, *size, m.offset, &m.data_type, m.endian)).collect::<Result<_>>()?
        }
        _ => Vec::new(),
    };
    StructArray::try_new(fields, arrays, nulls).map(|a| Arc::new(a) as ArrayRef).map_err(|e| other(e.to_string()))
}

/// The field at `offset` of every element of `stride` bytes.
fn raw_field(bytes: &[u8], stride: usize, offset: usize, stored: &DataType, endian: Endian) -> Result<ArrayRef> {
    let size = stored.fixed_size().unwrap_or(0);
    let mut field = Vec::with_capacity(bytes.len() / stride.max(1) * size);
    for element in bytes.chunks_exact(stride.max(1)) {
        field.extend_from_slice(element.get(offset..offset + size).unwrap_or_default());
    }
    if endian != Endian::NATIVE {
        field.chunks_exact_mut(stored.swap_unit()).for_each(<[u8]>::reverse);
    }
    raw_array(&field, stored)
}

fn raw_array(bytes: &[u8], stored: &DataType) -> Result<ArrayRef> {
    fn numbers<T: ArrowPrimitiveType>(bytes: &[u8]) -> ArrayRef
    where
        T::Native: Pod,
    {
        Arc::new(PrimitiveArray::<T>::from_iter_values(
            bytes.chunks_exact(size_of::<T::Native>()).map(bytemuck::pod_read_unaligned),
        ))
    }
    Ok(match stored {
        DataType::Bool => Arc::new(BooleanArray::new(bits(bytes), None)),
        DataType::Int8 => numbers::<Int8Type>(bytes),
        DataType::Int16 => numbers::<Int16Type>(bytes),
        DataType::Int32 => numbers::<Int32Type>(bytes),
        DataType::Int64 | DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => numbers::<Int64Type>(bytes),
        DataType::UInt8 => numbers::<UInt8Type>(bytes),
        DataType::UInt16 => numbers::<UInt16Type>(bytes),
        DataType::UInt32 => numbers::<UInt32Type>(bytes),
        DataType::UInt64 => numbers::<UInt64Type>(bytes),
        DataType::Float32 => numbers::<Float32Type>(bytes),
        DataType::Float64 => numbers::<Float64Type>(bytes),
        DataType::Float16 => {
            let halves = bytes.chunks_exact(2).map(|b| half::f16::from_bits(bytemuck::pod_read_unaligned(b)).to_f32());
            Arc::new(PrimitiveArray::<Float32Type>::from_iter_values(halves))
        }
        DataType::BFloat16 => {
            let halves = bytes.chunks_exact(2).map(|b| half::bf16::from_bits(bytemuck::pod_read_unaligned(b)).to_f32());
            Arc::new(PrimitiveArray::<Float32Type>::from_iter_values(halves))
        }
        DataType::FixedBytes(_) | DataType::FixedUtf32(_) | DataType::String => {
            fixed_text(bytes, stored, &Missing::default(), None)
        }
        DataType::Raw(_) | DataType::Bytes => binary(elements(bytes, stored), None),
        DataType::Complex64 | DataType::Complex128 | DataType::Struct(..) => structure(bytes, stored, None)?,
    })
}
