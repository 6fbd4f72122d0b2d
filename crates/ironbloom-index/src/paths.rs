//! Which tables are meant by a path: files, folders, patterns, and prefixes of buckets.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::catalog::{TableFormat, table_format};
use crate::location::Location;

/// Extensions of files in a folder that are tables.
const TABLES: [&str; 8] =
    [".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".csv.zst", ".tsv.gz", ".tsv.zst"];

/// Characters that make a pattern of a name.
const WILD: [char; 3] = ['*', '?', '['];

/// As a part of a pattern: any folders, also none.
const ANY_FOLDERS: &str = "**";

/// Why a path stands for no tables.
#[derive(Debug)]
#[non_exhaustive]
pub enum PathError {
    /// Nothing matches this pattern.
    NothingMatches(Location),
    /// There is no table in this folder.
    NoneInFolder(Location),
    /// There is no table under this prefix of a bucket.
    NoneUnderPrefix(Location),
    /// The folder is a table of Iceberg or Delta: not all files in it belong to it.
    Followed {
        /// The folder.
        folder: Location,
        /// What it is.
        format: TableFormat,
    },
    /// A folder or bucket cannot be listed.
    Io {
        /// Which.
        path: Location,
        /// What the system says.
        error: io::Error,
    },
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = TABLES[..4].join(", ");
        match self {
            Self::NothingMatches(path) => write!(f, "{path}: nothing matches this pattern"),
            Self::NoneInFolder(path) => write!(f, "{path}: no table in this folder ({some}, …)"),
            Self::NoneUnderPrefix(path) => {
                write!(f, "{path}: no table under this prefix ({some}, …)")
            }
            Self::Followed { folder, format } => write!(
                f,
                "{folder}: is a {format} table, which alone knows which files belong to it"
            ),
            Self::Io { path, error } => write!(f, "{path}: {error}"),
        }
    }
}

impl std::error::Error for PathError {}

/// The tables that are meant, each once: files and objects as they are, all tables in a folder or under a prefix of a bucket
/// and its subfolders (ordered by name), and what matches a pattern. There, `*` stands for any characters of a name, `?` for
/// one, `[a-c]` for one of these, `[!a-c]` for one of the others, and `**` as a whole name for any folders.
///
/// What begins with `.` or `_` is no table, unless it is named.
///
/// # Errors
///
/// If one of the paths stands for no tables. A file that is named need not exist.
pub fn tables_at(given: &[Location]) -> Result<Vec<Location>, PathError> {
    let mut tables = Vec::new();
    for location in given {
        let before = tables.len();
        match location.as_file() {
            None => add_objects(location, &mut tables)?,
            Some(path) => {
                let mut files = Vec::new();
                add_path(path, &mut files)?;
                tables.extend(files.into_iter().map(Location::from));
            }
        }
        if tables.len() == before {
            return Err(PathError::NothingMatches(location.clone()));
        }
    }
    let mut seen = HashSet::new();
    tables.retain(|table: &Location| seen.insert(table.clone()));
    Ok(tables)
}

fn is_table(name: &str) -> bool {
    let name = name.to_lowercase();
    TABLES.iter().any(|end| name.ends_with(end))
}

fn is_wild(name: &str) -> bool {
    name.contains(WILD)
}

/// As other programs see it: what begins with these is not data.
fn is_data(name: &str) -> bool {
    !name.starts_with(['.', '_'])
}

// ------------------------------------------------------------------------------------------------------------- buckets

#[cfg(not(feature = "object_store"))]
fn add_objects(location: &Location, tables: &mut Vec<Location>) -> Result<(), PathError> {
    tables.push(location.clone()); // opening it says that there are no buckets
    Ok(())
}

