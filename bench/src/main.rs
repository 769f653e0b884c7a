//! The binary; everything is in the library.

use bench::options::Options;
use clap::Parser;
use ras::cli::Global;
use ras::context::Context;
use std::process::ExitCode;
use std::time::Instant;

/// Measure the solver beside others, and make the paper's figures again
#[derive(Debug, Parser)]
#[command(name = "ras-bench", version)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    global: Global,
}

/// Subcommands of `ras` that a run starts in processes of their own. This program does them itself, so that it
/// measures the solver it was built with.
const CHILDREN: [&str; 2] = ["solve", "highs-worker"];

fn main() -> ExitCode {
    let began = Instant::now();
    let child = std::env::args().nth(1).is_some_and(|first| CHILDREN.contains(&&*first));
    if child {
        return ras::run(std::env::args_os(), began);
    }
    let Cli { options, global } = match ras::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let context = Context { began, global };
    ras::conclude(&context, || bench::run(&options, &context))
}
