//! A rule of a format that a file breaks.

/// A member, and the rule that it breaks.
pub type Broken = (String, String);

pub fn broken(at: impl Into<String>, rule: impl Into<String>) -> Broken {
    (at.into(), rule.into())
}

/// A member of a JSON file that is not what it must be.
pub fn not_read(error: &serde_path_to_error::Error<serde_json::Error>) -> Broken {
    // The root has no name.
    let at = match error.path().to_string() {
        path if path.is_empty() || path == "." => "the file".to_owned(),
        path => path,
    };
    (at, error.inner().to_string())
}
