//! Secrets in the names of things: passwords and queries of URLs, as signed ones have.
//!
//! ```text
//!  https://me:hunter2@host/t.parquet?sig=abc        https://…@host/t.parquet?…
//! ```

use std::borrow::Cow;
use std::ops::Range;

/// Parameters that are secrets, or stand beside them, wherever they are found.
const PARAMETERS: [&str; 12] = [
    "access_token",
    "awsaccesskeyid",
    "googleaccessid",
    "password",
    "secret",
    "sig",
    "signature",
    "token",
    "x-amz-credential",
    "x-amz-security-token",
    "x-amz-signature",
    "x-goog-signature",
];

/// Names and passwords, and what looks like one, as our own advice has them, in full: a part of one may be a part of a real
/// password.
const EXAMPLES: [&str; 6] =
    ["", "user:password", ":password", "[user:password", "host:port", "host[:port]"];

/// The text of a message with passwords and queries of URLs left out.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut copied = 0;
    for word in words(text) {
        for secret in secrets_in(&text[word.clone()]) {
            clean.push_str(&text[copied..word.start + secret.start]);
            clean.push('…');
            copied = word.start + secret.end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(&text[copied..]);
    Cow::Owned(clean)
}

/// Where words are: what stands between spaces and quotes.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let is_end = |c: char| c.is_whitespace() || "\"'`<>".contains(c);
    let mut start = 0;
    text.split(is_end).map(move |word| {
        let range = start..start + word.len();
        // Every end is one character, of one byte or more.
        let end = text[range.end..].chars().next();
        start = range.end + end.map_or(0, char::len_utf8);
        range
    })
}

/// Where secrets are in a word, in order.
fn secrets_in(word: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let url = word.find(":/").map(|at| at + 1);
    let rest = url.map_or(0, |at| at + word[at..].len() - word[at..].trim_start_matches('/').len());
    if let (Some(scheme_end), Some(length)) = (url, user_of(&word[rest..])) {
        // Azure writes container@account, which hides nothing.
        let user = &word[rest..rest + length];
        let is_container = !user.contains(':') && is_azure(&word[..scheme_end - 1]);
        if !is_container && !EXAMPLES.contains(&user) {
            found.push(rest..rest + length);
        }
    }
    let is_web = word.starts_with("http");
    let query = query_of(word).or_else(|| word.find('?').filter(|_| is_web).map(|at| at + 1));
    if let Some(query) = query.filter(|query| *query < word.len()) {
        let text = &word[query..];
        if (url.is_some() || has_secret(text)) && !is_example(text) {
            found.push(query..word.len());
        }
    }
    found
}

/// True for a query without values, as advice has it: `sentinel_user=…&sentinel_password=…]`.
fn is_example(query: &str) -> bool {
    let mut pairs = query.trim_end_matches([']', '.', ',']).split('&');
    pairs.all(|pair| pair.ends_with("=…") && pair.matches('…').count() == 1)
}

/// The length of the name and password before a host.
fn user_of(rest: &str) -> Option<usize> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    if let Some(at) = rest[..end].rfind('@') {
        return Some(at);
    }
    // A password may have a slash in it; what follows a host is the number of a port.
    let (_, port) = rest[..end].rsplit_once(':')?;
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port || rest.starts_with('[') { None } else { Some(rest.find('@').unwrap_or(end)) }
}

/// Where the query of a URL begins, after its question mark. In a bucket, `?` is a character of names and patterns as well: a
/// query is what begins with `name=`.
pub(crate) fn query_of(url: &str) -> Option<usize> {
    let starts = url.match_indices('?').map(|(at, _)| at + 1);
    starts.into_iter().find(|&at| {
        let name = url[at..].split('=').next().unwrap_or_default();
        let is_named =
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.%".contains(&byte));
        is_named && !name.is_empty() && url[at..].len() > name.len()
    })
}

fn has_secret(query: &str) -> bool {
    let names = query.split('&').filter_map(|pair| pair.split('=').next());
    names.into_iter().any(|name| PARAMETERS.contains(&name.to_ascii_lowercase().as_str()))
}

/// True if a URL of this scheme names a container before its account.
pub(crate) fn is_azure(scheme: &str) -> bool {
    scheme.to_ascii_lowercase().starts_with('a')
}

/// The length of the name and password at the beginning of what follows `://`.
pub(crate) fn credentials_of(rest: &str, scheme: &str) -> Option<usize> {
    let length = user_of(rest)?;
    let is_container = is_azure(scheme) && !rest[..length].contains(':');
    (!is_container).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_queries_of_urls_are_left_out_of_messages() {
        for (text, wanted) in [
            ("s3://bucket/k?X-Amz-Signature=hunter2: gone", "s3://bucket/k?… gone"),
            ("`az://c/k?sv=1&sig=hunter2` and `b`", "`az://c/k?…` and `b`"),
            ("a s3:/bucket/k?versionId=hunter2", "a s3:/bucket/k?…"),
            ("bucket/k?X-Amz-Signature=hunter2", "bucket/k?…"),
            ("redis://me:hunter2@host:6379/0 is down", "redis://…@host:6379/0 is down"),
            ("redis://me:[hunter2…@host:6379/0", "redis://…@host:6379/0"),
            ("redis://:password@host or redis://host", "redis://:password@host or redis://host"),
            ("redis://[user:password@]host[:port]", "redis://[user:password@]host[:port]"),
            ("redis+sentinel://host:port/NAME, with", "redis+sentinel://host:port/NAME, with"),
            ("redis+sentinel://host[:port]/NAME", "redis+sentinel://host[:port]/NAME"),
            ("https://h/k?a=…&sig=hunter2", "https://h/k?…"),
            ("s://h/N[?sentinel_password=…]", "s://h/N[?sentinel_password=…]"),
            ("s3://KEY:hun/ter2@bucket/k", "s3://…@bucket/k"),
            ("s3://KEY:hunter2/k", "s3://…/k"),
            ("https://hunter2@host/k", "https://…@host/k"),
            ("https://host/k?hunter2", "https://host/k?…"),
            ("x='https://h/a?b=hunter2' y", "x='https://h/a?…' y"),
        ] {
            assert_eq!(without_secrets(text), wanted);
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in [
            "",
            "abfss://container@account.dfs.core.windows.net/t.parquet: no such object",
            "https://host:8080/t.parquet: no",
            "http://[::1]:8080/t: no",
            "in `a ? x=1`: expected a column",
            "s3://bucket/part-?.parquet: nothing matches",
            "s3://bucket/year=202?/month=1/t.parquet",
            "a file a?b=c.csv, née",
            "write redis://[user:password@]host[:port][/database][?sentinel_password=…]",
        ] {
            assert_eq!(without_secrets(text), text);
        }
    }
}
