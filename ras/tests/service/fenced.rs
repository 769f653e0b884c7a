//! Movers that were stopped and go on, or that have one name: what hosts are asked, and by whom.

use crate::place::{PATIENCE, Place, Running, until_true};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An order as automation gets it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    pub epoch: i64,
    pub server: String,
    pub id: String,
    pub step: String,
    pub host_profile: Option<String>,
}

/// Automation that does as the contract says: it keeps the highest epoch of each server and refuses
/// orders of an earlier one.
#[derive(Default)]
pub struct Automation {
    /// Every order that arrived whole, and when.
    pub received: Vec<Order>,
    pub received_at: Vec<DateTime<Utc>>,
    pub epochs: BTreeMap<String, i64>,
    /// What was done.
    pub done: Vec<Order>,
    /// How often each server says that it is under way before it is done.
    pub busy: usize,
}

impl Automation {
    fn answer(&mut self, order: Order) -> String {
        self.received.push(order.clone());
        #[expect(clippy::disallowed_methods, reason = "when it arrived, not when a region is")]
        self.received_at.push(Utc::now());
        let seen = self.epochs.entry(order.server.clone()).or_insert(order.epoch);
        if *seen > order.epoch {
            return format!(r#"{{"state":"outdated","epoch":{seen}}}"#);
        }
        *seen = order.epoch;
        let asked =
            self.received.iter().filter(|of| (&of.id, &of.step) == (&order.id, &order.step));
        if asked.count() <= self.busy {
            return r#"{"state":"under_way","again_after_seconds":1}"#.to_owned();
        }
        self.done.push(order);
        r#"{"state":"done"}"#.to_owned()
    }
}

/// Automation over HTTP that takes a while for each answer.
pub fn automation() -> (String, Arc<Mutex<Automation>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/steps", listener.local_addr().expect("an address"));
    let all = Arc::new(Mutex::new(Automation::default()));
    let shared = Arc::clone(&all);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || serve(stream, &shared));
        }
    });
    (url, all)
}

fn serve(mut stream: TcpStream, all: &Mutex<Automation>) {
    let mut asked = Vec::new();
    let mut buffer = [0; 65536];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        asked.extend_from_slice(&buffer[..read]);
        let Some(end) = asked.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&asked[..end]).to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).expect("a length");
        let length = length.split("\r\n").next().expect("a line").parse::<usize>();
        let whole = end + 4 + length.expect("a number");
        if asked.len() < whole {
            continue;
        }
        let order: Value = serde_json::from_slice(&asked[end + 4..whole]).expect("JSON");
        asked.drain(..whole);
        let text = |of: &str| order[of].as_str().expect("a text").to_owned();
        let order = Order {
            epoch: order["epoch"].as_i64().expect("an epoch"),
            server: text("server"),
            id: text("move"),
            step: text("step"),
            host_profile: order["host_profile"].as_str().map(str::to_owned),
        };
        let answer = all.lock().expect("whole").answer(order);
        std::thread::sleep(Duration::from_millis(300));
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
        if stream.write_all((head + &answer).as_bytes()).is_err() {
            return;
        }
    }
}

/// A region without a mover whose servers are all to get an owner, a rack after the other.
fn wanted(place: &Place) -> Running {
    let options = "--servers 1000 --reservations 4 --msbs 6 --state cold --seed 3";
    place.ras(&format!("snapshot generate {options} --out region -q")).code(0);
    let limits =
        "[mover.limits]\nregion = { idle = { at_once = 40 }, in_use = { at_once = 40 } }\n";
    fs::write(place.path("ras.toml"), limits).expect("written");
    let up = place.start("up region --data data --listen none --schedule never --deadline 5s");
    assert_eq!(crate::solves::solve_and_wait(place)["version"], 2);
    up
}

fn under_way(place: &Place) -> usize {
    let moves = place.json("ops moves --data data");
    moves["under_way"].as_u64().expect("a number") as usize
}

