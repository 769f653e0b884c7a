//! `report.json`: what a solve reports. `ras` writes it; page, terminal, portal, replays and benchmark read it.
//!
//! A report of an older or foreign solver may lack any member of [`SolveReport`], [`Phase1`], [`Whole`], [`Seconds`] and
//! [`ReservationRow`]; readers then say so. Members that this version does not know are ignored. A member of the wrong
//! type is an error that names it.

use crate::line_chart::Point;
use chrono::{DateTime, Utc};
use fleet::audit::{
    BufferShare, ClaimedMoves, ClaimedPhase1, ClaimedReservation, Claims, Objective, ServerCounts,
};
use fleet::explain::HeldBy;
use fleet::{DatacenterName, MsbName, Name, OwnerName, ReservationKind, ReservationName, Weights};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The contents of `report.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SolveReport {
    /// Version of the format.
    pub format: String,
    /// The region.
    pub region: Option<Name>,
    /// Instant of the snapshot.
    pub taken_at: Option<DateTime<Utc>>,
    /// Version of the program.
    pub version: Option<String>,
    /// The origin of the result.
    pub ending: Option<Ending>,
    /// Why phase 1 ended; `None` if there was no solve.
    pub termination: Option<Termination>,
    /// Seed of every random choice.
    pub seed: Option<u64>,
    /// The solver's configuration: a record, which no reader interprets.
    pub config: Value,
    /// Deadline from the start of the process.
    pub deadline_seconds: Option<f64>,
    /// Prices and limits of the solve.
    pub weights: Option<Weights>,
    /// Share of each hardware type in its shared buffer.
    pub shared_buffer_fraction: Option<f64>,
    /// Overrides of the snapshot's settings, in the form of `ras.toml`, which `ras` reads.
    pub overrides: Value,
    /// Expressions 1 to 4.
    pub objective: Option<Objective>,
    /// Expressions 1 to 4 of today's assignment.
    pub initial_objective: Option<Objective>,
    /// The result of both phases against the bound; `None` if there was no solve.
    pub whole: Option<Whole>,
    /// Phase 1.
    pub phase1: Phase1,
    /// Phase 2.
    pub phase2: Option<Phase2>,
    /// Sum of all shortfalls.
    pub shortfall_rru: Option<f64>,
    /// Sum of today's shortfalls.
    pub initial_shortfall_rru: Option<f64>,
    /// The fewest servers worth all shortfalls.
    pub shortfall_servers: Option<usize>,
    /// The same of today's shortfalls.
    pub initial_shortfall_servers: Option<usize>,
    /// Servers that leave a reservation.
    pub moves: Option<ClaimedMoves>,
    /// Those of them that their reservation no longer needs.
    pub handed_back: Option<ClaimedMoves>,
    /// Servers assigned to short reservations without a guarantee.
    pub unguaranteed_servers: Option<usize>,
    /// Free servers that are assigned.
    pub acquired: Option<usize>,
    /// Embedded buffers and their bounds.
    pub buffer: Option<BufferShare>,
    /// Servers by state.
    pub servers: Option<ServerCounts>,
    /// Wall-clock time.
    pub seconds: Seconds,
    /// Time by step.
    pub steps: Vec<StepTime>,
    /// Incumbent and bound over time.
    pub history: Vec<Moment>,
    /// What was held back.
    pub held_back: Option<HeldBack>,
    /// Limits of groups, as policies set them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<GroupLimit>,
    /// What policies say of the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyState>,
    /// Sizes of the model.
    pub sizes: Option<Sizes>,
    /// Largest resident memory of the process.
    pub peak_memory_bytes: Option<u64>,
    /// Largest resident memory of a HiGHS process.
    pub highs_peak_memory_bytes: Option<u64>,
    /// One row per reservation.
    pub reservations: Vec<ReservationRow>,
    /// The largest reservations by MSB.
    pub msb_shares: Option<MsbShares>,
}

/// What a group of servers adds up to, in a unit of the policy's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupLimit {
    /// The policy, and the group where it has groups.
    pub name: String,
    /// The bound.
    pub most: i64,
    /// The sum today.
    pub before: i64,
    /// The sum of the result. Above the bound only if it was so today, and then by no more.
    pub after: i64,
    /// What one unit more would save at most, to first order, in units of the objective.
    pub price: f64,
    /// What a unit above the bound costs, in units of the objective; zero where nothing is above it that may leave.
    #[serde(default)]
    pub excess_price: f64,
}

/// What a policy says of the result, as plain SQL finds it: nothing of the solver is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyState {
    /// The policy: the name of its view.
    pub policy: String,
    /// The file that defines it, without folder and ending.
    pub file: String,
    /// Rows that failed before the solve.
    pub fails_before: usize,
    /// Rows that fail in the result.
    pub fails: usize,
    /// The first of these, as `column=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
}

