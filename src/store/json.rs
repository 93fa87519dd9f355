//! JSON as Zarr writers really write it.
//!
//! Python's encoder writes the bare tokens `NaN`, `Infinity` and `-Infinity`, which JSON does not have, into `.zattrs` and fill values.
//! They are read as the strings that Zarr spells these numbers with.

use serde_json::Value;

/// Parse JSON, with Python's three non-numbers as strings.
///
/// # Errors
/// What the parser says of text that is no JSON, is nested deeper than 128 levels, or is not UTF-8.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, String> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok(value),
        Err(first) => {
            let text = std::str::from_utf8(bytes).map_err(|e| e.to_string())?;
            serde_json::from_str(&quote_non_numbers(text)).map_err(|_| first.to_string())
        }
    }
}

fn quote_non_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(['"', 'N', 'I', '-']) {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let token = ["-Infinity", "Infinity", "NaN"].into_iter().find(|t| tail.starts_with(t));
        let length = if let Some(token) = token {
            out.push('"');
            out.push_str(token);
            out.push('"');
            token.len()
        } else {
            let length = if tail.starts_with('"') { string_length(tail) } else { 1 };
            out.push_str(tail.get(..length).unwrap_or(tail));
            length
        };
        rest = tail.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Bytes of the JSON string at the start of `text`, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (i, b) in text.bytes().enumerate().skip(1) {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return i + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde_json::json;

    #[test]
    fn bare_non_numbers_are_strings_outside_strings_only() {
        let v = parse(br#"{"a": NaN, "b": [-Infinity, Infinity, -1], "c": "NaN \" Infinity", "Name": "I"}"#).unwrap();
        assert_eq!(v, json!({"a": "NaN", "b": ["-Infinity", "Infinity", -1], "c": "NaN \" Infinity", "Name": "I"}));
    }

    #[test]
    fn bad_text_is_an_error() {
        for bad in [&b"{"[..], b"\xff", b"{\"a\": NaNN}", b"\"", b"{\"a\": -}", b""] {
            assert!(parse(bad).is_err());
        }
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }
}
