//! From a location to an open group, through the object stores of a session.

use std::sync::Arc;

use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use object_store::ObjectStore;
use object_store::path::Path;

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::options::ZarrOptions;
use crate::store::{Location, ObjectStoreReader, ReadableStore};

/// The group that `text` and `options` name, and the store it lies in.
///
/// # Errors
/// No store at the location, no such group, and failures of the store.
pub(crate) async fn open(
    text: &str,
    options: &ZarrOptions,
    runtime: &RuntimeEnv,
) -> Result<(Arc<dyn ReadableStore>, Dataset)> {
    find(text, options, runtime).await?.ok_or_else(|| not_found(text))
}

/// The same; `None` where there is no Zarr store.
///
/// # Errors
/// A store without such a group, and failures of the store.
pub(crate) async fn find(
    text: &str,
    options: &ZarrOptions,
    runtime: &RuntimeEnv,
) -> Result<Option<(Arc<dyn ReadableStore>, Dataset)>> {
    let location = Location::parse(text)?;
    let store = reader(text, &location, runtime)?;
    if let Some(dataset) = Dataset::open(Arc::clone(&store), &location, options).await? {
        return Ok(Some((store, dataset)));
    }
    // A folder may be called `.zarr` and only hold stores.
    if !location.group.is_empty() {
        let whole = Location::whole(text)?;
        let store = reader(text, &whole, runtime)?;
        if let Some(dataset) = Dataset::open(Arc::clone(&store), &whole, options).await? {
            return Ok(Some((store, dataset)));
        }
    }
    Ok(None)
}

/// That there is no Zarr store at `text`.
pub(crate) fn not_found(text: &str) -> Error {
    let path = Location::parse(text).ok().and_then(|l| l.url.to_file_path().ok());
    let reason = match path {
        Some(path) if !path.exists() => "the path does not exist",
        _ => "there is neither `zarr.json` nor `.zgroup`, `.zarray` or `.zmetadata`",
    };
    Error::NotFound { location: text.to_owned(), reason: reason.into() }
}

/// The keys of a location, through the object store that the session has for its URL.
fn reader(text: &str, location: &Location, runtime: &RuntimeEnv) -> Result<Arc<dyn ReadableStore>> {
    let url = &location.url;
    let unknown = |e: &dyn std::error::Error| Error::NotFound { location: text.to_owned(), reason: e.to_string() };
    let base = ObjectStoreUrl::parse(&url[..url::Position::BeforePath]).map_err(|e| unknown(&e))?;
    let store: Arc<dyn ObjectStore> = runtime.object_store(&base).map_err(|_| Error::NotFound {
        location: text.to_owned(),
        reason: format!(
            "no object store is registered for `{}`; this version reads local files, and what the program has registered with `SessionContext::register_object_store`",
            base.as_str()
        ),
    })?;
    let prefix = Path::from_url_path(url.path()).map_err(|e| unknown(&e))?;
    let local =
        url.to_file_path().ok().filter(|_| url.scheme() == "file" && store.to_string().starts_with("LocalFileSystem"));
    Ok(match local {
        Some(root) => Arc::new(ObjectStoreReader::local(store, prefix, root)),
        None => Arc::new(ObjectStoreReader::new(store, prefix)),
    })
}
