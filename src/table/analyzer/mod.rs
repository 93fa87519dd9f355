//! The analyzer rule: what a query means where plain SQL would quietly mean something else for Zarr.
//!
//! It runs before `DataFusion`'s type coercion, over every expression of every plan node, subqueries among them, and does nothing to queries
//! without a Zarr column. Columns are recognised by the metadata of their fields (key `zarr.role`), which travels through projections,
//! subqueries, aliases and joins. Names of output columns stay what they are.
//!
//! - [`float_literals`]: comparisons of Float32 columns with literals are made in Float32.
//! - [`date_literals`]: literals compared with times are completed to their first instant.
//! - [`date_functions`]: date functions know the calendar, and what cannot be right is refused.
//! - [`row_literals`]: literals in rows get the types of the columns that they are compared with.
//! - [`gregorian_only`]: functions and casts that would take any date for a Gregorian one are refused.
//! - [`nearest`] and [`nearest_point`]: calls become the value, or the cell, that is nearest.
//! - [`quoted_names`]: names that need quotes and have none.

mod axis;
mod comparison;
mod date_functions;
mod date_literals;
mod float_literals;
mod gregorian_only;
mod lineage;
mod nearest;
mod nearest_point;
mod quoted_names;
mod row_literals;
mod scope;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use self::scope::{Scope, is_zarr};
use super::calendar_functions;
use crate::options::ZarrConfig;

const NAME: &str = "zarr";

/// Make `state` read queries over Zarr as they are meant: install the rule before all others, and its functions. Once is enough.
///
/// # Errors
/// Functions that the session refuses.
pub(super) fn install(state: &mut SessionState) -> Result<()> {
    if state.analyzer().rules.iter().any(|rule| rule.name() == NAME) {
        return Ok(());
    }
    // Rules cannot be put first into a state that exists. A new one keeps everything but its id, a setting, and prepared statements.
    let create = state.config().options().catalog.create_default_catalog_and_schema;
    let mut builder =
        SessionStateBuilder::new_from_existing(state.clone()).with_session_id(state.session_id().to_owned());
    if let Some(analyzer) = builder.analyzer() {
        analyzer.rules.insert(0, Arc::new(ZarrAnalyzer));
    }
    *state = builder.build();
    state.config_mut().options_mut().catalog.create_default_catalog_and_schema = create;
    for function in calendar_functions::all().into_iter().chain([nearest::function(), nearest_point::function()]) {
        state.register_udf(Arc::new(function))?;
    }
    state.register_expr_planner(Arc::new(date_functions::Operators))?;
    Ok(())
}

/// The rule.
#[derive(Debug)]
struct ZarrAnalyzer;

impl AnalyzerRule for ZarrAnalyzer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        if !reads_zarr(&plan)? {
            return Ok(plan);
        }
        let config = ZarrConfig::of(config);
        Ok(plan.transform_up_with_subqueries(|node| rewrite_node(node, config))?.data)
    }
}

/// Whether a table of the plan has columns of Zarr.
fn reads_zarr(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found =
            matches!(node, LogicalPlan::TableScan(scan) if scan.source.schema().fields().iter().any(|f| is_zarr(f)));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Rewrite the expressions of one node, whose inputs are rewritten already.
fn rewrite_node(node: LogicalPlan, config: ZarrConfig) -> Result<Transformed<LogicalPlan>> {
    // Most nodes have no expression, and need no copy of their inputs.
    let mut any = false;
    node.apply_expressions(|_| {
        any = true;
        Ok(TreeNodeRecursion::Stop)
    })?;
    if !any {
        // Types of inputs may have changed.
        return Ok(Transformed::yes(node.recompute_schema()?));
    }
    quoted_names::check(&node)?;
    let inputs: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
    let schema = match &node {
        LogicalPlan::TableScan(scan) => {
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?
        }
        _ => merge_schema(&node.inputs()),
    };
    let scope = Scope { schema, inputs: &inputs, config };
    // Sort keys have no names that anything refers to.
    let names = (!matches!(node, LogicalPlan::Sort(_))).then(|| NamePreserver::new(&node));
    node.map_expressions(|expr| rewrite_named(expr, &scope, names.as_ref()))?.map_data(LogicalPlan::recompute_schema)
}

/// Rewrite an expression under the name that it has.
fn rewrite_named(expr: Expr, scope: &Scope, names: Option<&NamePreserver>) -> Result<Transformed<Expr>> {
    let is_grouping = matches!(&expr, Expr::AggregateFunction(call) if call.func.name() == "grouping");
    if is_grouping || matches!(expr, Expr::GroupingSet(_)) {
        // The names are those of the expressions in it, and `grouping` finds its key among them by expression and name.
        return expr.map_children(|e| rewrite_named(e, scope, names));
    }
    let name = names.map(|n| n.save(&expr));
    let rewritten = expr.transform_up(|e| rewrite(e, scope))?;
    Ok(match name {
        Some(name) => rewritten.update_data(|e| name.restore(e)),
        None => rewritten,
    })
}

/// Rewrite one expression, whose operands are rewritten already.
fn rewrite(expr: Expr, scope: &Scope) -> Result<Transformed<Expr>> {
    match &expr {
        Expr::BinaryExpr(_) | Expr::Between(_) | Expr::InList(_) | Expr::Case(_) => {
            date_functions::check_arithmetic(&expr, scope)?;
            gregorian_only::check_comparison(&expr, scope)?;
            float_literals::rewrite(expr, scope)?
                .transform_data(|e| date_literals::rewrite(e, scope))?
                .transform_data(|e| row_literals::rewrite(e, scope))
        }
        Expr::ScalarFunction(call) => match replacement(call, scope)? {
            Some(replacement) => Ok(Transformed::yes(replacement)),
            None => checked(expr, scope),
        },
        Expr::WindowFunction(call) => {
            date_functions::check_window(call, scope)?;
            checked(expr, scope)
        }
        Expr::AggregateFunction(_) | Expr::Cast(_) | Expr::TryCast(_) => checked(expr, scope),
        _ => Ok(Transformed::no(expr)),
    }
}

/// What stands for a call of a function.
fn replacement(call: &ScalarFunction, scope: &Scope) -> Result<Option<Expr>> {
    match call.name() {
        nearest::NAME => nearest::replace(call, scope).map(Some),
        nearest_point::NAME => nearest_point::replace(call, scope).map(Some),
        "array_has" => date_literals::rewrite_any(call, scope),
        _ => date_functions::replace(call, scope),
    }
}

fn checked(expr: Expr, scope: &Scope) -> Result<Transformed<Expr>> {
    gregorian_only::check(&expr, scope)?;
    Ok(Transformed::no(expr))
}
