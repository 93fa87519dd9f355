//! What a column is compared with: operands of comparisons, bounds of BETWEEN, members of IN lists, and values of CASE.

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
    let mut operands = Operands { replace, changed: false };
    let expr = match expr {
        Expr::BinaryExpr(BinaryExpr { mut left, op, mut right }) if is_comparison(op) => {
            if let Some(k) = kind(&left) {
                operands.set(&k, &left, &mut right)?;
            } else if let Some(k) = kind(&right) {
                operands.set(&k, &right, &mut left)?;
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right })
        }
        Expr::Between(Between { mut expr, negated, mut low, mut high }) => {
            if let Some(k) = kind(&expr) {
                operands.set(&k, &expr, &mut low)?;
                operands.set(&k, &expr, &mut high)?;
            } else if let Some(k) = kind(&low) {
                operands.set(&k, &low, &mut expr)?;
            } else if let Some(k) = kind(&high) {
                operands.set(&k, &high, &mut expr)?;
            }
            Expr::Between(Between { expr, negated, low, high })
        }
        Expr::InList(InList { expr, mut list, negated }) => {
            if let Some(k) = kind(&expr) {
                list.iter_mut().try_for_each(|member| operands.set(&k, &expr, member))?;
            }
            Expr::InList(InList { expr, list, negated })
        }
        Expr::Case(Case { expr: Some(expr), mut when_then_expr, else_expr }) => {
            if let Some(k) = kind(&expr) {
                when_then_expr.iter_mut().try_for_each(|(when, _)| operands.set(&k, &expr, when))?;
            }
            Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr })
        }
        other => other,
    };
    Ok(if operands.changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

struct Operands<R> {
    replace: R,
    changed: bool,
}

impl<R> Operands<R> {
    fn set<K>(&mut self, kind: &K, column: &Expr, operand: &mut Expr) -> Result<()>
    where
        R: Fn(&K, &Expr, &Expr) -> Result<Option<Expr>>,
    {
        if let Some(new) = (self.replace)(kind, column, operand)? {
            *operand = new;
            self.changed = true;
        }
        Ok(())
    }
}

fn is_comparison(op: Operator) -> bool {
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
