//! Executes a published target: asks a simulated host for each step, then binds the server.
//!
//! `cargo run -p online-mover --example execute`

use broker::{Broker, DbError, ImportOptions, Publication, PublicationId, TargetRow};
use datasets::generate::{GenerateOptions, generate};
use fleet::RegionSnapshot;
use online_mover::agent::simulated::SimulatedAgent;
use online_mover::{Mover, MoverSettings};
use private_postgres::{PrivateOptions, PrivatePostgres};
use std::error::Error;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = GenerateOptions { msbs: 12, ..GenerateOptions::new(1_000) };
    let region = RegionSnapshot::new(generate(&options)?)?;
    let folder = tempfile::tempdir_in("/tmp")?;
    let postgres = PrivatePostgres::start(&PrivateOptions::new(folder.path())).await?;
    let broker = Broker::open(&postgres.address()).await?;
    broker.load("example", &region, ImportOptions::default()).await?;

    let export = broker.export(None).await?;
    let server = export.parts.servers[0].server_id.clone();
    let owner = export.parts.reservations[0].reservation_id.clone();
    let (generation, target) = (export.generations[0], Some(owner.clone()));
    let targets = vec![TargetRow { server: server.clone(), generation, target }];
    let (id, parent) = (PublicationId::now_v7(), export.version);
    broker.publish("example", &Publication { id, parent, solve: None, targets }).await?;

    let agent = SimulatedAgent::default();
    let mover = Mover::new(broker.clone(), &agent, MoverSettings::default(), "example".to_owned());
    let bound = async {
        while broker.server(&server).await?.and_then(|of| of.current).is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok::<(), DbError>(())
    };
    tokio::select! {
        never = mover.run() => never,
        bound = bound => bound?,
    }
    for done in agent.done() {
        println!("{}: {}", done.server, done.step.as_str());
    }
    println!("{server} belongs to {owner}");
    broker.close().await;
    postgres.stop().await?;
    Ok(())
}
