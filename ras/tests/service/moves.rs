//! Targets carried out by the binary: agents, the stop switch, traces.

use crate::place::{PATIENCE, Place, Running, until_true};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Instant;

fn moves(place: &Place) -> Value {
    place.json("ops moves --data data")
}

/// Moves under way that do not wait for a repair, and how many do: the region has failed servers, whose
/// places others have taken.
fn under_way(place: &Place) -> (Vec<Value>, usize) {
    let rows = moves(place)["moves"].as_array().expect("rows").clone();
    let all = rows.len();
    let rows: Vec<Value> =
        rows.into_iter().filter(|row| row["waits_for"] != "out_of_use").collect();
    let waiting = all - rows.len();
    (rows, waiting)
}

fn carried_out(place: &Place) {
    let until = Instant::now() + PATIENCE;
    until_true("all is carried out", until, || {
        let (rows, waiting) = under_way(place);
        rows.is_empty() && crate::solves::status(place)["servers"]["on_the_move"] == waiting
    });
}

fn ended(place: &Place) -> BTreeMap<String, i64> {
    let ended = moves(place)["ended"].as_array().expect("rows").clone();
    let row = |row: &Value| {
        (
            row["state"].as_str().expect("a word").to_owned(),
            row["count"].as_i64().expect("a number"),
        )
    };
    ended.iter().map(row).collect()
}

fn up(place: &Place, agent: &str) -> Running {
    place.start(&format!(
        "up region --data data --listen none --schedule never --deadline 5s --agent {agent}"
    ))
}

/// A collector of traces: what it was sent, as bytes.
fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let received = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&received);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let all = Arc::clone(&all);
            std::thread::spawn(move || answer(stream, &all));
        }
    });
    (url, received)
}

fn answer(mut stream: std::net::TcpStream, all: &Mutex<Vec<u8>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 65536];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        request.extend_from_slice(&buffer[..read]);
        let Some(end) = request.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
        let length = head
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.split("\r\n").next()?.parse::<usize>().ok());
        if length.is_some_and(|length| request.len() >= end + 4 + length) {
            all.lock().expect("whole").append(&mut request);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
    }
}

#[test]
fn solve_is_executed_and_traced() {
    let place = Place::new();
    place.region("region");
    let (url, traces) = collector();
    let up = up(&place, &format!("simulated --otlp-endpoint {url}"));
    assert!(up.said.contains("simulated"), "{}", up.said);
    let solve = crate::solves::solve_and_wait(&place);
    assert_eq!(solve["version"], 2, "{solve}");
    // Each server is where the solve put it, or waits for its repair.
    carried_out(&place);
    let ended = ended(&place);
    assert!(ended["bound"] > 2 && !ended.contains_key("failed"), "{ended:?}");
    let seen = crate::solves::status(&place);
    assert_eq!(seen["broken"], serde_json::json!([]));
    // The next solve starts from there. It may improve on a solve that ended by its deadline.
    let again = crate::solves::solve_and_wait(&place);
    assert_eq!(again["version"], 3);
    carried_out(&place);
    up.stop();
    let traces = String::from_utf8_lossy(&traces.lock().expect("whole")).into_owned();
    assert!(traces.starts_with("POST /v1/traces HTTP/1.1"), "{}", &traces[..100]);
    for span in ["job", "export", "archive snapshot", "audit", "publish", "step of a move"] {
        assert!(traces.contains(span), "no span {span:?}");
    }
}

#[test]
fn program_agents_execute_or_refuse_steps() {
    let place = Place::new();
    place.region("region");
    let log = place.path("log");
    // One server refuses to be wiped, one answers "under way" until an operator helps.
    let script = format!(
        "#!/bin/sh\necho \"$1 $2\" >> {log}\n\
         if [ \"$1\" = clean_up ] && mkdir {refused} 2>/dev/null; then echo no power; exit 4; fi\n\
         if [ \"$1\" = reconfigure ] && [ ! -e {helped} ]; then exit 3; fi\n",
        log = log.display(),
        refused = place.path("refused").display(),
        helped = place.path("helped").display(),
    );
    let program = place.path("agent");
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
    let up = up(&place, &format!("program:{}", program.display()));
    assert_eq!(crate::solves::solve_and_wait(&place)["version"], 2);
    let until = Instant::now() + PATIENCE;
    until_true("one is refused", until, || ended(&place).get("failed") == Some(&1));
    let waits =
        |rows: &[Value]| !rows.is_empty() && rows.iter().all(|row| row["state"] == "reconfiguring");
    until_true("the others wait", until, || waits(&under_way(&place).0));
    place.ras("ops moves --stuck --data data").code(0);
    let shown = place.ras("ops moves --data data").code(0).stdout();
    assert!(shown.contains("reconfiguring") && shown.contains("host_refused"), "{shown}");
    place.ras("ops moves stop trouble --data data").code(0);
    assert_eq!(moves(&place)["stopped"]["why"], "trouble");
    fs::write(place.path("helped"), "").expect("written");
    place.ras("ops moves resume --data data").code(0);
    let until = Instant::now() + PATIENCE;
    until_true("all is carried out", until, || under_way(&place).0.is_empty());
    assert_eq!(crate::solves::status(&place)["broken"], serde_json::json!([]));
    let log = fs::read_to_string(log).expect("a log");
    for step in ["preempt ", "clean_up ", "reconfigure "] {
        assert!(log.lines().any(|line| line.starts_with(step)), "{step} in\n{log}");
    }
    up.stop();
}

#[test]
fn invalid_agent_is_refused() {
    let place = Place::new();
    place.region("region");
    place.ras("snapshot load region --data data -q").code(0);
    for (options, parts) in [
        ("", &["--agent"][..]),
        ("--agent somewhere", &["\"somewhere\"", "program:FILE"]),
        ("--agent program:/no/such", &["/no/such", "no such program"]),
        ("--agent http://", &["http://"]),
        ("--agent http://127.0.0.1:9/", &["unsigned", "--agent-key", "--agent-unsigned"]),
        ("--agent https://automation.example/", &["unsigned", "--agent-key"]),
        (
            "--agent http://automation.example/ --agent-unsigned",
            &["automation.example would go in clear", "--agent-cleartext"],
        ),
        ("--agent simulated --agent-key nowhere", &["key nowhere"]),
        ("--agent simulated --otlp-endpoint nonsense", &["--otlp-endpoint", "nonsense"]),
    ] {
        place.ras(&format!("mover --data data {options}")).fails_with(parts);
    }
}
