//! `zarr-sql` from end to end.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::{demo, fixtures};

fn zarr_sql(arguments: &[&str]) -> Output {
    with_stdin(arguments, "")
}

fn with_stdin(arguments: &[&str], stdin: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zarr-sql"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Standard output of a run that must succeed and say nothing else.
fn stdout(output: &Output) -> &str {
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    std::str::from_utf8(&output.stdout).unwrap()
}

/// Status and standard error of a run that must fail.
fn failure(output: &Output) -> (i32, &str) {
    (output.status.code().unwrap(), std::str::from_utf8(&output.stderr).unwrap())
}

#[test]
fn stores_are_tables_and_commands_repeat() {
    let air = demo();
    let output = zarr_sql(&[
        &air,
        "-c",
        "SELECT max(air) AS m FROM air_temperature_small; SELECT 1 AS one",
        "-c",
        "SHOW TABLES",
        "--format",
        "csv",
    ]);
    let text = stdout(&output);
    assert!(
        text.starts_with("m\n305.1\none\n1\n") && text.contains("datafusion,public,air_temperature_small,BASE TABLE"),
        "{text}"
    );
    let output = zarr_sql(&["-q", "-c", &format!("SELECT min(time) AS t, NULL AS n FROM '{air}'")]);
    assert_eq!(
        stdout(&output),
        "+---------------------+------+\n| t                   | n    |\n+---------------------+------+\n| 2014-02-24T00:00:00 | NULL |\n+---------------------+------+\n"
    );
}

#[test]
fn every_format() {
    let air = demo();
    let sql = format!(
        "SELECT time, lat, air, CASE WHEN lat < 0 THEN 1 END AS n FROM '{air}' WHERE lon = 200 ORDER BY time, lat DESC LIMIT 2"
    );
    let print = |format: &str| stdout(&zarr_sql(&["--format", format, "-c", &sql])).to_owned();
    assert_eq!(
        print("csv"),
        format!(
            "time,lat,air,n\n2014-02-24T00:00:00,75.0,{},\n2014-02-24T00:00:00,72.5,{},\n",
            25189.0 * 0.01,
            25630.0 * 0.01
        )
    );
    assert_eq!(print("tsv"), print("csv").replace(',', "\t"));
    let json: serde_json::Value = serde_json::from_str(&print("json")).unwrap();
    assert_eq!(
        (json[0]["time"].as_str(), json[1]["lat"].as_f64(), json[0].get("n")),
        (Some("2014-02-24T00:00:00"), Some(72.5), None)
    );
    let lines: Vec<serde_json::Value> = print("nd-json").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(serde_json::Value::from(lines), json);
    assert_eq!(print("table"), print("automatic"));
    assert!(print("table").starts_with("+---"));

    let nothing = format!("SELECT lat, air FROM '{air}' WHERE lat > 100");
    let empty = |format: &str| stdout(&zarr_sql(&["-q", "--format", format, "-c", &nothing])).to_owned();
    let hint = zarr_sql(&["-c", &nothing]).stderr;
    assert_eq!(String::from_utf8(hint).unwrap(), "no cell satisfies `lat > 100`: lat runs 15 … 75\n");
    assert_eq!((empty("csv").as_str(), empty("json").as_str(), empty("nd-json").as_str()), ("lat,air\n", "[]\n", ""));
    assert_eq!(empty("table"), "+-----+-----+\n| lat | air |\n+-----+-----+\n+-----+-----+\n");
}

#[test]
fn long_tables_keep_their_columns() {
    let output = zarr_sql(&["-c", &format!("SELECT lat, air FROM '{}'", demo())]);
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert_eq!(lines.len(), 26_500 + 4);
    assert!(lines[0] == lines[2] && lines[0] == lines[lines.len() - 1]);
    assert!(lines.iter().skip(3).all(|l| l.chars().count() >= lines[0].len()));
}

#[test]
fn nested_columns_have_a_text_in_csv() {
    let output = zarr_sql(&[
        "--format",
        "csv",
        "-c",
        &format!("SELECT name, shape, shards FROM zarr_metadata('{}') LIMIT 1", demo()),
    ]);
    assert_eq!(stdout(&output), "name,shape,shards\nair,\"[20, 25, 53]\",\n");
}

#[test]
fn statements_come_from_files_and_standard_input() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "-- two statements\nSELECT 1 AS a;\nSELECT ';' AS b;\n").unwrap();
    let path = file.path().display().to_string();
    let output = zarr_sql(&["--format", "csv", "-c", "SELECT 3 AS c", "-f", &path]);
    assert_eq!(stdout(&output), "a\n1\nb\n;\nc\n3\n");
    let sql = format!(
        "CREATE EXTERNAL TABLE T2 STORED AS ZARR LOCATION '{}' OPTIONS(dims 'time,lat,lon');\nSELECT count(*) AS N FROM T2",
        demo()
    );
    assert_eq!(stdout(&with_stdin(&["--format", "csv"], &sql)), "N\n26500\n");
    assert_eq!(stdout(&with_stdin(&[], "")), "");
    let (status, message) =
        (failure(&zarr_sql(&["-f", "no/such.sql"])).0, failure(&zarr_sql(&["-f", "no/such.sql"])).1.to_owned());
    assert!(status == 1 && message.starts_with("error: cannot read `no/such.sql`: "), "{message}");
}

