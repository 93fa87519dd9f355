//! [`ZarrTable`]: one grid as a DataFusion table.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result as DataFusionResult};
use datafusion::datasource::TableType;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::reassign_expr_columns;
use datafusion::physical_expr::{PhysicalExpr, conjunction_opt};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use object_store::ObjectStore;
use object_store::path::Path;

use super::explain::Absent;
use super::location;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::exec::ZarrScanExec;
use crate::options::{ZarrConfig, ZarrOptions};
use crate::planning::Condition;
use crate::read::GridReader;
use crate::store::{Location, ObjectStoreReader, ReadableStore};

/// One grid of a Zarr group as a table: a row a cell, and as columns the dimensions, the auxiliary coordinates and the data variables.
///
/// Dimension coordinates are read when the table opens, everything else when a query asks for it.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use std::sync::Arc;
/// use datafusion::prelude::SessionContext;
/// use datafusion_zarr::ZarrTable;
///
/// let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/air_temperature_small.zarr");
/// let ctx = SessionContext::new();
/// ctx.register_table("air", Arc::new(ZarrTable::open(path).await?))?;
/// let rows = ctx.sql("SELECT count(*) FROM air").await?.collect().await?;
/// assert_eq!(rows[0].num_rows(), 1);
/// # Ok::<(), datafusion::error::DataFusionError>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct ZarrTable {
    grid: Arc<GridReader>,
    dataset: Arc<Dataset>,
    /// The statement that made the table.
    definition: Option<String>,
}

impl ZarrTable {
    /// Open the table at `location`: a path or URL of a store, or of a group inside it (`store.zarr/group`), on the local file system.
    ///
    /// # Errors
    /// No store or group there; several tables (the message lists them); coordinates that cannot be read.
    pub async fn open(location: &str) -> Result<Self> {
        Self::open_with(location, &ZarrOptions::default(), &RuntimeEnv::default()).await
    }

    /// The same with options, and with the object stores that `runtime` knows.
    ///
    /// # Errors
    /// As [`Self::open`], and options that do not fit the store.
    pub async fn open_with(location: &str, options: &ZarrOptions, runtime: &RuntimeEnv) -> Result<Self> {
        let (store, dataset) = location::open(location, options, runtime).await?;
        Self::from_dataset(&store, dataset, options).await
    }

    /// The table under `prefix` of an object store that no session has to know.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use std::sync::Arc;
    /// use datafusion_zarr::{ZarrOptions, ZarrTable};
    /// use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
    ///
    /// let store = Arc::new(InMemory::new());
    /// let array = r#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16", "fill_value": 7,
    ///     "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    ///     "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "dimension_names": ["x"]}"#;
    /// store.put(&Path::from("s/zarr.json"), r#"{"zarr_format": 3, "node_type": "group"}"#.into()).await?;
    /// store.put(&Path::from("s/a/zarr.json"), array.into()).await?;
    /// let table = ZarrTable::open_in(store, Path::from("s"), &ZarrOptions::default()).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Self::open_with`].
    pub async fn open_in(store: Arc<dyn ObjectStore>, prefix: Path, options: &ZarrOptions) -> Result<Self> {
        let (root, location) = Location::in_store(&prefix)?;
        let store: Arc<dyn ReadableStore> = Arc::new(ObjectStoreReader::new(store, root));
        let nothing = || Error::NotFound {
            location: location.url.to_string(),
            reason: "there is neither `zarr.json` nor `.zgroup`, `.zarray` or `.zmetadata`".into(),
        };
        let dataset = Dataset::open(Arc::clone(&store), &location, options).await?.ok_or_else(nothing)?;
        Self::from_dataset(&store, dataset, options).await
    }

