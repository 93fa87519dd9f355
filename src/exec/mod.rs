//! Physical plans over grids.

mod display;
mod metrics;
mod partition;
mod properties;
mod rows;
mod scan;
mod scan_exec;

pub use scan_exec::ZarrScanExec;
