//! `nearest_point(lat, lon, 40.1, -105)`: true at the cell whose position is nearest to a point on the globe.
//!
//! Latitude and longitude are two coordinates of the same dimensions, of two on a curvilinear grid. The rule finds the cell by great-circle distance
//! in the whole table, and puts a comparison of the dimensions' columns in place of the call.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::{Column, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ScalarUDF, lit};

use super::lineage::{Origin, origin};
use super::nearest::{Number, Placeholder, check_parameters, number, shown, table_column, values_of};
use super::scope::Scope;
use crate::dataset::Role;
use crate::read::GridReader;

/// Name of the function.
pub(super) const NAME: &str = "nearest_point";

/// The function, to be registered.
pub(super) fn function() -> ScalarUDF {
    Placeholder::new(NAME, &[4]).into()
}

/// What stands for the call.
///
/// # Errors
/// Arguments that are not two coordinates of the same dimensions and two literals; a point that lies outside of the grid; dimensions whose columns
/// cannot name the cell.
pub(super) fn replace(call: &ScalarFunction, scope: &Scope) -> Result<Expr> {
    let [lat, lon, values @ ..] = call.args.as_slice() else { return Err(form()) };
    check_parameters(NAME, values)?;
    if values.iter().any(|v| v.as_literal().is_some_and(ScalarValue::is_null)) {
        return Ok(lit(ScalarValue::Boolean(None)));
    }
    let point = Point::of(values)?;
    let (table, lat_index, path) = table_column(NAME, lat, scope)?;
    let (_, lon_index, lon_path) = table_column(NAME, lon, scope)?;
    let (lat, lon) = (Scope::name(lat), Scope::name(lon));
    if path != lon_path {
        return Err(DataFusionError::Plan(format!("`{lat}` and `{lon}` are not of the same table; take both of one")));
    }
    let grid = table.grid();
    let Some(positions) = Positions::new(grid, lat_index, lon_index)? else {
        return Err(DataFusionError::Plan(format!(
            "nearest_point takes two coordinates of the same dimensions, and `{lat}` and `{lon}` are none; `nearest` takes one dimension coordinate at a time"
        )));
    };
    let Some((nearest, distance)) = positions.nearest(point) else { return Ok(lit(false)) };
    if positions.step(nearest).is_some_and(|step| distance > step) {
        let (south, north) = positions.latitudes();
        return Err(DataFusionError::Plan(format!(
            "{} is more than one step outside of the grid of `{lat}` and `{lon}`, whose cells lie from {south:.2} to {north:.2} degrees north; \
             the nearest is {:.2} degrees away",
            values.iter().map(shown).collect::<Vec<_>>().join(", "),
            distance.to_degrees()
        )));
    }
    let comparisons = positions.indices(nearest).map(|(axis, index)| is_at(grid, axis, index, &path, scope));
    comparisons.reduce(|all, one| Ok(all?.and(one?))).unwrap_or_else(|| Ok(lit(true)))
}

fn form() -> DataFusionError {
    DataFusionError::Plan("write nearest_point(lat, lon, 40.1, -105), with latitude and longitude in degrees".into())
}

/// A point on the globe, in radians.
#[derive(Debug, Clone, Copy)]
struct Point {
    lat: f64,
    lon: f64,
}

impl Point {
    fn of(values: &[Expr]) -> Result<Self> {
        let [lat, lon] = values else { return Err(form()) };
        let degrees = |value: &Expr| {
            number(value).map(Number::as_f64).ok_or_else(|| {
                DataFusionError::Plan(format!("nearest_point takes numbers of degrees and {} is none", shown(value)))
            })
        };
        let (north, east) = (degrees(lat)?, degrees(lon)?);
        if !(-90.0..=90.0).contains(&north) {
            return Err(DataFusionError::Plan(format!(
                "{} is no latitude; nearest_point takes it before the longitude, from -90 to 90",
                shown(lat)
            )));
        }
        Ok(Self { lat: north.to_radians(), lon: east.rem_euclid(360.0).to_radians() })
    }

    /// Great-circle distance, as an angle.
    fn distance(self, other: Self) -> f64 {
        let half = |a: f64, b: f64| ((a - b) / 2.0).sin().powi(2);
        let haversine = half(self.lat, other.lat) + self.lat.cos() * other.lat.cos() * half(self.lon, other.lon);
        2.0 * haversine.clamp(0.0, 1.0).sqrt().asin()
    }
}

