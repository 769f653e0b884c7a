//! Starts a private Postgres in an empty folder, opens a region in it, and stops it.
//!
//! `cargo run -p private-postgres --example start`

use broker::Broker;
use private_postgres::{PrivateOptions, PrivatePostgres};
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The path of a unix socket must be short.
    let folder = tempfile::tempdir_in("/tmp")?;
    let options = PrivateOptions::new(folder.path());
    println!("has data: {}", options.has_data());
    let postgres = PrivatePostgres::start(&options).await?;
    println!("Postgres {} runs as process {}", postgres.major(), postgres.pid());

    // Opening applies the migrations.
    let broker = Broker::open(&postgres.address()).await?;
    println!("the database is at {}", broker.clock().await?);
    broker.close().await;

    postgres.stop().await?;
    println!("has data: {}", options.has_data());
    Ok(())
}
