//! Objects in a directory, in S3 and in compatible services, through the `object_store` crate.
//!
//! ```text
//!  <prefix>/kalice            the key "alice": letters, digits, - and _ as they are, other bytes as =2f
//!  <prefix>/d<…>/k<…>         a key of more than 200 letters is cut: file systems have limits
//!  <prefix>/generation        no key
//! ```
//!
//! Others can write to it at any time, so what `postgres/mod.rs` says applies here as well; notifications from the store
//! are one way to learn what others put. A store without "create if absent" (S3 has it) is queried before every put.
//!
//! **The `object_store` crate repeats requests whose answer was lost**, also one that was carried out. "Create" then finds
//! that the object exists, and cannot tell whether it was created by the first request. So an object is created with a
//! mark: a random number in its metadata. If the object that exists has the mark of this put, the key was not there. A
//! store without metadata (a directory) has none; there, an object with another value was there before, and about one with
//! the same value nothing is known.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
};

use super::seal::Seal;
use crate::backend::{AsyncBackend, Before, Visit};
use crate::generation::Generation;

/// Maximum length of one path component.
const PART: usize = 200;
/// Number of objects requested at once.
const AT_ONCE: usize = 16;

/// The metadata that holds the mark of a put.
const MARK: Attribute = Attribute::Metadata(Cow::Borrowed("ironbloom-put"));
/// S3 refuses requests that are signed more than 15 minutes ago, so none takes effect later than that.
const LANDS_WITHIN: Duration = Duration::from_secs(15 * 60);

/// What became of an attempt to create an object.
enum Created {
    New,
    /// There is one; the mark of the attempt.
    Not(Option<String>),
    /// The store cannot create only.
    Unsupported,
}

/// The objects below a prefix.
#[derive(Clone, Debug)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// Clones share the same handle.
    seal: Arc<Seal>,
    /// Whether the store has no metadata.
    plain: Arc<AtomicBool>,
}

