//! Damaged stores: an error or an answer, never a panic, a hang, or memory without bounds.
//!
//! Each mutation changes one file of a fixture store in memory. By hand: `ZARR_MUTATIONS=10000 cargo test --test integration mutations`;
//! the seed of the mutation under way is in `mutation-seed` in the temporary folder of the target folder, for when the process is killed.

use std::collections::{BTreeMap, HashMap};
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, new_empty_array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Int64Type};
use bytes::Bytes;
use datafusion::catalog::TableProvider;
use datafusion::common::runtime::SpawnedTask;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_zarr::{ZarrOptions, ZarrTable};
use fastrand::Rng;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::{Value, json};

use crate::{allocation, fixtures};

/// Mutations of a test run.
const MUTATIONS: u64 = 500;
/// An answer may take so long.
const LIMIT: Duration = Duration::from_secs(5);
/// Tables with more rows are left alone.
const MAX_ROWS: i64 = 1_000_000;
/// Rows read of a column.
const ROWS: usize = 50_000;
/// Columns read of a table.
const COLUMNS: usize = 8;
/// Bytes of an allocation that no chunk has to account for.
const SLACK: u64 = 16 << 20;
/// Coordinates up to this size are kept in memory whole.
const MAX_KEPT: u64 = 256 << 20;

/// The largest allocation since the mutation began.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// Stand for values that are nested so deeply.
const DEEP: &str = "nested 100 levels deep";
const DEEPER: &str = "nested 10000 levels deep";

type Files = BTreeMap<String, Bytes>;

/// A table to damage: a store, and the options of one of the cases over it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    store: String,
    options: Vec<(String, String)>,
}

/// The answer for one column.
type Answer = Result<ArrayRef, String>;

/// What a table says.
struct Table {
    /// What `count(*)` gives.
    rows: Result<i64, String>,
    /// By name: the first values.
    columns: HashMap<String, Answer>,
}

fn targets() -> Vec<Target> {
    let text = std::fs::read_to_string(fixtures().join("cases.jsonl")).unwrap();
    let mut targets: Vec<Target> = text
        .lines()
        .map(|line| {
            let case: Value = serde_json::from_str(line).unwrap();
            let pair = |(k, v): (&String, &Value)| (k.clone(), v.as_str().unwrap().to_owned());
            let options = case["options"].as_object().unwrap().iter().map(pair).collect();
            Target { store: case["store"].as_str().unwrap().to_owned(), options }
        })
        .filter(|t| t.store != "huge.zarr")
        .collect();
    targets.sort();
    targets.dedup();
    targets
}

fn load(folder: &FilePath, prefix: &str, files: &mut Files) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let key = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            load(&entry.path(), &format!("{key}/"), files);
        } else {
            files.insert(key, std::fs::read(entry.path()).unwrap().into());
        }
    }
}

/// One change to one file.
struct Mutation {
    key: String,
    what: String,
    bytes: Vec<u8>,
}

fn is_metadata(key: &str) -> bool {
    matches!(key.rsplit('/').next(), Some("zarr.json" | ".zarray" | ".zattrs" | ".zgroup" | ".zmetadata"))
}

impl Mutation {
    fn draw(rng: &mut Rng, files: &Files) -> Self {
        let metadata = rng.u8(..100) < 45;
        let keys: Vec<&String> = files.keys().filter(|k| is_metadata(k) == metadata).collect();
        let keys = if keys.is_empty() { files.keys().collect() } else { keys };
        let key = keys[rng.usize(..keys.len())].clone();
        let bytes = &files[&key];
        let (what, bytes) = match serde_json::from_slice::<Value>(bytes) {
            Ok(document) if is_metadata(&key) && rng.u8(..10) < 7 => edit(rng, document),
            _ => damage(rng, bytes),
        };
        Self { key, what, bytes }
    }
}

