//! Array metadata of both formats in one form.

use serde_json::{Map, Value};

use super::chunk_grid::{ChunkGrid, ChunkKeyEncoding, Cuts, DimensionChunks};
use super::codec::CodecMetadata;
use super::data_type::{DataType, Endian};
use super::{data_type_json, fill_value, metadata_v2, metadata_v3};

/// Version of the Zarr format that wrote a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZarrFormat {
    /// `.zarray`, `.zgroup`, `.zattrs`.
    V2,
    /// `zarr.json`.
    V3,
}

/// What an array's metadata says, checked: lengths of chunks are not 0, and the number of cells fits an i64.
#[derive(Debug, Clone)]
pub(crate) struct ArrayMetadata {
    /// Path inside the store, without a leading slash; empty for an array that is the whole store.
    pub(crate) path: String,
    /// Format that it was written in.
    pub(crate) format: ZarrFormat,
    /// Length along each dimension.
    pub(crate) shape: Vec<u64>,
    /// Type of the elements.
    pub(crate) data_type: DataType,
    /// How the array is cut into chunks (into shards, where it is sharded).
    pub(crate) chunk_grid: ChunkGrid,
    /// How chunks are named.
    pub(crate) chunk_keys: ChunkKeyEncoding,
    /// The codecs, in the order of encoding.
    pub(crate) codecs: Vec<CodecMetadata>,
    /// Native-endian bytes of the element that stands for unwritten ones; `None` for `null`.
    pub(crate) fill_value: Option<Vec<u8>>,
    /// Names of the dimensions, where the array has any.
    pub(crate) dimension_names: Option<Vec<String>>,
    /// The user's attributes.
    pub(crate) attributes: Map<String, Value>,
}

/// More dimensions than any real array has, and than numpy allows.
const MAX_RANK: usize = 64;

impl ArrayMetadata {
    /// Read the metadata document of the array at `path`; `attributes` holds those that format 2 keeps in a document of its own.
    ///
    /// # Errors
    /// A clause that says what is missing, not valid, or not supported.
    pub(crate) fn parse(path: &str, document: &Value, attributes: Option<&Map<String, Value>>) -> Result<Self, String> {
        if let Some(format) = document.get("zarr_format").filter(|f| !matches!(f.as_u64(), Some(2 | 3))) {
            return Err(format!("`zarr_format` {format} is neither 2 nor 3"));
        }
        if document.get("node_type").is_some() || document.get("zarr_format").and_then(Value::as_u64) == Some(3) {
            metadata_v3::parse(path, document)
        } else {
            metadata_v2::parse(path, document, attributes.cloned().unwrap_or_default())
        }
    }

    /// Key of a chunk, relative to the store.
    #[must_use]
    pub(crate) fn chunk_key(&self, chunk: &[u64]) -> String {
        join(&self.path, &self.chunk_keys.key(chunk))
    }
}

/// `path/key`, without a slash at the root.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") }
}

/// The shape of an array, whose number of cells fits an i64, like the row numbers of SQL, even counting no dimension as empty.
pub(crate) fn shape(document: &Value) -> Result<Vec<u64>, String> {
    let shape =
        lengths(document.get("shape").ok_or("`shape` is missing")?).ok_or("`shape` is not a list of lengths")?;
    if shape.len() > MAX_RANK {
        return Err(format!("{} dimensions are more than {MAX_RANK}", shape.len()));
    }
    let cells = shape.iter().try_fold(1u64, |n, s| n.checked_mul((*s).max(1)));
    cells.filter(|n| i64::try_from(*n).is_ok()).ok_or("the shape has 2^63 cells or more")?;
    Ok(shape)
}

/// A JSON list of lengths, whole floats included.
pub(crate) fn lengths(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(|v| u64::try_from(fill_value::integer(v)?).ok()).collect()
}

/// A grid of chunks of one shape. A length of 0 (written for empty dimensions) is taken as 1.
pub(crate) fn regular_grid(shape: &[u64], chunks: &[u64]) -> Result<ChunkGrid, String> {
    if shape.len() != chunks.len() {
        return Err(format!("chunks have {} dimensions and the array has {}", chunks.len(), shape.len()));
    }
    let cut = |(size, chunk): (&u64, &u64)| match (*size, *chunk) {
        (1.., 0) => Err("a chunk length is 0".to_owned()),
        (size, chunk) => Ok(DimensionChunks { size, cuts: Cuts::Regular(chunk.max(1)) }),
    };
    Ok(ChunkGrid(shape.iter().zip(chunks).map(cut).collect::<Result<_, _>>()?))
}

/// Names of dimensions must be one a dimension.
pub(crate) fn check_names(names: Option<Vec<String>>, rank: usize) -> Result<Option<Vec<String>>, String> {
    match names {
        Some(names) if names.len() != rank => Err(format!("{} dimension names for {rank} dimensions", names.len())),
        names => Ok(names),
    }
}

/// Format 3's type and fill value; the byte order of structures is that of the innermost `bytes` codec.
pub(crate) fn type_and_fill_v3(
    document: &Value,
    codecs: &[CodecMetadata],
) -> Result<(DataType, Option<Vec<u8>>), String> {
    let data_type =
        data_type_json::parse_v3(document.get("data_type").ok_or("`data_type` is missing")?, bytes_endian(codecs))?;
    // Format 3 demands a fill value; where a writer left it out, cells that were never written are zeros.
    let fill = fill_value::parse(document.get("fill_value").unwrap_or(&Value::Null), &data_type)?;
    let fill = Some(fill.unwrap_or_else(|| fill_value::zero(&data_type)));
    Ok((data_type, fill))
}

fn bytes_endian(codecs: &[CodecMetadata]) -> Endian {
    for codec in codecs {
        match codec.name.as_str() {
            "bytes" | "endian" if codec.configuration.get("endian").and_then(Value::as_str) == Some("big") => {
                return Endian::Big;
            }
            "sharding_indexed" => {
                let inner =
                    codec.configuration.get("codecs").and_then(|c| metadata_v3::codecs(c).ok()).unwrap_or_default();
                return bytes_endian(&inner);
            }
            _ => {}
        }
    }
    Endian::Little
}
