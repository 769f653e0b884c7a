//! `ras-cluster/1` as a folder: `cluster.json` and Parquet tables.
//!
//! One row per node, service, rule, preference or replica; what is named in the file itself (metrics, levels,
//! labels) has a column each, `capacity.cpu` or `domain.rack`.

mod columns;
mod preferences;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{CLUSTER_FILE, place_of, read};
pub use write::write;

use columns::{Holds, Layout};

/// The nodes. A folder for the servers of a reservation has none.
static NODES: Layout = Layout {
    file: "nodes.parquet",
    required: &[("name", Holds::Id)],
    optional: &[("state", Holds::Name)],
    prefixes: &[("capacity.", Holds::Whole), ("domain.", Holds::Name), ("label.", Holds::Name)],
};

/// The services.
static SERVICES: Layout = Layout {
    file: "services.parquet",
    required: &[("name", Holds::Id)],
    optional: &[("move_cost", Holds::Number)],
    prefixes: &[],
};

/// What services ask for; a folder without rules need not have it.
static RULES: Layout = Layout {
    file: "rules.parquet",
    required: &[("service", Holds::Name), ("rule", Holds::Name)],
    optional: &[("key", Holds::Name), ("value", Holds::Name), ("count", Holds::Whole)],
    prefixes: &[],
};

/// What services prefer; a folder without preferences need not have it.
static PREFERENCES: Layout = Layout {
    file: "preferences.parquet",
    required: &[("service", Holds::Name), ("preference", Holds::Name), ("weight", Holds::Number)],
    optional: &[
        ("number", Holds::Whole),
        ("key", Holds::Name),
        ("value", Holds::Name),
        ("role", Holds::Name),
    ],
    prefixes: &[],
};

/// The replicas.
static REPLICAS: Layout = Layout {
    file: "replicas.parquet",
    required: &[("name", Holds::Id), ("service", Holds::Name), ("partition", Holds::Whole)],
    optional: &[
        ("role", Holds::Name),
        ("node", Holds::Name),
        ("class", Holds::Name),
        ("move_cost", Holds::Number),
    ],
    prefixes: &[("demand.", Holds::Whole)],
};

/// Demands of the past, if `cluster.json` says how far apart they are.
static HISTORY: Layout = Layout {
    file: "history.parquet",
    required: &[("class", Holds::Name), ("series", Holds::Name), ("minute", Holds::Whole)],
    optional: &[],
    prefixes: &[("demand.", Holds::Whole)],
};
