//! Block headers as JSON lines: what `eth_getBlockByNumber` returns, with or without the envelope of JSON-RPC.

use anyhow::{Result, anyhow};
use ironbloom::ethereum::LogsBloom;
use serde_json::Value;

/// The number and the logs bloom of a header.
pub(super) fn parse(line: &[u8]) -> Result<(u64, LogsBloom)> {
    let value: Value = serde_json::from_slice(line)?;
    let header = value.get("result").unwrap_or(&value);
    let number = header.get("number").and_then(number);
    let number = number.ok_or_else(|| anyhow!("no block number (\"number\")"))?;
    let bloom = header.get("logsBloom").and_then(Value::as_str);
    let bloom = bloom.ok_or_else(|| anyhow!("no logs bloom (\"logsBloom\")"))?;
    let bloom = LogsBloom::parse(bloom.as_bytes()).filter(|_| bloom.len() >= 512);
    Ok((number, bloom.ok_or_else(|| anyhow!("the logs bloom is not 512 hexadecimal digits"))?))
}

/// A number, or its hexadecimal digits after 0x.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => u64::from_str_radix(text.strip_prefix("0x")?, 16).ok(),
        other => other.as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_with_and_without_an_envelope() {
        let bloom = format!("0x{}01", "0".repeat(510));
        let plain = format!("{{\"number\":\"0x1b4\",\"logsBloom\":\"{bloom}\",\"hash\":\"0x12\"}}");
        let wrapped = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{plain}}}");
        let decimal = plain.replace("\"0x1b4\"", "436");
        for line in [plain, wrapped, decimal] {
            let (number, bloom) = parse(line.as_bytes()).unwrap();
            assert_eq!((number, bloom.bytes()[255], bloom.bytes()[0]), (436, 1, 0));
        }
    }

    #[test]
    fn what_is_missing_or_cut_short_is_an_error() {
        let short = format!("{{\"number\":1,\"logsBloom\":\"0x{}\"}}", "0".repeat(510));
        // Without 0x, 256 digits look like 256 bytes.
        let half = format!("{{\"number\":1,\"logsBloom\":\"{}\"}}", "0".repeat(256));
        let none = "{\"number\":1}".to_owned();
        let unnumbered = format!("{{\"logsBloom\":\"0x{}\"}}", "0".repeat(512));
        for line in [short, half, none, unnumbered, "{".to_owned(), String::new()] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
    }
}
