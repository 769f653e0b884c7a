//! Decisions between two solves: pure functions, each on a view of the region.
//!
//! Each view has two makers. The broker reads it from its tables, in the transaction that writes the decision;
//! simulations and previews derive it from a [`region::Region`]. A test holds the two equal, so a simulation
//! decides as a live region does. The crate knows no SQL, clock or task: the instant is an argument.
//!
//! | module | decision, and the view it looks at |
//! |---|---|
//! | [`admission`] | which pending moves begin, within limits and churn contracts: [`admission::MoveView`], [`admission::ContractView`] |
//! | [`replace`] | which spare replaces a failed server: [`replace::Failed`], [`replace::Spare`], [`replace::SpareContext`] |
//! | [`outage`] | which MSBs are lost: [`outage::MsbHealth`] |
//! | [`elastic`] | which servers are lent to elastic reservations, and which are recalled: [`elastic::LoanView`] |
//! | [`emergency`] | which servers serve a request for emergency capacity: [`emergency::Stock`] |
//! | [`preemption`] | which reservations are preempted for more important ones, and when: [`preemption::RegionHeld`] |
//! | [`maintenance`] | which maintenance windows are accepted, their next steps, the order of recalls: [`maintenance::capacity::View`], [`maintenance::lifecycle::WindowView`] |
//! | [`domains`] | fault domains that cross MSBs, and what reservations hold in them |
//! | [`place`] | placement rules that all of these keep |
//! | [`limits`] | limits of policies, kept where servers serve equally: [`limits::Room`] |
//! | [`region`] | the state of a region, from which views are made without a database |
//! | [`msb_loss`] | simulates the loss of an MSB |
//! | [`failure_replay`] | replays a log of failures |
//!
//! `examples/lost_msb.rs` rehearses the loss of an MSB: `cargo run -p decisions --example lost_msb`.

pub mod admission;
pub mod domains;
pub mod elastic;
pub mod emergency;
pub mod failure_replay;
pub mod limits;
pub mod maintenance;
pub mod msb_loss;
pub mod outage;
pub mod place;
pub mod preemption;
pub mod region;
pub mod replace;
