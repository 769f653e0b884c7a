//! Answers of the HTTP API, as the server writes and the command line reads them.
//!
//! | module | one line |
//! |---|---|
//! | [`reservations`] | reservations, their servers and certificates |
//! | [`requests`] | requests, and the operations to wait for |
//! | [`plans`] | plans of changes |
//! | [`contracts`] | churn contracts and their use |
//! | [`quotas`] | limits of owners |
//! | [`region`] | settings, hardware types, elastic reservations, RRU profiles |
//! | [`inventory`] | racked, moved and decommissioned servers |
//! | [`servers`] | a server, events, the audit trail |
//! | [`failures`] | replacements, lost MSBs, loans |
//! | [`emergencies`] | capacity granted at once |
//! | [`maintenance`] | windows of planned maintenance |
//! | [`drills`] | the effect of losing MSBs, preemption |
//! | [`moves`] | moves, the mover, roll-outs |
//! | [`solves`] | solves |
//! | [`status`] | the stored region, counted |
//! | [`tokens`] | API tokens and their caller |
//!
//! States and reasons are words: a client of an earlier version must read the answers of a server that has
//! more of them. The description of the API lists the words of each (feature `schema`).
//!
//! ```
//! use api_types::tokens::TokenAsked;
//! let (name, role) = ("ann".to_owned(), "admin".to_owned());
//! let token = TokenAsked { name, role, owner: None, days: Some(30) };
//! assert_eq!(token.days, Some(30));
//! ```

pub mod contracts;
pub mod drills;
pub mod emergencies;
pub mod failures;
pub mod inventory;
pub mod maintenance;
pub mod moves;
pub mod plans;
pub mod quotas;
pub mod region;
pub mod requests;
pub mod reservations;
pub mod servers;
pub mod solves;
pub mod status;
pub mod tokens;
