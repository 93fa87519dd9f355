//! Names that need double quotes and have none: `2m_temperature` is the number 2 under another name, `count('u')` counts a text.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::scope::is_zarr;

/// Refuse the expressions of `node` that are a name without its quotes.
///
/// # Errors
/// Such an expression; the message shows the name in quotes.
pub(super) fn check(node: &LogicalPlan) -> Result<()> {
    if let LogicalPlan::Projection(projection) = node {
        for expr in &projection.expr {
            check_number(expr, &projection.input)?;
        }
    }
    if let LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) = node {
        node.apply_expressions(|expr| expr.apply(|e| check_argument(e, node)))?;
    }
    Ok(())
}

/// A number whose alias completes the name of a column.
fn check_number(expr: &Expr, input: &LogicalPlan) -> Result<()> {
    let Expr::Alias(alias) = expr else { return Ok(()) };
    let Expr::Literal(number, _) = alias.expr.as_ref() else { return Ok(()) };
    if !number.data_type().is_numeric() {
        return Ok(());
    }
    let Some(column) = column(input, &format!("{number}{}", alias.name))? else { return Ok(()) };
    Err(DataFusionError::Plan(format!(
        "without quotes this is the number {number} with the name `{}`; write \"{column}\" for the column",
        alias.name
    )))
}

/// A text that is the name of a column, as the first argument of an aggregate.
fn check_argument(expr: &Expr, node: &LogicalPlan) -> Result<TreeNodeRecursion> {
    let args = match expr {
        Expr::AggregateFunction(call) => &call.params.args,
        Expr::WindowFunction(call) if matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_)) => {
            &call.params.args
        }
        _ => return Ok(TreeNodeRecursion::Continue),
    };
    let Some(Expr::Literal(ScalarValue::Utf8(Some(text)), _)) = args.first() else {
        return Ok(TreeNodeRecursion::Continue);
    };
    match column(node, text)? {
        Some(column) => Err(DataFusionError::Plan(format!(
            "'{text}' in single quotes is a text and the same in every row; write \"{column}\" for the column"
        ))),
        None => Ok(TreeNodeRecursion::Continue),
    }
}

/// The column of a Zarr table under `plan` that is called `name`, in any letter case.
fn column(plan: &LogicalPlan, name: &str) -> Result<Option<String>> {
    let mut found = None;
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let schema = scan.source.schema();
            let same = schema.fields().iter().find(|f| is_zarr(f) && f.name().eq_ignore_ascii_case(name));
            found = same.map(|f| f.name().clone());
        }
        Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
