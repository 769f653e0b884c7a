//! Outcomes of subcommands and their exit codes.

use std::process::ExitCode;

/// A reservation is short, or the audit found a broken rule. Any error exits with 1: clap's default
/// of 2 for a wrong command line would be mistaken for this.
pub(crate) const EXIT_SHORT: u8 = 2;
/// A plan or the data read is out of date.
const EXIT_STALE: u8 = 3;
/// The audit rejected the result of a solve. A parent process reads it from the exit code.
pub(crate) const EXIT_AUDIT_FAILED: u8 = 4;
/// A region cannot be solved within its policies. A parent process reads it from the exit code.
pub(crate) const EXIT_POLICIES_REFUSED: u8 = 5;

/// Ctrl-C ended it, as a shell reports it.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// The outcome of a subcommand that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Success.
    Fine,
    /// A reservation is short, a rule is broken, or the request was refused.
    Short,
    /// Its input is out of date: nothing was done.
    Stale,
}

impl Verdict {
    pub(crate) fn fine_if(fine: bool) -> Verdict {
        if fine { Verdict::Fine } else { Verdict::Short }
    }

    /// The exit code of the process.
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Verdict::Fine => 0,
            Verdict::Short => EXIT_SHORT,
            Verdict::Stale => EXIT_STALE,
        })
    }
}
