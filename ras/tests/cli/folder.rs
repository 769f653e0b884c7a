//! A folder of one test, and the binary run in it.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use testkit::program::Done;

/// The folder.
pub struct Folder(pub tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
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
        Done::of(line, &mut command)
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