impl PolicyState {
    /// Whether no more rows fail than before.
    pub fn is_kept(&self) -> bool {
        self.fails <= self.fails_before
    }
}

/// The origin of a run's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The solver returned.
    #[serde(rename = "returned")]
    Returned,
    /// The deadline passed: the last incumbent is the result.
    #[serde(rename = "cut_at_deadline")]
    Deadline,
    /// The solver took too long after a request to end early: the last incumbent is the result.
    #[serde(rename = "cut_by_interrupt")]
    Interrupted,
    /// The solver panicked: the last incumbent is the result.
    #[serde(rename = "solver_failed")]
    Panicked,
    /// There was no solve: the result is today's assignment.
    #[serde(rename = "unsolved")]
    Unsolved,
}

impl Ending {
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

/// Why phase 1 ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// The gap is within the limit.
    Optimal,
    /// The gap is about that of the solve before: in reports of older versions.
    LastGap,
    /// Several rounds brought nothing better.
    Stalled,
    /// The deadline passed.
    Deadline,
    /// An early end was requested.
    Interrupted,
    /// There was no solve.
    Unsolved,
}

impl Termination {
    /// In words, after "ended: ".
    pub const fn text(self) -> &'static str {
        match self {
            Termination::Optimal => "within the gap limit",
            Termination::LastGap => "about as near to the bound as the solve before",
            Termination::Stalled => "no progress in several rounds",
            Termination::Deadline => "at the deadline",
            Termination::Interrupted => "by request",
            Termination::Unsolved => "not solved",
        }
    }
}

/// The result of both phases against the bound; null where a solve was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Whole {
    /// Expressions 1 to 4 and the price of shortfalls.
    pub primal: Option<f64>,
    /// No assignment costs less: proved.
    pub dual_bound: Option<f64>,
    /// The proved gap.
    pub gap: Option<f64>,
    /// That gap in moves of in-use servers.
    pub gap_in_use_moves: Option<f64>,
}

/// How phase 1 ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phase1 {
    /// Cost of the incumbent.
    pub primal: Option<f64>,
    /// Proved lower bound.
    pub dual_bound: Option<f64>,
    /// The proved gap.
    pub gap: Option<f64>,
    /// That gap in moves of in-use servers.
    pub gap_in_use_moves: Option<f64>,
    /// Why it ended.
    pub termination: Option<Termination>,
    /// How the bound was proved.
    pub proof: String,
    /// Value of the LP relaxation.
    pub lp_value: Option<f64>,
    /// Seconds HiGHS took for the LP.
    pub lp_seconds: Option<f64>,
    /// Cost of shortfalls in `primal`.
    pub shortfall_cost: Option<f64>,
    /// Cost of limits of groups in `primal` that are above their bounds.
    pub excess_cost: Option<f64>,
    /// Cost of today's assignment.
    pub initial_primal: Option<f64>,
}

/// How phase 2 ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase2 {
    /// Expression 2 as phase 1 left it.
    pub rack_spread_before: f64,
    /// Expression 2 afterwards.
    pub rack_spread_after: f64,
    /// Independent problems solved.
    pub problems: usize,
}

/// Wall-clock seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seconds {
    /// From the start of the process.
    pub total: Option<f64>,
    /// Until the region was read.
    pub read: Option<f64>,
    /// Of the solve.
    pub solve: Option<f64>,
    /// Of the audit.
    pub audit: Option<f64>,
    /// By phase, summed over its steps.
    pub phases: Vec<PhaseTime>,
}

/// Time of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseTime {
    /// 1 or 2.
    pub phase: u8,
    /// Seconds.
    pub seconds: f64,
}

/// Time of one step of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepTime {
    /// 1 or 2.
    pub phase: u8,
    /// Its name, as in RAS figure 8.
    pub step: String,
    /// Seconds.
    pub seconds: f64,
}

/// One entry of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds since the solve began.
    pub seconds: f64,
    /// 1 or 2.
    pub phase: u8,
    /// The step.
    pub step: String,
    /// Incumbent of phase 1.
    pub primal: Option<f64>,
    /// Bound of phase 1.
    pub dual_bound: Option<f64>,
}

