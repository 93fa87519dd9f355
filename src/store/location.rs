//! Locations as users write them: a path, or a URL, with or without a group inside the store.

use object_store::path::Path;
use url::Url;

use crate::error::{Error, Result};

/// Where a store lies, and which group of it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// The store's root as a URL, without a trailing slash in its path.
    pub(crate) url: Url,
    /// Path of the group inside the store, empty for the root.
    pub(crate) group: String,
}

impl Location {
    /// Read `text` as a location: a URL, or a path of the local file system. The first path component that ends in `.zarr` is taken for
    /// the store, and what follows for a group inside it; without such a component all of it is the store.
    ///
    /// # Errors
    /// Text that is neither a URL nor a path.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let whole = Self::whole(text)?;
        let path = whole.url.path().to_owned();
        let mut end = 0;
        for component in path.split('/') {
            end += component.len();
            if is_store(component) {
                let mut url = whole.url.clone();
                let (root, group) = path.split_at(end);
                url.set_path(root);
                return Ok(Self { url, group: decode(group.trim_matches('/')) });
            }
            end += 1;
        }
        Ok(whole)
    }

    /// The same, but all of `text` is the store.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub(crate) fn whole(text: &str) -> Result<Self> {
        let bad = |reason: String| Error::NotFound { location: text.to_owned(), reason };
        let mut url = if has_scheme(text) {
            Url::parse(text).map_err(|e| bad(e.to_string()))?
        } else {
            if text.is_empty() || text.contains('\0') {
                return Err(bad("it is neither a path nor a URL".into()));
            }
            let path = std::path::absolute(text).map_err(|e| bad(e.to_string()))?;
            Url::from_file_path(&path).map_err(|()| bad("it is neither a path nor a URL".into()))?
        };
        if url.cannot_be_a_base() {
            return Err(bad("the URL has no path".into()));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self { url, group: String::new() })
    }

    /// The location of `prefix` in an object store without a URL, and the prefix of its root.
    ///
    /// # Errors
    /// None that a prefix can have.
    pub(crate) fn in_store(prefix: &Path) -> Result<(Path, Self)> {
        let parts: Vec<_> = prefix.parts().collect();
        let end = parts.iter().position(|part| is_store(part.as_ref())).map_or(parts.len(), |i| i + 1);
        let (root, group) = parts.split_at_checked(end).unwrap_or((&parts, &[]));
        let group = group.iter().map(|p| p.as_ref().to_owned()).collect::<Vec<_>>().join("/");
        let root: Path = root.iter().cloned().collect();
        let mut location = Self::whole("memory:///")?;
        location.url.set_path(root.as_ref());
        Ok((root, Self { url: location.url, group }))
    }

    /// Whether `text` has the shape of a location of a store: a path component ends in `.zarr`.
    #[must_use]
    pub(crate) fn names_a_store(text: &str) -> bool {
        text.split('/').any(is_store)
    }
}

/// A name that ends in `.zarr`, and is more than that.
fn is_store(component: &str) -> bool {
    component.strip_suffix(".zarr").is_some_and(|name| !name.is_empty())
}

/// `scheme://`, of more than one letter, which is a drive.
fn has_scheme(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// A URL's path holds `%20` for a blank; names of groups hold the blank.
fn decode(path: &str) -> String {
    Path::from_url_path(path).map_or_else(|_| path.to_owned(), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_and_groups() {
        let l = Location::parse("/data/a b/x.zarr/g h/r10m/").unwrap();
        assert_eq!((l.url.path(), l.group.as_str()), ("/data/a%20b/x.zarr", "g h/r10m"));
        let l = Location::parse("/data/plain/store/").unwrap();
        assert_eq!((l.url.path(), l.group.as_str()), ("/data/plain/store", ""));
        let l = Location::parse("s3://bucket/era5.zarr/forecast/").unwrap();
        assert_eq!((l.url.as_str(), l.group.as_str()), ("s3://bucket/era5.zarr", "forecast"));
        let l = Location::parse("memory:///x.zarr").unwrap();
        assert_eq!((l.url.scheme(), l.url.path(), l.group.as_str()), ("memory", "/x.zarr", ""));
        assert!(Location::parse("rel.zarr").unwrap().url.path().ends_with("/rel.zarr"));
        for bad in ["", "data:text", "http://[", "a\0b"] {
            assert!(Location::parse(bad).is_err() || bad == "data:text", "{bad}");
        }
    }

    #[test]
    fn shapes_of_names() {
        assert!(Location::names_a_store("x.zarr") && Location::names_a_store("s3://b/x.zarr/g"));
        assert!(
            !Location::names_a_store("t") && !Location::names_a_store("a/b.csv") && !Location::names_a_store(".zarr")
        );
    }
}
