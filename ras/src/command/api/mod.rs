//! Subcommands that use a server: each sends HTTP requests and shows the answers.

pub(super) mod apply;
pub(super) mod autosize;
pub(super) mod buffer;
pub(super) mod contract;
pub(super) mod drill;
pub(super) mod emergency;
pub(super) mod explain;
pub(super) mod hardware_order;
pub(super) mod loans;
pub(super) mod login;
pub(super) mod maintenance;
pub(super) mod moves;
pub(super) mod outages;
pub(super) mod plan;
#[cfg(feature = "policies")]
pub(super) mod policy;
pub(super) mod profile;
pub(super) mod read;
pub(super) mod region;
pub(super) mod replacements;
pub(super) mod request;
pub(super) mod solve;
pub(super) mod status;
pub(super) mod token;

mod ask;
mod body;
mod kinds;
mod listing;
mod rows;
mod watch;
