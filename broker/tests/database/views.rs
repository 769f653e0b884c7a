//! Each view of a decision has two makers, SQL and a snapshot: on random regions both give the same.
//!
//! A snapshot does not hold everything. The test passes the rest to the second maker: lost MSBs, open
//! moves that keep the owner, and the number of servers lent when an outage began. Moves are opened
//! before views are compared, because SQL counts a target as held only once its move is open. No solve is
//! published, because a snapshot does not say when an event was recorded.

use crate::harness::Database;
use crate::regions::reservation;
use broker::{
    Epoch, ImportOptions, MaintenanceRequest, MoveReason, MoveState, MoverInstance, Publication,
    TargetRow, Wanted,
};
use chrono::{DateTime, TimeDelta, Utc};
use decisions::elastic::{self, Elastic, LoanPlan, LoanView};
use decisions::emergency::Stock;
use decisions::outage::{MsbHealth, OutageReason};
use decisions::preemption::RegionHeld;
use decisions::region::Region;
use decisions::replace::{Failed, Spare, SpareContext};
use fleet::{
    AllowedDatacenterRow, MsbName, Name, PartitionColumn, PartitionParts, RegionSnapshot,
    ReservationIx, ReservationKind, Rru, RruRow, Scope, ServerName, ServerRow, SnapshotParts,
    SurvivesRow, UnavailabilityKind, UnavailabilityRow, Weights,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use testkit::health::{Health, Occurrence};
use uuid::Uuid;

/// Number of random regions.
const REGIONS: u64 = 16;

const HOUR: Duration = Duration::from_secs(3_600);
const SERVERS: usize = 96;
const MSBS: usize = 4;

/// Random numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn chance(&mut self, of_hundred: usize) -> bool {
        self.below(100) < of_hundred
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

fn msb_of(server: usize) -> usize {
    server % MSBS
}

fn rack_of(server: usize) -> usize {
    msb_of(server) * 4 + server / MSBS % 4
}

/// Two datacenters of two MSBs, three guaranteed reservations, two elastic ones, shared buffers of two
/// hardware types and free servers.
fn parts(random: &mut Random, now: DateTime<Utc>) -> SnapshotParts {
    let types = ["x", "y", "z"];
    let servers = (0..SERVERS).map(|number| {
        let ty = random.of(&types);
        let owner = match random.below(10) {
            0..3 => Some("web".to_owned()),
            3..5 => Some("ads".to_owned()),
            5 => Some("db".to_owned()),
            6 | 7 if ty != "z" => Some(format!("shared-buffer/{ty}")),
            _ => None,
        };
        let msb = msb_of(number);
        ServerRow {
            server_id: format!("s{number:03}").into(),
            datacenter: format!("dc{}", msb / 2).into(),
            msb: format!("msb{msb}").into(),
            // The racks of the last MSB are not known.
            rack: match msb {
                3 => "msb3".into(),
                _ => format!("rack{:02}", rack_of(number)).into(),
            },
            hardware_type: ty.into(),
            in_use: owner.is_some() && random.chance(30),
            current_reservation: owner.map(Into::into),
            target_reservation: None,
            target_pending: false,
            loaned_to: None,
            power_watts: None,
        }
    });
    let servers: Vec<ServerRow> = servers.collect();
    let mut reservations = vec![
        reservation("web", "guaranteed", 12.0),
        reservation("ads", "guaranteed", 8.0),
        reservation("db", "guaranteed", 30.0),
        reservation("batch", "elastic", 0.0),
        reservation("trial", "elastic", 0.0),
    ];
    for of in &mut reservations[..3] {
        of.priority = random.below(3) as i32;
    }
    if random.chance(50) {
        reservations[2].msb_buffer = false;
        (reservations[2].replicas, reservations[2].replicas_per_msb) = (Some(3), Some(1));
    }
    let mut rru = Vec::new();
    for of in &reservations {
        for ty in types {
            if random.chance(75) {
                let rru_of = random.of(&[0.5, 1.0, 1.25, 3.0]);
                rru.push(RruRow {
                    reservation_id: of.reservation_id.clone(),
                    hardware_type: ty.into(),
                    rru: rru_of,
                });
            }
        }
    }
    let mut allowed_datacenters = Vec::new();
    for name in ["ads", "db"] {
        if random.chance(50) {
            let datacenter = random.of(&["dc0", "dc1"]).into();
            allowed_datacenters
                .push(AllowedDatacenterRow { reservation_id: name.into(), datacenter });
        }
    }
    let mut unavailability = Vec::new();
    for number in 0..random.below(4) {
        let (scope, scope_id) = place(random);
        unavailability.push(UnavailabilityRow {
            event_id: format!("work {number}").into(),
            scope: scope.as_str().into(),
            scope_id,
            kind: UnavailabilityKind::PlannedMaintenance.as_str().into(),
            started_at: now - TimeDelta::minutes(30),
            ended_at: Some(now + TimeDelta::hours(5)),
            recall_minutes: random.of(&[None, Some(20), Some(300)]),
        });
    }
    let crossing = crossing(random, &servers);
    SnapshotParts {
        region: "region".into(),
        taken_at: now,
        weights: Weights::default(),
        shared_buffer_fraction: Some(0.1),
        servers,
        reservations,
        rru,
        affinity: Vec::new(),
        allowed_datacenters,
        unavailability,
        ahead: fleet::AheadParts::default(),
        crossing,
    }
}

/// Switches and feeds that cross MSBs, and who survives them; in half of the regions.
fn crossing(random: &mut Random, servers: &[ServerRow]) -> PartitionParts {
    let mut crossing = PartitionParts::default();
    if random.chance(50) {
        return crossing;
    }
    for (name, count) in [("switch", 5), ("feed", 2)] {
        let mut domains = Vec::new();
        for row in servers {
            if random.chance(90) {
                let domain = format!("{name}{}", random.below(count)).into();
                domains.push((row.server_id.clone(), domain));
            }
        }
        crossing.partitions.push(PartitionColumn { name: name.into(), domains });
    }
    for (reservation, partition) in [("web", "switch"), ("db", "switch"), ("db", "feed")] {
        if random.chance(70) {
            let reservation_id = reservation.into();
            crossing.survives.push(SurvivesRow { reservation_id, partition: partition.into() });
        }
    }
    crossing
}

/// A server or a rack.
fn place(random: &mut Random) -> (Scope, Name) {
    let server = random.below(SERVERS);
    match random.chance(60) || msb_of(server) == 3 {
        true => (Scope::Server, format!("s{server:03}").into()),
        false => (Scope::Rack, format!("rack{:02}", rack_of(server)).into()),
    }
}

/// A region in which things have happened.
struct Town {
    database: Database,
    epoch: Epoch,
    random: Random,
}

impl Town {
    async fn new(seed: u64) -> Town {
        let (database, mut random) = (Database::new().await, Random(seed));
        let broker = &database.broker;
        let now = broker.clock().await.expect("asked");
        let region = RegionSnapshot::new(parts(&mut random, now)).expect("a snapshot");
        broker.load("test", &region, ImportOptions::default()).await.expect("loaded");
        let epoch = broker.lease_mover(&MoverInstance::new("m"), HOUR).await.expect("asked");
        let epoch = epoch.expect("free");
        Town { database, epoch, random }
    }

    async fn lend(&self) {
        let plan = |view: &LoanView| elastic::plan(view, &Elastic::default());
        self.database.broker.balance_loans("m", self.epoch, plan).await.expect("balanced");
    }

    /// Publishes targets for a fifth of the servers and opens moves for them.
    async fn publish(&mut self) {
        let broker = &self.database.broker;
        let export = broker.export(None).await.expect("exported");
        let mut targets = Vec::new();
        for (row, generation) in export.parts.servers.iter().zip(&export.generations) {
            if self.random.chance(20) {
                let owners = [None, Some("web"), Some("ads"), Some("shared-buffer/x")];
                targets.push(TargetRow {
                    server: row.server_id.clone(),
                    generation: *generation,
                    target: self.random.of(&owners).map(Into::into),
                });
            }
        }
        let (id, parent) = (Uuid::now_v7(), export.version);
        let publication = Publication { id: id.into(), parent, solve: None, targets };
        broker.publish("test", &publication).await.expect("published");
        broker.open_moves("m", self.epoch, Wanted::All).await.expect("opened");
    }

    /// Some moves are half-way, some are given up there, and some are bound.
    async fn carry_out(&mut self) {
        let (broker, epoch) = (&self.database.broker, self.epoch);
        let moves = broker.moves_under_way().await.expect("listed");
        let (mut steps, mut bound, mut given_up) = (Vec::new(), Vec::new(), Vec::new());
        for of in moves.iter().filter(|of| of.state == MoveState::Pending) {
            let fate = self.random.below(8);
            if fate > 1 {
                steps.push((of.id, MoveState::Pending, MoveState::CleaningUp));
            }
            match fate {
                2..5 => bound.push(of.id),
                5 => given_up.push(of.id),
                _ => {}
            }
        }
        broker.advance_moves(epoch, &steps).await.expect("advanced");
        broker.bind_moves("m", epoch, &bound).await.expect("bound");
        for id in given_up.into_iter().take(2) {
            let reason = MoveReason::HostRefused;
            broker.give_move_up("m", epoch, id, reason, "no").await.expect("given up");
        }
    }

    async fn use_servers(&mut self) {
        let mut rows: Vec<(ServerName, bool)> = Vec::new();
        for number in 0..SERVERS {
            if self.random.chance(15) {
                rows.push((format!("s{number:03}").into(), self.random.chance(50)));
            }
        }
        self.database.broker.report_usage("test", &rows).await.expect("reported");
    }

    async fn fail(&mut self) {
        let broker = &self.database.broker;
        for number in 0..3 + self.random.below(8) {
            let (scope, scope_id) = match self.random.chance(8) {
                true => (Scope::Msb, format!("msb{}", self.random.below(MSBS)).into()),
                false => place(&mut self.random),
            };
            let kinds = [
                UnavailabilityKind::RandomFailure,
                UnavailabilityKind::Software,
                UnavailabilityKind::CorrelatedFailure,
            ];
            let ago = TimeDelta::seconds(self.random.below(600) as i64 + 1);
            let occurrence = Occurrence {
                event: format!("failure {number}").into(),
                scope,
                scope_id,
                kind: if self.random.chance(60) { kinds[0] } else { self.random.of(&kinds) },
                started_at: broker.clock().await.expect("asked") - ago,
            };
            broker.record_unavailability("watch", &occurrence).await.expect("recorded");
        }
    }

    /// Windows that drain servers; those that are refused are left out.
    async fn drain(&mut self) {
        let broker = &self.database.broker;
        for _ in 0..3 {
            let (scope, name) = place(&mut self.random);
            let starts_at = broker.clock().await.expect("asked") + TimeDelta::minutes(20);
            let request = MaintenanceRequest {
                accept_short: None,
                scope,
                name,
                starts_at: Some(starts_at),
                length: HOUR,
                drain: HOUR,
                share_micro: Some(1_000_000),
                recall_minutes: Some(10),
                why: "test".to_owned(),
            };
            let _ = broker.plan_maintenance("ann", &request).await;
        }
        broker.advance_maintenance("m", self.epoch).await.expect("advanced");
    }

    async fn lose(&mut self) {
        let broker = &self.database.broker;
        let sizes = broker.msb_sizes().await.expect("counted");
        let random = &mut self.random;
        let judge = |health: &[MsbHealth]| {
            let lost = health.iter().filter(|of| of.reported || random.chance(25));
            lost.map(|of| (of.msb.clone(), OutageReason::Storm)).collect()
        };
        broker.note_outages("m", self.epoch, &sizes, judge).await.expect("noted");
    }

    /// The snapshot of now.
    async fn snapshot(&self) -> RegionSnapshot {
        let export = self.database.broker.export(None).await.expect("exported");
        RegionSnapshot::new(export.parts).expect("a snapshot")
    }

    /// What a snapshot does not hold.
    async fn complete<'a>(&self, snapshot: &'a RegionSnapshot) -> Region<'a> {
        let broker = &self.database.broker;
        let mut region = Region::of(snapshot);
        for of in broker.moves_under_way().await.expect("listed") {
            let server = snapshot.server(&of.server).expect("a server");
            if of.origin.stays() {
                region.servers[server.ix()].staying_move = Some(of.origin);
            }
        }
        let outages = broker.outages(true, 99).await.expect("listed");
        let msb = |name: &MsbName| snapshot.msbs.iter().position(|msb| msb.id == *name);
        let lost = outages.iter().filter_map(|outage| msb(&outage.msb));
        region.lost = lost.map(fleet::MsbIx::new).collect();
        region
    }
}

