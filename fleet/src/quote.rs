//! The answer to "could I have this capacity?" as a document, `ras-plan/1`.
//!
//! It is written by the planner, stored with the plan, checked again when the plan is applied, and
//! shown to people. Reading is strict: a member that is missing, renamed or unknown is an error,
//! because a promise must never rest on a default.

use crate::audit::{DatacenterShare, as_rru, from_rru, required};
pub use crate::explain::HIDDEN;
use crate::explain::{Evidence, HardwareSet, HeldBy, Limit, ShortfallReason};
use crate::id::{HardwareTypeName, MsbName, Name, ReservationName, ServerName};
use crate::number::{count, counted};
use crate::pace::{Arrival, Holdup};
use crate::request::{CapacityRequest, RequestChange};
use crate::reservation::ReservationKind;
use crate::rru::Rru;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The format of the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum QuoteFormat {
    /// The first, and so far the only one.
    #[default]
    #[serde(rename = "ras-plan/1")]
    V1,
}

impl QuoteFormat {
    /// The stable token.
    pub const fn as_str(self) -> &'static str {
        match self {
            QuoteFormat::V1 => "ras-plan/1",
        }
    }
}

/// How much of a request is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// All of it.
    InFull,
    /// Less than was asked.
    InPart,
    /// No capacity at all.
    Nothing,
}

impl Grant {
    /// Every word.
    pub const ALL: [Grant; 3] = [Grant::InFull, Grant::InPart, Grant::Nothing];

    /// The stable token.
    pub const fn as_str(self) -> &'static str {
        match self {
            Grant::InFull => "in_full",
            Grant::InPart => "in_part",
            Grant::Nothing => "nothing",
        }
    }
}

/// What one request would get, what it would take, and why not if it is refused. Amounts are RRU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quote {
    /// The format, so that a reader knows what it has.
    pub format: QuoteFormat,
    /// The reservation that is asked for.
    pub reservation_id: ReservationName,
    /// Whether it is new, changed or ends.
    pub change: RequestChange,
    /// How much of the request is granted.
    pub granted: Grant,
    /// C, as asked.
    #[serde(rename = "capacity_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub capacity: Rru,
    /// Guaranteed today (eq. 6), by the values of the request.
    #[serde(
        rename = "guaranteed_today_rru",
        serialize_with = "as_rru",
        deserialize_with = "from_rru"
    )]
    pub guaranteed_today: Rru,
    /// Guaranteed then. Whole servers are often worth more than was asked.
    #[serde(rename = "granted_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub granted_rru: Rru,
    /// What the reservation would hold.
    pub reservation: QuotedHolding,
    /// Whether it survives the loss of any one MSB.
    pub msb_buffer: bool,
    /// Other partitions of which it survives the loss of any one domain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survives: Vec<Name>,
    /// What it takes, in servers.
    pub cost: MoveCost,
    /// The servers that change their holder, counted by holder.
    pub sources: Vec<QuotedFlow>,
    /// The servers that change their holder, in order of id.
    pub moves: Vec<QuotedMove>,
    /// When the servers of the reservation arrive; null where no mover is known.
    #[serde(deserialize_with = "required")]
    pub arrival: Option<QuotedArrival>,
    /// Why not in full; null if it is.
    #[serde(deserialize_with = "required")]
    pub refusal: Option<Refusal>,
    /// Cost of the region with the request (objective of phase 1), shortfalls included.
    pub primal: f64,
    /// What shortfalls cost of it.
    pub shortfall_cost: f64,
    /// No assignment of the region with the request costs less.
    pub dual_bound: f64,
    /// A proved lower bound on the missing RRU of the request; zero if none was computed.
    pub surely_missing_rru: f64,
    /// Whether the search ended by itself, not by the clock.
    pub complete: bool,
    /// Whether the audit finds no reservation worse off than today.
    pub audit_clean: bool,
    /// How long the answer took.
    pub seconds: QuoteSeconds,
}

