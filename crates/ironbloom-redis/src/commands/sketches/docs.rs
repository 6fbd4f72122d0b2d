//! The commands of sketches in words, for COMMAND DOCS and for the hints of command lines.

use std::ffi::CStr;

use crate::commands::docs::{
    CONSTANT, ITEM, ITEMS, docs as described, flag, not_cached, option, plain,
};
use crate::engine::describe::{Arg, ArgKind, Docs, Times};

/// A command that RedisBloom has since this version.
const fn since(version: &'static CStr, docs: Docs) -> Docs {
    Docs { since: version, ..docs }
}

const V2: &CStr = c"2.0.0";

/// An item and by how much its count grows, once or more.
const INCREMENTS: Arg = Arg {
    times: Times::Many,
    parts: &[ITEM, plain(c"increment", ArgKind::Integer)],
    ..plain(c"items", ArgKind::Block)
};
const NUMKEYS: Arg = plain(c"numkeys", ArgKind::Integer);
const SOURCES: Arg = Arg { times: Times::Many, ..plain(c"source", ArgKind::Key) };

pub(super) const CMS_INITBYDIM: Docs = since(
    V2,
    described(
        c"Creates a count-min sketch of this width and depth",
        CONSTANT,
        4,
        &[plain(c"width", ArgKind::Integer), plain(c"depth", ArgKind::Integer)],
    ),
);
pub(super) const CMS_INITBYPROB: Docs = since(
    V2,
    described(
        c"Creates a count-min sketch whose counts are too large by more than a share of all counts with this probability at most",
        CONSTANT,
        4,
        &[plain(c"error", ArgKind::Double), plain(c"probability", ArgKind::Double)],
    ),
);
pub(super) const CMS_INCRBY: Docs = since(
    V2,
    described(
        c"Increases the counts of items",
        c"O(n), where n is the number of items",
        -4,
        &[INCREMENTS],
    ),
);
pub(super) const CMS_QUERY: Docs = since(
    V2,
    described(
        c"Returns the counts of items, which are never too small",
        c"O(n), where n is the number of items",
        -3,
        &[ITEMS],
    ),
);
pub(super) const CMS_MERGE: Docs = since(
    V2,
    described(
        c"Replaces a count-min sketch by the weighted sum of others of its size",
        c"O(n), where n is the number of sketches",
        -4,
        &[
            NUMKEYS,
            SOURCES,
            option(
                c"WEIGHTS",
                c"weights",
                &[Arg { times: Times::Many, ..plain(c"weight", ArgKind::Double) }],
            ),
        ],
    ),
);
pub(super) const CMS_INFO: Docs = since(
    V2,
    not_cached(described(
        c"Returns width, depth and the sum of all counts of a count-min sketch",
        CONSTANT,
        2,
        &[],
    )),
);

const V24: &CStr = c"2.4.0";

/// Time of answers: a digest has as many nodes as its compression says, whatever was added.
const EACH: &CStr = c"O(n), where n is the number of arguments";

const VALUE: Arg = plain(c"value", ArgKind::Double);
const VALUES: Arg = Arg { times: Times::Many, ..VALUE };
const COMPRESSION: Arg =
    option(c"COMPRESSION", c"compression", &[plain(c"compression", ArgKind::Integer)]);

pub(super) const TOPK_RESERVE: Docs = since(
    V2,
    described(
        c"Creates an empty top-k sketch",
        CONSTANT,
        -3,
        &[
            plain(c"topk", ArgKind::Integer),
            Arg {
                times: Times::Optional,
                parts: &[
                    plain(c"width", ArgKind::Integer),
                    plain(c"depth", ArgKind::Integer),
                    plain(c"decay", ArgKind::Double),
                ],
                ..plain(c"params", ArgKind::Block)
            },
        ],
    ),
);
pub(super) const TOPK_ADD: Docs = since(
    V2,
    described(
        c"Adds items to a top-k sketch; returns those that lost their places",
        c"O(n * k), where n is the number of items and k the depth",
        -3,
        &[ITEMS],
    ),
);
pub(super) const TOPK_INCRBY: Docs = since(
    V2,
    described(
        c"Increases the counts of items in a top-k sketch; returns those that lost their places",
        c"O(n * k * i), where n is the number of items, k the depth and i the increment",
        -4,
        &[INCREMENTS],
    ),
);
pub(super) const TOPK_QUERY: Docs =
    since(V2, described(c"Checks which items are among the top k", EACH, -3, &[ITEMS]));
