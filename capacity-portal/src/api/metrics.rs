//! Metrics in the text format of Prometheus.

mod supply;
mod warm;

use crate::supply::RegionSupply;
use crate::warm_capacity::WarmCapacity;
use broker::{
    EmergencyState, FailedMoveCount, FailureReason, JobKind, JobState, LastSolve, Metrics,
    MoveOrigin, MoveReason, MoverSeconds, REPLACED_WITHIN, ReplacementState, STATEMENT_WITHIN,
    SolveState, State, StatementTimes,
};
use control::CachedRegion;
use control::admission::REASONS;
use fleet::RegionSnapshot;
use fleet::audit::{Certificate, Certified, Standing};
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Encoder, GaugeVec, IntCounterVec, Opts, Registry, TextEncoder};
use std::collections::HashMap;
use std::sync::Arc;

/// Content type of the format.
pub(crate) const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// Limit of reservations with metrics of their own.
const RESERVATIONS_MAX: usize = 5_000;

/// Metrics of this process.
#[derive(Debug, Default)]
pub(crate) struct ProcessMetrics {
    /// Plans under way or queued.
    pub(crate) plans: usize,
    /// The cached region.
    pub(crate) region: Option<Arc<CachedRegion>>,
    /// How long servers last, as computed last.
    pub(crate) supply: Option<Arc<RegionSupply>>,
    /// Shared buffers and headroom, as computed last.
    pub(crate) warm: Option<Arc<WarmCapacity>>,
    /// Groups of policies that are above their limits; `None`: it is not known.
    pub(crate) exceeded: Option<usize>,
    /// SQL statements and their durations.
    pub(crate) statements: Vec<StatementTimes>,
    /// Whose reservations have metrics of their own.
    pub(crate) shown: ShownReservations,
}

/// Reservations with metrics of their own. Totals name none and are always there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ShownReservations {
    #[default]
    All,
    OfOwner(String),
    None,
}

impl ShownReservations {
    fn includes(&self, region: &RegionSnapshot, name: &str) -> bool {
        match self {
            ShownReservations::All => true,
            ShownReservations::None => false,
            ShownReservations::OfOwner(owner) => region
                .reservation(name)
                .is_some_and(|at| *region.reservations[at.ix()].owner == **owner),
        }
    }
}

/// Writes the metrics; `None`: Postgres does not answer, so only those of this process.
pub(crate) fn text(
    metrics: Option<&Metrics>,
    here: &ProcessMetrics,
) -> Result<String, prometheus::Error> {
    let page = Page(Registry::new());
    let up = if metrics.is_some() { 1.0 } else { 0.0 };
    page.gauge("ras_postgres_up", "whether Postgres answers", Some(up))?;
    process(&page, here)?;
    if let Some(metrics) = metrics {
        stored(&page, metrics)?;
        between_solves(&page, metrics)?;
        if let Some(last) = &metrics.last {
            last_solve(&page, last)?;
        }
    }
    let mut text = Vec::new();
    TextEncoder::new().encode(&page.0.gather(), &mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Built for each scrape: the values are the database's, not this process's.
struct Page(Registry);

impl Page {
    /// One value; omitted if unknown.
    fn gauge(&self, name: &str, help: &str, value: Option<f64>) -> Result<(), prometheus::Error> {
        let Some(value) = value else { return Ok(()) };
        self.gauges(name, help, [], [([], value)])
    }

    fn gauges<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        rows: impl IntoIterator<Item = ([String; N], f64)>,
    ) -> Result<(), prometheus::Error> {
        let gauges = GaugeVec::new(Opts::new(name, help), &labels)?;
        for (values, value) in rows {
            gauges.with_label_values(&values).set(value);
        }
        self.0.register(Box::new(gauges))
    }

    /// Histograms counted elsewhere: for each row the cumulative counts at `ends`, the total count and the sum.
    fn histograms<'a, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        ends: &[f64],
        rows: impl IntoIterator<Item = ([String; N], &'a [i64], (i64, f64))>,
    ) -> Result<(), prometheus::Error> {
        let names: Vec<String> = labels.map(str::to_owned).to_vec();
        let rows = rows.into_iter().map(|(values, within, (count, sum))| {
            let labels = names.iter().zip(values).map(|(name, value)| {
                let mut label = LabelPair::default();
                label.set_name(name.clone());
                label.set_value(value);
                label
            });
            let buckets = ends.iter().zip(within).map(|(end, count)| {
                let mut bucket = Bucket::default();
                bucket.set_upper_bound(*end);
                bucket.set_cumulative_count(count.unsigned_abs());
                bucket
            });
            let mut histogram = Histogram::default();
            histogram.set_bucket(buckets.collect());
            histogram.set_sample_count(count.unsigned_abs());
            histogram.set_sample_sum(sum);
            let mut metric = Metric::default();
            metric.set_label(labels.collect());
            metric.set_histogram(histogram);
            metric
        });
        let rows: Vec<Metric> = rows.collect();
        let desc = Desc::new(name.to_owned(), help.to_owned(), names, HashMap::new())?;
        self.0.register(Box::new(Counted { desc, rows }))
    }

    fn counters<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        rows: impl IntoIterator<Item = ([String; N], i64)>,
    ) -> Result<(), prometheus::Error> {
        let counters = IntCounterVec::new(Opts::new(name, help), &labels)?;
        for (values, value) in rows {
            counters.with_label_values(&values).inc_by(value.unsigned_abs());
        }
        self.0.register(Box::new(counters))
    }
}

