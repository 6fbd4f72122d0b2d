//! An object, read by ranges.
//!
//! ```text
//!  read ──► tiles in memory ──► tiles in the cache ──► requests (If-Match: the version that was opened)
//! ```
//!
//! Reading never mixes versions: every request names the ETag that the object had when it was opened, and a store answers
//! that it is another one by now.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use object_store::path::Path as Key;
use object_store::{Error, GetOptions, GetRange, ObjectMeta, ObjectStore};

use super::cache::CacheFile;
use super::errors::failed;
use super::ranges::{TILE_BYTES, bytes_of, read_ahead, requests, tiles_of};
use super::runtime::wait_for;
use super::stores::{Bucket, bucket_of};
use crate::file_bytes::{Purpose, REPLACED};
use crate::location::Location;

/// Bytes at the end of an object that are requested when it is opened: the directory of an index, or the footer of a table.
const TAIL: u64 = 512 << 10;
/// Requests of one reader at the same time.
const IN_FLIGHT: usize = 16;
/// Tiles in memory, in bytes. What is dropped comes from the cache, or is requested again.
const MEMORY: usize = 64 << 20;
/// The same of tables that are asked, of which many are open.
const TABLE_MEMORY: usize = 16 << 20;
/// Bytes that are read at once: less than what stays in memory.
const STEP: usize = 4 << 20;
/// How long an object is taken to be the same after a store has said so.
const FRESH: Duration = Duration::from_secs(1);

thread_local! {
    /// What this thread would have requested, while it plans.
    static PLAN: RefCell<Option<Vec<Range<u64>>>> = const { RefCell::new(None) };
}

/// Runs this without any request: reading what is not there is an error of the kind [`ErrorKind::WouldBlock`]. Returns what
/// was missing. All that is read meanwhile must be of one object.
pub(crate) fn planned(work: impl FnOnce()) -> Vec<Range<u64>> {
    PLAN.set(Some(Vec::new()));
    work();
    PLAN.take().unwrap_or_default()
}

/// An open object.
#[derive(Debug)]
pub(crate) struct ObjectBytes {
    store: Arc<dyn ObjectStore>,
    key: Key,
    version: Option<String>,
    len: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Bytes of tiles at most.
    memory: usize,
    tiles: HashMap<u64, Tile>,
    bytes: usize,
    /// Counts uses; the stamp of a tile says when it was used last.
    clock: u64,
    /// Where tiles are kept beyond this process, or beyond what memory holds.
    cache: Option<CacheFile>,
    /// When the store last said that this is the current version.
    confirmed: Option<Instant>,
}

#[derive(Debug)]
struct Tile {
    bytes: Bytes,
    stamp: u64,
}

impl State {
    fn new(memory: usize, cache: Option<CacheFile>, confirmed: Option<Instant>) -> Self {
        Self { memory, tiles: HashMap::new(), bytes: 0, clock: 0, cache, confirmed }
    }

    /// A tile that is in memory or in the cache.
    fn get(&mut self, tile: u64) -> Option<Bytes> {
        self.clock += 1;
        if let Some(found) = self.tiles.get_mut(&tile) {
            found.stamp = self.clock;
            return Some(found.bytes.clone());
        }
        let bytes = self.cache.as_mut()?.get(tile)?;
        self.put(tile, bytes.clone());
        Some(bytes)
    }

    fn is_present(&self, tile: u64) -> bool {
        let is_cached = || self.cache.as_ref().is_some_and(|cache| cache.contains(tile));
        self.tiles.contains_key(&tile) || is_cached()
    }

    fn put(&mut self, tile: u64, bytes: Bytes) {
        self.clock += 1;
        self.bytes += bytes.len();
        let held = Tile { bytes, stamp: self.clock };
        if let Some(old) = self.tiles.insert(tile, held) {
            self.bytes -= old.bytes.len();
        }
        if self.bytes > self.memory {
            self.drop_older_half();
        }
    }

    fn drop_older_half(&mut self) {
        let mut stamps: Vec<u64> = self.tiles.values().map(|tile| tile.stamp).collect();
        let middle = stamps.len() / 2;
        let (_, &mut median, _) = stamps.select_nth_unstable(middle);
        self.tiles.retain(|_, tile| tile.stamp >= median);
        self.bytes = self.tiles.values().map(|tile| tile.bytes.len()).sum();
    }

