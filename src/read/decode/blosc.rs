//! Blosc 1 buffers, decoded by c-blosc (blosc-src).
//!
//! The header of 16 bytes (c-blosc, `README_CHUNK_FORMAT.rst`): version of the format, version of the compressor,
//! flags, element size, and as little-endian 32-bit integers the bytes decoded, the bytes of a block and the bytes
//! encoded. Metadata does not matter for decoding. The library does not know how long its input is, and believes the
//! header: everything that it computes with is checked here first.

use super::scratch::Buffer;

/// Bytes of the header.
const HEADER: usize = 16;
/// `BLOSC_VERSION_FORMAT` of blosc.h.
const FORMAT: u8 = 2;
/// The content is stored as it is.
const MEMCPYED: u8 = 2;
/// Reserved: "compressor flags from the future" (blosc.c).
const RESERVED: u8 = 8;
/// `BLOSC_MAX_BUFFERSIZE` of blosc.h.
const MAX_SIZE: usize = i32::MAX as usize - HEADER;
/// `BLOSC_MAX_BLOCKSIZE` of blosc.h.
const MAX_BLOCK: usize = (i32::MAX as usize - 255 * 4) / 3;

/// The fields of a header that agree with the buffer and with each other.
struct Header {
    decoded: usize,
    compressor: u8,
}

impl Header {
    fn parse(encoded: &[u8]) -> Result<Self, String> {
        let header = encoded
            .first_chunk::<HEADER>()
            .ok_or_else(|| format!("{} bytes are too few to hold a header", encoded.len()))?;
        let [version, _, flags, typesize, d0, d1, d2, d3, b0, b1, b2, b3, e0, e1, e2, e3] = *header;
        let size = |bytes| usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX);
        let (decoded, block, whole) = (size([d0, d1, d2, d3]), size([b0, b1, b2, b3]), size([e0, e1, e2, e3]));
        if version != FORMAT || flags & RESERVED != 0 {
            return Err(format!("blosc format {version} with flags {flags:#04x} is unknown"));
        }
        if whole != encoded.len() {
            return Err(format!("the header claims {whole} encoded bytes, but there are {}", encoded.len()));
        }
        if decoded > MAX_SIZE || whole > MAX_SIZE + HEADER {
            return Err(format!("the header claims {decoded} bytes, more than blosc allows"));
        }
        if decoded > 0 && (typesize == 0 || block == 0 || block > decoded || block > MAX_BLOCK) {
            return Err(format!(
                "the header claims elements of {typesize} bytes in blocks of {block} of {decoded} bytes"
            ));
        }
        if flags & MEMCPYED != 0 {
            if decoded.checked_add(HEADER) != Some(whole) {
                return Err(format!("the header claims {decoded} stored bytes, but {} follow", whole - HEADER));
            }
        } else if decoded > 0 && decoded.div_ceil(block) > (whole - HEADER) / 4 {
            return Err("the buffer is too short for its list of blocks".to_owned());
        }
        Ok(Self { decoded, compressor: flags >> 5 })
    }

    /// The most that so many encoded bytes can hold: what the format of the compressor can express, rounded up.
    fn bound(&self, encoded: usize) -> usize {
        let ratio = match self.compressor {
            // zlib: 1032, for runs of 258 bytes in 2 bits.
            3 => 1100,
            // zstd: 128 KiB in a block of 4 bytes.
            4 => 32 << 10,
            // blosclz, lz4, snappy: a byte lengthens a match by at most 255.
            _ => 300,
        };
        encoded.saturating_mul(ratio)
    }
}

/// Decode into `out`, exactly.
pub(super) fn decode_into(encoded: &[u8], out: &mut [u8]) -> Result<(), String> {
    let header = Header::parse(encoded)?;
    if header.decoded != out.len() {
        return Err(format!("it holds {} bytes where {} are expected", header.decoded, out.len()));
    }
    if out.is_empty() {
        return Ok(());
    }
    // SAFETY: `encoded` and `out` are valid for the lengths that the library uses: it reads the encoded length from the
    // header, where `Header::parse` has found it equal to `encoded.len()`, and writes at most the length given. With
    // one thread the call uses no global state.
    let n = unsafe { blosc_src::blosc_decompress_ctx(encoded.as_ptr().cast(), out.as_mut_ptr().cast(), out.len(), 1) };
    if usize::try_from(n) == Ok(out.len()) { Ok(()) } else { Err("bad blosc buffer".to_owned()) }
}

