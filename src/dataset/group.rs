//! A group as a dataset: its variables, and which role each of them plays.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Variable;
use crate::error::{Error, Result};
use crate::options::ZarrOptions;
use crate::store::{Hierarchy, Location, Node, OpenOptions, ReadableStore, join};

/// A variable that is no column, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Name of the variable.
    pub(crate) name: String,
    /// One clause.
    pub(crate) reason: String,
}

/// The variables of one group, dimension coordinates of its parents included.
#[derive(Debug)]
pub(crate) struct Dataset {
    /// Where the store lies, as the user may write it again.
    root: String,
    /// Path of the group inside the store, empty for the root.
    path: String,
    /// All that can be read, in the store's order.
    pub(crate) variables: Vec<Variable>,
    /// All that cannot.
    pub(crate) left_out: Vec<LeftOut>,
    /// Groups under this one that hold arrays; looked for only where this one has no data variable.
    pub(crate) groups: Vec<String>,
    /// Where each of `variables` stands.
    places: HashMap<String, usize>,
    auxiliary: HashSet<String>,
    hidden: HashSet<String>,
}

impl Dataset {
    /// Read the metadata of the group that `location` and `options` name. `None` where `store` is no Zarr store at all.
    ///
    /// # Errors
    /// A group that does not exist, and failures of the store.
    pub(crate) async fn open(
        store: Arc<dyn ReadableStore>,
        location: &Location,
        options: &ZarrOptions,
    ) -> Result<Option<Self>> {
        let open = OpenOptions { consolidated: options.consolidated, zarr_format: options.zarr_format };
        let Some(mut hierarchy) = Hierarchy::open(store, open).await? else { return Ok(None) };
        let path = join(&location.group, options.group.as_deref().unwrap_or_default());
        let path = path.trim_matches('/');
        let root = location.url.to_file_path().map_or_else(|()| location.url.to_string(), |p| p.display().to_string());
        let mut dataset = Self {
            root,
            path: path.to_owned(),
            variables: Vec::new(),
            left_out: Vec::new(),
            groups: Vec::new(),
            places: HashMap::new(),
            auxiliary: HashSet::new(),
            hidden: HashSet::new(),
        };
        match hierarchy.node(path).await? {
            Some(Node::Group(attributes)) => dataset.read_group(&mut hierarchy, path, &attributes, options).await?,
            Some(node @ (Node::Array { .. } | Node::Broken(_))) => {
                dataset.read_array(&mut hierarchy, path, &node, location, options).await?;
            }
            None => return Err(dataset.no_such_group(&mut hierarchy, path).await),
        }
        Ok(Some(dataset))
    }

    async fn read_group(
        &mut self,
        hierarchy: &mut Hierarchy,
        path: &str,
        attributes: &Map<String, Value>,
        options: &ZarrOptions,
    ) -> Result<()> {
        let parents =
            std::iter::once("").chain(path.match_indices('/').map(|(i, _)| path.get(..i).unwrap_or_default()));
        for parent in parents.filter(|p| *p != path) {
            // Only dimension coordinates are inherited; what stands nearer hides what stands farther.
            for (name, node) in hierarchy.children(parent).await? {
                if let Some(Ok(array)) = node.array(&join(parent, &name)) {
                    let variable = Variable::new(name, array);
                    if variable.is_dimension_coordinate() {
                        self.put(variable);
                    }
                }
            }
        }
        for (name, node) in hierarchy.children(path).await? {
            self.add(name.clone(), &join(path, &name), &node);
        }
        self.assign_roles(attributes, options);
        if self.data().next().is_none() {
            self.groups = hierarchy.groups_with_arrays(path).await?;
        }
        Ok(())
    }

    /// An array alone: the whole store, or named like a group, whose coordinates are then those of its group.
    async fn read_array(
        &mut self,
        hierarchy: &mut Hierarchy,
        path: &str,
        node: &Node,
        location: &Location,
        options: &ZarrOptions,
    ) -> Result<()> {
        let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut found = None;
        if name.is_empty() {
            let file = location.url.path().rsplit('/').next().unwrap_or_default();
            found = Some((file.strip_suffix(".zarr").unwrap_or(file).to_owned(), node.clone()));
        } else {
            for (child, node) in hierarchy.children(group).await? {
                if child == name {
                    found = Some((child, node));
                } else if let Some(Ok(array)) = node.array(&join(group, &child)) {
                    let variable = Variable::new(child, array);
                    if variable.is_dimension_coordinate() {
                        self.put(variable);
                    }
                }
            }
        }
        if let Some((name, node)) = found {
            self.add(name, path, &node);
        }
        self.assign_roles(&Map::new(), options);
        Ok(())
    }

    async fn no_such_group(&self, hierarchy: &mut Hierarchy, path: &str) -> Error {
        let groups = hierarchy.groups_with_arrays("").await.unwrap_or_default();
        let reason =
            if groups.is_empty() { String::new() } else { format!("; groups with arrays: {}", quoted(&groups)) };
        Error::NotFound { location: self.root.clone(), reason: format!("it has no group `{path}`{reason}") }
    }

