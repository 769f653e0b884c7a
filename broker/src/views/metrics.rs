//! Metrics for monitoring. They are computed from stored rows, so every process reports the same and restarts
//! lose none.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::state::{
    self, EmergencyState, JobState, MoveState, ReplacementState, SolveState,
};
use crate::infra::words;
use crate::moves::origin::MoveReason;
use crate::queue::cause::FailureReason;
use crate::queue::job::JobKind;
use crate::views::status::{self, ServerCounts};
use crate::views::stuck::{self, Machine};
use fleet::MoveOrigin;
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::BTreeMap;

pub(crate) mod sql {
    crate::statements! {
        /// One statement for many counts: monitoring must work with a slow Postgres.
        COUNTS = "SELECT 'solves', state, coalesce(reason, ''), count(*) FROM solves \
            WHERE state IN ('published', 'stale', 'failed') GROUP BY 2, 3 \
            UNION ALL SELECT 'jobs', kind, state, count(*) FROM jobs GROUP BY 2, 3 \
            UNION ALL SELECT 'moves', state, '', count(*) FROM moves WHERE open GROUP BY 2 \
            UNION ALL SELECT 'stuck', machine, state, count(*) FROM watched_states o \
                JOIN unnest($1::text[], $2::text[], $3::float8[]) AS w (machine, state, longest) \
                    USING (machine, state) \
                WHERE o.state_at < clock_timestamp() - make_interval(secs => w.longest) GROUP BY 2, 3 \
            UNION ALL SELECT 'replacements', state, '', count(*) FROM replacements GROUP BY 2 \
            UNION ALL SELECT 'waits', b.bound::text, '', count(p.state) FROM unnest($4::float8[]) AS b (bound) \
                LEFT JOIN replacements p ON p.state = 'bound' \
                    AND extract(epoch FROM p.state_at - p.recorded_at) <= b.bound GROUP BY b.bound \
            UNION ALL SELECT 'emergencies', state, CASE WHEN state = 'granted' AND granted_at > coalesce( \
                    (SELECT max(v.started_at) FROM solves v WHERE v.state = 'published'), '-infinity') \
                THEN 'debt' ELSE '' END, count(*) FROM emergencies GROUP BY 2, 3 \
            UNION ALL SELECT 'failed_moves', origin, CASE WHEN in_use THEN 'yes ' ELSE 'no ' END || reason, count(*) \
                FROM moves WHERE state IN ('failed', 'expired') GROUP BY origin, in_use, reason \
            UNION ALL SELECT 'refusals', r.reason, '', count(*) FROM capacity_requests q, \
                    jsonb_array_elements_text(CASE jsonb_typeof(q.answer -> 'reasons') \
                        WHEN 'array' THEN q.answer -> 'reasons' ELSE '[]' END) AS r (reason) \
                WHERE q.state = 'refused' GROUP BY 2 \
            UNION ALL SELECT 'outages', 'lost', '', count(*) FROM outages WHERE ended_at IS NULL \
            ORDER BY 1, 2, 3";
        AGES = "SELECT extract(epoch FROM clock_timestamp() - max(state_at))::float8, \
                (SELECT seq FROM trail_clock), (SELECT max(version) FROM target_versions), \
                (SELECT (detail ->> 'skipped')::bigint FROM audit_trail \
                    WHERE subject = (SELECT max(version)::text FROM solves) \
                        AND action = 'targets_published'), \
                (SELECT coalesce(sum(losses), 0) FROM jobs), \
                (SELECT lease_until >= clock_timestamp() FROM mover), \
                (SELECT stopped_by IS NOT NULL FROM mover), \
                (SELECT ARRAY[round_trip_ms, pass_ms, lease_ms] FROM mover), \
                (SELECT coalesce(sum(extract(epoch FROM state_at - recorded_at)), 0)::float8 \
                    FROM replacements WHERE state = 'bound') \
            FROM solves WHERE state = 'published'";
        /// The gap of the whole objective; reports of older versions have that of phase 1.
        LAST = "SELECT coalesce(r.report #>> '{whole,gap}', r.report #>> '{phase1,gap}')::float8, \
                (r.report #>> '{moves,in_use}')::float8, \
                (r.report #>> '{moves,idle}')::float8, (r.report ->> 'shortfall_servers')::float8, \
                (r.report #>> '{seconds,total}')::float8, (r.report #>> '{buffer,share}')::float8 \
            FROM solves s JOIN solve_reports r USING (solve_id) \
            WHERE s.state = 'published' ORDER BY s.version DESC LIMIT 1";
        LAST_STEPS = "SELECT t.phase, t.step, sum(t.seconds) FROM solve_reports r, \
                jsonb_to_recordset(CASE jsonb_typeof(r.report -> 'steps') WHEN 'array' THEN r.report -> 'steps' \
                    ELSE '[]' END) AS t (phase int, step text, seconds float8) \
            WHERE r.solve_id = (SELECT solve_id FROM solves WHERE state = 'published' \
                ORDER BY version DESC LIMIT 1) \
                AND t.phase IS NOT NULL AND t.step IS NOT NULL AND t.seconds IS NOT NULL \
            GROUP BY 1, 2 ORDER BY 1, 2";
    }
}

