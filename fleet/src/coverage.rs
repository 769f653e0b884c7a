//! What the source of a snapshot knows.
//!
//! A snapshot folder always has every column, but an inventory in CSV rarely does: it says where servers
//! are and nothing about their holders. A default for a column that the source lacks is not a statement
//! about the region, so the import of an inventory into a store has to know which columns are meant.

use serde::{Deserialize, Serialize};

/// What the source of a snapshot says something about; the rest of the snapshot is defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// Columns of `servers.parquet`.
    pub servers: ServerColumns,
    /// Columns of `reservations.parquet`, and `affinity.parquet`; `None`: no reservations at all.
    pub reservations: Option<ReservationColumns>,
    /// `unavailability.parquet`.
    pub unavailability: bool,
    /// `weights` of `region.json`.
    pub weights: bool,
    /// `shared_buffer_fraction` of `region.json`.
    pub shared_buffer_fraction: bool,
}

/// Columns of `servers.parquet` that an inventory may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the columns of the public format, described there")]
pub struct ServerColumns {
    pub current_reservation: bool,
    /// With `target_pending`.
    pub target_reservation: bool,
    pub in_use: bool,
    pub loaned_to: bool,
    pub power_watts: bool,
    /// All partitions: a column `domain:NAME` that is not there means that the region has no such partition. Without it
    /// columns that are there count, and other partitions stay.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub domains: bool,
}

/// Columns of `reservations.parquet` that an inventory may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the columns of the public format, described there")]
pub struct ReservationColumns {
    pub owner: bool,
    /// Without it the source lists guaranteed reservations alone, and says nothing of others.
    pub kind: bool,
    pub priority: bool,
    pub msb_alpha: bool,
    pub rack_alpha: bool,
    pub affinity_theta: bool,
    pub host_profile: bool,
    /// `affinity.parquet`
    pub affinity: bool,
    /// `allowed_datacenters.parquet`
    pub allowed_datacenters: bool,
    /// `replicas` and `replicas_per_msb`
    pub replicas: bool,
    /// `survives.parquet`
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub survives: bool,
}

impl ReservationColumns {
    /// Names, sizes, values and buffers alone.
    pub const NONE: ReservationColumns = ReservationColumns {
        owner: false,
        kind: false,
        priority: false,
        msb_alpha: false,
        rack_alpha: false,
        affinity_theta: false,
        host_profile: false,
        affinity: false,
        allowed_datacenters: false,
        replicas: false,
        survives: false,
    };
}

impl Coverage {
    /// A source that knows everything: another store, a generator, a person who wrote a whole snapshot.
    pub const WHOLE: Coverage = Coverage {
        servers: ServerColumns {
            current_reservation: true,
            target_reservation: true,
            in_use: true,
            loaned_to: true,
            power_watts: true,
            domains: true,
        },
        reservations: Some(ReservationColumns {
            owner: true,
            kind: true,
            priority: true,
            msb_alpha: true,
            rack_alpha: true,
            affinity_theta: true,
            host_profile: true,
            affinity: true,
            allowed_datacenters: true,
            replicas: true,
            survives: true,
        }),
        unavailability: true,
        weights: true,
        shared_buffer_fraction: true,
    };

    /// A source that knows where servers stand, and of what type they are, and nothing else.
    pub const PLACES: Coverage = Coverage {
        servers: ServerColumns {
            current_reservation: false,
            target_reservation: false,
            in_use: false,
            loaned_to: false,
            power_watts: false,
            domains: false,
        },
        reservations: None,
        unavailability: false,
        weights: false,
        shared_buffer_fraction: false,
    };

    /// The columns and tables that it says nothing about, as the snapshot format names them.
    pub fn lacks(&self) -> Vec<&'static str> {
        let servers = &self.servers;
        let mut all = vec![
            ("servers.current_reservation", servers.current_reservation),
            ("servers.target_reservation", servers.target_reservation),
            ("servers.in_use", servers.in_use),
            ("servers.loaned_to", servers.loaned_to),
            ("servers.power_watts", servers.power_watts),
            ("fault domains without a column", servers.domains),
            ("unavailability", self.unavailability),
            ("weights", self.weights),
            ("shared_buffer_fraction", self.shared_buffer_fraction),
        ];
        match &self.reservations {
            None => all.push(("reservations", false)),
            Some(columns) => all.extend([
                ("reservations.owner", columns.owner),
                ("reservations of other kinds than guaranteed", columns.kind),
                ("reservations.priority", columns.priority),
                ("reservations.msb_alpha", columns.msb_alpha),
                ("reservations.rack_alpha", columns.rack_alpha),
                ("reservations.affinity_theta", columns.affinity_theta),
                ("reservations.host_profile", columns.host_profile),
                ("affinity", columns.affinity),
                ("allowed_datacenters", columns.allowed_datacenters),
                ("reservations.replicas", columns.replicas),
                ("survives", columns.survives),
            ]),
        }
        all.into_iter().filter(|(_, known)| !known).map(|(name, _)| name).collect()
    }
}

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage::WHOLE
    }
}
