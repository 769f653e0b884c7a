//! Answers of the HTTP API, as the server writes and the command line reads them.
//!
//! | module | one line |
//! |---|---|
//! | [`reservations`] | reservations, their servers and certificates |
//! | [`requests`] | requests, and the operations to wait for |
//! | [`plans`] | plans of changes |
//! | [`contracts`] | churn contracts and their use |
//! | [`autosize`] | requests that follow demand |
//! | [`buffers`] | shared buffers beside failures, and headroom |
//! | [`policies`] | policies in SQL that solves keep |
//! | [`quotas`] | limits of owners |
//! | [`region`] | settings, hardware types, elastic reservations, RRU profiles |
//! | [`hardware_orders`] | servers on order |
//! | [`history`] | figures of the region over time |
//! | [`supply`] | how long the servers of each hardware type last |
//! | [`inventory`] | the servers, racks and MSBs of the region; racked, moved and decommissioned servers |
//! | [`servers`] | a server, events, the audit trail |
//! | [`failures`] | replacements, lost MSBs, loans |
//! | [`emergencies`] | capacity granted at once |
//! | [`maintenance`] | windows of planned maintenance |
//! | [`drills`] | the effect of losing MSBs, preemption |
//! | [`moves`] | moves, the mover, roll-outs |
//! | [`solves`] | solves |
//! | [`approval`] | rejections of solves and requests that await approval |
//! | [`status`] | the stored region, counted |
//! | [`tokens`] | API tokens and their caller |
//!
//! States and reasons are words: a client of an earlier version must read the answers of a server that has
//! more of them. The description of the API lists the words of each (feature `schema`).
//!
//! Of an answer, a member that may be null is always written: one that is missing is an error. Members that the
//! server leaves out say so (`skip_serializing_if`).
//!
//! ```
//! use api_types::tokens::TokenAsked;
//! let (name, role) = ("ann".to_owned(), "admin".to_owned());
//! let token = TokenAsked { name, role, owner: None, days: Some(30) };
//! assert_eq!(token.days, Some(30));
//! ```

use serde::{Deserialize, Deserializer};

pub mod approval;
pub mod autosize;
pub mod buffers;
pub mod contracts;
pub mod drills;
pub mod emergencies;
pub mod failures;
pub mod hardware_orders;
pub mod history;
pub mod inventory;
pub mod maintenance;
pub mod moves;
pub mod plans;
pub mod policies;
pub mod problem;
pub mod quotas;
pub mod region;
pub mod requests;
pub mod reservations;
pub mod servers;
pub mod solves;
pub mod status;
pub mod supply;
pub mod tokens;

/// Reads a member that the server always writes, null included: one that is missing is an error, not null.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}
