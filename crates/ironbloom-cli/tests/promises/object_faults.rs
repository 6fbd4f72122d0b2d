//! Every request to a store may fail once: nothing fails because of that, and nothing of a failed change stays.

use std::sync::Arc;
use std::time::Duration;

use ironbloom_index::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use ironbloom_testing::s3::Fault;
use parquet::arrow::ArrowWriter;
use serde_json::json;

use crate::objects::{Cloud, INDEX, Run, run, three_tables};

/// Runs a command once for each of its requests, which fails in one way or another, after `reset` has made the bucket what it was.
/// Every run ends as the first one did, in which all went well, and leaves the same objects.
fn with_every_request_failing_once(cloud: &Cloud, args: &[&str], reset: &dyn Fn()) {
    let once = || {
        reset();
        cloud.forget();
        cloud.server.proxy.take_log();
        let Run { status, stdout, stderr } = run(&mut cloud.command(args.iter().copied()));
        // How long it took is said, too.
        let stdout = stdout.split(" in ").next().unwrap_or_default().to_owned();
        (status, stdout, stderr, cloud.server.keys())
    };
    let (status, stdout, stderr, keys) = once();
    assert_eq!(status, 0, "{args:?}: {stderr}");
    let requests = cloud.server.proxy.take_log().len();
    assert!(requests > 0, "{args:?}");
    for number in 0..requests {
        let passing = [Fault::Status(503), Fault::Reset, Fault::HalfAnswer][number % 3];
        for fault in [Fault::LostAnswer, passing] {
            cloud.server.proxy.fail_at(number, fault);
            let (now, shown, said, left) = once();
            cloud.server.proxy.clear();
            let what = format!("{args:?}, request {number} of {requests}, {fault:?}: {said}");
            assert_eq!(now, 0, "{what}");
            assert_eq!(shown, stdout, "{what}");
            assert_eq!(left, keys, "{what}");
        }
    }
}

#[test]
fn every_request_of_a_build_may_fail_once_and_no_probe_stays() {
    let Some(cloud) = Cloud::start() else { return };
    cloud.put_tables(2, 300);
    let build = ["index", "build", "s3://bucket/t/", "-o", INDEX];
    with_every_request_failing_once(&cloud, &build, &|| cloud.server.delete("t/t.ibx"));
    assert_eq!(cloud.server.keys(), ["t/00.csv", "t/01.csv", "t/t.ibx"]);
    assert_eq!(cloud.works(["index", "find", INDEX, "id = 301", "--count"]).trim(), "1");
}

#[test]
fn every_request_of_a_change_may_fail_once() {
    let Some(cloud) = three_tables() else { return };
    let before = cloud.server.get("t/t.ibx");
    cloud.server.put("more.csv", b"id,kind,name\n9999,1,x\n");
    let changes: [&[&str]; 3] = [
        &["index", "append", INDEX, "s3://bucket/more.csv"],
        &["index", "drop", INDEX, "00.csv"],
        &["index", "compact", INDEX],
    ];
    for change in changes {
        with_every_request_failing_once(&cloud, change, &|| cloud.server.put("t/t.ibx", &before));
    }
}

/// A Parquet file of one column.
fn parquet(ids: std::ops::Range<i64>) -> Vec<u8> {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// Puts a file, and the commit that adds it to the Delta table `lake`, after the first one with the head of the log.
fn add_to_lake(cloud: &Cloud, version: i64) {
    let name = format!("{version}.parquet");
    let bytes = parquet(version * 100..version * 100 + 100);
    let add = json!({ "path": name, "size": bytes.len(), "partitionValues": {}, "modificationTime": 1, "dataChange": true });
    let fields = json!([{ "name": "id", "type": "long", "nullable": true, "metadata": {} }]);
    let schema = json!({ "type": "struct", "fields": fields }).to_string();
    let format = json!({ "provider": "parquet", "options": {} });
    let head = [
        json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } }),
        json!({ "metaData": { "id": "5f1c", "format": format, "schemaString": schema, "partitionColumns": [], "configuration": {} } }),
    ];
    let actions = head.into_iter().filter(|_| version == 0).chain([json!({ "add": add })]);
    let lines: String = actions.map(|action| format!("{action}\n")).collect();
    cloud.server.put(&format!("lake/{name}"), &bytes);
    cloud.server.put(&format!("lake/_delta_log/{version:020}.json"), lines.as_bytes());
}

#[test]
fn every_request_of_a_refresh_may_fail_once() {
    let Some(cloud) = Cloud::start() else { return };
    add_to_lake(&cloud, 0);
    cloud.works(["index", "build", "--delta", "s3://bucket/lake", "-o", INDEX]);
    let before = cloud.server.get("t/t.ibx");
    add_to_lake(&cloud, 1);
    let refresh = ["index", "refresh", INDEX];
    with_every_request_failing_once(&cloud, &refresh, &|| cloud.server.put("t/t.ibx", &before));
    assert_eq!(cloud.works(["index", "find", INDEX, "id in (5, 105)", "--count"]).trim(), "2");
    let said = cloud.run(["index", "refresh", INDEX, "--check"]);
    assert_eq!(said.status, 1, "{}{}", said.stdout, said.stderr);
}

#[test]
fn every_request_of_a_question_may_fail_once() {
    let Some(cloud) = three_tables() else { return };
    let questions: [&[&str]; 3] = [
        &["index", "find", INDEX, "kind = 38", "--format", "csv"],
        &["index", "info", INDEX],
        &["index", "verify", INDEX, "--tables"],
    ];
    for question in questions {
        with_every_request_failing_once(&cloud, question, &|| {});
    }
}

#[test]
fn small_tables_of_a_bucket_are_read_by_many_requests_at_a_time() {
    let Some(cloud) = Cloud::start() else { return };
    cloud.put_tables(24, 50);
    cloud.server.proxy.set_latency(Duration::from_millis(50));
    cloud.server.proxy.take_most_open();
    cloud.works(["index", "build", "s3://bucket/t/", "-o", INDEX, "--threads", "1"]);
    let most = cloud.server.proxy.take_most_open();
    assert!(most >= 6, "at most {most} at a time");
}

/// A store that cannot be written to is noticed before the tables are read.
#[test]
fn a_store_without_conditions_is_refused_before_any_table_is_read() {
    let Some(cloud) = Cloud::start() else { return };
    cloud.put_tables(2, 300);
    cloud.server.proxy.ignore_conditions(true);
    cloud.server.proxy.take_log();
    let refused = cloud.run(["index", "build", "s3://bucket/t/", "-o", INDEX]);
    assert_eq!(refused.status, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("no conditional puts"), "{}", refused.stderr);
    let read = cloud.server.proxy.take_log();
    assert!(!read.iter().any(|request| request.contains(".csv")), "{read:?}");
    assert_eq!(cloud.server.keys(), ["t/00.csv", "t/01.csv"]);
}
