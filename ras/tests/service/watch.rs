//! `--watch`: what changes is shown, in a pipe and on a terminal, until Ctrl-C.

use crate::owners::{serving, types, url};
use crate::place::{PATIENCE, Place, until_true};
use crate::terminal::Terminal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

/// A command that goes on, and what it has printed.
struct Watch {
    child: Child,
    said: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Watch {
    fn of(place: &Place, line: &str) -> Watch {
        let mut command = place.command(&format!("{line} --watch"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut out = child.stdout.take().expect("piped");
        let said = Arc::new(Mutex::new(String::new()));
        let copy = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            let mut some = [0; 1024];
            while let Ok(count @ 1..) = out.read(&mut some) {
                *copy.lock().expect("text") += &String::from_utf8_lossy(&some[..count]);
            }
        });
        Watch { child, said, reader }
    }

    fn said(&self) -> String {
        self.said.lock().expect("text").clone()
    }

    fn shows(&self, part: &str) {
        until_true(part, Instant::now() + PATIENCE, || self.said().contains(part));
    }

    /// What it printed until Ctrl-C, which is no failure.
    fn interrupted(mut self) -> String {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
        let until = Instant::now() + PATIENCE;
        until_true("it ends", until, || self.child.try_wait().expect("waits").is_some());
        assert_eq!(self.child.wait().expect("it ended").code(), Some(0));
        self.reader.join().expect("read");
        self.said.lock().expect("text").clone()
    }
}

fn documents(said: &str) -> Vec<Value> {
    said.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

#[test]
fn watch_prints_what_changes_until_ctrl_c() {
    let place = Place::new();
    let up = serving(&place, "", "--agent simulated --deadline 5s");
    let list = Watch::of(&place, "list tokens --data data --columns token,state");
    let rows = Watch::of(&place, "list tokens --data data -o json");
    let token = |name: &str| {
        place.ras(&format!("token create --name {name} --role viewer --data data")).code(0);
    };
    token("one");
    list.shows("one");
    rows.shows("\"one\"");
    token("another");
    list.shows("another");
    rows.shows("another");
    let said = list.interrupted();
    assert_eq!(said.matches("one").count(), 1, "an unchanged row is printed once: {said}");
    assert_eq!(said.matches("state").count(), 1, "one header: {said}");
    let names: Vec<Value> =
        documents(&rows.interrupted()).iter().map(|of| of["name"].clone()).collect();
    assert_eq!(names, ["one", "another"]);

    // One thing: each state is a document, or the facts that changed.
    place.ras(&format!("login --server {} --token-file root.token", url(&up))).code(0);
    let ty = types(&place).join(",");
    let create = format!("request create web --owner team --servers 4 --hardware-types {ty}");
    place.ras(&format!("{create} --data data --wait")).code(0);
    let web = Watch::of(&place, "get reservation web --data data -o json");
    let facts = Watch::of(&place, "get reservation web --data data");
    let status = Watch::of(&place, "status --data data");
    let moves = Watch::of(&place, "ops moves --data data -o json");
    web.shows("web");
    facts.shows("owner ");
    status.shows("audit trail");
    moves.shows("\"stopped\":null");
    place.ras("ops moves stop fire --data data").code(0);
    let resize = format!("request resize web --servers 6 --hardware-types {ty} --data data --wait");
    place.ras(&resize).code(0);
    web.shows("\"promised_rru\":6");
    facts.shows("promised");
    until_true("its promise", Instant::now() + PATIENCE, || {
        facts.said().lines().any(|line| line.split_whitespace().eq(["promised", "6"]))
    });
    moves.shows("fire");
    let documents_of = |watch: Watch| documents(&watch.interrupted());
    let web = documents_of(web);
    let promised: Vec<f64> = web.iter().filter_map(|of| of["promised_rru"].as_f64()).collect();
    assert!(promised.len() == web.len() && promised.is_sorted(), "{promised:?}");
    assert!(web.windows(2).all(|pair| pair[0] != pair[1]), "an unchanged state is printed once");
    assert_eq!(facts.interrupted().matches("owner ").count(), 1);
    let moves = documents_of(moves);
    assert!(moves.len() >= 2 && moves.last().expect("one")["stopped"]["why"] == "fire");
    let status = status.interrupted();
    assert_eq!(status.matches("database ").count(), 1, "{status}");
    assert!(status.matches("audit trail").count() > 1, "{status}");

    // A terminal shows the last state in the place of the one before.
    let mut screen = Terminal::of(&place, "list tokens --data data --watch");
    screen.answer("watching; Ctrl-C ends it", "");
    token("third");
    screen.answer("third", "\u{3}");
    let (code, seen) = screen.ended();
    assert_eq!(code, Some(0), "{seen}");
    let (_, again) = seen.split_once("F\u{1b}[J").expect("it goes back to its first line");
    assert!(again.contains("another") && again.contains("third"), "the whole table: {again}");
    up.stop();
}

#[test]
fn watch_asks_only_for_what_has_changed_and_ends_with_its_reader() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let at = listener.local_addr().expect("an address");
    // What it sent as If-None-Match, request by request.
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("connected");
            let lines = BufReader::new(stream.try_clone().expect("cloned")).lines();
            let head = lines.map(|line| line.expect("text")).take_while(|line| !line.is_empty());
            let known = head
                .filter_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("if-none-match").then(|| value.to_owned())
                })
                .last();
            heard.lock().expect("requests").push(known.clone());
            let version = heard.lock().expect("requests").len() / 3;
            let etag = format!("\"{version}\"");
            let answer = if known.as_ref() == Some(&etag) {
                "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n".to_owned()
            } else {
                let body = format!(
                    "{{\"profile\":\"p\",\"rru\":{{\"C1\":{version}}},\"set_by\":\"a\",\
                     \"set_at\":\"2026-01-01T00:00:00Z\"}}"
                );
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: {etag}\r\n\
                     Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                )
            };
            stream.write_all(answer.as_bytes()).expect("sent");
        }
    });
    let watch = Watch::of(&place, &format!("get profile p --server http://{at} -o json"));
    watch.shows("\"C1\":2");
    let values: Vec<Value> =
        documents(&watch.interrupted()).iter().map(|of| of["rru"]["C1"].clone()).collect();
    assert_eq!(values[..3], [0, 1, 2], "once each");
    let asked = asked.lock().expect("requests").clone();
    assert_eq!(asked[0], None);
    assert_eq!(asked[1].as_deref(), Some("\"0\""), "{asked:?}");

    // `ras ... --watch | head -1` ends.
    let line = format!("get profile p --server http://{at} -o json --watch");
    let mut command = place.command(&line);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut first).expect("text");
    drop(out);
    let until = Instant::now() + PATIENCE;
    until_true("it ends", until, || child.try_wait().expect("waits").is_some());
    assert_eq!(child.wait().expect("it ended").code(), Some(0));
}
