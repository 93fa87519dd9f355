//! Tests of whole chains, on chunks that zarr-python 3.1.6 and numcodecs 0.16.6 have written.

use serde_json::{Value, json};

use super::{
    testing::{HELLO, codecs, hex, native},
    *,
};

fn build(list: &Value, data_type: &DataType) -> Result<Codecs, String> {
    Codecs::new(&codecs(list), data_type, None)
}

fn decode(codecs: &Codecs, encoded: &[u8], shape: &[u64], len: usize) -> Result<Vec<u8>, String> {
    let mut out = vec![0xaa; len];
    codecs.decode(encoded, shape, &mut out, &mut Scratch::default()).map(|()| out)
}

fn bytes(endian: &str) -> Value {
    json!({"name": "bytes", "configuration": {"endian": endian}})
}

fn sharding(chunk_shape: &Value, inner: &Value, index: &Value, location: &str) -> Value {
    json!({"name": "sharding_indexed", "configuration": {"chunk_shape": chunk_shape, "codecs": inner, "index_codecs": index, "index_location": location}})
}

/// 4 by 4 numbers, of which the upper right quarter is the fill value -1.
fn quarters() -> Vec<u8> {
    native(&[0, 1, -1, -1, 4, 5, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15_i16], i16::to_ne_bytes)
}

const INDEX_AT_END: &str = concat!(
    "0000010004000500080009000c000d000a000b000e000f00",
    "00000000000000000800000000000000ffffffffffffffffffffffffffffffff0800000000000000080000000000000010000000000000000800000000000000",
    "002c1579"
);
const INDEX_AT_START: &str = concat!(
    "00000000000000400000000000000008ffffffffffffffffffffffffffffffff0000000000000048000000000000000800000000000000500000000000000008",
    "00000004000100050008000c0009000d000a000e000b000f"
);
const NESTED: &str = concat!(
    "000001000400050000000000000000000800000000000000ffffffffffffffffffffffffffffffff",
    "080009000c000d000a000b000e000f000000000000000000080000000000000008000000000000000800000000000000",
    "0000000000000000280000000000000028000000000000003000000000000000"
);
const TEXT: &str =
    "020000000100000061030000007ac3bc00000000000000001000000000000000ffffffffffffffffffffffffffffffff2be465a2";

fn at_end() -> Value {
    json!([sharding(&json!([2, 2]), &json!([bytes("little")]), &json!([bytes("little"), {"name": "crc32c"}]), "end")])
}

fn at_start() -> Value {
    let inner = json!([{"name": "transpose", "configuration": {"order": [1, 0]}}, bytes("big")]);
    json!([sharding(&json!([2, 2]), &inner, &json!([bytes("big")]), "start")])
}

fn with_fill(list: &Value) -> Codecs {
    Codecs::new(&codecs(list), &DataType::Int16, Some(&(-1_i16).to_ne_bytes())).unwrap()
}

#[test]
fn shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Codecs>();
    shared::<Sharding>();
    sent::<Scratch>();
    sent::<VariableElements>();
}

