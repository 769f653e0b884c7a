//! Decisions that cannot wait for a solve: replacements, outages, loans, emergencies.

use crate::place::{Place, town, until};
use broker::{
    Broker, EmergencyId, EmergencyRefusal, EmergencyRequest, EmergencyState, ReplacementState,
    State,
};
use decisions::outage::{OutageReason, StormGuard};
use fleet::{Rru, Scope, UnavailabilityKind};
use online_mover::agent::simulated::{SimulatedAgent, Trouble};
use online_mover::steps::Step;
use online_mover::{Mover, MoverSettings};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::health::{Health, Occurrence};

fn settings() -> MoverSettings {
    MoverSettings { settle: Duration::from_millis(50), ..crate::place::settings() }
}

fn mover(broker: &Broker, agent: SimulatedAgent) -> Mover<SimulatedAgent> {
    mover_with(broker, agent, settings())
}

fn mover_with(
    broker: &Broker,
    agent: SimulatedAgent,
    settings: MoverSettings,
) -> Mover<SimulatedAgent> {
    let name = format!("mover {}", uuid::Uuid::now_v7());
    Mover::new(broker.clone(), agent, settings, name)
}

async fn fails(place: &Place, scope: Scope, name: &str, kind: UnavailabilityKind) {
    record(place, &format!("{name} fails"), scope, name, kind).await;
}

async fn record(place: &Place, event: &str, scope: Scope, name: &str, kind: UnavailabilityKind) {
    let (event, scope_id) = (event.into(), name.into());
    let started_at = place.broker.clock().await.expect("asked");
    let occurrence = Occurrence { event, scope, scope_id, kind, started_at };
    place.broker.record_unavailability("monitoring", &occurrence).await.expect("recorded");
}

async fn returns(place: &Place, name: &str) {
    clear(place, &format!("{name} fails")).await;
}

async fn clear(place: &Place, event: &str) {
    let ended_at = place.broker.clock().await.expect("asked");
    place.broker.clear_unavailability("monitoring", event, ended_at).await.expect("cleared");
}

/// How many replacements are in each state.
async fn counts(place: &Place) -> BTreeMap<ReplacementState, i64> {
    place.broker.replacement_times().await.expect("counted").counts
}

async fn owner(place: &Place, server: &str) -> Option<String> {
    place.owners().await[server].clone()
}

fn count(of: &BTreeMap<ReplacementState, i64>, state: ReplacementState) -> i64 {
    of.get(&state).copied().unwrap_or(0)
}

const RANDOM: UnavailabilityKind = UnavailabilityKind::RandomFailure;

#[tokio::test]
async fn failed_server_is_replaced_and_becomes_a_spare() {
    let place = Place::with(&town()).await;
    let mover = mover(&place.broker, SimulatedAgent::default());
    fails(&place, Scope::Server, "s000", RANDOM).await;
    let bound = async || count(&counts(&place).await, ReplacementState::Bound) == 1;
    until(mover.run(), bound).await;
    let row = place.broker.replacements(&[], 9).await.expect("listed").remove(0);
    assert_eq!((&*row.server, &*row.reservation), ("s000", "web"));
    let spare = row.spare.expect("a spare");
    assert_eq!(owner(&place, &spare).await.as_deref(), Some("web"));
    // The failed server belongs to web until it is wiped, and moves to the shared buffer.
    assert_eq!(owner(&place, "s000").await.as_deref(), Some("web"));
    let moves = place.broker.moves_under_way().await.expect("listed");
    // Lent servers may be on their way back at the same time.
    let of = moves.iter().find(|of| &*of.server == "s000");
    assert!(of.is_some_and(|of| of.out_of_use), "{moves:?}");
    returns(&place, "s000").await;
    let back = async || owner(&place, "s000").await.as_deref() == Some("shared-buffer/x");
    until(mover.run(), back).await;
    assert_eq!(counts(&place).await.values().sum::<i64>(), 1);
    place.at_rest().await;
}

