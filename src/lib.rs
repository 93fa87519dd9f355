//! SQL over Zarr with Apache DataFusion.

mod dataset;
mod error;
mod exec;
mod options;
mod planning;
mod read;
#[doc(hidden)]
pub mod store;
mod table;

pub use dataset::cf::{Calendar, TimeUnit};
pub use error::{Error, Result};
pub use exec::ZarrScanExec;
pub use options::{Flag, ZarrOptions};
pub use table::{ZarrTable, explain_error, register_zarr};
