//! Decoding of chunks: encoded bytes of a store in, elements in C order and native byte order out.
//!
//! A chain has array → array codecs, one array → bytes codec, and bytes → bytes codecs; decoding runs through it
//! backwards:
//!
//! ```text
//! encode   array ─ delta ─ transpose ─ bytes ─ shuffle ─ zstd ─ crc32c ▶ chunk
//! decode   array ◀ delta ─ transpose ─ bytes ─ shuffle ─ zstd ─ crc32c ─ chunk
//! ```
//!
//! 1. From the shape of the chunk, the length of the bytes between any two codecs is computed, exactly where a codec's
//!    output has a length of its own, else as a bound. All arithmetic is checked, and no length that the chunk claims
//!    is believed.
//! 2. Each codec decodes into a buffer of [`Scratch`], which the next but one uses again. Checksums are stripped
//!    without a copy.
//! 3. The last step decodes straight into the caller's buffer. `bytes` of native order, around at most one compressor
//!    and any checksums, is only this step.

mod array_codecs;
#[expect(unsafe_code, reason = "the binding to c-blosc")]
mod blosc;
mod byte_codecs;
mod bz2;
mod cast;
mod checksum;
mod deflate;
mod lz4;
mod lzma;
mod number;
mod pcodec;
mod pull;
mod scratch;
mod shard_layout;
mod sharding;
mod shuffle;
mod swap;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod transpose;
mod variable;
mod walk;
mod zarrs_codec;
mod zfp;
mod zfp_block;
mod zfp_order;
mod zstd;

use std::panic::{AssertUnwindSafe, catch_unwind};

use array_codecs::ArrayCodec;
use byte_codecs::{ByteCodec, Size};
use number::Number;
use pcodec::Pcodec;
use scratch::Bytes;
pub(crate) use scratch::Scratch;
pub(crate) use sharding::Sharding;
pub(crate) use variable::VariableElements;
use zfp::Zfp;

use crate::store::{
    codec::CodecMetadata,
    data_type::{DataType, Endian},
};

/// More codecs in a chain, or shards in shards, are not a chain that anybody wrote.
const MAX_CODECS: usize = 64;
const MAX_DEPTH: usize = 8;

/// Decoder of the chunks of one array.
#[derive(Debug)]
pub(crate) struct Codecs {
    /// Bytes of a decoded element, `None` where elements have lengths of their own.
    element: Option<usize>,
    /// Whether the elements are text.
    text: bool,
    /// Array → array codecs, in the order in which they encode.
    arrays: Vec<ArrayStage>,
    serializer: Serializer,
    /// Bytes → bytes codecs, in the order in which they encode.
    bytes: Vec<ByteCodec>,
}

/// An array → array codec in its chain.
#[derive(Debug)]
struct ArrayStage {
    name: String,
    codec: ArrayCodec,
    /// Bytes of an element on the encoded side.
    encoded: Option<usize>,
}

/// The array → bytes codec of a chain.
#[derive(Debug)]
enum Serializer {
    /// The elements one after the other, with units of so many bytes to swap, 1 for none.
    Bytes(usize),
    Sharding(Box<Sharding>),
    Variable,
    Pcodec(Pcodec),
    Zfp(Zfp),
    Other(zarrs_codec::ArrayToBytes),
}

/// What an inner chunk holds that is absent from its shard.
#[derive(Debug, Clone)]
enum Fill {
    /// This element everywhere.
    Element(Vec<u8>),
    /// Nothing is defined; zeros or empty elements are written.
    Null,
    /// A value that codec of this name has changed.
    Hidden(String),
}

impl Fill {
    /// The element of so many bytes, `None` for zeros.
    fn of_size(&self, size: usize) -> Result<Option<&[u8]>, String> {
        match self {
            Self::Null => Ok(None),
            Self::Element(bytes) if bytes.len() == size => Ok(Some(bytes)),
            Self::Element(bytes) => Err(format!("the fill value has {} bytes where elements have {size}", bytes.len())),
            Self::Hidden(name) => Err(format!("it is absent, and codec `{name}` hides the fill value")),
        }
    }

    /// The element of any number of bytes.
    fn of_any_size(&self) -> Result<&[u8], String> {
        match self {
            Self::Null => Ok(&[]),
            Self::Element(bytes) => Ok(bytes),
            Self::Hidden(name) => Err(format!("it is absent, and codec `{name}` hides the fill value")),
        }
    }
}

