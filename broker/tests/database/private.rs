//! A Postgres of our own: first start, restarts, and everything that can be in the way.

use crate::harness::{chain, connect, execute, folder};
use crate::regions::small;
use broker::{Broker, ImportOptions, MIGRATOR};
use private_postgres::{PrivateError, PrivateOptions, PrivatePostgres};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

async fn start(folder: &TempDir) -> Result<PrivatePostgres, PrivateError> {
    PrivatePostgres::start(&PrivateOptions::new(folder.path())).await
}

async fn refused(options: &PrivateOptions) -> PrivateError {
    match PrivatePostgres::start(options).await {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn stop_keeps_the_data() {
    let folder = folder();
    let postgres = start(&folder).await.expect("the first start");
    assert_eq!(postgres.user().is_some(), geteuid().is_root());
    assert!(postgres.major() >= 14);
    let mode = fs::metadata(folder.path()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "only the owner may enter");
    let broker = Broker::open(&postgres.address()).await.expect("opened");
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let before = broker.export(Some(small().taken_at)).await.expect("exported");
    broker.close().await;
    let pid = postgres.pid();
    postgres.stop().await.expect("stopped");
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "it is gone");

    let postgres = start(&folder).await.expect("the second start");
    let broker = Broker::open(&postgres.address()).await.expect("opened");
    assert_eq!(broker.export(Some(small().taken_at)).await.expect("exported"), before);
    // Killed without a word: what was committed is there, and it starts again on its own remains.
    let pid = i32::try_from(postgres.pid()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::KILL).expect("killed");
    let mut postgres = postgres;
    postgres.ended().await;
    broker.close().await;
    drop(postgres);
    let postgres = start(&folder).await.expect("after a crash");
    let broker = Broker::open(&postgres.address()).await.expect("opened");
    assert_eq!(broker.export(Some(small().taken_at)).await.expect("exported"), before);
    broker.close().await;
    postgres.stop().await.expect("stopped");
}

/// Connections that come while it stops and send nothing are not waited for as long as a stop may take.
#[tokio::test]
async fn silent_client_does_not_block_stop() {
    let folder = folder();
    let postgres = start(&folder).await.expect("it starts");
    let mut db = connect(&postgres.address()).await;
    // Enough to write at the end that connections fall into the stop.
    execute(&mut db, "CREATE TABLE much AS SELECT generate_series(1, 2000000)").await;
    drop(db);
    let socket = folder.path().join("socket/.s.PGSQL.5432");
    let clients = tokio::spawn(async move {
        let mut clients = Vec::new();
        // Until nothing listens any more.
        while let Ok(client) = UnixStream::connect(&socket).await {
            clients.push(client);
            sleep(Duration::from_millis(2)).await;
        }
        clients.len()
    });
    let stopped = timeout(Duration::from_secs(40), postgres.stop()).await;
    stopped.expect("it stops soon").expect("it stops by itself");
    assert!(clients.await.expect("they connected") > 0);
}

#[tokio::test]
async fn folder_has_one_process_at_a_time() {
    let folder = folder();
    let postgres = start(&folder).await.expect("the first");
    let error = refused(&PrivateOptions::new(folder.path())).await;
    assert!(matches!(error, PrivateError::InUse { .. }), "{error}");
    postgres.stop().await.expect("stopped");
    // Dropped without being stopped, it ends by itself; the next one waits for that.
    let postgres = start(&folder).await.expect("again");
    drop(postgres);
    start(&folder).await.expect("after it").stop().await.expect("stopped");
}

#[tokio::test]
async fn incomplete_data_folder_is_created_again() {
    let folder = folder();
    let unfinished = folder.path().join("data.unfinished");
    fs::create_dir(&unfinished).expect("made");
    fs::write(unfinished.join("PG_VERSION"), "15\n").expect("written");
    let postgres = start(&folder).await.expect("it starts");
    let broker = Broker::open(&postgres.address()).await.expect("opened");
    assert!(MIGRATOR.iter().count() > 5);
    broker.close().await;
    postgres.stop().await.expect("stopped");
    assert!(!unfinished.exists());
}

/// The process id in a pid file may belong to any program by now: here to this one.
#[tokio::test]
async fn stale_pid_file_is_removed() {
    let folder = folder();
    start(&folder).await.expect("it starts").stop().await.expect("stopped");
    let file = folder.path().join("data/postmaster.pid");
    for pid in [std::process::id(), 4_194_303] {
        let data = folder.path().join("data");
        let text = format!("{pid}\n{}\n1767225600\n5432\n\n\n\nready\n", data.display());
        fs::write(&file, text).expect("written");
        let postgres = start(&folder).await.expect("it starts all the same");
        assert_ne!(postgres.pid(), pid);
        postgres.stop().await.expect("stopped");
    }
}

#[tokio::test]
async fn foreign_folder_is_left_alone() {
    let folder = folder();
    fs::write(folder.path().join("thesis.tex"), "").expect("written");
    let before = fs::metadata(folder.path()).expect("there");
    let error = refused(&PrivateOptions::new(folder.path())).await;
    assert!(matches!(&error, PrivateError::Occupied { stranger, .. } if stranger == "thesis.tex"));
    let after = fs::metadata(folder.path()).expect("there");
    assert_eq!((before.uid(), before.mode()), (after.uid(), after.mode()));
    assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1, "nothing was written");
}

