//! The machine's Postgres programs.

use crate::error::PrivateError;
use broker::POSTGRES_MIN;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The usual places: Debian and Ubuntu, RHEL with the project's own packages, Fedora and Arch, from source,
/// Homebrew. `*` is a version.
const PLACES: [(&str, &str); 6] = [
    ("/usr/lib/postgresql", "bin"),
    ("/usr", "pgsql-*/bin"),
    ("/usr/bin", ""),
    ("/usr/local/pgsql/bin", ""),
    ("/usr/local/bin", ""),
    ("/opt/homebrew/opt", "postgresql@*/bin"),
];

/// A folder with `postgres` and `initdb`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binaries {
    pub(crate) folder: PathBuf,
    pub(crate) major: u32,
}

impl Binaries {
    /// Finds programs of the given major version, to match existing data, else the newest.
    pub(crate) fn find(
        named: Option<&Path>,
        data: Option<(PathBuf, u32)>,
    ) -> Result<Binaries, PrivateError> {
        let candidates: Vec<PathBuf> = named.map_or_else(places, |named| vec![named.to_owned()]);
        let mut found: Vec<Binaries> = Vec::new();
        for folder in &candidates {
            if ["postgres", "initdb"].iter().all(|program| folder.join(program).is_file()) {
                found.push(Binaries { major: major(folder)?, folder: folder.clone() });
            }
        }
        // Newest first; of equal versions, the one in the more usual place.
        found.sort_by_key(|binaries| std::cmp::Reverse(binaries.major));
        let Some(newest) = found.first() else {
            let looked = named.map_or_else(
                || "looked in the usual places".to_owned(),
                |named| format!("looked in {}", named.display()),
            );
            return Err(PrivateError::NotInstalled { looked });
        };
        if newest.major < POSTGRES_MIN {
            let (programs, found) = (newest.folder.clone(), newest.major);
            return Err(PrivateError::TooOld { programs, found });
        }
        let Some((folder, data)) = data else { return Ok(newest.clone()) };
        let majors = || found.iter().map(|b| b.major.to_string()).collect::<Vec<_>>().join(", ");
        let same = found.iter().find(|binaries| binaries.major == data).cloned();
        same.ok_or_else(|| PrivateError::OtherMajor { folder, data, found: majors() })
    }

    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.folder.join(name));
        harmless(&mut command);
        command
    }
}

/// Ignores settings of our environment, sets the language of messages, and runs in a folder that every user may
/// enter.
pub(crate) fn harmless(command: &mut Command) {
    for variable in ["PGDATA", "PGPORT", "PGHOST", "PGUSER", "PGOPTIONS", "PGDATABASE"] {
        command.env_remove(variable);
    }
    command.env("LC_ALL", "C").current_dir("/");
}

fn places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    for (folder, below) in PLACES {
        let folder = Path::new(folder);
        if below.is_empty() {
            places.push(folder.to_owned());
            continue;
        }
        let (pattern, bin) = below.split_once('/').unwrap_or(("*", below));
        let prefix = pattern.trim_end_matches('*');
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut versions: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
            .map(|entry| entry.path().join(bin))
            .collect();
        versions.sort();
        places.extend(versions);
    }
    places
}

fn major(folder: &Path) -> Result<u32, PrivateError> {
    let program = folder.join("postgres");
    let mut command = Command::new(&program);
    harmless(&mut command);
    let output = command.arg("--version").output();
    let output = output.map_err(PrivateError::system(&program, "cannot be run"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    parse(&said).ok_or_else(|| {
        let said = format!("--version says {:?}", said.trim());
        PrivateError::Program { folder: folder.to_owned(), program: "postgres", said }
    })
}

/// Parses `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, `16beta1`, `18devel` and the like.
fn parse(said: &str) -> Option<u32> {
    let version = said.split_once("(PostgreSQL) ")?.1;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn postgres_versions_are_parsed() {
        assert_eq!(parse("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(parse("postgres (PostgreSQL) 9.6.24"), Some(9));
        assert_eq!(parse("postgres (PostgreSQL) 16beta1"), Some(16));
        assert_eq!(parse("something else"), None);
    }
}
