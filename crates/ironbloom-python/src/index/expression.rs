//! Conditions that are built in Python: `(col("user_id") == 7) & col("country").isin(["SE", "NO"])`.
//!
//! A condition built here is the same [`Condition`] that a text is parsed to: nothing has to be quoted, and the column
//! decides what a number means.

use ironbloom_index::{Comparison, Condition, Literal, Pattern};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDate, PyFloat, PyInt, PyString};

use crate::errors::{OrRaise, named};

/// As deep as a text may be: conditions are walked through recursively.
const MAX_DEPTH: u32 = 64;

/// Character that escapes a wildcard.
const ESCAPE: char = '!';

/// A column in a condition.
#[pyclass(frozen, module = "ironbloom", name = "Column")]
pub(crate) struct Column(String);

/// A condition on rows. `&` is and, `|` is or, `~` is not.
#[pyclass(frozen, module = "ironbloom", name = "Expr")]
pub(crate) struct Expr {
    condition: Condition,
    depth: u32,
}

/// A column by its name, to build a condition with.
#[pyfunction]
pub(crate) fn col(name: String) -> Column {
    Column(name)
}

/// A condition from a text or an expression.
pub(crate) fn condition(given: &Bound<'_, PyAny>) -> PyResult<Condition> {
    if let Ok(text) = given.cast::<PyString>() {
        return Condition::parse(text.to_str()?).or_raise(given.py());
    }
    if let Ok(expr) = given.cast::<Expr>() {
        return Ok(expr.get().condition.clone());
    }
    Err(PyTypeError::new_err(format!(
        "a condition is a str or made with ironbloom.col, not {}",
        given.get_type().name()?
    )))
}

fn one(condition: Condition) -> Expr {
    Expr { condition, depth: 1 }
}

fn not(condition: Condition) -> Condition {
    match condition {
        Condition::Not(inner) => *inner,
        other => Condition::Not(Box::new(other)),
    }
}

#[pymethods]
impl Column {
    fn __richcmp__(&self, value: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Expr> {
        if value.is_none() {
            let null = Condition::IsNull(self.0.clone());
            return match op {
                CompareOp::Eq => Ok(one(null)),
                CompareOp::Ne => Ok(one(not(null))),
                _ => Err(PyTypeError::new_err("null is neither less nor greater than a value")),
            };
        }
        let comparison = match op {
            CompareOp::Eq => Comparison::Equal,
            CompareOp::Ne => Comparison::NotEqual,
            CompareOp::Lt => Comparison::Less,
            CompareOp::Le => Comparison::LessOrEqual,
            CompareOp::Gt => Comparison::Greater,
            CompareOp::Ge => Comparison::GreaterOrEqual,
        };
        Ok(one(Condition::Compare(self.0.clone(), comparison, literal(value)?)))
    }

    /// The column has one of these values; None among them stands for null.
    fn isin(&self, values: &Bound<'_, PyAny>) -> PyResult<Expr> {
        if values.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("isin needs several values, not a str"));
        }
        // Columns of other libraries have Python objects for their values.
        let mut values = values.clone();
        for name in ["to_pylist", "tolist", "to_list"] {
            if let Some(method) = values.getattr_opt(name)? {
                values = method.call0()?;
                break;
            }
        }
        let (mut literals, mut null) = (Vec::new(), false);
        for value in values.try_iter()? {
            let value = value?;
            if value.is_none() {
                null = true;
            } else {
                literals.push(literal(&value)?);
            }
        }
        let some = Condition::In(self.0.clone(), literals);
        if !null {
            return Ok(one(some));
        }
        let is_null = Condition::IsNull(self.0.clone());
        Ok(Expr { condition: Condition::Or(vec![some, is_null]), depth: 2 })
    }

    /// The value lies between these, inclusive.
    fn between(&self, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<Expr> {
        Ok(one(Condition::Between(self.0.clone(), literal(low)?, literal(high)?)))
    }

    /// The text of the column looks like this, as in SQL: `%` stands for any characters, `_` for one.
    fn like(&self, pattern: &str) -> Expr {
        let pattern = Pattern::new(pattern, None).expect("only an escape character can be wrong");
        one(Condition::Like(self.0.clone(), pattern))
    }

    /// The text of the column begins with this.
    fn startswith(&self, prefix: &str) -> Expr {
        let mut pattern = String::new();
        for character in prefix.chars() {
            if matches!(character, '%' | '_' | ESCAPE) {
                pattern.push(ESCAPE);
            }
            pattern.push(character);
        }
        pattern.push('%');
        let pattern = Pattern::new(&pattern, Some(ESCAPE)).expect("it ends with a wildcard");
        one(Condition::Like(self.0.clone(), pattern))
    }

    /// The column has no value.
    fn is_null(&self) -> Expr {
        one(Condition::IsNull(self.0.clone()))
    }

    /// The column has a value.
    fn is_not_null(&self) -> Expr {
        one(not(Condition::IsNull(self.0.clone())))
    }

    fn __repr__(&self) -> String {
        format!("col({:?})", self.0)
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(PyTypeError::new_err("unhashable type: 'Column'"))
    }
}