impl Codecs {
    /// The decoder of a chain of codecs for arrays of this data type. `fill` has the native bytes of one element, or
    /// the bytes of a text, `None` for null.
    ///
    /// # Errors
    /// Where a codec is unknown, has a configuration that makes no sense, stands at the wrong place, or does not fit
    /// the data type.
    pub(crate) fn new(codecs: &[CodecMetadata], data_type: &DataType, fill: Option<&[u8]>) -> Result<Self, String> {
        let fill = fill.map_or(Fill::Null, |bytes| Fill::Element(bytes.to_vec()));
        guard(&mut Scratch::default(), |_| Self::build(codecs, data_type, fill, 0))
    }

    fn build(codecs: &[CodecMetadata], data_type: &DataType, fill: Fill, depth: usize) -> Result<Self, String> {
        if codecs.len() > MAX_CODECS || depth > MAX_DEPTH {
            return Err(format!(
                "chains of more than {MAX_CODECS} codecs, or {MAX_DEPTH} shards in each other, are not supported"
            ));
        }
        let mut builder = Builder {
            data_type: data_type.clone(),
            endian: None,
            fill,
            depth,
            arrays: Vec::new(),
            serializer: None,
            bytes: Vec::new(),
        };
        for (i, codec) in codecs.iter().enumerate() {
            let codec = canonical(codec);
            // In format 2 a compressor of arrays follows `bytes`, which then does nothing.
            let before_serializer =
                codec.name == "bytes" && codecs.get(i + 1).is_some_and(|next| compresses_arrays(&canonical(next).name));
            if !before_serializer {
                builder.add(&codec)?;
            }
        }
        let serializer = builder.serializer.ok_or("there is no codec that makes bytes of the array")?;
        Ok(Self {
            element: data_type.fixed_size(),
            text: *data_type == DataType::String,
            arrays: builder.arrays,
            serializer,
            bytes: builder.bytes,
        })
    }

    /// The sharding codec, if it is the only codec, so that inner chunks can be fetched alone.
    pub(crate) fn sharding(&self) -> Option<&Sharding> {
        match &self.serializer {
            Serializer::Sharding(sharding) if self.arrays.is_empty() && self.bytes.is_empty() => Some(sharding),
            _ => None,
        }
    }

    /// Whether a chunk is its elements as they are, so that it can be read straight to where they belong.
    pub(crate) fn is_raw(&self) -> bool {
        self.arrays.is_empty() && self.bytes.is_empty() && matches!(self.serializer, Serializer::Bytes(1))
    }

    /// Decode a whole chunk of `shape` into `out`, which has as many bytes as its elements.
    ///
    /// # Errors
    /// Where the chunk does not decode to exactly these elements, or its elements have no fixed size.
    pub(crate) fn decode(
        &self,
        encoded: &[u8],
        shape: &[u64],
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), String> {
        guard(scratch, |scratch| self.decode_chunk(encoded, shape, out, scratch))
    }

    fn decode_chunk(&self, encoded: &[u8], shape: &[u64], out: &mut [u8], scratch: &mut Scratch) -> Result<(), String> {
        let size = self.element.ok_or("its elements have no fixed size")?;
        if byte_length(shape, size)? != out.len() {
            return Err(format!("a chunk of shape {shape:?} does not have {} bytes", out.len()));
        }
        if out.is_empty() {
            return Ok(());
        }
        match self.arrays.split_first() {
            None => self.decode_array_into(encoded, shape, size, out, scratch),
            Some((first, others)) => {
                let shapes = self.encoded_shapes(shape)?;
                let mut bytes = self.decode_array(
                    encoded,
                    shapes.last().map_or(shape, Vec::as_slice),
                    self.encoded_element(size)?,
                    scratch,
                )?;
                for ((stage, before), shape) in others.iter().zip(&self.arrays).zip(&shapes).rev() {
                    let size = before.encoded.ok_or("its elements have no fixed size")?;
                    let mut buffer = scratch.take(byte_length(shape, size)?)?;
                    stage
                        .codec
                        .decode(shape, size, bytes.as_slice(), buffer.as_mut_slice())
                        .map_err(|reason| stage.blame(&reason))?;
                    bytes.recycle(scratch);
                    bytes = Bytes::Owned(buffer);
                }
                first.codec.decode(shape, size, bytes.as_slice(), out).map_err(|reason| first.blame(&reason))?;
                bytes.recycle(scratch);
                Ok(())
            }
        }
    }

