//! Before a server is moved: what cannot move is named.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::redis;
use crate::program::Scratch;
use ironbloom_testing::module::{Server, module, programs};

/// A module with RedisBloom's other types, and a command that makes keys of them.
const SKETCHES: &str = r#"
typedef int (*Find)(const char *, void *);
typedef void *Ctx;
static struct { unsigned long long version; void *methods[32]; } methods = { 1, { 0 } };
static void *types[3];
static const char *names[3] = { "CMSk-TYPE", "TopK-TYPE", "TDIS-TYPE" };
static void *(*open_key)(Ctx, void *, int);
static void (*close_key)(void *);
static int (*set_value)(void *, void *, void *);
static int (*to_number)(void *, long long *);
static int (*reply)(Ctx, long long);

static int make(Ctx ctx, void **argv, int argc) {
    long long i = 0;
    void *key = open_key(ctx, argv[1], 3);
    (void)argc;
    to_number(argv[2], &i);
    set_value(key, types[i], types);
    close_key(key);
    return reply(ctx, 1);
}

int RedisModule_OnLoad(void **ctx, void **argv, int argc) {
    Find find = (Find)ctx[0];
    void (*attribs)(void *, const char *, int, int);
    void *(*create_type)(void *, const char *, int, void *);
    int (*create)(void *, const char *, void *, const char *, int, int, int);
    (void)argv;
    (void)argc;
    if (find("RedisModule_SetModuleAttribs", &attribs) || find("RedisModule_CreateDataType", &create_type) ||
        find("RedisModule_CreateCommand", &create) || find("RedisModule_OpenKey", &open_key) ||
        find("RedisModule_CloseKey", &close_key) || find("RedisModule_ModuleTypeSetValue", &set_value) ||
        find("RedisModule_StringToLongLong", &to_number) || find("RedisModule_ReplyWithLongLong", &reply))
        return 1;
    attribs(ctx, "sketches", 1, 1);
    for (int i = 0; i < 3; i++)
        if (!(types[i] = create_type(ctx, names[i], 0, &methods))) return 1;
    return create(ctx, "sketch.make", (void *)make, "write", 1, 1, 1);
}
"#;

/// `None` without a C compiler.
fn compile(folder: &Path) -> Option<PathBuf> {
    let (source, object) = (folder.join("sketches.c"), folder.join("sketches.so"));
    fs::write(&source, SKETCHES).unwrap();
    let mut compiler = Command::new("cc");
    let compiled = compiler.args(["-shared", "-fPIC", "-o"]).args([&object, &source]).status();
    compiled.is_ok_and(|status| status.success()).then_some(object)
}

#[test]
fn keys_that_cannot_move_are_named_before_anything_is_moved() {
    let own = module();
    for program in programs() {
        let options = ["--loadmodule", own.to_str().unwrap()];
        let Some(server) = Server::start_beside(&program, &options, compile) else {
            eprintln!(
                "SKIPPED: no C compiler, which makes the module with RedisBloom's other types"
            );
            return;
        };
        let (scratch, mut client) = (Scratch::new(), server.client());
        for command in
            ["BF.ADD seen x", "CF.ADD drawer x", "CF.RESERVE unused 100", "BF.ADD word:seen x"]
        {
            assert!(!client.text(command).starts_with('-'), "{command}");
        }
        let run = redis(&scratch, &server, &["dump", "--dry-run", "--json", "--key", "*seen"]);
        let all = run.succeeds().json();
        assert_eq!(all.as_array().unwrap().len(), 2, "{all}");

        for (i, key) in ["word:counts", "word:top", "word:times"].iter().enumerate() {
            assert_eq!(client.text(&format!("SKETCH.MAKE {key} {i}")), ":1\r\n");
        }
        let run = redis(&scratch, &server, &["dump", "--dry-run", "--json"]);
        assert_eq!(run.status, 1, "{}", run.stderr);
        let all = run.json();
        let found: Vec<(&str, &str, &str)> = all
            .as_array()
            .unwrap()
            .iter()
            .map(|one| ["key", "layout", "moves"].map(|name| one[name].as_str().unwrap()))
            .map(|[key, layout, moves]| (key, layout, moves))
            .collect();
        let expected = [
            ("drawer", "redisbloom cuckoo", "yes"),
            ("seen", "redisbloom", "yes"),
            ("unused", "redisbloom cuckoo", "no"),
            ("word:seen", "redisbloom", "yes"),
            ("word:counts", "count-min sketch", "no"),
            ("word:times", "t-digest", "no"),
            ("word:top", "top-k", "no"),
        ];
        assert_eq!(found, expected);
        assert!(all[4]["reason"].as_str().unwrap().contains("does not start"), "{all}");
        let table = redis(&scratch, &server, &["dump", "--dry-run"]);
        assert!(table.stderr.contains("cannot move: 4"), "{}", table.stderr);

        let records = redis(&scratch, &server, &["info", "--json"]).succeeds().json();
        let names: Vec<&str> =
            records.as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
        assert!(names.ends_with(&["word:counts", "word:times", "word:top"]), "{names:?}");
        assert!(records[6]["advice"].as_str().unwrap().contains("cannot move"), "{records}");
    }
}
