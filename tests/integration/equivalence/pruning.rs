//! The same answers with and without pruning, and with and without dynamic filters, to queries that push conditions in every way there is.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::catalog::TableProvider;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_zarr::{ZarrTable, register_zarr};
use fastrand::Rng;
use futures::FutureExt;

use super::element::{chance, pick};
use super::generate;
use super::query::{Condition, literal, quoted, same_rows};
use super::reference::{self, Table};
use super::{CASES, describe, open, setting};
use crate::cell::{Row, rows};

/// Queries over each store.
const QUERIES: usize = 6;

/// What queries are drawn from.
struct Source<'a> {
    table: &'a Table,
    /// One index column a dimension, quoted.
    indices: Vec<String>,
}

impl Source<'_> {
    fn name(&self, column: usize) -> String {
        quoted(&self.table.columns[column].0)
    }

    fn column(&self, rng: &mut Rng) -> usize {
        if rng.bool() { rng.usize(..self.table.dims) } else { rng.usize(..self.table.columns.len()) }
    }

    /// A value of a column, as a literal; NULL where it has none.
    fn value(&self, rng: &mut Rng, column: usize) -> String {
        let row = &self.table.rows[rng.usize(..self.table.rows.len())];
        row[column].as_ref().map_or_else(|| "NULL".into(), |cell| literal(cell, &self.table.columns[column].1))
    }

    /// A condition; columns have no qualifier.
    fn condition(&self, rng: &mut Rng) -> String {
        let parts: Vec<String> = (0..rng.usize(1..4)).map(|_| self.term(rng)).collect();
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap();
        parts.fold(first, |a, b| match rng.u8(0..6) {
            0 | 1 => format!("({a} OR {b})"),
            2 => format!("NOT ({a} AND {b})"),
            _ => format!("({a} AND {b})"),
        })
    }

    fn term(&self, rng: &mut Rng) -> String {
        let column = self.column(rng);
        let (name, data_type) = (self.name(column), &self.table.columns[column].1);
        let comparison = pick(rng, &["=", "<>", "<", "<=", ">", ">="]);
        match rng.u8(0..14) {
            0 => format!("CAST({name} AS VARCHAR) {comparison} CAST({} AS VARCHAR)", self.value(rng, column)),
            1 if matches!(data_type, DataType::Timestamp(..)) => {
                let part = pick(rng, &["month", "day", "hour", "year"]);
                format!("date_part('{part}', {name}) IN (1, 2, 6, 12, 2000)")
            }
            1 | 2 if data_type.is_numeric() => {
                let other = self.column(rng);
                if self.table.columns[other].1.is_numeric() {
                    format!("CAST({name} AS DOUBLE) {comparison} CAST({} AS DOUBLE)", self.name(other))
                } else {
                    format!("abs(CAST({name} AS DOUBLE)) {comparison} 3")
                }
            }
            3 => {
                let function = pick(rng, &["max", "min"]);
                let inner = if rng.bool() { format!(" WHERE {}", self.plain(rng)) } else { String::new() };
                format!("{name} {comparison} (SELECT {function}({name}) FROM t{inner})")
            }
            4 => format!("{name} IN (SELECT {name} FROM t WHERE {})", self.plain(rng)),
            5 => self.points(rng),
            6 => self.tuples(rng),
            7 => {
                let index = pick(rng, &self.indices);
                format!("{index} {comparison} {}", rng.u8(0..6))
            }
            8 => format!("CASE WHEN {} THEN {} ELSE {} END", self.plain(rng), self.plain(rng), self.plain(rng)),
            _ => self.plain(rng),
        }
    }

    fn plain(&self, rng: &mut Rng) -> String {
        loop {
            let condition = Condition::draw(rng, self.table, 1);
            if condition.is_understood() {
                return condition.sql(self.table);
            }
        }
    }

    /// `(a = 1 AND b = 2) OR …`
    fn points(&self, rng: &mut Rng) -> String {
        let columns: Vec<usize> = (0..rng.usize(1..4)).map(|_| self.column(rng)).collect();
        let point = |rng: &mut Rng| {
            let equal: Vec<String> =
                columns.iter().map(|c| format!("{} = {}", self.name(*c), self.value(rng, *c))).collect();
            format!("({})", equal.join(" AND "))
        };
        let points: Vec<String> = (0..rng.usize(1..12)).map(|_| point(rng)).collect();
        format!("({})", points.join(" OR "))
    }

    /// `(i, j) IN ((1, 2), …)` of index columns.
    fn tuples(&self, rng: &mut Rng) -> String {
        let tuple = |rng: &mut Rng| {
            let numbers: Vec<String> = self.indices.iter().map(|_| rng.u8(0..5).to_string()).collect();
            format!("({})", numbers.join(", "))
        };
        if self.indices.len() == 1 {
            return format!("{} IN (1, 3, 4)", self.indices[0]);
        }
        let tuples: Vec<String> = (0..rng.usize(1..9)).map(|_| tuple(rng)).collect();
        format!("({}) IN ({})", self.indices.join(", "), tuples.join(", "))
    }

    /// `SELECT * FROM t`, filtered, cut or both, with an answer of its own.
    fn relation(&self, rng: &mut Rng) -> String {
        let filter = if chance(rng, 70) { format!(" WHERE {}", self.condition(rng)) } else { String::new() };
        if chance(rng, 40) {
            return format!("(SELECT * FROM t{filter})");
        }
        let mut order = self.indices.clone();
        rng.shuffle(&mut order);
        let order: Vec<String> = order.into_iter().map(|i| if rng.bool() { i } else { format!("{i} DESC") }).collect();
        format!("(SELECT * FROM t{filter} ORDER BY {} LIMIT {})", order.join(", "), rng.usize(..30))
    }

    /// A query with one right answer, and whether its rows have an order.
    fn query(&self, rng: &mut Rng) -> (String, bool) {
        let sql = self.sql(rng);
        let is_ordered = sql.rfind(" ORDER BY ").is_some_and(|at| !sql[at..].contains(')'));
        (sql, is_ordered)
    }

    fn sql(&self, rng: &mut Rng) -> String {
        let any = self.column(rng);
        let name = self.name(any);
        let filter = format!("WHERE {}", self.condition(rng));
        match rng.u8(0..15) {
            0 => format!("SELECT * FROM t {filter}"),
            1 => format!("SELECT {name}, {} FROM t {filter}", self.indices.join(", ")),
            2 => format!("SELECT count(*), count({name}) FROM t {filter}"),
            3 => {
                let all: Vec<String> = (0..self.table.columns.len())
                    .map(|c| self.name(c))
                    .map(|c| format!("min({c}) AS lo{0}, max({c}) AS hi{0}", c.len()))
                    .collect();
                format!("SELECT {} FROM t {}", all[any], if rng.bool() { &filter } else { "" })
            }
            4 => {
                let descending = pick(rng, &["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
                format!("SELECT {name} FROM t {filter} ORDER BY {name}{descending} LIMIT {}", rng.usize(..20))
            }
            5 => {
                let kind = pick(rng, &["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
                let on: Vec<String> = self.indices.iter().map(|i| format!("a.{i} = b.{i}")).collect();
                let on = if rng.bool() { on.join(" AND ") } else { on[0].clone() };
                let both = format!("{} a {kind} {} b ON {on}", self.relation(rng), self.relation(rng));
                format!(
                    "SELECT count(*), count(a.{name}), count(b.{name}), min(a.{0}), max(b.{0}) FROM {both}",
                    self.indices[0]
                )
            }
            6 => {
                let kind = pick(rng, &["LEFT SEMI JOIN", "LEFT ANTI JOIN", "RIGHT SEMI JOIN", "RIGHT ANTI JOIN"]);
                let on: Vec<String> = self.indices.iter().map(|i| format!("a.{i} = b.{i}")).collect();
                format!(
                    "SELECT * FROM {} a {kind} {} b ON {}",
                    self.relation(rng),
                    self.relation(rng),
                    on.join(" AND ")
                )
            }
            7 => format!("SELECT * FROM {} a UNION ALL SELECT * FROM {} b", self.relation(rng), self.relation(rng)),
            8 => {
                let outer = self.condition(rng);
                format!("SELECT * FROM {} a WHERE {outer}", self.relation(rng))
            }
            9 => format!("SELECT count(*) FROM (SELECT * FROM t {filter} LIMIT {}) a", rng.usize(..20)),
            10 => {
                let on: Vec<String> = self.indices.iter().map(|i| format!("a.{i} = b.{i}")).collect();
                format!(
                    "SELECT count(*) FROM (SELECT * FROM t {filter} LIMIT {}) a JOIN t b ON {}",
                    rng.usize(..20),
                    on.join(" AND ")
                )
            }
            11 => {
                let all: Vec<String> = self.indices.iter().map(|i| format!("a.{i}")).collect();
                let on: Vec<String> = self.indices.iter().map(|i| format!("a.{i} = b.{i}")).collect();
                let on = on[rng.usize(..on.len())..].join(" AND ");
                let b = self.relation(rng);
                format!("SELECT {0} FROM t a JOIN {b} b ON {on} ORDER BY {0} LIMIT 50", all.join(", "))
            }
            12 => {
                let on: Vec<String> = self.indices.iter().map(|i| format!("a.{i} = b.{i}")).collect();
                let on = on[rng.usize(..on.len())..].join(" AND ");
                let dim = self.name(rng.usize(..self.table.dims));
                format!("SELECT a.{dim}, count(*) FROM t a JOIN {} b ON {on} GROUP BY a.{dim}", self.relation(rng))
            }
            13 => format!(
                "SELECT count(DISTINCT {name}), min({name}), max({name}) FROM t WHERE {} AND {}",
                self.points(rng),
                self.tuples(rng)
            ),
            _ => format!(
                "SELECT {name} FROM {} a ORDER BY {name} DESC NULLS LAST LIMIT {}",
                self.relation(rng),
                rng.usize(..5)
            ),
        }
    }
}

/// The settings that a query is asked with; the first turn everything off.
const SETTINGS: [&[&str]; 3] = [
    &["SET zarr.pruning = false", "SET datafusion.optimizer.enable_dynamic_filter_pushdown = false"],
    &[],
    &["SET datafusion.optimizer.enable_dynamic_filter_pushdown = false"],
];

async fn session(zarr: &Arc<ZarrTable>, config: &SessionConfig, settings: &[&str]) -> SessionContext {
    let ctx = SessionContext::new_with_config(config.clone());
    register_zarr(&ctx).unwrap();
    for setting in settings {
        ctx.sql(setting).await.unwrap();
    }
    ctx.register_table("t", Arc::clone(zarr) as _).unwrap();
    ctx
}

async fn answer(ctx: &SessionContext, sql: &str) -> Result<Vec<Row>, String> {
    let batches = async { ctx.sql(sql).await?.collect().await }.await;
    batches.map(|b| rows(&b)).map_err(|e| e.to_string())
}

fn in_order(expected: &[Row], got: &[Row]) -> Result<(), String> {
    let text = |rows: &[Row]| format!("{rows:?}");
    if text(expected) == text(got) {
        Ok(())
    } else {
        Err(format!("got\n      {got:?}, expected in this order\n      {expected:?}"))
    }
}

/// Run the case of a seed; how many queries had an answer, or what is wrong.
async fn case(seed: u64) -> Result<usize, String> {
    let mut rng = Rng::with_seed(seed);
    let mut dataset = generate::dataset(&mut rng);
    let table = reference::table(&dataset);
    if table.rows.is_empty() || table.dims == 0 || table.rows.len() > 3000 {
        return Ok(0);
    }
    dataset.options.push(("index_columns", "true"));
    let Ok(zarr) = open(&dataset).await else { return Ok(0) };
    let names: Vec<String> = zarr.schema().fields().iter().map(|f| quoted(f.name())).collect();
    let indices = table.columns.iter().take(table.dims).map(|(dim, _)| {
        let index = quoted(&format!("{dim}_index"));
        if names.contains(&index) { index } else { quoted(dim) }
    });
    let source = Source { table: &table, indices: indices.collect() };
    let partitions = [1, 2, 7][rng.usize(..3)];
    let batch_size = [3, 61, 8192][rng.usize(..3)];
    let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch_size);
    let [off, on, still] = SETTINGS.map(|settings| session(&zarr, &config, settings));
    let (off, on, still) = (off.await, on.await, still.await);
    let mut answered = 0;
    for _ in 0..QUERIES {
        let (sql, is_ordered) = source.query(&mut rng);
        // An error of evaluation may be one about a row that nobody needs.
        let Ok(expected) = answer(&off, &sql).await else { continue };
        answered += 1;
        for (ctx, how) in [(&on, "with pruning"), (&still, "with pruning and without dynamic filters")] {
            let outcome = match answer(ctx, &sql).await {
                Ok(got) if is_ordered => in_order(&expected, &got),
                Ok(got) => same_rows(&expected, &got),
                Err(e) => Err(format!("got the error: {e}")),
            };
            outcome.map_err(|e| {
                format!(
                    "{sql}\n    {how}: {e}\n    target_partitions {partitions}, batch_size {batch_size}\n{}",
                    describe(&dataset)
                )
            })?;
        }
    }
    Ok(answered)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pruning_changes_no_answer() {
    let cases = setting("ZARR_PRUNING_CASES", CASES);
    let first = setting("ZARR_PRUNING_SEED", 1);
    let (mut failures, mut answered) = (Vec::new(), 0);
    for seed in first..first.saturating_add(cases) {
        let outcome = AssertUnwindSafe(case(seed)).catch_unwind().await;
        let failure = match outcome {
            Ok(Ok(queries)) => {
                answered += queries;
                continue;
            }
            Ok(Err(failure)) => failure,
            Err(_) => "panicked".into(),
        };
        eprintln!("seed {seed}: {failure}\n    again: ZARR_PRUNING_SEED={seed} ZARR_PRUNING_CASES=1");
        failures.push(seed);
        if failures.len() == 10 {
            break;
        }
    }
    assert!(failures.is_empty(), "seeds {failures:?} fail");
    eprintln!("{answered} queries had an answer");
    assert!(u64::try_from(answered).unwrap() > cases * 2, "only {answered} queries had an answer");
}