#[test]
fn byte_order() {
    let numbers = native(&[1, -2_i32], i32::to_ne_bytes);
    for (endian, encoded) in [("little", hex("01000000feffffff")), ("big", hex("00000001fffffffe"))] {
        for name in ["bytes", "endian"] {
            let codecs =
                build(&json!([{"name": name, "configuration": {"endian": endian}}]), &DataType::Int32).unwrap();
            assert_eq!(decode(&codecs, &encoded, &[2], 8).unwrap(), numbers);
        }
    }
    let big = json!([bytes("big")]);
    let complex = build(&big, &DataType::Complex64).unwrap();
    assert_eq!(
        decode(&complex, &hex("3f800000c0000000"), &[1], 8).unwrap(),
        native(&[1.0, -2.0_f32], f32::to_ne_bytes)
    );
    let text = build(&big, &DataType::FixedUtf32(2)).unwrap();
    assert_eq!(
        decode(&text, &hex("00000061000000fc"), &[1], 8).unwrap(),
        native(&['a', 'ü'], |c| u32::from(c).to_ne_bytes())
    );
    for data_type in [DataType::FixedBytes(2), DataType::Raw(2), DataType::Struct(Vec::new(), 2), DataType::Bool] {
        let size = u64::try_from(2 / data_type.fixed_size().unwrap()).unwrap();
        for list in [json!([bytes("big")]), json!([{"name": "bytes"}])] {
            assert_eq!(decode(&build(&list, &data_type).unwrap(), &[0, 1], &[size], 2).unwrap(), [0, 1]);
        }
    }
    assert_eq!(
        build(&json!([{"name": "bytes"}]), &DataType::Int16).unwrap_err(),
        "codec `bytes` has no `endian`, which elements of several bytes need"
    );
    assert!(build(&json!([bytes("middle")]), &DataType::Int16).is_err());
}

#[test]
fn byte_order_of_the_last_filter() {
    // Of format 2, where the order of the array's own data type is not that of the bytes.
    let filter = json!({"name": "numcodecs.astype", "configuration": {"encode_dtype": ">i2", "decode_dtype": "<f8"}});
    let codecs = build(&json!([filter, {"name": "bytes"}]), &DataType::Float64).unwrap();
    assert_eq!(decode(&codecs, &[0, 1, 255, 254], &[2], 16).unwrap(), native(&[1.0, -2.0_f64], f64::to_ne_bytes));
    let codecs = build(&json!([filter, bytes("little")]), &DataType::Float64).unwrap();
    assert_eq!(decode(&codecs, &[1, 0, 254, 255], &[2], 16).unwrap(), native(&[1.0, -2.0_f64], f64::to_ne_bytes));
}

#[test]
fn rows_of_filters() {
    // 32 bools: packed in bits, as differences, in other order, then swapped for nothing and compressed.
    let list = json!([
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "numcodecs.packbits"},
        {"name": "numcodecs.delta", "configuration": {"dtype": "|u1"}},
        {"name": "bytes"},
        {"name": "numcodecs.lz4"},
    ]);
    let codecs = build(&list, &DataType::Bool).unwrap();
    let packed = [0_u8, 0b1000_0001, 0, 0, 0b0000_0001];
    let differences: Vec<u8> =
        packed.iter().scan(0_u8, |before, &byte| Some(byte.wrapping_sub(std::mem::replace(before, byte)))).collect();
    let encoded = [&[5, 0, 0, 0][..], &lz4_flex::block::compress(&differences)].concat();
    let mut expected = [0; 32];
    // Encoded [8, 4]: bits 0, 7 and 31 are places (0, 0), (1, 3) and (7, 3) there.
    for at in [0, 3 * 8 + 1, 3 * 8 + 7] {
        expected[at] = 1;
    }
    assert_eq!(decode(&codecs, &encoded, &[4, 8], 32).unwrap(), expected);
    assert!(decode(&codecs, &encoded, &[4, 7], 28).is_err());
    assert!(decode(&codecs, &encoded, &[4], 4).unwrap_err().starts_with("codec `transpose`: the order of 2 axes"));
}

#[test]
fn wrong_chains() {
    let crc = json!({"name": "crc32c"});
    for (list, reason) in [
        (json!([]), "there is no codec that makes bytes of the array"),
        (json!([{"name": "gribberish"}]), "codec `gribberish` is not supported"),
        (json!([bytes("little"), {"name": "numcodecs.jpeg"}]), "codec `numcodecs.jpeg` is not supported"),
        (json!([crc, bytes("little")]), "codec `crc32c` stands before a codec that makes bytes of the array"),
        (
            json!([bytes("little"), bytes("little")]),
            "codec `bytes` stands behind a codec that makes bytes of the array",
        ),
        (
            json!([bytes("little"), {"name": "bitround"}]),
            "codec `bitround` stands behind a codec that makes bytes of the array",
        ),
        (json!([{"name": "vlen-utf8"}]), "codec `vlen-utf8` does not fit the data type"),
    ] {
        assert_eq!(build(&list, &DataType::Int16).unwrap_err(), reason);
    }
    assert_eq!(
        build(&json!([bytes("little")]), &DataType::String).unwrap_err(),
        "codec `bytes` does not fit the data type"
    );
    let many: Value = std::iter::once(bytes("little")).chain((0..64).map(|_| crc.clone())).collect();
    assert!(build(&many, &DataType::Int16).unwrap_err().contains("not supported"));
}

