//! Decides what would happen if an MSB of a generated region were lost.
//!
//! `cargo run -p decisions --example lost_msb`

use datasets::generate::{GenerateOptions, State, generate};
use decisions::msb_loss::simulate;
use fleet::{MsbIx, RegionSnapshot};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let options = GenerateOptions { msbs: 12, state: State::Steady, ..GenerateOptions::new(1_000) };
    let region = RegionSnapshot::new(generate(&options)?)?;
    for (position, msb) in region.msbs.iter().enumerate() {
        let decided = simulate(&region, MsbIx::new(position));
        let servers: u64 = decided.preemptions.iter().map(|of| of.count).sum();
        println!("without {}: {servers} servers could change their reservation", msb.id);
        for of in decided.standings {
            println!("  {}: {} RRU, afterwards {}", of.reservation, of.before, of.after);
        }
    }
    Ok(())
}
