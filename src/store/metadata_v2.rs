//! `.zarray` and `.zattrs` of an array (Zarr format 2, with the xarray and NCZarr conventions for names of dimensions).

use serde_json::{Map, Value};

use super::chunk_grid::ChunkKeyEncoding;
use super::codec::CodecMetadata;
use super::data_type::Endian;
use super::metadata::{ArrayMetadata, ZarrFormat, check_names, lengths, regular_grid, shape};
use super::{data_type_json, fill_value};

pub(crate) fn parse(path: &str, document: &Value, mut attributes: Map<String, Value>) -> Result<ArrayMetadata, String> {
    let shape = shape(document)?;
    let chunks = document.get("chunks").and_then(lengths).ok_or("`chunks` is not a list of lengths")?;
    let filters = filters(document.get("filters"))?;
    let object_codec = filters.iter().find(|f| f.name.starts_with("vlen-")).map(|f| f.name.as_str());
    let (data_type, endian) =
        data_type_json::parse_v2(document.get("dtype").ok_or("`dtype` is missing")?, object_codec)?;
    let compressor = match document.get("compressor") {
        None | Some(Value::Null) => None,
        Some(codec) => Some(self::codec(codec)?),
    };
    let dimension_names = check_names(dimension_names(document, &mut attributes), shape.len())?;
    Ok(ArrayMetadata {
        path: path.to_owned(),
        format: ZarrFormat::V2,
        chunk_grid: regular_grid(&shape, &chunks)?,
        chunk_keys: ChunkKeyEncoding { separator: separator(document.get("dimension_separator"))?, prefixed: false },
        fill_value: fill_value::parse(document.get("fill_value").unwrap_or(&Value::Null), &data_type)?,
        codecs: chain(shape.len(), document.get("order"), filters, endian, compressor)?,
        data_type,
        dimension_names,
        attributes,
        shape,
    })
}

/// The same chain in the words of format 3: order, filters on arrays, `bytes`, filters on bytes, compressor.
fn chain(
    rank: usize,
    order: Option<&Value>,
    filters: Vec<CodecMetadata>,
    endian: Option<Endian>,
    compressor: Option<CodecMetadata>,
) -> Result<Vec<CodecMetadata>, String> {
    let mut out = Vec::with_capacity(filters.len() + 3);
    match order.map(Value::as_str) {
        None | Some(Some("C")) => {}
        Some(Some("F")) if rank < 2 => {}
        Some(Some("F")) => out.push(CodecMetadata::new("transpose").with("order", (0..rank).rev().collect::<Vec<_>>())),
        Some(_) => return Err("`order` is neither `C` nor `F`".into()),
    }
    // Filters may change the type; the bytes have the order of the type that the last of them leaves.
    let mut endian = endian;
    let mut serialized = false;
    for filter in filters {
        if !serialized && !on_arrays(&filter.name) {
            if !filter.name.starts_with("vlen-") {
                out.push(bytes(endian));
            }
            serialized = true;
        } else if let Some(stored) = stored_type(&filter) {
            endian = data_type_json::parse_v2(stored, None)?.1;
        }
        out.push(filter);
    }
    if !serialized {
        out.push(bytes(endian));
    }
    out.extend(compressor);
    Ok(out)
}

fn bytes(endian: Option<Endian>) -> CodecMetadata {
    let name = match endian {
        Some(Endian::Big) => "big",
        _ => "little",
    };
    CodecMetadata::new("bytes").with("endian", name)
}

/// numcodecs filters that take and give arrays of elements; all others work on bytes.
fn on_arrays(name: &str) -> bool {
    ["delta", "fixedscaleoffset", "astype", "quantize", "bitround", "packbits", "categorize"]
        .iter()
        .any(|f| name.strip_prefix("numcodecs.") == Some(f))
}

/// The type in which a filter stores what it makes.
fn stored_type(filter: &CodecMetadata) -> Option<&Value> {
    let c = &filter.configuration;
    c.get("encode_dtype").or_else(|| c.get("astype")).or_else(|| c.get("dtype"))
}

fn filters(value: Option<&Value>) -> Result<Vec<CodecMetadata>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(filters)) => filters.iter().map(codec).collect(),
        Some(other) => Err(format!("`filters` {other} is not a list")),
    }
}

