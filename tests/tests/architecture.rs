//! The Architecture Invariants of ARCHITECTURE.md, checked against what cargo resolves and against
//! the source itself.

use scenarios::Modules;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the project")
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What cargo resolves for this machine, every feature on. Read as plain JSON: the crate made for
/// it switches features of others on, and with them everything would be compiled twice.
struct Resolved {
    packages: BTreeMap<String, Value>,
    /// Normal dependencies by package: what ends up in the same program. Build scripts and
    /// procedural macros run elsewhere and do not count.
    linked: BTreeMap<String, Vec<String>>,
    members: BTreeSet<String>,
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

impl Resolved {
    fn new() -> Resolved {
        let version = output("rustc", &["-vV"]);
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
        let arguments = ["metadata", "--format-version=1", "--locked", "--all-features"];
        let arguments = [&arguments[..], &["--filter-platform", host]].concat();
        let json: Value =
            serde_json::from_str(&output(env!("CARGO"), &arguments)).expect("cargo speaks JSON");
        let packages: BTreeMap<String, Value> = (list(&json["packages"]).iter())
            .map(|package| (text(&package["id"]), package.clone()))
            .collect();
        let linked = list(&json["resolve"]["nodes"]).iter().map(|node| {
            let normal = |dep: &&Value| list(&dep["dep_kinds"]).iter().any(|d| d["kind"].is_null());
            let linked = list(&node["deps"]).iter().filter(normal).map(|dep| text(&dep["pkg"]));
            let linked = linked.filter(|id| !has_target(&packages[id], "proc-macro"));
            (text(&node["id"]), linked.collect())
        });
        let linked = linked.collect();
        let members = list(&json["workspace_members"]).iter().map(text).collect();
        Resolved { packages, linked, members }
    }

    fn name(&self, id: &str) -> &str {
        self.packages[id]["name"].as_str().expect("a name")
    }

    /// Our crates: name and id.
    fn ours(&self) -> BTreeMap<&str, &str> {
        self.members.iter().map(|id| (self.name(id), id.as_str())).collect()
    }

    /// What a crate of ours names as a normal dependency, for any platform.
    fn direct(&self, id: &str) -> BTreeSet<&str> {
        let normal =
            list(&self.packages[id]["dependencies"]).iter().filter(|d| d["kind"].is_null());
        normal.map(|dep| dep["name"].as_str().expect("a name")).collect()
    }

    /// Names of everything that ends up in a program with this crate.
    fn reach(&self, id: &str) -> BTreeSet<&str> {
        let (mut found, mut open) = (BTreeSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            for dep in &self.linked[id] {
                if found.insert(dep.as_str()) {
                    open.push(dep);
                }
            }
        }
        found.into_iter().map(|id| self.name(id)).collect()
    }
}

fn has_target(package: &Value, kind: &str) -> bool {
    list(&package["targets"]).iter().any(|target| list(&target["kind"]).iter().any(|k| k == kind))
}

#[test]
fn crates_depend_in_one_direction() {
    let resolved = Resolved::new();
    let ours = resolved.ours();
    let names: BTreeSet<&str> = ours.keys().copied().collect();
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("fleet", &[][..]),
        ("api-types", &["fleet"]),
        ("async-solver", &["fleet"]),
        ("broker", &["decisions", "fleet"]),
        ("bench", &["async-solver", "datasets", "fleet", "ras", "report"]),
        (
            "capacity-portal",
            &["api-types", "broker", "control", "decisions", "fleet", "forecast", "report"],
        ),
        ("control", &["api-types", "broker", "fleet", "forecast"]),
        ("datasets", &["fleet", "forecast", "placement"]),
        ("forecast", &[]),
        ("placement", &[]),
        ("policies", &["async-solver", "fleet", "placement"]),
        ("decisions", &["fleet"]),
        ("online-mover", &["broker", "decisions", "fleet"]),
        ("private-postgres", &["broker"]),
        (
            "ras",
            &[
                "api-types",
                "async-solver",
                "broker",
                "capacity-portal",
                "control",
                "datasets",
                "decisions",
                "fleet",
                "forecast",
                "online-mover",
                "placement",
                "policies",
                "private-postgres",
                "report",
            ],
        ),
        ("report", &["fleet", "forecast", "placement"]),
        (
            "scenarios",
            &[
                "async-solver",
                "broker",
                "control",
                "datasets",
                "fleet",
                "online-mover",
                "placement",
                "ras",
                "report",
                "testkit",
            ],
        ),
        ("testkit", &["broker", "fleet", "private-postgres"]),
    ]);
    for (name, id) in ours {
        let allowed =
            allowed.get(name).unwrap_or_else(|| panic!("{name}: say here what it may use"));
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        let used: BTreeSet<&str> = resolved.direct(id).intersection(&names).copied().collect();
        assert!(used.is_subset(&allowed), "{name} depends on {used:?}, may depend on {allowed:?}");
    }
}

