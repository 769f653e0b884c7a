//! What to order, cancel and decommission, by hardware type and place, from a forecast of demand.
//!
//! Stock is what is owned and not in use. Orders arrive after a lead time of weeks, so today's
//! order must cover a demand that only a forecast knows.
//!
//! | module | what it does |
//! |---|---|
//! | [`policy`] | minimum stock (Eigen algorithms 4 and 5), base stock, a constant share |
//! | [`advice`] | whole servers: order, cancel, decommission; when the stock runs out |
//! | [`simulate`] | a policy over a period of the past: cost and days short |
//! | [`replay`] | advice over a period of the past, from the servers that were there |
//! | [`supply`] | how long the servers of a type in a place last |
//! | [`moves`] | places that give servers to others of the same type |
//! | [`mixed`] | orders of several types that serve the same demands, with lead times by type |
//! | [`types`] | demand that several types can serve, translated into types |

pub mod advice;
pub mod mixed;
pub mod moves;
pub mod policy;
pub mod replay;
pub mod simulate;
pub mod supply;
pub mod types;

pub use advice::{Advice, advise};
pub use policy::{Pipeline, Policy, Terms};
pub use supply::Supply;
