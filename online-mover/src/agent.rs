//! The contract with host agents: orders and reports.
//!
//! Operators have automation that drains, wipes and configures servers. An agent orders one step from it
//! and learns the progress. **Repeating an order for a step of a move must be harmless**: after a crash or
//! a lost answer the mover repeats it. Only the host's report counts, never the fact that an order was
//! sent.
//!
//! **A host must refuse orders of an earlier mover.** A mover that was suspended may send an order after
//! another has taken over: it checks its lease directly before sending, but between check and sending there
//! is always a gap. So every order has the epoch of its mover. The receiver stores the highest epoch seen
//! for each server and answers lower ones with [`StepReport::Outdated`].

pub mod command;
pub mod http;
pub mod simulated;

use crate::steps::Step;
use broker::{LeaseTerm, OrderId, storable};
use fleet::{Name, ReservationName, ServerName};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An order for one step of one move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepOrder {
    /// The move. Move and step together identify a repeated order.
    #[serde(rename = "move")]
    pub order_id: OrderId,
    /// The step.
    pub step: Step,
    /// The server.
    pub server: ServerName,
    /// The owner; `None`: the server is free.
    pub source: Option<ReservationName>,
    /// The next owner; `None`: the server becomes free.
    pub target: Option<ReservationName>,
    /// The host profile of the next owner.
    pub host_profile: Option<Name>,
    /// The version of the targets. Of two orders for a server the one with the higher version counts.
    pub version: i64,
    /// The epoch of the mover. Of two orders for a server the one with the higher epoch counts, regardless
    /// of their versions.
    pub epoch: i64,
    /// The order must not be sent after this lease.
    #[serde(skip)]
    pub lease: LeaseTerm,
}

impl StepOrder {
    /// Checks that the lease still holds. Called directly before sending.
    ///
    /// # Errors
    /// [`AgentError::NotSent`] if the lease is over.
    pub fn may_be_sent(&self) -> Result<(), AgentError> {
        if self.lease.holds() { Ok(()) } else { Err(AgentError::NotSent) }
    }
}

/// The progress of a step, as the host reports it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StepReport {
    /// The step is done.
    Done,
    /// The step is executing; the order is to be repeated later.
    UnderWay {
        /// Seconds until then; `None`: the mover's own pause.
        #[serde(default)]
        again_after_seconds: Option<u32>,
    },
    /// The host will not execute the step, even if the order is repeated.
    Refused {
        /// The reason, for people.
        #[serde(default)]
        why: String,
    },
    /// A mover of a later epoch has given orders for this server. The step was not executed.
    Outdated {
        /// The highest epoch seen for the server.
        #[serde(default)]
        epoch: i64,
    },
}

/// The host's answer is not known. Except for [`AgentError::NotSent`], it may have executed the step.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The mover's lease was over before the order was sent.
    #[error("the order was not sent: the mover's lease is over")]
    NotSent,
    /// No answer arrived in time.
    #[error("no answer within {} s", .0.as_secs_f32())]
    TooLate(Duration),
    /// The order could not be delivered, or the answer was lost.
    #[error("cannot reach the host automation: {0}")]
    Unreachable(String),
    /// The answer is not a [`StepReport`].
    #[error("invalid answer from the host automation: {0}")]
    NotAnAnswer(String),
}

/// Orders steps from hosts.
pub trait HostAgent: Send + Sync {
    /// Orders a step, for the first time or again, and gives its progress.
    ///
    /// # Errors
    /// [`AgentError`]; the mover repeats the order after a pause.
    fn ask<'a>(&'a self, order: &'a StepOrder) -> BoxFuture<'a, Result<StepReport, AgentError>>;
}

impl<A: HostAgent + ?Sized> HostAgent for &A {
    fn ask<'a>(&'a self, order: &'a StepOrder) -> BoxFuture<'a, Result<StepReport, AgentError>> {
        (**self).ask(order)
    }
}

/// Maximum length of an answer in bytes. A report has a few words; anything longer is not a report.
const ANSWER_MAX: usize = 64 << 10;

/// Characters of a host's reason that are stored.
const SAID_MAX: usize = 2_000;

/// Characters of the description of an invalid answer that are stored.
const WRONG_MAX: usize = 300;

