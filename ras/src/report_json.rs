//! `report.json`: the solver's report, the audit's findings, and the run.

use crate::memory;
use crate::reasons::Reason;
use crate::settings::Settings;
use ::report::solve_report::{
    self as report, DatacenterMsbs, Ending, Moment, MsbShares, PhaseTime, ReservationRow,
    ReservationShares, Seconds, SolveReport,
};
use async_solver::{
    HeldBack, LimitUse, Phase1, Phase2, Progress, Sizes, SolveStats, StepTime, Termination,
};
use datasets::schema::RESULT_FORMAT;
use fleet::audit::{AuditReport, ClaimedMoves, PartitionLoss, ReservationAudit};
use fleet::{RegionSnapshot, ReservationKind, ReservationName, Rru};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

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
pub struct ReportInputs<'a> {
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
    /// What policies say of the result.
    pub policies: &'a [report::PolicyState],
    /// Duration of the audit.
    pub audit_seconds: f64,
    /// Peak memory of a HiGHS process, in bytes.
    pub highs_memory: Option<u64>,
}

/// A figure of the solver; NaN is "not known".
fn known(figure: f64) -> Option<f64> {
    figure.is_finite().then_some(figure)
}

/// Builds the report.
pub fn assemble(inputs: &ReportInputs) -> SolveReport {
    let ReportInputs { snapshot, settings, stats, audit, ending, timing, .. } = *inputs;
    let nothing = SolveStats::default();
    let of_solver = stats.unwrap_or(&nothing);
    let Phase2 { rack_spread_before, rack_spread_after, problems } = of_solver.phase2;
    let HeldBack { passes, pinned, moves } = of_solver.held_back;
    let phase1 = stats.map_or_else(unsolved_phase1, |stats| phase1(&stats.phase1));
    SolveReport {
        format: RESULT_FORMAT.to_owned(),
        region: Some(snapshot.region.clone()),
        taken_at: Some(snapshot.taken_at),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        ending: Some(ending),
        termination: stats.and(phase1.termination),
        seed: Some(settings.solver.seed),
        config: json!(settings.solver),
        deadline_seconds: settings.deadline.map(|deadline| deadline.as_secs_f64()),
        weights: Some(snapshot.weights),
        shared_buffer_fraction: Some(snapshot.shared_buffer_fraction),
        overrides: json!(settings.overrides),
        objective: Some(match ending {
            Ending::Returned => of_solver.objective,
            // There are no claims of the solver about these targets.
            _ => audit.objective,
        }),
        initial_objective: Some(audit.initial_objective),
        whole: stats.map(|stats| report::Whole {
            primal: known(stats.whole.primal),
            dual_bound: known(stats.whole.dual_bound),
            gap: known(stats.whole.gap),
            gap_in_use_moves: known(stats.whole.gap_in_use_moves),
        }),
        phase1,
        phase2: Some(report::Phase2 { rack_spread_before, rack_spread_after, problems }),
        shortfall_rru: Some(audit.shortfall.to_f64()),
        initial_shortfall_rru: Some(audit.initial_shortfall.to_f64()),
        shortfall_servers: Some(audit.shortfall_servers),
        initial_shortfall_servers: Some(audit.initial_shortfall_servers),
        moves: Some(ClaimedMoves { in_use: audit.moves.in_use, idle: audit.moves.idle }),
        handed_back: Some(ClaimedMoves {
            in_use: of_solver.handed_back.in_use,
            idle: of_solver.handed_back.idle,
        }),
        unguaranteed_servers: Some(of_solver.unguaranteed),
        acquired: Some(audit.moves.acquired),
        buffer: Some(audit.buffer),
        servers: Some(audit.servers),
        seconds: Seconds {
            total: Some(timing.began.elapsed().as_secs_f64()),
            read: Some(timing.read.as_secs_f64()),
            solve: Some(timing.solve.as_secs_f64()),
            audit: Some(inputs.audit_seconds),
            phases: phases(of_solver),
        },
        steps: of_solver.steps.iter().cloned().map(step).collect(),
        history: of_solver.history.iter().cloned().map(moment).collect(),
        held_back: Some(report::HeldBack { passes, pinned, moves }),
        limits: of_solver.limits.iter().cloned().map(limit).collect(),
        policies: inputs.policies.to_vec(),
        sizes: Some(sizes(snapshot, of_solver)),
        peak_memory_bytes: memory::peak_of_this_process(),
        highs_peak_memory_bytes: inputs.highs_memory,
        reservations: reservations(audit, inputs.reasons),
        msb_shares: Some(msb_shares(snapshot, audit)),
    }
}

fn limit(
    LimitUse { name, most, before, after, price, excess_price }: LimitUse,
) -> report::GroupLimit {
    report::GroupLimit { name, most, before, after, price, excess_price }
}

fn phase1(of: &Phase1) -> report::Phase1 {
    report::Phase1 {
        primal: known(of.primal),
        dual_bound: known(of.dual_bound),
        gap: known(of.gap),
        gap_in_use_moves: known(of.gap_in_use_moves),
        termination: Some(match of.termination {
            Termination::Optimal => report::Termination::Optimal,
            Termination::Stalled => report::Termination::Stalled,
            Termination::Deadline => report::Termination::Deadline,
            Termination::Interrupted => report::Termination::Interrupted,
        }),
        proof: of.proof.clone(),
        lp_value: of.lp_value,
        lp_seconds: of.lp_seconds,
        shortfall_cost: known(of.shortfall_cost),
        excess_cost: known(of.excess_cost),
        initial_primal: known(of.initial_primal),
    }
}