/// Histograms whose counts come from elsewhere.
struct Counted {
    desc: Desc,
    rows: Vec<Metric>,
}

impl Collector for Counted {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut family = MetricFamily::default();
        family.set_name(self.desc.fq_name.clone());
        family.set_help(self.desc.help.clone());
        family.set_field_type(MetricType::HISTOGRAM);
        family.set_metric(self.rows.clone());
        vec![family]
    }
}

fn process(page: &Page, here: &ProcessMetrics) -> Result<(), prometheus::Error> {
    let help = "plans that are made or wait in this process";
    page.gauge("ras_plans_under_way", help, Some(here.plans as f64))?;
    let help = "last entry of the audit trail in the region that this process keeps in memory";
    page.gauge("ras_region_held_seq", help, here.region.as_ref().map(|held| held.seq.0 as f64))?;
    page.histograms(
        "ras_postgres_statement_seconds",
        "duration of SQL statements of this process, until the end of the response",
        ["statement"],
        &STATEMENT_WITHIN,
        here.statements
            .iter()
            .map(|of| ([of.name.clone()], &of.within[..], (of.count, of.seconds))),
    )?;
    page.gauge(
        "ras_policy_groups_exceeded",
        "groups of policies in force that are above their limits now; absent: there are no policies, or it is not known yet",
        here.exceeded.map(|count| count as f64),
    )?;
    if let Some(of) = &here.supply {
        supply::write(page, of, here.shown == ShownReservations::All)?;
    }
    // Types and datacenters are named to callers that may read the region.
    if let Some(of) = here.warm.as_ref().filter(|_| here.shown == ShownReservations::All) {
        warm::write(page, of, here.region.as_deref())?;
    }
    match &here.region {
        Some(held) => {
            let shown = |row: &Certified| here.shown.includes(&held.snapshot, &row.reservation_id);
            certified(page, &held.certificate, shown)
        }
        None => Ok(()),
    }
}

