//! A list of keys to remove is judged before anything changes: one of inserted keys is never
//! refused, one of others always.

use crate::common::{FILTERS, hashes};
use ironbloom::removal::Verdict;
use ironbloom::*;

fn removable(hashes: &[u64], rate: f64) -> Vec<AnyFilter> {
    ["counting", "d-left", "cuckoo", "cuckoo-packed"]
        .into_iter()
        .map(|name| FILTERS.iter().find(|config| config.name == name).unwrap())
        .map(|config| (config.build)(hashes, hashes.len() as u64, rate))
        .collect()
}

/// Any part of its keys, in any order, with a few that were never inserted at a low rate.
#[test]
fn a_list_of_inserted_keys_is_never_refused() {
    let inserted = hashes(31, 5000);
    for rate in [0.1, 0.01, 0.0001] {
        for filter in removable(&inserted, rate) {
            for len in [1, 2, 10, 2500, 5000] {
                let check = filter.check_removal(&inserted[5000 - len..]).unwrap();
                assert_eq!(check.verdict(), Verdict::Plausible, "{} at {rate}", filter.kind());
                assert_eq!((check.present(), check.absent()), (len as u64, 0));
            }
        }
    }
    for filter in removable(&inserted, 1e-6) {
        let some: Vec<u64> = [&inserted[..2500], &hashes(32, 100)].concat();
        assert_eq!(filter.check_removal(&some).unwrap().verdict(), Verdict::Plausible);
    }
}

/// The number of false positives is beyond 5 sigma once in 3.5 million lists; there are 160 here.
#[test]
fn a_list_of_keys_that_were_never_inserted_is_always_refused() {
    let inserted = hashes(31, 5000);
    for rate in [0.1, 0.01] {
        for filter in removable(&inserted, rate) {
            let before = filter.clone();
            for stream in 40..60 {
                let check = filter.check_removal(&hashes(stream, 2000)).unwrap();
                assert!(check.verdict().is_wrong(), "{} at {rate}: {check:?}", filter.kind());
            }
            assert!(filter == before, "asking changed it");
        }
    }
}

/// The expectation matches the actual share of wrong keys among those that look present.
#[test]
fn the_expected_number_of_wrong_removals_is_that_of_the_false_positives() {
    let inserted = hashes(31, 5000);
    for filter in removable(&inserted, 0.01) {
        let wrong = hashes(70, 50_000);
        let list = [&inserted[..1000], &wrong].concat();
        let check = filter.check_removal(&list).unwrap();
        let truth = (check.present() - 1000) as f64;
        let bound = 5.0 * truth.sqrt() + 0.12 * truth; // chance, and the error of `estimate_rate`
        let expected = check.expected_wrong();
        assert!((expected - truth).abs() < bound, "{}: {expected}, not {truth}", filter.kind());
        assert_eq!(check.verdict(), Verdict::Mixed);
    }
}

#[test]
fn copies_beyond_the_keys_there_are_are_refused_and_other_kinds_have_no_list() {
    let inserted = hashes(31, 500);
    for filter in removable(&inserted, 0.01) {
        let twice = inserted.repeat(2);
        let check = filter.check_removal(&twice).unwrap();
        assert_eq!((check.present(), check.copies(), check.keys()), (500, 1000, 500));
        assert_eq!(check.verdict(), Verdict::TooMany, "{}", filter.kind());
    }
    let mut bitmap = AnyFilter::Bitmap(Bitmap::new(1000).unwrap());
    bitmap.insert_hashes(&[1, 2, 3]).unwrap();
    let check = bitmap.check_removal(&[1, 1, 1, 1, 500, 5000]).unwrap();
    assert_eq!((check.verdict(), check.absent()), (Verdict::Plausible, 2));
    assert!((FILTERS[0].build)(&inserted, 500, 0.01).check_removal(&inserted).is_err());
}
