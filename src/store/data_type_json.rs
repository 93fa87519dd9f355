//! Data types as metadata spells them.

use serde_json::Value;

use super::data_type::{DataType, Endian, MAX_ELEMENT, NumpyUnit, StructField};

/// Data type and byte order of a format 2 `dtype`; no byte order where there is nothing to order (`|u1`, `|O`).
///
/// `object_codec` is the id of the filter that makes bytes of `|O` elements.
///
/// # Errors
/// A clause that names the type and why it is not read.
pub(crate) fn parse_v2(dtype: &Value, object_codec: Option<&str>) -> Result<(DataType, Option<Endian>), String> {
    match dtype {
        Value::String(text) => parse_v2_text(text, object_codec),
        Value::Array(fields) => {
            let fields = fields.iter().map(field_v2).collect::<Result<Vec<_>, _>>()?;
            Ok((structure(fields)?, None))
        }
        other => Err(format!("data type {other} is neither text nor a list of fields")),
    }
}

fn parse_v2_text(text: &str, object_codec: Option<&str>) -> Result<(DataType, Option<Endian>), String> {
    let unsupported = || format!("data type `{text}` is not supported");
    let mut chars = text.chars();
    let endian = match chars.next() {
        Some('<') => Some(Endian::Little),
        Some('>') => Some(Endian::Big),
        Some('|') => None,
        _ => return Err(unsupported()),
    };
    let kind = chars.next().ok_or_else(unsupported)?;
    let rest = chars.as_str();
    let size = || rest.parse().ok().filter(|n| (1..=MAX_ELEMENT).contains(n)).ok_or_else(unsupported);
    let data_type = match kind {
        'b' if rest == "1" => DataType::Bool,
        'i' | 'u' | 'f' | 'c' => match (kind, rest) {
            ('i', "1") => DataType::Int8,
            ('i', "2") => DataType::Int16,
            ('i', "4") => DataType::Int32,
            ('i', "8") => DataType::Int64,
            ('u', "1") => DataType::UInt8,
            ('u', "2") => DataType::UInt16,
            ('u', "4") => DataType::UInt32,
            ('u', "8") => DataType::UInt64,
            ('f', "2") => DataType::Float16,
            ('f', "4") => DataType::Float32,
            ('f', "8") => DataType::Float64,
            ('c', "8") => DataType::Complex64,
            ('c', "16") => DataType::Complex128,
            _ => return Err(unsupported()),
        },
        'S' => DataType::FixedBytes(size()?),
        'U' => DataType::FixedUtf32(size()?),
        'V' => DataType::Raw(size()?),
        'M' | 'm' => {
            let (unit, scale) = numpy_unit(rest.strip_prefix('8').ok_or_else(unsupported)?).ok_or_else(unsupported)?;
            if kind == 'M' { DataType::DateTime64 { unit, scale } } else { DataType::TimeDelta64 { unit, scale } }
        }
        'O' => match object_codec {
            Some("vlen-utf8") => DataType::String,
            Some("vlen-bytes") => DataType::Bytes,
            Some(other) => return Err(format!("data type `|O` with filter `{other}` is not supported")),
            None => return Err("data type `|O` needs the filter `vlen-utf8` or `vlen-bytes`".into()),
        },
        _ => return Err(unsupported()),
    };
    Ok((data_type, endian))
}

fn field_v2(field: &Value) -> Result<(String, DataType, Endian), String> {
    match field.as_array().map(Vec::as_slice) {
        Some([Value::String(name), dtype]) => {
            let (data_type, endian) = parse_v2(dtype, None)?;
            Ok((name.clone(), data_type, endian.unwrap_or(Endian::NATIVE)))
        }
        _ => Err(format!("field {field} of a structured data type is not supported")),
    }
}

/// A structure of packed fields.
fn structure(fields: Vec<(String, DataType, Endian)>) -> Result<DataType, String> {
    let mut out: Vec<StructField> = Vec::with_capacity(fields.len());
    let mut offset = 0usize;
    for (name, data_type, endian) in fields {
        if out.iter().any(|f| f.name == name) {
            return Err(format!("field `{name}` of a structured data type stands twice"));
        }
        let size = data_type
            .fixed_size()
            .ok_or_else(|| format!("field `{name}` of a structured data type has no fixed size"))?;
        out.push(StructField { name, data_type, offset, endian });
        offset = offset.checked_add(size).filter(|n| *n <= MAX_ELEMENT).ok_or("a structured data type is too large")?;
    }
    if out.is_empty() {
        return Err("a structured data type has no fields".into());
    }
    Ok(DataType::Struct(out, offset))
}

