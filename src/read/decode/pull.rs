//! Decoders that yield their output piece by piece, run into a buffer of known or of bounded size.

use super::scratch::Buffer;

/// First size of a buffer whose final size is not known.
const FIRST_GUESS: usize = 64 << 10;

/// A decoder that can be asked for the next bytes.
pub(super) trait Pull {
    /// Write the next bytes to the front of `out`, which is not empty, and return how many; 0 means that the input is
    /// decoded and checked to its end.
    fn pull(&mut self, out: &mut [u8]) -> Result<usize, String>;
}

/// Fill `out` exactly: any other length of the output is an error.
pub(super) fn fill(decoder: &mut impl Pull, out: &mut [u8]) -> Result<(), String> {
    let mut filled = 0;
    while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match decoder.pull(rest)? {
            0 => return Err(format!("it holds {filled} bytes where {} are expected", out.len())),
            n => filled += n,
        }
    }
    end(decoder, out.len())
}

/// Append the whole output, of at most `limit` bytes, to an empty buffer. Memory grows with what was decoded, not with
/// what was promised.
pub(super) fn grow(decoder: &mut impl Pull, limit: usize, out: &mut Buffer) -> Result<(), String> {
    let mut filled = 0;
    let mut size = FIRST_GUESS.min(limit);
    loop {
        out.resize(size)?;
        while let Some(rest) = out.as_mut_slice().get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match decoder.pull(rest)? {
                0 => return out.resize(filled),
                n => filled += n,
            }
        }
        if size == limit {
            return end(decoder, limit);
        }
        size = size.saturating_mul(2).min(limit);
    }
}

/// Check that nothing is left.
fn end(decoder: &mut impl Pull, len: usize) -> Result<(), String> {
    match decoder.pull(&mut [0])? {
        0 => Ok(()),
        _ => Err(format!("it holds more than the {len} bytes that are expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::scratch::Scratch, *};

    /// Yields so many bytes, at most seven at a time.
    struct Sevens(usize);

    impl Pull for Sevens {
        fn pull(&mut self, out: &mut [u8]) -> Result<usize, String> {
            let n = self.0.min(7).min(out.len());
            out[..n].fill(7);
            self.0 -= n;
            Ok(n)
        }
    }

    #[test]
    fn exact_length_is_demanded() {
        let mut out = [0; 20];
        assert_eq!(fill(&mut Sevens(20), &mut out), Ok(()));
        assert_eq!(out, [7; 20]);
        assert_eq!(fill(&mut Sevens(19), &mut out).unwrap_err(), "it holds 19 bytes where 20 are expected");
        assert_eq!(fill(&mut Sevens(21), &mut out).unwrap_err(), "it holds more than the 20 bytes that are expected");
        assert_eq!(fill(&mut Sevens(0), &mut []), Ok(()));
        assert!(fill(&mut Sevens(1), &mut []).is_err());
    }

    #[test]
    fn growth_is_bounded() {
        let mut out = Scratch::default().take(0).unwrap();
        assert_eq!(grow(&mut Sevens(100_000), 1 << 20, &mut out), Ok(()));
        assert_eq!(out.as_slice(), vec![7; 100_000]);
        assert_eq!(grow(&mut Sevens(1 << 20), 1 << 20, &mut out), Ok(()));
        assert!(grow(&mut Sevens((1 << 20) + 1), 1 << 20, &mut out).is_err());
    }
}
