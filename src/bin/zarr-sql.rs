//! `zarr-sql`: SQL over Zarr stores from the command line.

#[path = "zarr-sql/output.rs"]
mod output;

use std::collections::HashSet;
use std::error::Error as _;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use datafusion::common::format::ExplainFormat;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::dialect::dialect_from_str;
use datafusion_zarr::{Error, ZarrOptions, ZarrScanExec, ZarrTable, explain_error, register_zarr};

use output::Format;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// SQL over Zarr stores.
///
/// A store is a table by its location (SELECT … FROM 'store.zarr'), by CREATE EXTERNAL TABLE … STORED AS ZARR, or as an argument, under
/// its name without .zarr. Without -c and -f, statements are read from standard input. Rows go to standard output, all else to standard
/// error.
///
///     zarr-sql -c "SELECT max(t2m) FROM 'era5.zarr' WHERE lat > 60"
///     zarr-sql era5.zarr -c 'DESCRIBE era5' -c 'SELECT count(*) FROM era5'
///     zarr-sql --format csv -f queries.sql > rows.csv
///
/// Exit status: 0, 1 where a statement failed, 2 for wrong usage.
#[derive(Debug, Parser)]
#[command(name = "zarr-sql", version, verbatim_doc_comment)]
struct Arguments {
    /// Run these statements; may be repeated
    #[arg(short, long, value_name = "SQL")]
    command: Vec<String>,

    /// Run the statements of this file, before those of -c; may be repeated
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,

    /// Print neither the number of rows nor the time
    #[arg(short, long)]
    quiet: bool,

    /// How to print rows; automatic is table
    #[arg(long, value_enum, default_value = "automatic")]
    format: Format,

    /// Stores that become tables
    #[arg(value_name = "STORE")]
    stores: Vec<String>,
}

/// Why no further statement is run.
#[derive(Debug)]
enum Stop {
    /// Nobody reads the output any more.
    BrokenPipe,
    Failed(DataFusionError),
}

