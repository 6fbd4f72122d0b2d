//! Promise: the protocol between guard, store, files and followers never answers "absent" for a stored key, in whatever
//! order its steps are taken, within small bounds.
//!
//! [stateright] visits every state that a model of the protocol can reach. The model has no threads, bytes or hashes: two
//! keys, a store, the files, and a guard whose steps are those between which others can act. Its functions are named after
//! those that they stand for, so that the two can be read side by side:
//!
//! | model | code |
//! |---|---|
//! | `Guard::open`, `World::open` | `Core::open`, `checkpoint::find`, `first_filter`, `end_earlier_writes` |
//! | `begin_put`, `end_put`, `settle_copies`, `cancel`, `end_remove`, `note` | the same in `front/writes.rs` |
//! | `execute`, `end`, `give_up` | `put_all`, `remove_many` in `guard/writes.rs`; a [`Pending`] that is dropped |
//! | `name`, `claim`, `set_generation`, `store_generation` | `new_generation`, `name`, `claim` in `guard/maintenance.rs`; `Naming` of the servers |
//! | `freeze`, `seal`, `write_files` | `Core::checkpoint`; `generation.rs` says why in this order |
//! | `rebuild`, `begin_scan`, `visit`, `finish_scan` | `end_doubts`, `build`; `begin`, `exchange` in `front/mod.rs` |
//! | `ask`, `ask_store`, `learn` | `Front::ask`, `Core::ask`, `remember_absent` |
//! | `set_hearing`, `Step::Hear`, `prove` | `follow.rs` |
//! | `Doubts`, `settle_doubts`, `lapse` | `doubts.rs`, `lands_within` |
//! | `request`, `notice`, `lose_state` | `Naming::compare`, `notice_exchange`, `Front::lose_state` |
//!
//! What may be missed is what docs/store.md says: a key that a backup has brought back, until the guard has spoken to the
//! server ([`World::is_excused`]); a key that others have stored, while the message is on its way, before there is a
//! follower, or until the next proof of one that hears nothing. A server does not begin to report again by itself.
//!
//! Opening a guard is one step, and so is a request that gives the store a generation, carried out or not. Windows are not
//! in the model.
//!
//! **A model that no mistake could break would prove nothing.** Each rule of the protocol ([`Rules`]) has a test that
//! leaves it out, and in which the checker must find the stored key that is answered "absent".
//!
//! [stateright]: https://docs.rs/stateright
//! [`Pending`]: the put in progress of `front/writes.rs`
//! [`World::is_excused`]: world::World

mod guard;
mod world;

use stateright::{Checker as _, HasDiscoveries, Model as _};

/// What a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    /// PostgreSQL and Redis of an `only_writer`: writes name the generation, late ones are refused, connections compare.
    Server,
    /// S3 of an `only_writer`: repeats requests, late writes land within a known time.
    Bucket,
    /// A file that is locked: a write that has failed never lands.
    Embedded,
    /// A server that others write to, with a follower.
    Shared,
}

impl Store {
    fn compares(self) -> bool {
        self == Self::Server
    }

    fn is_alone(self) -> bool {
        self != Self::Shared
    }

    fn never_lands_late(self) -> bool {
        self == Self::Embedded
    }
}

/// How often each step may be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Limits {
    /// Puts and removes.
    writes: u8,
    /// Requests or answers that are lost.
    lost: u8,
    repeats: u8,
    lapses: u8,
    lookups: u8,
    rebuilds: u8,
    checkpoints: u8,
    crashes: u8,
    backups: u8,
    reverts: u8,
    /// Files that are damaged, lost, or replaced by older ones.
    files: u8,
    others: u8,
    silences: u8,
}

