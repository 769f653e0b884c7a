//! The allocator API: the list of a reservation's servers, and following it.

use crate::harness::Database;
use crate::publish::{publication, target};
use crate::regions::{at, small};
use broker::{
    AllocatorView, Broker, Epoch, ImportOptions, MoveReason, MoverInstance, Report,
    ReservationError, ReservedFilter, ReservedServer, Seq, ServerChange, ServerState, Watcher,
};
use fleet::{Rru, Scope, UnavailabilityKind};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const HOLDERS: [&str; 4] = ["web", "odd buffer", "shared-buffer/even", "spare"];

async fn with_small() -> Database {
    let database = Database::new().await;
    let broker = &database.broker;
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    database
}

/// The servers of a reservation, in pages of three.
async fn listed(view: &AllocatorView, reservation: &str) -> BTreeMap<String, ReservedServer> {
    let (mut all, mut after) = (BTreeMap::new(), String::new());
    loop {
        let page = view.servers(reservation, &after, 3).await.expect("a page");
        assert!(page.servers.is_sorted_by(|a, b| a.server < b.server));
        assert_eq!(page.totals.is_some(), after.is_empty());
        all.extend(page.servers.into_iter().map(|row| (row.server.to_string(), row)));
        match page.next {
            Some(next) => after = next.to_string(),
            None => return all,
        }
    }
}

fn states(of: &BTreeMap<String, ReservedServer>) -> Vec<(&str, ServerState)> {
    of.iter().map(|(server, row)| (server.as_str(), row.state)).collect()
}

#[tokio::test]
async fn reserved_server_has_one_state() {
    use ServerState::{Arriving, Available, Borrowed, InMaintenance, Leaving, OnLoan, Unavailable};
    let database = with_small().await;
    let broker = &database.broker;
    let view = AllocatorView::new(broker.clone());
    // Long over, by the clock: e1 and s010 alone are out of use.
    database
        .execute(
            "UPDATE servers SET loan_reservation_id = (SELECT reservation_id FROM \
        reservations WHERE reservation = 'spare') WHERE server = 's002'",
        )
        .await;
    let report = |event: &str, scope, name: &str, kind| Report {
        event: event.into(),
        scope,
        scope_id: name.into(),
        kind,
        started_at: at(0),
        ended_at: None,
    };
    let reports = [
        report("down", Scope::Server, "s001", UnavailabilityKind::Software),
        report("work", Scope::Rack, "rack1", UnavailabilityKind::PlannedMaintenance),
    ];
    broker.report_unavailability("watch", &reports).await.expect("stored");
    let web = listed(&view, "web").await;
    assert_eq!(
        states(&web),
        [
            ("s000", Available),
            ("s001", Unavailable),
            ("s002", OnLoan),
            ("s004", InMaintenance),
            ("s005", InMaintenance),
            ("s006", InMaintenance),
            ("s007", Leaving),
            ("tab new/line.N ü", Available),
        ]
    );
    assert!(!web["s006"].bound && web["s007"].bound);
    assert_eq!(web["s002"].loaned_to.as_deref(), Some("spare"));
    assert_eq!((&*web["s001"].rack, &*web["s001"].datacenter), ("rack0", "dc0"));
    assert_eq!((web["s000"].rru, web["s001"].rru), (Rru(1_000_000), Rru(1_250_000)));
    let spare = listed(&view, "spare").await;
    assert_eq!(states(&spare), [("s002", Borrowed), ("s008", Borrowed)]);

    // In one MSB, of one type: the same rows, and no others.
    let of = |pick: fn(&ReservedServer) -> String| {
        web.values().map(pick).collect::<std::collections::BTreeSet<_>>()
    };
    let (msbs, types) = (of(|row| row.msb.to_string()), of(|row| row.hardware_type.to_string()));
    assert!(types.len() > 1, "{types:?}");
    for msb in msbs.iter().map(Some).chain([None]) {
        for hardware_type in types.iter().map(Some).chain([None]) {
            let filter =
                ReservedFilter { msb: msb.cloned(), hardware_type: hardware_type.cloned() };
            let page = view.servers_matching("web", &filter, "", 100).await.expect("a page");
            let wanted = web.values().filter(|row| {
                msb.is_none_or(|msb| *msb == *row.msb)
                    && hardware_type.is_none_or(|ty| *ty == *row.hardware_type)
            });
            assert!(page.servers.iter().eq(wanted), "{filter:?}: {:?}", page.servers);
        }
    }
    let nowhere = ReservedFilter { msb: Some("nowhere".to_owned()), hardware_type: None };
    let page = view.servers_matching("web", &nowhere, "", 9).await.expect("a page");
    assert!(page.servers.is_empty() && page.next.is_none());

    let page = view.servers("web", "", 100).await.expect("a page");
    let totals = page.totals.expect("the first");
    assert_eq!(page.seq, Seq(3));
    assert_eq!(totals.capacity, Rru(6_958_984));
    assert_eq!(totals.available, Rru(1_000_000 + 1_250_000), "s000 and the odd one");
    // All servers of web are in msb0, except s001, which is down, and s006, which is still arriving.
    assert_eq!(totals.embedded_buffer, Rru(3 * 1_000_000 + 3 * 1_250_000));

    let ended = [Report { ended_at: Some(at(1)), ..reports[1].clone() }];
    broker.report_unavailability("watch", &ended).await.expect("stored");
    assert_eq!(listed(&view, "web").await["s006"].state, Arriving);
    let error = view.servers("unknown", "", 1).await.expect_err("none");
    assert!(matches!(error, ReservationError::Unknown { .. }), "{error}");
}

