//! What a publication did.

use crate::log::trail::{Seq, TargetVersion};
use fleet::ServerName;

/// A publication that took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The new version.
    pub version: TargetVersion,
    /// The number of servers whose target was taken.
    pub taken: u64,
    /// The number of skipped servers: their binding changed since the snapshot, or they are gone.
    pub skipped: u64,
    /// The first 100 skipped servers, by name.
    pub skipped_servers: Vec<ServerName>,
    /// The number of servers whose target was withheld because the audit rejected it without the skipped ones.
    pub kept_back: u64,
    /// The first 100 withheld servers, by name, with the rule that their target would break.
    pub kept_back_servers: Vec<Withheld>,
    /// The entry in the audit trail; `None`: it had been published before.
    pub seq: Option<Seq>,
}

/// A server whose target was withheld.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// The server.
    pub server: ServerName,
    /// The rule that its target would break, for people.
    pub why: String,
}
