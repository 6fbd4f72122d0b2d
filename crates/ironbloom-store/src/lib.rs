//! A filter in front of a slow store.

mod backend;
mod backends;
mod checkpoint;
mod error;
mod filter;
mod front;
mod generation;
mod guard;
mod kind;
mod options;
mod stats;
mod stripes;

pub use backend::Backend;
pub use backends::*;
pub use checkpoint::Unusable;
pub use error::Error;
pub use generation::Generation;
pub use guard::{Guard, Opened};
pub use kind::{Kind, UnknownKind};
pub use options::{Options, Rebuild};
pub use stats::{Choice, Stats};
