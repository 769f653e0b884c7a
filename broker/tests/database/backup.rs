//! Backup and restore, as docs/operations/backup-and-restore.md says.

use crate::harness::Database;
use crate::publish::{publication, target};
use crate::regions::{at, small};
use broker::{Broker, Entry, Export, ImportOptions, Seq};
use std::path::Path;
use std::process::Command;

fn run(program: &str, socket: &Path, arguments: &[&str]) {
    let mut command = Command::new(program);
    command.arg("-h").arg(socket).args(["-U", "ras"]).args(arguments);
    let ended = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(ended.status.success(), "{program}: {}", String::from_utf8_lossy(&ended.stderr));
}

async fn all(broker: &Broker) -> (Export, Vec<Entry>) {
    let export = broker.export(Some(at(0))).await.expect("exported");
    (export, broker.trail(Seq(0), 1_000).await.expect("read"))
}

#[tokio::test]
async fn dump_restores_all_versions_and_the_trail() {
    let database = Database::new().await;
    let options = ImportOptions::default();
    database.broker.load("test", &small(), options).await.expect("loaded");
    let publish = async |broker: &Broker, id, parent, generation| {
        let made = publication(id, parent, vec![target("s000", generation, None)]);
        broker.publish("solver", &made).await.expect("published")
    };
    publish(&database.broker, 1, 1, 1).await;
    let before = all(&database.broker).await;
    let dump = tempfile::NamedTempFile::new().expect("a file");
    let file = dump.path().to_str().expect("text");
    run("pg_dump", &database.socket(), &["-Fc", "-f", file, database.name()]);
    // What comes after the dump is lost with the database.
    publish(&database.broker, 2, 2, 2).await;

    let restored = Database::bare().await;
    let arguments = ["-d", restored.name(), "--exit-on-error", file];
    run("pg_restore", &restored.socket(), &arguments);
    let broker = Broker::open(&restored.address).await.expect("it can be opened");
    let after = all(&broker).await;
    assert_eq!(after.0.version.0, 2);
    assert_eq!((after.0.parts, after.0.generations), (before.0.parts, before.0.generations));
    assert!(!after.1.is_empty());
    assert_eq!(after.1, before.1);
    assert_eq!(broker.check().await.expect("checked"), [""; 0]);
    assert!(broker.trail_is_whole().await.expect("checked"));
    // It goes on where it was.
    assert_eq!(publish(&broker, 2, 2, 2).await.version.0, 3);
    assert!(all(&broker).await.1.last().expect("one").seq > before.0.seq);
    broker.close().await;
}
