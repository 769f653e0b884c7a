//! `report.json`: the solver's report, the audit's findings, and the run.

use crate::memory;
use crate::reasons::Reason;
use crate::settings::Settings;
use async_solver::{Objective, SolveStats};
use chrono::SecondsFormat;
use datasets::schema::RESULT_FORMAT;
use fleet::audit::{AuditReport, ReservationAudit};
use fleet::{MsbName, RegionSnapshot, ReservationKind, ReservationName, Rru};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The origin of a run's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The solver returned.
    Returned,
    /// The deadline passed: the last incumbent is the result.
    Deadline,
    /// The solver took too long after a request to end early: the last incumbent is the result.
    Interrupted,
    /// The solver panicked: the last incumbent is the result.
    Panicked,
    /// There was no solve: the result is today's assignment.
    Unsolved,
}

impl Ending {
    /// The word in the report.
    pub const fn as_str(self) -> &'static str {
        match self {
            Ending::Returned => "returned",
            Ending::Deadline => "cut_at_deadline",
            Ending::Interrupted => "cut_by_interrupt",
            Ending::Panicked => "solver_failed",
            Ending::Unsolved => "unsolved",
        }
    }

    /// The explanation for the user.
    pub const fn sentence(self) -> &'static str {
        match self {
            Ending::Returned => "the solver returned",
            Ending::Deadline => "the deadline passed: the last incumbent is the result",
            Ending::Interrupted => {
                "the solver did not stop in time: its last incumbent is the result"
            }
            Ending::Panicked => "the solver failed: its last incumbent is the result",
            Ending::Unsolved => "there was no solve: the result is today's assignment",
        }
    }
}

/// The timing of a run.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Time from the start of the process until the region was read.
    pub read: Duration,
    /// The solve itself.
    pub solve: Duration,
    /// Start of the process.
    pub began: Instant,
}

impl Timing {
    /// Before the solve has ended.
    pub const fn unknown(began: Instant) -> Timing {
        Timing { read: Duration::ZERO, solve: Duration::ZERO, began }
    }
}

/// The inputs of a report.
pub struct Figures<'a> {
    /// The region as the solve saw it.
    pub snapshot: &'a RegionSnapshot,
    /// The solver's configuration.
    pub settings: &'a Settings,
    /// The solver's report; `None` if there was no solve.
    pub stats: Option<&'a SolveStats>,
    /// What the audit found.
    pub audit: &'a AuditReport,
    /// The origin of the result.
    pub ending: Ending,
    /// The timing.
    pub timing: &'a Timing,
    /// The reasons of shortfalls; empty if there was no solve, because today's shortfalls are not
    /// explained.
    pub reasons: &'a BTreeMap<ReservationName, Reason>,
    /// Duration of the audit.
    pub audit_seconds: f64,
    /// Peak memory of a HiGHS process, in bytes.
    pub highs_memory: Option<u64>,
}

/// The objective found by the audit, in the solver's type.
pub fn audited_objective(audit: &AuditReport) -> Objective {
    let fleet::audit::Objective { total, stability, rack_spread, msb_spread, buffer } =
        audit.objective;
    Objective { total, stability, rack_spread, msb_spread, buffer }
}

/// Builds the report.
pub fn assemble(figures: &Figures) -> Value {
    let Figures { snapshot, settings, stats, audit, ending, timing, .. } = *figures;
    let nothing = SolveStats::default();
    let known = stats.unwrap_or(&nothing);
    let total = timing.began.elapsed().as_secs_f64();
    json!({
        "format": RESULT_FORMAT,
        "region": snapshot.region,
        "taken_at": snapshot.taken_at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        "version": env!("CARGO_PKG_VERSION"),
        "ending": ending.as_str(),
        "termination": stats.map(|stats| stats.phase1.termination),
        "seed": settings.solver.seed,
        "config": settings.solver,
        "deadline_seconds": settings.deadline.map(|deadline| deadline.as_secs_f64()),
        "weights": snapshot.weights,
        "shared_buffer_fraction": snapshot.shared_buffer_fraction,
        "overrides": settings.overrides,
        "objective": if stats.is_some() { known.objective } else { audited_objective(audit) },
        "initial_objective": audit.initial_objective,
        "whole": stats.map(|stats| stats.whole),
        "phase1": stats.map_or_else(unsolved_phase1, |stats| json!(stats.phase1)),
        "phase2": known.phase2,
        "shortfall_rru": audit.shortfall.to_f64(),
        "initial_shortfall_rru": audit.initial_shortfall.to_f64(),
        "moves": { "in_use": audit.moves.in_use, "idle": audit.moves.idle },
        "handed_back": known.handed_back,
        "unguaranteed_servers": known.unguaranteed,
        "acquired": audit.moves.acquired,
        "buffer": audit.buffer,
        "servers": audit.servers,
        "seconds": {
            "total": total,
            "read": timing.read.as_secs_f64(),
            "solve": timing.solve.as_secs_f64(),
            "audit": figures.audit_seconds,
            "phases": phases(known),
        },
        "steps": known.steps,
        "history": known.history,
        "held_back": known.held_back,
        "sizes": sizes(snapshot, known),
        "peak_memory_bytes": memory::peak_of_this_process(),
        "highs_peak_memory_bytes": figures.highs_memory,
        "reservations": reservations(audit, figures.reasons),
        "msb_shares": msb_shares(snapshot, audit),
    })
}

