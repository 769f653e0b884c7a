//! What is wrong with a policy, and where.

use std::fmt;

/// A policy that is refused: the place, the rule, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The file that holds the policy.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
    /// Name of the view, once it is known.
    pub policy: Option<String>,
    /// What is refused, and why.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if let Some(policy) = &self.policy {
            write!(out, "{policy}: ")?;
        }
        out.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(out, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PolicyError {}

/// A position in a file: line and column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub line: u64,
    pub column: u64,
}

/// Where in a statement something is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Place(Place),
    /// The first use of a word.
    Word(&'static str),
    Statement,
}

/// Something refused, before file and policy are known.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub at: At,
    pub message: String,
    pub hint: Option<String>,
}

impl Refused {
    pub fn new(message: impl Into<String>) -> Refused {
        Refused { at: At::Statement, message: message.into(), hint: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Refused {
        self.hint = Some(hint.into());
        self
    }

    pub fn word(mut self, word: &'static str) -> Refused {
        self.at = At::Word(word);
        self
    }

    /// At the first use of a word, unless a nearer place is known.
    pub fn or_word(self, word: &'static str) -> Refused {
        if self.at == At::Statement { self.word(word) } else { self }
    }

    /// At this place, unless one nearer to the cause is known.
    pub fn near(mut self, place: Option<Place>) -> Refused {
        if let (At::Statement, Some(place)) = (&self.at, place) {
            self.at = At::Place(place);
        }
        self
    }
}

impl From<crate::formula::Overflow> for Refused {
    fn from(_: crate::formula::Overflow) -> Refused {
        Refused::new("amounts are too large or have more than 38 digits after the point")
    }
}
