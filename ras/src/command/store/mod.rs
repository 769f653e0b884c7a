//! Subcommands that use the Postgres of a region without asking its server.
//!
//! | subcommand | why it does not ask a server |
//! |---|---|
//! | `ras up`, `ras worker`, `ras mover` | they are the services of the region |
//! | `ras snapshot load`, `ras snapshot export` | first start, backup and restore, with no server running |
//! | `ras result publish` | a solve by hand, from an export |
//! | `ras token first` | the first admin token, before any caller has a role |
//! | `ras ops replay` | a worker by hand: reads queue and archive; `--fan-out` adds jobs, and copies of folders to the archive until they end |
//!
//! They have the credentials of Postgres, and no role is checked. All others go through the server, which checks the caller's role. The actor in the audit trail is the user that
//! runs the process ([`crate::store::actor`]).

pub(super) mod export;
pub(super) mod first_token;
pub(super) mod load;
pub(super) mod mover;
pub(super) mod publish;
pub(super) mod replay;
mod replay_tables;
pub(super) mod up;
pub(super) mod worker;
