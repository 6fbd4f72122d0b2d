//! The commands in words, for COMMAND DOCS and for the hints of command lines.

use std::ffi::{CStr, c_int};

use crate::engine::describe::{Arg, ArgKind, Docs, Times};

pub(in crate::commands) const fn docs(
    summary: &'static CStr,
    complexity: &'static CStr,
    arity: c_int,
    args: &'static [Arg],
) -> Docs {
    Docs { summary, complexity, since: c"1.0.0", arity, args, tips: None }
}

/// A command whose replies change without a write to the key that a client would be told of.
pub(in crate::commands) const fn not_cached(docs: Docs) -> Docs {
    Docs { tips: Some(c"dont_cache"), ..docs }
}

/// A command that RedisBloom lacks; the version is ours.
const fn own(docs: Docs) -> Docs {
    Docs { since: c"0.1.0", ..docs }
}

pub(in crate::commands) const fn plain(name: &'static CStr, kind: ArgKind) -> Arg {
    Arg { name, kind, token: None, times: Times::Once, parts: &[] }
}

/// A word and what follows it, in RedisBloom's form: a block of one part.
pub(in crate::commands) const fn option(
    token: &'static CStr,
    name: &'static CStr,
    parts: &'static [Arg],
) -> Arg {
    let block = Arg { parts, ..plain(name, ArgKind::Block) };
    Arg { token: Some(token), times: Times::Optional, ..block }
}

/// A word.
pub(in crate::commands) const fn word(token: &'static CStr, name: &'static CStr) -> Arg {
    Arg { token: Some(token), ..plain(name, ArgKind::Token) }
}

pub(in crate::commands) const fn flag(token: &'static CStr, name: &'static CStr) -> Arg {
    Arg { times: Times::Optional, ..word(token, name) }
}

pub(in crate::commands) const ITEM: Arg = plain(c"item", ArgKind::String);
pub(in crate::commands) const ITEMS: Arg = Arg { times: Times::Many, ..ITEM };
const NAMED_ITEMS: Arg = word(c"ITEMS", c"items");
const ITERATOR: Arg = plain(c"iterator", ArgKind::Integer);
const DATA: Arg = plain(c"data", ArgKind::String);
const CAPACITY: Arg = option(c"CAPACITY", c"capacity", &[plain(c"capacity", ArgKind::Integer)]);
/// The same for CF.INSERT, where RedisBloom has the word inside of the block.
const CF_CAPACITY: Arg = Arg {
    times: Times::Optional,
    parts: &[word(c"CAPACITY", c"capacity"), plain(c"capacity", ArgKind::Integer)],
    ..plain(c"capacity", ArgKind::Block)
};
const EXPANSION: Arg = option(c"EXPANSION", c"expansion", &[plain(c"expansion", ArgKind::Integer)]);
const LAYOUT: Arg = option(c"LAYOUT", c"layout", &[plain(c"layout", ArgKind::String)]);
const WINDOW: Arg = option(c"WINDOW", c"window", &[plain(c"window", ArgKind::Integer)]);
const ERROR: Arg = option(c"ERROR", c"error", &[plain(c"error", ArgKind::Double)]);
const SEED: Arg = option(c"SEED", c"seed", &[plain(c"seed", ArgKind::String)]);
const NOCREATE: Arg = flag(c"NOCREATE", c"nocreate");
const NONSCALING: Arg = flag(c"NONSCALING", c"nonscaling");

/// Time of a Bloom filter's operations: k probes a link.
const PROBES: &CStr = c"O(k), where k is the number of probes of all sub-filters";
const PROBES_EACH: &CStr =
    c"O(k * n), where k is the number of probes of all sub-filters and n the number of items";
const TABLES: &CStr = c"O(s), where s is the number of sub-filters";
const TABLES_EACH: &CStr =
    c"O(s * n), where s is the number of sub-filters and n the number of items";
const MOVES: &CStr =
    c"O(s + i), where s is the number of sub-filters and i the maximum number of items moved to make room";
const MOVES_EACH: &CStr = c"O((s + i) * n), where s is the number of sub-filters, i the maximum number of items moved to make room, \
     and n the number of items";
const SIZE: &CStr = c"O(n), where n is the number of bytes";
pub(in crate::commands) const CONSTANT: &CStr = c"O(1)";

pub(super) const BF_RESERVE: Docs = docs(
    c"Creates an empty Bloom filter: in RedisBloom's layout, in blocks (LAYOUT BLOCKED), or one that forgets (WINDOW)",
    CONSTANT,
    -4,
    &[
        plain(c"error_rate", ArgKind::Double),
        plain(c"capacity", ArgKind::Integer),
        EXPANSION,
        NONSCALING,
        LAYOUT,
        WINDOW,
        SEED,
    ],
);
pub(super) const BF_ADD: Docs = docs(
    c"Adds an item to a Bloom filter, which is created if the key is missing",
    PROBES,
    3,
    &[ITEM],
);
pub(super) const BF_MADD: Docs = docs(
    c"Adds items to a Bloom filter, which is created if the key is missing",
    PROBES_EACH,
    -3,
    &[ITEMS],
);
pub(super) const BF_INSERT: Docs = docs(
    c"Adds items to a Bloom filter, which is created with the given options if the key is missing",
    PROBES_EACH,
    -4,
    &[CAPACITY, ERROR, EXPANSION, NOCREATE, NONSCALING, LAYOUT, WINDOW, SEED, NAMED_ITEMS, ITEMS],
);
pub(super) const BF_EXISTS: Docs =
    docs(c"Checks whether an item may be in a Bloom filter", PROBES, 3, &[ITEM]);