/// A change of bytes.
fn damage(rng: &mut Rng, bytes: &[u8]) -> (String, Vec<u8>) {
    let mut bytes = bytes.to_vec();
    let length = bytes.len();
    // The beginning and the end hold headers and indices.
    let position = |rng: &mut Rng| match rng.u8(0..4) {
        0 => rng.usize(..length.min(32)),
        1 => length - 1 - rng.usize(..length.min(32)),
        _ => rng.usize(..length),
    };
    let what = match rng.u8(0..8) {
        0 => {
            bytes.truncate(rng.usize(..=length));
            format!("cut to {} of {length} bytes", bytes.len())
        }
        1 => {
            let more = rng.usize(1..64);
            let value = if rng.bool() { 0 } else { rng.u8(..) };
            bytes.resize(length + more, value);
            format!("{more} bytes of {value} appended")
        }
        _ if length == 0 => {
            bytes.push(0);
            "a byte appended".into()
        }
        2 | 3 => {
            let (start, value) = (position(rng), if rng.bool() { 0 } else { 255 });
            let end = (start + rng.usize(1..=16)).min(length);
            bytes[start..end].fill(value);
            format!("bytes {start}..{end} of {length} set to {value}")
        }
        _ => {
            let (at, bit) = (position(rng), rng.u8(..8));
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} of {length} flipped")
        }
    };
    (what, bytes)
}

/// A change of one place of a JSON document.
fn edit(rng: &mut Rng, mut document: Value) -> (String, Vec<u8>) {
    let mut places = Vec::new();
    let mut texts = vec![String::new(), "x".repeat(5000), "../../x".into(), "\0".into()];
    collect(&document, "", &mut places, &mut texts);
    let place = places[rng.usize(..places.len())].clone();
    let what = if rng.u8(..5) == 0
        && let Some((parent, name)) = place.rsplit_once('/')
        && let Some(parent) = document.pointer_mut(parent)
    {
        let name = name.replace("~1", "/").replace("~0", "~");
        match parent {
            Value::Object(map) => drop(map.shift_remove(&name)),
            Value::Array(list) => drop(name.parse().ok().filter(|i| *i < list.len()).map(|i: usize| list.remove(i))),
            _ => {}
        }
        format!("{place:?} dropped")
    } else if let Some(value) = document.pointer_mut(&place) {
        let number = [
            json!(0),
            json!(-1),
            json!(1u64 << 31),
            json!(1u64 << 63),
            json!(1e30),
            json!(1),
            json!(3),
            json!(65_537),
            json!(0.5),
        ];
        let number = number[rng.usize(..number.len())].clone();
        let old = value.take();
        *value = match (&old, rng.u8(0..10)) {
            (Value::Number(_), 0..8) => number,
            (Value::String(_), 0..7) => json!(texts[rng.usize(..texts.len())]),
            (_, 0 | 1) => Value::Null,
            (_, 2) => json!(rng.bool()),
            (_, 3) => number,
            (_, 4) => json!(DEEP),
            (_, 5) => json!(DEEPER),
            (_, 6) => json!({"name": old, "configuration": {}}),
            (_, 7) => json!([old, old]),
            (_, 8) => json!([]),
            _ => json!({}),
        };
        let new = value.to_string();
        format!("{place:?} set to {}", new.get(..200).unwrap_or(&new))
    } else {
        "nothing".into()
    };
    // As text: the values themselves would overflow the stack of the writer.
    let nested = |depth: usize| format!("{}null{}", "{\"a\":[".repeat(depth), "]}".repeat(depth));
    let text = document.to_string();
    let text = text.replace(&format!("\"{DEEPER}\""), &nested(5000)).replace(&format!("\"{DEEP}\""), &nested(50));
    let bytes = text.into_bytes();
    (what, bytes)
}

/// Pointers to all places of a document, and its texts.
fn collect(value: &Value, at: &str, places: &mut Vec<String>, texts: &mut Vec<String>) {
    places.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                collect(value, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), places, texts);
            }
        }
        Value::Array(list) => {
            for (i, value) in list.iter().enumerate() {
                collect(value, &format!("{at}/{i}"), places, texts);
            }
        }
        Value::String(s) => texts.push(s.clone()),
        _ => {}
    }
}

/// Bytes of the largest chunk that the metadata declare, decoded, and of what may be kept in memory whole.
fn declared(files: &Files) -> u64 {
    let mut largest = 0;
    for (_, bytes) in files.iter().filter(|(key, _)| is_metadata(key)) {
        let Ok(document) = serde_json::from_slice::<Value>(bytes) else { continue };
        let consolidated = document.get("metadata").or_else(|| document.pointer("/consolidated_metadata/metadata"));
        let consolidated = consolidated.and_then(Value::as_object).into_iter().flatten().map(|(_, d)| d);
        for document in consolidated.chain([&document]) {
            let cells = |pointer: &str| {
                let lengths = document.pointer(pointer).and_then(Value::as_array)?;
                Some(lengths.iter().fold(1u64, |n, l| n.saturating_mul(l.as_u64().unwrap_or(1).max(1))))
            };
            let chunk =
                cells("/chunks").or_else(|| cells("/chunk_grid/configuration/chunk_shape")).or_else(|| cells("/shape"));
            let size = element_size(document);
            // Coordinates are read whole, and other arrays follow the blocks of the one with the largest chunks.
            let kept = cells("/shape").unwrap_or(0).saturating_mul(size).min(MAX_KEPT);
            largest = largest.max(chunk.unwrap_or(0).saturating_mul(size)).max(kept);
        }
    }
    largest
}

