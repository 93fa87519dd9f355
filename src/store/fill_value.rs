//! Fill values: JSON of either format to the bytes of one element.

use base64::Engine as _;
use serde_json::Value;

use super::data_type::{DataType, Endian};

/// Native-endian bytes of the element that stands in for unwritten ones; `None` where the value is `null` and so undefined.
///
/// Text and bytes of any length come as their own bytes.
///
/// # Errors
/// A clause that names the value when the data type cannot hold it.
pub(crate) fn parse(value: &Value, data_type: &DataType) -> Result<Option<Vec<u8>>, String> {
    if value.is_null() {
        return Ok(None);
    }
    element(value, data_type).map(Some).ok_or_else(|| format!("fill value {value} does not fit the data type"))
}

/// The element that a data type has where metadata names none: zero, or the empty text.
pub(crate) fn zero(data_type: &DataType) -> Vec<u8> {
    match data_type {
        DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => i64::MIN.to_ne_bytes().to_vec(),
        other => vec![0; other.fixed_size().unwrap_or(0)],
    }
}

fn element(value: &Value, data_type: &DataType) -> Option<Vec<u8>> {
    match data_type {
        DataType::Bool => match value {
            Value::Bool(b) => Some(vec![u8::from(*b)]),
            number => Some(vec![u8::from(integer(number)? != 0)]),
        },
        DataType::Int8 => Some(i8::try_from(integer(value)?).ok()?.to_ne_bytes().to_vec()),
        DataType::Int16 => Some(i16::try_from(integer(value)?).ok()?.to_ne_bytes().to_vec()),
        DataType::Int32 => Some(i32::try_from(integer(value)?).ok()?.to_ne_bytes().to_vec()),
        DataType::Int64 => Some(i64::try_from(integer(value)?).ok()?.to_ne_bytes().to_vec()),
        DataType::UInt8 => Some(u8::try_from(integer(value)?).ok()?.to_ne_bytes().to_vec()),
        DataType::UInt16 => Some(u16::try_from(integer(value)?).ok()?.to_ne_bytes().to_vec()),
        DataType::UInt32 => Some(u32::try_from(integer(value)?).ok()?.to_ne_bytes().to_vec()),
        DataType::UInt64 => Some(u64::try_from(integer(value)?).ok()?.to_ne_bytes().to_vec()),
        DataType::Float16 | DataType::BFloat16 | DataType::Float32 | DataType::Float64 => float(value, data_type),
        DataType::Complex64 => complex(value, &DataType::Float32),
        DataType::Complex128 => complex(value, &DataType::Float64),
        DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => {
            let ticks = if value.as_str() == Some("NaT") { i64::MIN } else { i64::try_from(integer(value)?).ok()? };
            Some(ticks.to_ne_bytes().to_vec())
        }
        DataType::FixedUtf32(n) => {
            let text = text(value)?;
            let mut out: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_ne_bytes()).collect();
            let size = n.checked_mul(4)?;
            if out.len() > size {
                return None;
            }
            out.resize(size, 0);
            Some(out)
        }
        DataType::FixedBytes(n) | DataType::Raw(n) => padded(bytes(value)?, *n),
        DataType::Struct(_, n) => match value {
            Value::Object(_) => structure(value, data_type),
            _ => padded(bytes(value)?, *n),
        },
        DataType::String => Some(text(value)?.into_bytes()),
        DataType::Bytes => bytes(value),
    }
}

/// Writers of strings leave the number 0 where they mean the empty text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(s) => Some(s.clone()),
        number if integer(number) == Some(0) => Some(String::new()),
        _ => None,
    }
}

/// Bytes as base64 or as a list of integers; 0 for the empty value.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(s) => base64::engine::general_purpose::STANDARD.decode(s).ok(),
        Value::Array(items) => items.iter().map(|i| u8::try_from(integer(i)?).ok()).collect(),
        number if integer(number) == Some(0) => Some(Vec::new()),
        _ => None,
    }
}

fn padded(mut bytes: Vec<u8>, size: usize) -> Option<Vec<u8>> {
    if bytes.len() > size {
        return None;
    }
    bytes.resize(size, 0);
    Some(bytes)
}

/// An integer, also one that a writer spelled as a float (`0.0`).
pub(crate) fn integer(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    if let Some(i) = number.as_i64() {
        return Some(i.into());
    }
    if let Some(u) = number.as_u64() {
        return Some(u.into());
    }
    let f = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked, and the fraction is 0")]
    (f.fract() == 0.0 && f.abs() < 1e19).then_some(f as i128)
}

