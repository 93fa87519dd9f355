//! `zarr.json` of an array (Zarr format 3).

use serde_json::{Map, Value};

use super::chunk_grid::{ChunkGrid, ChunkKeyEncoding, Cuts, DimensionChunks};
use super::codec::CodecMetadata;
use super::metadata::{ArrayMetadata, ZarrFormat, check_names, lengths, regular_grid, shape, type_and_fill_v3};

const KNOWN: [&str; 13] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
    "consolidated_metadata",
    "must_understand",
];

pub(crate) fn parse(path: &str, document: &Value) -> Result<ArrayMetadata, String> {
    let map = document.as_object().ok_or("it is not a JSON object")?;
    if let Some((key, _)) = map.iter().find(|(key, value)| !KNOWN.contains(&key.as_str()) && !may_ignore(value)) {
        return Err(format!("the extension `{key}` is not supported"));
    }
    if map.get("storage_transformers").and_then(Value::as_array).is_some_and(|t| !t.is_empty()) {
        return Err("storage transformers are not supported".into());
    }
    let shape = shape(document)?;
    let codecs = codecs(map.get("codecs").ok_or("`codecs` is missing")?)?;
    let (data_type, fill_value) = type_and_fill_v3(document, &codecs)?;
    let dimension_names = check_names(dimension_names(map.get("dimension_names"))?, shape.len())?;
    Ok(ArrayMetadata {
        path: path.to_owned(),
        format: ZarrFormat::V3,
        chunk_grid: chunk_grid(map.get("chunk_grid").ok_or("`chunk_grid` is missing")?, &shape)?,
        chunk_keys: chunk_keys(map.get("chunk_key_encoding"))?,
        data_type,
        codecs,
        fill_value,
        dimension_names,
        attributes: map.get("attributes").and_then(Value::as_object).cloned().unwrap_or_default(),
        shape,
    })
}

/// An extension may only be ignored where it says so itself.
fn may_ignore(value: &Value) -> bool {
    value.get("must_understand") == Some(&Value::Bool(false))
}

/// A list of codecs, each a name or an object with `name` and `configuration`.
pub(crate) fn codecs(value: &Value) -> Result<Vec<CodecMetadata>, String> {
    value
        .as_array()
        .ok_or("`codecs` is not a list")?
        .iter()
        .map(|c| named(c, "codec").map(|(name, configuration)| CodecMetadata { name, configuration }))
        .collect()
}

fn named(value: &Value, what: &str) -> Result<(String, Map<String, Value>), String> {
    let name = value
        .as_str()
        .or_else(|| value.get("name").and_then(Value::as_str))
        .ok_or_else(|| format!("{what} {value} has no name"))?;
    Ok((name.to_owned(), value.get("configuration").and_then(Value::as_object).cloned().unwrap_or_default()))
}

fn dimension_names(value: Option<&Value>) -> Result<Option<Vec<String>>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(names)) if names.iter().all(Value::is_null) && !names.is_empty() => Ok(None),
        Some(Value::Array(names)) => names
            .iter()
            .enumerate()
            .map(|(i, name)| match name {
                Value::Null => Ok(format!("dim_{i}")),
                Value::String(name) => Ok(name.clone()),
                other => Err(format!("dimension name {other} is not text")),
            })
            .collect::<Result<_, _>>()
            .map(Some),
        Some(other) => Err(format!("`dimension_names` {other} is not a list")),
    }
}

fn chunk_grid(value: &Value, shape: &[u64]) -> Result<ChunkGrid, String> {
    let (name, configuration) = named(value, "chunk grid")?;
    match name.as_str() {
        "regular" => {
            let chunks =
                configuration.get("chunk_shape").and_then(lengths).ok_or("`chunk_shape` is not a list of lengths")?;
            regular_grid(shape, &chunks)
        }
        "rectilinear" => {
            let chunks =
                configuration.get("chunk_shapes").and_then(Value::as_array).ok_or("`chunk_shapes` is not a list")?;
            if chunks.len() != shape.len() {
                return Err(format!("chunks have {} dimensions and the array has {}", chunks.len(), shape.len()));
            }
            Ok(ChunkGrid(
                shape
                    .iter()
                    .zip(chunks)
                    .map(|(size, chunk)| rectilinear_dimension(*size, chunk))
                    .collect::<Result<_, _>>()?,
            ))
        }
        other => Err(format!("chunk grid `{other}` is not supported")),
    }
}

/// More chunks along one dimension than a list of them may name.
const MAX_IRREGULAR: usize = 1 << 24;

