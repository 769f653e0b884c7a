//! The audit on regions small enough to work out by hand.

use crate::world::{World, find, targets};
use fleet::audit::{Claims, Difference, Violation, audit};
use fleet::{MsbIx, RegionSnapshot, Rru, Targets};

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// Four MSBs of ten servers; `web` needs 24 after the loss of any one.
fn four_msbs() -> World {
    World::new()
        .servers("dc0/m0", "t0", 10)
        .servers("dc0/m1", "t0", 10)
        .servers("dc1/m2", "t0", 10)
        .servers("dc1/m3", "t0", 10)
        .reservation("web", 24.0, &["t0"])
}

/// Eight servers in each MSB, the only answer with the smallest buffer: 4 z - z >= 24.
fn eight_each(snapshot: &RegionSnapshot) -> Targets {
    targets(
        snapshot,
        &[
            ("m", "web"),
            ("m0-t0-008", "free"),
            ("m0-t0-009", "free"),
            ("m1-t0-008", "free"),
            ("m1-t0-009", "free"),
            ("m2-t0-008", "free"),
            ("m2-t0-009", "free"),
            ("m3-t0-008", "free"),
            ("m3-t0-009", "free"),
        ],
    )
}

#[test]
fn eight_in_each_of_four_msbs() {
    let snapshot = four_msbs().build();
    let report = audit(&snapshot, &eight_each(&snapshot));
    let web = report.reservation("web").expect("a row");
    assert_eq!(web.holding.servers, 32);
    assert_eq!(web.holding.assigned, Rru::units(32));
    assert_eq!(web.holding.largest_msb, Rru::units(8));
    assert_eq!(web.holding.largest_msb_id.as_deref(), Some("m0"), "the first of equals");
    assert_eq!(web.holding.guaranteed, Rru::units(24));
    assert_eq!(web.holding.shortfall, Rru::ZERO);
    assert_eq!(web.initial.shortfall, Rru::units(24));
    assert_eq!(web.smallest_buffer, Rru::units(8));

    // Default limits: 1.5 * 24 / 3 = 12 by MSB and 2 * 24 / 4 = 12 by rack; nothing exceeds them.
    assert_eq!(web.msb_spread.limit, Rru::units(12));
    assert_eq!(web.rack_spread.limit, Rru::units(12));
    assert!(close(report.objective.buffer, 5.0 * 8.0));
    assert!(close(report.objective.total, 40.0));
    assert_eq!((report.moves.acquired, report.moves.idle, report.moves.in_use), (32, 0, 0));
    assert_eq!((report.servers.assigned, report.servers.free), (32, 8));

    // 8 of 24; no better with this hardware, nor if it were spread evenly.
    for share in [
        report.buffer.share,
        report.buffer.bounds.hardware,
        report.buffer.bounds.even,
        report.buffer.bounds.even_eligible,
    ] {
        assert!(close(share, 8.0 / 24.0), "{share}");
    }
    assert!(report.is_clean());
    for msb in 0..4 {
        assert!(report.survives(MsbIx::new(msb)).below.is_empty());
        assert_eq!(web.after_loss(MsbIx::new(msb)), Rru::units(24));
    }
}

#[test]
fn the_loss_of_an_msb_names_who_falls_below() {
    let snapshot = four_msbs().reservation("db", 1.0, &["t0"]).build();
    let mut holders = eight_each(&snapshot).holders().to_vec();
    let db = find(&snapshot, "db");
    holders[8] = Some(db); // m0-t0-008: one server in one MSB survives nothing
    let report = audit(&snapshot, &Targets::new(&snapshot, holders));
    let below = |msb: usize| -> Vec<&str> {
        report.msb_losses[msb].below.iter().map(|loss| &*loss.reservation_id).collect()
    };
    assert_eq!(below(0), ["db"]);
    assert_eq!(report.msb_losses[0].below[0].missing, Rru::units(1));
    assert_eq!(below(1), Vec::<&str>::new());
    assert_eq!(report.reservation("db").expect("a row").holding.shortfall, Rru::units(1));
}