impl<E: Into<DataFusionError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(wrong) = arguments.check() {
        let _ = Arguments::command().error(ErrorKind::ValueValidation, wrong).print();
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.map_err(Stop::from).and_then(|runtime| runtime.block_on(run(&arguments)));
    match done {
        Ok(()) | Err(Stop::BrokenPipe) => ExitCode::SUCCESS,
        Err(Stop::Failed(error)) => {
            let _ = writeln!(io::stderr(), "error: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

impl Arguments {
    fn reads_stdin(&self) -> bool {
        self.command.is_empty() && self.file.is_empty()
    }

    /// What clap cannot know.
    fn check(&self) -> Result<(), String> {
        let mut seen = HashSet::new();
        if let Some(name) = self.stores.iter().map(|s| table_name(s)).find(|n| !seen.insert(n.clone())) {
            return Err(format!("two stores would be the table `{name}`; name one with CREATE EXTERNAL TABLE"));
        }
        if self.reads_stdin() && io::stdin().is_terminal() {
            return Err("there is no statement; give one as in: zarr-sql -c \"SELECT * FROM 'x.zarr' LIMIT 9\"".into());
        }
        Ok(())
    }
}

async fn run(arguments: &Arguments) -> Result<(), Stop> {
    let ctx = session()?;
    for store in &arguments.stores {
        let table = ZarrTable::open_with(store, &ZarrOptions::default(), &ctx.runtime_env()).await?;
        ctx.register_table(TableReference::bare(table_name(store)), Arc::new(table))?;
    }
    let shell = Shell { ctx, format: arguments.format, quiet: arguments.quiet };
    for file in &arguments.file {
        let unreadable = |e| DataFusionError::Execution(format!("cannot read `{}`: {e}", file.display()));
        shell.run(&std::fs::read_to_string(file).map_err(unreadable)?).await?;
    }
    for sql in &arguments.command {
        shell.run(sql).await?;
    }
    if arguments.reads_stdin() {
        shell.run(&io::read_to_string(io::stdin())?).await?;
    }
    Ok(())
}

/// A session that reads Zarr, and tables of other files by their path.
fn session() -> Result<SessionContext, DataFusionError> {
    let mut config = SessionConfig::from_env()?.with_information_schema(true);
    let options = config.options_mut();
    options.sql_parser.enable_ident_normalization = false;
    // As in datafusion-cli, the environment has the last word.
    let is_set = |name| std::env::var_os(name).is_some();
    if !is_set("DATAFUSION_FORMAT_NULL") {
        options.format.null = "NULL".into();
    }
    if !is_set("DATAFUSION_EXPLAIN_FORMAT") {
        options.explain.format = ExplainFormat::Tree;
    }
    let ctx = SessionContext::new_with_config(config).enable_url_table();
    register_zarr(&ctx)?;
    Ok(ctx)
}

/// The last part of a location as an identifier: `a/era5-land.zarr` → `era5_land`.
fn table_name(location: &str) -> String {
    let file = location.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = file.strip_suffix(".zarr").unwrap_or(file);
    let name: String = stem.chars().map(|c| if c.is_alphabetic() || c.is_ascii_digit() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_alphabetic() || c == '_') { name } else { format!("_{name}") }
}

struct Shell {
    ctx: SessionContext,
    format: Format,
    quiet: bool,
}

impl Shell {
    /// Run the statements of `sql`, none of them where one is no SQL.
    async fn run(&self, sql: &str) -> Result<(), Stop> {
        for statement in self.parse(sql)? {
            match Box::pin(self.execute(statement)).await {
                Err(Stop::Failed(error)) => return Err(Stop::Failed(explain_error(&self.ctx, error).await)),
                other => other?,
            }
        }
        Ok(())
    }

    fn parse(&self, sql: &str) -> Result<impl IntoIterator<Item = Statement>, DataFusionError> {
        let config = self.ctx.copied_config();
        let options = &config.options().sql_parser;
        let unknown = || DataFusionError::Plan(format!("there is no SQL dialect `{}`", options.dialect));
        let dialect = dialect_from_str(options.dialect).ok_or_else(unknown)?;
        let parser = DFParserBuilder::new(sql).with_dialect(dialect.as_ref());
        parser.with_recursion_limit(options.recursion_limit.get()).build()?.parse_statements()
    }

    async fn execute(&self, statement: Statement) -> Result<(), Stop> {
        let start = Instant::now();
        let plan = self.ctx.state().statement_to_plan(statement).await?;
        let frame = self.ctx.execute_logical_plan(plan).await?;
        let config = self.ctx.copied_config();
        let options = (&config.options().format).try_into()?;
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        let rows = output::print(self.format, execute_stream(Arc::clone(&plan), task)?, &options).await?;
        if !self.quiet {
            hint(&plan);
        }
        if !self.quiet && io::stderr().is_terminal() {
            let seconds = start.elapsed().as_secs_f64();
            let _ = writeln!(io::stderr(), "{rows} row(s) fetched. Elapsed {seconds:.3} seconds.");
        }
        Ok(())
    }
}

/// Say on standard error which condition left nothing to read.
fn hint(plan: &Arc<dyn ExecutionPlan>) {
    if let Some(reason) = plan.downcast_ref::<ZarrScanExec>().and_then(ZarrScanExec::selects_nothing) {
        let _ = writeln!(io::stderr(), "{reason}");
    }
    plan.children().into_iter().for_each(hint);
}

/// What an error says, without the names of the layers that it came through; one line, but for our own lists of statements.
fn sentence(error: &DataFusionError) -> String {
    if let DataFusionError::Context(outer, inner) = error {
        return format!("{}: {}", one_line(outer), sentence(inner));
    }
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(ours) = cause.downcast_ref::<Error>() {
            return ours.to_string();
        } else if let Some(inner) = cause.downcast_ref::<DataFusionError>() {
            return sentence(inner);
        }
        source = cause.source();
    }
    match error {
        DataFusionError::SQL(error, _) => one_line(&error.to_string()),
        other => one_line(&other.message()),
    }
}

fn one_line(text: &str) -> String {
    let message = text.split(DataFusionError::BACK_TRACE_SEP).next().unwrap_or_default();
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
