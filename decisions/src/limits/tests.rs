use super::{RegionLimits, Room};
use crate::emergency::{self, Stock, StockGroup};
use crate::replace::{Failed, Repaired, Spare, SpareContext, Swap, choose, returning};
use chrono::DateTime;
use fleet::{RegionSnapshot, ReservationIx, Rru, Server, ServerIx};
use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::rows::{parts, reservation, rru, server, snapshot};

/// Each server of some racks counts one for a reservation, up to a limit.
#[derive(Debug)]
struct Racks {
    region: RegionSnapshot,
    name: String,
    most: i64,
    /// By server, with the reservations for which it counts.
    counts: Vec<Vec<ReservationIx>>,
    row: [(u32, i64); 1],
}

impl RegionLimits for Racks {
    fn region(&self) -> &RegionSnapshot {
        &self.region
    }

    fn limit(&self, _: u32) -> (&str, i64) {
        (&self.name, self.most)
    }

    fn kind(&self, server: ServerIx) -> u32 {
        self.counts[server.ix()].len() as u32
    }

    fn counts(&self, server: ServerIx, holder: ReservationIx) -> &[(u32, i64)] {
        if self.counts[server.ix()].contains(&holder) { &self.row } else { &[] }
    }
}

/// `web` holds w0 in rack r0 of MSB m0 and w1 in r1 of m1; the spares of type C1 are a0 and a1 in racks r0 and r1, and b2
/// in r2 of m2; f0 and f1 are free in r0 and r1.
fn region() -> RegionSnapshot {
    let mut parts = parts();
    parts.shared_buffer_fraction = Some(0.5);
    for (name, rack, holder) in [
        ("w0", 0, Some("web")),
        ("w1", 1, Some("web")),
        ("a0", 0, Some("shared-buffer/C1")),
        ("a1", 1, Some("shared-buffer/C1")),
        ("b2", 2, Some("shared-buffer/C1")),
        ("f0", 0, None),
        ("f1", 1, None),
    ] {
        let place = ("dc", &*format!("m{rack}"), &*format!("r{rack}"));
        let mut row = server(name, place, "C1");
        row.current_reservation = holder.map(Into::into);
        parts.servers.push(row);
    }
    parts.reservations.push(reservation("web", 2.0));
    parts.rru.push(rru("web", "C1", 1.0));
    snapshot(&parts)
}

/// At most `most` servers of these racks for web.
fn limit(racks: &[&str], most: i64) -> Room {
    let region = region();
    let web = region.reservation("web").expect("there");
    let of = |server: &Server| {
        let rack = &region.racks[server.rack.ix()].id;
        if racks.contains(&&**rack) { vec![web] } else { Vec::new() }
    };
    let counts: Vec<_> = region.servers.iter().map(of).collect();
    let name = format!("racks: of={}", racks.join("+"));
    let held = region.servers.iter().zip(&counts);
    let used = held.filter(|(server, of)| server.holder().is_some_and(|at| of.contains(&at)));
    let used = used.count() as i64;
    Room::new(Arc::new(Racks { region, name, most, counts, row: [(0, 1)] }), vec![used])
}

fn spare(name: &str, msb: &str) -> Spare {
    Spare {
        server: name.into(),
        msb: msb.into(),
        domains: Vec::new(),
        hardware_type: "C1".into(),
        lent: false,
    }
}

fn failed(server: &str) -> Failed {
    Failed {
        server: server.into(),
        reservation: "web".into(),
        priority: 0,
        hardware_type: "C1".into(),
        since: DateTime::UNIX_EPOCH,
    }
}

/// What web holds in each MSB.
fn worth(held: &[(&str, usize)], buffered: bool) -> SpareContext {
    let held = held.iter().map(|(msb, of)| (("web".into(), (*msb).into()), Rru::units(*of)));
    SpareContext {
        values: [(("web".into(), "C1".into()), Rru::units(1))].into(),
        held: held.collect(),
        buffered: buffered.then(|| "web".into()).into_iter().collect(),
        ..SpareContext::default()
    }
}

fn spares_of(swaps: &[Swap]) -> Vec<(&str, &[String])> {
    swaps.iter().map(|swap| (&*swap.spare, &swap.exceeds[..])).collect()
}

const NOTHING: &[String] = &[];

#[test]
fn of_spares_that_serve_equally_one_that_keeps_every_limit_goes_first() {
    let both = [spare("a0", "m0"), spare("a1", "m1")];
    let worth = worth(&[], true);
    let chosen = |room: &mut Room| choose(&[failed("w1")], &both, &worth, room);
    assert_eq!(spares_of(&chosen(&mut Room::default())), [("a0", NOTHING)], "the first by name");
    // w0 is in rack r0, where one is the most.
    let mut full = limit(&["r0"], 1);
    assert_eq!(spares_of(&chosen(&mut full)), [("a1", NOTHING)]);
    assert_eq!(spares_of(&chosen(&mut limit(&["r0"], 2))), [("a0", NOTHING)], "there is room");
    // What is chosen takes room: with one of each rack, the second goes where the first did not.
    let mut room = limit(&["r0"], 2);
    let two = choose(&[failed("w1"), failed("other")], &both, &worth, &mut room);
    assert_eq!(spares_of(&two), [("a0", NOTHING), ("a1", NOTHING)]);
}

