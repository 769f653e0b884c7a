//! HiGHS in a process of its own: through the real binary, and through programs that misbehave.

use async_solver::backend::{InProcess, LpProblem, LpRequest};
use async_solver::{Backend, LpFailure};
use ras::highs_process::{HighsProcess, MEMORY_LIMIT_DEFAULT, WORKER_COMMAND};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn worker(memory_limit: u64) -> HighsProcess {
    let limit = format!("--memory-limit={memory_limit}");
    HighsProcess::new(
        PathBuf::from(env!("CARGO_BIN_EXE_ras")),
        vec![WORKER_COMMAND.into(), limit.into()],
    )
}

fn shell(script: &str) -> HighsProcess {
    HighsProcess::new(PathBuf::from("/bin/sh"), vec!["-c".into(), script.into()])
}

/// Minimise x + 2 y where x + y >= 3 and x <= 2: 4, at (2, 1), with dual 2.
fn small() -> (LpProblem, LpRequest) {
    let problem = LpProblem {
        cost: vec![1.0, 2.0],
        col_lower: vec![0.0, 0.0],
        col_upper: vec![2.0, f64::INFINITY],
        integer: Vec::new(),
        row_lower: vec![3.0],
        row_upper: vec![f64::INFINITY],
        starts: vec![0, 1, 2],
        indices: vec![0, 0],
        values: vec![1.0, 1.0],
    };
    (problem, request())
}

fn request() -> LpRequest {
    LpRequest {
        solver: "simplex".to_owned(),
        time_limit: None,
        threads: 1,
        seed: 1,
        start: None,
        mip_gap: 0.0,
        mip_nodes: u32::MAX,
    }
}

/// An infeasible problem: no column, and a row that needs one.
fn nothing() -> (LpProblem, LpRequest) {
    let problem = LpProblem {
        row_lower: vec![0.0],
        row_upper: vec![f64::INFINITY],
        starts: vec![0],
        ..LpProblem::default()
    };
    (problem, request())
}

/// A market split: no branch and bound gets through fifty binary columns of it.
fn hard() -> (LpProblem, LpRequest) {
    let (rows, columns) = (6_u32, 50_u32);
    let mut state = 12345_u64;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % 100) as f64
    };
    let values: Vec<f64> = (0..rows * columns).map(|_| draw()).collect();
    let half = |row: u32| {
        let of_row = values.iter().skip(row as usize).step_by(rows as usize);
        (of_row.sum::<f64>() / 2.0).floor()
    };
    let sides: Vec<f64> = (0..rows).map(half).collect();
    let mut problem = LpProblem {
        cost: vec![0.0; columns as usize],
        col_lower: vec![0.0; columns as usize],
        col_upper: vec![1.0; columns as usize],
        integer: vec![true; columns as usize],
        row_lower: sides.clone(),
        row_upper: sides,
        starts: (0..=columns).map(|column| column * rows).collect(),
        indices: (0..columns).flat_map(|_| 0..rows).collect(),
        values,
    };
    // What a row misses is paid for, so that every point is feasible.
    for row in 0..rows {
        for sign in [1.0, -1.0] {
            problem.cost.push(1.0);
            problem.col_lower.push(0.0);
            problem.col_upper.push(f64::INFINITY);
            problem.integer.push(false);
            problem.indices.push(row);
            problem.values.push(sign);
            problem.starts.push(problem.indices.len() as u32);
        }
    }
    (problem, LpRequest { solver: "choose".to_owned(), ..request() })
}

fn outcome(backend: &HighsProcess, problem: LpProblem, request: LpRequest) -> String {
    let mut job = backend.start(problem, request);
    let outcome = job.wait(PATIENCE).expect("an outcome in time");
    assert!(job.wait(Duration::ZERO).is_none(), "an outcome comes once");
    match outcome {
        Ok(solution) => format!("objective {}", solution.objective),
        Err(LpFailure::Status(status)) => format!("status {status}"),
        Err(LpFailure::Process(detail)) => format!("process {detail}"),
    }
}

fn children() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let lists =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn worker_answer_equals_in_process_highs() {
    let (problem, request) = small();
    let backend = worker(MEMORY_LIMIT_DEFAULT);
    let mut here = InProcess.start(problem.clone(), request.clone());
    let mut there = backend.start(problem, request);
    let here = here.wait(PATIENCE).expect("in time").expect("solves");
    let there = there.wait(PATIENCE).expect("in time").expect("solves");
    assert!((there.objective - 4.0).abs() < 1e-9, "{there:?}");
    assert_eq!((&here.columns, &here.row_duals), (&there.columns, &there.row_duals));
    assert!(there.optimal && there.seconds > 0.0);
    assert!(backend.peak_memory().is_some_and(|peak| peak > 100_000));
}

