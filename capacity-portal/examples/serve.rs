//! Serves a stored region over HTTP and reads a reservation from it.
//!
//! `cargo run -p capacity-portal --example serve`

use broker::{Broker, ImportOptions};
use capacity_portal::{Portal, PortalSettings};
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

    // By default reading needs no token, and no write is accepted.
    let settings = PortalSettings::default();
    let portal = Portal::bind("127.0.0.1:0".parse()?, broker.clone(), settings).await?;
    let url = portal.url().ok_or("the portal has no network address")?;
    let server = tokio::spawn(portal.serve());
    println!("{url} serves pages at / and the API at /v1");
    let answer = reqwest::get(format!("{url}/v1/reservations?limit=1")).await?;
    println!("{}", answer.text().await?);

    server.abort();
    broker.close().await;
    postgres.stop().await?;
    Ok(())
}
