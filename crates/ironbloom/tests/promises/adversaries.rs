//! An adversary knows the source. Each attack here succeeds against the public default seed, and gains nothing against
//! a secret key: `docs/adversaries.md` says who may attack what.

use ironbloom::{
    BlockedBloom, BlockedBloomParams, Bloom, BloomParams, Cuckoo, CuckooParams, HashFn, Hashed,
};

fn text(i: u64) -> String {
    format!("https://example.org/{i:x}")
}

/// Returns true if `found` of `asked` at this rate is more than chance explains.
fn is_gain(found: u64, asked: u64, rate: f64) -> bool {
    let expected = asked as f64 * rate;
    found as f64 > expected + 5.0 * expected.sqrt() + 5.0
}

/// Computes texts that a filter takes for present from some known keys, without querying it once.
fn computed_false_positives(victim: HashFn) -> u64 {
    let params = BloomParams::for_rate(1000, 0.01).unwrap();
    let mut filter = Bloom::new(params, victim).unwrap();
    let mut copy = Bloom::new(params, HashFn::default()).unwrap();
    for i in 0..1000 {
        filter.insert(text(i));
        copy.insert(text(i));
    }
    let chosen = (1000..).map(text).filter(|text| copy.contains(text)).take(500);
    chosen.filter(|text| filter.contains(text)).count() as u64
}

#[test]
fn false_positives_are_computed_under_the_known_seed_and_not_under_a_secret_key() {
    assert_eq!(computed_false_positives(HashFn::default()), 500);
    let found = computed_false_positives(HashFn::random());
    assert!(!is_gain(found, 500, 0.01), "{found} of 500");
}

/// Keys that fall on one of a hundred blocks, 0.4 % of the capacity, fill that block; a stranger's keys there are then "present".
fn rate_in_chosen_blocks(victim: HashFn) -> f64 {
    let params = BlockedBloomParams::for_rate(50_000, 0.01).unwrap();
    let mut filter = BlockedBloom::new(params, victim).unwrap();
    let block = |text: &String| {
        (u128::from(HashFn::default().hash(text)) * u128::from(params.blocks())) >> 64
    };
    let in_first = |from: u64| (from..).map(text).filter(|text| block(text) == 0);
    in_first(0).take(200).for_each(|text| _ = filter.insert(text));
    assert!(filter.estimate_rate() < 0.01, "the filter looks almost empty");
    let asked: Vec<String> = in_first(1 << 40).take(200).collect();
    asked.iter().filter(|text| filter.contains(text)).count() as f64 / asked.len() as f64
}

#[test]
fn blocks_are_filled_by_choice_under_the_known_seed_and_not_under_a_secret_key() {
    assert!(rate_in_chosen_blocks(HashFn::default()) > 0.5);
    assert!(rate_in_chosen_blocks(HashFn::random()) < 0.1);
}

/// Inserts texts that share a bucket and a fingerprint, until the filter reports that it is full; at most a hundred.
fn inserts_until_full(victim: HashFn) -> usize {
    let params = CuckooParams::for_rate(1000, 0.02).unwrap();
    let mut filter = Cuckoo::new(params, victim).unwrap();
    let mut copy = Cuckoo::new(params, HashFn::default()).unwrap();
    copy.insert(text(0)).unwrap();
    let alike = (0..).map(text).filter(|text| copy.contains(text)).take(100);
    alike.take_while(|text| filter.insert(text).is_ok()).count()
}

#[test]
fn a_few_chosen_texts_fill_a_cuckoo_filter_under_the_known_seed_and_not_under_a_secret_key() {
    assert!(inserts_until_full(HashFn::default()) < 20);
    assert_eq!(inserts_until_full(HashFn::random()), 100);
}

/// Learns false positives by asking, then asks what is related to them: neighbours, and sums of differences between them.
fn adaptive(victim: HashFn, queries: u64) -> Gain {
    let params = BloomParams::for_rate(10_000, 0.01).unwrap();
    let mut filter = Bloom::new(params, victim).unwrap();
    (0..10_000u64).for_each(|key| _ = filter.insert(key));
    let (start, half) = (1u64 << 32, queries / 2);
    let learnt: Vec<u64> = (start..start + half).filter(|&key| filter.contains(key)).collect();
    let related = learnt.iter().enumerate().flat_map(|(i, &one)| {
        let sums = (1..20).flat_map(|step| {
            let (two, three) =
                (learnt[(i * 7 + step) % learnt.len()], learnt[(i * 13 + 5 * step) % learnt.len()]);
            let (sum, other) = (one.wrapping_add(two), one.wrapping_add(three));
            [
                one ^ two ^ three,
                sum.wrapping_sub(three),
                other.wrapping_sub(two),
                one ^ two.swap_bytes(),
            ]
        });
        let flipped = (0..64).map(|bit| one ^ 1 << bit);
        sums.chain(flipped).chain([one.swap_bytes(), !one]).collect::<Vec<u64>>()
    });
    // A key that was asked or inserted before tells nothing.
    let is_new = |key: &u64| !(start..start + half).contains(key) && *key >= 10_000;
    let mut keys: Vec<u64> = related.filter(is_new).collect();
    keys.sort_unstable();
    keys.dedup();
    let asked = keys.len() as u64;
    let found = keys.into_iter().filter(|&key| filter.contains(key)).count() as u64;
    Gain { found, asked, rate: learnt.len() as f64 / half as f64, learnt_from: half }
}

/// How many of the keys that were asked on purpose were present, beside the rate of those that were asked at random.
#[derive(Debug)]
struct Gain {
    found: u64,
    asked: u64,
    rate: f64,
    learnt_from: u64,
}

impl Gain {
    /// The gain, in standard deviations of the difference of the two rates.
    fn sigmas(&self) -> f64 {
        let rate = self.found as f64 / self.asked as f64;
        let variance = self.rate
            * (1.0 - self.rate)
            * (1.0 / self.asked as f64 + 1.0 / self.learnt_from as f64);
        (rate - self.rate) / variance.sqrt()
    }
}

#[test]
fn what_was_learnt_by_asking_helps_nobody_against_a_secret_key() {
    let gain = adaptive(HashFn::random(), 1_000_000);
    assert!(gain.asked > 300_000 && gain.sigmas() < 5.0, "{gain:?}");
}

#[test]
#[ignore = "a hundred million queries: run with --release"]
fn a_hundred_million_adaptive_queries_gain_nothing_against_a_secret_key() {
    // Of the second half, some were asked before: they do not count.
    let gain = adaptive(HashFn::random(), 140_000_000);
    println!("{gain:?}: {:.2} sigma", gain.sigmas());
    assert!(gain.asked + gain.learnt_from > 100_000_000 && gain.sigmas() < 5.0, "{gain:?}");
}

/// Values that make XXH3 multiply by zero without a seed are different keys with any seed.
#[test]
fn values_chosen_to_collide_before_the_seed_do_not_collide() {
    const SECRET: [u64; 2] = [0xbe4b_a423_396c_feb8, 0xdb97_9083_e96d_d4de];
    let value = |i: u64| (SECRET[0], i, SECRET[1], !i);
    for hash_fn in [HashFn::Xxh3 { seed: 0xdead_beef }, HashFn::random()] {
        let mut filter = Bloom::new(BloomParams::for_rate(1000, 1e-9).unwrap(), hash_fn).unwrap();
        filter.insert(Hashed(value(0)));
        let found = (1..20_000).filter(|&i| filter.contains(Hashed(value(i)))).count();
        assert_eq!(found, 0, "{hash_fn}");
    }
}
