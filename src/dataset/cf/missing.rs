//! Which stored values mean that there is no value: `_FillValue`, `missing_value`, and format 2's `fill_value`.

use base64::Engine as _;
use serde_json::Value;

use crate::store::ArrayMetadata;
use crate::store::ZarrFormat;
use crate::store::data_type::DataType;
use crate::store::fill_value;

/// Stored values that mean missing, in the stored type.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Missing {
    /// Of integer arrays: as the (possibly reinterpreted) stored type reads them.
    pub(crate) integers: Vec<i128>,
    /// Of float arrays: rounded to the stored type; NaN means every NaN.
    pub(crate) floats: Vec<f64>,
    /// Of text arrays.
    pub(crate) texts: Vec<String>,
}

impl Missing {
    /// Nothing is missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.integers.is_empty() && self.floats.is_empty() && self.texts.is_empty()
    }

    /// Of an array whose numbers are read as `stored`.
    ///
    /// `fill_value` masks in format 2 with named dimensions, where xarray's writer keeps `_FillValue` (auto); always or never as `by_fill` says; and never where
    /// `is_dimension` says that the array is a dimension coordinate, since 0 is a fine longitude.
    pub(crate) fn of(array: &ArrayMetadata, stored: &DataType, by_fill: Option<bool>, is_dimension: bool) -> Self {
        let mut missing = Self::default();
        for attribute in ["_FillValue", "missing_value"] {
            match array.attributes.get(attribute) {
                Some(Value::Array(values)) => values.iter().for_each(|v| missing.add(v, array, stored)),
                Some(value) => missing.add(value, array, stored),
                None => {}
            }
        }
        let auto = array.format == ZarrFormat::V2
            && array.dimension_names.is_some()
            && !array.attributes.contains_key("_FillValue");
        if let (false, true, Some(fill)) = (is_dimension, by_fill.unwrap_or(auto), &array.fill_value) {
            missing.add_stored(fill, stored);
        }
        missing
    }

    /// One value of an attribute; values that no cell can be equal to are dropped.
    fn add(&mut self, value: &Value, array: &ArrayMetadata, stored: &DataType) {
        match stored {
            DataType::String | DataType::FixedBytes(_) | DataType::FixedUtf32(_) => {
                self.texts.extend(value.as_str().map(str::to_owned));
            }
            _ if is_float(stored) => self.floats.extend(float(value, stored).map(|v| round(v, stored))),
            _ => self.integers.extend(integer(value).and_then(|v| as_stored(v, &array.data_type, stored))),
        }
    }

    /// The stored element `fill`, native-endian. Text is never masked by it.
    fn add_stored(&mut self, fill: &[u8], stored: &DataType) {
        if is_float(stored) {
            self.floats.extend(stored_float(fill, stored));
        } else if let Some(value) = stored_integer(fill, stored) {
            self.integers.push(value);
        }
    }
}

pub(crate) fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float16 | DataType::BFloat16 | DataType::Float32 | DataType::Float64)
}

/// `value` as a cell of the type would hold it.
fn round(value: f64, stored: &DataType) -> f64 {
    match stored {
        DataType::Float16 => half::f16::from_f64(value).into(),
        DataType::BFloat16 => half::bf16::from_f64(value).into(),
        #[expect(clippy::cast_possible_truncation, reason = "comparison is made in the stored type")]
        DataType::Float32 => f64::from(value as f32),
        _ => value,
    }
}

/// A float as a number, a name, the hexadecimal bits of the stored type, or xarray's base64 of a little-endian float64.
fn float(value: &Value, stored: &DataType) -> Option<f64> {
    if let Some(number) = fill_value::named_float(value) {
        return Some(number);
    }
    let text = value.as_str()?;
    if text.starts_with("0x") {
        let bytes = fill_value::parse(value, stored).ok()??;
        return stored_float(&bytes, stored);
    }
    base64_float(text)
}

fn base64_float(text: &str) -> Option<f64> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
    Some(f64::from_le_bytes(bytes.try_into().ok()?))
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => {
            let number = serde_json::Number::from_f64(base64_float(text)?)?;
            fill_value::integer(&Value::Number(number))
        }
        number => fill_value::integer(number),
    }
}

/// Attributes of reinterpreted integers (`_Unsigned`) speak of either type: −1 of a `u1` is 255.
fn as_stored(value: i128, written: &DataType, stored: &DataType) -> Option<i128> {
    let (low, high) = range(stored)?;
    if (low..=high).contains(&value) {
        return Some(value);
    }
    let width = high - low + 1;
    let unsigned_below_zero = low == 0 && value < 0 && -value <= width / 2;
    let reinterpreted = written != stored && value > high && value < width;
    if unsigned_below_zero {
        Some(value + width)
    } else if reinterpreted {
        Some(value - width)
    } else {
        None
    }
}

fn range(stored: &DataType) -> Option<(i128, i128)> {
    Some(match stored {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

fn stored_integer(bytes: &[u8], stored: &DataType) -> Option<i128> {
    Some(match stored {
        DataType::Int8 => i8::from_ne_bytes(bytes.try_into().ok()?).into(),
        DataType::Int16 => i16::from_ne_bytes(bytes.try_into().ok()?).into(),
        DataType::Int32 => i32::from_ne_bytes(bytes.try_into().ok()?).into(),
        DataType::Int64 => i64::from_ne_bytes(bytes.try_into().ok()?).into(),
        DataType::UInt8 => u8::from_ne_bytes(bytes.try_into().ok()?).into(),
        DataType::UInt16 => u16::from_ne_bytes(bytes.try_into().ok()?).into(),
        DataType::UInt32 => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
        DataType::UInt64 => u64::from_ne_bytes(bytes.try_into().ok()?).into(),
        _ => return None,
    })
}

fn stored_float(bytes: &[u8], stored: &DataType) -> Option<f64> {
    Some(match stored {
        DataType::Float16 => half::f16::from_ne_bytes(bytes.try_into().ok()?).into(),
        DataType::BFloat16 => half::bf16::from_ne_bytes(bytes.try_into().ok()?).into(),
        DataType::Float32 => f32::from_ne_bytes(bytes.try_into().ok()?).into(),
        DataType::Float64 => f64::from_ne_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_reinterpreted_integers() {
        assert_eq!(as_stored(-1, &DataType::Int8, &DataType::UInt8), Some(255));
        assert_eq!(as_stored(255, &DataType::UInt8, &DataType::Int8), Some(-1));
        assert_eq!(as_stored(255, &DataType::Int8, &DataType::Int8), None);
        assert_eq!(as_stored(-1, &DataType::UInt32, &DataType::UInt32), Some(4_294_967_295));
        assert_eq!(as_stored(-300, &DataType::UInt8, &DataType::UInt8), None);
    }

    #[test]
    fn every_spelling_of_a_float() {
        let f = |v: Value| float(&v, &DataType::Float32);
        assert_eq!(f("AAAAAICHw8A=".into()), Some(-9999.0));
        assert_eq!(f("0xc61c3c00".into()), Some(-9999.0));
        assert_eq!(f((-9999.0).into()), Some(-9999.0));
        assert!(f("AAAAAAAA+H8=".into()).unwrap().is_nan() && f("NaN".into()).unwrap().is_nan());
        assert_eq!(f("what".into()), None);
    }
}
