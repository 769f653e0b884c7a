//! Why reservations are short, one reason at a time, and what would grant them.

use crate::world::{World, find, targets};
use fleet::audit::audit;
use fleet::explain::{
    Explainer, Explanation, HeldBy, Relaxation, Right, ShortfallReason, TypeReason, TypeUse,
    explain,
};
use fleet::{Rru, Targets};

fn explained(world: World, given: &[(&str, &str)], id: &str) -> Explanation {
    let snapshot = world.build();
    explain(&snapshot, &targets(&snapshot, given), find(&snapshot, id))
}

#[track_caller]
fn reason(explanation: &Explanation) -> ShortfallReason {
    explanation.shortfall.as_ref().expect("it is short").reason
}

#[track_caller]
fn sentence(explanation: &Explanation) -> &str {
    &explanation.shortfall.as_ref().expect("it is short").sentence
}

/// The T4 part of a real fleet: 387 servers of 2 GPUs and 17 of 4, 842 in all, of which one MSB
/// holds 128.
fn t4_fleet() -> World {
    let mut world = World::new();
    let twos = [32, 32, 32, 32, 32, 35, 32, 32, 32, 32, 32, 32];
    let fours = [0, 0, 0, 0, 0, 0, 16, 1, 0, 0, 0, 0];
    for (msb, (two, four)) in twos.into_iter().zip(fours).enumerate() {
        let place = format!("dc{}/msb{msb:02}", msb / 4);
        world =
            world.servers(&place, "T4-x2-c104-m512", two).servers(&place, "T4-x4-c96-m384", four);
    }
    world.servers("dc0/msb00", "G2-x8-c96-m384", 40).servers("dc1/msb04", "G2-x8-c96-m384", 40)
}

const T4: [(&str, f64); 2] = [("T4-x2-c104-m512", 2.0), ("T4-x4-c96-m384", 4.0)];

/// Three reservations that can use nothing but T4 ask for 1,028.27 GPUs together.
fn t4_in_full() -> World {
    t4_fleet()
        .valued("T4/BE", "guaranteed", 351.77, &T4)
        .valued("T4/Burstable", "guaranteed", 14.0, &T4)
        .valued("T4/LS", "guaranteed", 662.5, &T4)
        .valued("any/LS", "guaranteed", 200.0, &[("G2-x8-c96-m384", 8.0), T4[0], T4[1]])
}

#[test]
fn more_is_asked_of_its_types_than_is_there() {
    let given = [("msb", "T4/LS"), ("msb00-G2", "any/LS"), ("msb04-G2", "any/LS")];
    let found = explained(t4_in_full(), &given, "T4/BE");
    assert_eq!(reason(&found), ShortfallReason::InsufficientHardware);
    let shortfall = found.shortfall.as_ref().expect("short");
    assert_eq!(
        shortfall.hardware.sentence(),
        "types T4: 842 RRU on 404 servers, 714 usable after losing any one MSB, 1,028 requested by 3 \
         reservations"
    );
    assert!(shortfall.sentence.contains(&shortfall.hardware.sentence()));
    assert_eq!(shortfall.hardware.asked, Rru(1_028_270_000));
    assert_eq!(shortfall.hardware.supply, Rru::units(842));
    assert_eq!(shortfall.hardware.usable, Rru::units(714));
    let names: Vec<&str> = shortfall.hardware.asked_by.iter().map(|id| &**id).collect();
    assert_eq!(names, ["T4/BE", "T4/Burstable", "T4/LS"]);
    // Eight GPUs a server are assumed from the reservation that knows both; none is free.
    assert!(!found.relaxations.iter().any(|r| matches!(r, Relaxation::OneMoreType { .. })));
    let text = found.to_string();
    assert!(text.contains("insufficient_hardware") && text.contains("1,028"), "{text}");
}

/// Shared buffers are counted, in the reservation's unit, but are not part of the demand.
#[test]
fn shared_buffers_are_counted_apart_from_demand() {
    let mut world = t4_in_full();
    world.parts.shared_buffer_fraction = None;
    let found = explained(world, &[], "T4/LS");
    let hardware = &found.shortfall.as_ref().expect("short").hardware;
    assert_eq!(hardware.shared_buffer, Rru::units(2 * 8), "2 % of 387 servers, 2 GPUs each");
    assert!(hardware.sentence().ends_with("3 reservations, 16 in the shared buffer"));
}