#[test]
fn the_core_does_no_io() {
    let resolved = Resolved::new();
    let ours = resolved.ours();
    let direct = resolved.direct(ours["fleet"]);
    assert_eq!(direct, BTreeSet::from(["chrono", "serde", "thiserror"]), "fleet uses nothing else");
    for name in ["fleet", "async-solver", "decisions", "placement", "forecast"] {
        let reached = resolved.reach(ours[name]);
        assert!(reached.contains("serde"), "{name}: {reached:?}");
        for foreign in [
            "arrow-array",
            "axum",
            "clap",
            "csv",
            "datafusion",
            "hyper",
            "parquet",
            "polars",
            "rand",
            "reqwest",
            "rustix",
            "sqlx",
            "tempfile",
            "tokio",
        ] {
            assert!(!reached.contains(foreign), "{name} must not reach {foreign}");
        }
    }
}

#[test]
fn each_foreign_thing_has_one_crate() {
    let resolved = Resolved::new();
    for (owners, packages) in [
        (&["async-solver"][..], &["highs", "good_lp"][..]),
        (&["broker", "testkit"], &["sqlx"]),
        (
            &["capacity-portal"],
            &["axum", "axum-extra", "axum-server", "prometheus", "tower-http", "utoipa-axum"],
        ),
        (&["api-types", "capacity-portal"], &["utoipa"]),
        (&["datasets"], &["arrow-array", "arrow-schema", "csv", "parquet", "polars"]),
        (&["policies"], &["datafusion"]),
        (&["ras"], &["croner", "ctrlc", "indicatif", "object_store", "toml"]),
        (&["bench", "ras"], &["anyhow", "clap"]),
    ] {
        for (name, id) in resolved.ours() {
            for foreign in packages.iter().filter(|_| !owners.contains(&name)) {
                let used = resolved.direct(id).contains(foreign);
                assert!(!used, "{name} uses {foreign}: only {owners:?} may");
            }
        }
    }
    for (name, id) in resolved.ours() {
        let shipped = !["scenarios", "testkit"].contains(&name);
        assert!(!shipped || !resolved.direct(id).contains("testkit"), "{name} ships fixtures");
    }
    let programs: Vec<&str> = (resolved.ours().into_iter())
        .filter(|(_, id)| has_target(&resolved.packages[*id], "bin"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(programs, ["bench", "ras"], "one server, one benchmark");
}

/// Rust files below a folder, and their lines without comments.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let (mut files, mut open) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("UTF-8");
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                files.push((path, code.collect::<Vec<_>>().join("\n")));
            }
        }
    }
    assert!(!files.is_empty(), "{folder} has no sources");
    files
}

/// A version that no crate asks for is no dependency.
#[test]
fn every_dependency_of_the_workspace_is_used() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let begin = manifest.find("[workspace.dependencies]").expect("a section");
    let rest = &manifest[begin..];
    let section = &rest[..rest.find("[workspace.lints").expect("the next one")];
    let named = section.lines().filter_map(|line| Some(line.split_once(" = ")?.0));
    let resolved = Resolved::new();
    let members =
        resolved.members.iter().flat_map(|id| list(&resolved.packages[id]["dependencies"]));
    let used: BTreeSet<String> = members.map(|dep| text(&dep["name"])).collect();
    let ours = resolved.ours();
    let unused: Vec<&str> =
        named.filter(|name| !used.contains(*name) && !ours.contains_key(name)).collect();
    assert!(unused.is_empty(), "in Cargo.toml and used by no crate: {unused:?}");
}

