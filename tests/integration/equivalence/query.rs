//! Random queries, as SQL and as what they mean.

use std::cmp::Ordering;
use std::collections::HashMap;

use arrow::datatypes::{DataType, TimeUnit};
use fastrand::Rng;

use super::element::chance;
use super::reference::Table;
use crate::cell::{Cell, Row};

/// A condition on a row, with SQL's three values.
pub(crate) enum Condition {
    /// A column against a literal, which is never NULL.
    Compare(usize, Operator, Cell),
    /// Two columns of one type.
    Columns(usize, Operator, usize),
    /// `IN` a list. NULL is in none: the simplifier of DataFusion 55.2 loses it where two lists meet.
    In(usize, Vec<Cell>, bool),
    Between(usize, Cell, Cell, bool),
    IsNull(usize, bool),
    /// A Boolean column.
    Truth(usize),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

#[derive(Clone, Copy)]
pub(crate) struct Operator(&'static str);

impl Operator {
    fn holds(self, order: Ordering) -> bool {
        match self.0 {
            "=" => order.is_eq(),
            "<>" => order.is_ne(),
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            _ => order.is_ge(),
        }
    }
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

impl Condition {
    /// The columns that are compared with lists of values.
    fn list_columns(&self) -> Vec<usize> {
        match self {
            Self::In(column, ..) => vec![*column],
            Self::Not(inner) => inner.list_columns(),
            Self::And(a, b) | Self::Or(a, b) => [a.list_columns(), b.list_columns()].concat(),
            _ => Vec::new(),
        }
    }

    /// Whether DataFusion 55 takes it for what it is: it makes `x NOT IN (1) OR x NOT IN (2)` true where x is NULL.
    pub(crate) fn is_understood(&self) -> bool {
        let mut columns = self.list_columns();
        let lists = columns.len();
        columns.sort_unstable();
        columns.dedup();
        columns.len() == lists
    }

    pub(crate) fn draw(rng: &mut Rng, table: &Table, depth: u8) -> Self {
        if depth > 0 && chance(rng, 45) {
            let a = Box::new(Self::draw(rng, table, depth - 1));
            return match rng.u8(0..5) {
                0 => Self::Not(a),
                1 | 2 => Self::Or(a, Box::new(Self::draw(rng, table, depth - 1))),
                _ => Self::And(a, Box::new(Self::draw(rng, table, depth - 1))),
            };
        }
        // Half of the conditions are on coordinates.
        let column = if rng.bool() { rng.usize(..table.dims) } else { rng.usize(..table.columns.len()) };
        let values: Vec<&Cell> = table.rows.iter().filter_map(|r| r[column].as_ref()).collect();
        let any = |rng: &mut Rng| values[rng.usize(..values.len())].clone();
        if values.is_empty() || chance(rng, 8) {
            return Self::IsNull(column, rng.bool());
        }
        if table.columns[column].1 == DataType::Boolean && rng.bool() {
            return Self::Truth(column);
        }
        let operator = Operator(["=", "<>", "<", "<=", ">", ">="][rng.usize(..6)]);
        match rng.u8(0..10) {
            0 | 1 => {
                let list = (0..rng.usize(1..5)).map(|_| any(rng)).collect();
                Self::In(column, list, chance(rng, 30))
            }
            2 | 3 => Self::Between(column, any(rng), any(rng), chance(rng, 20)),
            4 => {
                let alike: Vec<usize> =
                    (0..table.columns.len()).filter(|c| table.columns[*c].1 == table.columns[column].1).collect();
                Self::Columns(column, operator, alike[rng.usize(..alike.len())])
            }
            _ => Self::Compare(column, operator, any(rng)),
        }
    }

    fn eval(&self, row: &Row) -> Option<bool> {
        let order = |column: usize, literal: &Cell| row[column].as_ref().map(|c| c.compare(literal).unwrap());
        match self {
            Self::Compare(c, operator, literal) => order(*c, literal).map(|o| operator.holds(o)),
            Self::Columns(a, operator, b) => order(*a, row[*b].as_ref()?).map(|o| operator.holds(o)),
            Self::In(c, list, negated) => {
                let found = row[*c].as_ref().map(|_| list.iter().any(|l| order(*c, l) == Some(Ordering::Equal)));
                found.map(|f| f != *negated)
            }
            Self::Between(c, low, high, negated) => {
                let inside = and(order(*c, low).map(Ordering::is_ge), order(*c, high).map(Ordering::is_le));
                inside.map(|i| i != *negated)
            }
            Self::IsNull(c, negated) => Some(row[*c].is_none() != *negated),
            Self::Truth(c) => row[*c].as_ref().map(|c| matches!(c, Cell::Bool(true))),
            Self::And(a, b) => and(a.eval(row), b.eval(row)),
            Self::Or(a, b) => and(a.eval(row).map(|x| !x), b.eval(row).map(|x| !x)).map(|x| !x),
            Self::Not(a) => a.eval(row).map(|x| !x),
        }
    }

    pub(crate) fn sql(&self, table: &Table) -> String {
        let name = |c: &usize| quoted(&table.columns[*c].0);
        let value = |c: &usize, v: &Cell| literal(v, &table.columns[*c].1);
        let not = |negated: bool| if negated { "NOT " } else { "" };
        match self {
            Self::Compare(c, operator, v) => format!("{} {} {}", name(c), operator.0, value(c, v)),
            Self::Columns(a, operator, b) => format!("{} {} {}", name(a), operator.0, name(b)),
            Self::In(c, list, negated) => {
                let list: Vec<String> = list.iter().map(|v| value(c, v)).collect();
                format!("{} {}IN ({})", name(c), not(*negated), list.join(", "))
            }
            Self::Between(c, low, high, negated) => {
                format!("{} {}BETWEEN {} AND {}", name(c), not(*negated), value(c, low), value(c, high))
            }
            Self::IsNull(c, negated) => format!("{} IS {}NULL", name(c), not(*negated)),
            Self::Truth(c) => name(c),
            Self::And(a, b) => format!("({} AND {})", a.sql(table), b.sql(table)),
            Self::Or(a, b) => format!("({} OR {})", a.sql(table), b.sql(table)),
            Self::Not(a) => format!("NOT ({})", a.sql(table)),
        }
    }
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A literal that is compared in the column's own type.
pub(crate) fn literal(value: &Cell, data_type: &DataType) -> String {
    match (value, data_type) {
        (Cell::Bool(b), _) => b.to_string(),
        (Cell::Int(i), _) if *i == i128::from(i64::MIN) => format!("CAST('{i}' AS BIGINT)"),
        (Cell::Int(i), _) => i.to_string(),
        (Cell::Float(x), _) if x.is_nan() => "CAST('NaN' AS DOUBLE)".into(),
        (Cell::Float(x), _) if x.is_infinite() => {
            format!("CAST('{}Infinity' AS DOUBLE)", if *x < 0.0 { "-" } else { "" })
        }
        (Cell::Float(x), _) => format!("{x:?}"),
        (Cell::Text(s), _) => format!("'{}'", s.replace('\'', "''")),
        (Cell::Time(ns), DataType::Timestamp(TimeUnit::Nanosecond, _)) => {
            format!("arrow_cast({ns}, 'Timestamp(Nanosecond, None)')")
        }
        (Cell::Time(ns), _) => format!("arrow_cast({}, 'Timestamp(Microsecond, None)')", ns.div_euclid(1000)),
    }
}

/// A query over table `t`.
pub(crate) struct Query {
    shape: Shape,
    condition: Option<Condition>,
}

enum Shape {
    Star,
    Count,
    Project(Vec<usize>),
    /// Ordered by all dimensions; the first so many rows.
    Ordered(Vec<usize>, usize),
    /// Any so many rows after so many others.
    Limit(Vec<usize>, usize, usize),
    Aggregate(Vec<usize>, Vec<(Function, usize)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Count,
    Sum,
    Min,
    Max,
}

impl Function {
    fn sql(self, column: &str) -> String {
        format!("{}({column})", format!("{self:?}").to_lowercase())
    }

    /// The aggregate of the rows' values.
    fn of<'a>(self, values: impl Iterator<Item = Option<&'a Cell>>) -> Option<Cell> {
        let values: Vec<&Cell> = values.flatten().collect();
        let by_order = |a: &&&Cell, b: &&&Cell| a.compare(b).unwrap();
        match self {
            Self::Count => Some(Cell::Int(i128::try_from(values.len()).unwrap())),
            Self::Min => values.iter().min_by(by_order).map(|c| (*c).clone()),
            Self::Max => values.iter().max_by(by_order).map(|c| (*c).clone()),
            Self::Sum => match values.first()? {
                Cell::Int(_) => Some(Cell::Int(values.iter().map(|c| if let Cell::Int(i) = c { *i } else { 0 }).sum())),
                _ => Some(Cell::Float(values.iter().filter_map(|c| c.number()).sum())),
            },
        }
    }

    /// Whether the answer for a column does not depend on how DataFusion computes it: no overflow, no NaN.
    fn suits(self, table: &Table, column: usize) -> bool {
        let all = |ok: &dyn Fn(&Cell) -> bool| table.rows.iter().filter_map(|r| r[column].as_ref()).all(ok);
        match self {
            Self::Count => true,
            Self::Sum => all(&|c| c.number().is_some_and(|x| x.abs() < 1e15)) && table.columns[column].1.is_numeric(),
            Self::Min | Self::Max => all(&|c| c.number().is_none_or(|x| !x.is_nan())),
        }
    }
}

impl Query {
    /// `SELECT * FROM t`.
    pub(crate) fn all() -> Self {
        Self { shape: Shape::Star, condition: None }
    }

    pub(crate) fn draw(rng: &mut Rng, table: &Table) -> Self {
        let condition = chance(rng, 70).then(|| Condition::draw(rng, table, 2)).filter(Condition::is_understood);
        let most = table.rows.len() + 2;
        let shape = match rng.u8(0..10) {
            0 => Shape::Count,
            1 => Shape::Star,
            2 | 3 => Shape::Project(projection(rng, table)),
            4 | 5 => Shape::Ordered(projection(rng, table), rng.usize(..most)),
            6 => Shape::Limit(
                projection(rng, table),
                rng.usize(..most),
                if chance(rng, 25) { rng.usize(..most) } else { 0 },
            ),
            _ => {
                let keys = if chance(rng, 25) { Vec::new() } else { vec![rng.usize(..table.dims)] };
                let mut aggregates = vec![(Function::Count, rng.usize(..table.columns.len()))];
                for _ in 0..rng.usize(..3) {
                    let function = [Function::Sum, Function::Min, Function::Max][rng.usize(..3)];
                    let column = rng.usize(..table.columns.len());
                    if function.suits(table, column) {
                        aggregates.push((function, column));
                    }
                }
                Shape::Aggregate(keys, aggregates)
            }
        };
        Self { shape, condition }
    }

    pub(crate) fn sql(&self, table: &Table) -> String {
        let names =
            |columns: &[usize]| columns.iter().map(|c| quoted(&table.columns[*c].0)).collect::<Vec<_>>().join(", ");
        let dims: Vec<usize> = (0..table.dims).collect();
        let (select, tail) = match &self.shape {
            Shape::Star => ("*".into(), String::new()),
            Shape::Count => ("count(*)".into(), String::new()),
            Shape::Project(columns) => (names(columns), String::new()),
            Shape::Ordered(columns, limit) => (names(columns), format!(" ORDER BY {} LIMIT {limit}", names(&dims))),
            Shape::Limit(columns, limit, 0) => (names(columns), format!(" LIMIT {limit}")),
            Shape::Limit(columns, limit, offset) => (names(columns), format!(" LIMIT {limit} OFFSET {offset}")),
            Shape::Aggregate(keys, aggregates) => {
                let mut select: Vec<String> = keys.iter().map(|k| names(&[*k])).collect();
                // Each has a name of its own, since one may be drawn twice.
                select.extend(
                    aggregates.iter().enumerate().map(|(i, (f, c))| format!("{} AS r{i}", f.sql(&names(&[*c])))),
                );
                let tail = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", names(keys)) };
                (select.join(", "), tail)
            }
        };
        let filter = self.condition.as_ref().map(|c| format!(" WHERE {}", c.sql(table))).unwrap_or_default();
        format!("SELECT {select} FROM t{filter}{tail}")
    }

    /// Whether `got` answers the query; else what it is and what it should be.
    pub(crate) fn check(&self, table: &Table, got: &[Row]) -> Result<(), String> {
        let kept: Vec<&Row> =
            table.rows.iter().filter(|r| self.condition.as_ref().is_none_or(|c| c.eval(r) == Some(true))).collect();
        let part = |columns: &[usize], row: &Row| columns.iter().map(|c| row[*c].clone()).collect::<Row>();
        let parts = |columns: &[usize]| kept.iter().map(|r| part(columns, r)).collect::<Vec<Row>>();
        let everything: Vec<usize> = (0..table.columns.len()).collect();
        match &self.shape {
            Shape::Star => same_rows(&parts(&everything), got),
            Shape::Count => same_rows(&[vec![Some(Cell::Int(i128::try_from(kept.len()).unwrap()))]], got),
            Shape::Project(columns) => same_rows(&parts(columns), got),
            Shape::Limit(columns, limit, offset) => {
                let count = kept.len().saturating_sub(*offset).min(*limit);
                if got.len() != count {
                    return Err(format!("got {} rows, expected {count}", got.len()));
                }
                all_among(&parts(columns), got)
            }
            Shape::Ordered(columns, limit) => {
                let mut sorted = kept.clone();
                sorted.sort_by(|a, b| by_dimensions(table.dims, a, b));
                let count = sorted.len().min(*limit);
                if got.len() != count {
                    return Err(format!("got {} rows, expected {count}", got.len()));
                }
                // Runs of equal dimensions may come in any order, and the last run may be cut.
                let mut start = 0;
                while start < count {
                    let run = sorted[start..]
                        .iter()
                        .take_while(|r| by_dimensions(table.dims, sorted[start], r).is_eq())
                        .count();
                    let want: Vec<Row> = sorted[start..start + run].iter().map(|r| part(columns, r)).collect();
                    let here = &got[start..(start + run).min(count)];
                    all_among(&want, here).map_err(|e| format!("from row {start} on: {e}"))?;
                    start += run;
                }
                Ok(())
            }
            Shape::Aggregate(keys, aggregates) => {
                let mut groups: HashMap<String, (Row, Vec<&Row>)> = HashMap::new();
                if keys.is_empty() {
                    groups.insert("[]".into(), (Row::new(), kept.clone()));
                } else {
                    for row in &kept {
                        let key = part(keys, row);
                        groups.entry(format!("{key:?}")).or_insert_with(|| (key, Vec::new())).1.push(row);
                    }
                }
                if groups.len() != got.len() {
                    return Err(format!("got {} groups, expected {}", got.len(), groups.len()));
                }
                for row in got {
                    let (key, values) = row.split_at(keys.len());
                    let Some((_, members)) = groups.remove(&format!("{key:?}")) else {
                        return Err(format!("got a group {key:?} that is not there, or twice"));
                    };
                    for ((function, column), got) in aggregates.iter().zip(values) {
                        let want = function.of(members.iter().map(|r| r[*column].as_ref()));
                        let size =
                            members.iter().filter_map(|r| r[*column].as_ref()?.number()).map(f64::abs).sum::<f64>();
                        if !near(want.as_ref(), got.as_ref(), size) {
                            let column = &table.columns[*column].0;
                            return Err(format!(
                                "group {key:?}: {function:?} of `{column}`: got {got:?}, expected {want:?}"
                            ));
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

fn projection(rng: &mut Rng, table: &Table) -> Vec<usize> {
    let mut columns: Vec<usize> = (0..table.columns.len()).collect();
    rng.shuffle(&mut columns);
    columns.truncate(rng.usize(1..=columns.len()));
    columns
}

/// `ORDER BY` all dimensions, NULLs last.
fn by_dimensions(dims: usize, a: &Row, b: &Row) -> Ordering {
    let mut orders = a.iter().zip(b).take(dims).map(|pair| match pair {
        (Some(a), Some(b)) => a.compare(b).unwrap(),
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Greater,
        (_, None) => Ordering::Less,
    });
    orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// Sums of floats depend on the order of their terms, by as much as the terms are large.
fn near(want: Option<&Cell>, got: Option<&Cell>, size: f64) -> bool {
    match (want, got) {
        (Some(Cell::Float(a)), Some(Cell::Float(b))) => a.total_cmp(b).is_eq() || (a - b).abs() <= 1e-12 * size,
        (a, b) => format!("{a:?}") == format!("{b:?}"),
    }
}

/// An order of all rows, whatever their values are.
fn any_order(a: &Row, b: &Row) -> Ordering {
    let kind = |cell: &Cell| match cell {
        Cell::Bool(_) => 0,
        Cell::Int(_) => 1,
        Cell::Float(_) => 2,
        Cell::Text(_) => 3,
        Cell::Time(_) => 4,
    };
    let order = |pair: (&Option<Cell>, &Option<Cell>)| match pair {
        (Some(a), Some(b)) => a.compare(b).unwrap_or_else(|| kind(a).cmp(&kind(b))),
        (a, b) => a.is_some().cmp(&b.is_some()),
    };
    let differs = a.iter().zip(b).map(order).find(|o| o.is_ne());
    differs.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn sorted(rows: &[Row]) -> Vec<&Row> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_unstable_by(|a, b| any_order(a, b));
    rows
}

pub(crate) fn same_rows(want: &[Row], got: &[Row]) -> Result<(), String> {
    if want.len() != got.len() {
        return Err(format!("got {} rows, expected {}", got.len(), want.len()));
    }
    match sorted(want).iter().zip(sorted(got)).find(|(a, b)| any_order(a, b).is_ne()) {
        None => Ok(()),
        Some((want, got)) => {
            Err(format!("got\n      {got:?}, expected\n      {want:?} (the first that differ, sorted)"))
        }
    }
}

/// Whether every row of `got` is one of `all`, none more often than there.
fn all_among(all: &[Row], got: &[Row]) -> Result<(), String> {
    let all = sorted(all);
    let mut left = all.iter();
    for row in sorted(got) {
        if !left.by_ref().any(|r| any_order(r, row).is_eq()) {
            return Err(format!("got {row:?}, which is not there, or too often"));
        }
    }
    Ok(())
}
