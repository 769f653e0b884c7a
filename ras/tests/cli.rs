//! The real binary, end to end.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of one test, and the binary run in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("writes");
    }

    /// Runs the binary with words parted by spaces.
    fn ras(&self, line: &str) -> Done {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ras"));
        command.args(line.split_whitespace()).current_dir(self.0.path());
        for variable in ["RUST_LOG", "RAS_SERVER", "RAS_TOKEN", "XDG_CONFIG_HOME"] {
            command.env_remove(variable);
        }
        command.env("HOME", self.0.path());
        Done { line: line.to_owned(), output: command.output().expect("the binary starts") }
    }

    fn ras_json(&self, line: &str) -> Value {
        self.ras(&format!("{line} --output json")).code_in(&[0, 2]).json()
    }

    /// A small region where something is held.
    fn region(&self, name: &str) {
        let options = "--servers 1000 --reservations 6 --msbs 9 --state steady --seed 3";
        self.ras(&format!("snapshot generate {options} --out {name}")).code(0);
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .expect("the folder is there")
            .map(|entry| entry.expect("reads").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

struct Done {
    line: String,
    output: Output,
}

impl Done {
    fn code_in(self, expected: &[i32]) -> Done {
        let code = self.output.status.code().expect("it ends by itself");
        assert!(expected.contains(&code), "ras {}: {code}\n{}", self.line, self.stderr());
        self
    }

    fn code(self, expected: i32) -> Done {
        self.code_in(&[expected])
    }

    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.output.stdout).expect("standard output is JSON")
    }

    /// An error in one line, which names what is wrong.
    fn fails_with(self, parts: &[&str]) {
        let done = self.code(1);
        let stderr = done.stderr();
        for part in parts {
            assert!(stderr.contains(part), "ras {}: no {part:?} in\n{stderr}", done.line);
        }
        assert!(!stderr.contains("panicked"), "ras {}:\n{stderr}", done.line);
    }
}

#[test]
fn region_is_solved_audited_explained_and_applied() {
    let place = Place::new();
    place.region("day0");
    let report = place.ras_json("solve day0 --out result0");
    assert_eq!(report["ending"], "returned");
    assert!(report["phase1"]["dual_bound"].as_f64() <= report["phase1"]["primal"].as_f64());

    let audit = place.ras("result audit day0 result0 --output json").code(0).json();
    assert_eq!(audit["fine"], true);
    assert_eq!(audit["differences"], serde_json::json!([]));

    let id = report["reservations"][0]["reservation_id"].as_str().expect("a name");
    let explained =
        place.ras(&format!("result explain day0 result0 --reservation {id}")).code_in(&[0, 2]);
    assert!(explained.stdout().contains(id));
    place.ras("result explain day0 result0").code_in(&[0, 2]);

    place.ras("result report day0 result0 --out pages/page.html").code(0);
    let page = fs::read_to_string(place.path("pages/page.html")).expect("the page is there");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains(id));

    place.ras("snapshot next day0 result0 --out day1").code(0);
    let again = place.ras_json("solve day1 --out result1");
    assert_eq!(again["moves"], serde_json::json!({ "in_use": 0, "idle": 0 }));
    assert_eq!(again["acquired"], 0, "solving again on what was carried out moves nothing");

    let seen = place.ras("snapshot inspect day1 --output json").code(0).json();
    assert_eq!(seen["servers"]["total"], 1000);
    assert!(place.ras("snapshot inspect day1").code(0).stdout().contains("1,000"));
    let yaml = place.ras("snapshot inspect day1 --output yaml").code(0).stdout();
    assert!(yaml.lines().any(|line| line == "  total: 1000"), "{yaml}");
}

