//! Caches a stored region in memory and reads its certificate: what an MSB loss would leave.
//!
//! `cargo run -p control --example certificate`

use broker::{Broker, ImportOptions};
use control::{ChangeNotifier, RegionCache};
use datasets::generate::{GenerateOptions, State, generate};
use fleet::RegionSnapshot;
use private_postgres::{PrivateOptions, PrivatePostgres};
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
    let notifier = ChangeNotifier::start(broker.clone());
    let cached = RegionCache::start(broker.clone(), &notifier).read_current().await?;
    for row in &cached.certificate.rows {
        let (name, promised, left) = (&row.reservation_id, row.capacity, row.left);
        println!("{name}: {promised} RRU promised, {left} after the worst MSB loss");
    }
    broker.close().await;
    postgres.stop().await?;
    Ok(())
}