/// Racks by the order in which they are named: SQL has ids, a snapshot positions.
fn with_counted_racks(mut health: Vec<MsbHealth>) -> Vec<MsbHealth> {
    let mut racks: BTreeMap<i32, i32> = BTreeMap::new();
    for of in health.iter_mut().flat_map(|of| &mut of.failed) {
        let next = racks.len() as i32;
        of.rack = of.rack.map(|rack| *racks.entry(rack).or_insert(next));
    }
    health
}

/// Servers that failed and are not replaced yet, where none was replaced before.
fn failures(region: &Region) -> Vec<Failed> {
    let snapshot = region.snapshot;
    let mut failures = Vec::new();
    for (server, state) in snapshot.servers.iter().zip(&region.servers) {
        let rack = &snapshot.racks[server.rack.ix()].id;
        let covers = snapshot.unavailability.iter().filter(|event| {
            let place = match event.scope {
                Scope::Server => *event.scope_id == *server.id,
                Scope::Rack => *event.scope_id == **rack,
                Scope::Msb | Scope::Datacenter => false,
            };
            let kinds = [UnavailabilityKind::RandomFailure, UnavailabilityKind::Software];
            place
                && kinds.contains(&event.kind)
                && !event.id.starts_with("unfinished/")
                && event.is_active(snapshot.taken_at)
        });
        let since = covers.map(|event| event.started_at).min();
        let holder = state.holder().filter(|ix| {
            snapshot.reservations[ix.ix()].kind == ReservationKind::Guaranteed
                && !region.lost.contains(&snapshot.msb_of(server))
        });
        if let (Some(since), Some(holder)) = (since, holder) {
            failures.push(Failed::of(snapshot, server, holder, since));
        }
    }
    failures
}