#[tokio::test]
async fn repaired_server_returns_and_its_spare_goes_back() {
    let place = Place::with(&town()).await;
    let mover = mover(&place.broker, SimulatedAgent::default());
    let holdings = async || -> BTreeMap<String, usize> {
        let mut count = BTreeMap::new();
        for owner in place.owners().await.into_values().flatten() {
            *count.entry(owner).or_default() += 1;
        }
        count
    };
    let before = holdings().await;
    fails(&place, Scope::Server, "s000", RANDOM).await;
    let bound = async || count(&counts(&place).await, ReplacementState::Bound) == 1;
    until(mover.run(), bound).await;
    let spare = place.broker.replacements(&[], 9).await.expect("listed").remove(0).spare;
    let spare = spare.expect("a spare").to_string();
    returns(&place, "s000").await;
    let at_home = async || {
        let owners = place.owners().await;
        let is = |server: &str, owner: &str| owners[server].as_deref() == Some(owner);
        is("s000", "web") && owners[&spare].as_deref().is_some_and(|of| of.starts_with("shared"))
    };
    until(mover.run(), at_home).await;
    assert_eq!(holdings().await, before);
    let row = place.broker.replacements(&[], 9).await.expect("listed").remove(0);
    assert!(row.returned_at.is_some(), "{row:?}");
    place.at_rest().await;
}

#[tokio::test]
async fn empty_buffer_serves_failures_by_priority() {
    let place = Place::with(&town()).await;
    // Ten of type x, five of each: four spares of x, and four of y, which are worth more to web.
    for number in [0, 2, 4, 6, 8, 50, 52, 54, 56, 58] {
        fails(&place, Scope::Server, &format!("s{number:03}"), RANDOM).await;
    }
    let mover = mover(&place.broker, SimulatedAgent::default());
    let served = async || count(&counts(&place).await, ReplacementState::Bound) == 8;
    until(mover.run(), served).await;
    assert_eq!(count(&counts(&place).await, ReplacementState::Owed), 2);
    let owed = place.broker.replacements(&[ReplacementState::Owed], 9).await.expect("listed");
    assert!(owed.iter().all(|row| &*row.reservation == "ads"), "web comes first: {owed:?}");
    // One of the two recovers; the other is replaced by a repaired server.
    returns(&place, &owed[0].server).await;
    returns(&place, "s000").await;
    let settled = async || count(&counts(&place).await, ReplacementState::Owed) == 0;
    until(mover.run(), settled).await;
    let counts = counts(&place).await;
    assert_eq!(count(&counts, ReplacementState::Recovered), 1, "{counts:?}");
    place.at_rest().await;
}

#[tokio::test]
async fn failed_or_refusing_spare_is_replaced() {
    let place = Place::with(&town()).await;
    let agent = SimulatedAgent::default();
    // Every spare refuses its first clean-up.
    for number in 100..108 {
        agent.script(&format!("s{number}"), Step::CleanUp, &[Trouble::Refuses; 1]);
    }
    let mover = mover(&place.broker, agent);
    fails(&place, Scope::Server, "s001", RANDOM).await;
    let bound = async || count(&counts(&place).await, ReplacementState::Bound) == 1;
    until(mover.run(), bound).await;
    let row = place.broker.replacements(&[], 9).await.expect("listed").remove(0);
    let spare = row.spare.expect("a spare");
    fails(&place, Scope::Server, &spare, RANDOM).await;
    until(mover.run(), async || count(&counts(&place).await, ReplacementState::Bound) == 2).await;
    place.at_rest().await;
}

