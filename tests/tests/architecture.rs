//! The Architecture Invariants of ARCHITECTURE.md, checked against what cargo resolves and against
//! the source itself.

use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, Package, PackageId};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the project")
}

/// What cargo resolves for this machine, every feature on.
fn metadata() -> Metadata {
    let version = Command::new("rustc").arg("-vV").output().expect("rustc runs").stdout;
    let version = String::from_utf8(version).expect("rustc speaks UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .other_options(["--locked", "--filter-platform", host].map(String::from).to_vec())
        .exec()
        .expect("cargo metadata runs")
}

/// Direct dependencies that are built into the crate itself, by name.
fn direct(package: &Package) -> BTreeSet<&str> {
    let normal = |kind| kind == DependencyKind::Normal;
    package.dependencies.iter().filter(|d| normal(d.kind)).map(|d| d.name.as_str()).collect()
}

/// Names of everything that ends up in a program with this crate. Build scripts and procedural
/// macros run elsewhere and do not count.
fn reach<'a>(metadata: &'a Metadata, from: &Package) -> BTreeSet<&'a str> {
    let resolve = metadata.resolve.as_ref().expect("resolved");
    let nodes: BTreeMap<&PackageId, _> =
        resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let mut found: BTreeSet<&PackageId> = BTreeSet::new();
    let mut open = vec![&nodes[&from.id].id];
    while let Some(id) = open.pop() {
        for dep in &nodes[id].deps {
            let linked = dep.dep_kinds.iter().any(|d| d.kind == DependencyKind::Normal);
            if linked && !metadata[&dep.pkg].targets.iter().all(|t| t.is_proc_macro()) {
                let id = &nodes[&dep.pkg].id;
                if found.insert(id) {
                    open.push(id);
                }
            }
        }
    }
    found.into_iter().map(|id| metadata[id].name.as_str()).collect()
}

fn member<'a>(metadata: &'a Metadata, name: &str) -> &'a Package {
    let found = metadata.workspace_packages().into_iter().find(|p| p.name.as_str() == name);
    found.unwrap_or_else(|| panic!("no crate {name}"))
}

#[test]
fn crates_depend_in_one_direction() {
    let metadata = metadata();
    let ours: BTreeSet<&str> =
        metadata.workspace_packages().into_iter().map(|p| p.name.as_str()).collect();
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("fleet", &[][..]),
        ("async-solver", &["fleet"]),
        ("datasets", &["fleet"]),
        ("ras", &["async-solver", "datasets", "fleet"]),
        ("scenarios", &["async-solver", "datasets", "fleet"]),
    ]);
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        let allowed: BTreeSet<&str> = allowed
            .get(name)
            .unwrap_or_else(|| panic!("{name}: say here who may use what"))
            .iter()
            .copied()
            .collect();
        let used: BTreeSet<&str> = direct(package).intersection(&ours).copied().collect();
        assert!(used.is_subset(&allowed), "{name} depends on {used:?}, may depend on {allowed:?}");
    }
}

#[test]
fn the_core_does_no_io() {
    let metadata = metadata();
    assert_eq!(
        direct(member(&metadata, "fleet")),
        BTreeSet::from(["chrono", "serde", "thiserror"]),
        "fleet depends on nothing else"
    );
    for name in ["fleet", "async-solver"] {
        let reached = reach(&metadata, member(&metadata, name));
        assert!(reached.contains("serde"), "{name}: {reached:?}");
        for foreign in [
            "arrow-array",
            "axum",
            "clap",
            "csv",
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
    let metadata = metadata();
    for (owner, packages) in [
        ("async-solver", &["highs", "good_lp"][..]),
        ("datasets", &["arrow-array", "arrow-schema", "csv", "parquet", "polars"]),
        ("ras", &["anyhow", "clap", "ctrlc", "indicatif", "maud", "toml"]),
    ] {
        for package in metadata.workspace_packages() {
            for foreign in packages.iter().filter(|_| package.name.as_str() != owner) {
                let used = direct(package).contains(foreign);
                assert!(!used, "{} uses {foreign}: only {owner} may", package.name);
            }
        }
    }
    let binaries: Vec<&str> = (metadata.workspace_packages().into_iter())
        .flat_map(|package| &package.targets)
        .filter(|target| target.is_bin())
        .map(|target| target.name.as_str())
        .collect();
    assert_eq!(binaries, ["ras"], "one binary");
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

#[test]
fn one_file_calls_highs() {
    let backend = root().join("async-solver/src/backend.rs");
    let calls = |text: &str| {
        text.match_indices("highs::").any(|(at, _)| {
            // `my_highs::` is somebody else.
            !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    };
    for folder in ["fleet/src", "async-solver/src", "datasets/src", "ras/src"] {
        for (path, text) in sources(folder) {
            assert_eq!(calls(&text), path == backend, "{}: names highs::", path.display());
        }
    }
}

#[test]
fn pure_crates_read_no_clock_environment_or_randomness() {
    for folder in ["fleet/src", "async-solver/src", "datasets/src"] {
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
    for folder in ["fleet/src", "async-solver/src"] {
        for (path, text) in sources(folder) {
            for io in ["std::fs", "std::net", "std::process", "File::", "println!", "eprintln!"] {
                assert!(!text.contains(io), "{}: {io}", path.display());
            }
        }
    }
}
