//! Loads a generated region into a private Postgres, publishes a target, and reads the audit trail.
//!
//! `cargo run -p broker --example publish`

use broker::{Broker, ImportOptions, Publication, Seq, TargetRow};
use datasets::generate::{GenerateOptions, generate};
use fleet::RegionSnapshot;
use private_postgres::{PrivateOptions, PrivatePostgres};
use std::error::Error;
use uuid::Uuid;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = GenerateOptions { msbs: 12, ..GenerateOptions::new(1_000) };
    let region = RegionSnapshot::new(generate(&options)?)?;
    let folder = tempfile::tempdir_in("/tmp")?;
    let postgres = PrivatePostgres::start(&PrivateOptions::new(folder.path())).await?;
    let broker = Broker::open(&postgres.address()).await?;
    broker.load("example", &region, ImportOptions::default()).await?;

    // A target names the generation of the server on which it was decided.
    let export = broker.export(None).await?;
    let target = TargetRow {
        server: export.parts.servers[0].server_id.clone(),
        generation: export.generations[0],
        target: Some(export.parts.reservations[0].reservation_id.clone()),
    };
    let (id, parent, targets) = (Uuid::now_v7(), export.version, vec![target]);
    let publication = Publication { id: id.into(), parent, solve: None, targets };
    let published = broker.publish("example", &publication).await?;
    println!("published version {} on top of version {parent}", published.version);

    for entry in broker.trail(Seq(0), 100).await? {
        println!("{}: {} by {}", entry.seq, entry.action.as_str(), entry.actor);
    }
    broker.close().await;
    postgres.stop().await?;
    Ok(())
}
