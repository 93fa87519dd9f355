//! From a location to the metadata and the encoded bytes of a store.
//!
//! A store is read through [`ReadableStore`]: whole objects, ranges of them, and names of what lies under a prefix. Nothing here decodes.

mod chunk_grid;
pub(crate) mod codec;
pub(crate) mod data_type;
mod data_type_json;
pub(crate) mod fill_value;
mod hierarchy;
pub(crate) mod json;
mod location;
mod metadata;
mod metadata_v2;
mod metadata_v3;
mod object;

use std::fmt::Debug;
use std::path::PathBuf;

use async_trait::async_trait;
use bytes::Bytes;

pub(crate) use chunk_grid::{ChunkGrid, Cuts, DimensionChunks};
pub(crate) use hierarchy::{Hierarchy, Node, OpenOptions};
pub(crate) use location::Location;
pub(crate) use metadata::join;
pub(crate) use metadata::{ArrayMetadata, ZarrFormat};
pub(crate) use object::{ObjectStoreReader, file_size};

use crate::error::Result;

/// Which bytes of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ByteRange {
    /// These offsets.
    Offsets(std::ops::Range<u64>),
    /// So many bytes at the end.
    Suffix(u64),
}

/// A store of Zarr keys. Keys are relative to the store's root.
#[async_trait]
pub(crate) trait ReadableStore: Debug + Send + Sync {
    /// The whole object; `None` where the key does not exist. More than `limit` bytes are refused before they are read.
    ///
    /// # Errors
    /// Every other failure of the store, with the key.
    async fn get(&self, key: &str, limit: u64) -> Result<Option<Bytes>>;

    /// A part of the object; `None` where the key does not exist.
    ///
    /// # Errors
    /// Every other failure of the store, a range outside the object among them.
    async fn get_range(&self, key: &str, range: ByteRange) -> Result<Option<Bytes>>;

    /// Names of the folders directly under `path`, sorted.
    ///
    /// # Errors
    /// Failures of the store, and stores that cannot list.
    async fn list_folders(&self, path: &str) -> Result<Vec<String>>;

    /// Keys and sizes of the objects at any depth under `path`, sorted by key.
    ///
    /// # Errors
    /// Failures of the store, and stores that cannot list.
    async fn list_objects(&self, path: &str) -> Result<Vec<(String, u64)>>;

    /// The file that holds `key`, where the store is the local file system: such files are read on the thread that decodes them.
    fn local_path(&self, key: &str) -> Option<PathBuf>;
}