/// A test of data that may be absent is reported as ignored then, by name: it does not return early.
#[test]
fn no_test_passes_because_its_data_is_absent() {
    let absent = "#[cfg_attr(not(shared_data), ignore = ";
    for krate in ["fleet", "async-solver", "broker", "online-mover", "capacity-portal", "datasets"]
    {
        for (path, text) in sources(&format!("{krate}/tests")) {
            assert!(!text.contains("shared/data"), "{}: belongs in tests/tests", path.display());
        }
    }
    let mut counted = 0;
    for (path, text) in sources("tests/tests") {
        let uses = |line: &str| line.starts_with("use scenarios::") && line.contains("data");
        if text.lines().any(uses) {
            let (tests, marked) = (text.matches("#[test]").count(), text.matches(absent).count());
            assert_eq!(tests, marked, "{}: tests, and those with {absent}", path.display());
            counted += tests;
        }
    }
    assert!(counted >= 5, "{counted} tests of real data");
}

/// Public fields whose type names `word`: file and field.
fn fields_of_type(folder: &str, word: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    for (path, text) in sources(folder) {
        let path = path.strip_prefix(root()).expect("in the project").display().to_string();
        for line in text.lines() {
            let Some((field, ty)) =
                line.trim_start().strip_prefix("pub ").and_then(|rest| rest.split_once(": "))
            else {
                continue;
            };
            if field.chars().all(is_part) && ty.split(|c: char| !is_part(c)).any(|of| of == word) {
                found.insert(format!("{path}: {field}"));
            }
        }
    }
    found
}

/// `src` of each crate.
fn crate_sources() -> Vec<String> {
    let members = fs::read_dir(root()).expect("the project").map(|entry| entry.expect("an entry"));
    let crates = members.filter(|entry| entry.path().join("src/lib.rs").exists());
    crates.map(|krate| format!("{}/src", krate.file_name().to_string_lossy())).collect()
}

/// The compiler keeps the id of a plan from a place for the id of a request.
#[test]
fn public_fields_have_typed_ids() {
    let found: BTreeSet<String> =
        crate_sources().iter().flat_map(|folder| fields_of_type(folder, "Uuid")).collect();
    let left = [
        // JSON documents.
        "api-types/src/moves.rs: id",
        "api-types/src/solves.rs: solve",
        "api-types/src/status.rs: id",
        "api-types/src/tokens.rs: id",
    ];
    assert_eq!(found, left.map(str::to_owned).into(), "fields of a bare Uuid");
}

/// The compiler keeps the name of an MSB from a place for the name of a hardware type.
#[test]
fn public_fields_have_typed_names() {
    let other = [
        // A region, an event, a host profile, an RRU profile, a policy, an actor, a token.
        "region",
        "event",
        "event_id",
        "host_profile",
        "profile",
        "policy",
        "created_by",
        "by",
        // The name of a server, rack, MSB or datacenter, by a scope beside it; rows of any table.
        "scope_id",
        "parts",
        "name",
        "stored",
        "wanted",
        "unavailability",
        // A partition into fault domains and one of them, in tables and answers.
        "partition",
        "domain",
        "domains",
        "survives",
        // Rows of the file of an extra column.
        "keys",
        // Words of a file, before they are checked.
        "kind",
        "scope",
        "because",
    ];
    let mut seen = 0;
    for found in crate_sources().iter().flat_map(|folder| fields_of_type(folder, "Name")) {
        seen += 1;
        let (file, field) = found.split_once(": ").expect("a file and a field");
        let event = file == "fleet/src/unavailability.rs" && field == "id";
        assert!(event || other.contains(&field), "{found}: a bare Name");
    }
    assert!(seen > 20, "{seen} fields of a bare Name found: the scanner is broken");
}

