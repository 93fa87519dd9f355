//! The ways to name a store in SQL, and what they say when they cannot.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_zarr::{ZarrTable, explain_error, register_zarr};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::{demo, fixtures};

fn store(name: &str) -> String {
    fixtures().join("stores").join(name).display().to_string()
}

fn session() -> SessionContext {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_information_schema(true));
    register_zarr(&ctx).unwrap();
    ctx
}

/// Sessions that read other files by their path as well, registered in either order, and twice.
fn sessions() -> [(&'static str, SessionContext); 3] {
    let before = SessionContext::new();
    register_zarr(&before).unwrap();
    let after = SessionContext::new().enable_url_table();
    register_zarr(&after).unwrap();
    let twice = before.clone().enable_url_table();
    register_zarr(&twice).unwrap();
    register_zarr(&twice).unwrap();
    [
        ("zarr, then url tables", before.enable_url_table()),
        ("url tables, then zarr", after),
        ("zarr around both", twice),
    ]
}

async fn query(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>, DataFusionError> {
    ctx.sql(sql).await?.collect().await
}

/// The rows as a table, without borders.
async fn rows(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let batches = query(ctx, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let table = pretty_format_batches(&batches).unwrap().to_string();
    let cells = |line: &str| {
        line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    };
    table.lines().filter(|l| !l.starts_with('+')).skip(1).map(cells).collect()
}

async fn error(ctx: &SessionContext, sql: &str) -> String {
    match query(ctx, sql).await {
        Ok(_) => panic!("{sql} gives rows"),
        Err(e) => explain_error(ctx, e).await.to_string(),
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

const GROUP: &str = r#"{"zarr_format": 3, "node_type": "group"}"#;
const ARRAY: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16", "fill_value": 7,
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "dimension_names": ["x"]}"#;

#[tokio::test]
async fn a_path_is_a_table_in_either_order() {
    for (order, ctx) in sessions() {
        let air = demo();
        assert_eq!(
            rows(&ctx, &format!("SELECT count(*), min(air), max(air) FROM '{air}'")).await,
            ["26500 | 226.1 | 305.1"],
            "{order}"
        );
        assert_eq!(
            rows(
                &ctx,
                &format!("SELECT a.air FROM '{air}/' a JOIN '{air}' b USING (time, lat, lon) ORDER BY 1 LIMIT 1")
            )
            .await,
            ["226.1"],
            "{order}"
        );
        let columns = query(&ctx, &format!("SELECT * FROM '{air}' LIMIT 1")).await.unwrap();
        let columns = columns[0].schema();
        assert_eq!(
            columns.fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(),
            ["time", "lat", "lon", "air"],
            "{order}"
        );
    }
}

#[tokio::test]
async fn a_path_may_end_in_a_group_or_an_array() {
    let ctx = session();
    let group = store("goes.zarr/era1");
    let option = format!("SELECT count(*) FROM read_zarr('{}', 'group=era1')", store("goes.zarr"));
    assert_eq!(rows(&ctx, &format!("SELECT count(*) FROM '{group}'")).await, rows(&ctx, &option).await);
    assert_eq!(rows(&ctx, &format!("SELECT count(air) FROM '{}/air'", demo())).await, ["26500"]);
    let message = error(&ctx, &format!("SELECT * FROM '{}'", store("goes.zarr/era3"))).await;
    assert!(message.contains("it has no group `era3`") && message.contains("`era1`, `era2`"), "{message}");
}

#[tokio::test]
async fn a_group_of_groups_lists_statements_that_run() {
    let ctx = session();
    let message = error(&ctx, &format!("SELECT * FROM '{}'", store("goes.zarr"))).await;
    let statements: Vec<&str> = message.lines().filter_map(|l| l.strip_prefix("  ")).collect();
    assert_eq!(statements.len(), 2, "{message}");
    for statement in statements {
        assert!(!rows(&ctx, statement).await.is_empty(), "{statement}");
    }
}

#[tokio::test]
async fn other_names_are_left_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let csv = "a,b\n1,2\n";
    write(&dir.path().join("t.csv"), csv);
    write(&dir.path().join("folder.zarr/part.csv"), csv);
    let dir = dir.path().display();
    for (order, ctx) in sessions() {
        for file in ["t.csv", "folder.zarr/part.csv"] {
            assert_eq!(rows(&ctx, &format!("SELECT a, b FROM '{dir}/{file}'")).await, ["1 | 2"], "{order}");
        }
        for name in ["nothing", ".zarr", "x.zarrs"] {
            let message = error(&ctx, &format!("SELECT * FROM '{name}'")).await;
            assert!(message.contains("not found") && !message.contains("Zarr"), "{order}: {message}");
        }
    }
    // A table of that name comes first, and a store is not asked for.
    let ctx = session();
    ctx.register_table("no/such.zarr", Arc::new(ZarrTable::open(&demo()).await.unwrap())).unwrap();
    assert_eq!(rows(&ctx, "SELECT count(*) FROM 'no/such.zarr'").await, ["26500"]);
    assert!(ctx.deregister_table("no/such.zarr").unwrap().is_some());
}

#[tokio::test]
async fn no_store_is_said_so() {
    for (order, ctx) in sessions() {
        let message = error(&ctx, "SELECT * FROM '/no/such.zarr/group'").await;
        assert!(
            message.contains("no Zarr store at `/no/such.zarr/group`: the path does not exist"),
            "{order}: {message}"
        );
        let message = error(&ctx, "SELECT * FROM 's3://bucket/x.zarr'").await;
        assert!(message.contains("no object store is registered for `s3://bucket"), "{order}: {message}");
    }
    let empty = tempfile::Builder::new().suffix(".zarr").tempdir().unwrap();
    let message = error(&session(), &format!("SELECT * FROM '{}'", empty.path().display())).await;
    assert!(message.contains("there is neither `zarr.json` nor `.zgroup`"), "{message}");
}

/// Never the rows that a JSON reader makes of `zarr.json`, and never "not found".
#[tokio::test]
async fn a_store_that_does_not_open_says_why() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("broken.zarr/zarr.json"), r#"{"zarr_format": 3, "node_type": "thing"}"#);
    write(&dir.path().join("bare.zarr/zarr.json"), GROUP);
    write(
        &dir.path().join("hidden.zarr/zarr.json"),
        &GROUP.replace("group\"", r#"group", "consolidated_metadata": {"metadata": {}}"#),
    );
    write(&dir.path().join("hidden.zarr/late/zarr.json"), GROUP);
    let dir = dir.path().display();
    for (order, ctx) in sessions() {
        for (name, reason) in [
            ("broken.zarr", "neither `group` nor `array`"),
            ("bare.zarr", "has no data variable"),
            ("hidden.zarr/late", "has no group `late`"),
        ] {
            let message = error(&ctx, &format!("SELECT * FROM '{dir}/{name}'")).await;
            assert!(message.contains(reason), "{order}, {name}: {message}");
        }
    }
}

#[tokio::test]
async fn stores_behind_the_session() {
    let memory = InMemory::new();
    memory.put(&"s.zarr/zarr.json".into(), GROUP.into()).await.unwrap();
    memory.put(&"s.zarr/a/zarr.json".into(), ARRAY.into()).await.unwrap();
    let memory: Arc<dyn ObjectStore> = Arc::new(memory);
    let ctx = session();
    ctx.register_object_store(&"memory:///".parse().unwrap(), memory);
    assert_eq!(rows(&ctx, "SELECT sum(a) FROM 'memory:///s.zarr'").await, ["28"]);
    assert_eq!(rows(&ctx, "SELECT sum(a) FROM read_zarr('memory:///s.zarr')").await, ["28"]);
    query(&ctx, "CREATE EXTERNAL TABLE t STORED AS ZARR LOCATION 'memory:///s.zarr'").await.unwrap();
    assert_eq!(rows(&ctx, "SELECT sum(a) FROM t").await, ["28"]);
}

#[tokio::test]
async fn external_tables_take_options() {
    let ctx = session();
    let create = |table: &str, options: &str| {
        format!("CREATE EXTERNAL TABLE {table} STORED AS ZARR LOCATION '{}' OPTIONS ({options})", demo())
    };
    for (i, options) in [
        "mask_and_scale 'false'",
        "'mask_and_scale' 'false'",
        "'zarr.mask_and_scale' 'false'",
        "'format.mask_and_scale' 'false'",
        "Mask_And_Scale false",
    ]
    .iter()
    .enumerate()
    {
        query(&ctx, &create(&format!("t{i}"), options)).await.unwrap();
        assert_eq!(
            rows(&ctx, &format!("SELECT max(air), arrow_typeof(max(air)) FROM t{i}")).await,
            ["30510 | Int16"],
            "{options}"
        );
    }
    for (options, reason) in [
        ("mask_and_scal 'false'", "option `mask_and_scal`: there is no such option, did you mean `mask_and_scale`?"),
        ("'zarr.zarr_format' '4'", "option `zarr_format`: `4` is not 2, 3 or auto"),
        ("dims 'time', 'zarr.dims' 'lat'", "option `dims`: it stands twice"),
        ("dims 'time,depth'", "no data variable has the dimensions `time,depth`"),
        ("variables 'water'", "there is no data variable `water`; there are `air`"),
    ] {
        let message = error(&ctx, &create("bad", options)).await;
        assert!(message.contains(reason), "{options}: {message}");
    }
}

#[tokio::test]
async fn external_tables_are_made_as_others_are() {
    let ctx = session();
    let air = demo();
    let create = |head: &str| format!("CREATE {head} STORED AS ZARR LOCATION '{air}'");
    query(&ctx, &create("EXTERNAL TABLE air")).await.unwrap();
    assert!(error(&ctx, &create("EXTERNAL TABLE air")).await.contains("already exists"));
    query(&ctx, &create("EXTERNAL TABLE IF NOT EXISTS air")).await.unwrap();
    query(&ctx, &format!("{} OPTIONS (mask_and_scale false)", create("OR REPLACE EXTERNAL TABLE air"))).await.unwrap();
    assert_eq!(rows(&ctx, "SELECT max(air) FROM air").await, ["30510"]);
    assert!(error(&ctx, &create("EXTERNAL TEMPORARY TABLE other")).await.contains("Temporary"));
    let shown =
        rows(&ctx, "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public'").await;
    assert_eq!(shown, ["air | BASE TABLE"]);
    assert!(rows(&ctx, "SHOW CREATE TABLE air").await[0].contains("STORED AS ZARR"));
    assert_eq!(rows(&ctx, "DESCRIBE air").await[1], "lat | Float32 | NO");
    query(&ctx, "DROP TABLE air").await.unwrap();
    assert!(error(&ctx, "SELECT * FROM air").await.contains("not found"));
}

#[tokio::test]
async fn clauses_that_are_not_honoured_are_refused() {
    let ctx = session();
    let air = demo();
    for (statement, clause) in [
        (format!("CREATE EXTERNAL TABLE t (lat DOUBLE) STORED AS ZARR LOCATION '{air}'"), "declared columns"),
        (format!("CREATE EXTERNAL TABLE t STORED AS ZARR PARTITIONED BY (time) LOCATION '{air}'"), "PARTITIONED BY"),
        (
            format!("CREATE EXTERNAL TABLE t (time TIMESTAMP) STORED AS ZARR WITH ORDER (time) LOCATION '{air}'"),
            "declared columns",
        ),
        (format!("CREATE UNBOUNDED EXTERNAL TABLE t STORED AS ZARR LOCATION '{air}'"), "UNBOUNDED"),
        (
            format!("CREATE EXTERNAL TABLE t (lat DOUBLE PRIMARY KEY) STORED AS ZARR LOCATION '{air}'"),
            "declared columns",
        ),
        (format!("CREATE EXTERNAL TABLE t STORED AS ZARR LOCATION ('{air}', '{air}')"), "several locations"),
    ] {
        let message = error(&ctx, &statement).await;
        assert!(message.contains("does not take") && message.contains(clause), "{statement}: {message}");
    }
}

#[tokio::test]
async fn an_ambiguous_store_prints_statements_that_run() {
    let ctx = session();
    for name in ["arco.zarr", "pyramid_named.zarr", "unnamed_pair.zarr"] {
        let message = error(&ctx, &format!("SELECT * FROM '{}'", store(name))).await;
        let statements: Vec<&str> = message.lines().filter_map(|l| l.strip_prefix("  SELECT")).collect();
        assert!(statements.len() > 1, "{message}");
        for (i, statement) in statements.iter().enumerate() {
            let (select, options) = statement.split_once("-- ").unwrap();
            let from_function = rows(&ctx, &format!("SELECT{select}")).await;
            let (options, _) = options.split_once(':').unwrap();
            let table = format!("{}_{i}", name.trim_end_matches(".zarr"));
            query(&ctx, &format!("CREATE EXTERNAL TABLE {table} STORED AS ZARR LOCATION '{}' {options}", store(name)))
                .await
                .unwrap();
            assert_eq!(
                rows(&ctx, &format!("SELECT * FROM {table} LIMIT 10")).await,
                from_function,
                "{name}: {statement}"
            );
        }
    }
}

async fn read_zarr_anywhere() {
    let ctx = session();
    let air = demo();
    let sql = format!(
        "SELECT max(a.air) FROM read_zarr('{air}', 'mask_and_scale=false') a, (SELECT count(*) FROM read_zarr('{air}')) b"
    );
    assert_eq!(rows(&ctx, &sql).await, ["30510"]);
    assert_eq!(
        rows(
            &ctx,
            &format!(
                "SELECT arrow_typeof(time) FROM read_zarr('{air}', 'zarr.time_unit = s', 'variables=air') LIMIT 1"
            )
        )
        .await,
        ["Timestamp(s)"]
    );
    assert_eq!(rows(&ctx, &format!("SELECT name FROM zarr_metadata('{air}')")).await, ["air", "lat", "lon", "time"]);
}

#[tokio::test]
async fn functions_run_in_a_current_thread_runtime() {
    read_zarr_anywhere().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn functions_run_in_a_multi_thread_runtime() {
    read_zarr_anywhere().await;
}

#[tokio::test]
async fn functions_take_text_only() {
    let ctx = session();
    for (call, reason) in [
        ("read_zarr()", "read_zarr needs the location of a store; write read_zarr('store.zarr')"),
        (r#"read_zarr("x.zarr")"#, "`x.zarr` is a name and read_zarr takes text in single quotes"),
        ("read_zarr('x.zarr', 1)", "is not text and read_zarr takes text in single quotes"),
        ("read_zarr(NULL)", "is not text"),
        (
            "read_zarr('x.zarr', 'dims')",
            "`dims` is not `key=value`; write read_zarr('store.zarr') or read_zarr('store.zarr', 'dims=time,lat,lon')",
        ),
        ("zarr_metadata('x.zarr', 'dim=time')", "option `dim`: there is no such option, did you mean `dims`?"),
        ("read_zarr('no/such.zarr')", "no Zarr store at `no/such.zarr`: the path does not exist"),
    ] {
        let message = error(&ctx, &format!("SELECT * FROM {call}")).await;
        assert!(message.contains(reason), "{call}: {message}");
    }
}

#[tokio::test]
async fn metadata_lists_every_variable() {
    let ctx = session();
    let columns = "name, role, dims, shape, chunks, shards, dtype, column_type, codecs, units, broadcast, reason";
    let of = |name: &str| format!("SELECT {columns} FROM zarr_metadata('{name}')");
    assert_eq!(
        rows(&ctx, &of(&demo())).await,
        [
            "air | data | time,lat,lon | [20, 25, 53] | [5, 25, 27] |  | int16 | Float64 | bytes, zstd | degK | false |",
            "lat | dimension | lat | [25] | [25] |  | float32 | Float32 | bytes, zstd | degrees_north | false |",
            "lon | dimension | lon | [53] | [53] |  | float32 | Float32 | bytes, zstd | degrees_east | false |",
            "time | dimension | time | [20] | [20] |  | float32 | Timestamp(µs) | bytes, zstd | hours since 1800-01-01 | false |",
        ]
    );
    let roles =
        rows(&ctx, &format!("SELECT name, role, broadcast FROM zarr_metadata('{}') ORDER BY name", store("arco.zarr")))
            .await;
    assert!(
        roles.contains(&"land_sea_mask | fixed field | true".into())
            && roles.contains(&"temperature | data | false".into()),
        "{roles:?}"
    );
    let hidden =
        rows(&ctx, &format!("SELECT name, role FROM zarr_metadata('{}') ORDER BY name", store("goes.zarr/era1"))).await;
    assert!(hidden.contains(&"goes_imager_projection | hidden".into()), "{hidden:?}");
    let left_out = rows(
        &ctx,
        &format!(
            "SELECT name, reason, codecs FROM zarr_metadata('{}') WHERE role = 'left out' ORDER BY name",
            store("codecs_v3.zarr")
        ),
    )
    .await;
    assert!(left_out.iter().any(|l| l.starts_with("grib | codec `gribberish`")), "{left_out:?}");
    let sharded = rows(
        &ctx,
        &format!(
            "SELECT chunks, shards, codecs FROM zarr_metadata('{}') WHERE shards IS NOT NULL LIMIT 1",
            store("shards.zarr")
        ),
    )
    .await;
    assert!(sharded[0].contains("sharding_indexed(bytes"), "{sharded:?}");
    let message = error(&ctx, &of(&store("goes.zarr"))).await;
    assert!(message.contains("its groups have"), "{message}");
}

#[tokio::test]
async fn a_column_that_was_left_out_says_why() {
    let ctx = session();
    let codecs = store("codecs_v3.zarr");
    let reason = "`grib` cannot be queried: codec `gribberish` is not supported";
    query(&ctx, &format!("CREATE EXTERNAL TABLE codecs STORED AS ZARR LOCATION '{codecs}'")).await.unwrap();
    for from in ["codecs", &format!("'{codecs}'"), &format!("read_zarr('{codecs}')"), "codecs AS c"] {
        for sql in [
            format!("SELECT grib FROM {from}"),
            format!("SELECT count(*) FROM {from} WHERE grib > 1"),
            format!("SELECT max(x) FROM {from} GROUP BY grib"),
        ] {
            let message = error(&ctx, &sql).await;
            assert!(message.starts_with(reason), "{sql}: {message}");
        }
    }
    let message = error(&ctx, &format!("SELECT goes_imager_projection FROM '{}'", store("goes.zarr/era1"))).await;
    assert!(
        message.starts_with("`goes_imager_projection` cannot be queried: bounds and grid mappings are no columns"),
        "{message}"
    );
    let message = error(
        &ctx,
        &format!("SELECT temperature FROM read_zarr('{}', 'dims=time,latitude,longitude')", store("arco.zarr")),
    )
    .await;
    assert!(
        message.starts_with("`temperature` cannot be queried: its dimensions (time, level, latitude, longitude)"),
        "{message}"
    );
    // Other errors stay as they are.
    let message = error(&ctx, &format!("SELECT grib FROM '{}'", demo())).await;
    assert!(message.contains("No field named grib") && !message.contains("cannot be queried"), "{message}");
    assert!(error(&ctx, "SELECT 1 / 0").await.contains("Divide by zero"));
}

/// A schema without tables that counts how often it is asked for one.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

#[async_trait]
impl SchemaProvider for Counting {
    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    async fn table(&self, _name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    }

    fn table_exist(&self, _name: &str) -> bool {
        false
    }
}

/// A failed open need not be remembered as long as no statement asks for a name twice.
#[tokio::test]
async fn a_statement_asks_once() {
    let ctx = session();
    let counting = Arc::new(Counting::default());
    ctx.catalog("datafusion")
        .unwrap()
        .register_schema("public", Arc::clone(&counting) as Arc<dyn SchemaProvider>)
        .unwrap();
    for statement in [
        "SELECT * FROM 'no/x.zarr'",
        "SELECT * FROM 'no/x.zarr' a, 'no/x.zarr' b WHERE a.v IN (SELECT v FROM 'no/x.zarr')",
        "WITH q AS (SELECT * FROM 'no/x.zarr') SELECT * FROM q, 'no/x.zarr'",
        "EXPLAIN SELECT * FROM 'no/x.zarr'",
        "DESCRIBE 'no/x.zarr'",
        "SHOW COLUMNS FROM 'no/x.zarr'",
        "CREATE VIEW v AS SELECT * FROM 'no/x.zarr'",
        "COPY 'no/x.zarr' TO 'no.csv'",
    ] {
        let message = error(&ctx, statement).await;
        assert!(message.contains("no Zarr store at `no/x.zarr`"), "{statement}: {message}");
        assert_eq!(counting.0.swap(0, Ordering::Relaxed), 1, "{statement}");
    }
}
