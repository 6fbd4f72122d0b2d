//! Patterns of `like`: `%` stands for any characters, `_` for one.

use std::fmt;

/// What a text may look like. Letters are compared as they are, upper and lower case apart, unless
/// [`ignoring_case`](Self::ignoring_case) says otherwise.
///
/// ```
/// use ironbloom_index::Pattern;
///
/// let pattern = Pattern::new("ab%_", None).unwrap();
/// assert!(pattern.matches(b"abc") && !pattern.matches(b"ab"));
/// assert_eq!(pattern.prefix(), "ab");
/// assert!(Pattern::new("100!%", Some('!')).unwrap().matches(b"100%"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// What every text begins with.
    prefix: String,
    rest: Vec<Element>,
    /// As it was written.
    text: String,
    /// Upper and lower case are the same: prefix and rest are in lower case, and so is what is compared with them.
    ignores_case: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Element {
    Byte(u8),
    /// `_`
    One,
    /// `%`
    Any,
}

impl Pattern {
    /// A pattern as SQL writes it. After the escape character, `%`, `_` and the escape character stand for themselves; as in
    /// the standard, there is none unless it is given. `None` if the escape character is the last one.
    pub fn new(text: &str, escape: Option<char>) -> Option<Self> {
        let (mut prefix, mut rest) = (String::new(), Vec::new());
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let (literal, wildcard) = match character {
                escaped if Some(escaped) == escape => (characters.next()?, None),
                '%' => ('%', Some(Element::Any)),
                '_' => ('_', Some(Element::One)),
                other => (other, None),
            };
            match wildcard {
                Some(element) => rest.push(element),
                None if rest.is_empty() => prefix.push(literal),
                None => {
                    let mut bytes = [0; 4];
                    rest.extend(literal.encode_utf8(&mut bytes).bytes().map(Element::Byte));
                }
            }
        }
        Some(Self { prefix, rest, text: text.to_owned(), ignores_case: false })
    }

    /// Of all texts that begin like this.
    pub fn starting_with(prefix: &str) -> Self {
        let text = format!("{prefix}%");
        Self { prefix: prefix.to_owned(), rest: vec![Element::Any], text, ignores_case: false }
    }

    /// The same, with upper and lower case letters taken for equal, as `ilike` does.
    pub fn ignoring_case(text: &str, escape: Option<char>) -> Option<Self> {
        let as_it_is = Self::new(text, escape)?;
        let (prefix, rest) = (as_it_is.prefix.to_lowercase(), in_lower_case(&as_it_is.rest));
        Some(Self { prefix, rest, ignores_case: true, ..as_it_is })
    }

    /// What every text that matches begins with.
    pub fn prefix(&self) -> &str {
        if !self.ignores_case {
            return &self.prefix;
        }
        // Up to the first letter that may be written in two ways. (Some letters that are not ASCII become ASCII in lower case,
        // but only letters do.)
        let end = self.prefix.find(|c: char| !c.is_ascii() || c.is_ascii_alphabetic());
        &self.prefix[..end.unwrap_or(self.prefix.len())]
    }

    /// The only text that matches, if there are no wildcards.
    pub fn only(&self) -> Option<&str> {
        (self.rest.is_empty() && self.prefix() == self.prefix).then_some(&self.prefix)
    }

    /// Whether a text matches: UTF-8, or bytes, of which those that continue a character of UTF-8 belong to the one before.
    #[inline]
    pub fn matches(&self, text: &[u8]) -> bool {
        if self.ignores_case {
            return match std::str::from_utf8(text) {
                Ok(text) => self.matches_as_it_is(text.to_lowercase().as_bytes()),
                Err(_) => self.matches_as_it_is(&text.to_ascii_lowercase()),
            };
        }
        self.matches_as_it_is(text)
    }

    #[inline]
    fn matches_as_it_is(&self, text: &[u8]) -> bool {
        let Some(text) = text.strip_prefix(self.prefix.as_bytes()) else { return false };
        self.rest == [Element::Any] || rest_matches(&self.rest, text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The same with the texts between wildcards in lower case.
fn in_lower_case(elements: &[Element]) -> Vec<Element> {
    let mut lower = Vec::with_capacity(elements.len());
    let is_byte = |element: &Element| matches!(element, Element::Byte(_));
    for run in elements.chunk_by(|a, b| is_byte(a) && is_byte(b)) {
        let bytes = run.iter().filter_map(|element| match element {
            Element::Byte(byte) => Some(*byte),
            _ => None,
        });
        match String::from_utf8(bytes.collect()) {
            Ok(text) if !text.is_empty() => {
                lower.extend(text.to_lowercase().bytes().map(Element::Byte));
            }
            _ => lower.extend_from_slice(run),
        }
    }
    lower
}

/// Where the character after this one begins.
fn after(text: &[u8], at: usize) -> usize {
    let continues = |byte: &&u8| **byte & 0xc0 == 0x80;
    at + 1 + text[at + 1..].iter().take_while(continues).count()
}

/// Tries the shortest text for each `%`, and one character more whenever the rest does not match. Only the last `%` has to be
/// tried again: what came before it has found its place as early as possible.
fn rest_matches(elements: &[Element], text: &[u8]) -> bool {
    let (mut element, mut at) = (0, 0);
    // After the last `%`: the element that follows, and where it was tried.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match elements.get(element) {
            None if at == text.len() => return true,
            Some(Element::Any) => {
                element += 1;
                retry = Some((element, at));
                continue;
            }
            Some(Element::One) if at < text.len() => {
                (element, at) = (element + 1, after(text, at));
                continue;
            }
            Some(Element::Byte(byte)) if text.get(at) == Some(byte) => {
                (element, at) = (element + 1, at + 1);
                continue;
            }
            _ => {}
        }
        match retry {
            Some((next, tried)) if tried < text.len() => {
                let later = after(text, tried);
                (element, at, retry) = (next, later, Some((next, later)));
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, by recursion.
    fn holds(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|skip| holds(rest, &text[skip..])),
            ['_', rest @ ..] => !text.is_empty() && holds(rest, &text[1..]),
            [letter, rest @ ..] => text.first() == Some(letter) && holds(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn patterns_match_as_the_definition_says(pattern in "[ab%_é€]{0,8}", text in "[abé€]{0,10}") {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            let wanted = holds(&characters(&pattern), &characters(&text));
            let parsed = Pattern::new(&pattern, None).unwrap();
            prop_assert_eq!(parsed.matches(text.as_bytes()), wanted);
            prop_assert!(!wanted || text.starts_with(parsed.prefix()));
            prop_assert!(parsed.only().is_none_or(|only| wanted == (only == text)));
            prop_assert_eq!(parsed.to_string(), pattern);
        }

        #[test]
        fn escaped_characters_stand_for_themselves(text in "[ab%_!]{0,8}") {
            let escaped: String = text.chars().flat_map(|letter| ['!', letter]).collect();
            let pattern = Pattern::new(&escaped, Some('!')).unwrap();
            prop_assert_eq!(pattern.only(), Some(text.as_str()));
            prop_assert!(pattern.matches(text.as_bytes()));
            prop_assert_eq!(Pattern::new(&(escaped + "!"), Some('!')), None);
        }
    }

    #[test]
    fn upper_and_lower_case_are_the_same_if_that_is_asked_for() {
        let pattern = |text| Pattern::ignoring_case(text, Some('!')).unwrap();
        for (text, matching, prefix) in [
            ("oSlo", "OSLO", ""),
            ("ÅS%", "åsgård", ""),
            ("%STRASSE", "Bergstrasse", ""),
            ("12-a%", "12-Abc", "12-"),
            ("100!%", "100%", "100%"),
            ("!_%ÅB_c", "_xåbxC", "_"),
        ] {
            assert!(pattern(text).matches(matching.as_bytes()), "{text}");
            assert_eq!(pattern(text).prefix(), prefix, "{text}");
            assert!(matching.starts_with(prefix));
        }
        assert!(!pattern("oslo").matches(b"oslo!") && !pattern("a_").matches(b"A"));
        assert_eq!((pattern("oslo").only(), pattern("12").only()), (None, Some("12")));
    }

    #[test]
    fn long_texts_do_not_take_long() {
        let text = "a".repeat(10_000);
        let pattern = Pattern::new(&("%a".repeat(20) + "b"), None).unwrap();
        assert!(!pattern.matches(text.as_bytes()));
    }
}