    /// Keeps what a request has returned: bytes from `start` on. Incomplete tiles at its beginning are dropped.
    fn keep(&mut self, start: u64, bytes: &Bytes, len: u64) {
        let first = start.div_ceil(TILE_BYTES);
        let tiles = first..(start + bytes.len() as u64).div_ceil(TILE_BYTES);
        let mut kept = Vec::new();
        for tile in tiles {
            let Range { start: from, end } = bytes_of(&(tile..tile + 1), len);
            let Some(part) = bytes.get((from - start) as usize..(end - start) as usize) else {
                break;
            };
            // A copy, so that a tile that stays does not keep the whole answer in memory.
            let part = Bytes::copy_from_slice(part);
            kept.push((tile, part.clone()));
            self.put(tile, part);
        }
        if let Some(cache) = &mut self.cache {
            cache.put(&kept);
        }
    }
}

impl ObjectBytes {
    /// Opens an object: as it is now, or, without a request, as what it is known to be (its version and length).
    pub(crate) fn open(
        location: &Location,
        purpose: Purpose,
        known: Option<(&str, u64)>,
    ) -> io::Result<Self> {
        let Bucket { store, key, has_suffixes, .. } = bucket_of(location)?;
        let name = location.to_string();
        if let Some((version, len)) = known {
            let cache = CacheFile::find(&name).filter(|cache| cache.is_of(version, len));
            let cache = cache.or_else(|| CacheFile::create(&name, version, len));
            let state = Mutex::new(State::new(TABLE_MEMORY, cache, None));
            return Ok(Self { store, key, version: Some(version.to_owned()), len, state });
        }
        let cached = if purpose == Purpose::Ask { CacheFile::find(&name) } else { None };
        let if_none_match = cached.as_ref().map(|cache| cache.version().to_owned());
        let asked = tail(Arc::clone(&store), key.clone(), if_none_match, has_suffixes);
        let Tail { meta, start, bytes } = match (wait_for(asked)?, cached) {
            (Ok(answer), _) => answer,
            (Err(Error::NotModified { .. }), Some(cache)) => {
                let (version, len) = (Some(cache.version().to_owned()), cache.object_len());
                let confirmed = Some(Instant::now());
                let state = State::new(MEMORY, Some(cache), confirmed);
                return Ok(Self { store, key, version, len, state: Mutex::new(state) });
            }
            (Err(error), _) => return Err(failed(&error)),
        };
        let len = meta.size;
        // A weak one does not promise the same bytes.
        let version = meta.e_tag.filter(|etag| !etag.starts_with("W/"));
        let cache = match (purpose, &version) {
            (Purpose::Ask, Some(version)) => CacheFile::create(&name, version, len),
            (Purpose::Ask, None) => None,
            (Purpose::Scan, _) => CacheFile::unnamed(),
        };
        let mut state = State::new(MEMORY, cache, Some(Instant::now()));
        state.keep(start, &bytes, len);
        Ok(Self { store, key, version, len, state: Mutex::new(state) })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Empty if the store has none.
    pub(crate) fn version(&self) -> &str {
        self.version.as_deref().unwrap_or("")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See `FileBytes`.
    pub(crate) fn is_unchanged(&self) -> io::Result<bool> {
        if self.state().confirmed.is_some_and(|at| at.elapsed() < FRESH) {
            return Ok(true);
        }
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        let options = GetOptions { head: true, ..self.options() };
        match wait_for(async move { store.get_opts(&key, options).await.map(|found| found.meta) })?
        {
            Ok(meta) if meta.size == self.len => {
                self.state().confirmed = Some(Instant::now());
                Ok(true)
            }
            Ok(_) | Err(Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(failed(&error)),
        }
    }

    fn options(&self) -> GetOptions {
        GetOptions { if_match: self.version.clone(), ..GetOptions::default() }
    }

    /// Requests what is not here of these ranges, together.
    pub(crate) fn prefetch(&self, ranges: &[Range<u64>]) -> io::Result<()> {
        let mut missing = Vec::new();
        let most = {
            let mut state = self.state();
            for range in ranges {
                let inside = range.start.min(self.len)..range.end.min(self.len);
                missing.extend(tiles_of(&inside).filter(|&tile| state.get(tile).is_none()));
            }
            state.memory / 2
        };
        // What comes first stays until it is read; the rest is requested then.
        missing.truncate(most / TILE_BYTES as usize);
        self.request(missing)
    }

    fn request(&self, missing: Vec<u64>) -> io::Result<()> {
        if missing.is_empty() {
            return Ok(());
        }
        let is_planning = PLAN.with_borrow_mut(|plan| {
            let bytes = missing.iter().map(|&tile| bytes_of(&(tile..tile + 1), self.len));
            plan.as_mut().map(|plan| plan.extend(bytes)).is_some()
        });
        if is_planning {
            return Err(ErrorKind::WouldBlock.into());
        }
        let ranges: Vec<Range<u64>> =
            requests(missing).iter().map(|tiles| bytes_of(tiles, self.len)).collect();
        let (store, key, options) = (Arc::clone(&self.store), self.key.clone(), self.options());
        let one = move |range: Range<u64>| {
            let (store, key) = (Arc::clone(&store), key.clone());
            let options =
                GetOptions { range: Some(GetRange::Bounded(range.clone())), ..options.clone() };
            async move {
                let result = store.get_opts(&key, options).await?;
                Ok::<_, Error>((range, result.meta.size, result.bytes().await?))
            }
        };
        let all = stream::iter(ranges).map(one).buffer_unordered(IN_FLIGHT).try_collect::<Vec<_>>();
        let answers = wait_for(all)?.map_err(|error| failed(&error))?;
        let mut state = self.state();
        for (range, size, bytes) in answers {
            let is_whole = bytes.len() as u64 == range.end - range.start;
            if size != self.len || !is_whole {
                return Err(io::Error::new(ErrorKind::StaleNetworkFileHandle, REPLACED));
            }
            state.keep(range.start, &bytes, self.len);
        }
        state.confirmed = Some(Instant::now());
        Ok(())
    }

    /// Fills `buffer` with the bytes from `offset` on, which the object has.
    pub(crate) fn read_into(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        for (step, part) in buffer.chunks_mut(STEP).enumerate() {
            self.read_step(part, offset + (step * STEP) as u64)?;
        }
        Ok(())
    }

    fn read_step(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let range = offset..offset + buffer.len() as u64;
        // Another reader may push out what has just come, but not forever.
        for _ in 0..3 {
            if self.copy(buffer, &range) {
                return Ok(());
            }
            let wanted = self.missing(&range);
            self.request(wanted)?;
        }
        if self.copy(buffer, &range) { Ok(()) } else { Err(ErrorKind::OutOfMemory.into()) }
    }

    fn copy(&self, buffer: &mut [u8], range: &Range<u64>) -> bool {
        let mut state = self.state();
        tiles_of(range).all(|tile| {
            let Some(bytes) = state.get(tile) else { return false };
            let first = tile * TILE_BYTES;
            let from = range.start.max(first);
            let to = range.end.min(first + bytes.len() as u64);
            let part = &bytes[(from - first) as usize..(to - first) as usize];
            buffer[(from - range.start) as usize..(to - range.start) as usize]
                .copy_from_slice(part);
            true
        })
    }

    /// What is not here of a range, and what a reader that goes on will want next.
    fn missing(&self, range: &Range<u64>) -> Vec<u64> {
        let mut state = self.state();
        let tiles = tiles_of(range);
        let mut missing: Vec<u64> =
            tiles.clone().filter(|&tile| state.get(tile).is_none()).collect();
        if let Some(&first) = missing.first() {
            let ahead = read_ahead(first, |tile| state.is_present(tile));
            let end = (tiles.end + ahead).min(tiles_of(&(0..self.len)).end);
            missing.extend((tiles.end..end).take_while(|&tile| !state.is_present(tile)));
        }
        missing
    }
}

/// The end of an object, and what is known of all of it.
struct Tail {
    meta: ObjectMeta,
    start: u64,
    bytes: Bytes,
}

async fn tail(
    store: Arc<dyn ObjectStore>,
    key: Key,
    if_none_match: Option<String>,
    has_suffixes: bool,
) -> Result<Tail, Error> {
    let conditions = GetOptions { if_none_match, ..GetOptions::default() };
    let mut options = GetOptions { range: Some(GetRange::Suffix(TAIL)), ..conditions.clone() };
    if !has_suffixes {
        let head = store.get_opts(&key, GetOptions { head: true, ..conditions.clone() }).await?;
        let start = head.meta.size.saturating_sub(TAIL);
        options = GetOptions { if_match: head.meta.e_tag, ..GetOptions::default() };
        options.range =
            Some(GetRange::Bounded(start..head.meta.size)).filter(|_| head.meta.size > 0);
    }
    let result = match store.get_opts(&key, options).await {
        // Of nothing there is no range.
        Err(Error::Generic { .. }) if has_suffixes => {
            let whole = GetOptions { head: true, ..conditions };
            let head = store.get_opts(&key, whole.clone()).await?;
            match head.meta.size {
                0 => return Ok(Tail { meta: head.meta, start: 0, bytes: Bytes::new() }),
                size => {
                    let range = GetRange::Bounded(size.saturating_sub(TAIL)..size);
                    let options = GetOptions { head: false, range: Some(range), ..whole };
                    store.get_opts(&key, options).await?
                }
            }
        }
        answer => answer?,
    };
    let (meta, start) = (result.meta.clone(), result.range.start);
    Ok(Tail { meta, start, bytes: result.bytes().await? })
}