#[test]
fn wrong_lengths() {
    let codecs = build(&json!([bytes("little")]), &DataType::Int16).unwrap();
    assert_eq!(decode(&codecs, &[0; 4], &[2], 4).unwrap(), [0; 4]);
    assert!(decode(&codecs, &[0; 3], &[2], 4).is_err());
    assert!(decode(&codecs, &[0; 5], &[2], 4).is_err());
    assert!(decode(&codecs, &[0; 4], &[3], 4).unwrap_err().contains("does not have 4 bytes"));
    for shape in [&[1 << 40, 1 << 40][..], &[u64::MAX, 2], &[1 << 63]] {
        assert!(decode(&codecs, &[0; 4], shape, 4).unwrap_err().contains("too large"), "{shape:?}");
    }
    assert!(decode(&codecs, &[], &[0, 5], 0).unwrap().is_empty());
    assert_eq!(decode(&codecs, &[1, 2], &[], 2).unwrap(), 513_u16.to_le_bytes());
    assert!(codecs.decode_variable(&[], &[2], &mut Scratch::default()).is_err());
}

#[test]
fn shards() {
    for (list, encoded) in [(at_end(), INDEX_AT_END), (at_start(), INDEX_AT_START)] {
        let codecs = with_fill(&list);
        let encoded = hex(encoded);
        assert_eq!(decode(&codecs, &encoded, &[4, 4], 32).unwrap(), quarters());
        for cut in 0..encoded.len() {
            assert!(decode(&codecs, &encoded[..cut], &[4, 4], 32).is_err(), "{cut}");
        }
        // null: zeros
        let null = build(&list, &DataType::Int16).unwrap();
        assert_eq!(decode(&null, &encoded, &[4, 4], 32).unwrap()[4..8], [0; 4]);
    }
    let nested = json!([sharding(
        &json!([2, 4]),
        &json!([sharding(&json!([2, 2]), &json!([bytes("little")]), &json!([bytes("little")]), "end")]),
        &json!([bytes("little")]),
        "end"
    )]);
    assert_eq!(decode(&with_fill(&nested), &hex(NESTED), &[4, 4], 32).unwrap(), quarters());
}

#[test]
fn shard_in_a_chain() {
    let mut list = at_end();
    list.as_array_mut().unwrap().push(json!({"name": "crc32c"}));
    let codecs = with_fill(&list);
    assert!(codecs.sharding().is_none());
    let shard = hex(INDEX_AT_END);
    let encoded = [&shard[..], &::crc32c::crc32c(&shard).to_le_bytes()].concat();
    assert_eq!(decode(&codecs, &encoded, &[4, 4], 32).unwrap(), quarters());
    // Behind a codec that changes numbers the fill value is not known, behind `transpose` it is.
    list.as_array_mut().unwrap().insert(0, json!({"name": "numcodecs.delta", "configuration": {"dtype": "<i2"}}));
    assert_eq!(
        decode(&with_fill(&list), &encoded, &[4, 4], 32).unwrap_err(),
        "inner chunk [0, 1]: it is absent, and codec `numcodecs.delta` hides the fill value"
    );
    list[0] = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let transposed = decode(&with_fill(&list), &encoded, &[4, 4], 32).unwrap();
    assert_eq!(transposed[..8], native(&[0, 4, 8, 12_i16], i16::to_ne_bytes));
    assert_eq!(transposed[16..24], native(&[-1, -1, 10, 14_i16], i16::to_ne_bytes));
}

