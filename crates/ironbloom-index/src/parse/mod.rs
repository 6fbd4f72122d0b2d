//! Conditions as people type them: `i3 = 306047 and name in ('O''Hara', 'Li')`.
//!
//! ```text
//!  text ──► tokens ──► Condition, which knows no types ──► Predicate, typed by the columns of a table
//!           tokens.rs   mod.rs                              typed.rs, moment.rs (dates), number.rs (exact decimals)
//! ```
//!
//! The grammar is the part of SQL's `WHERE` that compares one column with literals:
//!
//! ```text
//!  any        = all { "or" all }
//!  all        = one { "and" one }
//!  one        = "not" one | "(" any ")" | comparison
//!  comparison = column ( "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) literal
//!             | column "is" [ "not" ] "null"
//!             | column [ "not" ] "in" "(" literal { "," literal } ")"
//!             | column [ "not" ] "between" literal "and" literal
//!             | column [ "not" ] ( "like" | "ilike" ) 'pattern' [ "escape" 'character' ]
//!             | "starts_with" "(" column "," 'text' ")"
//!  literal    = 12 | -1.5e3 | 'text' | x'00ff' | true | false
//!  column     = name | "quoted name"
//! ```

mod moment;
mod number;
mod tokens;
mod typed;

use std::fmt;

use arrow::datatypes::{DataType, Schema};

use self::tokens::{ARITHMETIC, Token, Tokens};
use crate::similar::write_similar;
use crate::{Pattern, Predicate};

/// A condition whose literals are not typed yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Condition {
    /// A column compared with a literal.
    Compare(String, Comparison, Literal),
    /// The column has one of these values.
    In(String, Vec<Literal>),
    /// The value of the column lies between these, inclusive.
    Between(String, Literal, Literal),
    /// The text of the column looks like this.
    Like(String, Pattern),
    /// The column has no value.
    IsNull(String),
    /// All of these hold.
    And(Vec<Condition>),
    /// One of these holds.
    Or(Vec<Condition>),
    /// This does not hold.
    Not(Box<Condition>),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`, `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A value as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Literal {
    /// A number, as written: the column decides whether it is an integer, a float or a decimal.
    Number(String),
    /// `'text'`
    Text(String),
    /// `x'00ff'`
    Bytes(Vec<u8>),
    /// `true` or `false`
    Bool(bool),
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(digits) => f.write_str(digits),
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Bytes(bytes) => {
                f.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
            Self::Bool(value) => write!(f, "{value}"),
        }
    }
}

/// A condition that cannot be parsed, or does not match the table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConditionError {
    /// The text is not a valid condition.
    Syntax {
        /// All of it.
        text: String,
        /// The byte offset of the error.
        at: usize,
        /// What was expected there.
        expected: &'static str,
    },
    /// A valid condition in SQL, of a form that is not supported here.
    Unsupported {
        /// All of it.
        text: String,
        /// The form.
        what: &'static str,
    },
    /// There is no such column.
    UnknownColumn {
        /// The requested name.
        column: String,
        /// Columns with a similar name.
        similar: Vec<String>,
    },
    /// The literal is not a value of the column's type.
    Type {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// What was typed.
        literal: Literal,
    },
    /// The literal is not a moment in the time zone of the column, or in the one that it names.
    Moment {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// What was typed.
        literal: Literal,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Values of this type cannot be compared with literals.
    Incomparable {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { text, at, expected } => match text[*at..].trim() {
                "" => write!(f, "in `{text}`: expected {expected} at the end"),
                rest => write!(f, "in `{text}`: expected {expected} at `{rest}`"),
            },
            Self::Unsupported { text, what } => write!(f, "in `{text}`: {what} not supported"),
            Self::UnknownColumn { column, similar } => {
                write!(f, "no column {column}")?;
                write_similar(f, similar)
            }
            Self::Type { column, data_type, literal } => {
                write!(f, "column {column} is {data_type}, which {literal} is not")
            }
            Self::Moment { column, data_type, literal, why } => {
                write!(f, "column {column} is {data_type}: {literal} {why}")
            }
            Self::Incomparable { column, data_type } => {
                write!(f, "column {column} is {data_type}, which can only be compared with null")
            }
        }
    }
}

