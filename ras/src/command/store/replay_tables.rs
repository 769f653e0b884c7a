//! `ras ops replay --tables`: the effect of other settings by day and by reservation.

use crate::service::replay::Replayed;
use anyhow::Result;
use serde_json::Value;

/// The measures compared between recorded and replayed solves.
pub(super) struct Tables {
    /// As text: reservations with the largest change in missing RRU come first.
    pub(super) text: String,
    /// By day.
    pub(super) days: Value,
    /// By reservation, all of them.
    pub(super) reservations: Value,
}

/// Fails: built without this feature.
pub(super) fn check(wanted: bool) -> Result<()> {
    anyhow::ensure!(
        !wanted || cfg!(feature = "summaries"),
        "--tables: built without the feature `summaries`"
    );
    Ok(())
}

#[cfg(not(feature = "summaries"))]
pub(super) fn of(_: &[Replayed]) -> Result<Tables> {
    check(true).map(|()| Tables {
        text: String::new(),
        days: Value::Null,
        reservations: Value::Null,
    })
}

#[cfg(feature = "summaries")]
pub(super) use with::of;

#[cfg(feature = "summaries")]
mod with {
    use super::{Replayed, Result, Tables, Value};
    use crate::layout::Table;
    use crate::number::count;
    use crate::service::replay::Left;
    use chrono::NaiveDate;
    use datasets::backtest::{Compared, Outcome, by_day, by_reservation};
    use fleet::ReservationName;
    use serde_json::json;
    use std::cmp::Reverse;

    /// Reservations in the text table; JSON has all.
    const ROWS: usize = 40;

    pub(in crate::command) fn of(rows: &[Replayed]) -> Result<Tables> {
        let mut sides = [Vec::new(), Vec::new()];
        for (solve, row) in (0_u32..).zip(rows) {
            let Some(at) = row.at else { continue };
            for (side, left) in sides.iter_mut().zip(&row.left) {
                for Left { reservation, servers, missing_servers } in left {
                    side.push(Outcome {
                        solve,
                        day: at.date_naive(),
                        reservation: reservation.clone(),
                        servers: *servers,
                        missing: *missing_servers,
                    });
                }
            }
        }
        let [recorded, replayed] = sides;
        let days = by_day(&recorded, &replayed)?;
        let reservations = by_reservation(&recorded, &replayed)?;
        let line = |key: &str, of: Value, compared: &Compared| {
            let side = |side: usize| {
                json!({ "short": compared.short[side], "missing_servers": compared.missing[side],
                    "servers": compared.servers[side] })
            };
            json!({ key: of, "compared": compared.compared, "recorded": side(0), "replayed": side(1) })
        };
        Ok(Tables {
            text: text(&days, &reservations),
            days: days.iter().map(|(day, of)| line("day", json!(day), of)).collect(),
            reservations: (reservations.iter())
                .map(|(name, of)| line("reservation", json!(name), of))
                .collect(),
        })
    }

    fn text(
        days: &[(NaiveDate, Compared)],
        reservations: &[(ReservationName, Compared)],
    ) -> String {
        let header = |key| {
            let titles = [
                "compared",
                "short",
                "replayed",
                "servers missing",
                "replayed",
                "servers held",
                "replayed",
            ];
            Table::new(&[&[key][..], &titles].concat(), 1..8)
        };
        let cells = |of: &Compared| {
            let servers = of.servers.map(|servers| format!("{servers:.1}"));
            [
                vec![count(of.compared)],
                of.short.map(count).into(),
                of.missing.map(count).into(),
                servers.into(),
            ]
            .concat()
        };
        let mut by_day = header("day");
        for (day, of) in days {
            by_day.add_row(std::iter::once(day.to_string()).chain(cells(of)));
        }
        let mut by_change: Vec<_> = reservations.iter().collect();
        by_change.sort_by_key(|(name, of)| (Reverse(of.missing[1].abs_diff(of.missing[0])), name));
        let mut by_reservation = header("reservation");
        for (name, of) in by_change.iter().take(ROWS) {
            by_reservation.add_row(std::iter::once(name.to_string()).chain(cells(of)));
        }
        let more = by_change.len().saturating_sub(ROWS);
        let more = if more > 0 { format!("\nand {} more", count(more)) } else { String::new() };
        format!("\n\n{by_day}\n\n{by_reservation}{more}")
    }
}
