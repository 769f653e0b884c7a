//! Machine reassignment: the instances of the ROADEF/EURO challenge 2012, two threads each.
//!
//! ```sh
//! cargo run --release -p datasets --no-default-features --example roadef -- FOLDER SECONDS [SEED] [INSTANCE...]
//! ```
//!
//! `FOLDER` holds `model_X.txt.gz`, `assignment_X.txt.gz` and `instances.csv`. The score is that of the
//! challenge: 100 (value - best) / initial.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use placement::{Limits, audit_schedule, evaluate, schedule, search};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, seconds, rest @ ..] = arguments.as_slice() else {
        return Err("usage: roadef FOLDER SECONDS [SEED] [INSTANCE...]".into());
    };
    let (folder, seconds): (&Path, f64) = (Path::new(folder), seconds.parse()?);
    let seed = rest.first().map_or(Ok(1), |seed| seed.parse())?;
    let wanted = rest.get(1..).unwrap_or(&[]);
    let mut best: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    let mut sheet = csv::Reader::from_path(folder.join("instances.csv"))?;
    let heads = sheet.headers()?.clone();
    let column =
        |name: &str| heads.iter().position(|head| head == name).ok_or("a column is missing");
    let (name, value, winner) = (column("instance")?, column("best_sourced")?, column("s41_300s")?);
    for row in sheet.records() {
        let row = row?;
        if let (Ok(value), Ok(winner)) = (row[value].parse(), row[winner].parse()) {
            best.insert(row[name].to_owned(), (value, winner));
        }
    }
    println!("{seconds} s, two threads, seed {seed}");
    println!(
        "instance         value          bound           best            S41    score   S41's    phases   stuck  schedule"
    );
    let (mut sum, mut count) = (0.0, 0);
    for (instance, (best, winner)) in best {
        let model = folder.join(format!("model_{instance}.txt.gz"));
        if !model.exists() || (!wanted.is_empty() && !wanted.contains(&instance)) {
            continue;
        }
        let cluster = datasets::cluster::roadef::read(
            &model,
            &folder.join(format!("assignment_{instance}.txt.gz")),
        )?;
        let began = Instant::now();
        let elapsed = || began.elapsed();
        let limits = Limits {
            seed,
            threads: 2,
            deadline: Some(Duration::from_secs_f64(seconds)),
            elapsed: &elapsed,
            ..Limits::rounds(u64::MAX)
        };
        let initial = evaluate(&cluster, &cluster.today()).total;
        let found = search(&cluster, &limits);
        let score = |value: f64| 100.0 * (value - best) / initial;
        let began = Instant::now();
        let made = schedule(&cluster, &found.assignment);
        let flaws = audit_schedule(&cluster, &found.assignment, &made);
        let valid = found.violations.is_empty() && flaws.is_empty();
        let verdict = if valid { "" } else { "  NOT VALID" };
        println!(
            "{instance:<8} {:>14} {:>14} {best:>14} {winner:>14} {:>8.3} {:>7.3} {:>9} {:>7} {:>8.2?}{verdict}",
            found.value.total,
            found.bound,
            score(found.value.total),
            score(winner),
            format!("{}/{}", made.phases.len(), made.bound),
            made.stuck.len(),
            began.elapsed(),
        );
        sum += score(found.value.total);
        count += 1;
    }
    println!("mean score {:.3}", sum / f64::from(count.max(1)));
    Ok(())
}
