//! The child's side: reads one problem, runs HiGHS, writes one answer.

use super::frame::{self, Answer};
use crate::memory;
use anyhow::{Context, Result};
use async_solver::backend::{LpProblem, LpRequest, solve_with_highs};
use rustix::process::{Resource, Rlimit, Signal};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Instant;

/// Serves one problem over standard input and output.
///
/// # Errors
/// If the problem does not arrive whole or the answer cannot be sent. HiGHS's own failures are
/// answers.
pub fn run(memory_limit: Option<u64>) -> Result<()> {
    // HiGHS may print; what it prints must not get into the answer.
    let answer_to = std::io::stdout().as_fd().try_clone_to_owned().context("standard output")?;
    rustix::stdio::dup2_stdout(std::io::stderr()).context("standard output")?;
    if let Some(bytes) = memory_limit {
        limit_memory(bytes)?;
    }
    let mut input = BufReader::new(std::io::stdin());
    let (problem, request) = frame::read_problem(&mut input).context("reading the problem")?;
    thread::Builder::new()
        .name("lifeline".to_owned())
        .spawn(move || die_with_the_parent(input))
        .context("starting the thread that watches the parent")?;
    let answer = solve(&problem, &request);
    let mut out = BufWriter::new(File::from(answer_to));
    frame::write_answer(&mut out, &answer).and_then(|()| out.flush()).context("answering")
}

fn solve(problem: &LpProblem, request: &LpRequest) -> Answer {
    let begun = Instant::now();
    let mut outcome = solve_with_highs(problem, request);
    if let Ok(solution) = &mut outcome {
        solution.seconds = begun.elapsed().as_secs_f64();
    }
    Answer { outcome, peak_memory: memory::peak_of_this_process().unwrap_or(0) }
}

/// Address space, not resident memory: that is what the kernel can refuse. HiGHS maps little that
/// it does not use.
fn limit_memory(bytes: u64) -> Result<()> {
    let hard = rustix::process::getrlimit(Resource::As).maximum;
    let limit = hard.map_or(bytes, |hard| hard.min(bytes));
    let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
    rustix::process::setrlimit(Resource::As, limit).context("limiting the memory of HiGHS")
}

/// The parent holds the other end open as long as it wants the answer; an end of the input means
/// that the job was dropped or the parent died. SIGKILL, because an orderly exit would run the
/// destructors of a HiGHS that is at work in another thread.
fn die_with_the_parent(mut input: impl Read) {
    let mut ignored = [0; 64];
    while let Ok(1..) = input.read(&mut ignored) {}
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
}