impl std::error::Error for ConditionError {}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    ///
    /// [`ConditionError::Syntax`], with the position.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let mut parser = Parser { tokens: Tokens::new(text), depth: 0 };
        let condition = parser.any()?;
        match parser.tokens.peek()? {
            None => Ok(condition),
            Some(_) => Err(parser.tokens.expected("`and`, `or` or the end")),
        }
    }

    /// The same with names of columns as the schema has them, if these differ only in upper and lower case. A name that the schema
    /// has, and one that it has in several ways, stays as it is.
    pub fn with_names_of(mut self, schema: &Schema) -> Self {
        self.rename(&|name| name_in(schema, name).unwrap_or(name).to_owned());
        self
    }

    fn rename(&mut self, new: &dyn Fn(&str) -> String) {
        match self {
            Self::Compare(name, ..)
            | Self::In(name, _)
            | Self::Between(name, ..)
            | Self::Like(name, _)
            | Self::IsNull(name) => *name = new(name),
            Self::And(parts) | Self::Or(parts) => {
                parts.iter_mut().for_each(|part| part.rename(new));
            }
            Self::Not(part) => part.rename(new),
        }
    }

    /// The condition on a table with this schema.
    ///
    /// # Errors
    ///
    /// [`ConditionError`] if a column does not exist or a literal does not match its type. An integer that the type
    /// cannot hold is accepted: no row has it.
    pub fn typed(&self, schema: &Schema) -> Result<Predicate, ConditionError> {
        typed::typed(self, schema)
    }
}

/// The column that a name means if upper and lower case are the same; `None` if there is none, or are several.
pub fn name_in<'a>(schema: &'a Schema, name: &str) -> Option<&'a str> {
    let names = || schema.fields().iter().map(|field| field.name().as_str());
    if let Some(same) = names().find(|known| *known == name) {
        return Some(same);
    }
    let lower = name.to_lowercase();
    let mut alike = names().filter(|known| known.to_lowercase() == lower);
    match (alike.next(), alike.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// Parses and types a condition in one step.
///
/// # Errors
///
/// As [`Condition::parse`] and [`Condition::typed`].
pub fn parse(text: &str, schema: &Schema) -> Result<Predicate, ConditionError> {
    Condition::parse(text)?.typed(schema)
}

const FUNCTIONS: &str = "functions are";

/// Deeper than anyone types; keeps forged conditions from overflowing the stack, here and where they are evaluated.
const MAX_DEPTH: u32 = 64;

struct Parser<'a> {
    tokens: Tokens<'a>,
    depth: u32,
}

type Parsed<T> = Result<T, ConditionError>;

