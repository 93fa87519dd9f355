//! Bytes → bytes codecs by name, and the undoing of a row of them.

use super::{
    blosc,
    bz2::Bz2,
    checksum::{self, Checksum},
    deflate::{Gzip, Zlib},
    lz4,
    lzma::Lzma,
    pull,
    scratch::{Buffer, Bytes, Scratch},
    shuffle::Shuffle,
    zarrs_codec, zstd,
};
use crate::store::codec::CodecMetadata;

/// A bytes → bytes codec.
#[derive(Debug)]
pub(super) struct ByteCodec {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Blosc,
    Bz2,
    Checksum(Checksum),
    Gzip,
    Lz4,
    Lzma(Lzma),
    Shuffle(Shuffle),
    Zlib,
    Zstd,
    Other(zarrs_codec::BytesToBytes),
}

/// What is known of the length of bytes before they are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// So many.
    Exactly(usize),
    /// Not more than so many.
    AtMost(usize),
}

impl Size {
    fn max(self) -> usize {
        match self {
            Self::Exactly(n) | Self::AtMost(n) => n,
        }
    }

    /// Check a length that is known.
    pub(super) fn check(self, len: usize) -> Result<(), String> {
        match self {
            Self::Exactly(n) if n != len => Err(format!("there are {len} bytes where {n} are expected")),
            Self::AtMost(n) if len > n => Err(format!("there are {len} bytes where at most {n} are expected")),
            _ => Ok(()),
        }
    }
}

impl ByteCodec {
    /// The bytes → bytes codec of this name, `None` if it is another kind of codec or unknown.
    pub(super) fn new(codec: &CodecMetadata) -> Result<Option<Self>, String> {
        let kind = match codec.name.as_str() {
            "blosc" | "numcodecs.blosc" => Kind::Blosc,
            "numcodecs.bz2" => Kind::Bz2,
            "gzip" | "numcodecs.gzip" => Kind::Gzip,
            "numcodecs.lz4" => Kind::Lz4,
            "numcodecs.lzma" => Kind::Lzma(Lzma::new(&codec.configuration)?),
            "numcodecs.shuffle" => Kind::Shuffle(Shuffle::new(&codec.configuration)?),
            "numcodecs.zlib" => Kind::Zlib,
            "zstd" | "numcodecs.zstd" => Kind::Zstd,
            name => match Checksum::new(name, &codec.configuration)? {
                Some(checksum) => Kind::Checksum(checksum),
                None => return Ok(None),
            },
        };
        Ok(Some(Self { name: codec.name.clone(), kind }))
    }

    /// A codec of zarrs.
    pub(super) fn other(name: &str, codec: zarrs_codec::BytesToBytes) -> Self {
        Self { name: name.to_owned(), kind: Kind::Other(codec) }
    }

    /// The length of the encoded bytes, given that of the decoded ones.
    fn encoded_size(&self, decoded: Size) -> Size {
        match (&self.kind, decoded) {
            (Kind::Checksum(_), Size::Exactly(n)) => Size::Exactly(n.saturating_add(checksum::SIZE)),
            (Kind::Checksum(_), Size::AtMost(n)) => Size::AtMost(n.saturating_add(checksum::SIZE)),
            (Kind::Shuffle(_), size) => size,
            // More than any of them adds to bytes that it cannot compress: a quarter, and 64 KiB for headers and
            // blocks.
            (_, size) => Size::AtMost(size.max().saturating_add(size.max() / 4).saturating_add(64 << 10)),
        }
    }