/// Compares every view; gives what was in them, so that a test of empty regions is noticed.
async fn compare(town: &Town, case: &str) -> [usize; 7] {
    let (broker, epoch) = (&town.database.broker, town.epoch);
    let snapshot = town.snapshot().await;
    let region = town.complete(&snapshot).await;

    let sizes = broker.msb_sizes().await.expect("counted");
    let mut health = Vec::new();
    let judge = |of: &[MsbHealth]| {
        health = of.to_vec();
        let lost = of.iter().filter(|of| of.was_lost);
        lost.map(|of| (of.msb.clone(), OutageReason::Storm)).collect()
    };
    broker.note_outages("m", epoch, &sizes, judge).await.expect("noted");
    let expected = with_counted_racks(MsbHealth::all(&region));
    assert_eq!(with_counted_racks(health), expected, "{case}: health of MSBs");

    let held = broker.region_held().await.expect("counted");
    assert_eq!(held, RegionHeld::of(&region), "{case}: working servers");

    for name in ["web", "ads", "db"] {
        let reservation = snapshot.reservation(name).expect("a reservation");
        let asked = Rru::units(3);
        let stock =
            broker.emergency_stock(name, asked, false).await.expect("looked").expect("guaranteed");
        assert_eq!(stock, Stock::of(&region, reservation, asked), "{case}: stock for {name}");
    }

    let mut chosen_from = None;
    let (lent, moves) = (region.lent_by_guaranteed(), region.servers.clone());
    let capture = |view: &LoanView| {
        chosen_from = Some(view.clone());
        LoanPlan::default()
    };
    broker.balance_loans("m", epoch, capture).await.expect("balanced");
    let mut loans = chosen_from.expect("there are borrowers");
    let outages = broker.outages(true, 99).await.expect("listed");
    let first = outages.iter().map(|of| (of.began_at, of.lent.unsigned_abs().into())).min();
    assert_eq!(loans.outage.map(|(_, lent)| lent), first.map(|(_, lent): (_, u64)| lent), "{case}");
    loans.outage = None;
    assert_eq!(loans, LoanView::of(&region, None), "{case}: loans");

    // Loans have ended and are on their way back.
    let snapshot = town.snapshot().await;
    let region = town.complete(&snapshot).await;
    let now = broker.clock().await.expect("asked");
    let mut chosen_from = None;
    let choose = |failed: &[Failed], spares: &[Spare], worth: &SpareContext| {
        chosen_from = Some((failed.to_vec(), spares.to_vec(), worth.clone()));
        Vec::new()
    };
    broker.replace_failed("m", epoch, now, false, choose).await.expect("looked");
    let expected = failures(&region);
    let (failed, mut spares, worth) = chosen_from.unwrap_or_default();
    assert_eq!(failed, expected, "{case}: failures");
    if !failed.is_empty() {
        spares.sort();
        let short: BTreeSet<ReservationIx> = failed
            .iter()
            .map(|of| snapshot.reservation(&of.reservation).expect("a reservation"))
            .collect();
        assert_eq!(worth, SpareContext::of(&region, &short), "{case}: values and holdings");
        let expected = Spare::all(&region, &worth.partitions(), failed.len());
        assert_eq!(spares, expected, "{case}: spares");
    }
    let staying = moves.iter().filter(|state| state.staying_move.is_some()).count();
    let cordoned = moves.iter().filter(|state| state.cordoned).count();
    let in_domains = spares.iter().filter(|of| !of.domains.is_empty()).count();
    [lent as usize, staying, cordoned, region.lost.len(), failed.len(), spares.len(), in_domains]
}

