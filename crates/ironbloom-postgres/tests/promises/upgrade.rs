//! `alter extension ironbloom update`: from every version that was released, to what a new installation has.

use std::path::{Path, PathBuf};

use crate::common::Server;

/// Released scripts with the hashes of their bytes: servers have run them, so they are never edited.
const RELEASED: &[(&str, u64)] = &[("ironbloom--0.2.0.sql", 2_133_219_563_216_607_228)];

fn crate_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The value of the first line `name = 'value'` or `name = "value"`.
fn setting(file: &str, name: &str) -> String {
    let text = std::fs::read_to_string(crate_file(file)).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap();
    line.split(['\'', '"']).nth(1).unwrap().to_owned()
}

/// Versions that an installation may have: where scripts begin or end.
fn versions() -> Vec<String> {
    let mut versions = Vec::new();
    for entry in std::fs::read_dir(crate_file("sql")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let parts = name.strip_prefix("ironbloom--").and_then(|name| name.strip_suffix(".sql"));
        versions.extend(parts.expect("a script of the extension").split("--").map(str::to_owned));
    }
    versions.sort();
    versions.dedup();
    versions
}

/// All objects of the extension, as the catalogue has them.
const OBJECTS: &str = "select pg_describe_object(d.classid, d.objid, 0), pg_get_functiondef(p.oid), p.proacl, c.relacl,
        obj_description(d.objid, d.classid::regclass::name)
    from pg_depend d left join pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid and p.prokind = 'f'
        left join pg_class c on d.classid = 'pg_class'::regclass and c.oid = d.objid
    where d.refclassid = 'pg_extension'::regclass and d.refobjid = (select oid from pg_extension where extname = 'ironbloom')
        and d.deptype = 'e'
    order by 1;";

#[test]
fn an_installation_of_any_earlier_version_updates_to_what_a_new_one_has() {
    let server = Server::start("upgrade");
    let current = setting("ironbloom.control", "default_version");
    let new = server.sql(OBJECTS);
    for version in versions() {
        // The library is new already when the objects in SQL are still old: it serves both.
        server.sql(&format!(
            "drop extension ironbloom; create extension ironbloom version '{version}';
             create table t (id serial, a int, b text) with (fillfactor = 50);
             insert into t (a, b) select i % 997, 'b' || i % 89 from generate_series(1, 20000) i;
             create index t_i on t using ironbloom (a, b);
             insert into t (a, b) select i % 997, 'b' || i % 89 from generate_series(1, 500) i;
             select * from ironbloom_info('t_i'); select * from ironbloom_columns('t_i'); select * from ironbloom_segments('t_i');
             select ironbloom_check('t_i'); select ironbloom_seal('t_i');
             create table f as select ironbloom_build('key' || i, 100, 0.01) as filter from generate_series(1, 100) i;"
        ));
        let conditions = ["a = 5", "a = 5 and b = 'b5'", "a in (1, 2, 3) and b = 'b2'"];
        server.compare("t", &conditions);
        server.sql("alter extension ironbloom update;");
        let extension = "select extversion from pg_extension where extname = 'ironbloom';";
        assert_eq!(server.sql(extension), current, "from {version}");
        assert_eq!(server.sql(OBJECTS), new, "from {version}");
        server.compare("t", &conditions);
        server.sql("insert into t (a, b) values (5, 'b5'); select ironbloom_check('t_i');");
        server.compare("t", &conditions);
        let kept = "select bool_and(ironbloom_contains(filter, 'key' || i)) from f, generate_series(1, 100) i;";
        assert_eq!(server.sql(kept), "t", "from {version}");
        server.sql("drop table t, f;");
    }
}

#[test]
fn scripts_of_released_versions_never_change() {
    for &(name, hash) in RELEASED {
        let bytes = std::fs::read(crate_file("sql").join(name)).unwrap();
        assert_eq!(xxhash_rust::xxh3::xxh3_64(&bytes), hash, "{name} was edited: write an update");
    }
}

#[test]
fn the_extension_has_the_version_of_the_workspace() {
    let version = setting("../../Cargo.toml", "version");
    assert_eq!(setting("Cargo.toml", "version"), version);
    assert_eq!(setting("ironbloom.control", "default_version"), version);
    assert!(versions().contains(&version), "sql/ has no script that ends with {version}");
}