/// The rules of the protocol.
#[derive(Clone, Copy, Debug)]
struct Rules {
    generation_is_compared: bool,
    writes_name_first: bool,
    writes_are_conditional: bool,
    connections_compare: bool,
    dropped_writes_notice: bool,
    seals_check_the_filter: bool,
    files_wait_for_the_seal: bool,
    failures_doubt: bool,
    doubts_are_saved: bool,
    puts_in_progress_are_saved: bool,
    doubts_outlive_scans: bool,
    everything_in_doubt: bool,
    stores_admit_ignorance: bool,
    swaps_insert_puts: bool,
    removes_stay_with_their_filter: bool,
    shared_copies_stay: bool,
    puts_forget: bool,
    lookups_watch_puts: bool,
    scans_after_subscribing: bool,
    distrusts: bool,
    followers_prove: bool,
}

const ALL: Rules = Rules {
    generation_is_compared: true,
    writes_name_first: true,
    writes_are_conditional: true,
    connections_compare: true,
    dropped_writes_notice: true,
    seals_check_the_filter: true,
    files_wait_for_the_seal: true,
    failures_doubt: true,
    doubts_are_saved: true,
    puts_in_progress_are_saved: true,
    doubts_outlive_scans: true,
    everything_in_doubt: true,
    stores_admit_ignorance: true,
    swaps_insert_puts: true,
    removes_stay_with_their_filter: true,
    shared_copies_stay: true,
    puts_forget: true,
    lookups_watch_puts: true,
    scans_after_subscribing: true,
    distrusts: true,
    followers_prove: true,
};

/// One model.
#[derive(Clone, Copy, Debug)]
struct Setup {
    store: Store,
    /// The filter counts copies (cuckoo, d-left), or has bits.
    copies: bool,
    /// Both keys have the same fingerprint.
    one_fingerprint: bool,
    limits: Limits,
    keeps: Rules,
}

impl Setup {
    /// Copies are never removed where others write.
    fn keeps_copies(&self) -> bool {
        self.copies && !self.store.is_alone() && self.keeps.shared_copies_stay
    }
}

const NOTHING: Limits = Limits {
    writes: 0,
    lost: 0,
    repeats: 0,
    lapses: 0,
    lookups: 0,
    rebuilds: 0,
    checkpoints: 0,
    crashes: 0,
    backups: 0,
    reverts: 0,
    files: 0,
    others: 0,
    silences: 0,
};

/// Two puts or removes, one of which may be lost, among everything else that a server can do.
const SERVER: Limits = Limits {
    writes: 2,
    lost: 1,
    rebuilds: 1,
    checkpoints: 1,
    crashes: 1,
    backups: 1,
    reverts: 1,
    ..NOTHING
};

const BUCKET: Limits = Limits {
    writes: 2,
    lost: 1,
    repeats: 1,
    lapses: 1,
    rebuilds: 1,
    checkpoints: 1,
    crashes: 1,
    files: 1,
    ..NOTHING
};

const EMBEDDED: Limits = Limits {
    writes: 2,
    lookups: 1,
    rebuilds: 1,
    checkpoints: 1,
    crashes: 1,
    backups: 1,
    reverts: 1,
    ..NOTHING
};

const SHARED: Limits =
    Limits { writes: 1, lost: 1, lookups: 1, rebuilds: 1, others: 1, silences: 1, ..NOTHING };

/// A store that goes back to an older state.
const BACK: Limits = Limits { backups: 1, reverts: 1, ..NOTHING };

const HIDDEN: &str = "no stored key is answered absent";

/// Filters of bits and of copies, with keys that are told apart and with keys that are false positives of each other.
const FILTERS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

/// Every state is visited. How many there are.
fn check(store: Store, limits: Limits) -> usize {
    let states = FILTERS.map(|(copies, one_fingerprint)| {
        let setup = Setup { store, copies, one_fingerprint, limits, keeps: ALL };
        let checker = setup.checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
        let checker = checker.spawn_bfs().join();
        if let Some(path) = checker.discovery(HIDDEN) {
            panic!("{setup:?}: {:?}", path.into_actions());
        }
        checker.unique_state_count()
    });
    states.iter().sum()
}

