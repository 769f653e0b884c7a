//! Converts a promise of 100 RRU into the measure of a quota in servers of two hardware types.
//!
//! `cargo run -p fleet --example quota`

use fleet::Rru;
use fleet::quota::Measure;
use std::collections::BTreeMap;

fn main() {
    // A server of type C1 is worth 1 RRU to the reservation, one of type C2 is worth 2.
    let values = BTreeMap::from([("C1".into(), Rru::units(1)), ("C2".into(), Rru::units(2))]);
    let measure = Measure::Servers;
    let promised = measure.of(Rru::units(100), &values);
    println!("100 RRU count as at most {promised} servers");
    if let Some(most) = measure.fits(Rru::units(40), &values) {
        println!("a limit of 40 servers allows {most} RRU");
    }
}
