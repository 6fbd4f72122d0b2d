//! A secret in a name is a secret: no password, signature or query of a URL is shown or stored by any command.

use crate::program::Scratch;

const SECRET: &str = "hunter2";

/// URLs that hold it.
const URLS: [&str; 12] = [
    "s3://bucket/k.ibx?X-Amz-Credential=a&X-Amz-Signature=hunter2",
    "s3://bucket/k.ibx?versionId=hunter2",
    "s3://KEY:hunter2@bucket/k.ibx",
    "s3://KEY:hun/hunter2@bucket/k.ibx",
    "gs://bucket/k.ibx?X-Goog-Signature=hunter2",
    "az://container/k.ibx?sv=2024-01-01&sig=hunter2",
    "az://container?sig=hunter2",
    "abfss://container@account.dfs.core.windows.net/k.ibx?sig=hunter2",
    "https://127.0.0.1:1/k.ibx?hunter2",
    "https://me:hunter2@127.0.0.1:1/k.ibx",
    "hdfs://host/k.ibx?token=hunter2",
    "s3:/bucket/k.ibx?X-Amz-Signature=hunter2",
];

/// Every command that takes the name of a file, with the name as `@`.
const COMMANDS: [&str; 34] = [
    "index build @ -o t.ibx",
    "index build t.csv -o @",
    "index build --delta @ -o t.ibx",
    "index build --iceberg @ -o t.ibx",
    "index find @ id=1",
    "index find t.ibx --values @ --column id",
    "index append @ t.csv",
    "index append t.ibx @",
    "index drop t.ibx @",
    "index drop @ t.csv",
    "index refresh @",
    "index refresh t.ibx --table @",
    "index compact @",
    "index info @",
    "index info @ --json",
    "index verify @ --tables",
    "index info t.ibx @",
    "index --unknown @",
    "index find t.ibx id=1 --format @",
    "build -o @ t.csv",
    "build -o t.ibf @",
    "check @ t.csv",
    "check k.ibf @",
    "add @ t.csv",
    "remove @ t.csv",
    "merge -o t.ibf @ k.ibf",
    "info @",
    "verify @",
    "convert @ -o x.ibf",
    "parquet blooms @",
    "dedup @",
    "dedup t.csv --state @",
    "redis info --url @",
    "redis load k.ibf --key k --url @",
];

#[test]
fn no_command_shows_or_stores_a_secret_of_a_url() {
    let scratch = Scratch::new();
    scratch.write("t.csv", "id,name\n1,a\n2,b\n");
    scratch.build("k.ibf", [], "a\nb\n");
    scratch.run(["index", "build", "t.csv", "-o", "t.ibx"]).succeeds();
    for command in COMMANDS {
        for url in URLS {
            let words = command.split(' ').map(|word| if word == "@" { url } else { word });
            let mut program = scratch.command(words);
            program.env("IRONBLOOM_RETRY_SECONDS", "0").env("AWS_EC2_METADATA_DISABLED", "true");
            program.env("IRONBLOOM_CACHE_DIR", scratch.path("cache"));
            let output = program.stdin(std::process::Stdio::null()).output().unwrap();
            let shown = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
            let leaks = shown.iter().any(|text| text.contains(SECRET));
            assert!(!leaks, "{command} of {url}: {shown:?}");
            assert_ne!(output.status.code(), Some(0), "{command} of {url}: {shown:?}");
        }
    }
    for (name, content) in scratch.contents() {
        let stored = content.is_some_and(|content| {
            content.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
        });
        assert!(!stored && !name.contains(SECRET), "{name}");
    }
}

/// A question mark is also a character of names and patterns in a bucket.
#[test]
fn patterns_of_a_bucket_are_no_queries() {
    let scratch = Scratch::new();
    let mut program =
        scratch.command(["index", "build", "s3://bucket/2024-??/*.csv", "-o", "t.ibx"]);
    program.env("IRONBLOOM_RETRY_SECONDS", "0").env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    program.env("AWS_ALLOW_HTTP", "true").env("AWS_ACCESS_KEY_ID", "k");
    program.env("AWS_SECRET_ACCESS_KEY", "k").env("AWS_REGION", "us-east-1");
    let output = program.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("query"), "{said}");
}
