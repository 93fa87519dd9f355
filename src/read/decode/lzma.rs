//! `numcodecs.lzma`: the formats of Python's `lzma` module, which numcodecs calls with the `format` and `filters` of
//! its configuration.
//!
//! Formats: 0 found out from the content, 1 xz, 2 alone (LZMA 1 with a header), 3 raw (no header at all, the filters
//! are those of the configuration).

use liblzma::stream::{Action, CONCATENATED, Filters, LzmaOptions, Status, Stream};
use serde_json::{Map, Value};

use super::pull::Pull;

/// Memory of a decoder. A preset of 9, the highest, needs 64 MiB for its dictionary.
const MEMORY: u64 = 80 << 20;
/// The longest dictionary that a raw filter may ask for.
const DICTIONARY: u32 = 64 << 20;

/// What the configuration says about the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lzma {
    /// Any format with a header.
    Auto,
    /// Streams in the xz format.
    Xz,
    /// The older format with a header of 13 bytes.
    Alone,
    /// No header.
    Raw(Vec<Filter>),
}

/// A filter of a raw stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    /// Differences of bytes so far apart, less one.
    Delta(u8),
    /// LZMA 1.
    Lzma1(Options),
    /// LZMA 2.
    Lzma2(Options),
}

/// What of the options matters for decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Options {
    preset: u32,
    dict_size: Option<u32>,
    lc: Option<u32>,
    lp: Option<u32>,
    pb: Option<u32>,
}

impl Lzma {
    /// Read the configuration.
    pub(super) fn new(configuration: &Map<String, Value>) -> Result<Self, String> {
        let format = configuration.get("format").filter(|format| !format.is_null());
        match format.map_or(Some(1), Value::as_u64) {
            Some(0) => Ok(Self::Auto),
            Some(1) => Ok(Self::Xz),
            Some(2) => Ok(Self::Alone),
            Some(3) => {
                let filters = configuration
                    .get("filters")
                    .and_then(Value::as_array)
                    .ok_or("codec `numcodecs.lzma` of format 3 has no `filters`")?;
                Ok(Self::Raw(filters.iter().map(Filter::new).collect::<Result<_, _>>()?))
            }
            _ => Err(format!("codec `numcodecs.lzma` has the unknown `format` {}", format.unwrap_or(&Value::Null))),
        }
    }

    fn stream(&self) -> Result<Stream, String> {
        let stream = match self {
            Self::Auto => Stream::new_auto_decoder(MEMORY, CONCATENATED),
            Self::Xz => Stream::new_stream_decoder(MEMORY, CONCATENATED),
            Self::Alone => Stream::new_lzma_decoder(MEMORY),
            Self::Raw(filters) => {
                let mut chain = Filters::new();
                for filter in filters {
                    filter.append(&mut chain)?;
                }
                Stream::new_raw_decoder(&chain)
            }
        };
        stream.map_err(|error| format!("no LZMA decoder: {error}"))
    }

    /// A decoder of these bytes.
    pub(super) fn decoder<'a>(&self, input: &'a [u8]) -> Result<Decoder<'a>, String> {
        Ok(Decoder { input, stream: self.stream()?, ended: false })
    }
}

