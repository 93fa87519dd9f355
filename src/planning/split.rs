//! Conditions that are unions of boxes: `(time = a AND lat = b) OR …`, `(time, lat) IN ((a, b), …)`, `time > a OR lat > b`.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, make_comparator};
use arrow::compute::{SortOptions, sort_to_indices};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, InListExpr, Literal, NotExpr};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::IndexSet;
use super::boxes::{Product, cells, intersect};
use super::condition::Condition;
use super::coordinates::{About, Coordinates};

/// Boxes of one condition.
const MAX_BOXES: usize = 100_000;

/// Comparisons of one expression with literals from which on its values are sorted first.
const SORT_FROM: usize = 8;

/// The boxes whose union is the cells of which a condition is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Boxes {
    /// The dimensions that the boxes are about, ascending.
    pub(crate) axes: Vec<usize>,
    /// One index set for each of them.
    pub(crate) products: Vec<Product>,
}

/// Split `condition`, whose columns are all in memory, inside `bounds` (one set a dimension); `None` where it is no union of boxes or one of
/// too many.
///
/// # Errors
/// Failures of evaluation.
pub(crate) fn split(coordinates: &Coordinates, condition: &Condition, bounds: &[IndexSet]) -> Result<Option<Boxes>> {
    let About::Axes(axes) = coordinates.about(condition) else { return Ok(None) };
    let whole: Product = axes.iter().filter_map(|a| bounds.get(*a)).cloned().collect();
    let mut splitter = Splitter { coordinates, condition, axes: &axes, whole, bounds, compared: HashMap::new() };
    let products = splitter.split(condition.expr(), false)?;
    Ok(products.map(|products| Boxes { axes, products }))
}

struct Splitter<'a> {
    coordinates: &'a Coordinates,
    condition: &'a Condition,
    axes: &'a [usize],
    /// All cells.
    whole: Product,
    bounds: &'a [IndexSet],
    /// Expressions compared with literals, by their text.
    compared: HashMap<String, Compared>,
}

/// An expression that is compared with literals again and again.
enum Compared {
    Times(usize),
    Sorted(Arc<Sorted>),
}

/// The values of an expression along one axis, ascending.
struct Sorted {
    values: ArrayRef,
    order: UInt32Array,
    /// The indices that the values belong to.
    set: IndexSet,
    /// Which of the condition's axes it is.
    axis: usize,
}

impl Sorted {
    /// The indices of the values equal to number `i` of `literals`, compared by `compare`.
    fn equal_to(&self, i: usize, compare: &impl Fn(usize, usize) -> Ordering) -> IndexSet {
        let order = self.order.values();
        let first = order.partition_point(|p| compare(i, *p as usize) == Ordering::Greater);
        let equal = order.get(first..).unwrap_or_default();
        let equal = equal.iter().take_while(|p| compare(i, **p as usize) == Ordering::Equal);
        let mut indices: Vec<u64> = equal.filter_map(|p| self.set.nth(u64::from(*p))).collect();
        indices.sort_unstable();
        IndexSet::from_runs(indices.into_iter().map(|i| i..i + 1))
    }
}