/// Capacity after the worst MSB loss, by reservation. A region of a million servers has a few thousand reservations;
/// of more, only those closest to their promise or below it are listed.
fn certified(
    page: &Page,
    certificate: &Certificate,
    shown: impl Fn(&Certified) -> bool,
) -> Result<(), prometheus::Error> {
    let totals = certificate.totals();
    let standings = Standing::ALL.map(|standing| {
        let count = match standing {
            Standing::Short => totals.short,
            Standing::AtRisk => totals.at_risk,
            Standing::Guaranteed => totals.guaranteed,
        };
        ([standing.as_str().to_owned()], count as f64)
    });
    page.gauges(
        "ras_promises",
        "guaranteed reservations: short (less than promised now), at_risk (everything now, not after one more loss of an MSB or another domain that it survives), guaranteed",
        ["standing"],
        standings,
    )?;
    page.gauges(
        "ras_missing_servers",
        "fewest servers worth what is missing of promises now, and now or after one more loss of an MSB or another domain",
        ["when"],
        [("now", totals.missing_now), ("after_one_more_loss", totals.missing_after_loss)]
            .map(|(when, missing)| ([when.to_owned()], missing as f64)),
    )?;
    let mut rows: Vec<&Certified> =
        certificate.rows.iter().filter(|row| row.survives_a_loss() && shown(row)).collect();
    rows.sort_by_key(|row| (row.margin(), &row.reservation_id));
    rows.truncate(RESERVATIONS_MAX);
    let name = |row: &Certified| [row.reservation_id.to_string()];
    page.gauges(
        "ras_reservation_held_rru",
        "RRU that it has now, by reservation",
        ["reservation"],
        rows.iter().map(|row| (name(row), row.held().to_f64())),
    )?;
    page.gauges(
        "ras_reservation_guaranteed_rru",
        "RRU of the promise that are guaranteed now, by reservation",
        ["reservation"],
        rows.iter().map(|row| (name(row), row.figures().guaranteed().to_f64())),
    )?;
    page.gauges(
        "ras_reservation_survivors_rru",
        "RRU left within 30 minutes of the worst loss of an MSB or another domain that it survives, by reservation",
        ["reservation"],
        rows.iter().map(|row| (name(row), row.left_after_loss().to_f64())),
    )?;
    page.gauges(
        "ras_reservation_survivors_at_once_rru",
        "least RRU left at once after such a loss, by reservation",
        ["reservation"],
        rows.iter().map(|row| (name(row), row.left_at_once_after_loss().to_f64())),
    )?;
    page.gauges(
        "ras_reservation_promised_at_once_rru",
        "RRU required at once after any such loss, by reservation",
        ["reservation"],
        rows.iter().map(|row| (name(row), row.needed_at_once().to_f64())),
    )?;
    page.gauges(
        "ras_reservation_maintained_rru",
        "RRU in planned maintenance, by reservation",
        ["reservation"],
        rows.iter().map(|row| (name(row), row.maintained.to_f64())),
    )?;
    page.gauges(
        "ras_reservation_promised_rru",
        "promised RRU, by reservation: required now and within 30 minutes of any such loss",
        ["reservation"],
        rows.iter().map(|row| (name(row), row.capacity.to_f64())),
    )
}