impl Filter {
    /// The identifiers are those of liblzma (`LZMA_FILTER_*` of lzma/delta.h and lzma/lzma12.h).
    fn new(value: &Value) -> Result<Self, String> {
        let number = |key: &str| match value.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(n) => {
                n.as_u64().map(Some).ok_or_else(|| format!("a filter of codec `numcodecs.lzma` has the `{key}` {n}"))
            }
        };
        match number("id")? {
            Some(3) => {
                let dist = number("dist")?.unwrap_or(1);
                let less_one = dist.checked_sub(1).and_then(|dist| u8::try_from(dist).ok());
                Ok(Self::Delta(
                    less_one.ok_or_else(|| format!("a filter of codec `numcodecs.lzma` has the `dist` {dist}"))?,
                ))
            }
            Some(0x21) => Ok(Self::Lzma2(Options::new(number)?)),
            Some(0x4000_0000_0000_0001) => Ok(Self::Lzma1(Options::new(number)?)),
            Some(id) => Err(format!("codec `numcodecs.lzma` has the unsupported filter {id}")),
            None => Err("a filter of codec `numcodecs.lzma` has no `id`".to_owned()),
        }
    }

    fn append(self, chain: &mut Filters) -> Result<(), String> {
        match self {
            Self::Delta(less_one) => {
                chain.delta_properties(&[less_one]).map_err(|error| format!("no delta filter: {error}"))?;
            }
            Self::Lzma1(options) => {
                chain.lzma1(&options.build()?);
            }
            Self::Lzma2(options) => {
                chain.lzma2(&options.build()?);
            }
        }
        Ok(())
    }
}

impl Options {
    fn new(number: impl Fn(&str) -> Result<Option<u64>, String>) -> Result<Self, String> {
        let small = |key: &str, max: u32| match number(key)? {
            None => Ok(None),
            Some(n) => match u32::try_from(n) {
                Ok(n) if n <= max => Ok(Some(n)),
                _ => Err(format!("a filter of codec `numcodecs.lzma` has the `{key}` {n}")),
            },
        };
        // Preset 6 is the default of liblzma; bit 31 asks for a slower encoder.
        let preset = number("preset")?.unwrap_or(6);
        let level = preset & !(1 << 31);
        let preset = u32::try_from(level)
            .ok()
            .filter(|&level| level <= 9)
            .ok_or_else(|| format!("a filter of codec `numcodecs.lzma` has the `preset` {preset}"))?;
        Ok(Self {
            preset,
            dict_size: small("dict_size", DICTIONARY)?,
            lc: small("lc", 4)?,
            lp: small("lp", 4)?,
            pb: small("pb", 4)?,
        })
    }

    fn build(self) -> Result<LzmaOptions, String> {
        let mut options = LzmaOptions::new_preset(self.preset).map_err(|error| format!("no LZMA options: {error}"))?;
        if let Some(size) = self.dict_size {
            options.dict_size(size);
        }
        if let Some(lc) = self.lc {
            options.literal_context_bits(lc);
        }
        if let Some(lp) = self.lp {
            options.literal_position_bits(lp);
        }
        if let Some(pb) = self.pb {
            options.position_bits(pb);
        }
        Ok(options)
    }
}

/// A decoder of one chunk.
pub(super) struct Decoder<'a> {
    input: &'a [u8],
    stream: Stream,
    ended: bool,
}

