//! A large region in a private Postgres, and the resources of a process.

use broker::private::{PrivateOptions, PrivatePostgres};
use broker::{Broker, ImportOptions};
use fleet::{
    Name, RegionSnapshot, ReservationRow, RruRow, SHARED_BUFFER_PREFIX, ServerRow, SnapshotParts,
    Weights,
};

pub fn option(name: &str, default: usize) -> usize {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    arguments.next().map_or(default, |value| value.parse().expect("a number"))
}

/// The name of a server by its number.
pub fn name(number: usize) -> Name {
    format!("s{number:07}").into()
}

/// The reservation that holds a server, unless it is a spare: one per 500 servers, spread over the region.
pub fn holder(servers: usize, number: usize) -> Name {
    format!("r{:04}", number % (servers / 500).max(2)).into()
}

/// Racks of forty in 36 MSBs, four hardware types; of each fifty servers two are spares; `c` has none.
fn region(servers: usize) -> RegionSnapshot {
    let reservation = |id: Name| ReservationRow {
        reservation_id: id.clone(),
        owner: id,
        kind: "guaranteed".into(),
        capacity_rru: 1.0,
        msb_buffer: true,
        priority: 1,
        msb_alpha: None,
        rack_alpha: None,
        affinity_theta: None,
        host_profile: None,
        replicas: None,
        replicas_per_msb: None,
    };
    let server = |number: usize| {
        let hardware_type = format!("type{}", number % 4);
        let spare = number % 50 == 2 || number % 50 == 49;
        ServerRow {
            server_id: name(number),
            datacenter: "dc".into(),
            msb: format!("msb{:02}", number / 40 % 36).into(),
            rack: format!("rack{:05}", number / 40).into(),
            current_reservation: Some(if spare {
                format!("{SHARED_BUFFER_PREFIX}{hardware_type}").into()
            } else {
                holder(servers, number)
            }),
            hardware_type: hardware_type.into(),
            target_reservation: None,
            target_pending: false,
            in_use: number.is_multiple_of(3) && !spare,
            loaned_to: None,
            power_watts: None,
        }
    };
    let mut names: Vec<Name> =
        (0..(servers / 500).max(2)).map(|number| holder(servers, number)).collect();
    names.push("c".into());
    let values = names.iter().flat_map(|id| {
        (0..4).map(move |ty| RruRow {
            reservation_id: id.clone(),
            hardware_type: format!("type{ty}").into(),
            rru: 1.0,
        })
    });
    let parts = SnapshotParts {
        region: "region".into(),
        taken_at: chrono::DateTime::UNIX_EPOCH,
        weights: Weights::default(),
        shared_buffer_fraction: Some(0.02),
        servers: (0..servers).map(server).collect(),
        rru: values.collect(),
        reservations: names.iter().cloned().map(reservation).collect(),
        affinity: Vec::new(),
        allowed_datacenters: Vec::new(),
        unavailability: Vec::new(),
        ahead: fleet::AheadParts::default(),
    };
    RegionSnapshot::new(parts).expect("a snapshot")
}

/// Fields are dropped in this order: the folder last.
pub struct Place {
    pub broker: Broker,
    postgres: PrivatePostgres,
    _folder: tempfile::TempDir,
}

impl Place {
    pub async fn new(servers: usize) -> Place {
        let folder = tempfile::Builder::new().prefix("ras-mv-").tempdir_in("/var/tmp");
        let folder = folder.expect("a folder");
        let postgres = PrivatePostgres::start(&PrivateOptions::new(folder.path())).await;
        let postgres = postgres.expect("Postgres starts");
        let broker = Broker::open(&postgres.address()).await.expect("it can be opened");
        broker.load("bench", &region(servers), ImportOptions::default()).await.expect("loaded");
        Place { broker, postgres, _folder: folder }
    }

    /// Processor seconds of Postgres: of its main process and all that it has started, ended ones
    /// included.
    pub fn postgres_processor(&self) -> f64 {
        let entries = std::fs::read_dir("/proc").expect("Linux");
        let stats = entries.filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
            let name = stat.split(['(', ')']).nth(1)?.to_owned();
            (name == "postgres").then(|| seconds(&stat, &[11, 12, 13, 14])).flatten()
        });
        stats.sum()
    }

    pub async fn stop(self) {
        self.broker.close().await;
        self.postgres.stop().await.expect("it stops");
    }
}

/// A member of /proc/self/status in MiB.
pub fn memory(member: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with(member)).expect("a member");
    let kib: f64 = line.split_whitespace().nth(1).expect("a value").parse().expect("a number");
    kib / 1024.0
}

/// Processor seconds of this process.
pub fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    seconds(&stat, &[11, 12]).expect("fields")
}

/// The sum of some fields of a stat file, which count ticks.
fn seconds(stat: &str, places: &[usize]) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = places.iter().map(|place| fields.get(*place)?.parse::<f64>().ok());
    Some(ticks.sum::<Option<f64>>()? / 100.0)
}
