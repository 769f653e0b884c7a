//! `GET /v1/reservations/{name}/changes`: server-sent events for allocators.
//!
//! | event | data | what to do |
//! |---|---|---|
//! | `server` | a server, as in the list | store it, replacing its previous state |
//! | `gone` | `{"server": ...}` | delete it, if stored |
//! | `reset` | `{"seq": ...}` | list the servers again, and continue reading |
//!
//! Events carry current states, not the history, so a slow reader gets fewer events and never wrong ones. The id
//! of the last event of a poll is where to resume. A poll without changes sends only an id, which dispatches no
//! event.

use super::scope::visible_reservation;
use super::servers;
use crate::http::auth::Caller;
use crate::http::query::StrictQuery;
use crate::http::timeout::ANSWER_WITHIN;
use crate::http::{Problem, Site};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use broker::{Broker, ReservationError, Seq, ServerChange, WatchUpdate, Watcher};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};
use utoipa::IntoParams;

/// Interval of comments on an idle connection, so that no proxy closes it.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Pause between two polls: changes in between are polled together.
const POLL_PAUSE: Duration = Duration::from_millis(250);

/// Delay of the next poll if this one could not process all changes by the clock.
const POLL_AGAIN: Duration = Duration::from_secs(1);

/// Pause after Postgres has failed to answer.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Timeout of a poll: of a large reservation, on a slow Postgres.
const POLL_WITHIN: Duration = Duration::from_secs(30);

/// Events queued for a slow reader, beside those of one poll.
const WAITING_MAX: usize = 64;

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangesQuery {
    /// Audit-trail entry after which to begin: `seq` of the first page of the list.
    #[param(value_type = Option<u64>)]
    from: Option<String>,
}

/// Where to begin. A reader that reconnects sends a header and the same path, so the header wins.
fn begin(from: Option<&str>, headers: &HeaderMap) -> Result<Seq, Problem> {
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let from = resumed.filter(|id| !id.is_empty()).or(from);
    let number = from.and_then(|from| from.trim().parse::<i64>().ok()).filter(|seq| *seq >= 0);
    number.map(Seq).ok_or_else(|| {
        let detail = "missing or invalid start: set ?from= to the `seq` of the first page of the list, \
                      or the header Last-Event-ID";
        Problem::bad_request("malformed", detail)
    })
}

/// A reservation's servers as server-sent events
///
/// Events `server` (store it, replacing its previous state), `gone` (delete it) and `reset` (list the servers again,
/// and continue reading). The id of the last event is where to resume.
#[utoipa::path(get, path = "/reservations/{name}/changes", operation_id = "follow_servers",
    params(
        ("name" = String, Path, description = "the reservation"),
        ("last-event-id" = Option<u64>, Header, description = "where to resume; takes precedence over `from`"),
        ChangesQuery,
    ),
    responses((status = 200, description = "events, until the reader disconnects", body = Object,
        content_type = "text/event-stream")))]
pub(super) async fn follow(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    StrictQuery(ChangesQuery { from }): StrictQuery<ChangesQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.reads()?;
    let name = visible_reservation(&site, &caller, name).await?;
    let from = begin(from.as_deref(), &headers)?;
    let (changes, permit) = site.notifier.follow().ok_or_else(|| {
        Problem::unavailable("too_many_readers", "too many readers follow reservations")
    })?;
    let (mut watcher, permits) = (Watcher::new(&name, from), site.notifier.read_permits());
    // The first poll fails if the reservation does not exist.
    let first = timeout(ANSWER_WITHIN, poll(&permits, &site.broker, &mut watcher)).await;
    let late = || Problem::unavailable("postgres_unavailable", "Postgres does not answer in time");
    let first = first.ok().flatten().ok_or_else(late)??;
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    // In a task of its own, so that a stalled reader blocks its events but no transaction.
    let reader = Reader { broker: site.broker, watcher, sent: from, sender, changes, permits };
    tokio::spawn(run(reader, first, caller, permit));
    let events = futures_util::stream::unfold(receiver, async |mut receiver| {
        let event = receiver.recv().await?;
        Some((Ok::<Event, Infallible>(event), receiver))
    });
    let heartbeat = KeepAlive::new().interval(HEARTBEAT);
    Ok(Sse::new(events).keep_alive(heartbeat).into_response())
}

