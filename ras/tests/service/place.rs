//! A folder with a store in it, and the binary run on it.

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use testkit::program::Done;

/// How long anything here may take; a machine under load is slow.
pub const PATIENCE: Duration = Duration::from_secs(100);

static STARTED: AtomicU32 = AtomicU32::new(0);

pub struct Place(tempfile::TempDir);

impl Place {
    /// The path of a socket is short, and a Postgres that does not run as root must reach it.
    pub fn new() -> Place {
        let folder = tempfile::Builder::new().prefix("ras-").tempdir_in("/tmp").expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("set");
        Place(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The binary with words parted by spaces, working on the store `data`.
    pub fn command(&self, line: &str) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_ras"));
        command.args(line.split_whitespace());
        command
    }

    /// A command without the caller's environment.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.current_dir(self.0.path());
        for variable in ["RUST_LOG", "DATABASE_URL", "XDG_STATE_HOME", "RAS_PG_BIN", "USER"] {
            command.env_remove(variable);
        }
        for variable in ["RAS_SERVER", "RAS_TOKEN", "XDG_CONFIG_HOME"] {
            command.env_remove(variable);
        }
        // The developer may be logged in.
        command.env("HOME", self.0.path());
        command
    }

    pub fn ras(&self, line: &str) -> Done {
        Done::of(line, &mut self.command(line))
    }

    pub fn json(&self, line: &str) -> Value {
        self.ras(&format!("{line} --output json")).code_in(&[0, 2]).json()
    }

    /// The answer of the server in the data folder `data` to a request over its unix socket: status and body.
    pub fn local(&self, method: &str, path: &str) -> (u16, String) {
        let stream = UnixStream::connect(self.path("data/server/ras.sock")).expect("it listens");
        exchange(stream, &format!("{method} {path} HTTP/1.1\r\nContent-Length: 0\r\n"), "")
    }

    /// Version of the stored targets and number of stored servers, by an export.
    pub fn stored(&self, data: &str) -> (i64, u64) {
        let out = format!("stored-{}", STARTED.fetch_add(1, Ordering::Relaxed));
        let export = self.json(&format!("snapshot export {out} --data {data}"));
        let number = |member: &str| export[member].as_u64().expect("a number");
        (i64::try_from(number("version")).expect("a version"), number("servers"))
    }

    /// A small region where something is held.
    pub fn region(&self, name: &str) {
        let options = "--servers 1000 --reservations 6 --msbs 9 --state steady --seed 3";
        self.ras(&format!("snapshot generate {options} --out {name} -q")).code(0);
    }

    /// Starts something that runs until it is told to stop, and reads its first line.
    pub fn start(&self, line: &str) -> Running {
        let mut command = self.command(line);
        let errors_path = self.path(&format!("stderr-{}", STARTED.fetch_add(1, Ordering::Relaxed)));
        let errors = fs::File::create(&errors_path).expect("a file");
        let mut child =
            command.stdout(Stdio::piped()).stderr(errors).spawn().expect("the binary starts");
        let mut said = BufReader::new(child.stdout.take().expect("piped"));
        let mut text = String::new();
        let mut running = Running { child, said: String::new(), errors: errors_path };
        while !text.contains("ready;") {
            if said.read_line(&mut text).expect("text") == 0 {
                running.child.wait().expect("it ended");
                let errors = fs::read_to_string(&running.errors).expect("text");
                panic!("ras {line} ended:\n{text}\n{errors}");
            }
        }
        running.said = text;
        running
    }
}

/// Something that runs until told to stop; killed if a test ends before.
pub struct Running {
    pub child: Child,
    pub said: String,
    /// Its standard error.
    pub errors: PathBuf,
}

impl Running {
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().expect("kill").success());
    }

    /// Stops it as a person or the system would.
    pub fn stop(mut self) {
        self.signal("-TERM");
        let until = Instant::now() + PATIENCE;
        until_true("it stops", until, || self.child.try_wait().expect("waits").is_some());
        let code = self.child.wait().expect("it ended").code();
        assert_eq!(code, Some(0), "{}", self.said);
    }

    /// The answer to a question over HTTP: status code and body.
    pub fn get(&self, path: &str) -> (u16, String) {
        self.ask(&format!("GET {path} HTTP/1.1\r\n"), "")
    }

    /// The answer to something said with a token.
    pub fn post(&self, path: &str, token: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n"
        );
        self.ask(&head, body)
    }

    fn ask(&self, head: &str, body: &str) -> (u16, String) {
        let at = self.said.split("http://").nth(1).expect("it says where");
        let at = at.split('/').next().expect("an address");
        exchange(TcpStream::connect(at).expect("it listens"), head, body)
    }
}

/// Sends a request; returns status and body of the answer.
fn exchange(mut stream: impl Read + Write, head: &str, body: &str) -> (u16, String) {
    write!(stream, "{head}Host: ras\r\nConnection: close\r\n\r\n{body}").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
    (code, body)
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something, looking every few milliseconds.
pub fn until_true(what: &str, until: Instant, mut look: impl FnMut() -> bool) {
    while !look() {
        assert!(Instant::now() < until, "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
