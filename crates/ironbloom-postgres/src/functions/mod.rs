//! Functions for users: a look inside, and filters in SQL.

mod arguments;
mod check;
mod filters;
mod info;

pub(crate) use arguments::varlena;
