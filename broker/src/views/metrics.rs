//! Metrics for monitoring. They are computed from stored rows, so every process reports the same and restarts
//! lose none.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::views::status::{self, ServerCounts};
use crate::views::stuck;
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
        LAST = "SELECT (r.report #>> '{phase1,gap}')::float8, (r.report #>> '{moves,in_use}')::float8, \
                (r.report #>> '{moves,idle}')::float8, (r.report ->> 'shortfall_rru')::float8, \
                (r.report #>> '{seconds,total}')::float8, (r.report #>> '{buffer,share}')::float8, \
                r.report -> 'steps' \
            FROM solves s JOIN solve_reports r USING (solve_id) \
            WHERE s.state = 'published' ORDER BY s.version DESC LIMIT 1";
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
    /// Missing RRU.
    pub shortfall: Option<f64>,
    /// Its duration.
    pub seconds: Option<f64>,
    /// The embedded buffer as a share of the requested capacity.
    pub buffer_share: Option<f64>,
    /// The duration of each step of each phase.
    pub steps: BTreeMap<(String, String), f64>,
}

/// Metrics of one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Solves that ended, by state and reason.
    pub solves: Vec<(String, String, i64)>,
    /// Jobs by kind and state.
    pub jobs: Vec<(String, String, i64)>,
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
    pub moves: Vec<(String, i64)>,
    /// Failed and expired moves: origin, whether the server was in use, reason, number.
    pub failed_moves: Vec<(String, bool, String, i64)>,
    /// Refused requests by reason; a request with several reasons counts once for each.
    pub refusals: Vec<(String, i64)>,
    /// Overdue things by machine and state, zeros included.
    pub stuck: Vec<(String, String, i64)>,
    /// Failed servers by the state of their replacement.
    pub replacements: Vec<(String, i64)>,
    /// Replacements within each of [`REPLACED_WITHIN`], from event to binding.
    pub replaced_within: Vec<i64>,
    /// The total of those times, in seconds.
    pub replaced_seconds: f64,
    /// Emergencies by state, and how many of them no solve has covered yet.
    pub emergencies: Vec<(String, i64, i64)>,
    /// Lost MSBs.
    pub outages: i64,
    /// Whether a mover is active.
    pub mover_acts: bool,
    /// Whether the stop switch is set.
    pub mover_stopped: bool,
    /// Seconds: the duration of a lease renewal, of the last full pass, and of the lease.
    pub mover_seconds: [Option<f64>; 3],
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
        let counts: Vec<(String, String, String, i64)> = sqlx::query_as(sql::COUNTS)
            .bind(&machines)
            .bind(&states)
            .bind(longest)
            .bind(REPLACED_WITHIN.to_vec())
            .fetch_all(&mut *tx)
            .await
            .doing(doing)?;
        let of = |what: &str| -> Vec<(String, String, i64)> {
            let rows = counts.iter().filter(|row| row.0 == what);
            rows.map(|(_, a, b, count)| (a.clone(), b.clone(), *count)).collect()
        };
        let mut emergencies: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for (state, debt, count) in of("emergencies") {
            let (all, debts) = emergencies.entry(state).or_default();
            *all += count;
            *debts += if debt.is_empty() { 0 } else { count };
        }
        let within = |end: &f64| {
            let word = end.to_string();
            of("waits").iter().find(|row| row.0 == word).map_or(0, |row| row.2)
        };
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
        tx.commit().await.doing(doing)?;
        Ok(Metrics {
            solves: of("solves"),
            jobs: of("jobs"),
            leases_lost,
            published_seconds_ago,
            skipped,
            seq,
            version,
            servers,
            last,
            moves: of("moves").into_iter().map(|row| (row.0, row.2)).collect(),
            failed_moves: of("failed_moves").into_iter().filter_map(failed_moves).collect(),
            refusals: of("refusals").into_iter().map(|row| (row.0, row.2)).collect(),
            stuck: kinds_of_stay(&machines, &states, &of("stuck")),
            replacements: of("replacements").into_iter().map(|row| (row.0, row.2)).collect(),
            replaced_within: REPLACED_WITHIN.iter().map(within).collect(),
            replaced_seconds,
            emergencies: emergencies
                .into_iter()
                .map(|(state, (n, debts))| (state, n, debts))
                .collect(),
            outages: of("outages").iter().map(|row| row.2).sum(),
            mover_acts,
            mover_stopped,
            mover_seconds: std::array::from_fn(|at| {
                let millis: &Vec<Option<i64>> = &mover_millis;
                millis.get(at).copied().flatten().map(|millis| millis as f64 / 1_000.0)
            }),
        })
    }
}

fn failed_moves(
    (origin, words, count): (String, String, i64),
) -> Option<(String, bool, String, i64)> {
    let (in_use, reason) = words.split_once(' ')?;
    Some((origin, in_use == "yes", reason.to_owned(), count))
}

fn kinds_of_stay(
    machines: &[&str],
    states: &[&str],
    counted: &[(String, String, i64)],
) -> Vec<(String, String, i64)> {
    let kinds = machines.iter().zip(states);
    let count = |machine: &str, state: &str| {
        let found = counted.iter().find(|row| row.0 == machine && row.1 == state);
        found.map_or(0, |row| row.2)
    };
    kinds.map(|(a, b)| ((*a).to_owned(), (*b).to_owned(), count(a, b))).collect()
}

fn last(row: &PgRow) -> Result<LastSolve, sqlx::Error> {
    let steps: Option<serde_json::Value> = row.try_get(6)?;
    let mut by_name: BTreeMap<(String, String), f64> = BTreeMap::new();
    for step in steps.as_ref().and_then(|steps| steps.as_array()).into_iter().flatten() {
        let phase = step["phase"].to_string();
        let name = step["step"].as_str().unwrap_or_default().to_owned();
        *by_name.entry((phase, name)).or_default() += step["seconds"].as_f64().unwrap_or(0.0);
    }
    Ok(LastSolve {
        gap: row.try_get(0)?,
        moves_in_use: row.try_get(1)?,
        moves_idle: row.try_get(2)?,
        shortfall: row.try_get(3)?,
        seconds: row.try_get(4)?,
        buffer_share: row.try_get(5)?,
        steps: by_name,
    })
}