/// The largest guaranteed reservations that hold something, by MSB: as many as in the paper's
/// figure 13, so that readers do not need the assignment. MSBs are ordered by datacenter and name.
fn msb_shares(snapshot: &RegionSnapshot, audit: &AuditReport) -> Value {
    const ROWS: usize = 30;
    let of = |datacenter: usize| -> Vec<usize> {
        let there = snapshot.msbs.iter().enumerate();
        let there = there.filter(|(_, msb)| msb.datacenter.ix() == datacenter);
        there.map(|(position, _)| position).collect()
    };
    let datacenters: Vec<Vec<usize>> = (0..snapshot.datacenters.len()).map(of).collect();
    let named = snapshot.datacenters.iter().zip(&datacenters).map(|(datacenter, msbs)| {
        let msbs: Vec<&MsbName> = msbs.iter().map(|msb| &snapshot.msbs[*msb].id).collect();
        json!({ "datacenter": datacenter.id, "msbs": msbs })
    });
    let holds = |row: &&ReservationAudit| {
        row.kind == ReservationKind::Guaranteed && row.holding.assigned > Rru::ZERO
    };
    let mut rows: Vec<&ReservationAudit> = audit.reservations.iter().filter(holds).collect();
    rows.sort_by_key(|row| (Reverse(row.capacity), &row.reservation_id));
    let shares = |row: &&ReservationAudit| {
        let order = datacenters.iter().flatten();
        let rru: Vec<f64> = order.map(|msb| row.msb_amounts[*msb].to_f64()).collect();
        json!({ "reservation_id": row.reservation_id, "msb_rru": rru })
    };
    json!({
        "datacenters": named.collect::<Vec<_>>(),
        "reservations": rows.iter().take(ROWS).map(shares).collect::<Vec<_>>(),
        "of": rows.len(),
    })
}

fn unsolved_phase1() -> Value {
    json!({
        "primal": null,
        "dual_bound": null,
        "gap": null,
        "termination": "unsolved",
        "proof": "there was no solve, so no bound is proven",
    })
}

fn sizes(snapshot: &RegionSnapshot, stats: &SolveStats) -> Value {
    let mut sizes = stats.sizes;
    sizes.servers = snapshot.servers.len();
    sizes.reservations = snapshot.reservations.len();
    json!(sizes)
}

/// Seconds by phase, summed over its steps.
fn phases(stats: &SolveStats) -> Vec<Value> {
    let mut seconds: BTreeMap<u8, f64> = BTreeMap::new();
    for step in &stats.steps {
        *seconds.entry(step.phase).or_default() += step.seconds;
    }
    let phase = |(phase, seconds)| json!({ "phase": phase, "seconds": seconds });
    seconds.into_iter().map(phase).collect()
}

fn reservations(audit: &AuditReport, reasons: &BTreeMap<ReservationName, Reason>) -> Vec<Value> {
    let row = |row: &fleet::audit::ReservationAudit| {
        let amount = |amount: Rru| json!(amount.to_f64());
        let why = reasons.get(&row.reservation_id);
        let members: [(&str, Value); 18] = [
            ("reservation_id", json!(row.reservation_id)),
            ("owner", json!(row.owner)),
            ("kind", json!(row.kind.as_str())),
            ("priority", json!(row.priority)),
            ("msb_buffer", json!(row.msb_buffer)),
            ("servers", json!(row.holding.servers)),
            ("capacity_rru", amount(row.capacity)),
            ("assigned_rru", amount(row.holding.assigned)),
            ("largest_msb_rru", amount(row.holding.largest_msb)),
            ("largest_msb", json!(row.holding.largest_msb_id)),
            ("smallest_buffer_rru", amount(row.smallest_buffer)),
            ("guaranteed_rru", amount(row.holding.guaranteed)),
            ("shortfall_rru", amount(row.holding.shortfall)),
            ("msb_excess_rru", amount(row.msb_spread.excess)),
            ("rack_excess_rru", amount(row.rack_spread.excess)),
            ("reason", json!(why.map(|why| why.token))),
            ("why", json!(why.map(|why| &why.sentence))),
            ("held_by", json!(why.map(|why| &why.held_by))),
        ];
        let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
        Value::Object(members.collect::<Map<_, _>>())
    };
    audit.reservations.iter().map(row).collect()
}
