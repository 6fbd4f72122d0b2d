//! Folders and files of one test, removed when it ends.

use std::fs;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::process::is_root;

/// Returns a path that no other test uses, in this process or another. Process IDs recur, in containers and after a
/// restart, and a killed test leaves its files behind: the time tells such processes apart.
fn unique(parent: &Path, name: &str, extension: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static START: LazyLock<u64> = LazyLock::new(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map_or(0, |now| now.as_micros() as u64)
    });
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let (process, start) = (std::process::id(), *START);
    parent.join(format!("ironbloom-{name}-{process}-{start:x}-{number}{extension}"))
}

/// True for a folder with room for the servers of a few tests, from which programs may be run. A container's shared
/// memory is often 64 MB and mounted noexec.
fn serves_tests(folder: &Path) -> bool {
    const ROOM: u64 = 2 << 30;
    statvfs(folder).is_ok_and(|place| {
        place.f_bavail.saturating_mul(place.f_frsize) >= ROOM
            && !place.f_flag.contains(StatVfsMountFlags::NOEXEC)
    })
}

/// True for a folder with room for the name of a socket, which has 107 bytes at most, and that other users may pass: as root,
/// PostgreSQL runs as one.
fn serves_servers(folder: &Path) -> bool {
    let passable = |folder: &Path| {
        fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0)
    };
    folder.as_os_str().len() <= 20 && (!is_root() || folder.ancestors().all(passable))
}

/// A temporary folder.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates a folder, in memory if there is room: tests are about killed processes, not about power cuts, and
    /// syncing a disk takes milliseconds. The name is for people who look for it.
    pub fn new(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let in_memory = || Self::try_in_folder(memory, name).ok();
        let made = if serves_tests(memory) { in_memory() } else { None };
        made.unwrap_or_else(|| Self::on_disk(name))
    }

    /// Creates a folder among the temporary files, for tests with large ones.
    pub fn on_disk(name: &str) -> Self {
        let folder = std::env::temp_dir();
        if serves_servers(&folder) {
            Self::in_folder(&folder, name)
        } else {
            Self::in_folder(Path::new("/tmp"), name)
        }
    }

    fn in_folder(parent: &Path, name: &str) -> Self {
        fs::create_dir_all(parent).unwrap();
        Self::try_in_folder(parent, name).unwrap()
    }

    /// Fails where this user may not write.
    fn try_in_folder(parent: &Path, name: &str) -> io::Result<Self> {
        let path = unique(parent, name, "");
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Names of all files in order, including hidden ones: a temporary file left behind would show.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Path of a file that may or may not exist.
#[derive(Debug)]
pub struct TemporaryFile(pub PathBuf);

impl TemporaryFile {
    /// Chooses a path with this extension. The file does not exist yet.
    pub fn new(extension: &str) -> Self {
        Self(unique(&std::env::temp_dir(), "file", &format!(".{extension}")))
    }

    /// Creates a file with this content.
    pub fn with(extension: &str, content: impl AsRef<[u8]>) -> Self {
        let file = Self::new(extension);
        fs::write(&file.0, content).unwrap();
        file
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for TemporaryFile {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Deref for TemporaryFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
