//! Grids: the variables that share dimensions and sizes, as the columns of one table.

use std::collections::HashSet;

use super::cf::{Encoding, is_time_axis};
use super::group::quoted;
use super::{Dataset, Variable};
use crate::error::{Error, Result};
use crate::options::ZarrOptions;

/// Where the values of a column come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// 0, 1, 2, … along the dimension.
    Index,
    /// The elements of a variable.
    Variable(Variable),
}

/// What a column is to its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// One a dimension: its coordinate, or its index.
    Dimension,
    /// An auxiliary coordinate.
    Auxiliary,
    /// A data variable on all the dimensions.
    Data,
    /// A data variable on some of them.
    FixedField,
    /// An index column asked for by option.
    Index,
    /// One side of a coordinate's bounds.
    Bound,
}

/// A column of a grid.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// Its role.
    pub(crate) role: Role,
    /// For each dimension of the source, which dimension of the grid it is.
    pub(crate) axes: Vec<usize>,
    /// Where its values come from.
    pub(crate) source: Source,
}

impl Column {
    /// The index of the same dimension, under the name that says so.
    pub(crate) fn as_index(&self) -> Self {
        Self { name: format!("{}_index", self.name), source: Source::Index, ..self.clone() }
    }

    /// How the column's values are decoded; `None` for indices.
    ///
    /// # Errors
    /// Attributes that cannot be understood.
    pub(crate) fn encoding(&self, options: &ZarrOptions) -> Result<Option<Encoding>> {
        match &self.source {
            Source::Index => Ok(None),
            Source::Variable(v) => v.encoding(matches!(self.role, Role::Dimension | Role::Bound), options).map(Some),
        }
    }
}

/// The table that a grid is: one row a cell.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// Names of the dimensions, in the order of the first variable.
    pub(crate) dims: Vec<String>,
    /// Length along each.
    pub(crate) sizes: Vec<u64>,
    /// The columns, in the order of the table.
    pub(crate) columns: Vec<Column>,
}

impl Dataset {
    /// The grid that `options` name, or the only one besides fixed fields.
    ///
    /// # Errors
    /// No grid, several, or a coordinate whose size is not its arrays'.
    pub(crate) fn grid(&self, options: &ZarrOptions) -> Result<Grid> {
        let data = self.chosen(options)?;
        let grids = distinct(&data);
        let main: Vec<&Variable> =
            grids.iter().copied().filter(|g| !grids.iter().any(|h| self.is_fixed_in(g, h))).collect();
        let candidates: Vec<&Variable> = match &options.dims {
            Some(dims) => grids.iter().copied().filter(|g| same_set(&g.dims, dims)).collect(),
            None => main.clone(),
        };
        match candidates.as_slice() {
            [grid] => self.grid_of(grid, &data, options),
            [] if options.dims.is_some() && !grids.is_empty() => {
                let dims = options.dims.as_deref().unwrap_or_default().join(",");
                Err(Error::Option {
                    option: "dims".into(),
                    reason: format!("no data variable has the dimensions `{dims}`; {}", self.list(&grids, &data)),
                })
            }
            [] => Err(self.no_data()),
            several => Err(Error::Ambiguous(format!(
                "`{}` holds {} tables; name one:\n{}",
                self.location(),
                several.len(),
                self.statements(several, &data)
            ))),
        }
    }

    fn chosen(&self, options: &ZarrOptions) -> Result<Vec<&Variable>> {
        let Some(names) = &options.variables else { return Ok(self.data().collect()) };
        if let Some(name) = names.iter().find(|n| !self.data().any(|v| v.name == **n)) {
            let reason = match self.left_out.iter().find(|l| l.name == *name) {
                Some(left) => format!("`{name}` cannot be read: {}", left.reason),
                None => format!(
                    "there is no data variable `{name}`; there are {}",
                    quoted(&self.data().map(|v| v.name.clone()).collect::<Vec<_>>())
                ),
            };
            return Err(Error::Option { option: "variables".into(), reason });
        }
        Ok(self.data().filter(|v| names.contains(&v.name)).collect())
    }

