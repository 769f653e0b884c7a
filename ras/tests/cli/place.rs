//! A folder of one test, and the binary run in it.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The folder.
pub struct Place(pub tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        Place(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("writes");
    }

    /// Runs the binary with words parted by spaces.
    pub fn ras(&self, line: &str) -> Done {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ras"));
        command.args(line.split_whitespace()).current_dir(self.0.path());
        for variable in ["RUST_LOG", "RAS_SERVER", "RAS_TOKEN", "XDG_CONFIG_HOME"] {
            command.env_remove(variable);
        }
        command.env("HOME", self.0.path());
        Done { line: line.to_owned(), output: command.output().expect("the binary starts") }
    }

    pub fn ras_json(&self, line: &str) -> Value {
        self.ras(&format!("{line} --output json")).code_in(&[0, 2]).json()
    }

    /// A small region where something is held.
    pub fn region(&self, name: &str) {
        let options = "--servers 1000 --reservations 6 --msbs 9 --state steady --seed 3";
        self.ras(&format!("snapshot generate {options} --out {name}")).code(0);
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .expect("the folder is there")
            .map(|entry| entry.expect("reads").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// A run that has ended.
pub struct Done {
    pub line: String,
    pub output: Output,
}

impl Done {
    pub fn code_in(self, expected: &[i32]) -> Done {
        let code = self.output.status.code().expect("it ends by itself");
        assert!(expected.contains(&code), "ras {}: {code}\n{}", self.line, self.stderr());
        self
    }

    pub fn code(self, expected: i32) -> Done {
        self.code_in(&[expected])
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.output.stdout).expect("standard output is JSON")
    }

    /// An error in one line, which names what is wrong.
    pub fn fails_with(self, parts: &[&str]) {
        let done = self.code(1);
        let stderr = done.stderr();
        for part in parts {
            assert!(stderr.contains(part), "ras {}: no {part:?} in\n{stderr}", done.line);
        }
        assert!(!stderr.contains("panicked"), "ras {}:\n{stderr}", done.line);
    }
}
