//! Arguments of benchmarks, and what processes use.

use std::fs;

/// The number after an option of the command line, such as `--servers 1000`.
///
/// # Panics
/// If it is not a number.
pub fn option(name: &str, default: usize) -> usize {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    arguments.next().map_or(default, |value| value.parse().expect("a number"))
}

/// A member of `/proc/self/status`, such as `VmRSS`, in MiB; `None` where the system has none.
pub fn memory(member: &str) -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(member)?.strip_prefix(':'))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? / 1024.0)
}

/// Processor seconds of this process; zero where the system does not say.
pub fn processor() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    seconds(&stat, &OWN).unwrap_or(0.0)
}

/// Processor seconds of all processes of a name, with those of their children that have ended.
pub fn processor_of(name: &str) -> f64 {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let stats = entries.filter_map(|entry| {
        let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        (stat.split(['(', ')']).nth(1)? == name).then(|| seconds(&stat, &WITH_CHILDREN)).flatten()
    });
    stats.sum()
}

/// Fields of a stat file after the name: user and system time, then both of ended children.
const OWN: [usize; 2] = [11, 12];
const WITH_CHILDREN: [usize; 4] = [11, 12, 13, 14];

/// The sum of fields that count ticks.
fn seconds(stat: &str, fields: &[usize]) -> Option<f64> {
    let values: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = fields.iter().map(|field| values.get(*field)?.parse::<f64>().ok());
    Some(ticks.sum::<Option<f64>>()? / 100.0)
}
