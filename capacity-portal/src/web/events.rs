//! `GET /events`: server-sent events that say which parts of the region have changed. A page then reads itself
//! again, with its own rights; an event has no data of the region.
//!
//! | event | data | when |
//! |---|---|---|
//! | `hello` | `{"version": ...}` | first |
//! | `changed` | `{"version": ..., "changed": [...]}` | topics have changed |
//! | `alive` | `{"version": ...}` | nothing has changed for some seconds, and Postgres answers |

use crate::http::auth::{Caller, address};
use crate::http::followers::Follower;
use crate::http::{Problem, Site};
use axum::extract::{Request, State};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use control::{LiveVersion, Topic};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

/// Interval of events on a quiet connection.
const ALIVE_EVERY: Duration = Duration::from_secs(3);

/// Age of the last reading beyond which the region is unknown: Postgres does not answer.
const SILENT_AFTER: Duration = Duration::from_secs(6);

/// Events that wait for a slow page. With one more it is dropped: it connects again, and reads itself.
const WAITING_MAX: usize = 16;

/// Handler of `GET /events`.
pub(super) async fn follow(
    State(site): State<Site>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    caller.reads()?;
    let follower = site.page_followers.join(caller.limited_by(address(request.extensions())))?;
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    tokio::spawn(run(site.live.subscribe(), sender, caller, follower));
    let events = futures_util::stream::unfold(receiver, async |mut receiver| {
        let event = receiver.recv().await?;
        Some((Ok::<Event, Infallible>(event), receiver))
    });
    // Proxies would keep events back.
    Ok(([("x-accel-buffering", "no")], Sse::new(events)).into_response())
}

/// Sends events until the page is gone, its token is over, or it does not keep up.
async fn run(
    feed: watch::Receiver<LiveVersion>,
    sender: mpsc::Sender<Event>,
    caller: Caller,
    _counted: Follower,
) {
    tokio::select! {
        () = sender.closed() => {}
        () = caller.until_over() => {}
        () = send(feed, &sender) => {}
    }
}

/// Returns once the page does not keep up, or the server ends.
async fn send(mut feed: watch::Receiver<LiveVersion>, sender: &mpsc::Sender<Event>) {
    let mut sent = *feed.borrow_and_update();
    if sender.try_send(event("hello", &sent, None)).is_err() {
        return;
    }
    let mut alive = interval(ALIVE_EVERY);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    alive.reset();
    loop {
        let ended = tokio::select! {
            changed = feed.changed() => changed.is_err(),
            _ = alive.tick() => false,
        };
        if ended {
            return;
        }
        let now = *feed.borrow_and_update();
        let changed: Vec<&str> = now.changed_since(&sent).map(Topic::as_str).collect();
        let event = if !changed.is_empty() {
            event("changed", &now, Some(changed.into()))
        } else if now.age() < SILENT_AFTER {
            event("alive", &now, None)
        } else {
            continue;
        };
        if sender.try_send(event).is_err() {
            return;
        }
        sent = now;
    }
}

fn event(name: &str, version: &LiveVersion, changed: Option<Value>) -> Event {
    let mut data = json!({ "version": version.token() });
    if let Some(changed) = changed {
        data["changed"] = changed;
    }
    Event::default().event(name).data(data.to_string())
}

#[cfg(test)]
mod tests {
    use super::{WAITING_MAX, send};
    use control::{LiveVersion, Topic};
    use tokio::sync::{mpsc, watch};
    use tokio::task::yield_now;

    #[tokio::test]
    async fn page_that_does_not_read_is_dropped() {
        let (feed, versions) = watch::channel(LiveVersion::new(1));
        let (sender, mut events) = mpsc::channel(WAITING_MAX);
        let sending = tokio::spawn(async move { send(versions, &sender).await });
        // One that reads is kept, however many events it gets.
        for _ in 0..3 * WAITING_MAX {
            assert!(events.recv().await.is_some());
            feed.send_modify(|version| version.note(&[Topic::Moves]));
        }
        let mut changes = 0;
        while !sending.is_finished() {
            assert!(changes < 100 * WAITING_MAX, "it is kept");
            feed.send_modify(|version| version.note(&[Topic::Moves]));
            changes += 1;
            yield_now().await;
        }
        assert!(changes >= WAITING_MAX, "dropped after {changes} changes");
    }
}
