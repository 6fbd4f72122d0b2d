//! Replacing an object as what it was when it was read, and not otherwise.
//!
//! A store with conditional puts (`If-Match`, `If-None-Match: *`) refuses to replace an object that another writer has replaced
//! meanwhile. Some servers do not know these conditions and ignore them: where that is possible, a probe shows it before
//! anything is overwritten.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};

use super::errors::failed;
use super::runtime::wait_for;
use super::stores::{Bucket, bucket_of};
use crate::location::Location;

/// What an object is now.
#[derive(Debug)]
pub(crate) struct Current {
    /// Its first bytes.
    pub(crate) head: Vec<u8>,
    version: UpdateVersion,
}

/// The most that one request may upload.
const MOST_BYTES: u64 = 5 << 30;

/// What an object is now; `None` if there is none. Asks for this many bytes.
pub(crate) fn current(location: &Location, bytes: u64) -> io::Result<Option<Current>> {
    let Bucket { store, key, .. } = bucket_of(location)?;
    let asked = async move {
        let options =
            GetOptions { range: Some(GetRange::Bounded(0..bytes)), ..GetOptions::default() };
        let result = match store.get_opts(&key, options).await {
            // Of an empty object there is no range.
            Err(Error::Generic { .. }) => store.get_opts(&key, GetOptions::default()).await?,
            answer => answer?,
        };
        let meta = result.meta.clone();
        let version = UpdateVersion { e_tag: meta.e_tag, version: meta.version };
        let head = result.bytes().await?;
        Ok(Current { head: head[..head.len().min(bytes as usize)].to_vec(), version })
    };
    match wait_for(asked)? {
        Ok(current) => Ok(Some(current)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

/// Puts an object in the place of what was there: of [`Current`], or of nothing. [`ErrorKind::AlreadyExists`] or
/// [`ErrorKind::StaleNetworkFileHandle`] if there is something else by now.
pub(crate) fn replace(
    location: &Location,
    content: Vec<Bytes>,
    before: Option<&Current>,
) -> io::Result<()> {
    let bucket = bucket_of(location)?;
    let bytes: u64 = content.iter().map(|part| part.len() as u64).sum();
    let unsupported = |what: &str| io::Error::new(ErrorKind::Unsupported, what.to_owned());
    if location.as_object().is_some_and(|url| url.scheme.starts_with("http")) {
        return Err(unsupported("objects on servers of HTTP are only read"));
    }
    if bytes > MOST_BYTES {
        return Err(unsupported("an index of more than 5 GiB cannot be uploaded in one request"));
    }
    check_conditions(location, &bucket)?;
    let mode = match before {
        Some(Current { version, .. }) if version.e_tag.is_none() && version.version.is_none() => {
            return Err(unsupported(NO_CONDITIONS));
        }
        Some(current) => PutMode::Update(current.version.clone()),
        None => PutMode::Create,
    };
    let Bucket { store, key, .. } = bucket;
    let payload = content.into_iter().collect::<PutPayload>();
    let put = async move { store.put_opts(&key, payload, PutOptions::from(mode)).await };
    match wait_for(put)? {
        Ok(_) => Ok(()),
        Err(Error::NotImplemented { .. }) => Err(unsupported(NO_CONDITIONS)),
        Err(error) => Err(failed(&error)),
    }
}

const NO_CONDITIONS: &str = "this store has no conditional puts, so changes of other writers could be lost: \
                             nothing was written";

/// Makes sure that an object can be replaced, before work is done for it that would be in vain.
pub(crate) fn check_replaceable(location: &Location) -> io::Result<()> {
    check_conditions(location, &bucket_of(location)?)
}

/// Whether a server other than those of Amazon, Google and Microsoft knows conditions: tried once, on an object of its own.
fn check_conditions(location: &Location, bucket: &Bucket) -> io::Result<()> {
    static KNOWN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    if !bucket.is_foreign {
        return Ok(());
    }
    let root = location.as_object().map(|url| url.root()).unwrap_or_default();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if known.contains(&root) {
        return Ok(());
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let probe = format!("{}.probe-{}-{}", bucket.key, std::process::id(), now.as_nanos());
    let probe = Key::parse(probe).map_err(io::Error::other)?;
    let store = std::sync::Arc::clone(&bucket.store);
    let tried = async move {
        let tried = knows_conditions(&*store, &probe).await;
        // Whatever came of it: a put whose answer was lost may have been done.
        let mut removed = store.delete(&probe).await;
        for _ in 1..TRIES {
            if !matches!(removed, Err(Error::Generic { .. })) {
                break;
            }
            removed = store.delete(&probe).await;
        }
        match (tried, removed) {
            (Ok(_), Err(error)) if !matches!(error, Error::NotFound { .. }) => Err(error),
            (tried, _) => tried,
        }
    };
    match wait_for(tried)? {
        Ok(true) => {
            known.insert(root);
            Ok(())
        }
        Ok(false) | Err(Error::NotImplemented { .. }) => {
            Err(io::Error::new(ErrorKind::Unsupported, NO_CONDITIONS))
        }
        Err(error) => Err(failed(&error)),
    }
}

/// How often a request of a probe is made whose answer is lost. Such requests are not repeated by the store itself, because they
/// may have been done.
const TRIES: u32 = 3;

/// Finds out if the store refuses to create an object a second time. Nothing else writes this one.
async fn knows_conditions(store: &dyn ObjectStore, probe: &Key) -> Result<bool, Error> {
    let mut is_created = false;
    for number in 1.. {
        let create = PutOptions::from(PutMode::Create);
        match store.put_opts(probe, PutPayload::new(), create).await {
            // The first one, or the second one as well.
            Ok(_) if is_created => return Ok(false),
            Ok(_) => is_created = true,
            Err(Error::AlreadyExists { .. }) => return Ok(true),
            // It may have been done.
            Err(Error::Generic { .. }) if number <= TRIES => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("the last one returns")
}