/// A connected reader.
struct Reader {
    broker: Broker,
    watcher: Watcher,
    /// Last id sent.
    sent: Seq,
    sender: mpsc::Sender<Event>,
    changes: watch::Receiver<u64>,
    permits: Arc<Semaphore>,
}

/// Polls when a permit is free; `None`: timed out. A silent Postgres connection is given up, so that it does not
/// block the readers that wait for a permit.
async fn poll(
    permits: &Semaphore,
    broker: &Broker,
    watcher: &mut Watcher,
) -> Option<Result<WatchUpdate, ReservationError>> {
    // The semaphore is never closed.
    let _permit = permits.acquire().await;
    timeout(POLL_WITHIN, broker.poll_changes(watcher)).await.ok()
}

/// The reader has disconnected.
struct Disconnected;

async fn run(
    mut reader: Reader,
    first: WatchUpdate,
    caller: Caller,
    _permit: OwnedSemaphorePermit,
) {
    let sender = reader.sender.clone();
    tokio::select! {
        () = sender.closed() => {}
        () = caller.until_over() => {}
        _ = reader.follow(first) => {}
    }
}

impl Reader {
    /// Sends changes until the reader disconnects.
    async fn follow(&mut self, mut update: WatchUpdate) -> Result<Infallible, Disconnected> {
        loop {
            let (more, again) = (update.more, update.again);
            self.send(update).await?;
            if !more {
                let changed = self.changes.changed();
                let changed =
                    if again { timeout(POLL_AGAIN, changed).await } else { Ok(changed.await) };
                changed.unwrap_or(Ok(())).map_err(|_| Disconnected)?;
                sleep(POLL_PAUSE).await;
            }
            update = self.poll().await?;
        }
    }

    /// Polls until Postgres answers.
    async fn poll(&mut self) -> Result<WatchUpdate, Disconnected> {
        loop {
            // Before the poll, so that changes during it cause another poll.
            self.changes.mark_unchanged();
            match poll(&self.permits, &self.broker, &mut self.watcher).await {
                Some(Ok(update)) => return Ok(update),
                None => tracing::debug!("a reader waits for Postgres"),
                Some(Err(ReservationError::Unknown { .. })) => {
                    // The list then reports that the reservation is gone.
                    self.send_event(event("reset", &json!({}))).await?;
                    return Err(Disconnected);
                }
                Some(Err(ReservationError::Db(error))) if error.is_passing() => {
                    tracing::debug!(%error, "a reader waits for Postgres");
                    sleep(RETRY_PAUSE).await;
                }
                Some(Err(ReservationError::Db(error))) => {
                    tracing::error!(%error, "reader cannot continue");
                    return Err(Disconnected);
                }
            }
        }
    }

    async fn send(&mut self, update: WatchUpdate) -> Result<(), Disconnected> {
        let id = update.seq.to_string();
        let mut left = update.changes.len() + usize::from(update.reset);
        if left == 0 && update.seq != self.sent {
            self.send_event(Event::default().id(&id)).await?;
        }
        // Only the last event has the id: a reader cut off before it resumes before this poll.
        let mut with_id = |event: Event| {
            left -= 1;
            if left == 0 { event.id(&id) } else { event }
        };
        if update.reset {
            self.send_event(with_id(event("reset", &json!({ "seq": update.seq })))).await?;
        }
        for change in update.changes {
            let event = match change {
                ServerChange::Server(row) => event("server", &servers::server(row)),
                ServerChange::Gone(server) => event("gone", &json!({ "server": server })),
            };
            self.send_event(with_id(event)).await?;
        }
        self.sent = update.seq;
        Ok(())
    }

    async fn send_event(&self, event: Event) -> Result<(), Disconnected> {
        self.sender.send(event).await.map_err(|_| Disconnected)
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).expect("names and numbers can be written as JSON");
    Event::default().event(name).data(data)
}