/// A reader's picture of a reservation.
struct Reader {
    watcher: Watcher,
    picture: BTreeMap<String, ReservedServer>,
    seq: Seq,
    resets: u32,
}

impl Reader {
    async fn begin(view: &AllocatorView, reservation: &str) -> Reader {
        let seq = view.servers(reservation, "", 100).await.expect("a page").seq;
        let picture = listed(view, reservation).await;
        Reader { watcher: Watcher::new(reservation, seq), picture, seq, resets: 0 }
    }

    /// Cut off, it knows its picture and the last number, and nothing else.
    fn resume(&mut self, reservation: &str) {
        self.watcher = Watcher::new(reservation, self.seq);
    }

    async fn catch_up(&mut self, broker: &Broker, view: &AllocatorView, reservation: &str) {
        loop {
            let look = broker.poll_changes(&mut self.watcher).await.expect("looked");
            if look.reset {
                self.resets += 1;
                self.picture = listed(view, reservation).await;
            }
            for change in look.changes {
                match change {
                    ServerChange::Server(row) => {
                        self.picture.insert(row.server.to_string(), row);
                    }
                    ServerChange::Gone(server) => drop(self.picture.remove(&*server)),
                }
            }
            self.seq = look.seq;
            if !look.more && !look.again {
                return;
            }
        }
    }
}

/// What may happen to a region.
#[derive(Clone, Debug)]
enum Step {
    Publish(usize, Option<usize>),
    Bind,
    GiveUp,
    Event(usize, usize, Option<i64>),
    Use(usize, bool),
    Lend(usize, bool),
    /// An announced event begins or ends, by the clock.
    Clock(usize),
    Read(usize),
    Resume,
    Load,
}

fn step() -> impl Strategy<Value = Step> {
    let server = || 0_usize..24;
    prop_oneof![
        6 => (server(), proptest::option::of(0_usize..3)).prop_map(|(s, to)| Step::Publish(s, to)),
        4 => Just(Step::Bind),
        1 => Just(Step::GiveUp),
        4 => (0_usize..6, 0_usize..4, proptest::option::of(0_i64..9))
            .prop_map(|(event, scope, end)| Step::Event(event, scope, end)),
        2 => (server(), any::<bool>()).prop_map(|(s, used)| Step::Use(s, used)),
        3 => (server(), any::<bool>()).prop_map(|(s, lend)| Step::Lend(s, lend)),
        1 => server().prop_map(Step::Clock),
        3 => (0_usize..4).prop_map(Step::Read),
        1 => Just(Step::Resume),
        1 => Just(Step::Load),
    ]
}

struct World {
    database: Database,
    epoch: Epoch,
    publications: u128,
}

