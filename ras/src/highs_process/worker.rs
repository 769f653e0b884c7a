//! The child's side: reads one problem, runs HiGHS, writes one answer.

use super::frame::{self, Answer};
use crate::{interrupt, memory};
use anyhow::{Context, Result};
use async_solver::backend::{LpProblem, LpRequest, solve_with_highs};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::time::Instant;

/// Serves one problem over standard input and output.
///
/// # Errors
/// If the problem arrives incomplete or the answer cannot be sent. Failures of HiGHS are
/// answers.
pub fn run(memory_limit: Option<u64>) -> Result<()> {
    // HiGHS may print to standard output, which must not mix with the answer.
    let answer_to = rustix::stdio::stdout().try_clone_to_owned().context("standard output")?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr()).context("standard output")?;
    if let Some(bytes) = memory_limit {
        memory::limit(bytes).context("limiting the memory of HiGHS")?;
    }
    let mut input = BufReader::new(std::io::stdin());
    let (problem, request) = frame::read_problem(&mut input).context("reading the problem")?;
    interrupt::end_with(input)?;
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