impl Moment {
    /// The relative distance of incumbent and bound, as the solver defines it.
    pub fn gap(&self) -> Option<f64> {
        Point { seconds: self.seconds, value: self.primal, bound: self.dual_bound }.gap()
    }
}

/// What was held back because it cannot be carried out before the next solve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBack {
    /// Extra solves.
    pub passes: usize,
    /// Servers pinned.
    pub pinned: usize,
    /// Moves of the first solve that no budget had room for.
    pub moves: usize,
}

/// Sizes of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sizes {
    /// Servers of the snapshot.
    pub servers: usize,
    /// Equivalence classes of available servers.
    pub classes: usize,
    /// Reservations.
    pub reservations: usize,
    /// Columns of the LP of phase 1.
    pub phase1_columns: usize,
    /// Rows of the LP of phase 1.
    pub phase1_rows: usize,
    /// Non-zeros of the LP of phase 1.
    pub phase1_nonzeros: usize,
}

/// One reservation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the figures of `fleet::audit::ReservationAudit`, described there")]
pub struct ReservationRow {
    pub reservation_id: ReservationName,
    pub owner: Option<OwnerName>,
    pub kind: Option<ReservationKind>,
    pub priority: Option<i32>,
    pub msb_buffer: Option<bool>,
    pub servers: Option<usize>,
    pub capacity_rru: Option<f64>,
    pub assigned_rru: Option<f64>,
    pub largest_msb_rru: Option<f64>,
    pub largest_msb: Option<MsbName>,
    pub smallest_buffer_rru: Option<f64>,
    pub guaranteed_rru: Option<f64>,
    pub shortfall_rru: Option<f64>,
    pub shortfall_servers: Option<usize>,
    /// The worst loss of each partition that it must survive besides MSBs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionLoss>,
    pub msb_excess_rru: Option<f64>,
    pub rack_excess_rru: Option<f64>,
    /// Why it is short: a word of `fleet::explain::ShortfallReason`, or of an older version.
    pub reason: Option<String>,
    /// The reason as a sentence, with its numbers.
    pub why: Option<String>,
    /// The holders of servers it could use.
    pub held_by: Option<Vec<HeldBy>>,
}

/// What the worst loss of a domain of a partition takes from a reservation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the figures of `fleet::audit::PartitionLoss`, described there")]
pub struct PartitionLoss {
    pub partition: Name,
    pub domain: Option<Name>,
    pub lost_rru: f64,
    pub left_rru: f64,
    pub initial_left_rru: f64,
    pub survives: bool,
}

/// The largest guaranteed reservations that hold something, by MSB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MsbShares {
    /// The MSBs, by datacenter.
    pub datacenters: Vec<DatacenterMsbs>,
    /// The reservations, the largest first.
    pub reservations: Vec<ReservationShares>,
    /// Number of guaranteed reservations that hold something.
    pub of: usize,
}

/// The MSBs of a datacenter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatacenterMsbs {
    /// The datacenter.
    pub datacenter: DatacenterName,
    /// Its MSBs.
    pub msbs: Vec<MsbName>,
}

/// A reservation by MSB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReservationShares {
    /// The reservation.
    pub reservation_id: ReservationName,
    /// RRU in each MSB, in the order of the datacenters and of their MSBs.
    pub msb_rru: Vec<f64>,
}

