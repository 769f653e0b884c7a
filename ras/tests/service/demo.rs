//! `ras demo --live`: what it tells has happened, on the real service, and nothing of it is left.

use crate::place::{PATIENCE, Place, until_true};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The answer of a server: status and body.
fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!("GET {path} HTTP/1.1\r\nHost: ras\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|of| of.parse().ok()).expect("a status");
    (status, answer.split_once("\r\n\r\n").expect("a body").1.to_owned())
}

#[test]
fn live_demo_plays_on_the_real_service_and_leaves_nothing() {
    let place = Place::new();
    let mut command = place.command("demo --live --pace 100ms --output json");
    let mut child = command.env("TMPDIR", place.path("")).stdout(Stdio::piped()).spawn();
    let child = child.as_mut().expect("it starts");
    let mut events: Vec<Value> = Vec::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    while events.last().is_none_or(|event| event["event"] != "played") {
        let mut line = String::new();
        assert!(out.read_line(&mut line).expect("text") > 0, "it ended after {events:?}");
        events.push(serde_json::from_str(&line).expect("a line is a document"));
    }
    let names: Vec<&str> = events.iter().filter_map(|of| of["event"].as_str()).collect();
    assert_eq!(
        names,
        ["region", "granted", "replaced", "refused", "solved", "msb_lost", "msb_back", "played"]
    );

    // Each page that it names is there, and what it tells is what the API says.
    let page = |of: &Value| of["page"].as_str().expect("a page").replace("http://", "");
    for event in &events {
        let page = page(event);
        let (address, path) = page.split_at(page.find('/').expect("a path"));
        assert_eq!(get(address, path).0, 200, "{event}");
    }
    let address = page(&events[0]).trim_end_matches('/').to_owned();
    let api =
        |path: &str| -> Value { serde_json::from_str(&get(&address, path).1).expect("a document") };
    let rows = |path: &str, rows: &str| api(path)[rows].as_array().expect("rows").clone();
    let requests = rows("/v1/requests?reservation=shop-web", "requests");
    let granted: Vec<&Value> = requests.iter().map(|of| &of["granted_rru"]).collect();
    assert_eq!(granted, [&Value::Null, &12.0.into()], "{requests:?}");
    assert_eq!(requests[0]["state"], "refused");
    let replaced = rows("/ops/v1/replacements", "replacements");
    let replaced: Vec<&Value> =
        replaced.iter().filter(|of| of["reservation"] == "shop-web").collect();
    assert!(replaced.len() >= 2, "{replaced:?}");
    for row in replaced.iter().filter(|of| of["state"] == "bound") {
        let told = events[2]["text"].as_str().expect("text");
        assert!(told.contains(row["server"].as_str().expect("a name")), "{told} {row}");
    }
    let outages = rows("/ops/v1/outages", "outages");
    assert!(outages.len() == 1 && !outages[0]["ended_at"].is_null(), "{outages:?}");
    assert!(events[5]["text"].to_string().contains(outages[0]["msb"].as_str().expect("a name")));
    // The loss may have begun another.
    let solve = page(&events[4]);
    let solve = solve.rsplit('/').next().expect("an id");
    assert_eq!(api(&format!("/ops/v1/solves/{solve}"))["state"], "published");

    // Ctrl-C ends it, and removes the folder with its Postgres.
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    until_true("it ends", Instant::now() + PATIENCE, || child.try_wait().expect("waits").is_some());
    assert_eq!(child.wait().expect("it ended").code(), Some(0));
    assert!(TcpStream::connect(&address).is_err(), "the server is gone");
    let left: Vec<_> = fs::read_dir(place.path("")).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn killed_demo_leaves_no_server() {
    let place = Place::new();
    let mut command = place.command("demo --live --pace 1m --output json");
    let mut child =
        command.env("TMPDIR", place.path("")).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut line).expect("text");
    let event: Value = serde_json::from_str(&line).expect("a document");
    let page = event["page"].as_str().expect("a page").replace("http://", "");
    let address = page.split('/').next().expect("an address").to_owned();
    assert!(TcpStream::connect(&address).is_ok(), "{event}");
    child.kill().expect("killed");
    child.wait().expect("it ended");
    let gone = || TcpStream::connect(&address).is_err();
    until_true("the server ends", Instant::now() + PATIENCE, gone);
}
