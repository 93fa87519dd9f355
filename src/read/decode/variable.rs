//! Elements of any length: `vlen-utf8`, `vlen-bytes` and `vlen-array`.
//!
//! All three have the same form (numcodecs/vlen.pyx): the number of elements, then for each its number of bytes and its
//! bytes; numbers are little-endian and of 32 bits.

use super::{transpose, walk::copy_run};

/// The most that the elements of a chunk may take, offsets and bytes each.
pub(super) const LIMIT: usize = 1 << 30;

/// The elements of a chunk of text or bytes, in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariableElements {
    /// Start of each element in `bytes`, and the end of the last: one more than there are elements.
    pub(crate) offsets: Vec<usize>,
    /// The elements one after the other.
    pub(crate) bytes: Vec<u8>,
}

impl VariableElements {
    /// Elements of these lengths, still without content.
    pub(super) fn with_lengths(lengths: Lengths) -> Result<Self, String> {
        let Lengths(mut offsets) = lengths;
        let mut end = 0_usize;
        for offset in &mut offsets {
            end = end.checked_add(*offset).filter(|&end| end <= LIMIT).ok_or_else(too_long)?;
            *offset = end;
        }
        let bytes = zeroed(end)?;
        Ok(Self { offsets, bytes })
    }

    /// The element at a position.
    pub(crate) fn get(&self, i: usize) -> &[u8] {
        let range = self.offsets.get(i).zip(self.offsets.get(i + 1)).map(|(&start, &end)| start..end);
        range.and_then(|range| self.bytes.get(range)).unwrap_or_default()
    }

    /// Write the content of the element at a position, as long as the element.
    pub(super) fn set(&mut self, i: usize, content: &[u8]) {
        if let Some(&start) = self.offsets.get(i) {
            copy_run(content, &mut self.bytes, 0, start, content.len());
        }
    }

    /// The same elements after undoing `transpose`, in an array of `shape`.
    pub(super) fn transposed(&self, order: &[usize], shape: &[u64]) -> Result<Self, String> {
        let positions = transpose::positions(order, shape)?;
        let mut lengths = Lengths::new(positions.len(), 0)?;
        for (i, &at) in positions.iter().enumerate() {
            lengths.set(i, self.get(at).len());
        }
        let mut elements = Self::with_lengths(lengths)?;
        for (i, &at) in positions.iter().enumerate() {
            elements.set(i, self.get(at));
        }
        Ok(elements)
    }

    /// Check that every element is valid UTF-8: all of them together, and no end is inside a character.
    pub(super) fn check_utf8(&self) -> Result<(), String> {
        let text = str::from_utf8(&self.bytes).map_err(|error| {
            let at = self.offsets.partition_point(|&offset| offset <= error.valid_up_to()).saturating_sub(1);
            format!("element {at} is not valid UTF-8")
        })?;
        match self.offsets.iter().position(|&offset| !text.is_char_boundary(offset)) {
            Some(at) => Err(format!("element {at} is not valid UTF-8")),
            None => Ok(()),
        }
    }
}

/// Lengths of elements that are about to be put together: 0, and then the length of each.
pub(super) struct Lengths(Vec<usize>);

impl Lengths {
    /// So many elements of one length.
    pub(super) fn new(count: usize, length: usize) -> Result<Self, String> {
        let offsets = count.checked_add(1).filter(|&n| n <= LIMIT / size_of::<usize>()).ok_or_else(too_long)?;
        let mut lengths = zeroed(offsets)?;
        if length > 0 {
            lengths.iter_mut().skip(1).for_each(|each| *each = length);
        }
        Ok(Self(lengths))
    }

    /// Set the length of one element.
    pub(super) fn set(&mut self, i: usize, length: usize) {
        if let Some(each) = self.0.get_mut(i + 1) {
            *each = length;
        }
    }
}

fn zeroed<T: Clone + Default>(len: usize) -> Result<Vec<T>, String> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| format!("no memory for {len} elements or bytes"))?;
    values.resize(len, T::default());
    Ok(values)
}

