//! `FROM 'store.zarr'`: the session's catalogs, with stores as tables named by their location.
//!
//! The wrapper may lie inside or outside the one of `SessionContext::enable_url_table`: it asks Zarr before the catalog in it, and what
//! it answers stands before whatever lies around it. Names without the shape of a store pass through without I/O.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::execution::runtime_env::RuntimeEnv;

use super::explain::Opened;
use super::{ZarrTable, location};
use crate::options::ZarrOptions;
use crate::store::Location;

/// A list of catalogs that knows stores by their location.
#[derive(Debug)]
pub(super) struct ZarrCatalogList {
    inner: Arc<dyn CatalogProviderList>,
    stores: Arc<Stores>,
}

impl ZarrCatalogList {
    /// `inner`, and the stores that `runtime` reaches.
    pub(super) fn new(inner: Arc<dyn CatalogProviderList>, runtime: Arc<RuntimeEnv>, opened: Arc<Opened>) -> Self {
        Self { inner, stores: Arc::new(Stores { runtime, opened }) }
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
        if let Some(table) = Box::pin(self.stores.open(name)).await? {
            return Ok(Some(table));
        }
        if let Some(table) = self.inner.table(name).await? {
            return Ok(Some(table));
        }
        // A reader of other files may lie around this catalog.
        if is_other_file(name) { Ok(None) } else { Err(location::not_found(name).into()) }
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
    let path = Location::whole(name).ok().and_then(|l| l.url.to_file_path().ok());
    path.is_some_and(|path| path.extension() != Some("zarr".as_ref()) && path.is_file())
}

/// Opens stores.
#[derive(Debug)]
struct Stores {
    runtime: Arc<RuntimeEnv>,
    opened: Arc<Opened>,
}

impl Stores {
    /// The table at `name`; `None` where there is no Zarr store, so that another reader may have the name.
    async fn open(&self, name: &str) -> crate::Result<Option<Arc<dyn TableProvider>>> {
        let options = ZarrOptions::default();
        let Some((store, dataset)) = location::find(name, &options, &self.runtime).await? else { return Ok(None) };
        let table = ZarrTable::from_dataset(&store, dataset, &options).await?;
        self.opened.add(&table);
        Ok(Some(Arc::new(table)))
    }
}
