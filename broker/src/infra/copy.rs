//! Bulk writes into a staging table with `COPY`, in its text format.

use sqlx::PgConnection;
use sqlx::postgres::PgCopyIn;
use std::fmt::Write;

/// Bytes per message: small enough for memory, large enough to amortize a message's cost.
const CHUNK: usize = 1 << 20;

pub(crate) struct Rows<'c> {
    copy: PgCopyIn<&'c mut PgConnection>,
    buffer: String,
    first: bool,
}

impl<'c> Rows<'c> {
    pub(crate) async fn begin(
        db: &'c mut PgConnection,
        statement: &str,
    ) -> Result<Rows<'c>, sqlx::Error> {
        let copy = db.copy_in_raw(statement).await?;
        Ok(Rows { copy, buffer: String::with_capacity(CHUNK + 4096), first: true })
    }

    fn separate(&mut self) {
        if !self.first {
            self.buffer.push('\t');
        }
        self.first = false;
    }

    pub(crate) fn text(&mut self, value: &str) {
        self.separate();
        escape(value, &mut self.buffer);
    }

    /// Writes a number, `true` or `false`, which need no escaping; `None` is null.
    pub(crate) fn value(&mut self, value: Option<impl std::fmt::Display>) {
        self.separate();
        match value {
            Some(value) => write!(self.buffer, "{value}").expect("a string takes everything"),
            None => self.buffer.push_str("\\N"),
        }
    }

    pub(crate) async fn end_row(&mut self) -> Result<(), sqlx::Error> {
        self.buffer.push('\n');
        self.first = true;
        if self.buffer.len() >= CHUNK {
            self.copy.send(self.buffer.as_bytes()).await?;
            self.buffer.clear();
        }
        Ok(())
    }

    pub(crate) async fn finish(mut self) -> Result<u64, sqlx::Error> {
        self.copy.send(self.buffer.as_bytes()).await?;
        self.copy.finish().await
    }
}

/// Escapes the four characters with a meaning in the text format.
fn escape(value: &str, into: &mut String) {
    for part in value.split_inclusive(['\\', '\t', '\n', '\r']) {
        let mut characters = part.chars();
        let escaped = match characters.next_back() {
            Some('\\') => "\\\\",
            Some('\t') => "\\t",
            Some('\n') => "\\n",
            Some('\r') => "\\r",
            _ => {
                into.push_str(part);
                continue;
            }
        };
        into.push_str(characters.as_str());
        into.push_str(escaped);
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn escape_covers_characters_that_end_a_value() {
        let mut out = String::new();
        for value in ["plain", "a\tb", "\\N", "", "line\r\nline", "ü\\"] {
            escape(value, &mut out);
            out.push('|');
        }
        assert_eq!(out, "plain|a\\tb|\\\\N||line\\r\\nline|ü\\\\|");
    }
}