    /// Decode into `out`, exactly.
    fn decode_into(&self, encoded: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<(), String> {
        match &self.kind {
            Kind::Blosc => blosc::decode_into(encoded, out),
            Kind::Bz2 => pull::fill(&mut Bz2::new(encoded), out),
            Kind::Checksum(checksum) => {
                let content = encoded.get(checksum.verify(encoded)?).unwrap_or_default();
                copy(content, out)
            }
            Kind::Gzip => pull::fill(&mut Gzip::new(encoded, scratch), out),
            Kind::Lz4 => lz4::decode_into(encoded, out),
            Kind::Lzma(lzma) => pull::fill(&mut lzma.decoder(encoded)?, out),
            Kind::Shuffle(shuffle) => shuffle.decode_into(encoded, out),
            Kind::Zlib => pull::fill(&mut Zlib::new(encoded, scratch), out),
            Kind::Zstd => zstd::decode_into(encoded, out, scratch),
            Kind::Other(codec) => copy(&codec.decode(encoded, Size::Exactly(out.len()))?, out),
        }
    }

    /// Decode at most `limit` bytes into an empty buffer.
    fn decode_at_most(
        &self,
        encoded: &[u8],
        limit: usize,
        out: &mut Buffer,
        scratch: &mut Scratch,
    ) -> Result<(), String> {
        match &self.kind {
            Kind::Blosc => blosc::decode_at_most(encoded, limit, out),
            Kind::Bz2 => pull::grow(&mut Bz2::new(encoded), limit, out),
            Kind::Gzip => pull::grow(&mut Gzip::new(encoded, scratch), limit, out),
            Kind::Lz4 => lz4::decode_at_most(encoded, limit, out),
            Kind::Lzma(lzma) => pull::grow(&mut lzma.decoder(encoded)?, limit, out),
            Kind::Zlib => pull::grow(&mut Zlib::new(encoded, scratch), limit, out),
            Kind::Zstd => zstd::decode_at_most(encoded, limit, out, scratch),
            Kind::Checksum(_) | Kind::Shuffle(_) => {
                Size::AtMost(limit).check(encoded.len())?;
                out.resize(encoded.len())?;
                self.decode_into(encoded, out.as_mut_slice(), scratch)
            }
            Kind::Other(codec) => {
                let bytes = codec.decode(encoded, Size::AtMost(limit))?;
                Size::AtMost(limit).check(bytes.len())?;
                out.resize(bytes.len())?;
                copy(&bytes, out.as_mut_slice())
            }
        }
    }

    /// Undo the codec: without a copy where it only adds a checksum, else into a buffer.
    fn undo<'a>(&self, encoded: Bytes<'a>, size: Size, scratch: &mut Scratch) -> Result<Bytes<'a>, String> {
        match &self.kind {
            Kind::Checksum(checksum) => {
                let content = checksum.verify(encoded.as_slice())?;
                size.check(content.len())?;
                Ok(encoded.narrowed(&content))
            }
            Kind::Shuffle(shuffle) if shuffle.is_identity() => {
                size.check(encoded.as_slice().len())?;
                Ok(encoded)
            }
            _ => {
                let buffer = match size {
                    Size::Exactly(len) => {
                        let mut buffer = scratch.take(len)?;
                        self.decode_into(encoded.as_slice(), buffer.as_mut_slice(), scratch)?;
                        buffer
                    }
                    Size::AtMost(limit) => {
                        let mut buffer = scratch.take(0)?;
                        self.decode_at_most(encoded.as_slice(), limit, &mut buffer, scratch)?;
                        buffer
                    }
                };
                encoded.recycle(scratch);
                Ok(Bytes::Owned(buffer))
            }
        }
    }

    fn blame(&self, reason: &str) -> String {
        format!("codec `{}`: {reason}", self.name)
    }
}

/// The length of bytes after all of the codecs have encoded them.
pub(super) fn encoded_size(codecs: &[ByteCodec], decoded: Size) -> Size {
    codecs.iter().fold(decoded, |size, codec| codec.encoded_size(size))
}

/// Undo all of the codecs, the last first.
pub(super) fn undo<'a>(
    codecs: &[ByteCodec],
    encoded: &'a [u8],
    decoded: Size,
    scratch: &mut Scratch,
) -> Result<Bytes<'a>, String> {
    let mut bytes = Bytes::Borrowed(encoded);
    let mut left = codecs;
    while let Some((codec, before)) = left.split_last() {
        bytes = codec.undo(bytes, encoded_size(before, decoded), scratch).map_err(|reason| codec.blame(&reason))?;
        left = before;
    }
    decoded.check(bytes.as_slice().len())?;
    Ok(bytes)
}

