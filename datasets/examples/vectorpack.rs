//! Vector bin packing: the instances of Vectorpack, one thread each.
//!
//! Seconds are those of the processor, so that other programs beside it change little (Linux; elsewhere those of the
//! clock).
//!
//! ```sh
//! cargo run --release -p datasets --no-default-features --example vectorpack -- FOLDER SECONDS [SEED] [INSTANCE...]
//! ```
//!
//! `FOLDER` holds `instances.csv` and `instances/*.vbp`. An instance is named by a part of its file's name.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use placement::{Limits, search};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time on the processor since the process began.
fn processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, seconds, rest @ ..] = arguments.as_slice() else {
        return Err("usage: vectorpack FOLDER SECONDS [SEED] [INSTANCE...]".into());
    };
    let (folder, seconds): (&Path, f64) = (Path::new(folder), seconds.parse()?);
    let seed = rest.first().map_or(Ok(1), |seed| seed.parse())?;
    let wanted = rest.get(1..).unwrap_or(&[]);
    let mut sheet = csv::Reader::from_path(folder.join("instances.csv"))?;
    let heads = sheet.headers()?.clone();
    let column =
        |name: &str| heads.iter().position(|head| head == name).ok_or("a column is missing");
    let (file, optimum, best) = (column("file")?, column("optimum")?, column("best_published")?);
    println!("| instance | bins | bound | optimum | best published | seconds to the best | |");
    println!("|---|---|---|---|---|---|---|");
    let (mut known, mut reached, mut proved, mut count, mut above, mut sums) =
        (0, 0, 0, 0, 0, [0, 0]);
    for row in sheet.records() {
        let row = row?;
        let name = &row[file];
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let cluster = datasets::cluster::vectorpack::read(&folder.join("instances").join(name))?;
        let began = Instant::now();
        let before = processor();
        let elapsed = || match (processor(), before) {
            (Some(now), Some(before)) => now - before,
            _ => began.elapsed(),
        };
        let last = std::sync::Mutex::new((f64::INFINITY, 0.0));
        let limits = Limits {
            seed,
            deadline: Some(Duration::from_secs_f64(seconds)),
            elapsed: &elapsed,
            progress: &|now| {
                let mut last = last.lock().expect("one thread");
                if now.value < last.0 {
                    *last = (now.value, elapsed().as_secs_f64());
                }
            },
            ..Limits::rounds(u64::MAX)
        };
        let found = search(&cluster, &limits);
        assert!(found.violations.is_empty(), "{:?}", found.violations);
        let (bins, bound) = (found.value.total as usize, found.bound as usize);
        let published: usize = row[best].parse()?;
        let optimal = row[optimum].parse::<usize>().ok();
        let is_proved = bins == bound;
        count += 1;
        known += usize::from(optimal.is_some());
        reached += usize::from(optimal == Some(bins));
        proved += usize::from(is_proved);
        above += usize::from(bins > published);
        sums = [sums[0] + bins, sums[1] + published];
        let seconds = last.lock().expect("one thread").1;
        let mark = match (is_proved, optimal.is_some_and(|optimal| optimal < bins)) {
            (true, _) => "proved",
            (_, true) => "missed",
            _ => "",
        };
        let name = name.trim_end_matches(".vbp");
        let optimum = &row[optimum];
        println!("| {name} | {bins} | {bound} | {optimum} | {published} | {seconds:.1} | {mark} |");
    }
    println!(
        "\n{count} instances: {} bins, best published {}; {above} above the best published; the optimum on \
         {reached} of {known}; proved on {proved}",
        sums[0], sums[1],
    );
    Ok(())
}