/// Bytes of an element, decoded: at least 16, as much as the columns of other types in the same rows.
fn element_size(document: &Value) -> u64 {
    let length = document.pointer("/data_type/configuration/length_bytes").and_then(Value::as_u64);
    let dtype = document.get("dtype").and_then(Value::as_str).unwrap_or_default();
    let digits: String = dtype.chars().filter(char::is_ascii_digit).collect();
    let wide = if dtype.contains('U') { 4 } else { 1 };
    let size = digits.parse::<u64>().unwrap_or(16).saturating_mul(wide);
    size.max(length.unwrap_or(16)).max(if document.get("dtype").is_some_and(Value::is_array) { 64 } else { 16 })
}

/// Whether every bit of an array's chunks is covered by a checksum.
fn is_checked(files: &Files, array: &str) -> bool {
    let document =
        |file: &str| files.get(&format!("{array}/{file}")).and_then(|b| serde_json::from_slice::<Value>(b).ok());
    if let Some(document) = document("zarr.json") {
        return document["codecs"].as_array().is_some_and(|codecs| chain_is_checked(codecs));
    }
    let Some(document) = document(".zarray") else { return false };
    let filters = document["filters"].as_array().into_iter().flatten();
    filters.chain([&document["compressor"]]).any(|c| has_checksum(c["id"].as_str().unwrap_or_default()))
}

fn has_checksum(codec: &str) -> bool {
    // Fletcher32 takes 0 for 65535, so it is none.
    matches!(
        codec.trim_start_matches("numcodecs."),
        "crc32" | "crc32c" | "adler32" | "gzip" | "zlib" | "bz2" | "jenkins_lookup3"
    )
}

fn chain_is_checked(codecs: &[Value]) -> bool {
    codecs.iter().any(|codec| {
        let part = |name: &str| codec["configuration"][name].as_array().is_some_and(|codecs| chain_is_checked(codecs));
        let name = codec["name"].as_str().unwrap_or_default();
        has_checksum(name) || (name == "sharding_indexed" && part("codecs") && part("index_codecs"))
    })
}

/// Folder of the array that a chunk key belongs to.
fn array_of(files: &Files, key: &str) -> Option<String> {
    let folders = key.match_indices('/').rev().map(|(i, _)| &key[..i]);
    let is_array = |folder: &&str| {
        files.contains_key(&format!("{folder}/.zarray")) || files.contains_key(&format!("{folder}/zarr.json"))
    };
    folders.into_iter().find(is_array).map(str::to_owned)
}

async fn within<T>(what: &str, work: impl Future<Output = T>) -> Result<T, String> {
    tokio::time::timeout(LIMIT, work).await.map_err(|_| format!("no answer of {what} within {LIMIT:?}"))
}

