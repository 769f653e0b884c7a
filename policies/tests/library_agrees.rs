//! Each construct that compiles, on every assignment of a small world: the compiled formulas and the
//! library, which runs the policy as plain SQL, find the same number of rows that fail. The library is asked
//! about every third assignment, at another offset for each policy.

use async_solver::backend::InProcess;
use policies::{Effort, Model, Outcome, Policies, Value, World, audit};
use std::time::Duration;

const WORLD: &str = "
table servers: server_id text, msb text, watts decimal, cores integer, target text
  s0 m0 400.5 8 -
  s1 m0 -     4 -
  s2 m1 100   2 -
table pools: pool text, cap integer, tier integer
  web 9 1
  db 4 -
table bans: pool text, msb text
  web m1
  -   m0
decide servers.target: web, db, -
";

/// What a hard policy says, after SELECT.
const POLICIES: &[&str] = &[
    // Comparisons, three-valued logic, lists.
    "server_id FROM servers WHERE target = 'web'",
    "server_id FROM servers WHERE target <> 'web'",
    "server_id FROM servers WHERE NOT (target = 'web')",
    "server_id FROM servers WHERE target IS DISTINCT FROM 'web'",
    "server_id FROM servers WHERE target IS NULL OR watts > 100",
    "server_id FROM servers WHERE (target = 'web') IS NOT FALSE",
    "server_id FROM servers WHERE target IN ('web', 'x') AND cores BETWEEN 1 AND 9",
    "server_id FROM servers WHERE target NOT IN ('web')",
    "server_id FROM servers WHERE coalesce(target, 'none') LIKE '%b'",
    "server_id FROM servers WHERE CASE target WHEN 'web' THEN cores WHEN 'db' THEN 1 ELSE 5 END > 4",
    "server_id FROM servers WHERE length(target) = 3",
    // Joins and anti-joins.
    "s.server_id FROM servers s JOIN pools p ON p.pool = s.target WHERE p.cap >= s.cores",
    "s.server_id FROM servers s JOIN pools p ON p.pool = s.target WHERE p.tier = 1",
    "a.msb FROM servers a JOIN servers b ON a.server_id < b.server_id AND a.msb <> b.msb WHERE a.target <> b.target",
    "a.msb FROM servers a JOIN servers b ON a.target = b.target AND upper(a.msb) = upper(b.msb) AND a.server_id < b.server_id WHERE a.target <> 'web'",
    "s.server_id FROM servers s LEFT ANTI JOIN bans b ON s.target = b.pool AND b.msb = s.msb AND s.cores > 1 WHERE s.cores <> 2",
    "s.server_id FROM servers s LEFT ANTI JOIN bans b ON b.pool = s.target WHERE s.target = 'db'",
    "s.server_id FROM servers s LEFT SEMI JOIN bans b ON b.pool = s.target WHERE s.msb = 'm0'",
    // Subqueries.
    "server_id FROM servers WHERE target IN (SELECT pool FROM pools WHERE cap > 4)",
    "server_id FROM servers s WHERE s.msb = 'm1' OR s.target IN (SELECT pool FROM pools p WHERE p.cap >= s.cores)",
    "server_id FROM servers s WHERE NOT EXISTS (SELECT 1 FROM bans b WHERE b.pool = s.target AND b.msb = s.msb)",
    "pool FROM pools p WHERE EXISTS (SELECT 1 FROM servers s WHERE s.target = p.pool AND s.cores > 2)",
    "pool FROM pools p WHERE (SELECT count(*) FROM servers s WHERE s.target = p.pool) >= 1",
    "pool FROM pools p WHERE (SELECT count(DISTINCT s.msb) FROM servers s WHERE s.target = p.pool) <= 1",
    "pool FROM pools p WHERE (SELECT sum(s.cores) FROM servers s WHERE s.target = p.pool) <= p.cap",
    "pool FROM pools p WHERE coalesce((SELECT sum(s.watts) FROM servers s WHERE s.target = p.pool), 0) < 400",
    "pool FROM pools p WHERE (SELECT max(s.cores) FROM servers s WHERE s.target = p.pool) > 2",
    // Aggregates of groups.
    "msb FROM servers WHERE target = 'web' GROUP BY msb HAVING count(*) <= 1",
    "msb FROM servers WHERE target = 'web' GROUP BY msb HAVING sum(watts) <= 400.5",
    "msb FROM servers GROUP BY msb HAVING count(target) >= 1",
    "msb FROM servers GROUP BY msb HAVING count(DISTINCT target) <= 1",
    "msb FROM servers GROUP BY msb HAVING all_different(target)",
    "msb FROM servers GROUP BY msb HAVING all_equal(target)",
    "target FROM servers GROUP BY target HAVING count(*) <= 2",
    "target FROM servers GROUP BY target HAVING sum(cores) BETWEEN 3 AND 10",
    "target FROM servers WHERE target IS NOT NULL GROUP BY target HAVING min(cores) >= 4",
    "target FROM servers WHERE target IS NOT NULL GROUP BY target HAVING max(watts) < 400.5",
    "target FROM servers GROUP BY target HAVING max(cores) - min(cores) <= 4",
    "target FROM servers GROUP BY target HAVING max(cores) = 8",
    "target FROM servers WHERE target IS NOT NULL GROUP BY target HAVING max(cores) <> 8",
    "target FROM servers WHERE target IS NOT NULL GROUP BY target HAVING avg(cores) <= 4.5",
    "target FROM servers WHERE target IS NOT NULL GROUP BY target HAVING avg(watts) > 250.25",
    "target FROM servers WHERE target IS NOT NULL GROUP BY target HAVING sum(watts) IS NULL",
    "target FROM servers WHERE target IS NOT NULL GROUP BY target HAVING bool_and(cores > 2)",
    "msb FROM servers GROUP BY msb HAVING bool_or(target = 'web')",
    "target FROM servers GROUP BY target HAVING count(*) FILTER (WHERE msb = 'm0') <= 1",
    "msb FROM servers GROUP BY msb HAVING sum(CASE WHEN target = 'web' THEN cores ELSE 0 END) <= 8",
    // Arithmetic.
    "msb FROM servers GROUP BY msb HAVING 2 * count(target) - 1 <= 2",
    "target FROM servers GROUP BY target HAVING abs(sum(cores) - 8) <= 4",
    "target FROM servers GROUP BY target HAVING greatest(sum(cores), 6) <= 10",
    "target FROM servers GROUP BY target HAVING least(sum(cores), count(*) * 3) <= 6",
    "target FROM servers GROUP BY target HAVING 0.5 * sum(watts) <= 200.25",
    "target FROM servers GROUP BY target HAVING CASE WHEN count(*) > 1 THEN sum(cores) ELSE 9 END >= 9",
    // Views over views.
    "total FROM (SELECT target, sum(cores) AS total FROM servers GROUP BY target) t WHERE total <= 10",
    "n FROM (SELECT count(*) AS n FROM (SELECT DISTINCT target FROM servers) d) t WHERE n >= 2",
    "target FROM (SELECT target FROM servers UNION ALL SELECT pool FROM pools) u GROUP BY target HAVING count(*) <= 2",
    "most FROM (SELECT max(total) AS most FROM (SELECT target, sum(cores) AS total FROM servers GROUP BY target) t) m WHERE most <= 12",
];

