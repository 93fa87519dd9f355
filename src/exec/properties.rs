//! What a scan tells DataFusion about its rows: their order, what is constant, statistics.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{Result, Statistics};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{AcrossPartitions, ConstExpr, EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};

use super::scan::{BoundScan, Scan};
use crate::dataset::Role;
use crate::planning::statistics;
use crate::read::ColumnReader;

/// The order of the rows of `scan`, and the columns that have one value; `schema` is that of its rows.
///
/// # Errors
/// None but DataFusion's own.
pub(super) fn equivalences(scan: &Scan, bound: &BoundScan, schema: &SchemaRef) -> Result<EquivalenceProperties> {
    let mut properties = EquivalenceProperties::new(Arc::clone(schema));
    let selected = &bound.plan.selection.dims;
    let one_index = |axis: &usize| selected.get(*axis).is_some_and(|set| set.len() == 1);
    let mut constants = Vec::new();
    for (place, number) in scan.projection.iter().enumerate() {
        let Some(column) = scan.grid.columns.get(*number) else { continue };
        if column.role != Role::Data && column.axes.iter().all(one_index) {
            constants.push(ConstExpr::new(output_column(schema, place), AcrossPartitions::Uniform(None)));
        }
    }
    properties.add_constants(constants)?;
    properties.add_orderings([ordering(scan, bound, schema)].into_iter().filter(|o| !o.is_empty()));
    Ok(properties)
}

/// The dimension coordinates that the rows ascend or descend along, the outermost first.
///
/// Rows come Block by Block. Those of one Block are in C order; those of several are too as long as no Block reaches over two indices of a
/// dimension while a later one is cut, for then the next Block begins with the first index again.
pub(super) fn ordering(scan: &Scan, bound: &BoundScan, schema: &SchemaRef) -> Vec<PhysicalSortExpr> {
    let selected = &bound.plan.selection.dims;
    let mut order = Vec::new();
    for axis in 0..scan.grid.sizes.len() {
        if !bound.blocks.is_ordered(axis + 1, selected) {
            break;
        }
        if selected.get(axis).is_some_and(|set| set.len() == 1) {
            continue;
        }
        let is_coordinate = |number: &usize| {
            scan.grid.columns.get(*number).is_some_and(|c| c.role == Role::Dimension && c.axes == [axis])
        };
        let Some(place) = scan.projection.iter().position(is_coordinate) else { break };
        let column = scan.projection.get(place).and_then(|number| scan.grid.columns.get(*number));
        let Some(monotonic) = column.and_then(ColumnReader::monotonic) else { break };
        let options = SortOptions { descending: monotonic.descending, nulls_first: monotonic.descending };
        order.push(PhysicalSortExpr::new(output_column(schema, place), options));
        if !monotonic.strict {
            break;
        }
    }
    order
}

fn output_column(schema: &SchemaRef, place: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(schema.field(place).name(), place))
}

/// Statistics of all rows of `scan`, exact where nothing but coordinates decides which those are.
///
/// # Errors
/// Coordinates that cannot be compared.
pub(super) fn of_rows(scan: &Scan, bound: &BoundScan, schema: &SchemaRef) -> Result<Statistics> {
    let mut all = Statistics::new_unknown(schema);
    let selection = &bound.plan.selection;
    let upper = selection.dims.iter().fold(1u64, |n, set| n.saturating_mul(set.len()));
    let rows = usize::try_from(selection.rows().unwrap_or(upper));
    all.num_rows = rows.map_or(Precision::Absent, Precision::Exact);
    let coordinates = scan.grid.coordinates();
    for (statistics, number) in all.column_statistics.iter_mut().zip(scan.projection.iter()) {
        *statistics = statistics::of_column(&coordinates, selection, *number)?;
        let Some(column) = scan.grid.columns.get(*number) else { continue };
        if let ([axis], Some(monotonic)) = (column.axes.as_slice(), column.monotonic())
            && monotonic.strict
            && let Some(set) = selection.dims.get(*axis)
        {
            statistics.distinct_count = usize::try_from(set.len()).map_or(Precision::Absent, Precision::Exact);
        }
    }
    let is_exact = bound.rows().is_some() && scan.dynamic.is_empty();
    Ok(if is_exact { all } else { all.to_inexact() })
}
