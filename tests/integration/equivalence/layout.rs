//! How arrays are laid out: chunk shapes, codecs, and the metadata that say so.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use serde_json::{Value, json};

use super::element::{Type, chance, pick};

/// How the elements of an array lie in its chunks.
pub(crate) struct Layout {
    pub(crate) chunks: Vec<u64>,
    pub(crate) big: bool,
    /// Format 2: column-major.
    fortran: bool,
    separator: Option<&'static str>,
    /// Format 2: compressor and filters. Format 3: codecs, chunk key encoding.
    codecs: Value,
    keys: Value,
}

impl Layout {
    pub(crate) fn draw(rng: &mut Rng, format: u8, data_type: Type, shape: &[u64]) -> Self {
        let mut inner: Vec<u64> = shape.iter().map(|n| rng.u64(1..=n + 2)).collect();
        // Not too many chunks: longer ones along the dimension that has the most.
        let count = |n: &u64, c: &u64| n.div_ceil(*c);
        while shape.iter().zip(&inner).map(|(n, c)| count(n, c)).product::<u64>() > 600 {
            let most = shape.iter().zip(&mut inner).max_by_key(|(n, c)| count(n, c));
            if let Some((_, c)) = most {
                *c *= 2;
            }
        }
        let big = rng.bool();
        if format == 2 {
            let separator = pick(rng, &[None, Some("."), Some("/")]);
            let codecs = codecs_v2(rng, data_type);
            return Self { chunks: inner, big, fortran: rng.bool(), separator, codecs, keys: Value::Null };
        }
        let separator = pick(rng, &["/", "."]);
        let name = pick(rng, &["default", "default", "v2"]);
        let keys = json!({"name": name, "configuration": {"separator": separator}});
        let (chunks, codecs) = if chance(rng, 35) && !shape.is_empty() {
            let shards = inner.iter().map(|n| n * rng.u64(1..=3)).collect();
            (shards, sharded(rng, data_type, big, &inner))
        } else {
            let codecs = codecs_v3(rng, data_type, big, inner.len());
            (inner, codecs)
        };
        Self { chunks, big, fortran: false, separator: None, codecs: json!(codecs), keys }
    }

    pub(crate) fn document_v2(&self, dtype: &str, data_type: Type, shape: &[u64], fill: &Value) -> Value {
        let filters =
            if data_type == Type::Text { json!([{"id": "vlen-utf8"}]) } else { self.codecs["filters"].clone() };
        let mut document = json!({
            "zarr_format": 2, "shape": shape, "chunks": self.chunks, "dtype": dtype, "fill_value": fill,
            "order": if self.fortran { "F" } else { "C" }, "compressor": self.codecs["compressor"], "filters": filters,
        });
        if let Some(separator) = self.separator {
            document["dimension_separator"] = json!(separator);
        }
        document
    }

    pub(crate) fn document_v3(&self, data_type: Type, shape: &[u64], fill: &Value) -> Value {
        let data_type = match data_type {
            Type::Bool => json!("bool"),
            Type::Int { bytes, signed } => json!(format!("{}int{}", if signed { "" } else { "u" }, 8 * bytes)),
            Type::Float(bytes) => json!(format!("float{}", 8 * bytes)),
            Type::Utf32(n) => json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 4 * n}}),
            Type::Time(unit, scale) => {
                json!({"name": "numpy.datetime64", "configuration": {"unit": unit, "scale_factor": scale}})
            }
            Type::Text | Type::Bytes(_) => json!("string"),
        };
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": fill,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunks}},
            "chunk_key_encoding": self.keys, "codecs": self.codecs,
        })
    }
}

pub(crate) fn dtype_v2(data_type: Type, big: bool) -> String {
    let order = if data_type.size() == 1 {
        '|'
    } else if big {
        '>'
    } else {
        '<'
    };
    match data_type {
        Type::Bool => "|b1".into(),
        Type::Int { bytes, signed } => format!("{order}{}{bytes}", if signed { 'i' } else { 'u' }),
        Type::Float(bytes) => format!("{order}f{bytes}"),
        Type::Text => "|O".into(),
        Type::Bytes(n) => format!("|S{n}"),
        Type::Utf32(n) => format!("{order}U{n}"),
        Type::Time(unit, _) => format!("{order}M8[{unit}]"),
    }
}