/// A goal that tells assignments apart.
const GOAL: &str = "
-- @soft_constraint
CREATE VIEW goal AS
SELECT sum(CASE target WHEN 'web' THEN cores WHEN 'db' THEN 3 ELSE 0.5 * cores END) FROM servers";

/// The value of the goal, by hand.
fn goal(assignment: &[Value]) -> f64 {
    let cores = [8.0, 4.0, 2.0];
    let worth = |(value, cores): (&Value, f64)| match value {
        Value::Text(text) if text == "web" => cores,
        Value::Text(_) => 3.0,
        _ => 0.5 * cores,
    };
    assignment.iter().zip(cores).map(worth).sum()
}

fn assignments(world: &World) -> Vec<Vec<Value>> {
    let mut assignments: Vec<Vec<Value>> = vec![Vec::new()];
    for _ in 0..world.assignment().len() {
        let more = |known: &Vec<Value>| {
            let known = known.clone();
            let options = world.decided().options.iter();
            options.map(move |option| [&known[..], std::slice::from_ref(option)].concat())
        };
        assignments = assignments.iter().flat_map(more).collect();
    }
    assignments
}

fn compiled(text: &str, world: &World) -> Result<(Policies, Model), String> {
    let policies = Policies::parse([("p.sql", text)]).map_err(|error| error.to_string())?;
    let model = Model::compile(&policies, world).map_err(|error| error.to_string())?;
    Ok((policies, model))
}

