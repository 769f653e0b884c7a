//! Things that have been in a state for too long.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::state::{
    EmergencyState, JobState, MaintenanceState, MoveState, OperationState, ReplacementState,
    RequestState, SolveState, State, UnfinishedState,
};
use crate::infra::words;
use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::time::Duration;

pub(crate) mod sql {
    crate::statements! {
        STUCK = "SELECT o.machine, o.subject, o.state, o.state_at FROM watched_states o \
            JOIN unnest($1::text[], $2::text[], $3::float8[]) AS w (machine, state, longest) \
                USING (machine, state) \
            WHERE o.state_at < clock_timestamp() - make_interval(secs => w.longest) \
            ORDER BY o.state_at, o.machine, o.subject";
    }
}

/// A table of things that may be stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the name of a table")]
pub enum Machine {
    Moves,
    Solves,
    Jobs,
    Replacements,
    Maintenance,
    Emergencies,
    Unfinished,
    CapacityRequests,
    Operations,
}

impl Machine {
    /// Every table.
    pub const ALL: [Machine; 9] = [
        Machine::Moves,
        Machine::Solves,
        Machine::Jobs,
        Machine::Replacements,
        Machine::Maintenance,
        Machine::Emergencies,
        Machine::Unfinished,
        Machine::CapacityRequests,
        Machine::Operations,
    ];

    /// The table's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Machine::Moves => MoveState::MACHINE,
            Machine::Solves => SolveState::MACHINE,
            Machine::Jobs => JobState::MACHINE,
            Machine::Replacements => ReplacementState::MACHINE,
            Machine::Maintenance => MaintenanceState::MACHINE,
            Machine::Emergencies => EmergencyState::MACHINE,
            Machine::Unfinished => UnfinishedState::MACHINE,
            Machine::CapacityRequests => RequestState::MACHINE,
            Machine::Operations => OperationState::MACHINE,
        }
    }

    /// The words of its states, with the longest stay in each.
    fn states(self) -> Vec<(&'static str, Option<Duration>)> {
        fn of<S: State>() -> Vec<(&'static str, Option<Duration>)> {
            S::ALL.iter().map(|state| (state.as_str(), state.longest_stay())).collect()
        }
        match self {
            Machine::Moves => of::<MoveState>(),
            Machine::Solves => of::<SolveState>(),
            Machine::Jobs => of::<JobState>(),
            Machine::Replacements => of::<ReplacementState>(),
            Machine::Maintenance => of::<MaintenanceState>(),
            Machine::Emergencies => of::<EmergencyState>(),
            Machine::Unfinished => of::<UnfinishedState>(),
            Machine::CapacityRequests => of::<RequestState>(),
            Machine::Operations => of::<OperationState>(),
        }
    }

    pub(crate) fn read(word: &str) -> Result<Machine, sqlx::Error> {
        words::read("watched_states.machine", Machine::ALL, Machine::as_str, word)
    }

    /// The word of one of its states.
    pub(crate) fn state(self, word: &str) -> Result<&'static str, sqlx::Error> {
        let known = self.states().into_iter().map(|(state, _)| state);
        words::read(&format!("{}.state", self.as_str()), known, |state| state, word)
    }
}

/// A thing that has been in its state for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The table of its states.
    pub machine: Machine,
    /// The name of the server, or an id.
    pub subject: String,
    /// The word of its state.
    pub state: &'static str,
    /// The time when the state began.
    pub since: DateTime<Utc>,
}

/// The longest stays of all machines: machine, state, seconds.
pub(crate) fn stays() -> (Vec<&'static str>, Vec<&'static str>, Vec<f64>) {
    let mut rows = Vec::new();
    for machine in Machine::ALL {
        for (state, longest) in machine.states() {
            rows.extend(longest.map(|stay| (machine.as_str(), state, stay.as_secs_f64())));
        }
    }
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
            let machine = Machine::read(row.try_get(0)?)?;
            let state = machine.state(row.try_get(2)?)?;
            Ok(Stuck { machine, subject: row.try_get(1)?, state, since: row.try_get(3)? })
        };
        let rows = sqlx::query(sql::STUCK).bind(machines).bind(states).bind(longest);
        rows.try_map(stuck).fetch_all(&self.pool).await.doing("looking for what is stuck")
    }
}

#[cfg(test)]
mod tests {
    use super::Machine;

    #[test]
    fn unknown_machine_and_state_are_errors() {
        assert_eq!(Machine::read("moves").expect("known"), Machine::Moves);
        assert_eq!(Machine::Moves.state("pending").expect("known"), "pending");
        let error = Machine::read("whims").expect_err("unknown").to_string();
        assert!(error.contains("watched_states.machine has the word \"whims\""), "{error}");
        let error = Machine::Moves.state("lost").expect_err("unknown").to_string();
        assert!(error.contains("moves.state has the word \"lost\""), "{error}");
    }
}
