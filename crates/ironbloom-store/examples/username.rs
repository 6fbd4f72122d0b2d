//! "Is this name taken?": a form that asks at every keystroke, in front of a store that is slow.
//!
//! Most of what people type while they look for a name is free, so most questions are for what is not there. Names are
//! given back as well, so the filter is one that can remove.
//!
//! ```text
//! cargo run --release --package ironbloom-store --example username
//! ```

use std::convert::Infallible;
use std::error::Error;
use std::ops::ControlFlow;
use std::time::Duration;

use ironbloom_store::{Backend, Before, Generation, Guard, GuardKind, Memory, Options};

/// A store that answers after half a millisecond, as one on the other side of a network does.
struct FarAway(Memory);

const DISTANCE: Duration = Duration::from_micros(500);

impl Backend for FarAway {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        std::thread::sleep(DISTANCE);
        self.0.get(key)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Infallible> {
        self.0.put(key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<Before, Infallible> {
        self.0.remove(key)
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Infallible> {
        self.0.scan(visit)
    }

    fn len_hint(&self) -> Result<Option<u64>, Infallible> {
        self.0.len_hint()
    }

    fn generation(&self) -> Result<Option<Generation>, Infallible> {
        self.0.generation()
    }

    fn set_generation(&self, generation: Generation) -> Result<(), Infallible> {
        self.0.set_generation(generation)
    }
}

const FIRST: [&str; 8] = ["alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi"];

fn main() -> Result<(), Box<dyn Error>> {
    // Names come and go through this guard alone, so a removed name may leave the filter at once.
    let options = Options::new(GuardKind::Cuckoo, 100_000, 0.001).only_writer();
    let taken = Guard::open(FarAway(Memory::new()), options)?;
    for i in 0..50_000u32 {
        taken.put(format!("{}{i}", FIRST[i as usize % 8]), i.to_le_bytes())?;
    }

    // Somebody wants to be called alice, and types on until a name is free.
    let mut wanted = String::from("alice");
    while taken.contains(&wanted)? {
        wanted.push('x');
    }
    println!("{wanted} is free");
    assert!(taken.put(&wanted, b"the new one")?.was_absent(), "nobody else was faster");
    assert!(taken.contains(&wanted)?);

    // Many others type, each letter a question.
    for i in 0..500u32 {
        let typed = format!("{}-the-{i}th", FIRST[i as usize % 8]);
        for end in 1..=typed.len() {
            taken.contains(&typed[..end])?;
        }
    }
    taken.contains("bob1")?;

    // A name that is given back is free at once, and asking for it costs nothing.
    assert!(taken.remove("alice0")?.was_present());
    let skipped = taken.stats().skipped();
    assert!(!taken.contains("alice0")?);
    assert!(taken.stats().skipped() == skipped + 1, "the filter has forgotten it");

    let stats = taken.stats();
    let [skip, wasted, hit] = stats.shares();
    println!(
        "{} questions: {:.1} % answered from {} KiB of memory",
        stats.lookups(),
        100.0 * skip,
        stats.filter_bytes / 1024
    );
    println!("{:.2} % asked the store in vain, {:.2} % found a name", 100.0 * wasted, 100.0 * hit);
    println!("saved: {:.1?}", stats.time_saved());
    Ok(())
}
