//! Known facts of a complete real data set: the air temperature of the xarray tutorial, 3 869 000 cells of NCEP reanalysis.
//!
//! It is not in the repository: the environment variable `ZARR_REAL_DATA` names the folder that holds `air_temperature.zarr`;
//! without it, `../shared/real` beside the checkout is looked at, and the test is skipped where there is nothing.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_zarr::ZarrTable;

use crate::cell::{Cell, Row, rows};

fn store() -> Option<PathBuf> {
    let folder = match std::env::var_os("ZARR_REAL_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => [env!("CARGO_MANIFEST_DIR"), "..", "shared", "real"].iter().collect(),
    };
    let store = folder.join("air_temperature.zarr");
    store.join(".zgroup").exists().then_some(store)
}

async fn ask(ctx: &SessionContext, sql: &str) -> Vec<Row> {
    rows(&ctx.sql(sql).await.unwrap().collect().await.unwrap())
}

async fn numbers(ctx: &SessionContext, sql: &str) -> Vec<f64> {
    let rows = ask(ctx, sql).await;
    assert_eq!(rows.len(), 1, "{sql}");
    rows[0].iter().map(|c| c.as_ref().and_then(Cell::number).unwrap()).collect()
}

#[track_caller]
fn near(got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance, "got {got}, expected {want}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn air_temperature() {
    let Some(store) = store() else {
        eprintln!("skipped: the real data is not here (ZARR_REAL_DATA)");
        return;
    };
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    let table = ZarrTable::open(store.to_str().unwrap()).await.unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();

    let all = numbers(&ctx, "SELECT count(*), count(air), avg(air), min(air), max(air), sum(air) FROM t").await;
    assert_eq!(all[..2], [3_869_000.0, 3_869_000.0]);
    near(all[2], 281.255_036_965_6, 1e-9);
    near(all[3], 221.0, 1e-9);
    near(all[4], 317.4, 1e-9);
    near(all[5], 1_088_175_738.0, 1.0);

    assert_eq!(numbers(&ctx, "SELECT count(*) FROM t WHERE lat = 15").await, [154_760.0]);
    assert_eq!(numbers(&ctx, "SELECT count(*) FROM t WHERE air > 300").await, [191_987.0]);

    let sql = "SELECT count(*), min(n), max(n) FROM (SELECT count(*) AS n FROM t GROUP BY lat, lon)";
    assert_eq!(numbers(&ctx, sql).await, [1325.0, 2920.0, 2920.0]);
    let sql = "SELECT count(*) FROM (SELECT time FROM t GROUP BY time HAVING avg(air) > 281)";
    assert_eq!(numbers(&ctx, sql).await, [1460.0]);
    let sql =
        "SELECT count(*) FROM (SELECT lat, lon FROM t GROUP BY lat, lon HAVING avg(air) > (SELECT avg(air) FROM t))";
    assert_eq!(numbers(&ctx, sql).await, [703.0]);
    let sql = "SELECT lat, lon FROM t GROUP BY lat, lon ORDER BY avg(air) DESC LIMIT 1";
    assert_eq!(numbers(&ctx, sql).await, [15.0, 257.5]);

    let sql = "SELECT date_part('month', time) AS m, avg(air) FROM t GROUP BY m ORDER BY m LIMIT 3";
    for (month, (row, want)) in
        ask(&ctx, sql).await.iter().zip([273.416_774_07, 273.131_031_53, 275.113_712_84]).enumerate()
    {
        let numbers: Vec<f64> = row.iter().map(|c| c.as_ref().and_then(Cell::number).unwrap()).collect();
        near(numbers[0], [1.0, 2.0, 3.0][month], 0.0);
        near(numbers[1], want, 1e-7);
    }

    // The whole table as rows, in the order of its dimensions within a partition.
    let sql = "SELECT time, lat, lon, air FROM t ORDER BY time, lat DESC, lon LIMIT 2";
    let first = ask(&ctx, sql).await;
    assert!(matches!(first[0][0], Some(Cell::Time(ns)) if ns == 1_356_998_400_000_000_000), "{first:?}");
    assert_eq!(first[1][2].as_ref().and_then(Cell::number), Some(202.5));
}
