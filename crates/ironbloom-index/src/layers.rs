//! Which part of the crate may know which: the compiler does not say, so the source is read.

use std::fs;
use std::path::{Path, PathBuf};

/// Parts that must know none of the modules named after them.
const RULES: [(&[&str], &[&str]); 4] = [
    (&["table"], &["parse", "index", "builder", "segment", "file", "find", "indexed"]),
    (
        &["parse", "evaluate", "pattern", "zone"],
        &["table", "index", "builder", "segment", "find", "indexed"],
    ),
    (
        &[
            "index",
            "compact",
            "info",
            "builder",
            "segment",
            "segment_bounds",
            "segment_rows",
            "images",
            "section",
            "checksum_tree",
            "source",
            "file",
            "schema",
            "query",
            "lock",
            "resources",
            "workspace",
        ],
        &["table", "parse", "evaluate", "find", "indexed", "open_tables", "build"],
    ),
    (&["find"], &["index", "indexed", "open_tables", "segment"]),
];

fn files_of(module: &str) -> Vec<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folder = source.join(module);
    let file = source.join(format!("{module}.rs"));
    let mut files: Vec<PathBuf> = file.is_file().then_some(file).into_iter().collect();
    if folder.is_dir() {
        files.extend(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    }
    assert!(!files.is_empty(), "no module {module}");
    files
}

/// The modules that code (not comments) reaches by `crate::`, alone or in braces.
fn modules_used(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let code: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let names = |path: &str| -> Vec<String> {
        let several = path.strip_prefix('{').and_then(|rest| rest.split('}').next());
        let names = several.map_or(vec![path], |several| several.split(',').collect());
        let name = |name: &str| {
            name.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned)
        };
        names.into_iter().filter_map(name).collect()
    };
    code.split("crate::").skip(1).flat_map(names).collect()
}

#[test]
fn tables_conditions_and_the_index_do_not_know_each_other() {
    for (modules, forbidden) in RULES {
        for file in modules.iter().flat_map(|module| files_of(module)) {
            for used in modules_used(&file) {
                assert!(!forbidden.contains(&used.as_str()), "{}: {used}", file.display());
            }
        }
    }
}
