//! Encoded bytes of local files, read on the thread that decodes them into a buffer that is used again.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::{ByteRange, file_size};

/// How reading into a buffer of a fixed length ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RawRead {
    Done,
    NoFile,
    /// There are so many bytes, and nothing was read.
    Holds(u64),
}

/// Bytes read at once into memory that is looked at: they stay in cache.
const PIECE: usize = 256 << 10;

/// Reads files of a local store: the last one stays open, since the chunks of a shard follow each other.
#[derive(Debug, Default)]
pub(crate) struct LocalFiles {
    buffer: Vec<u8>,
    open: Option<(PathBuf, File, u64)>,
}

impl LocalFiles {
    /// The whole file, or the part `range` of it; `None` where it does not exist. More than `limit` bytes are refused before they are read.
    pub(crate) fn read(
        &mut self,
        key: &str,
        path: &Path,
        range: Option<ByteRange>,
        limit: u64,
    ) -> Result<Option<&[u8]>> {
        let Some(range) = self.locate(key, path, range)? else { return Ok(None) };
        let length = range.end.saturating_sub(range.start);
        let Some(length) = usize::try_from(length).ok().filter(|_| length <= limit) else {
            return Err(failure(key, format!("{length} bytes are more than the {limit} that its chunk can need")));
        };
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let outcome = self.read_at(key, range.start, buffer.get_mut(..length).unwrap_or_default());
        self.buffer = buffer;
        outcome?;
        Ok(self.buffer.get(..length))
    }

    /// The same straight into `out`, if that has the length of what is there; `seen` gets it piece by piece, while it is in cache.
    pub(crate) fn read_into(
        &mut self,
        key: &str,
        path: &Path,
        range: Option<ByteRange>,
        out: &mut [u8],
        mut seen: impl FnMut(&[u8]),
    ) -> Result<RawRead> {
        let Some(range) = self.locate(key, path, range)? else { return Ok(RawRead::NoFile) };
        let length = range.end.saturating_sub(range.start);
        if length != out.len() as u64 {
            return Ok(RawRead::Holds(length));
        }
        self.seek(key, range.start)?;
        for piece in out.chunks_mut(PIECE) {
            self.read_next(key, piece)?;
            seen(piece);
        }
        Ok(RawRead::Done)
    }

    /// Open the file and say which of its bytes `range` is.
    fn locate(&mut self, key: &str, path: &Path, range: Option<ByteRange>) -> Result<Option<Range<u64>>> {
        if !self.open(path).map_err(|e| failure(key, e))? {
            return Ok(None);
        }
        let size = self.open.as_ref().map_or(0, |(_, _, size)| *size);
        let range = match range {
            None => 0..size,
            Some(ByteRange::Offsets(r)) => r,
            Some(ByteRange::Suffix(n)) => size.saturating_sub(n)..size,
        };
        if range.end > size {
            return Err(failure(
                key,
                format!("it has {size} bytes and bytes {}..{} are needed", range.start, range.end),
            ));
        }
        Ok(Some(range))
    }

    fn read_at(&mut self, key: &str, start: u64, out: &mut [u8]) -> Result<()> {
        self.seek(key, start)?;
        self.read_next(key, out)
    }

    fn seek(&mut self, key: &str, start: u64) -> Result<()> {
        let Some((_, file, _)) = &mut self.open else { return Ok(()) };
        file.seek(SeekFrom::Start(start)).map(|_| ()).map_err(|e| failure(key, e))
    }

    fn read_next(&mut self, key: &str, out: &mut [u8]) -> Result<()> {
        let Some((_, file, _)) = &mut self.open else { return Ok(()) };
        file.read_exact(out).map_err(|e| failure(key, e))
    }

    /// Open `path`, if it is not open already; `false` where there is no such file.
    fn open(&mut self, path: &Path) -> std::io::Result<bool> {
        if self.open.as_ref().is_some_and(|(p, ..)| p == path) {
            return Ok(true);
        }
        self.open = None;
        // Opening a pipe would wait for its writer.
        let Some(size) = file_size(path)? else { return Ok(false) };
        self.open = Some((path.to_owned(), File::open(path)?, size));
        Ok(true)
    }
}

fn failure(key: &str, reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Store { key: key.to_owned(), source: reason.into() }
}
