//! The groups and arrays of a store, from consolidated metadata where there is some, else by listing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value};

use super::metadata::join;
use super::{ArrayMetadata, ReadableStore, json};
use crate::error::{Error, Result};

/// How to find the nodes of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OpenOptions {
    /// Use consolidated metadata: always (and fail without), never, or where there is some.
    pub(crate) consolidated: Option<bool>,
    /// Only this format: 2 or 3.
    pub(crate) zarr_format: Option<u8>,
}

/// Metadata of a group or array, before anything in it is checked.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A group and its attributes.
    Group(Map<String, Value>),
    /// An array: its document, and the attributes that format 2 keeps beside it.
    Array { document: Value, attributes: Map<String, Value> },
    /// A document that is no node, and why; it does not keep its neighbours from being read.
    Broken(String),
}

/// The nodes of a store that are known so far, in the store's order.
#[derive(Debug)]
pub(crate) struct Hierarchy {
    store: Arc<dyn ReadableStore>,
    options: OpenOptions,
    nodes: Vec<(String, Node)>,
    /// Whether `nodes` holds all there is.
    complete: bool,
}

/// Groups and arrays looked at when listing, so that a tree without end stops.
const MAX_NODES: usize = 100_000;
/// Bytes of one metadata document.
const MAX_DOCUMENT: u64 = 256 << 20;
/// Consolidated metadata of format 2.
const ZMETADATA: &str = ".zmetadata";
/// Requests in flight while listing.
const CONCURRENCY: usize = 32;

impl Hierarchy {
    /// Open the root of `store`; `None` where there is neither a group nor an array.
    pub(crate) async fn open(store: Arc<dyn ReadableStore>, options: OpenOptions) -> Result<Option<Self>> {
        let consolidated_v2 = async {
            let wanted = options.consolidated != Some(false) && options.zarr_format != Some(3);
            if wanted { store.get(ZMETADATA, MAX_DOCUMENT).await } else { Ok(None) }
        };
        let (root, consolidated_v2) =
            futures::try_join!(node(store.as_ref(), "", options.zarr_format), consolidated_v2)?;
        let is_v3 = root.as_ref().is_some_and(|found| found.is_v3);
        let (nodes, complete) = match (root, consolidated_v2) {
            (Some(Found { node, consolidated: Some(all), .. }), _) if options.consolidated != Some(false) => {
                let root = std::iter::once((String::new(), node));
                (root.chain(consolidated_v3(&all)?).collect(), true)
            }
            (_, Some(all)) if !is_v3 => (nodes_of_zmetadata(&parse(ZMETADATA, &all)?)?, true),
            (Some(Found { node, .. }), _) => {
                if options.consolidated == Some(true) && matches!(node, Node::Group(_)) {
                    let reason =
                        "the store has no consolidated metadata; leave the option out to find arrays by listing";
                    return Err(Error::Option { option: "consolidated".into(), reason: reason.into() });
                }
                let complete = matches!(node, Node::Array { .. });
                (vec![(String::new(), node)], complete)
            }
            (None, _) => return Ok(None),
        };
        Ok(Some(Self { store, options, nodes, complete }))
    }

    /// The node at `path`, asked for where it is not known yet.
    pub(crate) async fn node(&mut self, path: &str) -> Result<Option<Node>> {
        if let Some(node) = self.find(path) {
            return Ok(Some(node.clone()));
        }
        if self.complete {
            return Ok(None);
        }
        let found = node(self.store.as_ref(), path, self.options.zarr_format).await?.map(|f| f.node);
        if let Some(node) = &found {
            self.nodes.push((path.to_owned(), node.clone()));
        }
        Ok(found)
    }

    fn find(&self, path: &str) -> Option<&Node> {
        self.nodes.iter().find(|(p, _)| p == path).map(|(_, n)| n)
    }

