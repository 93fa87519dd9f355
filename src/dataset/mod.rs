//! The data model: a group is a dataset of variables over named dimensions, and a table is one grid of it.
//!
//! Pure metadata: nothing here reads a chunk, and nothing knows DataFusion.

pub(crate) mod cf;
mod field;
mod grid;
mod group;
mod variable;

pub(crate) use field::field;
pub(crate) use grid::{Column, Grid, Role, Source};
pub(crate) use group::{Dataset, LeftOut};
pub(crate) use variable::Variable;
