//! Guards for keys and values of a program's own types.

mod codec;

use std::borrow::Borrow;
use std::marker::PhantomData;

#[cfg(feature = "serde")]
pub use self::codec::Serde;
pub use self::codec::{Bytes, CodecError, Decode, Encode};
use crate::backend::{Backend, Before};
use crate::error::Error;
use crate::guard::Guard;
use crate::read_through::{LoadError, ReadThrough};
#[cfg(feature = "async")]
use crate::{AsyncBackend, AsyncGuard};

/// A [`Guard`], `AsyncGuard` or [`ReadThrough`] whose keys are of type `K` and whose values are of
/// type `V`. See [`Encode`] for how they are stored.
///
/// Keys may be given in any borrowed form of `K`, as in a `HashMap`, provided that it is encoded to the same bytes:
/// `&str` for `String`. A stored value that is none of type `V` is an [`Error::Codec`].
///
/// ```
/// use ironbloom_store::{Guard, GuardKind, Memory, Options, Typed};
///
/// let guard = Guard::open(Memory::new(), Options::new(GuardKind::Blocked, 1000, 0.01))?;
/// let ages: Typed<_, String, u32> = Typed::new(guard);
/// ages.put("alice", &30)?;
/// assert_eq!(ages.get("alice")?, Some(30));
/// assert_eq!(ages.get("bob")?, None);                 // the store was not asked
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Typed<G, K: ?Sized, V> {
    guard: G,
    types: PhantomData<fn(&K) -> V>,
}

impl<G, K: ?Sized, V> Typed<G, K, V> {
    /// Gives a guard types.
    pub fn new(guard: G) -> Self {
        Self { guard, types: PhantomData }
    }

    /// The guard, for everything else that it does.
    pub fn guard(&self) -> &G {
        &self.guard
    }

    /// The guard, for instance to close it.
    pub fn into_guard(self) -> G {
        self.guard
    }
}

fn encoded<T: Encode + ?Sized, E>(value: &T) -> Result<Bytes<'_>, Error<E>> {
    value.encode().map_err(Error::Codec)
}

fn encoded_all<'a, Q: Encode + ?Sized + 'a, E>(
    keys: impl IntoIterator<Item = &'a Q>,
) -> Result<Vec<Bytes<'a>>, Error<E>> {
    keys.into_iter().map(encoded).collect()
}

type Pairs<'a> = Vec<(Bytes<'a>, Bytes<'a>)>;

fn encoded_pairs<'a, Q: Encode + ?Sized + 'a, V: Encode + 'a, E>(
    pairs: impl IntoIterator<Item = (&'a Q, &'a V)>,
) -> Result<Pairs<'a>, Error<E>> {
    pairs.into_iter().map(|(key, value)| Ok((encoded(key)?, encoded(value)?))).collect()
}

fn decoded<V: Decode, E>(bytes: Option<Vec<u8>>) -> Result<Option<V>, Error<E>> {
    bytes.map(|bytes| V::decode(&bytes).map_err(Error::Codec)).transpose()
}

fn decoded_all<V: Decode, E>(values: Vec<Option<Vec<u8>>>) -> Result<Vec<Option<V>>, Error<E>> {
    values.into_iter().map(decoded).collect()
}

/// The methods of a guard, for types; see there.
impl<B: Backend, K: ?Sized, V> Typed<Guard<B>, K, V> {
    /// The value of a key: [`Guard::get`].
    pub fn get<Q: Encode + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error<B::Error>>
    where
        K: Borrow<Q>,
        V: Decode,
    {
        decoded(self.guard.get(encoded(key)?)?)
    }

    /// The values of many keys: [`Guard::get_many`].
    pub fn get_many<'a, Q: Encode + ?Sized + 'a>(
        &self,
        keys: impl IntoIterator<Item = &'a Q>,
    ) -> Result<Vec<Option<V>>, Error<B::Error>>
    where
        K: Borrow<Q>,
        V: Decode,
    {
        decoded_all(self.guard.get_many(&encoded_all(keys)?)?)
    }

    /// Whether a key is stored: [`Guard::contains`].
    pub fn contains<Q: Encode + ?Sized>(&self, key: &Q) -> Result<bool, Error<B::Error>>
    where
        K: Borrow<Q>,
    {
        self.guard.contains(encoded(key)?)
    }

    /// Stores a value: [`Guard::put`].
    pub fn put<Q: Encode + ?Sized>(&self, key: &Q, value: &V) -> Result<Before, Error<B::Error>>
    where
        K: Borrow<Q>,
        V: Encode,
    {
        self.guard.put(encoded(key)?, encoded(value)?)
    }

    /// Stores many values: [`Guard::put_many`].
    pub fn put_many<'a, Q: Encode + ?Sized + 'a>(
        &self,
        pairs: impl IntoIterator<Item = (&'a Q, &'a V)>,
    ) -> Result<Vec<Before>, Error<B::Error>>
    where
        K: Borrow<Q>,
        V: Encode + 'a,
    {
        self.guard.put_many(&encoded_pairs(pairs)?)
    }

    /// Removes a key: [`Guard::remove`].
    pub fn remove<Q: Encode + ?Sized>(&self, key: &Q) -> Result<Before, Error<B::Error>>
    where
        K: Borrow<Q>,
    {
        self.guard.remove(encoded(key)?)
    }

