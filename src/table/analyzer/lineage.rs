//! Where the columns of a plan come from.

use datafusion::common::Column;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, Join, JoinType, LogicalPlan, TableScan};

/// What makes a column of a plan.
#[derive(Debug)]
pub(super) enum Origin<'a> {
    /// The column `index` of a table.
    Table {
        /// The scan of the table.
        scan: &'a TableScan,
        /// Position in the schema of the table.
        index: usize,
        /// Which side of each join on the way, from the top: two scans of one table differ in it.
        path: Vec<usize>,
    },
    /// An expression over the columns of a plan.
    Expr(&'a Expr, &'a LogicalPlan),
    /// The columns at `index` of several plans.
    Union(Vec<&'a LogicalPlan>, usize),
    /// Something else.
    Other,
}

/// The origin of `column` among the outputs of `inputs`; `None` where they have no such column.
pub(super) fn origin<'a>(column: &Column, inputs: &'a [LogicalPlan]) -> Option<Origin<'a>> {
    let found =
        |(side, plan): (usize, &'a LogicalPlan)| Some((side, plan, plan.schema().maybe_index_of_column(column)?));
    let (side, plan, index) = inputs.iter().enumerate().find_map(found)?;
    Some(origin_at(index, plan, vec![side]))
}

/// The origin of the column `index` of `plan`, through everything that hands it on unchanged, renamed or not.
pub(super) fn origin_at(mut index: usize, mut plan: &LogicalPlan, mut path: Vec<usize>) -> Origin<'_> {
    loop {
        let (expr, input) = match step(index, plan) {
            Step::Same(i, input) => {
                (index, plan) = (i, input);
                continue;
            }
            Step::Side(side, i, input) => {
                path.push(side);
                (index, plan) = (i, input);
                continue;
            }
            Step::Table(scan) => {
                let index = scan.projection.as_ref().map_or(Some(index), |p| p.get(index).copied());
                return index.map_or(Origin::Other, |index| Origin::Table { scan, index, path });
            }
            Step::Union(inputs) => return Origin::Union(inputs, index),
            Step::Other => return Origin::Other,
            Step::Made(expr, input) => (expr, input),
        };
        let column = match expr {
            Expr::Alias(alias) => alias.expr.try_as_col(),
            other => other.try_as_col(),
        };
        match column.and_then(|c| input.schema().maybe_index_of_column(c)) {
            Some(i) => (index, plan) = (i, input),
            None => return Origin::Expr(expr, input),
        }
    }
}

/// What a node makes one of its columns of.
enum Step<'a> {
    Same(usize, &'a LogicalPlan),
    Side(usize, usize, &'a LogicalPlan),
    Made(&'a Expr, &'a LogicalPlan),
    Table(&'a TableScan),
    Union(Vec<&'a LogicalPlan>),
    Other,
}

fn step(index: usize, plan: &LogicalPlan) -> Step<'_> {
    match plan {
        LogicalPlan::Projection(p) => p.expr.get(index).map_or(Step::Other, |e| Step::Made(e, &p.input)),
        LogicalPlan::Distinct(Distinct::On(d)) => {
            d.select_expr.get(index).map_or(Step::Other, |e| Step::Made(e, &d.input))
        }
        LogicalPlan::Filter(f) => Step::Same(index, &f.input),
        LogicalPlan::Sort(s) => Step::Same(index, &s.input),
        LogicalPlan::Limit(l) => Step::Same(index, &l.input),
        LogicalPlan::Repartition(r) => Step::Same(index, &r.input),
        LogicalPlan::Subquery(s) => Step::Same(index, &s.subquery),
        LogicalPlan::SubqueryAlias(s) => Step::Same(index, &s.input),
        LogicalPlan::Distinct(Distinct::All(input)) => Step::Same(index, input),
        LogicalPlan::Window(w) => match index.checked_sub(w.input.schema().fields().len()) {
            None => Step::Same(index, &w.input),
            Some(i) => w.window_expr.get(i).map_or(Step::Other, |e| Step::Made(e, &w.input)),
        },
        LogicalPlan::Aggregate(aggregate) => {
            aggregated(index, aggregate).map_or(Step::Other, |e| Step::Made(e, &aggregate.input))
        }
        LogicalPlan::Join(join) => joined(index, join),
        LogicalPlan::TableScan(scan) => Step::Table(scan),
        LogicalPlan::Union(union) => Step::Union(union.inputs.iter().map(AsRef::as_ref).collect()),
        _ => Step::Other,
    }
}

/// The expression of a column of an aggregate: its keys come first, and after the keys of grouping sets an id.
fn aggregated(index: usize, aggregate: &Aggregate) -> Option<&Expr> {
    let keys = grouping_set_to_exprlist(&aggregate.group_expr).ok()?;
    if let Some(key) = keys.get(index) {
        return Some(key);
    }
    let is_grouping_set = matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
    aggregate.aggr_expr.get(index.checked_sub(keys.len() + usize::from(is_grouping_set))?)
}

fn joined(index: usize, join: &Join) -> Step<'_> {
    let left = join.left.schema().fields().len();
    match join.join_type {
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            if index < join.right.schema().fields().len() { Step::Side(1, index, &join.right) } else { Step::Other }
        }
        _ if index < left => Step::Side(0, index, &join.left),
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => Step::Other,
        _ => Step::Side(1, index - left, &join.right),
    }
}