    /// Decode a whole chunk of `shape` of text or bytes.
    ///
    /// # Errors
    /// Where the chunk does not decode to exactly these elements, is not valid UTF-8 where it has to be, takes more
    /// than 1 GiB, or its elements have a fixed size.
    pub(crate) fn decode_variable(
        &self,
        encoded: &[u8],
        shape: &[u64],
        scratch: &mut Scratch,
    ) -> Result<VariableElements, String> {
        guard(scratch, |scratch| self.decode_variable_chunk(encoded, shape, scratch))
    }

    fn decode_variable_chunk(
        &self,
        encoded: &[u8],
        shape: &[u64],
        scratch: &mut Scratch,
    ) -> Result<VariableElements, String> {
        if self.element.is_some() {
            return Err("its elements have a fixed size".to_owned());
        }
        let shapes = self.encoded_shapes(shape)?;
        let inner = shapes.last().map_or(shape, Vec::as_slice);
        let bytes = byte_codecs::undo(&self.bytes, encoded, Size::AtMost(variable::LIMIT), scratch)?;
        let mut decoded = match &self.serializer {
            Serializer::Variable => variable::decode(bytes.as_slice(), elements(inner)?)?,
            Serializer::Sharding(sharding) => sharding.decode_variable(bytes.as_slice(), inner, scratch)?,
            Serializer::Other(codec) => codec.decode_variable(inner, bytes.as_slice(), elements(inner)?)?,
            Serializer::Bytes(_) | Serializer::Pcodec(_) | Serializer::Zfp(_) => {
                return Err("its elements have no fixed size".to_owned());
            }
        };
        bytes.recycle(scratch);
        for (i, stage) in self.arrays.iter().enumerate().rev() {
            let shape = i.checked_sub(1).and_then(|i| shapes.get(i)).map_or(shape, Vec::as_slice);
            if let ArrayCodec::Transpose(order) = &stage.codec {
                decoded = decoded.transposed(order, shape).map_err(|reason| stage.blame(&reason))?;
            }
        }
        if self.text {
            decoded.check_utf8()?;
        }
        Ok(decoded)
    }

    /// Bytes of an encoded chunk, if that does not depend on its content.
    fn encoded_size(&self, shape: &[u64]) -> Option<usize> {
        let Serializer::Bytes(_) = self.serializer else { return None };
        let shapes = self.encoded_shapes(shape).ok()?;
        let size =
            byte_length(shapes.last().map_or(shape, Vec::as_slice), self.encoded_element(self.element?).ok()?).ok()?;
        match byte_codecs::encoded_size(&self.bytes, Size::Exactly(size)) {
            Size::Exactly(size) => Some(size),
            Size::AtMost(_) => None,
        }
    }

    /// The shape of the array behind each of the array → array codecs.
    fn encoded_shapes(&self, shape: &[u64]) -> Result<Vec<Vec<u64>>, String> {
        let mut shapes: Vec<Vec<u64>> = Vec::with_capacity(self.arrays.len());
        for stage in &self.arrays {
            let shape = stage
                .codec
                .encoded_shape(shapes.last().map_or(shape, Vec::as_slice))
                .map_err(|reason| stage.blame(&reason))?;
            shapes.push(shape);
        }
        Ok(shapes)
    }

    /// Bytes of an element behind all of the array → array codecs.
    fn encoded_element(&self, size: usize) -> Result<usize, String> {
        self.arrays
            .last()
            .map_or(Ok(size), |stage| stage.encoded.ok_or_else(|| "its elements have no fixed size".to_owned()))
    }

