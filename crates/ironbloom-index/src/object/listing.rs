//! What is in a bucket under a prefix.

use std::io;

use futures_util::TryStreamExt as _;

use super::errors::failed;
use super::runtime::wait_for;
use super::stores::{Bucket, bucket_of};
use crate::location::Location;

/// All objects under a prefix of a bucket, as under a folder and its subfolders, ordered by name.
///
/// # Errors
///
/// If the store cannot be asked, or cannot list what it has, as servers of HTTP.
pub fn list_objects(prefix: &Location) -> io::Result<Vec<Location>> {
    let Bucket { store, key, .. } = bucket_of(prefix)?;
    let prefix_key = (!key.as_ref().is_empty()).then_some(key);
    let listed = async move {
        let objects = store.list(prefix_key.as_ref());
        let named = objects.map_ok(|found| found.location.to_string());
        named.try_collect::<Vec<String>>().await
    };
    let mut keys = wait_for(listed)?.map_err(|error| failed(&error))?;
    keys.sort_unstable();
    Ok(keys.iter().map(|key| prefix.with_key(key)).collect())
}
