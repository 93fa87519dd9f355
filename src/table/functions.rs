//! Table functions: `read_zarr`, `zarr_metadata` and `zarr_chunks`.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::Expr;

use super::explain::Opened;
use super::{ZarrTable, chunks, location, metadata};
use crate::options::ZarrOptions;

/// `read_zarr(url [, 'key=value', …])`: the table at a location, with the options of `STORED AS ZARR`.
#[derive(Debug)]
pub(super) struct ReadZarr;

impl TableFunctionImpl for ReadZarr {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let (url, options) = arguments("read_zarr", args.exprs())?;
        let runtime = args.session().runtime_env();
        let table = wait_for(ZarrTable::open_with(&url, &options, runtime))?;
        if let Some(opened) = args.session().config().get_extension::<Opened>() {
            opened.add(&table);
        }
        Ok(Arc::new(table))
    }
}

/// `zarr_metadata(url [, 'key=value', …])`: a row for each variable of a group.
#[derive(Debug)]
pub(super) struct ZarrMetadata;

impl TableFunctionImpl for ZarrMetadata {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let (url, options) = arguments("zarr_metadata", args.exprs())?;
        let runtime: &RuntimeEnv = args.session().runtime_env();
        let (store, dataset) = wait_for(location::open(&url, &options, runtime))?;
        metadata::table(&store, &dataset, &options)
    }
}

/// `zarr_chunks(url [, 'key=value', …])`: a row for each stored chunk of a group.
#[derive(Debug)]
pub(super) struct ZarrChunks;

impl TableFunctionImpl for ZarrChunks {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let (url, options) = arguments("zarr_chunks", args.exprs())?;
        let runtime: &RuntimeEnv = args.session().runtime_env();
        let (store, dataset) = wait_for(location::open(&url, &options, runtime))?;
        wait_for(chunks::table(store, &dataset))
    }
}

/// The location and the options. Only text counts as an argument: the names of named arguments never arrive here, so that taking values by
/// position would mistake one for another.
fn arguments(function: &str, exprs: &[Expr]) -> Result<(String, ZarrOptions)> {
    let form = || format!("write {function}('store.zarr') or {function}('store.zarr', 'dims=time,lat,lon')");
    let mut texts = Vec::with_capacity(exprs.len());
    for expr in exprs {
        match expr {
            Expr::Literal(value, _) if let Some(Some(text)) = value.try_as_str() => texts.push(text),
            Expr::Column(column) => {
                let name = &column.name;
                return Err(DataFusionError::Plan(format!(
                    "`{name}` is a name and {function} takes text in single quotes; {}",
                    form()
                )));
            }
            other => {
                return Err(DataFusionError::Plan(format!(
                    "{other} is not text and {function} takes text in single quotes; {}",
                    form()
                )));
            }
        }
    }
    let Some((url, pairs)) = texts.split_first() else {
        return Err(DataFusionError::Plan(format!("{function} needs the location of a store; {}", form())));
    };
    let mut options = ZarrOptions::default();
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(DataFusionError::Plan(format!("`{pair}` is not `key=value`; {}", form())));
        };
        let key = key.trim().to_lowercase();
        options = options.with(key.strip_prefix("zarr.").unwrap_or(&key), value.trim())?;
    }
    Ok(((*url).to_owned(), options))
}

/// Wait for `work` on a thread and a runtime of its own: planning is not async, and may run in a runtime of any kind.
pub(super) fn wait_for<T: Send, E: Send>(work: impl Future<Output = Result<T, E>> + Send) -> Result<T>
where
    DataFusionError: From<E>,
{
    let run = || -> Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(work)?)
    };
    let joined = std::thread::scope(|scope| scope.spawn(run).join());
    joined.unwrap_or_else(|_| Err(DataFusionError::Internal("the thread that opens a store panicked".into())))
}
