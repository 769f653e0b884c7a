//! Where servers are: datacenter, MSB and rack, nested.

use crate::id::{DatacenterIx, DatacenterName, MsbIx, MsbName, RackName};
use serde::{Deserialize, Serialize};

/// A datacenter of the region: a group of the partition Psi^D.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datacenter {
    /// Its name.
    pub id: DatacenterName,
}

/// A main switch board, the largest fault domain inside a datacenter: a group of Psi^F.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Msb {
    /// Its name.
    pub id: MsbName,
    /// The datacenter it lies in.
    pub datacenter: DatacenterIx,
}

/// A rack: a group of Psi^K.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rack {
    /// Its name.
    pub id: RackName,
    /// The MSB it lies in.
    pub msb: MsbIx,
}

/// Whether a place is a placeholder for one that an inventory does not know: a rack named as its MSB, or an
/// MSB named as its datacenter. Its servers share it only because their real place is unknown, so it is not
/// a fault domain of its own.
pub fn is_stand_in(place: &str, outer: &str) -> bool {
    place == outer
}

/// The three partitions of the servers, from small to large, and single servers below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One server.
    Server,
    /// Psi^K
    Rack,
    /// Psi^F
    Msb,
    /// Psi^D
    Datacenter,
}

impl Scope {
    /// Every scope, the smallest first.
    pub const ALL: [Scope; 4] = [Scope::Server, Scope::Rack, Scope::Msb, Scope::Datacenter];

    /// The word of the snapshot format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Server => "server",
            Scope::Rack => "rack",
            Scope::Msb => "msb",
            Scope::Datacenter => "datacenter",
        }
    }

    /// Reads the word of the snapshot format.
    pub fn parse(word: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}
