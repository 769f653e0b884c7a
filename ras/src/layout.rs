//! Tables and lists of facts for people, in the width of the terminal. Words, names and ids are never broken: a column
//! of prose is shortened between words, and columns that do not fit are left out, the last first. Pipes and
//! `--output wide` get everything.

use crate::terminal;
use std::collections::BTreeSet;
use std::fmt;
use unicode_width::UnicodeWidthStr;

/// Shows all rows where no option of the subcommand does.
pub const BY_JSON: &str = "--output json";

/// Between two columns.
const GAP: usize = 2;
/// Prose is not shortened below this width: less says nothing.
const PROSE_LEAST: usize = 20;
/// Facts are wrapped at this width without a terminal.
const FACTS_WIDTH: usize = 120;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Columns with numbers, which are aligned to the right.
    right: BTreeSet<usize>,
}

/// How many rows of a table are shown that grows with the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All.
    All,
    /// The first ones; this option shows the others.
    First(&'static str),
}

impl Rows {
    /// All if asked for with `--all`.
    pub fn of(all: bool) -> Rows {
        if all { Rows::All } else { Rows::First("--all") }
    }

    /// The most rows that are shown. `first`: where not all are.
    pub fn most(self, first: usize) -> usize {
        match self {
            Rows::All => usize::MAX,
            Rows::First(_) => first,
        }
    }

    /// The table, and the number of the `rows` that it does not show.
    pub fn below(self, table: &Table, rows: usize) -> String {
        let hidden = rows.saturating_sub(table.rows.len());
        match self {
            Rows::First(option) if hidden > 0 => format!("{table}\n… {hidden} more ({option})"),
            _ => table.to_string(),
        }
    }
}

/// A column as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    column: usize,
    width: usize,
}

/// The number of cells of a terminal that a text takes.
fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

impl Table {
    /// An empty table with these columns, identifying ones first; those in `right` have numbers.
    pub fn new(header: &[&str], right: std::ops::Range<usize>) -> Table {
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        Table { header, rows: Vec::new(), right: right.collect() }
    }

    /// Right-aligns this column.
    pub fn right(&mut self, column: usize) {
        self.right.insert(column);
    }

    /// Adds a row with a cell for each column.
    pub fn add_row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        // A row is one line.
        let cells = cells.into_iter().map(|cell| cell.into().replace('\n', " "));
        self.rows.push(cells.collect());
    }

    /// The lines: the header, a rule, and one for each row. `most`: the width to keep to.
    pub fn lines(&self, most: Option<usize>) -> Vec<String> {
        let shown = self.fit(most);
        let line = |cells: &[String]| {
            let mut line = String::new();
            for Shown { column, width } in &shown {
                let cell = shortened(cells.get(*column).map_or("", String::as_str), *width);
                let room = " ".repeat(width.saturating_sub(self::width(&cell)));
                if !line.is_empty() {
                    line.push_str(&" ".repeat(GAP));
                }
                line += &if self.right.contains(column) { room + &cell } else { cell + &room };
            }
            line.trim_end().to_owned()
        };
        let rule = shown.iter().map(|of| of.width + GAP).sum::<usize>().saturating_sub(GAP);
        let head = [line(&self.header), "─".repeat(rule)];
        head.into_iter().chain(self.rows.iter().map(|row| line(row))).collect()
    }

    /// The rows alone, in the width of the terminal.
    pub fn body(&self) -> Vec<String> {
        self.lines(terminal::width()).split_off(2)
    }

    /// What is said below the table of columns that are left out; empty: all are shown.
    pub fn left_out(&self, most: Option<usize>) -> String {
        let shown = self.fit(most);
        let hidden: Vec<&str> = (self.header.iter().enumerate())
            .filter(|(column, _)| shown.iter().all(|of| of.column != *column))
            .map(|(_, name)| name.as_str())
            .collect();
        if hidden.is_empty() {
            return String::new();
        }
        format!("\n… not shown: {} (--output wide)", hidden.join(", "))
    }

    /// The columns that fit and their widths.
    fn fit(&self, most: Option<usize>) -> Vec<Shown> {
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let whole = |column: usize| {
            let widest = cells(column).map(|cell| width(cell)).max().unwrap_or(0);
            Shown { column, width: widest.max(width(&self.header[column])) }
        };
        let mut columns = self.header.len();
        let Some(most) = most else { return (0..columns).map(whole).collect() };
        loop {
            let mut shown: Vec<Shown> = (0..columns).map(whole).collect();
            let total = |shown: &[Shown]| {
                shown.iter().map(|of| of.width + GAP).sum::<usize>().saturating_sub(GAP)
            };
            while let Some(over) = total(&shown).checked_sub(most).filter(|over| *over > 0) {
                let least = |column: usize| PROSE_LEAST.max(width(&self.header[column]));
                // The first column identifies the row.
                let prose = shown.iter_mut().skip(1).filter(|of| {
                    of.width > least(of.column) && cells(of.column).any(|cell| cell.contains(' '))
                });
                let Some(widest) = prose.max_by_key(|of| of.width) else { break };
                widest.width = least(widest.column).max(widest.width.saturating_sub(over));
            }
            if total(&shown) <= most || columns <= 1 {
                return shown;
            }
            columns -= 1;
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = terminal::width();
        write!(out, "{}{}", self.lines(most).join("\n"), self.left_out(most))
    }
}