/// The checker must find a stored key that is answered "absent" once this rule is left out.
fn counterexample(store: Store, limits: Limits, leave_out: impl Fn(&mut Rules)) {
    check(store, limits);
    let mut keeps = ALL;
    leave_out(&mut keeps);
    let found = FILTERS.iter().find_map(|&(copies, one_fingerprint)| {
        let setup = Setup { store, copies, one_fingerprint, limits, keeps };
        let checker = setup.checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
        checker.spawn_bfs().join().discovery(HIDDEN).map(|path| (setup, path.into_actions()))
    });
    let (setup, steps) = found.unwrap_or_else(|| panic!("{store:?}: nothing depends on it"));
    println!("copies: {}, one fingerprint: {}: {steps:?}", setup.copies, setup.one_fingerprint);
}

#[test]
fn a_server_of_one_writer_hides_no_key() {
    let states = check(Store::Server, SERVER);
    assert!(states > 1_000_000, "{states} states");
}

#[test]
fn a_bucket_hides_no_key() {
    let states = check(Store::Bucket, BUCKET);
    assert!(states > 1_000_000, "{states} states");
}

#[test]
fn a_file_hides_no_key() {
    let states = check(Store::Embedded, EMBEDDED);
    assert!(states > 1_000_000, "{states} states");
}

#[test]
fn a_server_that_others_write_to_hides_no_key_from_its_follower() {
    let states = check(Store::Shared, SHARED);
    assert!(states > 1_000_000, "{states} states");
}

#[test]
fn without_comparing_generations_an_old_checkpoint_hides_a_key() {
    let limits = Limits { writes: 1, checkpoints: 1, crashes: 1, ..NOTHING };
    for store in [Store::Server, Store::Bucket, Store::Embedded] {
        counterexample(store, limits, |rules| rules.generation_is_compared = false);
    }
}

#[test]
fn without_a_generation_before_the_first_write_a_checkpoint_hides_a_key() {
    let limits = Limits { writes: 1, checkpoints: 1, crashes: 1, ..NOTHING };
    counterexample(Store::Embedded, limits, |rules| rules.writes_name_first = false);
}

#[test]
fn without_the_condition_of_each_write_a_late_one_is_hidden() {
    let limits = Limits { writes: 1, crashes: 1, ..NOTHING };
    counterexample(Store::Server, limits, |rules| rules.writes_are_conditional = false);
}

#[test]
fn without_comparing_each_connection_a_store_that_goes_back_hides_a_key() {
    let limits = Limits { writes: 2, rebuilds: 1, checkpoints: 1, crashes: 1, ..BACK };
    counterexample(Store::Server, limits, |rules| rules.connections_compare = false);
}

#[test]
fn without_noticing_by_dropped_writes_a_store_that_goes_back_hides_a_key() {
    let limits = Limits { writes: 3, lost: 1, ..BACK };
    counterexample(Store::Server, limits, |rules| rules.dropped_writes_notice = false);
}

#[test]
fn without_looking_at_the_filter_once_it_is_sealed_a_checkpoint_hides_a_key() {
    let limits = Limits { writes: 2, rebuilds: 1, checkpoints: 1, crashes: 1, ..BACK };
    counterexample(Store::Server, limits, |rules| rules.seals_check_the_filter = false);
}

#[test]
fn without_doubts_about_failed_writes_a_late_one_is_hidden() {
    let limits = Limits { writes: 1, lost: 1, rebuilds: 1, ..NOTHING };
    counterexample(Store::Bucket, limits, |rules| rules.failures_doubt = false);
}

#[test]
fn without_doubts_in_the_files_a_late_write_is_hidden() {
    let limits = Limits { writes: 1, lost: 1, rebuilds: 1, checkpoints: 1, crashes: 1, ..NOTHING };
    counterexample(Store::Bucket, limits, |rules| rules.doubts_are_saved = false);
}

