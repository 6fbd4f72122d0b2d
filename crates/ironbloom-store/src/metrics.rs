//! Statistics for Prometheus and every other exporter of the `metrics` crate.

use metrics::{counter, gauge};

use crate::stats::Stats;

impl Stats {
    /// Reports to the recorder of the `metrics` crate, under the label `store`. Call it periodically, or on each
    /// scrape:
    ///
    /// | name | |
    /// |---|---|
    /// | `ironbloom_store_lookups_total{result="skipped"}` | also `"false_positive"`, `"hit"`, `"unguarded"` |
    /// | `ironbloom_store_rebuilds_total` | `_failed_rebuilds_total` are those that failed |
    /// | `ironbloom_store_foreign_rows_total` | keys found in the store that were written without the guard |
    /// | `ironbloom_store_doubtful_keys` | puts whose outcome is not known |
    /// | `ironbloom_store_filter_bytes`, `_filter_keys`, `_filter_capacity`, `_dead_keys` | |
    /// | `ironbloom_store_false_positive_ratio` | measured; `_planned_ratio` is what was requested |
    /// | `ironbloom_store_skip_seconds`, `_read_seconds` | C1 and C2, means |
    /// | `ironbloom_store_saved_seconds` | time saved |
    /// | `ironbloom_store_delta_seconds` | P2·(C2 − C1), of a lookup |
    pub fn publish(&self, store: &str) {
        let store = || store.to_owned();
        for (result, count) in [
            ("skipped", self.skipped()),
            ("false_positive", self.false_positives()),
            ("hit", self.hits()),
            ("unguarded", self.unguarded()),
        ] {
            counter!("ironbloom_store_lookups_total", "store" => store(), "result" => result)
                .absolute(count);
        }
        counter!("ironbloom_store_rebuilds_total", "store" => store()).absolute(self.rebuilds);
        counter!("ironbloom_store_failed_rebuilds_total", "store" => store())
            .absolute(self.failed_rebuilds);
        counter!("ironbloom_store_foreign_rows_total", "store" => store()).absolute(self.foreign);
        let number = |name: &'static str, value: f64| gauge!(name, "store" => store()).set(value);
        number("ironbloom_store_filter_bytes", self.filter_bytes as f64);
        number("ironbloom_store_filter_keys", self.keys as f64);
        number("ironbloom_store_filter_capacity", self.capacity as f64);
        number("ironbloom_store_dead_keys", self.dead as f64);
        number("ironbloom_store_doubtful_keys", self.doubtful as f64);
        number("ironbloom_store_planned_ratio", self.rate);
        number("ironbloom_store_saved_seconds", self.time_saved().as_secs_f64());
        number("ironbloom_store_delta_seconds", self.delta().as_secs_f64());
        if let Some(rate) = self.measured_rate() {
            number("ironbloom_store_false_positive_ratio", rate);
        }
        if let Some(cost) = self.skip_cost() {
            number("ironbloom_store_skip_seconds", cost.as_secs_f64());
        }
        if let Some(cost) = self.read_cost() {
            number("ironbloom_store_read_seconds", cost.as_secs_f64());
        }
    }
}
