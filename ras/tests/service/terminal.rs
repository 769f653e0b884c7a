//! The command line on a terminal, and before a server as it really is: behind TLS, or busy.

use crate::owners::{SHOP, server, serving, types, url};
use crate::place::{PATIENCE, Place, Running, until_true};
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The binary on a terminal of its own, which the program `script` gives it.
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    seen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    /// Begins; afterwards the terminal says how it was left.
    pub fn of(place: &Place, line: &str) -> Terminal {
        let ras = env!("CARGO_BIN_EXE_ras");
        let line = format!(
            "trap : INT; stty cols 100 rows 30; {ras} {line}; code=$?; stty -a; exit $code"
        );
        let mut script = place.program("script");
        script.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]);
        script.env("SHELL", "/bin/sh").env("TERM", "xterm").env_remove("NO_COLOR");
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = script.spawn().expect("util-linux has it");
        let keys = child.stdin.take().expect("piped");
        let mut shown = child.stdout.take().expect("piped");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let screen = Arc::clone(&seen);
        let reader = std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(count) = shown.read(&mut some) {
                if count == 0 {
                    return;
                }
                screen.lock().expect("read").extend_from_slice(&some[..count]);
            }
        });
        Terminal { child, keys, seen, reader }
    }

    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("read")).into_owned()
    }

    /// Types once something is asked.
    pub fn answer(&mut self, question: &str, keys: &str) {
        until_true(question, Instant::now() + PATIENCE, || self.seen().contains(question));
        self.keys.write_all(keys.as_bytes()).expect("typed");
        self.keys.flush().expect("typed");
    }

    /// How it ended, all that was shown, and whether the terminal shows again what is typed.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let until = Instant::now() + PATIENCE;
        until_true("it ends", until, || self.child.try_wait().expect("waits").is_some());
        let code = self.child.wait().expect("it ended").code();
        drop(self.keys);
        self.reader.join().expect("read");
        let seen = String::from_utf8_lossy(&self.seen.lock().expect("read")).into_owned();
        let (said, left) = seen.split_once("speed ").unwrap_or_else(|| panic!("no end: {seen}"));
        assert!(left.contains(" echo ") && left.contains(" icanon"), "left otherwise: {left}");
        (code, said.to_owned())
    }
}

#[test]
fn typed_token_is_not_echoed() {
    let place = Place::new();
    let up = server(&place, "--no-worker");
    let line = format!("login --server {}", url(&up));
    let question = format!("token for {}: ", url(&up));
    let login = place.path(".config/ras/login.toml");

    let mut ended = Terminal::of(&place, &line);
    ended.answer(&question, "0123456789\u{3}");
    let (code, said) = ended.ended();
    assert!(code == Some(1) && said.contains("login failed"), "{code:?} {said}");
    assert!(!said.contains("0123456789") && !login.exists(), "{said}");

    // With a key that was wrong, and taken back.
    let (first, rest) = SHOP.split_at(4);
    let mut noted = Terminal::of(&place, &line);
    noted.answer(&question, &format!("{first}x\u{7f}{rest}\r"));
    let (code, said) = noted.ended();
    assert!(code == Some(0) && said.contains("shop of shop"), "{code:?} {said}");
    assert!(!said.contains(first), "{said}");
    assert!(fs::read_to_string(&login).expect("noted").contains(SHOP));
    up.stop();
}

