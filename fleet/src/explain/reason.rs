//! Why a reservation is short: a closed list.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a reservation is short.
///
/// The order of the variants is the precedence: the first that holds is given. Reasons about
/// hardware are judged for the smallest set of hardware types that shows them (see
/// [`super::HardwareSet`]). One rule stands above the order: where servers that are free in the
/// targets would satisfy the reservation, no reason about hardware is given; it is
/// [`ShortfallReason::NotFoundInTime`], or [`ShortfallReason::Affinity`] or
/// [`ShortfallReason::ReplicaRule`] if they would do so only without that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShortfallReason {
    /// The region has no server of an eligible type.
    NoEligibleHardware,
    /// There would be enough if servers that are unavailable now were back.
    HardwareUnavailable,
    /// There would be enough if it were allowed in other datacenters too.
    AllowedDatacenters,
    /// There would be enough if one MSB could hold more of its replicas.
    ReplicaRule,
    /// More is asked of its types than there is of them.
    InsufficientHardware,
    /// There is enough, but not after the loss of any one MSB.
    MsbBuffer,
    /// There is enough, but not outside of a fault domain other than an MSB, or no assignment was found that survives the
    /// loss of one.
    FaultDomain,
    /// There is enough, but not in the datacenters it wants.
    Affinity,
    /// More important reservations hold what it needs.
    Priority,
    /// Others held what it needs before, and a solve makes no reservation worse.
    NoRegress,
    /// Policies in SQL leave no room for more: only plans of requests say so.
    Policy,
    /// No limit blocks it: the solve ended first.
    NotFoundInTime,
}

impl ShortfallReason {
    /// Every reason, in order of precedence.
    pub const ALL: [ShortfallReason; 12] = [
        ShortfallReason::NoEligibleHardware,
        ShortfallReason::HardwareUnavailable,
        ShortfallReason::AllowedDatacenters,
        ShortfallReason::ReplicaRule,
        ShortfallReason::InsufficientHardware,
        ShortfallReason::MsbBuffer,
        ShortfallReason::FaultDomain,
        ShortfallReason::Affinity,
        ShortfallReason::Priority,
        ShortfallReason::NoRegress,
        ShortfallReason::Policy,
        ShortfallReason::NotFoundInTime,
    ];

    /// The stable token, as in `report.json`.
    pub const fn as_str(self) -> &'static str {
        match self {
            ShortfallReason::NoEligibleHardware => "no_eligible_hardware",
            ShortfallReason::HardwareUnavailable => "hardware_unavailable",
            ShortfallReason::AllowedDatacenters => "allowed_datacenters",
            ShortfallReason::ReplicaRule => "replica_rule",
            ShortfallReason::InsufficientHardware => "insufficient_hardware",
            ShortfallReason::MsbBuffer => "msb_buffer",
            ShortfallReason::FaultDomain => "fault_domain",
            ShortfallReason::Affinity => "affinity",
            ShortfallReason::Priority => "priority",
            ShortfallReason::NoRegress => "no_regress",
            ShortfallReason::Policy => "policy",
            ShortfallReason::NotFoundInTime => "not_found_in_time",
        }
    }

    /// Reads the stable token.
    pub fn parse(token: &str) -> Option<ShortfallReason> {
        ShortfallReason::ALL.into_iter().find(|reason| reason.as_str() == token)
    }
}

impl fmt::Display for ShortfallReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}
