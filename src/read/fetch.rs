//! Encoded bytes of local files, read on the thread that decodes them into a buffer that is used again.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::ByteRange;

/// Reads files of a local store: the last one stays open, since the chunks of a shard follow each other.
#[derive(Debug, Default)]
pub(crate) struct LocalFiles {
    buffer: Vec<u8>,
    open: Option<(PathBuf, File, u64)>,
}

impl LocalFiles {
    /// The whole file, or the part `range` of it; `None` where it does not exist. More than `limit` bytes are refused before they are read.
    pub(crate) fn read(&mut self, key: &str, path: PathBuf, range: Option<ByteRange>, limit: u64) -> Result<Option<&[u8]>> {
        let failure = |e: std::io::Error| Error::Store { key: key.to_owned(), source: Box::new(e) };
        if !self.open(&path).map_err(failure)? {
            return Ok(None);
        }
        let Some((_, file, size)) = &mut self.open else { return Ok(None) };
        let range = match range {
            None => 0..*size,
            Some(ByteRange::Offsets(r)) => r,
            Some(ByteRange::Suffix(n)) => size.saturating_sub(n)..*size,
        };
        let length = range.end.saturating_sub(range.start);
        if range.end > *size {
            return Err(failure(std::io::Error::other(format!("it has {size} bytes and bytes {}..{} are needed", range.start, range.end))));
        }
        let length = usize::try_from(length).ok().filter(|_| length <= limit);
        let length = length.ok_or_else(|| failure(std::io::Error::other(format!("it has {size} bytes, more than the {limit} that its chunk can need"))))?;
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        let buffer = self.buffer.get_mut(..length).unwrap_or_default();
        file.seek(SeekFrom::Start(range.start)).and_then(|_| file.read_exact(buffer)).map_err(failure)?;
        Ok(Some(buffer))
    }

    /// Open `path`, if it is not open already; `false` where there is no such file.
    fn open(&mut self, path: &Path) -> std::io::Result<bool> {
        if self.open.as_ref().is_some_and(|(p, ..)| p == path) {
            return Ok(true);
        }
        self.open = None;
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(false),
            Err(e) => return Err(e),
        };
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Ok(false);
        }
        self.open = Some((path.to_owned(), file, metadata.len()));
        Ok(true)
    }
}