#[test]
fn index_of_a_shard() {
    let codecs = with_fill(&at_end());
    let sharding = codecs.sharding().unwrap();
    let shard = hex(INDEX_AT_END);
    assert_eq!(
        (sharding.chunk_shape(), sharding.index_at_start(), sharding.index_size(&[4, 4])),
        (&[2, 2][..], false, Ok(68))
    );
    assert_eq!(sharding.index_size(&[4, 8]), Ok(132));
    let mut scratch = Scratch::default();
    let mut index = |bytes: &[u8], size| sharding.decode_index(bytes, &[4, 4], size, &mut scratch);
    let expected = vec![Some(0..8), None, Some(8..16), Some(16..24)];
    assert_eq!(index(&shard[24..], Some(92)), Ok(expected.clone()));
    assert_eq!(index(&shard[24..], None), Ok(expected));
    assert_eq!(
        index(&shard[24..], Some(91)).unwrap_err(),
        "inner chunk [1, 1]: its 8 bytes at offset 16 are not inside the bytes 0..23 of the shard"
    );
    assert!(index(&shard[25..], Some(92)).unwrap_err().contains("67 bytes where an index of 68"));
    assert!(index(&shard[24..], Some(67)).unwrap_err().contains("too short"));
    let mut bad = shard[24..].to_vec();
    bad[0] ^= 1;
    assert!(index(&bad, None).unwrap_err().starts_with("bad index: codec `crc32c`: the checksum is"));
    // The inner chunks decode alone.
    assert_eq!(
        decode(sharding.inner(), &shard[8..16], &[2, 2], 8).unwrap(),
        native(&[8, 9, 12, 13_i16], i16::to_ne_bytes)
    );
}

#[test]
fn bad_index_entries() {
    let list = json!([sharding(&json!([1]), &json!([bytes("little")]), &json!([bytes("little")]), "start")]);
    let codecs = with_fill(&list);
    let sharding = codecs.sharding().unwrap();
    let mut scratch = Scratch::default();
    let mut index = |entries: &[(u64, u64)], size| {
        let bytes: Vec<u8> =
            entries.iter().flat_map(|(offset, size)| [offset.to_le_bytes(), size.to_le_bytes()].concat()).collect();
        sharding.decode_index(&bytes, &[u64::try_from(entries.len()).unwrap()], size, &mut scratch)
    };
    assert_eq!(index(&[(34, 2), (32, 2)], Some(36)), Ok(vec![Some(34..36), Some(32..34)]));
    // Two inner chunks of the same content may share it.
    assert_eq!(index(&[(32, 2), (32, 2)], Some(36)), Ok(vec![Some(32..34), Some(32..34)]));
    assert!(index(&[(32, 2), (35, 2)], Some(36)).unwrap_err().starts_with("inner chunk [1]: its 2 bytes at offset 35"));
    assert!(index(&[(30, 2), (34, 2)], Some(36)).unwrap_err().starts_with("inner chunk [0]: its 2 bytes at offset 30"));
    assert!(index(&[(32, u64::MAX), (34, 2)], Some(36)).is_err());
    assert!(index(&[(u64::MAX, 1), (34, 2)], None).is_err());
    assert!(index(&[(u64::MAX - 1, u64::MAX), (34, 2)], None).is_err());
    let overlap = index(&[(33, 2), (32, 2)], Some(36)).unwrap_err();
    assert_eq!(overlap, "inner chunk [0]: its bytes 33..35 overlap 32..34 of inner chunk [1]");
    // An empty range is no range, but no inner chunk either.
    assert_eq!(index(&[(33, 0), (32, 2)], Some(36)), Ok(vec![Some(33..33), Some(32..34)]));
}

