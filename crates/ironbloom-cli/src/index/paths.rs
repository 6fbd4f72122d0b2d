//! Which files are meant by what is typed: files, folders, patterns, and lists of them.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// Extensions of files in a folder that are tables.
const TABLES: [&str; 8] =
    [".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".csv.zst", ".tsv.gz", ".tsv.zst"];

/// The tables that are meant: files as they are, all tables in a folder and its subfolders (ordered by name), what matches a
/// pattern with `*` or `?`, and for `-` what standard input lists, one path per line. Each is named once.
pub(super) fn tables(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut tables = Vec::new();
    for path in given {
        if path == Path::new("-") {
            for line in listed(std::io::stdin().lock())? {
                add(&line, &mut tables)?;
            }
        } else {
            add(path, &mut tables)?;
        }
    }
    let mut seen = std::collections::HashSet::new();
    tables.retain(|path: &PathBuf| seen.insert(path.clone()));
    Ok(tables)
}

fn listed(input: impl Read) -> Result<Vec<PathBuf>> {
    let lines = BufReader::new(input).lines().collect::<Result<Vec<_>, _>>();
    let lines = lines.context("standard input")?;
    let lines = lines.iter().map(|line| line.strip_suffix('\r').unwrap_or(line));
    Ok(lines.filter(|line| !line.is_empty()).map(PathBuf::from).collect())
}

fn add(path: &Path, tables: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_dir() {
        let before = tables.len();
        add_folder(path, tables)?;
        if tables.len() == before {
            bail!("{}: no table in this folder ({}, …)", path.display(), TABLES[..4].join(", "));
        }
        return Ok(());
    }
    let text = path.to_string_lossy();
    // A file of this name is that file, whatever characters are in it.
    if !text.contains(['*', '?']) || path.exists() {
        tables.push(path.to_owned());
        return Ok(());
    }
    let before = tables.len();
    let root = if path.is_absolute() { PathBuf::from("/") } else { PathBuf::new() };
    let parts: Vec<String> = path
        .components()
        .filter(|part| !matches!(part, std::path::Component::RootDir))
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    add_matching(&root, &parts, tables)?;
    if tables.len() == before {
        bail!("{text}: nothing matches this pattern");
    }
    Ok(())
}

fn add_folder(folder: &Path, tables: &mut Vec<PathBuf>) -> Result<()> {
    for path in entries(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        // As other programs do: what begins with these is not data.
        if name.starts_with(['.', '_']) {
            continue;
        }
        if path.is_dir() {
            add_folder(&path, tables)?;
        } else if TABLES.iter().any(|end| name.ends_with(end)) {
            tables.push(path);
        }
    }
    Ok(())
}

/// What is in a folder, by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(here).with_context(|| here.display().to_string())?;
    let names = entries.map(|entry| Ok(folder.join(entry?.file_name())));
    let mut paths: Vec<PathBuf> =
        names.collect::<std::io::Result<_>>().with_context(|| here.display().to_string())?;
    paths.sort();
    Ok(paths)
}

fn add_matching(folder: &Path, parts: &[String], tables: &mut Vec<PathBuf>) -> Result<()> {
    let [part, rest @ ..] = parts else { return Ok(()) };
    if !part.contains(['*', '?']) {
        let path = folder.join(part);
        return match rest {
            [] if path.exists() => add(&path, tables),
            [] => Ok(()),
            rest => add_matching(&path, rest, tables),
        };
    }
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        return Ok(());
    }
    for path in entries(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
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

/// Whether a name matches a pattern, in which `*` stands for any characters and `?` for one.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go on if what follows the last star did not fit: the star takes one character more.
    let mut retry = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match retry {
                Some((star, taken)) => {
                    (p, n) = (star + 1, taken + 1);
                    retry = Some((star, taken + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
    }
}
