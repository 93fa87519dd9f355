//! Why a column does not exist, where a Zarr table has left out a variable of that name.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::common::{Column, DataFusionError, SchemaError};
use datafusion::prelude::SessionContext;

use super::ZarrTable;
use crate::dataset::{Dataset, LeftOut};

/// Tables remembered: more than one statement names.
const REMEMBERED: usize = 16;

/// What a table says about the variables that are no columns of it, without the values that it keeps.
#[derive(Debug, Clone)]
pub(super) struct Absent {
    /// Its columns.
    pub(super) schema: SchemaRef,
    /// Variables of its grid that cannot be read.
    pub(super) unreadable: Vec<LeftOut>,
    /// All variables of its group.
    pub(super) dataset: Arc<Dataset>,
}

impl Absent {
    /// One clause; `None` where the group has no such variable, or the table has it as a column.
    pub(super) fn why(&self, name: &str) -> Option<String> {
        let mut left_out = self.unreadable.iter().chain(&self.dataset.left_out);
        if let Some(LeftOut { reason, .. }) = left_out.find(|l| l.name == name) {
            return Some(reason.clone());
        }
        if self.schema.field_with_name(name).is_ok() {
            return None;
        }
        let variable = self.dataset.variable(name)?;
        Some(if self.dataset.is_hidden(name) {
            "bounds and grid mappings are no columns (option `bounds` adds bounds)".into()
        } else {
            format!("its dimensions ({}) are not those of this table", variable.dims.join(", "))
        })
    }

    /// Whether the table may be one of those that a query chose `valid` from.
    fn has_any_of(&self, valid: &[Column]) -> bool {
        valid.is_empty() || valid.iter().any(|c| self.schema.field_with_name(&c.name).is_ok())
    }
}

/// The tables that a session has opened by path or function lately. Such a table is gone as soon as planning fails.
#[derive(Debug, Default)]
pub(super) struct Opened(Mutex<VecDeque<Absent>>);

impl Opened {
    /// Remember `table`.
    pub(super) fn add(&self, table: &ZarrTable) {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.push_front(table.absent());
        tables.truncate(REMEMBERED);
    }

    fn why(&self, name: &str, valid: &[Column]) -> Option<String> {
        let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.iter().filter(|t| t.has_any_of(valid)).find_map(|t| t.why(name))
    }
}

/// The same error, but where a query failed because a column does not exist that a Zarr table of the session has left out, with the reason
/// in front of it.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use datafusion::prelude::SessionContext;
/// use datafusion_zarr::{explain_error, register_zarr};
///
/// let ctx = SessionContext::new();
/// register_zarr(&ctx)?;
/// let store = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/stores/codecs_v3.zarr");
/// let error = ctx.sql(&format!("SELECT grib FROM read_zarr('{store}')")).await.unwrap_err();
/// let error = explain_error(&ctx, error).await;
/// assert!(error.to_string().starts_with("`grib` cannot be queried: "), "{error}");
/// # Ok::<(), datafusion::error::DataFusionError>(()) }).unwrap();
/// ```
pub async fn explain_error(ctx: &SessionContext, error: DataFusionError) -> DataFusionError {
    let DataFusionError::SchemaError(schema_error, _) = error.find_root() else { return error };
    let SchemaError::FieldNotFound { field, valid_fields } = schema_error.as_ref() else { return error };
    let reason = match registered(ctx, &field.name, valid_fields).await {
        Some(reason) => Some(reason),
        None => {
            ctx.state_ref().read().config().get_extension::<Opened>().and_then(|o| o.why(&field.name, valid_fields))
        }
    };
    let Some(reason) = reason else { return error };
    let sentence = format!("`{}` cannot be queried: {reason}", field.name);
    error.context(sentence)
}

/// The reason that a registered table gives.
async fn registered(ctx: &SessionContext, name: &str, valid: &[Column]) -> Option<String> {
    let catalogs = Arc::clone(ctx.state_ref().read().catalog_list());
    for catalog in catalogs.catalog_names().iter().filter_map(|c| catalogs.catalog(c)) {
        for schema in catalog.schema_names().iter().filter_map(|s| catalog.schema(s)) {
            for table in schema.table_names() {
                let Ok(Some(table)) = schema.table(&table).await else { continue };
                let absent = table.downcast_ref::<ZarrTable>().map(ZarrTable::absent).filter(|a| a.has_any_of(valid));
                if let Some(reason) = absent.and_then(|a| a.why(name)) {
                    return Some(reason);
                }
            }
        }
    }
    None
}
