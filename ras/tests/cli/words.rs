//! What is printed: errors, help, completions.

use crate::folder::Folder;
use std::fs;

#[test]
fn invalid_input_exits_1_and_writes_nothing() {
    let place = Folder::new();
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
fn control_characters_reach_no_terminal() {
    let place = Folder::new();
    let done = place.ras("solve \u{1b}[31mred --out x").code(1);
    assert!(done.stderr().contains("\\u001b[31mred"), "{}", done.stderr());
    assert!(!done.stderr().contains('\u{1b}'), "{}", done.stderr());
    // Errors of the command line itself have the same voice.
    let done = place.ras("solve region --out x --\u{1b}[31mred").code(1);
    assert!(done.stderr().starts_with("ras: unexpected argument"), "{}", done.stderr());
    assert!(!done.stderr().contains('\u{1b}'), "{}", done.stderr());
}

#[test]
fn misspelled_name_suggests_the_right_one() {
    let place = Folder::new();
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

#[test]
fn completions_and_manual_are_printed() {
    let place = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.ras(&format!("completions {shell}")).code(0).stdout();
        assert!(script.contains("generate"), "{shell}");
    }
    let manual = place.ras("man").code(0).stdout();
    assert!(manual.contains(".TH ras") && manual.contains("spread\\-beta"), "{manual}");
    assert!(!manual.contains("highs\\-worker"));
}

#[test]
fn each_command_has_a_page_of_manual() {
    let place = Folder::new();
    place.ras("man --out manual").code(0);
    let pages = fs::read_dir(place.path("manual")).expect("a folder").count();
    assert!(pages > 60, "{pages}");
    let page = fs::read_to_string(place.path("manual/ras-request-create.1")).expect("a page");
    assert!(page.contains(".TH ras-request-create") && page.contains("hardware\\-types"), "{page}");
    assert!(!place.path("manual/ras-highs-worker.1").exists());
    place.write("file", "");
    place.ras("man --out file").fails_with(&["manual pages in file"]);
}

#[test]
fn settings_file_is_checked_and_shown() {
    let place = Folder::new();
    place.write("token", "0123456789abcdef");
    place.write(
        "ras.toml",
        "deadline = \"90s\"\n[weights]\nmove_in_use = 20.0\n[service]\nlease = \"30s\"\n\
         [store]\ndatabase_url = \"postgres://ras:secret@db.example/region\"\n\
         [[portal.tokens]]\nname = \"watch\"\nroles = [\"health\"]\ntoken_file = \"token\"\n",
    );
    assert!(place.ras("config check ras.toml").code(0).stdout().contains("ras.toml is valid"));
    let shown = place.ras("config show ras.toml").code(0).stdout();
    let line = |name: &str| {
        let line = shown.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name}: {shown}")).split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(line("deadline"), ["deadline", "1m30s", "file"]);
    assert_eq!(line("service.lease")[1..], ["30s", "file"]);
    assert_eq!(line("service.deadline")[1..], ["50m", "default"]);
    assert_eq!(line("weights.move_in_use")[1..], ["20.0", "file"]);
    assert_eq!(line("weights.buffer_tau")[1..], ["-", "snapshot"]);
    assert!(!shown.contains("secret") && shown.contains("ras@db.example"), "{shown}");
    let defaults = place.ras_json("config show");
    assert!(defaults["settings"].as_array().is_some_and(|of| of.len() > 30), "{defaults}");
    for (text, parts) in [
        ("[service]\nschedule = \"hourly\"", ["hourly", "cron"]),
        ("[mover]\nagent = \"program:none\"", ["none", "no such program"]),
        ("[mover.storm_guard]\nshare = 2.0", ["storm_guard", "0 to 1"]),
        ("[portal.tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"", ["portal.tls", "c.pem"]),
        (
            "[[portal.tokens]]\nname = \"a\"\nroles = [\"health\"]\ntoken_file = \"none\"",
            ["token", "none"],
        ),
        ("[solver]\nthread = 2", ["thread", "solver"]),
        ("[portl]", ["portl", "unknown"]),
    ] {
        place.write("bad.toml", text);
        place.ras("config check bad.toml").fails_with(&parts);
    }
}

#[test]
fn old_subcommand_names_its_successor() {
    let place = Folder::new();
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

/// `EXPECTORATE=overwrite` accepts changes.
#[test]
fn help_texts_match_goldens() {
    let place = Folder::new();
    // The list of commands is that of a build with every feature.
    #[cfg(feature = "policies")]
    let of_features = [
        ("ras", "--help"),
        ("policy_check", "policy check --help"),
        ("policy_solve", "policy solve --help"),
        ("policy_test", "policy test --help"),
        ("policy_try", "policy try --help"),
        ("policy_diff", "policy diff --help"),
        ("policy_apply", "policy apply --help"),
    ];
    #[cfg(not(feature = "policies"))]
    let of_features: [(&str, &str); 0] = [];
    let of_all = [
        ("solve", "solve --help"),
        ("place", "place --help"),
        ("place_consolidate", "place consolidate --help"),
        ("place_explain", "place explain --help"),
        ("place_simulate", "place simulate --help"),
        ("forecast", "forecast --help"),
        ("forecast_plan", "forecast plan --help"),
        ("forecast_spares", "forecast spares --help"),
        ("forecast_warm", "forecast warm --help"),
        ("forecast_demand", "forecast demand --help"),
        ("forecast_orders", "forecast orders --help"),
        ("forecast_report", "forecast report --help"),
        ("forecast_replay", "forecast replay --help"),
        ("plan", "plan --help"),
        ("apply", "apply --help"),
        ("explain", "explain --help"),
        ("login", "login --help"),
        ("request", "request --help"),
        ("request_create", "request create --help"),
        ("list", "list --help"),
        ("get", "get --help"),
        ("status", "status --help"),
        ("snapshot", "snapshot --help"),
        ("snapshot_import", "snapshot import --help"),
        ("snapshot_plan", "snapshot plan --help"),
        ("result", "result --help"),
        ("ops", "ops --help"),
        ("ops_contract", "ops contract --help"),
        ("ops_maintenance", "ops maintenance --help"),
        ("region", "region --help"),
        ("token", "token --help"),
    ];
    for (file, line) in of_features.into_iter().chain(of_all) {
        let golden = format!("{}/tests/help/{file}.txt", env!("CARGO_MANIFEST_DIR"));
        expectorate::assert_contents(golden, &place.ras(line).code(0).stdout());
    }
    assert!(place.ras("--version").code(0).stdout().starts_with("ras "));
}
