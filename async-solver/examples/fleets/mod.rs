//! Fleets to measure on, real and generated, and clocks.
#![allow(dead_code, reason = "each example uses its own part of this")]

use async_solver::backend::{LpProblem, LpRequest, LpSolution, solve_with_highs};
use async_solver::{Backend, LpFailure, LpJob};
use datasets::generate::{GenerateOptions, Profile, State, generate};
use datasets::import::{ImportOptions, import_csv};
use fleet::SnapshotParts;
use std::error::Error;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// A fleet by its name: `google2019_cell_a`, `alibaba_gpu_v2023` and `helios_venus` of a folder, with requests but
/// without holders; `research` and `switches` as generated; or a region such as `20000x80-cold`, of servers,
/// reservations and state (`cold`, `steady`, `greedy`); `20000x80-cold+36` has 36 switches over racks of two MSBs, too, any one of which
/// may fail. `None`: its files are not there.
pub fn parts(fleet: &str, folder: &Path) -> Result<Option<SnapshotParts>, Box<dyn Error>> {
    let profile = match fleet {
        "research" => Some(Profile::Research),
        "switches" => Some(Profile::Switches),
        _ => None,
    };
    if let Some(profile) = profile {
        let options = GenerateOptions { state: State::Cold, ..GenerateOptions::of(profile, None) };
        return Ok(Some(generate(&options)?));
    }
    if let Some((size, state)) = fleet.split_once('-') {
        let (servers, reservations) = size.split_once('x').ok_or("SERVERSxRESERVATIONS-STATE")?;
        let (state, switches) = match state.split_once('+') {
            Some((state, switches)) => (state, Some(switches.parse()?)),
            None => (state, None),
        };
        let state = State::parse(state).ok_or("cold, steady or greedy")?;
        let (servers, reservations) = (servers.parse()?, reservations.parse()?);
        let options =
            GenerateOptions { reservations, state, switches, ..GenerateOptions::new(servers) };
        return Ok(Some(generate(&options)?));
    }
    let folder = folder.join(fleet);
    if !folder.is_dir() {
        return Ok(None);
    }
    let taken_at = chrono::DateTime::from_timestamp(1_600_000_000, 0).ok_or("an instant")?;
    let mut options = ImportOptions::new(fleet, folder.join("servers.csv"), taken_at);
    let requests =
        if fleet == "google2019_cell_a" { "requests_hybrid.csv" } else { "requests.csv" };
    options.requests = Some(folder.join(requests));
    match fleet {
        "google2019_cell_a" => options.msb_column = "msb_mixed".into(),
        "alibaba_gpu_v2023" => {
            options.topology = Some(folder.join("topology_synthetic.csv"));
            options.shared_buffer_fraction = Some(0.0);
            options.scale_requests = 0.8;
        }
        _ => options.shared_buffer_fraction = Some(0.0),
    }
    Ok(Some(import_csv(&options)?.0))
}

/// HiGHS on a thread of its own, so that a plan can search beside it. One whose answer is no longer wanted ends by its
/// time limit.
pub struct OnThreads;

struct Job(Receiver<Result<LpSolution, LpFailure>>);

impl Backend for OnThreads {
    fn start(&self, problem: LpProblem, request: LpRequest) -> Box<dyn LpJob> {
        let (answer, answered) = mpsc::channel();
        thread::spawn(move || {
            // The receiver is gone if the answer is no longer wanted.
            let _ = answer.send(solve_with_highs(&problem, &request));
        });
        Box::new(Job(answered))
    }
}

impl LpJob for Job {
    fn wait(&mut self, at_most: Duration) -> Option<Result<LpSolution, LpFailure>> {
        match self.0.recv_timeout(at_most) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                Some(Err(LpFailure::Status("HiGHS panicked".to_owned())))
            }
        }
    }
}

/// The time.
#[expect(clippy::disallowed_methods, reason = "a measurement has a clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Processor time of this process, user and system; zero where the system does not say.
pub fn processor_seconds() -> f64 {
    let ticks = |text: &str| -> Option<u64> {
        let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    };
    let text = std::fs::read_to_string("/proc/self/stat").ok();
    text.and_then(|text| ticks(&text)).unwrap_or_default() as f64 / 100.0
}