/// The document with what zarrs lacks replaced by its like.
pub(crate) fn for_zarrs(document: &Value, data_type: Type, big: bool) -> Value {
    let mut document = document.clone();
    match data_type {
        Type::Time(..) => document["dtype"] = json!(if big { ">i8" } else { "<i8" }),
        Type::Bytes(n) => {
            document["dtype"] = json!(format!("|V{n}"));
            document["fill_value"] = json!(STANDARD.encode(vec![0; n]));
        }
        Type::Utf32(_) if document["fill_value"].is_null() => document["fill_value"] = json!(""),
        _ => {}
    }
    // zarrs 0.23.14 has undefined behaviour for column-major arrays without dimensions.
    if document["shape"].as_array().is_some_and(Vec::is_empty) {
        document["order"] = json!("C");
    }
    document
}

fn codecs_v2(rng: &mut Rng, data_type: Type) -> Value {
    let cname = pick(rng, &["lz4", "lz4hc", "zlib", "zstd", "blosclz"]);
    let compressors = [
        Value::Null,
        json!({"id": "zlib", "level": 1}),
        json!({"id": "gzip", "level": 1}),
        json!({"id": "bz2", "level": 1}),
        json!({"id": "zstd", "level": 1}),
        json!({"id": "blosc", "cname": cname, "clevel": 5, "shuffle": rng.u8(0..=2), "blocksize": 0}),
    ];
    let compressor = pick(rng, &compressors);
    let shuffled = data_type.size() > 1 && chance(rng, 15);
    let filters = if shuffled { json!([{"id": "shuffle", "elementsize": data_type.size()}]) } else { Value::Null };
    json!({"compressor": compressor, "filters": filters})
}

/// One codec that makes bytes of elements, and some around it.
fn codecs_v3(rng: &mut Rng, data_type: Type, big: bool, rank: usize) -> Vec<Value> {
    let mut codecs = Vec::new();
    if rank > 0 && chance(rng, 25) {
        let mut order: Vec<usize> = (0..rank).collect();
        rng.shuffle(&mut order);
        codecs.push(json!({"name": "transpose", "configuration": {"order": order}}));
    }
    codecs.push(match data_type {
        Type::Text | Type::Bytes(_) => json!({"name": "vlen-utf8"}),
        _ if data_type.size() == 1 && rng.bool() => json!({"name": "bytes"}),
        _ => json!({"name": "bytes", "configuration": {"endian": if big { "big" } else { "little" }}}),
    });
    let compressors = [
        json!({"name": "zstd", "configuration": {"level": 1, "checksum": rng.bool()}}),
        json!({"name": "gzip", "configuration": {"level": 1}}),
        json!({"name": "blosc", "configuration": {"cname": pick(rng, &["lz4", "zlib", "zstd", "blosclz"]), "clevel": 5, "shuffle": pick(rng, &["noshuffle", "shuffle", "bitshuffle"]), "typesize": data_type.size().max(1), "blocksize": 0}}),
    ];
    if chance(rng, 60) {
        codecs.push(pick(rng, &compressors));
    }
    if chance(rng, 25) {
        codecs.push(json!({"name": "crc32c"}));
    }
    codecs
}

/// Shards of inner chunks of the shape `inner`.
fn sharded(rng: &mut Rng, data_type: Type, big: bool, inner: &[u64]) -> Vec<Value> {
    let mut index_codecs =
        vec![json!({"name": "bytes", "configuration": {"endian": pick(rng, &["little", "little", "big"])}})];
    if chance(rng, 60) {
        index_codecs.push(json!({"name": "crc32c"}));
    }
    let mut codecs = Vec::new();
    let mut shape = inner.to_vec();
    if chance(rng, 10) {
        let mut order: Vec<usize> = (0..inner.len()).collect();
        rng.shuffle(&mut order);
        shape = order.iter().map(|i| inner[*i]).collect();
        codecs.push(json!({"name": "transpose", "configuration": {"order": order}}));
    }
    codecs.push(json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": shape, "codecs": codecs_v3(rng, data_type, big, inner.len()),
        "index_codecs": index_codecs, "index_location": pick(rng, &["start", "end"]),
    }}));
    codecs
}