/// Decode at most `limit` bytes.
pub(super) fn decode_at_most(encoded: &[u8], limit: usize, out: &mut Buffer) -> Result<(), String> {
    let header = Header::parse(encoded)?;
    if header.decoded > limit.min(header.bound(encoded.len())) {
        return Err(format!("the header claims {} bytes, more than are expected", header.decoded));
    }
    out.resize(header.decoded)?;
    decode_into(encoded, out.as_mut_slice())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            scratch::Scratch,
            testing::{hex, native},
        },
        *,
    };

    // numcodecs.Blosc(cname, 5, shuffle).encode(np.arange(64, dtype="<u4")): 0 none, 1 bytes, 2 bits
    const GOLDEN: [(&str, &str); 10] = [
        (
            "blosclz 1",
            "02011104000100000001000062000000140000004a0000003f000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f0000e0b400010000",
        ),
        (
            "blosclz 2",
            "02011404000100000001000040000000140000002800000028aaaaaaaaaaaaaaaacca00000f0a0000100ffa0010100ffa003060000ffffffff00e0c400010000",
        ),
        (
            "lz4 0",
            "02013204000100000001000010010000000000000100000002000000030000000400000005000000060000000700000008000000090000000a0000000b0000000c0000000d0000000e0000000f000000100000001100000012000000130000001400000015000000160000001700000018000000190000001a0000001b0000001c0000001d0000001e0000001f000000200000002100000022000000230000002400000025000000260000002700000028000000290000002a0000002b0000002c0000002d0000002e0000002f000000300000003100000032000000330000003400000035000000360000003700000038000000390000003a0000003b0000003c0000003d0000003e0000003f000000",
        ),
        (
            "lz4 1",
            "020131040001000000010000680000001400000050000000ff36000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f00000000000500a3500000000000",
        ),
        (
            "lz4 2",
            "02013404000100000001000042000000140000002a00000013aa010013cc010013f001002300ff02002300ff0400700000ffffffff0009000f0200b3500000000000",
        ),
        (
            "lz4hc 1",
            "02013104000100000001000064000000140000004c000000ff32000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f000100a7500000000000",
        ),
        (
            "zlib 1",
            "02017104000100000001000063000000140000004b000000785e6360646266616563e7e0e4e2e6e1e5e3171014121611151397909492969195935750545256515553d7d0d4d2d6d1d5d33730343236313533b7b0b4b2b6b1b5b36718e2000093fa07e1",
        ),
        (
            "zstd 0",
            "02019004000100000001000088000000140000007000000028b52ffd6000003503000690180810f86c061fab4c011400150015006f9cf1c5154f1cf1c30d2f9cf0c1050f1cf0ef03ef9cf3cd35cf1cf3cb2daf9cf2c9258f1cf2c71d016f9df5d5554f1df5d34d2f9df4d1450f1df4cf3d01ef9df7dd75cf1df7db6daf9df6d9658f1df6d75d0100",
        ),
        (
            "zstd 1",
            "0201910400010000000100006b000000140000005300000028b52ffd6000004d02001404000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f000100018f0251",
        ),
        (
            "zstd 2",
            "0201940400010000000100003f000000140000002700000028b52ffd600000ed000040aaaaccf000ff00ff0820f0027d4950d8033180c9381967461603c002",
        ),
    ];

    fn decode(encoded: &[u8], len: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0; len];
        decode_into(encoded, &mut out).map(|()| out)
    }

    #[test]
    fn every_compressor_and_shuffle() {
        let content = native(&(0..64).collect::<Vec<u32>>(), u32::to_ne_bytes);
        for (name, golden) in GOLDEN {
            assert_eq!(decode(&hex(golden), 256).unwrap(), content, "{name}");
            let mut out = Scratch::default().take(0).unwrap();
            decode_at_most(&hex(golden), 256, &mut out).unwrap();
            assert_eq!(out.as_slice(), content, "{name}");
            assert!(decode_at_most(&hex(golden), 255, &mut out).is_err());
        }
        // numcodecs.Blosc().encode(b"")
        assert!(decode(&hex("02013301000000000100000010000000"), 0).unwrap().is_empty());
    }

    #[test]
    fn header_is_checked() {
        let golden = hex(GOLDEN[1].1);
        let with = |at: usize, bytes: &[u8]| {
            let mut bad = golden.clone();
            bad[at..at + bytes.len()].copy_from_slice(bytes);
            decode(&bad, 256).unwrap_err()
        };
        assert_eq!(decode(&golden, 255).unwrap_err(), "it holds 256 bytes where 255 are expected");
        assert!(decode(&golden[..15], 256).unwrap_err().contains("too few"));
        assert!(decode(&golden[..golden.len() - 1], 256).unwrap_err().contains("encoded bytes"));
        assert!(with(0, &[3]).contains("unknown"));
        assert!(with(2, &[8]).contains("unknown"));
        assert!(with(3, &[0]).contains("elements of 0 bytes"));
        assert!(with(4, &u32::MAX.to_le_bytes()).contains("more than blosc allows"));
        assert!(with(8, &0_u32.to_le_bytes()).contains("blocks of 0"));
        assert!(with(8, &257_u32.to_le_bytes()).contains("blocks of 257"));
        assert!(with(8, &1_u32.to_le_bytes()).contains("too short for its list"));
        assert!(with(2, &[2]).contains("stored bytes"));
        // Its only block starts beyond the end.
        assert_eq!(with(16, &1_000_000_u32.to_le_bytes()), "bad blosc buffer");
    }

    #[test]
    fn false_size_is_not_allocated() {
        // A claim of 2^30 bytes in one block of 100 bytes of lz4.
        let mut bomb = vec![0; 100];
        bomb[..4].copy_from_slice(&[2, 1, 0x20, 1]);
        bomb[4..8].copy_from_slice(&(1_u32 << 30).to_le_bytes());
        bomb[8..12].copy_from_slice(&(1_u32 << 29).to_le_bytes());
        bomb[12..16].copy_from_slice(&100_u32.to_le_bytes());
        let mut out = Scratch::default().take(0).unwrap();
        assert!(decode_at_most(&bomb, usize::MAX, &mut out).unwrap_err().contains("more than are expected"));
    }
}
