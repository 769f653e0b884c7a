//! A CSV or Parquet file in memory: columns by name, fields with their line.

mod parquet;

use super::error::{
    ERRORS_MAX, FIELD_BYTES_MAX, FieldError, FieldRule, ImportError, LINE_BYTES_MAX,
};
use super::parse_instant;
use chrono::{DateTime, Utc};
use csv::{ErrorKind, StringRecord};
use fleet::{NAME_CHARS_MAX, NewName};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A file of columns and lines.
pub(super) struct Sheet {
    file: PathBuf,
    columns: Vec<String>,
    /// The columns that were requested.
    taken: BTreeSet<usize>,
    records: Vec<StringRecord>,
    wrong: Wrong,
}

/// What is wrong with a file, gathered so that all of it can be said at once.
#[derive(Clone, Default)]
pub(super) struct Wrong {
    errors: Vec<FieldError>,
    more: usize,
}

impl Wrong {
    /// The value, or nothing: then the error is noted.
    pub(super) fn take<T>(&mut self, read: Result<T, FieldError>) -> Option<T> {
        read.map_err(|error| self.note(error)).ok()
    }

    /// Notes an error; one of a field that is noted already follows from that one.
    pub(super) fn note(&mut self, error: FieldError) {
        let same = |of: &FieldError| of.line == error.line && of.field == error.field;
        if self.errors.iter().any(same) {
            return;
        }
        if self.errors.len() < ERRORS_MAX { self.errors.push(error) } else { self.more += 1 }
    }

    /// Everything that was noted, if anything was.
    pub(super) fn end(mut self, sheet: &Sheet) -> Result<(), ImportError> {
        if self.errors.is_empty() {
            return Ok(());
        }
        self.errors.sort_by_key(|error| error.line);
        let (file, errors, more) = (sheet.file.clone(), self.errors, self.more);
        Err(ImportError::Fields { file, errors, more })
    }
}

/// A column of one sheet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Column(usize);

/// A line of a sheet.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    sheet: &'a Sheet,
    record: &'a StringRecord,
}

impl Sheet {
    /// Reads a file whole: Parquet if it begins as such, else CSV.
    pub(super) fn read(file: &Path) -> Result<Sheet, ImportError> {
        if parquet::is_parquet(file) {
            let (columns, records) = parquet::read(file)?;
            return Sheet::new(file, columns, records, Wrong::default());
        }
        let csv = |source| ImportError::Csv { file: file.to_owned(), source };
        let opened = std::fs::File::open(file).map_err(|error| csv(error.into()))?;
        let too_long = Rc::new(Cell::new(None));
        let mut reader = csv::Reader::from_reader(Lines::new(opened, Rc::clone(&too_long)));
        let endless = |source| match too_long.get() {
            None => csv(source),
            Some(line) => {
                let (field, rule) = ("record".to_owned(), Box::new(FieldRule::LineTooLong));
                let errors = vec![FieldError { line, field, rule }];
                ImportError::Fields { file: file.to_owned(), errors, more: 0 }
            }
        };
        let mut columns: Vec<String> =
            reader.headers().map_err(&endless)?.iter().map(str::to_owned).collect();
        // Spreadsheets put a byte order mark before the first column's name.
        if let Some(first) = columns.first_mut()
            && let Some(rest) = first.strip_prefix('\u{feff}')
        {
            *first = rest.to_owned();
        }
        let (mut records, mut wrong) = (Vec::new(), Wrong::default());
        for record in reader.into_records() {
            let error = match record {
                Ok(record) => {
                    let line = record.position().map_or(0, csv::Position::line);
                    for (column, field) in columns.iter().zip(&record) {
                        if field.len() > FIELD_BYTES_MAX {
                            let rule = Box::new(FieldRule::FieldTooLong { bytes: field.len() });
                            wrong.note(FieldError { line, field: column.clone(), rule });
                        }
                    }
                    records.push(record);
                    continue;
                }
                Err(error) => error,
            };
            let (position, rule) = match error.kind() {
                ErrorKind::UnequalLengths { pos: Some(position), expected_len, len } => {
                    (position, FieldRule::Length { found: *len, expected: *expected_len })
                }
                ErrorKind::Utf8 { pos: Some(position), .. } => (position, FieldRule::NotUtf8),
                _ => return Err(endless(error)),
            };
            let (line, field) = (position.line(), "record".to_owned());
            wrong.note(FieldError { line, field, rule: Box::new(rule) });
        }
        Sheet::new(file, columns, records, wrong)
    }

