//! Names like a misspelled one, for "did you mean …?".

use std::fmt;

/// Names like this one, the most similar first.
pub(crate) fn similar<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Vec<String> {
    const MAX: usize = 3;
    let lower = name.to_lowercase();
    let mut similar: Vec<_> = known
        .map(|known| (distance(&lower, &known.to_lowercase()), known))
        .filter(|(distance, known)| *distance <= 2 && *distance < known.chars().count())
        .collect();
    similar.sort();
    similar.into_iter().take(MAX).map(|(_, known)| known.clone()).collect()
}

/// Number of characters to be inserted, removed or replaced to turn one into the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// "; did you mean a or b?", or nothing.
pub(crate) fn write_similar(f: &mut fmt::Formatter<'_>, names: &[String]) -> fmt::Result {
    if names.is_empty() { Ok(()) } else { write!(f, "; did you mean {}?", names.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let known = ["i3", "I30", "name", "Größe", "x"].map(String::from);
        assert_eq!(similar("i4", known.iter()), ["i3", "I30"]);
        assert_eq!(similar("grösse", known.iter()), ["Größe"]);
        assert_eq!(similar("NAME", known.iter()), ["name"]);
        assert!(similar("zzzzzz", known.iter()).is_empty());
    }
}