#[tokio::test]
async fn failed_rack_is_replaced_and_failed_msb_is_not() {
    let place = Place::with(&town()).await;
    fails(&place, Scope::Rack, "rack00", RANDOM).await;
    let mover = mover(&place.broker, SimulatedAgent::default());
    // Ten servers: eight of web and ads, one spare, one free at most.
    until(mover.run(), async || !counts(&place).await.is_empty()).await;
    assert!(place.broker.outages(true, 9).await.expect("listed").is_empty(), "one switch");
    let before = counts(&place).await.values().sum::<i64>();
    fails(&place, Scope::Msb, "msb1", UnavailabilityKind::CorrelatedFailure).await;
    let lost = async || place.broker.outages(true, 9).await.expect("listed").len() == 1;
    until(mover.run(), lost).await;
    let _ = tokio::time::timeout(Duration::from_millis(500), mover.run()).await;
    assert_eq!(counts(&place).await.values().sum::<i64>(), before, "embedded buffers serve");
    returns(&place, "msb1").await;
    until(mover.run(), async || place.broker.outages(true, 9).await.expect("listed").is_empty())
        .await;
    place.at_rest().await;
}

#[tokio::test]
async fn storm_of_single_failures_uses_no_spares() {
    let place = Place::with(&town()).await;
    // Four of an MSB of forty are a storm.
    let storm_guard = StormGuard { servers: 4, ..StormGuard::default() };
    let settings = MoverSettings { storm_guard, ..settings() };
    let mover = mover_with(&place.broker, SimulatedAgent::default(), settings);
    let storm = async {
        let owners = place.owners().await;
        let export = place.broker.export(None).await.expect("exported");
        for server in export.parts.servers.iter().filter(|server| &*server.msb == "msb2") {
            fails(&place, Scope::Server, &server.server_id, RANDOM).await;
        }
        owners
    };
    let (_, before) = tokio::join!(
        async { tokio::time::timeout(Duration::from_secs(3), mover.run()).await.is_err() },
        storm
    );
    let outages = place.broker.outages(true, 9).await.expect("listed");
    assert_eq!((outages.len(), outages[0].reason), (1, OutageReason::Storm));
    let spares = |owners: &BTreeMap<String, Option<String>>| {
        owners.values().flatten().filter(|owner| owner.starts_with("shared")).count()
    };
    // Up to three failures may have been replaced before the fourth made it a storm.
    let taken = spares(&before) - spares(&place.owners().await);
    assert!(taken < 4, "{taken} spares went");
    place.at_rest().await;
}

#[tokio::test]
async fn storm_ends_with_time_and_its_failures_are_replaced() {
    // The racks are unknown: each MSB has one rack of its own name.
    let mut parts = town().to_parts();
    parts.servers.iter_mut().for_each(|row| row.rack = (*row.msb).into());
    let town = fleet::RegionSnapshot::new(parts).expect("a region");
    let place = Place::with(&town).await;
    let storm_guard =
        StormGuard { servers: 4, lasts: Duration::from_secs(20), ..StormGuard::default() };
    let settings = MoverSettings { storm_guard, ..settings() };
    let mover = mover_with(&place.broker, SimulatedAgent::default(), settings);
    for server in
        town.servers.iter().filter(|server| &*town.msbs[town.msb_of(server).ix()].id == "msb2")
    {
        fails(&place, Scope::Server, &server.id, RANDOM).await;
    }
    let lost = async || place.broker.outages(true, 9).await.expect("listed").len();
    until(mover.run(), async || lost().await == 1).await;
    assert_eq!(counts(&place).await.values().sum::<i64>(), 0, "embedded buffers serve");
    // No server returns, and no event ends.
    until(mover.run(), async || lost().await == 0).await;
    let served = async || count(&counts(&place).await, ReplacementState::Bound) > 0;
    until(mover.run(), served).await;
    place.at_rest().await;
}

async fn lent(place: &Place) -> BTreeMap<String, usize> {
    let export = place.broker.export(None).await.expect("exported");
    let mut by: BTreeMap<String, usize> = BTreeMap::new();
    for row in export.parts.servers {
        if let Some(borrower) = row.loaned_to {
            *by.entry(borrower.to_string()).or_default() += 1;
        }
    }
    by
}

