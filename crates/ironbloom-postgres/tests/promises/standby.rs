//! A streaming standby answers the same, during and after; promoted, it can be written to. So does a recovered backup.

use std::process::Stdio;

use crate::common::{Server, as_user};

/// A copy of a running server, made as backups are.
fn copy_of(primary: &Server, name: &str) -> Server {
    let copy = primary.beside(name);
    std::fs::create_dir(&copy.folder).unwrap();
    primary.own();
    let mut backup = as_user(&primary.programs.join("pg_basebackup"));
    backup.args(["-U", "postgres", "-c", "fast", "-X", "stream", "-h"]).arg(&primary.folder);
    let copied = backup
        .arg("-D")
        .arg(copy.folder.join("data"))
        .current_dir(&primary.folder)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    copy
}

#[test]
fn a_standby_answers_the_same_and_can_be_promoted() {
    let primary = Server::start("standby");
    primary.sql(
        "create table t (id bigserial, a int, b int) with (fillfactor = 70);
         create index t_i on t using ironbloom (a, b) with (selectivity = 6);
         insert into t (a, b) select random() * 300, random() * 300 from generate_series(1, 20000);",
    );
    let standby = copy_of(&primary, "second");
    // Not by its option -R: programs of a newer version write settings there that older servers do not know.
    std::fs::write(standby.folder.join("data/standby.signal"), "").unwrap();
    standby.configure(&format!(
        "hot_standby_feedback = on\nprimary_conninfo = 'host={} user=postgres'\n",
        primary.folder.display()
    ));
    standby.resume();
    let work = "insert into t (a, b) select random() * 300, random() * 300 from generate_series(1, 3000);
        update t set a = a + 1 where b = (random() * 300)::int; delete from t where a = (random() * 300)::int;
        vacuum t; select ironbloom_seal('t_i');\n";
    let writer = primary.session(&work.repeat(12));
    let mut compared = 0;
    for i in 0..25 {
        compared += standby.compare(
            "t",
            &[
                &format!("a = {}", i * 11),
                &format!("a = {} and b = {}", i, i * 7),
                "b in (1, 2, 3)",
            ],
        );
    }
    assert_eq!(compared, 75);
    let done = writer.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let sums = "select count(*), sum(a), sum(b) from t;";
    ironbloom_testing::wait_until(|| standby.sql(sums) == primary.sql(sums));
    standby.sql("select ironbloom_check('t_i'), ironbloom_check('t_i', deep => true);");
    let seen = "select i.index, i.advice, v.cells > 0, v.problem from ironbloom_indexes i, ironbloom_verify(i.index, true) v;";
    assert_eq!(standby.sql(seen), "t_i||t|");
    let refused = standby.try_sql("select ironbloom_seal('t_i');").unwrap_err();
    assert!(refused.contains("recovery"), "{refused}");
    primary.stop();
    assert!(standby.control(&["promote"]));
    ironbloom_testing::wait_until(|| standby.sql("select pg_is_in_recovery();") == "f");
    standby.sql(&work.repeat(2));
    standby.sql("select ironbloom_check('t_i');");
    assert_eq!(standby.compare("t", &["a = 5", "a = 5 and b = 9"]), 2);
    standby.stop();
}

#[test]
fn a_backup_recovered_to_a_point_in_time_answers_as_the_server_did_then() {
    let primary = Server::start("recovery");
    let archive = primary.folder.join("archive");
    std::fs::create_dir(&archive).unwrap();
    primary.stop();
    primary.configure(&format!(
        "archive_mode = on\narchive_command = 'cp \"%p\" \"{}/%f\"'\n",
        archive.display()
    ));
    primary.resume();
    primary.sql(
        "create table t (id bigserial, a int, b int) with (fillfactor = 70);
         create index t_i on t using ironbloom (a, b) with (selectivity = 6);
         insert into t (a, b) select random() * 300, random() * 300 from generate_series(1, 20000);",
    );
    let copy = copy_of(&primary, "copy");
    let work = "insert into t (a, b) select random() * 300, random() * 300 from generate_series(1, 3000);
        update t set a = a + 1 where b = (random() * 300)::int; delete from t where a = (random() * 300)::int; vacuum t;\n";
    let answers = "set enable_seqscan = off; select count(*), sum(id) from t where a = 7; select count(*), sum(id) from t where a = 9 and b = 11;
        select count(*), sum(id), sum(a), sum(b) from t;";
    primary.sql(&work.repeat(3));
    let then = primary.sql(answers);
    primary.sql("select pg_create_restore_point('here');");
    primary.sql(&work.repeat(3));
    assert_ne!(primary.sql(answers), then);
    let last = primary.sql("select pg_walfile_name(pg_current_wal_lsn()); select pg_switch_wal();");
    let last = archive.join(last.lines().next().unwrap());
    ironbloom_testing::wait_until(|| last.exists());
    primary.stop();
    std::fs::write(copy.folder.join("data/recovery.signal"), "").unwrap();
    copy.configure(&format!(
        "archive_mode = off\nrestore_command = 'cp \"{}/%f\" \"%p\"'\nrecovery_target_name = 'here'\nrecovery_target_action = 'promote'\n",
        archive.display()
    ));
    copy.resume();
    ironbloom_testing::wait_until(|| copy.sql("select pg_is_in_recovery();") == "f");
    assert_eq!(copy.sql(answers), then);
    copy.sql("select ironbloom_check('t_i', true);");
    copy.sql(&work.repeat(2));
    copy.sql("select ironbloom_check('t_i');");
    copy.compare("t", &["a = 5", "a = 5 and b = 9"]);
    copy.stop();
}