#[test]
fn there_is_enough_but_not_once_an_msb_may_be_lost() {
    // Seven tenths of it are 719.79: less than 842, more than the 714 outside the fullest MSB.
    let scaled = ["T4/BE", "T4/Burstable", "T4/LS"];
    let world = scaled
        .into_iter()
        .fold(t4_in_full(), |world, id| world.change(id, |row| row.capacity_rru *= 0.7));
    let given = [("msb", "T4/LS"), ("msb06", "T4/BE"), ("msb07", "T4/BE"), ("msb00-G2", "any/LS")];
    let found = explained(world, &given, "T4/BE");
    assert_eq!(reason(&found), ShortfallReason::MsbBuffer);
    let text = sentence(&found);
    assert!(text.contains("842") && text.contains("714") && text.contains("719.8"), "{text}");
}

/// Ten reservations of one server each need two: enough RRU, even after a loss, but not with ten
/// buffers.
#[test]
fn many_small_buffers_add_up() {
    let mut world = World::new();
    for msb in ["m0", "m1", "m2"] {
        world = world.servers(&format!("dc0/{msb}"), "t0", 5);
    }
    for number in 0..10 {
        world = world.reservation(&format!("r{number}"), 1.0, &["t0"]);
    }
    let mut given: Vec<(String, String)> = Vec::new();
    for number in 0..5 {
        given.push((format!("m0-t0-00{number}"), format!("r{number}")));
        given.push((format!("m1-t0-00{number}"), format!("r{number}")));
        given.push((format!("m2-t0-00{number}"), "r5".to_owned()));
    }
    let given: Vec<_> = given.iter().map(|(server, id)| (server.as_str(), id.as_str())).collect();
    let found = explained(world, &given, "r9");
    assert_eq!(reason(&found), ShortfallReason::MsbBuffer);
    let expected = "type t0: 15 servers, 10 usable after losing any one MSB, 10 requested by 10 \
                    reservations, 20 with the smallest embedded buffers";
    assert!(sentence(&found).contains(expected), "{}", sentence(&found));
}

#[test]
fn one_msb_can_hold_no_buffer() {
    let world = World::new().servers("dc0/m0", "t0", 9).reservation("web", 3.0, &["t0"]);
    let found = explained(world, &[("m0", "web")], "web");
    assert_eq!(reason(&found), ShortfallReason::MsbBuffer);
    assert!(sentence(&found).contains("all its hardware is in one MSB"), "{}", sentence(&found));
    assert_eq!(found.relaxations, [Relaxation::NoBuffer { available: Rru::units(9) }]);
}

#[test]
fn no_server_is_of_its_types() {
    let world = || World::new().servers("dc0/m0", "t0", 9);
    let found = explained(world().reservation("web", 3.0, &["t9"]), &[], "web");
    assert_eq!(reason(&found), ShortfallReason::NoEligibleHardware);
    assert!(sentence(&found).contains("t9"));
    let found = explained(world().reservation("web", 3.0, &[]), &[], "web");
    assert_eq!(sentence(&found), "it accepts no hardware type");
}

#[test]
fn unavailable_servers_would_do() {
    let world = || {
        World::new()
            .servers("dc0/m0", "t0", 4)
            .servers("dc0/m1", "t0", 4)
            .servers("dc0/m2", "t0", 4)
            .reservation("web", 6.0, &["t0"])
            .hold("web", "m")
    };
    let found = explained(world().event("msb", "m2", "correlated_failure"), &[], "web");
    assert_eq!(reason(&found), ShortfallReason::HardwareUnavailable);
    assert!(sentence(&found).contains("if 4 servers were available"), "{}", sentence(&found));
    assert_eq!(found.unavailable_servers, 4);
    // All of them gone.
    let found = explained(world().event("datacenter", "dc0", "random_failure"), &[], "web");
    assert_eq!(reason(&found), ShortfallReason::HardwareUnavailable);
    // All of them gone, and too few with them back.
    let more = world().change("web", |row| row.capacity_rru = 50.0);
    let found = explained(more.event("datacenter", "dc0", "random_failure"), &[], "web");
    assert_eq!(reason(&found), ShortfallReason::InsufficientHardware);
    // Two servers that would not make the difference are not the reason.
    let world = world().change("web", |row| row.capacity_rru = 50.0);
    let found = explained(world.event("server", "m2-t0-000", "random_failure"), &[], "web");
    assert_eq!(reason(&found), ShortfallReason::InsufficientHardware);
}

