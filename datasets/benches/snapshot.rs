//! How long a generated region takes to be written and read, and how much memory that needs.
//!
//! `cargo bench -p datasets --no-default-features --bench snapshot -- 1000000`
#![allow(missing_docs, clippy::unwrap_used)]

use datasets::generate::{GenerateOptions, State, generate};
use datasets::{read_assignment, read_parts, read_snapshot, write_result, write_snapshot};
use fleet::{RegionSnapshot, Targets};
use std::time::Instant;
use testkit::usage::memory;

fn timed<T>(what: &str, run: impl FnOnce() -> T) -> T {
    // Each step has a peak of its own: otherwise the hungriest would hide all that come after it.
    let reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = memory("VmRSS");
    #[expect(clippy::disallowed_methods, reason = "a bench is there to look at the clock")]
    let began = Instant::now();
    let result = run();
    let seconds = began.elapsed().as_secs_f64();
    let peak = if reset { memory("VmHWM") } else { None };
    println!("{what:<18} {seconds:>7.2} s   from {} to a peak of {}", shown(before), shown(peak));
    result
}

fn shown(amount: Option<f64>) -> String {
    amount.map_or_else(|| "unknown".to_owned(), |mib| format!("{mib:.0} MiB"))
}

fn main() {
    let servers = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(100_000);
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (region, result) = (dir.path().join("region"), dir.path().join("result"));
    println!("{servers} servers");
    {
        let options = GenerateOptions { state: State::Steady, ..GenerateOptions::new(servers) };
        let parts = timed("generate", || generate(&options).expect("options that fit"));
        let snapshot =
            timed("check", || RegionSnapshot::new(parts).expect("generated regions are valid"));
        timed("write snapshot", || write_snapshot(&region, &snapshot).expect("room to write"));
    }
    drop(timed("read rows", || read_parts(&region).expect("what was written")));
    let snapshot = timed("read snapshot", || read_snapshot(&region).expect("what was written"));
    let targets = Targets::unchanged(&snapshot);
    let report = serde_json::json!({"format": "ras-solve/1"});
    timed("write result", || {
        write_result(&result, &snapshot, &targets, &report, None).expect("room to write")
    });
    let read =
        timed("read assignment", || read_assignment(&result, &snapshot).expect("what was written"));
    assert_eq!(read, targets);
    for entry in std::fs::read_dir(&region).expect("what was written") {
        let entry = entry.expect("what was written");
        let bytes = entry.metadata().expect("what was written").len();
        println!("{:>10} bytes  {}", bytes, entry.file_name().to_string_lossy());
    }
}
