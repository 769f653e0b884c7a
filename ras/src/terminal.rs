//! All output of the program to standard output and standard error. Stored text may have control characters, such as
//! an escape sequence in a label: a terminal would execute them. Every text passes [`escaped`] here, and clippy
//! refuses other ways out (`clippy.toml`, and `lib.rs`).

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Stderr, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// Refresh interval of a line of progress.
const TICK: Duration = Duration::from_millis(100);

/// Minimum width of a terminal.
const WIDTH_LEAST: u16 = 40;

/// Whether tables are printed whole on a terminal, too.
static WIDE: AtomicBool = AtomicBool::new(false);

#[expect(clippy::disallowed_methods, reason = "the one way out")]
fn out() -> Stdout {
    std::io::stdout()
}

#[expect(clippy::disallowed_methods, reason = "the one way out")]
fn err() -> Stderr {
    std::io::stderr()
}

/// Whether standard output is a terminal.
pub fn is_out() -> bool {
    out().is_terminal()
}

/// Whether standard error is a terminal.
pub fn is_err() -> bool {
    err().is_terminal()
}

/// The width of the terminal that standard output is; `None`: it is a pipe or a file, or everything is wanted.
pub fn width() -> Option<usize> {
    if WIDE.load(Ordering::Relaxed) || !is_out() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(out()).ok()?.ws_col;
    // Some terminals report a width of 0.
    (columns >= WIDTH_LEAST).then(|| columns.into())
}

/// Prints tables whole, wider than the terminal if needed.
pub fn set_wide() {
    WIDE.store(true, Ordering::Relaxed);
}

/// The text with its control characters as escapes (`\u001b`), which are valid in JSON strings, too. Only line ends
/// and tabs are kept. Characters that reverse the direction of the text around them are escaped, too.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if acts(letter) {
            shown.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// Whether a terminal may act on a character instead of showing it.
fn acts(letter: char) -> bool {
    let control = letter.is_control() && letter != '\n' && letter != '\t';
    control
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Prints an answer to standard output. A closed pipe is not an error.
///
/// # Errors
/// If standard output cannot be written.
pub fn print(text: &str) -> Result<()> {
    print_more(text).map(|_| ())
}

/// Prints a part of an answer to standard output. Returns whether it is still read: a closed pipe is not an error.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_more(text: &str) -> Result<bool> {
    let text = escaped(text.trim_end());
    written(&[text.as_bytes(), b"\n"])
}

fn written(parts: &[&[u8]]) -> Result<bool> {
    let mut out = out().lock();
    let written = parts.iter().try_for_each(|part| out.write_all(part));
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        other => other.map(|()| true).context("writing the answer"),
    }
}

/// A text on the terminal that is drawn again in its place.
#[derive(Debug, Default)]
pub struct Drawing {
    /// Lines of the terminal that it takes.
    lines: usize,
}

impl Drawing {
    /// Draws the text in place of the last one. Lines that the terminal is too low for are counted instead. Returns
    /// whether standard output is still read.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn draw(&mut self, text: &str) -> Result<bool> {
        let size = rustix::termios::tcgetwinsize(out()).ok();
        let size = size.map(|of| (usize::from(of.ws_col), usize::from(of.ws_row)));
        let (columns, rows) =
            size.filter(|(columns, rows)| *columns > 0 && *rows > 2).unwrap_or((80, 24));
        let text = escaped(text.trim_end());
        let (text, lines) = in_height(&text, columns, rows - 1);
        // To the first line of the last text, and clear from there.
        let back =
            if self.lines == 0 { String::new() } else { format!("\u{1b}[{}F\u{1b}[J", self.lines) };
        self.lines = lines;
        written(&[back.as_bytes(), text.as_bytes(), b"\n"])
    }
}

/// The text in at most this many lines of a terminal, and how many it takes.
fn in_height(text: &str, columns: usize, most: usize) -> (String, usize) {
    let height = |line: &str| UnicodeWidthStr::width(line).div_ceil(columns).max(1);
    let all: Vec<&str> = text.lines().collect();
    let total: usize = all.iter().map(|line| height(line)).sum();
    if total <= most {
        return (text.to_owned(), total);
    }
    let (mut shown, mut taken) = (0, 1);
    while taken + height(all[shown]) <= most {
        taken += height(all[shown]);
        shown += 1;
    }
    let hidden = all.len() - shown;
    let more = format!("… {hidden} more lines");
    (all[..shown].iter().copied().chain([&*more]).collect::<Vec<_>>().join("\n"), taken)
}

/// Prints a line to standard error.
pub fn say(text: &str) {
    // A failure to write an error cannot be reported.
    let _ = writeln!(err(), "{}", escaped(text));
}

/// Prints a note or an error to standard error, with the name of the program.
pub fn tell(text: &str) {
    say(&format!("ras: {text}"));
}

/// Prints a question to standard error; the answer is typed behind it.
///
/// # Errors
/// If standard error cannot be written.
pub fn ask(question: &str) -> Result<()> {
    let mut err = err();
    write!(err, "{}", escaped(question)).and_then(|()| err.flush()).context("asking")
}

/// Where the logs go: each line is escaped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        err().write_all(escaped(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        err().flush()
    }
}

/// A line of progress on standard error, on a terminal only.
pub struct Spinner(ProgressBar);

impl Spinner {
    /// A line in this form, such as `{spinner} {wide_msg}`; `None`: standard error is no terminal.
    pub fn new(form: &str) -> Option<Spinner> {
        is_err().then(|| {
            let line = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template(form) {
                line.set_style(style);
            }
            line.enable_steady_tick(TICK);
            Spinner(line)
        })
    }

    /// Shows a text in place of the last.
    pub fn set(&self, text: &str) {
        self.0.set_message(escaped(text).into_owned());
    }

    /// Prints a permanent line above.
    pub fn note(&self, text: &str) {
        self.0.println(escaped(text));
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{escaped, in_height};

    #[test]
    fn drawing_is_no_higher_than_the_terminal() {
        assert_eq!(in_height("a\n\nb", 10, 3), ("a\n\nb".to_owned(), 3));
        assert_eq!(in_height("a\nb\nc\nd", 20, 3), ("a\nb\n… 2 more lines".to_owned(), 3));
        // A line wider than the terminal takes two.
        let wide = "12345678901\nb";
        assert_eq!(in_height(wide, 10, 3), (wide.to_owned(), 3));
        assert_eq!(in_height(&format!("a\n{wide}"), 10, 3), ("a\n… 2 more lines".to_owned(), 2));
    }

    #[test]
    fn control_characters_are_shown_not_executed() {
        for (stored, shown) in [
            ("plain, with ü and 中\n\tnext", "plain, with ü and 中\n\tnext"),
            ("\u{1b}]0;owned\u{7}", "\\u001b]0;owned\\u0007"),
            ("a\rb\u{8}c\u{7f}", "a\\u000db\\u0008c\\u007f"),
            // One character that begins an escape sequence.
            ("\u{9b}31m", "\\u009b31m"),
            ("\u{202e}gnp.exe", "\\u202egnp.exe"),
        ] {
            assert_eq!(escaped(stored), shown);
        }
        let json = serde_json::to_string("\u{9b}31m").expect("a string");
        let read: String = serde_json::from_str(&escaped(&json)).expect("still JSON");
        assert_eq!(read, "\u{9b}31m");
    }
}