    /// The array that the array → bytes codec was given, without a copy where it lies in the chunk as it is.
    fn decode_array<'a>(
        &self,
        encoded: &'a [u8],
        shape: &[u64],
        size: usize,
        scratch: &mut Scratch,
    ) -> Result<Bytes<'a>, String> {
        let len = byte_length(shape, size)?;
        if let Serializer::Bytes(1) = self.serializer {
            return byte_codecs::undo(&self.bytes, encoded, Size::Exactly(len), scratch);
        }
        let mut buffer = scratch.take(len)?;
        self.decode_array_into(encoded, shape, size, buffer.as_mut_slice(), scratch)?;
        Ok(Bytes::Owned(buffer))
    }

    fn decode_array_into(
        &self,
        encoded: &[u8],
        shape: &[u64],
        size: usize,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), String> {
        if let Serializer::Bytes(unit) = self.serializer {
            byte_codecs::undo_into(&self.bytes, encoded, out, scratch)?;
            swap::swap(unit, out);
            return Ok(());
        }
        // Twice the elements, and room for headers: more than any of these codecs makes of them.
        let chunks = match &self.serializer {
            Serializer::Sharding(sharding) => usize::try_from(sharding.index_size(shape)?).unwrap_or(usize::MAX),
            _ => 0,
        };
        let limit = out.len().saturating_mul(2).saturating_add(1 << 20).saturating_add(chunks.saturating_mul(16));
        let bytes = byte_codecs::undo(&self.bytes, encoded, Size::AtMost(limit), scratch)?;
        match &self.serializer {
            Serializer::Sharding(sharding) => sharding.decode(bytes.as_slice(), shape, size, out, scratch)?,
            Serializer::Pcodec(pcodec) => pcodec.decode(bytes.as_slice(), out)?,
            Serializer::Zfp(zfp) => zfp.decode(bytes.as_slice(), shape, out)?,
            Serializer::Other(codec) => codec.decode(shape, bytes.as_slice(), out)?,
            Serializer::Variable | Serializer::Bytes(_) => return Err("its elements have no fixed size".to_owned()),
        }
        bytes.recycle(scratch);
        Ok(())
    }
}

impl ArrayStage {
    fn blame(&self, reason: &str) -> String {
        format!("codec `{}`: {reason}", self.name)
    }
}

/// A chain that is being read, from the array towards the chunk.
struct Builder {
    /// Type of the elements so far.
    data_type: DataType,
    /// Byte order that the last filter has spoken of.
    endian: Option<Endian>,
    fill: Fill,
    depth: usize,
    arrays: Vec<ArrayStage>,
    serializer: Option<Serializer>,
    bytes: Vec<ByteCodec>,
}

impl Builder {
    fn add(&mut self, codec: &CodecMetadata) -> Result<(), String> {
        if let Some(byte_codec) = ByteCodec::new(codec)? {
            return self.add_bytes(&codec.name, byte_codec);
        }
        if let Some(parsed) = ArrayCodec::parse(codec, &self.data_type)? {
            self.check_before_serializer(&codec.name)?;
            (self.data_type, self.endian) = (parsed.data_type, parsed.endian.or(self.endian));
            return parsed.codec.map_or(Ok(()), |array_codec| self.add_array(&codec.name, array_codec));
        }
        let serializer = match codec.name.as_str() {
            "bytes" => self.bytes_serializer(codec)?,
            "sharding_indexed" => Serializer::Sharding(Box::new(Sharding::new(
                &codec.configuration,
                &self.data_type,
                self.fill.clone(),
                self.depth,
            )?)),
            "vlen-utf8" | "vlen-bytes" | "vlen-array" => Serializer::Variable,
            "numcodecs.pcodec" => Serializer::Pcodec(Pcodec::new(Number::of(&self.data_type))?),
            "zfp" | "numcodecs.zfpy" => Serializer::Zfp(Zfp::new(codec, &self.data_type)?),
            name => match zarrs_codec::Codec::new(codec, &self.data_type)? {
                Some(zarrs_codec::Codec::ArrayToArray(other)) => {
                    self.check_before_serializer(name)?;
                    return self.add_array(name, ArrayCodec::Other(other));
                }
                Some(zarrs_codec::Codec::BytesToBytes(other)) => {
                    return self.add_bytes(name, ByteCodec::other(name, other));
                }
                Some(zarrs_codec::Codec::ArrayToBytes(other)) => Serializer::Other(other),
                None => return Err(format!("codec `{name}` is not supported")),
            },
        };
        self.check_before_serializer(&codec.name)?;
        let variable = self.data_type.fixed_size().is_none();
        let fits = match &serializer {
            Serializer::Bytes(_) | Serializer::Pcodec(_) | Serializer::Zfp(_) => !variable,
            Serializer::Variable => variable,
            Serializer::Sharding(_) | Serializer::Other(_) => true,
        };
        if !fits {
            return Err(format!("codec `{}` does not fit the data type", codec.name));
        }
        self.serializer = Some(serializer);
        Ok(())
    }