    /// Whether `v` is a fixed field of the grid of `g`: on a strict subset of its dimensions, and either 1-D or without any of its time axes.
    pub(crate) fn is_fixed_in(&self, v: &Variable, g: &Variable) -> bool {
        let subset = v.dims.len() < g.dims.len() && v.dims.iter().all(|d| g.dims.contains(d));
        let over_time = || v.dims.iter().any(|d| is_time_axis(d, self.variable(d).map(|c| c.array.as_ref())));
        subset && v.agrees_with(g) && (v.dims.len() == 1 || !over_time())
    }

    /// A variable of each grid of the group, fixed fields among them.
    pub(crate) fn grids(&self) -> Vec<&Variable> {
        distinct(&self.data().collect::<Vec<_>>())
    }

    fn grid_of(&self, grid: &Variable, data: &[&Variable], options: &ZarrOptions) -> Result<Grid> {
        let mut columns = Columns { dims: &grid.dims, sizes: &grid.shape, made: Vec::new(), names: HashSet::new() };
        for (dim, size) in grid.dims.iter().zip(&grid.shape) {
            match self.dimension_coordinate(dim) {
                Some(c) if c.shape.first() == Some(size) => columns.variable(c, Role::Dimension),
                Some(c) if self.fits_no_array(c) => return Err(mismatch(c, grid, *size)),
                _ => {
                    let taken = self.variable(dim).is_some_and(|v| !v.is_dimension_coordinate());
                    columns.index(if taken { format!("{dim}_index") } else { dim.clone() }, dim, Role::Dimension)?;
                }
            }
        }
        for v in self.auxiliary() {
            if columns.hold(v) {
                columns.variable(v, Role::Auxiliary);
            }
        }
        for v in data {
            if same_set(&v.dims, &grid.dims) && v.agrees_with(grid) {
                columns.variable(v, Role::Data);
            } else if self.is_fixed_in(v, grid) {
                columns.variable(v, Role::FixedField);
            }
        }
        if options.index_columns {
            for dim in &grid.dims {
                columns.index(format!("{dim}_index"), dim, Role::Index)?;
            }
        }
        if options.bounds {
            self.add_bounds(&mut columns);
        }
        Ok(Grid { dims: grid.dims.clone(), sizes: grid.shape.clone(), columns: columns.made })
    }

    /// Both sides of every coordinate's bounds, which are decoded like the coordinate (CF: bounds take its units and calendar).
    fn add_bounds(&self, columns: &mut Columns<'_>) {
        let coordinates: Vec<Variable> = columns
            .made
            .iter()
            .filter_map(|c| match &c.source {
                Source::Variable(v) => Some(v.clone()),
                Source::Index => None,
            })
            .collect();
        for coordinate in coordinates {
            let name = coordinate.attribute("bounds").or_else(|| coordinate.attribute("climatology"));
            let Some(bounds) = name.and_then(|n| self.variable(n)) else { continue };
            if bounds.shape.last() != Some(&2) || bounds.dims.len() != coordinate.dims.len() + 1 {
                continue;
            }
            let mut bounds = bounds.clone();
            let mut array = bounds.array.as_ref().clone();
            for key in ["units", "calendar"] {
                if let (false, Some(value)) = (array.attributes.contains_key(key), coordinate.array.attributes.get(key))
                {
                    array.attributes.insert(key.to_owned(), value.clone());
                }
            }
            bounds.array = array.into();
            for (side, suffix) in [(0, "lower"), (1, "upper")] {
                let part = bounds.side(format!("{}_{suffix}", coordinate.name), side);
                if columns.hold(&part) {
                    columns.variable(&part, Role::Bound);
                }
            }
        }
    }

    /// Whether no data variable has the length of the coordinate along its dimension, so that it belongs to none of them.
    fn fits_no_array(&self, coordinate: &Variable) -> bool {
        let own = coordinate.shape.first().copied();
        let inherited = coordinate.array.path.rsplit_once('/').map_or("", |(g, _)| g)
            != self.data().next().and_then(|v| v.array.path.rsplit_once('/')).map_or("", |(g, _)| g);
        !inherited && !self.data().any(|v| v.size_of(&coordinate.name) == own)
    }

