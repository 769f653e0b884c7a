//! The audit trail and the transaction that writes it: entries, subscriptions, and the servers an
//! entry affects.

pub(crate) mod affected;
pub(crate) mod audited_tx;

pub(crate) mod event;
pub(crate) mod subscribe;
pub(crate) mod trail;

pub use subscribe::{Subscription, TrailListener};
pub use trail::{Action, Entry, Recorded, Seq, Subject, TargetVersion};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[audited_tx::sql::ALL, trail::sql::ALL];
