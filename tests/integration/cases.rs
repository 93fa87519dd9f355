//! The cases of `fixtures/cases.jsonl`: queries over small real stores, with the rows that xarray and zarr-python give.
//!
//! The rules of comparison are those of `fixtures/README.md`, and so is how chunks are counted against `max_data_chunks_read`.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use arrow::temporal_conversions::{timestamp_ns_to_datetime, timestamp_us_to_datetime};
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_zarr::{ZarrScanExec, explain_error, register_zarr};
use serde_json::{Map, Value};
use tokio::runtime::Builder;

use crate::cell::{Cell, Row, rows};
use crate::fixtures;

/// A case may take so long.
const LIMIT: Duration = Duration::from_mins(1);
/// One line of `cases.jsonl`.
struct Case {
    id: String,
    /// Name, store and options of each table.
    tables: Vec<(String, String, Map<String, Value>)>,
    sql: String,
    columns: Vec<String>,
    expected: Expected,
    ordered: bool,
    rel_tol: f64,
    abs_tol: f64,
    /// Chunks of data that one partition may read.
    budget: Option<usize>,
}

enum Expected {
    Rows(Vec<Row>),
    /// The rows, or any error.
    RowsOrError(Vec<Row>),
    /// An error with this text, in lower case.
    Error(String),
}

impl Case {
    fn parse(line: &str) -> Self {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        let table = |name: String, v: &Value| (name, text(&v["store"]), v["options"].as_object().unwrap().clone());
        let mut tables = vec![table(text(&case["table"]), &case)];
        for (name, v) in case.get("tables").and_then(Value::as_object).into_iter().flatten() {
            tables.push(table(name.clone(), v));
        }
        let rows = || case["rows"].as_array().unwrap().iter().map(|r| r.as_array().unwrap().iter().map(cell).collect());
        let expected = match case["error_contains"].as_str() {
            Some(part) => Expected::Error(part.to_lowercase()),
            None if case.get("or_error") == Some(&Value::Bool(true)) => Expected::RowsOrError(rows().collect()),
            None => Expected::Rows(rows().collect()),
        };
        Self {
            id: text(&case["id"]),
            tables,
            sql: text(&case["sql"]),
            columns: case["columns"].as_array().unwrap().iter().map(text).collect(),
            expected,
            ordered: case["ordered"].as_bool().unwrap(),
            rel_tol: case["rel_tol"].as_f64().unwrap(),
            abs_tol: case.get("abs_tol").and_then(Value::as_f64).unwrap_or(0.0),
            budget: case["max_data_chunks_read"].as_u64().map(|n| usize::try_from(n).unwrap()),
        }
    }

    /// Register the tables and run the query.
    async fn answer(&self, config: SessionConfig) -> Result<Answer, String> {
        let ctx = SessionContext::new_with_config(config);
        register_zarr(&ctx).map_err(|e| e.to_string())?;
        match self.collect(&ctx).await {
            Ok(answer) => Ok(answer),
            Err(e) => Err(explain_error(&ctx, e).await.to_string()),
        }
    }

    /// A statement for each table.
    fn statements(&self) -> impl Iterator<Item = String> {
        self.tables.iter().map(|(name, store, options)| {
            let location = fixtures().join("stores").join(store);
            let pairs: Vec<String> = options.iter().map(|(k, v)| format!("'{k}' '{}'", v.as_str().unwrap())).collect();
            let options = if pairs.is_empty() { String::new() } else { format!(" OPTIONS ({})", pairs.join(", ")) };
            let location = location.display();
            format!(r#"CREATE EXTERNAL TABLE "{name}" STORED AS ZARR LOCATION '{location}'{options}"#)
        })
    }

    async fn collect(&self, ctx: &SessionContext) -> Result<Answer, DataFusionError> {
        for statement in self.statements() {
            ctx.sql(&statement).await?.collect().await?;
        }
        let frame = ctx.sql(&self.sql).await?;
        let columns = frame.schema().fields().iter().map(|f| f.name().clone()).collect();
        let plan = frame.create_physical_plan().await?;
        let rows = rows(&datafusion::physical_plan::collect(Arc::clone(&plan), ctx.task_ctx()).await?);
        Ok(Answer {
            columns,
            rows: rows.into_iter().map(|r| r.into_iter().map(timeless).collect()).collect(),
            chunks: (ctx.state().config().target_partitions() == 1).then(|| chunks_read(&plan)),
        })
    }

    /// The answer of the command.
    #[cfg(feature = "cli")]
    fn command(&self) -> Result<Answer, String> {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_zarr-sql"));
        command.args(["--quiet", "--format", "nd-json"]);
        for statement in self.statements().chain([self.sql.clone()]) {
            command.args(["-c", &statement]);
        }
        let output = command.output().unwrap();
        if !output.status.success() {
            return Err(String::from_utf8(output.stderr).unwrap());
        }
        let lines = String::from_utf8(output.stdout).unwrap();
        let row = |line: &str| {
            let object: Map<String, Value> = serde_json::from_str(line).unwrap();
            // Names keep their case; NULL has no key.
            let value = |name: &String| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v);
            self.columns.iter().map(|name| value(name).and_then(cell)).collect()
        };
        Ok(Answer { columns: self.columns.clone(), rows: lines.lines().map(row).collect(), chunks: None })
    }

