//! Policies of a region as limits of its solver: what is read off against plain SQL, and what is refused.

use async_solver::backend::InProcess;
use async_solver::random::Random;
use async_solver::{GroupLimits, SolveEnv, SolverConfig, solve_within};
use fleet::{RegionSnapshot, ReservationIx, ReservationRow, Rru, Targets};
use policies::{Kind, Policies, Value, World, audit, group_limits, limits_and_reads};
use testkit::rows::{parts, reservation, rru, server, snapshot};

const LIBRARY: [(&str, &str); 4] = [
    ("power_per_msb.sql", include_str!("../library/region/power_per_msb.sql")),
    ("owner_share_of_type.sql", include_str!("../library/region/owner_share_of_type.sql")),
    ("licences.sql", include_str!("../library/region/licences.sql")),
    ("age_for_critical_owners.sql", include_str!("../library/region/age_for_critical_owners.sql")),
];

/// Thirty servers in three MSBs, of two types, and three reservations whose names the library knows.
fn region() -> RegionSnapshot {
    let mut parts = parts();
    for number in 0..30 {
        let (msb, hardware_type) = (number % 3, if number % 5 < 2 { "C3" } else { "C1" });
        let place = (format!("m{msb}"), format!("m{msb}-rack{}", number / 3 % 3));
        let mut row = server(&format!("s{number:02}"), ("dc0", &place.0, &place.1), hardware_type);
        row.power_watts = Some(if hardware_type == "C3" { 250.5 } else { 180.0 });
        parts.servers.push(row);
    }
    for (name, owner, capacity) in
        [("web", "shop", 5.0), ("db", "payments", 1.0), ("ledger", "bank", 1.0)]
    {
        parts.reservations.push(ReservationRow {
            owner: owner.into(),
            msb_buffer: name == "web",
            ..reservation(name, capacity)
        });
        parts.rru.extend([rru(name, "C1", 1.0), rru(name, "C3", 1.5)]);
    }
    snapshot(&parts)
}

fn named(snapshot: &RegionSnapshot, holder: Option<ReservationIx>) -> Value {
    holder.map_or(Value::Null, |of| Value::Text(snapshot.reservations[of.ix()].id.to_string()))
}

/// The hard policies that plain SQL finds broken by some holders.
fn broken(
    policies: &Policies,
    world: &World,
    snapshot: &RegionSnapshot,
    holders: &[Option<ReservationIx>],
) -> Vec<String> {
    let assignment: Vec<Value> = holders.iter().map(|&of| named(snapshot, of)).collect();
    let after = world.with(&assignment).expect("an assignment");
    let findings = audit(policies, &after).expect("SQL");
    let hard = findings.into_iter().filter(|of| of.kind == Kind::Hard && !of.fails.is_empty());
    hard.map(|of| of.policy).collect()
}

/// The same by the limits. A row is named by its policy, and its group after a colon.
fn exceeded(limits: &GroupLimits, holders: &[Option<ReservationIx>]) -> Vec<String> {
    let usage = limits.usage(holders.iter().copied());
    let rows = limits.limits().iter().zip(usage).filter(|(row, usage)| *usage > row.most);
    let policy = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = rows.map(|(row, _)| policy(&row.name)).collect();
    names.dedup();
    names
}

#[test]
fn limits_say_what_plain_sql_says() {
    let snapshot = region();
    let world = World::region(&snapshot).expect("a region");
    let policies = Policies::parse(LIBRARY).expect("SQL");
    let limits = group_limits(&policies, &world, &snapshot).expect("linear");
    let mut random = Random::new(1);
    let (mut broken_once, mut kept_once) = (Vec::new(), 0);
    for _ in 0..60 {
        // From nearly none to nearly all servers are held.
        let of = 8 + random.below(60);
        let favoured = random.below(3);
        let holders: Vec<Option<ReservationIx>> = (0..snapshot.servers.len())
            .map(|_| match random.below(of) {
                at @ 0..3 => Some(ReservationIx::new(at)),
                3..8 => Some(ReservationIx::new(favoured)),
                _ => None,
            })
            .collect();
        let (by_sql, by_limits) =
            (broken(&policies, &world, &snapshot, &holders), exceeded(&limits, &holders));
        assert_eq!(by_sql, by_limits, "{holders:?}");
        kept_once += usize::from(by_sql.is_empty());
        broken_once.extend(by_sql);
    }
    broken_once.sort_unstable();
    broken_once.dedup();
    assert_eq!(broken_once.len(), LIBRARY.len(), "{broken_once:?}");
    assert!(kept_once > 5, "{kept_once} assignments break nothing");
}