impl Quote {
    /// Hides the names of the other reservations, and of their owners, that a reader may not see.
    pub fn hide(&mut self, sees: impl Fn(&ReservationName) -> bool) {
        let hide = |name: &mut Option<ReservationName>| {
            if name.as_ref().is_some_and(|name| !sees(name)) {
                *name = Some(HIDDEN.into());
            }
        };
        if let Some(arrival) = &mut self.arrival {
            hide(&mut arrival.limit_of);
        }
        for of in &mut self.sources {
            hide(&mut of.from);
            hide(&mut of.to);
        }
        for of in &mut self.moves {
            hide(&mut of.from);
            hide(&mut of.to);
        }
        let Some(refusal) = &mut self.refusal else { return };
        for of in &mut refusal.held_by {
            if !sees(&of.reservation_id) {
                of.hide();
            }
        }
        let hardware = &mut refusal.hardware;
        for name in hardware.asked_by.iter_mut().chain(&mut hardware.in_values_of) {
            if !sees(name) {
                *name = HIDDEN.into();
            }
        }
        // Hidden ones are not counted.
        hardware.asked_by.dedup();
    }

    /// Servers in use of other reservations that move.
    pub fn moves_in_use_of_others(&self) -> usize {
        let others = |of: &&QuotedMove| {
            of.in_use && of.from.as_ref().is_some_and(|from| *from != self.reservation_id)
        };
        self.moves.iter().filter(others).count()
    }

    /// Where the servers that move go, as text; `None`: none moves. Servers that go to other reservations replace what
    /// those give up, or what their promises lacked.
    pub fn destinations(&self) -> Option<String> {
        let (mut arrive, mut others, mut freed) = (0, 0, 0);
        for of in &self.moves {
            *match &of.to {
                Some(to) if *to == self.reservation_id => &mut arrive,
                Some(_) => &mut others,
                None => &mut freed,
            } += 1;
        }
        let part =
            |servers: usize, to: &str| (servers > 0).then(|| format!("{} {to}", count(servers)));
        let parts = [
            part(arrive, &format!("to {}", self.reservation_id)),
            part(others, "to other reservations for what those give up or lack"),
            part(freed, if freed == 1 { "becomes free" } else { "become free" }),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let moved = counted(self.moves.len(), "server");
        let verb = if self.moves.len() == 1 { "moves" } else { "move" };
        (!parts.is_empty()).then(|| format!("{moved} {verb} in all: {}", parts.join(", ")))
    }
}

/// The servers that a plan of several quotes moves in all, in order of id: each quote rests on the moves of those
/// before it, so a server may move on, or back.
pub fn net_moves<'a>(quotes: impl IntoIterator<Item = &'a Quote>) -> Vec<QuotedMove> {
    let mut net: BTreeMap<&ServerName, QuotedMove> = BTreeMap::new();
    for of in quotes.into_iter().flat_map(|quote| &quote.moves) {
        let first = net.entry(&of.server_id).or_insert_with(|| of.clone());
        first.to.clone_from(&of.to);
    }
    // Of hidden holders it is not known whether they are the same.
    let hidden = |of: &QuotedMove| of.from.as_ref().is_some_and(|from| **from == *HIDDEN);
    net.into_values().filter(|of| of.from != of.to || hidden(of)).collect()
}

/// When servers arrive, by the limits and contracts that the mover is held to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotedArrival {
    /// Servers that have to come.
    pub servers: u64,
    /// When all of them are there that come within 31 days; null if none has to.
    #[serde(deserialize_with = "required")]
    pub by: Option<DateTime<Utc>>,
    /// Those that do not come within 31 days.
    pub later: u64,
    /// How many are there by when: at most twelve instants.
    pub steps: Vec<QuotedStep>,
    /// What the last of them wait for, for people; null: nothing holds them up.
    #[serde(deserialize_with = "required")]
    pub limit: Option<String>,
    /// The reservation whose contract, quiet time or limit that is; null where it is a place's.
    #[serde(deserialize_with = "required")]
    pub limit_of: Option<ReservationName>,
}

