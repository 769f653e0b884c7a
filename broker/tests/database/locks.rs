//! Edits of the region beside transactions that lock the same tables in another order.

use crate::harness::{Database, execute};
use crate::regions::small;
use broker::{EditError, ImportOptions, Missing};
use fleet::Coverage;
use fleet::edit::{ServerEdit, ServerPlan};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How many connections wait for a lock of a table.
const WAITING: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'";

const LIMIT: Duration = Duration::from_secs(20);

async fn loaded() -> Database {
    let database = Database::new().await;
    let (missing, coverage) = (Missing::Keep, Coverage::WHOLE);
    let options = ImportOptions { missing, accept_contradictions: false, force: false, coverage };
    database.broker.load("test", &small(), options).await.expect("loaded");
    database
}

/// Starts removing a free server; returns once that waits for a lock.
async fn begin_edit(database: &Database) -> JoinHandle<Result<ServerPlan, EditError>> {
    let broker = database.broker.clone();
    let edit = tokio::spawn(async move {
        let free = ServerEdit::Remove(vec!["s023".into()]);
        broker.edit_servers("test", &free, false, None).await
    });
    while database.number(WAITING).await == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    edit
}

#[tokio::test]
async fn edit_and_report_in_opposite_lock_order_succeed() {
    let database = loaded().await;
    // The edit waits for the last table it locks, and holds all the others.
    let mut report = database.connect().await;
    execute(&mut report, "BEGIN; LOCK TABLE unavailability IN ROW EXCLUSIVE MODE").await;
    let edit = begin_edit(&database).await;
    // The report goes on to a table that the edit holds.
    let sql = "UPDATE servers SET in_use = in_use WHERE server = 's020'; COMMIT";
    timeout(LIMIT, execute(&mut report, sql)).await.expect("the report is not held up");
    let edited = timeout(LIMIT, edit).await.expect("the edit goes on").expect("it ends");
    assert_eq!(edited.expect("the edit is made").servers, 1);
}

#[tokio::test]
async fn edit_waits_for_a_long_transaction() {
    let database = loaded().await;
    let mut report = database.connect().await;
    execute(&mut report, "BEGIN; LOCK TABLE servers IN ROW EXCLUSIVE MODE").await;
    let edit = begin_edit(&database).await;
    sleep(Duration::from_secs(2)).await;
    assert!(!edit.is_finished(), "the edit gave up before the other transaction ended");
    execute(&mut report, "COMMIT").await;
    let edited = timeout(LIMIT, edit).await.expect("the edit goes on").expect("it ends");
    assert_eq!(edited.expect("the edit is made").servers, 1);
}