fn stored(page: &Page, metrics: &Metrics) -> Result<(), prometheus::Error> {
    // Codes that never occurred are 0: Prometheus cannot see an absent series increase.
    let reasons = FailureReason::ALL.map(|reason| (SolveState::Failed, Some(reason)));
    let ends = [(SolveState::Published, None), (SolveState::Stale, None)];
    let solves = ends.into_iter().chain(reasons).map(|(state, reason)| {
        let found = metrics.solves.iter().find(|of| of.state == state && of.reason == reason);
        let labels = [state.as_str(), reason.map_or("", FailureReason::as_str)];
        (labels.map(str::to_owned), found.map_or(0, |of| of.count))
    });
    page.counters(
        "ras_solves_total",
        "ended solves by state (published, stale, failed) and reason of failure",
        ["state", "reason"],
        solves,
    )?;
    let jobs = |kind: JobKind, state: JobState| {
        let found = metrics.jobs.iter().find(|of| of.kind == kind && of.state == state);
        found.map_or(0, |of| of.count)
    };
    let kinds = JobKind::ALL.into_iter();
    let open = kinds.flat_map(|kind| [(kind, JobState::Waiting), (kind, JobState::Running)]);
    page.gauges(
        "ras_queue_jobs",
        "queued and running jobs",
        ["kind", "state"],
        open.map(|(kind, state)| {
            ([kind.as_str(), state.as_str()].map(str::to_owned), jobs(kind, state) as f64)
        }),
    )?;
    page.counters(
        "ras_jobs_failed_total",
        "jobs that failed after all attempts",
        ["kind"],
        JobKind::ALL.map(|kind| ([kind.as_str().to_owned()], jobs(kind, JobState::Failed))),
    )?;
    let moves = metrics.moves.iter();
    let moves = moves.map(|(state, count)| ([state.as_str().to_owned()], *count as f64));
    page.gauges("ras_moves", "open moves", ["state"], moves)?;
    ended_badly(page, metrics)?;
    let stuck = metrics.stuck.iter();
    page.gauges(
        "ras_stuck",
        "objects that have been in one state for too long",
        ["machine", "state"],
        stuck.map(|of| ([of.machine.as_str(), of.state].map(str::to_owned), of.count as f64)),
    )?;
    let flag = |flag: bool| Some(if flag { 1.0 } else { 0.0 });
    page.gauge("ras_mover_acts", "whether a mover is active", flag(metrics.mover_acts))?;
    let help = "whether the mover's stop switch is pulled";
    page.gauge("ras_mover_stopped", help, flag(metrics.mover_stopped))?;
    let MoverSeconds { round_trip, pass, lease } = metrics.mover_seconds;
    let help = "how long a renewal of the mover's lease takes: from two thirds of the lease on it cannot act";
    page.gauge("ras_mover_round_trip_seconds", help, round_trip)?;
    page.gauge("ras_mover_pass_seconds", "duration of the last full pass of the mover", pass)?;
    page.gauge("ras_mover_lease_seconds", "duration of the lease of the mover", lease)?;
    let lost = [([], metrics.leases_lost)];
    page.counters("ras_leases_lost_total", "leases that workers have lost", [], lost)?;
    let ago = metrics.published_seconds_ago;
    page.gauge("ras_last_published_solve_age_seconds", "time since a solve was published", ago)?;
    let skipped = metrics.skipped.map(|skipped| skipped as f64);
    page.gauge(
        "ras_last_publication_skipped_servers",
        "servers skipped because their binding had changed",
        skipped,
    )?;
    page.gauge("ras_targets_version", "version of the targets", Some(metrics.version as f64))?;
    page.gauge("ras_audit_trail_seq", "last entry of the audit trail", Some(metrics.seq as f64))?;
    let servers = &metrics.servers;
    for (name, help, count) in [
        ("ras_servers", "servers of the region", servers.total),
        ("ras_servers_held", "servers owned by a reservation", servers.held),
        ("ras_servers_in_use", "servers in use", servers.in_use),
        ("ras_servers_on_the_move", "servers with an open move", servers.on_the_move),
        ("ras_servers_lent", "servers lent to an elastic reservation", servers.lent),
        (
            "ras_servers_unavailable",
            "servers out of service because of an event",
            servers.unavailable,
        ),
    ] {
        page.gauge(name, help, Some(count as f64))?;
    }
    Ok(())
}

/// Failed moves by class, and refused requests by reason.
fn ended_badly(page: &Page, metrics: &Metrics) -> Result<(), prometheus::Error> {
    let classes = MoveOrigin::ALL.iter().flat_map(|origin| {
        let reasons = [MoveReason::HostRefused, MoveReason::TookTooLong];
        reasons.map(|reason| [(origin, true, reason), (origin, false, reason)])
    });
    page.counters(
        "ras_moves_failed_total",
        "moves that the host refused or that timed out, by origin and whether the server was in use",
        ["origin", "in_use", "reason"],
        classes.flatten().map(|(origin, in_use, reason)| {
            let is = |of: &&FailedMoveCount| {
                of.origin == *origin && of.in_use == in_use && of.reason == reason
            };
            let found = metrics.failed_moves.iter().find(is);
            let word = if in_use { "yes" } else { "no" };
            let labels = [origin.as_str(), word, reason.as_str()].map(str::to_owned);
            (labels, found.map_or(0, |of| of.count))
        }),
    )?;
    page.counters(
        "ras_requests_refused_total",
        "refused requests; a request with several reasons counts for each",
        ["reason"],
        REASONS.iter().map(|reason| {
            ([(*reason).to_owned()], metrics.refusals.get(*reason).copied().unwrap_or(0))
        }),
    )
}

