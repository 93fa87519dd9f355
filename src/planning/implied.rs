//! What a condition on data says about coordinates alone: `(lat > 50 AND t2m > 300) OR lat < -50` is true only where `lat > 50 OR lat < -50`.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;

use super::condition::Condition;
use super::coordinates::{About, Coordinates};

/// A condition on coordinates in memory that is true wherever `condition` is, if there is one.
///
/// # Errors
/// Expressions that cannot be read.
pub(crate) fn coordinate_part(coordinates: &Coordinates, condition: &Condition) -> Result<Option<Condition>> {
    implied(coordinates, condition, condition.expr())?.map(|expr| condition.part(&expr)).transpose()
}

fn implied(
    coordinates: &Coordinates,
    condition: &Condition,
    expr: &Arc<dyn PhysicalExpr>,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>().filter(|b| matches!(b.op(), Operator::And | Operator::Or)) {
        let side = |side| implied(coordinates, condition, side);
        return Ok(match (side(binary.left())?, side(binary.right())?) {
            (Some(a), Some(b)) => Some(Arc::new(BinaryExpr::new(a, *binary.op(), b))),
            (Some(one), None) | (None, Some(one)) if *binary.op() == Operator::And => Some(one),
            _ => None,
        });
    }
    Ok(match coordinates.about(&condition.part(expr)?) {
        About::Axes(axes) if !axes.is_empty() => Some(Arc::clone(expr)),
        _ => None,
    })
}
