//! The rule of names that users choose.
//!
//! It applies where something is created or renamed. What was stored under an older rule keeps its name: it is
//! read, changed and removed under it.

use crate::id::{NAME_CHARS_MAX, Name};
use std::ops::Deref;

/// The rule in one sentence.
pub const NAME_RULE: &str = "a name has 1 to 128 characters: letters, digits, single spaces and - _ . : + @; \
    / separates its parts, and no part is empty, is . or .., or begins or ends with a space";

/// A name that keeps [`NAME_RULE`], for what is created or renamed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NewName(Name);

/// What of [`NAME_RULE`] a text breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NameError {
    #[error("it has {chars} characters; {NAME_RULE}")]
    Length { chars: usize },
    /// Counted from one.
    #[error("character {position} is {character}; {NAME_RULE}")]
    Character { character: String, position: usize },
    #[error("two spaces follow each other; {NAME_RULE}")]
    Spaces,
    #[error("part {part:?} is not allowed; {NAME_RULE}")]
    Part { part: String },
}

impl NameError {
    /// A word for programs.
    pub const fn reason(&self) -> &'static str {
        match self {
            NameError::Length { .. } => "length",
            _ => "name",
        }
    }
}

fn is_allowed(of: char) -> bool {
    of.is_alphanumeric() || "-_.:+@ /".contains(of)
}

/// A character for a message: those that do not print by their number.
fn shown(of: char) -> String {
    if of.is_control() || of.is_whitespace() || !of.is_ascii() {
        format!("U+{:04X}", u32::from(of))
    } else {
        format!("{of:?}")
    }
}

impl NewName {
    /// Checks a text.
    ///
    /// # Errors
    /// What of the rule it breaks.
    pub fn parse(text: &str) -> Result<NewName, NameError> {
        let chars = text.chars().count();
        if !(1..=NAME_CHARS_MAX).contains(&chars) {
            return Err(NameError::Length { chars });
        }
        if let Some((at, of)) = text.chars().enumerate().find(|(_, of)| !is_allowed(*of)) {
            return Err(NameError::Character { character: shown(of), position: at + 1 });
        }
        if text.contains("  ") {
            return Err(NameError::Spaces);
        }
        let bad = |part: &&str| matches!(*part, "" | "." | "..") || part.trim() != *part;
        match text.split('/').find(bad) {
            Some(part) => Err(NameError::Part { part: part.to_owned() }),
            None => Ok(NewName(text.into())),
        }
    }
}

impl Deref for NewName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<NewName> for Name {
    fn from(name: NewName) -> Name {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::NewName;

    #[test]
    fn names_that_people_choose_are_allowed() {
        let long = "x".repeat(128);
        for name in [
            "web",
            "b/ü",
            "team/web.2",
            "Dell R740",
            "aa:bb:cc",
            "shop@corp",
            "...",
            "a..b",
            "数据",
            &long,
        ] {
            assert_eq!(NewName::parse(name).as_deref(), Ok(name));
        }
    }

    #[test]
    fn error_names_what_is_wrong_and_the_rule() {
        let long = "x".repeat(129);
        for (name, said) in [
            ("", "it has 0 characters"),
            (&long, "it has 129 characters"),
            ("a\nb", "character 2 is U+000A"),
            ("\u{1b}[31m", "character 1 is U+001B"),
            ("a\u{200b}b", "character 2 is U+200B"),
            ("a\u{a0}b", "character 2 is U+00A0"),
            ("<b>", "character 1 is '<'"),
            ("a%2Fb", "character 2 is '%'"),
            ("a  b", "two spaces"),
            (" a", "part \" a\""),
            ("a/b ", "part \"b \""),
            ("..", "part \"..\""),
            ("a/./b", "part \".\""),
            ("/a", "part \"\""),
            ("a//b", "part \"\""),
            ("a/", "part \"\""),
        ] {
            let error = NewName::parse(name).expect_err(name).to_string();
            assert!(error.contains(said) && error.contains("1 to 128 characters"), "{error}");
        }
    }
}