#[tokio::test]
async fn idle_buffers_are_lent_by_share_and_recalled_in_an_outage() {
    let place = Place::with(&town()).await;
    let agent = SimulatedAgent::default();
    let mover = mover(&place.broker, agent);
    // Web and ads lend as much as their largest MSB share; shared buffers lend three of four servers.
    let all = async || {
        let lent = lent(&place).await;
        lent.values().sum::<usize>() >= 24 && lent["batch"].abs_diff(lent["trial"]) <= 1
    };
    until(mover.run(), all).await;
    let before = lent(&place).await;
    fails(&place, Scope::Msb, "msb0", UnavailabilityKind::CorrelatedFailure).await;
    let back = async || {
        let outage = place.broker.outages(true, 1).await.expect("listed");
        let Some(outage) = outage.first() else { return false };
        // Loans of shared buffers stay.
        let guaranteed = before.values().sum::<usize>() - 6;
        let export = place.broker.export(None).await.expect("exported");
        let still = export.parts.servers.iter().filter(|row| {
            row.loaned_to.is_some()
                && matches!(row.current_reservation.as_deref(), Some("web" | "ads"))
        });
        guaranteed == usize::try_from(outage.lent).expect("few")
            && still.count() <= guaranteed / 4
            && place.broker.moves_under_way().await.expect("listed").is_empty()
    };
    until(mover.run(), back).await;
    place.at_rest().await;
}

#[tokio::test]
async fn lent_spare_replaces_a_failed_server() {
    let place = Place::with(&town()).await;
    let mover = mover(&place.broker, SimulatedAgent::default());
    until(mover.run(), async || lent(&place).await.values().sum::<usize>() >= 24).await;
    // Three of the four spares of a type are lent; four servers of it fail.
    for number in [0, 2, 4, 6] {
        fails(&place, Scope::Server, &format!("s{number:03}"), RANDOM).await;
    }
    until(mover.run(), async || count(&counts(&place).await, ReplacementState::Bound) == 4).await;
    for row in place.broker.replacements(&[], 9).await.expect("listed") {
        let export = place.broker.export(None).await.expect("exported");
        let spare = row.spare.expect("a spare");
        let server = export.parts.servers.iter().find(|of| of.server_id == spare).expect("there");
        assert_eq!(server.loaned_to, None, "{spare}");
    }
    place.at_rest().await;
}

/// An emergency without limits.
fn request(id: EmergencyId, reservation: &str, rru: usize) -> EmergencyRequest<'_> {
    let amount = Rru::units(rru);
    let (why, max_servers, beyond_limits) = ("site outage", 10_000, true);
    EmergencyRequest { id, reservation, amount, why, max_servers, beyond_limits }
}

