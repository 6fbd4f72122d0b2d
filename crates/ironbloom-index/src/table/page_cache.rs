//! Recently read pages, decompressed.
//!
//! Verifying a block needs a few hundred values, but a page is decompressed as a whole, and pyarrow puts up to a megabyte into one.
//! Queries on a hot part of a table, and the second look at a page within one query (first to compare, then to show
//! other rows of it), should not pay for that again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use parquet::column::page::Page;

/// A bounded number of bytes of pages, by where they begin in the file.
pub(super) struct PageCache {
    budget: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pages: HashMap<u64, Entry>,
    bytes: usize,
    /// Counts uses; an entry's stamp says when it was used last.
    clock: u64,
}

struct Entry {
    page: Page,
    stamp: u64,
}

impl PageCache {
    pub(super) fn new(budget: usize) -> Self {
        Self { budget, state: Mutex::default() }
    }

    pub(super) fn get(&self, offset: u64) -> Option<Page> {
        let mut state = self.lock();
        state.clock += 1;
        let stamp = state.clock;
        let entry = state.pages.get_mut(&offset)?;
        entry.stamp = stamp;
        Some(entry.page.clone())
    }

    pub(super) fn contains(&self, offset: u64) -> bool {
        self.lock().pages.contains_key(&offset)
    }

    /// Keeps a page, unless it alone would take half of the cache.
    pub(super) fn put(&self, offset: u64, page: &Page) {
        let bytes = page.buffer().len();
        if bytes > self.budget / 2 {
            return;
        }
        let mut state = self.lock();
        state.clock += 1;
        let entry = Entry { page: page.clone(), stamp: state.clock };
        state.bytes += bytes;
        if let Some(old) = state.pages.insert(offset, entry) {
            state.bytes -= old.page.buffer().len();
        }
        if state.bytes > self.budget {
            state.drop_older_half();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here is ever half done when it panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Evicts half at a time, so that keeping order costs nothing in between.
    fn drop_older_half(&mut self) {
        let mut stamps: Vec<u64> = self.pages.values().map(|entry| entry.stamp).collect();
        let middle = stamps.len() / 2;
        let (_, &mut median, _) = stamps.select_nth_unstable(middle);
        self.pages.retain(|_, entry| entry.stamp >= median);
        self.bytes = self.pages.values().map(|entry| entry.page.buffer().len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::basic::Encoding;

    fn page(bytes: usize) -> Page {
        Page::DictionaryPage {
            buf: vec![0; bytes].into(),
            num_values: 0,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        }
    }

    #[test]
    fn the_budget_is_kept_and_what_was_used_last_stays() {
        let cache = PageCache::new(1000);
        for offset in 0..100 {
            cache.put(offset, &page(100));
            assert!(cache.get(0).is_some(), "0 is used all the time, gone at {offset}");
            assert!(cache.lock().bytes <= 1000);
        }
        assert!(cache.get(99).is_some());
        assert!(cache.get(50).is_none());
    }

    #[test]
    fn a_page_put_twice_counts_once() {
        let cache = PageCache::new(1000);
        cache.put(1, &page(400));
        cache.put(1, &page(300));
        assert_eq!(cache.lock().bytes, 300);
    }

    #[test]
    fn a_page_that_would_push_out_the_others_is_not_kept() {
        let cache = PageCache::new(1000);
        cache.put(1, &page(501));
        assert!(cache.get(1).is_none());
    }
}
