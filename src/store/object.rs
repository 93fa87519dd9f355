//! Stores behind `object_store`: local files, memory, and whatever the session has registered.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};

use super::{ByteRange, ReadableStore};
use crate::error::{Error, Result};

/// The keys under one prefix of an object store.
#[derive(Debug, Clone)]
pub(crate) struct ObjectStoreReader {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    local_root: Option<PathBuf>,
}

impl ObjectStoreReader {
    /// The keys of `store` under `prefix`.
    #[must_use]
    pub(crate) fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        Self { store, prefix, local_root: None }
    }

    /// The files under `root`, which is where `prefix` of `store` lies on the local file system.
    #[must_use]
    pub(crate) fn local(store: Arc<dyn ObjectStore>, prefix: Path, root: PathBuf) -> Self {
        Self { store, prefix, local_root: Some(root) }
    }

    /// The object of a key: parts of keys are names as they are, never escapes, and never lead out of the store.
    fn path(&self, key: &str) -> Result<Path> {
        let raw = if self.prefix.as_ref().is_empty() { key.to_owned() } else { format!("{}/{key}", self.prefix) };
        Path::parse(raw.trim_end_matches('/')).map_err(|e| failure(key, e))
    }

    async fn get_with(&self, key: &str, range: Option<GetRange>, limit: u64) -> Result<Option<Bytes>> {
        if let Some(path) = self.local_path(key)
            && file_size(&path).map_err(|e| failure(key, e))?.is_none()
        {
            return Ok(None);
        }
        let options = GetOptions { range, ..GetOptions::default() };
        match self.store.get_opts(&self.path(key)?, options).await {
            Ok(found) if found.range.end - found.range.start > limit => {
                let size = found.range.end - found.range.start;
                let reason = format!("it has {size} bytes, more than the {limit} that it can need");
                Err(failure(key, std::io::Error::other(reason)))
            }
            Ok(found) => found.bytes().await.map(Some).map_err(|e| failure(key, e)),
            Err(e) if is_missing(&e) => Ok(None),
            Err(e) => Err(failure(key, e)),
        }
    }
}

/// Names of the folders in a folder, sorted; what cannot be looked at, such as a link to nowhere, is no folder.
fn local_folders(path: &std::path::Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && entry.path().is_dir()
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Bytes of the file at `path`; `None` where there is none, or a folder.
///
/// # Errors
/// Pipes, devices and sockets, which have no bytes to be read again, and failures of the file system.
pub(crate) fn file_size(path: &std::path::Path) -> std::io::Result<Option<u64>> {
    use std::io::{Error, ErrorKind};
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
        Ok(metadata) if metadata.is_dir() => Ok(None),
        Ok(_) => Err(Error::other("it is no regular file")),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e),
    }
}

fn failure(key: &str, source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Store { key: key.to_owned(), source: Box::new(source) }
}

/// Only an object that does not exist is missing; a local path that runs through a file or names a folder does not exist either.
fn is_missing(error: &object_store::Error) -> bool {
    match error {
        object_store::Error::NotFound { .. } => true,
        object_store::Error::Generic { store: "LocalFileSystem", source } => {
            let mut source: Option<&(dyn std::error::Error + 'static)> = Some(source.as_ref());
            while let Some(e) = source {
                if let Some(io) = e.downcast_ref::<std::io::Error>() {
                    return matches!(
                        io.kind(),
                        std::io::ErrorKind::NotADirectory
                            | std::io::ErrorKind::IsADirectory
                            | std::io::ErrorKind::NotFound
                    );
                }
                source = e.source();
            }
            false
        }
        _ => false,
    }
}

#[async_trait]
impl ReadableStore for ObjectStoreReader {
    async fn get(&self, key: &str, limit: u64) -> Result<Option<Bytes>> {
        self.get_with(key, None, limit).await
    }

    async fn get_range(&self, key: &str, range: ByteRange) -> Result<Option<Bytes>> {
        let (range, length) = match range {
            ByteRange::Offsets(r) => (GetRange::Bounded(r.clone()), r.end.saturating_sub(r.start)),
            ByteRange::Suffix(n) => (GetRange::Suffix(n), n),
        };
        let bytes = self.get_with(key, Some(range), length).await?;
        match bytes {
            Some(b) if b.len() as u64 != length => {
                Err(failure(key, std::io::Error::other(format!("{length} bytes were asked for and {} came", b.len()))))
            }
            bytes => Ok(bytes),
        }
    }

    async fn list_folders(&self, path: &str) -> Result<Vec<String>> {
        if let Some(root) = &self.local_root {
            return local_folders(&root.join(path)).map_err(|e| failure(path, e));
        }
        let prefix = self.path(path)?;
        let listing = self.store.list_with_delimiter(Some(&prefix)).await.map_err(|e| failure(path, e))?;
        let mut names: Vec<String> =
            listing.common_prefixes.iter().filter_map(|p| p.filename().map(str::to_owned)).collect();
        names.sort();
        Ok(names)
    }

    async fn list_objects(&self, path: &str) -> Result<Vec<(String, u64)>> {
        let prefix = self.path(path)?;
        let listing = self.store.list(Some(&prefix));
        let found: Vec<_> = listing.try_collect().await.map_err(|e| failure(path, e))?;
        let key = |location: &Path| {
            let own = location.as_ref().strip_prefix(self.prefix.as_ref())?;
            Some(own.trim_start_matches('/').to_owned())
        };
        let mut objects: Vec<(String, u64)> =
            found.iter().filter_map(|object| Some((key(&object.location)?, object.size))).collect();
        objects.sort();
        Ok(objects)
    }

    fn local_path(&self, key: &str) -> Option<PathBuf> {
        let root = self.local_root.as_ref()?;
        let plain = key.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        plain.then(|| root.join(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::ObjectStoreExt;
    use object_store::local::LocalFileSystem;
    use object_store::memory::InMemory;

    #[tokio::test]
    async fn missing_is_not_an_error_and_everything_else_is() {
        let store = InMemory::new();
        store.put(&Path::from("s/a/2m temp"), "bytes".into()).await.unwrap();
        let reader = ObjectStoreReader::new(Arc::new(store), Path::from("s"));
        assert_eq!(reader.get("a/2m temp", 1000).await.unwrap().unwrap(), "bytes");
        assert_eq!(reader.get("a/none", 1000).await.unwrap(), None);
        assert_eq!(reader.get_range("a/2m temp", ByteRange::Suffix(2)).await.unwrap().unwrap(), "es");
        assert!(reader.get_range("a/2m temp", ByteRange::Offsets(3..9)).await.is_err());
        assert!(reader.get("../x", 1000).await.is_err());
        assert_eq!(reader.list_folders("").await.unwrap(), ["a"]);
        assert_eq!(reader.list_objects("a").await.unwrap(), [("a/2m temp".to_owned(), 5)]);
    }

    #[tokio::test]
    async fn local_folders_are_no_objects() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("g/zarr.json")).unwrap();
        std::fs::write(dir.path().join("file"), "x").unwrap();
        let store = LocalFileSystem::new_with_prefix(dir.path()).unwrap();
        let reader = ObjectStoreReader::local(Arc::new(store), Path::default(), dir.path().to_owned());
        assert_eq!(reader.get("g/zarr.json", 1000).await.unwrap(), None);
        assert_eq!(reader.get("file/zarr.json", 1000).await.unwrap(), None);
        assert_eq!(reader.get("file", 1000).await.unwrap().unwrap(), "x");
        assert_eq!((reader.local_path("../x"), reader.local_path("a/c/0")), (None, Some(dir.path().join("a/c/0"))));
    }
}