/// Upper bounds of the buckets of replacement times, in seconds: RAS promises 60.
pub const REPLACED_WITHIN: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0];

/// The figures of the last published solve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastSolve {
    /// The proved gap.
    pub gap: Option<f64>,
    /// Servers in use that it moves.
    pub moves_in_use: Option<f64>,
    /// Idle servers that it moves.
    pub moves_idle: Option<f64>,
    /// The fewest servers worth all shortfalls; `None` in reports of older versions.
    pub shortfall_servers: Option<f64>,
    /// Its duration.
    pub seconds: Option<f64>,
    /// The embedded buffer as a share of the requested capacity.
    pub buffer_share: Option<f64>,
    /// The duration of each step of each phase, by phase and step.
    pub steps: Vec<StepSeconds>,
}

/// The duration of a step of a solve.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSeconds {
    /// The phase: 1 or 2.
    pub phase: i32,
    /// The step's name.
    pub step: String,
    /// Seconds, of all its runs.
    pub seconds: f64,
}

/// How many solves ended in one state, for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SolveCount {
    /// The state.
    pub state: SolveState,
    /// Why they failed; `None`: they did not.
    pub reason: Option<FailureReason>,
    /// The number of solves.
    pub count: i64,
}

/// How many jobs of one kind are in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobCount {
    /// The kind.
    pub kind: JobKind,
    /// The state.
    pub state: JobState,
    /// The number of jobs.
    pub count: i64,
}

/// How many moves failed or expired, by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedMoveCount {
    /// Why they were opened.
    pub origin: MoveOrigin,
    /// Whether containers ran on the servers.
    pub in_use: bool,
    /// Why they ended.
    pub reason: MoveReason,
    /// The number of moves.
    pub count: i64,
}

/// How many things have been in one state for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StuckCount {
    /// The table of its states.
    pub machine: Machine,
    /// The word of the state.
    pub state: &'static str,
    /// The number of things.
    pub count: i64,
}

/// How many emergencies are in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmergencyCount {
    /// The state.
    pub state: EmergencyState,
    /// The number of emergencies.
    pub count: i64,
    /// How many of them no solve has covered yet.
    pub debts: i64,
}

/// Seconds that show whether the mover keeps up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MoverSeconds {
    /// The duration of a lease renewal.
    pub round_trip: Option<f64>,
    /// The duration of the last full pass.
    pub pass: Option<f64>,
    /// The duration of the lease.
    pub lease: Option<f64>,
}

/// Metrics of one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Solves that ended, by state and reason.
    pub solves: Vec<SolveCount>,
    /// Jobs by kind and state.
    pub jobs: Vec<JobCount>,
    /// The number of lost workers.
    pub leases_lost: i64,
    /// Seconds since the last publication of a solve; `None`: there was no publication.
    pub published_seconds_ago: Option<f64>,
    /// Servers that the last publication of a solve skipped.
    pub skipped: Option<i64>,
    /// The last entry of the audit trail.
    pub seq: i64,
    /// The version of the targets.
    pub version: i64,
    /// Servers by condition.
    pub servers: ServerCounts,
    /// The last published solve.
    pub last: Option<LastSolve>,
    /// Open moves by state.
    pub moves: BTreeMap<MoveState, i64>,
    /// Failed and expired moves by class.
    pub failed_moves: Vec<FailedMoveCount>,
    /// Refused requests by the code of the reason; a request with several reasons counts once for each.
    pub refusals: BTreeMap<String, i64>,
    /// Overdue things by table and state, zeros included.
    pub stuck: Vec<StuckCount>,
    /// Failed servers by the state of their replacement.
    pub replacements: BTreeMap<ReplacementState, i64>,
    /// Replacements within each of [`REPLACED_WITHIN`], from event to binding.
    pub replaced_within: Vec<i64>,
    /// The total of those times, in seconds.
    pub replaced_seconds: f64,
    /// Emergencies by state.
    pub emergencies: Vec<EmergencyCount>,
    /// Lost MSBs.
    pub outages: i64,
    /// Whether a mover is active.
    pub mover_acts: bool,
    /// Whether the stop switch is set.
    pub mover_stopped: bool,
    /// Durations of the mover.
    pub mover_seconds: MoverSeconds,
}

