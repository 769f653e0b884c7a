//! Output of commands on a living region.

use super::Stored;
use broker::{Emergency, Request, State};
use control::reservation_status::{state_of, statuses};
use fleet::{RegionSnapshot, ReservationKind};
use serde_json::Value;

/// Decision on a request: what is granted, or why not and what would be.
pub(super) fn decision(name: &str, request: &Request) -> String {
    let state = request.state.as_str();
    if let Some(granted) = request.granted {
        return format!("{name}: {state} {granted} RRU\n");
    }
    if let Some(in_use) = request.awaits_in_use {
        return format!("{name}: {state} of {in_use} servers in use of others\n");
    }
    let answer: Value = request.answer.as_ref().and_then(|of| of.read().ok()).unwrap_or_default();
    let mut text = format!("{name}: {state}");
    for reason in answer["reasons"].as_array().into_iter().flatten() {
        text.push_str(&format!(" {}", reason.as_str().unwrap_or("?")));
    }
    text.push('\n');
    if let Some(sentence) = answer["detail"].as_str() {
        text.push_str(&format!("because: {sentence}\n"));
    }
    for alternative in answer["alternatives"].as_array().into_iter().flatten() {
        text.push_str(&format!("instead: {}\n", alternative["sentence"].as_str().unwrap_or("?")));
    }
    text
}

/// Decision on an emergency.
pub(super) fn emergency(of: &Emergency) -> String {
    let name = &of.reservation;
    match (&of.granted, of.refusal) {
        (Some(grant), _) => format!(
            "emergency {name}: granted {} RRU, {} servers, {} of shared buffers\n",
            grant.amount, grant.servers, grant.from_shared
        ),
        (None, Some(refusal)) => format!("emergency {name}: refused: {}\n", refusal.text()),
        (None, None) => format!("emergency {name}: {}\n", of.state.as_str()),
    }
}

impl Stored {
    /// `show`: what each guaranteed reservation has and is promised.
    pub(super) async fn show(&self, now: &RegionSnapshot) -> Result<String, String> {
        let statuses = statuses(now, &fleet::audit::certificate(now));
        let guaranteed = |row: &&fleet::Reservation| row.kind == ReservationKind::Guaranteed;
        let rows = now.reservations.iter().filter(guaranteed).map(|row| {
            let status = statuses.get(&row.id);
            let state = state_of(row.capacity, None, status);
            let status = status.cloned().unwrap_or_default();
            let mut text = format!("{}: {} servers", row.id, status.owned.servers);
            for (part, word) in [
                (status.arriving, "arriving"),
                (status.leaving, "leaving"),
                (status.out_of_use, "out of use"),
            ] {
                if part.servers > 0 {
                    text.push_str(&format!(", {} {word}", part.servers));
                }
            }
            let (guaranteed, state) = (status.figures.guaranteed(), state.as_str());
            format!("{text}; guaranteed {guaranteed} of {}, {state}\n", row.capacity)
        });
        Ok(rows.collect())
    }
}
