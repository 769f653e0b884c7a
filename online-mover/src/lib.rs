//! The online mover: makes owners of targets.
//!
//! It finds nothing out and chooses nothing that a solve has not chosen. It looks at what the broker
//! says is wanted, lets as many moves begin as the limits allow, asks the hosts' automation for one
//! step after another, and writes down what the hosts report. A doorbell or a timer tells it when to
//! look; neither tells it what to do, so losing one costs time and nothing else. It may be killed at
//! any instant: the next one reads where each move certainly is and asks for that step again, which
//! is why every step must bear being asked for twice.
//!
//! | module | one line |
//! |---|---|
//! | [`steps`] | which step comes next |
//! | [`agent`] | what is asked of a host and what it answers; over HTTP, by a program, or made up |
//! | [`wake`] | what an entry of the audit trail wakes the mover for |
//! | `recall` | work that is recalled because an MSB is lost |
//! | [`mover`] | the loop: look, admit, ask, write down |
//!
//! It does not know SQL, and it does not know how targets are found. Start with [`Mover`].
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