/// Decisions between two solves.
fn between_solves(page: &Page, metrics: &Metrics) -> Result<(), prometheus::Error> {
    let counted = |state: ReplacementState| metrics.replacements.get(&state).copied().unwrap_or(0);
    let all = ReplacementState::ALL.iter().copied();
    let (open, ended): (Vec<_>, Vec<_>) = all.partition(|state| !state.is_terminal());
    let word = |state: ReplacementState| [state.as_str().to_owned()];
    page.gauges(
        "ras_replacements",
        "failed servers whose replacement is owed or arriving",
        ["state"],
        open.into_iter().map(|state| (word(state), counted(state) as f64)),
    )?;
    page.counters(
        "ras_replacements_total",
        "failed servers by outcome",
        ["state"],
        ended.into_iter().map(|state| (word(state), counted(state))),
    )?;
    let bound = counted(ReplacementState::Bound);
    page.histograms(
        "ras_replacement_seconds",
        "time from recording the failure to binding the spare",
        [],
        &REPLACED_WITHIN,
        [([], &metrics.replaced_within[..], (bound, metrics.replaced_seconds))],
    )?;
    let emergencies = EmergencyState::ALL.iter().map(|state| {
        let found = metrics.emergencies.iter().find(|of| of.state == *state);
        ([state.as_str().to_owned()], found.map_or(0.0, |of| of.count as f64))
    });
    page.gauges("ras_emergencies", "emergencies", ["state"], emergencies)?;
    let debts: i64 = metrics.emergencies.iter().map(|of| of.debts).sum();
    let help = "emergencies that no solve has spread and buffered yet";
    page.gauge("ras_emergencies_debt", help, Some(debts as f64))?;
    page.gauge("ras_msbs_lost", "lost MSBs", Some(metrics.outages as f64))
}

fn last_solve(page: &Page, last: &LastSolve) -> Result<(), prometheus::Error> {
    page.gauge(
        "ras_last_solve_gap",
        "proved gap of the objective and shortfalls, as a share of the primal",
        last.gap,
    )?;
    let help = "fewest servers worth what all reservations are short of";
    page.gauge("ras_last_solve_shortfall_servers", help, last.shortfall_servers)?;
    page.gauge("ras_last_solve_seconds", "duration of the last solve", last.seconds)?;
    let help = "embedded buffer as a share of the requested capacity";
    page.gauge("ras_last_solve_buffer_share", help, last.buffer_share)?;
    let moves = [("yes", last.moves_in_use), ("no", last.moves_idle)];
    let moves = moves.into_iter().filter_map(|(word, n)| Some(([word.to_owned()], n?)));
    page.gauges("ras_last_solve_moves", "servers that move by the last solve", ["in_use"], moves)?;
    let steps = last.steps.iter();
    let steps = steps.map(|of| ([of.phase.to_string(), of.step.clone()], of.seconds));
    let help = "how long each step took";
    page.gauges("ras_last_solve_step_seconds", help, ["phase", "step"], steps)
}

#[cfg(test)]
mod tests {
    use super::{ProcessMetrics, text};
    use broker::{
        EmergencyCount, EmergencyState, FailedMoveCount, FailureReason, JobCount, JobKind,
        JobState, LastSolve, Machine, Metrics, MoveOrigin, MoveReason, MoveState, MoverSeconds,
        ReplacementState, ServerCounts, SolveCount, SolveState, State, StatementTimes, StepSeconds,
        StuckCount,
    };
    use std::collections::BTreeMap;