fn acting(place: &Place) -> String {
    place.json("ops moves --data data")["acting"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn resumed_mover_sends_no_requests() {
    let place = Place::new();
    let up = wanted(&place);
    let (url, all) = automation();
    let mover = format!("mover --data data --config ras.toml --agent {url} --agent-unsigned");
    let first = place.start(&mover);
    let until = Instant::now() + PATIENCE;
    until_true("it asks", until, || all.lock().expect("whole").received.len() >= 60);
    let second = place.start(&mover);
    first.signal("-STOP");
    let stopped = acting(&place);
    let epoch = all.lock().expect("whole").received.last().expect("an order").epoch;
    let until = Instant::now() + PATIENCE;
    until_true("another takes over and binds all", until, || {
        all.lock().expect("whole").epochs.values().any(|seen| *seen > epoch)
            && under_way(&place) == 0
    });
    let before = all.lock().expect("whole").received.len();
    first.signal("-CONT");
    std::thread::sleep(Duration::from_secs(6));
    let all = all.lock().expect("whole");
    let late = &all.received[before..];
    let late_done = late.iter().filter(|order| all.done.contains(order)).count();
    println!("{stopped} was stopped at {before} orders; after it went on: {late:?}");
    assert_eq!((late.len(), late_done), (0, 0), "orders of a mover that was stopped: {late:?}");
    // No step was done twice, and none by an earlier mover after a later one.
    let mut highest: BTreeMap<&str, i64> = BTreeMap::new();
    for order in &all.done {
        let seen = highest.entry(&order.server).or_insert(order.epoch);
        assert!(*seen <= order.epoch, "{order:?} after epoch {seen}");
        *seen = order.epoch;
    }
    drop(all);
    first.stop();
    second.stop();
    up.stop();
}

/// A window counts what is stored: a mover that is killed takes nothing of it along.
#[test]
fn window_limit_holds_across_kills() {
    let place = Place::new();
    let up = wanted(&place);
    let limits = "[mover.limits]\nregion = { idle = { at_once = 20, per_window = 100 }, in_use = { per_window = 100 } }\n";
    fs::write(place.path("ras.toml"), limits).expect("written");
    let (url, all) = automation();
    let mover = format!("mover --data data --config ras.toml --agent {url} --agent-unsigned");
    let moves = || {
        let all = all.lock().expect("whole");
        all.received.iter().map(|order| order.id.clone()).collect::<BTreeSet<_>>().len()
    };
    for enough in [30, 60] {
        let mut killed = place.start(&mover);
        until_true("it asks", Instant::now() + PATIENCE, || moves() >= enough);
        killed.signal("-KILL");
        killed.child.wait().expect("it ended");
        // Another has taken over, which takes a lease.
    }
    let last = place.start(&mover);
    until_true("all that may begin have", Instant::now() + PATIENCE, || moves() >= 100);
    std::thread::sleep(Duration::from_secs(4));
    println!("{} moves were asked for in a window of 100, through two kills", moves());
    assert_eq!(moves(), 100);
    last.stop();
    up.stop();
}

/// The reference for automation as a program: it keeps the highest epoch of each server in a file, which it
/// replaces before it acts, and refuses an earlier one. In `docs/operations/host-agents.md` as well.
const PROGRAM: &str = r#"#!/bin/sh
# Given: the step, the server; the order as JSON on standard input.
state=STATE
epoch=$(sed 's/.*"epoch":\([0-9]*\).*/\1/')
exec 9>"$state/$2.lock"; flock 9
seen=$(cat "$state/$2.epoch" 2>/dev/null || echo 0)
if [ "$epoch" -lt "$seen" ]; then echo "$epoch $1 $2" >> "$state/refused"; exit 5; fi
echo "$epoch" > "$state/$2.new" && sync "$state/$2.new" && mv "$state/$2.new" "$state/$2.epoch"
echo "$epoch $1 $2" >> "$state/done"
"#;

#[test]
fn program_agent_refuses_an_earlier_mover() {
    let place = Place::new();
    let state = place.path("hosts");
    fs::create_dir(&state).expect("made");
    let program = place.path("agent");
    fs::write(&program, PROGRAM.replace("STATE", &state.display().to_string())).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
    let said = |epoch: i64, server: &str| {
        let order = format!(
            r#"{{"move":"m","step":"clean_up","server":"{server}","source":null,"target":null,"host_profile":null,"version":9,"epoch":{epoch}}}"#
        );
        let mut command = place.program(&program.display().to_string());
        let command = command.args(["clean_up", server]).stdin(std::process::Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        child.stdin.take().expect("piped").write_all(order.as_bytes()).expect("given");
        child.wait().expect("it ends").code()
    };
    assert_eq!(said(4, "s1"), Some(0));
    assert_eq!(said(6, "s1"), Some(0), "another mover");
    assert_eq!(said(5, "s1"), Some(5), "an earlier one");
    assert_eq!(said(6, "s1"), Some(0), "again");
    assert_eq!(said(5, "s2"), Some(0), "another server");
    let done = fs::read_to_string(state.join("done")).expect("a log");
    assert_eq!(done.lines().count(), 4, "{done}");
    // And with movers of the binary, one after the other.
    let up = wanted(&place);
    let mover = place.start(&format!(
        "mover --data data --config ras.toml --agent program:{}",
        program.display()
    ));
    let until = Instant::now() + PATIENCE;
    until_true("all is carried out", until, || under_way(&place) == 0);
    assert!(
        !state.join("refused").exists()
            || fs::read_to_string(state.join("refused")).expect("text") == "5 clean_up s1\n"
    );
    mover.stop();
    up.stop();
}
