//! Zstandard frames (RFC 8878), one or several, each with or without its size.

use zstd_safe::{get_error_name, get_frame_content_size};

use super::scratch::{Buffer, Scratch};

/// Error code of a frame that does not fit the output: `ZSTD_error_dstSize_tooSmall` of `zstd_errors.h`.
const TOO_SMALL: usize = 70_usize.wrapping_neg();

/// First size of the output, in multiples of the input, where the frames do not say how much they hold.
const FIRST_RATIO: usize = 16;

/// The most that a block holds: `Block_Maximum_Size`.
const MAX_BLOCK: usize = 128 << 10;

/// Decode into `out`, exactly. Nothing that the frames claim is allocated: the library decodes straight into the
/// output.
pub(super) fn decode_into(encoded: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<(), String> {
    check_size(encoded, out.len())?;
    match scratch.zstd()?.decompress(out, encoded) {
        Ok(n) if n == out.len() => Ok(()),
        Ok(n) => Err(format!("it holds {n} bytes where {} are expected", out.len())),
        Err(TOO_SMALL) => Err(format!("it holds more than the {} bytes that are expected", out.len())),
        Err(code) => Err(describe(code)),
    }
}

/// Decode at most `limit` bytes. What the frames claim is compared with what their blocks can hold before memory is
/// reserved for it.
pub(super) fn decode_at_most(
    encoded: &[u8],
    limit: usize,
    out: &mut Buffer,
    scratch: &mut Scratch,
) -> Result<(), String> {
    let Frames { claimed, bound } = Frames::walk(encoded)?;
    let too_long = || format!("it holds more than the {limit} bytes that are expected");
    let most = bound.min(limit);
    let mut size = claimed.unwrap_or_else(|| encoded.len().saturating_mul(FIRST_RATIO).max(MAX_BLOCK).min(most));
    if size > most {
        return Err(if size > bound {
            format!("the frames claim {size} bytes, which is more than they can hold")
        } else {
            too_long()
        });
    }
    loop {
        let context = scratch.zstd()?;
        match out.append(size, |bytes| context.decompress(bytes, encoded))? {
            Ok(n) if n > limit => return Err(too_long()),
            Ok(_) => return Ok(()),
            Err(TOO_SMALL) if claimed.is_none() && size < most => size = size.saturating_mul(2).min(most),
            Err(TOO_SMALL) => return Err(too_long()),
            Err(code) => return Err(describe(code)),
        }
    }
}

/// What can be learnt about frames without decoding them.
struct Frames {
    /// How much they say they hold, if all of them do.
    claimed: Option<usize>,
    /// How much their blocks can hold at most.
    bound: usize,
}

impl Frames {
    /// Walk from block to block (RFC 8878, 3.1).
    fn walk(encoded: &[u8]) -> Result<Self, String> {
        const FRAME: u32 = 0xfd2f_b528;
        const SKIPPABLE: u32 = 0x184d_2a50;
        let mut frames = Self { claimed: Some(0), bound: 0 };
        let mut rest = encoded;
        while !rest.is_empty() {
            let magic = u32::from_le_bytes(cut(&mut rest)?);
            if magic & !0xf == SKIPPABLE {
                let size = u32::from_le_bytes(cut(&mut rest)?);
                skip(&mut rest, usize::try_from(size).unwrap_or(usize::MAX))?;
            } else if magic == FRAME {
                frames.walk_frame(&mut rest)?;
            } else {
                return Err("it does not begin as a zstd frame".to_owned());
            }
        }
        Ok(frames)
    }

    fn walk_frame(&mut self, rest: &mut &[u8]) -> Result<(), String> {
        let [descriptor] = cut(rest)?;
        let single_segment = descriptor & 0x20 != 0;
        if !single_segment {
            skip(rest, 1)?;
        }
        skip(
            rest,
            match descriptor & 3 {
                3 => 4,
                dictionary => usize::from(dictionary),
            },
        )?;
        let claimed = match descriptor >> 6 {
            0 if single_segment => Some(u64::from(u8::from_le_bytes(cut(rest)?))),
            0 => None,
            1 => Some(u64::from(u16::from_le_bytes(cut(rest)?)) + 256),
            2 => Some(u64::from(u32::from_le_bytes(cut(rest)?))),
            _ => Some(u64::from_le_bytes(cut(rest)?)),
        };
        let claimed = claimed.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        self.claimed = self.claimed.zip(claimed).map(|(all, this)| all.saturating_add(this));
        loop {
            let [a, b, c] = cut(rest)?;
            let header = u32::from_le_bytes([a, b, c, 0]);
            let size = usize::try_from(header >> 3).unwrap_or(usize::MAX);
            let (stored, held) = match header >> 1 & 3 {
                0 => (size, size),
                1 => (1, size),
                _ => (size, MAX_BLOCK),
            };
            skip(rest, stored)?;
            self.bound = self.bound.saturating_add(held.min(MAX_BLOCK));
            if header & 1 != 0 {
                break;
            }
        }
        if descriptor & 4 != 0 { skip(rest, 4) } else { Ok(()) }
    }
}

/// The next bytes of the walk.
fn cut<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], String> {
    let (bytes, after) = rest.split_first_chunk::<N>().ok_or("the zstd frame is cut off")?;
    *rest = after;
    Ok(*bytes)
}