fn unsolved_phase1() -> report::Phase1 {
    report::Phase1 {
        termination: Some(report::Termination::Unsolved),
        proof: "there was no solve, so no bound is proven".to_owned(),
        ..report::Phase1::default()
    }
}

fn step(StepTime { phase, step, seconds }: StepTime) -> report::StepTime {
    report::StepTime { phase, step, seconds }
}

fn moment(Progress { seconds, phase, step, primal, dual_bound }: Progress) -> Moment {
    Moment { seconds, phase, step, primal, dual_bound }
}

fn sizes(snapshot: &RegionSnapshot, stats: &SolveStats) -> report::Sizes {
    let Sizes { classes, phase1_columns, phase1_rows, phase1_nonzeros, .. } = stats.sizes;
    let (servers, reservations) = (snapshot.servers.len(), snapshot.reservations.len());
    report::Sizes { servers, classes, reservations, phase1_columns, phase1_rows, phase1_nonzeros }
}

/// The largest guaranteed reservations that hold something, by MSB: as many as in the paper's
/// figure 13, so that readers do not need the assignment. MSBs are ordered by datacenter and name.
fn msb_shares(snapshot: &RegionSnapshot, audit: &AuditReport) -> MsbShares {
    const ROWS: usize = 30;
    let of = |datacenter: usize| -> Vec<usize> {
        let there = snapshot.msbs.iter().enumerate();
        let there = there.filter(|(_, msb)| msb.datacenter.ix() == datacenter);
        there.map(|(position, _)| position).collect()
    };
    let datacenters: Vec<Vec<usize>> = (0..snapshot.datacenters.len()).map(of).collect();
    let named = snapshot.datacenters.iter().zip(&datacenters).map(|(datacenter, msbs)| {
        let msbs = msbs.iter().map(|msb| snapshot.msbs[*msb].id.clone()).collect();
        DatacenterMsbs { datacenter: datacenter.id.clone(), msbs }
    });
    let holds = |row: &&ReservationAudit| {
        row.kind == ReservationKind::Guaranteed && row.holding.assigned > Rru::ZERO
    };
    let mut rows: Vec<&ReservationAudit> = audit.reservations.iter().filter(holds).collect();
    rows.sort_by_key(|row| (Reverse(row.capacity), &row.reservation_id));
    let shares = |row: &&ReservationAudit| {
        let order = datacenters.iter().flatten();
        let msb_rru = order.map(|msb| row.msb_amounts[*msb].to_f64()).collect();
        ReservationShares { reservation_id: row.reservation_id.clone(), msb_rru }
    };
    MsbShares {
        datacenters: named.collect(),
        reservations: rows.iter().take(ROWS).map(shares).collect(),
        of: rows.len(),
    }
}

/// Seconds by phase, summed over its steps.
fn phases(stats: &SolveStats) -> Vec<PhaseTime> {
    let mut seconds: BTreeMap<u8, f64> = BTreeMap::new();
    for step in &stats.steps {
        *seconds.entry(step.phase).or_default() += step.seconds;
    }
    seconds.into_iter().map(|(phase, seconds)| PhaseTime { phase, seconds }).collect()
}

fn partition_loss(of: &PartitionLoss) -> report::PartitionLoss {
    report::PartitionLoss {
        partition: of.partition.clone().into(),
        domain: of.domain.clone().map(Into::into),
        lost_rru: of.lost.to_f64(),
        left_rru: of.left.to_f64(),
        initial_left_rru: of.initial_left.to_f64(),
        survives: of.survives,
    }
}

fn reservations(
    audit: &AuditReport,
    reasons: &BTreeMap<ReservationName, Reason>,
) -> Vec<ReservationRow> {
    let row = |row: &ReservationAudit| {
        let amount = |amount: Rru| Some(amount.to_f64());
        let why = reasons.get(&row.reservation_id);
        ReservationRow {
            reservation_id: row.reservation_id.clone(),
            owner: Some(row.owner.clone()),
            kind: Some(row.kind),
            priority: Some(row.priority),
            msb_buffer: Some(row.msb_buffer),
            servers: Some(row.holding.servers),
            capacity_rru: amount(row.capacity),
            assigned_rru: amount(row.holding.assigned),
            largest_msb_rru: amount(row.holding.largest_msb),
            largest_msb: row.holding.largest_msb_id.clone(),
            smallest_buffer_rru: amount(row.smallest_buffer),
            guaranteed_rru: amount(row.holding.guaranteed),
            shortfall_rru: amount(row.holding.shortfall),
            shortfall_servers: Some(row.holding.shortfall_servers),
            partitions: row.partitions.iter().map(partition_loss).collect(),
            msb_excess_rru: amount(row.msb_spread.excess),
            rack_excess_rru: amount(row.rack_spread.excess),
            reason: why.map(|why| why.token.to_owned()),
            why: why.map(|why| why.sentence.clone()),
            held_by: why.map(|why| why.held_by.clone()),
        }
    };
    audit.reservations.iter().map(row).collect()
}