#[test]
fn where_no_spare_keeps_a_limit_one_serves_all_the_same_and_the_limit_is_named() {
    let both = [spare("a0", "m0"), spare("a1", "m1")];
    let mut none = limit(&["r0", "r1"], 0);
    let swaps = choose(&[failed("other")], &both, &worth(&[], true), &mut none);
    assert_eq!(spares_of(&swaps), [("a0", &["racks: of=r0+r1".to_owned()][..])]);
    // A server that is replaced leaves room, so the same number of servers exceeds nothing.
    let mut same = limit(&["r0", "r1"], 2);
    let swaps = choose(&[failed("w0")], &both, &worth(&[], true), &mut same);
    assert_eq!(spares_of(&swaps), [("a0", NOTHING)]);
    assert!(!same.keeps(&"f0".into(), &"web".into()), "that room is taken");
    // One that finds no spare stays where it is, and so does its room.
    let swaps = choose(&[failed("w1")], &[], &worth(&[], true), &mut same);
    assert_eq!(spares_of(&swaps), []);
    assert!(!same.keeps(&"f1".into(), &"web".into()));
}

#[test]
fn a_limit_does_not_make_the_largest_share_larger() {
    // The loss of m0 costs 3. With b2 in m2 it does still; with a1 the loss of m1 would cost 4.
    let (broken, kept) = (spare("b2", "m2"), spare("a1", "m1"));
    let held = [("m0", 3), ("m1", 3), ("m2", 1)];
    let both = [broken, kept];
    let chosen = |buffered, room: &mut Room| {
        choose(&[failed("other")], &both, &worth(&held, buffered), room)[0].spare.to_string()
    };
    assert_eq!(chosen(true, &mut Room::default()), "b2");
    assert_eq!(chosen(true, &mut limit(&["r2"], 0)), "b2", "what is guaranteed comes first");
    assert_eq!(chosen(false, &mut limit(&["r2"], 0)), "a1", "no MSB need be survived");
}

#[test]
fn a_repaired_server_does_not_return_above_a_limit() {
    let repaired = Repaired {
        server: "a0".into(),
        msb: "m0".into(),
        domains: Vec::new(),
        hardware_type: "C1".into(),
        reservation: "web".into(),
        capacity: Rru::units(2),
        msb_buffer: false,
        spare: "w1".into(),
        spare_msb: "m1".into(),
        spare_domains: Vec::new(),
        spare_hardware_type: "C1".into(),
    };
    let worth = worth(&[("m0", 1), ("m1", 1)], false);
    let returns =
        |mut room: Room| returning(std::slice::from_ref(&repaired), &worth, &mut room).len();
    assert_eq!(returns(Room::default()), 1);
    assert_eq!(returns(limit(&["r0"], 1)), 0, "w0 is there");
    assert_eq!(returns(limit(&["r0", "r1"], 2)), 1, "its spare leaves");
    assert_eq!(returns(limit(&["r0", "r1"], 1)), 1, "no further above it than with the spare");
}

#[test]
fn an_emergency_takes_servers_that_keep_every_limit_first() {
    let group = |rack: usize, shared, servers: &[&str]| StockGroup {
        msb: format!("m{rack}").into(),
        domains: Vec::new(),
        hardware_type: "C1".into(),
        shared,
        servers: servers.iter().map(|name| (*name).into()).collect(),
    };
    let stock = |asked| Stock {
        reservation: "web".into(),
        asked: Rru::units(asked),
        groups: vec![group(0, false, &["f0"]), group(1, false, &["f1"]), group(2, true, &["b2"])],
        most: None,
        shared_most: BTreeMap::new(),
        worth: worth(&[], true),
    };
    let picked = |asked, mut room: Room| {
        let picks = emergency::choose(&stock(asked), &mut room);
        let servers = picks.groups.iter().flat_map(|of| &of.servers).map(ToString::to_string);
        (servers.collect::<Vec<_>>(), picks.exceeds)
    };
    let names = |of: &[&str]| of.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(picked(1, Room::default()), (names(&["f0"]), Vec::new()));
    assert_eq!(picked(1, limit(&["r0"], 1)), (names(&["f1"]), Vec::new()));
    // A server of a shared buffer that keeps limits before a free one that does not.
    assert_eq!(picked(2, limit(&["r0"], 1)), (names(&["f1", "b2"]), Vec::new()));
    // All are granted if all are needed, and what they exceed is named.
    let exceeded = vec!["racks: of=r0".to_owned()];
    assert_eq!(picked(3, limit(&["r0"], 1)), (names(&["f0", "f1", "b2"]), exceeded));
}
