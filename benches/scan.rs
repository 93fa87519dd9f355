//! `SELECT *` of whole stores, against the floor: the same chunks read and decoded by the raw codec library, on as many
//! threads, into buffers that are used again, and nothing else.
//!
//! Both run in turns in one process over stores in the page cache, with the table open already; the scan's time is that
//! of planning and of all its batches, each dropped at once. MB/s are those of the data variables, decoded. The peak of
//! resident memory is that of a process of its own which only scans the store, twice.
//!
//! ```text
//! PEERS_DATA=DIR python shared/peers/make_data.py --sizes M
//! ZARR_BENCH_DATA=DIR cargo bench --bench scan [-- PART-OF-A-STORE'S-NAME]
//! ```
#![expect(clippy::print_stdout, reason = "the table is what the bench is for")]
#![expect(unsafe_code, reason = "the floor calls c-blosc itself")]

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, error, result, thread};

use datafusion::common::runtime::JoinSet;
use datafusion::physical_plan::execute_stream_partitioned;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_zarr::ZarrTable;
use flate2::{Decompress, FlushDecompress};
use futures::TryStreamExt;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use zstd_safe::{DCtx, get_error_name};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rounds of floor and scan, after one that warms up.
const ROUNDS: usize = 7;
const MEDIAN: usize = ROUNDS / 2;
/// First argument of the process that measures its own memory.
const PEAK: &str = "--peak-of";
/// Aims: time of the scan by that of the floor, and peak of memory in MB.
const AIMS: (f64, u64) = (1.5, 500);

type Result<T> = result::Result<T, Box<dyn error::Error + Send + Sync>>;
/// Times of all rounds, sorted.
type Times = [Duration; ROUNDS];

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [PEAK, store, threads] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        println!("{}", peak_here(Path::new(store), threads.parse()?)?);
        return Ok(());
    }
    let Some(root) = env::var_os("ZARR_BENCH_DATA") else {
        println!("no data: PEERS_DATA=DIR python shared/peers/make_data.py --sizes M; then set ZARR_BENCH_DATA=DIR");
        return Ok(());
    };
    let filter = arguments.first().map_or("", String::as_str);
    let mut worst = (0.0, 0);
    println!(
        "store                       threads  floor ms     min  scan ms     min ratio   min  MB/s: floor, scan  peak MB"
    );
    let root = fs::canonicalize(root)?;
    for path in find(&root, |path| path.extension().is_some_and(|e| e == "zarr"))? {
        let name = path.strip_prefix(&root)?.with_extension("").to_string_lossy().into_owned();
        if !name.contains(filter) {
            continue;
        }
        let store = Store::open(&path).map_err(|e| format!("{name}: {e}"))?;
        for threads in [1, 2] {
            let (floor, scan) = measure(&path, &store, threads).map_err(|e| format!("{name}: {e}"))?;
            let peak = peak_of(&path, threads)?;
            let ratio = print_row(&name, threads, store.bytes, &floor, &scan, peak);
            worst = (ratio.max(worst.0), peak.max(worst.1));
        }
    }
    println!("worst ratio {:.2} (aim {}), highest peak {} MB (aim {})", worst.0, AIMS.0, worst.1, AIMS.1);
    Ok(())
}

/// Print a row of the table; the ratio of the medians.
fn print_row(name: &str, threads: usize, bytes: usize, floor: &Times, scan: &Times, peak: u64) -> f64 {
    let [floor_ms, scan_ms] = [floor, scan].map(|times| times.map(|time| time.as_secs_f64() * 1e3));
    let ratio = |i: usize| scan_ms[i] / floor_ms[i];
    // A byte a microsecond is a megabyte a second.
    let [floor_speed, scan_speed] = [floor, scan].map(|times| bytes as u128 / times[MEDIAN].as_micros().max(1));
    print!("{name:<27} {threads:>7} {:>9.1} {:>7.1} ", floor_ms[MEDIAN], floor_ms[0]);
    print!("{:>8.1} {:>7.1} {:>5.2} {:>5.2} ", scan_ms[MEDIAN], scan_ms[0], ratio(MEDIAN), ratio(0));
    println!("{floor_speed:>9} {scan_speed:>9} {peak:>8}");
    ratio(MEDIAN)
}

/// What is `wanted` in a folder and, where it is not in a wanted one, in the folders inside, in order.
fn find(folder: &Path, wanted: fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if wanted(&path) {
            found.push(path);
        } else if path.is_dir() {
            found.extend(find(&path, wanted)?);
        }
    }
    Ok(found)
}

/// Floor and scan in turns.
fn measure(path: &Path, store: &Store, threads: usize) -> Result<(Times, Times)> {
    let mut decoders: Vec<Decoder> = (0..threads).map(|_| Decoder::new()).collect();
    let scan = Scan::open(path, threads)?;
    let (mut floor_times, mut scan_times) = (Times::default(), Times::default());
    for round in 0..=ROUNDS {
        let start = Instant::now();
        let bytes = floor(&store.files, &mut decoders)?;
        let floor_time = start.elapsed();
        let start = Instant::now();
        let rows = scan.rows()?;
        let scan_time = start.elapsed();
        // Chunks reach over the edges of the array.
        if bytes < store.bytes || rows != store.rows {
            return Err(format!("{bytes} bytes and {rows} rows of {} and {}", store.bytes, store.rows).into());
        }
        if let Some(i) = round.checked_sub(1) {
            (floor_times[i], scan_times[i]) = (floor_time, scan_time);
        }
    }
    floor_times.sort();
    scan_times.sort();
    Ok((floor_times, scan_times))
}