#[test]
fn changes_are_previewed_confirmed_and_awaited() {
    let place = Place::new();
    let up = server(&place, "--agent simulated --deadline 5s");
    place.ras(&format!("login --server {} --token-file shop.token", url(&up))).code(0);
    let values: Vec<String> = types(&place).iter().map(|ty| format!("{ty}: 1.0")).collect();
    let request = format!(
        "reservation: web\nowner: shop\ncapacity_rru: 4\nrru: {{{}}}\nlabels: {{tier: front}}\n\
         churn_contract: {{in_use_percent: 2, window_seconds: 86400}}\n",
        values.join(", ")
    );
    fs::write(place.path("web.yaml"), request).expect("written");
    for no in ["n\r", "\r", "yes please\r"] {
        let mut asked = Terminal::of(&place, "apply --request web.yaml");
        asked.answer("apply it? [y/N] ", no);
        let (code, said) = asked.ended();
        assert!(code == Some(2) && said.contains("nothing was done"), "{code:?} {said}");
        assert!(said.contains("granted in full"), "what would be: {said}");
    }
    place.ras("get reservation web").fails_with(&["unknown_reservation"]);

    let mut asked = Terminal::of(&place, "apply --request web.yaml");
    asked.answer("apply it? [y/N] ", "y\r");
    let (code, said) = asked.ended();
    assert!(
        code == Some(0) && said.contains("granted; `ras list reservations`"),
        "{code:?} {said}"
    );
    let web = place.json("get reservation web");
    assert_eq!((&web["promised_rru"], &web["labels"]["tier"]), (&4.0.into(), &"front".into()));
    assert_eq!(web["churn_contract"]["in_use_percent"], 2.0, "{web}");

    // On a terminal the answer is waited for, with a line that lives; elsewhere the line is plain.
    let (code, said) = Terminal::of(&place, "request resize web --rru 5").ended();
    assert!(code == Some(0) && said.contains("web is granted: 5 RRU"), "{code:?} {said}");
    let line = said.find("request for web: submitted").expect("it waits");
    assert!(said[line..].contains("\u{1b}[2K"), "it is taken away again: {said:?}");
    // Without waiting the document is the same, and the server decides later.
    let submitted = place.json("request resize web --rru 5 --dry-run");
    assert_eq!(submitted["valid"], true);
    let submitted = place.json("request resize web --rru 5.5 --no-wait");
    assert!(submitted["state"].is_string() && submitted["asked"].is_object(), "{submitted}");
    let id = submitted["request"].as_str().expect("an id").to_owned();
    until_true("it is decided", Instant::now() + PATIENCE, || {
        place.json(&format!("get request {id}"))["state"] == "granted"
    });
    let plain = place.ras("request resize web --rru 6 --wait").code(0);
    assert!(plain.stderr().contains("request for web: submitted\n"), "{}", plain.stderr());
    assert!(!plain.stderr().contains('\u{1b}') && !plain.stdout().contains("submitted"));
    let mut gone = Terminal::of(&place, "request delete web");
    gone.answer("delete web (6 RRU guaranteed", "y\r");
    assert_eq!(gone.ended().0, Some(0));
    up.stop();
}

#[test]
fn ctrl_c_says_what_goes_on_and_how_to_cancel_it() {
    let place = Place::new();
    // Nothing decides it: the wait does not end.
    let up = server(&place, "--no-worker");
    place.ras(&format!("login --server {} --token-file shop.token", url(&up))).code(0);
    let values: String = types(&place).iter().map(|ty| format!(" --value {ty}=1.0")).collect();
    let start = "--start 2126-01-01T00:00:00Z --wait";
    let line = format!("request create web --owner shop --rru 4{values} {start}");
    let mut waits = Terminal::of(&place, &line);
    waits.answer("request for web: submitted", "\u{3}");
    let (code, said) = waits.ended();
    assert_eq!(code, Some(130), "{said}");
    let (_, hint) = said.split_once("the request for web goes on: ").expect("it says so");
    let commands: Vec<&str> = hint.split('`').skip(1).step_by(2).collect();
    let [follow, cancel] = commands[..] else { panic!("two commands: {said}") };
    let follow = follow.trim_start_matches("ras ");
    assert_eq!(place.json(follow)["state"], "submitted", "{said}");
    place.ras(cancel.trim_start_matches("ras ")).code(0);
    assert_eq!(place.json(follow)["state"], "cancelled");
    up.stop();
}

