//! Small regions drawn at random, and solves of them in this process.

use async_solver::backend::{InProcess, LpProblem, LpRequest};
use async_solver::{
    Backend, LpJob, Means, QuoteContext, SolveEnv, SolveOutcome, SolverConfig, WarmStart, solve,
};
use fleet::audit::audit;
use fleet::{
    AffinityRow, AllowedDatacenterRow, CapacityRequest, PartitionColumn, PartitionParts,
    RegionSnapshot, ReservationRow, Rru, ServerRow, SnapshotParts, SurvivesRow, Targets, Weights,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use testkit::rows::{event, parts as empty, reservation, rru, server, snapshot};

/// The settings of tests: solved to the end, on one thread.
pub fn config() -> SolverConfig {
    SolverConfig { gap_limit: 0.0, stay_gain: 0.0, threads: 1, ..SolverConfig::default() }
}

/// A plan without a deadline.
pub const MEANS: Means = Means {
    backend: &InProcess,
    elapsed: &|| Duration::ZERO,
    deadline: None,
    interrupted: &|| false,
};

/// A plan of a region without warm start, offers and limits.
pub fn context<'a>(snapshot: &'a RegionSnapshot, config: &'a SolverConfig) -> QuoteContext<'a> {
    QuoteContext { snapshot, config, warm: None, offered: &[], limits: None, means: MEANS }
}

/// A clock that goes on by a millisecond each time it is read: time without waiting.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// The time.
    pub fn read(&self) -> Duration {
        Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// HiGHS in this process without a limit of time: what is left on a [`Clock`] is no time for HiGHS, whose own clock
/// depends on the machine.
pub struct Unhurried;

impl Backend for Unhurried {
    fn start(&self, problem: LpProblem, request: LpRequest) -> Box<dyn LpJob> {
        InProcess.start(problem, LpRequest { time_limit: None, ..request })
    }
}

/// A request of the owner `shop` for `capacity` RRU of servers of type `t0`, each worth one.
pub fn request(reservation: &str, capacity: f64) -> CapacityRequest {
    CapacityRequest {
        reservation_id: reservation.into(),
        owner: Some("shop".into()),
        capacity_rru: Some(capacity),
        rru: Some(BTreeMap::from([("t0".into(), 1.0)])),
        ..CapacityRequest::default()
    }
}

/// A request for the end of a reservation.
pub fn removal(reservation: &str) -> CapacityRequest {
    CapacityRequest {
        reservation_id: reservation.into(),
        remove: true,
        ..CapacityRequest::default()
    }
}

/// Two MSBs of one rack each, with `servers` free servers of type `t0` in each.
pub fn two_msbs(servers: usize) -> SnapshotParts {
    let mut parts = empty();
    for (msb, number) in ["m0", "m1"].iter().flat_map(|msb| (0..servers).map(move |n| (*msb, n))) {
        let rack = format!("{msb}-rack0");
        parts.servers.push(server(&format!("{msb}-{number}"), ("dc0", msb, &rack), "t0"));
    }
    parts
}

/// The missing RRU of each reservation under targets, by the audit.
pub fn shortfalls(snapshot: &RegionSnapshot, targets: &Targets) -> Vec<Rru> {
    audit(snapshot, targets).reservations.iter().map(|row| row.holding.shortfall).collect()
}

/// Solves without a deadline.
pub fn solved(snapshot: &RegionSnapshot, config: &SolverConfig) -> SolveOutcome {
    solved_with(snapshot, config, &InProcess)
}

/// Solves without a deadline, with this backend.
pub fn solved_with(
    snapshot: &RegionSnapshot,
    config: &SolverConfig,
    backend: &(dyn Backend + Sync),
) -> SolveOutcome {
    solved_from(snapshot, config, backend, None)
}

/// Solves a snapshot with the warm start of another solve.
pub fn solved_from(
    snapshot: &RegionSnapshot,
    config: &SolverConfig,
    backend: &(dyn Backend + Sync),
    warm: Option<&WarmStart>,
) -> SolveOutcome {
    let env = SolveEnv { warm, ..SolveEnv::untimed(backend) };
    solve(snapshot, config, &env)
}

/// Runs a test over worlds that come again on every machine; a failure is shrunk and printed.
/// `PROPTEST_CASES` asks for more of them.
pub fn for_each(
    cases: u32,
    worlds: impl Strategy<Value = SnapshotParts>,
    test: impl Fn(SnapshotParts),
) {
    let asked = Config::default().cases;
    let cases = if asked == 256 { cases } else { asked };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&worlds, |world| {
        test(world);
        Ok(())
    });
    match outcome {
        Ok(()) => (),
        Err(TestError::Fail(reason, world)) => panic!("{reason}\n{}", text(&world)),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// A world in a few lines, for a reader who has to understand a failure.
pub fn text(parts: &SnapshotParts) -> String {
    let mut text =
        format!("{:?}\nshared buffers {:?}\n", parts.weights, parts.shared_buffer_fraction);
    for row in &parts.reservations {
        let id = &row.reservation_id;
        text += &format!("{} {id} C={}", row.kind, row.capacity_rru);
        text += &format!(" buffer={} priority={}", row.msb_buffer, row.priority);
        text += &format!(" alpha={:?}", row.msb_alpha);
        for value in parts.rru.iter().filter(|value| value.reservation_id == *id) {
            text += &format!(" {}={}", value.hardware_type, value.rru);
        }
        if let (Some(n), Some(k)) = (row.replicas, row.replicas_per_msb) {
            text += &format!(" replicas={k}/{n}");
        }
        for of in parts.allowed_datacenters.iter().filter(|of| of.reservation_id == *id) {
            text += &format!(" allowed={}", of.datacenter);
        }
        for share in parts.affinity.iter().filter(|share| share.reservation_id == *id) {
            text += &format!(" {}={}", share.datacenter, share.share);
        }
        text.push('\n');
    }
    for row in &parts.servers {
        text += &format!("{} {}/{}/{}", row.server_id, row.datacenter, row.msb, row.rack);
        text += &format!(
            " {} {}",
            row.hardware_type,
            row.current_reservation.as_deref().unwrap_or("free")
        );
        if row.target_pending {
            text += &format!(" to {}", row.target_reservation.as_deref().unwrap_or("free"));
        }
        if row.in_use {
            text += " in use";
        }
        text.push('\n');
    }
    for column in &parts.crossing.partitions {
        text += &format!("partition {}: {:?}\n", column.name, column.domains);
    }
    for row in &parts.crossing.survives {
        text += &format!("{} survives {}\n", row.reservation_id, row.partition);
    }
    for row in &parts.unavailability {
        text += &format!("{} {} {}\n", row.scope, row.scope_id, row.kind);
    }
    text
}

/// How large a drawn world is.
pub struct Shape {
    pub servers: Range<usize>,
    pub reservations: Range<usize>,
    pub racks_per_msb: usize,
    /// Half-RRU, per reservation.
    pub capacity: Range<u32>,
    pub places: &'static [(&'static str, &'static str)],
}

/// Few enough servers and reservations to try every assignment.
pub const TINY: Shape = Shape {
    servers: 1..7,
    reservations: 2..4,
    racks_per_msb: 2,
    capacity: 0..9,
    places: &[("dc0", "m0"), ("dc0", "m1"), ("dc1", "m2")],
};

/// Too large for that, small enough for HiGHS on single servers.
pub const HAMLET: Shape = Shape { servers: 12..31, capacity: 0..16, ..TOWN };

/// As large as a property test can solve often.
pub const TOWN: Shape = Shape {
    servers: 20..81,
    reservations: 2..6,
    racks_per_msb: 3,
    capacity: 0..30,
    places: &[("dc0", "m0"), ("dc0", "m1"), ("dc1", "m2"), ("dc1", "m3"), ("dc2", "m4")],
};

const TYPES: [&str; 3] = ["t0", "t1", "t2"];
const NAMES: [&str; 6] = ["r0", "r1", "r2", "r3", "r4", "lent"];
const KINDS: [&str; 4] =
    ["random_failure", "software", "correlated_failure", "planned_maintenance"];

/// Regions with everything that may be in a snapshot: servers held, in use, unavailable and on
/// the move, priorities, spread limits, affinity, shared buffers, an elastic reservation.
pub fn worlds(shape: Shape) -> impl Strategy<Value = SnapshotParts> {
    worlds_without_rules(shape).prop_map(with_rules)
}

/// Gives some reservations rules of places: what they are follows from what was drawn of them.
fn with_rules(mut parts: SnapshotParts) -> SnapshotParts {
    const ALLOWED: [&[&str]; 8] = [&["dc0"], &["dc1"], &["dc0", "dc1"], &[], &[], &[], &[], &[]];
    const RULES: [Option<(i32, i32)>; 9] =
        [Some((1, 2)), Some((1, 3)), Some((2, 3)), None, None, None, None, None, None];
    let servers = parts.servers.len();
    for (number, row) in parts.reservations.iter_mut().enumerate() {
        if &*row.kind != "guaranteed" {
            continue;
        }
        let held = parts
            .servers
            .iter()
            .filter(|server| server.current_reservation.as_ref() == Some(&row.reservation_id));
        let drawn = 31 * servers + 17 * held.count() + 7 * number + row.priority as usize;
        // A datacenter without servers would be refused, and so would a share where it is not allowed.
        let there = |dc: &&&str| parts.servers.iter().any(|server| *server.datacenter == ***dc);
        let allowed: Vec<&str> =
            ALLOWED[drawn % ALLOWED.len()].iter().filter(there).copied().collect();
        let id = &row.reservation_id;
        parts.affinity.retain(|share| {
            share.reservation_id != *id
                || allowed.is_empty()
                || allowed.contains(&&*share.datacenter)
        });
        parts.allowed_datacenters.extend(allowed.into_iter().map(|datacenter| {
            AllowedDatacenterRow { reservation_id: id.clone(), datacenter: datacenter.into() }
        }));
        if let Some((per_msb, replicas)) = RULES[drawn / 8 % RULES.len()] {
            (row.replicas, row.replicas_per_msb) = (Some(replicas), Some(per_msb));
        }
    }
    parts
}

/// Gives servers domains of two partitions that cross MSBs, some servers in none, and reservations one, both or none of
/// them to survive.
pub fn crossed(mut parts: SnapshotParts) -> SnapshotParts {
    let domain = |number: usize, of: &'static str, domains: usize, without: usize| {
        let server: fleet::ServerName = parts.servers[number].server_id.clone();
        let drawn = 5 * number + 3 * parts.servers[number].rack.len() + parts.servers.len();
        let name = format!("{of}{}", (drawn / 2 + usize::from(number.is_multiple_of(3))) % domains);
        (!drawn.is_multiple_of(without)).then(|| (server, name.into()))
    };
    let column = |of: &'static str, domains, without| {
        let servers = 0..parts.servers.len();
        PartitionColumn {
            name: of.into(),
            domains: servers.filter_map(|number| domain(number, of, domains, without)).collect(),
        }
    };
    let partitions = vec![column("feed", 2, 4), column("switch", 3, 7)];
    let mut survives = Vec::new();
    for (number, row) in parts.reservations.iter().enumerate() {
        let drawn = number + parts.servers.len() + row.priority as usize;
        let names: &[&str] = [&["switch"][..], &["feed"], &["feed", "switch"], &[]][drawn % 4];
        if &*row.kind == "guaranteed" {
            survives.extend(names.iter().map(|name| SurvivesRow {
                reservation_id: row.reservation_id.clone(),
                partition: (*name).into(),
            }));
        }
    }
    parts.crossing = PartitionParts { partitions, survives };
    parts
}

/// The same without allowed datacenters and replica rules.
pub fn worlds_without_rules(shape: Shape) -> impl Strategy<Value = SnapshotParts> {
    let count = shape.reservations;
    (count, weights(), proptest::bool::weighted(0.2)).prop_flat_map(
        move |(count, weights, waste)| {
            let servers = vec(
                any_server(count, shape.places, shape.racks_per_msb, waste),
                shape.servers.clone(),
            );
            let reservations = vec(any_reservation(shape.capacity.clone()), count);
            let fraction = select(&[0.0, 0.0, 0.1, 0.3][..]);
            (Just(weights), servers, reservations, fraction).prop_map(assemble)
        },
    )
}

type Drawn = (Weights, Vec<(ServerRow, Option<&'static str>)>, Vec<DrawnReservation>, f64);

fn assemble((weights, servers, reservations, fraction): Drawn) -> SnapshotParts {
    let mut parts = SnapshotParts { weights, shared_buffer_fraction: Some(fraction), ..empty() };
    for (number, (row, kind)) in servers.into_iter().enumerate() {
        let id = format!("s{number:02}");
        if let Some(kind) = kind {
            parts.unavailability.push(event(number, "server", &id, kind));
        }
        parts.servers.push(ServerRow { server_id: id.as_str().into(), ..row });
    }
    for (id, drawn) in NAMES.iter().zip(reservations) {
        let row = ReservationRow { reservation_id: (*id).into(), ..drawn.row };
        parts.reservations.push(row);
        for (hardware_type, value) in TYPES.iter().zip(drawn.values) {
            if value > 0.0 {
                parts.rru.push(rru(id, hardware_type, value));
            }
        }
        for (datacenter, share) in ["dc0", "dc1"].into_iter().zip(drawn.shares) {
            let (reservation_id, datacenter) = ((*id).into(), datacenter.into());
            parts.affinity.push(AffinityRow { reservation_id, datacenter, share });
        }
    }
    let lent = ReservationRow { kind: "elastic".into(), ..reservation("lent", 0.0) };
    parts.reservations.push(lent);
    // Values may name a type without servers; a shared buffer of it would be empty.
    parts
}

fn weights() -> impl Strategy<Value = Weights> {
    (
        select(&[(10.0, 1.0), (10.0, 1.0), (3.0, 0.0), (0.25, 2.0)][..]),
        select(&[2.0, 2.0, 0.0, 7.5][..]),
        select(&[5.0, 5.0, 0.0, 0.3][..]),
        select(&[None, None, Some(0.4)][..]),
        select(&[0.05, 0.2][..]),
    )
        .prop_map(|((move_in_use, move_idle), spread_beta, buffer_tau, msb_alpha, theta)| {
            Weights {
                move_in_use,
                move_idle,
                spread_beta,
                buffer_tau,
                msb_alpha,
                rack_alpha: None,
                affinity_theta: theta,
            }
        })
}

/// `waste`: servers may also be held by the elastic reservation.
fn any_server(
    reservations: usize,
    places: &'static [(&'static str, &'static str)],
    racks: usize,
    waste: bool,
) -> impl Strategy<Value = (ServerRow, Option<&'static str>)> {
    let mut holders: Vec<Option<&'static str>> = vec![None; reservations];
    holders.extend(NAMES[..reservations].iter().map(|id| Some(*id)));
    holders.extend(waste.then_some(Some("lent")));
    (
        select(places),
        0..racks,
        select(&TYPES[..]),
        (select(holders.clone()), select(holders)),
        proptest::bool::weighted(0.15),
        any::<bool>(),
        proptest::option::weighted(0.1, select(&KINDS[..])),
    )
        .prop_map(
            |((datacenter, msb), rack, hardware_type, (current, target), moves, in_use, kind)| {
                let place = (datacenter, msb, format!("{msb}-rack{rack}"));
                let mut row = server("", (place.0, place.1, &place.2), hardware_type);
                row.current_reservation = current.map(Into::into);
                row.target_pending = moves;
                row.target_reservation = target.filter(|_| moves).map(Into::into);
                row.in_use = in_use && current.is_some();
                (row, kind)
            },
        )
}

#[derive(Clone, Debug)]
struct DrawnReservation {
    row: ReservationRow,
    values: Vec<f64>,
    shares: Vec<f64>,
}

fn any_reservation(capacity: Range<u32>) -> impl Strategy<Value = DrawnReservation> {
    let row = (
        capacity,
        select(&[0.0, 0.0, 0.1, 0.000_001][..]),
        proptest::bool::weighted(0.7),
        0..4_i32,
        proptest::option::weighted(0.2, select(&[0.25, 0.5, 1.0][..])),
    )
        .prop_map(|(halves, more, msb_buffer, priority, msb_alpha)| ReservationRow {
            msb_buffer,
            priority,
            msb_alpha,
            ..reservation("", f64::from(halves) / 2.0 + more)
        });
    // Zero: not eligible. One value has awkward decimals, so that rounding has something to do.
    let value = select(&[0.0, 1.0, 1.0, 0.5, 2.0, 1.25, 0.958_984][..]);
    let shares = prop_oneof![
        5 => Just(Vec::new()),
        1 => Just(vec![0.5, 0.5]),
        1 => Just(vec![0.3, 0.6]),
        1 => Just(vec![0.9]),
    ];
    (row, vec(value, TYPES.len()), shares).prop_map(|(row, values, shares)| DrawnReservation {
        row,
        values,
        shares,
    })
}