    fn new(
        file: &Path,
        columns: Vec<String>,
        records: Vec<StringRecord>,
        wrong: Wrong,
    ) -> Result<Sheet, ImportError> {
        let file = file.to_owned();
        for (at, column) in columns.iter().enumerate() {
            if columns[..at].contains(column) {
                return Err(ImportError::ColumnTwice { file, column: column.clone() });
            }
        }
        Ok(Sheet { file, columns, taken: BTreeSet::new(), records, wrong })
    }

    /// What is wrong with lines as such: to be added to, and ended.
    pub(super) fn wrong(&self) -> Wrong {
        self.wrong.clone()
    }

    /// The file it was read from.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Its name without the folders, for people who know which files they named.
    pub(super) fn title(&self) -> String {
        let name = self.file.file_name().unwrap_or(self.file.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// A column that must be there.
    pub(super) fn column(&mut self, name: &str) -> Result<Column, ImportError> {
        self.optional(name).ok_or_else(|| ImportError::Column {
            file: self.file.clone(),
            column: name.to_owned(),
            found: self.columns.join(", "),
        })
    }

    /// A column that may be there.
    pub(super) fn optional(&mut self, name: &str) -> Option<Column> {
        let at = self.columns.iter().position(|column| column == name)?;
        self.taken.insert(at);
        Some(Column(at))
    }

    /// The name of a column.
    pub(super) fn name(&self, column: Column) -> &str {
        &self.columns[column.0]
    }

    /// The columns that were not requested.
    pub(super) fn ignored(&self) -> Vec<String> {
        (self.columns.iter().enumerate())
            .filter(|(at, _)| !self.taken.contains(at))
            .map(|(_, column)| column.clone())
            .collect()
    }

    /// The lines below the header.
    pub(super) fn lines(&self) -> impl ExactSizeIterator<Item = Line<'_>> {
        self.records.iter().map(|record| Line { sheet: self, record })
    }
}

/// Whether a character is one that people do not see, or that turns what they see around.
fn is_hidden(of: char) -> bool {
    of.is_control()
        || matches!(of, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
        || matches!(of, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

/// Reads on as long as lines end, and notes the one that does not.
struct Lines<R> {
    from: R,
    line: u64,
    bytes: usize,
    too_long: Rc<Cell<Option<u64>>>,
}

impl<R> Lines<R> {
    fn new(from: R, too_long: Rc<Cell<Option<u64>>>) -> Lines<R> {
        Lines { from, line: 1, bytes: 0, too_long }
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(buffer)?;
        for byte in &buffer[..read] {
            self.bytes += 1;
            if *byte == b'\n' {
                (self.line, self.bytes) = (self.line + 1, 0);
            } else if self.bytes > LINE_BYTES_MAX {
                self.too_long.set(Some(self.line));
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
        }
        Ok(read)
    }
}

impl<'a> Line<'a> {
    /// The line's number, counted from one.
    pub(super) fn number(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    /// A field as it stands.
    pub(super) fn text(&self, column: Column) -> &'a str {
        // The reader refuses records that are shorter than the header.
        self.record.get(column.0).unwrap_or_default()
    }

    /// A name by the rule of names ([`fleet::NAME_RULE`]).
    pub(super) fn name(&self, column: Column) -> Result<&'a str, FieldError> {
        let name = self.text(column);
        match name.chars().count() {
            0 => Err(self.broken(column, FieldRule::Empty)),
            chars if chars > NAME_CHARS_MAX => {
                Err(self.broken(column, FieldRule::TooLong { chars }))
            }
            _ => match name.chars().position(is_hidden) {
                Some(at) => {
                    let character = name.chars().nth(at).unwrap_or_default();
                    let character = format!("U+{:04X}", u32::from(character));
                    let position = at + 1;
                    Err(self.broken(column, FieldRule::Character { character, position }))
                }
                None => match NewName::parse(name) {
                    Ok(_) => Ok(name),
                    Err(error) => Err(self.broken(column, FieldRule::Name(error))),
                },
            },
        }
    }

    /// A finite number that is not negative.
    pub(super) fn number_in(&self, column: Column) -> Result<f64, FieldError> {
        self.parse_number(column, self.text(column))
    }

    /// Such a number, or nothing where the field is empty.
    pub(super) fn optional_number(&self, column: Column) -> Result<Option<f64>, FieldError> {
        let text = self.text(column);
        if text.is_empty() { Ok(None) } else { self.parse_number(column, text).map(Some) }
    }

    /// Reads part of a field as a finite number that is not negative.
    pub(super) fn parse_number(&self, column: Column, text: &str) -> Result<f64, FieldError> {
        if text.is_empty() {
            return Err(self.broken(column, FieldRule::Empty));
        }
        let value: f64 = (text.trim().parse())
            .map_err(|_| self.broken(column, FieldRule::NotNumber { value: text.to_owned() }))?;
        if value.is_finite() && value >= 0.0 {
            return Ok(value);
        }
        let expected = "finite and not negative";
        Err(self.broken(column, FieldRule::Number { value, expected }))
    }

    /// A whole number that a priority can be.
    pub(super) fn whole(&self, column: Column) -> Result<i32, FieldError> {
        let value = self.number_in(column)?;
        #[expect(clippy::cast_possible_truncation, reason = "compared with what it was")]
        let whole = value as i32;
        if f64::from(whole) == value {
            return Ok(whole);
        }
        let expected = "a whole number of at most 2147483647";
        Err(self.broken(column, FieldRule::Number { value, expected }))
    }

    /// True or false.
    pub(super) fn flag(&self, column: Column) -> Result<bool, FieldError> {
        match self.text(column).trim() {
            "" => Err(self.broken(column, FieldRule::Empty)),
            "true" | "True" | "TRUE" | "1" => Ok(true),
            "false" | "False" | "FALSE" | "0" => Ok(false),
            other => {
                let (value, expected) = (other.to_owned(), "true, false, 1, 0");
                Err(self.broken(column, FieldRule::Word { value, expected }))
            }
        }
    }

    /// A name, or nothing where the field is empty.
    pub(super) fn optional_name(&self, column: Column) -> Result<Option<&'a str>, FieldError> {
        if self.text(column).is_empty() { Ok(None) } else { self.name(column).map(Some) }
    }

    /// An instant: RFC 3339, or seconds since `epoch`, or else Unix seconds.
    pub(super) fn instant(
        &self,
        column: Column,
        epoch: Option<DateTime<Utc>>,
    ) -> Result<DateTime<Utc>, FieldError> {
        let text = self.text(column).trim();
        if text.is_empty() {
            return Err(self.broken(column, FieldRule::Empty));
        }
        parse_instant(text, epoch).map_err(|rule| self.broken(column, rule))
    }

    /// An instant, or nothing where the field is empty.
    pub(super) fn optional_instant(
        &self,
        column: Column,
        epoch: Option<DateTime<Utc>>,
    ) -> Result<Option<DateTime<Utc>>, FieldError> {
        let empty = self.text(column).trim().is_empty();
        if empty { Ok(None) } else { self.instant(column, epoch).map(Some) }
    }

    /// The pairs of a field `name:number;name:number`, in its order.
    pub(super) fn pairs(&self, column: Column) -> Result<Vec<(&'a str, f64)>, FieldError> {
        let mut pairs: Vec<(&str, f64)> = Vec::new();
        let text = self.text(column);
        if text.is_empty() {
            return Ok(pairs);
        }
        for pair in text.split(';') {
            // The last colon: names may have colons of their own.
            let malformed = || {
                let expected = "name:number;name:number";
                self.broken(column, FieldRule::Pair { pair: pair.to_owned(), expected })
            };
            let (name, number) = pair.rsplit_once(':').ok_or_else(malformed)?;
            if name.is_empty() || number.is_empty() {
                return Err(malformed());
            }
            if pairs.iter().any(|&(other, _)| other == name) {
                let name = name.to_owned();
                return Err(self.broken(column, FieldRule::NamedTwice { name }));
            }
            pairs.push((name, self.parse_number(column, number)?));
        }
        Ok(pairs)
    }

    /// An error about one of its fields.
    pub(super) fn broken(&self, column: Column, rule: FieldRule) -> FieldError {
        FieldError {
            line: self.number(),
            field: self.sheet.columns[column.0].clone(),
            rule: Box::new(rule),
        }
    }
}