/// A report cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A member has the wrong type.
    #[error("report.json: {0}")]
    Member(#[from] serde_path_to_error::Error<serde_json::Error>),
    /// A figure that the audit checks is missing.
    #[error("report.json lacks {0}, which the audit checks")]
    Lacks(&'static str),
}

impl SolveReport {
    /// Reads a report.
    ///
    /// # Errors
    /// If a member has the wrong type.
    pub fn read(report: &Value) -> Result<SolveReport, ReportError> {
        Ok(serde_path_to_error::deserialize(report)?)
    }

    /// As it is written: members in the order of their names.
    ///
    /// # Panics
    /// Never: every member has a form in JSON.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("every member has a form in JSON")
    }

    /// The proved gap: of the whole objective, in older reports of phase 1.
    pub fn gap(&self) -> Option<f64> {
        self.whole.and_then(|whole| whole.gap).or(self.phase1.gap)
    }

    /// What the audit can recompute.
    ///
    /// # Errors
    /// If the report lacks a figure.
    pub fn claims(&self) -> Result<Claims, ReportError> {
        let known = |figure: Option<f64>, member| figure.ok_or(ReportError::Lacks(member));
        let Phase1 { primal, dual_bound, gap, .. } = self.phase1;
        let phase1 = primal.zip(dual_bound).zip(gap);
        let row = |row: &ReservationRow| {
            Ok(ClaimedReservation {
                reservation_id: row.reservation_id.to_string(),
                capacity_rru: known(row.capacity_rru, "reservations[].capacity_rru")?,
                assigned_rru: known(row.assigned_rru, "reservations[].assigned_rru")?,
                largest_msb_rru: known(row.largest_msb_rru, "reservations[].largest_msb_rru")?,
                guaranteed_rru: known(row.guaranteed_rru, "reservations[].guaranteed_rru")?,
                shortfall_rru: known(row.shortfall_rru, "reservations[].shortfall_rru")?,
            })
        };
        Ok(Claims {
            objective: self.objective.ok_or(ReportError::Lacks("objective"))?,
            shortfall_rru: known(self.shortfall_rru, "shortfall_rru")?,
            moves: self.moves.ok_or(ReportError::Lacks("moves"))?,
            phase1: phase1.map(|((primal, dual_bound), gap)| ClaimedPhase1 {
                primal,
                dual_bound,
                gap,
            }),
            reservations: self.reservations.iter().map(row).collect::<Result<_, ReportError>>()?,
        })
    }

    /// The row of a reservation.
    pub(crate) fn reservation(&self, id: &str) -> Option<&ReservationRow> {
        self.reservations.iter().find(|row| &*row.reservation_id == id)
    }

    /// Why a reservation is short.
    pub(crate) fn reason(&self, reservation: &str) -> String {
        let reason = self.reservation(reservation).and_then(|row| row.reason.as_deref());
        reason.unwrap_or("not in the report").replace('_', " ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn report_may_lack_every_member() {
        let empty = SolveReport::read(&json!({})).expect("reads");
        assert_eq!(empty, SolveReport::default());
        let inner = json!({"phase1": {}, "whole": null, "seconds": {}, "sizes": {}, "msb_shares": null,
            "reservations": [{}], "of_another_version": 1});
        let solve = SolveReport::read(&inner).expect("reads");
        assert_eq!((solve.gap(), solve.steps.len(), solve.reservations.len()), (None, 0, 1));
        let lacks = empty.claims().expect_err("nothing to check").to_string();
        assert_eq!(lacks, "report.json lacks objective, which the audit checks");
    }

    #[test]
    fn member_of_the_wrong_type_is_named() {
        for (report, named) in [
            (json!({"phase1": 3}), "report.json: phase1: invalid type: integer `3`"),
            (json!({"phase1": {"gap": "no"}}), "report.json: phase1.gap: invalid type: string"),
            (json!({"steps": "no"}), "report.json: steps: invalid type: string"),
            (json!({"history": [{"seconds": 1}]}), "report.json: history[0]: missing field"),
            (json!({"objective": {"total": 1.0}}), "report.json: objective: missing field"),
            (json!({"ending": "soon"}), "report.json: ending: unknown variant `soon`"),
            (json!(null), "report.json: invalid type: null"),
        ] {
            let error = SolveReport::read(&report).expect_err("wrong").to_string();
            assert!(error.starts_with(named), "{error}");
        }
    }

    #[test]
    fn gap_is_that_of_the_whole_objective_if_known() {
        let report = |whole: Value| json!({"phase1": {"gap": 0.25}, "whole": whole});
        for (whole, gap) in
            [(json!({"gap": 0.5}), 0.5), (json!({"gap": null}), 0.25), (json!(null), 0.25)]
        {
            assert_eq!(SolveReport::read(&report(whole)).expect("reads").gap(), Some(gap));
        }
    }

    #[test]
    fn reasons_are_read_with_and_without_numbers() {
        let report = json!({"reservations": [
            {"reservation_id": "a", "reason": "msb_buffer", "why": "3 of 4"},
            {"reservation_id": "b", "reason": "affinity"},
            {"reservation_id": "c", "reason": null},
        ]});
        let solve = SolveReport::read(&report).expect("reads");
        assert_eq!(
            ["a", "b", "c"].map(|id| solve.reason(id)),
            ["msb buffer", "affinity", "not in the report"]
        );
    }
}
