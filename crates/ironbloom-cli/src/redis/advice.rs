//! Advice: explains the numbers of a filter on a server, and says what to do about them.

use super::server::Fields;
use crate::number;

/// A filter as its server describes it. What the server does not report is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    pub(super) layout: String,
    pub(super) keys: Option<u64>,
    pub(super) capacity: Option<u64>,
    pub(super) stages: Option<u64>,
    pub(super) fill: Option<f64>,
    pub(super) rate: Option<f64>,
    pub(super) bytes: Option<u64>,
    /// True if it adds stages when it is full.
    is_growing: bool,
    /// It forgets old keys, and is always as full as it should be.
    is_window: bool,
    /// State of an unfinished load, as the server reports it.
    loading: Option<String>,
}

/// From this share of the capacity on a filter will soon be full.
const NEARLY_FULL: f64 = 0.9;

impl State {
    /// A key that is not a filter: nothing is known of it but its type.
    pub(super) fn of_another_type(name: &str) -> Self {
        Self { layout: name.to_owned(), ..Self::default() }
    }

    /// Returns true while it is being loaded.
    pub(super) fn is_loading(&self) -> bool {
        self.loading.is_some()
    }

    /// A filter that is still being loaded.
    pub(super) fn loading(kind: &str, words: String) -> Self {
        Self { layout: layout_of(kind).to_owned(), loading: Some(words), ..Self::default() }
    }

    /// Of all shards together. Keys are spread evenly over them, so the rate of all is the mean of theirs.
    pub(super) fn of_shards(shards: &[Self]) -> Self {
        let sum = |field: fn(&Self) -> Option<u64>| shards.iter().map(field).sum::<Option<u64>>();
        let mean = |field: fn(&Self) -> Option<f64>| {
            let sum = shards.iter().map(field).sum::<Option<f64>>();
            sum.map(|sum| sum / shards.len().max(1) as f64)
        };
        Self {
            layout: shards.first().map(|first| first.layout.clone()).unwrap_or_default(),
            keys: sum(|one| one.keys),
            capacity: sum(|one| one.capacity),
            stages: shards.iter().filter_map(|one| one.stages).max(),
            fill: mean(|one| one.fill),
            rate: mean(|one| one.rate),
            bytes: sum(|one| one.bytes),
            is_growing: shards.iter().any(|one| one.is_growing),
            is_window: shards.iter().any(|one| one.is_window),
            loading: shards.iter().find_map(|one| one.loading.clone()),
        }
    }

    /// By the fields of BF.INFO, with FULL or without.
    pub(super) fn of_bloom(kind: &str, fields: &Fields) -> Self {
        let layout = fields.text("Layout").unwrap_or_else(|| layout_of(kind).to_owned());
        Self {
            is_window: layout == "window",
            layout,
            keys: fields.number("Number of items inserted"),
            capacity: fields.number("Capacity"),
            stages: fields.number("Number of filters"),
            fill: fields.double("Fill"),
            rate: fields.double("Estimated error rate"),
            bytes: fields.number("Size"),
            is_growing: fields.number("Expansion rate").is_some_and(|growth| growth > 0),
            loading: None,
        }
    }

    /// By the fields of CF.INFO. Its capacity is the number of slots; the rate follows from how many of them are used.
    pub(super) fn of_cuckoo(kind: &str, fields: &Fields) -> Self {
        let number = |name| fields.number(name);
        let stages = number("Number of filters");
        let keys = number("Number of items inserted");
        let expansion = number("Expansion rate").unwrap_or(0);
        let capacity = (number("Number of buckets").zip(number("Bucket size")).zip(stages)).map(
            |((buckets, size), stages)| places(buckets.saturating_mul(size), expansion, stages),
        );
        let fill = keys.zip(capacity).map(|(keys, places)| keys as f64 / places.max(1) as f64);
        let fingerprint_bits = number("Fingerprint bits").unwrap_or(8).min(63);
        let rate = (fill.zip(number("Bucket size")).zip(stages)).map(|((fill, size), stages)| {
            let compared = 2.0 * size as f64 * stages as f64 * fill;
            let values = ((1u64 << fingerprint_bits) - 1) as f64;
            -(compared * (-1.0 / values).ln_1p()).exp_m1()
        });
        Self {
            layout: layout_of(kind).to_owned(),
            keys,
            capacity,
            stages,
            fill,
            rate,
            bytes: number("Size"),
            is_growing: expansion > 0,
            is_window: false,
            loading: None,
        }
    }
}

/// Slots of all parts, each larger than the one before by the expansion.
fn places(first: u64, expansion: u64, stages: u64) -> u64 {
    let mut part = first;
    let mut sum = 0u64;
    for _ in 0..stages.min(64) {
        sum = sum.saturating_add(part);
        part = part.saturating_mul(expansion.max(1));
    }
    sum
}