/// `SELECT *` of one store.
struct Scan {
    runtime: Runtime,
    context: SessionContext,
}

impl Scan {
    fn open(store: &Path, threads: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        let table = runtime.block_on(ZarrTable::open(&store.to_string_lossy()))?;
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(threads));
        context.register_table("store", Arc::new(table))?;
        Ok(Self { runtime, context })
    }

    /// Run all partitions at once, and count the rows of their batches.
    fn rows(&self) -> Result<usize> {
        self.runtime.block_on(async {
            let plan = self.context.sql("SELECT * FROM store").await?.create_physical_plan().await?;
            let mut partitions = JoinSet::new();
            for batches in execute_stream_partitioned(plan, self.context.task_ctx())? {
                partitions.spawn(batches.try_fold(0, |rows, batch| async move { Ok(rows + batch.num_rows()) }));
            }
            Ok(partitions.join_all().await.into_iter().sum::<datafusion::common::Result<usize>>()?)
        })
    }
}

/// Peak of resident memory in MB of a process that only scans `store`.
fn peak_of(store: &Path, threads: usize) -> Result<u64> {
    let output = Command::new(env::current_exe()?).arg(PEAK).arg(store).arg(threads.to_string()).output()?;
    let peak = String::from_utf8_lossy(&output.stdout).trim().parse();
    peak.map_err(|_| String::from_utf8_lossy(&output.stderr).into())
}

/// The same of this process, after two scans.
fn peak_here(store: &Path, threads: usize) -> Result<u64> {
    let scan = Scan::open(store, threads)?;
    scan.rows()?;
    scan.rows()?;
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    Ok(peak.ok_or("no `VmHWM` in /proc/self/status")?.parse::<u64>()? * 1024 / 1_000_000)
}

/// What the floor has to know of a store.
#[derive(Default)]
struct Store {
    /// Chunks of all data variables, those of one place after each other, as a scan reads them.
    files: Vec<ChunkFile>,
    /// Cells of a data variable.
    rows: usize,
    /// Bytes of all data variables, decoded.
    bytes: usize,
}

/// A stored chunk, or a shard of many.
struct ChunkFile {
    path: PathBuf,
    /// Its number in its array.
    number: usize,
    /// Name of the codec after `bytes`, or nothing.
    codec: String,
    /// Bytes of a chunk (an inner one of a shard), decoded.
    bytes: usize,
    /// Chunks of the shard; 0 where it is none.
    inner: usize,
}

impl Store {
    fn open(path: &Path) -> Result<Self> {
        let mut store = Self::default();
        for metadata in find(path, |path| path.ends_with("zarr.json") || path.ends_with(".zarray"))? {
            store.add_array(metadata.parent().unwrap_or(path), &serde_json::from_slice(&fs::read(&metadata)?)?)?;
        }
        store.files.sort_by_key(|file| file.number);
        Ok(store)
    }

    /// Add the chunks of a data variable.
    fn add_array(&mut self, folder: &Path, array: &Value) -> Result<()> {
        // Groups have no shape. Coordinates have one dimension, and are read when the table opens.
        if array["shape"].as_array().is_none_or(|shape| shape.len() < 2) {
            return Ok(());
        }
        let cells = |lengths: &Value| serde_json::from_value::<Vec<usize>>(lengths.clone()).map(|l| l.iter().product());
        let sharding = &array["codecs"][0]["configuration"];
        let sharded = !sharding["chunk_shape"].is_null();
        let codecs = if sharded { &sharding["codecs"] } else { &array["codecs"] };
        let (stored, codec, data_type, unit) = if array["zarr_format"] == 2 {
            (&array["chunks"], &array["compressor"]["id"], &array["dtype"], 1)
        } else {
            (&array["chunk_grid"]["configuration"]["chunk_shape"], &codecs[1]["name"], &array["data_type"], 8)
        };
        // `<f4` or `float32`.
        let digits = data_type.as_str().unwrap_or_default().trim_start_matches(|c: char| !c.is_ascii_digit());
        let element = digits.parse::<usize>()? / unit;
        let chunk: usize = cells(if sharded { &sharding["chunk_shape"] } else { stored })?;
        let inner = if sharded { cells(stored)? / chunk } else { 0 };
        let codec = codec.as_str().unwrap_or_default();
        // `0.1.2` or `c/0/1/2`.
        let is_chunk = |path: &Path| path.is_file() && path.to_string_lossy().ends_with(|c: char| c.is_ascii_digit());
        let file = |(number, path)| ChunkFile { path, number, codec: codec.to_owned(), bytes: chunk * element, inner };
        self.files.extend(find(folder, is_chunk)?.into_iter().enumerate().map(file));
        self.rows = cells(&array["shape"])?;
        self.bytes += self.rows * element;
        Ok(())
    }
}

