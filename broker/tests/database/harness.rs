//! Databases of tests, and errors as text.

pub use testkit::postgres::{Database, connect, execute, folder};

/// An error and its causes, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}