    fn no_data(&self) -> Error {
        if !self.groups.is_empty() {
            let list: Vec<String> = self
                .groups
                .iter()
                .map(|g| format!("  SELECT * FROM read_zarr({}) LIMIT 10;", self.address(g)))
                .collect();
            let list = list.join("\n");
            return Error::Ambiguous(format!(
                "`{}` has no data variable of its own; its groups have:\n{list}",
                self.location()
            ));
        }
        let reasons: Vec<String> =
            self.left_out.iter().map(|l| format!("; `{}` cannot be read: {}", l.name, l.reason)).collect();
        let reasons = reasons.concat();
        Error::NoTable(format!("`{}` has no data variable{reasons}", self.location()))
    }

    fn list(&self, grids: &[&Variable], data: &[&Variable]) -> String {
        format!("the tables of `{}` are:\n{}", self.location(), self.statements(grids, data))
    }

    /// A statement for each grid, ready to paste.
    fn statements(&self, grids: &[&Variable], data: &[&Variable]) -> String {
        let address = self.own_address();
        let mut lines = Vec::new();
        for grid in grids {
            let members: Vec<&str> = data
                .iter()
                .filter(|v| same_set(&v.dims, &grid.dims) && v.agrees_with(grid))
                .map(|v| v.name.as_str())
                .collect();
            let unique = grids.iter().filter(|g| same_set(&g.dims, &grid.dims)).count() == 1;
            let (key, value) = if unique { ("dims", grid.dims.join(",")) } else { ("variables", members.join(",")) };
            let value = value.replace('\'', "''");
            lines.push(format!(
                "  SELECT * FROM read_zarr({address}, '{key}={value}') LIMIT 10;  -- OPTIONS('{key}' '{value}'): {}",
                members.join(", ")
            ));
        }
        lines.join("\n")
    }
}

fn mismatch(coordinate: &Variable, grid: &Variable, size: u64) -> Error {
    Error::Dimension(format!(
        "coordinate `{}` has {} values and array `{}` has {size} along that dimension; drop one of them with option `drop_variables`",
        coordinate.name,
        coordinate.shape.first().copied().unwrap_or(0),
        grid.name
    ))
}

/// The first variable of each set of dimensions and sizes.
fn distinct<'a>(data: &[&'a Variable]) -> Vec<&'a Variable> {
    let mut grids: Vec<&Variable> = Vec::new();
    for v in data {
        if !grids.iter().any(|g| same_set(&g.dims, &v.dims) && g.agrees_with(v)) {
            grids.push(v);
        }
    }
    grids
}

fn same_set(a: &[String], b: &[String]) -> bool {
    a.len() == b.len() && a.iter().all(|d| b.contains(d))
}

/// The columns of a grid in the making: names are unique, the first of a name stays.
struct Columns<'a> {
    dims: &'a [String],
    sizes: &'a [u64],
    made: Vec<Column>,
    names: HashSet<String>,
}

impl Columns<'_> {
    /// Whether the grid has the dimensions of `v`, of the same sizes.
    fn hold(&self, v: &Variable) -> bool {
        v.dims.iter().zip(&v.shape).all(|(d, n)| self.dims.iter().zip(self.sizes).any(|(e, m)| d == e && n == m))
    }

    fn variable(&mut self, v: &Variable, role: Role) {
        let axes = v.dims.iter().filter_map(|d| self.axis(d)).collect();
        self.push(Column { name: v.name.clone(), role, axes, source: Source::Variable(v.clone()) });
    }

    /// The index of `dim`, unless it stands here already.
    ///
    /// # Errors
    /// Another column of the name.
    fn index(&mut self, name: String, dim: &str, role: Role) -> Result<()> {
        let axes: Vec<usize> = self.axis(dim).into_iter().collect();
        match self.made.iter().find(|c| c.name == name) {
            Some(Column { source: Source::Index, axes: known, .. }) if *known == axes => Ok(()),
            Some(_) => Err(Error::Dimension(format!(
                "the index of dimension `{dim}` and another column are both named `{name}`; leave that variable out with option `drop_variables`"
            ))),
            None => {
                self.push(Column { name, role, axes, source: Source::Index });
                Ok(())
            }
        }
    }

    fn axis(&self, dim: &str) -> Option<usize> {
        self.dims.iter().position(|d| d == dim)
    }

    fn push(&mut self, column: Column) {
        if self.names.insert(column.name.clone()) {
            self.made.push(column);
        }
    }
}
