//! Quantiles, ranks and means. Between two nodes the distribution is taken as uniform; a node of weight 1 is a number that is
//! known exactly.

use super::{Node, TDigest};

impl TDigest {
    /// The number below which a share of all numbers lies, NaN if there are none. Shares outside of [0, 1] are taken as the nearest
    /// end.
    pub fn quantile(&mut self, share: f64) -> f64 {
        self.compress();
        quantile(self, share.clamp(0.0, 1.0))
    }

    /// The share of numbers below this one, half of the equal ones included; NaN if there are none.
    pub fn cdf(&mut self, number: f64) -> f64 {
        self.compress();
        cdf(self, number)
    }

    /// Number of numbers below this one, half of the equal ones included: none if the digest is empty, -1 below the minimum.
    pub fn rank(&mut self, number: f64) -> Option<i64> {
        let weight = self.weight();
        match self.place(number)? {
            Place::Below => Some(-1),
            Place::Above => Some(weight),
            Place::Within => Some(half_down(self.cdf(number) * weight as f64)),
        }
    }

    /// Number of numbers above this one: none if the digest is empty, -1 above the maximum.
    pub fn reverse_rank(&mut self, number: f64) -> Option<i64> {
        let weight = self.weight();
        match self.place(number)? {
            Place::Below => Some(weight),
            Place::Above => Some(-1),
            Place::Within => {
                Some(weight.saturating_sub((self.cdf(number) * weight as f64).round() as i64))
            }
        }
    }

    /// The number of this rank, from 0: NaN if the digest is empty, infinity if the rank is too high.
    pub fn by_rank(&mut self, rank: u64) -> f64 {
        let weight = self.weight() as u64;
        match rank {
            _ if weight == 0 => f64::NAN,
            0 => self.min,
            rank if rank >= weight => f64::INFINITY,
            rank => self.at_rank(rank),
        }
    }

    /// The number of this rank, from 0, the largest first: NaN if the digest is empty, minus infinity if the rank is too high.
    pub fn by_reverse_rank(&mut self, rank: u64) -> f64 {
        let weight = self.weight() as u64;
        match rank {
            _ if weight == 0 => f64::NAN,
            0 => self.max,
            rank if rank >= weight => f64::NEG_INFINITY,
            rank => self.at_rank(weight - rank - 1),
        }
    }

    fn at_rank(&mut self, rank: u64) -> f64 {
        self.compress();
        let weight = self.weight() as f64;
        let share = rank as f64 / weight;
        if share * weight < 1.0 { self.min } else { quantile(self, share) }
    }

    /// The mean of the numbers between two shares, NaN if there are none.
    pub fn trimmed_mean(&mut self, low: f64, high: f64) -> f64 {
        self.compress();
        match self.nodes[..] {
            [] => return f64::NAN,
            [node] => return node.mean,
            _ => {}
        }
        let total = self.merged_weight as f64;
        let (first, last) = ((total * low).floor(), (total * high).ceil());
        let (mut sum, mut count) = (0.0, 0.0);
        self.each_within(first, last, |mean, counted| {
            sum += mean * counted;
            count += counted;
        });
        if f64::is_finite(sum) {
            return sum / count;
        }
        // The sum of huge numbers is no number, their mean is.
        let (mut mean, mut count) = (0.0, 0.0);
        self.each_within(first, last, |next, counted| {
            count += counted;
            if counted > 0.0 {
                mean = along(mean, next, counted / count);
            }
        });
        mean
    }

    /// Calls `each` with the means between two ranks, and how often each counts.
    fn each_within(&self, first: f64, last: f64, mut each: impl FnMut(f64, f64)) {
        let mut done = 0.0;
        for &Node { mean, weight } in &self.nodes {
            let weight = weight as f64;
            let mut counted = weight - f64::max(0.0, first - done).min(weight);
            counted = f64::max(0.0, last - done).min(counted);
            done += weight;
            each(mean, counted);
            if done >= last {
                break;
            }
        }
    }

    /// Where a number is, if there are any.
    fn place(&self, number: f64) -> Option<Place> {
        if self.nodes.is_empty() {
            None
        } else if number < self.min {
            Some(Place::Below)
        } else if number > self.max {
            Some(Place::Above)
        } else {
            Some(Place::Within)
        }
    }
}

enum Place {
    Below,
    Within,
    Above,
}

/// The nearest whole number, of two the lower one.
fn half_down(number: f64) -> i64 {
    let whole = number.floor();
    (if number - whole <= 0.5 { whole } else { number.ceil() }) as i64
}

/// Whether a node is one number.
fn is_one(node: Node) -> bool {
    node.weight == 1
}

