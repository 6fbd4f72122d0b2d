//! A crawler's memory: remembers which URLs were seen, across restarts, in a few bits each.
//!
//! `cargo run -p ironbloom --example seen_urls`

use ironbloom::{Persist, Scalable};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("seen.ibf");

    // The number of URLs is unknown, so the filter grows; one URL in a million is skipped by
    // mistake.
    let mut seen = Scalable::with_rate(1000, 1e-6)?;
    let mut fetched = 0;
    for page in 0..20_000u32 {
        // Every page links to the previous one, so half of all links were seen before.
        for url in
            [format!("https://example.org/{page}"), format!("https://example.org/{}", page / 2)]
        {
            if seen.insert(&url)? {
                fetched += 1;
            }
        }
    }
    seen.save(&path)?;
    println!("{fetched} pages fetched, {} bytes to remember them", seen.size_in_bytes());

    // After a restart.
    let seen = Scalable::load(&path)?;
    assert!(seen.contains("https://example.org/19999"));
    assert!(!seen.contains("https://example.org/20000"));
    Ok(())
}
