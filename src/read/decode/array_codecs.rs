//! Array → array codecs: `transpose` of format 3, and the filters of numcodecs that change numbers.
//!
//! The filters see the array as flat, in C order. Decoding is what numcodecs does in numpy: `delta.py`,
//! `fixedscaleoffset.py`, `astype.py`, `quantize.py`, `bitround.py`, `packbits.py`.

use serde_json::{Map, Value};

use super::{cast, number::Number, transpose, zarrs_codec};
use crate::store::{
    codec::CodecMetadata,
    data_type::{DataType, Endian},
};

/// An array → array codec.
#[derive(Debug)]
pub(super) enum ArrayCodec {
    /// Axes in another order.
    Transpose(Vec<usize>),
    /// Numbers of one type stored as another.
    Cast(Cast),
    /// Differences to the number before.
    Delta(Cast),
    /// Numbers times a scale, less an offset.
    ScaleOffset(Cast, f64, f64),
    /// Bools in bits, after a byte that says how many of the last bits are padding.
    PackBits,
    /// A codec of zarrs.
    Other(zarrs_codec::ArrayToArray),
}

/// The number types of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cast {
    encoded: Number,
    decoded: Number,
}

/// A codec, and the array on its encoded side.
pub(super) struct Parsed {
    /// `None` where the codec changes nothing when it decodes.
    pub(super) codec: Option<ArrayCodec>,
    /// Type of the encoded elements.
    pub(super) data_type: DataType,
    /// Byte order that the name of the encoded type speaks of.
    pub(super) endian: Option<Endian>,
}

/// Data types at the two sides of a filter: the names in its configuration under these keys, else the type of the
/// array.
struct Types<'a> {
    codec: &'a CodecMetadata,
    array: &'a DataType,
}

impl Types<'_> {
    fn named(&self, key: &str) -> Result<Option<(Number, Option<Endian>)>, String> {
        let name = &self.codec.name;
        match self.codec.configuration.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Number::parse(text)
                .map(Some)
                .ok_or_else(|| format!("codec `{name}` of data type `{text}` is not supported")),
            Some(other) => Err(format!("codec `{name}` has the `{key}` {other}")),
        }
    }

    /// The types of the decoded and of the encoded side. The array is viewed as the decoded type, whatever its own, so
    /// only the sizes have to agree.
    fn both(&self, decoded: &str, encoded: &str) -> Result<(Cast, Option<Endian>), String> {
        let name = &self.codec.name;
        let own = || {
            Number::of(self.array)
                .map(|number| (number, None))
                .ok_or_else(|| format!("codec `{name}` needs an array of numbers"))
        };
        let (decoded, endian) = self.named(decoded)?.map_or_else(own, Ok)?;
        if self.array.fixed_size() != Some(decoded.size()) {
            return Err(format!(
                "codec `{name}` is for elements of {} bytes, which are not those of the array",
                decoded.size()
            ));
        }
        let (encoded, endian) = self.named(encoded)?.unwrap_or((decoded, endian));
        Ok((Cast { encoded, decoded }, endian))
    }
}