#[test]
fn solve_report_matches_the_format() {
    let place = Place::new();
    place.region("region");
    let printed = place.ras_json("solve region --out result --gap 1%");
    let text = fs::read_to_string(place.path("result/report.json")).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(printed, report);
    assert_eq!(report["format"], "ras-solve/1");
    for pointer in [
        "/objective/total",
        "/objective/stability",
        "/objective/rack_spread",
        "/objective/msb_spread",
        "/objective/buffer",
        "/phase1/primal",
        "/phase1/dual_bound",
        "/phase1/gap",
        "/phase1/termination",
        "/shortfall_rru",
        "/moves/in_use",
        "/moves/idle",
        "/seconds/total",
        "/seconds/phases/0",
        "/sizes/servers",
        "/sizes/classes",
        "/sizes/reservations",
        "/sizes/phase1_columns",
        "/sizes/phase1_rows",
        "/reservations/0/capacity_rru",
        "/reservations/0/assigned_rru",
        "/reservations/0/largest_msb_rru",
        "/reservations/0/guaranteed_rru",
        "/reservations/0/shortfall_rru",
        "/peak_memory_bytes",
        "/highs_peak_memory_bytes",
    ] {
        let member = report.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing"));
        assert!(!member.is_null(), "{pointer} is null");
    }
    assert!(report.pointer("/reservations/0/reason").is_some());

    // By MSB, what each of the largest has: it adds up to what is said of it as a whole.
    let shares = &report["msb_shares"];
    let list = |of: &Value| of.as_array().expect("a list").clone();
    let msbs: usize = list(&shares["datacenters"]).iter().map(|of| list(&of["msbs"]).len()).sum();
    let rows = list(&shares["reservations"]);
    assert!(!rows.is_empty() && rows.len() <= 30);
    for row in &rows {
        let rru: Vec<f64> = list(&row["msb_rru"]).iter().filter_map(Value::as_f64).collect();
        assert_eq!(rru.len(), msbs);
        let all = list(&report["reservations"]);
        let whole = all.iter().find(|of| of["reservation_id"] == row["reservation_id"]);
        let whole = whole.expect("the same reservation");
        let largest = rru.iter().copied().fold(0.0, f64::max);
        for (sum, member) in [(rru.iter().sum(), "assigned_rru"), (largest, "largest_msb_rru")] {
            let said = whole[member].as_f64().expect("a number");
            assert!((said - sum).abs() < 1e-6 * said, "{member}: {said}, {sum}: {row}");
        }
    }
}

#[test]
fn overrides_are_recorded_and_audited() {
    let place = Place::new();
    place.region("region");
    place.write("ras.toml", "scale_requests = 0.9\n[weights]\nbuffer_tau = 4.0\n");
    let line = "solve region --out result --config ras.toml --spread-beta 0 --scale-requests 0.5";
    let report = place.ras_json(line);
    assert_eq!(report["overrides"]["scale_requests"], 0.5);
    assert_eq!(report["overrides"]["weights"]["spread_beta"], 0.0);
    assert_eq!(report["weights"]["buffer_tau"], 4.0);
    assert_eq!(report["objective"]["msb_spread"], 0.0);
    place.ras("result audit region result").code(0);
    // What was for that solve only is not in the next snapshot.
    place.ras("snapshot next region result --out next").code(0);
    let weights =
        place.ras("snapshot inspect next --output json").code(0).json()["weights"].clone();
    assert_eq!(weights["spread_beta"], 2.0);
}

#[test]
fn request_chain_moves_only_necessary_servers() {
    let place = Place::new();
    let servers: String = (0..12).map(|n| format!("s{n:02},venus,,,V\n")).collect();
    place.write("servers.csv", &format!("server_id,datacenter,msb,rack,hardware_type\n{servers}"));
    place.write(
        "requests.csv",
        "name,capacity,unit,eligible_types,rru,spread,dc_affinity,source\n\
         a,0,server,V,V:1,none,,\nb,0,server,V,V:1,none,,\n",
    );
    place.write(
        "changes.csv",
        "day,date,reservation,servers\n0,d,a,7\n0,d,b,3\n4,d,a,4\n4,d,c,5\n9,d,b,0\n",
    );
    place
        .ras(
            "snapshot import --servers servers.csv --requests requests.csv --request-changes \
             changes.csv --day 0 --shared-buffer-fraction 0 --out day0",
        )
        .code(0);
    let mut left = Vec::new();
    for (day, next) in [(0, 4), (4, 9), (9, 9)] {
        let report = place.ras_json(&format!("solve day{day} --out result{day}"));
        assert_eq!(report["shortfall_rru"], 0.0, "day {day}");
        let moves = &report["moves"];
        left.push(moves["in_use"].as_u64().zip(moves["idle"].as_u64()).map(|(a, b)| a + b));
        let line = format!("snapshot next day{day} result{day} --out day{next}");
        place.ras(&format!("{line} --request-changes changes.csv --day {next}")).code(0);
    }
    assert_eq!(left, [Some(0), Some(3), Some(3)]);
}

