//! `GET /v1/reservations/{name}/changes`: server-sent events for allocators.
//!
//! | event | data | what to do |
//! |---|---|---|
//! | `server` | as in the list | put it in place of what was known of it |
//! | `gone` | `{"server": ...}` | forget it, if it was known |
//! | `reset` | `{"seq": ...}` | list anew, and go on reading |
//!
//! States are what is so now, whatever happened in between, so a reader that is slow is told less
//! and never wrongly. The id of the last event of a look is where to resume; looks that bring
//! nothing send an id alone, which dispatches no event.

use super::reservation;
use super::servers::ServerOfReservation;
use crate::ANSWER_WITHIN;
use crate::api::Site;
use crate::api::asked::Asked;
use crate::api::authority::Caller;
use crate::api::problem::Problem;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use broker::{Broker, Follower, Look, ReservationError, Seq, ServerChange};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};
use utoipa::IntoParams;

/// How often a comment is sent where nothing else is, so that nobody between cuts the connection.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long to wait from one look to the next: what comes meanwhile is looked at together.
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// When to look again, where the clock was left for later.
const AGAIN: Duration = Duration::from_secs(1);

/// How long to wait for a Postgres that does not answer.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// How long a look may take: of a large reservation, at a slow Postgres.
const LOOK_WITHIN: Duration = Duration::from_secs(30);

/// Events that wait for a slow reader, beside those of one look.
const WAITING_MAX: usize = 64;

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangesAsked {
    /// The entry of the audit trail to begin after: `seq` of the first page of the list.
    #[param(value_type = Option<u64>)]
    from: Option<String>,
}

/// Where to begin: a reader that connects again says it in a header and leaves its path as it was.
fn begin(from: Option<&str>, headers: &HeaderMap) -> Result<Seq, Problem> {
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let said = resumed.filter(|id| !id.is_empty()).or(from);
    let number = said.and_then(|said| said.trim().parse::<i64>().ok()).filter(|seq| *seq >= 0);
    number.map(Seq).ok_or_else(|| {
        let detail = "say after which entry to begin: ?from= the `seq` of the first page of the list, \
                      or the header Last-Event-ID";
        Problem::bad_request("malformed", detail)
    })
}

/// A reservation's servers as server-sent events
///
/// Events `server` (put it in place of what was known of it), `gone` (forget it) and `reset` (list
/// anew, and go on reading). The id of the last event is where to resume.
#[utoipa::path(get, path = "/reservations/{name}/changes", operation_id = "follow_servers",
    params(
        ("name" = String, Path, description = "the reservation"),
        ("last-event-id" = Option<u64>, Header, description = "where to resume, before `from`"),
        ChangesAsked,
    ),
    responses((status = 200, description = "events, until the reader goes", body = String,
        content_type = "text/event-stream")))]
pub(super) async fn follow(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    Asked(ChangesAsked { from }): Asked<ChangesAsked>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.reads()?;
    let name = reservation(&site, &caller, name).await?;
    let from = begin(from.as_deref(), &headers)?;
    let (bell, place) = site.bell.listen().ok_or_else(|| {
        Problem::unavailable("too_many_readers", "as many follow reservations as may at once")
    })?;
    let (mut follower, looks) = (Follower::new(&name, from), site.bell.looks());
    // The first look now: it says whether there is such a reservation.
    let look = timeout(ANSWER_WITHIN, look(&looks, &site.broker, &mut follower)).await;
    let late = || Problem::unavailable("postgres_unavailable", "Postgres does not answer in time");
    let look = look.ok().flatten().ok_or_else(late)??;
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    // In a task of its own, so that whoever does not read on holds up events and no transaction.
    let reader = Reader { broker: site.broker, follower, sent: from, sender, bell, looks };
    tokio::spawn(run(reader, look, caller, place));
    let events = futures_util::stream::unfold(receiver, async |mut receiver| {
        let event = receiver.recv().await?;
        Some((Ok::<Event, Infallible>(event), receiver))
    });
    let heartbeat = KeepAlive::new().interval(HEARTBEAT);
    Ok(Sse::new(events).keep_alive(heartbeat).into_response())
}

