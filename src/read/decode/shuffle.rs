//! `numcodecs.shuffle`: byte 0 of every element, then byte 1 of every element, and so on (numcodecs/shuffle.py, as HDF5
//! has it).

use serde_json::{Map, Value};

/// The shuffle of elements of so many bytes, 1 for no shuffle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shuffle(usize);

impl Shuffle {
    /// Read the configuration. numcodecs takes 4 where there is no `elementsize`, and does nothing where it is not
    /// above 1.
    pub(super) fn new(configuration: &Map<String, Value>) -> Result<Self, String> {
        match configuration.get("elementsize") {
            None | Some(Value::Null) => Ok(Self(4)),
            Some(value) => match value.as_i64() {
                Some(size) if size <= 1 => Ok(Self(1)),
                Some(size) => usize::try_from(size)
                    .map(Self)
                    .map_err(|_| format!("codec `numcodecs.shuffle` has the `elementsize` {size}")),
                None => Err(format!("codec `numcodecs.shuffle` has the `elementsize` {value}")),
            },
        }
    }

    /// Whether bytes stay where they are.
    pub(super) fn is_identity(self) -> bool {
        self.0 == 1
    }

    /// Decode into `out`, which is as long as the input.
    pub(super) fn decode_into(self, encoded: &[u8], out: &mut [u8]) -> Result<(), String> {
        if encoded.len() != out.len() {
            return Err(format!("it holds {} bytes where {} are expected", encoded.len(), out.len()));
        }
        if !encoded.len().is_multiple_of(self.0) {
            return Err(format!("{} bytes are not whole elements of {} bytes", encoded.len(), self.0));
        }
        match self.0 {
            2 => unshuffle::<2>(encoded, out),
            4 => unshuffle::<4>(encoded, out),
            8 => unshuffle::<8>(encoded, out),
            16 => unshuffle::<16>(encoded, out),
            size => unshuffle_any(size, encoded, out),
        }
        Ok(())
    }
}

/// Elements that are put together at a time.
const LANES: usize = 16;

/// Interleave the `N` planes of bytes.
fn unshuffle<const N: usize>(encoded: &[u8], out: &mut [u8]) {
    let count = out.len() / N;
    let mut planes: [&[u8]; N] = [&[]; N];
    for (plane, bytes) in planes.iter_mut().zip(encoded.chunks_exact(count.max(1))) {
        *plane = bytes;
    }
    let (elements, _) = out.as_chunks_mut::<N>();
    let (blocks, rest) = elements.as_chunks_mut::<LANES>();
    let done = blocks.len() * LANES;
    let heads = planes.map(|plane| plane.as_chunks::<LANES>().0);
    for (i, block) in blocks.iter_mut().enumerate() {
        let lanes = heads.map(|plane| plane.get(i).copied().unwrap_or_default());
        for (lane, element) in block.iter_mut().enumerate() {
            for (byte, plane) in element.iter_mut().zip(&lanes) {
                *byte = plane.get(lane).copied().unwrap_or_default();
            }
        }
    }
    for (i, element) in rest.iter_mut().enumerate() {
        for (byte, plane) in element.iter_mut().zip(&planes) {
            *byte = plane.get(done + i).copied().unwrap_or_default();
        }
    }
}

/// The same for any size of elements.
fn unshuffle_any(size: usize, encoded: &[u8], out: &mut [u8]) {
    let count = (out.len() / size).max(1);
    for (at, plane) in encoded.chunks_exact(count).enumerate() {
        for (element, &byte) in out.chunks_exact_mut(size).zip(plane) {
            if let Some(target) = element.get_mut(at) {
                *target = byte;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::testing::{hex, native},
        *,
    };

    fn shuffle(size: &Value) -> Result<Shuffle, String> {
        Shuffle::new(json!({ "elementsize": size }).as_object().unwrap())
    }

    #[test]
    fn golden() {
        // numcodecs.Shuffle(4).encode(np.arange(3, dtype="<u4") * 0x01020304)
        let mut out = [0; 12];
        Shuffle(4).decode_into(&hex("000408000306000204000102"), &mut out).unwrap();
        assert_eq!(out[..], native(&[0, 0x0102_0304, 0x0204_0608_u32], u32::to_le_bytes));
    }

    #[test]
    fn every_size_against_the_definition() {
        for size in 1..=20 {
            for count in [0, 1, 15, 16, 17, 33, 100] {
                let content: Vec<u8> = (0..size * count).map(|i| u8::try_from(i * 7 % 256).unwrap()).collect();
                let encoded: Vec<u8> =
                    (0..size).flat_map(|byte| content.iter().skip(byte).step_by(size)).copied().collect();
                let mut out = vec![0; content.len()];
                Shuffle(size).decode_into(&encoded, &mut out).unwrap();
                assert_eq!(out, content, "{size} {count}");
            }
        }
    }

    #[test]
    fn configuration_and_lengths_are_checked() {
        assert_eq!(Shuffle::new(&Map::new()), Ok(Shuffle(4)));
        for none in [json!(0), json!(1), json!(-3), json!(i64::MIN)] {
            assert!(shuffle(&none).unwrap().is_identity());
        }
        assert!(shuffle(&json!("4")).is_err());
        assert!(shuffle(&json!(1.5)).is_err());
        assert!(shuffle(&json!(u64::MAX)).is_err());
        assert!(Shuffle(4).decode_into(&[0; 8], &mut [0; 4]).is_err());
        assert!(Shuffle(4).decode_into(&[0; 6], &mut [0; 6]).is_err());
        assert!(Shuffle(usize::MAX).decode_into(&[0; 6], &mut [0; 6]).is_err());
        assert!(Shuffle(usize::MAX).decode_into(&[], &mut []).is_ok());
    }
}
