//! Sentinels: the master is found, and a load outlives it.
//!
//! Real ones: a master, its replicas and three Sentinels. What a person would see at last is checked: that every key that
//! was loaded is in the filter on the server that is the master then.

use std::path::Path;
use std::process::Stdio;

use super::{redis_with, refused};
use crate::program::{Run, Scratch, lines};
use ironbloom_testing::certificates::Authority;
use ironbloom_testing::free_port;
use ironbloom_testing::module::{Server, programs, replica_of};
use ironbloom_testing::sentinel::Sentinel;
use ironbloom_testing::tls::{Secured, TlsFiles, tls_programs};
use ironbloom_testing::{Running, Signal, Start as _, signal, wait_until};

/// A master, its replicas, and three Sentinels that know all of them.
struct Group {
    servers: Vec<Server>,
    sentinels: Vec<Sentinel>,
}

impl Group {
    fn start(program: &Path, replicas: usize, down_after: u32) -> Self {
        let options = ["--repl-diskless-sync-delay", "0"];
        let mut servers = vec![Server::start(program, &options)];
        for _ in 0..replicas {
            servers.push(replica_of(&servers[0], program, &options));
        }
        let sentinel = |_| Sentinel::start(program, servers[0].port, down_after, &[]);
        let sentinels: Vec<Sentinel> = (0..3).map(sentinel).collect();
        for sentinel in &sentinels {
            wait_until(|| {
                let all = sentinel.ask("SENTINEL REPLICAS mymaster");
                all.matches("master-link-status\r\n$2\r\nok\r\n").count() == replicas
                    && sentinel
                        .ask("SENTINEL SENTINELS mymaster")
                        .matches("$5\r\nrunid\r\n")
                        .count()
                        == 2
            });
        }
        Self { servers, sentinels }
    }

    fn url(&self) -> String {
        let hosts: Vec<String> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        format!("redis+sentinel://{}/mymaster", hosts.join(","))
    }

    /// Which server the Sentinels call the master.
    fn master(&self) -> usize {
        let reply = self.sentinels[0].ask("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster");
        let port: u16 = reply.trim().rsplit_once('\n').unwrap().1.parse().unwrap();
        self.servers.iter().position(|server| server.port == port).unwrap()
    }

    /// A load of `filter` to a key, which is on its way.
    fn load(&self, scratch: &Scratch, filter: &str, key: &str, options: &[&str]) -> Running {
        let url = self.url();
        let mut command = scratch
            .command([&["redis", "load", filter, "--key", key, "--url", &url], options].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).start()
    }

    /// The same, held up in its middle: writes wait.
    fn load_held_up(&self, scratch: &Scratch, key: &str, options: &[&str]) -> Running {
        let mut client = self.servers[self.master()].client();
        for _ in 0..20 {
            let mut child = self.load(scratch, "big.ibf", key, options);
            while child.try_wait().unwrap().is_none() {
                if client.text("KEYS *loading*") == "*0\r\n" {
                    continue;
                }
                assert_eq!(client.text("CLIENT PAUSE 60000 WRITE"), "+OK\r\n");
                if client.text("KEYS *loading*") != "*0\r\n" {
                    return child;
                }
                client.text("CLIENT UNPAUSE");
            }
            client.text(&format!("DEL {key}")); // it was faster
        }
        panic!("none of twenty loads was caught in the act");
    }

    /// That all keys are in the filter that the master has, and nothing is left of the load.
    fn assert_loaded(&self, scratch: &Scratch, key: &str) {
        let asked = lines(0..KEYS);
        let run = redis_with(scratch, &self.url(), &["check", "--key", key], &asked).succeeds();
        assert!(run.text() == asked, "{key}: {} of {KEYS}", run.text().lines().count());
        let mut client = self.servers[self.master()].client();
        assert_eq!(client.text(&format!("TTL {key}")), ":-1\r\n");
        assert_eq!(client.text(&format!("KEYS {{{key}}}:load*")), "*0\r\n");
    }
}

/// Keys of the filters that are loaded.
const KEYS: u64 = 20_000;

/// A scratch folder with filters of this many keys; all but the small one are larger than what is on its way at any moment.
fn filters() -> Scratch {
    let scratch = Scratch::new();
    scratch.build("big.ibf", ["--kind", "blocked", "--capacity", "40M"], &lines(0..KEYS));
    scratch.build("medium.ibf", ["--kind", "blocked", "--capacity", "16M"], &lines(0..KEYS));
    scratch.build("small.ibf", ["--kind", "blocked"], &lines(0..KEYS));
    scratch
}