/// One length for all chunks, or a list of lengths and runs (`[length, count]`).
fn rectilinear_dimension(size: u64, chunk: &Value) -> Result<DimensionChunks, String> {
    let bad = || format!("chunk lengths {chunk} are not valid");
    if let Some(length) = chunk.as_u64() {
        if length == 0 && size > 0 {
            return Err(bad());
        }
        return Ok(DimensionChunks { size, cuts: Cuts::Regular(length.max(1)) });
    }
    let mut bounds = vec![0u64];
    let mut end = 0u64;
    for item in chunk.as_array().ok_or_else(bad)? {
        let (length, count) = match item {
            Value::Array(run) => (
                run.first().and_then(Value::as_u64).ok_or_else(bad)?,
                run.get(1).and_then(Value::as_u64).ok_or_else(bad)?,
            ),
            length => (length.as_u64().ok_or_else(bad)?, 1),
        };
        if length == 0 {
            return Err(bad());
        }
        // Chunks beyond the array hold nothing, however many there are.
        let needed = size.saturating_sub(end).div_ceil(length).min(count);
        for _ in 0..needed {
            if bounds.len() > MAX_IRREGULAR {
                return Err(format!("there are more than {MAX_IRREGULAR} chunks along a dimension"));
            }
            end = end.checked_add(length).ok_or_else(bad)?;
            bounds.push(end);
        }
    }
    if end < size {
        return Err(format!("chunk lengths {chunk} end at {end}, before the array's {size}"));
    }
    Ok(DimensionChunks { size, cuts: Cuts::Irregular(bounds) })
}

/// `default` (`c/0/1`) or `v2` (`0.1`), each with its own default separator.
fn chunk_keys(value: Option<&Value>) -> Result<ChunkKeyEncoding, String> {
    let Some(value) = value else { return Ok(ChunkKeyEncoding { separator: '/', prefixed: true }) };
    let (name, configuration) = named(value, "chunk key encoding")?;
    let prefixed = match name.as_str() {
        "default" => true,
        "v2" => false,
        other => return Err(format!("chunk key encoding `{other}` is not supported")),
    };
    let separator = match configuration.get("separator") {
        None => {
            if prefixed {
                '/'
            } else {
                '.'
            }
        }
        Some(value) => match value.as_str() {
            Some("/") => '/',
            Some(".") => '.',
            _ => return Err(format!("chunk key separator {value} is not `/` or `.`")),
        },
    };
    Ok(ChunkKeyEncoding { separator, prefixed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn array() -> Value {
        json!({"zarr_format": 3, "node_type": "array", "shape": [5, 7], "data_type": "int16", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 9]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]})
    }

    #[test]
    fn a_plain_array() {
        let m = parse("g/a", &array()).unwrap();
        assert_eq!((m.chunk_key(&[1, 0]).as_str(), m.chunk_grid.stored_shape(&[2, 0])), ("g/a/c/1/0", vec![2, 9]));
        assert_eq!(m.dimension_names, None);
    }

    #[test]
    fn hostile_metadata_is_refused() {
        for (key, value) in [
            ("shape", json!([4_294_967_296u64, 4_294_967_296u64, 4])),
            ("shape", json!([-1, 7])),
            ("shape", json!("x")),
            ("shape", json!([1e30, 2])),
            ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": [0, 9]}})),
            ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": [1]}})),
            (
                "chunk_grid",
                json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[2, 2], 7]}}),
            ),
            (
                "chunk_grid",
                json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[0, 9]], 7]}}),
            ),
            ("chunk_grid", json!(7)),
            ("chunk_key_encoding", json!({"name": "default", "configuration": {"separator": "--"}})),
            ("codecs", json!([{"configuration": {}}])),
            ("dimension_names", json!(["a"])),
            ("dimension_names", json!([1, 2])),
            ("encryption", json!({"key": 1})),
            ("storage_transformers", json!([{"name": "x"}])),
            ("fill_value", json!(70000)),
        ] {
            let mut bad = array();
            bad[key] = value.clone();
            assert!(parse("a", &bad).is_err(), "{key} {value}");
        }
        // However many chunks lie beyond the array, only its own are kept.
        let mut far = array();
        let runs = json!([[[1, 1_000_000_000_000_000_000u64]], 7]);
        far["chunk_grid"] = json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": runs}});
        let Cuts::Irregular(bounds) = &parse("a", &far).unwrap().chunk_grid.0[0].cuts else { panic!("irregular") };
        assert_eq!(bounds.len(), 6);
        let mut fine = array();
        fine["note"] = json!({"must_understand": false});
        assert!(parse("a", &fine).is_ok());
    }
}