#[test]
fn shapes_of_shards() {
    let codecs = with_fill(&at_end());
    let sharding = codecs.sharding().unwrap();
    for shape in [&[4][..], &[4, 3], &[4, 4, 4], &[1 << 62, 1 << 62]] {
        assert!(sharding.index_size(shape).is_err(), "{shape:?}");
        assert!(sharding.decode_index(&[], shape, None, &mut Scratch::default()).is_err(), "{shape:?}");
    }
    assert!(decode(&codecs, &hex(INDEX_AT_END), &[1, 16], 32).is_err());
    assert!(decode(&codecs, &hex(INDEX_AT_END), &[16], 32).is_err());
}

#[test]
fn sharding_configuration_is_checked() {
    let little = json!([bytes("little")]);
    let int = DataType::Int16;
    for shape in [json!([0]), json!([-1]), json!("2"), json!([1.5])] {
        assert!(build(&json!([sharding(&shape, &little, &little, "end")]), &int).is_err(), "{shape}");
    }
    assert!(build(&json!([sharding(&json!([2]), &little, &little, "middle")]), &int).is_err());
    assert!(build(&json!([sharding(&json!([2]), &json!([]), &little, "end")]), &int).is_err());
    assert!(build(&json!([sharding(&json!([2]), &json!([7]), &little, "end")]), &int).is_err());
    assert!(build(&json!([sharding(&json!([2]), &json!("bytes"), &little, "end")]), &int).is_err());
    let compressed = json!([bytes("little"), {"name": "zstd"}]);
    assert!(
        build(&json!([sharding(&json!([2]), &little, &compressed, "end")]), &int).unwrap_err().contains("fixed length")
    );
    assert!(build(&json!([{"name": "sharding_indexed"}]), &int).is_err());
    // Names alone are codecs as well.
    assert!(build(&json!([sharding(&json!([2]), &json!(["bytes"]), &little, "end")]), &DataType::Bool).is_ok());
    let mut deep = little.clone();
    for _ in 0..20 {
        deep = json!([sharding(&json!([2]), &deep, &little, "end")]);
    }
    assert!(build(&deep, &int).unwrap_err().contains("not supported"));
}

#[test]
fn text() {
    let variable = |list: &Value, data_type: &DataType, encoded: &[u8], shape: &[u64]| {
        let codecs = Codecs::new(&codecs(list), data_type, Some(b"none"))?;
        codecs.decode_variable(encoded, shape, &mut Scratch::default())
    };
    let elements = |parts: &[&str]| {
        let offsets = std::iter::once(0)
            .chain(parts.iter().scan(0, |end, part| {
                *end += part.len();
                Some(*end)
            }))
            .collect();
        VariableElements { offsets, bytes: parts.concat().into_bytes() }
    };
    // numcodecs.VLenUTF8().encode(np.array(["a", "", "zürich"], dtype=object))
    let encoded = hex("03000000010000006100000000070000007ac3bc72696368");
    let plain = json!([{"name": "vlen-utf8"}]);
    assert_eq!(variable(&plain, &DataType::String, &encoded, &[3]).unwrap(), elements(&["a", "", "zürich"]));
    assert_eq!(variable(&plain, &DataType::String, &encoded, &[1, 3]).unwrap(), elements(&["a", "", "zürich"]));
    assert!(variable(&plain, &DataType::String, &encoded, &[2]).is_err());
    assert!(variable(&plain, &DataType::String, &encoded, &[u64::MAX]).is_err());
    let latin = hex("0100000001000000fc");
    assert_eq!(variable(&plain, &DataType::String, &latin, &[1]).unwrap_err(), "element 0 is not valid UTF-8");
    let raw = json!([{"name": "vlen-bytes"}, {"name": "crc32c"}]);
    let checked = [&latin[..], &::crc32c::crc32c(&latin).to_le_bytes()].concat();
    assert_eq!(
        variable(&raw, &DataType::Bytes, &checked, &[1]).unwrap(),
        VariableElements { offsets: vec![0, 1], bytes: vec![0xfc] }
    );
    let fortran = json!([{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "vlen-utf8"}]);
    let four = [&4_u32.to_le_bytes()[..], &hex("01000000610100000062010000006301000000 64".replace(' ', "").as_str())]
        .concat();
    assert_eq!(variable(&fortran, &DataType::String, &four, &[2, 2]).unwrap(), elements(&["a", "c", "b", "d"]));
    let sharded = json!([sharding(&json!([1, 2]), &plain, &json!([bytes("little"), {"name": "crc32c"}]), "end")]);
    assert_eq!(
        variable(&sharded, &DataType::String, &hex(TEXT), &[2, 2]).unwrap(),
        elements(&["a", "zü", "none", "none"])
    );
    assert!(variable(&sharded, &DataType::String, &hex(TEXT), &[2, 3]).is_err());
    assert!(decode(&build(&plain, &DataType::String).unwrap(), &encoded, &[3], 3).is_err());
}

