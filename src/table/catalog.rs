//! `FROM 'store.zarr'`: the session's catalogs, with stores as tables named by their location.
//!
//! The wrapper may lie inside or outside the one of `SessionContext::enable_url_table`: it asks Zarr before the catalog in it, and what
//! it answers stands before whatever lies around it. Names without the shape of a store pass through without I/O.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::TableType;
use datafusion::execution::runtime_env::RuntimeEnv;

use super::explain::Opened;
use super::{ZarrTable, location};
use crate::options::ZarrOptions;
use crate::store::Location;

/// How long a failed open answers again without I/O: planning asks for a name at once or not at all, and a user who mends the store is slower.
const STATEMENT: Duration = Duration::from_millis(100);

/// A list of catalogs that knows stores by their location.
#[derive(Debug)]
pub(super) struct ZarrCatalogList {
    inner: Arc<dyn CatalogProviderList>,
    stores: Arc<Stores>,
}

impl ZarrCatalogList {
    /// `inner`, and the stores that `runtime` reaches.
    pub(super) fn new(inner: Arc<dyn CatalogProviderList>, runtime: Arc<RuntimeEnv>, opened: Arc<Opened>) -> Self {
        Self { inner, stores: Arc::new(Stores { runtime, opened, failed: Mutex::new(None) }) }
    }
}

impl CatalogProviderList for ZarrCatalogList {
    fn register_catalog(&self, name: String, catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        self.inner.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.inner.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let inner = self.inner.catalog(name)?;
        Some(Arc::new(ZarrCatalog { inner, stores: Arc::clone(&self.stores) }))
    }
}

#[derive(Debug)]
struct ZarrCatalog {
    inner: Arc<dyn CatalogProvider>,
    stores: Arc<Stores>,
}

impl CatalogProvider for ZarrCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.inner.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let inner = self.inner.schema(name)?;
        Some(Arc::new(ZarrSchema { inner, stores: Arc::clone(&self.stores) }))
    }

    fn register_schema(&self, name: &str, schema: Arc<dyn SchemaProvider>) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.inner.register_schema(name, schema)
    }

    fn deregister_schema(&self, name: &str, cascade: bool) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.inner.deregister_schema(name, cascade)
    }
}

#[derive(Debug)]
struct ZarrSchema {
    inner: Arc<dyn SchemaProvider>,
    stores: Arc<Stores>,
}

impl ZarrSchema {
    fn is_store(&self, name: &str) -> bool {
        Location::names_a_store(name) && !self.inner.table_exist(name)
    }
}

#[async_trait]
impl SchemaProvider for ZarrSchema {
    fn owner_name(&self) -> Option<&str> {
        self.inner.owner_name()
    }

    fn table_names(&self) -> Vec<String> {
        self.inner.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if !self.is_store(name) {
            return self.inner.table(name).await;
        }
        let failed = match self.stores.table(name).await {
            Ok(table) => return Ok(Some(table)),
            Err(failed) => failed,
        };
        if !failed.is_zarr {
            if let Some(table) = self.inner.table(name).await? {
                return Ok(Some(table));
            }
            // A reader of other files may lie around this catalog.
            if is_other_file(name) {
                return Ok(None);
            }
        }
        Err(DataFusionError::Shared(failed.error))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        if self.is_store(name) {
            return Ok(self.table(name).await?.map(|t| t.table_type()));
        }
        self.inner.table_type(name).await
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        self.inner.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.inner.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.inner.table_exist(name)
    }
}

/// Whether `name` is a file of the local file system inside a folder that is called like a store.
fn is_other_file(name: &str) -> bool {
    let file =
        Location::whole(name).ok().filter(|l| !l.url.path().ends_with(".zarr")).and_then(|l| l.url.to_file_path().ok());
    file.is_some_and(|path| path.is_file())
}

/// Opens stores, and remembers the last failure.
#[derive(Debug)]
struct Stores {
    runtime: Arc<RuntimeEnv>,
    opened: Arc<Opened>,
    failed: Mutex<Option<Failed>>,
}

/// A location that could not be opened.
#[derive(Debug, Clone)]
struct Failed {
    name: String,
    at: Instant,
    /// Whether there is a Zarr store, so that no other reader may have the name.
    is_zarr: bool,
    error: Arc<DataFusionError>,
}

impl Stores {
    async fn table(&self, name: &str) -> Result<Arc<dyn TableProvider>, Failed> {
        let last = self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(failed) = last.filter(|f| f.name == name && f.at.elapsed() < STATEMENT) {
            return Err(failed);
        }
        let (is_zarr, error) = match Box::pin(self.open(name)).await {
            Ok(Some(table)) => {
                self.opened.add(&table);
                return Ok(Arc::new(table));
            }
            Ok(None) => (false, location::not_found(name)),
            Err(error) => (true, error),
        };
        let failed = Failed { name: name.to_owned(), at: Instant::now(), is_zarr, error: Arc::new(error.into()) };
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failed.clone());
        Err(failed)
    }

    async fn open(&self, name: &str) -> crate::Result<Option<ZarrTable>> {
        let options = ZarrOptions::default();
        match location::find(name, &options, &self.runtime).await? {
            Some((store, dataset)) => ZarrTable::from_dataset(&store, dataset, &options).await.map(Some),
            None => Ok(None),
        }
    }
}