fn quantile(digest: &TDigest, share: f64) -> f64 {
    let nodes = &digest.nodes;
    let (first, last) = match nodes[..] {
        [] => return f64::NAN,
        [node] => return node.mean,
        [first, .., last] => (first, last),
    };
    let total = digest.merged_weight as f64;
    let at = share * total;
    let half_first = first.weight as f64 / 2.0;
    if first.weight > 1 && at < half_first {
        return along(digest.min, first.mean, (at - 1.0) / (half_first - 1.0));
    }
    if at > total - 1.0 {
        return digest.max;
    }
    let half_last = last.weight as f64 / 2.0;
    if last.weight > 1 && total - at <= half_last {
        return along(digest.max, last.mean, (total - at - 1.0) / (half_last - 1.0));
    }
    let mut before = half_first;
    for (&left, &right) in nodes.iter().zip(&nodes[1..]) {
        let distance = (left.weight as f64 + right.weight as f64) / 2.0;
        if before + distance > at {
            return between(left, right, at - before, before + distance - at);
        }
        before += distance;
    }
    let left = at - total - half_last;
    average(last.mean, left, digest.max, half_last - left)
}

/// The number that is this far from two nodes, counted in numbers.
fn between(left: Node, right: Node, from_left: f64, from_right: f64) -> f64 {
    let mut excluded = (0.0, 0.0);
    if is_one(left) {
        if from_left < 0.5 {
            return left.mean;
        }
        excluded.0 = 0.5;
    }
    if is_one(right) {
        if from_right <= 0.5 {
            return right.mean;
        }
        excluded.1 = 0.5;
    }
    average(left.mean, from_right - excluded.1, right.mean, from_left - excluded.0)
}

/// The weighted mean of two numbers, which lies between them whatever the rounding.
fn average(one: f64, one_weight: f64, two: f64, two_weight: f64) -> f64 {
    let sum = one * one_weight + two * two_weight;
    let mean = if sum.is_finite() {
        sum / (one_weight + two_weight)
    } else {
        along(one, two, two_weight / (one_weight + two_weight))
    };
    let (least, greatest) = if one <= two { (one, two) } else { (two, one) };
    least.max(mean.min(greatest))
}

/// The number at this share of the way between two, whose distance may be no number.
fn along(from: f64, to: f64, share: f64) -> f64 {
    let distance = to - from;
    if distance.is_finite() { from + share * distance } else { from * (1.0 - share) + to * share }
}

/// The share of the way between two numbers at which one is. Halves of the largest ones have a distance.
fn share_of_way(from: f64, to: f64, number: f64) -> f64 {
    let distance = to - from;
    if distance.is_finite() {
        (number - from) / distance
    } else {
        (number / 2.0 - from / 2.0) / (to / 2.0 - from / 2.0)
    }
}

fn cdf(digest: &TDigest, number: f64) -> f64 {
    let nodes = &digest.nodes;
    if nodes.is_empty() {
        return f64::NAN;
    }
    if number < digest.min {
        return 0.0;
    }
    if number > digest.max {
        return 1.0;
    }
    let [first, .., last] = nodes[..] else { return 0.5 };
    let total = digest.merged_weight as f64;
    if number < first.mean {
        return tail(digest.min, first, number, total);
    }
    if number > last.mean {
        return 1.0 - tail(digest.max, last, number, total);
    }
    let mut before = 0.0;
    for (i, (&left, &right)) in nodes.iter().zip(&nodes[1..]).enumerate() {
        if left.mean == number {
            let run = nodes[i..].iter().take_while(|node| node.mean == number);
            let weight: f64 = run.map(|node| node.weight as f64).sum();
            return (before + weight / 2.0) / total;
        }
        if left.mean <= number && number < right.mean {
            return share_between(left, right, number, before) / total;
        }
        before += left.weight as f64;
    }
    1.0 - 0.5 / total
}

/// The share of numbers beyond one that lies between an end and the node there.
fn tail(end: f64, node: Node, number: f64, total: f64) -> f64 {
    if number == end {
        return 0.5 / total;
    }
    (1.0 + share_of_way(end, node.mean, number) * (node.weight as f64 / 2.0 - 1.0)) / total
}

/// How many numbers are below one between two nodes.
fn share_between(left: Node, right: Node, number: f64, before: f64) -> f64 {
    let (left_weight, right_weight) = (left.weight as f64, right.weight as f64);
    let (left_excluded, right_excluded) = match (is_one(left), is_one(right)) {
        (true, true) => return before + 1.0,
        (true, false) => (0.5, 0.0),
        (false, true) => (0.0, 0.5),
        (false, false) => (0.0, 0.0),
    };
    let distance = (left_weight + right_weight) / 2.0 - left_excluded - right_excluded;
    let base = before + left_weight / 2.0 + left_excluded;
    let below = distance * (number - left.mean) / (right.mean - left.mean);
    if below.is_finite() {
        base + below
    } else {
        base + distance * share_of_way(left.mean, right.mean, number)
    }
}
