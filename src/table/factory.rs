//! `CREATE EXTERNAL TABLE … STORED AS ZARR`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::CreateExternalTable;

use super::ZarrTable;
use crate::error::Error;
use crate::options::ZarrOptions;

/// Opens the tables of `STORED AS ZARR`.
#[derive(Debug)]
pub(super) struct ZarrTableFactory;

#[async_trait]
impl TableProviderFactory for ZarrTableFactory {
    async fn create(&self, state: &dyn Session, statement: &CreateExternalTable) -> Result<Arc<dyn TableProvider>> {
        refuse_clauses(statement)?;
        let [location] = statement.locations.as_slice() else {
            return Err(refusal("several locations", "name one store"));
        };
        let options = options(statement)?;
        let table = Box::pin(ZarrTable::open_with(location, &options, state.runtime_env())).await?;
        Ok(Arc::new(table.with_definition(statement.definition.clone())))
    }
}

/// The options of the statement. `DataFusion` hands keys on in lower case, and puts `format.` before those without a prefix.
fn options(statement: &CreateExternalTable) -> Result<ZarrOptions, Error> {
    let key = |k: &str| k.strip_prefix("format.").or_else(|| k.strip_prefix("zarr.")).unwrap_or(k).to_owned();
    let mut pairs: Vec<(String, &String)> = statement.options.iter().map(|(k, v)| (key(k), v)).collect();
    pairs.sort();
    if let Some([(option, _), _]) = pairs.array_windows().find(|[a, b]| a.0 == b.0) {
        return Err(Error::Option { option: option.clone(), reason: "it stands twice".into() });
    }
    pairs.into_iter().try_fold(ZarrOptions::default(), |options, (key, value)| options.with(&key, value))
}

/// Clauses that would be ignored are errors.
fn refuse_clauses(statement: &CreateExternalTable) -> Result<()> {
    let refused = [
        (!statement.schema.fields().is_empty(), "declared columns", "columns and their types come from the store"),
        (!statement.table_partition_cols.is_empty(), "`PARTITIONED BY`", "partitions follow the chunks of the store"),
        (!statement.order_exprs.is_empty(), "`WITH ORDER`", "the order of rows follows from the coordinates"),
        (statement.unbounded, "`UNBOUNDED`", "a store has an end"),
        (!statement.constraints.is_empty(), "constraints", "nothing would check them"),
        (!statement.column_defaults.is_empty(), "column defaults", "a store is only read"),
    ];
    match refused.into_iter().find(|(given, ..)| *given) {
        Some((_, clause, why)) => Err(refusal(clause, why)),
        None => Ok(()),
    }
}

fn refusal(clause: &str, why: &str) -> DataFusionError {
    DataFusionError::Plan(format!("`STORED AS ZARR` does not take {clause}: {why}"))
}
