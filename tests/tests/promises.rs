//! `docs/promises.md`: every test that the page names exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What a cell says where no test holds a promise.
const NO_TEST: &str = "no test";

/// Each test named in the last cell of a row: `path/to/file.rs::function`, or a file of tests, a scenario, a script.
fn names(row: &str) -> Vec<&str> {
    let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
    let [_, _, tests] = cells[..] else { panic!("not three cells: {row}") };
    let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
    assert!(!names.is_empty() || tests.contains(NO_TEST), "neither a test nor {NO_TEST:?}: {row}");
    names
}

/// Whether a test of this name is in the tree.
fn exists(root: &Path, name: &str) -> bool {
    let text = |file: &Path| fs::read_to_string(file).unwrap_or_default();
    match name.split_once("::") {
        Some((file, function)) => {
            has_test(&text(&root.join(file)), function.rsplit("::").next().unwrap_or(function))
        }
        None if name.contains('/') && !name.ends_with(".rs") => root.join(name).is_file(),
        None if name.contains('/') => text(&root.join(name)).lines().map(str::trim).any(is_test),
        // A function alone may be anywhere.
        None => sources(root).iter().any(|file| has_test(&text(file), name)),
    }
}

/// Every source file of every crate.
fn sources(root: &Path) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(root).expect("the project").flatten() {
        open.extend(
            ["src", "tests"].map(|part| entry.path().join(part)).into_iter().filter(|p| p.is_dir()),
        );
    }
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files
}

/// Whether a file has a test of this name: a function right after its attribute.
fn has_test(text: &str, function: &str) -> bool {
    let mut before = Vec::new();
    text.lines().map(str::trim).any(|line| {
        let named = line.split_once("fn ").is_some_and(|(_, rest)| {
            rest.strip_prefix(function).is_some_and(|rest| rest.starts_with(['(', '<']))
        });
        if named && before.iter().any(|line: &&str| is_test(line)) {
            return true;
        }
        if !line.starts_with("#[") && !line.starts_with("//") {
            before.clear();
        } else {
            before.push(line);
        }
        false
    })
}

fn is_test(attribute: &str) -> bool {
    attribute.starts_with("#[test]") || attribute.starts_with("#[tokio::test")
}

#[test]
fn every_test_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the project");
    let page = fs::read_to_string(root.join("docs/promises.md")).expect("the page");
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let rows = rows.filter(|row| !row.starts_with("| promise ") && !row.starts_with("|---"));
    let named: BTreeSet<&str> = rows.flat_map(names).collect();
    let missing: Vec<&&str> = named.iter().filter(|name| !exists(root, name)).collect();
    assert!(missing.is_empty(), "not in the tree: {missing:#?}");
}

#[test]
fn a_test_that_is_not_there_is_missed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the project");
    assert!(exists(root, "tests/tests/promises.rs::every_test_that_is_named_exists"));
    assert!(exists(root, "scripts/smoke") && exists(root, "tests/tests/promises.rs"));
    assert!(!exists(root, "tests/src/lib.rs"), "no test is in it");
    assert!(exists(root, "every_test_that_is_named_exists"), "wherever it is");
    assert!(!exists(root, "has_test"), "no test");
    assert!(!exists(root, "tests/tests/promises.rs::names"), "no test");
    assert!(!exists(root, "tests/tests/promises.rs::every_test"), "only the beginning of a name");
    assert!(!exists(root, "tests/tests/no_such_file.rs::every_test_that_is_named_exists"));
    assert_eq!(names("| a | b | `x`, `y::z` |"), ["x", "y::z"]);
    assert_eq!(names("| a | b | no test |"), [""; 0]);
}
