//! Deflate streams: `gzip` (RFC 1952), also of several members, and `zlib` (RFC 1950).
//!
//! As Python's `gzip` module, which numcodecs and zarr-python use, zero bytes after a member are padding. Anything else
//! after the end is an error.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::{pull::Pull, scratch::Scratch};

/// So much is inflated before its CRC is taken, while it is in the cache.
const PIECE: usize = 256 << 10;

/// Run the raw or zlib stream at the front of `input`, and cut what it used off. `true` at the end of the stream.
fn inflate(state: &mut Decompress, input: &mut &[u8], out: &mut [u8]) -> Result<(usize, bool), String> {
    let (used, made) = (state.total_in(), state.total_out());
    let status =
        state.decompress(input, out, FlushDecompress::None).map_err(|error| format!("bad deflate stream: {error}"))?;
    let used = usize::try_from(state.total_in() - used).unwrap_or(usize::MAX);
    let made = usize::try_from(state.total_out() - made).unwrap_or(usize::MAX);
    *input = input.get(used..).unwrap_or_default();
    let ended = status == Status::StreamEnd;
    if used == 0 && made == 0 && !ended {
        return Err("the deflate stream is cut off".to_owned());
    }
    Ok((made, ended))
}

/// A stream in the zlib format.
pub(super) struct Zlib<'a> {
    input: &'a [u8],
    state: &'a mut Decompress,
    ended: bool,
}

impl<'a> Zlib<'a> {
    /// A decoder of these bytes.
    pub(super) fn new(input: &'a [u8], scratch: &'a mut Scratch) -> Self {
        Self { input, state: scratch.inflate(true), ended: false }
    }
}

impl Pull for Zlib<'_> {
    fn pull(&mut self, out: &mut [u8]) -> Result<usize, String> {
        while !self.ended {
            let (made, ended) = inflate(self.state, &mut self.input, out)?;
            self.ended = ended;
            if made > 0 {
                return Ok(made);
            }
        }
        if self.input.is_empty() {
            Ok(0)
        } else {
            Err(format!("{} bytes follow the end of the stream", self.input.len()))
        }
    }
}

/// Members in the gzip format.
pub(super) struct Gzip<'a> {
    input: &'a [u8],
    state: &'a mut Decompress,
    crc: Crc,
    inside: bool,
    first: bool,
}

impl<'a> Gzip<'a> {
    /// A decoder of these bytes.
    pub(super) fn new(input: &'a [u8], scratch: &'a mut Scratch) -> Self {
        Self { input, state: scratch.inflate(false), crc: Crc::new(), inside: false, first: true }
    }

    /// Begin the next member; `false` where there is none.
    fn enter(&mut self) -> Result<bool, String> {
        if !self.first {
            let padding = self.input.iter().take_while(|&&byte| byte == 0).count();
            self.input = self.input.get(padding..).unwrap_or_default();
            if self.input.is_empty() {
                return Ok(false);
            }
        }
        self.input = skip_header(self.input)?;
        self.state.reset(false);
        self.crc.reset();
        (self.inside, self.first) = (true, false);
        Ok(true)
    }

    /// Check the 8 bytes after the deflate stream of a member.
    fn leave(&mut self) -> Result<(), String> {
        let (trailer, rest) = self.input.split_first_chunk::<8>().ok_or("the gzip member is cut off")?;
        let [c0, c1, c2, c3, n0, n1, n2, n3] = *trailer;
        let (sum, size) = (u32::from_le_bytes([c0, c1, c2, c3]), u32::from_le_bytes([n0, n1, n2, n3]));
        if sum != self.crc.sum() {
            return Err(format!(
                "the checksum of the gzip member is {sum:#010x}, but the bytes have {:#010x}",
                self.crc.sum()
            ));
        }
        if size != self.crc.amount() {
            return Err(format!("the gzip member claims {size} bytes, but has {}", self.crc.amount()));
        }
        (self.input, self.inside) = (rest, false);
        Ok(())
    }
}

impl Pull for Gzip<'_> {
    fn pull(&mut self, out: &mut [u8]) -> Result<usize, String> {
        let (piece, _) = out.split_at_mut(PIECE.min(out.len()));
        loop {
            if !self.inside && !self.enter()? {
                return Ok(0);
            }
            let (made, ended) = inflate(self.state, &mut self.input, piece)?;
            self.crc.update(piece.get(..made).unwrap_or_default());
            if ended {
                self.leave()?;
            }
            if made > 0 {
                return Ok(made);
            }
        }
    }
}