    /// What is wrong with the answer, if anything is.
    fn check(&self, answer: Result<Answer, String>) -> Result<(), String> {
        match (&self.expected, answer) {
            (Expected::Error(part), Err(message)) if message.to_lowercase().contains(part) => Ok(()),
            (Expected::Error(part), Err(message)) => {
                Err(format!("got the error {message:?}, expected one with {part:?}"))
            }
            (Expected::Error(part), Ok(answer)) => {
                Err(format!("got {}, expected an error with {part:?}", some(&answer.rows)))
            }
            (Expected::RowsOrError(_), Err(_)) => Ok(()),
            (Expected::Rows(want), Err(message)) => Err(format!("got the error {message:?}, expected {}", some(want))),
            (Expected::Rows(want) | Expected::RowsOrError(want), Ok(answer)) => {
                let same_name = |(a, b): (&String, &String)| a.eq_ignore_ascii_case(b);
                if answer.columns.len() != self.columns.len()
                    || !answer.columns.iter().zip(&self.columns).all(same_name)
                {
                    return Err(format!("got columns {:?}, expected {:?}", answer.columns, self.columns));
                }
                match (self.budget, answer.chunks) {
                    (Some(budget), Some(chunks)) if chunks > budget => {
                        Err(format!("read {chunks} chunks of data, may read {budget}"))
                    }
                    _ => self.compare(want, answer.rows),
                }
            }
        }
    }

    fn compare(&self, want: &[Row], mut got: Vec<Row>) -> Result<(), String> {
        if want.len() != got.len() {
            return Err(format!(
                "got {} rows, expected {}: got {}, expected {}",
                got.len(),
                want.len(),
                some(&got),
                some(want)
            ));
        }
        let mut want: Vec<&Row> = want.iter().collect();
        if !self.ordered {
            got.sort_by_cached_key(sort_key);
            want.sort_by_cached_key(|r| sort_key(r));
        }
        let differing = want.iter().zip(&got).position(|(a, b)| !self.same_row(a, b));
        let Some(row) = differing else { return Ok(()) };
        if self.ordered {
            return Err(format!("row {row}: got {:?}, expected {:?}", got[row], want[row]));
        }
        // Near ties may sort differently: match one by one.
        for row in want {
            match got.iter().position(|r| self.same_row(row, r)) {
                Some(i) => drop(got.swap_remove(i)),
                None => return Err(format!("expected row {row:?} is not among the result, with {}", some(&got))),
            }
        }
        Ok(())
    }

    fn same_row(&self, want: &Row, got: &Row) -> bool {
        want.len() == got.len() && want.iter().zip(got).all(|(a, b)| self.same(a.as_ref(), b.as_ref()))
    }

    fn same(&self, want: Option<&Cell>, got: Option<&Cell>) -> bool {
        match (want, got) {
            (None, None) => true,
            (Some(Cell::Int(a)), Some(Cell::Int(b))) => a == b,
            (Some(Cell::Bool(a)), Some(Cell::Bool(b))) => a == b,
            (Some(Cell::Text(a)), Some(Cell::Text(b))) => a == b,
            (Some(a), Some(b)) => match (a.number(), b.number()) {
                (Some(a), Some(b)) => (a - b).abs() <= (self.rel_tol * a.abs().max(b.abs())).max(self.abs_tol),
                _ => false,
            },
            _ => false,
        }
    }
}

/// The result of a query.
struct Answer {
    columns: Vec<String>,
    rows: Vec<Row>,
    /// Chunks of data read, where all was one partition.
    chunks: Option<usize>,
}

/// Chunks of data that the scans of an executed plan have read.
pub(crate) fn chunks_read(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.downcast_ref::<ZarrScanExec>().and_then(ExecutionPlan::metrics);
    let own = own.and_then(|m| m.sum_by_name("chunks_read")).map_or(0, |m| m.as_usize());
    own + plan.children().into_iter().map(chunks_read).sum::<usize>()
}

/// A value of a case: numbers without a point are integers, timestamps are text.
fn cell(value: &Value) -> Option<Cell> {
    match value {
        Value::Null => None,
        Value::Bool(b) => Some(Cell::Bool(*b)),
        Value::String(s) => Some(Cell::Text(short(s))),
        Value::Number(n) => Some(match (n.as_i64(), n.as_u64()) {
            (Some(i), _) => Cell::Int(i.into()),
            (None, Some(u)) => Cell::Int(u.into()),
            (None, None) => Cell::Float(n.as_f64().unwrap()),
        }),
        other => panic!("a case holds {other}"),
    }
}

