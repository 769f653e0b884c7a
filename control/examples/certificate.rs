//! Caches a stored region in memory and reads its certificate: what an MSB loss would leave.
//!
//! `cargo run -p control --example certificate`

use broker::private::{PrivateOptions, PrivatePostgres};
use broker::{Broker, ImportOptions};
use control::{Bell, RegionKeeper};
use datasets::generate::{GenerateOptions, State, generate};
use fleet::RegionSnapshot;
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = GenerateOptions { msbs: 12, state: State::Steady, ..GenerateOptions::new(1_000) };
    let region = RegionSnapshot::new(generate(&options)?)?;
    let folder = tempfile::tempdir_in("/tmp")?;
    let postgres = PrivatePostgres::start(&PrivateOptions::new(folder.path())).await?;
    let broker = Broker::open(&postgres.address()).await?;
    broker.load("example", &region, ImportOptions::default()).await?;

    // A fresh region includes every change that was committed before the call.
    let bell = Bell::start(broker.clone());
    let cached = RegionKeeper::start(broker.clone(), &bell).fresh().await?;
    for row in &cached.certificate.rows {
        let (name, promised, left) = (&row.reservation_id, row.capacity, row.left);
        println!("{name}: {promised} RRU promised, {left} after the worst MSB loss");
    }
    broker.close().await;
    postgres.stop().await?;
    Ok(())
}
