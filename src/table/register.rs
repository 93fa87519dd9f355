//! One call that makes a session read Zarr.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::prelude::SessionContext;

use super::analyzer;
use super::catalog::ZarrCatalogList;
use super::explain::Opened;
use super::factory::ZarrTableFactory;
use super::functions::{ReadZarr, ZarrMetadata};
use crate::options::ZarrConfig;

/// Make `ctx` read Zarr: `CREATE EXTERNAL TABLE … STORED AS ZARR`, `FROM 'store.zarr'`, `read_zarr(…)` and `zarr_metadata(…)`.
///
/// An analyzer rule, before all others, makes queries over Zarr tables mean what they say: Float32 columns are compared with literals in Float32,
/// dates are those of the column's calendar, and `nearest(lat, 40.1)` finds the nearest value. Its functions are `nearest`, `nearest_point`,
/// `cf_part`, `cf_trunc` and `cf_bin`.
///
/// It may be called before or after [`SessionContext::enable_url_table`], and twice. Statements that the session has prepared (`PREPARE`) before the
/// first call are forgotten; all else stays.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use datafusion::prelude::SessionContext;
/// use datafusion_zarr::register_zarr;
///
/// let ctx = SessionContext::new();
/// register_zarr(&ctx)?;
///
/// let store = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/air_temperature_small.zarr");
/// let from_path = ctx.sql(&format!("SELECT max(air) FROM '{store}' WHERE lat > 50")).await?;
/// let from_function = ctx.sql(&format!("SELECT air FROM read_zarr('{store}', 'mask_and_scale=false')")).await?;
/// let described = ctx.sql(&format!("SELECT name, dims, units FROM zarr_metadata('{store}')")).await?;
///
/// ctx.sql(&format!("CREATE EXTERNAL TABLE air STORED AS ZARR LOCATION '{store}' OPTIONS (time_unit 's')")).await?;
/// assert_eq!(ctx.table("air").await?.count().await?, 20 * 25 * 53);
/// # Ok::<(), datafusion::error::DataFusionError>(()) }).unwrap();
/// ```
///
/// # Errors
/// A session that takes no more functions.
pub fn register_zarr(ctx: &SessionContext) -> Result<()> {
    let state = ctx.state_ref();
    let mut state = state.write();
    analyzer::install(&mut state)?;
    let opened = state.config().get_extension::<Opened>().unwrap_or_default();
    state.config_mut().set_extension(Arc::clone(&opened));
    if state.config().options().extensions.get::<ZarrConfig>().is_none() {
        state.config_mut().options_mut().extensions.insert(ZarrConfig::default());
    }
    state.table_factories_mut().insert("ZARR".into(), Arc::new(ZarrTableFactory));
    state.register_udtf("read_zarr", Arc::new(ReadZarr));
    state.register_udtf("zarr_metadata", Arc::new(ZarrMetadata));
    if !state.catalog_list().is::<ZarrCatalogList>() {
        let inner = Arc::clone(state.catalog_list());
        let runtime = Arc::clone(state.runtime_env());
        state.register_catalog_list(Arc::new(ZarrCatalogList::new(inner, runtime, opened)));
    }
    Ok(())
}
