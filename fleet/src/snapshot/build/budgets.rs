//! The rows of `move_budgets.parquet`.

use super::super::check::broken;
use super::Builder;
use crate::error::{Rule, SnapshotError, Table};
use crate::id::ServerIx;
use crate::move_budget::{BudgetCause, BudgetScope, HORIZON_MINUTES_MAX, MoveBudget};
use crate::parts::MoveBudgetRow;
use crate::parts::SnapshotParts;
use crate::server::Server;
use std::collections::BTreeSet;

/// Checks the rows and gives the budgets, ordered by scope.
pub(super) fn check(
    builder: &Builder,
    parts: &SnapshotParts,
    servers: &[Server],
) -> Result<Vec<MoveBudget>, SnapshotError> {
    let minutes = parts.ahead.horizon_minutes;
    if minutes > HORIZON_MINUTES_MAX {
        let (column, expected) = ("horizon_minutes", "at most 44640 (31 days)");
        let rule = Rule::Number { column, value: f64::from(minutes), expected };
        return Err(broken(Table::Region, parts.region.as_ref(), rule));
    }
    let mut seen = BTreeSet::new();
    let mut budgets = Vec::with_capacity(parts.ahead.budgets.len());
    for row in &parts.ahead.budgets {
        let budget = budget(builder, parts, servers, row)?;
        if !seen.insert((budget.scope, budget.in_use)) {
            return Err(broken(Table::MoveBudgets, label(row), Rule::Duplicate));
        }
        budgets.push(budget);
    }
    budgets.sort_by_key(|of| (of.scope, of.in_use));
    Ok(budgets)
}

fn label(row: &MoveBudgetRow) -> String {
    let use_of = match row.in_use {
        None => "",
        Some(true) => "/in use",
        Some(false) => "/idle",
    };
    format!("{} {}{use_of}", row.scope, row.scope_id)
}

fn budget(
    builder: &Builder,
    parts: &SnapshotParts,
    servers: &[Server],
    row: &MoveBudgetRow,
) -> Result<MoveBudget, SnapshotError> {
    let fail = |rule| broken(Table::MoveBudgets, label(row), rule);
    let id = &row.scope_id;
    let scope = match row.scope.as_ref() {
        "region" => (*id == parts.region).then_some(BudgetScope::Region),
        "msb" => builder.msb_ix.get(&**id).map(|ix| BudgetScope::Msb(*ix)),
        "rack" => builder.rack_ix.get(&**id).map(|ix| BudgetScope::Rack(*ix)),
        "reservation" => builder.reservation_ix.get(&**id).map(|ix| BudgetScope::Reservation(*ix)),
        "server" => {
            let found = servers.binary_search_by(|server| (*server.id).cmp(id)).ok();
            found.map(|at| BudgetScope::Server(ServerIx::new(at)))
        }
        other => {
            let (value, expected) = (other.to_owned(), "region, msb, rack, reservation, server");
            return Err(fail(Rule::Word { column: "scope", value, expected }));
        }
    };
    let scope = scope.ok_or_else(|| {
        let table = match row.scope.as_ref() {
            "region" => Table::Region,
            "reservation" => Table::Reservations,
            _ => Table::Servers,
        };
        fail(Rule::Unknown { column: "scope_id", name: id.to_string(), table })
    })?;
    let moves = u64::try_from(row.moves).map_err(|_| {
        let (value, expected) = (row.moves as f64, "at least 0");
        fail(Rule::Number { column: "moves", value, expected })
    })?;
    let because = BudgetCause::parse(&row.because).ok_or_else(|| {
        let (value, expected) =
            (row.because.to_string(), "limit, contract, quiet_time, cordon, never");
        fail(Rule::Word { column: "because", value, expected })
    })?;
    Ok(MoveBudget { scope, in_use: row.in_use, moves, because })
}
