//! `numcodecs.bz2`: bzip2 streams, one or several (Python's `bz2`).

use bzip2::{Decompress, Status};

use super::pull::Pull;

/// A decoder of concatenated bzip2 streams.
pub(super) struct Bz2<'a> {
    input: &'a [u8],
    /// The stream that is being decoded.
    state: Option<Decompress>,
    first: bool,
}

impl<'a> Bz2<'a> {
    /// A decoder of these bytes.
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self { input, state: None, first: true }
    }
}

impl Pull for Bz2<'_> {
    fn pull(&mut self, out: &mut [u8]) -> Result<usize, String> {
        loop {
            if self.state.is_none() && !self.first && self.input.is_empty() {
                return Ok(0);
            }
            self.first = false;
            let state = self.state.get_or_insert_with(|| Decompress::new(false));
            let (used, made) = (state.total_in(), state.total_out());
            let status = state.decompress(self.input, out).map_err(|error| format!("bad bzip2 stream: {error}"))?;
            let used = usize::try_from(state.total_in() - used).unwrap_or(usize::MAX);
            let made = usize::try_from(state.total_out() - made).unwrap_or(usize::MAX);
            self.input = self.input.get(used..).unwrap_or_default();
            match status {
                Status::StreamEnd => self.state = None,
                Status::MemNeeded => return Err("no memory for bzip2".to_owned()),
                _ if used == 0 && made == 0 => return Err("the bzip2 stream is cut off".to_owned()),
                _ => {}
            }
            if made > 0 {
                return Ok(made);
            }
        }
    }
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

    // bz2.compress(HELLO)
    const GOLDEN: &str = "425a683931415926535902f8b0bd000003910040000244a00030cd00548696719b38a3c5dc914e142400be2c2f40";

    fn decode(encoded: &[u8], len: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0; len];
        pull::fill(&mut Bz2::new(encoded), &mut out).map(|()| out)
    }

    #[test]
    fn streams() {
        let one = hex(GOLDEN);
        assert_eq!(decode(&one, 23).unwrap(), HELLO);
        assert_eq!(decode(&[&one[..], &one].concat(), 46).unwrap(), [HELLO, HELLO].concat());
        assert!(decode(&one, 22).is_err());
        assert!(decode(&one, 24).is_err());
    }

    #[test]
    fn damage() {
        let one = hex(GOLDEN);
        for cut in 0..one.len() {
            assert!(decode(&one[..cut], 23).is_err(), "{cut}");
        }
        assert!(decode(&[&one[..], b"junk"].concat(), 23).is_err());
        let mut bad = one.clone();
        bad[12] ^= 1;
        assert!(decode(&bad, 23).is_err());
    }
}
