//! Zarr in DataFusion: tables, and the ways to name them in SQL.

mod analyzer;
mod calendar_functions;
mod catalog;
mod chunks;
mod explain;
mod factory;
mod functions;
mod labels;
mod location;
mod metadata;
mod provider;
mod register;

pub use explain::explain_error;
pub use provider::ZarrTable;
pub use register::register_zarr;
