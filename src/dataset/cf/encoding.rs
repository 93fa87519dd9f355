//! How the stored elements of a variable become the values of a column.

use arrow::datatypes::{DataType as ArrowType, Field, Fields, TimeUnit as ArrowUnit};
use serde_json::Value;

use super::missing::is_float;
use super::time::duration_step;
use super::{Missing, TimeEncoding, TimeUnit};
use crate::options::ZarrOptions;
use crate::store::ArrayMetadata;
use crate::store::data_type::{DataType, NumpyUnit};

/// CF packing: a value is `raw * scale + offset`, in f64, with two roundings as numpy makes them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Packing {
    scale: f64,
    offset: f64,
}

impl Packing {
    /// The value of a stored number.
    pub(crate) fn unpack(self, raw: f64) -> f64 {
        raw * self.scale + self.offset
    }
}

/// What kind of value the elements are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// Not 0 is true.
    Boolean,
    /// Numbers as they are, but for a wider type where `widen` says so.
    Number { widen: bool },
    /// Numbers that are packed.
    Packed(Packing),
    /// CF time, as timestamps or as text; unpacked first where it is packed.
    Time { encoding: TimeEncoding, text: bool, packing: Option<Packing> },
    /// numpy `datetime64` ticks.
    DateTime { unit: NumpyUnit, scale: u32, target: TimeUnit },
    /// Numbers of `step` nanoseconds each; unpacked first where they are packed.
    Duration { step: i64, packing: Option<Packing> },
    /// Real and imaginary part.
    Complex,
    /// Fields.
    Struct,
    /// Text.
    Text,
    /// Bytes without meaning.
    Binary,
}

/// How to decode a variable: its stored type, what is missing, and the kind of its values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Encoding {
    /// Type of the stored elements as they are read (`_Unsigned` applied).
    pub(crate) stored: DataType,
    /// Stored values that are missing.
    pub(crate) missing: Missing,
    /// Whether NaN is missing.
    pub(crate) nan_is_missing: bool,
    /// What the values are.
    pub(crate) kind: Kind,
}

impl Encoding {
    /// The encoding of `array`, whose elements are of `data_type` (which differs from the array's for char arrays read as text).
    ///
    /// `is_dimension`: whether the variable is a dimension coordinate, which `fill_value` never masks.
    ///
    /// # Errors
    /// A clause that says which attribute cannot be understood.
    pub(crate) fn new(
        array: &ArrayMetadata,
        data_type: &DataType,
        is_dimension: bool,
        options: &ZarrOptions,
    ) -> Result<Self, String> {
        let plain =
            |kind| Ok(Self { stored: data_type.clone(), missing: Missing::default(), nan_is_missing: false, kind });
        match data_type {
            DataType::Bool => return plain(Kind::Boolean),
            DataType::Int8 if text(array, "dtype") == Some("bool") => return plain(Kind::Boolean),
            DataType::Complex64 | DataType::Complex128 => {
                if options.mask_and_scale.0 && packing(array)?.is_some() {
                    return Err("packed complex numbers are not supported; option `mask_and_scale` = `false` reads them as stored".into());
                }
                return plain(Kind::Complex);
            }
            DataType::Struct(..) => return plain(Kind::Struct),
            DataType::Raw(_) | DataType::Bytes => return plain(Kind::Binary),
            DataType::DateTime64 { unit, scale } => {
                let default =
                    if matches!(unit, NumpyUnit::Nanosecond) { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
                return plain(Kind::DateTime {
                    unit: *unit,
                    scale: *scale,
                    target: options.time_unit.unwrap_or(default),
                });
            }
            DataType::TimeDelta64 { unit, scale } => {
                return plain(Kind::Duration { step: numpy_step(*unit, *scale)?, packing: None });
            }
            DataType::String | DataType::FixedBytes(_) | DataType::FixedUtf32(_) => {
                let missing = if options.mask_and_scale.0 {
                    Missing::of(array, data_type, Some(false), is_dimension)
                } else {
                    Missing::default()
                };
                return Ok(Self { missing, ..plain(Kind::Text)? });
            }
            _ => {}
        }
        let stored = reinterpreted(array, data_type);
        let missing = if options.mask_and_scale.0 {
            Missing::of(array, &stored, options.use_zarr_fill_value_as_mask, is_dimension)
        } else {
            Missing::default()
        };
        let kind = number(array, &stored, options)?;
        let nan_is_missing =
            is_float(&stored) && (options.nan_as_null.0 || matches!(kind, Kind::Time { .. } | Kind::Duration { .. }));
        Ok(Self { stored, missing, nan_is_missing, kind })
    }

    /// Type of the column.
    pub(crate) fn arrow_type(&self) -> ArrowType {
        match &self.kind {
            Kind::Boolean => ArrowType::Boolean,
            Kind::Number { widen } => number_type(&self.stored, *widen),
            Kind::Packed(_) => ArrowType::Float64,
            Kind::Time { text: true, .. } | Kind::Text => ArrowType::Utf8View,
            Kind::Time { encoding, text: false, .. } => ArrowType::Timestamp(arrow_unit(encoding.unit()), None),
            Kind::DateTime { target, .. } => ArrowType::Timestamp(arrow_unit(*target), None),
            Kind::Duration { .. } => ArrowType::Duration(ArrowUnit::Nanosecond),
            Kind::Complex | Kind::Struct => ArrowType::Struct(struct_fields(&self.stored)),
            Kind::Binary => ArrowType::Binary,
        }
    }
}

/// The attribute as text.
fn text<'a>(array: &'a ArrayMetadata, attribute: &str) -> Option<&'a str> {
    array.attributes.get(attribute).and_then(Value::as_str)
}

