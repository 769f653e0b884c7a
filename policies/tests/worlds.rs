//! Policies on worlds in text: `tests/worlds/*.txt`. `REWRITE=1` writes the output; read it as a review.
//!
//! `world` sets the tables. `policies [file=NAME in library/region]` reads policies and says what became of
//! each. `audit` asks the library alone about the world as it is, `solve` decides.

use async_solver::backend::InProcess;
use policies::{Effort, Kind, Model, Outcome, Policies, Value, World, audit};
use std::fmt::Write;
use std::time::Duration;

const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/library/region");

struct Session {
    world: Option<World>,
    policies: Policies,
}

fn cell(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

impl Session {
    fn world(&self) -> &World {
        self.world.as_ref().expect("a world comes first")
    }

    fn run(&mut self, case: &datadriven::TestCase) -> Result<String, String> {
        let effort = Effort { time_limit: Duration::from_secs(60), seed: 1 };
        let mut out = String::new();
        match case.directive.as_str() {
            "world" => {
                self.world = Some(World::parse(&case.input).map_err(|error| error.to_string())?);
                out.push_str("ok\n");
            }
            "policies" => {
                let file = case.args.get("file").and_then(|files| files.first());
                let (name, text) = match file {
                    Some(file) => {
                        let path = format!("{LIBRARY}/{file}.sql");
                        (
                            file.as_str(),
                            std::fs::read_to_string(path).expect("a file of the library"),
                        )
                    }
                    None => ("p.sql", case.input.clone()),
                };
                let policies =
                    Policies::parse([(name, text.as_str())]).map_err(|error| error.to_string())?;
                let model = Model::compile(&policies, self.world()).map_err(|e| e.to_string())?;
                for of in &model.policies {
                    if of.kind == Kind::View {
                        continue;
                    }
                    let _ = write!(out, "{}: {} rows, {} settled", of.policy, of.rows, of.settled);
                    for note in &of.notes {
                        let _ = write!(out, "; {note}");
                    }
                    out.push('\n');
                }
                let size = model.size().expect("small");
                let _ = writeln!(out, "{} columns, {} rows", size.columns, size.rows);
                self.policies = policies;
            }
            "audit" => {
                let found = audit(&self.policies, self.world()).map_err(|e| e.to_string())?;
                for of in found {
                    let value = of.value.map(|value| format!(" {value}")).unwrap_or_default();
                    let _ = writeln!(out, "{}:{value} {} fail", of.policy, of.fails.len());
                    for row in of.fails {
                        let _ = writeln!(out, "  {row}");
                    }
                }
            }
            "solve" => {
                let model =
                    Model::compile(&self.policies, self.world()).expect("it compiled before");
                match model.solve(&InProcess, effort).map_err(|error| error.to_string())? {
                    Outcome::Solved(solution) => {
                        let cells: Vec<String> = solution.assignment.iter().map(cell).collect();
                        let _ = writeln!(out, "cost {}", solution.cost);
                        for of in &solution.goals {
                            let _ = writeln!(out, "{}: {}, costs {}", of.policy, of.value, of.cost);
                        }
                        if case.args.contains_key("show") {
                            let _ = writeln!(out, "{}", cells.join(" "));
                        }
                        let after = self.world().with(&solution.assignment).expect("fits");
                        for of in audit(&self.policies, &after).map_err(|e| e.to_string())? {
                            let ok = of.kind != Kind::Hard || of.fails.is_empty();
                            assert!(ok, "the library says {} fails: {:?}", of.policy, of.fails);
                        }
                    }
                    Outcome::Impossible(rows) => {
                        out.push_str("impossible:\n");
                        let relaxed = model.relaxations(&InProcess, effort, &rows);
                        let relaxed = relaxed.map_err(|error| error.to_string())?;
                        for row in &rows {
                            let _ = writeln!(out, "  {row}");
                        }
                        out.push_str("relaxed alone:\n");
                        for (row, relaxation) in rows.iter().zip(relaxed) {
                            let _ = writeln!(out, "  {}", relaxation.of(row));
                        }
                    }
                }
            }
            other => panic!("directive {other} is not known"),
        }
        Ok(out)
    }
}

#[test]
fn worlds_in_text() {
    datadriven::walk("tests/worlds", |file| {
        let mut session = Session { world: None, policies: Policies::default() };
        file.run(|case| session.run(case).unwrap_or_else(|error| format!("error: {error}\n")));
    });
}
