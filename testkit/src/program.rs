//! A run of a program that has ended.

use serde_json::Value;
use std::process::{Command, Output};

/// A run that has ended, with its output.
pub struct Done {
    /// The arguments, as a test wrote them.
    pub line: String,
    /// The exit code and the output.
    pub output: Output,
}

impl Done {
    /// Runs a command to its end. `line` names it in messages.
    ///
    /// # Panics
    /// If it does not start.
    pub fn of(line: &str, command: &mut Command) -> Done {
        Done { line: line.to_owned(), output: command.output().expect("the program starts") }
    }

    /// The exit code.
    ///
    /// # Panics
    /// If a signal ended it.
    pub fn exit(&self) -> i32 {
        self.output.status.code().expect("it ends by itself")
    }

    /// Checks that the exit code is one of these.
    ///
    /// # Panics
    /// If it is not.
    pub fn code_in(self, expected: &[i32]) -> Done {
        let code = self.exit();
        assert!(expected.contains(&code), "ras {}: {code}\n{}", self.line, self.stderr());
        self
    }

    /// Checks the exit code.
    ///
    /// # Panics
    /// If it is another.
    pub fn code(self, expected: i32) -> Done {
        self.code_in(&[expected])
    }

    /// Standard output.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Standard error.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Standard output as JSON.
    ///
    /// # Panics
    /// If it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.output.stdout).expect("standard output is JSON")
    }

    /// Whether it failed with these words on standard error.
    pub fn failed_with(&self, words: &str) -> bool {
        !self.output.status.success() && self.stderr().contains(words)
    }

    /// Checks that it failed with exit code 1 and a message that has all of these parts.
    ///
    /// # Panics
    /// If it did not.
    pub fn fails_with(self, parts: &[&str]) -> Done {
        let done = self.code(1);
        let stderr = done.stderr();
        for part in parts {
            assert!(stderr.contains(part), "ras {}: no {part:?} in\n{stderr}", done.line);
        }
        assert!(!stderr.contains("panicked"), "ras {}:\n{stderr}", done.line);
        done
    }
}