#[test]
fn shortfall_exits_2_with_a_reason() {
    let place = Place::new();
    place.region("region");
    let done =
        place.ras("solve region --out result --gap 1% --deadline 5s --scale-requests 3").code(2);
    assert!(done.stdout().contains("short"), "{}", done.stdout());
    let report = place.ras("result explain region result --output json").code(2).json();
    assert!(report[0]["shortfall"]["reason"].is_string(), "{report}");
    let text = fs::read_to_string(place.path("result/report.json")).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let rows = report["reservations"].as_array().expect("rows");
    for row in rows {
        assert_eq!(row["shortfall_rru"] != 0.0, row["reason"].is_string(), "{row}");
    }
    place.ras("result audit region result").code(0);
}

#[test]
fn false_result_exits_2() {
    let place = Place::new();
    place.region("region");
    place.ras("solve region --out result --gap 1% -q").code_in(&[0, 2]);
    let path = place.path("result/report.json");
    let mut report: Value =
        serde_json::from_str(&fs::read_to_string(&path).expect("the report")).expect("JSON");
    report["objective"]["buffer"] = 0.0.into();
    fs::write(&path, report.to_string()).expect("writes");
    let done = place.ras("result audit region result").code(2);
    assert!(done.stdout().contains("objective.buffer"), "{}", done.stdout());
}

#[test]
fn zero_deadline_keeps_todays_assignment() {
    let place = Place::new();
    place.region("region");
    let done = place.ras("solve region --out result --deadline 0").code_in(&[0, 2]);
    assert!(done.stderr().contains("the result is today's assignment"), "{}", done.stderr());
    let report = place.ras("result audit region result --output json").code(0).json();
    assert_eq!(report["audit"]["moves"]["in_use"], 0);
    assert_eq!(report["audit"]["moves"]["acquired"], 0);
}

#[test]
fn invalid_input_exits_1_and_writes_nothing() {
    let place = Place::new();
    place.region("region");
    place.ras("solve region --out result --gap 1% -q").code_in(&[0, 2]);
    place.write("file", "");
    place.write("unknown.toml", "[solver]\ngap_limits = 0.1\n");
    let before = place.names();
    place.ras("solve nowhere --out x").fails_with(&["nowhere", "region.json"]);
    place.ras("solve region --out file/x").fails_with(&["file/x", "cannot be written"]);
    place.ras("solve region --out region").fails_with(&["region"]);
    place
        .ras("solve region --out x --config unknown.toml")
        .fails_with(&["unknown.toml", "gap_limits"]);
    place.ras("solve region --out x --config none.toml").fails_with(&["none.toml"]);
    place.ras("solve region --out x --deadline soon").fails_with(&["--deadline", "soon", "60s"]);
    place.ras("solve region --out x --gap 2").fails_with(&["--gap"]);
    place.ras("solve region --out x --msb-alpha 0").fails_with(&["msb_alpha", "above 0"]);
    place.ras("solve region --out x --buffer-tau nan").fails_with(&["--buffer-tau"]);
    place.ras("solve region").fails_with(&["--out"]);
    place.ras("solve region --out x --log [").fails_with(&["--log"]);
    place.ras("result audit region nowhere").fails_with(&["nowhere"]);
    place.ras("result audit region region").fails_with(&["region"]);
    place
        .ras("result explain region result --reservation feed-rankin")
        .fails_with(&["feed-rankin"]);
    place.ras("result report region result --out file/page.html").fails_with(&["file/page.html"]);
    place
        .ras("snapshot next region result --out region2 --day 3")
        .fails_with(&["--request-changes"]);
    place.ras("snapshot generate --servers 10 --out x").fails_with(&["servers", "1000"]);
    place.ras("snapshot import --servers none.csv --out x").fails_with(&["none.csv"]);
    place.ras("demo --data none --out x").fails_with(&["none"]);
    place.ras("nonsense").fails_with(&["nonsense"]);
    assert_eq!(place.names(), before, "nothing was written");
}

#[test]
fn misspelled_name_suggests_the_right_one() {
    let place = Place::new();
    place.region("region");
    let report = place.ras_json("solve region --out result --gap 1%");
    let id = report["reservations"][0]["reservation_id"].as_str().expect("a name").to_owned();
    let wrong = format!("{id}x");
    place.ras(&format!("result explain region result --reservation {wrong}")).fails_with(&[
        &wrong,
        "did you mean",
        &format!("{id:?}"),
    ]);
}