#[test]
fn without_embedded_buffer_all_of_it_counts() {
    let snapshot = four_msbs().change("web", |row| row.msb_buffer = false).build();
    let report = audit(&snapshot, &targets(&snapshot, &[("m0", "web"), ("m1", "web")]));
    let web = report.reservation("web").expect("a row");
    assert_eq!(web.holding.guaranteed, Rru::units(20));
    assert_eq!(web.holding.shortfall, Rru::units(4));
    assert!(close(report.objective.buffer, 0.0), "no embedded buffer, no expression 4");
    assert!(close(report.buffer.share, 0.0));
    assert!(report.msb_losses.iter().all(|loss| loss.below.is_empty()));
    assert_eq!(report.msb_losses[2].unbuffered_below, 1);
}

#[test]
fn spread_beyond_a_limit_is_priced() {
    // Own alphas: 0.25 * 24 = 6 by MSB, 0.1 * 24 = 2.4 by rack; each MSB is one rack here.
    let world = four_msbs().change("web", |row| {
        row.msb_alpha = Some(0.25);
        row.rack_alpha = Some(0.1);
    });
    let snapshot = world.clone().build();
    let report = audit(&snapshot, &eight_each(&snapshot));
    assert!(close(report.objective.msb_spread, 2.0 * 4.0 * 2.0));
    assert!(close(report.objective.rack_spread, 2.0 * 4.0 * 5.6));
    assert!(close(report.objective.total, 40.0 + 16.0 + 44.8));

    // The region's alphas hold where the reservation has none, and only there.
    let limits = |msb_alpha: Option<f64>, rack_alpha: Option<f64>| {
        let mut world = world.clone().change("web", |row| {
            (row.msb_alpha, row.rack_alpha) = (msb_alpha, rack_alpha);
        });
        (world.parts.weights.msb_alpha, world.parts.weights.rack_alpha) = (Some(1.0), Some(0.5));
        let snapshot = world.build();
        let report = audit(&snapshot, &eight_each(&snapshot));
        let web = report.reservation("web").expect("a row");
        (web.msb_spread.limit, web.rack_spread.limit)
    };
    assert_eq!(limits(Some(0.25), None), (Rru::units(6), Rru::units(12)));
    assert_eq!(limits(None, Some(0.25)), (Rru::units(24), Rru::units(6)));
}

#[test]
fn default_limits_look_at_eligible_available_hardware_only() {
    let world = World::new()
        .servers("dc0/m0", "t0", 4)
        .servers("dc0/m1", "t0", 4)
        .servers("dc0/m2", "t0", 4)
        .servers("dc0/m3", "t1", 4)
        .valued("web", "guaranteed", 4.0, &[("t0", 1.0), ("t1", 5.0)])
        .valued("one", "guaranteed", 4.0, &[("t1", 1.0)]);
    let limits = |world: World, id: &str| {
        let snapshot = world.build();
        let report = audit(&snapshot, &Targets::unchanged(&snapshot));
        let row = report.reservation(id).expect("a row").clone();
        (row.msb_spread.limit, row.rack_spread.limit)
    };
    // 1.5 * 4 / 3 = 2 is less than one server of t1.
    assert_eq!(limits(world.clone(), "web"), (Rru::units(5), Rru::units(5)));
    // With m3 lost, t1 is no server's type any more: 1.5 * 4 / 2 and 2 * 4 / 3.
    let lost = world.clone().event("msb", "m3", "correlated_failure");
    assert_eq!(limits(lost.clone(), "web"), (Rru::units(3), Rru(2_666_667)));
    // One MSB: C itself; one rack: 2 C. None at all: C and C.
    assert_eq!(limits(world, "one"), (Rru::units(4), Rru::units(8)));
    assert_eq!(limits(lost, "one"), (Rru::units(4), Rru::units(4)));
}

