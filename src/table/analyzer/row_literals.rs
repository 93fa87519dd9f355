//! Literals in rows that are compared with rows of columns have the types of the columns: `(id, lat) IN ((10, 40), (20, 41))`.
//!
//! `DataFusion` brings two rows to one type by a cast of both, and a cast of columns hides them from the scan. So a literal that has the same value
//! in the type of the column gets that type.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{ExprSchema, Result};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr};

use super::comparison::{map_operands, row};
use super::scope::{Scope, is_zarr};

/// The comparison of rows with literals of the types of their columns, where it is one.
///
/// # Errors
/// None: what has no such value stays as it is.
pub(super) fn rewrite(expr: Expr, scope: &Scope) -> Result<Transformed<Expr>> {
    let compares_rows = match &expr {
        Expr::BinaryExpr(BinaryExpr { left: first, .. })
        | Expr::Between(Between { expr: first, .. })
        | Expr::InList(InList { expr: first, .. }) => row(first).is_some(),
        _ => false,
    };
    if !compares_rows {
        return Ok(Transformed::no(expr));
    }
    map_operands(expr, |e| type_of_column(e, scope), |data_type, _, operand| Ok(with_type(operand, data_type)))
}

fn type_of_column(expr: &Expr, scope: &Scope) -> Option<DataType> {
    let field = scope.schema.field_from_column(expr.try_as_col()?).ok()?;
    is_zarr(field).then(|| field.data_type().clone())
}

/// The literal in a type that holds the same value; `None` where it is none, or needs no change.
fn with_type(expr: &Expr, data_type: &DataType) -> Option<Expr> {
    let Expr::Literal(literal, metadata) = expr else { return None };
    let own = literal.data_type();
    let alike = (own.is_numeric() && data_type.is_numeric()) || (own.is_string() && data_type.is_string());
    if own == *data_type || !(alike || literal.is_null()) {
        return None;
    }
    let value = literal.cast_to(data_type).ok()?;
    let same = literal.is_null() || (!value.is_null() && value.cast_to(&own).ok()? == *literal);
    same.then(|| Expr::Literal(value, metadata.clone()))
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::lit;

    use super::*;

    #[test]
    fn only_the_same_value() {
        for (literal, data_type, value) in [
            (lit(10_i64), DataType::Int16, Some(lit(10_i16))),
            (lit(100_000_i64), DataType::Int16, None),
            (lit(40_i64), DataType::Float64, Some(lit(40.0))),
            (lit(40.1), DataType::Float32, None),
            (lit(40.5), DataType::Int64, None),
            (lit("a"), DataType::Utf8View, Some(lit(ScalarValue::Utf8View(Some("a".into()))))),
            (lit("10"), DataType::Int64, None),
            (lit(ScalarValue::Null), DataType::Int64, Some(lit(ScalarValue::Int64(None)))),
        ] {
            assert_eq!(with_type(&literal, &data_type), value, "{literal} {data_type}");
        }
    }
}
