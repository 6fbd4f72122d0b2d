//! Splits a condition into tokens.

use super::{Comparison, ConditionError, Literal};

/// One token of a condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A bare word: a keyword or a column.
    Name(String),
    /// A name in double quotes: always a column.
    Quoted(String),
    Literal(Literal),
    Comparison(Comparison),
    LeftParen,
    RightParen,
    Comma,
}

/// The tokens of a text, with one token of lookahead.
pub(super) struct Tokens<'a> {
    text: &'a str,
    /// Everything before this byte has been taken.
    at: usize,
    /// The token at `at`, and the byte after it.
    peeked: Option<(Token, usize)>,
    /// Whether the last token was a value, so that a sign cannot begin one.
    is_after_value: bool,
}

/// What is said of signs that calculate.
pub(super) const ARITHMETIC: &str = "arithmetic is";

type Found<T> = Result<T, ConditionError>;

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: text.len() - text.trim_start().len(), peeked: None, is_after_value: false }
    }

    /// The next token, left where it is; `None` at the end.
    pub(super) fn peek(&mut self) -> Found<Option<Token>> {
        if self.peeked.is_none() {
            self.peeked = self.read()?;
        }
        Ok(self.peeked.as_ref().map(|(token, _)| token.clone()))
    }

    pub(super) fn next(&mut self) -> Found<Option<Token>> {
        let token = self.peek()?;
        if let Some((token, end)) = self.peeked.take() {
            self.is_after_value =
                matches!(token, Token::Literal(_) | Token::Quoted(_) | Token::RightParen);
            let rest = &self.text[end..];
            self.at = self.text.len() - rest.trim_start().len();
        }
        Ok(token)
    }

    /// Takes the next token if it is this one.
    pub(super) fn take(&mut self, wanted: &Token) -> Found<bool> {
        let found = self.peek()?.as_ref() == Some(wanted);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    /// Takes the next token if it is this keyword, case-insensitively.
    pub(super) fn take_keyword(&mut self, keyword: &str) -> Found<bool> {
        let found =
            matches!(self.peek()?, Some(Token::Name(name)) if name.eq_ignore_ascii_case(keyword));
        if found {
            self.next()?;
        }
        Ok(found)
    }

    /// The error that something else should be here.
    pub(super) fn expected(&self, expected: &'static str) -> ConditionError {
        self.expected_at(self.at, expected)
    }

    /// The error that this is not supported.
    pub(super) fn unsupported(&self, what: &'static str) -> ConditionError {
        ConditionError::Unsupported { text: self.text.into(), what }
    }

    fn expected_at(&self, at: usize, expected: &'static str) -> ConditionError {
        ConditionError::Syntax { text: self.text.into(), at, expected }
    }

    /// The token at `at` and where it ends.
    fn read(&self) -> Found<Option<(Token, usize)>> {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let (token, length) = match first {
            '(' => (Token::LeftParen, 1),
            ')' => (Token::RightParen, 1),
            ',' => (Token::Comma, 1),
            '\'' => {
                self.quoted(rest, '\'').map(|(text, n)| (Token::Literal(Literal::Text(text)), n))?
            }
            '"' => self.quoted(rest, '"').map(|(name, n)| (Token::Quoted(name), n))?,
            'x' | 'X' if rest[1..].starts_with('\'') => self.bytes(rest)?,
            '*' | '/' | '%' => return Err(self.unsupported(ARITHMETIC)),
            '+' | '-' if self.is_after_value || rest[1..].starts_with(' ') => {
                return Err(self.unsupported(ARITHMETIC));
            }
            '0'..='9' | '.' | '+' | '-' => self.number(rest)?,
            '=' | '!' | '<' | '>' => self.comparison(rest)?,
            _ if is_name(first) => {
                let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                (Token::Name(rest[..length].into()), length)
            }
            _ => return Err(self.expected("a column, a comparison or a value")),
        };
        Ok(Some((token, self.at + length)))
    }

    /// What stands between quotes, in which a doubled quote is one, and the bytes of it all.
    fn quoted(&self, rest: &str, quote: char) -> Found<(String, usize)> {
        let mut text = String::new();
        let mut characters = rest.char_indices().skip(1).peekable();
        while let Some((at, character)) = characters.next() {
            if character != quote {
                text.push(character);
            } else if characters.next_if(|&(_, next)| next == quote).is_some() {
                text.push(quote);
            } else {
                return Ok((text, at + 1));
            }
        }
        Err(self.expected_at(self.text.len(), "a closing quote"))
    }

    fn bytes(&self, rest: &str) -> Found<(Token, usize)> {
        let (digits, length) = self.quoted(&rest[1..], '\'')?;
        let pairs = digits.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            // Not `from_str_radix` alone: it accepts a sign.
            pair.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
            u8::from_str_radix(pair, 16).ok()
        });
        match pairs.collect() {
            Some(bytes) => Ok((Token::Literal(Literal::Bytes(bytes)), length + 1)),
            None => Err(self.expected("pairs of hexadecimal digits")),
        }
    }

    fn number(&self, rest: &str) -> Found<(Token, usize)> {
        let mut length = 0;
        let mut last = ' ';
        for character in rest.chars() {
            let sign = matches!(character, '+' | '-') && (length == 0 || matches!(last, 'e' | 'E'));
            if !sign && !is_name(character) {
                break;
            }
            length += character.len_utf8();
            last = character;
        }
        let digits = &rest[..length];
        let body = digits.trim_start_matches(['+', '-']);
        // Rust's floats have the syntax we want, but also names such as inf.
        if body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && digits.parse::<f64>().is_ok()
        {
            Ok((Token::Literal(Literal::Number(digits.into())), length))
        } else {
            Err(self.expected("a number"))
        }
    }

    fn comparison(&self, rest: &str) -> Found<(Token, usize)> {
        // The longer ones first: `<` is the beginning of `<=`.
        const ALL: [(&str, Comparison); 8] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<>", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("=", Comparison::Equal),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        match ALL.iter().find(|(sign, _)| rest.starts_with(sign)) {
            Some((sign, comparison)) => Ok((Token::Comparison(*comparison), sign.len())),
            None => Err(self.expected("a comparison such as `=`")),
        }
    }
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '.' | '$')
}
