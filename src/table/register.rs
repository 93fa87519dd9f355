//! One call that makes a session read Zarr.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::OptimizerOptions;
use datafusion::prelude::SessionContext;

use super::analyzer;
use super::catalog::ZarrCatalogList;
use super::explain::Opened;
use super::factory::ZarrTableFactory;
use super::functions::{ReadZarr, ZarrChunks, ZarrMetadata};
use crate::options::ZarrConfig;

/// Keys of the smaller side of a join that are told to the scan of the other one by one.
const MAX_JOIN_KEYS: usize = 100_000;
/// And their bytes.
const MAX_JOIN_KEY_BYTES: usize = 16 << 20;

/// Make `ctx` read Zarr: `CREATE EXTERNAL TABLE … STORED AS ZARR`, `FROM 'store.zarr'`, `read_zarr(…)`, `zarr_metadata(…)` and `zarr_chunks(…)`.
///
/// An analyzer rule, before all others, makes queries over Zarr tables mean what they say: Float32 columns are compared with literals in Float32,
/// dates are those of the column's calendar, and `nearest(lat, 40.1)` finds the nearest value. Its functions are `nearest`, `nearest_point`,
/// `cf_part`, `cf_trunc` and `cf_bin`.
///
/// It raises the limits below which a join tells the keys of its smaller side to a scan (`hash_join_inlist_pushdown_max_size` and
/// `…_max_distinct_values`), unless the session has set them.
///
/// It turns off `datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown`, whose filters of DataFusion 55.2 lose rows that are needed; minima and
/// maxima of coordinates are known without it.
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
    let optimizer = &mut state.config_mut().options_mut().optimizer;
    let default = OptimizerOptions::default();
    // A join with a table of stations then tells the scan their places, and not only how far they reach.
    if optimizer.hash_join_inlist_pushdown_max_distinct_values == default.hash_join_inlist_pushdown_max_distinct_values
    {
        optimizer.hash_join_inlist_pushdown_max_distinct_values = MAX_JOIN_KEYS;
    }
    if optimizer.hash_join_inlist_pushdown_max_size == default.hash_join_inlist_pushdown_max_size {
        optimizer.hash_join_inlist_pushdown_max_size = MAX_JOIN_KEY_BYTES;
    }
    // In DataFusion 55.2 the bounds that it makes of `min` and `max` lose rows that other aggregates beside them need.
    optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    state.table_factories_mut().insert("ZARR".into(), Arc::new(ZarrTableFactory));
    state.register_udtf("read_zarr", Arc::new(ReadZarr));
    state.register_udtf("zarr_metadata", Arc::new(ZarrMetadata));
    state.register_udtf("zarr_chunks", Arc::new(ZarrChunks));
    if !state.catalog_list().is::<ZarrCatalogList>() {
        let inner = Arc::clone(state.catalog_list());
        let runtime = Arc::clone(state.runtime_env());
        state.register_catalog_list(Arc::new(ZarrCatalogList::new(inner, runtime, opened)));
    }
    Ok(())
}
