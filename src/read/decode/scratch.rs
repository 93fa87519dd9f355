//! Buffers and decoder states that are kept from one chunk to the next.

use std::ops::Range;

use flate2::Decompress;
use zstd_safe::DCtx;

/// More buffers than a chain of codecs uses at a time are not kept.
const KEPT_BUFFERS: usize = 4;

/// Reusable memory of a thread that decodes chunks.
#[derive(Default)]
pub(crate) struct Scratch {
    buffers: Vec<Vec<u8>>,
    zstd: Option<DCtx<'static>>,
    inflate: Option<Decompress>,
}

impl Scratch {
    /// A buffer of `len` bytes of any content: the smallest kept one that is large enough, else the largest, enlarged.
    pub(super) fn take(&mut self, len: usize) -> Result<Buffer, String> {
        let fitting = (0..self.buffers.len()).filter(|&i| self.size_of(i) >= len).min_by_key(|&i| self.size_of(i));
        let kept = fitting.or_else(|| (0..self.buffers.len()).max_by_key(|&i| self.size_of(i)));
        let bytes = kept.map(|i| self.buffers.swap_remove(i)).unwrap_or_default();
        let mut buffer = Buffer { bytes, used: 0..0 };
        if buffer.bytes.len() < len {
            buffer.bytes.clear();
        }
        buffer.resize(len)?;
        Ok(buffer)
    }

    /// Keep the memory of a buffer for later.
    pub(super) fn give(&mut self, buffer: Buffer) {
        if self.buffers.len() < KEPT_BUFFERS {
            self.buffers.push(buffer.bytes);
        }
    }

    /// A zstd decompression context.
    pub(super) fn zstd(&mut self) -> Result<&mut DCtx<'static>, String> {
        if self.zstd.is_none() {
            self.zstd = DCtx::try_create();
        }
        self.zstd.as_mut().ok_or_else(|| "no memory for a decompression context".to_owned())
    }

    /// An inflate state at the beginning of a stream, raw or in the zlib format.
    pub(super) fn inflate(&mut self, zlib_header: bool) -> &mut Decompress {
        let inflate = self.inflate.get_or_insert_with(|| Decompress::new(zlib_header));
        inflate.reset(zlib_header);
        inflate
    }

    fn size_of(&self, i: usize) -> usize {
        self.buffers.get(i).map_or(0, Vec::len)
    }
}

/// The bytes between two steps of a chain.
pub(super) struct Buffer {
    /// All initialised memory; longer than what is used where the buffer served a larger chunk before.
    bytes: Vec<u8>,
    used: Range<usize>,
}

impl Buffer {
    /// The bytes in use.
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(self.used.clone()).unwrap_or_default()
    }

    /// The bytes in use.
    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.used.clone()).unwrap_or_default()
    }

    /// Use the first `len` bytes, keeping their content as far as they were in use.
    pub(super) fn resize(&mut self, len: usize) -> Result<(), String> {
        if let Some(more) = len.checked_sub(self.bytes.len()) {
            self.bytes.try_reserve_exact(more).map_err(|_| format!("no memory for a buffer of {len} bytes"))?;
            self.bytes.resize(len, 0);
        }
        self.used = 0..len;
        Ok(())
    }

    /// Let a decoder append to the empty vector behind the buffer, with room for at least `len` bytes that are not
    /// initialised.
    pub(super) fn append<E>(
        &mut self,
        len: usize,
        decode: impl FnOnce(&mut Vec<u8>) -> Result<usize, E>,
    ) -> Result<Result<usize, E>, String> {
        self.bytes.clear();
        self.bytes.try_reserve_exact(len).map_err(|_| format!("no memory for a buffer of {len} bytes"))?;
        let result = decode(&mut self.bytes);
        self.used = 0..self.bytes.len();
        Ok(result)
    }

    /// Use a part of the bytes in use.
    fn narrow(&mut self, part: &Range<usize>) {
        let start = self.used.start.saturating_add(part.start).min(self.used.end);
        let end = self.used.start.saturating_add(part.end).clamp(start, self.used.end);
        self.used = start..end;
    }
}

/// The input of a step: a part of the encoded chunk, or the output of the step before.
pub(super) enum Bytes<'a> {
    /// Untouched bytes of the encoded chunk.
    Borrowed(&'a [u8]),
    /// Bytes that a step has made.
    Owned(Buffer),
}

impl Bytes<'_> {
    /// The bytes.
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(buffer) => buffer.as_slice(),
        }
    }

    /// Only a part of the bytes, without copying.
    pub(super) fn narrowed(self, part: &Range<usize>) -> Self {
        match self {
            Self::Borrowed(bytes) => Self::Borrowed(bytes.get(part.clone()).unwrap_or_default()),
            Self::Owned(mut buffer) => {
                buffer.narrow(part);
                Self::Owned(buffer)
            }
        }
    }

    /// Give the memory back, if it was taken from there.
    pub(super) fn recycle(self, scratch: &mut Scratch) {
        if let Self::Owned(buffer) = self {
            scratch.give(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused() {
        let mut scratch = Scratch::default();
        let big = scratch.take(1000).unwrap();
        let at = big.as_slice().as_ptr();
        scratch.give(big);
        let small = scratch.take(10).unwrap();
        assert_eq!((small.as_slice().len(), small.as_slice().as_ptr()), (10, at));
        scratch.give(small);
        let big = scratch.take(1000).unwrap();
        assert_eq!((big.as_slice().len(), big.as_slice().as_ptr()), (1000, at));
    }

    #[test]
    fn buffer_keeps_content_when_it_grows() {
        let mut buffer = Scratch::default().take(2).unwrap();
        buffer.as_mut_slice().copy_from_slice(&[1, 2]);
        buffer.resize(4).unwrap();
        assert_eq!(buffer.as_slice(), [1, 2, 0, 0]);
        assert_eq!(Bytes::Owned(buffer).narrowed(&(1..2)).as_slice(), [2]);
        assert!(Scratch::default().take(usize::MAX).is_err());
    }
}
