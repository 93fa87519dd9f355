//! The one error type of the crate, sorted by what the reader of the message can do about it.

use datafusion::error::DataFusionError;

/// What can go wrong between a store and the rows of a query.
///
/// Every message is one sentence that says what failed, where (array, chunk key, option), and what to do where there is something to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The location holds no Zarr group or array, or cannot be read as a location at all.
    #[error("no Zarr store at `{location}`: {reason}")]
    NotFound {
        /// The location as the user wrote it.
        location: String,
        /// What was looked for, and what to try.
        reason: String,
    },
    /// The store failed for another reason than that a key does not exist.
    #[error("cannot read `{key}`: {source}")]
    Store {
        /// The key, relative to the store.
        key: String,
        /// What the store said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Metadata that is not what Zarr or CF allow.
    #[error("metadata of `{node}` is not valid: {reason}")]
    Metadata {
        /// Path of the array or group.
        node: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A data type, codec, chunk grid or encoding that this crate cannot read.
    #[error("array `{array}` cannot be read: {reason}")]
    Unsupported {
        /// Path of the array.
        array: String,
        /// What is not supported.
        reason: String,
    },
    /// The bytes of a chunk are not what the metadata promises.
    #[error("chunk `{key}` of array `{array}` cannot be decoded: {reason}")]
    Chunk {
        /// Path of the array.
        array: String,
        /// Key of the chunk, relative to the array.
        key: String,
        /// What is wrong with the bytes.
        reason: String,
    },
    /// The location holds no table, or none that can be read.
    #[error("{0}")]
    NoTable(String),
    /// The location names no single table.
    #[error("{0}")]
    Ambiguous(String),
    /// A table option that does not exist, or whose value it cannot have.
    #[error("option `{option}`: {reason}")]
    Option {
        /// Name of the option.
        option: String,
        /// What is wrong with it, and what is allowed.
        reason: String,
    },
    /// Dimensions of arrays that do not fit together.
    #[error("{0}")]
    Dimension(String),
    /// An allocation above a limit.
    #[error("array `{array}` needs {needed} bytes for {what}, above the limit of {limit}")]
    Limit {
        /// Path of the array.
        array: String,
        /// What the bytes are for.
        what: &'static str,
        /// Bytes asked for; saturated where the true number has no u64.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Arrow refused what was built for it.
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        match error {
            Error::Limit { .. } => Self::ResourcesExhausted(error.to_string()),
            Error::Arrow(e) => Self::ArrowError(Box::new(e), None),
            e => Self::External(Box::new(e)),
        }
    }
}
