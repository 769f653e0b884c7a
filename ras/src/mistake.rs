//! Errors in one voice: `ras: ` and what is wrong, once, with the object's name; then one hint that the reader may follow.

use crate::client::problem::Problem;
use crate::terminal;
use std::fmt;
use std::io;

/// What is wrong, and what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}")]
pub struct Hinted {
    what: String,
    hint: String,
}

impl Hinted {
    /// An error with a hint.
    pub fn new(what: impl fmt::Display, hint: impl fmt::Display) -> Hinted {
        Hinted { what: what.to_string(), hint: hint.to_string() }
    }
}

/// An error of a command; of invalid fields the hint names its help.
pub fn with_help(error: anyhow::Error, command: &str) -> anyhow::Error {
    match error.downcast_ref::<Problem>() {
        Some(problem) if problem.code() == "invalid" => {
            Hinted::new(problem, format!("`{command} --help` has every option")).into()
        }
        _ => error,
    }
}

/// Prints an error and its hint.
pub fn tell(error: &anyhow::Error) {
    // The whole chain: the libraries never repeat a cause in their messages.
    say(&plain(&format!("{error:#}")), hint(error).as_deref());
}

/// Prints what is wrong and a hint.
pub(crate) fn say(what: &str, hint: Option<&str>) {
    terminal::tell(what);
    if let Some(hint) = hint {
        terminal::say(&format!("hint: {hint}"));
    }
}

/// The text without the numbers that the system gives its errors.
pub(crate) fn plain(text: &str) -> String {
    const NUMBER: &str = " (os error ";
    let mut rest = text;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once(NUMBER) {
        plain += before;
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain + rest
}

fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(hinted) = error.downcast_ref::<Hinted>() {
        return Some(hinted.hint.clone());
    }
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    if cause.is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound) {
        return Some("check the path: it begins in the current folder".to_owned());
    }
    error.downcast_ref::<Problem>().and_then(of_problem).map(str::to_owned)
}

/// What the reader of a problem may do: never a command that needs a role that the problem denies.
fn of_problem(problem: &Problem) -> Option<&'static str> {
    Some(match problem.code() {
        "token_unknown" => {
            "`ras login` replaces the saved token; an administrator of the region makes new ones"
        }
        "token_missing" => "`ras login` saves a token; an administrator of the region makes one",
        "role_missing" => "an administrator of the region gives tokens with this role",
        "other_owner" => {
            "`ras list reservations` shows what this token is for, `ras list servers --reservation NAME` the servers of \
             one; an administrator of the region gives other tokens"
        }
        "exists" => "`ras request resize` changes a reservation that exists",
        "unknown_reservation" => "`ras list reservations` shows those that this token may see",
        "unknown_request" => "`ras list requests` shows those that this token may see",
        "unknown_plan" => "`ras plan --request FILE` makes one; it can be applied for 15 minutes",
        "unknown_server" => {
            "`ras list servers` shows those of the region, with `--reservation NAME` those of a reservation"
        }
        "unknown_solve" => "`ras list solves` shows those that there are",
        "unknown_emergency" => "`ras list emergencies` shows those that there are",
        "unknown_maintenance" => {
            "`ras list maintenance --where all=true` shows those that there are"
        }
        "unknown_profile" => "`ras list profiles` shows those that there are",
        "unknown_token" => "`ras token list` shows those that are valid",
        "unknown_contract" => "`ras ops contract list` shows those that there are",
        "unknown_hardware_type" => "`ras region hardware list` shows those that there are",
        "unknown_msb" | "unknown_scope" => {
            "`ras list servers --reservation NAME` shows the racks and MSBs of a reservation"
        }
        "request_open" => {
            "wait for its answer (`ras get request ID --watch`), or cancel it: `ras request cancel ID`"
        }
        "version_stale" => "`ras get reservation NAME` shows what it is now, with its version",
        "plan_stale" | "plan_over" => {
            "`ras apply --request FILE` makes a new plan, shows it and applies it"
        }
        "quota_exceeded" => "`ras list quotas` shows the limits and what is promised",
        "not_granted" => {
            "`--policy best-effort` takes as much as there is; files for `ras apply` take an alternative"
        }
        "invalid" => {
            "`ras plan --help` describes each field, `ras request create --help` each option"
        }
        "no_region" => {
            "the server has no region yet: its administrator loads a snapshot with `ras snapshot load`"
        }
        _ => return None,
    })
}

/// The message of clap in the same voice. `command`: what was typed, without arguments.
pub(crate) fn of_command_line(text: &str, command: &str) -> (String, String) {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let (what, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let tip = rest.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let hint = tip.map_or_else(|| format!("`{command} --help` has every option"), str::to_owned);
    (what.trim_end().to_owned(), hint)
}

#[cfg(test)]
mod tests {
    use super::{of_command_line, plain};

    #[test]
    fn numbers_of_the_system_are_left_out() {
        assert_eq!(plain("x: No such file (os error 2): y (os error 13)"), "x: No such file: y");
        assert_eq!(plain("x (os error"), "x (os error");
    }

    #[test]
    fn command_line_errors_have_one_hint() {
        let text =
            "error: unexpected argument '--x' found\n\n  tip: a similar one\n\nUsage: ras solve\n";
        let (what, hint) = of_command_line(text, "ras solve");
        assert_eq!((&*what, &*hint), ("unexpected argument '--x' found", "a similar one"));
        let (what, hint) =
            of_command_line("error: no\n  [possible values: a]\n\nUsage", "ras solve");
        assert_eq!(what, "no\n  [possible values: a]");
        assert_eq!(hint, "`ras solve --help` has every option");
    }
}
