//! How many servers may begin to move before the next solve.

use super::{ContractPace, Limits, Pacing, Scope};
use crate::id::Name;
use crate::move_budget::BudgetCause;
use crate::pace::MoveKind;
use crate::parts::MoveBudgetRow;
use crate::parts::ServerRow;
use chrono::TimeDelta;
use std::collections::BTreeMap;

type Key = (Scope, bool);

impl Pacing {
    /// What limits and contracts leave until a time after now, for each scope where that is less than all
    /// of its servers. Moves that are open take their part first.
    pub fn budgets(
        &self,
        region: &Name,
        servers: &[ServerRow],
        horizon: TimeDelta,
    ) -> Vec<MoveBudgetRow> {
        let mut there: BTreeMap<Key, u64> = BTreeMap::new();
        for row in servers {
            let holder = match row.target_pending {
                true => &row.target_reservation,
                false => &row.current_reservation,
            };
            let kind = MoveKind {
                rack: row.rack.clone(),
                msb: row.msb.clone(),
                source: holder.clone(),
                in_use: row.in_use,
            };
            for scope in kind.scopes() {
                *there.entry((scope, row.in_use)).or_default() += 1;
            }
        }
        let (mut open, mut begun): (BTreeMap<Key, u64>, BTreeMap<Key, u64>) = Default::default();
        for of in &self.open {
            for scope in of.kind.scopes() {
                *open.entry((scope, of.kind.in_use)).or_default() += of.count;
            }
        }
        for (kind, count) in &self.begun {
            for scope in kind.scopes() {
                *begun.entry((scope, kind.in_use)).or_default() += count;
            }
        }
        let mut rows = Vec::new();
        for (key, &all) in &there {
            let (scope, in_use) = key;
            let opened = open.get(key).copied().unwrap_or(0);
            let ended = begun.get(key).copied().unwrap_or(0);
            let limit = self
                .limits
                .as_ref()
                .and_then(|limits| self.by_limits(limits, scope, *in_use, ended, horizon));
            let by_limit = limit.map(|most| (most.saturating_sub(opened), BudgetCause::Limit));
            let by_contract = match scope {
                Scope::Reservation(name) if *in_use => self
                    .contracts
                    .iter()
                    .find(|contract| contract.reservation == *name)
                    .map(|contract| self.by_contract(contract, opened, horizon)),
                _ => None,
            };
            let least = by_limit.into_iter().chain(by_contract).min_by_key(|(moves, _)| *moves);
            let Some((moves, because)) = least.filter(|(moves, _)| *moves < all) else { continue };
            let (word, scope_id) = match scope {
                Scope::Region => ("region", region.clone()),
                Scope::Msb(name) => ("msb", name.clone().into()),
                Scope::Rack(name) => ("rack", name.clone().into()),
                Scope::Reservation(name) => ("reservation", name.clone().into()),
            };
            rows.push(MoveBudgetRow {
                scope: word.into(),
                scope_id,
                in_use: Some(*in_use),
                moves: i64::try_from(moves).unwrap_or(i64::MAX),
                because: because.as_str().into(),
            });
        }
        rows
    }

    /// How many moves of a scope its limits let begin until the horizon, done ones counted against the
    /// window; `None`: as many as you like.
    fn by_limits(
        &self,
        limits: &Limits,
        scope: &Scope,
        in_use: bool,
        ended: u64,
        horizon: TimeDelta,
    ) -> Option<u64> {
        let caps = limits.caps(scope, in_use);
        let times = |seconds: u32| {
            let times = horizon.num_seconds() / i64::from(seconds.max(1));
            u64::try_from(times).unwrap_or(0).max(1)
        };
        let at_once = caps.at_once.map(|most| u64::from(most) * times(self.seconds(in_use)));
        let window = caps
            .per_window
            .map(|most| (u64::from(most) * times(limits.window_seconds)).saturating_sub(ended));
        at_once.into_iter().chain(window).min()
    }

    fn by_contract(
        &self,
        contract: &ContractPace,
        opened: u64,
        horizon: TimeDelta,
    ) -> (u64, BudgetCause) {
        if contract.is_never() {
            return (0, BudgetCause::Never);
        }
        let until = self.now + horizon;
        if contract.is_quiet_throughout(self.now, until) {
            return (0, BudgetCause::QuietTime);
        }
        let still_counts = |left: &&chrono::DateTime<chrono::Utc>| **left > until - contract.window;
        let used = contract.left.iter().filter(still_counts).count() as u64;
        (contract.allowed.saturating_sub(used + opened), BudgetCause::Contract)
    }
}
