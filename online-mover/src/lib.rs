//! The online mover executes targets and decisions: it turns the target of each server into its owner.
//!
//! It chooses nothing itself. In each pass it takes the decisions that cannot wait for a solve (crate
//! `decisions`), opens a move for each target, begins as many moves as limits and contracts allow, asks
//! host agents for one step after another, and records the answers. The audit trail and a timer only tell
//! it when to run which part of a pass: a lost notification delays work and changes nothing else.
//!
//! It may be killed at any instant. The next mover reads the recorded state of each move and requests the
//! same step again, so agents must accept repeated requests.
//!
//! | module | content |
//! |---|---|
//! | [`mover`] | one mover acts under a lease: the reconcile loop, the queue of steps |
//! | [`steps`] | the next step of a move |
//! | [`agent`] | the contract with host agents: over HTTP, through a program, or simulated |
//! | [`wake`] | the parts of a pass that each action of the audit trail makes due |
//! | `recall` | recalls of maintenance while an MSB is lost |
//! | `clock` | detects that the database's clock was set forward |
//!
//! The crate knows no SQL and no solver. Start with [`Mover`].
//!
//! `examples/execute.rs` executes a target: `cargo run -p online-mover --example execute`.

pub mod agent;
mod clock;
pub mod mover;
mod recall;
pub mod steps;
pub mod wake;

pub use agent::{AgentError, HostAgent, StepOrder, StepReport};
pub use mover::{Mover, MoverSettings};
