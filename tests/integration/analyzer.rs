//! What the analyzer rule makes of queries: literals, dates of other calendars, nearest values, names.
//!
//! Expected values are those of the fixtures, which xarray and cftime gave, or of `DataFusion`'s own functions on a table that is not Zarr.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::MemorySchemaProvider;
use datafusion::common::DataFusionError;
use datafusion::datasource::MemTable;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::{SessionConfig, SessionContext, col, lit};
use datafusion_zarr::{ZarrOptions, ZarrTable, register_zarr};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::fixtures;

/// Table, store, options.
const TABLES: [(&str, &str, &str); 9] = [
    ("air", "ncep.zarr", ""),
    ("tenths", "tenths.zarr", ""),
    ("seam", "seam.zarr", ""),
    ("curved", "curvilinear.zarr", ""),
    ("far", "cmip6_2300.zarr", ""),
    ("standard", "calendars.zarr", "OPTIONS (group 'standard', dims 'time,y')"),
    ("noleap", "calendars.zarr", "OPTIONS (group 'noleap', dims 'time,y')"),
    ("d360", "calendars.zarr", "OPTIONS (group 'd360', dims 'time,y')"),
    ("ids", "coordinates.zarr", "OPTIONS (dims 'id,depth')"),
];

async fn session() -> SessionContext {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_information_schema(true));
    register_zarr(&ctx).unwrap();
    create_tables(&ctx).await;
    ctx
}

async fn create_tables(ctx: &SessionContext) {
    for (table, store, options) in TABLES {
        let location = fixtures().join("stores").join(store);
        let location = location.display();
        run(ctx, &format!("CREATE EXTERNAL TABLE {table} STORED AS ZARR LOCATION '{location}' {options}")).await;
    }
}

