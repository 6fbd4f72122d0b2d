//! Where a table or an index is: a file, or an object in a bucket.
//!
//! ```text
//!  t.parquet, /data/t.parquet, file:///data/t.parquet          File
//!  s3://bucket/folder/t.parquet                                 Object: root s3://bucket, key folder/t.parquet
//! ```
//!
//! A location is shown in messages and stored in indexes, so it holds no secrets: what a URL has of a password or a query is
//! dropped when it is parsed, and such a URL is refused when it is used.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::secrets;

/// A file, or an object in a bucket. See [`From`]: whatever begins like `s3://` is a URL, and anything else is a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location(Place);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Place {
    File(PathBuf),
    /// Shared, so that errors that name it are small.
    Object(Arc<ObjectUrl>),
}

/// The URL of an object, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectUrl {
    pub(crate) scheme: String,
    /// The bucket or container, or a host.
    pub(crate) authority: String,
    /// Without the first slash.
    pub(crate) key: String,
    /// Why it cannot be used.
    pub(crate) refused: Option<&'static str>,
}

/// What a build without the feature `object_store` says.
#[cfg(not(feature = "object_store"))]
pub(crate) const NO_STORES: &str =
    "objects in buckets are not supported by this build (feature object_store)";

const SCHEMES: [&str; 10] =
    ["s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https"];

impl ObjectUrl {
    fn parse(scheme: &str, rest: &str) -> Self {
        let mut refused = None;
        let scheme = scheme.to_ascii_lowercase();
        if !SCHEMES.contains(&scheme.as_str()) {
            refused = Some("there are stores for s3, gs, az, http and https, and file for files");
        }
        let is_web = scheme.starts_with("http");
        let query = match secrets::query_of(rest) {
            None if is_web => rest.find('?').map(|at| at + 1),
            found => found,
        };
        let rest = match query {
            Some(at) => {
                refused = Some(
                    "a URL with a query (as signed ones have) is not supported: credentials come from the environment",
                );
                &rest[..at - 1]
            }
            None => rest,
        };
        let rest = match secrets::credentials_of(rest, &scheme) {
            Some(length) => {
                refused = Some("a URL with a password is not used: put it into the environment");
                rest[length..].strip_prefix('@').unwrap_or(&rest[length..])
            }
            None => rest,
        };
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        let authority = authority.to_owned();
        if authority.is_empty() {
            refused = refused.or(Some("the name of a bucket or host is missing"));
        }
        Self { scheme, authority, key: key.to_owned(), refused }
    }

    /// Another object of the bucket.
    fn with_key(&self, key: &str) -> Arc<Self> {
        Arc::new(Self { key: key.to_owned(), ..self.clone() })
    }

    /// The bucket as a URL.
    #[cfg(any(feature = "object_store", test))]
    pub(crate) fn root(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/{}", self.scheme, self.authority, self.key)
    }
}

impl Location {
    fn new(text: &OsStr) -> Self {
        let url = text.to_str().and_then(|text| text.split_once("://"));
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        };
        Self(match url.filter(|(scheme, _)| is_scheme(scheme)) {
            Some((scheme, path)) if scheme.eq_ignore_ascii_case("file") => {
                Place::File(file_of_url(path))
            }
            Some((scheme, rest)) => Place::Object(ObjectUrl::parse(scheme, rest).into()),
            None => Place::File(text.into()),
        })
    }

    /// The path, if it is a file.
    pub fn as_file(&self) -> Option<&Path> {
        match &self.0 {
            Place::File(path) => Some(path),
            Place::Object(_) => None,
        }
    }

    pub(crate) fn as_object(&self) -> Option<&ObjectUrl> {
        match &self.0 {
            Place::File(_) => None,
            Place::Object(url) => Some(url),
        }
    }

    /// Whether it is an object in a bucket, not a file.
    pub fn is_object(&self) -> bool {
        self.as_object().is_some()
    }

    /// For messages.
    pub fn display(&self) -> impl fmt::Display + '_ {
        self
    }

    /// What comes after the last slash.
    pub fn name(&self) -> Cow<'_, str> {
        match &self.0 {
            Place::File(path) => path.file_name().unwrap_or_default().to_string_lossy(),
            Place::Object(url) => url.key.rsplit('/').next().unwrap_or_default().into(),
        }
    }

    /// What is before the last slash: a folder, or a prefix of keys.
    pub fn folder(&self) -> Self {
        Self(match &self.0 {
            Place::File(path) => Place::File(match path.parent() {
                Some(folder) if folder != Path::new("") => folder.into(),
                _ => ".".into(),
            }),
            Place::Object(url) => {
                let key = url.key.rsplit_once('/').map_or("", |(folder, _)| folder);
                Place::Object(url.with_key(key))
            }
        })
    }

    /// A name in this folder; or where the name leads by itself, if it is a URL or an absolute path.
    pub fn join(&self, name: &str) -> Self {
        match (&self.0, Self::from(name).0) {
            (_, Place::Object(url)) => Self(Place::Object(url)),
            (Place::File(folder), Place::File(name)) => Self(Place::File(folder.join(name))),
            (Place::Object(_), Place::File(name)) if name.is_absolute() => Self(Place::File(name)),
            (Place::Object(folder), Place::File(_)) => {
                let key = match folder.key.as_str() {
                    "" => name.to_owned(),
                    folder => format!("{}/{name}", folder.trim_end_matches('/')),
                };
                Self(Place::Object(folder.with_key(&key)))
            }
        }
    }

    /// An object in the same bucket.
    #[cfg(feature = "object_store")]
    pub(crate) fn with_key(&self, key: &str) -> Self {
        match &self.0 {
            Place::Object(url) => Self(Place::Object(url.with_key(key))),
            Place::File(_) => self.clone(),
        }
    }

    /// The name of an object relative to a prefix of its bucket; `None` if it is not there.
    pub(crate) fn within(&self, folder: &Self) -> Option<&str> {
        let (url, folder) = (self.as_object()?, folder.as_object()?);
        if (&url.scheme, &url.authority) != (&folder.scheme, &folder.authority) {
            return None;
        }
        let name = match folder.key.trim_end_matches('/') {
            "" => &url.key,
            prefix => url.key.strip_prefix(prefix)?.strip_prefix('/')?,
        };
        // A name that reads as a path or URL of its own would lead elsewhere.
        (!name.is_empty() && !name.starts_with('/') && !name.contains("://")).then_some(name)
    }
}

