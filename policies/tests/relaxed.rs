//! What relaxing one row of a contradiction needs, against every assignment.

use async_solver::backend::InProcess;
use policies::{Effort, Model, Outcome, Policies, Relaxation, Value, World};
use std::time::Duration;

const WORLD: &str = "
table servers: server_id text, msb text, watts decimal, target text
  s0 m0 400   -
  s1 m0 250.5 -
  s2 m0 300   -
  s3 m1 200   -
table needs: pool text, servers integer
  web 2
  db 1
decide servers.target: web, db, -
";
const WATTS: [f64; 4] = [400.0, 250.5, 300.0, 200.0];

const POLICIES: &str = "
-- @hard_constraint
CREATE VIEW needs_met AS
SELECT n.pool FROM needs n
WHERE (SELECT count(*) FROM servers s WHERE s.target = n.pool) >= n.servers;
-- @hard_constraint
CREATE VIEW in_m0 AS
SELECT s.server_id FROM servers s WHERE s.msb = 'm0' OR s.target IS NULL;
-- @hard_constraint
CREATE VIEW power AS
SELECT s.msb FROM servers s WHERE s.target IS NOT NULL GROUP BY s.msb HAVING sum(s.watts) < 700.5;
";

fn held(assignment: &[Option<&str>], by: &str) -> usize {
    assignment.iter().filter(|own| **own == Some(by)).count()
}

fn watts(assignment: &[Option<&str>]) -> f64 {
    let of = assignment[..3].iter().zip(WATTS).filter(|(own, _)| own.is_some());
    of.map(|(_, watts)| watts).sum()
}

/// Whether each rule holds: the needs of web and of db, m0 only, power of m0.
fn rules(assignment: &[Option<&str>]) -> [bool; 4] {
    let (web, db) = (held(assignment, "web") >= 2, held(assignment, "db") >= 1);
    [web, db, assignment[3].is_none(), watts(assignment) < 700.5]
}

fn assignments() -> Vec<[Option<&'static str>; 4]> {
    let options = [Some("web"), Some("db"), None];
    let one = |number: usize| [1, 3, 9, 27].map(|of| options[number / of % 3]);
    (0..81).map(one).collect()
}

#[test]
fn the_nearest_limit_of_each_row_is_that_of_all_assignments() {
    let world = World::parse(WORLD).expect("a world");
    let policies = Policies::parse([("p.sql", POLICIES)]).expect("SQL");
    let model = Model::compile(&policies, &world).unwrap_or_else(|error| panic!("{error}"));
    let effort = Effort { time_limit: Duration::from_secs(60), seed: 1 };
    let Ok(Outcome::Impossible(rows)) = model.solve(&InProcess, effort) else {
        panic!("three servers of m0 draw 950.5 W");
    };
    let but = |rule: usize| {
        let hold = move |of: &[Option<&'static str>; 4]| {
            rules(of).iter().enumerate().all(|(ix, holds)| ix == rule || *holds)
        };
        assignments().into_iter().filter(hold).collect::<Vec<_>>()
    };
    let relaxed = model.relaxations(&InProcess, effort, &rows).expect("HiGHS solves tiny worlds");
    let mut said: Vec<String> = rows.iter().zip(&relaxed).map(|(row, of)| of.of(row)).collect();
    said.sort();
    let most = |by: &str, rule| but(rule).iter().map(|of| held(of, by)).max().expect("one");
    let least = but(3).iter().map(|of| watts(of)).fold(f64::INFINITY, f64::min);
    assert!(!but(2).is_empty());
    assert_eq!(
        said,
        [
            format!("needs_met: pool=db: at least {} instead of 1", most("db", 1)),
            format!("needs_met: pool=web: at least {} instead of 2", most("web", 0)),
            format!("power: msb=m0: at most {least} instead of below 700.5"),
            "without in_m0: server_id=s3".to_owned(),
        ]
    );
}

#[test]
fn a_second_contradiction_is_said() {
    let world = World::parse(WORLD).expect("a world");
    let text = format!(
        "{POLICIES}
-- @hard_constraint
CREATE VIEW free AS SELECT count(*) AS n FROM servers s HAVING count(s.target) <= 2;
-- @hard_constraint
CREATE VIEW busy AS SELECT count(*) AS n FROM servers s HAVING count(s.target) >= 3;"
    );
    let policies = Policies::parse([("p.sql", &*text)]).expect("SQL");
    let model = Model::compile(&policies, &world).unwrap_or_else(|error| panic!("{error}"));
    let effort = Effort { time_limit: Duration::from_secs(60), seed: 1 };
    let Ok(Outcome::Impossible(rows)) = model.solve(&InProcess, effort) else {
        panic!("free and busy contradict");
    };
    let relaxed = model.relaxations(&InProcess, effort, &rows).expect("HiGHS solves tiny worlds");
    assert!(relaxed.contains(&Relaxation::NotEnough), "{rows:?}: {relaxed:?}");
    let contradicts = model.broken(&vec![Value::Null; 4]).expect("options of the column");
    assert!(!contradicts.is_empty());
}