/// Servers that are there by an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotedStep {
    /// The instant.
    pub at: DateTime<Utc>,
    /// How many have come by then.
    pub servers: u64,
}

/// Instants of [`QuotedArrival::steps`].
const STEPS_MAX: usize = 12;

impl From<Arrival> for QuotedArrival {
    fn from(arrival: Arrival) -> QuotedArrival {
        let come = arrival.steps.last().map_or(0, |step| step.1);
        // Evenly spaced ones, and the last.
        let every = arrival.steps.len().div_ceil(STEPS_MAX).max(1);
        let steps = arrival.steps.iter().rev().step_by(every).rev();
        let (limit, limit_of) = arrival.holdup.map(Holdup::into_parts).unzip();
        QuotedArrival {
            servers: come + arrival.later,
            by: arrival.steps.last().map(|step| step.0),
            later: arrival.later,
            steps: steps.map(|&(at, servers)| QuotedStep { at, servers }).collect(),
            limit,
            limit_of: limit_of.flatten(),
        }
    }
}

impl fmt::Display for QuotedArrival {
    /// `by 2026-01-01 18:40 UTC, 120 servers; limit: churn contract of feed`
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let come = self.servers - self.later;
        match self.by {
            Some(by) => {
                let by = by.format("%Y-%m-%d %H:%M UTC");
                write!(out, "by {by}, ")?;
                match self.later {
                    0 => write!(out, "{}", counted(come as usize, "server"))?,
                    _ => write!(out, "{come} of {}", counted(self.servers as usize, "server"))?,
                }
            }
            None if self.servers == 0 => write!(out, "no server has to arrive")?,
            None => write!(out, "none of {} servers", self.servers)?,
        }
        if self.later > 0 {
            write!(out, ", the others not within 31 days")?;
        }
        match (&self.limit, &self.limit_of) {
            (Some(limit), Some(of)) if **of == *HIDDEN => {
                write!(out, "; limit: {limit} of another reservation")
            }
            (Some(limit), Some(of)) => write!(out, "; limit: {limit} of {of}"),
            (Some(limit), None) => write!(out, "; limit: {limit}"),
            (None, _) => Ok(()),
        }
    }
}

/// What the reservation would hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotedHolding {
    /// Available servers.
    pub servers: usize,
    /// What they are worth.
    #[serde(rename = "assigned_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub assigned: Rru,
    /// The MSB that holds most of it; null if it holds nothing.
    #[serde(rename = "largest_msb", deserialize_with = "required")]
    pub largest_msb_id: Option<MsbName>,
    /// What it holds there.
    #[serde(rename = "largest_msb_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub largest_msb: Rru,
    /// What is guaranteed (eq. 6).
    #[serde(rename = "guaranteed_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub guaranteed: Rru,
    /// Its shares of datacenters (eq. 7).
    pub datacenters: Vec<DatacenterShare>,
}

/// What a plan takes, in servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveCost {
    /// Servers that leave other reservations with containers running.
    pub in_use: usize,
    /// Servers that leave other reservations idle.
    pub idle: usize,
    /// Servers that were free.
    pub acquired: usize,
    /// Servers that leave the reservation itself with containers running.
    pub own_in_use: usize,
    /// Servers that leave the reservation itself idle.
    pub own_idle: usize,
    /// How many of all these are lent to elastic reservations now and are called back.
    pub lent: usize,
    /// What the region costs more, in units of the objective.
    pub price: f64,
}