/// numcodecs spells a codec as an object with its `id` among its parameters.
fn codec(value: &Value) -> Result<CodecMetadata, String> {
    let map = value.as_object().ok_or_else(|| format!("codec {value} is not an object"))?;
    let id = map.get("id").and_then(Value::as_str).ok_or_else(|| format!("codec {value} has no id"))?;
    let configuration = map.iter().filter(|(key, _)| *key != "id").map(|(k, v)| (k.clone(), v.clone())).collect();
    let name = if id.starts_with("vlen-") { id.to_owned() } else { format!("numcodecs.{id}") };
    Ok(CodecMetadata { name, configuration })
}

fn separator(value: Option<&Value>) -> Result<char, String> {
    match value.map(Value::as_str) {
        None | Some(Some(".")) => Ok('.'),
        Some(Some("/")) => Ok('/'),
        Some(_) => Err("`dimension_separator` is neither `.` nor `/`".into()),
    }
}

/// xarray's `_ARRAY_DIMENSIONS`, else NCZarr's dimension references (`/lat`), in `.zarray` or in an attribute. The attribute is taken away: it is no attribute of the data.
fn dimension_names(document: &Value, attributes: &mut Map<String, Value>) -> Option<Vec<String>> {
    let texts = |v: &Value| v.as_array()?.iter().map(|n| n.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
    if let Some(names) = attributes.shift_remove("_ARRAY_DIMENSIONS").as_ref().and_then(texts) {
        return Some(names);
    }
    let references = ["_NCZARR_ARRAY", "_nczarr_array"].iter().find_map(|k| {
        let held = document.get(*k).or_else(|| attributes.get(*k))?;
        texts(held.get("dimrefs")?)
    })?;
    Some(references.into_iter().map(|r| r.rsplit('/').next().unwrap_or_default().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(codecs: &[CodecMetadata]) -> Vec<&str> {
        codecs.iter().map(|c| c.name.as_str()).collect()
    }

    #[test]
    fn filters_stand_on_their_side_of_bytes() {
        let document = json!({"zarr_format": 2, "shape": [4, 4], "chunks": [2, 2], "dtype": "<f8", "fill_value": null, "order": "F",
            "filters": [{"id": "fixedscaleoffset", "dtype": "<f8", "astype": ">i2", "scale": 1, "offset": 0}, {"id": "shuffle", "elementsize": 2}],
            "compressor": {"id": "zlib", "level": 1}});
        let m = parse("a", &document, Map::new()).unwrap();
        assert_eq!(
            names(&m.codecs),
            ["transpose", "numcodecs.fixedscaleoffset", "bytes", "numcodecs.shuffle", "numcodecs.zlib"]
        );
        assert_eq!(m.codecs[2].configuration["endian"], "big");
        assert_eq!(m.fill_value, None);
    }

    #[test]
    fn dimension_names_of_both_conventions() {
        let document = json!({"shape": [4], "chunks": [2], "dtype": "|O", "filters": [{"id": "vlen-utf8"}], "compressor": null, "_NCZARR_ARRAY": {"dimrefs": ["/g/lat"]}});
        let m = parse("a", &document, Map::new()).unwrap();
        assert_eq!(m.dimension_names, Some(vec!["lat".into()]));
        assert_eq!(names(&m.codecs), ["vlen-utf8"]);
        let attributes = json!({"_ARRAY_DIMENSIONS": ["x"]}).as_object().cloned().unwrap();
        let m = parse("a", &document, attributes).unwrap();
        assert_eq!((m.dimension_names, m.attributes.len()), (Some(vec!["x".into()]), 0));
    }

    #[test]
    fn hostile_metadata_is_refused() {
        let good = json!({"shape": [4], "chunks": [2], "dtype": "<i4", "compressor": null});
        assert!(parse("a", &good, Map::new()).is_ok());
        for (key, value) in [
            ("chunks", json!(null)),
            ("chunks", json!([0])),
            ("order", json!("K")),
            ("dtype", json!("<O4")),
            ("filters", json!([{"x": 1}])),
            ("compressor", json!("zlib")),
            ("dimension_separator", json!("_")),
            ("shape", json!([2.5])),
        ] {
            let mut bad = good.clone();
            bad[key] = value.clone();
            assert!(parse("a", &bad, Map::new()).is_err(), "{key} {value}");
        }
    }
}
