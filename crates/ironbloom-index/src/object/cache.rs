//! Tiles of objects that outlive the process, in a folder of bounded size.
//!
//! ```text
//!  FOLDER/<hash of the URL>.tiles       magic 8 · bytes of the head 4 · URL · version · length 8 · XXH3-64 of the head
//!                                       then for each tile: mark 4 · its bytes 4 · number 8 · XXH3-64 8 · the bytes
//! ```
//!
//! A file holds tiles of one version of one object; another version replaces it. Processes append to it without a lock: a
//! tile is written by one call, and whatever is not as it should be is requested again. So nothing here is an error.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

use super::ranges::TILE_BYTES;

const MAGIC: [u8; 8] = *b"ibtiles\x01";
const MARK: u32 = 0x6b6e_6863;
const TILE_HEAD: usize = 24;
const EXTENSION: &str = "tiles";
/// All files together, unless `IRONBLOOM_CACHE_BYTES` says otherwise.
const MOST_BYTES: u64 = 1 << 30;

/// Tiles of one version of an object, in a file.
#[derive(Debug)]
pub(super) struct CacheFile {
    file: File,
    version: String,
    len: u64,
    /// Where a tile is: its bytes and their checksum.
    tiles: HashMap<u64, Place>,
    end: u64,
    /// If others read it, too.
    path: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    bytes: u32,
    checksum: u64,
}

/// The folder, and the bytes that it may take. `None` if nothing is to be kept.
fn folder() -> Option<(PathBuf, u64)> {
    let most = match std::env::var("IRONBLOOM_CACHE_BYTES") {
        Ok(text) => text.trim().parse().ok()?,
        Err(_) => MOST_BYTES,
    };
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = match set("IRONBLOOM_CACHE_DIR") {
        Some(folder) => PathBuf::from(folder),
        None if cfg!(windows) => PathBuf::from(set("LOCALAPPDATA")?).join("ironbloom"),
        None => match (set("XDG_CACHE_HOME"), set("HOME")) {
            (Some(caches), _) => PathBuf::from(caches).join("ironbloom"),
            (None, Some(home)) if cfg!(target_os = "macos") => {
                PathBuf::from(home).join("Library/Caches/ironbloom")
            }
            (None, Some(home)) => PathBuf::from(home).join(".cache/ironbloom"),
            (None, None) => return None,
        },
    };
    (most > 0).then_some((folder, most))
}

fn path_of(folder: &Path, url: &str) -> PathBuf {
    folder.join(format!("{:032x}.{EXTENSION}", xxh3_128(url.as_bytes())))
}

/// What a file begins with.
fn head(url: &str, version: &str, len: u64) -> Vec<u8> {
    let mut fields = Vec::new();
    for text in [url, version] {
        fields.extend_from_slice(&(text.len() as u32).to_le_bytes());
        fields.extend_from_slice(text.as_bytes());
    }
    fields.extend_from_slice(&len.to_le_bytes());
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&(fields.len() as u32).to_le_bytes());
    head.extend_from_slice(&fields);
    head.extend_from_slice(&xxh3_64(&fields).to_le_bytes());
    head
}

fn checksum(tile: u64, bytes: &[u8]) -> u64 {
    let mut hasher = Xxh3::with_seed(tile);
    hasher.update(bytes);
    hasher.digest()
}

impl CacheFile {
    /// What is kept of an object, of whatever version.
    pub(super) fn find(url: &str) -> Option<Self> {
        let (folder, _) = folder()?;
        let path = path_of(&folder, url);
        let file = OpenOptions::new().read(true).append(true).open(&path).ok()?;
        let found = Self::read(file, url, &path);
        if found.is_none() {
            // Damaged: what would be appended to it could not be found again.
            let _ = fs::remove_file(&path);
        }
        // The files that were used last stay.
        let found = found?;
        let _ = found.file.set_modified(SystemTime::now());
        Some(found)
    }

    fn read(file: File, url: &str, path: &Path) -> Option<Self> {
        const LONGEST: u32 = 1 << 16;
        let mut start = [0; 12];
        read_at(&file, &mut start, 0).ok()?;
        let bytes = u32::from_le_bytes(start[8..].try_into().ok()?);
        if start[..8] != MAGIC || bytes > LONGEST {
            return None;
        }
        let mut rest = vec![0; bytes as usize + 8];
        read_at(&file, &mut rest, 12).ok()?;
        let (mut fields, check) = rest.split_at(bytes as usize);
        if xxh3_64(fields).to_le_bytes() != check {
            return None;
        }
        let mut text = || {
            let (length, rest) = fields.split_first_chunk()?;
            let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            fields = rest;
            String::from_utf8(text.to_vec()).ok()
        };
        let (found, version) = (text()?, text()?);
        let len = u64::from_le_bytes(fields.try_into().ok()?);
        if found != url {
            return None;
        }
        let end = 12 + u64::from(bytes) + 8;
        let path = Some(path.to_owned());
        let mut cache = Self { file, version, len, tiles: HashMap::new(), end, path };
        cache.find_tiles()?;
        Some(cache)
    }

