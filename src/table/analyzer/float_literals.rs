//! Comparisons of Float32 columns with literals are made in Float32, as numpy, xarray and `DuckDB` make them.
//!
//! 40.1 as a double is no Float32, so that `lat = 40.1` in doubles finds nothing on a Float32 axis that prints 40.1.
//! `SET zarr.float32_literals = false` restores `DataFusion`'s rule.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Expr;

use super::comparison::map_operands;
use super::scope::Scope;

/// The comparison with its literals in Float32, where it is one with a Float32 column.
///
/// # Errors
/// None: what has no Float32 stays as it is.
pub(super) fn rewrite(expr: Expr, scope: &Scope) -> Result<Transformed<Expr>> {
    if !scope.config.float32_literals {
        return Ok(Transformed::no(expr));
    }
    map_operands(expr, |e| scope.is_float32(e).then_some(()), |(), _, operand| Ok(narrow(operand)))
}

/// A numeric literal as Float32; `None` where it is none, is one already, or is beyond the range of Float32.
fn narrow(expr: &Expr) -> Option<Expr> {
    let (literal, metadata, negative) = match expr {
        Expr::Literal(literal, metadata) => (literal, metadata, false),
        Expr::Negative(inner) => match inner.as_ref() {
            Expr::Literal(literal, metadata) => (literal, metadata, true),
            _ => return None,
        },
        _ => return None,
    };
    if !literal.data_type().is_numeric() || literal.data_type() == DataType::Float32 {
        return None;
    }
    match literal.cast_to(&DataType::Float32).ok()? {
        ScalarValue::Float32(Some(value)) if value.is_finite() => {
            let value = if negative { -value } else { value };
            Some(Expr::Literal(ScalarValue::Float32(Some(value)), metadata.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn numbers_become_float32() {
        for (expr, value) in [
            (lit(40.1), Some(40.1_f32)),
            (lit(40), Some(40.0)),
            (Expr::Negative(Box::new(lit(103.9))), Some(-103.9)),
            (lit(16_777_217_i64), Some(16_777_216.0)),
            (lit(ScalarValue::Decimal128(Some(401), 3, 1)), Some(40.1)),
            (lit(1e300), None),
            (lit(f64::NAN), None),
            (lit(40.1_f32), None),
            (lit("40.1"), None),
            (lit(ScalarValue::Float64(None)), None),
            (col("x"), None),
            (lit(1) + lit(2), None),
        ] {
            assert_eq!(narrow(&expr), value.map(lit), "{expr}");
        }
    }
}
