//! The replies of BF.DEBUG and CF.DEBUG, character for character.

use super::chain::Chain;
use super::cuckoo::CuckooFilter;
use super::link::Link;

/// The lines of BF.DEBUG: the number of keys, then one line per link.
pub fn chain_lines(chain: &Chain) -> Vec<String> {
    let first = format!("size:{}", chain.len());
    std::iter::once(first).chain(chain.links().iter().map(link_line)).collect()
}

fn link_line(link: &Link) -> String {
    let shape = link.shape();
    format!(
        "bytes:{} bits:{} hashes:{} hashwidth:64 capacity:{} size:{} ratio:{}",
        shape.bytes(),
        shape.bits,
        shape.probes,
        shape.capacity,
        link.len(),
        short(shape.rate)
    )
}

/// The line of CF.DEBUG.
pub fn cuckoo_line(filter: &CuckooFilter) -> String {
    let shape = filter.shape();
    format!(
        "bktsize:{} buckets:{} items:{} deletes:{} filters:{} max_iterations:{} expansion:{}",
        shape.bucket_size(),
        shape.buckets(),
        filter.len(),
        filter.removed(),
        filter.sub_filters(),
        shape.max_iterations(),
        shape.expansion()
    )
}

/// Formats a positive number with six digits like C's `%g`: with an exponent below 10^-4, and
/// without trailing zeros.
fn short(number: f64) -> String {
    const DIGITS: i32 = 6;
    let scientific = format!("{number:.*e}", DIGITS as usize - 1);
    let (digits, exponent) = scientific.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a whole exponent");
    if (-4..DIGITS).contains(&exponent) {
        let decimals = (DIGITS - 1 - exponent) as usize;
        return without_zeros(&format!("{number:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs())
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of `printf %g`.
    #[test]
    fn rates_are_printed_as_c_does() {
        for (number, text) in [
            (0.5, "0.5"),
            (0.005, "0.005"),
            (0.00015625, "0.00015625"),
            (0.000078125, "7.8125e-05"),
            (0.25, "0.25"),
            (0.123456789, "0.123457"),
            (0.99999999, "1"),
            (1.0 / 3.0 * 1e-4, "3.33333e-05"),
            (1e-4, "0.0001"),
            (0.5e-100, "5e-101"),
        ] {
            assert_eq!(short(number), text);
        }
    }
}
