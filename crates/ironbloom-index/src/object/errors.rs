//! What a store answers, as an error of the system, in few words and without secrets.

use std::io::{self, ErrorKind};

use object_store::Error;

use crate::file_bytes::REPLACED;
use crate::secrets::without_secrets;

/// An error of a store. Objects that are missing, and those that are not the ones that were opened, have kinds of their own.
pub(super) fn failed(error: &Error) -> io::Error {
    let (kind, text) = match error {
        Error::NotFound { .. } => (ErrorKind::NotFound, "there is no such object".to_owned()),
        Error::Precondition { .. } => (ErrorKind::StaleNetworkFileHandle, REPLACED.to_owned()),
        Error::AlreadyExists { .. } => {
            (ErrorKind::AlreadyExists, "there is such an object already".to_owned())
        }
        Error::PermissionDenied { .. } => {
            (ErrorKind::PermissionDenied, format!("access is denied: {}", told(error)))
        }
        Error::Unauthenticated { .. } => {
            (ErrorKind::PermissionDenied, format!("the credentials are not valid: {}", told(error)))
        }
        Error::NotImplemented { .. } | Error::NotSupported { .. } => {
            (ErrorKind::Unsupported, told(error))
        }
        _ => (ErrorKind::Other, told(error)),
    };
    io::Error::new(kind, text)
}

/// The message of a store. If there is a document of XML in it, only its code and its message: the rest repeats the request,
/// with the name of a key and with signatures.
fn told(error: &Error) -> String {
    let text = error.to_string();
    let field = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once("</")?.0.trim().to_owned())
    };
    let text = match (field("Code"), field("Message")) {
        (Some(code), Some(message)) => {
            let head = text.split_once('<').map_or("", |(head, _)| head);
            format!("{} {code}: {message}", head.trim_end())
        }
        _ => text.clone(),
    };
    redacted(&text, &secrets())
}

/// The text without these secrets, and without passwords and queries of URLs, which may hold others.
fn redacted(text: &str, secrets: &[String]) -> String {
    let mut clean = text.to_owned();
    for secret in secrets {
        clean = clean.replace(secret.as_str(), "…");
    }
    without_secrets(&clean).into_owned()
}

/// Values of the environment that must not be shown.
fn secrets() -> Vec<String> {
    const WORDS: [&str; 7] = ["KEY", "SECRET", "TOKEN", "PASSWORD", "SAS", "CREDENTIAL", "ACCOUNT"];
    const SHORTEST: usize = 5; // shorter ones are "true" or the like
    let is_secret = |name: &str| {
        ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|store| name.starts_with(store))
            && WORDS.iter().any(|word| name.contains(word))
    };
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| is_secret(name) && value.len() >= SHORTEST)
        .map(|(_, value)| value)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_shown_as_its_code_and_message() {
        let body = "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?><Error>\
                    <Code>SignatureDoesNotMatch</Code><Message>It does not match.</Message>\
                    <AWSAccessKeyId>AKIAX</AWSAccessKeyId><StringToSign>hunter2</StringToSign></Error>";
        let error = Error::PermissionDenied { path: "t.ibx".to_owned(), source: body.into() };
        let shown = failed(&error).to_string();
        assert!(shown.contains("403 Forbidden"), "{shown}");
        assert!(shown.ends_with("SignatureDoesNotMatch: It does not match."), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("AKIAX"), "{shown}");
    }

    #[test]
    fn secrets_and_queries_are_cut_out() {
        let text = "GET https://h/c/t.ibx?sig=abcdef&sv=1 in 3s with hunter2 - failed";
        let shown = redacted(text, &["hunter2".to_owned()]);
        assert_eq!(shown, "GET https://h/c/t.ibx?… in 3s with … - failed");
    }
}