impl World {
    async fn take(&mut self, step: &Step) {
        let broker = &self.database.broker;
        let name = |number: &usize| match number {
            3 => "tab new/line.N ü".to_owned(),
            number => format!("s{number:03}"),
        };
        match step {
            Step::Publish(server, to) => {
                let export = broker.export(None).await.expect("exported");
                let place = |row: &fleet::ServerRow| *row.server_id == *name(server);
                let place = export.parts.servers.iter().position(place).expect("there");
                let generation = export.generations[place];
                let row = target(&name(server), generation, to.map(|to| HOLDERS[to]));
                self.publications += 1;
                let publication = publication(self.publications, export.version.0, vec![row]);
                broker.publish("test", &publication).await.expect("published");
            }
            Step::Bind | Step::GiveUp => {
                broker.open_moves("mover", self.epoch, broker::Wanted::All).await.expect("opened");
                let moves = broker.moves_under_way().await.expect("listed");
                let ids: Vec<_> = moves.iter().take(2).map(|of| of.id).collect();
                if matches!(step, Step::Bind) {
                    broker.bind_moves("mover", self.epoch, &ids).await.expect("bound");
                } else if let Some(id) = ids.first() {
                    let reason = MoveReason::HostRefused;
                    let done = broker.give_move_up("mover", self.epoch, *id, reason, "no").await;
                    done.expect("asked");
                }
            }
            Step::Event(event, scope, end) => {
                let (scope, scope_id) = [
                    (Scope::Server, name(event)),
                    (Scope::Rack, format!("rack{event}")),
                    (Scope::Msb, format!("msb{}", event % 3)),
                    (Scope::Datacenter, format!("dc{}", event % 2)),
                ][*scope]
                    .clone();
                let kind = if event.is_multiple_of(2) {
                    UnavailabilityKind::PlannedMaintenance
                } else {
                    UnavailabilityKind::RandomFailure
                };
                let report = Report {
                    event: format!("of {} {scope_id}", scope.as_str()).into(),
                    scope,
                    scope_id: scope_id.into(),
                    kind,
                    started_at: at(0),
                    ended_at: end.map(at),
                };
                broker.report_unavailability("watch", &[report]).await.expect("stored");
            }
            Step::Use(server, used) => {
                let rows = [(name(server).into(), *used)];
                broker.report_usage("twine", &rows).await.expect("stored");
            }
            Step::Lend(server, lend) => {
                let (to, action) = if *lend {
                    (
                        "(SELECT reservation_id FROM reservations WHERE reservation = 'spare')",
                        "lent",
                    )
                } else {
                    ("NULL", "recalled")
                };
                let name = name(server).replace('\'', "''");
                let sql = format!(
                    "BEGIN; UPDATE servers SET loan_reservation_id = {to} WHERE server = '{name}'; \
                     INSERT INTO audit_trail (actor, action, subject, detail) VALUES ('lender', \
                     'servers_{action}', 'spare', jsonb_build_object('servers', \
                     jsonb_build_array('{name}'))); COMMIT"
                );
                self.database.execute(&sql).await;
            }
            Step::Clock(server) => {
                let now = broker.clock().await.expect("asked");
                let report = Report {
                    event: format!("soon {}", now.timestamp_micros()).into(),
                    scope: Scope::Server,
                    scope_id: name(server).into(),
                    kind: UnavailabilityKind::Software,
                    started_at: now + Duration::from_millis(20),
                    ended_at: Some(now + Duration::from_millis(60)),
                };
                broker.report_unavailability("watch", &[report]).await.expect("stored");
            }
            Step::Load => {
                let options = ImportOptions {
                    accept_contradictions: true,
                    force: true,
                    ..Default::default()
                };
                broker.load("test", &small(), options).await.expect("loaded");
            }
            Step::Read(_) | Step::Resume => {}
        }
    }
}

/// A first page from the cache equals one read now without a cache.
async fn same_as_new(broker: &Broker, view: &AllocatorView) {
    let other = broker.apart(None);
    let new = AllocatorView::new(other.clone());
    for reservation in HOLDERS {
        let page =
            async |of: &AllocatorView| of.servers(reservation, "", 100).await.expect("a page");
        // The clock may change something between two of them, but not between any two.
        let mut attempts = 0;
        loop {
            let (kept, now) = (page(view).await, page(&new).await);
            if kept == now {
                break;
            }
            attempts += 1;
            assert!(attempts < 10, "{now:?}\nkept: {kept:?}");
        }
    }
    other.close().await;
}