    /// Where the tiles are. `None` if the file is not a sequence of tiles up to its end.
    fn find_tiles(&mut self) -> Option<()> {
        let length = self.file.metadata().ok()?.len();
        while self.end < length {
            let mut head = [0; TILE_HEAD];
            read_at(&self.file, &mut head, self.end).ok()?;
            let field = |from: usize| u64::from_le_bytes(std::array::from_fn(|i| head[from + i]));
            let (mark, bytes) = (field(0) as u32, (field(0) >> 32) as u32);
            let place = Place { at: self.end + TILE_HEAD as u64, bytes, checksum: field(16) };
            let next = place.at + u64::from(bytes);
            if mark != MARK || u64::from(bytes) > TILE_BYTES || next > length {
                return None;
            }
            self.tiles.insert(field(8), place);
            self.end = next;
        }
        Some(())
    }

    /// A new file for this version, in place of what is kept of others.
    pub(super) fn create(url: &str, version: &str, len: u64) -> Option<Self> {
        let (folder, most) = folder()?;
        make_folder(&folder).ok()?;
        make_room(&folder, most);
        let path = path_of(&folder, url);
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let new = path.with_extension(format!("{}.{number}.tmp", std::process::id()));
        let options = OpenOptions::new().read(true).append(true).create_new(true).clone();
        let mut file = options.open(&new).ok()?;
        let head = head(url, version, len);
        if file.write_all(&head).and_then(|()| fs::rename(&new, &path)).is_err() {
            let _ = fs::remove_file(&new);
            return None;
        }
        let (version, end) = (version.to_owned(), head.len() as u64);
        Some(Self { file, version, len, tiles: HashMap::new(), end, path: Some(path) })
    }

    /// A file that is gone with the process, for more tiles than fit into memory.
    pub(super) fn unnamed() -> Option<Self> {
        let file = tempfile::tempfile().ok()?;
        let (version, tiles) = (String::new(), HashMap::new());
        Some(Self { file, version, len: 0, tiles, end: 0, path: None })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Bytes of the object.
    pub(super) fn object_len(&self) -> u64 {
        self.len
    }

    pub(super) fn is_of(&self, version: &str, len: u64) -> bool {
        self.version == version && self.len == len
    }

    pub(super) fn contains(&self, tile: u64) -> bool {
        self.tiles.contains_key(&tile)
    }

    /// A tile, if it is what was written.
    pub(super) fn get(&mut self, tile: u64) -> Option<Bytes> {
        let place = *self.tiles.get(&tile)?;
        let mut bytes = vec![0; place.bytes as usize];
        let read = read_at(&self.file, &mut bytes, place.at);
        if read.is_err() || checksum(tile, &bytes) != place.checksum {
            self.tiles.remove(&tile);
            return None;
        }
        Some(bytes.into())
    }

    /// Keeps tiles that are not here yet.
    pub(super) fn put(&mut self, tiles: &[(u64, Bytes)]) {
        let mut out = Vec::new();
        let mut places = Vec::new();
        for (tile, bytes) in tiles.iter().filter(|(tile, _)| !self.contains(*tile)) {
            let checksum = checksum(*tile, bytes);
            out.extend_from_slice(&MARK.to_le_bytes());
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(&tile.to_le_bytes());
            out.extend_from_slice(&checksum.to_le_bytes());
            places.push((*tile, out.len() as u64, bytes.len() as u32, checksum));
            out.extend_from_slice(bytes);
        }
        if out.is_empty() {
            return;
        }
        // Other processes append as well: where these are is known only if the file has grown by them alone.
        let (Ok(()), Ok(metadata)) = (self.file.write_all(&out), self.file.metadata()) else {
            return;
        };
        let start = metadata.len() - out.len() as u64;
        if start == self.end {
            for (tile, at, bytes, checksum) in places {
                self.tiles.insert(tile, Place { at: start + at, bytes, checksum });
            }
        }
        self.end = metadata.len();
        if let Some((folder, most)) = folder().filter(|_| self.path.is_some()) {
            note_written(out.len() as u64, &folder, most);
        }
    }
}

/// Looks for room when a process first writes, because many that write little add up, and then each time after a sixteenth of
/// what the folder may take.
fn note_written(bytes: u64, folder: &Path, most: u64) {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let step = (most / 16).max(1);
    let before = WRITTEN.fetch_add(bytes, Ordering::Relaxed);
    if before == 0 || before / step != (before + bytes) / step {
        make_room(folder, most);
    }
}

/// Only for this user: what is in a bucket may be private.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Removes the files that were not used for the longest time, if all take more than they may.
fn make_room(folder: &Path, most: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let is_ours = path.extension().is_some_and(|end| end == EXTENSION || end == "tmp");
        if let Some(metadata) = entry.metadata().ok().filter(|found| found.is_file() && is_ours) {
            files.push((
                metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                metadata.len(),
                path,
            ));
        }
    }
    let mut all: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    if all <= most {
        return;
    }
    files.sort();
    for (_, bytes, path) in files {
        if all <= most / 4 * 3 {
            break;
        }
        if fs::remove_file(path).is_ok() {
            all -= bytes;
        }
    }
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset);
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            match std::os::windows::fs::FileExt::seek_read(file, &mut buffer[done..], at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }
}
