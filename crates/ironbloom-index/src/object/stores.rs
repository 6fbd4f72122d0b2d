//! The store of a bucket, with the credentials that its users have set up.
//!
//! | | from the environment | otherwise |
//! |---|---|---|
//! | S3 | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`, `AWS_SKIP_SIGNATURE`, … | the profile (`profile.rs`), containers, web identities, the instance |
//! | Google | `GOOGLE_SERVICE_ACCOUNT`, `GOOGLE_APPLICATION_CREDENTIALS`, … | `gcloud`'s own file, the instance |
//! | Azure | `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`, `AZURE_STORAGE_SAS_TOKEN`, … | the instance |

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::Path as Key;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use super::connection::{Connections, Connector};
use super::errors::failed;
use super::profile::Profile;
use crate::location::{Location, ObjectUrl};

/// An object's store, and its key there.
pub(super) struct Bucket {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) key: Key,
    /// Whether the last bytes of an object can be requested without knowing its length.
    pub(super) has_suffixes: bool,
    /// Whether it is another server than those that the protocol is named after.
    pub(super) is_foreign: bool,
}

/// Where this object is.
pub(super) fn bucket_of(location: &Location) -> io::Result<Bucket> {
    let invalid = |what: &str| io::Error::new(ErrorKind::InvalidInput, what.to_owned());
    let url = location.as_object().ok_or_else(|| invalid("not a URL"))?;
    if let Some(why) = url.refused {
        return Err(invalid(why));
    }
    let key = if url.scheme.starts_with("http") {
        Key::from_url_path(&url.key)
    } else {
        Key::parse(&url.key)
    };
    let key = key.map_err(|error| invalid(&error.to_string()))?;
    let has_suffixes = !url.scheme.starts_with('a');
    let Known { store, is_foreign } = store_of(url)?;
    Ok(Bucket { store, key, has_suffixes, is_foreign })
}

/// A store that was used before.
#[derive(Clone)]
struct Known {
    store: Arc<dyn ObjectStore>,
    is_foreign: bool,
}

/// Made once for each bucket: a store keeps its credentials until they expire.
fn store_of(url: &ObjectUrl) -> io::Result<Known> {
    static STORES: OnceLock<Mutex<HashMap<String, Known>>> = OnceLock::new();
    let stores = STORES.get_or_init(Mutex::default);
    let mut stores = stores.lock().unwrap_or_else(PoisonError::into_inner);
    let root = url.root();
    if let Some(store) = stores.get(&root) {
        return Ok(store.clone());
    }
    let known = new_store(url, &root)?;
    stores.insert(root, known.clone());
    Ok(known)
}

fn new_store(url: &ObjectUrl, root: &str) -> io::Result<Known> {
    let connector = connector()?;
    let mut is_foreign = false;
    let built: object_store::Result<Arc<dyn ObjectStore>> = match url.scheme.as_str() {
        "s3" | "s3a" => {
            let builder = with_profile(AmazonS3Builder::from_env(), &Profile::load()?);
            is_foreign = builder.get_config_value(&AmazonS3ConfigKey::Endpoint).is_some();
            let builder = builder.with_url(root).with_retry(retries());
            builder.with_http_connector(connector).build().map(|store| Arc::new(store) as _)
        }
        "gs" => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(root);
            let builder = builder.with_retry(retries()).with_http_connector(connector);
            builder.build().map(|store| Arc::new(store) as _)
        }
        "http" | "https" => {
            // Who writes http:// means it.
            let options = ClientOptions::new().with_allow_http(true);
            let builder = HttpBuilder::new().with_url(root).with_client_options(options);
            let builder = builder.with_retry(retries()).with_http_connector(connector);
            builder.build().map(|store| Arc::new(store) as _)
        }
        _ => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(root);
            let builder = builder.with_retry(retries()).with_http_connector(connector);
            builder.build().map(|store| Arc::new(store) as _)
        }
    };
    Ok(Known { store: built.map_err(|error| failed(&error))?, is_foreign })
}

/// The environment comes first, then the profile.
fn with_profile(mut builder: AmazonS3Builder, profile: &Profile) -> AmazonS3Builder {
    use AmazonS3ConfigKey as Name;
    // An access key and its secret belong together.
    let has_keys = builder.get_config_value(&Name::AccessKeyId).is_some();
    let keys = [
        (Name::AccessKeyId, &profile.access_key_id),
        (Name::SecretAccessKey, &profile.secret_access_key),
        (Name::Token, &profile.session_token),
    ];
    let places = [(Name::Region, &profile.region), (Name::Endpoint, &profile.endpoint_url)];
    for (name, value) in keys.into_iter().filter(|_| !has_keys).chain(places) {
        if let (None, Some(value)) = (builder.get_config_value(&name), value) {
            builder = builder.with_config(name, value);
        }
    }
    builder
}

/// All stores share their connections.
fn connector() -> io::Result<Connector> {
    static CONNECTIONS: Mutex<Option<Arc<Connections>>> = Mutex::new(None);
    let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if connections.is_none() {
        *connections = Some(Arc::new(Connections::new()?));
    }
    Ok(Connector(connections.clone().expect("set above")))
}

/// How long a request is repeated that a server temporarily refuses or does not answer.
fn retries() -> RetryConfig {
    const SECONDS: u64 = 30;
    let seconds = std::env::var("IRONBLOOM_RETRY_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.trim().parse().ok()).unwrap_or(SECONDS);
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(5),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: 10, retry_timeout: Duration::from_secs(seconds) }
}