impl Pull for Decoder<'_> {
    fn pull(&mut self, out: &mut [u8]) -> Result<usize, String> {
        while !self.ended {
            let (used, made) = (self.stream.total_in(), self.stream.total_out());
            let status = self
                .stream
                .process(self.input, out, Action::Finish)
                .map_err(|error| format!("bad LZMA stream: {error}"))?;
            let used = usize::try_from(self.stream.total_in() - used).unwrap_or(usize::MAX);
            let made = usize::try_from(self.stream.total_out() - made).unwrap_or(usize::MAX);
            self.input = self.input.get(used..).unwrap_or_default();
            self.ended = status == Status::StreamEnd;
            if made > 0 {
                return Ok(made);
            }
            if status == Status::MemNeeded {
                return Err("the LZMA stream is cut off".to_owned());
            }
        }
        if self.input.is_empty() {
            Ok(0)
        } else {
            Err(format!("{} bytes follow the end of the stream", self.input.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{
            pull,
            scratch::Scratch,
            testing::{HELLO, hex},
        },
        *,
    };

    // lzma.compress(HELLO, format=..., filters=...) of liblzma in Python
    const XZ: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a3e00016000b5d00341949ee8de9560ab5e00000008943dbea0334e4d000012717898290791fb6f37d010000000004595a";
    const ALONE: &str = "5d00008000ffffffffffffffff00341949ee8de9560bd5c5a3ffff78a40000";
    const DELTA_LZMA2: &str = "e0001600105d00341949db7fd86e9ca5a46b821732b00000";
    const LZMA1: &str = "00341949db855c67de87f95ffffff7420000";

    fn cases() -> [(Value, Vec<u8>); 6] {
        let delta = json!({"format": 3, "filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]});
        let lzma1 = json!({"format": 3, "filters": [{"id": 0x4000_0000_0000_0001_u64, "preset": 1}]});
        [
            (json!({}), hex(XZ)),
            (json!({"format": 1, "check": -1, "preset": 1, "filters": null}), hex(XZ)),
            (json!({"format": 0}), hex(ALONE)),
            (json!({"format": 2}), hex(ALONE)),
            (delta, hex(DELTA_LZMA2)),
            (lzma1, hex(LZMA1)),
        ]
    }

    fn decode(configuration: &Value, encoded: &[u8], len: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0; len];
        pull::fill(&mut Lzma::new(configuration.as_object().unwrap())?.decoder(encoded)?, &mut out).map(|()| out)
    }

    #[test]
    fn every_format() {
        for (configuration, encoded) in cases() {
            assert_eq!(decode(&configuration, &encoded, 23).as_deref(), Ok(HELLO), "{configuration}");
            assert!(decode(&configuration, &encoded, 22).is_err(), "{configuration}");
            assert!(decode(&configuration, &encoded, 24).is_err(), "{configuration}");
            assert!(decode(&configuration, &[&encoded[..], b"junk"].concat(), 23).is_err(), "{configuration}");
            for cut in 0..encoded.len() {
                assert!(decode(&configuration, &encoded[..cut], 23).is_err(), "{configuration} {cut}");
            }
            let mut out = Scratch::default().take(0).unwrap();
            pull::grow(
                &mut Lzma::new(configuration.as_object().unwrap()).unwrap().decoder(&encoded).unwrap(),
                1000,
                &mut out,
            )
            .unwrap();
            assert_eq!(out.as_slice(), HELLO);
        }
        assert_eq!(decode(&json!({}), &[hex(XZ), hex(XZ)].concat(), 46).unwrap(), [HELLO, HELLO].concat());
    }

    #[test]
    fn configuration_is_checked() {
        for bad in [
            json!({"format": 4}),
            json!({"format": -1}),
            json!({"format": 3}),
            json!({"format": 3, "filters": [{}]}),
            json!({"format": 3, "filters": [{"id": 4}]}),
            json!({"format": 3, "filters": [{"id": 3, "dist": 0}]}),
            json!({"format": 3, "filters": [{"id": 3, "dist": 257}]}),
            json!({"format": 3, "filters": [{"id": 33, "preset": 10}]}),
            json!({"format": 3, "filters": [{"id": 33, "dict_size": 1_u64 << 31}]}),
            json!({"format": 3, "filters": [{"id": 33, "lc": -1}]}),
        ] {
            assert!(Lzma::new(bad.as_object().unwrap()).is_err(), "{bad}");
        }
        // Filters that liblzma rejects: none, or a delta at the end.
        for bad in [
            json!({"format": 3, "filters": []}),
            json!({"format": 3, "filters": [{"id": 3}]}),
            json!({"format": 3, "filters": [{"id": 0x4000_0000_0000_0001_u64, "lc": 4, "lp": 4}]}),
        ] {
            assert!(Lzma::new(bad.as_object().unwrap()).unwrap().decoder(&[]).is_err(), "{bad}");
        }
    }

    #[test]
    fn dictionary_is_bounded() {
        // The header of an alone stream with a dictionary of 2 GiB.
        let mut bomb = hex(ALONE);
        bomb[1..5].copy_from_slice(&(1_u32 << 31).to_le_bytes());
        assert!(decode(&json!({"format": 2}), &bomb, 23).unwrap_err().contains("memory"));
    }
}