/// Readers who came at different times, and one who was cut off, all have the same picture in the
/// end as a list has.
async fn follow(steps: Vec<Step>, reservation: &str) {
    let database = with_small().await;
    let broker = database.broker.clone();
    let view = AllocatorView::new(broker.clone());
    let epoch = broker
        .lease_mover(&MoverInstance::new("first"), Duration::from_secs(600))
        .await
        .expect("asked");
    let epoch = epoch.expect("no other mover is active");
    let mut world = World { database, epoch, publications: 0 };
    let mut readers = vec![Reader::begin(&view, reservation).await];
    for (number, step) in steps.iter().enumerate() {
        world.take(step).await;
        if number % 4 == 3 {
            same_as_new(&broker, &view).await;
        }
        if number == steps.len() / 3 {
            readers.push(Reader::begin(&view, reservation).await);
            readers.push(Reader::begin(&view, reservation).await);
        }
        match step {
            Step::Read(reader) => {
                if let Some(reader) = readers.get_mut(*reader) {
                    reader.catch_up(&broker, &view, reservation).await;
                }
            }
            Step::Resume => readers.iter_mut().for_each(|reader| reader.resume(reservation)),
            _ => {}
        }
    }
    readers[0].resume(reservation);
    // What was announced is over.
    tokio::time::sleep(Duration::from_millis(80)).await;
    let list = listed(&view, reservation).await;
    for reader in &mut readers {
        reader.catch_up(&broker, &view, reservation).await;
        assert_eq!(reader.picture, list);
    }
    assert!(broker.trail_is_whole().await.expect("asked"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn watcher_agrees_with_the_list(
        steps in proptest::collection::vec(step(), 10..40),
        reservation in 0_usize..4,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(follow(steps, HOLDERS[reservation]));
    }
}

#[tokio::test]
async fn cached_page_is_read_again_after_a_change() {
    let database = with_small().await;
    let broker = &database.broker;
    let view = AllocatorView::new(broker.clone());
    let page = async || view.servers("web", "", 100).await.expect("a page");
    let before = page().await;
    // Written without an entry in the trail: the tables have it, the cached page does not.
    let sql = "UPDATE servers SET in_use = NOT in_use WHERE server = 's000'";
    database.execute(sql).await;
    assert_eq!(page().await, before, "kept");
    broker.report_usage("twine", &[("s012".into(), true)]).await.expect("stored");
    let kept = page().await;
    assert_eq!((kept.seq, kept.servers), (Seq(2), before.servers.clone()), "another's server");
    let used = !before.servers[1].in_use;
    let rows = [(before.servers[1].server.clone(), used)];
    broker.report_usage("twine", &rows).await.expect("stored");
    let reread = page().await;
    assert_eq!(reread.seq, Seq(3));
    assert_eq!(reread.servers[0].in_use, !before.servers[0].in_use, "read again");
    assert_eq!(reread.servers[1].in_use, used);
}

#[tokio::test]
async fn watcher_too_far_behind_is_reset() {
    let database = with_small().await;
    let broker = &database.broker;
    for from in [0, 7, -3, i64::MIN, i64::MAX] {
        let mut watcher = Watcher::new("web", Seq(from));
        let look = broker.poll_changes(&mut watcher).await.expect("looked");
        assert_eq!((look.reset, look.seq, look.more), (true, Seq(1), false), "from {from}");
        let look = broker.poll_changes(&mut watcher).await.expect("looked");
        assert!(!look.reset && look.changes.is_empty(), "and goes on from there");
    }
    // Nothing is told of what is another's, and nothing of what is known already.
    let mut watcher = Watcher::new("web", Seq(1));
    broker
        .report_usage("twine", &[("s012".into(), true), ("s000".into(), false)])
        .await
        .expect("stored");
    let look = broker.poll_changes(&mut watcher).await.expect("looked");
    assert_eq!(look.changes.len(), 1, "{look:?}");
    assert_eq!(look.seq, Seq(2));
    assert!(broker.poll_changes(&mut watcher).await.expect("looked").changes.is_empty());
}