#[test]
fn unlikely_memory_is_not_asked_for() {
    // A text shard of 2^40 elements, all absent, and a chunk of text whose zstd frame claims 2^40 bytes.
    let index = json!([bytes("little")]);
    let list = json!([sharding(&json!([1_u64 << 40]), &json!([{"name": "vlen-utf8"}]), &index, "end")]);
    let codecs = build(&list, &DataType::String).unwrap();
    assert!(codecs.decode_variable(&[255; 16], &[1 << 40], &mut Scratch::default()).unwrap_err().contains("MiB"));
    let codecs = build(&json!([{"name": "vlen-utf8"}, {"name": "zstd"}]), &DataType::String).unwrap();
    assert!(codecs.decode_variable(&hex("28b52ffde000000000000100000100"), &[1], &mut Scratch::default()).is_err());
}

#[test]
fn zfp_and_pcodec() {
    // zfpy.compress_numpy(np.linspace(0, 1, 6, dtype="f4").reshape(2, 3), write_header=True, ...), and what zfpy makes
    // of it
    let reversible = "7a6670052600001000000088017282c924914832c024914832c024914832c024914832c024914832c024914826012cc190620a0000000000";
    let accuracy = "7a667005260000100000c0ca017108040b530433c934520433c9040000000000";
    let rate = "7a667005260000100000f007017108040b530433c934520433c9345200000000";
    let zfpy = build(&json!([{"name": "numcodecs.zfpy", "configuration": {"mode": 4}}]), &DataType::Float32).unwrap();
    for (encoded, expected) in [
        (reversible, "00000000cdcc4c3ecdcccc3e9a99193fcdcc4c3f0000803f"),
        (accuracy, "0000c03900204d3e0070cc3e00d8193f00084d3f00f87f3f"),
        (rate, "0000403900d04c3e00b8cc3e00ac193f00d44c3f00fc7f3f"),
    ] {
        let expected = native(
            &hex(expected).as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect::<Vec<_>>(),
            f32::to_ne_bytes,
        );
        let encoded = hex(encoded);
        assert_eq!(decode(&zfpy, &encoded, &[2, 3], 24).unwrap(), expected);
        assert!(decode(&zfpy, &encoded, &[2, 2], 16).unwrap_err().contains("dimensions"));
        assert!(decode(&zfpy, &encoded[..24], &[2, 3], 24).unwrap_err().contains("cut off"));
        assert!(decode(&zfpy, &encoded[1..], &[2, 3], 24).is_err());
    }
    let double = build(&json!([{"name": "numcodecs.zfpy"}]), &DataType::Float64).unwrap();
    assert!(decode(&double, &hex(rate), &[2, 3], 48).unwrap_err().contains("another data type"));
    // The same without a header: the first 13 bytes of mode, type and dimensions are 12 + 52 + 32 bits.
    let modes = json!([{"name": "zfp", "configuration": {"mode": "fixed_rate", "rate": 8}}]);
    let headless = build(&modes, &DataType::Float32).unwrap();
    assert_eq!(
        decode(&headless, &hex(rate)[12..], &[2, 3], 24).unwrap(),
        decode(&zfpy, &hex(rate), &[2, 3], 24).unwrap()
    );
    for mode in [
        json!({}),
        json!({"mode": "fixed_rate", "rate": 1e300}),
        json!({"mode": "expert", "minbits": 5, "maxbits": 4, "maxprec": 3, "minexp": 0}),
    ] {
        let built = build(&json!([{"name": "zfp", "configuration": mode}]), &DataType::Float32);
        assert!(built.and_then(|codecs| decode(&codecs, &[0; 64], &[2, 3], 24)).is_err());
    }
    assert!(build(&json!([{"name": "numcodecs.zfpy"}]), &DataType::UInt8).is_err());
    // zfpy.compress_numpy(np.arange(5, dtype="i8") * 1000, write_header=True), numcodecs.PCodec().encode(np.arange(5,
    // dtype="i4") * 7); in format 2 the array → bytes codec `bytes` stands before these compressors.
    let integers = build(&json!([bytes("little"), {"name": "numcodecs.zfpy"}]), &DataType::Int64).unwrap();
    let encoded = hex("7a66700541000000000000883c000000000000280090a4030000000000600015");
    assert_eq!(
        decode(&integers, &encoded, &[5], 40).unwrap(),
        native(&[0, 1000, 2000, 3000, 4000_i64], i64::to_ne_bytes)
    );
    let encoded = hex("70636f2103004201040103040000001000000000002c00e0b8ca0100");
    for list in [json!([{"name": "numcodecs.pcodec"}]), json!([bytes("little"), {"name": "numcodecs.pcodec"}])] {
        let pcodec = build(&list, &DataType::Int32).unwrap();
        assert_eq!(decode(&pcodec, &encoded, &[5], 20).unwrap(), native(&[0, 7, 14, 21, 28_i32], i32::to_ne_bytes));
        assert!(decode(&pcodec, &encoded, &[4], 16).unwrap_err().contains("more than 4 numbers"));
        assert!(decode(&pcodec, &encoded, &[6], 24).unwrap_err().contains("5 numbers where 6"));
        assert!(decode(&pcodec, &encoded[..20], &[5], 20).is_err());
    }
    assert!(build(&json!([{"name": "numcodecs.pcodec"}]), &DataType::Bool).is_err());
}

