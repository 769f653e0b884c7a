//! Failures of the servers of each hardware type, from a snapshot or a file.

use crate::cli::ServerOptions;
use crate::client::Client;
use crate::client::login::Server as ApiServer;
use crate::store;
use anyhow::Result;
use api_types::inventory::RegionServers;
use api_types::servers::EventsPage;
use control::failure_history::{Covered, mean_rru};
use datasets::import::read_outages;
use fleet::{HardwareTypeIx, RegionSnapshot, Scope, UnavailabilityKind};
use forecast::spares::Outage;
use std::collections::BTreeMap;
use std::path::Path;

/// What is known of the failures of a region: its types, each with its outages.
#[derive(Debug, Default)]
pub(super) struct FailureHistory {
    pub(super) types: BTreeMap<String, OfType>,
    /// The end of the history, if the source says it.
    pub(super) until: Option<i64>,
    /// Events that spares do not cover: planned work and whole MSBs or datacenters.
    pub(super) left_out: usize,
}

/// A hardware type.
#[derive(Debug, Default)]
pub(super) struct OfType {
    /// What a server is worth, where the source says it.
    pub(super) rru: Option<f64>,
    /// Its servers, or as many of them as the source lists.
    pub(super) servers: usize,
    /// Their outages; servers have numbers.
    pub(super) outages: Vec<Outage>,
}

/// The failures of a file.
pub(super) fn of_file(file: &Path) -> Result<FailureHistory> {
    let mut history = FailureHistory::default();
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    for row in read_outages(file)? {
        let of = history.types.entry(row.hardware_type).or_default();
        // A server is of one type, so numbers need not begin with each type.
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        let server = *numbers.entry(row.server).or_insert_with(|| {
            of.servers += 1;
            next
        });
        if let Some((start, end)) = row.outage {
            of.outages.push(Outage { server, start, end: end.unwrap_or(i64::MAX) });
        }
    }
    Ok(history)
}

/// The failures that the server of a running region lists. What its servers are worth is not asked.
pub(super) fn of_server(options: &ServerOptions) -> Result<FailureHistory> {
    let server = ApiServer::of(options)?;
    let (servers, events, now) = store::run(async {
        let client = Client::new(server)?;
        let servers: RegionServers =
            client.get_all("/ops/v1/servers?limit=1000", "servers").await?.read()?;
        let found = client.get_all("/ops/v1/unavailability?limit=1000", "events").await?;
        let events: EventsPage = found.read()?;
        Ok((servers.servers, events.events, found.at))
    })?;
    let mut history = FailureHistory { until: Some(now.timestamp()), ..FailureHistory::default() };
    let mut members: BTreeMap<(Scope, &str), Vec<usize>> = BTreeMap::new();
    for (number, server) in servers.iter().enumerate() {
        history.types.entry(server.hardware_type.clone()).or_default().servers += 1;
        members.entry((Scope::Server, &server.server)).or_default().push(number);
        members.entry((Scope::Rack, &server.rack)).or_default().push(number);
    }
    for event in events.iter().filter(|event| event.started_at <= now) {
        let is_planned =
            UnavailabilityKind::parse(&event.kind).is_some_and(UnavailabilityKind::is_planned);
        let scope = Scope::parse(&event.scope).filter(|_| !is_planned);
        let covered = scope.and_then(|scope| members.get(&(scope, event.scope_id.as_str())));
        history.left_out += usize::from(covered.is_none());
        let start = event.started_at.timestamp();
        let end = event.ended_at.map_or(i64::MAX, |ended| ended.timestamp());
        for number in covered.into_iter().flatten() {
            let of = history.types.entry(servers[*number].hardware_type.clone()).or_default();
            let server = u32::try_from(*number).unwrap_or(u32::MAX);
            of.outages.push(Outage { server, start, end });
        }
    }
    Ok(history)
}

/// The failures that a snapshot lists.
pub(super) fn of_region(snapshot: &RegionSnapshot) -> FailureHistory {
    let mut history =
        FailureHistory { until: Some(snapshot.taken_at.timestamp()), ..FailureHistory::default() };
    let type_name = |of: HardwareTypeIx| snapshot.hardware_types[of.ix()].to_string();
    for server in &snapshot.servers {
        history.types.entry(type_name(server.hardware_type)).or_default().servers += 1;
    }
    for (at, name) in snapshot.hardware_types.iter().enumerate() {
        if let Some(of) = history.types.get_mut(name.as_ref()) {
            of.rru = mean_rru(snapshot, HardwareTypeIx::new(at));
        }
    }
    let mut covered = Covered::of(snapshot);
    for event in &snapshot.unavailability {
        let servers = covered.by(event);
        history.left_out += usize::from(servers.is_empty());
        let start = event.started_at.timestamp();
        let end = event.ended_at.map_or(i64::MAX, |ended| ended.timestamp());
        for server in servers {
            let of_type = type_name(snapshot.servers[server.ix()].hardware_type);
            let number = u32::try_from(server.ix()).unwrap_or(u32::MAX);
            let of = history.types.entry(of_type).or_default();
            of.outages.push(Outage { server: number, start, end });
        }
    }
    history
}