/// `[25ns]` → nanoseconds, 25.
fn numpy_unit(text: &str) -> Option<(NumpyUnit, u32)> {
    if text.is_empty() {
        return Some((NumpyUnit::Generic, 1));
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let digits = inner.find(|c: char| !c.is_ascii_digit())?;
    let (scale, unit) = inner.split_at(digits);
    let scale = if scale.is_empty() { 1 } else { scale.parse().ok().filter(|s| *s > 0)? };
    Some((unit_name(unit)?, scale))
}

fn unit_name(name: &str) -> Option<NumpyUnit> {
    Some(match name {
        "Y" => NumpyUnit::Year,
        "M" => NumpyUnit::Month,
        "W" => NumpyUnit::Week,
        "D" => NumpyUnit::Day,
        "h" => NumpyUnit::Hour,
        "m" => NumpyUnit::Minute,
        "s" => NumpyUnit::Second,
        "ms" => NumpyUnit::Millisecond,
        "us" | "μs" | "µs" => NumpyUnit::Microsecond,
        "ns" => NumpyUnit::Nanosecond,
        "ps" => NumpyUnit::Picosecond,
        "fs" => NumpyUnit::Femtosecond,
        "as" => NumpyUnit::Attosecond,
        "generic" => NumpyUnit::Generic,
        _ => return None,
    })
}

/// Data type of a format 3 `data_type`. Structures take the byte order `endian` of the array's `bytes` codec.
///
/// # Errors
/// A clause that names the type and why it is not read.
pub(crate) fn parse_v3(data_type: &Value, endian: Endian) -> Result<DataType, String> {
    let name = match data_type {
        Value::String(name) => name.as_str(),
        Value::Object(map) => map.get("name").and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    };
    let unsupported = || match data_type {
        Value::String(name) => format!("data type `{name}` is not supported"),
        other => format!("data type {other} is not supported"),
    };
    let configuration = |key: &str| data_type.get("configuration").and_then(|c| c.get(key));
    let length = || {
        configuration("length_bytes")
            .and_then(Value::as_u64)
            .and_then(|n| usize::try_from(n).ok())
            .filter(|n| (1..=MAX_ELEMENT).contains(n))
            .ok_or_else(unsupported)
    };
    let unit = || {
        let unit = configuration("unit").and_then(Value::as_str).and_then(unit_name);
        let scale = configuration("scale_factor")
            .map_or(Some(1), |s| s.as_u64().and_then(|s| u32::try_from(s).ok()).filter(|s| *s > 0));
        unit.zip(scale).ok_or_else(unsupported)
    };
    Ok(match name {
        "bool" => DataType::Bool,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float16" => DataType::Float16,
        "bfloat16" => DataType::BFloat16,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        "complex64" | "complex_float32" => DataType::Complex64,
        "complex128" | "complex_float64" => DataType::Complex128,
        "string" | "variable_length_utf8" => DataType::String,
        "bytes" | "variable_length_bytes" | "binary" => DataType::Bytes,
        "null_terminated_bytes" => DataType::FixedBytes(length()?),
        "raw_bytes" => DataType::Raw(length()?),
        "fixed_length_utf32" => {
            let bytes = length()?;
            if bytes % 4 != 0 {
                return Err(unsupported());
            }
            DataType::FixedUtf32(bytes / 4)
        }
        "numpy.datetime64" => {
            let (unit, scale) = unit()?;
            DataType::DateTime64 { unit, scale }
        }
        "numpy.timedelta64" => {
            let (unit, scale) = unit()?;
            DataType::TimeDelta64 { unit, scale }
        }
        "structured" | "struct" => {
            let fields = configuration("fields").and_then(Value::as_array).ok_or_else(unsupported)?;
            structure(fields.iter().map(|f| field_v3(f, endian)).collect::<Result<_, _>>()?)?
        }
        _ => match name.strip_prefix('r').and_then(|bits| bits.parse::<usize>().ok()) {
            Some(bits) if bits % 8 == 0 && (1..=MAX_ELEMENT).contains(&(bits / 8)) => DataType::Raw(bits / 8),
            _ => return Err(unsupported()),
        },
    })
}

fn field_v3(field: &Value, endian: Endian) -> Result<(String, DataType, Endian), String> {
    let (name, data_type) = match field {
        Value::Array(pair) => (pair.first(), pair.get(1)),
        other => (other.get("name"), other.get("data_type")),
    };
    match (name.and_then(Value::as_str), data_type) {
        (Some(name), Some(data_type)) => Ok((name.to_owned(), parse_v3(data_type, endian)?, endian)),
        _ => Err(format!("field {field} of a structured data type is not supported")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn v2_types() {
        let parse = |v| parse_v2(&v, Some("vlen-utf8"));
        assert_eq!(parse(json!("<f4")), Ok((DataType::Float32, Some(Endian::Little))));
        assert_eq!(parse(json!("|S5")), Ok((DataType::FixedBytes(5), None)));
        assert_eq!(
            parse(json!(">M8[25ns]")),
            Ok((DataType::DateTime64 { unit: NumpyUnit::Nanosecond, scale: 25 }, Some(Endian::Big)))
        );
        assert_eq!(parse(json!("|O")), Ok((DataType::String, None)));
        for bad in [
            json!("f4"),
            json!("<f3"),
            json!("<M8[0s]"),
            json!("<M8[s"),
            json!(""),
            json!("|S-1"),
            json!(4),
            json!([]),
            json!([["a"]]),
            json!("é"),
        ] {
            assert!(parse(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn structures_keep_the_byte_order_of_each_field() {
        let (t, _) = parse_v2(&json!([["flux", ">f4"], ["mask", "<i4"]]), None).unwrap();
        let DataType::Struct(fields, 8) = t else { panic!("{t:?}") };
        assert_eq!(
            fields.iter().map(|f| (f.offset, f.endian)).collect::<Vec<_>>(),
            [(0, Endian::Big), (4, Endian::Little)]
        );
    }

    #[test]
    fn v3_types() {
        let parse = |v| parse_v3(&v, Endian::Little);
        assert_eq!(parse(json!("r24")), Ok(DataType::Raw(3)));
        assert_eq!(
            parse(json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}})),
            Ok(DataType::FixedUtf32(3))
        );
        for bad in [
            json!("r7"),
            json!("float8_e5m2"),
            json!({"name": "raw_bytes"}),
            json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 0}}),
            json!(null),
        ] {
            assert!(parse(bad.clone()).is_err(), "{bad}");
        }
    }
}