#[test]
fn large_problem_fits_through_the_pipe() {
    let columns = 300_000_u32;
    let problem = LpProblem {
        cost: vec![1.0; columns as usize],
        col_lower: vec![0.0; columns as usize],
        col_upper: vec![1.0; columns as usize],
        integer: Vec::new(),
        row_lower: vec![f64::from(columns) / 2.0],
        row_upper: vec![f64::INFINITY],
        starts: (0..=columns).collect(),
        indices: vec![0; columns as usize],
        values: vec![1.0; columns as usize],
    };
    let text = outcome(&worker(MEMORY_LIMIT_DEFAULT), problem, request());
    assert_eq!(text, "objective 150000");
}

#[test]
fn highs_outcomes_are_returned() {
    let (mut problem, request) = small();
    problem.col_upper[1] = 0.5;
    assert_eq!(outcome(&worker(MEMORY_LIMIT_DEFAULT), problem, request), "status Infeasible");
}

#[test]
fn problem_without_columns_is_answered() {
    let (mut problem, request) = nothing();
    let backend = worker(MEMORY_LIMIT_DEFAULT);
    assert_eq!(outcome(&backend, problem.clone(), request.clone()), "objective 0");
    problem.row_lower[0] = 1.0;
    assert_eq!(outcome(&backend, problem, request), "status Infeasible");
}

#[test]
fn malformed_problem_is_refused() {
    let (mut problem, request) = small();
    problem.indices[0] = 7;
    let text = outcome(&worker(MEMORY_LIMIT_DEFAULT), problem, request);
    assert!(text.starts_with("process ") && text.contains("inconsistent lengths"), "{text}");
}

#[test]
fn dropped_job_ends_at_once() {
    let (problem, request) = hard();
    let mut job = worker(MEMORY_LIMIT_DEFAULT).start(problem, request);
    assert!(job.wait(Duration::from_millis(500)).is_none(), "HiGHS should be at work for hours");
    assert!(job.wait(Duration::ZERO).is_none());
    let begun = Instant::now();
    drop(job);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn memory_limit_is_enforced() {
    let (problem, request) = small();
    // Not even the program fits.
    let text = outcome(&worker(1 << 20), problem, request);
    assert!(text.starts_with("process "), "{text}");
}

#[test]
fn missing_program_is_a_failure() {
    let (problem, request) = small();
    let nothing = HighsProcess::new(PathBuf::from("/no/such/program"), Vec::new());
    let text = outcome(&nothing, problem, request);
    assert!(text.starts_with("process cannot start /no/such/program"), "{text}");
}

#[test]
fn worker_with_garbage_output_or_crash_is_a_failure() {
    for (script, expected) in [
        ("echo what a nice problem this is", "does not begin with"),
        ("head -c 8 > /dev/null; exit 3", "exit status: 3"),
        ("kill -9 $$", "signal: 9"),
        ("echo out of cheese >&2; exit 1", "out of cheese"),
        ("printf ras-lpA1; exit 0", "exit status: 0"),
        ("printf 'ras-lpA1%0200d' 0; exec sleep 1000", "neither a solution nor a failure"),
        ("yes 2>/dev/null", "does not begin with"),
        (":", "closed in the middle of a message"),
        // The parent keeps the pipe open for the last output.
        ("sleep 5 >/dev/null & echo gone >&2; exit 4", "gone"),
    ] {
        let (problem, request) = small();
        let text = outcome(&shell(script), problem, request);
        assert!(text.starts_with("process ") && text.contains(expected), "{script}: {text}");
    }
}

#[test]
fn hanging_worker_costs_only_the_wait() {
    for script in
        ["exec sleep 1000", "exec 3>&1; exec yes >&2", "trap '' TERM INT; exec sleep 1000"]
    {
        let (problem, request) = hard();
        let begun = Instant::now();
        let mut job = shell(script).start(problem, request);
        assert!(job.wait(Duration::from_millis(100)).is_none(), "{script}");
        drop(job);
        assert!(begun.elapsed() < Duration::from_secs(5), "{script}: {:?}", begun.elapsed());
    }
}

#[test]
fn worker_exits_when_its_input_closes() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_ras"))
        .arg(WORKER_COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let (problem, request) = hard();
    let mut input = child.stdin.take().expect("piped");
    ras::highs_process::frame::write_problem(&mut input, &problem, &request).expect("is read");
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().expect("ours").is_none(), "HiGHS should be at work for hours");
    drop(input);
    let begun = Instant::now();
    while child.try_wait().expect("ours").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the worker outlives its parent");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn no_child_process_is_left_over() {
    // Other tests of this file run beside this one: only our own children are looked at.
    let script = "exec sleep 987";
    let (problem, request) = small();
    let job = shell(script).start(problem, request);
    std::thread::sleep(Duration::from_millis(200));
    let ours = |pid: &String| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("987")
    };
    assert_eq!(children().iter().filter(|pid| ours(pid)).count(), 1);
    drop(job);
    assert_eq!(children().iter().filter(|pid| ours(pid)).count(), 0);
}
