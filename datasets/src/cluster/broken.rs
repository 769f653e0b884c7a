//! A rule of a format that a file breaks.

/// A member, and the rule that it breaks.
pub type Broken = (String, String);

pub fn broken(at: impl Into<String>, rule: impl Into<String>) -> Broken {
    (at.into(), rule.into())
}