/// The shell refuses files beyond a size, as a full disk would; the signal that comes with it is
/// ignored.
#[cfg(unix)]
fn with_little_room(place: &Place, line: &str) -> Done {
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
    let place = Place::new();
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
    place: &Place,
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
    let place = Place::new();
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
    let place = Place::new();
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
    let place = Place::new();
    place.ras("snapshot generate --servers 20000 --reservations 80 --out region").code(0);
    let report = place.ras_json("solve region --out result --gap 0 --deadline 2s");
    let seconds = report["seconds"]["total"].as_f64().expect("a number");
    assert!(seconds < 2.0, "{seconds}");
    place.ras("result audit region result").code(0);
}

/// What is solved is looked for from where the binary was built: the trace if it lies beside the
/// project, else the small region that comes with it.
#[test]
fn demo_solves_a_region() {
    let place = Place::new();
    let done = place.ras("demo --out out --deadline 60s").code_in(&[0, 2]);
    assert!(done.stdout().contains("out/report.html"), "{}", done.stdout());
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/google2019_cell_a");
    let fleet = if trace.is_dir() { "shared/data/google2019_cell_a" } else { "small region" };
    assert!(done.stdout().contains(fleet), "{fleet} was to be solved: {}", done.stdout());
    place.ras("result audit out/snapshot out/result").code(0);
    assert!(place.path("out/report.html").exists());
}

#[test]
fn completions_and_manual_are_printed() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.ras(&format!("completions {shell}")).code(0).stdout();
        assert!(script.contains("generate"), "{shell}");
    }
    let manual = place.ras("man").code(0).stdout();
    assert!(manual.contains(".TH ras") && manual.contains("spread\\-beta"), "{manual}");
    assert!(!manual.contains("highs\\-worker"));
}

#[test]
fn old_subcommand_names_its_successor() {
    let place = Place::new();
    for (old, arguments, new) in [
        ("import", "csv --servers s.csv", "ras snapshot import"),
        ("audit", "region result", "ras result audit"),
        ("moves", "--stuck", "ras ops moves"),
        ("bench", "", "ras-bench"),
    ] {
        place.ras(&format!("{old} {arguments}")).fails_with(&["new name", new]);
    }
    place.ras(concat!("--quiet ", "quota list")).fails_with(&["new name", "ras region quota"]);
    place.ras("solv region").fails_with(&["unrecognized", "solve"]);
}

