//! Values as text that says everything, as tests/foreign/canonical.py writes them, too.

use ironbloom_index::Value;

pub(crate) fn canonical(value: &Value) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match value {
        Value::Null => "null".into(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => format!("i{number}"),
        Value::Float(number) if number.is_nan() => "nan".into(),
        Value::Float(number) => format!("f{:016x}", number.to_bits()),
        Value::Decimal { digits, scale } => format!("d{digits}/{scale}"),
        Value::Text(text) => format!("t{}", hex(text.as_bytes())),
        Value::Bytes(bytes) => format!("b{}", hex(bytes)),
        Value::Timestamp(nanoseconds) => format!("m{nanoseconds}"),
        Value::Date(days) => format!("y{days}"),
        other => panic!("{other:?}"),
    }
}