#[test]
fn what_it_needs_is_in_other_datacenters() {
    let world = World::new()
        .servers("dc0/m0", "t0", 4)
        .servers("dc0/m1", "t0", 4)
        .servers("dc1/m2", "t0", 4)
        .servers("dc1/m3", "t0", 4)
        .reservation("web", 8.0, &["t0"])
        .affinity("web", "dc0", 1.0);
    let found = explained(world, &[("m0", "web"), ("m1", "web")], "web");
    assert_eq!(reason(&found), ShortfallReason::Affinity);
    // 8 in dc0 leave 4. With a tolerance of 0.5, 8 in dc0 and 4 in dc1 leave 8.
    assert!(
        found.relaxations.contains(&Relaxation::LooserAffinity { theta: 0.05, needed_theta: 0.5 })
    );
    assert!(found.relaxations.contains(&Relaxation::NoBuffer { available: Rru::units(16) }));
    let fewer = found.relaxations.iter().find_map(|relaxation| match relaxation {
        Relaxation::FewerRru { grantable } => Some(*grantable),
        _ => None,
    });
    // All in dc0 at a tolerance of 5 %: no buffer fits beside the capacity.
    let fewer = fewer.expect("it holds 4 guaranteed already");
    assert!(fewer >= Rru::units(4) && fewer < Rru::units(8), "{fewer}");
}

fn contested(holder_priority: i32, held_before: bool) -> Explanation {
    // Six t0 and six t1; `db` could do with t1, but holds t0.
    let mut world = World::new()
        .servers("dc0/m0", "t0", 3)
        .servers("dc0/m1", "t0", 3)
        .servers("dc0/m0", "t1", 3)
        .servers("dc0/m1", "t1", 3)
        .reservation("web", 3.0, &["t0"])
        .reservation("db", 3.0, &["t0", "t1"])
        .change("web", |row| row.priority = 5)
        .change("db", |row| row.priority = holder_priority);
    if held_before {
        world = world.hold("db", "m0-t0").hold("db", "m1-t0");
    }
    explained(world, &[("m0-t0", "db"), ("m1-t0", "db")], "web")
}

#[test]
fn others_hold_what_it_needs() {
    let found = contested(1, true);
    assert_eq!(reason(&found), ShortfallReason::Priority);
    assert!(sentence(&found).contains("hold 6 servers"), "{}", sentence(&found));
    let found = contested(5, true);
    assert_eq!(reason(&found), ShortfallReason::NoRegress);
    assert!(
        sentence(&found).contains("hold 6 servers of its types and keep them"),
        "{}",
        sentence(&found)
    );
    // Newly given to a reservation that could do with others: a better exchange exists.
    let found = contested(5, false);
    assert_eq!(reason(&found), ShortfallReason::NotFoundInTime);
    // Six free servers of t1 would do: three in each of two MSBs.
    assert!(found.to_string().contains("type t1 as well: 6 of its 6 free servers would suffice"));
    let expected = Relaxation::OneMoreType {
        hardware_type: "t1".into(),
        free_servers: 6,
        needed_servers: Some(6),
        assumed_value: Rru::units(1),
    };
    assert_eq!(found.relaxations, [expected]);
}