#[test]
fn moves_are_priced_by_who_leaves() {
    let snapshot = four_msbs()
        .reservation("db", 1.0, &["t0"])
        .hold("web", "m0")
        .server("m0-t0-000", |row| row.in_use = true)
        .server("m0-t0-001", |row| row.in_use = true)
        .server("m1-t0-000", |row| row.in_use = true)
        .build();
    // One in use to db, one in use and one idle to free, a free one (in use or not) taken up.
    let given =
        [("m0-t0-000", "db"), ("m0-t0-001", "free"), ("m0-t0-002", "free"), ("m1-t0-000", "web")];
    let report = audit(&snapshot, &targets(&snapshot, &given));
    assert_eq!((report.moves.in_use, report.moves.idle), (2, 1));
    assert_eq!((report.moves.acquired, report.moves.handed_back), (1, 2));
    assert!(close(report.objective.stability, 2.0 * 10.0 + 1.0));
}

#[test]
fn a_move_under_way_is_where_it_goes() {
    let snapshot = four_msbs()
        .hold("web", "m0-t0-000")
        .server("m0-t0-000", |row| row.target_pending = true)
        .build();
    // To be freed already: that costs nothing, and calling it off is no leaving either.
    let report = audit(&snapshot, &Targets::unchanged(&snapshot));
    assert_eq!(report.reservation("web").expect("a row").holding.servers, 0);
    assert_eq!(report.moves, fleet::audit::MoveCounts::default());
    let report = audit(&snapshot, &targets(&snapshot, &[("m0-t0-000", "web")]));
    assert_eq!((report.moves.acquired, report.moves.idle), (1, 0));
}

#[test]
fn unavailable_servers_do_not_count_and_stay() {
    let snapshot = four_msbs().hold("web", "m").event("msb", "m0", "correlated_failure").build();
    let report = audit(&snapshot, &Targets::unchanged(&snapshot));
    let web = report.reservation("web").expect("a row");
    assert_eq!(web.holding.assigned, Rru::units(30));
    assert_eq!(web.holding.guaranteed, Rru::units(20));
    assert_eq!((report.servers.total, report.servers.available), (40, 30));
    assert!(report.is_clean());

    let report = audit(&snapshot, &targets(&snapshot, &[("m0-t0-003", "free")]));
    assert_eq!(report.moves.idle, 0, "not a move that a solve may make, so not counted as one");
    let expected = Violation::UnavailableServerMoved {
        server_id: "m0-t0-003".into(),
        holder: "web".into(),
        target: "free".into(),
    };
    assert_eq!(report.violations, [expected]);
}

#[test]
fn what_may_not_be_given() {
    let snapshot = four_msbs()
        .servers("dc0/m0", "t1", 2)
        .valued("lent", "elastic", 0.0, &[])
        .hold("web", "m0-t1-000")
        .build();
    // Held before, so it may stay although its type is not eligible; it is worth nothing.
    let report = audit(&snapshot, &Targets::unchanged(&snapshot));
    assert!(report.is_clean());
    let web = report.reservation("web").expect("a row");
    assert_eq!((web.holding.servers, web.holding.assigned), (1, Rru::ZERO));

    let given = [("m0-t1-001", "web"), ("m1-t0-000", "lent")];
    let report = audit(&snapshot, &targets(&snapshot, &given));
    let expected = [
        Violation::NotEligible {
            server_id: "m0-t1-001".into(),
            hardware_type: "t1".into(),
            reservation_id: "web".into(),
        },
        Violation::GivenToElastic { server_id: "m1-t0-000".into(), reservation_id: "lent".into() },
    ];
    assert_eq!(report.violations, expected);
    let text = report.to_string();
    assert!(text.contains("\"m0-t1-001\"") && text.contains("broken rules: 2"), "{text}");
}