#[test]
fn new_store_begins_with_its_pages_a_token_and_what_to_type() {
    let place = Place::new();
    place.region("region");
    let mut up = Terminal::of(
        &place,
        "up region --data data --listen 127.0.0.1:0 --schedule never --agent simulated",
    );
    up.answer("ready;", "");
    let said = up.seen().replace('\r', "");
    let (url, _) = said.split_once("/\n").expect("the first line has an address");
    let url = url.strip_prefix("A new region. Its pages: ").expect("the pages come first");
    let (_, rest) = said.split_once("only once:\n").expect("a token");
    let token = rest.lines().next().expect("a token").trim();
    let mut me = place.command(&format!("list tokens --server {url} --output json"));
    let me = me.env("RAS_TOKEN", token).output().expect("it starts");
    let me = String::from_utf8_lossy(&me.stdout).into_owned();
    assert!(me.contains("\"first\"") && me.contains("\"admin\""), "{me}");
    // What it says to type next works, word for word.
    let (_, next) = said.split_once("Next, in another terminal").expect("what to type");
    let next: Vec<&str> =
        next.lines().skip(1).map_while(|line| line.strip_prefix("  ras ")).collect();
    assert_eq!(next.len(), 3, "{said}");
    for line in next {
        place.ras(line).code(0);
    }
    up.answer("ready;", "\u{3}");
    assert_eq!(up.ended().0, Some(0));
    // Only once, and never into a log.
    let again = place.start("up --data data --listen 127.0.0.1:0 --schedule never --no-worker");
    assert!(again.said.starts_with("pages ") && !again.said.contains("token"), "{}", again.said);
    again.stop();
    let other =
        place.start("up region --data other --listen 127.0.0.1:0 --schedule never --no-worker");
    assert!(!other.said.contains("only once"), "{}", other.said);
    assert!(other.said.contains("ras token create --name first"), "{}", other.said);
    other.stop();
}

fn certificate(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../capacity-portal/tests/http/tls", name].iter().collect()
}

#[test]
fn tls_server_is_verified_by_its_certificate() {
    let place = Place::new();
    let portal = format!(
        "[portal.tls]\ncertificate = {:?}\nkey = {:?}\n",
        certificate("one.cert.pem"),
        certificate("one.key.pem")
    );
    let up: Running = serving(&place, &portal, "--no-worker");
    let at = up.said.split("https://").nth(1).expect("it says where");
    let at = at.split(['/', ' ', '\n']).next().expect("an address").to_owned();
    let with = |line: &str, certificate_of: &str| {
        let mut command = place.command(line);
        command.env("SSL_CERT_FILE", certificate(certificate_of)).env_remove("SSL_CERT_DIR");
        command.output().expect("it starts")
    };
    let login = format!("login --server https://{at} --token-file root.token");
    let said = with(&login, "two.cert.pem");
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(1), "{error}");
    assert!(error.contains("cannot reach server") && error.contains("certificate"), "{error}");
    for line in [&*login, "list solves", "status", "ops moves"] {
        let said = with(line, "one.cert.pem");
        let error = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(0), "{line}: {error}");
        assert!(!error.contains("unencrypted"), "{error}");
    }
    up.stop();
}

#[test]
fn busy_server_is_retried_after_its_delay() {
    let place = Place::new();
    let up = serving(&place, "requests_per_second = 1", "--no-worker");
    place.ras(&format!("login --server {} --token-file root.token", url(&up))).code(0);
    let began = Instant::now();
    let asked: Vec<Child> = (0..4)
        .map(|_| {
            let mut command = place.command("list trail --output json");
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("it starts")
        })
        .collect();
    let mut again = 0;
    for child in asked {
        let output = child.wait_with_output().expect("it ends");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{error}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("snapshot_loaded"));
        // What it says, word for word, and no sooner.
        again += error
            .matches("too many requests per second (too_many_requests); retrying for up to 90 s")
            .count();
    }
    assert!(again >= 1, "four at once, and one a second is answered");
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    // What is not known again is not sent twice, but what was not heard is.
    let plan =
        "ops maintenance plan --rack m01-r004 --from now --for 1h --recall-minutes 20 --why fans";
    let planned: Vec<Child> = ["one", "other", "third"]
        .map(|why| {
            let mut command = place.command(&format!("{plan}-{why} --share 100%"));
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("it starts")
        })
        .into();
    for child in planned {
        let output = child.wait_with_output().expect("it ends");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 2)), "{error}");
    }
    up.stop();
}
