//! Decisions between solves and the limits of policies in force.

use crate::place::{Place, settings, town, until};
use broker::{EmergencyId, EmergencyRequest, EmergencyState, ReplacementState, Seq};
use decisions::limits::{RegionLimits, Room};
use fleet::{RegionSnapshot, ReservationIx, Rru, Scope, Server, ServerIx, UnavailabilityKind};
use online_mover::agent::simulated::SimulatedAgent;
use online_mover::{Mover, MoverSettings};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use testkit::health::{Health, Occurrence};
use testkit::postgres::json_of;
use tokio::sync::watch;

/// Each server of some racks counts one for web, up to a limit.
#[derive(Debug)]
struct RacksOfWeb {
    region: RegionSnapshot,
    racks: &'static [&'static str],
    most: i64,
}

impl RegionLimits for RacksOfWeb {
    fn region(&self) -> &RegionSnapshot {
        &self.region
    }

    fn limit(&self, _: u32) -> (&str, i64) {
        ("racks_of_web: owner=web", self.most)
    }

    fn kind(&self, server: ServerIx) -> u32 {
        self.region.servers[server.ix()].rack.ix() as u32
    }

    fn counts(&self, server: ServerIx, holder: ReservationIx) -> &[(u32, i64)] {
        let rack = &self.region.racks[self.region.servers[server.ix()].rack.ix()].id;
        let is_web = self.region.reservation("web") == Some(holder);
        if is_web && self.racks.contains(&&**rack) { &[(0, 1)] } else { &[] }
    }
}

/// A town without borrowers, so that no spare is lent.
fn quiet_town() -> RegionSnapshot {
    let mut parts = town().to_parts();
    let lends = |name: &str| name == "batch" || name == "trial";
    parts.reservations.retain(|of| !lends(&of.reservation_id));
    parts.rru.retain(|of| !lends(&of.reservation_id));
    testkit::rows::snapshot(&parts)
}

/// A mover in a town, where web may hold `more` servers of these racks beside those that it has.
async fn mover(
    racks: &'static [&'static str],
    more: i64,
) -> (Place, Mover<SimulatedAgent>, watch::Sender<Room>) {
    let region = quiet_town();
    let place = Place::with(&region).await;
    let mut of = RacksOfWeb { region, racks, most: 0 };
    let counts = |(at, server): (usize, &Server)| {
        server.holder().is_some_and(|holder| !of.counts(ServerIx::new(at), holder).is_empty())
    };
    let held = of.region.servers.iter().enumerate().filter(|of| counts(*of)).count() as i64;
    of.most = held + more;
    let settings = MoverSettings { settle: Duration::from_millis(50), ..settings() };
    let (sender, room) = watch::channel(Room::new(Arc::new(of), vec![held]));
    let mover = Mover::new(place.broker.clone(), SimulatedAgent::default(), settings, "m".into());
    (place, mover.within(room), sender)
}

async fn fails(place: &Place, name: &str) {
    let (scope, kind) = (Scope::Server, UnavailabilityKind::RandomFailure);
    let started_at = place.broker.clock().await.expect("asked");
    let (event, scope_id) = (format!("{name} fails").into(), name.into());
    let occurrence = Occurrence { event, scope, scope_id, kind, started_at };
    place.broker.record_unavailability("monitoring", &occurrence).await.expect("recorded");
}

/// The detail of the one entry of the trail with this action.
async fn detail(place: &Place, action: &str) -> Value {
    let entries = place.broker.trail(Seq(0), 1_000).await.expect("read");
    let mut of = entries.into_iter().filter(|of| of.action.as_str() == action);
    let detail = of.next().expect("it is in the trail").detail;
    assert!(of.next().is_none(), "once");
    json_of(&detail)
}

/// The spare of s000, and the limits that the trail says it exceeds.
async fn replaced(racks: &'static [&'static str], more: i64) -> (String, Value) {
    let (place, mover, _sender) = mover(racks, more).await;
    fails(&place, "s000").await;
    let states = async || place.broker.replacement_times().await.expect("counted").counts;
    until(mover.run(), async || states().await.contains_key(&ReplacementState::Bound)).await;
    let row = place.broker.replacements(&[], 9).await.expect("listed").remove(0);
    let detail = detail(&place, "server_replaced").await;
    place.at_rest().await;
    (row.spare.expect("a spare").to_string(), detail["exceeds"].clone())
}

/// s100 and s106 are of one type, in one MSB, and in racks 02 and 05.
#[tokio::test]
async fn of_two_spares_that_differ_only_in_a_policy_the_one_that_keeps_it_serves() {
    assert_eq!(replaced(&[], 0).await, ("s100".to_owned(), Value::Null), "the first by name");
    // s104 is in rack 04 of another MSB, where web holds as little.
    assert_eq!(replaced(&["rack02", "rack04"], 0).await, ("s106".to_owned(), Value::Null));
}

#[tokio::test]
async fn where_no_spare_keeps_a_policy_the_server_is_replaced_and_the_trail_says_so() {
    // All spares are in these racks, and the failed server is not.
    let (spare, exceeds) = replaced(&["rack02", "rack03", "rack04", "rack05"], 0).await;
    assert_eq!((&*spare, exceeds), ("s100", json!(["racks_of_web: owner=web"])));
    // Here it leaves the room that its spare takes.
    let with_its_own = &["rack00", "rack02", "rack03", "rack04", "rack05"];
    assert_eq!(replaced(with_its_own, 0).await, ("s100".to_owned(), Value::Null));
}

#[tokio::test]
async fn an_emergency_keeps_a_policy_that_it_need_not_exceed() {
    let granted = async |racks, more| {
        let (place, mover, _sender) = mover(racks, more).await;
        let id = EmergencyId::now_v7();
        let (amount, why) = (Rru::units(2), "site outage");
        let request = EmergencyRequest {
            id,
            reservation: "web",
            amount,
            why,
            max_servers: 4,
            beyond_limits: false,
        };
        place.broker.ask_emergency("web's owner", &request).await.expect("asked");
        let answered = async || {
            let found = place.broker.emergency(id).await.expect("read").expect("there");
            found.state == EmergencyState::Granted
        };
        until(mover.run(), answered).await;
        let detail = detail(&place, "emergency_granted").await;
        let names = detail["servers"].as_array().expect("servers").clone();
        let region = quiet_town();
        let rack = |name: &Value| {
            let server = region.server(name.as_str().expect("a name")).expect("there");
            region.racks[region.servers[server.ix()].rack.ix()].id.to_string()
        };
        (names.iter().map(rack).collect::<Vec<_>>(), detail["exceeds"].clone())
    };
    let (racks, exceeds) = granted(&[], 0).await;
    assert_eq!((racks.len(), &exceeds), (1, &Value::Null), "one server of type y");
    let first: &'static str = Box::leak(racks[0].clone().into_boxed_str());
    let (other, exceeds) = granted(Box::leak(Box::new([first])), 0).await;
    assert!(other[0] != first && exceeds.is_null(), "{other:?}, {exceeds}");
}