#[test]
fn a_shortfall_may_not_grow() {
    // Short by 4 today: 10 + 10 + 10 - 10.
    let snapshot = four_msbs().hold("web", "m0").hold("web", "m1").hold("web", "m2").build();
    let report = audit(&snapshot, &Targets::unchanged(&snapshot));
    assert!(report.is_clean());
    assert_eq!(report.shortfall, Rru::units(4));
    // One server fewer in one of three equal MSBs is one fewer left.
    assert!(audit(&snapshot, &targets(&snapshot, &[("m0-t0-000", "free")])).violations.len() == 1);
    let swapped = targets(&snapshot, &[("m0-t0-000", "free"), ("m3-t0-000", "web")]);
    assert!(audit(&snapshot, &swapped).is_clean());
    let report = audit(&snapshot, &targets(&snapshot, &[("m0", "free")]));
    let expected = Violation::ShortfallWorse {
        reservation_id: "web".into(),
        initial: Rru::units(4),
        shortfall: Rru::units(14),
    };
    assert_eq!(report.violations, [expected]);
}

#[test]
fn shared_buffers_have_shortfalls_and_no_other_term() {
    let mut world = four_msbs().hold("shared-buffer/t0", "m0-t0-000");
    world.parts.shared_buffer_fraction = Some(0.1);
    let snapshot = world.build();
    let report = audit(&snapshot, &Targets::unchanged(&snapshot));
    let buffer = report.reservation("shared-buffer/t0").expect("a row");
    assert!(buffer.made);
    assert_eq!((buffer.capacity, buffer.holding.shortfall), (Rru::units(4), Rru::units(3)));
    // All four in one MSB: guaranteed all the same, and neither spread nor buffer is priced.
    let given = ["m0-t0-001", "m0-t0-002", "m0-t0-003"].map(|s| (s, "shared-buffer/t0"));
    let report = audit(&snapshot, &targets(&snapshot, &given));
    let buffer = report.reservation("shared-buffer/t0").expect("a row");
    assert_eq!(buffer.holding.shortfall, Rru::ZERO);
    assert!(close(report.objective.total, 0.0), "{:?}", report.objective);
    // It may not get shorter either.
    let report = audit(&snapshot, &targets(&snapshot, &[("m0-t0-000", "free")]));
    assert!(matches!(report.violations[..], [Violation::ShortfallWorse { .. }]));
}

#[test]
fn datacenter_shares_may_not_drift_further() {
    // Three quarters of 8 wanted in dc0, tolerance 0.05: between 5.6 and 6.4 there, and dc1 may
    // hold 0.4 without being named.
    let world = four_msbs()
        .change("web", |row| {
            row.capacity_rru = 8.0;
            row.msb_buffer = false;
        })
        .affinity("web", "dc0", 0.75)
        .hold("web", "m0-t0-000")
        .hold("web", "m0-t0-001");
    let snapshot = world.build();
    let report = audit(&snapshot, &Targets::unchanged(&snapshot));
    let web = report.reservation("web").expect("a row");
    let [dc0] = &web.datacenters[..] else { panic!("one datacenter: {:?}", web.datacenters) };
    assert_eq!((&*dc0.datacenter, dc0.assigned, dc0.wanted), ("dc0", Rru::units(2), Some(0.75)));
    assert!(close(dc0.share.expect("C is not zero"), 0.25) && close(dc0.violation, 3.6));
    assert!(report.is_clean(), "broken today already");

    // Six in dc0 and two in dc1: eq. 7 allows 0.4 there.
    let mut given = vec![("m0-t0-00", "web")];
    given.extend(["m0-t0-006", "m0-t0-007", "m0-t0-008", "m0-t0-009"].map(|s| (s, "free")));
    assert!(audit(&snapshot, &targets(&snapshot, &given)).is_clean());
    given.extend([("m2-t0-000", "web"), ("m2-t0-001", "web")]);
    let report = audit(&snapshot, &targets(&snapshot, &given));
    let [Violation::AffinityWorse { datacenter, initial, violation, .. }] = &report.violations[..]
    else {
        panic!("{:?}", report.violations)
    };
    assert_eq!(&**datacenter, "dc1");
    assert!(close(*initial, 0.0) && close(*violation, 1.6));
}