    /// The table that `options` name of `dataset`, the group read from `store`.
    pub(super) async fn from_dataset(
        store: &Arc<dyn ReadableStore>,
        dataset: Dataset,
        options: &ZarrOptions,
    ) -> Result<Self> {
        let grid = GridReader::open(store, &dataset.grid(options)?, options).await?;
        Ok(Self { grid: Arc::new(grid), dataset: Arc::new(dataset), definition: None })
    }

    /// Why the variable `name` is no column of the table, where it is one of the group's that cannot be read or are no columns.
    #[must_use]
    pub fn why_left_out(&self, name: &str) -> Option<String> {
        self.absent().why(name)
    }

    /// What it says about the variables that are no columns.
    pub(super) fn absent(&self) -> Absent {
        Absent { schema: self.schema(), unreadable: self.grid.left_out.clone(), dataset: Arc::clone(&self.dataset) }
    }

    /// Its columns, ready to be read.
    pub(super) fn grid(&self) -> &GridReader {
        &self.grid
    }

    /// The same with the statement that made the table.
    pub(super) fn with_definition(mut self, definition: Option<String>) -> Self {
        self.definition = definition;
        self
    }
}

#[async_trait]
impl TableProvider for ZarrTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.grid.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.definition.as_deref()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DataFusionResult<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| {
            if filter.is_volatile() || filter.contains_outer() {
                TableProviderFilterPushDown::Unsupported
            } else {
                TableProviderFilterPushDown::Exact
            }
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let projection = projection.cloned().unwrap_or_else(|| (0..self.grid.columns.len()).collect());
        let schema = DFSchema::try_from(self.schema())?;
        let filters = filters.iter().map(|f| state.create_physical_expr(f.clone(), &schema));
        let filters = filters.collect::<DataFusionResult<Vec<_>>>()?;
        let mut conditions = Vec::new();
        for filter in &filters {
            conditions.extend(Condition::all_of(filter, &self.grid.schema)?);
        }
        let pieces = (state.config().target_partitions(), state.config().batch_size());
        if !ZarrConfig::of(state.config_options()).pruning {
            return self.scan_all(&projection, filters, &conditions, pieces);
        }
        let mut named: Vec<usize> = conditions.iter().flat_map(|c| c.columns().to_vec()).collect();
        named.extend(&projection);
        Box::pin(self.grid.load(&named)).await?;
        let grid = Arc::clone(&self.grid);
        Ok(Arc::new(ZarrScanExec::try_new(grid, &projection, conditions, pieces, limit, true)?))
    }
}

impl ZarrTable {
    /// A scan of all rows, with a filter of DataFusion's above it.
    fn scan_all(
        &self,
        projection: &[usize],
        filters: Vec<Arc<dyn PhysicalExpr>>,
        conditions: &[Condition],
        pieces: (usize, usize),
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let named = conditions.iter().flat_map(Condition::columns).filter(|c| !projection.contains(c));
        let columns: Vec<usize> = projection.iter().chain(named.collect::<BTreeSet<_>>()).copied().collect();
        let scan = ZarrScanExec::try_new(Arc::clone(&self.grid), &columns, Vec::new(), pieces, None, false)?;
        let schema = scan.schema();
        let mut plan: Arc<dyn ExecutionPlan> = Arc::new(scan);
        let filters = filters.into_iter().map(|f| reassign_expr_columns(f, &schema));
        let filters = filters.collect::<DataFusionResult<Vec<_>>>()?;
        if let Some(filter) = conjunction_opt(filters) {
            plan = Arc::new(FilterExec::try_new(filter, plan)?);
        }
        if columns != projection {
            let column = |number: &usize| -> DataFusionResult<(Arc<dyn PhysicalExpr>, String)> {
                let name = self.grid.schema.field(*number).name();
                Ok((Arc::new(Column::new_with_schema(name, &schema)?), name.clone()))
            };
            let columns = projection.iter().map(column).collect::<DataFusionResult<Vec<_>>>()?;
            plan = Arc::new(ProjectionExec::try_new(columns, plan)?);
        }
        Ok(plan)
    }
}
