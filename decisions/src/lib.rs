//! What is decided between two solves: pure functions, each on a view of the region.
//!
//! The broker makes the views from its tables, within the transaction that writes what is decided; drills and
//! previews make them from a snapshot. So a decision is the same in both, and nothing here knows SQL, a clock or a
//! task: the instant is an argument.
//!
//! | module | what it decides, on which view |
//! |---|---|
//! | [`admission`] | which pending moves begin, within limits and churn contracts: [`admission::MoveView`], [`admission::ContractView`] |
//! | [`replace`] | which spare takes the place of a failed server: [`replace::Failed`], [`replace::Spare`], [`replace::Worth`] |
//! | [`outage`] | which MSBs are lost: [`outage::MsbHealth`] |
//! | [`elastic`] | what elastic reservations borrow, and what they give back: [`elastic::LoanView`] |
//! | [`emergency`] | which servers serve an emergency: [`emergency::Stock`] |
//! | [`give_way`] | which reservations give way to more important ones, and when: [`give_way::RegionHeld`] |
//! | [`place`] | in which MSBs a reservation may have servers, and how many: what all of these keep |
//! | [`region`] | the state of a region from which the views are made without a database |
//! | [`msb_loss`] | simulates the loss of an MSB |
//! | [`failure_replay`] | replays a log of failures |
//!
//! `examples/lost_msb.rs` rehearses the loss of an MSB: `cargo run -p decisions --example lost_msb`.

pub mod admission;
pub mod elastic;
pub mod emergency;
pub mod failure_replay;
pub mod give_way;
pub mod msb_loss;
pub mod outage;
pub mod place;
pub mod region;
pub mod replace;
