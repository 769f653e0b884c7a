//! Things that have been in a state for too long.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::state::{
    EmergencyState, JobState, MaintenanceState, MoveState, OperationState, ReplacementState,
    RequestState, SolveState, State, UnfinishedState,
};
use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::PgRow;

pub(crate) mod sql {
    crate::statements! {
        STUCK = "SELECT o.machine, o.subject, o.state, o.state_at FROM watched_states o \
            JOIN unnest($1::text[], $2::text[], $3::float8[]) AS w (machine, state, longest) \
                USING (machine, state) \
            WHERE o.state_at < clock_timestamp() - make_interval(secs => w.longest) \
            ORDER BY o.state_at, o.machine, o.subject";
    }
}

/// A thing that has been in its state for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The table of its states.
    pub machine: String,
    /// The name of the server, or an id.
    pub subject: String,
    /// Its state.
    pub state: String,
    /// The time when the state began.
    pub since: DateTime<Utc>,
}

/// The longest stays of all machines: machine, state, seconds.
pub(crate) fn stays() -> (Vec<&'static str>, Vec<&'static str>, Vec<f64>) {
    fn of<S: State>(rows: &mut Vec<(&'static str, &'static str, f64)>) {
        for state in S::ALL {
            if let Some(longest) = state.longest_stay() {
                rows.push((S::MACHINE, state.as_str(), longest.as_secs_f64()));
            }
        }
    }
    let mut rows = Vec::new();
    of::<MoveState>(&mut rows);
    of::<SolveState>(&mut rows);
    of::<JobState>(&mut rows);
    of::<ReplacementState>(&mut rows);
    of::<MaintenanceState>(&mut rows);
    of::<EmergencyState>(&mut rows);
    of::<UnfinishedState>(&mut rows);
    of::<RequestState>(&mut rows);
    of::<OperationState>(&mut rows);
    let machines = rows.iter().map(|row| row.0).collect();
    (machines, rows.iter().map(|row| row.1).collect(), rows.iter().map(|row| row.2).collect())
}

impl Broker {
    /// Everything that has exceeded the longest stay of its state, longest first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn stuck(&self) -> Result<Vec<Stuck>, DbError> {
        let (machines, states, longest) = stays();
        let stuck = |row: PgRow| {
            Ok(Stuck {
                machine: row.try_get(0)?,
                subject: row.try_get(1)?,
                state: row.try_get(2)?,
                since: row.try_get(3)?,
            })
        };
        let rows = sqlx::query(sql::STUCK).bind(machines).bind(states).bind(longest);
        rows.try_map(stuck).fetch_all(&self.pool).await.doing("looking for what is stuck")
    }
}