#[test]
fn who_holds_what_it_could_use_and_by_what_right() {
    // One server of each MSB; `gold` wants two of them and is told who has them.
    let world = |held_before: bool| {
        let mut world = World::new()
            .servers("dc0/m0", "t0", 1)
            .servers("dc0/m1", "t0", 1)
            .servers("dc0/m2", "t0", 1)
            .reservation("gold", 2.0, &["t0"])
            .reservation("bronze", 1.0, &["t0"])
            .reservation("king", 1.0, &["t0"])
            .reservation("peer", 1.0, &["t0"]);
        for (id, priority) in [("gold", 1), ("bronze", 7), ("king", 0), ("peer", 1)] {
            world = world.change(id, |row| {
                row.priority = priority;
                row.msb_buffer = false;
            });
        }
        if held_before { world.hold("bronze", "m0") } else { world }
    };
    let rows = |found: &Explanation| {
        let row = |of: &HeldBy| (of.reservation_id.to_string(), of.priority, of.servers, of.right);
        found.shortfall.as_ref().expect("short").held_by.iter().map(row).collect::<Vec<_>>()
    };
    let given = [("m0", "bronze"), ("m1", "king"), ("m2", "peer")];
    let found = explained(world(true), &given, "gold");
    let expected = [
        ("king".to_owned(), 0, 1, Right::MoreImportant),
        ("peer".to_owned(), 1, 1, Right::AsImportant),
        ("bronze".to_owned(), 7, 1, Right::HeldBefore),
    ];
    assert_eq!(rows(&found), expected);
    let text = found.to_string();
    assert!(text.contains("king (priority 0) holds 1 server: it is more important"), "{text}");
    // Newly given to a less important one: it is not said that there is too little hardware.
    let found = explained(world(false), &given, "gold");
    assert_eq!(rows(&found)[2].3, Right::NotFoundInTime);
    let one = world(true).change("gold", |row| row.capacity_rru = 1.0);
    let found = explained(one, &given, "gold");
    assert_eq!(reason(&found), ShortfallReason::NoRegress, "three ask, and bronze had it before");
    let one = world(false).change("gold", |row| row.capacity_rru = 1.0);
    assert_eq!(reason(&explained(one, &given, "gold")), ShortfallReason::NotFoundInTime);
}

/// By numbers alone t1 would suffice for `web`, but no reservation relates the value of t1 to t0.
#[test]
fn types_of_unknown_value_are_not_proposed() {
    let world = World::new()
        .servers("dc0/m0", "t0", 1)
        .servers("dc0/m0", "t1", 9)
        .servers("dc0/m1", "t1", 9)
        .reservation("web", 3.0, &["t0"])
        .reservation("other", 3.0, &["t1"]);
    assert_eq!(explained(world, &[], "web").relaxations, [] as [Relaxation; 0]);
}

#[test]
fn free_servers_would_do() {
    let world = World::new().servers("dc0/m0", "t0", 4).servers("dc0/m1", "t0", 4).reservation(
        "web",
        4.0,
        &["t0"],
    );
    let found = explained(world, &[("m0", "web")], "web");
    assert_eq!(reason(&found), ShortfallReason::NotFoundInTime);
    assert!(sentence(&found).contains("4 servers of its types are free"), "{}", sentence(&found));
    assert!(found.relaxations.is_empty(), "it can be granted as it stands");
}

/// The shortage is not in the reservation's own types alone: those who hold them have nowhere
/// else to go either.
#[test]
fn the_tightest_set_is_found_beyond_its_own_types() {
    let world = World::new()
        .servers("dc0/m0", "t0", 2)
        .servers("dc0/m1", "t0", 2)
        .servers("dc0/m0", "t1", 2)
        .servers("dc0/m1", "t1", 2)
        .servers("dc0/m0", "t2", 50)
        .reservation("web", 2.0, &["t0"])
        .reservation("db", 3.0, &["t0", "t1"])
        .reservation("rich", 9.0, &["t2"]);
    let given = [("m0-t0", "db"), ("m1-t0", "db"), ("m0-t1", "db"), ("m1-t1", "db")];
    let found = explained(world, &given, "web");
    let hardware = &found.shortfall.as_ref().expect("short").hardware;
    let types: Vec<&str> = hardware.hardware_types.iter().map(|ty| &**ty).collect();
    assert_eq!(types, ["t0", "t1"]);
    assert_eq!((hardware.usable, hardware.asked), (Rru::units(4), Rru::units(5)));
    assert_eq!(reason(&found), ShortfallReason::MsbBuffer);
}

/// One that holds a single server and could go anywhere must not hide the set of the others.
#[test]
fn a_tight_set_is_found_beside_a_wide_one() {
    let world = World::new()
        .servers("dc0/m0", "t0", 2)
        .servers("dc0/m1", "t0", 2)
        .servers("dc0/m0", "t1", 2)
        .servers("dc0/m1", "t1", 2)
        .servers("dc0/m0", "t2", 50)
        .servers("dc0/m1", "t2", 50)
        .reservation("web", 2.0, &["t0"])
        .reservation("db", 3.0, &["t0", "t1"])
        .reservation("wide", 1.0, &["t0", "t2"]);
    let given =
        [("m0-t0", "db"), ("m1-t0", "db"), ("m0-t1", "db"), ("m1-t1", "db"), ("m0-t0-000", "wide")];
    let found = explained(world, &given, "web");
    let hardware = &found.shortfall.as_ref().expect("short").hardware;
    let types: Vec<&str> = hardware.hardware_types.iter().map(|ty| &**ty).collect();
    assert_eq!(types, ["t0", "t1"]);
    assert_eq!(reason(&found), ShortfallReason::MsbBuffer);
}