/// Somebody who follows.
struct Reader {
    broker: Broker,
    follower: Follower,
    /// The last id that was sent.
    sent: Seq,
    sender: mpsc::Sender<Event>,
    bell: watch::Receiver<u64>,
    looks: Arc<Semaphore>,
}

/// Looks, when it is this reader's turn; `None`: it takes too long. A connection that has fallen
/// silent is given up, and with it the turn of those who wait behind.
async fn look(
    turns: &Semaphore,
    broker: &Broker,
    follower: &mut Follower,
) -> Option<Result<Look, ReservationError>> {
    // Never closed; without a turn nothing is worse than slow.
    let _turn = turns.acquire().await;
    timeout(LOOK_WITHIN, broker.look(follower)).await.ok()
}

/// The reader has gone.
struct Gone;

async fn run(mut reader: Reader, first: Look, caller: Caller, _place: OwnedSemaphorePermit) {
    let sender = reader.sender.clone();
    tokio::select! {
        () = sender.closed() => {}
        () = caller.until_over() => {}
        _ = reader.read_on(first) => {}
    }
}

impl Reader {
    async fn read_on(&mut self, mut look: Look) -> Result<Infallible, Gone> {
        loop {
            let (more, again) = (look.more, look.again);
            self.send(look).await?;
            if !more {
                let rung = self.bell.changed();
                let rung = if again { timeout(AGAIN, rung).await } else { Ok(rung.await) };
                rung.unwrap_or(Ok(())).map_err(|_| Gone)?;
                sleep(LOOK_PAUSE).await;
            }
            look = self.look().await?;
        }
    }

    async fn look(&mut self) -> Result<Look, Gone> {
        loop {
            // Before the look: what rings while it is under way is looked at again.
            self.bell.mark_unchanged();
            match look(&self.looks, &self.broker, &mut self.follower).await {
                Some(Ok(look)) => return Ok(look),
                None => tracing::debug!("a reader waits for Postgres"),
                Some(Err(ReservationError::Unknown { .. })) => {
                    // Whoever lists anew is told so.
                    self.say(event("reset", &json!({}))).await?;
                    return Err(Gone);
                }
                Some(Err(ReservationError::Db(error))) if error.is_passing() => {
                    tracing::debug!(%error, "a reader waits for Postgres");
                    sleep(RETRY_PAUSE).await;
                }
                Some(Err(ReservationError::Db(error))) => {
                    tracing::error!(%error, "a reader cannot read on");
                    return Err(Gone);
                }
            }
        }
    }

    async fn send(&mut self, look: Look) -> Result<(), Gone> {
        let id = look.seq.to_string();
        let mut left = look.changes.len() + usize::from(look.reset);
        if left == 0 && look.seq != self.sent {
            self.say(Event::default().id(&id)).await?;
        }
        // Whoever is cut off before the last of them begins with this look again.
        let mut with_id = |event: Event| {
            left -= 1;
            if left == 0 { event.id(&id) } else { event }
        };
        if look.reset {
            self.say(with_id(event("reset", &json!({ "seq": look.seq })))).await?;
        }
        for change in look.changes {
            let event = match change {
                ServerChange::Server(row) => event("server", &ServerOfReservation::from(row)),
                ServerChange::Gone(server) => event("gone", &json!({ "server": server })),
            };
            self.say(with_id(event)).await?;
        }
        self.sent = look.seq;
        Ok(())
    }

    async fn say(&self, event: Event) -> Result<(), Gone> {
        self.sender.send(event).await.map_err(|_| Gone)
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).expect("names and numbers can be written as JSON");
    Event::default().event(name).data(data)
}
