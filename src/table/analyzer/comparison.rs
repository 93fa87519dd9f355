//! What a column is compared with: operands of comparisons, bounds of BETWEEN, members of IN lists, and values of CASE; in rows, field by field.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::{Case, InList};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};

/// Replace what columns of some kind are compared with.
///
/// `kind` says whether an expression is such a column, and `replace` makes the new operand from kind, column and operand, where there is one.
///
/// # Errors
/// Those of `replace`.
pub(super) fn map_operands<K>(
    expr: Expr,
    kind: impl Fn(&Expr) -> Option<K>,
    replace: impl Fn(&K, &Expr, &Expr) -> Result<Option<Expr>>,
) -> Result<Transformed<Expr>> {
    let mut operands = Operands { kind, replace, changed: false };
    let expr = match expr {
        Expr::BinaryExpr(BinaryExpr { mut left, op, mut right }) if is_comparison(op) => {
            operands.set(&left, &mut right)?;
            operands.set(&right, &mut left)?;
            Expr::BinaryExpr(BinaryExpr { left, op, right })
        }
        Expr::Between(Between { mut expr, negated, mut low, mut high }) => {
            operands.set(&expr, &mut low)?;
            operands.set(&expr, &mut high)?;
            operands.set(&low, &mut expr)?;
            operands.set(&high, &mut expr)?;
            Expr::Between(Between { expr, negated, low, high })
        }
        Expr::InList(InList { expr, mut list, negated }) => {
            list.iter_mut().try_for_each(|member| operands.set(&expr, member))?;
            Expr::InList(InList { expr, list, negated })
        }
        Expr::Case(Case { expr: Some(expr), mut when_then_expr, else_expr }) => {
            when_then_expr.iter_mut().try_for_each(|(when, _)| operands.set(&expr, when))?;
            Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr })
        }
        other => other,
    };
    Ok(if operands.changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

struct Operands<F, R> {
    kind: F,
    replace: R,
    changed: bool,
}

impl<F, R> Operands<F, R> {
    /// Replace `operand` where `column` is one; of two rows, field by field.
    fn set<K>(&mut self, column: &Expr, operand: &mut Expr) -> Result<()>
    where
        F: Fn(&Expr) -> Option<K>,
        R: Fn(&K, &Expr, &Expr) -> Result<Option<Expr>>,
    {
        if let (Some(columns), Some(operands)) = (row(column), row_mut(operand)) {
            return columns.iter().zip(operands).try_for_each(|(column, operand)| self.set(column, operand));
        }
        let Some(kind) = (self.kind)(column) else { return Ok(()) };
        if let Some(new) = (self.replace)(&kind, column, operand)? {
            *operand = new;
            self.changed = true;
        }
        Ok(())
    }
}

/// The fields of a row, as in `(lat, lon) = (40, 250)`.
pub(super) fn row(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::ScalarFunction(call) if call.name() == "struct" => Some(&call.args),
        _ => None,
    }
}

fn row_mut(expr: &mut Expr) -> Option<&mut [Expr]> {
    match expr {
        Expr::ScalarFunction(call) if call.name() == "struct" => Some(&mut call.args),
        _ => None,
    }
}

/// Whether `op` compares.
pub(super) fn is_comparison(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}
