//! The cost of other programs' filters compared with ours, and the gain from an index of logs blooms: `make
//! bench-formats`. With names of parts (lookups, find, rates) as arguments, only those run.
//!
//! Rounds alternate, so that the machine's load affects all alike, and each part of the work counts by its best round,
//! which the machine's other work disturbed least.

use std::hint::black_box;
use std::io::Cursor;
use std::time::{Duration, Instant};

use ironbloom::ethereum::{Index, IndexWriter, LogQuery, LogsBloom};
use ironbloom::format::foreign::Format;
use ironbloom::hash::{KeyForm, SplitMix64};
use ironbloom::{AnyFilter, Bloom, Filter, Foreign, HashFn, Rule, SplitBlock, SplitBlockParams};

const KEYS: usize = 10_000_000;
const RATE: f64 = 0.01;
const ROUNDS: usize = 15;
/// Keys timed together: few enough that some rounds are not interrupted.
const PART: usize = 1_000_000;
const FIND_ROUNDS: usize = 31;
const BLOCKS: u64 = 1_000_000;

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn main() {
    let parts: [(&str, fn()); 3] = [("lookups", lookups), ("find", find), ("rates", rates)];
    // Cargo adds its own options.
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, run) in parts {
        if asked.is_empty() || asked.iter().any(|part| part == name) {
            run();
        }
    }
}

/// Looks up many keys.
type Lookup = Box<dyn Fn(&[u64], &mut [bool])>;

/// A filter, and a tiny one with the same hash, in which only hashing costs anything.
struct Contender {
    name: &'static str,
    whole: Lookup,
    hash_alone: Lookup,
}

fn own<F: Filter + 'static>(name: &'static str, whole: F, small: F) -> Contender {
    Contender {
        name,
        whole: Box::new(move |keys, found| whole.contains_keys(keys, found)),
        hash_alone: Box::new(move |keys, found| small.contains_keys(keys, found)),
    }
}

fn foreign(name: &'static str, rule: Rule, inserted: &[u64]) -> Contender {
    let form = Some(KeyForm::Long);
    let mut whole = Foreign::for_rate(rule, KEYS as u64, RATE, form).expect("a valid shape");
    inserted.iter().for_each(|key| {
        whole.insert(key).expect("an integer");
    });
    let small = Foreign::new(rule, 64, 1, form).expect("a valid shape");
    Contender {
        name,
        whole: Box::new(move |keys, found| whole.contains_keys(keys, found).expect("integers")),
        hash_alone: Box::new(move |keys, found| {
            small.contains_keys(keys, found).expect("integers")
        }),
    }
}

/// Ten million keys, half of them present, in filters of ten million at 1 %.
fn lookups() {
    let mut random = SplitMix64(1);
    let inserted: Vec<u64> = (0..KEYS).map(|_| random.next_u64()).collect();
    let asked: Vec<u64> =
        (0..KEYS).map(|i| if i % 2 == 0 { inserted[i] } else { random.next_u64() }).collect();
    let mut bloom = Bloom::with_rate(KEYS as u64, RATE).expect("a valid shape");
    bloom.insert_keys(&inserted);
    let small = Bloom::with_rate(1, 0.5).expect("a valid shape");
    let xxh64 = HashFn::Xxh64 { seed: 0 };
    let block = |keys| {
        let params = SplitBlockParams::for_rate(keys, RATE).expect("a valid shape");
        SplitBlock::new(params, xxh64).expect("enough memory")
    };
    let mut split = block(KEYS as u64);
    split.insert_keys(&inserted);
    let parquet = Format::Parquet.write(&split.clone().into()).expect("Parquet's own");
    let AnyFilter::SplitBlock(parquet) = Format::Parquet.read(&parquet).expect("written above")
    else {
        unreachable!("Parquet's filter is a split block filter")
    };
    let contenders = [
        own("Bloom", bloom, small),
        foreign("Guava, MITZ_64", Rule::Guava64, &inserted),
        foreign("Spark, version 2", Rule::Spark2 { seed: 0 }, &inserted),
        foreign("DataSketches", Rule::DataSketches { seed: 9001 }, &inserted),
        own("SplitBlock", split, block(1)),
        own("Parquet, read from its bytes", parquet, block(1)),
    ];
    let mut found = vec![false; PART];
    let mut best = vec![[[Duration::MAX; 2]; KEYS / PART]; contenders.len()];
    for _ in 0..ROUNDS {
        for (best, contender) in best.iter_mut().zip(&contenders) {
            for (best, asked) in best.iter_mut().zip(asked.chunks(PART)) {
                for (best, lookup) in best.iter_mut().zip([&contender.whole, &contender.hash_alone])
                {
                    *best = timed(|| lookup(asked, &mut found)).min(*best);
                    black_box(&mut found);
                }
            }
        }
    }
    println!("| filter of {KEYS} keys at 1 % | ns per key | of which the hash | the rest |");
    println!("|---|---|---|---|");
    for (contender, best) in contenders.iter().zip(&best) {
        let each = |i: usize| {
            best.iter().map(|part| part[i].as_secs_f64()).sum::<f64>() * 1e9 / KEYS as f64
        };
        let (whole, hash) = (each(0), each(1));
        println!("| {} | {whole:.1} | {hash:.1} | {:.1} |", contender.name, whole - hash);
    }
}

