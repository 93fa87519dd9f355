//! The files of `tests/sqllogictest`: SQL with its results, plans of `EXPLAIN FORMAT INDENT` among them.
//!
//! `ZARR_SQLLOGIC_UPDATE=1` writes what comes now into the files, to be read before it is committed.

use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use async_trait::async_trait;
use datafusion::error::DataFusionError;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_zarr::register_zarr;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

/// A session that answers like the tests' database.
struct Session(SessionContext);

impl Session {
    /// Two partitions, so that plans are the same on every machine.
    fn new() -> Self {
        let ctx = SessionContext::new_with_config(
            SessionConfig::new().with_target_partitions(2).with_information_schema(true),
        );
        register_zarr(&ctx).unwrap();
        Self(ctx)
    }
}

#[async_trait]
impl AsyncDB for Session {
    type Error = DataFusionError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Self::ColumnType>, Self::Error> {
        let frame = self.0.sql(sql).await?;
        let columns = frame.schema().fields().len();
        let batches = frame.collect().await?;
        if columns == 0 || batches.iter().all(|b| b.num_columns() == 0) {
            return Ok(DBOutput::StatementComplete(0));
        }
        let rows = batches.iter().flat_map(cells).collect();
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Text; columns], rows })
    }

    async fn shutdown(&mut self) {}
}

/// The rows of a batch as text; a text of several lines, such as a plan, is a row for each, numbered and with its indentation visible.
fn cells(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::new().with_null("NULL");
    let columns: Vec<_> = batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
    let row = |i: usize| columns.iter().map(|c| c.value(i).to_string()).collect::<Vec<String>>();
    let mut rows = Vec::new();
    for row in (0..batch.num_rows()).map(row) {
        let Some((last, first)) = row.split_last().filter(|(last, _)| last.contains('\n')) else {
            rows.push(row.into_iter().map(|c| if c.is_empty() { "(empty)".into() } else { c }).collect());
            continue;
        };
        for (number, line) in last.trim_end().lines().enumerate() {
            let text = line.trim_start();
            let dashes = "-".repeat(line.len() - text.len());
            let name = if number == 0 { first.join(" ") } else { String::new() };
            rows.push(vec![format!("{name} {:02}){dashes}{text}", number + 1).trim_start().to_owned()]);
        }
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files() {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "sqllogictest"].iter().collect();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let mut runner = Runner::new(|| async { Ok(Session::new()) });
        if std::env::var("ZARR_SQLLOGIC_UPDATE").is_ok() {
            let separator = " ";
            runner
                .update_test_file(
                    &file,
                    separator,
                    sqllogictest::default_validator,
                    sqllogictest::default_normalizer,
                    sqllogictest::default_column_validator,
                )
                .await
                .unwrap();
        } else {
            runner.run_file_async(&file).await.unwrap_or_else(|e| panic!("{}", e.display(false)));
        }
    }
}