/// An object, or those under a prefix, or those that match a pattern.
#[cfg(feature = "object_store")]
fn add_objects(location: &Location, tables: &mut Vec<Location>) -> Result<(), PathError> {
    let text = location.to_string();
    let (start, key) = split_url(&text);
    let parts: Vec<&str> = key.split('/').filter(|part| !part.is_empty()).collect();
    let literal = parts.iter().take_while(|part| !is_wild(part)).count();
    let is_pattern = literal < parts.len();
    if !is_pattern && is_table(key) {
        tables.push(location.clone());
        return Ok(());
    }
    let folder = Location::from(format!("{start}{}", parts[..literal].join("/")));
    let objects = crate::object::list_objects(&folder)
        .map_err(|error| PathError::Io { path: folder.clone(), error })?;
    if !is_pattern && let Some(format) = objects.iter().find_map(|o| format_below(o, literal)) {
        return Err(PathError::Followed { folder, format });
    }
    let names_a_file = parts.last() != Some(&ANY_FOLDERS);
    let before = tables.len();
    tables.extend(objects.into_iter().filter(|object| {
        let object = object.to_string();
        let names: Vec<&str> = split_url(&object).1.split('/').collect();
        (literal..=names.len()).any(|depth| {
            let (matched, below) = names.split_at(depth);
            let is_meant = match below {
                [] => names_a_file,
                below => is_table(&object) && below.iter().all(|name| is_data(name)),
            };
            is_meant && all_match(&parts, matched)
        })
    }));
    if tables.len() == before && !is_pattern {
        // Perhaps an object of an unusual name; if not, opening it says so.
        if key.is_empty() || key.ends_with('/') {
            return Err(PathError::NoneUnderPrefix(location.clone()));
        }
        tables.push(location.clone());
    }
    Ok(())
}

/// The format of a table, if this object is its metadata and the key of the table has this number of names.
#[cfg(feature = "object_store")]
fn format_below(object: &Location, names: usize) -> Option<TableFormat> {
    let object = object.to_string();
    let below: Vec<&str> = split_url(&object).1.split('/').skip(names).collect();
    match below[..] {
        ["_delta_log", ..] => Some(TableFormat::Delta),
        ["metadata", file] if file.ends_with(".metadata.json") => Some(TableFormat::Iceberg),
        _ => None,
    }
}

/// Whether names match the parts of a pattern, one by one.
#[cfg(feature = "object_store")]
fn all_match(parts: &[&str], names: &[&str]) -> bool {
    match (parts, names) {
        ([], names) => names.is_empty(),
        ([ANY_FOLDERS, rest @ ..], names) => {
            let folders = names.iter().take_while(|name| is_data(name)).count();
            (0..=folders).any(|skip| all_match(rest, &names[skip..]))
        }
        ([part, parts @ ..], [name, names @ ..]) => {
            (part == name || matches(part, name)) && all_match(parts, names)
        }
        _ => false,
    }
}

/// A URL with its bucket, up to its key; and the key.
#[cfg(feature = "object_store")]
fn split_url(url: &str) -> (&str, &str) {
    let bucket = url.find("://").map_or(0, |at| at + 3);
    let key = url[bucket..].find('/').map_or(url.len(), |at| bucket + at + 1);
    url.split_at(key)
}

// --------------------------------------------------------------------------------------------------------------- files

fn add_path(path: &Path, tables: &mut Vec<PathBuf>) -> Result<(), PathError> {
    if path.is_dir() {
        // Not all files in the folder of such a table belong to it.
        if let Some(format) = table_format(&path.into()) {
            return Err(PathError::Followed { folder: path.into(), format });
        }
        let before = tables.len();
        add_folder(path, tables)?;
        if tables.len() == before {
            return Err(PathError::NoneInFolder(path.into()));
        }
        return Ok(());
    }
    // A file of this name is that file, whatever characters are in it.
    if !is_wild(&path.to_string_lossy()) || path.exists() {
        tables.push(path.to_owned());
        return Ok(());
    }
    let root = if path.is_absolute() { PathBuf::from("/") } else { PathBuf::new() };
    let parts: Vec<String> = path
        .components()
        .filter(|part| !matches!(part, std::path::Component::RootDir))
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    add_matching(&root, &parts, tables)
}

/// All tables in a folder and below, by name: each real folder and each real file once, although links lead to it. What has a
/// name without a link has that one.
fn add_folder(folder: &Path, tables: &mut Vec<PathBuf>) -> Result<(), PathError> {
    let (mut found, mut links, mut seen) = (Vec::new(), vec![folder.to_owned()], HashSet::new());
    while let Some(link) = links.pop() {
        walk(&link, &mut seen, &mut links, &mut found)?;
    }
    let (linked, mut real): (Vec<PathBuf>, Vec<PathBuf>) =
        found.into_iter().partition(|path| path.is_symlink());
    if !linked.is_empty() {
        let mut seen: HashSet<PathBuf> =
            real.iter().filter_map(|path| path.canonicalize().ok()).collect();
        // A link that leads nowhere is an error when it is opened.
        real.extend(
            linked
                .into_iter()
                .filter(|path| path.canonicalize().map_or(true, |to| seen.insert(to))),
        );
    }
    real.sort();
    tables.append(&mut real);
    Ok(())
}