/// Decode so many elements.
pub(super) fn decode(encoded: &[u8], count: usize) -> Result<VariableElements, String> {
    let cut = || "its elements are cut off".to_owned();
    let (claimed, mut rest) = encoded.split_first_chunk::<4>().ok_or_else(cut)?;
    let claimed = u32::from_le_bytes(*claimed);
    if usize::try_from(claimed) != Ok(count) {
        return Err(format!("it holds {claimed} elements where {count} are expected"));
    }
    // Every element takes at least the 4 bytes of its length: nothing is allocated for elements that are not there.
    let content = count.checked_mul(4).and_then(|lengths| rest.len().checked_sub(lengths)).ok_or_else(cut)?;
    let Lengths(mut offsets) = Lengths::new(count, 0)?;
    let mut bytes = zeroed::<u8>(content)?;
    let mut end = 0;
    for offset in offsets.iter_mut().skip(1) {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| cut())?;
        let (element, after) = after.split_at_checked(length).ok_or_else(cut)?;
        copy_run(element, &mut bytes, 0, end, length);
        end += length;
        *offset = end;
        rest = after;
    }
    if rest.is_empty() {
        Ok(VariableElements { offsets, bytes })
    } else {
        Err(format!("{} bytes follow the last element", rest.len()))
    }
}

fn too_long() -> String {
    format!("its elements take more than {} MiB", LIMIT >> 20)
}

#[cfg(test)]
mod tests {
    use super::{super::testing::hex, *};

    // numcodecs.VLenUTF8().encode(np.array(["a", "", "zürich"], dtype=object))
    const GOLDEN: &str = "03000000010000006100000000070000007ac3bc72696368";

    #[test]
    fn golden() {
        let elements = decode(&hex(GOLDEN), 3).unwrap();
        assert_eq!(elements, VariableElements { offsets: vec![0, 1, 1, 8], bytes: "azürich".into() });
        assert_eq!(elements.check_utf8(), Ok(()));
        assert_eq!(decode(&hex("00000000"), 0).unwrap(), VariableElements { offsets: vec![0], bytes: vec![] });
    }

    #[test]
    fn damage() {
        let golden = hex(GOLDEN);
        for cut in 0..golden.len() {
            assert!(decode(&golden[..cut], 3).is_err(), "{cut}");
        }
        assert!(decode(&golden, 2).unwrap_err().contains("3 elements where 2"));
        assert!(decode(&[&golden[..], &[0]].concat(), 3).unwrap_err().contains("1 bytes follow"));
        assert!(decode(&hex("ffffffff"), 0xffff_ffff).is_err());
        assert!(decode(&hex("01000000ffffffff"), 1).is_err());
    }

    #[test]
    fn utf8() {
        let elements =
            |offsets: &[usize], bytes: &[u8]| VariableElements { offsets: offsets.to_vec(), bytes: bytes.to_vec() };
        assert_eq!(elements(&[0, 1, 3], "aé".as_bytes()).check_utf8(), Ok(()));
        assert_eq!(elements(&[0, 2, 3], "aé".as_bytes()).check_utf8().unwrap_err(), "element 1 is not valid UTF-8");
        assert_eq!(elements(&[0, 1, 2, 3], b"ab\xff").check_utf8().unwrap_err(), "element 2 is not valid UTF-8");
        assert_eq!(elements(&[0, 0, 1], b"\xff").check_utf8().unwrap_err(), "element 1 is not valid UTF-8");
    }

    #[test]
    fn transposed() {
        let elements = decode(&hex(GOLDEN), 3).unwrap();
        let two = VariableElements { offsets: vec![0, 1, 1, 3, 4], bytes: b"abbc".to_vec() };
        assert_eq!(elements.transposed(&[1, 0], &[3, 1]).unwrap(), elements);
        // Encoded [["a", ""], ["bb", "c"]] is decoded [["a", "bb"], ["", "c"]].
        assert_eq!(
            two.transposed(&[1, 0], &[2, 2]).unwrap(),
            VariableElements { offsets: vec![0, 1, 3, 3, 4], bytes: b"abbc".to_vec() }
        );
    }

    #[test]
    fn limits() {
        let mut lengths = Lengths::new(2, LIMIT / 2).unwrap();
        lengths.set(1, LIMIT);
        assert!(VariableElements::with_lengths(lengths).is_err());
        assert!(Lengths::new(usize::MAX, 0).is_err());
        assert!(Lengths::new(LIMIT / 8, 0).is_err());
    }
}