#[tokio::test]
async fn views_from_sql_and_from_a_snapshot_are_equal() {
    let mut seen = [0; 7];
    for seed in 0..REGIONS {
        let mut town = Town::new(seed).await;
        town.lend().await;
        for _ in 0..2 {
            town.publish().await;
            town.carry_out().await;
        }
        town.use_servers().await;
        town.drain().await;
        town.fail().await;
        if seed % 3 > 0 {
            town.lose().await;
        }
        if seed % 2 > 0 {
            town.lend().await;
        }
        let counts = compare(&town, &format!("region {seed}")).await;
        for (sum, count) in seen.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    println!(
        "lent, staying moves, cordoned, lost MSBs, failed, spares, those in domains: {seen:?}"
    );
    assert!(seen.iter().all(|sum| *sum > 0), "{seen:?}");
}

/// A shared buffer all of whose servers in an MSB are used counts for the budget of its loans.
#[tokio::test]
async fn loan_budget_counts_servers_of_a_shared_buffer_that_are_in_use() {
    let database = Database::new().await;
    let broker = &database.broker;
    let server = |number: usize| ServerRow {
        server_id: format!("s{number:02}").into(),
        datacenter: "dc".into(),
        msb: format!("msb{}", number / 4).into(),
        rack: format!("rack{}", number / 4).into(),
        hardware_type: "x".into(),
        current_reservation: Some("shared-buffer/x".into()),
        target_reservation: None,
        target_pending: false,
        // The first MSB is in use.
        in_use: number < 4,
        loaned_to: None,
        power_watts: None,
    };
    let batch = reservation("batch", "elastic", 0.0);
    let parts = SnapshotParts {
        region: "region".into(),
        taken_at: DateTime::UNIX_EPOCH,
        weights: Weights::default(),
        shared_buffer_fraction: Some(0.5),
        servers: (0..8).map(server).collect(),
        reservations: vec![batch],
        rru: vec![RruRow { reservation_id: "batch".into(), hardware_type: "x".into(), rru: 1.0 }],
        affinity: Vec::new(),
        allowed_datacenters: Vec::new(),
        unavailability: Vec::new(),
        ahead: fleet::AheadParts::default(),
        crossing: fleet::PartitionParts::default(),
    };
    let region = RegionSnapshot::new(parts).expect("a snapshot");
    broker.load("test", &region, ImportOptions::default()).await.expect("loaded");
    let epoch = broker.lease_mover(&MoverInstance::new("m"), HOUR).await.expect("asked");
    let plan = |view: &LoanView| elastic::plan(view, &Elastic::default());
    let lent = broker.balance_loans("m", epoch.expect("free"), plan).await.expect("balanced");
    // Three quarters of eight, and no more than the four that are idle.
    assert_eq!(lent.lent, 4);
}