/// Reads an answer. For any bytes this ends, and the texts can be stored: size and nesting are bounded, and
/// control characters are replaced.
///
/// # Errors
/// [`AgentError::NotAnAnswer`] if the bytes are not a [`StepReport`] as JSON, or too many.
pub fn read(answer: &[u8]) -> Result<StepReport, AgentError> {
    let wrong = |why: &str| AgentError::NotAnAnswer(storable(why, WRONG_MAX));
    if answer.len() > ANSWER_MAX {
        return Err(wrong("it is longer than 64 KiB"));
    }
    let report = serde_json::from_slice(answer).map_err(|error| wrong(&error.to_string()))?;
    Ok(match report {
        StepReport::Refused { why } => StepReport::Refused { why: storable(&why, SAID_MAX) },
        report => report,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{AgentError, StepOrder, StepReport, read};
    use crate::steps::Step;
    use broker::{LeaseTerm, OrderId};
    use proptest::prelude::*;

    pub(crate) fn order(number: u128, step: Step) -> StepOrder {
        StepOrder {
            order_id: OrderId::from_u128(number),
            step,
            server: "s1".into(),
            source: Some("web".into()),
            target: None,
            host_profile: None,
            version: 7,
            epoch: 3,
            lease: LeaseTerm::endless(),
        }
    }

    #[test]
    fn orders_and_reports_have_the_documented_format() {
        let json = serde_json::to_value(order(1, Step::CleanUp)).expect("JSON");
        let expected = serde_json::json!({
            "move": "00000000-0000-0000-0000-000000000001", "step": "clean_up", "server": "s1",
            "source": "web", "target": null, "host_profile": null, "version": 7, "epoch": 3,
        });
        assert_eq!(json, expected);
        for (answer, report) in [
            (r#"{"state": "done", "took": 3}"#, StepReport::Done),
            (r#"{"state": "under_way"}"#, StepReport::UnderWay { again_after_seconds: None }),
            (
                r#"{"state": "under_way", "again_after_seconds": 9}"#,
                StepReport::UnderWay { again_after_seconds: Some(9) },
            ),
            (
                r#"{"state": "refused", "why": "no power"}"#,
                StepReport::Refused { why: "no power".into() },
            ),
            (r#"{"state": "outdated", "epoch": 4}"#, StepReport::Outdated { epoch: 4 }),
        ] {
            assert_eq!(read(answer.as_bytes()).expect("an answer"), report);
        }
        let deep = format!(r#"{{"state": "done", "x": {}}}"#, "[".repeat(50_000));
        let long = format!(r#"{{"state": "refused", "why": "{}"}}"#, "a".repeat(70_000));
        for wrong in [&*deep, &*long] {
            assert!(matches!(read(wrong.as_bytes()), Err(AgentError::NotAnAnswer(_))));
        }
        let zero = read(br#"{"state": "refused", "why": "a\u0000b"}"#).expect("an answer");
        assert_eq!(zero, StepReport::Refused { why: "a\u{FFFD}b".to_owned() });
        for wrong in ["", "{}", r#"{"state": "finished"}"#, "<html>"] {
            let error = read(wrong.as_bytes()).expect_err("no answer");
            assert!(matches!(error, AgentError::NotAnAnswer(_)), "{error}");
        }
    }

    /// Bytes that resemble an answer, and arbitrary ones.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let text = prop_oneof![
            Just("\\u0000".to_owned()),
            Just("\\ud800".to_owned()),
            Just("\u{FFFF}".to_owned()),
            Just("[".repeat(500)),
            "\\PC{0,3000}",
        ];
        let state = prop_oneof![
            Just("done"),
            Just("under_way"),
            Just("refused"),
            Just("outdated"),
            Just("finished"),
        ];
        let like = (state, text, any::<i64>()).prop_map(|(state, text, number)| {
            format!(
                r#"{{"state": "{state}", "why": "{text}", "epoch": {number}, "again_after_seconds": {number}}}"#
            )
            .into_bytes()
        });
        let cut = (like, any::<prop::sample::Index>(), any::<u8>());
        let broken = cut.prop_map(|(mut bytes, at, byte)| {
            if byte % 3 == 0 {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        });
        prop_oneof![broken, prop::collection::vec(any::<u8>(), 0..2_000)]
    }

    proptest! {
        /// Any answer is read or refused, and its text can be stored.
        #[test]
        fn any_answer_of_a_host_can_be_stored(answer in bytes()) {
            let kept = match read(&answer) {
                Ok(StepReport::Refused { why }) => why,
                Ok(_) => String::new(),
                Err(AgentError::NotAnAnswer(why)) => why,
                Err(other) => panic!("{other}"),
            };
            prop_assert!(!kept.contains('\0'));
            prop_assert!(kept.chars().count() <= super::SAID_MAX);
        }
    }
}