/// As a hard and as a soft constraint, each construct has the optimum that all assignments have.
#[test]
fn the_program_has_the_optimum_of_all_assignments() {
    let world = World::parse(WORLD).unwrap_or_else(|error| panic!("{error}"));
    let assignments = assignments(&world);
    let effort = Effort { time_limit: Duration::from_secs(60), seed: 1 };
    let mut wrong = Vec::new();
    for policy in POLICIES {
        let view = format!("CREATE VIEW p AS SELECT {policy};{GOAL}");
        let (_, hard) = compiled(&format!("-- @hard_constraint\n{view}"), &world)
            .unwrap_or_else(|error| panic!("{policy}: {error}"));
        let (_, soft) = compiled(&format!("-- @soft_constraint [weight=1.25]\n{view}"), &world)
            .unwrap_or_else(|error| panic!("{policy}: {error}"));
        let rows = assignments.iter().map(|of| {
            let broken = hard.broken(of).expect("options of the column").len();
            (broken, goal(of))
        });
        let rows: Vec<(usize, f64)> = rows.collect();
        let best = |cost: &dyn Fn(&(usize, f64)) -> f64| {
            rows.iter().map(cost).fold(f64::INFINITY, f64::min)
        };
        let must = |row: &(usize, f64)| if row.0 == 0 { -row.1 } else { f64::INFINITY };
        let may = |row: &(usize, f64)| 1.25 * row.0 as f64 - row.1;
        for (name, model, expected) in [("hard", hard, best(&must)), ("soft", soft, best(&may))] {
            match model.solve(&InProcess, effort) {
                Ok(Outcome::Solved(solution)) if solution.cost.to_f64() == expected => {}
                other => wrong.push(format!("{name} {policy}: {other:?}, expected {expected}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_library_finds_the_same_rows_broken() {
    let world = World::parse(WORLD).unwrap_or_else(|error| panic!("{error}"));
    let assignments = assignments(&world);
    let worlds: Vec<World> =
        assignments.iter().map(|of| world.with(of).expect("one cell for each server")).collect();
    let mut wrong = Vec::new();
    for (offset, policy) in POLICIES.iter().enumerate() {
        let text = format!("-- @hard_constraint\nCREATE VIEW p AS SELECT {policy}");
        let (policies, model) = match compiled(&text, &world) {
            Ok(compiled) => compiled,
            Err(error) => {
                wrong.push(format!("{policy}: {error}"));
                continue;
            }
        };
        let (mut holds, mut fails) = (0, 0);
        for (number, (assignment, after)) in assignments.iter().zip(&worlds).enumerate() {
            let broken = model.broken(assignment).expect("options of the column").len();
            if broken == 0 {
                holds += 1
            } else {
                fails += 1
            }
            if (number + offset) % 3 != 0 {
                continue;
            }
            let found = audit(&policies, after).unwrap_or_else(|error| panic!("{policy}: {error}"));
            let library = found[0].fails.len();
            if broken != library {
                wrong.push(format!("{policy}\n{assignment:?}: compiled {broken}, {found:?}"));
                break;
            }
        }
        if holds == 0 || fails == 0 {
            wrong.push(format!("{policy}: holds {holds} times, fails {fails} times"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