impl Objects {
    /// The objects of a store under a prefix, which may be empty.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        Self {
            store,
            prefix: Path::from(prefix),
            seal: Arc::new(Seal::new()),
            plain: Arc::default(),
        }
    }

    fn place(&self, key: &[u8]) -> Path {
        let name = encoded(key);
        let mut parts: Vec<&[u8]> = name.as_bytes().chunks(PART).collect();
        let last = parts.pop().unwrap_or_default();
        let text = |letter: &str, part: &[u8]| letter.to_owned() + &String::from_utf8_lossy(part);
        let parts = parts.iter().map(|part| text("d", part)).chain([text("k", last)]);
        parts.fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// The key of an object, or `None` if it is not one of ours.
    fn key(&self, place: &Path) -> Option<Vec<u8>> {
        let mut name = String::new();
        let mut ended = false;
        for part in place.prefix_match(&self.prefix)? {
            let part: &str = part.as_ref();
            ended = part.starts_with('k');
            name += part.strip_prefix(['d', 'k'])?;
        }
        if ended { decoded(&name) } else { None }
    }

    async fn read(&self, place: &Path) -> Result<Option<Vec<u8>>, Error> {
        match self.store.get(place).await {
            Ok(object) => Ok(Some(object.bytes().await?.to_vec())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn exists(&self, place: &Path) -> Result<bool, Error> {
        match self.store.head(place).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates an object, unless there is one.
    async fn create(&self, place: &Path, payload: PutPayload) -> Result<Created, Error> {
        let create =
            |attributes| PutOptions { mode: PutMode::Create, attributes, ..PutOptions::default() };
        let mut mark = None;
        if !self.plain.load(Ordering::Relaxed) {
            let fresh = Generation::fresh().to_string();
            let attributes = Attributes::from_iter([(MARK, fresh.clone())]);
            match self.store.put_opts(place, payload.clone(), create(attributes)).await {
                Ok(_) => return Ok(Created::New),
                Err(Error::AlreadyExists { .. }) => mark = Some(fresh),
                Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                    self.plain.store(true, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        if mark.is_some() {
            return Ok(Created::Not(mark));
        }
        match self.store.put_opts(place, payload, create(Attributes::new())).await {
            Ok(_) => Ok(Created::New),
            Err(Error::AlreadyExists { .. }) => Ok(Created::Not(None)),
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                Ok(Created::Unsupported)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the object that could not be created was there before this put.
    async fn created_by(
        &self,
        place: &Path,
        mark: Option<&str>,
        value: &[u8],
    ) -> Result<Before, Error> {
        let object = match self.store.get(place).await {
            Ok(object) => object,
            Err(Error::NotFound { .. }) => return Ok(Before::Unknown), // and gone again
            Err(error) => return Err(error),
        };
        let found = object.attributes.get(&MARK).map(|found| found.to_string());
        match mark {
            Some(mark) if found.as_deref() == Some(mark) => Ok(Before::Absent),
            Some(_) => Ok(Before::Present),
            None if object.bytes().await?[..] == *value => Ok(Before::Unknown),
            None => Ok(Before::Present),
        }
    }

    fn generation_place(&self) -> Path {
        self.prefix.clone().join("generation")
    }

    async fn keep(&self, generation: Generation) -> Result<(), Error> {
        let payload = PutPayload::from(generation.to_bytes().to_vec());
        self.store.put_opts(&self.generation_place(), payload, PutOptions::default()).await?;
        Ok(())
    }

    /// Before a write: writing without a guard makes the store forget its generation.
    async fn break_seal(&self) -> Result<(), Error> {
        if self.seal.is_whole() {
            match self.store.delete(&self.generation_place()).await {
                Ok(()) | Err(Error::NotFound { .. }) => self.seal.set(false),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Letters, digits, `-` and `_` as they are, other bytes as two digits after `=`: `%` is used by the `object_store`
/// crate itself.
fn encoded(key: &[u8]) -> String {
    let mut text = String::with_capacity(key.len());
    for &byte in key {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            text.push(byte.into());
        } else {
            text += &format!("={byte:02x}");
        }
    }
    text
}

/// The inverse. `None` if it is not the output of [`encoded`].
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'=' {
            let (digits, after) = rest.split_at_checked(2)?;
            key.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            key.push(byte);
        }
    }
    (encoded(&key) == text).then_some(key)
}

impl AsyncBackend for Objects {
    type Error = Error;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.read(&self.place(key)).await
    }

    async fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let places: Vec<Path> = keys.iter().map(|key| self.place(key)).collect();
        let reads = places.into_iter().map(|place| async move { self.read(&place).await });
        stream::iter(reads).buffered(AT_ONCE).try_collect().await
    }

    async fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        self.exists(&self.place(key)).await
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Error> {
        self.break_seal().await?;
        let place = self.place(key);
        let payload = PutPayload::from(value.to_vec());
        let before = match self.create(&place, payload.clone()).await? {
            Created::New => return Ok(Before::Absent),
            Created::Not(mark) => self.created_by(&place, mark.as_deref(), value).await?,
            Created::Unsupported => Before::stored(self.exists(&place).await?),
        };
        if before != Before::Absent {
            self.store.put_opts(&place, payload, PutOptions::default()).await?;
        }
        Ok(before)
    }

    async fn remove(&self, key: &[u8]) -> Result<Before, Error> {
        let place = self.place(key);
        // Most stores do not say whether there was something to delete.
        if !self.exists(&place).await? {
            return Ok(Before::Absent);
        }
        self.break_seal().await?;
        match self.store.delete(&place).await {
            Ok(()) => Ok(Before::Present),
            // It was there a moment ago: someone else has removed it, or this request has, and was repeated.
            Err(Error::NotFound { .. }) => Ok(Before::Unknown),
            Err(error) => Err(error),
        }
    }

    async fn scan(&self, visit: Visit<'_>) -> Result<(), Error> {
        let mut objects = self.store.list(Some(&self.prefix));
        while let Some(object) = objects.next().await {
            if let Some(key) = self.key(&object?.location)
                && visit(&key) == ControlFlow::Break(())
            {
                break;
            }
        }
        Ok(())
    }

    async fn generation(&self) -> Result<Option<Generation>, Error> {
        let kept = self.read(&self.generation_place()).await?;
        Ok(kept.and_then(|kept| Generation::from_bytes(&kept)))
    }

    async fn set_generation(&self, generation: Generation) -> Result<(), Error> {
        self.keep(generation).await?;
        self.seal.set(false);
        Ok(())
    }

    async fn seal(&self, generation: Generation) -> Result<(), Error> {
        self.seal.set(true);
        self.keep(generation).await
    }

    fn lands_within(&self) -> Option<Duration> {
        Some(LANDS_WITHIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_place_of_its_own_and_comes_back() {
        let objects = Objects::new(Arc::new(object_store::memory::InMemory::new()), "some/where");
        let long = [b'x'; 999];
        let mut keys: Vec<&[u8]> = vec![b"", b"alice", b"a/b", b"..", b".", b"%41", b"=41", b"\0"];
        keys.extend([&b"\xff\xfe"[..], b"A", b"a", &long, &long[..200], &long[..201]]);
        let mut places: Vec<Path> = keys.iter().map(|key| objects.place(key)).collect();
        for (place, key) in places.iter().zip(&keys) {
            assert_eq!(objects.key(place).as_deref(), Some(*key), "{place}");
            assert!(place.parts().all(|part| part.as_ref().len() <= PART + 1), "{place}");
        }
        places.sort();
        places.dedup();
        assert_eq!(places.len(), keys.len());
        assert_eq!(objects.key(&objects.generation_place()), None);
        for foreign in
            ["some/where/k=4", "some/where/k=ZZ", "some/where/k=41", "other/kx", "some/where/dxx"]
        {
            assert_eq!(objects.key(&Path::from(foreign)), None, "{foreign}");
        }
    }
}
