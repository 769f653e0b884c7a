//! CSV as rows of text, for lists that a server reads.

use std::collections::BTreeMap;

/// The line a row begins on, and its fields by column.
pub type PlainRow = (u64, BTreeMap<String, String>);

/// The rows of CSV with a header line: the line each begins on, and its fields by column.
///
/// # Errors
/// If it is not CSV, or a row has more or fewer fields than the header.
pub fn plain_rows(text: &str) -> Result<Vec<PlainRow>, csv::Error> {
    // Spreadsheets put a byte order mark before the first column's name.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let columns = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        let fields = columns.iter().zip(&record);
        rows.push((line, fields.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()));
    }
    Ok(rows)
}