/// The same with timestamps as text.
fn timeless(cell: Option<Cell>) -> Option<Cell> {
    match cell {
        Some(Cell::Time(ns)) => {
            let time = if ns % 1000 == 0 {
                timestamp_us_to_datetime(i64::try_from(ns / 1000).unwrap())
            } else {
                timestamp_ns_to_datetime(i64::try_from(ns).unwrap())
            };
            Some(Cell::Text(short(format!("{:?}", time.unwrap()).trim_start_matches('+'))))
        }
        Some(Cell::Text(s)) => Some(Cell::Text(short(&s))),
        other => other,
    }
}

/// A timestamp without trailing zeros of its fraction; any other text as it is.
fn short(text: &str) -> String {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    match text.split_once('.') {
        Some((time, fraction)) if digits(fraction) && time.contains('T') && time.matches(':').count() == 2 => {
            let fraction = fraction.trim_end_matches('0');
            if fraction.is_empty() { time.to_owned() } else { format!("{time}.{fraction}") }
        }
        _ => text.to_owned(),
    }
}

/// Exact values first, then floats to nine digits.
fn sort_key(row: &Row) -> (Vec<String>, Vec<String>) {
    let (floats, exact): (Vec<_>, Vec<_>) = row.iter().partition(|c| matches!(c, Some(Cell::Float(_))));
    let nine = |c: &Option<Cell>| format!("{:+.8e}", c.as_ref().and_then(Cell::number).unwrap_or_default() + 0.0);
    (exact.iter().map(|c| format!("{c:?}")).collect(), floats.into_iter().map(nine).collect())
}

/// The first rows.
fn some(rows: &[Row]) -> String {
    let more = if rows.len() > 3 { format!(" and {} more", rows.len() - 3) } else { String::new() };
    format!("{:?}{more}", &rows[..rows.len().min(3)])
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(fixtures().join("cases.jsonl")).unwrap();
    text.lines().map(Case::parse).collect()
}

/// Run one case; what is wrong with it, if anything is.
///
/// It runs on threads of its own, so that one that cannot be cancelled is left behind.
fn outcome(case: &Arc<Case>, config: SessionConfig) -> Result<(), String> {
    let running = Arc::clone(case);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let ended = runtime.block_on(async {
            let task = SpawnedTask::spawn(async move { running.answer(config).await });
            tokio::time::timeout(LIMIT, task.join()).await
        });
        // Nobody listens any more after the time below.
        let _ = sender.send(ended);
        runtime.shutdown_background();
    });
    match receiver.recv_timeout(LIMIT * 2) {
        Err(_) => Err(format!("no answer within {LIMIT:?}, nor can it be cancelled")),
        Ok(Err(_)) => Err(format!("no answer within {LIMIT:?}")),
        Ok(Ok(Err(e))) => Err(format!("panicked: {e}")),
        Ok(Ok(Ok(answer))) => case.check(answer),
    }
}

/// Run every case, and fail with a line for each that is not as it should be.
fn run(config: &SessionConfig, without: &[&str]) {
    let only = std::env::var("ZARR_CASES").unwrap_or_default();
    let config = config.clone().with_information_schema(true);
    let chosen: Vec<Arc<Case>> = cases()
        .into_iter()
        .filter(|c| c.id.starts_with(&only) && !without.contains(&c.id.as_str()))
        .map(Arc::new)
        .collect();
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = outcome(case, config.clone());
                    outcomes.lock().unwrap().push((Arc::clone(case), outcome));
                }
            });
        }
    });
    let (mut passed, mut failures) = (0, Vec::new());
    for (case, outcome) in outcomes.into_inner().unwrap() {
        match outcome {
            Ok(()) => passed += 1,
            Err(e) => failures.push(format!("{}: {e}\n    {}", case.id, case.sql)),
        }
    }
    eprintln!("{passed} cases passed, {} failed", failures.len());
    assert!(failures.is_empty(), "{} of the cases failed:\n{}", failures.len(), failures.join("\n"));
}

/// One partition, whose chunks are counted.
#[test]
fn all_cases() {
    run(&SessionConfig::new().with_target_partitions(1), &[]);
}

#[cfg(feature = "cli")]
#[test]
fn all_cases_through_the_command() {
    let differ = |c: &Case, answer: Result<Answer, String>| c.check(answer).err().map(|e| format!("{}: {e}", c.id));
    // As text, a Float32 has as many digits as tell it from others of its type.
    let as_text = |c: Case| Case { rel_tol: c.rel_tol.max(1e-7), ..c };
    let cases: Vec<Case> = cases().into_iter().map(as_text).collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let failure = differ(case, case.command());
                    failures.lock().unwrap().extend(failure);
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
}

/// Batches of three rows, and more partitions than most of the stores have chunks; without the one store that has millions of rows.
#[test]
fn all_cases_in_small_pieces() {
    run(&SessionConfig::new().with_batch_size(3).with_target_partitions(7), &["B36-01"]);
}

#[test]
fn ids_are_unique() {
    let cases = cases();
    let ids: HashSet<&str> = cases.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids.len(), cases.len());
}