impl Splitter<'_> {
    /// The boxes of `expr`, or of `NOT expr`.
    fn split(&mut self, expr: &Arc<dyn PhysicalExpr>, negated: bool) -> Result<Option<Vec<Product>>> {
        if let Some(not) = expr.downcast_ref::<NotExpr>() {
            return self.split(not.arg(), !negated);
        }
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            match (binary.op(), negated) {
                (Operator::Or, false) | (Operator::And, true) => {
                    return self.any(operands(expr, *binary.op()), negated);
                }
                (Operator::And, false) | (Operator::Or, true) => {
                    return self.all(operands(expr, *binary.op()), negated);
                }
                (Operator::Eq, false) => {
                    if let Some(boxes) = self.equality(binary)? {
                        return Ok(Some(boxes));
                    }
                }
                _ => {}
            }
        }
        if let Some(list) = expr.downcast_ref::<InListExpr>()
            && list.negated() == negated
            && let Some(boxes) = self.tuples(list.expr(), list.list())?
        {
            return Ok(Some(boxes));
        }
        self.leaf(expr, negated)
    }

    fn any(&mut self, operands: Vec<&Arc<dyn PhysicalExpr>>, negated: bool) -> Result<Option<Vec<Product>>> {
        let mut out = Vec::new();
        for operand in operands {
            let Some(boxes) = self.split(operand, negated)? else { return Ok(None) };
            out.extend(boxes);
            if out.len() > MAX_BOXES {
                return Ok(None);
            }
        }
        Ok(Some(out))
    }

    fn all(&mut self, operands: Vec<&Arc<dyn PhysicalExpr>>, negated: bool) -> Result<Option<Vec<Product>>> {
        let mut out = vec![self.whole.clone()];
        for operand in operands {
            let Some(boxes) = self.split(operand, negated)? else { return Ok(None) };
            if out.len().saturating_mul(boxes.len()) > MAX_BOXES {
                return Ok(None);
            }
            out = out.iter().flat_map(|a| boxes.iter().map(|b| intersect(a, b))).filter(|p| cells(p) > 0).collect();
        }
        Ok(Some(out))
    }

    /// One box, where `expr` is about one dimension.
    fn leaf(&self, expr: &Arc<dyn PhysicalExpr>, negated: bool) -> Result<Option<Vec<Product>>> {
        let expr = if negated { &(Arc::new(NotExpr::new(Arc::clone(expr))) as Arc<dyn PhysicalExpr>) } else { expr };
        let condition = self.condition.part(expr)?;
        let About::Axes(axes) = self.coordinates.about(&condition) else { return Ok(None) };
        let [one] = axes.as_slice() else {
            if !axes.is_empty() {
                return Ok(None);
            }
            let holds = self.coordinates.evaluate(&condition, &self.coordinates.spread(&[], self.bounds))?;
            return Ok(Some(if holds.value(0) { vec![self.whole.clone()] } else { Vec::new() }));
        };
        let set = super::plan::along(self.coordinates, &condition, *one, self.bounds)?;
        let Some(set) = set else { return Ok(None) };
        let at = self.axes.iter().position(|a| a == one);
        Ok(Some(vec![at.map_or_else(|| self.whole.clone(), |at| self.narrowed(at, &set))]))
    }

    /// The whole with `set` along the condition's axis `at`.
    fn narrowed(&self, at: usize, set: &IndexSet) -> Product {
        let mut product = self.whole.clone();
        if let Some(slot) = product.get_mut(at) {
            *slot = slot.intersect(set);
        }
        product
    }

    /// `expr = literal`, of which a query may have thousands.
    fn equality(&mut self, binary: &BinaryExpr) -> Result<Option<Vec<Product>>> {
        let (expr, literal) = match (binary.left().downcast_ref::<Literal>(), binary.right().downcast_ref::<Literal>())
        {
            (None, Some(literal)) => (binary.left(), literal),
            (Some(literal), None) => (binary.right(), literal),
            _ => return Ok(None),
        };
        if matches!(literal.value(), ScalarValue::Struct(_)) {
            return self.tuples(expr, &[Arc::new(literal.clone())]);
        }
        // The order of sorting tells the two zeros apart, and SQL does not.
        let is_zero = match literal.value() {
            ScalarValue::Float32(Some(v)) => *v == 0.0,
            ScalarValue::Float64(Some(v)) => *v == 0.0,
            _ => false,
        };
        if is_zero {
            return Ok(None);
        }
        let Some(sorted) = self.sorted(expr)? else { return Ok(None) };
        let value = literal.value().to_array()?;
        if value.data_type() != sorted.values.data_type() || value.is_null(0) {
            return Ok(None);
        }
        let compare = make_comparator(value.as_ref(), sorted.values.as_ref(), SortOptions::default())?;
        Ok(Some(vec![self.narrowed(sorted.axis, &sorted.equal_to(0, &compare))]))
    }

    /// The sorted values of `expr`, once it has been asked for often enough.
    fn sorted(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Result<Option<Arc<Sorted>>> {
        let name = expr.to_string();
        let times = match self.compared.get_mut(&name) {
            Some(Compared::Sorted(sorted)) => return Ok(Some(Arc::clone(sorted))),
            Some(Compared::Times(times)) => {
                *times += 1;
                *times
            }
            None => {
                self.compared.insert(name.clone(), Compared::Times(1));
                1
            }
        };
        if times < SORT_FROM {
            return Ok(None);
        }
        let Some(sorted) = self.sort(expr)? else { return Ok(None) };
        let sorted = Arc::new(sorted);
        self.compared.insert(name, Compared::Sorted(Arc::clone(&sorted)));
        Ok(Some(sorted))
    }

    /// The values of `expr` along the one axis that it is about; `None` where it is about several, or some are NULL.
    fn sort(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Option<Sorted>> {
        let part = self.condition.part(expr)?;
        let About::Axes(axes) = self.coordinates.about(&part) else { return Ok(None) };
        let [one] = axes.as_slice() else { return Ok(None) };
        let (Some(at), Some(set)) = (self.axes.iter().position(|a| a == one), self.bounds.get(*one)) else {
            return Ok(None);
        };
        if set.len() > super::plan::MAX_FACTOR {
            return Ok(None);
        }
        let values = self.coordinates.value_of(&part, &self.coordinates.spread(&axes, self.bounds))?;
        if values.null_count() > 0 {
            return Ok(None);
        }
        let order = sort_to_indices(values.as_ref(), None, None)?;
        Ok(Some(Sorted { values, order, set: set.clone(), axis: at }))
    }

    /// `(a, b, …) IN (literals)`: a box for each literal.
    fn tuples(
        &mut self,
        expr: &Arc<dyn PhysicalExpr>,
        literals: &[Arc<dyn PhysicalExpr>],
    ) -> Result<Option<Vec<Product>>> {
        let Some(parts) = struct_fields(expr) else { return Ok(None) };
        let values: Option<Vec<ScalarValue>> =
            literals.iter().map(|l| l.downcast_ref::<Literal>().map(|l| l.value().clone())).collect();
        let Some(values) = values.filter(|v| !v.is_empty() && v.len() <= MAX_BOXES) else { return Ok(None) };
        let array = ScalarValue::iter_to_array(values)?;
        let Some(tuples) = array.as_struct_opt().filter(|t| t.num_columns() == parts.len() && t.null_count() == 0)
        else {
            return Ok(None);
        };
        let mut out = vec![self.whole.clone(); tuples.len()];
        for (part, literals) in parts.iter().zip(tuples.columns()) {
            let Some(sorted) = self.sort(part)? else { return Ok(None) };
            if sorted.values.data_type() != literals.data_type() {
                return Ok(None);
            }
            let compare = make_comparator(literals.as_ref(), sorted.values.as_ref(), SortOptions::default())?;
            for (i, product) in out.iter_mut().enumerate() {
                let equal = if literals.is_null(i) { IndexSet::range(0..0) } else { sorted.equal_to(i, &compare) };
                if let Some(set) = product.get_mut(sorted.axis) {
                    *set = set.intersect(&equal);
                }
            }
        }
        out.retain(|p| cells(p) > 0);
        Ok(Some(out))
    }
}

/// All that `op` connects, however deep it is nested.
fn operands(expr: &Arc<dyn PhysicalExpr>, op: Operator) -> Vec<&Arc<dyn PhysicalExpr>> {
    let (mut todo, mut out) = (vec![expr], Vec::new());
    while let Some(expr) = todo.pop() {
        match expr.downcast_ref::<BinaryExpr>().filter(|b| *b.op() == op) {
            Some(binary) => todo.extend([binary.right(), binary.left()]),
            None => out.push(expr),
        }
    }
    out
}

/// The fields of a row value, `struct(a, b, …)`, or of one whose fields are cast.
fn struct_fields(expr: &Arc<dyn PhysicalExpr>) -> Option<Vec<Arc<dyn PhysicalExpr>>> {
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let is_struct = cast.expr().downcast_ref::<ScalarFunctionExpr>().is_some_and(|c| c.fun().name() == "struct");
        let (DataType::Struct(targets), fields, true) = (cast.cast_type(), struct_fields(cast.expr())?, is_struct)
        else {
            return None;
        };
        let is_plain =
            targets.len() == fields.len() && targets.iter().enumerate().all(|(i, f)| *f.name() == format!("c{i}"));
        let field = |(field, target): (Arc<dyn PhysicalExpr>, &FieldRef)| {
            Arc::new(CastExpr::new(field, target.data_type().clone(), None)) as Arc<dyn PhysicalExpr>
        };
        return is_plain.then(|| fields.into_iter().zip(targets).map(field).collect());
    }
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    match call.fun().name() {
        "struct" => Some(call.args().to_vec()),
        "named_struct" => Some(call.args().iter().skip(1).step_by(2).cloned().collect()),
        _ => None,
    }
}