    fn add(&mut self, name: String, path: &str, node: &Node) {
        let variable = match node.array(path) {
            None => return,
            Some(Ok(array)) => Variable::new(name, array),
            Some(Err(reason)) => {
                self.left_out.push(LeftOut { name, reason });
                return;
            }
        };
        if variable.repeats_a_dimension() {
            let reason = format!("its dimensions ({}) repeat one", variable.dims.join(", "));
            self.left_out.push(LeftOut { name: variable.name, reason });
        } else {
            self.put(variable);
        }
    }

    /// Add a variable, in the place of the one of that name where there is one.
    fn put(&mut self, variable: Variable) {
        if let Some(slot) = self.places.get(&variable.name).and_then(|i| self.variables.get_mut(*i)) {
            *slot = variable;
        } else {
            self.places.insert(variable.name.clone(), self.variables.len());
            self.variables.push(variable);
        }
    }

    fn assign_roles(&mut self, attributes: &Map<String, Value>, options: &ZarrOptions) {
        self.variables.retain(|v| !options.drop_variables.contains(&v.name));
        self.left_out.retain(|l| !options.drop_variables.contains(&l.name));
        self.places = self.variables.iter().enumerate().map(|(i, v)| (v.name.clone(), i)).collect();
        self.join_char_arrays();
        let names =
            |text: Option<&str>| text.unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut auxiliary: HashSet<String> =
            names(attributes.get("coordinates").and_then(Value::as_str)).into_iter().collect();
        let mut hidden = HashSet::new();
        for v in &self.variables {
            // A variable that names itself stays what it is.
            let others = |list: Vec<String>| list.into_iter().filter(|n| *n != v.name);
            auxiliary.extend(others(names(v.attribute("coordinates"))));
            let bounds = ["bounds", "climatology"].iter().filter_map(|a| v.attribute(a)).map(str::to_owned).collect();
            hidden.extend(others(bounds));
            hidden.extend(others(v.attribute("grid_mapping").map(grid_mappings).unwrap_or_default()));
            if v.array.attributes.contains_key("grid_mapping_name") {
                hidden.insert(v.name.clone());
            }
        }
        for v in self.variables.iter().filter(|v| v.is_dimension_coordinate()) {
            auxiliary.remove(&v.name);
            hidden.remove(&v.name);
        }
        auxiliary.retain(|name| !hidden.contains(name));
        (self.auxiliary, self.hidden) = (auxiliary, hidden);
    }

    /// Char arrays become text where their last dimension serves nothing else.
    fn join_char_arrays(&mut self) {
        let mut lengths: HashSet<String> =
            self.variables.iter().filter(|v| v.is_char_array()).filter_map(|v| v.dims.last().cloned()).collect();
        for v in &self.variables {
            lengths.remove(&v.name);
            if !v.is_char_array() {
                lengths.retain(|d| !v.dims.contains(d));
            }
        }
        for v in self.variables.iter_mut().filter(|v| v.is_char_array()) {
            if v.dims.last().is_some_and(|d| lengths.contains(d)) {
                v.join_characters();
            }
        }
    }

    /// Where the group lies, for messages.
    pub(crate) fn location(&self) -> String {
        join(&self.root, &self.path).trim_end_matches('/').to_owned()
    }

    /// Arguments of `read_zarr` that name the group at `path`, as text between quotes.
    pub(crate) fn address(&self, path: &str) -> String {
        let escaped = |text: &str| text.replace('\'', "''");
        match path {
            "" => format!("'{}'", escaped(&self.root)),
            _ if Location::names_a_store(&self.root) => format!("'{}'", escaped(&join(&self.root, path))),
            _ => format!("'{}', 'group={}'", escaped(&self.root), escaped(path)),
        }
    }

    /// The same for this group.
    pub(crate) fn own_address(&self) -> String {
        self.address(&self.path)
    }

    /// The variable `name`.
    pub(crate) fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.get(*self.places.get(name)?)
    }

    /// Dimension coordinate of `dim`.
    pub(crate) fn dimension_coordinate(&self, dim: &str) -> Option<&Variable> {
        self.variable(dim).filter(|v| v.is_dimension_coordinate())
    }

    /// Auxiliary coordinates, in the store's order.
    pub(crate) fn auxiliary(&self) -> impl Iterator<Item = &Variable> {
        self.variables.iter().filter(|v| self.auxiliary.contains(&v.name) && !v.is_dimension_coordinate())
    }

    /// Data variables, in the store's order.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Variable> {
        self.variables.iter().filter(|v| {
            !self.auxiliary.contains(&v.name) && !self.hidden.contains(&v.name) && !v.is_dimension_coordinate()
        })
    }

    /// Whether the table has no use for `name`: bounds and grid mappings.
    pub(crate) fn is_hidden(&self, name: &str) -> bool {
        self.hidden.contains(name)
    }
}

/// `crs`, or CF's long form `crs: x y other: lat lon`.
fn grid_mappings(text: &str) -> Vec<String> {
    if text.contains(':') {
        text.split_whitespace().filter_map(|w| w.strip_suffix(':')).map(str::to_owned).collect()
    } else {
        vec![text.trim().to_owned()]
    }
}

/// Names in backticks, with commas.
pub(crate) fn quoted(names: &[String]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}
