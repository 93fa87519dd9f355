//! Filters in the scan: what is read for them, what it costs to plan, and the traps that a scan with filters, fetch and order can fall into.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Float64Array, Int64Array, RecordBatch, TimestampMicrosecondArray};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_zarr::{ZarrOptions, ZarrTable, register_zarr};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::json;

use crate::cases::chunks_read;
use crate::cell::rows;
use crate::fixtures;

/// A session of `partitions`, with store `name` of the fixtures as table `t`.
async fn session(name: &str, partitions: usize) -> SessionContext {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(partitions));
    register_zarr(&ctx).unwrap();
    let store = fixtures().join("stores").join(name);
    let table = ZarrTable::open(store.to_str().unwrap()).await.unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
    ctx
}

async fn plan(ctx: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

fn shown(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(false).to_string()
}

/// The rows of a query as text, sorted, and the chunks of data that it read.
async fn answer(ctx: &SessionContext, sql: &str) -> (Vec<String>, usize) {
    let plan = plan(ctx, sql).await;
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    let mut rows: Vec<String> = rows(&batches).iter().map(|r| format!("{r:?}")).collect();
    rows.sort();
    (rows, chunks_read(&plan))
}

/// An array: name, shape, chunk shape, dimensions, fill value.
type Array<'a> = (&'a str, &'a [u64], &'a [u64], &'a [&'a str], f64);

/// An in-memory store of arrays without chunks.
async fn store(arrays: &[Array<'_>]) -> Arc<dyn ObjectStore> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let group = json!({"zarr_format": 3, "node_type": "group"});
    store.put(&Path::from("s/zarr.json"), group.to_string().into()).await.unwrap();
    for (name, shape, chunks, dims, fill) in arrays {
        let array = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float32", "fill_value": if fill.is_nan() { json!("NaN") } else { json!(fill) },
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
            "chunk_key_encoding": {"name": "default"}, "dimension_names": dims,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        });
        store.put(&Path::from(format!("s/{name}/zarr.json")), array.to_string().into()).await.unwrap();
    }
    store
}

async fn put_chunk(store: &Arc<dyn ObjectStore>, key: &str, values: &[f32]) {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    store.put(&Path::from(format!("s/{key}")), bytes.into()).await.unwrap();
}

async fn table_in(store: Arc<dyn ObjectStore>, partitions: usize) -> SessionContext {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(partitions));
    register_zarr(&ctx).unwrap();
    let table = ZarrTable::open_in(store, Path::from("s"), &ZarrOptions::default()).await.unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
    ctx
}