#[test]
fn a_solve_keeps_policies_that_it_would_break_without() {
    let snapshot = region();
    let world = World::region(&snapshot).expect("a region");
    let policies = Policies::parse(LIBRARY).expect("SQL");
    let solved = |limits: &GroupLimits| -> Targets {
        let env = SolveEnv::untimed(&InProcess);
        solve_within(&snapshot, limits, &SolverConfig::default(), &env).targets
    };
    let without = solved(&GroupLimits::default());
    assert!(!broken(&policies, &world, &snapshot, without.holders()).is_empty());
    let limits = group_limits(&policies, &world, &snapshot).expect("linear");
    let targets = solved(&limits);
    assert_eq!(broken(&policies, &world, &snapshot, targets.holders()), Vec::<String>::new());
    let short = |targets: &Targets| -> Vec<f64> {
        let rows = fleet::audit::audit(&snapshot, targets).reservations;
        rows.iter().map(|row| row.holding.shortfall.to_f64()).collect()
    };
    assert_eq!(short(&targets), [0.0; 3]);
}

/// A subquery over the reservations' own rows, sums with a factor, and decimals.
#[test]
fn bounds_and_coefficients_are_exact() {
    let snapshot = region();
    let world = World::region(&snapshot).expect("a region");
    let text = "-- @hard_constraint
        CREATE VIEW heat AS SELECT s.msb FROM servers s
        JOIN reservations r ON r.reservation_id = s.target_reservation
        WHERE r.owner = 'shop' GROUP BY s.msb
        HAVING 2 * sum(s.power_watts) + count(*) <= 1234.5";
    let policies = Policies::parse([("heat.sql", text)]).expect("SQL");
    let limits = group_limits(&policies, &world, &snapshot).expect("linear");
    let names: Vec<&str> = limits.limits().iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["heat: msb=m0", "heat: msb=m1", "heat: msb=m2"]);
    // 2 x 250.5 + 1 = 502 for a C3, 361 for a C1: the ratio to the bound is what matters.
    let mut holders = vec![None; snapshot.servers.len()];
    holders[0] = Some(ReservationIx::new(0));
    let types = |at: usize| &*snapshot.hardware_types[snapshot.servers[at].hardware_type.ix()];
    assert_eq!((types(0), types(3)), ("C3", "C1"));
    let web = snapshot.reservations.iter().position(|of| &*of.id == "web").expect("there");
    let sum = |at: &[usize]| {
        let mut holders = vec![None; snapshot.servers.len()];
        at.iter().for_each(|&at| holders[at] = Some(ReservationIx::new(web)));
        limits.usage(holders)[0]
    };
    let most = limits.limits()[0].most;
    let unit = sum(&[0]) as f64 / 502.0;
    assert_eq!(sum(&[3]) as f64, 361.0 * unit);
    assert_eq!(sum(&[0, 3]), sum(&[0]) + sum(&[3]));
    assert_eq!(most, (1234.5 * unit).floor() as i64);
    // Servers of another MSB or owner do not count.
    assert_eq!(sum(&[1]), 0);
}