fn skip(rest: &mut &[u8], n: usize) -> Result<(), String> {
    *rest = rest.get(n..).ok_or("the zstd frame is cut off")?;
    Ok(())
}

/// The size that the first frame claims is a lower bound: more frames may follow.
fn check_size(encoded: &[u8], expected: usize) -> Result<(), String> {
    match content_size(encoded)? {
        Some(size) if usize::try_from(size).map_or(true, |size| size > expected) => {
            Err(format!("the frame claims {size} bytes where {expected} are expected"))
        }
        _ => Ok(()),
    }
}

fn content_size(encoded: &[u8]) -> Result<Option<u64>, String> {
    get_frame_content_size(encoded).map_err(|_| "it does not begin as a zstd frame".to_owned())
}

fn describe(code: usize) -> String {
    let name = get_error_name(code);
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{HELLO, hex},
        *,
    };

    // numcodecs.Zstd(3).encode(HELLO), with a checksum, and zstd with neither size nor checksum (a raw block).
    const PLAIN: &str = "28b52ffd20176500003068656c6c6f200100994b11";
    const CHECKED: &str = "28b52ffd24176500003068656c6c6f200100994b11175eae0d";

    /// A frame of one raw block that does not say how much it holds (RFC 8878, 3.1.1): window descriptor 0x58.
    fn unsized_frame(content: &[u8]) -> Vec<u8> {
        let header = u32::try_from(content.len() << 3 | 1).unwrap().to_le_bytes();
        [&hex("28b52ffd0058")[..], &header[..3], content].concat()
    }

    fn exact(encoded: &[u8], len: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0; len];
        decode_into(encoded, &mut out, &mut Scratch::default()).map(|()| out)
    }

    fn bounded(encoded: &[u8], limit: usize) -> Result<Vec<u8>, String> {
        let mut scratch = Scratch::default();
        let mut out = scratch.take(0)?;
        decode_at_most(encoded, limit, &mut out, &mut scratch).map(|()| out.as_slice().to_vec())
    }

    #[test]
    fn frames() {
        let skippable = hex("502a4d18020000000000");
        for frame in [
            hex(PLAIN),
            hex(CHECKED),
            unsized_frame(HELLO),
            [&hex(PLAIN)[..], &skippable].concat(),
            [&skippable[..], &hex(PLAIN)].concat(),
        ] {
            assert_eq!(exact(&frame, 23).unwrap(), HELLO);
            assert_eq!(bounded(&frame, 23).unwrap(), HELLO);
            assert_eq!(bounded(&frame, 1 << 20).unwrap(), HELLO);
            assert!(exact(&frame, 22).is_err());
            assert!(exact(&frame, 24).is_err());
            assert!(bounded(&frame, 22).is_err());
        }
    }

    #[test]
    fn several_frames() {
        let frames = [hex(PLAIN), unsized_frame(HELLO), hex(CHECKED)].concat();
        let content = [HELLO, HELLO, HELLO].concat();
        assert_eq!(exact(&frames, 69).unwrap(), content);
        assert_eq!(bounded(&frames, 69).unwrap(), content);
        assert!(exact(&frames, 23).unwrap_err().contains("more than the 23 bytes"));
    }

    #[test]
    fn growth() {
        let big: Vec<u8> = HELLO.iter().copied().cycle().take(100_000).collect();
        // A frame holds blocks of at most 128 KiB: this one is cut into frames of 1000 bytes.
        let frames: Vec<u8> = big.chunks(1000).flat_map(unsized_frame).collect();
        assert_eq!(exact(&frames, 100_000).unwrap(), big);
        assert_eq!(bounded(&frames, 100_000).unwrap(), big);
        assert!(bounded(&frames, 99_999).is_err());
        // An RLE block of 100000 bytes 7 in 10 bytes, alone and claimed to be twice as long.
        let rle = [&hex("28b52ffd0058")[..], &u32::to_le_bytes(100_000 << 3 | 3)[..3], &[7]].concat();
        assert_eq!(bounded(&rle, 1 << 30).unwrap(), vec![7; 100_000]);
        let claim = [&hex("28b52ffda0")[..], &200_000_u32.to_le_bytes(), &rle[6..]].concat();
        assert!(bounded(&claim, 1 << 30).unwrap_err().contains("more than they can hold"));
        // The same claimed to be empty.
        assert!(bounded(&[&hex("28b52ffd2000")[..], &rle[6..]].concat(), 1 << 30).is_err());
    }

    #[test]
    fn damage() {
        for cut in 0..PLAIN.len() / 2 {
            assert!(exact(&hex(PLAIN)[..cut], 23).is_err(), "{cut}");
        }
        let mut bad = hex(CHECKED);
        bad[23] ^= 1;
        assert_eq!(exact(&bad, 23).unwrap_err(), "restored data doesn't match checksum");
        assert!(exact(&[hex(PLAIN), b"junk".to_vec()].concat(), 23).is_err());
        // 2^50 bytes claimed
        let bomb = hex("28b52ffde000000000000004000100");
        assert_eq!(exact(&bomb, 23).unwrap_err(), "the frame claims 1125899906842624 bytes where 23 are expected");
        assert!(bounded(&bomb, 1 << 20).is_err());
    }
}