/// Open a table and read it. An outer error is a hang.
async fn read(files: Arc<Files>, target: Target, wanted: Option<Vec<String>>) -> Result<Result<Table, String>, String> {
    let store = InMemory::new();
    for (key, bytes) in files.iter() {
        store.put(&Path::parse(format!("s/{key}")).unwrap(), bytes.clone().into()).await.unwrap();
    }
    let mut options = ZarrOptions::default();
    for (key, value) in &target.options {
        options = options.with(key, value).unwrap();
    }
    let store: Arc<dyn ObjectStore> = Arc::new(store);
    let opened = within("open", ZarrTable::open_in(store, Path::from("s"), &options)).await?;
    let zarr = match opened {
        Ok(zarr) => zarr,
        Err(e) => return Ok(Err(e.to_string())),
    };
    let schema = zarr.schema();
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    ctx.register_table("t", Arc::new(zarr)).unwrap();
    let run = async |sql: String| {
        let answer = async { ctx.sql(&sql).await?.collect().await };
        within(&sql, answer).await.map(|a| a.map_err(|e| e.to_string()))
    };
    let rows =
        run("SELECT count(*) AS n FROM t".into()).await?.map(|b| b[0].column(0).as_primitive::<Int64Type>().value(0));
    let mut columns = HashMap::new();
    for field in schema.fields() {
        if wanted.as_ref().is_none_or(|w| w.contains(field.name())) {
            let name = field.name().replace('"', "\"\"");
            let answer = run(format!("SELECT \"{name}\" AS c FROM t LIMIT {ROWS}")).await?;
            columns.insert(field.name().clone(), answer.map(|batches| one(&batches, field.data_type())));
        }
    }
    let star = run(format!("SELECT * FROM t LIMIT {ROWS}")).await?;
    if let (Ok(star), None) = (&star, columns.values().find(|c| c.is_err())) {
        let read: usize = star.iter().map(RecordBatch::num_rows).sum();
        if columns.values().flatten().any(|c| c.len() != read) {
            return Err(format!("`SELECT *` gives {read} rows, and a column has another number of values"));
        }
    }
    if let Ok(rows) = rows {
        let want = usize::try_from(rows).unwrap_or(usize::MAX).min(ROWS);
        if let Some((name, column)) = columns.iter().find(|(_, c)| c.as_ref().is_ok_and(|c| c.len() != want)) {
            return Err(format!(
                "count(*) is {rows} and `{name}` has {} values",
                column.as_ref().map_or(0, Array::len)
            ));
        }
    }
    Ok(Ok(Table { rows, columns }))
}

fn one(batches: &[RecordBatch], data_type: &DataType) -> ArrayRef {
    let arrays: Vec<&dyn Array> = batches.iter().map(|b| b.column(0).as_ref()).collect();
    if arrays.is_empty() { new_empty_array(data_type) } else { concat(&arrays).unwrap() }
}

/// What is wrong with the answers of a damaged store, if anything is.
fn judge(mutation: &Mutation, files: &Files, sound: &Table, damaged: &Result<Table, String>) -> Result<(), String> {
    // Other metadata may mean another table, and an array of its own may not be found any more.
    let (Ok(damaged), false) = (damaged, is_metadata(&mutation.key)) else { return Ok(()) };
    let array = array_of(files, &mutation.key);
    let name = array.as_deref().and_then(|a| a.rsplit('/').next());
    let checked = array.as_deref().is_some_and(|a| is_checked(files, a));
    if damaged.rows.is_ok() && damaged.rows != sound.rows {
        return Err(format!("count(*) is {:?}, it was {:?}", damaged.rows, sound.rows));
    }
    for (column, answer) in &damaged.columns {
        let Some(Ok(before)) = sound.columns.get(column) else { continue };
        let Ok(now) = answer else { continue };
        let own = Some(column.as_str()) == name || column.ends_with("_lower") || column.ends_with("_upper");
        let same_type = now.data_type() == before.data_type()
            || matches!(
                (now.data_type(), before.data_type()),
                (DataType::Utf8View, DataType::Timestamp(..)) | (DataType::Timestamp(..), DataType::Utf8View)
            );
        if now.len() != before.len() || !(same_type && own || now.data_type() == before.data_type()) {
            return Err(format!(
                "`{column}` has {} values of {}, it had {} of {}",
                now.len(),
                now.data_type(),
                before.len(),
                before.data_type()
            ));
        }
        if (checked || !own) && now != before {
            let why = if own { "in spite of the checksum" } else { "and is of another array" };
            return Err(format!("`{column}` has other values {why}"));
        }
    }
    Ok(())
}

/// What became of the mutations, to see that they reach anything.
#[derive(Debug, Default)]
struct Tally {
    /// The store did not open.
    refused: u32,
    /// A column could not be read.
    failed: u32,
    /// Other answers than before.
    changed: u32,
    same: u32,
    /// Bytes of the largest allocation.
    largest: u64,
}

impl Tally {
    fn count(&mut self, sound: &Table, damaged: &Result<Table, String>) {
        let Ok(damaged) = damaged else {
            self.refused += 1;
            return;
        };
        let was = |name: &String| sound.columns.get(name).and_then(|c| c.as_ref().ok());
        if damaged.columns.values().any(Result::is_err) || damaged.rows.is_err() {
            self.failed += 1;
        } else if damaged.rows != sound.rows || damaged.columns.iter().any(|(name, now)| now.as_ref().ok() != was(name))
        {
            self.changed += 1;
        } else {
            self.same += 1;
        }
    }
}