    /// The nodes directly under the group at `path`, with their names.
    pub(crate) async fn children(&mut self, path: &str) -> Result<Vec<(String, Node)>> {
        if !self.complete {
            return list(self.store.as_ref(), path, self.options.zarr_format).await;
        }
        Ok(self.nodes.iter().filter_map(|(p, n)| Some((child_name(path, p)?.to_owned(), n.clone()))).collect())
    }

    /// Paths of the groups under `path`, at any depth, that hold arrays themselves.
    pub(crate) async fn groups_with_arrays(&mut self, path: &str) -> Result<Vec<String>> {
        if self.complete {
            let below = |group: &str| group != path && child_of(path, group);
            let arrays = self.nodes.iter().filter(|(_, n)| matches!(n, Node::Array { .. }));
            let groups = arrays.filter_map(|(p, _)| p.rsplit_once('/').map(|(group, _)| group.to_owned()));
            let groups: BTreeSet<String> = groups.filter(|g| below(g)).collect();
            return Ok(groups.into_iter().collect());
        }
        let mut found = Vec::new();
        let mut todo = vec![path.to_owned()];
        let mut seen = 0usize;
        while let Some(group) = todo.pop() {
            let children = self.children(&group).await?;
            seen = seen.saturating_add(children.len());
            if group != path && children.iter().any(|(_, n)| matches!(n, Node::Array { .. })) {
                found.push(group.clone());
            }
            if seen < MAX_NODES {
                todo.extend(
                    children.iter().filter(|(_, n)| matches!(n, Node::Group(_))).map(|(name, _)| join(&group, name)),
                );
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Whether `path` lies in `group`, at any depth.
fn child_of(group: &str, path: &str) -> bool {
    group.is_empty() || path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
}

/// The name of the node at `path` where it lies directly under `group`.
fn child_name<'a>(group: &str, path: &'a str) -> Option<&'a str> {
    let rest = if group.is_empty() { path } else { path.strip_prefix(group)?.strip_prefix('/')? };
    (!rest.is_empty() && !rest.contains('/')).then_some(rest)
}

/// A node and, of a format 3 group, the consolidated metadata in it.
struct Found {
    node: Node,
    is_v3: bool,
    consolidated: Option<Value>,
}

async fn document(store: &dyn ReadableStore, key: &str) -> Result<Option<Value>> {
    store.get(key, MAX_DOCUMENT).await?.map(|bytes| parse(key, &bytes)).transpose()
}

fn parse(key: &str, bytes: &[u8]) -> Result<Value> {
    json::parse(bytes).map_err(|reason| Error::Metadata { node: key.to_owned(), reason })
}

/// Ask for a node in every format that is allowed, at once.
async fn node(store: &dyn ReadableStore, path: &str, format: Option<u8>) -> Result<Option<Found>> {
    let read = |name: &'static str, wanted: bool| async move {
        if wanted { document(store, &join(path, name)).await } else { Ok(None) }
    };
    let (v2, v3) = (format != Some(3), format != Some(2));
    let (zarr_json, zarray, zgroup, zattrs) =
        futures::try_join!(read("zarr.json", v3), read(".zarray", v2), read(".zgroup", v2), read(".zattrs", v2))?;
    if let Some(document) = zarr_json {
        return node_v3(&join(path, "zarr.json"), document).map(Some);
    }
    let attributes = object(zattrs);
    let node = match (zarray, zgroup) {
        (Some(document), _) => Node::Array { document, attributes },
        (None, Some(_)) => Node::Group(attributes),
        (None, None) => return Ok(None),
    };
    Ok(Some(Found { node, is_v3: false, consolidated: None }))
}

fn node_v3(key: &str, mut document: Value) -> Result<Found> {
    match document.get("node_type").and_then(Value::as_str) {
        Some("group") => {
            let consolidated = document.get_mut("consolidated_metadata").map(Value::take).filter(|c| !c.is_null());
            let node = Node::Group(object(document.get_mut("attributes").map(Value::take)));
            Ok(Found { node, is_v3: true, consolidated })
        }
        Some("array") => {
            Ok(Found { node: Node::Array { document, attributes: Map::new() }, is_v3: true, consolidated: None })
        }
        _ => Err(Error::Metadata { node: key.to_owned(), reason: "`node_type` is neither `group` nor `array`".into() }),
    }
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// A path from a metadata document: its parts are names, and lead nowhere else.
fn is_plain(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

fn consolidated_v3(all: &Value) -> Result<Vec<(String, Node)>> {
    let metadata = all.get("metadata").and_then(Value::as_object);
    let metadata = metadata.ok_or_else(|| Error::Metadata {
        node: "zarr.json".into(),
        reason: "`consolidated_metadata` has no `metadata`".into(),
    })?;
    let plain = metadata.iter().filter(|(path, _)| is_plain(path));
    Ok(plain
        .map(|(path, document)| {
            (path.clone(), node_v3(path, document.clone()).map_or_else(|e| Node::Broken(e.to_string()), |f| f.node))
        })
        .collect())
}

/// `{"metadata": {".zgroup": …, "a/.zarray": …, "a/.zattrs": …}}`, each node where it is first named.
fn nodes_of_zmetadata(all: &Value) -> Result<Vec<(String, Node)>> {
    let metadata = all.get("metadata").and_then(Value::as_object);
    let metadata =
        metadata.ok_or_else(|| Error::Metadata { node: ZMETADATA.into(), reason: "it has no `metadata`".into() })?;
    let mut order: Vec<String> = Vec::new();
    let mut parts: BTreeMap<&str, [Option<&Value>; 3]> = BTreeMap::new();
    for (key, value) in metadata {
        let (path, file) = key.rsplit_once('/').unwrap_or(("", key));
        let slot = match file {
            ".zarray" => 0,
            ".zgroup" => 1,
            ".zattrs" => 2,
            _ => continue,
        };
        if !path.is_empty() && !is_plain(path) {
            continue;
        }
        let entry = parts.entry(path).or_insert_with(|| {
            order.push(path.to_owned());
            [None; 3]
        });
        if let Some(part) = entry.get_mut(slot) {
            *part = Some(value);
        }
    }
    let node = |path: String| {
        let [array, group, attributes] = parts.get(path.as_str()).copied().unwrap_or_default();
        let attributes = object(attributes.cloned());
        let node = match (array, group) {
            (Some(document), _) => Node::Array { document: document.clone(), attributes },
            (None, Some(_)) => Node::Group(attributes),
            (None, None) if path.is_empty() => Node::Group(attributes),
            (None, None) => return None,
        };
        Some((path, node))
    };
    let mut nodes: Vec<(String, Node)> = order.into_iter().filter_map(node).collect();
    // Some writers leave the root out.
    if !nodes.iter().any(|(path, _)| path.is_empty()) {
        nodes.push((String::new(), Node::Group(Map::new())));
    }
    Ok(nodes)
}

async fn list(store: &dyn ReadableStore, path: &str, format: Option<u8>) -> Result<Vec<(String, Node)>> {
    let names = store.list_folders(path).await?;
    if names.len() > MAX_NODES {
        return Err(Error::Metadata {
            node: path.to_owned(),
            reason: format!("the group has {} members, more than {MAX_NODES}", names.len()),
        });
    }
    let found: Vec<Option<(String, Node)>> = stream::iter(names.into_iter().filter(|n| is_plain(n)))
        .map(|name| async move {
            match node(store, &join(path, &name), format).await {
                Ok(found) => Ok(found.map(|f| (name, f.node))),
                Err(Error::Metadata { reason, .. }) => Ok(Some((name, Node::Broken(reason)))),
                Err(e) => Err(e),
            }
        })
        .buffered(CONCURRENCY)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().collect())
}

impl Node {
    /// The array's metadata, checked. `path` is that of the array.
    pub(crate) fn array(&self, path: &str) -> Option<Result<ArrayMetadata, String>> {
        match self {
            Self::Array { document, attributes } => Some(ArrayMetadata::parse(path, document, Some(attributes))),
            Self::Broken(reason) => Some(Err(reason.clone())),
            Self::Group(_) => None,
        }
    }
}
