//! What to read for a query: no I/O, no async, and nothing whose cost grows with the number of chunks.
//!
//! Filters are [`Condition`]s. A [`Plan`] evaluates those on coordinates and keeps the [`Selection`] that they leave; a [`BlockGrid`] cuts
//! that into Blocks.

mod blocks;
mod boxes;
mod condition;
mod coordinates;
mod implied;
mod index_set;
mod joint;
mod partitions;
mod plan;
mod selection;
mod split;
pub(crate) mod statistics;
mod values;

pub(crate) use blocks::{Block, BlockGrid, BlockQueue};
pub(crate) use boxes::{cells, nth_cell};
pub(crate) use condition::{Condition, When};
pub(crate) use coordinates::{Coordinates, Known};
pub(crate) use index_set::IndexSet;
pub(crate) use partitions::share;
pub(crate) use plan::Plan;
pub(crate) use selection::Selection;
pub(crate) use values::{RowOrder, Values, next_index, strides};