#[test]
fn a_load_goes_on_at_a_replica_that_is_promoted_meanwhile() {
    for program in programs().into_iter().take(1) {
        let scratch = filters();
        let mut group = Group::start(&program, 2, 1000);
        // On command, with the old master alive: it confirms further chunks until it learns of it.
        let old = group.master();
        let child = group.load_held_up(&scratch, "a", &[]);
        assert_eq!(group.sentinels[1].ask("SENTINEL FAILOVER mymaster"), "+OK\r\n");
        wait_until(|| group.master() != old);
        group.servers[old].client().text("CLIENT UNPAUSE");
        let run = Run::from(child.wait_with_output().unwrap()).succeeds();
        assert!(run.stderr.contains("Asking the Sentinels for the master"), "{}", run.stderr);
        group.assert_loaded(&scratch, "a");

        // The master dies.
        let old = group.master();
        let mut client = group.servers[old].client();
        wait_until(|| client.info("replication", "connected_slaves") == "2");
        let child = group.load_held_up(&scratch, "b", &["--json"]);
        group.servers[old].kill();
        let run = Run::from(child.wait_with_output().unwrap()).succeeds();
        assert!(run.stderr.contains("Asking the Sentinels for the master"), "{}", run.stderr);
        assert_eq!(run.json()["size"].as_u64(), Some(scratch.read("big.ibf").len() as u64 + 24));
        group.assert_loaded(&scratch, "a");
        group.assert_loaded(&scratch, "b");

        // All of them die: an error, after a while.
        let child = group.load_held_up(&scratch, "c", &["--failover-wait", "2"]);
        group.servers.iter_mut().for_each(Server::kill);
        let run = Run::from(child.wait_with_output().unwrap());
        let note = run.stderr.split_once("error: ").unwrap().0.to_owned();
        let run = Run { stderr: run.stderr[note.len()..].to_owned(), ..run };
        refused(
            &run,
            "c: not loaded; the master was lost once, and none has replaced it",
            "--failover-wait",
        );
    }
}

fn process_of(server: &Server) -> u32 {
    server.client().info("server", "process_id").parse().unwrap()
}

/// Does this to the master while its replicas are stopped.
fn while_replicas_stop<T>(group: &Group, work: impl FnOnce(&Server) -> T) -> T {
    let master = group.master();
    let mut others: Vec<&Server> = group.servers.iter().collect();
    let master = others.remove(master);
    let stopped: Vec<u32> = others.into_iter().map(process_of).collect();
    stopped.iter().for_each(|&process| signal(process, Signal::STOP).unwrap());
    let done = work(master);
    stopped.iter().for_each(|&process| signal(process, Signal::CONT).unwrap());
    done
}

/// A load to a master that has confirmed all of it when it is killed, and its replicas nothing.
fn load_that_only_the_old_master_has(group: &Group, scratch: &Scratch, filter: &str) -> Run {
    let child = while_replicas_stop(group, |master| {
        let child = group.load(scratch, filter, "k", &[]);
        let mut client = master.client();
        wait_until(|| client.text("EXISTS k") == ":1\r\n");
        signal(process_of(master), Signal::KILL).unwrap();
        child
    });
    Run::from(child.wait_with_output().unwrap())
}

#[test]
fn a_filter_that_only_the_lost_master_had_is_sent_again() {
    for program in programs().into_iter().take(1) {
        let scratch = filters();
        let group = Group::start(&program, 2, 4000);
        let run = load_that_only_the_old_master_has(&group, &scratch, "medium.ibf").succeeds();
        assert!(run.stderr.contains("Asking the Sentinels for the master"), "{}", run.stderr);
        group.assert_loaded(&scratch, "k");
    }
}

#[test]
fn a_filter_that_the_new_master_has_got_is_not_taken_for_a_stranger() {
    for program in programs().into_iter().take(1) {
        let scratch = filters();
        let group = Group::start(&program, 1, 4000);
        let run = while_replicas_stop(&group, |_| {
            let load = ["load", "small.ibf", "--key", "other", "--failover-wait", "1"];
            redis_with(&scratch, &group.url(), &load, "")
        });
        let master = format!("redis://127.0.0.1:{} (master \"mymaster\")", group.servers[0].port);
        let message = format!(
            "other: loaded to {master}, but it could be lost with this master: confirmed by 0 of 1 replica"
        );
        refused(&run, &message, "SENTINEL REPLICAS mymaster");
        // So small that all of it is on its way to the replica when the master dies.
        let run = load_that_only_the_old_master_has(&group, &scratch, "small.ibf").succeeds();
        assert!(run.stderr.contains("Asking the Sentinels for the master"), "{}", run.stderr);
        assert!(run.stderr.contains("no replica is connected to it"), "{}", run.stderr);
        group.assert_loaded(&scratch, "k");
        let run = redis_with(&scratch, &group.url(), &["load", "small.ibf", "--key", "k"], "");
        refused(&run, "k: this key exists already", "--replace");
    }
}