impl ArrayCodec {
    /// The array → array codec of this name on arrays of this type, `None` if it is another kind of codec.
    pub(super) fn parse(codec: &CodecMetadata, array: &DataType) -> Result<Option<Parsed>, String> {
        let types = Types { codec, array };
        let same = || Parsed { codec: None, data_type: array.clone(), endian: None };
        let parsed = match codec.name.as_str() {
            "transpose" => {
                let order = order(&codec.configuration)?;
                let moves = order.iter().enumerate().any(|(i, &axis)| i != axis);
                Parsed { codec: moves.then_some(Self::Transpose(order)), ..same() }
            }
            "bitround" | "numcodecs.bitround" => same(),
            "numcodecs.astype" => {
                let (cast, endian) = types.both("decode_dtype", "encode_dtype")?;
                Self::cast(cast, endian)
            }
            "numcodecs.quantize" => {
                let (cast, endian) = types.both("dtype", "astype")?;
                Self::cast(cast, endian)
            }
            "numcodecs.delta" => {
                let (cast, endian) = types.both("dtype", "astype")?;
                if cast.decoded == Number::Bool || (cast.encoded.is_float() && !cast.decoded.is_float()) {
                    return Err(
                        "codec `numcodecs.delta` does not make these differences into numbers of its type".to_owned()
                    );
                }
                Parsed { codec: Some(Self::Delta(cast)), data_type: cast.encoded.data_type(), endian }
            }
            "numcodecs.fixedscaleoffset" => {
                let (cast, endian) = types.both("dtype", "astype")?;
                let [scale, offset] = [number(codec, "scale")?, number(codec, "offset")?];
                Parsed {
                    codec: Some(Self::ScaleOffset(cast, scale, offset)),
                    data_type: cast.encoded.data_type(),
                    endian,
                }
            }
            "numcodecs.packbits" => {
                if array.fixed_size() != Some(1) {
                    return Err("codec `numcodecs.packbits` needs an array of bools".to_owned());
                }
                Parsed { codec: Some(Self::PackBits), data_type: DataType::UInt8, endian: None }
            }
            _ => return Ok(None),
        };
        Ok(Some(parsed))
    }

    fn cast(cast: Cast, endian: Option<Endian>) -> Parsed {
        Parsed {
            codec: (cast.encoded != cast.decoded).then_some(Self::Cast(cast)),
            data_type: cast.encoded.data_type(),
            endian,
        }
    }

    /// Whether an element of the fill value is the same on both sides. Where it is not, an inner chunk that is absent
    /// from a shard has no known content.
    pub(super) fn keeps_fill(&self) -> bool {
        matches!(self, Self::Transpose(_))
    }

    /// The shape of the encoded array.
    pub(super) fn encoded_shape(&self, shape: &[u64]) -> Result<Vec<u64>, String> {
        match self {
            Self::Transpose(order) => transpose::encoded_shape(order, shape),
            Self::PackBits => {
                let bits =
                    shape.iter().try_fold(1_u64, |n, &len| n.checked_mul(len)).ok_or("its shape is too large")?;
                Ok(vec![bits.div_ceil(8) + 1])
            }
            Self::Other(codec) => codec.encoded_shape(shape),
            Self::Cast(_) | Self::Delta(_) | Self::ScaleOffset(..) => Ok(shape.to_vec()),
        }
    }

    /// Decode a whole array of `shape` with elements of `size` bytes. The caller has made both buffers as long as the
    /// shapes and types say.
    pub(super) fn decode(&self, shape: &[u64], size: usize, encoded: &[u8], out: &mut [u8]) -> Result<(), String> {
        match self {
            Self::Transpose(order) => return transpose::decode(order, shape, size, encoded, out),
            Self::Cast(types) => cast::cast(types.encoded, types.decoded, encoded, out),
            Self::Delta(types) => cast::cumulate(types.encoded, types.decoded, encoded, out),
            Self::ScaleOffset(types, scale, offset) => {
                cast::scale_offset(types.encoded, types.decoded, *scale, *offset, encoded, out);
            }
            Self::PackBits => return unpack_bits(encoded, out),
            Self::Other(codec) => return codec.decode(shape, encoded, out),
        }
        Ok(())
    }
}

/// The order of `transpose`: each axis once.
fn order(configuration: &Map<String, Value>) -> Result<Vec<usize>, String> {
    let value = configuration.get("order").ok_or("codec `transpose` has no `order`")?;
    let axis = |axis: &Value| axis.as_u64().and_then(|axis| usize::try_from(axis).ok());
    let order: Option<Vec<usize>> = value.as_array().and_then(|axes| axes.iter().map(axis).collect());
    let once = |order: &Vec<usize>| {
        let mut seen = vec![false; order.len()];
        order.iter().all(|&axis| seen.get_mut(axis).is_some_and(|seen| !std::mem::replace(seen, true)))
    };
    order
        .filter(once)
        .ok_or_else(|| format!("codec `transpose` has the `order` {value}, which does not name each axis once"))
}