#[tokio::test]
async fn emergency_is_granted_at_once_and_raises_the_promise() {
    let place = Place::with(&town()).await;
    let mover = mover(&place.broker, SimulatedAgent::default());
    let broker = &place.broker;
    let ask_within = async |name: &str, rru: usize, max_servers: u32, beyond_limits: bool| {
        let id = EmergencyId::now_v7();
        let request = EmergencyRequest { max_servers, beyond_limits, ..request(id, name, rru) };
        broker.ask_emergency("ann", &request).await.expect("asked");
        broker.ask_emergency("ann", &request).await.expect("the same");
        id
    };
    let ask = async |name: &str, rru: usize| ask_within(name, rru, 10_000, true).await;
    let answer = async |id| broker.emergency(id).await.expect("listed").expect("there");
    // Six servers of each type are free, worth 18 to web.
    let (web, unknown, elastic) =
        (ask("web", 16).await, ask("nil", 1).await, ask("batch", 1).await);
    let answered = async || {
        for id in [web, unknown, elastic] {
            if answer(id).await.state == EmergencyState::Asked {
                return false;
            }
        }
        true
    };
    until(mover.run(), answered).await;
    let grant = answer(web).await.granted.expect("granted");
    assert_eq!((grant.amount, grant.from_shared), (Rru::units(16), 0));
    assert!(answer(web).await.debt, "no solve has seen it");
    assert_eq!(answer(unknown).await.refusal, Some(EmergencyRefusal::NoSuchReservation));
    assert_eq!(answer(elastic).await.refusal, Some(EmergencyRefusal::NotGuaranteed));
    let promised = async || {
        let export = broker.export(None).await.expect("exported");
        let web = export.parts.reservations.iter().find(|of| &*of.reservation_id == "web");
        web.expect("there").capacity_rru
    };
    assert!((promised().await - 56.0).abs() < 1e-6);
    let bound = async || {
        let owners = place.owners().await;
        let now = owners.values().flatten().filter(|owner| *owner == "web").count();
        now == 50 + usize::try_from(grant.servers).expect("few")
    };
    until(mover.run(), bound).await;
    // Limits: together no more than is promised without them, and no more servers than the caller confirmed.
    let limited = async |rru: usize, max_servers: u32| {
        let id = ask_within("web", rru, max_servers, false).await;
        until(mover.run(), async || answer(id).await.state != EmergencyState::Asked).await;
        answer(id).await
    };
    assert_eq!(limited(25, 100).await.refusal, Some(EmergencyRefusal::OverPromise));
    let few = limited(24, 1).await;
    assert_eq!(few.granted.expect("granted").servers, 1);
    broker.end_emergency("ann", few.id).await.expect("ended");
    let servers =
        [broker::QuotaAsked { profile: None, hardware_type: None, limit: Rru::units(57) }];
    broker.set_quota("ann", "web", &servers, None).await.expect("set");
    assert_eq!(limited(24, 100).await.refusal, Some(EmergencyRefusal::OverQuota));
    broker.set_quota("ann", "web", &[], None).await.expect("set");
    // More than there is: the remaining free servers, then the shared buffers.
    let more = ask("web", 1_000).await;
    until(mover.run(), async || answer(more).await.state != EmergencyState::Asked).await;
    assert_eq!(answer(more).await.granted.expect("some").from_shared, 8);
    let none = ask("web", 1).await;
    until(mover.run(), async || answer(none).await.state != EmergencyState::Asked).await;
    assert_eq!(answer(none).await.refusal, Some(EmergencyRefusal::NothingFits));
    broker.end_emergency("ann", web).await.expect("ended");
    broker.end_emergency("ann", more).await.expect("ended");
    assert!(broker.end_emergency("ann", web).await.is_err(), "it is over");
    assert!((promised().await - 40.0).abs() < 1e-6);
    place.at_rest().await;
}

/// Both requests precede the mover's first pass: the more important reservation gets the servers, although it
/// asked later.
#[tokio::test]
async fn emergencies_are_granted_by_priority() {
    let place = Place::with(&town()).await;
    let broker = &place.broker;
    let ask = async |name: &str| {
        let id = EmergencyId::now_v7();
        broker.ask_emergency("ann", &request(id, name, 1_000)).await.expect("asked");
        id
    };
    let (ads, web) = (ask("ads").await, ask("web").await);
    let answer = async |id| broker.emergency(id).await.expect("listed").expect("there");
    let mover = mover(broker, SimulatedAgent::default());
    until(mover.run(), async || answer(ads).await.state != EmergencyState::Asked).await;
    assert!(answer(web).await.granted.is_some_and(|grant| grant.servers == 20), "all there is");
    assert_eq!(answer(ads).await.refusal, Some(EmergencyRefusal::NothingFits));
    place.at_rest().await;
}

/// Asserts that each failed server is replaced once, and that no spare is used twice.
async fn consistent(place: &Place) {
    let rows = place.broker.replacements(&[], 10_000).await.expect("listed");
    let open = |row: &&broker::ReplacementRow| !row.state.is_terminal();
    let mut failed: Vec<_> = rows.iter().filter(open).map(|row| row.server.clone()).collect();
    let mut spares: Vec<_> = (rows.iter())
        .filter(|row| row.state == ReplacementState::Swapped)
        .filter_map(|row| row.spare.clone())
        .collect();
    for names in [&mut failed, &mut spares] {
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "twice: {rows:?}");
    }
    place.at_rest().await;
}

