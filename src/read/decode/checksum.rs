//! Checksums beside the bytes they check: 4 bytes, little-endian, before or after the content.
//!
//! Format 3 has `crc32c`, at the end (zarr-specs, codecs/crc32c). The numcodecs `crc32`, `crc32c` and `adler32` have an
//! option `location`, whose default is `end` for `crc32c` and `start` for the others (numcodecs/checksum32.py);
//! `fletcher32` is that of HDF5 and stands at the end (numcodecs/fletcher32.pyx).

use std::ops::Range;

use flate2::Crc;
use serde_json::{Map, Value};

/// Bytes of a checksum.
pub(super) const SIZE: usize = 4;

/// A codec that adds a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checksum {
    function: Function,
    at_start: bool,
}

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    /// Castagnoli's CRC.
    Crc32c,
    /// The CRC of zlib.
    Crc32,
    /// Adler's sum, of zlib.
    Adler32,
    /// Fletcher's sum over big-endian 16-bit words, of HDF5.
    Fletcher32,
}

impl Checksum {
    /// The checksum codec of this name, `None` if it is another kind of codec.
    pub(super) fn new(name: &str, configuration: &Map<String, Value>) -> Result<Option<Self>, String> {
        let (function, default) = match name {
            "crc32c" => return Ok(Some(Self { function: Function::Crc32c, at_start: false })),
            "numcodecs.crc32c" => (Function::Crc32c, "end"),
            "numcodecs.crc32" => (Function::Crc32, "start"),
            "numcodecs.adler32" => (Function::Adler32, "start"),
            "numcodecs.fletcher32" => return Ok(Some(Self { function: Function::Fletcher32, at_start: false })),
            _ => return Ok(None),
        };
        let location = match configuration.get("location") {
            None | Some(Value::Null) => default,
            Some(Value::String(location)) => location,
            Some(other) => return Err(format!("codec `{name}` has the `location` {other}")),
        };
        match location {
            "start" => Ok(Some(Self { function, at_start: true })),
            "end" => Ok(Some(Self { function, at_start: false })),
            other => Err(format!("codec `{name}` has the unknown `location` `{other}`")),
        }
    }

    /// Check the content, and return where it lies.
    pub(super) fn verify(self, encoded: &[u8]) -> Result<Range<usize>, String> {
        let too_short = || format!("{} bytes are too few to hold a checksum", encoded.len());
        let payload = encoded.len().checked_sub(SIZE).ok_or_else(too_short)?;
        let (content, stored) = if self.at_start {
            encoded.split_first_chunk::<SIZE>().map(|(stored, content)| (content, stored)).ok_or_else(too_short)?
        } else {
            encoded.split_last_chunk::<SIZE>().ok_or_else(too_short)?
        };
        let stored = u32::from_le_bytes(*stored);
        let computed = self.compute(content);
        if stored != computed {
            return Err(format!("the checksum is {stored:#010x}, but the bytes have {computed:#010x}"));
        }
        Ok(if self.at_start { SIZE..encoded.len() } else { 0..payload })
    }

    fn compute(self, content: &[u8]) -> u32 {
        match self.function {
            Function::Crc32c => crc32c::crc32c(content),
            Function::Crc32 => {
                let mut crc = Crc::new();
                crc.update(content);
                crc.sum()
            }
            Function::Adler32 => adler32(content),
            Function::Fletcher32 => fletcher32(content),
        }
    }
}

/// RFC 1950, section 9.
fn adler32(content: &[u8]) -> u32 {
    const BASE: u32 = 65521;
    // The most bytes whose sums fit 32 bits before they are reduced (RFC 1950: NMAX).
    const RUN: usize = 5552;
    let (mut a, mut b) = (1_u32, 0_u32);
    for run in content.chunks(RUN) {
        // Sixteen bytes at a time: b gains 16 a and the bytes weighted 16, 15, ... 1, so that nothing waits for the
        // byte before.
        let (blocks, rest) = run.as_chunks::<16>();
        for block in blocks {
            let weighted: u32 = block.iter().zip((1..=16).rev()).map(|(&byte, weight)| u32::from(byte) * weight).sum();
            b += 16 * a + weighted;
            a += block.iter().map(|&byte| u32::from(byte)).sum::<u32>();
        }
        for &byte in rest {
            a += u32::from(byte);
            b += a;
        }
        a %= BASE;
        b %= BASE;
    }
    (b << 16) | a
}