/// CF's `_Unsigned`: integers of the other signedness than the stored type says.
fn reinterpreted(array: &ArrayMetadata, data_type: &DataType) -> DataType {
    let unsigned = match array.attributes.get("_Unsigned") {
        Some(Value::String(s)) => s.to_ascii_lowercase(),
        Some(Value::Bool(b)) => b.to_string(),
        _ => return data_type.clone(),
    };
    match (unsigned.as_str(), data_type) {
        ("true", DataType::Int8) => DataType::UInt8,
        ("true", DataType::Int16) => DataType::UInt16,
        ("true", DataType::Int32) => DataType::UInt32,
        ("true", DataType::Int64) => DataType::UInt64,
        ("false", DataType::UInt8) => DataType::Int8,
        ("false", DataType::UInt16) => DataType::Int16,
        ("false", DataType::UInt32) => DataType::Int32,
        ("false", DataType::UInt64) => DataType::Int64,
        (_, other) => other.clone(),
    }
}

fn number(array: &ArrayMetadata, stored: &DataType, options: &ZarrOptions) -> Result<Kind, String> {
    let packing = if options.mask_and_scale.0 { packing(array)? } else { None };
    if options.decode_times.0 {
        let units = text(array, "units");
        if let Some(parsed) = units.and_then(|u| TimeEncoding::parse(u, text(array, "calendar"), options.time_unit)) {
            let encoding = parsed?;
            return Ok(Kind::Time { text: encoding.calendar().is_text(), encoding, packing });
        }
        if text(array, "dtype").is_some_and(|d| d.starts_with("timedelta64")) {
            let units = units.ok_or("attribute `dtype` names a duration but there is no attribute `units`")?;
            let step =
                duration_step(units).ok_or_else(|| format!("attribute `units` = `{units}` is no unit of time"))?;
            return Ok(Kind::Duration { step, packing });
        }
    }
    let small_unsigned = matches!(stored, DataType::UInt8 | DataType::UInt16 | DataType::UInt32);
    Ok(packing.map_or(Kind::Number { widen: small_unsigned && !options.keep_unsigned }, Kind::Packed))
}

/// CF packing, where the array has any.
fn packing(array: &ArrayMetadata) -> Result<Option<Packing>, String> {
    let (scale, offset) = (factor(array, "scale_factor")?, factor(array, "add_offset")?);
    let packed = scale.is_some() || offset.is_some();
    Ok(packed.then(|| Packing { scale: scale.unwrap_or(1.0), offset: offset.unwrap_or(0.0) }))
}

/// A packing attribute: a number, or a list of one.
fn factor(array: &ArrayMetadata, attribute: &str) -> Result<Option<f64>, String> {
    let value = match array.attributes.get(attribute) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(values)) if values.len() == 1 => values.first(),
        value => value,
    };
    value.and_then(Value::as_f64).map(Some).ok_or_else(|| format!("attribute `{attribute}` is not a number"))
}