/// Read and decode all chunks, shared by as many threads as there are decoders, and count the bytes.
fn floor(files: &[ChunkFile], decoders: &mut [Decoder]) -> Result<usize> {
    let threads = decoders.len();
    thread::scope(|scope| {
        let start = |(i, decoder): (usize, _)| scope.spawn(move || Decoder::decode_share(decoder, files, i, threads));
        let running: Vec<_> = decoders.iter_mut().enumerate().map(start).collect();
        running.into_iter().map(|t| t.join().map_err(|_| "a thread of the floor panicked")?).sum()
    })
}

/// What one thread of the floor uses again and again.
struct Decoder {
    encoded: Vec<u8>,
    decoded: Vec<u8>,
    zstd: DCtx<'static>,
    inflate: Decompress,
}

impl Decoder {
    fn new() -> Self {
        Self { encoded: Vec::new(), decoded: Vec::new(), zstd: DCtx::create(), inflate: Decompress::new(false) }
    }

    /// Every `threads`-th chunk from number `first`, in shards and outside; the bytes of them.
    fn decode_share(&mut self, files: &[ChunkFile], first: usize, threads: usize) -> Result<usize> {
        let (mut bytes, mut turns) = (0, (0..threads).cycle());
        for chunk in files {
            let whole = chunk.inner == 0;
            if whole && turns.next() != Some(first) {
                continue;
            }
            let file = File::open(&chunk.path)?;
            let size = file.metadata()?.len();
            for (at, length) in if whole { vec![(0, size)] } else { self.read_index(&file, size, chunk.inner)? } {
                if whole || turns.next() == Some(first) {
                    self.decode(&file, at, length, chunk)?;
                    bytes += chunk.bytes;
                }
            }
        }
        Ok(bytes)
    }

    /// Offsets and lengths of the chunks that a shard holds: 16 bytes each, at its end before a checksum.
    fn read_index(&mut self, file: &File, size: u64, inner: usize) -> Result<Vec<(u64, u64)>> {
        let length = 16 * inner as u64 + 4;
        let at = size.checked_sub(length).ok_or("a shard is shorter than its index")?;
        let (words, _) = read(file, at, length, &mut self.encoded)?.as_chunks::<8>();
        let pairs = words.chunks_exact(2).map(|pair| (u64::from_le_bytes(pair[0]), u64::from_le_bytes(pair[1])));
        Ok(pairs.filter(|pair| *pair != (u64::MAX, u64::MAX)).collect())
    }

    fn decode(&mut self, file: &File, at: u64, length: u64, chunk: &ChunkFile) -> Result<()> {
        let Self { encoded, decoded, zstd, inflate } = self;
        let bytes = if chunk.codec.is_empty() {
            read(file, at, length, decoded)?.len()
        } else {
            let (encoded, out) = (read(file, at, length, encoded)?, sized(decoded, chunk.bytes));
            match chunk.codec.as_str() {
                "blosc" => unblosc(encoded, out)?,
                "zstd" => zstd.decompress(out, encoded).map_err(get_error_name)?,
                "gzip" => gunzip(encoded, out, inflate)?,
                other => return Err(format!("the floor has no codec `{other}`").into()),
            }
        };
        if bytes == chunk.bytes { Ok(()) } else { Err(format!("a chunk has {bytes} of {} bytes", chunk.bytes).into()) }
    }
}

/// Part of a file.
fn read<'a>(mut file: &File, at: u64, length: u64, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    let part = sized(buffer, usize::try_from(length)?);
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(part)?;
    Ok(part)
}

/// The front of a buffer, which grows where it must.
fn sized(buffer: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    &mut buffer[..length]
}

fn unblosc(encoded: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut claimed = 0;
    // SAFETY: `encoded` is valid for reads of the length given, and `claimed` for a write.
    let invalid =
        unsafe { blosc_src::blosc_cbuffer_validate(encoded.as_ptr().cast(), encoded.len(), &raw mut claimed) };
    if invalid != 0 || claimed != out.len() {
        return Err("bad blosc header".into());
    }
    // SAFETY: `blosc_cbuffer_validate` has found the header's length to be that of `encoded`; `out` is valid for writes
    // of the length given, and does not overlap it.
    let n = unsafe { blosc_src::blosc_decompress_ctx(encoded.as_ptr().cast(), out.as_mut_ptr().cast(), out.len(), 1) };
    Ok(usize::try_from(n)?)
}

/// One member with a header of 10 bytes (no flags), as Python writes it; its checksum is left alone.
fn gunzip(encoded: &[u8], out: &mut [u8], inflate: &mut Decompress) -> Result<usize> {
    let [0x1f, 0x8b, 8, 0, _, _, _, _, _, _, stream @ ..] = encoded else { return Err("bad gzip header".into()) };
    inflate.reset(false);
    inflate.decompress(stream, out, FlushDecompress::Finish)?;
    Ok(usize::try_from(inflate.total_out())?)
}
