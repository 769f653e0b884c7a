//! Documents in JSON columns.

use crate::infra::text::NOT_KEPT;
use serde::{Deserialize, Serialize};
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};
use serde_json::value::RawValue;
use sqlx::types::Json;
use std::io;

/// A JSON document. Those who write and read it know its type; the store keeps it and does not look into it.
///
/// Documents are equal if their text is. Postgres orders members, so compare what was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct Document(Json<Box<RawValue>>);

impl Document {
    /// The document of a value. A zero character, which `jsonb` refuses, is replaced.
    ///
    /// # Panics
    /// If the value has no form in JSON, such as a map whose keys are not text.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Document {
        let mut text = Vec::new();
        let written = value.serialize(&mut Serializer::with_formatter(&mut text, WithoutZeros));
        written.expect("the value has a form in JSON");
        let text = String::from_utf8(text).expect("JSON is UTF-8");
        Document(Json(RawValue::from_string(text).expect("it was written as JSON")))
    }

    /// The document without members.
    pub(crate) fn empty() -> Document {
        #[derive(Serialize)]
        struct Empty {}
        Document::of(&Empty {})
    }

    /// Reads it as a value.
    ///
    /// # Errors
    /// If it is not of this type.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// Its text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Document) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Document {}

/// Writes compact JSON, without zero characters.
struct WithoutZeros;

impl Formatter for WithoutZeros {
    fn write_char_escape<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(0) => write!(out, "{NOT_KEPT}"),
            escape => CompactFormatter.write_char_escape(out, escape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Document;
    use std::collections::BTreeMap;

    #[test]
    fn zero_character_is_replaced_everywhere() {
        let of = BTreeMap::from([("a\0", vec!["b\0", "\\u0000", "\u{1}"])]);
        let document = Document::of(&of);
        assert_eq!(document.text(), r#"{"a�":["b�","\\u0000","\u0001"]}"#);
        let read: BTreeMap<String, Vec<String>> = document.read().expect("its type");
        assert_eq!(read["a\u{FFFD}"], ["b\u{FFFD}", "\\u0000", "\u{1}"]);
        assert!(document.read::<Vec<String>>().is_err());
    }
}
