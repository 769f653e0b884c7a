//! One command of a scenario: a verb, then `key=value` and flags.

use std::collections::BTreeMap;
use std::str::FromStr;

/// A command with what was said about it. Arguments are taken out as they are understood, so that
/// what is left over was not.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What to do.
    pub verb: String,
    arguments: BTreeMap<String, Vec<String>>,
}

impl Statement {
    /// Puts a command together from a parser's parts.
    pub fn new(
        verb: impl Into<String>,
        arguments: impl IntoIterator<Item = (String, Vec<String>)>,
    ) -> Statement {
        Statement { verb: verb.into(), arguments: arguments.into_iter().collect() }
    }

    /// Reads a line such as `reservation name=web rru=24 types=C1,C2:2`; text behind `#` is for
    /// people. `None`: there is nothing else on it.
    pub fn parse(line: &str) -> Option<Statement> {
        let mut words = line.split('#').next()?.split_whitespace();
        let verb = words.next()?;
        let arguments = words.map(|word| match word.split_once('=') {
            Some((key, values)) => (key.into(), values.split(',').map(Into::into).collect()),
            None => (word.into(), Vec::new()),
        });
        Some(Statement::new(verb, arguments))
    }

    /// Whether a word without value was said.
    pub fn flag(&mut self, key: &str) -> bool {
        self.arguments.remove(key).is_some()
    }

    /// All values of a key; none if it was not given.
    pub fn list(&mut self, key: &str) -> Vec<String> {
        self.arguments.remove(key).unwrap_or_default()
    }

    /// The value of a key, if it was given.
    ///
    /// # Errors
    /// If it is not one value of the wanted kind.
    pub fn optional<T: FromStr>(&mut self, key: &str) -> Result<Option<T>, String> {
        let Some(values) = self.arguments.remove(key) else { return Ok(None) };
        let complaint = || format!("{}: {key}={} is not understood", self.verb, values.join(","));
        let [value] = &values[..] else { return Err(complaint()) };
        value.parse().map(Some).map_err(|_| complaint())
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If it is not given, or not one value of the wanted kind.
    pub fn value<T: FromStr>(&mut self, key: &str) -> Result<T, String> {
        self.optional(key)?.ok_or_else(|| format!("{}: {key}=... is missing", self.verb))
    }

    /// Makes sure that everything that was said has been understood.
    ///
    /// # Errors
    /// Naming what has not.
    pub fn finish(self) -> Result<(), String> {
        if self.arguments.is_empty() {
            return Ok(());
        }
        let left: Vec<String> = self.arguments.into_keys().collect();
        Err(format!("{}: {} means nothing here", self.verb, left.join(", ")))
    }
}

/// Reads pairs such as `C1:2`; a name alone has the value that stands for it.
///
/// # Errors
/// If the value is not a number.
pub fn pairs(words: &[String], alone: f64) -> Result<Vec<(String, f64)>, String> {
    let pair = |word: &String| match word.split_once(':') {
        None => Ok((word.clone(), alone)),
        Some((name, value)) => {
            let value = value.parse().map_err(|_| format!("{word}: not name:number"))?;
            Ok((name.to_owned(), value))
        }
    };
    words.iter().map(pair).collect()
}