pub(super) const BF_MEXISTS: Docs =
    docs(c"Checks which items may be in a Bloom filter", PROBES_EACH, -3, &[ITEMS]);
pub(super) const BF_FIND: Docs = own(docs(
    c"Checks which items may be in a Bloom filter; null if the key is missing",
    PROBES_EACH,
    -3,
    &[ITEMS],
));
pub(super) const BF_CARD: Docs = Docs {
    since: c"2.4.4",
    ..docs(c"Returns the number of items that were added to a Bloom filter", CONSTANT, 2, &[])
};
pub(super) const BF_INFO: Docs = not_cached(docs(
    c"Returns information about a Bloom filter; FULL also counts its bits",
    c"O(1); O(n) with FULL, where n is the number of bytes",
    -2,
    &[Arg {
        times: Times::Optional,
        parts: &[
            word(c"CAPACITY", c"capacity"),
            word(c"SIZE", c"size"),
            word(c"FILTERS", c"filters"),
            word(c"ITEMS", c"items"),
            word(c"EXPANSION", c"expansion"),
            word(c"FULL", c"full"),
        ],
        ..plain(c"single_value", ArgKind::OneOf)
    }],
));
pub(super) const BF_DEBUG: Docs = not_cached(docs(
    c"Returns information about every sub-filter of a Bloom filter",
    CONSTANT,
    2,
    &[],
));
pub(super) const BF_SCANDUMP: Docs =
    docs(c"Begins or continues to save a Bloom filter in chunks", SIZE, 3, &[ITERATOR]);
pub(super) const BF_LOADCHUNK: Docs = docs(
    c"Restores a chunk of a Bloom filter that BF.SCANDUMP returned",
    SIZE,
    4,
    &[ITERATOR, DATA],
);
pub(super) const BF_MERGE: Docs = own(docs(
    c"Merges Bloom filters with the same parameters into the first, which is created if the key is missing",
    SIZE,
    -3,
    &[Arg { times: Times::Many, ..plain(c"source", ArgKind::Key) }],
));
pub(super) const BF_MERGESLICE: Docs = own(docs(
    c"Executes a slice of a large BF.MERGE; sent by primaries, and found in append-only files",
    SIZE,
    7,
    &[
        plain(c"source", ArgKind::Key),
        plain(c"stage", ArgKind::Integer),
        plain(c"word", ArgKind::Integer),
        plain(c"ones", ArgKind::Integer),
        plain(c"words", ArgKind::Integer),
    ],
));
pub(super) const CF_RESERVE: Docs = docs(
    c"Creates an empty cuckoo filter",
    CONSTANT,
    -3,
    &[
        plain(c"capacity", ArgKind::Integer),
        option(c"BUCKETSIZE", c"bucketsize", &[plain(c"bucketsize", ArgKind::Integer)]),
        option(c"MAXITERATIONS", c"maxiterations", &[plain(c"maxiterations", ArgKind::Integer)]),
        EXPANSION,
        ERROR,
        SEED,
    ],
);
pub(super) const CF_ADD: Docs =
    docs(c"Adds an item to a cuckoo filter, even if it is already there", MOVES, 3, &[ITEM]);
pub(super) const CF_ADDNX: Docs =
    docs(c"Adds an item to a cuckoo filter unless it may be there", MOVES, 3, &[ITEM]);
pub(super) const CF_INSERT: Docs = docs(
    c"Adds items to a cuckoo filter, which is created with the given options if the key is missing",
    MOVES_EACH,
    -4,
    &[CF_CAPACITY, NOCREATE, NAMED_ITEMS, ITEMS],
);
pub(super) const CF_INSERTNX: Docs = docs(
    c"Adds the items that are not yet in a cuckoo filter",
    MOVES_EACH,
    -4,
    &[CF_CAPACITY, NOCREATE, NAMED_ITEMS, ITEMS],
);
pub(super) const CF_EXISTS: Docs =
    docs(c"Checks whether an item may be in a cuckoo filter", TABLES, 3, &[ITEM]);
pub(super) const CF_MEXISTS: Docs =
    docs(c"Checks which items may be in a cuckoo filter", TABLES_EACH, -3, &[ITEMS]);
pub(super) const CF_COUNT: Docs =
    docs(c"Returns how often an item may be in a cuckoo filter", TABLES, 3, &[ITEM]);
pub(super) const CF_DEL: Docs =
    docs(c"Deletes one occurrence of an item from a cuckoo filter", TABLES, 3, &[ITEM]);
pub(super) const CF_COMPACT: Docs =
    docs(c"Moves the items of a cuckoo filter into its older sub-filters, in the background if it is large", SIZE, -2, &[]);
pub(super) const CF_INFO: Docs =
    not_cached(docs(c"Returns information about a cuckoo filter", CONSTANT, 2, &[]));
pub(super) const CF_DEBUG: Docs =
    not_cached(docs(c"Returns information about a cuckoo filter in one line", CONSTANT, 2, &[]));
pub(super) const CF_SCANDUMP: Docs =
    docs(c"Begins or continues to save a cuckoo filter in chunks", SIZE, 3, &[ITERATOR]);
pub(super) const CF_LOADCHUNK: Docs = docs(
    c"Restores a chunk of a cuckoo filter that CF.SCANDUMP returned",
    SIZE,
    4,
    &[ITERATOR, DATA],
);
