//! All output of the program to standard output and standard error. Stored text may have control characters, such as
//! an escape sequence in a label: a terminal would execute them. Every text passes [`escaped`] here, and clippy
//! refuses other ways out (`clippy.toml`, and `lib.rs`).

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Stderr, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
    let mut out = out().lock();
    let text = escaped(text.trim_end());
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("writing the answer"),
    }
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
    use super::escaped;

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