#[test]
fn aliases() {
    let zstd = hex("28b52ffd20176500003068656c6c6f200100994b11");
    for name in ["zstd", "numcodecs.zstd"] {
        let codecs = build(&json!([{"name": "bytes"}, {"name": name}]), &DataType::Raw(23)).unwrap();
        assert_eq!(decode(&codecs, &zstd, &[1], 23).unwrap(), HELLO);
    }
    assert!(build(&json!([{"name": "https://codec.zarrs.dev/array_to_bytes/pcodec"}]), &DataType::Int32).is_ok());
    assert!(build(&json!([{"name": "zarrs.vlen_v2"}]), &DataType::String).is_ok());
    assert!(build(&json!([{"name": "pcodec"}]), &DataType::Int32).unwrap_err().contains("not supported"));
}

#[test]
fn codecs_of_zarrs() {
    let list = json!([{"name": "reshape", "configuration": {"shape": [[0, 1]]}}, {"name": "packbits", "configuration": {"padding_encoding": "none"}}]);
    let codecs = build(&list, &DataType::Bool).unwrap();
    assert_eq!(decode(&codecs, &[0b0010_0101], &[2, 3], 6).unwrap(), [1, 0, 1, 0, 0, 1]);
    assert!(decode(&codecs, &[0, 0], &[2, 3], 6).is_err());
}

#[test]
fn panics_are_errors() {
    let mut scratch = Scratch::default();
    let result = guard(
        &mut scratch,
        |scratch| if scratch.take(1).is_ok() { panic!("as a codec library might") } else { Ok(()) },
    );
    assert_eq!(result, Err("a codec failed on bad input".to_owned()));
}
