//! A solve gives no target that cannot be carried out before the next one: pinned servers stay, no move
//! budget is exceeded, and maintenance until then leaves what was promised.

use crate::brute::Phase1;
use crate::world::{
    self, config, empty, event, for_each, reservation, rru, server, snapshot, solved,
};
use async_solver::{SolverConfig, quote, quote_all};
use chrono::TimeDelta;
use fleet::audit::{audit, certificate};
use fleet::{
    AheadParts, CapacityRequest, MoveBudgetRow, RegionSnapshot, ReservationIx, ReservationRow,
    ServerRow, SnapshotParts, Targets, UnavailabilityRow,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::cell::Cell;
use std::collections::BTreeMap;
use testkit::rows::noon;

const PLACES: [(&str, &str, &str); 4] =
    [("dc0", "m0", "k0"), ("dc0", "m1", "k1"), ("dc1", "m2", "k2"), ("dc1", "m2", "k3")];
const NAMES: [&str; 3] = ["web", "feed", "ads"];

fn budget(scope: &str, scope_id: &str, in_use: Option<bool>, moves: i64) -> MoveBudgetRow {
    let because = if scope == "reservation" { "contract" } else { "limit" };
    let (scope, scope_id, because) = (scope.into(), scope_id.into(), because.into());
    MoveBudgetRow { scope, scope_id, in_use, moves, because }
}

/// Maintenance of a rack that begins `minutes` after the instant of the snapshot, for two hours.
fn work(number: usize, rack: &str, minutes: i64, recall_minutes: Option<i32>) -> UnavailabilityRow {
    UnavailabilityRow {
        started_at: noon() + TimeDelta::minutes(minutes),
        ended_at: Some(noon() + TimeDelta::minutes(minutes.max(0) + 120)),
        recall_minutes,
        ..event(number, "rack", rack, "planned_maintenance")
    }
}

/// A few servers, three reservations, and what the mover is held to.
fn limited() -> impl Strategy<Value = SnapshotParts> {
    let holders = select(vec![None, None, Some("web"), Some("feed"), Some("ads")]);
    let row = (select(&PLACES[..]), select(&["A", "B"][..]), holders, any::<bool>());
    let row = row.prop_map(|(place, hardware_type, holder, in_use)| {
        let mut row = server("", place, hardware_type);
        row.current_reservation = holder.map(Into::into);
        row.in_use = in_use && holder.is_some();
        row
    });
    let asks = (0..5_u32, any::<bool>(), 0..3_i32, select(&[1.0, 2.0][..]));
    let scope = select(vec![
        ("region", "region-a"),
        ("msb", "m0"),
        ("msb", "m2"),
        ("rack", "k1"),
        ("rack", "k3"),
        ("reservation", "web"),
        ("reservation", "feed"),
        ("server", "s0"),
    ]);
    let limits = vec((scope, select(vec![None, Some(true), Some(false)]), 0..3_i64), 0..4);
    let racks = select(&["k0", "k1", "k2", "k3"][..]);
    let works = vec((racks, select(&[-30_i64, 20, 90][..]), select(vec![None, Some(20)])), 0..2);
    (vec(row, 1..7), vec(asks, NAMES.len()), limits, works).prop_map(
        |(servers, asks, limits, works)| {
            let mut parts = empty();
            for (number, row) in servers.into_iter().enumerate() {
                parts.servers.push(ServerRow { server_id: format!("s{number}").into(), ..row });
            }
            for (name, (servers, msb_buffer, priority, value)) in NAMES.iter().zip(asks) {
                let row = reservation(name, f64::from(servers));
                parts.reservations.push(ReservationRow { msb_buffer, priority, ..row });
                parts.rru.push(rru(name, "A", 1.0));
                parts.rru.push(rru(name, "B", value));
            }
            let mut budgets: BTreeMap<_, MoveBudgetRow> = BTreeMap::new();
            for ((scope, id), in_use, moves) in limits {
                let there = match scope {
                    "region" | "reservation" => true,
                    _ => parts
                        .servers
                        .iter()
                        .any(|row| [&*row.msb, &*row.rack, &*row.server_id].contains(&id)),
                };
                if there {
                    budgets.insert((scope, id, in_use), budget(scope, id, in_use, moves));
                }
            }
            parts.ahead =
                AheadParts { horizon_minutes: 60, budgets: budgets.into_values().collect() };
            for (number, (rack, minutes, recall)) in works.into_iter().enumerate() {
                if parts.servers.iter().any(|row| row.rack.as_ref() == rack) {
                    parts.unavailability.push(work(number, rack, minutes, recall));
                }
            }
            parts
        },
    )
}

/// Counted from the rows, without anything of the solver or the audit: whether these holders can be
/// carried out before the next solve.
fn can_be(parts: &SnapshotParts, region: &RegionSnapshot, to: &[Option<ReservationIx>]) -> bool {
    let name = |ix: &Option<ReservationIx>| ix.map(|ix| region.reservations[ix.ix()].id.clone());
    let mut moved: Vec<&ServerRow> = Vec::new();
    for (server, target) in region.servers.iter().zip(to) {
        let row = parts.servers.iter().find(|row| row.server_id == server.id).expect("a row");
        if row.current_reservation != name(target) {
            moved.push(row);
        }
    }
    let horizon = parts.taken_at + TimeDelta::minutes(i64::from(parts.ahead.horizon_minutes));
    let stays = |row: &&ServerRow| {
        parts.unavailability.iter().any(|of| {
            *of.scope_id == *row.rack
                && of.started_at <= horizon
                && of.ended_at.is_none_or(|end| end > parts.taken_at)
        })
    };
    let over = |of: &MoveBudgetRow| {
        let counted = moved.iter().filter(|row| {
            let here = match of.scope.as_ref() {
                "region" => true,
                "msb" => *row.msb == *of.scope_id,
                "rack" => *row.rack == *of.scope_id,
                "server" => *row.server_id == *of.scope_id,
                _ => row.current_reservation.as_deref() == Some(&*of.scope_id),
            };
            here && of.in_use.is_none_or(|in_use| in_use == row.in_use)
        });
        counted.count() > usize::try_from(of.moves).expect("not negative")
    };
    !moved.iter().any(stays) && !parts.ahead.budgets.iter().any(over)
}

/// The least that can be missing, level by level, over everything that can be carried out.
fn least(parts: &SnapshotParts, region: &RegionSnapshot, phase1: &Phase1) -> Vec<i128> {
    let mut best: Option<Vec<i128>> = None;
    let mut holders: Vec<Option<ReservationIx>> = vec![None; region.servers.len()];
    let choices = region.reservations.len() + 1;
    let all = choices.pow(u32::try_from(holders.len()).expect("few"));
    for mut number in 0..all {
        for holder in &mut holders {
            let choice = number % choices;
            number /= choices;
            *holder = choice.checked_sub(1).map(ReservationIx::new);
        }
        let untouched = |(server, target): (&fleet::Server, &Option<ReservationIx>)| {
            server.available || server.holder() == *target
        };
        if !region.servers.iter().zip(&holders).all(untouched) || !can_be(parts, region, &holders) {
            continue;
        }
        if let Some((missing, _)) = phase1.standing(&holders)
            && best.as_ref().is_none_or(|best| missing < *best)
        {
            best = Some(missing);
        }
    }
    best.expect("today's assignment is one of them")
}

#[test]
fn targets_can_be_reached_before_the_next_solve() {
    let (all, bound, best) = (Cell::new(0_u32), Cell::new(0_u32), Cell::new(0_u32));
    for_each(600, limited(), |parts| {
        let region = snapshot(&parts).ahead();
        let outcome = solved(&region, &config());
        let holders = outcome.targets.holders();
        assert!(can_be(&parts, &region, holders), "by the rows: {holders:?}");
        let violations = audit(&region, &outcome.targets).violations;
        assert!(violations.is_empty(), "{violations:?}");
        let phase1 = Phase1::new(&region);
        let (missing, _) = phase1.standing(holders).expect("nothing ends worse");
        all.set(all.get() + 1);
        bound.set(bound.get() + u32::from(outcome.stats.held_back.passes > 0));
        best.set(best.get() + u32::from(missing == least(&parts, &region, &phase1)));
    });
    let (all, bound, best) = (all.get(), bound.get(), best.get());
    println!("{bound} of {all} worlds were solved again; {best} are missing as little as can be");
    assert!(bound * 10 >= all, "budgets bind in {bound} of {all} worlds only");
    assert!(best * 100 >= all * 97, "{best} of {all} worlds are missing as little as can be");
}

/// Servers of `feed` are worth two to `web`, those of `ads` one; all are in use and surplus. `feed` may lose
/// one of them.
#[test]
fn servers_protected_by_a_contract_are_not_taken() {
    let mut parts = empty();
    for number in 0..4 {
        for (holder, msb, hardware_type) in [("feed", "m0", "A"), ("ads", "m1", "B")] {
            let mut row = server(&format!("{holder}{number}"), ("dc0", msb, msb), hardware_type);
            (row.current_reservation, row.in_use) = (Some(holder.into()), true);
            parts.servers.push(row);
        }
    }
    let plain =
        |name, capacity| ReservationRow { msb_buffer: false, ..reservation(name, capacity) };
    parts.reservations = vec![plain("web", 4.0), plain("feed", 0.0), plain("ads", 0.0)];
    parts.rru = vec![rru("web", "A", 2.0), rru("web", "B", 1.0)];
    parts.rru.extend([rru("feed", "A", 1.0), rru("ads", "B", 1.0)]);
    let lost = |parts: &SnapshotParts| {
        let region = snapshot(parts).ahead();
        let config = SolverConfig { hand_back: false, ..config() };
        let outcome = solved(&region, &config);
        let of = |name: &str| {
            let of = region.reservation(name);
            outcome.targets.diff(&region).filter(|step| step.source == of).count()
        };
        (of("feed"), of("ads"))
    };
    assert_eq!(lost(&parts), (2, 0), "two moves instead of four");
    parts.ahead.budgets = vec![budget("reservation", "feed", Some(true), 1)];
    assert_eq!(lost(&parts), (1, 2), "as the contract allows");
}

/// Work that cannot be recalled begins in twenty minutes: its servers count as gone, and others come.
#[test]
fn solve_respects_a_window_that_begins_later() {
    let mut parts = empty();
    for (msb, holder) in
        [("m0", Some("web")), ("m1", Some("web")), ("m2", Some("web")), ("m3", None)]
    {
        for number in 0..2 {
            let mut row =
                server(&format!("{msb}-{number}"), ("dc0", msb, &format!("{msb}-k")), "A");
            row.current_reservation = holder.map(Into::into);
            parts.servers.push(row);
        }
    }
    parts.ahead.horizon_minutes = 60;
    parts.reservations = vec![reservation("web", 4.0)];
    parts.rru = vec![rru("web", "A", 1.0)];
    let gained = |parts: &SnapshotParts| {
        let region = snapshot(parts).ahead();
        let outcome = solved(&region, &config());
        assert_eq!(audit(&region, &outcome.targets).violations, []);
        outcome.targets.diff(&region).filter(|step| step.target.is_some()).count()
    };
    assert_eq!(gained(&parts), 0, "six servers in three MSBs keep four");
    parts.unavailability = vec![work(0, "m0-k", 20, None)];
    assert_eq!(gained(&parts), 2, "as if they were out already");
    parts.unavailability = vec![work(0, "m0-k", 20, Some(20))];
    assert_eq!(gained(&parts), 0, "they are back within 30 minutes");
    parts.unavailability = vec![work(0, "m0-k", 90, None)];
    assert_eq!(gained(&parts), 0, "after the next solve");
}

/// The next solve would release a surplus, were it not for the work that needs it meanwhile. The plan of another's request
/// does not release it, and is not blamed for that.
#[test]
fn plan_leaves_the_surplus_that_maintenance_needs() {
    let mut parts = empty();
    for msb in ["m0", "m1", "m2", "m3", "m4"] {
        for number in 0..3 {
            let mut row =
                server(&format!("{msb}-{number}"), ("dc0", msb, &format!("{msb}-k")), "A");
            row.current_reservation = (number < 2).then(|| "web".into());
            parts.servers.push(row);
        }
    }
    parts.ahead.horizon_minutes = 60;
    parts.reservations = vec![reservation("web", 6.0)];
    parts.rru = vec![rru("web", "A", 1.0)];
    parts.unavailability = vec![work(0, "m0-k", 20, Some(30))];
    let region = snapshot(&parts).ahead_for_plans();
    let config = config();
    let context = world::context(&region, &config);
    let request = CapacityRequest {
        reservation_id: "feed".into(),
        owner: Some("feed".into()),
        capacity_rru: Some(1.0),
        rru: Some([("A".into(), 1.0)].into()),
        ..CapacityRequest::default()
    };
    let found = quote(&context, &request).expect("a request of this region");
    assert!(found.is_clean() && found.refusal.is_none(), "{}", found.audit);
    let all = quote_all(&context, &[request]).expect("a request of this region");
    assert!(all.in_full(), "{}", all.audit);
}

/// Nothing is recalled for a reservation that is promised nothing for the loss of an MSB: while work lasts, its
/// servers are gone.
#[test]
fn unbuffered_reservation_is_replaced_during_recallable_work() {
    let mut parts = empty();
    for (msb, holder) in [("m0", Some("web")), ("m1", Some("web")), ("m2", None)] {
        for number in 0..2 {
            let mut row =
                server(&format!("{msb}-{number}"), ("dc0", msb, &format!("{msb}-k")), "A");
            row.current_reservation = holder.map(Into::into);
            parts.servers.push(row);
        }
    }
    parts.ahead.horizon_minutes = 60;
    parts.reservations = vec![ReservationRow { msb_buffer: false, ..reservation("web", 4.0) }];
    parts.rru = vec![rru("web", "A", 1.0)];
    parts.unavailability = vec![work(0, "m0-k", 20, Some(20))];
    let region = snapshot(&parts).ahead();
    let outcome = solved(&region, &config());
    assert_eq!(audit(&region, &outcome.targets).violations, []);
    let gained = outcome.targets.diff(&region).filter(|step| step.target.is_some()).count();
    assert_eq!(gained, 2, "two others serve it meanwhile");
    let in_service = |targets: &Targets| {
        let mut parts = snapshot(&parts).to_parts();
        for (row, holder) in parts.servers.iter_mut().zip(targets.holders()) {
            row.current_reservation = holder.map(|ix| region.reservations[ix.ix()].id.clone());
        }
        parts.taken_at = noon() + TimeDelta::minutes(30);
        certificate(&snapshot(&parts)).row("web").expect("there").missing().to_f64()
    };
    let today = in_service(&Targets::unchanged(&region));
    assert_eq!((today, in_service(&outcome.targets)), (2.0, 0.0), "RRU missing during the work");
}