#[test]
fn what_a_satisfied_reservation_holds() {
    let world = World::new()
        .servers("dc0/m0", "t0", 4)
        .servers("dc0/m1", "t0", 4)
        .servers("dc1/m1b", "t1", 2)
        .valued("web", "guaranteed", 5.0, &[("t0", 1.0), ("t1", 2.5)]);
    let given = [("m0-t0", "web"), ("m1-t0-000", "web"), ("m1b", "web")];
    let found = explained(world, &given, "web");
    assert_eq!((found.assigned, found.guaranteed), (Rru::units(10), Rru::units(5)));
    let types: Vec<_> =
        found.by_type.iter().map(|row| (&*row.hardware_type, row.servers, row.amount)).collect();
    assert_eq!(types, [("t0", 5, Rru::units(5)), ("t1", 2, Rru::units(5))]);
    let msbs: Vec<_> = found.by_msb.iter().map(|row| (&*row.msb, row.amount)).collect();
    assert_eq!(msbs, [("m0", Rru::units(4)), ("m1", Rru::units(1)), ("m1b", Rru::units(5))]);
    let worst = found.worst_msb.as_ref().expect("it holds something");
    assert_eq!((&*worst.msb, worst.lost, worst.left), ("m1b", Rru::units(5), Rru::units(5)));
    assert!(found.shortfall.is_none() && found.relaxations.is_empty());
    assert!(found.to_string().contains("its request is satisfied"));
}

#[test]
fn tokens_are_stable() {
    for reason in ShortfallReason::ALL {
        let json = serde_json::to_value(reason).expect("serialises");
        assert_eq!(json, reason.as_str());
        assert_eq!(ShortfallReason::parse(reason.as_str()), Some(reason));
        assert_eq!(reason.to_string(), reason.as_str());
    }
    assert!(ShortfallReason::ALL.is_sorted(), "the order is the precedence");
    assert_eq!(ShortfallReason::parse("bad_luck"), None);
}

#[test]
fn explanations_are_written_in_rru() {
    let found = explained(t4_in_full(), &[("msb", "T4/LS")], "T4/BE");
    let json = serde_json::to_value(&found).expect("serialises");
    assert_eq!(json["capacity_rru"], 351.77);
    assert_eq!(json["shortfall"]["reason"], "insufficient_hardware");
    assert_eq!(json["shortfall"]["hardware"]["supply_rru"], 842.0);
    assert_eq!(json["shortfall"]["hardware"]["asked_rru"], 1028.27);
}

fn limits(world: World, given: &[(&str, &str)], id: &str) -> Vec<(&'static str, Rru)> {
    let snapshot = world.build();
    let targets = targets(&snapshot, given);
    let limits = Explainer::new(&snapshot, &targets).limits(find(&snapshot, id));
    limits.into_iter().map(|limit| (limit.limit.as_str(), limit.without)).collect()
}

fn whole(servers: i64) -> Rru {
    Rru(servers * fleet::MICRO)
}

#[test]
fn the_limits_in_the_way_are_named_and_no_others() {
    let two = || World::new().servers("dc0/m0", "t0", 4).servers("dc1/m1", "t0", 4);
    // No reservation is short: no limit blocks it.
    assert_eq!(limits(two().reservation("web", 4.0, &["t0"]), &[("m", "web")], "web"), []);
    let web = || two().reservation("web", 5.0, &["t0"]);
    assert_eq!(limits(web(), &[("m", "web")], "web"), [("msb_buffer", whole(5))]);
    // More than there is, with any limit lifted.
    let more = two().reservation("web", 9.0, &["t0"]);
    assert_eq!(limits(more, &[("m", "web")], "web"), [("region", whole(8))]);
    // Others hold half of it: either is enough, so both together refuse.
    let shared = two().reservation("db", 3.0, &["t0"]).reservation("web", 3.0, &["t0"]);
    let given =
        [("m0-t0-000", "db"), ("m0-t0-001", "db"), ("m1-t0-000", "db"), ("m1-t0-001", "db")];
    let found = limits(shared, &given, "web");
    assert_eq!(found, [("msb_buffer", whole(3)), ("held_by_others", whole(3))]);
    // A datacenter too small for the share wanted there.
    let near = two().reservation("web", 6.0, &["t0"]).change("web", |row| row.msb_buffer = false);
    let near = near.affinity("web", "dc0", 1.0);
    assert_eq!(limits(near, &[], "web"), [("affinity", whole(6))]);
}

