//! `docs/promises.md`: one table, every test that it names exists, and no promise stands there twice.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What a cell says where no test holds a promise.
const NO_TEST: &str = "no test";

/// The cells of a row.
fn cells(row: &str) -> [&str; 3] {
    let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
    cells.try_into().unwrap_or_else(|_| panic!("not three cells: {row}"))
}

/// Each test named in the last cell of a row: `path/to/file.rs::function`, a scenario or a script.
fn names(row: &str) -> Vec<&str> {
    let [_, _, tests] = cells(row);
    let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
    assert!(!names.is_empty() || tests.contains(NO_TEST), "neither a test nor {NO_TEST:?}: {row}");
    names
}

/// The rows of the page, which is one table.
fn rows(page: &str) -> Vec<&str> {
    let lines = page.lines().skip_while(|line| !line.starts_with('|'));
    let mut table: Vec<&str> = lines.collect();
    assert!(table.iter().all(|line| line.starts_with('|')), "one table, and nothing after it");
    let rows = table.split_off(table.len().min(2));
    assert_eq!(table, ["| promise | where it is made | test |", "|---|---|---|"]);
    rows
}

/// Promises that stand there twice, and tests that one of them names twice.
fn twice<'a>(rows: &[&'a str]) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for row in rows {
        let [promise, ..] = cells(row);
        if !seen.insert(promise.replace('`', "").to_lowercase()) {
            found.push(promise);
        }
        let mut named = BTreeSet::new();
        found.extend(names(row).into_iter().filter(|name| !named.insert(*name)));
    }
    found
}

/// Whether a test of this name is in the tree.
fn exists(root: &Path, name: &str) -> bool {
    match name.split_once("::") {
        Some((file, function)) => {
            has_test(&fs::read_to_string(root.join(file)).unwrap_or_default(), function)
        }
        // A file of Rust may have many tests: which?
        None => !name.ends_with(".rs") && name.contains('/') && root.join(name).is_file(),
    }
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the project")
}

#[test]
fn every_test_that_is_named_exists_and_no_promise_stands_twice() {
    let page = fs::read_to_string(root().join("docs/promises.md")).expect("the page");
    let rows = rows(&page);
    let named: BTreeSet<&str> = rows.iter().flat_map(|row| names(row)).collect();
    let missing: Vec<&&str> = named.iter().filter(|name| !exists(root(), name)).collect();
    assert!(missing.is_empty(), "not in the tree: {missing:#?}");
    assert_eq!(twice(&rows), [""; 0]);
}

#[test]
fn a_test_that_is_not_there_is_missed() {
    let here = "tests/tests/promises.rs::";
    assert!(exists(root(), &format!("{here}a_test_that_is_not_there_is_missed")));
    assert!(exists(root(), "scripts/smoke"));
    assert!(!exists(root(), "tests/tests/promises.rs"), "which test of it?");
    assert!(!exists(root(), "a_test_that_is_not_there_is_missed"), "of which file?");
    assert!(!exists(root(), &format!("{here}names")), "no test");
    assert!(!exists(root(), &format!("{here}a_test")), "only the beginning of a name");
    assert!(!exists(root(), "tests/tests/no_such_file.rs::a_test_that_is_not_there_is_missed"));
    assert_eq!(names("| a | b | `x`, `y::z` |"), ["x", "y::z"]);
    assert_eq!(names("| a | b | no test |"), [""; 0]);
}

#[test]
fn what_stands_twice_and_a_second_table_are_seen() {
    let rows_twice = ["| A `b` | x | `t` |", "| c | x | `t`, `u`, `t` |", "| a b | y | no test |"];
    assert_eq!(twice(&rows_twice), ["t", "a b"]);
    let table =
        "# A page\n\n| promise | where it is made | test |\n|---|---|---|\n| a | b | `c` |\n";
    assert_eq!(rows(table), ["| a | b | `c` |"]);
    for more in ["# Again\n", "\n| promise | where it is made | test |\n"] {
        let page = format!("{table}{more}");
        assert!(std::panic::catch_unwind(|| rows(&page).len()).is_err(), "{more}");
    }
}