async fn query(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>, DataFusionError> {
    ctx.sql(sql).await?.collect().await
}

async fn run(ctx: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    query(ctx, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// The rows, cells apart by a comma.
async fn rows(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let table = pretty_format_batches(&run(ctx, sql).await).unwrap().to_string();
    let cells = |line: &str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(", ");
    table.lines().filter(|l| !l.starts_with('+')).skip(1).map(cells).collect()
}

async fn error(ctx: &SessionContext, sql: &str) -> String {
    match query(ctx, sql).await {
        Ok(batches) => panic!("{sql} gives\n{}", pretty_format_batches(&batches).unwrap()),
        Err(e) => e.to_string(),
    }
}

#[tokio::test]
async fn float32_columns_are_compared_in_float32_everywhere() {
    let ctx = session().await;
    run(&ctx, "CREATE VIEW v AS SELECT lat AS north, lon, t2m FROM tenths").await;
    // One latitude has 4 times × 16 longitudes.
    for condition in [
        "lat = 40.1",
        "40.1 = lat",
        "lat IN (40.1, 99)",
        "lat BETWEEN 40.1 AND 40.1",
        "40.1 BETWEEN lat AND lat",
        "lat IS NOT DISTINCT FROM 40.1",
        "NOT lat <> 40.1",
        "lat >= 40.1 AND lat <= 40.1",
        "CASE lat WHEN 40.1 THEN true ELSE false END",
        "CASE WHEN lat = 40.1 THEN true ELSE false END",
        "(lat = 40.1) = true",
    ] {
        assert_eq!(rows(&ctx, &format!("SELECT count(*) FROM tenths WHERE {condition}")).await, ["64"], "{condition}");
        let filter = format!("SELECT count(*) FILTER (WHERE {condition}) FROM tenths");
        assert_eq!(rows(&ctx, &filter).await, ["64"], "{condition}");
    }
    for (sql, expected) in [
        ("SELECT count(*) FROM v WHERE north = 40.1", "64"),
        ("SELECT count(*) FROM (SELECT lat AS a FROM tenths WHERE lon < 0 LIMIT 100000) WHERE a = 40.1", "64"),
        ("SELECT count(*) FROM (SELECT lat FROM tenths GROUP BY lat HAVING max(lat) = 40.1)", "1"),
        ("SELECT count(*) FROM (SELECT max(lat) AS m FROM tenths GROUP BY lat) WHERE m = 40.1", "1"),
        (
            "SELECT count(*) FROM (SELECT DISTINCT lat FROM tenths) a JOIN (SELECT DISTINCT lon FROM tenths) b ON a.lat = 40.1 AND b.lon = -104.6",
            "1",
        ),
        ("SELECT count(*) FROM (SELECT lat FROM tenths UNION ALL SELECT lat FROM tenths) WHERE lat = 40.1", "128"),
        ("SELECT count(*) FROM tenths WHERE lat = (SELECT max(lat) FROM tenths WHERE lat <= 40.1)", "64"),
        ("SELECT count(*) FROM tenths a WHERE EXISTS (SELECT 1 FROM seam WHERE a.lat = 40.1)", "64"),
        ("SELECT count(*) FROM tenths WHERE CAST(lat AS DOUBLE) = 40.1", "0"),
    ] {
        assert_eq!(rows(&ctx, sql).await, [expected], "{sql}");
    }
    let frame = ctx.table("tenths").await.unwrap().filter(col("lat").eq(lit(40.1))).unwrap();
    assert_eq!(frame.count().await.unwrap(), 64);
}

#[tokio::test]
async fn the_setting_restores_comparisons_in_doubles() {
    let ctx = session().await;
    let sql = "SELECT count(*) FROM tenths WHERE lat = 40.1";
    for (value, count) in [("false", "0"), ("true", "64")] {
        run(&ctx, &format!("SET zarr.float32_literals = {value}")).await;
        assert_eq!(rows(&ctx, sql).await, [count], "{value}");
    }
    // The other parts of the rule have no setting.
    run(&ctx, "SET zarr.float32_literals = false").await;
    assert_eq!(rows(&ctx, "SELECT count(*) FROM tenths WHERE nearest(lat, 40.12)").await, ["64"]);
}

#[tokio::test]
async fn columns_keep_the_names_that_they_have_without_the_rule() {
    let ctx = session().await;
    for sql in [
        "SELECT lat = 40.1, lat IN (1, 40.1), CASE lat WHEN 40.1 THEN 1 END, nearest(lat, 40.12) FROM tenths LIMIT 1",
        "SELECT time >= '2000', date_trunc('month', time), date_part('doy', time), extract(year FROM time) FROM noleap LIMIT 1",
        "SELECT date_part('doy', time), date_bin(INTERVAL '10 days', time), max(w) FROM noleap GROUP BY 1, 2 LIMIT 1",
        "SELECT count(*) FILTER (WHERE time < '2000-03'), sum(w) OVER (PARTITION BY date_part('doy', time)) FROM noleap GROUP BY time, w LIMIT 1",
        "SELECT date_part('doy', time), grouping(date_part('doy', time)) FROM noleap GROUP BY ROLLUP (date_part('doy', time)) LIMIT 1",
    ] {
        let frame = ctx.sql(sql).await.unwrap();
        let planned: Vec<String> = frame.schema().fields().iter().map(|f| f.name().clone()).collect();
        let batches = frame.collect().await.unwrap();
        let schema = batches[0].schema();
        let got: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
        assert_eq!(got, planned, "{sql}");
        assert!(!got.iter().any(|n| n.contains("cf_")), "{got:?}");
    }
}

#[tokio::test]
async fn dates_are_completed_to_their_first_instant() {
    let ctx = session().await;
    // The store runs from 1 December 2012 to 11 February 2013, 18 h, every six hours.
    for (condition, times) in [
        ("time < '2013'", 124),
        ("time >= '2013-02'", 44),
        ("'2013-02' <= time", 44),
        ("time >= DATE '2013-02-01'", 44),
        ("time >= TIMESTAMP '2013-02-01 00:00'", 44),
        ("time = '2013-02-03T06'", 1),
        ("time = '2013-02-03 06:00:00.000Z'", 1),
        ("time = '2013-02-03T07:00+01:00'", 1),
        ("time IN ('2013', '2013-02', '2013-02-01T01')", 2),
        ("time BETWEEN '2013-01' AND '2013-02'", 125),
        ("time < '+12000-01-01'", 292),
        ("time IS DISTINCT FROM '2013'", 291),
    ] {
        let sql = format!("SELECT count(*) FROM (SELECT DISTINCT time FROM air WHERE {condition})");
        assert_eq!(rows(&ctx, &sql).await, [times.to_string()], "{condition}");
    }
    let message = error(&ctx, "SELECT time FROM air WHERE time > 'yesterday'").await;
    assert!(message.contains("Error parsing timestamp from 'yesterday'"), "{message}");
    for (sql, expected) in [
        ("SELECT count(DISTINCT time) FROM far WHERE time >= '2290'", "3"),
        ("SELECT count(DISTINCT time) FROM far WHERE time = '2300-01-17'", "1"),
        ("SELECT count(*) FROM (SELECT max(time) AS m FROM far) WHERE m > TIMESTAMP '2300-01-17T12:00:00'", "1"),
        ("SELECT count(*) FROM noleap WHERE time = CAST('2000-02-28' AS TIMESTAMP)", "2"),
    ] {
        assert_eq!(rows(&ctx, sql).await, [expected], "{sql}");
    }
    for (sql, date) in [
        ("SELECT 1 FROM noleap WHERE time >= '2000-02-29'", "2000-02-29"),
        ("SELECT 1 FROM d360 WHERE time IN ('2000-01', '2000-01-31')", "2000-01-31"),
        ("SELECT 1 FROM air WHERE time > '2013-02-30'", "2013-02-30"),
    ] {
        let message = error(&ctx, sql).await;
        assert!(message.contains("has no date") && message.contains(date), "{message}");
    }
}

/// The times of a store as a table that is not Zarr.
async fn plain_times(ctx: &SessionContext, table: &str, name: &str) {
    let batches = run(ctx, &format!("SELECT DISTINCT time FROM {table}")).await;
    let data_type = batches[0].column(0).data_type().clone();
    let schema = Arc::new(Schema::new(vec![Field::new("time", data_type, true)]));
    let strip = |b: &RecordBatch| RecordBatch::try_new(Arc::clone(&schema), b.columns().to_vec()).unwrap();
    let batches = batches.iter().map(strip).collect();
    ctx.register_table(name, Arc::new(MemTable::try_new(schema, vec![batches]).unwrap())).unwrap();
}

#[tokio::test]
async fn functions_of_gregorian_dates_are_those_of_datafusion() {
    let ctx = session().await;
    plain_times(&ctx, "air", "plain").await;
    let parts = "year quarter month week day hour minute second millisecond nanosecond doy dow isodow epoch isoyear";
    let precisions = "year quarter month week day hour minute second millisecond microsecond";
    let mut expressions: Vec<String> = parts.split(' ').map(|p| format!("date_part('{p}', time)")).collect();
    expressions.extend(precisions.split(' ').map(|p| format!("date_trunc('{p}', time)")));
    for stride in ["10 days", "5 hours", "1 week", "1 month", "3 months", "1 year", "90 minutes"] {
        expressions.push(format!("date_bin(INTERVAL '{stride}', time)"));
        expressions.push(format!("date_bin(INTERVAL '{stride}', time, TIMESTAMP '2013-01-15T03:00:00')"));
    }
    for expression in expressions {
        let sql = |table| format!("SELECT DISTINCT time, {expression} AS x FROM {table} ORDER BY time");
        let (ours, theirs) = (run(&ctx, &sql("air")).await, run(&ctx, &sql("plain")).await);
        let data_type = |b: &[RecordBatch]| b[0].schema().field(1).data_type().clone();
        assert_eq!(data_type(&ours), data_type(&theirs), "{expression}");
        assert_eq!(
            pretty_format_batches(&ours).unwrap().to_string(),
            pretty_format_batches(&theirs).unwrap().to_string(),
            "{expression}"
        );
    }
    for part in ["year", "quarter", "month", "day", "hour", "minute", "second", "doy", "dow", "isodow"] {
        let sql = format!("SELECT count(*) FROM plain WHERE cf_part('{part}', time) <> date_part('{part}', time)");
        assert_eq!(rows(&ctx, &sql).await, ["0"], "{part}");
    }
}

#[tokio::test]
async fn functions_reach_beyond_nanoseconds() {
    let ctx = session().await;
    let sql = "SELECT date_trunc('year', time) AS y, count(*) FROM far WHERE time >= '2200' GROUP BY 1 ORDER BY 1";
    assert_eq!(rows(&ctx, sql).await, ["2260-01-01T00:00:00, 2", "2300-01-01T00:00:00, 6"]);
    let sql = "SELECT DISTINCT date_bin(INTERVAL '10 years', time, '2250') AS y FROM far WHERE time < '1900' OR time > '2300' ORDER BY 1";
    assert_eq!(rows(&ctx, sql).await, ["1850-01-01T00:00:00", "2300-01-01T00:00:00"]);
}

/// Values are those of cftime: `dayofyr`, `daysinmonth`, `strftime`.
#[tokio::test]
async fn dates_of_other_calendars() {
    let ctx = session().await;
    for (sql, expected) in [
        ("SELECT date_part('doy', max(time)) FROM noleap WHERE time <= '2000-03-01'", "60"),
        ("SELECT date_part('doy', m) FROM (SELECT max(time) AS m FROM noleap WHERE time <= '2000-03-01')", "60"),
        ("SELECT date_part('doy', CAST(time AS DATE)) FROM noleap WHERE time = '2000-03-01' LIMIT 1", "60"),
        (
            "SELECT date_part('doy', t) FROM (SELECT date_trunc('day', time) AS t FROM noleap) WHERE t = '2000-03-01' LIMIT 1",
            "60",
        ),
        (
            "SELECT date_part('doy', time) FROM (SELECT time FROM noleap UNION ALL SELECT time FROM noleap) WHERE time = '2000-03-01' LIMIT 1",
            "60",
        ),
        ("SELECT cf_part('days_in_month', max(time)) FROM d360", "30"),
        ("SELECT cf_part('days_in_year', max(time)) FROM noleap", "365"),
        ("SELECT cf_part('season', max(time)) FROM d360", "DJF"),
        ("SELECT date_trunc('quarter', max(time)) FROM d360", "2001-10-01T00:00:00"),
        ("SELECT cf_trunc('month', '2000-02-30T06', '360_day')", "2000-02-01T00:00:00"),
        ("SELECT cf_part('doy', '1900-03-01', 'julian')", "61"),
        (
            "SELECT cf_bin(INTERVAL '5 days', time, '2000-02-29') FROM d360 WHERE time = '2000-03-02' LIMIT 1",
            "2000-02-29T00:00:00",
        ),
        (
            "SELECT cf_bin('1 month', time, DATE '2000-01-15') FROM d360 WHERE time = '2000-02-14' LIMIT 1",
            "2000-01-15T00:00:00",
        ),
        ("SELECT cf_bin(INTERVAL '1 day', time, NULL) IS NULL FROM d360 LIMIT 1", "true"),
        ("SELECT cf_part('doy', NULL) IS NULL", "true"),
    ] {
        assert_eq!(rows(&ctx, sql).await, [expected], "{sql}");
    }
    run(&ctx, "CREATE TABLE copy AS SELECT time, date_trunc('month', time) AS m, w FROM d360").await;
    assert_eq!(
        rows(&ctx, "SELECT m, date_part('doy', min(time)), count(*) FROM copy WHERE time BETWEEN '2000-02-30' AND '2000-03-01' GROUP BY m ORDER BY m").await,
        ["2000-02-01T00:00:00, 60, 2", "2000-03-01T00:00:00, 61, 2"]
    );
}

#[tokio::test]
async fn what_another_calendar_cannot_say_is_refused() {
    let ctx = session().await;
    for (sql, part) in [
        ("SELECT time - TIMESTAMP '2000-01-01' FROM noleap", "cf_"),
        ("SELECT time + INTERVAL '1 month' FROM d360", "cf_"),
        ("SELECT max(time) - min(time) FROM noleap", "cf_"),
        ("SELECT m - INTERVAL '1 day' FROM (SELECT max(time) AS m FROM noleap)", "cf_"),
        ("SELECT time - lag(time) OVER (ORDER BY time) FROM noleap", "cf_"),
        (
            "SELECT sum(w) OVER (ORDER BY time RANGE BETWEEN INTERVAL '3 days' PRECEDING AND CURRENT ROW) FROM noleap",
            "cf_",
        ),
        ("SELECT date_part('epoch', time) FROM noleap", "cf_part"),
        ("SELECT to_unixtime(time) FROM noleap", "cf_part"),
        ("SELECT date_part('week', time) FROM noleap", "not defined in calendar `noleap`"),
        ("SELECT date_part('dow', time) FROM d360", "has no weeks"),
        ("SELECT date_trunc('week', time) FROM noleap", "has no weeks"),
        ("SELECT cf_part('epoch', time) FROM air", "seconds since 1970"),
        ("SELECT date_part('doy', time) FROM (SELECT time FROM noleap UNION ALL SELECT time FROM standard)", "UNION"),
    ] {
        let message = error(&ctx, sql).await;
        assert!(message.contains(part), "{sql}: {message}");
    }
    // Gregorian times are not concerned.
    assert_eq!(rows(&ctx, "SELECT max(time) - INTERVAL '1 day' FROM standard").await, ["2001-12-30T00:00:00"]);
}

/// A day of the noleap calendar that has the label of a Gregorian day is another day of the year after February, and no place in time.
#[tokio::test]
async fn no_function_takes_another_calendar_for_gregorian() {
    let ctx = session().await;
    let start = "TIMESTAMP '2000-01-01T00:00:00'";
    for expression in [
        "to_char(time, '%j')".into(),
        "date_format(time, '%j')".into(),
        "to_date(time)".into(),
        "to_timestamp(time)".into(),
        "to_timestamp_seconds(time)".into(),
        "to_timestamp(time) - to_timestamp('2000-01-01')".into(),
        "to_unixtime(time)".into(),
        "from_unixtime(CAST(time AS BIGINT))".into(),
        "range(time, time, INTERVAL '1 day')".into(),
        "generate_series(time, time, INTERVAL '1 day')".into(),
        "CAST(time AS BIGINT)".into(),
        "TRY_CAST(time AS BIGINT)".into(),
        "arrow_cast(time, 'Int64')".into(),
        "CAST(CAST(time AS DATE) AS INT)".into(),
        "CAST(time AS DATE) - DATE '2000-01-01'".into(),
        "TRY_CAST(time AS DATE) - DATE '2000-01-01'".into(),
        format!("CAST(CAST(time AS VARCHAR) AS TIMESTAMP) - {start}"),
        format!("arrow_cast(time, 'Timestamp(Second, None)') - {start}"),
        "to_date(CAST(time AS VARCHAR))".into(),
        "(SELECT max(time) FROM noleap) - (SELECT min(time) FROM noleap)".into(),
        format!("CASE WHEN w > 0 THEN time END - {start}"),
        format!("CASE WHEN w > 0 THEN {start} ELSE time END - {start}"),
        format!("greatest(time, {start}) - {start}"),
        format!("least({start}, time) + INTERVAL '1 day'"),
        format!("coalesce(time, {start}) - {start}"),
        format!("coalesce({start}, time) - {start}"),
        format!("nullif(time, {start}) - {start}"),
        format!("nvl(time, {start}) - {start}"),
        format!("date_trunc('month', coalesce(time, time)) - {start}"),
        "time AT TIME ZONE 'Europe/Berlin'".into(),
    ] {
        let message = error(&ctx, &format!("SELECT {expression} FROM noleap")).await;
        assert!(message.contains("cf_part") || message.contains("cf_bin"), "{expression}: {message}");
        assert!(message.contains("noleap"), "{expression}: {message}");
    }
    for sql in [
        "SELECT t - TIMESTAMP '2000-01-01T00:00:00' FROM (SELECT coalesce(time, time) AS t FROM noleap)",
        "SELECT d - DATE '2000-01-01' FROM (SELECT CAST(s AS DATE) AS d FROM (SELECT CAST(time AS VARCHAR) AS s FROM noleap))",
        "SELECT to_char(m, '%j') FROM (SELECT max(time) AS m FROM noleap)",
        "SELECT to_char(time, '%j') FROM (SELECT time FROM standard UNION ALL SELECT time FROM noleap)",
        "SELECT w FROM noleap ORDER BY to_char(time, '%j')",
        "SELECT count(*) FROM noleap GROUP BY CAST(time AS BIGINT)",
    ] {
        let message = error(&ctx, sql).await;
        assert!(message.contains("noleap") && message.contains("cf_"), "{sql}: {message}");
    }
}

/// 1 March is day 31 + 28 + 1 of every year of noleap, and day 61 of the year 2000 in the Gregorian calendar.
#[tokio::test]
async fn what_is_right_in_any_calendar_stays() {
    let ctx = session().await;
    for (sql, expected) in [
        ("SELECT CAST(max(time) AS DATE) FROM noleap WHERE time <= '2000-03-01'", "2000-03-01"),
        ("SELECT CAST(max(time) AS VARCHAR) FROM noleap WHERE time <= '2000-03-01'", "2000-03-01T00:00:00"),
        ("SELECT concat(max(time), 'x') FROM noleap WHERE time <= '2000-03-01'", "2000-03-01T00:00:00x"),
        ("SELECT date_part('doy', CAST(max(time) AS VARCHAR)) FROM noleap WHERE time <= '2000-03-01'", "60"),
        ("SELECT date_part('doy', (SELECT max(time) FROM noleap WHERE time <= '2000-03-01'))", "60"),
        ("SELECT date_part('doy', CASE WHEN y >= 0 THEN time END) FROM noleap WHERE time = '2000-03-01' LIMIT 1", "60"),
        (
            "SELECT date_part('doy', greatest(time, TIMESTAMP '2000-01-01T00:00:00')) FROM noleap WHERE time = '2000-03-01' LIMIT 1",
            "60",
        ),
        ("SELECT count(*) FROM noleap WHERE coalesce(time, time) = '2000-02-28'", "2"),
        ("SELECT count(*) FROM noleap WHERE time >= greatest('2000-02', '2000-03') AND time < '2000-03-02'", "2"),
        ("SELECT count(*) FROM noleap WHERE time = (SELECT max(time) FROM noleap)", "2"),
        ("SELECT first_value(time ORDER BY time) FROM noleap WHERE time >= '2000-02'", "2000-02-01T00:00:00"),
        ("SELECT to_char(max(time), '%j') FROM standard WHERE time <= '2000-03-01'", "061"),
        ("SELECT CAST(max(time) AS BIGINT) FROM standard WHERE time <= '2000-03-01'", "951868800000000"),
        (
            "SELECT CAST((SELECT max(time) FROM standard WHERE time <= '2000-03-01') - (SELECT max(time) FROM standard WHERE time <= '2000-02-28') AS VARCHAR)",
            "2 days 0 hours 0 mins 0.000000 secs",
        ),
        ("SELECT substr(max(time), 1, 7) FROM d360 WHERE time < '2000-03'", "2000-02"),
        ("SELECT count(*) FROM d360 WHERE time LIKE '2000-02-30%'", "2"),
        ("SELECT count(*) FROM d360 WHERE coalesce(time, 'none') = 'none'", "0"),
    ] {
        assert_eq!(rows(&ctx, sql).await, [expected], "{sql}");
    }
}

#[tokio::test]
async fn rows_are_compared_field_by_field() {
    let ctx = session().await;
    // One cell of latitude and longitude has four times in the one table, one day two places in the others.
    for (sql, expected) in [
        ("SELECT count(*) FROM tenths WHERE (lat, lon) = (40.1, -104.6)", "4"),
        ("SELECT count(*) FROM tenths WHERE (40.1, -104.6) = (lat, lon)", "4"),
        ("SELECT count(*) FROM tenths WHERE (lat, lon) IN ((40.1, -104.6), (20, -105.3))", "4"),
        ("SELECT count(*) - count(*) FILTER (WHERE (lat, lon) NOT IN ((40.1, -104.6), (20, -105.3))) FROM tenths", "4"),
        ("SELECT count(*) FROM air WHERE (time, lat) IN (('2013-02', 42.5))", "53"),
        ("SELECT count(*) FROM air WHERE (time, lat) = ('2013-02-03T06', 40)", "53"),
        ("SELECT count(*) FROM noleap WHERE (time, y) IN (('2000-02', 0), ('2000-03', 1))", "2"),
        ("SELECT count(*) FROM d360 WHERE (time, y) = ('2000-02-30', 0)", "1"),
        ("SELECT count(*) FROM d360 WHERE (time, y) IN (('2000-02', 0), ('2000-02-30', 1), ('2000-02-30', 2))", "2"),
    ] {
        assert_eq!(rows(&ctx, sql).await, [expected], "{sql}");
    }
    for sql in [
        "SELECT t2m FROM tenths WHERE (lat, lon) IN ((40.1, -104.6), (20, -105.3))",
        "SELECT air FROM air WHERE (time, lat) IN (('2013-02', 42.5), ('2013-01', 40))",
        "SELECT w FROM d360 WHERE (time, y) IN (('2000-02', 0), ('2000-02-30', 1))",
    ] {
        let plan = rows(&ctx, &format!("EXPLAIN FORMAT INDENT {sql}")).await.join("\n");
        assert!(!plan.contains("CAST"), "{plan}");
    }
    for (sql, part) in [
        ("SELECT 1 FROM noleap WHERE (time, y) = ('2000-02-29', 0)", "no date '2000-02-29'"),
        ("SELECT 1 FROM d360 WHERE (time, y) IN (('2000-02', 0), ('abc', 1))", "'abc' is no date"),
    ] {
        let message = error(&ctx, sql).await;
        assert!(message.contains(part), "{sql}: {message}");
    }
}

#[tokio::test]
async fn text_dates_are_compared_with_dates_alone() {
    let ctx = session().await;
    for text in ["abc", "", "12002", "2000/02/01", "20000201"] {
        for condition in [
            format!("time = '{text}'"),
            format!("'{text}' < time"),
            format!("time IN ('2000-01', '{text}')"),
            format!("time BETWEEN '2000' AND '{text}'"),
            format!("time = ANY(['{text}'])"),
            format!("CASE time WHEN '{text}' THEN true END"),
        ] {
            let message = error(&ctx, &format!("SELECT 1 FROM d360 WHERE {condition}")).await;
            let parts = [&format!("'{text}' is no date"), "360_day"];
            assert!(parts.iter().all(|p| message.contains(*p)), "{condition}: {message}");
        }
        error(&ctx, &format!("SELECT max(time) FROM d360 HAVING max(time) > '{text}'")).await;
    }
    for (condition, count) in [
        ("time = ANY(['2000-02-30'])", "2"),
        ("time = ANY(['2000-02', '2000-03', '1999'])", "4"),
        ("time < ANY(['2000-01-02', '2000-01-03'])", "4"),
    ] {
        for table in ["d360", "noleap"] {
            if table == "noleap" && condition.contains("02-30") {
                continue;
            }
            let sql = format!("SELECT count(*) FROM {table} WHERE {condition}");
            assert_eq!(rows(&ctx, &sql).await, [count], "{sql}");
        }
    }
    let message = error(&ctx, "SELECT 1 FROM noleap WHERE time = ANY(['2000-02-29'])").await;
    assert!(message.contains("no date '2000-02-29'"), "{message}");
    for condition in [
        "time > now()",
        "to_timestamp('2000-02-01') <= time",
        "time = CAST(now() AS DATE)",
        "CAST(time AS DATE) = DATE '2000-02-01'",
        "time::date = '2000-02-01'",
        "CAST(time AS TIMESTAMP) > '2000-02-01'",
        "to_date(time) > '2000-02-01'",
    ] {
        let message = error(&ctx, &format!("SELECT 1 FROM d360 WHERE {condition}")).await;
        assert!(message.contains("360_day") && message.contains("cf_part"), "{condition}: {message}");
    }
}

#[tokio::test]
async fn parameters_of_prepared_statements() {
    let ctx = session().await;
    // February has 28, 29 and 30 days, and every day two places.
    for (table, count) in [("noleap", "56"), ("standard", "58"), ("d360", "60")] {
        run(&ctx, &format!("PREPARE {table} AS SELECT count(*) FROM {table} WHERE time >= $1 AND $2 > time")).await;
        for values in ["'2000-02', '2000-03'", "'2000-02-01T00:00', '2000-03-01'"] {
            assert_eq!(rows(&ctx, &format!("EXECUTE {table}({values})")).await, [count], "{table} {values}");
        }
    }
    let message = error(&ctx, "EXECUTE noleap('2000-02', '2000-02-29')").await;
    assert!(message.contains("no date '2000-02-29'"), "{message}");
    for call in ["nearest(lat, $1)", "nearest(lat, 40, $1)", "nearest_point(lat, lon, $1, $2)"] {
        let message = error(&ctx, &format!("SELECT 1 FROM air WHERE {call}")).await;
        assert!(message.contains("`$1` is a parameter"), "{call}: {message}");
    }
}

#[tokio::test]
async fn nearest_is_the_same_anywhere_in_a_query() {
    let ctx = session().await;
    run(&ctx, "CREATE VIEW near AS SELECT lat AS q, air FROM air WHERE nearest(lat, 41.3)").await;
    for (sql, expected) in [
        ("SELECT count(*) FROM near WHERE q = 42.5", "15476"),
        ("SELECT max(q) FROM (SELECT q FROM near ORDER BY q LIMIT 3)", "42.5"),
        ("SELECT count(*) FILTER (WHERE nearest(lat, 41.3)) FROM air", "15476"),
        ("SELECT sum(CASE WHEN nearest(lat, 41.3) THEN 1 ELSE 0 END) FROM air", "15476"),
        ("SELECT count(*) FROM (SELECT DISTINCT lat, nearest(lat, 41.3) AS n FROM air) WHERE n", "1"),
        // The axis is that of the table, not that of the rows left.
        (
            "SELECT count(*) FROM (SELECT lat FROM air WHERE lat < 40 ORDER BY lat LIMIT 5) WHERE nearest(lat, 41.3)",
            "0",
        ),
        ("SELECT lat FROM air GROUP BY lat HAVING nearest(lat, 41.3)", "42.5"),
        (
            "WITH x AS (SELECT DISTINCT lat FROM air) SELECT b.lat FROM x a LEFT JOIN x b ON a.lat = b.lat AND nearest(b.lat, 41.3) WHERE a.lat = 42.5",
            "42.5",
        ),
        ("SELECT count(*) FROM air WHERE nearest(lat, 77.5)", "15476"),
        ("SELECT count(*) FROM air WHERE nearest(lat, 95, 30)", "15476"),
        ("SELECT count(*) FROM air WHERE nearest(lat, NULL)", "0"),
        ("SELECT DISTINCT time FROM air WHERE nearest(time, '2013-02-03T04')", "2013-02-03T06:00:00"),
        ("SELECT DISTINCT time FROM air WHERE nearest(time, TIMESTAMP '2013-02-03T03:00:00')", "2013-02-03T06:00:00"),
        (
            "SELECT DISTINCT time FROM air WHERE nearest(time, DATE '2013-02-03', INTERVAL '0 hours')",
            "2013-02-03T00:00:00",
        ),
        ("SELECT count(*) FROM air WHERE nearest(time, '2013-02-03T04', '1 hour')", "0"),
        // 28 February to 1 March is one day in this calendar.
        ("SELECT DISTINCT time FROM noleap WHERE nearest(time, '2000-02-28T13')", "2000-03-01T00:00:00"),
        ("SELECT DISTINCT time FROM d360 WHERE nearest(time, '2000-02-30T11')", "2000-02-30T00:00:00"),
        ("SELECT DISTINCT id FROM ids WHERE nearest(id, 25)", "30"),
        ("SELECT DISTINCT id FROM ids WHERE nearest(id, 24.9)", "20"),
        ("SELECT DISTINCT i FROM curved WHERE nearest(i, 2.5)", "3"),
        ("SELECT DISTINCT i FROM curved WHERE nearest(i, 9.7)", "9"),
    ] {
        assert_eq!(rows(&ctx, sql).await, [expected], "{sql}");
    }
    for (sql, part) in [
        ("SELECT 1 FROM air WHERE nearest(lat + 1, 40)", "computed"),
        ("SELECT 1 FROM (SELECT lat + 1 AS lat FROM air) WHERE nearest(lat, 40)", "computed"),
        ("SELECT 1 FROM (SELECT max(lat) AS lat FROM air) WHERE nearest(lat, 40)", "computed"),
        ("SELECT 1 FROM (SELECT lat FROM air UNION ALL SELECT lat FROM tenths) WHERE nearest(lat, 40)", "UNION"),
        ("SELECT 1 FROM air, (VALUES (1)) AS v(x) WHERE nearest(x, 40)", "traced"),
        ("SELECT 1 FROM air WHERE nearest(air, 40)", "dimension coordinate"),
        ("SELECT 1 FROM air WHERE nearest(lat, lon)", "none"),
        ("SELECT 1 FROM air WHERE nearest(lat, 'north')", "number"),
        ("SELECT 1 FROM air WHERE nearest(lat, 40, -1)", "tolerance"),
        ("SELECT 1 FROM air WHERE nearest(lat, 40, NULL)", "tolerance"),
        ("SELECT 1 FROM air WHERE nearest(time, '2013-01-01', INTERVAL '1 month')", "tolerance"),
        ("SELECT 1 FROM air WHERE nearest(time, 3)", "no date"),
        ("SELECT 1 FROM air WHERE nearest(time, '1999-01-01')", "2012-12-01T00:00:00"),
        ("SELECT 1 FROM air WHERE nearest(lat, 1e300)", "15"),
        ("SELECT 1 FROM curved WHERE nearest(i, 1e300)", "9"),
        ("SELECT 1 FROM air WHERE nearest(lat, 95, 3)", "75"),
        ("SELECT nearest(1, 2)", "register_zarr"),
    ] {
        let message = error(&ctx, sql).await;
        assert!(message.contains(part), "{sql}: {message}");
    }
}

#[tokio::test]
async fn nearest_point_names_one_cell() {
    let ctx = session().await;
    let cell = "nearest_point(b.nav_lat, b.nav_lon, 61.2, -24.4)";
    for (sql, expected) in [
        (format!("SELECT b.j, b.i, count(*) FROM curved b WHERE {cell} GROUP BY 1, 2"), "4, 4, 3"),
        (format!("WITH x AS (SELECT * FROM curved WHERE t = 0) SELECT a.j, a.i, b.j, b.i FROM x a CROSS JOIN x b WHERE {cell} AND a.j = 1 AND a.i = 2"), "1, 2, 4, 4"),
        ("SELECT j, i FROM (SELECT i, nav_lon AS x, j, nav_lat AS y FROM curved WHERE t = 0) WHERE nearest_point(y, x, 60.3, 333.9)".into(), "2, 3"),
    ] {
        assert_eq!(rows(&ctx, &sql).await, [expected], "{sql}");
    }
    for (sql, part) in [
        (
            "SELECT 1 FROM (SELECT nav_lat, nav_lon FROM curved) WHERE nearest_point(nav_lat, nav_lon, 61, -24)",
            "keep `j`",
        ),
        ("SELECT 1 FROM curved WHERE nearest_point(nav_lat, nav_lon, 1, -24)", "outside"),
        ("SELECT 1 FROM curved WHERE nearest_point(nav_lat, nav_lon, 91, -24)", "no latitude"),
        ("SELECT 1 FROM curved WHERE nearest_point(nav_lat, nav_lon, 'x', -24)", "number"),
        ("SELECT 1 FROM curved WHERE nearest_point(nav_lat, t, 61, -24)", "same dimensions"),
        ("SELECT 1 FROM air WHERE nearest_point(lat, lon, 61, -24)", "same dimensions"),
        ("SELECT 1 FROM curved a, curved b WHERE nearest_point(a.nav_lat, b.nav_lon, 61, -24)", "same table"),
    ] {
        let message = error(&ctx, sql).await;
        assert!(message.contains(part), "{sql}: {message}");
    }
}

/// A store with a dimension of no length, with and without a coordinate.
#[tokio::test]
async fn axes_without_values() {
    let array = |dims: &str, shape: &str| {
        format!(
            r#"{{"zarr_format": 3, "node_type": "array", "shape": {shape}, "data_type": "float64", "fill_value": 0,
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": {}}}}}, "chunk_key_encoding": {{"name": "default"}},
            "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}], "dimension_names": {dims}}}"#,
            shape.replace('0', "1")
        )
    };
    let store = Arc::new(InMemory::new());
    let put = async |key: &str, text: String| store.put(&Path::from(key), text.into()).await.unwrap();
    put("s/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#.into()).await;
    put("s/x/zarr.json", array(r#"["x"]"#, "[0]")).await;
    put("s/v/zarr.json", array(r#"["x", "n"]"#, "[0, 0]")).await;
    let store: Arc<dyn ObjectStore> = store;
    let table = ZarrTable::open_in(store, Path::from("s"), &ZarrOptions::default()).await.unwrap();
    let ctx = SessionContext::new();
    register_zarr(&ctx).unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
    for condition in ["nearest(x, 3)", "nearest(n, 3)", "nearest(x, 3, 1)", "nearest(n, -1e300)"] {
        assert_eq!(rows(&ctx, &format!("SELECT count(*) FROM t WHERE {condition}")).await, ["0"], "{condition}");
    }
}

#[tokio::test]
async fn names_without_their_quotes() {
    let ctx = session().await;
    let store = fixtures().join("stores").join("arco.zarr");
    let store = format!("read_zarr('{}', 'dims=time,latitude,longitude')", store.display());
    for (sql, part) in [
        (format!("SELECT 2m_temperature FROM {store}"), "\"2m_temperature\""),
        (format!("SELECT 2m_temperature, count(*) FROM {store} GROUP BY time"), "\"2m_temperature\""),
        (format!("SELECT min('2m_temperature') FROM {store}"), "\"2m_temperature\""),
        (format!("SELECT max('2m_temperature') OVER () FROM {store}"), "\"2m_temperature\""),
    ] {
        let message = error(&ctx, &sql).await;
        assert!(message.contains(part), "{sql}: {message}");
    }
    let sql = format!("SELECT 2 AS n, count('x') > 0, string_agg('x', 'time') IS NULL FROM {store}");
    assert_eq!(rows(&ctx, &sql).await, ["2, true, false"]);
}

#[tokio::test]
async fn hostile_arguments_are_errors_of_one_sentence() {
    let ctx = session().await;
    for sql in [
        "SELECT cf_part(1, time) FROM d360",
        "SELECT cf_part(NULL, time) FROM d360",
        "SELECT cf_part('year', 3)",
        "SELECT cf_part('year', 'x', '360_day')",
        "SELECT cf_part('year', '2000-01-01')",
        "SELECT cf_part('year', '2000-01-01', 'mayan')",
        "SELECT cf_part('century', time) FROM d360",
        "SELECT cf_trunc('decade', time) FROM d360",
        "SELECT cf_trunc(NULL, time) FROM d360",
        "SELECT date_trunc('decade', time) FROM noleap",
        "SELECT cf_bin(INTERVAL '0 days', time) FROM d360",
        "SELECT cf_bin(INTERVAL '-1 days', time) FROM d360",
        "SELECT cf_bin(INTERVAL '1 month 1 day', time) FROM d360",
        "SELECT cf_bin('soon', time) FROM d360",
        "SELECT cf_bin(3, time) FROM d360",
        "SELECT cf_bin(INTERVAL '1 day', time, 'x') FROM d360",
        "SELECT cf_bin(INTERVAL '1 day', time, time) FROM d360",
        "SELECT cf_trunc('year', arrow_cast(-9223372036854775807, 'Timestamp(Microsecond, None)'))",
        "SELECT date_part(CAST(w AS VARCHAR), time) FROM noleap",
    ] {
        let message = error(&ctx, sql).await;
        assert!(!message.contains("panicked") && !message.contains("Internal"), "{sql}: {message}");
    }
    for sql in [
        "SELECT cf_bin(NULL, time) FROM d360 LIMIT 1",
        "SELECT cf_part('year', arrow_cast(9223372036854775807, 'Timestamp(Millisecond, None)'))",
        "SELECT count(*) FROM air WHERE lat = 1e300 OR lat = -1e300 OR lat IN (NULL, 1e39)",
        "SELECT count(*) FROM d360 WHERE time = NULL OR time IN (NULL)",
        "SELECT cf_part('year', time) FROM d360 WHERE false",
    ] {
        run(&ctx, sql).await;
    }
}

#[tokio::test]
async fn registering_twice_keeps_everything() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_batch_size(77));
    let id = ctx.session_id();
    let own = create_udf(
        "own",
        vec![DataType::Int64],
        DataType::Int64,
        Volatility::Immutable,
        Arc::new(|args: &[ColumnarValue]| Ok(args[0].clone())),
    );
    ctx.register_udf(own);
    ctx.catalog("datafusion").unwrap().register_schema("other", Arc::new(MemorySchemaProvider::new())).unwrap();
    run(&ctx, "CREATE TABLE mine AS SELECT 5 AS x").await;
    run(&ctx, "SET datafusion.optimizer.max_passes = 7").await;
    let clone = ctx.clone();
    register_zarr(&ctx).unwrap();
    run(&ctx, "SET zarr.float32_literals = false").await;
    register_zarr(&ctx).unwrap();
    assert_eq!(ctx.session_id(), id);
    assert_eq!(ctx.state().session_id(), id);
    let state = ctx.state();
    let names: Vec<&str> = state.analyzer().rules.iter().map(|r| r.name()).collect();
    assert_eq!(names, ["zarr", "resolve_grouping_function", "type_coercion"]);
    assert_eq!(state.config().batch_size(), 77);
    assert_eq!(state.config_options().optimizer.max_passes, 7);
    assert!(state.config().options().catalog.create_default_catalog_and_schema);
    assert_eq!(rows(&clone, "SELECT own(x) FROM mine").await, ["5"]);
    assert!(ctx.catalog("datafusion").unwrap().schema("other").is_some());
    create_tables(&clone).await;
    assert_eq!(rows(&ctx, "SELECT count(*) FROM tenths WHERE lat = 40.1").await, ["0"]);
}

/// Queries over other tables have the plans that they have without the crate, in the presence of Zarr tables.
#[tokio::test]
async fn other_tables_are_untouched() {
    let fields = vec![
        Field::new("lat", DataType::Float32, true),
        Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, None), true).with_metadata(HashMap::from([
            ("calendar".into(), "noleap".into()),
            ("units".into(), "days since 2000-01-01".into()),
        ])),
        Field::new("2m", DataType::Float32, true),
    ];
    let schema = Arc::new(Schema::new(fields));
    let (with, without) = (session().await, SessionContext::new());
    for ctx in [&with, &without] {
        let empty = vec![vec![RecordBatch::new_empty(Arc::clone(&schema))]];
        ctx.register_table("m", Arc::new(MemTable::try_new(Arc::clone(&schema), empty).unwrap())).unwrap();
    }
    for sql in [
        "SELECT lat = 40.1, 2m FROM m",
        "SELECT count('lat') FROM m WHERE lat IN (40.1, 3) AND time >= '2000-01-01'",
        "SELECT date_trunc('month', time), date_part('doy', time), date_bin(INTERVAL '1 day', time) FROM m",
        "SELECT time - TIMESTAMP '2000-01-01', time + INTERVAL '1 day' FROM m WHERE lat BETWEEN 1.1 AND 2",
    ] {
        let plan = async |ctx: &SessionContext| {
            ctx.sql(sql).await.unwrap().into_optimized_plan().unwrap().display_indent().to_string()
        };
        assert_eq!(plan(&with).await, plan(&without).await, "{sql}");
    }
    // Beside a Zarr table as well.
    let sql = "SELECT m.lat = 40.1 AS a, date_trunc('month', m.time) AS b FROM m JOIN tenths ON m.lat = tenths.lat";
    let plan = with.sql(sql).await.unwrap().into_optimized_plan().unwrap().display_indent().to_string();
    assert!(plan.contains("date_trunc") && !plan.contains("cf_trunc") && plan.contains("Float64(40.1)"), "{plan}");
}