/// The text, cut between words if it is wider than this.
fn shortened(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut short = String::new();
    for word in text.split(' ') {
        // Room for a blank before the word, and for the mark.
        if width(&short) + width(word) + 3 > most {
            break;
        }
        if !short.is_empty() {
            short.push(' ');
        }
        short += word;
    }
    if short.is_empty() { "…".to_owned() } else { short + " …" }
}

/// Names and what is said about them, a line each; text too long for a line goes on below itself.
pub fn facts<N: AsRef<str>, T: AsRef<str>>(facts: &[(N, T)]) -> String {
    let names = facts.iter().map(|(name, _)| width(name.as_ref())).max().unwrap_or(0) + GAP;
    let most = terminal::width().unwrap_or(FACTS_WIDTH);
    let mut lines = Vec::new();
    for (name, text) in facts {
        let mut name = name.as_ref();
        for text in text.as_ref().lines() {
            for part in wrapped(text, most.saturating_sub(names)) {
                let room = " ".repeat(names - width(name));
                lines.push(format!("{name}{room}{part}").trim_end().to_owned());
                name = "";
            }
        }
    }
    lines.join("\n")
}

/// A text in lines of at most this width; a longer word has a line of its own.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        if last.is_empty() {
            last.push_str(word);
        } else if width(last) + 1 + width(word) <= most {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0198a2c4-1111-7222-8333-444455556666";

    fn requests() -> Table {
        let mut table = Table::new(&["request", "owner", "RRU", "why"], 2..3);
        table.add_row([ID, "shop", "12", "the fans of this rack are too loud for people"]);
        table.add_row([ID, "数据", "1,200", "-"]);
        table
    }

    #[test]
    fn without_a_limit_a_table_is_whole() {
        let lines = requests().lines(None);
        assert!(lines[2].ends_with("too loud for people"), "{lines:?}");
        assert!(lines[2].contains("shop      12  the"), "numbers are right-aligned: {lines:?}");
        assert!(lines[3].contains("数据   1,200"), "wide letters take two cells: {lines:?}");
        assert_eq!(requests().left_out(None), "");
    }

    #[test]
    fn narrow_table_shortens_prose_between_words_then_leaves_columns_out() {
        let table = requests();
        let lines = table.lines(Some(72));
        assert!(lines.iter().all(|line| width(line) <= 72), "{lines:?}");
        assert!(lines[2].ends_with("the fans of this …"), "{lines:?}");
        let narrow = table.lines(Some(50));
        assert_eq!(narrow[0].split_whitespace().collect::<Vec<_>>(), ["request", "owner", "RRU"]);
        assert_eq!(table.left_out(Some(50)), "\n… not shown: why (--output wide)");
        // An id stays whole even where nothing fits.
        assert_eq!(table.lines(Some(10))[2], ID);
    }

    #[test]
    fn facts_wrap_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped(ID, 7), [ID]);
        assert_eq!(facts(&[("a", "1"), ("long", "2\n3")]), "a     1\nlong  2\n      3");
    }
}