/// The positions of cells on some of a grid's dimensions.
struct Positions {
    /// Radians, C order; NaN where there is none.
    lat: Vec<f64>,
    lon: Vec<f64>,
    /// The dimensions, ascending, and the lengths along them.
    axes: Vec<usize>,
    shape: Vec<usize>,
}

impl Positions {
    /// `None` where the columns are no coordinates of the same dimensions.
    fn new(grid: &GridReader, lat: usize, lon: usize) -> Result<Option<Self>> {
        let (Some(lat), Some(lon)) = (Self::radians(grid, lat)?, Self::radians(grid, lon)?) else { return Ok(None) };
        let ((axes, lat), (lon_axes, lon)) = (lat, lon);
        let sizes = axes.iter().filter_map(|a| grid.sizes.get(*a));
        let shape: Vec<usize> = sizes.map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
        Ok((axes == lon_axes && lat.len() == lon.len()).then_some(Self { lat, lon, axes, shape }))
    }

    /// The dimensions and the values of one coordinate.
    fn radians(grid: &GridReader, index: usize) -> Result<Option<(Vec<usize>, Vec<f64>)>> {
        let (Some(reader), Some(field)) = (grid.columns.get(index), grid.schema.fields().get(index)) else {
            return Ok(None);
        };
        let is_coordinate = matches!(reader.role, Role::Auxiliary | Role::FixedField | Role::Data | Role::Dimension);
        if !is_coordinate || !field.data_type().is_floating() || reader.axes.is_empty() {
            return Ok(None);
        }
        let Some(values) = values_of(reader)? else { return Ok(None) };
        let scale = if in_radians(field) { 1.0 } else { 1.0_f64.to_radians() };
        let values = cast(&values, &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>().iter().map(|v| v.map_or(f64::NAN, |v| v * scale)).collect();
        Ok(Some((reader.axes.clone(), values)))
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        self.lat.iter().zip(&self.lon).map(|(lat, lon)| Point { lat: *lat, lon: *lon })
    }

    fn point(&self, cell: usize) -> Option<Point> {
        Some(Point { lat: *self.lat.get(cell)?, lon: *self.lon.get(cell)? })
    }

    /// The cell nearest to a point, the first of equally near ones, and its distance; `None` where no cell has a position.
    fn nearest(&self, point: Point) -> Option<(usize, f64)> {
        let distances = self.points().map(|p| point.distance(p)).enumerate().filter(|(_, d)| d.is_finite());
        distances.reduce(|best, next| if next.1 < best.1 { next } else { best })
    }

    /// How many cells of the flat array neighbours along each dimension are apart.
    fn strides(&self) -> Vec<usize> {
        let mut strides: Vec<usize> = self
            .shape
            .iter()
            .rev()
            .scan(1_usize, |step, n| {
                let own = *step;
                *step = own.saturating_mul(*n);
                Some(own)
            })
            .collect();
        strides.reverse();
        strides
    }

    /// The index of a cell along each dimension.
    fn indices(&self, cell: usize) -> impl Iterator<Item = (usize, usize)> {
        let lengths = self.axes.iter().zip(&self.shape).zip(self.strides());
        lengths.map(move |((axis, length), stride)| (*axis, cell / stride.max(1) % (*length).max(1)))
    }

    /// Distance to the neighbour that is furthest away; `None` on one dimension, where neighbours in the array may be anywhere on the globe.
    fn step(&self, cell: usize) -> Option<f64> {
        if self.axes.len() < 2 {
            return None;
        }
        let own = self.point(cell)?;
        let mut step: Option<f64> = None;
        for (((_, index), length), stride) in self.indices(cell).zip(&self.shape).zip(self.strides()) {
            let before = cell.checked_sub(stride).filter(|_| index > 0);
            let after = cell.checked_add(stride).filter(|_| index + 1 < *length);
            for neighbour in [before, after].into_iter().flatten().filter_map(|c| self.point(c)) {
                let distance = own.distance(neighbour);
                step = Some(step.map_or(distance, |s| s.max(distance))).filter(|s| s.is_finite()).or(step);
            }
        }
        step
    }

    /// Degrees of the least and the greatest latitude.
    fn latitudes(&self) -> (f64, f64) {
        let least = self.lat.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = self.lat.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (least.to_degrees(), greatest.to_degrees())
    }
}

fn in_radians(field: &Field) -> bool {
    field.metadata().get("units").is_some_and(|units| units.to_ascii_lowercase().starts_with("rad"))
}

/// The comparison that is true at `index` of a dimension: of a column of the same scan that names it alone.
fn is_at(grid: &GridReader, axis: usize, index: usize, path: &[usize], scope: &Scope) -> Result<Expr> {
    for (input, side) in scope.inputs.iter().zip(0..) {
        for (qualifier, field) in input.schema().iter() {
            let column = Column::from((qualifier, field));
            let Some(Origin::Table { index: source, path: own, .. }) = origin(&column, std::slice::from_ref(input))
            else {
                continue;
            };
            // A lone input counts as the first.
            let same_scan = path.split_first().is_some_and(|(s, rest)| *s == side && own.get(1..) == Some(rest));
            if let Some(value) = same_scan.then(|| value_at(grid, source, axis, index)).transpose()?.flatten() {
                return Ok(Expr::Column(column).eq(Expr::Literal(value, None)));
            }
        }
    }
    let dimension = grid.columns.iter().zip(grid.schema.fields()).find(|(c, _)| is_along(c.role, &c.axes, axis));
    let name = dimension.map_or("", |(_, field)| field.name());
    Err(DataFusionError::Plan(format!(
        "nearest_point needs a column that tells the places along dimension `{name}` apart; keep `{name}` in the subquery, or add `{name}_index` \
         with option `index_columns`"
    )))
}

fn is_along(role: Role, axes: &[usize], dimension: usize) -> bool {
    matches!(role, Role::Dimension | Role::Index) && *axes == [dimension]
}

/// The value of column `source` at `index` of a dimension, where no other place along the dimension has the same.
fn value_at(grid: &GridReader, source: usize, axis: usize, index: usize) -> Result<Option<ScalarValue>> {
    let Some(reader) = grid.columns.get(source).filter(|c| is_along(c.role, &c.axes, axis)) else { return Ok(None) };
    let Some(values) = values_of(reader)? else {
        return Ok(Some(ScalarValue::Int64(i64::try_from(index).ok())));
    };
    if values.is_null(index) {
        return Ok(None);
    }
    let value = ScalarValue::try_from_array(&values, index)?;
    Ok(is_unique(&values, &value)?.then_some(value))
}

fn is_unique(values: &ArrayRef, value: &ScalarValue) -> Result<bool> {
    let same = arrow::compute::kernels::cmp::eq(values, &value.to_scalar()?)?;
    Ok(same.true_count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn degrees(lat: f64, lon: f64) -> Point {
        Point { lat: lat.to_radians(), lon: lon.to_radians() }
    }

    #[test]
    fn great_circles() {
        for (a, b, angle) in [
            (degrees(0.0, 0.0), degrees(0.0, 90.0), 90.0),
            (degrees(0.0, 350.0), degrees(0.0, -10.0), 0.0),
            (degrees(90.0, 0.0), degrees(-90.0, 123.0), 180.0),
            (degrees(60.0, 0.0), degrees(60.0, 180.0), 60.0),
        ] {
            assert!((a.distance(b).to_degrees() - angle).abs() < 1e-9, "{a:?} {b:?}");
        }
    }

    #[test]
    fn cells_without_a_position_are_no_neighbours() {
        let radians = |v: [f64; 6]| v.map(f64::to_radians).to_vec();
        let positions = Positions {
            lat: radians([0.0, 0.0, 0.0, 10.0, f64::NAN, 10.0]),
            lon: radians([0.0, 20.0, 40.0, 0.0, 20.0, 40.0]),
            axes: vec![1, 2],
            shape: vec![2, 3],
        };
        let (cell, distance) = positions.nearest(degrees(9.0, 20.0)).unwrap();
        assert_eq!((cell, positions.indices(cell).collect::<Vec<_>>()), (1, vec![(1, 0), (2, 1)]));
        assert!((distance.to_degrees() - 9.0).abs() < 1e-9);
        assert!((positions.step(cell).unwrap().to_degrees() - 20.0).abs() < 1e-9);
    }
}
