//! Conditions of a query: conjuncts of its filters, and how they are evaluated on columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, Column, DynamicFilterPhysicalExpr, UnKnownColumn};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_expr::utils::reassign_expr_columns;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;

/// When a condition has its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Now.
    Planned,
    /// When the plan runs: it waits for the result of a subquery.
    Running,
    /// It changes while the plan runs.
    Dynamic,
}

/// A condition on the rows of a table.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    /// The condition; its columns are `schema`'s.
    expr: Arc<dyn PhysicalExpr>,
    /// The columns that it names, ascending, by their number in the table.
    columns: Vec<usize>,
    /// Those columns.
    schema: SchemaRef,
    when: When,
}

impl Condition {
    /// `expr`, which names columns of `table` as they are called there.
    ///
    /// # Errors
    /// Columns that the table does not have.
    pub(crate) fn try_new(expr: &Arc<dyn PhysicalExpr>, table: &Schema) -> Result<Self> {
        let mut names: Vec<usize> = Vec::new();
        let mut when = When::Planned;
        expr.apply(|node| {
            if let Some(column) = node.downcast_ref::<Column>() {
                names.push(table.index_of(column.name())?);
            } else if node.is::<DynamicFilterPhysicalExpr>() {
                when = When::Dynamic;
            } else if node.is::<ScalarSubqueryExpr>() && when == When::Planned {
                when = When::Running;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        names.sort_unstable();
        names.dedup();
        let schema = Arc::new(table.project(&names)?);
        let expr = reassign_expr_columns(Arc::clone(expr), &schema)?;
        Ok(Self { expr, columns: names, schema, when })
    }

    /// The conditions that all have to hold where `expr` has to.
    ///
    /// # Errors
    /// As [`Self::try_new`].
    pub(crate) fn all_of(expr: &Arc<dyn PhysicalExpr>, table: &Schema) -> Result<Vec<Self>> {
        split_conjunction(expr).into_iter().map(|e| Self::try_new(e, table)).collect()
    }

    /// The same about another expression, which names no other columns.
    pub(crate) fn part(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Self> {
        let part = Self::try_new(expr, &self.schema)?;
        let columns = part.columns.iter().filter_map(|c| self.columns.get(*c)).copied().collect();
        Ok(Self { columns, ..part })
    }

    /// The expression.
    pub(crate) fn expr(&self) -> &Arc<dyn PhysicalExpr> {
        &self.expr
    }

    /// The columns that it names, ascending, by their number in the table.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// When it has its value.
    pub(crate) fn when(&self) -> When {
        self.when
    }

    /// What a dynamic condition is now; none where it cannot be trusted.
    ///
    /// DataFusion 55.2 narrows a scan below `min` and `max` to `a < bound OR b > bound`, and leaves out arguments that are no columns and those whose
    /// bound is still NULL, so that rows which these need are lost. Without `trusts_bounds`, conditions of that form are not used.
    ///
    /// # Errors
    /// Expressions that cannot be read.
    pub(crate) fn now(&self, trusts_bounds: bool) -> Result<Vec<Self>> {
        let current = snapshot_physical_expr(Arc::clone(&self.expr))?;
        if !trusts_bounds && is_bounds(&current) {
            return Ok(Vec::new());
        }
        split_conjunction(&current).into_iter().map(|e| self.part(e)).collect()
    }

    /// The rows of which it is true, given a value of each of [`Self::columns`] for each row.
    ///
    /// # Errors
    /// Failures of evaluation, such as a cast of a value that has no equal.
    pub(crate) fn evaluate(&self, values: Vec<ArrayRef>, rows: usize) -> Result<BooleanBuffer> {
        match self.expr.evaluate(&self.batch(values, rows)?)? {
            ColumnarValue::Scalar(value) => {
                let holds = matches!(value, datafusion::common::ScalarValue::Boolean(Some(true)));
                Ok(if holds { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) })
            }
            ColumnarValue::Array(array) => {
                let Some(truth) = array.as_boolean_opt() else {
                    return datafusion::common::exec_err!("`{}` is {} and no condition", self.expr, array.data_type());
                };
                Ok(match truth.nulls() {
                    Some(nulls) => truth.values() & nulls.inner(),
                    None => truth.values().clone(),
                })
            }
        }
    }

    /// The values of the expression, which need not be a condition.
    ///
    /// # Errors
    /// Failures of evaluation.
    pub(crate) fn value(&self, values: Vec<ArrayRef>, rows: usize) -> Result<ArrayRef> {
        self.expr.evaluate(&self.batch(values, rows)?)?.into_array(rows)
    }

    fn batch(&self, values: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), values, &options)?)
    }
}

/// Whether `expr` is `a < 1 OR b > 2 OR …`.
fn is_bounds(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.downcast_ref::<BinaryExpr>().is_some_and(|binary| match binary.op() {
        Operator::Or => is_bounds(binary.left()) && is_bounds(binary.right()),
        Operator::Lt | Operator::Gt => binary.left().is::<Column>(),
        _ => false,
    })
}

impl std::fmt::Display for Condition {
    /// The expression, whose columns are names alone: their numbers are those of a schema that nobody else sees.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = Arc::clone(&self.expr).transform_down(|node| {
            Ok(match node.downcast_ref::<Column>() {
                Some(column) => Transformed::yes(Arc::new(UnKnownColumn::new(column.name())) as Arc<dyn PhysicalExpr>),
                None => Transformed::no(node),
            })
        });
        match named.data() {
            Ok(named) => write!(f, "{named}"),
            Err(_) => write!(f, "{}", self.expr),
        }
    }
}