/// Undo all of the codecs into `out`, exactly. The last step, which undoes the first codec, writes there and nowhere
/// else.
pub(super) fn undo_into(
    codecs: &[ByteCodec],
    encoded: &[u8],
    out: &mut [u8],
    scratch: &mut Scratch,
) -> Result<(), String> {
    let Some((first, others)) = codecs.split_first() else {
        return copy(encoded, out);
    };
    let bytes = undo(others, encoded, first.encoded_size(Size::Exactly(out.len())), scratch)?;
    first.decode_into(bytes.as_slice(), out, scratch).map_err(|reason| first.blame(&reason))?;
    bytes.recycle(scratch);
    Ok(())
}

/// Copy bytes that must be as many as there is room for.
pub(super) fn copy(bytes: &[u8], out: &mut [u8]) -> Result<(), String> {
    Size::Exactly(out.len()).check(bytes.len())?;
    out.copy_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::testing::{HELLO, codecs, hex},
        *,
    };

    const ZSTD: &str = "28b52ffd20176500003068656c6c6f200100994b11";

    fn chain(names: &[&str]) -> Vec<ByteCodec> {
        let list: Value = names.iter().map(|name| json!({"name": name, "configuration": {"elementsize": 1}})).collect();
        codecs(&list).iter().map(|codec| ByteCodec::new(codec).unwrap().unwrap()).collect()
    }

    fn crc32c(bytes: &[u8]) -> Vec<u8> {
        [bytes, &::crc32c::crc32c(bytes).to_le_bytes()].concat()
    }

    fn both(codecs: &[ByteCodec], encoded: &[u8], size: Size) -> Result<Vec<u8>, String> {
        let mut scratch = Scratch::default();
        let bytes = undo(codecs, encoded, size, &mut scratch)?.as_slice().to_vec();
        if let Size::Exactly(len) = size {
            let mut out = vec![0; len];
            undo_into(codecs, encoded, &mut out, &mut scratch)?;
            assert_eq!(out, bytes);
        }
        Ok(bytes)
    }

    #[test]
    fn rows_of_codecs() {
        let zstd = hex(ZSTD);
        let lz4 = |bytes: &[u8]| {
            [&u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], &lz4_flex::block::compress(bytes)].concat()
        };
        for (names, encoded) in [
            (&[][..], HELLO.to_vec()),
            (&["zstd"], zstd.clone()),
            (&["crc32c"], crc32c(HELLO)),
            (&["zstd", "crc32c"], crc32c(&zstd)),
            (&["zstd", "crc32c", "crc32c"], crc32c(&crc32c(&zstd))),
            (&["numcodecs.shuffle", "zstd"], zstd.clone()),
            (&["crc32c", "numcodecs.lz4"], lz4(&crc32c(HELLO))),
            (&["zstd", "numcodecs.lz4"], lz4(&zstd)),
            (&["zstd", "numcodecs.lz4", "crc32c", "numcodecs.shuffle", "numcodecs.lz4"], lz4(&crc32c(&lz4(&zstd)))),
        ] {
            let codecs = chain(names);
            assert_eq!(both(&codecs, &encoded, Size::Exactly(23)).as_deref(), Ok(HELLO), "{names:?}");
            assert_eq!(both(&codecs, &encoded, Size::AtMost(23)).as_deref(), Ok(HELLO), "{names:?}");
            for size in [Size::Exactly(22), Size::Exactly(24), Size::AtMost(22)] {
                assert!(both(&codecs, &encoded, size).is_err(), "{names:?} {size:?}");
            }
            for cut in 0..encoded.len() {
                assert!(both(&codecs, &encoded[..cut], Size::Exactly(23)).is_err(), "{names:?} {cut}");
            }
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(encoded_size(&chain(&["crc32c", "numcodecs.shuffle"]), Size::Exactly(8)), Size::Exactly(12));
        assert_eq!(encoded_size(&chain(&["zstd", "crc32c"]), Size::Exactly(8)), Size::AtMost(8 + 2 + (64 << 10) + 4));
        assert_eq!(encoded_size(&chain(&["zstd"]), Size::AtMost(usize::MAX)), Size::AtMost(usize::MAX));
    }

    #[test]
    fn the_codec_is_named() {
        let error = both(&chain(&["zstd", "crc32c"]), &crc32c(b"nonsense"), Size::Exactly(23)).unwrap_err();
        assert_eq!(error, "codec `zstd`: it does not begin as a zstd frame");
    }
}
