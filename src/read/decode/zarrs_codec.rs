//! Codecs of the zarrs crate, for those that this crate has none of its own of: `packbits`, `reshape`, `squeeze`, and
//! whatever else is registered.
//!
//! The only file that names zarrs. Its codecs trust their input and its size: lengths are checked here, and a panic is
//! caught by the caller.

use std::{borrow::Cow, num::NonZeroU64, sync::Arc};

use zarrs::{
    array::{
        ArrayBytes, BytesRepresentation, CodecOptions, DataType as ZarrsType, FillValue,
        codec::api::{ArrayToArrayCodecTraits, ArrayToBytesCodecTraits, BytesToBytesCodecTraits, Codec as ZarrsCodec},
    },
    metadata::v3::MetadataV3,
    plugin::PluginCreateError,
};

use super::{
    byte_codecs::{Size, copy},
    variable::VariableElements,
};
use crate::store::{codec::CodecMetadata, data_type::DataType};

/// Codecs with codecs inside that would run without the checks of this crate: some of them abort the process on bad
/// input.
const REFUSED: [&str; 3] = ["zarrs.vlen", "https://codec.zarrs.dev/array_to_bytes/vlen", "zarrs.optional"];

/// A codec of zarrs.
pub(super) enum Codec {
    /// Array → array.
    ArrayToArray(ArrayToArray),
    /// Array → bytes.
    ArrayToBytes(ArrayToBytes),
    /// Bytes → bytes.
    BytesToBytes(BytesToBytes),
}

/// An array → array codec that keeps the data type.
#[derive(Debug)]
pub(super) struct ArrayToArray {
    codec: Arc<dyn ArrayToArrayCodecTraits>,
    array: ZarrsArray,
}

/// An array → bytes codec.
#[derive(Debug)]
pub(super) struct ArrayToBytes {
    codec: Arc<dyn ArrayToBytesCodecTraits>,
    array: ZarrsArray,
}

/// A bytes → bytes codec.
#[derive(Debug)]
pub(super) struct BytesToBytes(Arc<dyn BytesToBytesCodecTraits>);

/// What zarrs knows of the elements.
#[derive(Debug)]
struct ZarrsArray {
    data_type: ZarrsType,
    fill: FillValue,
}

impl Codec {
    /// The codec of this name on arrays of this type, `None` if zarrs has none.
    pub(super) fn new(metadata: &CodecMetadata, array: &DataType) -> Result<Option<Self>, String> {
        let name = &metadata.name;
        if REFUSED.contains(&name.as_str()) {
            return Ok(None);
        }
        let v3 = MetadataV3::new_with_configuration(name.clone(), metadata.configuration.clone());
        let codec = match ZarrsCodec::from_metadata(&v3) {
            Ok(codec) => codec,
            Err(PluginCreateError::Unsupported(_) | PluginCreateError::NameInvalid { .. }) => return Ok(None),
            Err(error) => return Err(format!("codec `{name}`: {error}")),
        };
        Ok(Some(match codec {
            ZarrsCodec::ArrayToArray(codec) => {
                let array = ZarrsArray::new(array)?;
                let encoded =
                    codec.encoded_data_type(&array.data_type).map_err(|error| format!("codec `{name}`: {error}"))?;
                if encoded != array.data_type {
                    return Err(format!("codec `{name}` on this data type is not supported"));
                }
                Self::ArrayToArray(ArrayToArray { codec, array })
            }
            ZarrsCodec::ArrayToBytes(codec) => {
                Self::ArrayToBytes(ArrayToBytes { codec, array: ZarrsArray::new(array)? })
            }
            ZarrsCodec::BytesToBytes(codec) => Self::BytesToBytes(BytesToBytes(codec)),
        }))
    }
}

impl ArrayToArray {
    /// The shape of the encoded array.
    pub(super) fn encoded_shape(&self, decoded: &[u64]) -> Result<Vec<u64>, String> {
        let decoded = shape(decoded)?;
        let encoded = self.codec.encoded_shape(&decoded).map_err(text)?;
        Ok(encoded.iter().map(|n| n.get()).collect())
    }

    /// Decode into `out`, exactly.
    pub(super) fn decode(&self, decoded: &[u64], encoded: &[u8], out: &mut [u8]) -> Result<(), String> {
        let shape = shape(decoded)?;
        let ZarrsArray { data_type, fill } = &self.array;
        let decoded =
            self.codec.decode(ArrayBytes::new_flen(Cow::Borrowed(encoded)), &shape, data_type, fill, &options());
        copy(&decoded.map_err(text)?.into_fixed().map_err(text)?, out)
    }
}

impl ArrayToBytes {
    /// Decode elements of a fixed size into `out`, exactly.
    pub(super) fn decode(&self, decoded: &[u64], encoded: &[u8], out: &mut [u8]) -> Result<(), String> {
        copy(&self.run(decoded, encoded)?.into_fixed().map_err(text)?, out)
    }