#[test]
fn sentinels_have_passwords_of_their_own_and_speak_tls() {
    for program in tls_programs() {
        let scratch = filters();
        Authority::new(&scratch, "ca.pem").sign(&scratch, "here", &["127.0.0.1"]);
        let server = Secured::start(&program, &scratch, "here", &["--tls-auth-clients", "no"]);
        assert_eq!(server.server.client().text("CONFIG SET requirepass sesame"), "+OK\r\n");
        let tls_port = free_port();
        let mut of_sentinel = TlsFiles::named(&scratch, "here").options(tls_port);
        let others = ["--tls-auth-clients", "no", "--requirepass", "open"];
        of_sentinel.extend(others.map(str::to_owned));
        let sentinel = Sentinel::start(&program, server.tls_port, 60_000, &of_sentinel);
        let nobody = free_port();
        let hosts = format!("127.0.0.1:{nobody},127.0.0.1:{tls_port}");
        let url = format!("rediss+sentinel://:sesame@{hosts}/mymaster/0?sentinel_password=open");
        let run = |url: &str, args: &[&str], stdin: &str| {
            redis_with(&scratch, url, &[args, &["--cacert", "ca.pem"]].concat(), stdin)
        };
        run(&url, &["load", "small.ibf", "--key", "k"], "").succeeds();
        assert_eq!(run(&url, &["check", "--key", "k"], "1\n2\n").succeeds().text(), "1\n2\n");
        assert_eq!(
            run(&url, &["info", "--json"], "").succeeds().json().as_array().unwrap().len(),
            1
        );
        run(&url, &["dump", "--key", "k", "-o", "copy.ibf"], "").succeeds();
        assert!(scratch.read("copy.ibf") == scratch.read("small.ibf"));

        let one = format!("127.0.0.1:{tls_port}");
        let info = |rest: &str| run(&format!("rediss+sentinel://{rest}"), &["info"], "");
        for password in ["", "?sentinel_password=swordfish"] {
            let refusal = info(&format!(":sesame@{one}/mymaster{password}"));
            let message = format!("Sentinel {one}: does not accept this user and password");
            refused(&refusal, &message, "sentinel_password");
            assert!(!refusal.stderr.contains("swordfish"), "{}", refusal.stderr);
        }
        let refusal = info(&format!("{one}/mymaster?sentinel_password=open"));
        let master = format!("rediss://127.0.0.1:{} (master \"mymaster\")", server.tls_port);
        refused(&refusal, &format!("{master}: the server does not accept this user"), "password@");
        let refusal = info(&format!(":sesame@{one}/other?sentinel_password=open"));
        refused(
            &refusal,
            &format!("Sentinel {one}: knows no master \"other\""),
            "it knows mymaster",
        );
        let refusal = info(&format!("127.0.0.1:{nobody}/mymaster"));
        refused(&refusal, &format!("Sentinel 127.0.0.1:{nobody}: "), "running");
        let here = format!("127.0.0.1:{}", server.tls_port);
        let refusal = info(&format!(":sesame@{here}/mymaster?sentinel_password=sesame"));
        refused(&refusal, &format!("Sentinel {here}: is a server, not a Sentinel"), "26379");
        for rest in [one.clone(), format!("{one}/"), format!("{one}/mymaster?password=swordfish")] {
            let refusal = info(&rest);
            let message = "--url \"rediss+sentinel://127.0.0.1:";
            refused(&refusal, message, "redis+sentinel://[user:password@]host");
            assert!(!refusal.stderr.contains("swordfish"), "{}", refusal.stderr);
        }
        let asked = format!("redis://:open@127.0.0.1:{}", sentinel.port);
        let refusal = redis_with(&scratch, &asked, &["check", "--key", "k"], "1\n");
        refused(&refusal, "redis://127.0.0.1:", "redis+sentinel://host:port/NAME");
    }
}