/// Nanoseconds of a tick of `timedelta64`.
fn numpy_step(unit: NumpyUnit, scale: u32) -> Result<i64, String> {
    let step: i64 = match unit {
        NumpyUnit::Week => 7 * 86_400_000_000_000,
        NumpyUnit::Day => 86_400_000_000_000,
        NumpyUnit::Hour => 3_600_000_000_000,
        NumpyUnit::Minute => 60_000_000_000,
        NumpyUnit::Second => 1_000_000_000,
        NumpyUnit::Millisecond => 1_000_000,
        NumpyUnit::Microsecond => 1_000,
        NumpyUnit::Nanosecond | NumpyUnit::Generic => 1,
        NumpyUnit::Year | NumpyUnit::Month => return Err("a duration in months or years has no fixed length".into()),
        NumpyUnit::Picosecond | NumpyUnit::Femtosecond | NumpyUnit::Attosecond => {
            return Err("a duration in less than nanoseconds is not supported".into());
        }
    };
    step.checked_mul(scale.into()).ok_or_else(|| "the unit of a duration is too long".into())
}

fn number_type(stored: &DataType, widen: bool) -> ArrowType {
    match stored {
        DataType::Int8 => ArrowType::Int8,
        DataType::UInt8 if !widen => ArrowType::UInt8,
        DataType::Int16 | DataType::UInt8 => ArrowType::Int16,
        DataType::UInt16 if !widen => ArrowType::UInt16,
        DataType::Int32 | DataType::UInt16 => ArrowType::Int32,
        DataType::UInt32 if !widen => ArrowType::UInt32,
        DataType::Int64 | DataType::UInt32 => ArrowType::Int64,
        DataType::UInt64 => ArrowType::UInt64,
        DataType::Float64 => ArrowType::Float64,
        _ => ArrowType::Float32,
    }
}

/// Fields of a complex number or a structure. Their values are raw: nothing in them is masked or widened.
pub(crate) fn struct_fields(stored: &DataType) -> Fields {
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    match stored {
        DataType::Complex64 => vec![field("re", ArrowType::Float32), field("im", ArrowType::Float32)].into(),
        DataType::Complex128 => vec![field("re", ArrowType::Float64), field("im", ArrowType::Float64)].into(),
        DataType::Struct(fields, _) => fields.iter().map(|f| field(&f.name, raw_type(&f.data_type))).collect(),
        _ => Fields::empty(),
    }
}

/// Type of a structure's field.
fn raw_type(stored: &DataType) -> ArrowType {
    match stored {
        DataType::Bool => ArrowType::Boolean,
        DataType::Complex64 | DataType::Complex128 | DataType::Struct(..) => ArrowType::Struct(struct_fields(stored)),
        DataType::Raw(_) | DataType::Bytes => ArrowType::Binary,
        DataType::String | DataType::FixedBytes(_) | DataType::FixedUtf32(_) => ArrowType::Utf8View,
        DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => ArrowType::Int64,
        number => number_type(number, false),
    }
}

/// Unit of an Arrow timestamp.
pub(crate) fn arrow_unit(unit: TimeUnit) -> ArrowUnit {
    match unit {
        TimeUnit::Second => ArrowUnit::Second,
        TimeUnit::Millisecond => ArrowUnit::Millisecond,
        TimeUnit::Microsecond => ArrowUnit::Microsecond,
        TimeUnit::Nanosecond => ArrowUnit::Nanosecond,
    }
}

/// Names that CF and its users give to axes of time, cyclic ones included.
const TIME_NAMES: [&str; 7] =
    ["time", "forecast_reference_time", "forecast_period", "month", "season", "dayofyear", "hour"];

/// Whether the dimension `name`, with this coordinate if it has one, runs over time (DESIGN: a variable without such axes is a fixed field).
pub(crate) fn is_time_axis(name: &str, coordinate: Option<&ArrayMetadata>) -> bool {
    if TIME_NAMES.contains(&name.to_lowercase().as_str()) {
        return true;
    }
    coordinate.is_some_and(|array| {
        text(array, "units").is_some_and(|u| u.contains(" since "))
            || matches!(array.data_type, DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. })
            || text(array, "dtype").is_some_and(|d| d.starts_with("timedelta64"))
            || text(array, "standard_name").is_some_and(|n| TIME_NAMES.contains(&n))
    })
}