struct Run {
    tally: Tally,
    targets: Vec<Target>,
    files: HashMap<String, Arc<Files>>,
    /// Answers of the sound stores; `None` where a table is too large or cannot be opened.
    sound: HashMap<usize, Option<Arc<Table>>>,
}

impl Run {
    async fn sound(&mut self, number: usize) -> Option<(Arc<Files>, Arc<Table>)> {
        let target = self.targets[number].clone();
        let files = self.files.entry(target.store.clone()).or_insert_with(|| {
            let mut files = Files::new();
            load(&fixtures().join("stores").join(&target.store), "", &mut files);
            Arc::new(files)
        });
        let files = Arc::clone(files);
        if let Some(known) = self.sound.get(&number) {
            return known.clone().map(|t| (files, t));
        }
        let table = read(Arc::clone(&files), target, None).await.unwrap_or_else(|e| panic!("a sound store: {e}"));
        let table = table.ok().filter(|t| t.rows.as_ref().is_ok_and(|n| *n <= MAX_ROWS)).map(Arc::new);
        self.sound.insert(number, table.clone());
        table.map(|t| (files, t))
    }

    /// Run the mutation of a seed; what is wrong with the outcome, if anything is.
    async fn mutation(&mut self, seed: u64) -> Result<(), String> {
        let mut rng = Rng::with_seed(seed);
        let (target, (files, sound)) = loop {
            let number = rng.usize(..self.targets.len());
            if let Some(sound) = self.sound(number).await {
                break (self.targets[number].clone(), sound);
            }
        };
        let mutation = Mutation::draw(&mut rng, &files);
        let mut changed = files.as_ref().clone();
        changed.insert(mutation.key.clone(), mutation.bytes.clone().into());
        let allowed = declared(&changed).max(declared(&files)).saturating_mul(2).saturating_add(SLACK);
        // A few columns, the damaged one among them; all where the damage may be anywhere.
        let mut wanted: Vec<String> = sound.columns.keys().cloned().collect();
        wanted.sort();
        rng.shuffle(&mut wanted);
        let name = array_of(&files, &mutation.key).and_then(|a| a.rsplit('/').next().map(str::to_owned));
        wanted.sort_by_key(|w| Some(w) != name.as_ref());
        wanted.truncate(COLUMNS);
        let context = format!("{} {:?}, {}: {}", target.store, target.options, mutation.key, mutation.what);

        LARGEST.store(0, Ordering::Relaxed);
        let task = SpawnedTask::spawn(read(Arc::new(changed), target, Some(wanted)));
        let outcome = match tokio::time::timeout(LIMIT * 4, task.join()).await {
            Err(_) => Err(format!("nothing within {:?}", LIMIT * 4)),
            Ok(Err(e)) => Err(format!("panicked: {e}")),
            Ok(Ok(outcome)) => outcome,
        };
        let outcome = outcome.and_then(|damaged| {
            self.tally.count(&sound, &damaged);
            judge(&mutation, &files, &sound, &damaged)
        });
        let largest = LARGEST.load(Ordering::Relaxed) as u64;
        self.tally.largest = self.tally.largest.max(largest);
        let outcome = outcome.and_then(|()| {
            if largest > allowed {
                Err(format!("{largest} bytes were allocated at once, {allowed} would be fair"))
            } else {
                Ok(())
            }
        });
        outcome.map_err(|e| format!("{context}\n    {e}"))
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

#[test]
fn damaged_stores() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .on_thread_start(|| allocation::watch(&LARGEST))
        .build()
        .unwrap();
    let mutations = setting("ZARR_MUTATIONS", MUTATIONS);
    let first = setting("ZARR_MUTATIONS_SEED", 1);
    let mut run = Run { tally: Tally::default(), targets: targets(), files: HashMap::new(), sound: HashMap::new() };
    let note = FilePath::new(env!("CARGO_TARGET_TMPDIR")).join("mutation-seed");
    let mut failures = Vec::new();
    for seed in first..first.saturating_add(mutations) {
        if mutations != MUTATIONS {
            std::fs::write(&note, seed.to_string()).unwrap();
        }
        if let Err(failure) = runtime.block_on(run.mutation(seed)) {
            failures.push(format!("seed {seed}: {failure}\n    again: ZARR_MUTATIONS_SEED={seed} ZARR_MUTATIONS=1 cargo test --test integration mutations"));
        }
        if failures.len() == 20 {
            break;
        }
    }
    // A task that hangs must not keep the test from ending.
    runtime.shutdown_background();
    eprintln!("{:?}", run.tally);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