impl Broker {
    /// Reads the metrics.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn metrics(&self) -> Result<Metrics, DbError> {
        let doing = "reading metrics";
        let mut tx = self.begin_reading().await.doing(doing)?;
        let (machines, states, longest) = stuck::stays();
        let counts: Vec<CountRow> = sqlx::query_as(sql::COUNTS)
            .bind(&machines)
            .bind(&states)
            .bind(longest)
            .bind(REPLACED_WITHIN.to_vec())
            .fetch_all(&mut *tx)
            .await
            .doing(doing)?;
        let (
            published_seconds_ago,
            seq,
            version,
            skipped,
            leases_lost,
            mover_acts,
            mover_stopped,
            mover_millis,
            replaced_seconds,
        ) = sqlx::query_as(sql::AGES).fetch_one(&mut *tx).await.doing(doing)?;
        let servers = status::servers(&mut tx).await.doing(doing)?;
        let last = sqlx::query(sql::LAST)
            .try_map(|row: PgRow| last(&row))
            .fetch_optional(&mut *tx)
            .await
            .doing(doing)?;
        let steps = sqlx::query(sql::LAST_STEPS).try_map(|row: PgRow| {
            Ok(StepSeconds {
                phase: row.try_get(0)?,
                step: row.try_get(1)?,
                seconds: row.try_get(2)?,
            })
        });
        let steps = steps.fetch_all(&mut *tx).await.doing(doing)?;
        tx.commit().await.doing(doing)?;
        let mut metrics = Metrics {
            leases_lost,
            published_seconds_ago,
            skipped,
            seq,
            version,
            servers,
            last: last.map(|last| LastSolve { steps, ..last }),
            stuck: kinds_of_stay(&machines, &states).doing(doing)?,
            replaced_within: vec![0; REPLACED_WITHIN.len()],
            replaced_seconds,
            mover_acts,
            mover_stopped,
            mover_seconds: mover_seconds(mover_millis),
            ..Metrics::default()
        };
        for row in counts {
            metrics.count(&row).doing(doing)?;
        }
        Ok(metrics)
    }
}

/// What is counted, two words, and the number.
type CountRow = (String, String, String, i64);

impl Metrics {
    /// Adds a row of [`sql::COUNTS`].
    fn count(&mut self, (what, a, b, count): &CountRow) -> Result<(), sqlx::Error> {
        let count = *count;
        match what.as_str() {
            "solves" => {
                let reason = Some(b.as_str()).filter(|word| !word.is_empty());
                let reason = reason.map(FailureReason::read).transpose()?;
                self.solves.push(SolveCount { state: state::read(a)?, reason, count });
            }
            "jobs" => {
                let kind = JobKind::read(a)?;
                self.jobs.push(JobCount { kind, state: state::read(b)?, count });
            }
            "moves" => *self.moves.entry(state::read(a)?).or_default() += count,
            "stuck" => {
                let machine = Machine::read(a)?;
                let state = machine.state(b)?;
                let kind =
                    self.stuck.iter_mut().find(|of| of.machine == machine && of.state == state);
                kind.into_iter().for_each(|of| of.count = count);
            }
            "replacements" => *self.replacements.entry(state::read(a)?).or_default() += count,
            "waits" => {
                let at = REPLACED_WITHIN.iter().position(|bound| bound.to_string() == *a);
                let at = at.and_then(|at| self.replaced_within.get_mut(at));
                at.into_iter().for_each(|of| *of = count);
            }
            "emergencies" => self.count_emergencies(state::read(a)?, !b.is_empty(), count),
            "failed_moves" => {
                let (in_use, reason) = b.split_once(' ').unwrap_or((b, ""));
                self.failed_moves.push(FailedMoveCount {
                    origin: words::read("moves.origin", MoveOrigin::ALL, MoveOrigin::as_str, a)?,
                    in_use: in_use == "yes",
                    reason: MoveReason::read(reason)?,
                    count,
                });
            }
            "refusals" => *self.refusals.entry(a.clone()).or_default() += count,
            "outages" => self.outages = count,
            what => return Err(words::unknown("metrics.COUNTS", what)),
        }
        Ok(())
    }

    fn count_emergencies(&mut self, state: EmergencyState, owed: bool, count: i64) {
        let debts = if owed { count } else { 0 };
        match self.emergencies.iter_mut().find(|of| of.state == state) {
            Some(of) => {
                of.count += count;
                of.debts += debts;
            }
            None => self.emergencies.push(EmergencyCount { state, count, debts }),
        }
    }
}

fn mover_seconds(millis: Vec<Option<i64>>) -> MoverSeconds {
    let mut seconds = millis.into_iter().map(|millis| Some(millis? as f64 / 1_000.0));
    let mut next = || seconds.next().flatten();
    MoverSeconds { round_trip: next(), pass: next(), lease: next() }
}

fn kinds_of_stay(machines: &[&str], states: &[&str]) -> Result<Vec<StuckCount>, sqlx::Error> {
    let kind = |(machine, state): (&&str, &&str)| {
        let machine = Machine::read(machine)?;
        Ok(StuckCount { machine, state: machine.state(state)?, count: 0 })
    };
    machines.iter().zip(states).map(kind).collect()
}

fn last(row: &PgRow) -> Result<LastSolve, sqlx::Error> {
    Ok(LastSolve {
        gap: row.try_get(0)?,
        moves_in_use: row.try_get(1)?,
        moves_idle: row.try_get(2)?,
        shortfall_servers: row.try_get(3)?,
        seconds: row.try_get(4)?,
        buffer_share: row.try_get(5)?,
        steps: Vec::new(),
    })
}