#[pymethods]
impl Expr {
    fn __and__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Self> {
        let join = |condition| match condition {
            Condition::And(parts) => Ok(parts),
            other => Err(other),
        };
        self.joined(py, other.get(), join, Condition::And)
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Self> {
        let join = |condition| match condition {
            Condition::Or(parts) => Ok(parts),
            other => Err(other),
        };
        self.joined(py, other.get(), join, Condition::Or)
    }

    fn __invert__(&self, py: Python<'_>) -> PyResult<Self> {
        Self::checked(py, not(self.condition.clone()), self.depth + 1)
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "a condition is neither true nor false: combine them with & | ~, and parentheses around comparisons",
        ))
    }

    fn __repr__(&self) -> String {
        show(&self.condition)
    }
}

impl Expr {
    /// Both conditions in one; a chain of them stays flat.
    fn joined(
        &self,
        py: Python<'_>,
        other: &Self,
        parts_of: impl Fn(Condition) -> Result<Vec<Condition>, Condition>,
        join: impl Fn(Vec<Condition>) -> Condition,
    ) -> PyResult<Self> {
        let (mut parts, mut depth) = (Vec::new(), 1);
        for one in [self, other] {
            match parts_of(one.condition.clone()) {
                Ok(more) => {
                    parts.extend(more);
                    depth = depth.max(one.depth);
                }
                Err(single) => {
                    parts.push(single);
                    depth = depth.max(one.depth + 1);
                }
            }
        }
        Self::checked(py, join(parts), depth)
    }

    fn checked(py: Python<'_>, condition: Condition, depth: u32) -> PyResult<Self> {
        if depth > MAX_DEPTH {
            let what = format!("the condition is nested more than {MAX_DEPTH} deep");
            return Err(named(py, "InvalidCondition", what));
        }
        Ok(Self { condition, depth })
    }
}

/// A value of Python as it would be typed.
fn literal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let py = value.py();
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Literal::Bool(flag.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        // Not `str`, which a subclass such as an IntEnum may redefine.
        let digits = value.call_method1(intern!(py, "__format__"), ("d",))?;
        return Ok(Literal::Number(digits.extract()?));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let number: f64 = number.extract()?;
        if !number.is_finite() {
            let what = format!("{number} cannot be compared with a column");
            return Err(named(py, "InvalidCondition", what));
        }
        return Ok(Literal::Number(format!("{number}")));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Literal::Text(text.to_str()?.to_owned()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Literal::Bytes(bytes.as_bytes().to_vec()));
    }
    if value.is_instance_of::<PyDate>() {
        return Ok(Literal::Text(value.call_method0(intern!(py, "isoformat"))?.extract()?));
    }
    let kind = value.get_type();
    match (kind.module()?.to_str()?, kind.name()?.to_str()?) {
        ("decimal", "Decimal") => {
            Ok(Literal::Number(value.call_method1(intern!(py, "__format__"), ("f",))?.extract()?))
        }
        ("uuid", "UUID") => Ok(Literal::Bytes(value.getattr(intern!(py, "bytes"))?.extract()?)),
        ("numpy", "datetime64") => Ok(Literal::Text(value.str()?.extract()?)),
        ("numpy", _) => literal(&value.call_method0(intern!(py, "item"))?),
        (_, name) => Err(PyTypeError::new_err(format!("{name} cannot be compared with a column"))),
    }
}

/// The condition as a text that parses to it.
fn show(condition: &Condition) -> String {
    let column = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let all = |parts: &[Condition], word: &str| {
        parts.iter().map(|part| format!("({})", show(part))).collect::<Vec<_>>().join(word)
    };
    match condition {
        Condition::Compare(name, comparison, literal) => {
            let sign = match comparison {
                Comparison::Equal => "=",
                Comparison::NotEqual => "!=",
                Comparison::Less => "<",
                Comparison::LessOrEqual => "<=",
                Comparison::Greater => ">",
                _ => ">=",
            };
            format!("{} {sign} {literal}", column(name))
        }
        Condition::In(name, literals) => {
            let literals: Vec<String> = literals.iter().map(ToString::to_string).collect();
            format!("{} in ({})", column(name), literals.join(", "))
        }
        Condition::Between(name, low, high) => {
            format!("{} between {low} and {high}", column(name))
        }
        Condition::Like(name, pattern) => {
            let text = pattern.to_string();
            let escape = match Pattern::new(&text, None) {
                Some(same) if same == *pattern => String::new(),
                _ => format!(" escape '{ESCAPE}'"),
            };
            format!("{} like {}{escape}", column(name), Literal::Text(text))
        }
        Condition::IsNull(name) => format!("{} is null", column(name)),
        Condition::And(parts) => all(parts, " and "),
        Condition::Or(parts) => all(parts, " or "),
        Condition::Not(inner) => format!("not ({})", show(inner)),
        other => format!("{other:?}"),
    }
}
