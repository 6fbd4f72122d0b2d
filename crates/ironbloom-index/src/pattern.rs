//! Patterns of `like`: `%` stands for any characters, `_` for one.

use std::fmt;

/// What a text may look like. Letters are compared as they are, upper and lower case apart.
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
        Some(Self { prefix, rest, text: text.to_owned() })
    }

    /// Of all texts that begin like this.
    pub fn starting_with(prefix: &str) -> Self {
        let text = format!("{prefix}%");
        Self { prefix: prefix.to_owned(), rest: vec![Element::Any], text }
    }

    /// What every text that matches begins with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The only text that matches, if there are no wildcards.
    pub fn only(&self) -> Option<&str> {
        self.rest.is_empty().then_some(&self.prefix)
    }

    /// Whether a text matches: UTF-8, or bytes, of which those that continue a character of UTF-8 belong to the one before.
    #[inline]
    pub fn matches(&self, text: &[u8]) -> bool {
        let Some(text) = text.strip_prefix(self.prefix.as_bytes()) else { return false };
        self.rest == [Element::Any] || rest_matches(&self.rest, text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
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
    fn long_texts_do_not_take_long() {
        let text = "a".repeat(10_000);
        let pattern = Pattern::new(&("%a".repeat(20) + "b"), None).unwrap();
        assert!(!pattern.matches(text.as_bytes()));
    }
}