/// As after an update while it runs.
#[test]
#[cfg(target_os = "linux")]
fn deleted_executable_still_starts_highs() {
    let place = Place::new();
    place.region("region");
    let copy = place.path("copy");
    fs::copy(env!("CARGO_BIN_EXE_ras"), &copy).expect("copies");
    let mut solve = Command::new(&copy);
    solve
        .args(["solve", "region", "--out", "result", "--deadline", "5s", "--quiet"])
        .current_dir(place.0.path());
    let mut solve = solve.spawn().expect("the binary starts");
    fs::remove_file(&copy).expect("removes");
    assert!(matches!(solve.wait().expect("it ends").code(), Some(0 | 2)));
    let report = fs::read_to_string(place.path("result/report.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert!(report["phase1"]["lp_value"].is_number(), "HiGHS solved no LP: {}", report["phase1"]);
}

/// `EXPECTORATE=overwrite` accepts changes.
#[test]
fn help_texts_match_goldens() {
    let place = Place::new();
    for (file, line) in [
        ("ras", "--help"),
        ("solve", "solve --help"),
        ("plan", "plan --help"),
        ("apply", "apply --help"),
        ("explain", "explain --help"),
        ("login", "login --help"),
        ("request", "request --help"),
        ("request_create", "request create --help"),
        ("list", "list --help"),
        ("snapshot", "snapshot --help"),
        ("snapshot_import", "snapshot import --help"),
        ("snapshot_plan", "snapshot plan --help"),
        ("result", "result --help"),
        ("ops", "ops --help"),
        ("ops_contract", "ops contract --help"),
        ("ops_maintenance", "ops maintenance --help"),
        ("region", "region --help"),
        ("token", "token --help"),
    ] {
        let golden = format!("{}/tests/help/{file}.txt", env!("CARGO_MANIFEST_DIR"));
        expectorate::assert_contents(golden, &place.ras(line).code(0).stdout());
    }
    assert!(place.ras("--version").code(0).stdout().starts_with("ras "));
}

#[test]
fn plan_grants_or_refuses_with_alternatives() {
    let place = Place::new();
    place.region("region");
    let report = place.ras_json("solve region --out result --gap 1%");
    place.ras("snapshot next region result --out settled").code(0);
    let row = &report["reservations"][0];
    let (id, capacity) = (row["reservation_id"].as_str(), row["capacity_rru"].as_f64());
    let (id, capacity) = (id.expect("a name"), capacity.expect("a number"));
    place.write("more.yaml", &format!("reservation_id: {id}\ncapacity_rru: {}\n", capacity + 2.0));
    let plan = "snapshot plan settled --warm result --request";
    let more = place.ras_json(&format!("{plan} more.yaml"));
    assert_eq!(more["granted"], "in_full", "{more}");
    assert_eq!(more["audit_clean"], true);
    assert!(more["granted_rru"].as_f64() >= Some(capacity + 2.0));
    let said = place.ras(&format!("{plan} more.yaml")).code(0).stdout();
    assert!(said.contains("granted in full"), "{said}");
    // A hundred times the region, as JSON, which is YAML too.
    place.write("all.json", &format!("{{\"reservation_id\": \"{id}\", \"capacity_rru\": 100000}}"));
    let all = place.ras(&format!("{plan} all.json --output json")).code(2).json();
    assert_eq!(all["granted"], "in_part", "{all}");
    let refusal = &all["refusal"];
    assert_eq!(refusal["limits"][0]["limit"], "region");
    assert_eq!(refusal["alternatives"][0]["concession"], "fewer_rru");
    assert!(all["surely_missing_rru"].as_f64() > Some(0.0));
    // What it offers is granted.
    place.write("fewer.json", &refusal["alternatives"][0]["request"].to_string());
    assert_eq!(place.ras_json(&format!("{plan} fewer.json"))["granted"], "in_full");
    for (file, text, parts) in [
        ("typo.yaml", "reservation_id: a\ncapacity: 3\n", ["typo.yaml", "capacity", "2"]),
        ("none.yaml", "", ["none.yaml", "", ""]),
        ("two.yaml", "reservation_id: a\n---\nreservation_id: b\n", ["two.yaml", "", ""]),
        ("new.yaml", "reservation_id: new\nowner: me\n", ["new.yaml", "rru: missing", "new"]),
    ] {
        place.write(file, text);
        place.ras(&format!("{plan} {file}")).fails_with(&parts);
    }
}

#[test]
fn drill_uses_its_settings() {
    let place = Place::new();
    // Forty servers in two MSBs, of which no rack is known; one MSB fails within a minute and is not repaired.
    let servers: String = (0..40).map(|n| format!("s{n:02},dc,m{},,T\n", n / 20)).collect();
    place.write("servers.csv", &format!("server_id,datacenter,msb,rack,hardware_type\n{servers}"));
    place.write(
        "requests.csv",
        "name,capacity,unit,eligible_types,rru,spread\nweb,10,server,T,T:1,msb\n",
    );
    let fails: String =
        (0..20).map(|n| format!("s{n:02},disk,2026-01-02T00:00:{n:02}Z,\n")).collect();
    let work = "s30,reboot,2026-01-03T00:00:00Z,2026-01-03T06:00:00Z\n";
    place.write("events.csv", &format!("server_id,kind,start,end\n{fails}{work}"));
    let import = "snapshot import --servers servers.csv --requests requests.csv --out region \
                  --taken-at 2026-01-01T00:00:00Z --shared-buffer-fraction 25%";
    place.ras(import).code(0);
    place.write("off.toml", "[mover.storm_guard]\nlasts = \"0s\"\n");
    place.write("short.toml", "[mover.storm_guard]\nlasts = \"30m\"\n");
    let drill = |more: &str| {
        let kinds = "--kind disk=random_failure --kind reboot=planned_maintenance";
        let line = format!(
            "snapshot rehearse region --events events.csv {kinds} --span 90d --deadline 5s {more}"
        );
        place.ras_json(&line)["drills"][0].clone()
    };
    let (plain, off, short) = (drill(""), drill("--config off.toml"), drill("--config short.toml"));
    let lost = |of: &Value| (of["storms"].as_u64(), of["lost_msb_hours"].as_f64().map(f64::round));
    assert_eq!(lost(&plain), (Some(1), Some(2.0)), "{plain}");
    assert_eq!(lost(&off), (Some(0), Some(0.0)), "{off}");
    assert_eq!(lost(&short).0, Some(1));
    assert!(short["lost_msb_hours"].as_f64() < Some(0.6), "{short}");
    assert_eq!((&plain["hours"], &plain["maintenance"]), (&2160.0.into(), &1.into()));
    place.ras("snapshot rehearse region --events events.csv --span 90d").fails_with(&[
        "events.csv: line 2: kind: \"disk\" is not one of removed",
        "line 22: kind: \"reboot\"",
    ]);
}