/// Each type a reservation accepts, with its spread limit as the audit says it.
fn composition(world: World, id: &str) -> Vec<TypeUse> {
    let snapshot = world.build();
    let (targets, ix) = (Targets::unchanged(&snapshot), find(&snapshot, id));
    let limit = audit(&snapshot, &targets).reservations[ix.ix()].msb_spread.limit;
    Explainer::new(&snapshot, &targets).composition(ix, Some(limit))
}

#[test]
fn each_type_says_why_no_more_of_it_is_taken() {
    use TypeReason::{Affinity, Enough, MsbSpread, NoneFree, NoneThere, Open, Place, Unavailable};
    let types = [("a", 2.0), ("b", 1.0), ("down", 1.0), ("gone", 1.0), ("far", 1.0), ("both", 1.0)];
    let world = World::new()
        .servers("dc0/m0", "a", 3)
        .servers("dc0/m1", "a", 2)
        .servers("dc0/m2", "a", 4)
        .servers("dc0/m0", "b", 1)
        .servers("dc0/m1", "down", 2)
        .servers("dc1/m3", "far", 6)
        .servers("dc0/m0", "both", 2)
        .servers("dc1/m3", "both", 1)
        .valued("web", "guaranteed", 12.0, &types)
        .valued("ads", "guaranteed", 2.0, &[("a", 1.0)])
        .valued("spares", "shared_buffer", 1.0, &[("a", 1.0)])
        .affinity("web", "dc0", 1.0)
        .change("web", |row| {
            row.msb_alpha = Some(0.5);
            row.priority = 1;
        })
        .event("server", "m1-down-000", "random_failure")
        .event("server", "m1-down-001", "random_failure")
        .server("m2-a-003", |row| row.current_reservation = Some("spares".into()))
        .hold("web", "m0-a")
        .hold("ads", "m1-a");
    let told = |world: World| -> Vec<(String, TypeReason, String)> {
        let rows = composition(world, "web");
        rows.into_iter().map(|of| (of.hardware_type.to_string(), of.reason, of.sentence)).collect()
    };
    // Six of twelve RRU are in m0, where the limit of six is reached; dc1 has no share.
    let spread = "in MSBs at its spread limit of 6 RRU";
    let shares = "in datacenters that have reached its share";
    let expected = [
        ("a", Open, "3 are free, 3 within its limits".to_owned()),
        ("b", MsbSpread, format!("1 is free, {spread}")),
        ("both", Place, format!("3 are free: 2 {spread}, 1 {shares}")),
        ("down", Unavailable, "all 2 are unavailable".to_owned()),
        ("far", Affinity, format!("6 are free, all {shares}")),
        ("gone", NoneThere, "the region has no server of this type".to_owned()),
    ];
    let expected = expected.map(|(ty, reason, text)| (ty.to_owned(), reason, text));
    assert_eq!(told(world.clone()), expected);
    let rows = composition(world.clone(), "web");
    let a = &rows[0];
    assert_eq!((a.servers, a.amount, a.value), (3, Rru::units(6), Rru::units(2)));
    assert_eq!((a.held_by_others, a.held_by_more_important, a.shared_buffer), (2, 2, 1));

    // With the rest of them it has what it asks for, or there are no more.
    let rest =
        world.clone().hold("web", "m2-a-000").hold("web", "m2-a-001").hold("web", "m2-a-002");
    let all = told(rest.clone());
    let none = "no free server: 2 held by other reservations (2 by more important reservations), 1 in the shared buffer";
    assert_eq!((all[0].1, all[0].2.as_str()), (NoneFree, none));
    let fewer = rest.change("web", |row| row.capacity_rru = 6.0);
    let one = told(fewer).into_iter().find(|row| row.0 == "b").expect("b");
    assert_eq!((one.1, &*one.2), (Enough, "1 is free; the request is satisfied"));
}