    /// Removes many keys: [`Guard::remove_many`].
    pub fn remove_many<'a, Q: Encode + ?Sized + 'a>(
        &self,
        keys: impl IntoIterator<Item = &'a Q>,
    ) -> Result<Vec<Before>, Error<B::Error>>
    where
        K: Borrow<Q>,
    {
        self.guard.remove_many(&encoded_all(keys)?)
    }
}

/// The methods of an asynchronous guard, for types; see there.
#[cfg(feature = "async")]
impl<B: AsyncBackend, K: ?Sized, V> Typed<AsyncGuard<B>, K, V> {
    /// The value of a key: [`AsyncGuard::get`].
    pub async fn get<Q: Encode + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error<B::Error>>
    where
        K: Borrow<Q>,
        V: Decode,
    {
        let key = encoded(key)?;
        decoded(self.guard.get(key).await?)
    }

    /// The values of many keys: [`AsyncGuard::get_many`].
    pub async fn get_many<'a, Q: Encode + ?Sized + 'a>(
        &self,
        keys: impl IntoIterator<Item = &'a Q>,
    ) -> Result<Vec<Option<V>>, Error<B::Error>>
    where
        K: Borrow<Q>,
        V: Decode,
    {
        let keys = encoded_all(keys)?;
        decoded_all(self.guard.get_many(&keys).await?)
    }

    /// Whether a key is stored: [`AsyncGuard::contains`].
    pub async fn contains<Q: Encode + ?Sized>(&self, key: &Q) -> Result<bool, Error<B::Error>>
    where
        K: Borrow<Q>,
    {
        let key = encoded(key)?;
        self.guard.contains(key).await
    }

    /// Stores a value: [`AsyncGuard::put`].
    pub async fn put<Q: Encode + ?Sized>(
        &self,
        key: &Q,
        value: &V,
    ) -> Result<Before, Error<B::Error>>
    where
        K: Borrow<Q>,
        V: Encode,
    {
        let (key, value) = (encoded(key)?, encoded(value)?);
        self.guard.put(key, value).await
    }

    /// Stores many values: [`AsyncGuard::put_many`].
    pub async fn put_many<'a, Q: Encode + ?Sized + 'a>(
        &self,
        pairs: impl IntoIterator<Item = (&'a Q, &'a V)>,
    ) -> Result<Vec<Before>, Error<B::Error>>
    where
        K: Borrow<Q>,
        V: Encode + 'a,
    {
        let pairs = encoded_pairs(pairs)?;
        self.guard.put_many(&pairs).await
    }

    /// Removes a key: [`AsyncGuard::remove`].
    pub async fn remove<Q: Encode + ?Sized>(&self, key: &Q) -> Result<Before, Error<B::Error>>
    where
        K: Borrow<Q>,
    {
        let key = encoded(key)?;
        self.guard.remove(key).await
    }

    /// Removes many keys: [`AsyncGuard::remove_many`].
    pub async fn remove_many<'a, Q: Encode + ?Sized + 'a>(
        &self,
        keys: impl IntoIterator<Item = &'a Q>,
    ) -> Result<Vec<Before>, Error<B::Error>>
    where
        K: Borrow<Q>,
    {
        let keys = encoded_all(keys)?;
        self.guard.remove_many(&keys).await
    }
}

/// What a load has found, as bytes.
fn loaded<V: Encode, E, L>(
    value: Result<Option<V>, L>,
) -> Result<Option<Vec<u8>>, LoadError<E, L>> {
    let value = value.map_err(LoadError::Load)?;
    let bytes = |value: V| Ok(encoded(&value)?.as_ref().to_vec());
    value.map(bytes).transpose().map_err(LoadError::Guard)
}

/// See [`ReadThrough::get_or_load`].
impl<B: Backend, K: ?Sized, V: Encode + Decode> Typed<ReadThrough<Guard<B>>, K, V> {
    /// The value of a key; if it is not stored, it is loaded and stored: [`ReadThrough::get_or_load`].
    pub fn get_or_load<Q: Encode + ?Sized, L>(
        &self,
        key: &Q,
        load: impl FnOnce() -> Result<Option<V>, L>,
    ) -> Result<Option<V>, LoadError<B::Error, L>>
    where
        K: Borrow<Q>,
    {
        let value = self.guard.get_or_try(encoded(key)?.as_ref(), || loaded(load()))?;
        Ok(decoded(value)?)
    }
}

/// See [`ReadThrough::get_or_load`].
#[cfg(feature = "async")]
impl<B: AsyncBackend, K: ?Sized, V: Encode + Decode> Typed<ReadThrough<AsyncGuard<B>>, K, V> {
    /// The value of a key; if it is not stored, it is loaded and stored: [`ReadThrough::get_or_load`].
    pub async fn get_or_load<Q: Encode + ?Sized, F, L>(
        &self,
        key: &Q,
        load: impl FnOnce() -> F,
    ) -> Result<Option<V>, LoadError<B::Error, L>>
    where
        K: Borrow<Q>,
        F: Future<Output = Result<Option<V>, L>>,
    {
        let key = encoded(key)?;
        let load = || async { loaded(load().await) };
        let value = self.guard.get_or_try(key.as_ref(), load).await?;
        Ok(decoded(value)?)
    }
}