/// 2 of C = 40 at theta 0.05 is exactly on the bound, regardless of the last bits of 0.05 * 40.
#[test]
fn affinity_is_not_broken_by_rounding() {
    let mut world = four_msbs()
        .change("web", |row| row.capacity_rru = 6.0)
        .affinity("web", "dc0", 0.3)
        .affinity("web", "dc1", 0.7);
    world.parts.weights.affinity_theta = 0.2;
    // 3 of 6 in dc0 is 0.5 = 0.3 + 0.2; 3 of 6 in dc1 is 0.5 = 0.7 - 0.2.
    let snapshot = world.change("web", |row| row.msb_buffer = false).build();
    let given = [("m0-t0-000", "web"), ("m0-t0-001", "web"), ("m1-t0-000", "web")];
    let given: Vec<_> = given
        .into_iter()
        .chain(["m2-t0-000", "m2-t0-001", "m3-t0-000"].map(|s| (s, "web")))
        .collect();
    let report = audit(&snapshot, &targets(&snapshot, &given));
    assert_eq!(report.shortfall, Rru::ZERO);
    assert!(report.is_clean(), "{:?}", report.violations);
}

#[test]
fn bounds_follow_the_hardware() {
    // Two small MSBs and a large one: 12 after any loss need all of the small ones and 12 of the
    // large one, or 8 and 4: z = 8 is the least. Evenly spread hardware would allow 6.
    let snapshot = World::new()
        .servers("dc0/m0", "t0", 4)
        .servers("dc0/m1", "t0", 20)
        .servers("dc0/m2", "t0", 20)
        .reservation("web", 12.0, &["t0"])
        .build();
    let given: Vec<(String, &str)> = (0..8)
        .flat_map(|n| [(format!("m1-t0-{n:03}"), "web"), (format!("m2-t0-{n:03}"), "web")])
        .chain([("m0".to_owned(), "web")])
        .collect();
    let given: Vec<_> = given.iter().map(|(server, id)| (server.as_str(), *id)).collect();
    let report = audit(&snapshot, &targets(&snapshot, &given));
    assert_eq!(report.shortfall, Rru::ZERO);
    assert!(close(report.buffer.share, 8.0 / 12.0));
    assert!(close(report.buffer.bounds.hardware, 8.0 / 12.0));
    assert!(close(report.buffer.bounds.even, 0.5));
}

fn claims(snapshot: &RegionSnapshot, targets: &Targets) -> (fleet::audit::AuditReport, Claims) {
    let report = audit(snapshot, targets);
    let row = |row: &fleet::audit::ReservationAudit| fleet::audit::ClaimedReservation {
        reservation_id: row.reservation_id.to_string(),
        capacity_rru: row.capacity.to_f64(),
        assigned_rru: row.holding.assigned.to_f64(),
        largest_msb_rru: row.holding.largest_msb.to_f64(),
        guaranteed_rru: row.holding.guaranteed.to_f64(),
        shortfall_rru: row.holding.shortfall.to_f64(),
    };
    let claims = Claims {
        objective: report.objective,
        shortfall_rru: report.shortfall.to_f64(),
        moves: fleet::audit::ClaimedMoves { in_use: report.moves.in_use, idle: report.moves.idle },
        phase1: None,
        reservations: report.reservations.iter().map(row).collect(),
    };
    (report, claims)
}

#[test]
fn true_claims_stand() {
    let snapshot = four_msbs().build();
    let (report, mut claims) = claims(&snapshot, &eight_each(&snapshot));
    assert_eq!(report.compare(&claims), []);
    // Other orders of summing are no difference.
    claims.objective.total *= 1.0 + 1e-9;
    claims.phase1 = Some(fleet::audit::ClaimedPhase1 { primal: 40.0, dual_bound: 38.0, gap: 0.05 });
    assert_eq!(report.compare(&claims), []);
}

