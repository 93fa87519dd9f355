//! What to read for a query, by arithmetic alone: no I/O, no async, nothing whose cost grows with the number of chunks.

mod blocks;
mod partitions;

pub(crate) use blocks::{BlockGrid, rows};
pub(crate) use partitions::share;
