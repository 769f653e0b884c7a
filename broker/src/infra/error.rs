//! Errors of Postgres, classified.

use std::fmt;

/// A failed database operation: what was being done, and the kind of fault.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {fault}")]
pub struct DbError {
    /// The operation, as a gerund phrase.
    pub doing: &'static str,
    /// The kind of fault, for the caller's decision to retry or give up.
    pub fault: Fault,
    /// The driver's error.
    #[source]
    source: sqlx::Error,
}

/// Kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server is absent, starting, stopping, or closed the connection. The outcome of a commit in progress
    /// is unknown.
    Unreachable,
    /// The server does not answer in time.
    Late,
    /// The server has no free connection slot.
    OutOfConnections,
    /// No connection became available in time, for an unknown reason: all connections of the pool are busy, or
    /// the server is full, absent or silent.
    NoConnection,
    /// The server is read-only: a standby, or configured so.
    ReadOnly,
    /// The server's disk is full.
    DiskFull,
    /// A constraint of the schema refused the change; nothing was written.
    Refused {
        /// The constraint's name.
        constraint: String,
    },
    /// A conflict with another transaction, or a time limit; a retry may succeed.
    Interrupted,
    /// The role lacks a privilege.
    Forbidden,
    /// Anything else: a bug here, or damage in the database.
    Unexpected,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unreachable => out.write_str("Postgres cannot be reached"),
            Fault::Late => out.write_str("Postgres does not answer in time"),
            Fault::OutOfConnections => out.write_str("Postgres has no connection free"),
            Fault::NoConnection => {
                out.write_str("no connection to Postgres became available in time")
            }
            Fault::ReadOnly => out.write_str("Postgres is read-only"),
            Fault::DiskFull => out.write_str("the disk of Postgres is full"),
            Fault::Refused { constraint } => write!(out, "refused by constraint {constraint}"),
            Fault::Interrupted => {
                out.write_str("another transaction or a time limit was in the way")
            }
            Fault::Forbidden => out.write_str("the role lacks a privilege for it"),
            Fault::Unexpected => out.write_str("Postgres answered with an error"),
        }
    }
}

impl Fault {
    fn of(error: &sqlx::Error) -> Fault {
        match error {
            sqlx::Error::Io(_) | sqlx::Error::PoolClosed | sqlx::Error::Tls(_) => {
                Fault::Unreachable
            }
            sqlx::Error::PoolTimedOut => Fault::NoConnection,
            sqlx::Error::Database(said) => {
                Fault::of_code(said.code().as_deref().unwrap_or_default(), said.constraint())
            }
            _ => Fault::Unexpected,
        }
    }

    /// Classifies a SQLSTATE (Postgres manual, appendix A).
    fn of_code(code: &str, constraint: Option<&str>) -> Fault {
        match code {
            "53300" => Fault::OutOfConnections,
            "53100" => Fault::DiskFull,
            "25006" => Fault::ReadOnly,
            "42501" => Fault::Forbidden,
            "40001" | "40P01" | "55P03" | "57014" => Fault::Interrupted,
            "57P01" | "57P02" | "57P03" => Fault::Unreachable,
            _ if code.starts_with("08") => Fault::Unreachable,
            _ if code.starts_with("23") => {
                Fault::Refused { constraint: constraint.unwrap_or("without a name").to_owned() }
            }
            _ => Fault::Unexpected,
        }
    }
}

impl DbError {
    pub(crate) fn new(doing: &'static str, source: sqlx::Error) -> DbError {
        DbError { doing, fault: Fault::of(&source), source }
    }

    /// An error for an operation that was given up after a timeout.
    pub(crate) fn late(doing: &'static str) -> DbError {
        let source = sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
        DbError { doing, fault: Fault::Late, source }
    }

    /// Whether a retry may succeed, at once or later. The failed attempt may have taken effect.
    pub fn is_passing(&self) -> bool {
        match self.fault {
            Fault::Unreachable
            | Fault::Late
            | Fault::OutOfConnections
            | Fault::NoConnection
            | Fault::ReadOnly
            | Fault::DiskFull
            | Fault::Interrupted => true,
            Fault::Refused { .. } | Fault::Forbidden | Fault::Unexpected => false,
        }
    }

    /// Whether the server may be starting: no listener, or recovery.
    pub(crate) fn is_starting(&self) -> bool {
        match &self.source {
            sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
            sqlx::Error::Database(said) => said.code().as_deref() == Some("57P03"),
            _ => false,
        }
    }

    /// Whether the named constraint refused the change.
    pub(crate) fn refused_by(&self, name: &str) -> bool {
        matches!(&self.fault, Fault::Refused { constraint } if constraint == name)
    }
}

/// Attaches the current operation to an error of the driver.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, DbError>;
}

impl<T> Doing<T> for Result<T, sqlx::Error> {
    fn doing(self, doing: &'static str) -> Result<T, DbError> {
        self.map_err(|source| DbError::new(doing, source))
    }
}

#[cfg(test)]
mod tests {
    use super::Fault;

    #[test]
    fn sqlstates_map_to_faults() {
        assert_eq!(Fault::of_code("53100", None), Fault::DiskFull);
        assert_eq!(Fault::of_code("53300", None), Fault::OutOfConnections);
        assert_eq!(Fault::of_code("25006", None), Fault::ReadOnly);
        assert_eq!(Fault::of_code("57P01", None), Fault::Unreachable);
        assert_eq!(Fault::of_code("08006", None), Fault::Unreachable);
        assert_eq!(Fault::of_code("40001", None), Fault::Interrupted);
        assert_eq!(Fault::of_code("42P01", None), Fault::Unexpected);
        let refused = Fault::of_code("23505", Some("servers_name"));
        assert_eq!(refused, Fault::Refused { constraint: "servers_name".to_owned() });
    }
}