/// A folder with programs that say and do what a test needs.
fn programs(postgres: &str, initdb: &str) -> TempDir {
    let programs = folder();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(programs.path(), open.clone()).expect("set");
    for (name, script) in [("postgres", postgres), ("initdb", initdb)] {
        let path = programs.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, open.clone()).expect("set");
    }
    programs
}

fn with(programs: &TempDir, folder: &TempDir) -> PrivateOptions {
    let programs = Some(programs.path().to_owned());
    PrivateOptions { programs, ..PrivateOptions::new(folder.path()) }
}

#[tokio::test]
async fn old_postgres_is_refused() {
    let (programs, folder) = (programs("echo 'postgres (PostgreSQL) 13.14'", "exit 1"), folder());
    let error = refused(&with(&programs, &folder)).await;
    assert!(matches!(error, PrivateError::TooOld { found: 13, .. }), "{error}");
    assert!(error.to_string().ends_with("this is Postgres 13; 14 or newer is needed"), "{error}");
}

#[tokio::test]
async fn missing_postgres_error_says_what_to_install() {
    let (empty, folder) = (folder(), folder());
    let error = refused(&with(&empty, &folder)).await;
    assert!(matches!(error, PrivateError::NotInstalled { .. }), "{error}");
    assert!(error.to_string().contains("apt-get install postgresql"), "{error}");
}

#[tokio::test]
async fn full_disk_is_reported() {
    let version = "echo 'postgres (PostgreSQL) 15.1'";
    let full = "echo 'initdb: error: could not write file: No space left on device' >&2; exit 1";
    let (programs, folder) = (programs(version, full), folder());
    let error = refused(&with(&programs, &folder)).await;
    assert!(matches!(error, PrivateError::DiskFull { .. }), "{error}");
    // And when it no longer is, it starts.
    start(&folder).await.expect("it starts").stop().await.expect("stopped");
    // One that is full at a start of the server.
    let full = "[ \"$1\" = --version ] && echo 'postgres (PostgreSQL) 15.1' && exit 0
        echo 'FATAL:  could not write lock file \"postmaster.pid\": No space left on device' >&2; exit 1";
    let major = fs::read_to_string(folder.path().join("data/PG_VERSION")).expect("a version");
    let programs = self::programs(&full.replace("15", major.trim()), "exit 1");
    let error = refused(&with(&programs, &folder)).await;
    assert!(matches!(error, PrivateError::DiskFull { .. }), "{error}");
}

#[tokio::test]
async fn program_messages_are_passed_on() {
    let version = "echo 'postgres (PostgreSQL) 15.1'";
    let (programs, folder) =
        (programs(version, "echo 'initdb: error: no luck' >&2; exit 1"), folder());
    let error = refused(&with(&programs, &folder)).await;
    assert!(chain(&error).ends_with("initdb fails: initdb: error: no luck"), "{error}");
    // Data that is damaged.
    fs::create_dir(folder.path().join("data")).expect("made");
    let error = refused(&PrivateOptions::new(folder.path())).await;
    assert!(error.to_string().contains("the data folder is damaged"), "{error}");
}

#[tokio::test]
async fn data_of_other_version_is_refused() {
    let folder = folder();
    let data = folder.path().join("data");
    fs::create_dir(&data).expect("made");
    fs::write(data.join("PG_VERSION"), "9\n").expect("written");
    let error = refused(&PrivateOptions::new(folder.path())).await;
    assert!(matches!(error, PrivateError::OtherMajor { data: 9, .. }), "{error}");
}

#[tokio::test]
async fn too_long_socket_path_is_refused() {
    let folder = folder();
    let long = folder.path().join("x".repeat(100));
    let error = refused(&PrivateOptions::new(long)).await;
    assert!(matches!(error, PrivateError::PathTooLong { .. }), "{error}");
}

/// Root reaches paths that `postgres`, the user it runs the server as, does not. Other users run it as
/// themselves.
#[tokio::test]
async fn unreachable_folder_is_refused() {
    let outer = folder();
    fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o700)).expect("set");
    let started = PrivatePostgres::start(&PrivateOptions::new(outer.path().join("inner"))).await;
    match started {
        Ok(postgres) if !geteuid().is_root() => postgres.stop().await.expect("it stops"),
        Ok(_) => panic!("root started a server in a folder that its user cannot reach"),
        Err(error) => assert!(matches!(error, PrivateError::OutOfReach { .. }), "{error}"),
    }
}

/// The server does not outlive a killed parent: its data is free again soon.
#[tokio::test]
async fn end_of_server_is_noticed() {
    let folder = folder();
    let mut postgres = start(&folder).await.expect("it starts");
    let pid = i32::try_from(postgres.pid()).ok().and_then(Pid::from_raw).expect("a pid");
    let waiting = tokio::time::timeout(Duration::from_millis(50), postgres.ended()).await;
    assert!(waiting.is_err(), "it runs");
    kill_process(pid, Signal::INT).expect("told to stop");
    tokio::time::timeout(Duration::from_secs(30), postgres.ended()).await.expect("noticed");
}