/// `H5_checksum_fletcher32` of HDF5 (H5checksum.c), as numcodecs has it.
fn fletcher32(content: &[u8]) -> u32 {
    // The most words whose sums fit 32 bits before they are folded (H5checksum.c).
    const RUN: usize = 360;
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (words, odd) = content.as_chunks::<2>();
    let (mut sum1, mut sum2) = (0_u32, 0_u32);
    for run in words.chunks(RUN) {
        for &word in run {
            sum1 += u32::from(u16::from_be_bytes(word));
            sum2 += sum1;
        }
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    if let [byte] = odd {
        sum1 += u32::from(*byte) << 8;
        sum2 += sum1;
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    (fold(sum2) << 16) | fold(sum1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checksum(name: &str, configuration: &Value) -> Result<Option<Checksum>, String> {
        Checksum::new(name, configuration.as_object().unwrap())
    }

    fn bytes() -> Vec<u8> {
        (0..100_003_u32).map(|i| u8::try_from(i.wrapping_mul(i) % 251).unwrap()).collect()
    }

    // google_crc32c.value, zlib.crc32, zlib.adler32 and numcodecs.Fletcher32 of bytes((i * i % 2**32 % 251) for i in
    // range(100003)).
    const GOLDEN: [(Function, u32); 4] = [
        (Function::Crc32c, 0x7d96_f220),
        (Function::Crc32, 0x9627_2769),
        (Function::Adler32, 0x20a0_e0c0),
        (Function::Fletcher32, 0xa66b_9ac1),
    ];

    #[test]
    fn sums_are_those_of_the_python_libraries() {
        for (function, sum) in GOLDEN {
            assert_eq!(Checksum { function, at_start: true }.compute(&bytes()), sum, "{function:?}");
        }
        // numcodecs.Fletcher32().encode(b"abcde") ends in 0x4ff029c7, zlib.adler32(b"") is 1.
        assert_eq!((fletcher32(b"abcde"), adler32(b"")), (0x4ff0_29c7, 1));
        assert_eq!(adler32(&vec![255; 100_000]), 0x149a_302c);
    }

    #[test]
    fn location() {
        for (name, configuration, at_start) in [
            ("crc32c", json!({}), false),
            ("numcodecs.crc32c", json!({}), false),
            ("numcodecs.crc32c", json!({"location": "start"}), true),
            ("numcodecs.crc32", json!({}), true),
            ("numcodecs.crc32", json!({"location": "end"}), false),
            ("numcodecs.adler32", json!({"location": null}), true),
            ("numcodecs.fletcher32", json!({}), false),
        ] {
            let codec = checksum(name, &configuration).unwrap().unwrap();
            assert_eq!(codec.at_start, at_start, "{name}");
            let sum = codec.compute(b"content").to_le_bytes();
            let (encoded, content) = if at_start {
                ([&sum, &b"content"[..]].concat(), 4..11)
            } else {
                ([b"content", &sum[..]].concat(), 0..7)
            };
            assert_eq!(codec.verify(&encoded), Ok(content));
            let mut bad = encoded.clone();
            bad[5] ^= 1;
            assert!(codec.verify(&bad).unwrap_err().starts_with("the checksum is 0x"));
            assert_eq!(codec.verify(&encoded[..3]).unwrap_err(), "3 bytes are too few to hold a checksum");
        }
        assert_eq!(checksum("numcodecs.zstd", &json!({})), Ok(None));
        assert!(checksum("numcodecs.crc32", &json!({"location": "middle"})).is_err());
        assert!(checksum("numcodecs.crc32", &json!({"location": 1})).is_err());
    }
}
