//! `numcodecs.lz4`: one LZ4 block after its decoded size as a little-endian 32-bit integer (numcodecs/lz4.pyx).

use super::scratch::Buffer;

/// No LZ4 block is more than 255 times as long when decoded (LZ4 block format: a byte lengthens a match by at most
/// 255).
const RATIO: usize = 255;

/// The claimed size, and the block.
fn parse(encoded: &[u8]) -> Result<(usize, &[u8]), String> {
    let (size, block) = encoded
        .split_first_chunk::<4>()
        .ok_or_else(|| format!("{} bytes are too few to hold a size", encoded.len()))?;
    let size = i32::from_le_bytes(*size);
    let size = usize::try_from(size).map_err(|_| format!("it claims {size} bytes"))?;
    Ok((size, block))
}

/// Decode into `out`, exactly.
pub(super) fn decode_into(encoded: &[u8], out: &mut [u8]) -> Result<(), String> {
    let (size, block) = parse(encoded)?;
    if size != out.len() {
        return Err(format!("it claims {size} bytes where {} are expected", out.len()));
    }
    if size == 0 && block.is_empty() {
        return Ok(());
    }
    match lz4_flex::block::decompress_into(block, out) {
        Ok(n) if n == size => Ok(()),
        Ok(n) => Err(format!("it holds {n} bytes where {size} are expected")),
        Err(error) => Err(format!("bad LZ4 block: {error}")),
    }
}

/// Decode at most `limit` bytes.
pub(super) fn decode_at_most(encoded: &[u8], limit: usize, out: &mut Buffer) -> Result<(), String> {
    let (size, block) = parse(encoded)?;
    if size > limit.min(block.len().saturating_mul(RATIO)) {
        return Err(format!("it claims {size} bytes, more than are expected"));
    }
    out.resize(size)?;
    decode_into(encoded, out.as_mut_slice())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            scratch::Scratch,
            testing::{HELLO, hex},
        },
        *,
    };

    // numcodecs.LZ4().encode(HELLO)
    const GOLDEN: &str = "170000006868656c6c6f2006005068656c6c6f";

    fn decode(encoded: &[u8], len: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0; len];
        decode_into(encoded, &mut out).map(|()| out)
    }

    #[test]
    fn block() {
        assert_eq!(decode(&hex(GOLDEN), 23).unwrap(), HELLO);
        // numcodecs.LZ4().encode(b"")
        assert!(decode(&hex("0000000000"), 0).unwrap().is_empty());
        let mut out = Scratch::default().take(0).unwrap();
        decode_at_most(&hex(GOLDEN), 23, &mut out).unwrap();
        assert_eq!(out.as_slice(), HELLO);
        assert!(decode_at_most(&hex(GOLDEN), 22, &mut out).is_err());
    }

    #[test]
    fn damage() {
        assert!(decode(&hex(GOLDEN), 22).unwrap_err().contains("claims 23 bytes"));
        for cut in 0..GOLDEN.len() / 2 {
            assert!(decode(&hex(GOLDEN)[..cut], 23).is_err(), "{cut}");
        }
        assert!(decode(&hex("ffffffff00"), 0).unwrap_err().contains("claims -1"));
        let mut out = Scratch::default().take(0).unwrap();
        assert!(decode_at_most(&hex("ffffff7f00"), usize::MAX, &mut out).is_err());
    }
}