impl Parser<'_> {
    fn any(&mut self) -> Parsed<Condition> {
        let first = self.all()?;
        let mut parts = vec![first];
        while self.tokens.take_keyword("or")? {
            parts.push(self.all()?);
        }
        Ok(only_or(parts, Condition::Or))
    }

    fn all(&mut self) -> Parsed<Condition> {
        let first = self.one()?;
        let mut parts = vec![first];
        while self.tokens.take_keyword("and")? {
            parts.push(self.one()?);
        }
        Ok(only_or(parts, Condition::And))
    }

    fn one(&mut self) -> Parsed<Condition> {
        if self.depth == MAX_DEPTH {
            return Err(self.tokens.expected("less nesting"));
        }
        self.depth += 1;
        let condition = if self.tokens.take_keyword("not")? {
            Condition::Not(Box::new(self.one()?))
        } else if self.tokens.take(&Token::LeftParen)? {
            let inner = self.any()?;
            self.require(Token::RightParen, "`)`")?;
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn comparison(&mut self) -> Parsed<Condition> {
        let column = self.column()?;
        if column.eq_ignore_ascii_case("starts_with") && self.tokens.take(&Token::LeftParen)? {
            let column = self.column()?;
            self.require(Token::Comma, "`,`")?;
            let pattern = Pattern::starting_with(&self.text()?);
            self.require(Token::RightParen, "`)`")?;
            return Ok(Condition::Like(column, pattern));
        }
        if let Some(Token::Comparison(comparison)) = self.tokens.peek()? {
            self.tokens.next()?;
            return Ok(Condition::Compare(column, comparison, self.literal()?));
        }
        if self.tokens.take_keyword("is")? {
            let not = self.tokens.take_keyword("not")?;
            if !self.tokens.take_keyword("null")? {
                return Err(self.tokens.expected("`null`"));
            }
            return Ok(negated_if(not, Condition::IsNull(column)));
        }
        let not = self.tokens.take_keyword("not")?;
        let condition = if self.tokens.take_keyword("in")? {
            Condition::In(column, self.list()?)
        } else if self.tokens.take_keyword("between")? {
            let low = self.literal()?;
            if !self.tokens.take_keyword("and")? {
                return Err(self.tokens.expected("`and`"));
            }
            Condition::Between(column, low, self.literal()?)
        } else if self.tokens.take_keyword("like")? {
            Condition::Like(column, self.pattern(Pattern::new)?)
        } else if self.tokens.take_keyword("ilike")? {
            Condition::Like(column, self.pattern(Pattern::ignoring_case)?)
        } else {
            return Err(self.no_comparison()?);
        };
        Ok(negated_if(not, condition))
    }

    /// The pattern after `like` or `ilike`.
    fn pattern(&mut self, make: impl Fn(&str, Option<char>) -> Option<Pattern>) -> Parsed<Pattern> {
        let text = self.text()?;
        let mut escape = None;
        if self.tokens.take_keyword("escape")? {
            let not_one = self.tokens.expected("one character in single quotes");
            let given = self.text()?;
            let mut characters = given.chars();
            escape = characters.next();
            if escape.is_none() || characters.next().is_some() {
                return Err(not_one);
            }
        }
        let error =
            self.tokens.expected("a pattern that does not end with its escape character before");
        make(&text, escape).ok_or(error)
    }

    /// A text in single quotes.
    fn text(&mut self) -> Parsed<String> {
        match self.tokens.peek()? {
            Some(Token::Literal(Literal::Text(text))) => {
                self.tokens.next()?;
                Ok(text)
            }
            _ => Err(self.tokens.expected("text in single quotes")),
        }
    }

    /// The error for what follows a column and is not a comparison.
    fn no_comparison(&mut self) -> Parsed<ConditionError> {
        const PATTERNS: [(&str, &str); 4] = [
            ("glob", "`glob` is"),
            ("similar", "`similar to` is"),
            ("regexp", "`regexp` is"),
            ("rlike", "`rlike` is"),
        ];
        let found = self.tokens.peek()?;
        if found == Some(Token::LeftParen) {
            return Ok(self.tokens.unsupported(FUNCTIONS));
        }
        if matches!(&found, Some(Token::Literal(Literal::Number(number))) if number.starts_with(['+', '-']))
        {
            return Ok(self.tokens.unsupported(ARITHMETIC));
        }
        let named = PATTERNS.iter().find(|(word, _)| {
            matches!(&found, Some(Token::Name(name)) if name.eq_ignore_ascii_case(word))
        });
        Ok(match named {
            Some((_, what)) => self.tokens.unsupported(what),
            None => self.tokens.expected("a comparison such as `=`, `in` or `is null`"),
        })
    }

    fn column(&mut self) -> Parsed<String> {
        const KEYWORDS: [&str; 7] = ["and", "or", "not", "in", "is", "between", "null"];
        match self.tokens.peek()? {
            Some(Token::Quoted(name)) => {
                self.tokens.next()?;
                Ok(name)
            }
            Some(Token::Name(name))
                if !KEYWORDS.iter().any(|word| name.eq_ignore_ascii_case(word)) =>
            {
                self.tokens.next()?;
                Ok(name)
            }
            _ => Err(self.tokens.expected("a column")),
        }
    }

    fn list(&mut self) -> Parsed<Vec<Literal>> {
        self.require(Token::LeftParen, "`(`")?;
        let mut list = vec![self.literal()?];
        while self.tokens.take(&Token::Comma)? {
            list.push(self.literal()?);
        }
        self.require(Token::RightParen, "`,` or `)`")?;
        Ok(list)
    }

    fn literal(&mut self) -> Parsed<Literal> {
        let literal = match self.tokens.peek()? {
            Some(Token::Literal(literal)) => literal,
            Some(Token::Name(name)) if name.eq_ignore_ascii_case("true") => Literal::Bool(true),
            Some(Token::Name(name)) if name.eq_ignore_ascii_case("false") => Literal::Bool(false),
            Some(Token::Name(name)) if name.eq_ignore_ascii_case("null") => {
                return Err(self.tokens.expected("a value (nulls are found by `is null`)"));
            }
            Some(Token::Quoted(_)) => {
                return Err(self.tokens.unsupported("comparing two columns is"));
            }
            Some(Token::Name(_)) => {
                let expected = self.tokens.expected(
                    "a value (text in single quotes: 'text'; comparing two columns is not supported)",
                );
                self.tokens.next()?;
                let called = self.tokens.peek()? == Some(Token::LeftParen);
                return Err(if called { self.tokens.unsupported(FUNCTIONS) } else { expected });
            }
            _ => return Err(self.tokens.expected("a value")),
        };
        self.tokens.next()?;
        Ok(literal)
    }

    fn require(&mut self, token: Token, name: &'static str) -> Parsed<()> {
        if self.tokens.take(&token)? { Ok(()) } else { Err(self.tokens.expected(name)) }
    }
}

fn only_or(mut parts: Vec<Condition>, many: fn(Vec<Condition>) -> Condition) -> Condition {
    if parts.len() == 1 { parts.swap_remove(0) } else { many(parts) }
}

fn negated_if(not: bool, condition: Condition) -> Condition {
    if not { Condition::Not(Box::new(condition)) } else { condition }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(digits: &str) -> Literal {
        Literal::Number(digits.into())
    }

    fn equal(column: &str, literal: Literal) -> Condition {
        Condition::Compare(column.into(), Comparison::Equal, literal)
    }

    #[test]
    fn and_binds_tighter_than_or() {
        let (a, b, c) = (equal("a", number("1")), equal("b", number("2")), equal("c", number("3")));
        let parsed = Condition::parse("a = 1 or b=2 and c =3").unwrap();
        assert_eq!(
            parsed,
            Condition::Or(vec![a.clone(), Condition::And(vec![b.clone(), c.clone()])])
        );
        let parsed = Condition::parse("(a = 1 OR b = 2) AND c = 3").unwrap();
        assert_eq!(parsed, Condition::And(vec![Condition::Or(vec![a, b]), c]));
    }

    #[test]
    fn quotes_are_doubled_to_stand_for_themselves() {
        assert_eq!(
            Condition::parse(r#""od""d" = 'O''Hara'"#).unwrap(),
            equal("od\"d", Literal::Text("O'Hara".into()))
        );
    }

    #[test]
    fn every_form_is_understood() {
        let not = |condition| Condition::Not(Box::new(condition));
        let cases = [
            ("b is null", Condition::IsNull("b".into())),
            ("b IS NOT NULL", not(Condition::IsNull("b".into()))),
            ("not b is null", not(Condition::IsNull("b".into()))),
            (
                "a in (1, -2,+3)",
                Condition::In("a".into(), vec![number("1"), number("-2"), number("+3")]),
            ),
            ("a not in ('x')", not(Condition::In("a".into(), vec![Literal::Text("x".into())]))),
            ("x between 1 and 2", Condition::Between("x".into(), number("1"), number("2"))),
            ("x != 5", Condition::Compare("x".into(), Comparison::NotEqual, number("5"))),
            ("x<>5", Condition::Compare("x".into(), Comparison::NotEqual, number("5"))),
            ("x<-.5e-3", Condition::Compare("x".into(), Comparison::Less, number("-.5e-3"))),
            ("x >= 5", Condition::Compare("x".into(), Comparison::GreaterOrEqual, number("5"))),
            ("x == x'00fF'", equal("x", Literal::Bytes(vec![0, 255]))),
            ("a like 'x%'", Condition::Like("a".into(), Pattern::new("x%", None).unwrap())),
            (
                "a NOT LIKE 'x!%%' ESCAPE '!'",
                not(Condition::Like("a".into(), Pattern::new("x!%%", Some('!')).unwrap())),
            ),
            (
                "a ilike 'X%'",
                Condition::Like("a".into(), Pattern::ignoring_case("X%", None).unwrap()),
            ),
            ("starts_with(a, 'x_')", Condition::Like("a".into(), Pattern::starting_with("x_"))),
            ("starts_with = 'x'", equal("starts_with", Literal::Text("x".into()))),
            ("größe.cm = True", equal("größe.cm", Literal::Bool(true))),
        ];
        for (text, wanted) in cases {
            assert_eq!(Condition::parse(text).as_ref(), Ok(&wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_with_the_place() {
        let cases = [
            ("", "in ``: expected a column at the end"),
            ("i3 = ", "in `i3 = `: expected a value at the end"),
            (
                "i3 306",
                "in `i3 306`: expected a comparison such as `=`, `in` or `is null` at `306`",
            ),
            ("a = 1 b = 2", "in `a = 1 b = 2`: expected `and`, `or` or the end at `b = 2`"),
            (
                "a = bob",
                "in `a = bob`: expected a value (text in single quotes: 'text'; comparing two columns is not supported) \
                 at `bob`",
            ),
            ("a = \"b\"", "in `a = \"b\"`: comparing two columns is not supported"),
            ("a not GLOB 'x'", "in `a not GLOB 'x'`: `glob` is not supported"),
            ("a like 5", "in `a like 5`: expected text in single quotes at `5`"),
            (
                "a like 'x' escape '!!'",
                "in `a like 'x' escape '!!'`: expected one character in single quotes at `'!!'`",
            ),
            (
                "a like 'x!' escape '!'",
                "in `a like 'x!' escape '!'`: expected a pattern that does not end with its escape character before at the \
                 end",
            ),
            ("starts_with(a)", "in `starts_with(a)`: expected `,` at `)`"),
            ("lower(a) = 'x'", "in `lower(a) = 'x'`: functions are not supported"),
            ("a = date('x')", "in `a = date('x')`: functions are not supported"),
            ("a + 1 = 2", "in `a + 1 = 2`: arithmetic is not supported"),
            ("a -1 = 2", "in `a -1 = 2`: arithmetic is not supported"),
            ("a = 2 * 3", "in `a = 2 * 3`: arithmetic is not supported"),
            ("a = 2-1", "in `a = 2-1`: arithmetic is not supported"),
            ("a % 2 = 0", "in `a % 2 = 0`: arithmetic is not supported"),
            (
                "a = null",
                "in `a = null`: expected a value (nulls are found by `is null`) at `null`",
            ),
            ("a = 'x", "in `a = 'x`: expected a closing quote at the end"),
            ("a in ()", "in `a in ()`: expected a value at `)`"),
            ("a in (1", "in `a in (1`: expected `,` or `)` at the end"),
            ("(a = 1", "in `(a = 1`: expected `)` at the end"),
            ("a between 1 or 2", "in `a between 1 or 2`: expected `and` at `or 2`"),
            ("a = x'0g'", "in `a = x'0g'`: expected pairs of hexadecimal digits at `x'0g'`"),
            ("a = 1x", "in `a = 1x`: expected a number at `1x`"),
            ("a ? 1", "in `a ? 1`: expected a column, a comparison or a value at `? 1`"),
        ];
        for (text, message) in cases {
            assert_eq!(Condition::parse(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_not_a_crash() {
        for nested in ["(".repeat(100_000), "not ".repeat(100_000)] {
            assert!(matches!(Condition::parse(&nested), Err(ConditionError::Syntax { .. })));
        }
    }
}
