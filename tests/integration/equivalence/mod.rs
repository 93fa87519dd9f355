//! Equivalence: random stores and queries give the rows that reading and decoding every cell gives.
//!
//! A failure prints the seed of its case and how to run it alone. By hand:
//! `ZARR_EQUIVALENCE_CASES=20000 cargo test --release --test integration equivalence`.

mod calendar;
mod element;
mod generate;
mod layout;
mod pruning;
mod query;
mod reference;
mod time_axis;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_zarr::{ZarrOptions, ZarrTable};
use fastrand::Rng;
use futures::FutureExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::cell::rows;
use generate::Dataset;
use query::Query;
use reference::Table;

/// Cases of a test run.
const CASES: u64 = 256;
/// Queries over each store.
const QUERIES: usize = 8;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

async fn open(dataset: &Dataset) -> Result<Arc<ZarrTable>, String> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    for (key, bytes) in &dataset.objects {
        store.put(&Path::parse(format!("s/{key}")).unwrap(), bytes.clone().into()).await.unwrap();
    }
    let mut options = ZarrOptions::default();
    for (key, value) in &dataset.options {
        options = options.with(key, value).unwrap();
    }
    let table = ZarrTable::open_in(store, Path::from("s"), &options).await;
    table.map(Arc::new).map_err(|e| format!("cannot be opened: {e}"))
}

fn check_schema(zarr: &ZarrTable, table: &Table) -> Result<(), String> {
    let schema = zarr.schema();
    let got: Vec<_> = schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect();
    if got == table.columns {
        Ok(())
    } else {
        Err(format!("got the columns\n      {got:?}, expected\n      {:?}", table.columns))
    }
}

/// Run the case of a seed; what is wrong, if anything is.
async fn case(seed: u64) -> Result<(), String> {
    let mut rng = Rng::with_seed(seed);
    let dataset = generate::dataset(&mut rng);
    let table = reference::table(&dataset);
    let partitions = [1, 2, 7][rng.usize(..3)];
    let large = table.rows.len() > 2000;
    let batch_size = if large { [61, 1000, 8192] } else { [1, 3, 8192] }[rng.usize(..3)];
    let queries = if large { QUERIES / 2 } else { QUERIES };
    let queries: Vec<Query> =
        std::iter::once(Query::all()).chain((0..queries).map(|_| Query::draw(&mut rng, &table))).collect();
    let explain = |what: String| {
        format!("{what}\n    target_partitions {partitions}, batch_size {batch_size}\n{}", describe(&dataset))
    };

    let zarr = open(&dataset).await.map_err(explain)?;
    check_schema(&zarr, &table).map_err(explain)?;
    let ctx = SessionContext::new_with_config(
        SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch_size),
    );
    ctx.register_table("t", zarr).unwrap();
    for query in queries {
        let sql = query.sql(&table);
        let answer = async { ctx.sql(&sql).await?.collect().await }.await;
        let outcome = match answer {
            Err(e) => Err(format!("got the error: {e}")),
            Ok(batches) => query.check(&table, &rows(&batches)),
        };
        outcome.map_err(|e| explain(format!("{sql}\n    {e}")))?;
    }
    Ok(())
}

/// The store and its options, to look at.
fn describe(dataset: &Dataset) -> String {
    let documents = dataset
        .objects
        .iter()
        .filter(|(key, _)| key.ends_with("zarr.json") || key.ends_with(".zarray") || key.ends_with(".zattrs"));
    let documents: Vec<String> =
        documents.map(|(key, bytes)| format!("    {key}: {}", String::from_utf8_lossy(bytes))).collect();
    format!("    options {:?}\n{}", dataset.options, documents.join("\n"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_stores_and_queries() {
    let cases = setting("ZARR_EQUIVALENCE_CASES", CASES);
    let first = setting("ZARR_EQUIVALENCE_SEED", 1);
    let mut failures = Vec::new();
    for seed in first..first.saturating_add(cases) {
        let outcome = AssertUnwindSafe(case(seed)).catch_unwind().await;
        let failure = match outcome {
            Ok(Ok(())) => continue,
            Ok(Err(failure)) => failure,
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied());
                format!("panicked: {}", text.unwrap_or("with something that is no text"))
            }
        };
        eprintln!(
            "seed {seed}: {failure}\n    again: ZARR_EQUIVALENCE_SEED={seed} ZARR_EQUIVALENCE_CASES=1 cargo test --test integration equivalence"
        );
        failures.push(seed);
        if failures.len() == 10 {
            break;
        }
    }
    assert!(failures.is_empty(), "seeds {failures:?} fail");
}
