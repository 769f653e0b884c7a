//! Roles of callers.

use crate::infra::words;
use std::fmt;

/// A role of callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Requests capacity, and changes the reservations of one owner.
    Owner,
    /// Runs the region: maintenance, failures, emergencies, switches. Includes every owner's rights.
    Operator,
    /// Manages tokens. Includes all other rights.
    Admin,
    /// Reports unavailability and use: for monitoring programs.
    Health,
    /// Requests emergency capacity: for programs that move services between regions.
    Emergency,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 6] =
        [Role::Viewer, Role::Owner, Role::Operator, Role::Admin, Role::Health, Role::Emergency];

    /// The role's word in the table and in the settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Owner => "owner",
            Role::Operator => "operator",
            Role::Admin => "admin",
            Role::Health => "health",
            Role::Emergency => "emergency",
        }
    }

    /// Parses a role's word.
    pub fn parse(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// Whether this role includes all rights of the other.
    pub const fn includes(self, other: Role) -> bool {
        match self {
            Role::Admin => true,
            Role::Operator => !matches!(other, Role::Admin),
            Role::Owner => matches!(other, Role::Owner | Role::Viewer),
            Role::Viewer => matches!(other, Role::Viewer),
            Role::Health => matches!(other, Role::Health | Role::Viewer),
            Role::Emergency => matches!(other, Role::Emergency | Role::Viewer),
        }
    }

    /// Whether the role may be limited to one owner. The role of an owner always is.
    pub const fn takes_owner(self) -> bool {
        matches!(self, Role::Viewer | Role::Owner)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

words::serialize_as_word! { Role }