fn key(number: u64, length: usize) -> Vec<u8> {
    let mut key = vec![0; length];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}

/// Builds a block with this many distinct addresses and topics.
fn block(random: &mut SplitMix64, keys: usize) -> LogsBloom {
    let mut bloom = LogsBloom::default();
    for i in 0..keys {
        bloom.insert(&key(random.next_u64(), if i % 3 == 0 { 20 } else { 32 }));
    }
    bloom
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// One address and one topic in a million headers.
fn find() {
    let mut random = SplitMix64(2);
    let (address, topic) = (key(1, 20), key(2, 32));
    // A thousand different blooms, repeated with one more bit each: generating a million would take long.
    let samples: Vec<LogsBloom> = (0..1000).map(|_| block(&mut random, 150)).collect();
    let mut headers = Vec::new();
    let mut writer = IndexWriter::new(Vec::new()).expect("memory");
    for number in 0..BLOCKS {
        let mut bloom = samples[(number % 1000) as usize];
        if number % 9999 == 0 {
            bloom.insert(&address);
            bloom.insert(&topic);
        }
        writer.push(number, &bloom).expect("memory");
        headers.push(bloom);
    }
    let bytes = writer.finish().expect("memory");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bench.ibe");
    std::fs::write(&path, &bytes).expect("room for an index");
    let query = LogQuery::default().any_of([&address]).any_of([&topic]);
    let index = Index::open(Cursor::new(&bytes[..])).expect("whole");
    let file = Index::open(std::fs::File::open(&path).expect("written")).expect("whole");
    let mut times = [const { Vec::new() }; 3];
    let mut counts = [0; 3];
    for _ in 0..FIND_ROUNDS {
        times[0].push(timed(|| {
            counts[0] = black_box(&headers).iter().filter(|bloom| query.matches(bloom)).count();
        }));
        times[1].push(timed(|| {
            counts[1] = index.find(&query, 0..=u64::MAX).expect("whole").len();
        }));
        times[2].push(timed(|| {
            counts[2] = file.find(&query, 0..=u64::MAX).expect("whole").len();
        }));
    }
    assert!(counts.iter().all(|&count| count == counts[0]), "{counts:?}");
    println!(
        "\n| one address and one topic in {BLOCKS} headers, {FIND_ROUNDS} rounds | ms, best | median | times as fast, median | lowest to highest |"
    );
    println!("|---|---|---|---|---|");
    let names =
        ["each header's bloom, in memory", "index in memory", "index in a file, in the page cache"];
    for (name, own) in names.iter().zip(&times) {
        let ms: Vec<f64> = sorted(own.iter().map(|time| time.as_secs_f64() * 1e3));
        let ratios = sorted(
            times[0].iter().zip(own).map(|(each, own)| each.as_secs_f64() / own.as_secs_f64()),
        );
        let last = FIND_ROUNDS - 1;
        println!(
            "| {name} | {:.3} | {:.3} | {:.0} | {:.0} to {:.0} |",
            ms[0],
            ms[last / 2],
            ratios[last / 2],
            ratios[0],
            ratios[last]
        );
    }
    println!("\n{} candidates; the index has {} MB.", counts[0], bytes.len() / 1_000_000);
}

/// Blocks found by chance, by how full their blooms are.
fn rates() {
    const SAMPLES: usize = 20_000;
    println!(
        "\n| addresses and topics in a block | fill | an absent address | and a topic | and another |"
    );
    println!("|---|---|---|---|---|");
    for keys in [20, 50, 100, 200, 300, 500, 800, 1200] {
        let mut random = SplitMix64(keys as u64);
        let blooms: Vec<LogsBloom> = (0..SAMPLES).map(|_| block(&mut random, keys)).collect();
        let fill = blooms.iter().map(LogsBloom::fill).sum::<f64>() / SAMPLES as f64;
        let mut found = [0usize; 3];
        for (i, bloom) in blooms.iter().enumerate() {
            let lengths = [20, 32, 32];
            for (j, found) in found.iter_mut().enumerate() {
                let clauses = lengths[..=j].iter().enumerate();
                let query = clauses.fold(LogQuery::default(), |query, (c, &length)| {
                    query.any_of([key(u64::MAX - (3 * i + c) as u64, length)])
                });
                *found += usize::from(query.matches(bloom));
            }
        }
        let share = |count: usize| 100.0 * count as f64 / SAMPLES as f64;
        println!(
            "| {keys} | {:.1} % | {:.2} % | {:.2} % | {:.2} % |",
            100.0 * fill,
            share(found[0]),
            share(found[1]),
            share(found[2])
        );
    }
}