#[test]
fn without_puts_in_progress_in_the_files_a_late_write_is_hidden() {
    let limits = Limits { writes: 1, lost: 1, rebuilds: 1, checkpoints: 1, crashes: 1, ..NOTHING };
    counterexample(Store::Bucket, limits, |rules| rules.puts_in_progress_are_saved = false);
}

#[test]
fn without_doubts_that_outlive_scans_a_late_write_is_hidden() {
    let limits = Limits { writes: 1, lost: 1, rebuilds: 1, ..NOTHING };
    counterexample(Store::Bucket, limits, |rules| rules.doubts_outlive_scans = false);
}

#[test]
fn without_doubting_everything_a_lost_or_damaged_file_hides_a_key() {
    let limits = Limits { writes: 1, checkpoints: 1, crashes: 1, files: 1, ..NOTHING };
    counterexample(Store::Bucket, limits, |rules| rules.everything_in_doubt = false);
}

#[test]
fn without_stores_that_admit_ignorance_a_repeated_put_hides_another_key() {
    let limits = Limits { writes: 3, repeats: 1, ..NOTHING };
    counterexample(Store::Bucket, limits, |rules| rules.stores_admit_ignorance = false);
}

#[test]
fn without_puts_in_progress_in_a_new_filter_they_are_hidden() {
    let limits = Limits { writes: 1, rebuilds: 1, ..NOTHING };
    counterexample(Store::Embedded, limits, |rules| rules.swaps_insert_puts = false);
}

#[test]
fn without_removes_that_know_their_filter_another_key_is_hidden() {
    let limits = Limits { writes: 3, rebuilds: 1, ..NOTHING };
    counterexample(Store::Embedded, limits, |rules| rules.removes_stay_with_their_filter = false);
}

#[test]
fn without_puts_that_forget_what_was_remembered_a_key_is_hidden() {
    let limits = Limits { writes: 2, lookups: 1, ..NOTHING };
    counterexample(Store::Embedded, limits, |rules| rules.puts_forget = false);
}

#[test]
fn without_lookups_that_watch_puts_a_key_is_remembered_as_absent() {
    let limits = Limits { writes: 2, lookups: 1, ..NOTHING };
    counterexample(Store::Embedded, limits, |rules| rules.lookups_watch_puts = false);
}

#[test]
fn without_a_scan_after_the_subscription_a_key_of_others_is_hidden() {
    let limits = Limits { rebuilds: 1, others: 1, silences: 1, lost: 1, ..NOTHING };
    counterexample(Store::Shared, limits, |rules| rules.scans_after_subscribing = false);
}

#[test]
fn without_distrust_of_a_lost_subscription_a_key_of_others_is_hidden() {
    let limits = Limits { rebuilds: 1, others: 1, silences: 1, lost: 1, ..NOTHING };
    counterexample(Store::Shared, limits, |rules| rules.distrusts = false);
}

#[test]
fn without_proofs_a_follower_that_hears_nothing_hides_a_key() {
    let limits = Limits { rebuilds: 1, others: 1, silences: 1, lost: 1, ..NOTHING };
    counterexample(Store::Shared, limits, |rules| rules.followers_prove = false);
}

#[test]
fn without_copies_that_stay_where_others_write_a_key_of_theirs_is_hidden() {
    let limits = Limits { writes: 1, lost: 1, rebuilds: 1, others: 1, ..NOTHING };
    counterexample(Store::Shared, limits, |rules| rules.shared_copies_stay = false);
}

#[test]
fn without_waiting_for_the_seal_a_checkpoint_hides_a_key() {
    let limits = Limits { writes: 2, lost: 1, rebuilds: 1, checkpoints: 1, crashes: 1, ..BACK };
    counterexample(Store::Server, limits, |rules| rules.files_wait_for_the_seal = false);
}
