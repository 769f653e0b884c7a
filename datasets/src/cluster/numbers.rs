//! Files of whole numbers, separated by white space, plain or gzip.

use super::ClusterError;
use flate2::read::GzDecoder;
use placement::Amount;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest number that is read.
pub(super) const MOST: Amount = 1_000_000_000_000;
/// The largest sum of capacities or requirements of a resource: a thousand times it fits 63 bits.
pub(super) const SUM: Amount = 4_000_000_000_000_000;
/// The largest file that is read, unpacked, in bytes.
const LARGEST: u64 = 1 << 30;
/// The largest number of machines, processes, services or resources.
const MANY: usize = 1_000_000;

/// The numbers of a file, in order.
pub(super) struct Numbers {
    file: PathBuf,
    text: String,
    /// Where the next number begins, and which one it is, from 1.
    offset: usize,
    position: usize,
}

impl Numbers {
    pub(super) fn open(file: &Path) -> Result<Numbers, ClusterError> {
        let bytes = fs::read(file).map_err(ClusterError::file(file))?;
        let (plain, packed) = (bytes.as_slice(), GzDecoder::new(bytes.as_slice()));
        let is_packed = bytes.starts_with(&[0x1f, 0x8b]);
        let mut text = String::new();
        let reader: &mut dyn Read =
            if is_packed { &mut packed.take(LARGEST) } else { &mut plain.take(LARGEST) };
        let length = reader.read_to_string(&mut text).map_err(ClusterError::file(file))?;
        let numbers = Numbers { file: file.to_owned(), text, offset: 0, position: 0 };
        if length as u64 == LARGEST {
            return Err(numbers.broken(format!("the file has {LARGEST} bytes or more, unpacked")));
        }
        Ok(numbers)
    }

    pub(super) fn broken(&self, rule: impl Into<String>) -> ClusterError {
        ClusterError::Number { file: self.file.clone(), position: self.position, rule: rule.into() }
    }

    fn word(&mut self) -> Option<&str> {
        let rest = &self.text[self.offset..];
        let start = self.offset + rest.find(|c: char| !c.is_ascii_whitespace())?;
        let rest = &self.text[start..];
        let end = start + rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        self.offset = end;
        self.position += 1;
        Some(&self.text[start..end])
    }

    /// The next number, from 0 to `most`.
    pub(super) fn next(&mut self, what: &str, most: Amount) -> Result<Amount, ClusterError> {
        self.between(what, 0, most)
    }

    /// The next number, from `least` to `most`.
    pub(super) fn between(
        &mut self,
        what: &str,
        least: Amount,
        most: Amount,
    ) -> Result<Amount, ClusterError> {
        match self.word().map(str::to_owned) {
            None => {
                self.position += 1;
                Err(self.broken(format!("the file ends; {what} is missing")))
            }
            Some(word) => match word.parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(number),
                _ => {
                    let shown: String = word.chars().take(40).collect();
                    let rule = format!("{what} is {shown:?}; it must be from {least} to {most}");
                    Err(self.broken(rule))
                }
            },
        }
    }

    pub(super) fn amount(&mut self, what: &str) -> Result<Amount, ClusterError> {
        self.next(what, MOST)
    }

    pub(super) fn count(&mut self, what: &str) -> Result<usize, ClusterError> {
        Ok(usize::try_from(self.next(what, MANY as Amount)?).unwrap_or(MANY))
    }

    /// A position in a list of `length`.
    pub(super) fn index(&mut self, what: &str, length: usize) -> Result<usize, ClusterError> {
        if length == 0 {
            return Err(self.broken(format!("{what} refers to an empty list")));
        }
        Ok(usize::try_from(self.next(what, length as Amount - 1)?).unwrap_or(0))
    }

    pub(super) fn list<T>(
        &mut self,
        length: usize,
        mut read: impl FnMut(&mut Numbers) -> Result<T, ClusterError>,
    ) -> Result<Vec<T>, ClusterError> {
        (0..length).map(|_| read(self)).collect()
    }

    pub(super) fn end(&mut self) -> Result<(), ClusterError> {
        match self.word() {
            None => Ok(()),
            Some(_) => Err(self.broken("the file must end here")),
        }
    }
}
