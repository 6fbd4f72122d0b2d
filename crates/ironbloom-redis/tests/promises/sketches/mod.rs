//! Promise: RedisBloom's other types are RedisBloom's to the byte, and are values like all others.
//!
//! ```text
//! transcript   every reply, in both protocols        golden   data that RedisBloom wrote: made again, loaded, dumped
//! values       copied, saved, replicated, rewritten, measured, freed
//! hostile      forged dumps do no harm
//! ```

mod golden;
mod hostile;
mod transcript;
mod values;

use serde_json::Value;

/// The families of commands, and their types in `tests/golden`.
const FAMILIES: [&str; 3] = ["CMS", "TOPK", "TDIGEST"];

/// Whether a command belongs to one of the families.
fn is_of_sketches(command: &str) -> bool {
    FAMILIES.iter().any(|family| command.strip_prefix(family).is_some_and(|c| c.starts_with('.')))
}

/// The golden keys of these families, in the order they were made.
fn golden_keys() -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(crate::common::golden_path("sketches-8.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let mut keys: Vec<(String, Value)> = all["keys"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, key)| FAMILIES.iter().any(|f| f.to_lowercase() == key["type"]))
        .map(|(name, key)| (name.clone(), key.clone()))
        .collect();
    // Objects of JSON have no order here; in the text they stand in the order they were made.
    keys.sort_by_key(|(name, _)| {
        let at = text.find(&format!("\"{name}\":"));
        at.expect("every key stands in the text")
    });
    assert!(!keys.is_empty());
    keys
}

fn texts(values: &Value) -> impl Iterator<Item = &str> {
    values.as_array().unwrap().iter().map(|value| value.as_str().unwrap())
}

/// A reply as the golden files have it, and what is left of the bytes. Maps are flat, and all numbers with a point are text.
fn parse(reply: &[u8]) -> (Value, &[u8]) {
    let end = reply.windows(2).position(|two| two == b"\r\n").unwrap();
    let (line, rest) = (std::str::from_utf8(&reply[1..end]).unwrap(), &reply[end + 2..]);
    match reply[0] {
        b'+' | b',' => (line.into(), rest),
        b'-' => (format!("(error) {line}").into(), rest),
        b':' => (line.parse::<i64>().unwrap().into(), rest),
        b'#' => (i64::from(line == "t").into(), rest),
        b'_' => (Value::Null, rest),
        b'$' if line == "-1" => (Value::Null, rest),
        b'$' => {
            let (bytes, rest) = rest.split_at(line.parse().unwrap());
            (String::from_utf8_lossy(bytes).into(), &rest[2..])
        }
        b'*' | b'%' => {
            let each = if reply[0] == b'%' { 2 } else { 1 };
            let mut left = rest;
            let mut items = Vec::new();
            for _ in 0..each * line.parse::<usize>().unwrap() {
                let (item, rest) = parse(left);
                items.push(item);
                left = rest;
            }
            (Value::Array(items), left)
        }
        other => panic!("no reply begins with {other}"),
    }
}

/// Equal, or texts of the same number: servers write doubles with different digits.
fn is_same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| is_same(one, two))
        }
        (Value::String(one), Value::String(two)) if one != two => {
            match (one.parse::<f64>(), two.parse::<f64>()) {
                (Ok(one), Ok(two)) => one == two || (one.is_nan() && two.is_nan()),
                _ => false,
            }
        }
        _ => one == two,
    }
}

/// The same for replies as they came; what frames them must be equal.
fn is_same_reply(one: &[u8], two: &[u8]) -> bool {
    let marks = |reply: &[u8]| -> Vec<u8> {
        reply
            .split(|&byte| byte == b'\n')
            .filter_map(|line| line.first().copied().filter(|byte| b"+-:*%$,#_".contains(byte)))
            .collect()
    };
    one == two || (marks(one) == marks(two) && is_same(&parse(one).0, &parse(two).0))
}
