//! Physical plans over grids.

mod rows;
mod scan_exec;

pub use scan_exec::ZarrScanExec;