    /// Decode so many elements of any length.
    pub(super) fn decode_variable(
        &self,
        decoded: &[u64],
        encoded: &[u8],
        count: usize,
    ) -> Result<VariableElements, String> {
        let (bytes, offsets) = self.run(decoded, encoded)?.into_variable().map_err(text)?.into_parts();
        let offsets: &[usize] = &offsets;
        if offsets.len().checked_sub(1) != Some(count)
            || offsets.first() != Some(&0)
            || offsets.last() != Some(&bytes.len())
            || !offsets.is_sorted()
        {
            return Err("it holds the wrong number of elements".to_owned());
        }
        Ok(VariableElements { offsets: offsets.to_vec(), bytes: bytes.into_owned() })
    }

    fn run<'a>(&self, decoded: &[u64], encoded: &'a [u8]) -> Result<ArrayBytes<'a>, String> {
        let ZarrsArray { data_type, fill } = &self.array;
        self.codec.decode(Cow::Borrowed(encoded), &shape(decoded)?, data_type, fill, &options()).map_err(text)
    }
}

impl BytesToBytes {
    /// The decoded bytes. zarrs takes the size as a hint at most: the length of the result is for the caller to check.
    pub(super) fn decode<'a>(&self, encoded: &'a [u8], size: Size) -> Result<Cow<'a, [u8]>, String> {
        let len = |n| u64::try_from(n).unwrap_or(u64::MAX);
        let size = match size {
            Size::Exactly(n) => BytesRepresentation::FixedSize(len(n)),
            Size::AtMost(n) => BytesRepresentation::BoundedSize(len(n)),
        };
        self.0.decode(Cow::Borrowed(encoded), &size, &options()).map_err(text)
    }
}

impl ZarrsArray {
    fn new(data_type: &DataType) -> Result<Self, String> {
        let name = match data_type {
            DataType::Bool => "bool".to_owned(),
            DataType::Int8 => "int8".to_owned(),
            DataType::Int16 => "int16".to_owned(),
            DataType::Int32 => "int32".to_owned(),
            DataType::Int64 | DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => "int64".to_owned(),
            DataType::UInt8 => "uint8".to_owned(),
            DataType::UInt16 => "uint16".to_owned(),
            DataType::UInt32 => "uint32".to_owned(),
            DataType::UInt64 => "uint64".to_owned(),
            DataType::Float16 => "float16".to_owned(),
            DataType::BFloat16 => "bfloat16".to_owned(),
            DataType::Float32 => "float32".to_owned(),
            DataType::Float64 => "float64".to_owned(),
            DataType::Complex64 => "complex64".to_owned(),
            DataType::Complex128 => "complex128".to_owned(),
            DataType::String => "string".to_owned(),
            DataType::Bytes => "bytes".to_owned(),
            DataType::FixedBytes(_) | DataType::FixedUtf32(_) | DataType::Raw(_) | DataType::Struct(..) => {
                let bits =
                    data_type.fixed_size().and_then(|size| size.checked_mul(8)).ok_or("its elements are too large")?;
                format!("r{bits}")
            }
        };
        let fill = FillValue::new(vec![0; data_type.fixed_size().unwrap_or(0)]);
        Ok(Self { data_type: ZarrsType::from_metadata(&MetadataV3::new(name)).map_err(text)?, fill })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn text(error: impl ToString) -> String {
    error.to_string()
}

/// One chunk on this thread.
fn options() -> CodecOptions {
    CodecOptions::default().with_concurrent_target(1).with_chunk_concurrent_minimum(1)
}

fn shape(shape: &[u64]) -> Result<Vec<NonZeroU64>, String> {
    shape
        .iter()
        .map(|&n| NonZeroU64::new(n))
        .collect::<Option<_>>()
        .ok_or_else(|| "its shape has a length of 0".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::testing::codecs, *};

    fn array_to_bytes(codec: &Value, data_type: &DataType) -> ArrayToBytes {
        match Codec::new(&codecs(&json!([codec]))[0], data_type) {
            Ok(Some(Codec::ArrayToBytes(codec))) => codec,
            _ => panic!("not an array → bytes codec"),
        }
    }

    #[test]
    fn packbits() {
        let codec = array_to_bytes(
            &json!({"name": "packbits", "configuration": {"padding_encoding": "first_byte"}}),
            &DataType::Bool,
        );
        let mut out = [7; 10];
        // The lowest bit comes first (zarr-extensions, codecs/packbits).
        codec.decode(&[10], &[6, 0b1000_0011, 0b01], &mut out).unwrap();
        assert_eq!(out, [1, 1, 0, 0, 0, 0, 0, 1, 1, 0]);
        assert!(codec.decode(&[10], &[5, 0, 0], &mut out).is_err());
        assert!(codec.decode(&[10], &[6, 0], &mut out).is_err());
        assert!(codec.decode(&[11], &[5, 0, 0], &mut out).is_err());
        assert!(codec.decode(&[10], &[], &mut out).is_err());
    }

    #[test]
    fn unknown_and_refused() {
        for name in ["gribberish", "zarrs.vlen", "https://codec.zarrs.dev/array_to_bytes/vlen"] {
            assert!(matches!(Codec::new(&CodecMetadata::new(name), &DataType::Int8), Ok(None)), "{name}");
        }
        assert!(Codec::new(&CodecMetadata::new("packbits").with("padding_encoding", 7), &DataType::Bool).is_err());
    }
}
