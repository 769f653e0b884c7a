//! A property of publishers that race each other and a mover.

use crate::harness::Database;
use crate::publish::{publication, target};
use crate::regions::{at, small};
use broker::{ImportOptions, PublishError, Seq, TargetRow, TargetVersion};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What one of them does: the servers it wants to give, and to whom.
type Wish = BTreeMap<usize, Option<bool>>;

fn row(server: usize, generation: i64, to: Option<bool>) -> TargetRow {
    let holder = to.map(|web| if web { "web" } else { "odd buffer" });
    target(&format!("s{:03}", 10 + server), generation, holder)
}

/// Each publisher repeatedly reads the region, decides on it, and publishes, all at the same time, while a
/// mover binds servers. Afterwards every version has exactly one publisher, every server is as the last
/// publication or binding about it says, and the trail has all of it.
async fn race(wishes: Vec<Wish>, bound: Vec<usize>) {
    let database = Database::new().await;
    let broker = &database.broker;
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let publishers = wishes.iter().enumerate().map(|(number, wish)| {
        let broker = broker.clone();
        async move {
            let (mut tries, mut id) = (0_u128, number as u128 * 1_000);
            loop {
                id += 1;
                let export = broker.export(Some(at(0))).await.expect("exported");
                let position = |server: &str| {
                    export.parts.servers.iter().position(|row| row.server_id.as_ref() == server)
                };
                let mut rows: Vec<TargetRow> =
                    wish.iter().map(|(&server, &to)| row(server, 0, to)).collect();
                for row in &mut rows {
                    row.generation = export.generations[position(&row.server).expect("there")];
                }
                let publication = publication(id, export.version.0, rows);
                match broker.publish("racer", &publication).await {
                    Ok(published) => return (published, number),
                    // Refused: what was left beside a server that was bound meanwhile breaks a rule.
                    Err(PublishError::Stale { .. } | PublishError::Refused { .. }) => tries += 1,
                    Err(error) => panic!("{error}"),
                }
                assert!(tries < 100, "one publisher wins each round, so all do in the end");
            }
        }
    });
    let binder = async {
        for server in &bound {
            let mut db = database.connect().await;
            // As a mover does: the binding and its target in one step.
            let name = format!("s{:03}", 10 + server);
            sqlx::query(
                "UPDATE servers SET current_reservation_id = \
                 (SELECT reservation_id FROM reservations WHERE reservation = 'web'), \
                 target_pending = false, target_reservation_id = NULL, target_version = NULL \
                 WHERE server = $1",
            )
            .bind(name)
            .execute(&mut db)
            .await
            .expect("bound");
        }
    };
    let (published, ()) = tokio::join!(futures_util::future::join_all(publishers), binder);

    let mut versions: Vec<TargetVersion> = published.iter().map(|(p, _)| p.version).collect();
    versions.sort_unstable();
    let expected: Vec<TargetVersion> =
        (0..wishes.len()).map(|n| TargetVersion(2 + i64::try_from(n).expect("few"))).collect();
    assert_eq!(versions, expected, "one publisher each, no hole");
    for (published, number) in &published {
        let counted = published.taken + published.skipped + published.kept_back;
        assert_eq!(counted, wishes[*number].len() as u64);
    }
    // Servers without a binding are as the last publication about them says.
    let mut in_order = published;
    in_order.sort_by_key(|(published, _)| published.version);
    let mut last: BTreeMap<usize, Option<bool>> = BTreeMap::new();
    for (published, number) in &in_order {
        let kept_back = |server: usize| {
            let name = row(server, 0, None).server;
            published.kept_back_servers.iter().any(|of| of.server == name)
        };
        let taken = wishes[*number].iter().filter(|(server, _)| !kept_back(**server));
        last.extend(taken.map(|(server, to)| (*server, *to)));
    }
    let parts = broker.export(Some(at(0))).await.expect("exported").parts;
    for (server, to) in last.iter().filter(|(server, _)| !bound.contains(server)) {
        let wanted = row(*server, 0, *to);
        let found = parts.servers.iter().find(|row| row.server_id == wanted.server);
        let found = found.expect("there");
        let holder = if found.target_pending {
            &found.target_reservation
        } else {
            &found.current_reservation
        };
        assert_eq!(*holder, wanted.target, "{}", wanted.server);
    }
    assert!(broker.trail_is_whole().await.expect("counted"));
    let told = broker.trail(Seq(1), 1_000).await.expect("a trail");
    let told: Vec<String> = told.into_iter().filter_map(|entry| entry.subject).collect();
    let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
    assert_eq!(told, versions, "in the order they came");
}

fn wish() -> impl Strategy<Value = Wish> {
    proptest::collection::btree_map(0_usize..12, proptest::option::of(any::<bool>()), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn racing_publishers_form_one_chain(
        wishes in proptest::collection::vec(wish(), 2..6),
        bound in proptest::collection::vec(0_usize..12, 0..4),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(race(wishes, bound));
    }
}