/// Whether the condition holds within a minute.
async fn settles(mover: &Mover<SimulatedAgent>, settled: impl AsyncFnMut() -> bool) -> bool {
    let run = async {
        tokio::select! {
            never = mover.run() => never,
            () = crate::place::poll(settled) => {}
        }
    };
    tokio::time::timeout(Duration::from_secs(60), run).await.is_ok()
}

/// Crashes at the first await, then at the second, and so on, while servers fail and recover, until one
/// run settles everything before its crash.
#[tokio::test]
async fn decisions_survive_a_crash_at_any_await() {
    let place = Place::with(&town()).await;
    let mut crashes = 0;
    for polls in 1.. {
        let owners = place.owners().await;
        let held =
            owners.iter().filter(|(_, owner)| matches!(owner.as_deref(), Some("web" | "ads")));
        let nth = usize::try_from(polls % 50).expect("few");
        let name = held.map(|(server, _)| server.clone()).nth(nth).expect("a hundred are");
        let event = format!("{name} fails for the {polls}th time");
        record(&place, &event, Scope::Server, &name, RANDOM).await;
        let settled = async || {
            let rows = place.broker.replacements(&[], 10_000).await.expect("listed");
            rows.iter().any(|row| *row.event == *event)
                && rows.iter().all(|row| row.state.is_terminal())
                && place
                    .broker
                    .moves_under_way()
                    .await
                    .expect("listed")
                    .iter()
                    .all(|of| of.out_of_use)
        };
        let mut crashed = false;
        {
            let mover = mover(&place.broker, SimulatedAgent::default());
            let run = std::pin::pin!(async {
                tokio::select! {
                    never = mover.run() => never,
                    () = crate::place::poll(settled) => {}
                }
            });
            if (crate::place::Crashes { future: run, polls: polls * 4 }).await.is_none() {
                (crashed, crashes) = (true, crashes + 1);
            }
        }
        place.free_the_lease().await;
        consistent(&place).await;
        let mover = mover(&place.broker, SimulatedAgent::default());
        if !settles(&mover, settled).await {
            let rows = place.broker.replacements(&[], 10_000).await.expect("listed");
            let open: Vec<_> = rows.iter().filter(|row| !row.state.is_terminal()).collect();
            let of_event: Vec<_> = rows.iter().filter(|row| *row.event == *event).collect();
            let moves = place.broker.moves_under_way().await.expect("listed");
            panic!("{event}, after {polls} polls: {of_event:?}; open {open:?}; moves {moves:?}");
        }
        // After the repair it is a spare again.
        clear(&place, &event).await;
        // A crash may have left targets without moves: the next mover opens those.
        let rested = async || {
            let wanted = place.broker.status().await.expect("asked").servers.on_the_move;
            wanted == 0 && place.broker.moves_under_way().await.expect("listed").is_empty()
        };
        until(mover.run(), rested).await;
        mover.release().await;
        consistent(&place).await;
        if !crashed {
            break;
        }
    }
    // The number of polls of a run depends on the machine: on a slow one, a poll finds more answers.
    assert!(crashes >= 10, "{crashes} awaits");
}

#[tokio::test]
async fn replacement_continues_after_a_minute_without_postgres() {
    let mut place = Place::alone(&town()).await;
    let mover = mover(&place.broker, SimulatedAgent::default());
    fails(&place, Scope::Server, "s000", RANDOM).await;
    until(mover.run(), async || count(&counts(&place).await, ReplacementState::Bound) == 1).await;
    fails(&place, Scope::Server, "s002", RANDOM).await;
    let broker = place.broker.clone();
    let bound = async || {
        let counted = broker.replacement_times().await;
        counted.is_ok_and(|of| of.counts.get(&ReplacementState::Bound) == Some(&2))
    };
    let seen = async {
        place.stop_postgres().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        place.start_postgres().await;
        until(std::future::pending::<()>(), bound).await;
    };
    tokio::select! {
        never = mover.run() => never,
        () = seen => {}
    }
    consistent(&place).await;
}