/// The path of `file:///data/t.parquet`; percent signs stand for bytes there.
fn file_of_url(rest: &str) -> PathBuf {
    let path = rest.strip_prefix("localhost/").map_or(rest.to_owned(), |path| format!("/{path}"));
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((&byte, rest)) = left.split_first() {
        let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        match rest.get(..2).filter(|_| byte == b'%').and_then(hex) {
            Some(decoded) => {
                bytes.push(decoded);
                left = &rest[2..];
            }
            None => {
                bytes.push(byte);
                left = rest;
            }
        }
    }
    match String::from_utf8(bytes) {
        // /C:/data is what Windows calls C:/data.
        Ok(path) if cfg!(windows) => path.trim_start_matches('/').into(),
        Ok(path) => path.into(),
        Err(_) => path.into(),
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::File(path) => path.display().fmt(f),
            Place::Object(url) => url.fmt(f),
        }
    }
}

impl From<OsString> for Location {
    fn from(text: OsString) -> Self {
        Self::new(&text)
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self::new(path.as_os_str())
    }
}

impl From<&PathBuf> for Location {
    fn from(path: &PathBuf) -> Self {
        Self::new(path.as_os_str())
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Self::new(path.as_os_str())
    }
}

impl From<&str> for Location {
    fn from(text: &str) -> Self {
        Self::new(text.as_ref())
    }
}

impl From<String> for Location {
    fn from(text: String) -> Self {
        Self::new(text.as_ref())
    }
}

impl From<&String> for Location {
    fn from(text: &String) -> Self {
        Self::new(text.as_ref())
    }
}

impl From<&Location> for Location {
    fn from(location: &Location) -> Self {
        location.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_urls_are_told_apart() {
        for path in ["t.parquet", "/data/t.parquet", "./s3:/x", "a:b", "1x://y"] {
            assert_eq!(Location::from(path).as_file(), Some(Path::new(path)), "{path}");
        }
        let file = Location::from("file:///data/a%20b%zz.csv");
        assert_eq!(file.as_file(), Some(Path::new("/data/a b%zz.csv")));
        let object = Location::from("S3://bucket/a/b c?.parquet");
        let url = object.as_object().unwrap();
        assert_eq!((url.root().as_str(), url.key.as_str()), ("s3://bucket", "a/b c?.parquet"));
        assert_eq!(url.refused, None);
        assert_eq!(
            (object.name(), object.folder().to_string().as_str()),
            ("b c?.parquet".into(), "s3://bucket/a")
        );
    }

    #[test]
    fn secrets_in_a_url_are_dropped_and_the_url_is_refused() {
        for url in [
            "s3://KEY:hunter2@bucket/t.parquet",
            "https://me:hunter2@host/t.parquet",
            "https://host/t.parquet?X-Amz-Signature=hunter2",
            "abfss://c:hunter2@account/t.parquet",
            "s3://bucket/t.parquet?X-Amz-Credential=KEY&X-Amz-Signature=hunter2",
            "gs://bucket/t.parquet?X-Goog-Signature=hunter2",
            "az://container/t.parquet?sv=2024&sig=hunter2",
            "abfss://container@account.dfs.core.windows.net/t.parquet?sig=hunter2",
            "az://container?sig=hunter2",
            "s3://KEY:hun/ter2@bucket/hunter",
            "s3://KEY:hunter2/t.parquet",
            "hdfs://host/t.parquet?delegation=hunter2",
        ] {
            let location = Location::from(url);
            let shown = format!("{location} {location:?}");
            assert!(!shown.contains("hunter2") && !shown.contains("KEY"), "{shown}");
            assert!(location.as_object().unwrap().refused.is_some(), "{url}");
        }
        let azure = Location::from("abfss://container@account.dfs.core.windows.net/t.parquet");
        assert_eq!(azure.as_object().unwrap().refused, None);
        assert!(Location::from("hdfs://host/x").as_object().unwrap().refused.is_some());
    }

    #[test]
    fn names_are_relative_to_the_folder_in_one_bucket_alone() {
        let folder = Location::from("s3://b/data/t.ibx").folder();
        let name = |url: &str| Location::from(url).within(&folder).map(str::to_owned);
        assert_eq!(name("s3://b/data/x/t.parquet").as_deref(), Some("x/t.parquet"));
        assert_eq!(name("s3://b/database/t.parquet"), None);
        assert_eq!(name("s3://c/data/t.parquet"), None);
        assert_eq!(name("gs://b/data/t.parquet"), None);
        assert_eq!(folder.join("x/t.parquet"), Location::from("s3://b/data/x/t.parquet"));
        assert_eq!(folder.join("gs://c/y"), Location::from("gs://c/y"));
        let top = Location::from("s3://b/t.ibx").folder();
        assert_eq!(top.join("x"), Location::from("s3://b/x"));
        assert_eq!(Location::from("s3://b/x").within(&top), Some("x"));
        assert_eq!(Location::from("data").join("x"), Location::from("data/x"));
    }
}
