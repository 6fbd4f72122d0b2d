//! A crawler that asks of every link "have I seen this page?", over a web that is made up: 20,000 pages whose links mostly
//! lead to pages that were seen, and sometimes to new ones.
//!
//! The seen pages are in a store on disk, as they would not fit into memory in earnest. The guard answers the links to new
//! pages without it; and it is opened twice, to show that the second time begins where the first ended.
//!
//! ```text
//! cargo run --release --package ironbloom-store --example crawler
//! ```

use std::collections::VecDeque;
use std::error::Error;

use ironbloom::hash::mix64;
use ironbloom_store::{Guard, GuardKind, Options, Redb, checkpoint_beside};

const PAGES: u64 = 20_000;
const LINKS: u64 = 8;
/// Pages whose links are followed before what was found is written together.
const TOGETHER: usize = 500;

fn url(page: u64) -> String {
    format!("https://example.org/{:x}/page-{page}.html", page % 97)
}

/// Links lead anywhere, as on the web.
fn links(page: u64) -> impl Iterator<Item = u64> {
    (0..LINKS).map(move |i| mix64(page * LINKS + i) % PAGES)
}

/// Follows links until this many pages were visited. What is left to visit is in `frontier`.
fn crawl(
    guard: &Guard<Redb>,
    frontier: &mut VecDeque<u64>,
    visits: usize,
) -> Result<usize, Box<dyn Error>> {
    let mut visited = 0;
    while visited < visits && !frontier.is_empty() {
        let now: Vec<u64> = frontier.drain(..frontier.len().min(TOGETHER)).collect();
        visited += now.len();
        let mut found: Vec<u64> = now.iter().copied().flat_map(links).collect();
        found.sort_unstable();
        found.dedup();
        // One question to the store for all that may have been seen; none for the rest.
        let urls: Vec<String> = found.iter().copied().map(url).collect();
        let seen = guard.get_many(&urls)?;
        let new: Vec<(u64, &String)> = found
            .iter()
            .zip(&urls)
            .zip(seen)
            .filter(|(_, seen)| seen.is_none())
            .map(|((&page, url), _)| (page, url))
            .collect();
        let pairs: Vec<(&String, [u8; 8])> =
            new.iter().map(|(page, url)| (*url, page.to_le_bytes())).collect();
        guard.put_many(&pairs)?; // seen from now on, also after a crash
        frontier.extend(new.iter().map(|(page, _)| page));
    }
    Ok(visited)
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("seen.redb");
    // Nobody knows how many pages there are, so the filter grows.
    let options =
        Options::new(GuardKind::Scalable, 1000, 0.01).checkpoint(checkpoint_beside(&file));

    let mut frontier = VecDeque::from([0]);
    let guard = Guard::open(Redb::create(&file)?, options.clone())?;
    guard.put(url(0), 0u64.to_le_bytes())?;
    let first = crawl(&guard, &mut frontier, PAGES as usize / 2)?;
    guard.close()?; // writes a checkpoint

    let guard = Guard::open(Redb::create(&file)?, options)?;
    println!("opened again: {:?}", guard.opened());
    let second = crawl(&guard, &mut frontier, usize::MAX)?;
    let stats = guard.stats();
    println!("{first} + {second} pages visited, {} of {PAGES} seen", stats.keys);
    println!(
        "{} questions, {} of them never reached the disk; the filter takes {} bytes",
        stats.lookups(),
        stats.skipped(),
        stats.filter_bytes
    );
    for page in 0..PAGES {
        if guard.contains(url(page))? != (page == 0 || visited_by_anyone(page)) {
            return Err(format!("page {page} was visited wrongly").into());
        }
    }
    drop(guard);
    Ok(())
}

/// Whether a link leads there from a page that can be reached; computed in memory, to check the crawl.
fn visited_by_anyone(page: u64) -> bool {
    use std::sync::OnceLock;
    static REACHED: OnceLock<Vec<bool>> = OnceLock::new();
    REACHED.get_or_init(|| {
        let mut reached = vec![false; PAGES as usize];
        reached[0] = true;
        let mut left = vec![0];
        while let Some(page) = left.pop() {
            for link in links(page) {
                if !std::mem::replace(&mut reached[link as usize], true) {
                    left.push(link);
                }
            }
        }
        reached
    })[page as usize]
}
