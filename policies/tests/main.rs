//! Policies: their SQL, on regions and clusters drawn at random and made by hand.
//!
//! One program: every further one would be linked with all that this crate depends on.

mod cases;
mod cluster;
mod extra;
mod garbage;
mod library_agrees;
mod must_show;
mod ras;
mod region;
mod region_linear;
mod relaxed;
mod vms;
mod worlds;