/// The layout by the name of the type, if the server does not report it.
fn layout_of(kind: &str) -> &'static str {
    match kind {
        "MBbloom--" => "redisbloom",
        "MBbloomCF" => "redisbloom cuckoo",
        "ironcucko" => "cuckoo",
        "bloomfltr" => "valkey-bloom",
        _ => "ironbloom",
    }
}

/// A sentence if there is something to do.
pub(super) fn advice(state: &State) -> Option<String> {
    if let Some(words) = &state.loading {
        return Some(format!("{words}: finish the load, or delete the key"));
    }
    let (keys, capacity, stages) = (state.keys?, state.capacity?, state.stages?);
    if state.is_window {
        return None;
    }
    let rebuild = format!("rebuild for {}", short(room_for(keys)));
    if stages > 1 {
        let rate = state
            .rate
            .map_or_else(String::new, |rate| format!(", rate now {}", number::rate(rate)));
        return Some(format!("{}{rate}: {rebuild}", number::plural(stages, "stage")));
    }
    let share = keys as f64 / capacity.max(1) as f64;
    let percent = (100.0 * share).floor();
    match (state.is_growing, share) {
        (_, share) if share < NEARLY_FULL => None,
        (true, _) => Some(format!("{percent:.0} % full, will soon add a stage: {rebuild}")),
        (false, share) if share < 1.0 => {
            Some(format!("{percent:.0} % full, will soon refuse keys: {rebuild}"))
        }
        (false, _) => Some(format!("full: {rebuild}")),
    }
}

/// Twice as many keys as there are, rounded up to one digit.
fn room_for(keys: u64) -> u64 {
    let wanted = keys.max(1).saturating_mul(2);
    let digit = 10u64.pow(wanted.ilog10());
    wanted.div_ceil(digit).saturating_mul(digit)
}

/// `20 M`, `300 k`, `70`: for numbers of few digits.
fn short(value: u64) -> String {
    let units = [(1_000_000_000_000, "T"), (1_000_000_000, "B"), (1_000_000, "M"), (1000, "k")];
    match units.into_iter().find(|&(unit, _)| value >= unit && value.is_multiple_of(unit)) {
        Some((unit, name)) => format!("{} {name}", number::count(value / unit)),
        None => number::count(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(keys: u64, capacity: u64, stages: u64, is_growing: bool) -> State {
        State {
            keys: Some(keys),
            capacity: Some(capacity),
            stages: Some(stages),
            rate: Some(0.004),
            is_growing,
            ..State::default()
        }
    }

    #[test]
    fn shards_are_added_up_and_their_rate_is_the_mean() {
        let low = State { rate: Some(0.002), bytes: Some(7), ..state(10, 100, 1, true) };
        let high = State { rate: Some(0.006), bytes: Some(8), ..state(190, 100, 3, true) };
        let all = State::of_shards(&[low.clone(), high]);
        assert_eq!((all.keys, all.capacity, all.stages), (Some(200), Some(200), Some(3)));
        assert_eq!((all.rate, all.bytes), (Some(0.004), Some(15)));
        let unknown = State { keys: None, ..state(0, 100, 1, true) };
        assert_eq!(State::of_shards(&[low, unknown]).keys, None);
    }

    #[test]
    fn advice_is_given_when_there_is_something_to_do() {
        for (state, expected) in [
            (state(10, 100, 1, true), None),
            (state(89, 100, 1, false), None),
            (state(95, 100, 1, true), Some("95 % full, will soon add a stage: rebuild for 200")),
            (state(95, 100, 1, false), Some("95 % full, will soon refuse keys: rebuild for 200")),
            (state(100, 100, 1, false), Some("full: rebuild for 200")),
            (
                state(9_800_000, 14_000_000, 3, true),
                Some("3 stages, rate now 0.4000 %: rebuild for 20 M"),
            ),
            (State { is_window: true, ..state(100, 100, 1, false) }, None),
            (State::default(), None),
            (
                State::loading("ironbloom", "is being loaded: 3 of 9 bytes".to_owned()),
                Some("is being loaded: 3 of 9 bytes: finish the load, or delete the key"),
            ),
        ] {
            assert_eq!(advice(&state).as_deref(), expected, "{state:?}");
        }
    }

    #[test]
    fn a_rebuilt_filter_has_room_for_twice_the_keys() {
        for (keys, room, text) in [
            (0, 2, "2"),
            (6, 20, "20"),
            (500, 1000, "1 k"),
            (9_800_000, 20_000_000, "20 M"),
            (u64::MAX, u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!((room_for(keys), short(room_for(keys))), (room, text.to_owned()), "{keys}");
        }
    }

    #[test]
    fn parts_that_grow_have_more_places_each() {
        assert_eq!((places(64, 2, 3), places(64, 1, 3), places(64, 0, 1)), (448, 192, 64));
        assert_eq!(places(u64::MAX, 9, 70), u64::MAX);
    }
}
