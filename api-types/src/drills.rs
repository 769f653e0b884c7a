//! `/ops/v1/drills` and `/ops/v1/give-way`: the effect of losing MSBs, and preemption.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A fault domain of a partition that may cross MSBs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FaultDomain {
    /// The partition, such as `switch`.
    pub partition: String,
    /// The domain.
    pub domain: String,
}

/// What to lose: an MSB or another fault domain, one of the two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DrillBody {
    /// The MSB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msb: Option<String>,
    /// The fault domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<FaultDomain>,
}

/// A reservation after the loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Kept {
    /// The reservation.
    pub reservation: String,
    /// Its owner.
    pub owner: String,
    /// 0 is the highest priority.
    pub priority: i32,
    /// Promised capacity.
    pub promised_rru: f64,
    /// What it has now: owned capacity in service, less what is in maintenance.
    pub held_rru: f64,
    /// Whether it has an embedded buffer, to survive the loss of an MSB.
    pub msb_buffer: bool,
    /// Whether its capacity is to survive this loss.
    pub covered: bool,
    /// Owned capacity in service, servers in maintenance included.
    pub owned_rru: f64,
    /// Of that, in maintenance.
    pub in_maintenance_rru: f64,
    /// Capacity required at once: the promise less a quarter of the embedded buffer.
    pub needed_at_once_rru: f64,
    /// Capacity left at once: no server in maintenance counts.
    pub left_at_once_rru: f64,
    /// Capacity left within 30 minutes: servers in maintenance that can be recalled by then count.
    pub left_rru: f64,
    /// Shortfall against the promise within 30 minutes of this loss, guaranteed for this case or not.
    pub missing_rru: f64,
    /// Capacity that its replica rule requires (a quorum); null: no replica rule.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub quorum_rru: Option<f64>,
    /// Whether it keeps what was promised for this case, at once and within 30 minutes: all of its capacity if that is to
    /// survive the loss, a quorum with a replica rule when an MSB is lost, nothing in particular otherwise.
    pub kept: bool,
}

/// Servers lent to an elastic reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Recalled {
    /// The elastic reservation.
    pub borrower: String,
    /// The reservation that owns them.
    pub owner: String,
    /// Their MSB.
    pub msb: String,
    /// Their hardware type.
    pub hardware_type: String,
    /// Number of servers.
    pub servers: u64,
}

/// Servers that preemption would move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GivesWay {
    /// The reservation that loses them; null: they are free.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub source: Option<String>,
    /// The reservation that gets them.
    pub target: String,
    /// Their MSB.
    pub msb: String,
    /// Their hardware type.
    pub hardware_type: String,
    /// Whether they are in use.
    pub in_use: bool,
    /// Number of servers.
    pub servers: u64,
}

/// A reservation before and after the preemptions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StandView {
    /// The reservation.
    pub reservation: String,
    /// Capacity in service after the loss, with open moves counted as done.
    pub before_rru: f64,
    /// That capacity after the preemptions.
    pub after_rru: f64,
}

/// Decisions of the mover, computed by its own functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MoverDecisions {
    /// Loans recalled at once.
    pub recalled: Vec<Recalled>,
    /// Loans recalled within half an hour, if the MSB is still lost.
    pub recalled_later: Vec<Recalled>,
    /// Preemptions, which an operator starts.
    pub give_way: Vec<GivesWay>,
    /// Reservations that are short or lose servers.
    pub stand: Vec<StandView>,
}

/// Result of a drill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Drill {
    /// The lost MSB; null: another fault domain is lost.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub msb: Option<String>,
    /// The lost fault domain; null: an MSB is lost.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub domain: Option<FaultDomain>,
    /// Time of the region, by the database's clock.
    pub taken_at: DateTime<Utc>,
    /// Last audit-trail entry at that time.
    pub seq: i64,
    /// Version of the targets.
    pub version: i64,
    /// Servers of it that no failure has out of service.
    pub servers_lost: usize,
    /// Of these, servers in use.
    pub servers_lost_in_use: usize,
    /// Whether every reservation keeps what was promised for this case; see `kept`.
    pub all_kept: bool,
    /// Guaranteed reservations, highest priority first.
    pub reservations: Vec<Kept>,
    /// Decisions of the mover; null: not available in this process, or none, because it does not detect the loss of a domain
    /// other than an MSB.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub mover: Option<MoverDecisions>,
}

/// A reservation before and after the preemptions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GiveWayStanding {
    /// The reservation.
    pub reservation: String,
    /// 0 is the highest priority.
    pub priority: i32,
    /// Promised capacity.
    pub promised_rru: f64,
    /// Capacity in service before.
    pub before_rru: f64,
    /// Capacity in service after.
    pub after_rru: f64,
}

/// When the mover acts without an operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GiveWayDelay {
    /// How long at least two MSBs must be lost.
    pub after_seconds: u64,
    /// When the mover acts, unless MSBs recover before; null: fewer than two are lost.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub at: Option<DateTime<Utc>>,
}

/// Preemptions, simulated or done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GiveWay {
    /// Whether they were done; otherwise they are simulated.
    pub applied: bool,
    /// Lost MSBs.
    pub lost: Vec<String>,
    /// Lost MSBs required, unless `anyway` is set.
    pub lost_min: usize,
    /// When the mover acts without an operator; null: never.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub by_itself: Option<GiveWayDelay>,
    /// Servers with a new target; null: simulated.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub servers: Option<usize>,
    /// Groups of servers that change reservation.
    pub moves: Vec<GivesWay>,
    /// Guaranteed reservations that are short or lose servers, highest priority first.
    pub reservations: Vec<GiveWayStanding>,
}

/// Starts preemptions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GiveWayAsked {
    /// Why, for the audit trail.
    #[cfg_attr(feature = "schema", schema(min_length = 1))]
    pub why: String,
    /// Even if fewer than two MSBs are lost, which embedded buffers cover.
    #[serde(default)]
    pub anyway: bool,
}
