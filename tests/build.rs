//! Sets `cfg(shared_data)` where the real data sets lie beside the project: elsewhere their tests are
//! reported as ignored, by name. With `CI=true` they always run, and fail without the data.
//!
//! Writes a test for each scenario file, so that a failure names the file and files run in parallel.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let project = PathBuf::from(set_by_cargo("CARGO_MANIFEST_DIR"));
    let data = project.join("../../shared/data");
    let ci = option_env!("CI") == Some("true");
    println!("cargo::rustc-check-cfg=cfg(shared_data)");
    println!("cargo::rerun-if-changed={}", data.display());
    if ci || data.is_dir() {
        println!("cargo::rustc-cfg=shared_data");
    }
    for name in ["scenarios", "living"] {
        tests_of(&project.join(name), &format!("{name}.rs"));
    }
}

/// Writes `fn NAME() { run("NAME.scn") }` for each scenario of a folder.
fn tests_of(folder: &Path, to: &str) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("the scenarios").map(|entry| entry.expect("a file"));
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".scn")?.to_owned()))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "{}: no scenario", folder.display());
    let mut tests = String::new();
    for name in names {
        writeln!(tests, "#[test]\nfn {name}() {{\n    run(\"{name}.scn\");\n}}").expect("text");
    }
    let out = PathBuf::from(set_by_cargo("OUT_DIR"));
    fs::write(out.join(to), tests).expect("written");
}

/// A variable that cargo sets when this runs. One read by `env!` would be that of the compiler: the same build
/// may serve another checkout.
#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts so")]
fn set_by_cargo(variable: &str) -> String {
    env::var(variable).expect("cargo sets it")
}
