//! What the tests of this folder share.

use serde_json::Value;

use crate::store::codec::CodecMetadata;

/// The text that the small goldens of the byte codecs hold.
pub(super) const HELLO: &[u8] = b"hello hello hello hello";

/// Bytes of hexadecimal digits.
pub(super) fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2));
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// Codec metadata of a JSON list as in format 3.
pub(super) fn codecs(json: &Value) -> Vec<CodecMetadata> {
    let codec = |codec: &Value| CodecMetadata {
        name: codec["name"].as_str().unwrap().to_owned(),
        configuration: codec.get("configuration").map(|c| c.as_object().unwrap().clone()).unwrap_or_default(),
    };
    json.as_array().unwrap().iter().map(codec).collect()
}

/// The native bytes of numbers.
pub(super) fn native<const N: usize, T: Copy>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| bytes(value)).collect()
}