/// A float as a number, a name (`NaN`, `Infinity`, `-Infinity`), or the hexadecimal bits of the type.
fn float(value: &Value, data_type: &DataType) -> Option<Vec<u8>> {
    if let Some(hex) = value.as_str().and_then(|s| s.strip_prefix("0x")) {
        let size = data_type.fixed_size()?;
        if hex.len() != size.checked_mul(2)? {
            return None;
        }
        let bits = u64::from_str_radix(hex, 16).ok()?.to_be_bytes();
        let mut out = bits.get(bits.len().checked_sub(size)?..)?.to_vec();
        if Endian::NATIVE == Endian::Little {
            out.reverse();
        }
        return Some(out);
    }
    let number = named_float(value)?;
    #[expect(clippy::cast_possible_truncation, reason = "rounding to the stored type is what writers do")]
    Some(match data_type {
        DataType::Float16 => half::f16::from_f64(number).to_ne_bytes().to_vec(),
        DataType::BFloat16 => half::bf16::from_f64(number).to_ne_bytes().to_vec(),
        DataType::Float32 => (number as f32).to_ne_bytes().to_vec(),
        _ => number.to_ne_bytes().to_vec(),
    })
}

/// A JSON number, or one of the names that JSON has no number for.
pub(crate) fn named_float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => n.as_f64(),
        Value::String(s) => match s.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn complex(value: &Value, part: &DataType) -> Option<Vec<u8>> {
    let zero = Value::from(0);
    let (re, im) = match value {
        Value::Array(parts) => match parts.as_slice() {
            [re, im] => (re, im),
            _ => return None,
        },
        real => (real, &zero),
    };
    let mut out = float(re, part)?;
    out.extend(float(im, part)?);
    Some(out)
}

/// A structure's fill as an object of its fields, in the byte order that each field is stored in.
fn structure(value: &Value, data_type: &DataType) -> Option<Vec<u8>> {
    let DataType::Struct(fields, size) = data_type else { return None };
    let mut out = vec![0; *size];
    for field in fields {
        let mut bytes = element(value.get(&field.name)?, &field.data_type)?;
        if field.endian != Endian::NATIVE {
            bytes.chunks_exact_mut(field.data_type.swap_unit()).for_each(<[u8]>::reverse);
        }
        out.get_mut(field.offset..field.offset.checked_add(bytes.len())?)?.copy_from_slice(&bytes);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_spelling() {
        let ok = |v, t: DataType| parse(&v, &t).unwrap().unwrap();
        assert_eq!(ok(json!(0.0), DataType::Int32), 0i32.to_ne_bytes());
        assert_eq!(ok(json!(u64::MAX), DataType::UInt64), u64::MAX.to_ne_bytes());
        assert!(f32::from_ne_bytes(ok(json!("NaN"), DataType::Float32).try_into().unwrap()).is_nan());
        assert_eq!(ok(json!("0x7fc00001"), DataType::Float32), 0x7fc0_0001_u32.to_ne_bytes());
        assert_eq!(ok(json!([1, "NaN"]), DataType::Complex64)[..4], 1f32.to_ne_bytes());
        assert_eq!(ok(json!("YWI="), DataType::FixedBytes(3)), b"ab\0");
        assert_eq!(ok(json!(0), DataType::String), b"");
        assert_eq!(
            ok(json!("NaT"), DataType::DateTime64 { unit: crate::store::data_type::NumpyUnit::Day, scale: 1 }),
            i64::MIN.to_ne_bytes()
        );
        assert_eq!(parse(&json!(null), &DataType::Int8), Ok(None));
    }

    #[test]
    fn values_that_do_not_fit_are_errors() {
        for (v, t) in [
            (json!(-1), DataType::UInt32),
            (json!(1.5), DataType::Int32),
            (json!("x"), DataType::Float32),
            (json!("0x7f"), DataType::Float32),
            (json!(1e300), DataType::Int64),
            (json!("abcd"), DataType::FixedUtf32(3)),
            (json!("YWJj"), DataType::Raw(2)),
            (json!([1]), DataType::Complex64),
        ] {
            assert!(parse(&v, &t).is_err(), "{v} {t:?}");
        }
    }
}