/// Servers that go from one holder to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotedFlow {
    /// Who has them; null: they are free.
    #[serde(deserialize_with = "required")]
    pub from: Option<ReservationName>,
    /// What that is.
    pub from_kind: HolderKind,
    /// Who gets them; null: they become free.
    #[serde(deserialize_with = "required")]
    pub to: Option<ReservationName>,
    /// Servers with containers running.
    pub in_use: usize,
    /// Idle servers.
    pub idle: usize,
}

/// What holds a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HolderKind {
    /// A reservation with guaranteed capacity.
    Guaranteed,
    /// A shared buffer.
    SharedBuffer,
    /// An elastic reservation.
    Elastic,
    /// No reservation.
    Free,
}

impl HolderKind {
    /// The stable token.
    pub const fn as_str(self) -> &'static str {
        match self {
            HolderKind::Guaranteed => ReservationKind::Guaranteed.as_str(),
            HolderKind::SharedBuffer => ReservationKind::SharedBuffer.as_str(),
            HolderKind::Elastic => ReservationKind::Elastic.as_str(),
            HolderKind::Free => "free",
        }
    }
}

impl From<Option<ReservationKind>> for HolderKind {
    fn from(holder: Option<ReservationKind>) -> HolderKind {
        match holder {
            Some(ReservationKind::Guaranteed) => HolderKind::Guaranteed,
            Some(ReservationKind::SharedBuffer) => HolderKind::SharedBuffer,
            Some(ReservationKind::Elastic) => HolderKind::Elastic,
            None => HolderKind::Free,
        }
    }
}

/// A server that changes its holder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotedMove {
    /// The server.
    pub server_id: ServerName,
    /// Its hardware type.
    pub hardware_type: HardwareTypeName,
    /// Its MSB.
    pub msb: MsbName,
    /// Who has it; null: it is free.
    #[serde(deserialize_with = "required")]
    pub from: Option<ReservationName>,
    /// Who gets it; null: it becomes free.
    #[serde(deserialize_with = "required")]
    pub to: Option<ReservationName>,
    /// Whether containers run on it.
    pub in_use: bool,
}

/// Why a request is not granted in full, and what would be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// One of a closed list.
    pub reason: ShortfallReason,
    /// The reason with its numbers, for people.
    pub sentence: String,
    /// What is missing to C.
    #[serde(rename = "missing_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub missing: Rru,
    /// Supply and demand of the hardware it needs.
    pub hardware: HardwareSet,
    /// Further numbers.
    pub evidence: Evidence,
    /// Who holds the servers it could use, and by what right; the most important first.
    pub held_by: Vec<HeldBy>,
    /// An irreducible set of limits that blocks the request.
    pub limits: Vec<Limit>,
    /// Requests near this one that would be granted in full, the cheapest in moves first.
    pub alternatives: Vec<Alternative>,
}

/// A request that would be granted in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// What is given up.
    pub concession: Concession,
    /// The concession with its numbers, for people.
    pub sentence: String,
    /// What to ask for.
    pub request: CapacityRequest,
    /// What it would take.
    pub cost: MoveCost,
}

/// What an owner can give up: a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concession {
    /// Less capacity.
    FewerRru,
    /// One more hardware type.
    OneMoreType,
    /// A larger tolerance of its datacenter shares.
    LooserAffinity,
    /// One more datacenter that it is allowed in.
    OneMoreDatacenter,
    /// More of its replicas in one MSB.
    LooserReplicaRule,
    /// The survival of the loss of an MSB.
    NoBuffer,
}

impl Concession {
    /// Its word in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Concession::FewerRru => "fewer_rru",
            Concession::OneMoreType => "one_more_type",
            Concession::LooserAffinity => "looser_affinity",
            Concession::OneMoreDatacenter => "one_more_datacenter",
            Concession::LooserReplicaRule => "looser_replica_rule",
            Concession::NoBuffer => "no_buffer",
        }
    }
}

/// How long an answer took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuoteSeconds {
    /// Until snapshot and request were read.
    pub read: f64,
    /// In all.
    pub total: f64,
}
