//! What a condition on data says about coordinates alone: `(lat > 50 AND t2m > 300) OR lat < -50` is true only where `lat > 50 OR lat < -50`.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;

use super::condition::Condition;
use super::coordinates::{About, Coordinates};

/// Conditions on coordinates in memory that are true wherever `condition` is.
///
/// # Errors
/// Expressions that cannot be read.
pub(crate) fn coordinate_parts(coordinates: &Coordinates, condition: &Condition) -> Result<Vec<Condition>> {
    match implied(coordinates, condition, condition.expr())? {
        Some(expr) => Ok(vec![condition.part(&expr)?]),
        None => Ok(Vec::new()),
    }
}

fn implied(
    coordinates: &Coordinates,
    condition: &Condition,
    expr: &Arc<dyn PhysicalExpr>,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    if let About::Axes(axes) = coordinates.about(&condition.part(expr)?) {
        return Ok((!axes.is_empty()).then(|| Arc::clone(expr)));
    }
    let Some(binary) = expr.downcast_ref::<BinaryExpr>() else { return Ok(None) };
    let (and, or) = (*binary.op() == Operator::And, *binary.op() == Operator::Or);
    if !and && !or {
        return Ok(None);
    }
    let sides = (implied(coordinates, condition, binary.left())?, implied(coordinates, condition, binary.right())?);
    Ok(match sides {
        (Some(a), Some(b)) => Some(Arc::new(BinaryExpr::new(a, *binary.op(), b))),
        (Some(one), None) | (None, Some(one)) if and => Some(one),
        _ => None,
    })
}
