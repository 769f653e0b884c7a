//! The one binary: connects the pure core to files, clocks, processes and users.
//!
//! | module | one line |
//! |---|---|
//! | [`cli`] | arguments and help texts |
//! | [`settings`], [`overrides`] | `ras.toml` and the command line; overrides of the snapshot's settings |
//! | [`command`] | one file for each subcommand: read, call, write |
//! | [`service`] | the services of `ras up` |
//! | [`store`] | opens the Postgres of a region |
//! | [`solve`] | the shell around a solve: deadline, Ctrl-C, results on disk |
//! | [`hour`], [`churn`] | what happens to a region in an hour (pure); a region after hours of solves |
//! | [`client`] | HTTP client of a server |
//! | [`request_file`], [`plan_answer`], [`plan_text`] | a capacity request and the plan that answers it |
//! | `region_policies` | policies in SQL of a region: limits of its solver, and their audit |
//! | [`highs_process`] | HiGHS in a child process that can be killed |
//! | [`context`], [`exit`], [`results`] | options and answers, exit codes, snapshots and results on disk |
//! | [`report_json`], [`reasons`] | the result's report |
//! | [`tables`], [`layout`], [`replay_page`], [`progress`] | output for people |
//! | [`mistake`], `first_error` | errors: what is wrong, and one hint; those of functions without room for one |
//! | [`terminal`] | all output to standard output and standard error, with control characters escaped |
//! | [`quantity`], [`number`] | parsing and formatting of quantities |
//! | [`interrupt`], [`memory`], [`telemetry`], [`executable`] | Ctrl-C, memory, logs, the path of this program |
//!
//! The decisions are elsewhere: `async-solver` solves, `fleet` audits and explains, `datasets`
//! knows the formats. Start at [`run`].

// Output passes `terminal`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod churn;
pub mod cli;
pub mod client;
pub mod command;
pub mod context;
pub mod executable;
pub mod exit;
mod first_error;
pub mod highs_process;
pub mod hour;
pub mod interrupt;
pub mod layout;
pub mod memory;
pub mod mistake;
mod nice;
pub mod number;
pub mod offers;
pub mod overrides;
pub mod plan_answer;
pub mod plan_text;
pub mod progress;
pub mod quantity;
pub mod reasons;
#[cfg(feature = "policies")]
pub mod region_policies;
pub mod replay_page;
pub mod report_json;
pub mod request_file;
pub mod results;
pub mod service;
pub mod settings;
pub mod solve;
pub mod store;
pub mod tables;
pub mod telemetry;
pub mod terminal;
pub mod warm;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use cli::Cli;
use context::Context;
use exit::Verdict;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

/// Runs the command line. `began`: start of the process, from which deadlines count.
pub fn run(arguments: impl IntoIterator<Item = OsString>, began: Instant) -> ExitCode {
    let Cli { command, global } = match parse(arguments) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    if global.output == cli::Output::Wide {
        terminal::set_wide();
    }
    let context = Context { began, global };
    conclude(&context, || command::run(command, &context))
}

/// Parses a command line. Help and errors are printed; the process then exits with the code.
///
/// # Errors
/// The exit code, if there is nothing to do.
pub fn parse<C: Parser>(arguments: impl IntoIterator<Item = OsString>) -> Result<C, ExitCode> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    C::try_parse_from(&arguments).map_err(|answer| {
        let named = |kind| match answer.get(kind) {
            Some(ContextValue::String(name)) => name.as_str(),
            _ => "",
        };
        let old = named(ContextKind::InvalidSubcommand);
        if let Some(now) = cli::new_name(old) {
            mistake::say(&format!("`ras {old}` has a new name"), Some(now));
            return ExitCode::FAILURE;
        }
        // In front of a nested subcommand, where it is no option of the command.
        let old = named(ContextKind::InvalidArg);
        if let Some(now) = cli::gone(old).filter(|_| answer.kind() == ErrorKind::UnknownArgument) {
            terminal::tell(&format!("{old}: {now}"));
            return ExitCode::FAILURE;
        }
        let text = answer.to_string();
        if answer.use_stderr() {
            // Help for a group without a subcommand is no error text.
            if answer.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                terminal::say(&text);
                return ExitCode::FAILURE;
            }
            let (what, hint) = mistake::of_command_line(&text, &typed::<C>(&arguments));
            mistake::say(&what, Some(&hint));
            return ExitCode::FAILURE;
        }
        // Help: a closed pipe is not an error.
        let _ = answer.print();
        ExitCode::SUCCESS
    })
}

/// The command of a command line, without arguments, such as `ras request create`.
fn typed<C: Parser>(arguments: &[OsString]) -> String {
    let mut command = C::command();
    let mut typed = vec![command.get_name().to_owned()];
    for word in arguments.iter().skip(1) {
        if let Some(found) = word.to_str().and_then(|word| command.find_subcommand(word)).cloned() {
            typed.push(found.get_name().to_owned());
            command = found;
        }
    }
    typed.join(" ")
}

/// Starts logs and traces, does the work, and prints its error, if any.
pub fn conclude(context: &Context, work: impl FnOnce() -> anyhow::Result<Verdict>) -> ExitCode {
    let outcome = telemetry::start(&context.global).and_then(|_telemetry| work());
    match outcome.or_else(|error| refused(error, context)) {
        Ok(verdict) => verdict.exit_code(),
        Err(error) => {
            mistake::tell(&error);
            if error.is::<client::operation::GoesOn>() {
                return ExitCode::from(exit::EXIT_INTERRUPTED);
            }
            if error.is::<solve::AuditFailed>() {
                return ExitCode::from(exit::EXIT_AUDIT_FAILED);
            }
            if error.is::<solve::PoliciesRefused>() {
                return ExitCode::from(exit::EXIT_POLICIES_REFUSED);
            }
            ExitCode::FAILURE
        }
    }
}

/// A refusal is an answer: with a document format, the problem document is printed.
fn refused(error: anyhow::Error, context: &Context) -> anyhow::Result<Verdict> {
    let problem = error.downcast_ref::<client::problem::Problem>();
    let Some((problem, verdict)) = problem.and_then(|of| Some((of, of.verdict()?))) else {
        return Err(error);
    };
    context.document(problem.json())?;
    mistake::tell(&error);
    Ok(verdict)
}