fn number(codec: &CodecMetadata, key: &str) -> Result<f64, String> {
    let value = codec.configuration.get(key).ok_or_else(|| format!("codec `{}` has no `{key}`", codec.name))?;
    value.as_f64().ok_or_else(|| format!("codec `{}` has the `{key}` {value}", codec.name))
}

/// The highest bit of a byte comes first.
fn unpack_bits(encoded: &[u8], out: &mut [u8]) -> Result<(), String> {
    let (&padding, bytes) = encoded.split_first().ok_or("there is no byte that counts the padding")?;
    if usize::from(padding) != out.len().next_multiple_of(8) - out.len() {
        return Err(format!("{padding} bits of padding do not fit {} bools", out.len()));
    }
    for (bools, byte) in out.chunks_mut(8).zip(bytes) {
        for (i, target) in bools.iter_mut().enumerate() {
            *target = byte.rotate_left(u32::try_from(i + 1).unwrap_or(0)) & 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::testing::{codecs, native},
        *,
    };

    fn parse(name: &str, configuration: &Value, array: &DataType) -> Result<Parsed, String> {
        let metadata = codecs(&json!([{"name": name, "configuration": configuration}])).remove(0);
        ArrayCodec::parse(&metadata, array).map(Option::unwrap)
    }

    fn decode(parsed: &Parsed, encoded: &[u8], count: usize, size: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0; count * size];
        parsed.codec.as_ref().unwrap().decode(&[u64::try_from(count).unwrap()], size, encoded, &mut out).map(|()| out)
    }

    #[test]
    fn delta() {
        // numcodecs.Delta("<i2", "i1").encode(np.arange(100, 120, 2, dtype="i2"))
        let parsed = parse("numcodecs.delta", &json!({"dtype": "<i2", "astype": "|i1"}), &DataType::Int16).unwrap();
        assert_eq!((&parsed.data_type, parsed.endian), (&DataType::Int8, None));
        assert_eq!(
            decode(&parsed, &[100, 2, 2, 2], 4, 2).unwrap(),
            native(&[100, 102, 104, 106_i16], i16::to_ne_bytes)
        );
        // The differences of integers wrap, and so do the sums.
        let parsed = parse("numcodecs.delta", &json!({"dtype": ">u1"}), &DataType::UInt8).unwrap();
        assert_eq!(decode(&parsed, &[250, 10, 10], 3, 1).unwrap(), [250, 4, 14]);
        let parsed = parse("numcodecs.delta", &json!({"dtype": ">i4"}), &DataType::Int32).unwrap();
        assert_eq!(parsed.endian, Some(Endian::Big));
    }

    #[test]
    fn fixedscaleoffset() {
        // The example of numcodecs.FixedScaleOffset(offset=1000, scale=10, dtype="f8", astype="u1").
        let parsed = parse(
            "numcodecs.fixedscaleoffset",
            &json!({"offset": 1000, "scale": 10, "dtype": "<f8", "astype": "|u1"}),
            &DataType::Float64,
        )
        .unwrap();
        assert_eq!(parsed.data_type, DataType::UInt8);
        let expected = native(&[1000.0, 1000.1, 1001.0_f64], f64::to_ne_bytes);
        assert_eq!(decode(&parsed, &[0, 1, 10], 3, 8).unwrap(), expected);
    }

    #[test]
    fn astype_and_quantize() {
        let parsed =
            parse("numcodecs.astype", &json!({"encode_dtype": ">i4", "decode_dtype": "<f8"}), &DataType::Float64)
                .unwrap();
        assert_eq!((&parsed.data_type, parsed.endian), (&DataType::Int32, Some(Endian::Big)));
        assert_eq!(decode(&parsed, &native(&[-7_i32], i32::to_ne_bytes), 1, 8).unwrap(), (-7_f64).to_ne_bytes());
        let parsed =
            parse("numcodecs.quantize", &json!({"digits": 3, "dtype": "<f8", "astype": "<f4"}), &DataType::Float64)
                .unwrap();
        assert_eq!(decode(&parsed, &0.5_f32.to_ne_bytes(), 1, 8).unwrap(), 0.5_f64.to_ne_bytes());
        assert!(
            parse("numcodecs.quantize", &json!({"digits": 1000, "dtype": "<f8"}), &DataType::Float64)
                .unwrap()
                .codec
                .is_none()
        );
        assert!(parse("numcodecs.bitround", &json!({"keepbits": 1000}), &DataType::Float32).unwrap().codec.is_none());
    }

    #[test]
    fn packbits() {
        let parsed = parse("numcodecs.packbits", &json!({}), &DataType::Bool).unwrap();
        // numcodecs.PackBits().encode(np.array([True, False, False, True]))
        assert_eq!(decode(&parsed, &[4, 144], 4, 1).unwrap(), [1, 0, 0, 1]);
        assert_eq!(decode(&parsed, &[7, 0b1010_0001, 0b1000_0000], 9, 1).unwrap(), [1, 0, 1, 0, 0, 0, 0, 1, 1]);
        assert_eq!(decode(&parsed, &[0, 255], 8, 1).unwrap(), [1; 8]);
        assert!(decode(&parsed, &[3, 144], 4, 1).is_err());
        assert!(decode(&parsed, &[], 4, 1).is_err());
        let codec = parsed.codec.unwrap();
        assert_eq!(codec.encoded_shape(&[3, 3]), Ok(vec![3]));
        assert!(codec.encoded_shape(&[1 << 40, 1 << 40]).is_err());
        assert_eq!(codec.encoded_shape(&[u64::MAX]), Ok(vec![(1 << 61) + 1]));
    }

    #[test]
    fn configuration_is_checked() {
        for (name, configuration, array) in [
            ("transpose", json!({}), DataType::Int8),
            ("transpose", json!({"order": "F"}), DataType::Int8),
            ("transpose", json!({"order": [0, 0]}), DataType::Int8),
            ("transpose", json!({"order": [0, 2]}), DataType::Int8),
            ("transpose", json!({"order": [-1]}), DataType::Int8),
            ("transpose", json!({"order": [0.0]}), DataType::Int8),
            ("numcodecs.delta", json!({"dtype": "<i2"}), DataType::Int32),
            ("numcodecs.delta", json!({"dtype": "<U2"}), DataType::FixedUtf32(2)),
            ("numcodecs.delta", json!({"dtype": 4}), DataType::Int32),
            ("numcodecs.delta", json!({}), DataType::String),
            ("numcodecs.delta", json!({"dtype": "|b1"}), DataType::Bool),
            ("numcodecs.delta", json!({"dtype": "<i4", "astype": "<f4"}), DataType::Int32),
            ("numcodecs.fixedscaleoffset", json!({"offset": 0}), DataType::Float32),
            ("numcodecs.fixedscaleoffset", json!({"offset": 0, "scale": "1"}), DataType::Float32),
            ("numcodecs.astype", json!({"encode_dtype": "<c8"}), DataType::Float32),
            ("numcodecs.packbits", json!({}), DataType::Int16),
        ] {
            assert!(parse(name, &configuration, &array).is_err(), "{name} {configuration}");
        }
    }

    #[test]
    fn views() {
        // A filter may view the elements as another type of the same size.
        let time = DataType::DateTime64 { unit: crate::store::data_type::NumpyUnit::Second, scale: 1 };
        let parsed = parse("numcodecs.delta", &json!({"dtype": "<i8", "astype": "<i2"}), &time).unwrap();
        assert_eq!(parsed.data_type, DataType::Int16);
        assert!(parse("numcodecs.delta", &json!({"dtype": "<i4"}), &DataType::Float32).is_ok());
    }
}