#[test]
fn each_false_claim_is_named() {
    let snapshot = four_msbs().build();
    let (report, right) = claims(&snapshot, &eight_each(&snapshot));
    let differs = |change: &dyn Fn(&mut Claims), name: &str| {
        let mut wrong = right.clone();
        change(&mut wrong);
        let found = report.compare(&wrong);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        let text = found[0].to_string();
        assert!(text.contains(name), "{text} should name {name}");
    };
    differs(&|c| c.objective.total += 0.001, "objective.total");
    differs(&|c| c.objective.stability = 1.0, "objective.stability");
    differs(&|c| c.objective.rack_spread = -1.0, "objective.rack_spread");
    differs(&|c| c.objective.msb_spread = f64::NAN, "objective.msb_spread");
    differs(&|c| c.objective.buffer = f64::INFINITY, "objective.buffer");
    differs(&|c| c.shortfall_rru = 1.0, "shortfall_rru");
    differs(&|c| c.moves.in_use = 1, "moves.in_use");
    differs(&|c| c.moves.idle = 1, "moves.idle");
    differs(&|c| c.reservations[0].capacity_rru = 25.0, "reservations[\"web\"].capacity_rru");
    differs(&|c| c.reservations[0].assigned_rru = 31.0, "assigned_rru");
    differs(&|c| c.reservations[0].largest_msb_rru = 7.0, "largest_msb_rru");
    differs(&|c| c.reservations[0].guaranteed_rru = 25.0, "guaranteed_rru");
    differs(&|c| c.reservations[0].shortfall_rru = 1.0, "shortfall_rru");
    differs(&|c| c.reservations.clear(), "\"web\" has no row");
    differs(&|c| c.reservations.push(c.reservations[0].clone()), "has one already");
    let phase1 = |primal: f64, dual_bound: f64, gap: f64| {
        move |c: &mut Claims| {
            c.phase1 = Some(fleet::audit::ClaimedPhase1 { primal, dual_bound, gap });
        }
    };
    differs(&phase1(40.0, 38.0, 0.01), "phase1.gap");
    differs(&phase1(40.0, 41.0, -0.025), "phase1.dual_bound");
    let mut wrong = right.clone();
    wrong.reservations[0].reservation_id = "wed".to_owned();
    let expected = [
        Difference::Unknown { reservation_id: "wed".to_owned() },
        Difference::Missing { reservation_id: "web".into() },
    ];
    assert_eq!(report.compare(&wrong), expected);
}

#[test]
fn an_empty_region_has_nothing_to_say() {
    let snapshot = World::new().reservation("web", 3.0, &["t0"]).build();
    let report = audit(&snapshot, &Targets::unchanged(&snapshot));
    assert!(report.is_clean());
    assert_eq!(report.shortfall, Rru::units(3));
    assert!(close(report.buffer.bounds.hardware, 0.0), "what is short needs no buffer");
}

/// Reports are written in RRU, under the names of `report.json`.
#[test]
fn reports_are_written_in_rru() {
    let snapshot = four_msbs().build();
    let report = audit(&snapshot, &eight_each(&snapshot));
    let json = serde_json::to_value(&report).expect("serialises");
    let web = &json["reservations"][0];
    assert_eq!(web["reservation_id"], "web");
    assert_eq!(web["kind"], "guaranteed");
    assert_eq!(web["capacity_rru"], 24.0);
    assert_eq!(web["assigned_rru"], 32.0);
    assert_eq!(web["largest_msb_rru"], 8.0);
    assert_eq!(web["largest_msb"], "m0");
    assert_eq!(web["msb_rru"], serde_json::json!([8.0, 8.0, 8.0, 8.0]));
    assert_eq!(web["initial"]["shortfall_rru"], 24.0);
    assert_eq!(json["violations"], serde_json::json!([]));
}
