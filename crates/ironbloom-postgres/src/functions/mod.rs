//! Functions for users: a look inside, and filters in SQL.

mod arguments;
mod check;
mod classes;
pub(crate) mod deep;
mod filters;
mod info;
mod survey;

pub(crate) use arguments::{name_of, varlena};
pub(crate) use classes::validate;