/// Adds the tables in a folder and below that has not been seen before. Links to folders are left for later.
fn walk(
    folder: &Path,
    seen: &mut HashSet<PathBuf>,
    links: &mut Vec<PathBuf>,
    found: &mut Vec<PathBuf>,
) -> Result<(), PathError> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let real = here.canonicalize().map_err(|error| PathError::Io { path: here.into(), error })?;
    if !seen.insert(real) {
        return Ok(());
    }
    for path in entries(folder)? {
        let name = name_of(&path);
        if !is_data(&name) {
            continue;
        }
        match path.is_dir() {
            true if path.is_symlink() => links.push(path),
            true => walk(&path, seen, links, found)?,
            false if is_table(&name) => found.push(path),
            false => {}
        }
    }
    Ok(())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What is in a folder, by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, PathError> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let failed = |error| PathError::Io { path: here.into(), error };
    let names =
        std::fs::read_dir(here).map_err(failed)?.map(|entry| Ok(folder.join(entry?.file_name())));
    let mut paths: Vec<PathBuf> = names.collect::<io::Result<_>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn add_matching(
    folder: &Path,
    parts: &[String],
    tables: &mut Vec<PathBuf>,
) -> Result<(), PathError> {
    let [part, rest @ ..] = parts else { return Ok(()) };
    let literally = folder.join(part);
    if !is_wild(part) || literally.exists() {
        return match rest {
            [] if literally.exists() => add_path(&literally, tables),
            [] => Ok(()),
            rest => add_matching(&literally, rest, tables),
        };
    }
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        return Ok(());
    }
    if part == ANY_FOLDERS {
        return add_below(folder, rest, tables);
    }
    for path in entries(folder)? {
        let name = name_of(&path);
        let hidden = name.starts_with('.') && !part.starts_with('.');
        if hidden || !matches(part, &name) {
            continue;
        }
        match rest {
            [] if path.is_dir() => add_folder(&path, tables)?,
            [] => tables.push(path),
            rest if path.is_dir() => add_matching(&path, rest, tables)?,
            _ => {}
        }
    }
    Ok(())
}

/// What matches the rest of a pattern here or in any folder below; all tables if there is no rest.
fn add_below(folder: &Path, rest: &[String], tables: &mut Vec<PathBuf>) -> Result<(), PathError> {
    if rest.is_empty() {
        return add_folder(folder, tables);
    }
    add_matching(folder, rest, tables)?;
    for path in entries(folder)? {
        // A link could lead back to a folder above.
        if path.is_dir() && !path.is_symlink() && is_data(&name_of(&path)) {
            add_below(&path, rest, tables)?;
        }
    }
    Ok(())
}

// ------------------------------------------------------------------------------------------------------------ patterns

/// What a character of a name may be.
enum Wild {
    /// `*`
    Any,
    /// `?`
    One,
    /// `[a-c]`, or with true `[!a-c]`
    Set(bool, Vec<(char, char)>),
    Just(char),
}

impl Wild {
    fn takes(&self, character: char) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Set(others, ranges) => {
                let within = |&(first, last): &(char, char)| (first..=last).contains(&character);
                ranges.iter().any(within) != *others
            }
            Self::Just(own) => *own == character,
        }
    }
}

/// A pattern as a shell reads it. A bracket that is not closed is a character like any other.
fn wilds(pattern: &str) -> Vec<Wild> {
    let pattern: Vec<char> = pattern.chars().collect();
    let (mut wilds, mut at) = (Vec::new(), 0);
    while let Some(&character) = pattern.get(at) {
        at += 1;
        wilds.push(match character {
            '*' => Wild::Any,
            '?' => Wild::One,
            '[' => match set(&pattern[at..]) {
                Some((set, length)) => {
                    at += length;
                    set
                }
                None => Wild::Just('['),
            },
            other => Wild::Just(other),
        });
    }
    wilds
}

