//! Fault domains that need not nest: switches over racks of several MSBs, power feeds, cooling loops.

use crate::id::{DomainName, PartitionName, ReservationName, ServerName};

/// A named partition of servers into fault domains, one of which may be lost at a time.
///
/// It may cross MSBs, racks and other partitions. A server in none of its domains is lost with none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its name, such as `switch`.
    pub name: PartitionName,
    /// Names of its domains, in order.
    pub domains: Vec<DomainName>,
    /// The domain of each server of the snapshot, in its order, as a position in `domains`.
    pub of_servers: Vec<Option<u32>>,
}

/// The prefix of columns of `servers.parquet` that are partitions: `domain:switch` is the partition `switch`.
pub const DOMAIN_COLUMN_PREFIX: &str = "domain:";

/// The name that no partition may have: `msb_buffer` of a reservation speaks of MSBs.
pub(crate) const MSB_PARTITION: &str = "msb";

/// Partitions as rows, and which reservations survive the loss of a domain of which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionParts {
    /// Columns `domain:NAME` of `servers.parquet`.
    pub partitions: Vec<PartitionColumn>,
    /// `survives.parquet`
    pub survives: Vec<SurvivesRow>,
}

impl PartitionParts {
    /// Whether there is nothing that version 2 of the format cannot say.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty() && self.survives.is_empty()
    }
}

/// A column `domain:NAME` of `servers.parquet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionColumn {
    /// The name of the partition.
    pub name: PartitionName,
    /// Servers with a domain, in any order; the others have none.
    pub domains: Vec<(ServerName, DomainName)>,
}

/// A row of `survives.parquet`: the capacity of a reservation is left after the loss of any one domain of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns of the public format, described there")]
pub struct SurvivesRow {
    pub reservation_id: ReservationName,
    pub partition: PartitionName,
}
