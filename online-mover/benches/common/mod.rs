//! A large region in a private Postgres.

use broker::{Broker, ImportOptions};
use fleet::{Name, RegionSnapshot, SHARED_BUFFER_PREFIX};
use testkit::postgres::Server;
use testkit::rows::{large, snapshot};

/// The name of a server by its number.
pub fn name(number: usize) -> Name {
    format!("s{number:07}").into()
}

/// The reservation that holds a server, unless it is a spare: one per 500 servers, spread over the region.
pub fn holder(servers: usize, number: usize) -> Name {
    format!("r{:04}", number % (servers / 500).max(2)).into()
}

/// Four hardware types; of each fifty servers two are spares; `c` has none.
fn region(servers: usize) -> RegionSnapshot {
    let mut names: Vec<String> =
        (0..(servers / 500).max(2)).map(|number| holder(servers, number).to_string()).collect();
    names.push("c".to_owned());
    let mut parts = large(servers, 4, names, |number| {
        if is_spare(number) {
            format!("{SHARED_BUFFER_PREFIX}type{}", number % 4)
        } else {
            holder(servers, number).to_string()
        }
    });
    parts.shared_buffer_fraction = Some(0.02);
    for (number, row) in parts.servers.iter_mut().enumerate() {
        row.in_use &= !is_spare(number);
    }
    snapshot(&parts)
}

fn is_spare(number: usize) -> bool {
    number % 50 == 2 || number % 50 == 49
}

/// Fields are dropped in this order: the server last.
pub struct Place {
    pub broker: Broker,
    postgres: Server,
}

impl Place {
    pub async fn new(servers: usize) -> Place {
        let postgres = Server::start_in("/var/tmp").await;
        let broker = Broker::open(&postgres.address()).await.expect("it can be opened");
        broker.load("bench", &region(servers), ImportOptions::default()).await.expect("loaded");
        Place { broker, postgres }
    }

    pub async fn stop(mut self) {
        self.broker.close().await;
        self.postgres.stop().await;
    }
}
