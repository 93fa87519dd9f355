//! Codec metadata, of both formats in the form of version 3.

use serde_json::{Map, Value};

/// One codec of an array's chain, named as in format 3 (`numcodecs.` before the names of v2 codecs that v3 has no name of its own for).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CodecMetadata {
    /// Name of the codec.
    pub(crate) name: String,
    /// Its configuration.
    pub(crate) configuration: Map<String, Value>,
}

impl CodecMetadata {
    /// A codec of this name without configuration.
    #[must_use]
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), configuration: Map::new() }
    }

    /// The same with one more entry in its configuration.
    #[must_use]
    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.configuration.insert(key.to_owned(), value.into());
        self
    }
}