pub(super) const TOPK_COUNT: Docs = since(
    V2,
    described(c"Returns the counts of items; deprecated since 2.4.0", EACH, -3, &[ITEMS]),
);
pub(super) const TOPK_LIST: Docs = since(
    V2,
    described(
        c"Returns the top k items, the most frequent first",
        c"O(k*log(k)), where k is the number of items that are kept",
        -2,
        &[flag(c"WITHCOUNT", c"withcount")],
    ),
);
pub(super) const TOPK_INFO: Docs =
    since(V2, described(c"Returns the parameters of a top-k sketch", CONSTANT, 2, &[]));
pub(super) const TDIGEST_CREATE: Docs =
    since(V24, described(c"Creates an empty t-digest", CONSTANT, -2, &[COMPRESSION]));
pub(super) const TDIGEST_RESET: Docs =
    since(V24, described(c"Removes all values from a t-digest", CONSTANT, 2, &[]));
pub(super) const TDIGEST_ADD: Docs =
    since(V24, described(c"Adds values to a t-digest", EACH, -3, &[VALUES]));
pub(super) const TDIGEST_MERGE: Docs = since(
    V24,
    described(
        c"Merges t-digests into one, which is created if the key is missing",
        c"O(n * k), where n is the number of nodes and k the number of sources",
        -4,
        &[NUMKEYS, SOURCES, COMPRESSION, flag(c"OVERRIDE", c"override")],
    ),
);
pub(super) const TDIGEST_MIN: Docs =
    since(V24, described(c"Returns the smallest value of a t-digest", CONSTANT, 2, &[]));
pub(super) const TDIGEST_MAX: Docs =
    since(V24, described(c"Returns the largest value of a t-digest", CONSTANT, 2, &[]));
pub(super) const TDIGEST_QUANTILE: Docs = since(
    V24,
    described(
        c"Returns the values below which given shares of all values lie",
        EACH,
        -3,
        &[Arg { times: Times::Many, ..plain(c"quantile", ArgKind::Double) }],
    ),
);
pub(super) const TDIGEST_CDF: Docs = since(
    V24,
    described(c"Returns the shares of all values that lie below given values", EACH, -3, &[VALUES]),
);
pub(super) const TDIGEST_RANK: Docs =
    since(V24, described(c"Returns how many values lie below given values", EACH, -3, &[VALUES]));
pub(super) const TDIGEST_REVRANK: Docs =
    since(V24, described(c"Returns how many values lie above given values", EACH, -3, &[VALUES]));
pub(super) const TDIGEST_BYRANK: Docs = since(
    V24,
    described(
        c"Returns the values of given ranks",
        EACH,
        -3,
        &[Arg { times: Times::Many, ..plain(c"rank", ArgKind::Integer) }],
    ),
);
pub(super) const TDIGEST_BYREVRANK: Docs = since(
    V24,
    described(
        c"Returns the values of given ranks, counted from the largest",
        EACH,
        -3,
        &[Arg { times: Times::Many, ..plain(c"reverse_rank", ArgKind::Integer) }],
    ),
);
pub(super) const TDIGEST_TRIMMED_MEAN: Docs = since(
    V24,
    described(
        c"Returns the mean of the values between two quantiles",
        c"O(n), where n is the number of nodes",
        4,
        &[
            plain(c"low_cut_quantile", ArgKind::Double),
            plain(c"high_cut_quantile", ArgKind::Double),
        ],
    ),
);
pub(super) const TDIGEST_INFO: Docs =
    since(V24, not_cached(described(c"Returns information about a t-digest", CONSTANT, 2, &[])));