/// What follows the header of a member: RFC 1952, section 2.3.
fn skip_header(input: &[u8]) -> Result<&[u8], String> {
    const HAS_CRC: u8 = 2;
    const HAS_EXTRA: u8 = 4;
    const HAS_NAME: u8 = 8;
    const HAS_COMMENT: u8 = 16;
    const RESERVED: u8 = 0xe0;
    let cut = || "the gzip header is cut off".to_owned();
    let (header, mut rest) = input.split_first_chunk::<10>().ok_or_else(cut)?;
    let [0x1f, 0x8b, 8, flags, ..] = *header else {
        return Err("it does not begin as a gzip member".to_owned());
    };
    if flags & RESERVED != 0 {
        return Err(format!("the gzip flags {flags:#04x} are unknown"));
    }
    if flags & HAS_EXTRA != 0 {
        let (len, after) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
        rest = after.get(usize::from(u16::from_le_bytes(*len))..).ok_or_else(cut)?;
    }
    for flag in [HAS_NAME, HAS_COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|&byte| byte == 0).ok_or_else(cut)?;
            rest = rest.get(end + 1..).ok_or_else(cut)?;
        }
    }
    if flags & HAS_CRC != 0 {
        rest = rest.get(2..).ok_or_else(cut)?;
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            pull,
            testing::{HELLO, hex},
        },
        *,
    };

    // zlib.compress(HELLO, 9) and gzip.compress(HELLO, 9, mtime=0)
    const ZLIB: &str = "78dacb48cdc9c957c8402701680308b1";
    const GZIP: &str = "1f8b0800000000000203cb48cdc9c957c8402701e3513d8d17000000";

    fn gunzip(bytes: &[u8], len: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0; len];
        pull::fill(&mut Gzip::new(bytes, &mut Scratch::default()), &mut out).map(|()| out)
    }

    fn inflate(bytes: &[u8], len: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0; len];
        pull::fill(&mut Zlib::new(bytes, &mut Scratch::default()), &mut out).map(|()| out)
    }

    #[test]
    fn zlib() {
        let golden = hex(ZLIB);
        assert_eq!(inflate(&golden, 23).unwrap(), HELLO);
        assert!(inflate(&golden, 22).unwrap_err().contains("more than the 22 bytes"));
        assert!(inflate(&golden, 24).unwrap_err().contains("23 bytes where 24 are expected"));
        assert!(inflate(&[&golden[..], b"junk"].concat(), 23).unwrap_err().contains("4 bytes follow the end"));
        for cut in 0..golden.len() {
            assert!(inflate(&golden[..cut], 23).is_err(), "{cut}");
        }
        let mut bad = golden.clone();
        bad[15] ^= 1;
        assert!(inflate(&bad, 23).unwrap_err().contains("incorrect data check"));
    }

    #[test]
    fn gzip_of_one_member() {
        let golden = hex(GZIP);
        assert_eq!(gunzip(&golden, 23).unwrap(), HELLO);
        assert!(gunzip(&golden, 22).is_err());
        assert!(gunzip(&golden, 24).is_err());
        for cut in 0..golden.len() {
            assert!(gunzip(&golden[..cut], 23).is_err(), "{cut}");
        }
        for (i, what) in [(0, "begin"), (3, "flags"), (20, "checksum"), (25, "claims")] {
            let mut bad = golden.clone();
            bad[i] ^= 0x80;
            assert!(gunzip(&bad, 23).unwrap_err().contains(what), "{i}");
        }
    }

    #[test]
    fn gzip_of_several_members() {
        let one = hex(GZIP);
        let two = [&one[..], &one].concat();
        assert_eq!(gunzip(&two, 46).unwrap(), [HELLO, HELLO].concat());
        assert!(gunzip(&two, 23).is_err());
        assert_eq!(gunzip(&[&two[..], &[0; 9]].concat(), 46).unwrap(), [HELLO, HELLO].concat());
        assert!(gunzip(&[&two[..], b"junk"].concat(), 46).is_err());
        assert!(gunzip(&[&one[..], &one[..20]].concat(), 46).is_err());
    }

    #[test]
    fn gzip_header_with_every_field() {
        let one = hex(GZIP);
        let mut fields = one[..10].to_vec();
        fields[3] = 2 | 4 | 8 | 16;
        fields.extend_from_slice(b"\x03\0abcname\0comment\0\x11\x22");
        let header = fields.len();
        fields.extend_from_slice(&one[10..]);
        assert_eq!(gunzip(&fields, 23).unwrap(), HELLO);
        for cut in 0..header {
            assert!(gunzip(&fields[..cut], 23).unwrap_err().contains("cut off"), "{cut}");
        }
    }

    #[test]
    fn states_are_reused() {
        let mut scratch = Scratch::default();
        for _ in 0..3 {
            let mut out = [0; 23];
            pull::fill(&mut Gzip::new(&hex(GZIP), &mut scratch), &mut out).unwrap();
            assert_eq!(out, HELLO);
            pull::fill(&mut Zlib::new(&hex(ZLIB), &mut scratch), &mut out).unwrap();
            assert_eq!(out, HELLO);
            assert!(pull::fill(&mut Zlib::new(&hex(ZLIB)[..9], &mut scratch), &mut out).is_err());
        }
    }
}
