//! Reads the small region that comes with the project, and audits today's assignment.
//!
//! `cargo run -p datasets --example audit_region`

use fleet::Targets;
use fleet::audit::audit;
use std::path::Path;

fn main() -> Result<(), datasets::ReadError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/small-region");
    let region = datasets::read_snapshot(&folder)?;
    let report = audit(&region, &Targets::unchanged(&region));
    println!("{}: {} servers, {} MSBs", region.region, region.servers.len(), region.msbs.len());
    for row in report.short() {
        println!("{} is short by {} RRU", row.reservation_id, row.holding.shortfall);
    }
    Ok(())
}
