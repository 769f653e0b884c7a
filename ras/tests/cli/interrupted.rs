//! Deadlines, Ctrl-C, full disks and a deleted executable: what is left then.

use crate::folder::Folder;
use serde_json::Value;
use std::fs;
use std::process::Command;
use testkit::program::Done;

#[test]
fn zero_deadline_keeps_todays_assignment() {
    let place = Folder::new();
    place.region("region");
    let done = place.ras("solve region --out result --deadline 0").code_in(&[0, 2]);
    assert!(done.stderr().contains("the result is today's assignment"), "{}", done.stderr());
    let report = place.ras("result audit region result --output json").code(0).json();
    assert_eq!(report["audit"]["moves"]["in_use"], 0);
    assert_eq!(report["audit"]["moves"]["acquired"], 0);
}

/// The shell refuses files beyond a size, as a full disk would; the signal that comes with it is
/// ignored.
#[cfg(unix)]
fn with_little_room(place: &Folder, line: &str) -> Done {
    let script = format!("trap '' XFSZ; ulimit -f 4; exec {} {line}", env!("CARGO_BIN_EXE_ras"));
    let output = Command::new("/bin/sh")
        .args(["-c", &script])
        .current_dir(place.0.path())
        .output()
        .expect("the shell starts");
    Done { line: line.to_owned(), output }
}

#[cfg(unix)]
#[test]
fn full_disk_is_an_error_without_partial_files() {
    let place = Folder::new();
    place.region("region");
    let before = place.names();
    with_little_room(&place, "snapshot generate --servers 5000 --out other").fails_with(&["other"]);
    with_little_room(&place, "solve region --out result").fails_with(&["result"]);
    assert_eq!(place.names(), before, "nothing was written");
    place.ras("solve region --out result --gap 1% -q").code_in(&[0, 2]);
    let result = fs::read(place.path("result/assignment.parquet")).expect("a result");
    with_little_room(&place, "solve region --out result --gap 1% --scale-requests 0.5")
        .fails_with(&["result"]);
    let after = fs::read(place.path("result/assignment.parquet")).expect("a result");
    assert!(result == after, "the earlier result stands");
    with_little_room(&place, "result report region result --out page.html")
        .fails_with(&["page.html"]);
    assert!(!place.path("page.html").exists());
}

/// Starts a solve of several seconds and waits for its first sign of life.
#[cfg(unix)]
fn solve_in_the_background(
    place: &Folder,
) -> (std::process::Child, std::io::Lines<std::io::BufReader<std::process::ChildStderr>>) {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    place
        .ras("snapshot generate --servers 20000 --reservations 80 --state steady --out region")
        .code(0);
    let mut child = Command::new(env!("CARGO_BIN_EXE_ras"))
        .args(["solve", "region", "--out", "result", "--gap", "0"])
        .current_dir(place.0.path())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let first = lines.next().expect("it says something").expect("text");
    assert!(first.starts_with("phase 1"), "{first}");
    // From the first line on today's assignment is on disk.
    place.ras("result audit region result").code(0);
    (child, lines)
}

#[cfg(unix)]
fn press_ctrl_c(child: &std::process::Child) {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill is there").success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_solve_with_last_incumbent() {
    let place = Folder::new();
    let (mut child, lines) = solve_in_the_background(&place);
    press_ctrl_c(&child);
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let code = child.wait().expect("it ends").code();
    assert!(matches!(code, Some(0 | 2)), "{code:?}: {rest:?}");
    place.ras("result audit region result").code(0);
    let text = fs::read_to_string(place.path("result/report.json")).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let ending = report["ending"].as_str().expect("a word");
    assert!(
        report["termination"] == "interrupted" || ending == "unsolved",
        "{} {ending}",
        report["termination"]
    );
}

#[cfg(unix)]
#[test]
fn second_ctrl_c_exits_at_once_and_keeps_files() {
    let place = Folder::new();
    let (mut child, lines) = solve_in_the_background(&place);
    press_ctrl_c(&child);
    press_ctrl_c(&child);
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let code = child.wait().expect("it ends").code();
    // Two signals that come together may be seen as one.
    assert!(matches!(code, Some(0 | 2 | 130)), "{code:?}: {rest:?}");
    place.ras("result audit region result").code(0);
}

#[test]
fn result_is_written_by_the_deadline() {
    let place = Folder::new();
    place.ras("snapshot generate --servers 20000 --reservations 80 --out region").code(0);
    let report = place.ras_json("solve region --out result --gap 0 --deadline 2s");
    let seconds = report["seconds"]["total"].as_f64().expect("a number");
    assert!(seconds < 2.0, "{seconds}");
    place.ras("result audit region result").code(0);
}

/// As after an update while it runs.
#[test]
#[cfg(target_os = "linux")]
fn deleted_executable_still_starts_highs() {
    let place = Folder::new();
    place.region("region");
    let copy = place.path("copy");
    fs::copy(env!("CARGO_BIN_EXE_ras"), &copy).expect("copies");
    let mut solve = Command::new(&copy);
    solve
        .args(["solve", "region", "--out", "result", "--deadline", "20s", "--quiet"])
        .current_dir(place.0.path());
    let mut solve = solve.spawn().expect("the binary starts");
    fs::remove_file(&copy).expect("removes");
    assert!(matches!(solve.wait().expect("it ends").code(), Some(0 | 2)));
    let report = fs::read_to_string(place.path("result/report.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert!(report["phase1"]["lp_value"].is_number(), "HiGHS solved no LP: {}", report["phase1"]);
}
