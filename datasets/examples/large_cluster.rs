//! A generated cluster of 10,000 nodes and 250,000 replicas, written and read as tables and as JSON.
//!
//! ```sh
//! cargo run --release -p datasets --no-default-features --example large_cluster
//! ```
#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use datasets::cluster::{read, write};
use placement::{Cluster, DomainIx, Level, NodeIx, Replica, Role, Service, ServiceIx};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let mut builder = Cluster::builder("large").metric("cpu", true).metric("memory", true);
    for node in 0..10_000 {
        builder = builder.node(&format!("node-{node}"), [Some(64_000), Some(1 << 38)]);
    }
    let racks: Vec<String> = (0..10_000).map(|node| format!("rack-{}", node / 40)).collect();
    let builder = builder.with(|cluster| {
        for number in 0..250_000 {
            cluster.services.push(Service { name: format!("service-{number}"), allowed: None });
            cluster.replicas.push(Replica {
                name: format!("service-{number}-replica-0"),
                service: ServiceIx::new(number),
                role: Role::Primary,
                node: Some(NodeIx::new(number % 10_000)),
                demand: vec![1_000 + number as i64 % 997, 1 << 30],
                move_cost: 1.0,
            });
        }
        cluster.levels.push(Level {
            name: "rack".to_owned(),
            domains: racks.iter().step_by(40).cloned().collect(),
            domain_of: (0..10_000).map(|node| DomainIx::new(node / 40)).collect(),
        });
    });
    let cluster = builder.build();
    let folder = tempfile::tempdir()?;
    for name in ["large", "large.json"] {
        let path = folder.path().join(name);
        let began = Instant::now();
        write(&path, &cluster)?;
        let written = began.elapsed();
        let began = Instant::now();
        let again = read(&path)?;
        println!("{name}: written in {written:.2?}, read in {:.2?}", began.elapsed());
        assert_eq!(again.replicas.len(), 250_000);
    }
    Ok(())
}