#[test]
fn describe_and_explain() {
    let output = zarr_sql(&[&demo(), "--format", "csv", "-c", "DESCRIBE air_temperature_small"]);
    assert!(stdout(&output).contains("air,Float64,YES\n"));
    let output = zarr_sql(&[&demo(), "-c", "EXPLAIN SELECT air FROM air_temperature_small"]);
    assert!(stdout(&output).contains("ZarrScanExec"));
}

#[test]
fn errors_are_sentences_and_stop() {
    let codecs = fixtures().join("stores/codecs_v3.zarr").display().to_string();
    for (sql, sentence) in [
        (
            "SELECT * FROM '/no/such.zarr'".to_owned(),
            "error: no Zarr store at `/no/such.zarr`: the path does not exist\n",
        ),
        (
            "SELECT * FROM read_zarr('/no/such.zarr')".into(),
            "error: no Zarr store at `/no/such.zarr`: the path does not exist\n",
        ),
        (
            format!("SELECT grib FROM '{codecs}'"),
            "error: `grib` cannot be queried: codec `gribberish` is not supported",
        ),
        ("SELECT * FROM nothing".into(), "error: table 'datafusion.public.nothing' not found\n"),
        (format!("SELECT wind FROM '{}'", demo()), "error: No field named wind."),
        ("SELEC 1".into(), "error: sql parser error: Expected: an SQL statement, found: SELEC"),
        ("SELECT 1/0".into(), "error: Divide by zero error\n"),
    ] {
        let output = zarr_sql(&["-c", &sql, "-c", "SELECT 1"]);
        let (status, message) = failure(&output);
        assert!(status == 1 && message.starts_with(sentence) && message.ends_with('\n'), "{sql}: {message}");
        assert!(message.lines().count() == 1 && output.stdout.is_empty(), "{sql}: {output:?}");
    }
    let output = zarr_sql(&["--format", "csv", "-c", "SELECT 1 AS a; SELECT nothing; SELECT 2 AS b"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), b"a\n1\n".as_slice()));
    let ambiguous = fixtures().join("stores/arco.zarr").display().to_string();
    let output = zarr_sql(&[&ambiguous, "-c", "SELECT 1"]);
    let (status, message) = failure(&output);
    assert!(
        status == 1 && message.lines().count() > 2 && message.contains("\n  SELECT * FROM read_zarr("),
        "{message}"
    );
}

#[test]
fn usage() {
    assert_eq!(failure(&zarr_sql(&["--frmat", "csv"])).0, 2);
    assert_eq!(failure(&zarr_sql(&["--format", "xml", "-c", "SELECT 1"])).0, 2);
    let output = zarr_sql(&["a/x.zarr", "b/x.zarr", "-c", "SELECT 1"]);
    let (status, message) = failure(&output);
    assert!(status == 2 && message.contains("two stores would be the table `x`"), "{message}");
    assert!(stdout(&zarr_sql(&["--help"])).contains("Exit status"));
    assert!(stdout(&zarr_sql(&["--version"])).starts_with("zarr-sql "));
}

/// As in `zarr-sql … | head -1`.
#[test]
fn a_broken_pipe_is_no_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zarr-sql"));
    for format in ["csv", "table", "json"] {
        command.args(["--format", format, "-c", &format!("SELECT * FROM '{}'", demo())]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{format}: {output:?}");
        command = Command::new(env!("CARGO_BIN_EXE_zarr-sql"));
    }
}