#[test]
fn what_is_not_linear_is_refused_with_its_place() {
    let snapshot = region();
    let world = World::region(&snapshot).expect("a region");
    let cases = [
        (include_str!("../library/region/apart_by_rack.sql"), "not linear in the servers"),
        (include_str!("../library/region/at_least_two_msbs.sql"), "subquery over decided servers"),
        (include_str!("../library/region/cost_by_datacenter.sql"), "hard constraints only"),
        (include_str!("../library/region/empty_what_leaves.sql"), "hard constraints only"),
        (
            "-- @hard_constraint
             CREATE VIEW least AS SELECT s.msb FROM servers s
             WHERE s.target_reservation IS NOT NULL GROUP BY s.msb HAVING count(*) >= 2",
            "more servers may lower this sum",
        ),
        (
            "-- @hard_constraint
             CREATE VIEW spares AS SELECT s.msb FROM servers s
             GROUP BY s.msb HAVING count(s.target_reservation) <= 2",
            "without a reservation are in a group",
        ),
        (
            "-- @hard_constraint
             CREATE VIEW racks AS SELECT s.msb FROM servers s
             WHERE s.target_reservation IS NOT NULL
             GROUP BY s.msb HAVING count(DISTINCT s.rack) <= 1",
            "count(DISTINCT) is not linear",
        ),
        (
            "-- @hard_constraint
             CREATE VIEW pairs AS SELECT s.rack FROM servers s JOIN servers o ON o.rack = s.rack
             WHERE s.target_reservation = 'web' AND o.target_reservation = 'db'
             GROUP BY s.rack HAVING count(*) <= 1",
            "read 2 times",
        ),
        (
            "-- @hard_constraint
             CREATE VIEW held AS SELECT s.server_id FROM servers s
             WHERE s.target_reservation = 'web'",
            "without a reservation would fail",
        ),
        (
            "-- @hard_constraint
             CREATE VIEW cold AS SELECT s.msb FROM servers s
             WHERE s.target_reservation IS NOT NULL
             GROUP BY s.msb HAVING sum(s.power_watts) <= -1",
            "the bound is below zero",
        ),
    ];
    for (text, message) in cases {
        let policies = Policies::parse([("p.sql", text)]).expect("SQL");
        let error = group_limits(&policies, &world, &snapshot).expect_err(message);
        assert!(error.message.contains(message), "{error}");
        assert!(error.line > 1 && error.file == "p.sql", "{error}");
    }
}

/// Regions that agree in what policies read have the same limits, and those that do not agree have others: each field of a
/// server and of a reservation changes once.
#[test]
fn regions_that_agree_in_what_is_read_have_the_same_limits() {
    type Change = (&'static str, fn(&mut RegionSnapshot));
    let changes: [Change; 12] = [
        ("holder", |of| of.servers[4].current = Some(ReservationIx::new(2))),
        ("in use", |of| of.servers[4].in_use = true),
        ("out of service", |of| of.servers[4].available = false),
        ("pinned", |of| of.servers[4].pinned = true),
        ("type", |of| of.servers[4].hardware_type = of.servers[0].hardware_type),
        ("rack", |of| of.servers[4].rack = of.servers[0].rack),
        ("power", |of| of.servers[4].power_watts = Some(99.0)),
        ("fewer servers", |of| drop(of.servers.pop())),
        ("owner", |of| of.reservations[1].owner = "payments of old".into()),
        ("capacity", |of| of.reservations[1].capacity = Rru::units(9)),
        ("priority", |of| of.reservations[1].priority = 7),
        ("values", |of| of.reservations[1].rru.truncate(1)),
    ];
    let idle = "-- @hard_constraint
        CREATE VIEW idle AS SELECT s.msb FROM servers s
        JOIN reservations r ON r.reservation_id = s.target_reservation
        JOIN rru v ON v.reservation_id = r.reservation_id AND v.hardware_type = s.hardware_type
        WHERE NOT s.in_use AND s.available AND (s.holder IS NULL OR s.holder <> 'web')
        GROUP BY s.msb HAVING sum(v.rru * r.priority) + sum(r.capacity_rru) <= 12";
    let compiled = |file: (&str, &str), snapshot: &RegionSnapshot| {
        let policies = Policies::parse([file]).expect("SQL");
        let world = World::region(snapshot).expect("a region");
        let (limits, reads) = limits_and_reads(&policies, &world, snapshot).expect("linear");
        (format!("{limits:?}"), reads)
    };
    let before = region();
    let mut known = Vec::new();
    for file in LIBRARY.into_iter().chain([("idle.sql", idle)]) {
        let (limits, reads) = compiled(file, &before);
        for (name, change) in changes {
            let mut after = before.clone();
            change(&mut after);
            let (other, _) = compiled(file, &after);
            if reads.fingerprint(&after) == reads.fingerprint(&before) {
                assert_eq!(other, limits, "{}: {name}", file.0);
                known.push((file.0, name));
            } else if name == "holder" || name == "in use" {
                assert_eq!(file.0, "idle.sql", "{name} is not read");
            }
        }
    }
    // Of the library none reads who holds what: moves need no compiling. The other policy reads all but the pin and the power.
    for name in ["holder", "in use", "out of service", "pinned", "capacity", "priority", "values"] {
        let of = known.iter().filter(|of| of.1 == name).count();
        assert_eq!(of, if name == "pinned" { 5 } else { 4 }, "{name}: {known:?}");
    }
}