#[test]
fn one_file_calls_highs() {
    let backend = root().join("async-solver/src/backend.rs");
    let calls = |text: &str| {
        text.match_indices("highs::").any(|(at, _)| {
            // `my_highs::` is another name.
            !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    };
    for folder in [
        "fleet/src",
        "async-solver/src",
        "datasets/src",
        "placement/src",
        "policies/src",
        "ras/src",
    ] {
        for (path, text) in sources(folder) {
            assert_eq!(calls(&text), path == backend, "{}: names highs::", path.display());
        }
    }
}

/// One file asks DataFusion to run something: what the audit rests on, and where time and memory are limited.
#[test]
fn one_file_runs_queries() {
    let library = root().join("policies/src/library.rs");
    for (path, text) in sources("policies/src") {
        for running in ["tokio::", "SessionContext", "SessionState", ".collect().await"] {
            assert!(path == library || !text.contains(running), "{}: {running}", path.display());
        }
        let audit = path.ends_with("audit.rs");
        for own in ["compile", "program", "formula", "interpreter", "cell"] {
            let uses = text.contains(&format!("use crate::{own}"));
            assert!(
                !audit || !uses,
                "{}: the audit shares {own} with the compiler",
                path.display()
            );
        }
    }
}

/// Statements are in lists (`statements!`), where a test finds and prepares all of them, and
/// nowhere else in the sources; outside the broker there are no statements.
#[test]
fn one_crate_speaks_sql() {
    let begins =
        ["\"SELECT ", "\"INSERT INTO ", "\"UPDATE ", "\"DELETE FROM ", "\"CREATE ", "\"WITH "];
    let folders = [
        "fleet/src",
        "async-solver/src",
        "decisions/src",
        "control/src",
        "capacity-portal/src",
        "datasets/src",
        "ras/src",
        "private-postgres/src",
    ];
    for folder in folders {
        for (path, text) in sources(folder) {
            for statement in begins {
                assert!(!text.contains(statement), "{}: {statement}", path.display());
            }
        }
    }
    for (path, text) in sources("broker/src") {
        let calls = ["query(\"", "query_as(\"", "query_scalar(\"", "raw_sql(", "AssertSqlSafe"];
        for call in calls {
            assert!(!text.contains(call), "{}: {call}", path.display());
        }
    }
}

/// Documents have types, or are opaque (`broker::Document`): the broker picks none apart by the names of members.
#[test]
fn the_broker_has_no_untyped_json() {
    for (path, text) in sources("broker/src") {
        for untyped in ["serde_json::Value", "serde_json::{", "json!", "to_value(", "from_value("] {
            assert!(!text.contains(untyped), "{}: {untyped}", path.display());
        }
    }
}

#[test]
fn pure_crates_read_no_clock_environment_or_randomness() {
    for folder in [
        "fleet/src",
        "async-solver/src",
        "decisions/src",
        "control/src",
        "capacity-portal/src",
        "datasets/src",
        "placement/src",
    ] {
        for (path, text) in sources(folder) {
            for impure in [
                "Instant::now",
                "SystemTime",
                "Utc::now",
                "Local::now",
                "env::var",
                "env::args",
                "rand::rng(",
                "thread_rng",
                "from_os_rng",
                "RandomState",
            ] {
                assert!(!text.contains(impure), "{}: {impure}", path.display());
            }
        }
    }
    for folder in ["fleet/src", "async-solver/src", "decisions/src", "placement/src"] {
        for (path, text) in sources(folder) {
            for io in ["std::fs", "std::net", "std::process", "File::", "println!", "eprintln!"] {
                assert!(!text.contains(io), "{}: {io}", path.display());
            }
        }
    }
}

/// A file beside the `main.rs` of a test program runs only if that one names it.
#[test]
fn every_file_of_a_test_program_belongs_to_it() {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let all = fs::read_dir(folder).into_iter().flatten();
        all.map(|entry| entry.expect("an entry").path()).collect()
    };
    let tests = entries(root()).into_iter().map(|member| member.join("tests"));
    let folders = tests.flat_map(|tests| [vec![tests.clone()], entries(&tests)].concat());
    let (mut programs, mut lost) = (0, Vec::new());
    for folder in folders {
        let Ok(main) = fs::read_to_string(folder.join("main.rs")) else { continue };
        programs += 1;
        for file in entries(&folder) {
            let is_module =
                file.extension().is_some_and(|of| of == "rs") || file.join("mod.rs").exists();
            let name = file.file_stem().and_then(|name| name.to_str()).expect("a name");
            if is_module && name != "main" && !main.contains(&format!("mod {name};")) {
                lost.push(file);
            }
        }
    }
    assert!(programs >= 10, "{programs} programs of several files");
    assert!(lost.is_empty(), "named by no main.rs: {lost:?}");
}

#[test]
fn files_of_a_crate_import_each_other_in_one_direction() {
    let resolved = Resolved::new();
    let mut found = Vec::new();
    for name in resolved.ours().keys() {
        let folder = if *name == "scenarios" { "tests" } else { name };
        let modules = Modules::read(&root().join(folder).join("src"));
        found.extend(modules.cycles().into_iter().map(|cycle| (*name, cycle)));
    }
    assert!(found.is_empty(), "cycles of files: {found:#?}");
}