/// What follows an opening bracket, and its length with the closing one.
fn set(after: &[char]) -> Option<(Wild, usize)> {
    let others = after.first() == Some(&'!');
    let start = usize::from(others);
    // A closing bracket that comes first is one of the characters.
    let length = after.iter().skip(start + 1).position(|&c| c == ']')? + 1;
    let mut characters = &after[start..start + length];
    let mut ranges = Vec::new();
    while let [first, rest @ ..] = characters {
        match rest {
            ['-', last, rest @ ..] => {
                ranges.push((*first, *last));
                characters = rest;
            }
            rest => {
                ranges.push((*first, *first));
                characters = rest;
            }
        }
    }
    Some((Wild::Set(others, ranges), start + length + 1))
}

/// Whether a name matches a pattern.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (wilds(pattern), name.chars().collect::<Vec<char>>());
    let (mut p, mut n) = (0, 0);
    // Where to go on if what follows the last star did not fit: the star takes one character more.
    let mut retry = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(Wild::Any) => {
                retry = Some((p, n));
                p += 1;
            }
            Some(wild) if wild.takes(name[n]) => (p, n) = (p + 1, n + 1),
            _ => match retry {
                Some((star, taken)) => {
                    (p, n) = (star + 1, taken + 1);
                    retry = Some((star, taken + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|wild| matches!(wild, Wild::Any))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn links_lead_to_each_folder_and_file_once() {
        use std::os::unix::fs::symlink;
        let folder = ironbloom_testing::Scratch::new("links");
        let at = |name: &str| folder.file(name);
        std::fs::create_dir_all(at("t/sub")).unwrap();
        std::fs::create_dir(at("elsewhere")).unwrap();
        for name in ["t/b.csv", "t/sub/c.csv", "elsewhere/d.csv"] {
            std::fs::write(at(name), "a\n1\n").unwrap();
        }
        let links = [
            ("back", "t"),
            ("sub/up", "t"),
            ("sub/up2", "t"),
            ("also sub", "t/sub"),
            ("other", "elsewhere"),
            ("again", "elsewhere"),
            ("a.csv", "t/b.csv"),
            ("latest", "t/b.csv"),
            ("x.csv", "elsewhere/d.csv"),
            ("gone.csv", "nowhere"),
        ];
        for (link, to) in links {
            symlink(at(to), at("t").join(link)).unwrap();
        }
        let found = tables_at(&[at("t").into()]).unwrap();
        let mut names: Vec<String> = found.iter().map(|table| table.name().into_owned()).collect();
        names.sort();
        assert_eq!(names, ["b.csv", "c.csv", "d.csv", "gone.csv"]);
        assert!(found.contains(&at("t/b.csv").into()) && found.contains(&at("t/sub/c.csv").into()));
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, wanted) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "a.csv.gz", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("??", "ab", true),
            ("??", "abc", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[!a-c]x", "dx", true),
            ("[!a-c]x", "bx", false),
            ("*[0-9][05].csv", "log-15.csv", true),
            ("*[0-9][05].csv", "log-16.csv", false),
            ("[[]1].csv", "[1].csv", true),
            ("[]]", "]", true),
            ("[-a]", "-", true),
            ("[a", "[a", true),
            ("[]", "[]", true),
        ] {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
    }

    #[test]
    fn two_stars_stand_for_any_folders() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["1.csv", "a/2.csv", "a/b/3.csv", "a/b/3.txt", ".git/4.csv"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            let given = Location::from(folder.path().join(pattern));
            let tables = tables_at(&[given]).unwrap();
            let within = |table: &Location| {
                let path = table.as_file().unwrap().strip_prefix(folder.path()).unwrap();
                path.to_str().unwrap().to_owned()
            };
            tables.iter().map(within).collect()
        };
        assert_eq!(found("**/*.csv"), ["1.csv", "a/2.csv", "a/b/3.csv"]);
        assert_eq!(found("a/**/3.*"), ["a/b/3.csv", "a/b/3.txt"]);
        assert_eq!(found("**"), ["1.csv", "a/2.csv", "a/b/3.csv"]);
        assert_eq!(found("a/**/b/*.csv"), ["a/b/3.csv"]);
    }
}
