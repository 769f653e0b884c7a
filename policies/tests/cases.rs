//! Tests of policies as text: those of the library pass, and a case that does not hold says how.

use async_solver::backend::InProcess;
use policies::{CaseResult, Effort, Policies, TestError, TestFile};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn effort() -> Effort {
    Effort { time_limit: Duration::from_secs(60), seed: 1 }
}

fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("library/region")
}

fn names(folder: &Path, end: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("reads").path());
    let ours = paths.filter(|path| path.extension().is_some_and(|own| own == end));
    ours.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}

#[test]
fn each_policy_for_regions_has_tests_that_pass() {
    let tests = library().join("tests");
    let files = names(&tests, "txt");
    assert_eq!(names(&library(), "sql"), files);
    let mut cases = 0;
    for name in files {
        let text = std::fs::read_to_string(tests.join(format!("{name}.txt"))).expect("reads");
        let file = TestFile::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let read = file.policies.iter().map(|policy| {
            let text = std::fs::read_to_string(tests.join(policy)).expect("a file of policies");
            (policy.clone(), text)
        });
        let read: Vec<(String, String)> = read.collect();
        let policies = Policies::parse(read.iter().map(|(name, text)| (&**name, &**text)));
        let policies = policies.unwrap_or_else(|error| panic!("{error}"));
        let results = file.run(&policies, &InProcess, effort());
        for result in results.unwrap_or_else(|error| panic!("{name}: {error}")) {
            assert!(result.diff.is_empty(), "{name}, {}: {:#?}", result.name, result.diff);
            cases += 1;
        }
    }
    assert!(cases > 30, "{cases} cases");
}

const POLICIES: &str = "
-- @hard_constraint
CREATE VIEW power AS
SELECT s.msb FROM servers s WHERE s.target IS NOT NULL GROUP BY s.msb HAVING sum(s.watts) <= 800;
-- @soft_constraint [weight=2]
CREATE VIEW free AS SELECT count(*) FROM servers s WHERE s.target IS NULL;
";

const WORLD: &str = "policies p.sql
table servers: server_id text, msb text, target text, watts decimal
  s0 m0 web 500
  s1 m0 -   400.5
  s2 m1 -   100
decide servers.target: web, -
keep s0
";

fn ran(cases: &str) -> Result<Vec<CaseResult>, TestError> {
    let file = TestFile::parse(&format!("{WORLD}{cases}")).expect("it can be read");
    let policies = Policies::parse([("p.sql", POLICIES)]).expect("SQL");
    file.run(&policies, &InProcess, effort())
}

fn diffs(cases: &str) -> Vec<Vec<String>> {
    let results = ran(cases).unwrap_or_else(|error| panic!("{error}"));
    results.into_iter().map(|result| result.diff).collect()
}

#[test]
fn what_differs_is_shown() {
    let cases = "
case as it is
case stated and found
  set s1 web
  fails power msb=m0
  value free 1
case not stated
  set s1 web
case stated but not so
  fails power msb=m1
  value free 1
case the best
  solve
  cost -4
  decides s1 -
case not the best
  solve
  cost -2
  decides s2 web
";
    let none: [&str; 0] = [];
    assert_eq!(
        diffs(cases),
        [
            &none[..],
            &none,
            &["+ fails power msb=m0"],
            &["- fails power msb=m1", "- value free 1", "+ value free 2"],
            &none,
            &["- cost -2", "- decides s2 web", "+ cost -4", "+ decides s2 -"],
        ]
    );
}

#[test]
fn rows_that_contradict_are_stated() {
    let policies = format!(
        "{POLICIES}
-- @hard_constraint
CREATE VIEW all_held AS SELECT s.server_id FROM servers s WHERE s.target = 'web';"
    );
    let text = format!(
        "{WORLD}case impossible\n  solve\n  contradicts power msb=m0\n  contradicts all_held \
         server_id=s1\ncase one is not stated\n  solve\n  contradicts power msb=m0\n"
    );
    let file = TestFile::parse(&text).expect("it can be read");
    let policies = Policies::parse([("p.sql", &*policies)]).expect("SQL");
    let results = file.run(&policies, &InProcess, effort()).expect("it runs");
    assert_eq!(results[0].diff, [""; 0]);
    assert_eq!(results[1].diff, ["+ contradicts all_held server_id=s1"]);
}

#[test]
fn mistakes_in_a_file_are_refused_with_their_place() {
    let broken = |text: &str| TestFile::parse(text).expect_err("it was read").message;
    let line = |line: &str| broken(&format!("{WORLD}case a\n  {line}\n"));
    assert_eq!(line("set s9 web"), "line 9: the decided table has no such row");
    assert_eq!(line("set s1 db"), "line 9: the decided column cannot have this value");
    assert_eq!(line("set s0 -"), "line 9: the row keeps what it has");
    assert_eq!(line("value free many"), "line 9: a number was expected");
    assert!(line("fail power").starts_with("line 9: lines of a case are set, solve"));
    assert_eq!(broken(WORLD), "no line begins with case");
    assert_eq!(broken("table t: a text\ncase b\n"), "no line names the policies");
    assert_eq!(
        broken("policies p.sql\ntable t: a text\n  1 2\ncase b\n"),
        "line 3: a row has a cell for each column"
    );
    let error = ran("case a\n  fails none msb=m0\n").expect_err("it ran");
    assert_eq!(error.to_string(), "case a: there is no policy none");
}
