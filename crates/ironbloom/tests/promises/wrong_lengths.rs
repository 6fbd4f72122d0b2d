//! A batch with more keys than places for answers, or fewer, is a panic that names both lengths:
//! never a stale answer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::{FILTERS, hashes};
use ironbloom::multi::{Joint, ParallelBloom};
use ironbloom::*;

/// Returns the message of the panic that `work` must cause.
fn panic_of(what: &str, work: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(work)).expect_err(what);
    *panic.downcast::<String>().expect("a message with numbers")
}

fn assert_names(message: &str, lengths: [usize; 2], what: &str) {
    let words: Vec<&str> = message.split([' ', ',', ':']).collect();
    let named = |length: usize| words.contains(&length.to_string().as_str());
    assert!(lengths.into_iter().all(named), "{what}: {message}");
}

/// Every kind, as read from a file, through the common trait.
fn filters() -> Vec<AnyFilter> {
    let inserted = hashes(1, 100);
    let mut all: Vec<AnyFilter> =
        FILTERS.iter().map(|config| (config.build)(&inserted, 100, 0.01)).collect();
    all.push((FILTERS[0].build)(&hashes(1, 2_000_000), 2_000_000, 1e-4)); // beyond the cache: another loop
    all.push(AnyFilter::Bitmap(Bitmap::new(1000).unwrap()));
    all.push(AnyFilter::Joint(Joint::with_rate(100, 0.01, ["a", "b"]).unwrap()));
    all.push(AnyFilter::Parallel(ParallelBloom::with_rate(100, 0.01, ["a", "b"]).unwrap()));
    all
}

const LENGTHS: [[usize; 2]; 6] = [[1, 4], [4, 1], [0, 1], [1, 0], [2000, 1999], [2000, 2001]];

#[test]
fn answers_of_another_number_than_the_questions_are_a_panic_in_every_kind() {
    for filter in filters() {
        for [asked, answers] in LENGTHS {
            let (asked_hashes, mut found) = (hashes(3, asked as u64), vec![true; answers]);
            let what = format!("{}: {asked} hashes, {answers} answers", filter.kind());
            let by_hash = || filter.contains_hashes(&asked_hashes, &mut found);
            assert_names(&panic_of(&what, by_hash), [asked, answers], &what);
            if !matches!(filter, AnyFilter::Joint(_) | AnyFilter::Parallel(_)) {
                let keys: Vec<u32> = (0..asked as u32).collect();
                let by_key = || filter.contains_keys(&keys, &mut found);
                assert_names(&panic_of(&what, by_key), [asked, answers], &what);
            }
        }
    }
}

#[test]
fn a_mask_of_another_length_than_a_word_for_64_questions_is_a_panic() {
    for filter in filters() {
        for [asked, words] in [[0, 1], [1, 0], [1, 2], [64, 2], [65, 1], [2000, 31], [2000, 33]] {
            let mut mask = vec![0; words];
            let what = format!("{}: {asked} hashes, {words} words", filter.kind());
            let asked_hashes = hashes(3, asked as u64);
            let by_hash = || filter.contains_hashes_mask(&asked_hashes, &mut mask);
            assert_names(&panic_of(&what, by_hash), [asked, words], &what);
        }
    }
    let filter = BlockedBloom::with_rate(100, 0.01).unwrap();
    let by_key = || filter.contains_keys_mask(&["alice", "bob"], &mut [0; 2]);
    assert_names(&panic_of("two words", by_key), [2, 1], "two words for two keys");
}

/// Each kind's own method, and those of the atomic ones, which are not stored in files.
#[test]
fn the_methods_of_the_kinds_themselves_refuse_wrong_lengths() {
    let asked = hashes(3, 5);
    macro_rules! check {
        ($filter:expr) => {{
            let filter = $filter;
            let message = panic_of("3 of 5", || filter.contains_hashes(&asked, &mut [true; 3]));
            assert_names(&message, [5, 3], stringify!($filter));
        }};
    }
    check!(Bloom::with_rate(100, 0.01).unwrap());
    check!(BlockedBloom::with_rate(100, 0.01).unwrap());
    check!(SplitBlock::with_rate(100, 0.01).unwrap());
    check!(CountingBloom::with_rate(100, 0.01).unwrap());
    check!(DLeft::with_rate(100, 0.01).unwrap());
    check!(Cuckoo::with_rate(100, 0.01).unwrap());
    check!(BinaryFuse::from_keys([1, 2, 3], 0.01).unwrap());
    check!(BinaryFuse::from_keys(["none"; 0], 0.01).unwrap());
    check!(Scalable::with_rate(100, 0.01).unwrap());
    check!(Windowed::for_keys(100, 0.01).unwrap());
    check!(AtomicBloom::with_rate(100, 0.01).unwrap());
    check!(AtomicBlockedBloom::with_rate(100, 0.01).unwrap());
    let bitmap = Bitmap::new(10).unwrap();
    let message = panic_of("bitmap", || bitmap.contains_all(&[1, 2], &mut [true; 4]));
    assert_names(&message, [2, 4], "bitmap");
}

#[test]
fn inserting_with_a_place_for_each_answer_is_refused_before_anything_is_inserted() {
    let some = hashes(3, 5);
    let mut scalable = Scalable::with_rate(100, 0.01).unwrap();
    let mut windowed = Windowed::for_keys(100, 0.01).unwrap();
    for places in [0, 3, 6] {
        let mut new = vec![true; places];
        let message = panic_of("scalable", || scalable.insert_each(&some, &mut new).unwrap());
        assert_names(&message, [5, places], "scalable");
        let message = panic_of("windowed", || windowed.insert_each(&some, &mut new));
        assert_names(&message, [5, places], "windowed");
    }
    assert!(scalable.is_empty() && windowed.is_empty());
}
