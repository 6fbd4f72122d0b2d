//! The kinds of filter as the command line names them: the library's plans.

use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use ironbloom::Kind;
use ironbloom::plan::{self, Plan};

/// A plan of the library, chosen by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindArg(&'static Plan);

impl KindArg {
    /// The plan with this name, which is one of the library's.
    pub(crate) fn named(name: &str) -> Self {
        Self(plan::named(name).unwrap_or_else(|| panic!("no plan is called {name}")))
    }

    /// The plan.
    pub(crate) fn plan(self) -> &'static Plan {
        self.0
    }

    /// Returns true if it makes a filter of this kind.
    pub(crate) fn is(self, kind: Kind) -> bool {
        self.kind == kind
    }
}

impl std::ops::Deref for KindArg {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        self.0
    }
}

impl PartialEq for KindArg {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl ValueEnum for KindArg {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<KindArg>> = LazyLock::new(|| plan::all().map(KindArg).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.summary))
    }
}
