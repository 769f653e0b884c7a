//! `GET /v1/changes`: the reservations of an owner as server-sent events.
//!
//! | event | data | what to do |
//! |---|---|---|
//! | `reservation` | a reservation, as in the list | store it, replacing its previous state |
//! | `gone` | `{"reservation": ...}` | delete it |
//! | `current` | `{"seq": ...}` | all reservations were sent: what was stored before and not sent is gone |
//!
//! Every connection begins with all reservations and `current`, so a reader that reconnects needs no position.
//! Events carry current states, so a slow reader gets fewer events and never wrong ones.

use super::reservation_view;
use super::scope::visible_owner;
use crate::http::auth::Caller;
use crate::http::query::{self, StrictQuery};
use crate::http::timeout::ANSWER_WITHIN;
use crate::http::{Problem, Site};
use api_types::reservations::Reservation;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use broker::{DbError, SummaryFilter};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use utoipa::IntoParams;

/// Interval of comments on an idle connection, so that no proxy closes it.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Pause between two reads: changes in between are read together.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// Timeout of a read.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// Events queued for a slow reader.
const WAITING_MAX: usize = 64;

/// Reservations of one statement.
const PAGE: u32 = 1_000;

/// Whose reservations.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OwnerChangesQuery {
    /// The owner; by default that of the token, or all owners if the token is for the whole region.
    owner: Option<String>,
}

/// The reservations of an owner as server-sent events
///
/// Begins with every reservation (event `reservation`, as in the list) and `current`; then come those that change, and
/// `gone` for those that are removed. After a reconnection it begins again.
#[utoipa::path(get, path = "/changes", operation_id = "follow_reservations",
    params(OwnerChangesQuery),
    responses((status = 200, description = "events, until the reader disconnects", body = Object,
        content_type = "text/event-stream")))]
pub(super) async fn follow(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(OwnerChangesQuery { owner }): StrictQuery<OwnerChangesQuery>,
) -> Result<Response, Problem> {
    caller.reads()?;
    query::storable(owner.iter())?;
    let filter =
        SummaryFilter { owner: visible_owner(&caller, owner)?, ..SummaryFilter::default() };
    let (mut changes, permit) = site.notifier.follow().ok_or_else(|| {
        Problem::unavailable("too_many_readers", "too many readers follow reservations")
    })?;
    changes.mark_unchanged();
    let late = || Problem::unavailable("postgres_unavailable", "Postgres does not answer in time");
    let first = timeout(ANSWER_WITHIN, read(&site, &filter)).await.map_err(|_| late())??;
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let mut reader = Reader { filter, sent: BTreeMap::new(), sender };
    // In a task of its own, so that a stalled reader blocks its events alone.
    tokio::spawn(async move {
        let sender = reader.sender.clone();
        let follow = async {
            reader.send(first).await?;
            let current = json!({ "seq": site.broker.last_seq().await.map_err(|_| Disconnected)? });
            reader.send_event(&event("current", &current)).await?;
            let mut region = site.region.subscribe();
            region.mark_unchanged();
            loop {
                // The standing of a reservation follows from the region, which is read after the change.
                tokio::select! {
                    changed = changes.changed() => changed.map_err(|_| Disconnected)?,
                    changed = region.changed() => changed.map_err(|_| Disconnected)?,
                }
                sleep(READ_PAUSE).await;
                changes.mark_unchanged();
                region.mark_unchanged();
                match timeout(READ_WITHIN, read(&site, &reader.filter)).await {
                    Ok(Ok(rows)) => reader.send(rows).await?,
                    // The next change is soon, and states are sent whole.
                    Ok(Err(error)) => tracing::debug!(%error, "a reader waits for Postgres"),
                    Err(_) => tracing::debug!("a reader waits for Postgres"),
                }
            }
        };
        let follow = async {
            let ended: Result<Infallible, Disconnected> = follow.await;
            ended
        };
        tokio::select! {
            () = sender.closed() => {}
            () = caller.until_over() => {}
            _ = follow => {}
        }
        drop(permit);
    });
    let events = futures_util::stream::unfold(receiver, async |mut receiver| {
        let event = receiver.recv().await?;
        Some((Ok::<Event, Infallible>(event), receiver))
    });
    let heartbeat = KeepAlive::new().interval(HEARTBEAT);
    Ok(Sse::new(events).keep_alive(heartbeat).into_response())
}

/// The reservations of a filter, by name.
async fn read(site: &Site, filter: &SummaryFilter) -> Result<Vec<Reservation>, DbError> {
    let permits = site.notifier.read_permits();
    // The semaphore is never closed.
    let _permit = permits.acquire().await;
    let held = site.region.latest();
    let (mut rows, mut after) = (Vec::new(), String::new());
    loop {
        let cards = site.broker.reservation_summaries(filter, &after, PAGE).await?;
        let more = cards.len() == PAGE as usize;
        for card in cards {
            after = card.reservation.to_string();
            let status = held.as_ref().and_then(|held| held.statuses.get(&card.reservation));
            rows.push(reservation_view::view(card, status));
        }
        if !more {
            return Ok(rows);
        }
    }
}

/// The reader has disconnected.
struct Disconnected;

/// A connected reader.
struct Reader {
    filter: SummaryFilter,
    /// What was sent last of each reservation.
    sent: BTreeMap<String, String>,
    sender: mpsc::Sender<Event>,
}

impl Reader {
    /// Sends what differs from what was sent last.
    async fn send(&mut self, rows: Vec<Reservation>) -> Result<(), Disconnected> {
        let mut before = std::mem::take(&mut self.sent);
        for row in rows {
            let text = text(&row);
            if before.remove(&row.reservation).as_ref() != Some(&text) {
                self.send_event(&Event::default().event("reservation").data(&text)).await?;
            }
            self.sent.insert(row.reservation, text);
        }
        for reservation in before.into_keys() {
            self.send_event(&event("gone", &json!({ "reservation": reservation }))).await?;
        }
        Ok(())
    }

    async fn send_event(&self, event: &Event) -> Result<(), Disconnected> {
        self.sender.send(event.clone()).await.map_err(|_| Disconnected)
    }
}

fn text(data: &impl Serialize) -> String {
    serde_json::to_string(data).expect("names and numbers can be written as JSON")
}

fn event(name: &str, data: &impl Serialize) -> Event {
    Event::default().event(name).data(text(data))
}
