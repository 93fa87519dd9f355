#![doc = include_str!("../README.md")]

mod dataset;
mod error;
mod exec;
mod options;
mod planning;
mod read;
mod store;
mod table;

pub use dataset::cf::TimeUnit;
pub use error::{Error, Result};
pub use exec::ZarrScanExec;
pub use options::{Flag, ZarrConfig, ZarrOptions};
pub use table::{ZarrTable, explain_error, register_zarr};