    #[test]
    fn unknown_values_are_left_out() {
        let down = text(None, &ProcessMetrics::default()).expect("text");
        assert!(down.contains("\nras_postgres_up 0\n"), "{down}");
        assert!(!down.contains("ras_targets_version"), "{down}");
        let metrics = Metrics {
            solves: vec![SolveCount {
                state: SolveState::Failed,
                reason: Some(FailureReason::Crashed),
                count: 3,
            }],
            jobs: vec![
                JobCount { kind: JobKind::Solve, state: JobState::Waiting, count: 1 },
                JobCount { kind: JobKind::Solve, state: JobState::Done, count: 9 },
            ],
            version: 7,
            moves: BTreeMap::from([(MoveState::Preempting, 12)]),
            failed_moves: vec![FailedMoveCount {
                origin: MoveOrigin::Plan,
                in_use: true,
                reason: MoveReason::HostRefused,
                count: 2,
            }],
            refusals: BTreeMap::from([("quota_exceeded".to_owned(), 4)]),
            stuck: vec![StuckCount {
                machine: Machine::Moves,
                state: MoveState::Preempting.as_str(),
                count: 3,
            }],
            mover_stopped: true,
            mover_seconds: MoverSeconds { round_trip: Some(1.0), pass: Some(28.5), lease: None },
            replacements: BTreeMap::from([
                (ReplacementState::Owed, 2),
                (ReplacementState::Bound, 5),
            ]),
            replaced_within: vec![1, 4, 5, 5, 5, 5, 5, 5],
            replaced_seconds: 9.5,
            emergencies: vec![EmergencyCount {
                state: EmergencyState::Granted,
                count: 3,
                debts: 1,
            }],
            outages: 1,
            servers: ServerCounts { unavailable: 4, ..ServerCounts::default() },
            last: Some(LastSolve {
                gap: Some(0.25),
                steps: vec![StepSeconds { phase: 1, step: "mip".to_owned(), seconds: 1.5 }],
                ..LastSolve::default()
            }),
            ..Metrics::default()
        };
        let times = StatementTimes {
            name: "a.B".into(),
            within: vec![0, 1, 2, 2, 3, 3, 3],
            count: 3,
            seconds: 0.5,
        };
        let here = ProcessMetrics {
            statements: vec![times],
            exceeded: Some(2),
            ..ProcessMetrics::default()
        };
        let up = text(Some(&metrics), &here).expect("text");
        for line in [
            "ras_postgres_up 1",
            "ras_policy_groups_exceeded 2",
            "ras_targets_version 7",
            "ras_solves_total{reason=\"crashed\",state=\"failed\"} 3",
            "ras_solves_total{reason=\"out_of_time\",state=\"failed\"} 0",
            "ras_queue_jobs{kind=\"solve\",state=\"waiting\"} 1",
            "ras_queue_jobs{kind=\"replay\",state=\"running\"} 0",
            "ras_servers_unavailable 4",
            "ras_last_solve_gap 0.25",
            "ras_moves{state=\"preempting\"} 12",
            "ras_stuck{machine=\"moves\",state=\"preempting\"} 3",
            "ras_moves_failed_total{in_use=\"yes\",origin=\"plan\",reason=\"host_refused\"} 2",
            "ras_moves_failed_total{in_use=\"no\",origin=\"plan\",reason=\"host_refused\"} 0",
            "ras_requests_refused_total{reason=\"quota_exceeded\"} 4",
            "ras_requests_refused_total{reason=\"region\"} 0",
            "ras_postgres_statement_seconds_bucket{statement=\"a.B\",le=\"0.025\"} 2",
            "ras_postgres_statement_seconds_sum{statement=\"a.B\"} 0.5",
            "ras_postgres_statement_seconds_count{statement=\"a.B\"} 3",
            "ras_mover_acts 0",
            "ras_mover_stopped 1",
            "ras_mover_round_trip_seconds 1",
            "ras_mover_pass_seconds 28.5",
            "ras_replacements{state=\"owed\"} 2",
            "ras_replacements_total{state=\"paid\"} 0",
            "ras_replacement_seconds_bucket{le=\"2\"} 4",
            "ras_replacement_seconds_bucket{le=\"60\"} 5",
            "ras_replacement_seconds_bucket{le=\"+Inf\"} 5",
            "ras_replacement_seconds_sum 9.5",
            "ras_replacement_seconds_count 5",
            "ras_emergencies{state=\"granted\"} 3",
            "ras_emergencies_debt 1",
            "ras_msbs_lost 1",
            "ras_last_solve_step_seconds{phase=\"1\",step=\"mip\"} 1.5",
        ] {
            assert!(up.lines().any(|said| said == line), "no {line:?} in\n{up}");
        }
        assert!(!up.contains("done") && !up.contains("age_seconds"), "{up}");
    }
}
