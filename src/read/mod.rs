//! Encoded chunks → decoded cells → Arrow arrays.

mod array_reader;
mod buffer;
mod cells;
mod chunk_cache;
pub(crate) mod decode;
mod fetch;
mod grid_reader;
mod numpy_time;
mod values;

pub(crate) use array_reader::{ArrayReader, ReadContext, ReadCounts};
pub(crate) use grid_reader::{ColumnReader, GridReader};