#[tokio::test]
async fn a_join_over_a_limited_subquery_sees_the_limited_rows() {
    for partitions in [1, 3] {
        let ctx = session("ncep.zarr", partitions).await;
        let limited = "(SELECT time, lat, lon FROM t ORDER BY time, lat DESC, lon LIMIT 60)";
        for right in ["lat < 60", "lat > 70 AND lon < 205", "lat = 72.5"] {
            let sql = format!(
                "SELECT count(*) FROM {limited} a JOIN (SELECT DISTINCT lat FROM t WHERE {right}) b ON a.lat = b.lat"
            );
            let (fast, _) = answer(&ctx, &sql).await;
            ctx.sql("SET datafusion.optimizer.enable_dynamic_filter_pushdown = false").await.unwrap();
            assert_eq!(fast, answer(&ctx, &sql).await.0, "{sql}");
            ctx.sql("SET datafusion.optimizer.enable_dynamic_filter_pushdown = true").await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_top_k_over_a_limited_subquery_sees_the_limited_rows() {
    for partitions in [1, 3] {
        let ctx = session("ncep.zarr", partitions).await;
        let limited = "(SELECT time, lat, lon, air FROM t ORDER BY time, lat DESC, lon LIMIT 70)";
        let sql = format!("SELECT air FROM {limited} a ORDER BY air DESC LIMIT 3");
        let max = format!("SELECT max(air), count(*) FROM {limited} a");
        for sql in [sql, max] {
            let (fast, _) = answer(&ctx, &sql).await;
            ctx.sql("SET zarr.pruning = false").await.unwrap();
            assert_eq!(fast, answer(&ctx, &sql).await.0, "{sql}");
            ctx.sql("SET zarr.pruning = true").await.unwrap();
        }
    }
}

#[tokio::test]
async fn one_plan_collected_twice_gives_the_same_rows() {
    let ctx = session("ncep.zarr", 3).await;
    for sql in [
        "SELECT * FROM t WHERE lat BETWEEN 30 AND 50 AND air > 280",
        "SELECT time, air FROM t WHERE time = (SELECT max(time) FROM t) AND lat = 40",
        "SELECT count(*) FROM t a JOIN (SELECT DISTINCT lat FROM t WHERE lat < 40) b ON a.lat = b.lat",
    ] {
        let plan = plan(&ctx, sql).await;
        let twice = [collect(Arc::clone(&plan), ctx.task_ctx()).await, collect(plan, ctx.task_ctx()).await];
        let [first, second] = twice.map(|batches| {
            let mut rows: Vec<String> = rows(&batches.unwrap()).iter().map(|r| format!("{r:?}")).collect();
            rows.sort();
            rows
        });
        assert!(!first.is_empty() && first == second, "{sql}");
    }
}

#[tokio::test]
async fn one_partition_alone_gives_its_share() {
    let ctx = session("ncep.zarr", 4).await;
    for sql in [
        "SELECT time, lat, lon, air FROM t WHERE lat > 30",
        "SELECT lat FROM t WHERE air > 290",
        "SELECT lat, lon FROM t",
    ] {
        let plan = plan(&ctx, sql).await;
        let partitions = plan.output_partitioning().partition_count();
        assert!(partitions > 1, "{}", shown(&plan));
        let mut alone = Vec::new();
        // Last first, each on its own.
        for partition in (0..partitions).rev() {
            let stream = plan.execute(partition, ctx.task_ctx()).unwrap();
            let batches = datafusion::physical_plan::common::collect(stream).await.unwrap();
            alone.extend(rows(&batches).iter().map(|r| format!("{r:?}")));
        }
        alone.sort();
        assert_eq!(alone, answer(&ctx, sql).await.0);
    }
}

#[tokio::test]
async fn a_descending_order_needs_no_sort_unless_a_coordinate_has_null() {
    let ctx = session("ncep.zarr", 2).await;
    // One time a Block, which is whole in latitude.
    let sorted =
        plan(&ctx, "SELECT time, lat, lon, air FROM t WHERE time = '2013-01-01T00:00:00' ORDER BY lat DESC, lon").await;
    let lines = shown(&sorted);
    assert!(lines.contains("ordering=[lat@1 DESC") && !lines.contains("SortExec"), "{lines}");
    let batches = collect(sorted, ctx.task_ctx()).await.unwrap();
    let latitudes: Vec<f64> = rows(&batches).iter().map(|r| r[1].as_ref().unwrap().number().unwrap()).collect();
    assert!(latitudes.is_sorted_by(|a, b| a >= b) && latitudes.len() > 1000, "{latitudes:?}");
    // The descending order that is not there has to be sorted for.
    let ascending = plan(&ctx, "SELECT lat FROM t WHERE time = '2013-01-01T00:00:00' ORDER BY lat").await;
    assert!(shown(&ascending).contains("SortExec"), "{}", shown(&ascending));

    // A coordinate with NaN in it is nullable, has no order, and DESC begins with its NULLs.
    let arrays = store(&[("v", &[3, 4], &[3, 2], &["y", "x"], 1.0), ("y", &[3], &[3], &["y"], 0.0)]).await;
    put_chunk(&arrays, "y/c/0", &[5.0, f32::NAN, 1.0]).await;
    let ctx = table_in(arrays, 2).await;
    let sql = "SELECT y, v FROM t ORDER BY y DESC LIMIT 5";
    let lines = shown(&plan(&ctx, sql).await);
    assert!(lines.contains("SortExec") && !lines.contains("ordering="), "{lines}");
    let batches = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    let first: Vec<bool> = rows(&batches).iter().map(|r| r[0].is_none()).collect();
    assert_eq!(first, [true, true, true, true, false]);
}

#[tokio::test]
async fn variables_that_are_only_projected_are_read_where_a_cell_is_left() {
    let shape: (&[u64], &[u64], &[&str]) = (&[12, 100, 100], &[1, 100, 100], &["time", "y", "x"]);
    let array = |name| (name, shape.0, shape.1, shape.2, 300.0);
    let arrays = store(&[array("t2m"), array("u"), array("v")]).await;
    for step in [3u8, 7] {
        let mut values = vec![300.0; 10_000];
        values[5678] = 321.0 + f32::from(step);
        put_chunk(&arrays, &format!("t2m/c/{step}/0/0"), &values).await;
    }
    for partitions in [1, 2] {
        let ctx = table_in(Arc::clone(&arrays), partitions).await;
        let (rows, chunks) = answer(&ctx, "SELECT time, t2m, u, v FROM t WHERE t2m > 320").await;
        assert_eq!(rows.len(), 2);
        // All of t2m, and of the others two each.
        assert_eq!(chunks, 12 + 4);
        let (_, chunks) = answer(&ctx, "SELECT u FROM t WHERE t2m > 320 AND time BETWEEN 2 AND 5").await;
        assert_eq!(chunks, 4 + 1);
        let (rows, chunks) = answer(&ctx, "SELECT u FROM t WHERE t2m > 400").await;
        assert_eq!((rows.len(), chunks), (0, 12));
        // What a condition on data says about coordinates alone.
        let (_, chunks) =
            answer(&ctx, "SELECT t2m FROM t WHERE (time = 3 AND t2m > 320) OR (time = 9 AND t2m < 0)").await;
        assert_eq!(chunks, 2);
        // A threshold that rises while the scan runs.
        let (rows, _) = answer(&ctx, "SELECT t2m FROM t ORDER BY t2m DESC LIMIT 2").await;
        assert_eq!(rows, ["[Some(Float(324.0))]", "[Some(Float(328.0))]"]);
    }
}

#[tokio::test]
async fn planning_does_not_count_chunks() {
    let mut times = Vec::new();
    for chunks in [10, 1000, 1_000_000, 1_000_000_000] {
        // One dimension of as many chunks, and 20 along another: the coordinates are indices.
        let arrays = store(&[("v", &[chunks, 1000], &[1, 50], &["a", "b"], 1.0)]).await;
        let ctx = table_in(arrays, 2).await;
        for sql in [
            "SELECT a, b, v FROM t WHERE b BETWEEN 20 AND 40 LIMIT 5",
            "SELECT count(*) FROM t WHERE b > 3",
            "SELECT min(a), max(b) FROM t",
            "SELECT v FROM t WHERE a > 5 AND a <> 7 LIMIT 1",
            "SELECT v FROM t WHERE v > 2 AND b = 7 ORDER BY a LIMIT 3",
        ] {
            let start = Instant::now();
            plan(&ctx, sql).await;
            times.push((start.elapsed(), chunks, sql));
        }
    }
    for (elapsed, chunks, sql) in &times {
        eprintln!("{chunks} chunks: {elapsed:?}  {sql}");
    }
    let slowest = times.iter().max().unwrap();
    assert!(slowest.0 < Duration::from_secs(1), "{slowest:?}");
}

/// `v` on 10 × 200 × 200 cells in chunks of one `x`, and the numbers of its dimensions.
async fn cube(partitions: usize) -> SessionContext {
    table_in(store(&[("v", &[10, 200, 200], &[1, 100, 100], &["x", "y", "z"], 1.0)]).await, partitions).await
}

#[tokio::test]
async fn a_join_leaves_the_order_of_a_scan() {
    let join = "FROM t JOIN (VALUES (1, 1), (150, 150), (1, 150)) s(y, z) ON t.y = s.y AND t.z = s.z";
    for partitions in [1, 3] {
        let ctx = cube(partitions).await;
        let batches =
            ctx.sql(&format!("SELECT t.x, t.y, t.z {join} ORDER BY t.x")).await.unwrap().collect().await.unwrap();
        let x: Vec<f64> = rows(&batches).iter().map(|r| r[0].as_ref().unwrap().number().unwrap()).collect();
        assert!(x.len() == 30 && x.is_sorted(), "{x:?}");
        let (counts, chunks) = answer(&ctx, &format!("SELECT DISTINCT count(*) OVER (PARTITION BY x) {join}")).await;
        assert_eq!((counts, chunks), (vec!["[Some(Int(3))]".to_owned()], 0));
    }
}

#[tokio::test]
async fn statistics_are_those_of_what_several_conditions_leave() {
    let ctx = cube(2).await;
    let filter = "(x, y) IN ((1, 1), (2, 2), (3, 4)) AND (x, z) IN ((1, 5))";
    let (found, _) =
        answer(&ctx, &format!("SELECT max(y), min(y), count(*), count(DISTINCT y) FROM t WHERE {filter}")).await;
    assert_eq!(found, ["[Some(Int(1)), Some(Int(1)), Some(Int(1)), Some(Int(1))]"]);
}

#[tokio::test]
async fn what_a_condition_on_data_implies_may_not_fail_alone() {
    let ctx = cube(1).await;
    let (found, _) = answer(&ctx, "SELECT count(*) FROM t WHERE (v > 1e9 AND 10 / x > 1) OR x = 1").await;
    assert_eq!(found, ["[Some(Int(40000))]"]);
}

#[tokio::test]
async fn a_dimension_may_be_longer_than_memory() {
    let ctx = table_in(store(&[("v", &[1 << 60], &[1_000_000], &["x"], 1.0)]).await, 2).await;
    for (sql, want) in [
        ("SELECT x FROM t WHERE x < 5 AND v > 0 LIMIT 1", "[Some(Int(0))]"),
        ("SELECT x, v FROM t WHERE x = 1000000000000000", "[Some(Int(1000000000000000)), Some(Float(1.0))]"),
        ("SELECT count(*) FROM t WHERE x >= 1000", "[Some(Int(1152921504606845976))]"),
        ("SELECT x FROM t WHERE x % 7 = 3 LIMIT 1", "[Some(Int(3))]"),
    ] {
        assert_eq!(answer(&ctx, sql).await.0, [want], "{sql}");
    }
}

/// 9000 × 9000 values are too many to be kept.
#[tokio::test]
async fn a_large_fixed_field_is_evaluated_where_it_is_needed() {
    let arrays = store(&[
        ("v", &[2, 9000, 9000], &[1, 1000, 1000], &["t", "y", "x"], 1.0),
        ("lsm", &[9000, 9000], &[1000, 1000], &["y", "x"], 1.0),
    ]);
    let arrays = arrays.await;
    let mut land = vec![0.0; 1_000_000];
    land[..1000].fill(1.0);
    put_chunk(&arrays, "lsm/c/0/0", &land).await;
    let ctx = table_in(arrays, 2).await;
    let sql = "SELECT count(v) FROM t WHERE lsm > 0.5 AND y < 10 AND x < 10";
    let lines = shown(&plan(&ctx, sql).await);
    assert!(lines.contains("by_block=[lsm > 0.5]"), "{lines}");
    assert_eq!(answer(&ctx, sql).await, (vec!["[Some(Int(20))]".to_owned()], 2));
    // Where no cell is left, no data is read.
    let (found, chunks) = answer(&ctx, "SELECT v FROM t WHERE lsm > 0.5 AND y BETWEEN 5 AND 10 AND x < 10").await;
    assert_eq!((found.len(), chunks), (0, 0));
}

#[tokio::test]
async fn explain_analyze_counts_what_was_read() {
    let ctx = cube(1).await;
    let text = answer(&ctx, "EXPLAIN ANALYZE SELECT v FROM t WHERE x = 3 AND y < 50").await.0.concat();
    for count in ["chunks_read=2", "bytes_read=0", "requests=0", "decode_time=", "output_rows="] {
        assert!(text.contains(count), "{count}: {text}");
    }
}

/// DataFusion 55.2 would narrow the scan to what the first of these needs.
#[tokio::test]
async fn aggregates_beside_min_and_max_see_all_rows() {
    let arrays = store(&[("v", &[40, 2], &[1, 2], &["y", "x"], f64::NAN)]).await;
    for (y, value) in [(0u8, 5.0), (1, 1.0), (20, -30.0), (30, 40.0), (39, 3.0)] {
        put_chunk(&arrays, &format!("v/c/{y}/0"), &[value, f32::NAN]).await;
    }
    for (registers, partitions) in [(true, 1), (true, 2), (false, 1), (false, 2)] {
        let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(2);
        let ctx = SessionContext::new_with_config(config);
        if registers {
            register_zarr(&ctx).unwrap();
        }
        let table = ZarrTable::open_in(Arc::clone(&arrays), Path::from("s"), &ZarrOptions::default()).await.unwrap();
        ctx.register_table("t", Arc::new(table)).unwrap();
        for (sql, want) in [
            ("SELECT min(v), max(v) FROM t", "[Some(Float(-30.0)), Some(Float(40.0))]"),
            ("SELECT max(v), min(abs(v)) FROM t", "[Some(Float(40.0)), Some(Float(1.0))]"),
            (
                "SELECT min(v), max(abs(v)), max(-v) FROM t",
                "[Some(Float(-30.0)), Some(Float(40.0)), Some(Float(30.0))]",
            ),
        ] {
            assert_eq!(answer(&ctx, sql).await.0, [want], "{sql} registers: {registers}, partitions: {partitions}");
        }
    }
}

/// Chunks of a local store that need no decoding are tested for NaN while they are read; those of other stores after.
#[tokio::test]
async fn uncompressed_chunks_have_the_same_nulls_in_files_and_in_memory() {
    // A chunk longer than what is read at once, without NaN, with one at the end, with one at the start.
    let arrays = store(&[("v", &[3, 100_000], &[1, 100_000], &["y", "x"], 0.0)]).await;
    let folder = tempfile::tempdir().unwrap();
    for (y, nan) in [(0, None), (1, Some(99_999usize)), (2, Some(0))] {
        let mut values = vec![1.5; 100_000];
        if let Some(at) = nan {
            values[at] = f32::NAN;
        }
        put_chunk(&arrays, &format!("v/c/{y}/0"), &values).await;
    }
    for key in ["zarr.json", "v/zarr.json", "v/c/0/0", "v/c/1/0", "v/c/2/0"] {
        let bytes = arrays.get(&Path::from(format!("s/{key}"))).await.unwrap().bytes().await.unwrap();
        let file = folder.path().join(key);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    }
    let local = SessionContext::new();
    let table = ZarrTable::open(folder.path().to_str().unwrap()).await.unwrap();
    local.register_table("t", Arc::new(table)).unwrap();
    let memory = table_in(arrays, 1).await;
    let sql = "SELECT y, x FROM t WHERE v IS NULL";
    let want = ["[Some(Int(1)), Some(Int(99999))]", "[Some(Int(2)), Some(Int(0))]"];
    assert_eq!(answer(&local, sql).await.0, want);
    assert_eq!(answer(&memory, sql).await.0, want);
}

#[tokio::test]
async fn both_zeros_are_zero() {
    let arrays = store(&[("v", &[5, 3], &[5, 3], &["y", "x"], 1.0), ("y", &[5], &[5], &["y"], 0.0)]).await;
    put_chunk(&arrays, "y/c/0", &[-1.0, -0.0, 0.0, 1.0, 2.0]).await;
    let ctx = table_in(arrays, 1).await;
    // Enough comparisons with one column that its values are sorted first.
    let branch = |i: usize| format!("(y = {} AND x = {})", i % 3, i % 2);
    let filter: Vec<String> = (0..20).map(branch).collect();
    let sql = format!("SELECT count(*) FROM t WHERE {}", filter.join(" OR "));
    assert_eq!(answer(&ctx, &sql).await.0, ["[Some(Int(8))]"]);
}

/// A thousand places of the store of 10^12 cells: (time, y, x).
fn stations() -> Vec<(i64, f64, i64)> {
    let start = 946_684_800_000_000;
    let place = |i: i64| {
        (
            start + 60_000_000 * (i * 997 % 1_000_000),
            -124.75 + 0.25 * f64::from(i32::try_from(i * 7 % 1000).unwrap()),
            i * 13 % 1000,
        )
    };
    (0..1000).map(place).collect()
}

#[tokio::test]
async fn a_thousand_stations_meet_a_store_of_a_million_million_cells() {
    let ctx = session("huge.zarr", 2).await;
    let places = stations();
    let tuples: Vec<String> = places
        .iter()
        .map(|(t, y, x)| {
            let time = arrow::temporal_conversions::timestamp_us_to_datetime(*t).unwrap();
            format!("('{time:?}', '{y:?}', {x})")
        })
        .collect();
    let points: Vec<String> = places
        .iter()
        .map(|(t, y, x)| {
            let time = arrow::temporal_conversions::timestamp_us_to_datetime(*t).unwrap();
            format!("(time = '{time:?}' AND y = {y:?} AND x = {x})")
        })
        .collect();
    let batch = RecordBatch::try_from_iter([
        ("time", Arc::new(TimestampMicrosecondArray::from_iter_values(places.iter().map(|p| p.0))) as _),
        ("y", Arc::new(Float64Array::from_iter_values(places.iter().map(|p| p.1))) as _),
        ("x", Arc::new(Int64Array::from_iter_values(places.iter().map(|p| p.2))) as _),
    ]);
    ctx.register_batch("stations", batch.unwrap()).unwrap();
    for (how, sql) in [
        ("IN", format!("SELECT time, y, x, v FROM t WHERE (time, y, x) IN ({})", tuples.join(", "))),
        ("OR", format!("SELECT time, y, x, v FROM t WHERE {}", points.join(" OR "))),
        (
            "join",
            "SELECT t.time, t.y, t.x, t.v FROM stations s JOIN t ON t.time = s.time AND t.y = s.y AND t.x = s.x"
                .to_owned(),
        ),
    ] {
        let start = Instant::now();
        let (rows, chunks) = answer(&ctx, &sql).await;
        let elapsed = start.elapsed();
        eprintln!("{how}: {} rows, {chunks} chunks, {elapsed:?}", rows.len());
        assert_eq!(rows.len(), 1000, "{how}");
        assert!(chunks <= 1000, "{how}: {chunks} chunks");
        // DataFusion takes its time over a thousand branches of OR, and machines differ.
        assert!(elapsed < Duration::from_secs(if how == "OR" { 60 } else { 10 }), "{how}: {elapsed:?}");
    }
    let joined = plan(&ctx, "SELECT t.v FROM stations s JOIN t ON t.time = s.time AND t.y = s.y AND t.x = s.x").await;
    assert!(shown(&joined).contains("dynamic="), "{}", shown(&joined));
}
