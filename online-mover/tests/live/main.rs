//! The mover on a real Postgres, with made-up hosts.

mod agreed;
mod between_solves;
mod carried_out;
mod decommissioned;
mod far;
mod giving_way;
mod hostile;
mod maintained;
mod place;
mod recalled;
mod rolled_out;
mod unfinished;
mod woken;
