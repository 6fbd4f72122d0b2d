//! A streaming standby answers the same, during and after; promoted, it can be written to.

use std::process::Stdio;

use crate::common::{Server, as_user};

#[test]
fn a_standby_answers_the_same_and_can_be_promoted() {
    let primary = Server::start("standby");
    primary.sql(
        "create table t (id bigserial, a int, b int) with (fillfactor = 70);
         create index t_i on t using ironbloom (a, b) with (selectivity = 6);
         insert into t (a, b) select random() * 300, random() * 300 from generate_series(1, 20000);",
    );
    let standby = primary.beside("second");
    std::fs::create_dir(&standby.folder).unwrap();
    primary.own();
    let mut copy = as_user(&primary.programs.join("pg_basebackup"));
    copy.args(["-U", "postgres", "-c", "fast", "-X", "stream", "-h"]).arg(&primary.folder);
    let copied = copy
        .arg("-D")
        .arg(standby.folder.join("data"))
        .current_dir(&primary.folder)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
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