    fn add_bytes(&mut self, name: &str, codec: ByteCodec) -> Result<(), String> {
        if self.serializer.is_none() {
            return Err(format!("codec `{name}` stands before a codec that makes bytes of the array"));
        }
        self.bytes.push(codec);
        Ok(())
    }

    fn add_array(&mut self, name: &str, codec: ArrayCodec) -> Result<(), String> {
        let encoded = self.data_type.fixed_size();
        if encoded.is_none() && !matches!(codec, ArrayCodec::Transpose(_)) {
            return Err(format!("codec `{name}` does not fit the data type"));
        }
        if !codec.keeps_fill() {
            self.fill = Fill::Hidden(name.to_owned());
        }
        self.arrays.push(ArrayStage { name: name.to_owned(), codec, encoded });
        Ok(())
    }

    fn check_before_serializer(&self, name: &str) -> Result<(), String> {
        match self.serializer {
            None => Ok(()),
            Some(_) => Err(format!("codec `{name}` stands behind a codec that makes bytes of the array")),
        }
    }

    /// The `bytes` codec (zarr-specs, codecs/bytes). Where it does not say the byte order, that of the last filter's
    /// data type counts.
    fn bytes_serializer(&self, codec: &CodecMetadata) -> Result<Serializer, String> {
        let unit = self.data_type.swap_unit();
        let endian = match codec.configuration.get("endian") {
            None | Some(serde_json::Value::Null) => self.endian,
            Some(value) => match value.as_str() {
                Some("little") => Some(Endian::Little),
                Some("big") => Some(Endian::Big),
                _ => return Err(format!("codec `bytes` has the unknown `endian` {value}")),
            },
        };
        match endian {
            _ if unit <= 1 => Ok(Serializer::Bytes(1)),
            Some(Endian::NATIVE) => Ok(Serializer::Bytes(1)),
            Some(_) => Ok(Serializer::Bytes(unit)),
            None => Err("codec `bytes` has no `endian`, which elements of several bytes need".to_owned()),
        }
    }
}

/// Names that mean the same: aliases of the specification and of zarrs.
fn canonical(codec: &CodecMetadata) -> CodecMetadata {
    let name = codec
        .name
        .strip_prefix("https://codec.zarrs.dev/array_to_bytes/")
        .or_else(|| codec.name.strip_prefix("https://codec.zarrs.dev/bytes_to_bytes/"));
    let name = match name.unwrap_or(&codec.name) {
        "endian" => "bytes",
        "bitround" => "bitround",
        "fletcher32" if name.is_some() => "numcodecs.fletcher32",
        "pcodec" if name.is_some() => "numcodecs.pcodec",
        "zfpy" if name.is_some() => "numcodecs.zfpy",
        "zfp" | "zarrs.zfp" => "zfp",
        "zarrs.vlen_v2" => "vlen-array",
        "vlen_v2" if name.is_some() => "vlen-array",
        _ => &codec.name,
    };
    CodecMetadata { name: name.to_owned(), configuration: codec.configuration.clone() }
}

/// Whether a numcodecs compressor works on arrays, not on bytes.
fn compresses_arrays(name: &str) -> bool {
    matches!(name, "numcodecs.pcodec" | "numcodecs.zfpy")
}

/// Make an error of a panic, which a codec library may still have for bad input. What it leaves behind in the scratch
/// memory is not used again.
fn guard<T>(scratch: &mut Scratch, run: impl FnOnce(&mut Scratch) -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(|| run(scratch))).unwrap_or_else(|_| {
        *scratch = Scratch::default();
        Err("a codec failed on bad input".to_owned())
    })
}

/// Elements of an array.
fn elements(shape: &[u64]) -> Result<usize, String> {
    let count = shape.iter().try_fold(1_u64, |count, &len| count.checked_mul(len));
    count.and_then(|count| usize::try_from(count).ok()).ok_or_else(|| format!("the shape {shape:?} is too large"))
}

/// Bytes of an array of elements of `size` bytes.
fn byte_length(shape: &[u64], size: usize) -> Result<usize, String> {
    elements(shape)?
        .checked_mul(size)
        .filter(|&len| isize::try_from(len).is_ok())
        .ok_or_else(|| format!("the shape {shape:?} is too large"))
}
