//! What is asked of a host, and what it answers.
//!
//! The doing is not ours: operators have automation that drains, wipes and configures. An agent asks
//! it to bring one step about and is told how far it is. **Asking again for the same step of the same
//! move must be harmless**: after a crash, or when an answer was lost, that is all we can do. What
//! counts is what the host reports, never what was sent.
//!
//! **A host must refuse what an earlier mover says.** A mover that was stopped and goes on may send an order
//! after another has taken over: it looks at its lease right before it sends, and between the look and the
//! sending there is always a gap. So every order carries the epoch of its mover, and whoever carries orders out
//! keeps the highest epoch that each server has seen and answers a lower one with [`StepReport::Outdated`].

pub mod command;
pub mod http;
pub mod simulated;

use crate::steps::Step;
use broker::{LeaseTerm, storable};
use fleet::Name;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use uuid::Uuid;

/// One step of one move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepOrder {
    /// The move: with the step, the key by which a host knows that it was asked before.
    #[serde(rename = "move", serialize_with = "as_text")]
    pub move_id: Uuid,
    /// What to do.
    pub step: Step,
    /// The server.
    pub server: Name,
    /// Who owns it; `None`: nobody.
    pub source: Option<Name>,
    /// Who shall; `None`: nobody.
    pub target: Option<Name>,
    /// The host profile of that one.
    pub host_profile: Option<Name>,
    /// The version of the targets: of two orders for a server the higher one counts.
    pub version: i64,
    /// Counts the movers: of two orders for a server the one with the higher epoch counts, whatever their
    /// versions.
    pub epoch: i64,
    /// It must not be sent when this is over.
    #[serde(skip)]
    pub lease: LeaseTerm,
}

impl StepOrder {
    /// Whether it may be sent: asked right before it is.
    ///
    /// # Errors
    /// [`AgentError::NotSent`].
    pub fn may_be_sent(&self) -> Result<(), AgentError> {
        if self.lease.holds() { Ok(()) } else { Err(AgentError::NotSent) }
    }
}

fn as_text<S: serde::Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// How far a step is, as the host says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StepReport {
    /// It is done.
    Done,
    /// It was begun and is to be asked for again.
    UnderWay {
        /// When to ask again; without it, after a pause of our own.
        #[serde(default)]
        again_after_seconds: Option<u32>,
    },
    /// It will not be done, however often it is asked for.
    Refused {
        /// Why, for people.
        #[serde(default)]
        why: String,
    },
    /// A mover of a later epoch has given orders for this server; nothing was done.
    Outdated {
        /// The highest epoch that the server has seen.
        #[serde(default)]
        epoch: i64,
    },
}

/// A host was not asked, or its answer is not known: it may have done the step.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The mover's lease was over before it was sent.
    #[error("it was not sent: the mover's lease is over")]
    NotSent,
    /// Nobody answered, or not in time.
    #[error("no answer within {} s", .0.as_secs_f32())]
    TooLate(Duration),
    /// It could not be asked, or the answer was lost.
    #[error("the automation cannot be reached: {0}")]
    Unreachable(String),
    /// The answer is none of the contract.
    #[error("the automation's answer is none: {0}")]
    NotAnAnswer(String),
}

/// Asks hosts for steps.
pub trait HostAgent: Send + Sync {
    /// Asks for a step, for the first time or again, and gives how far it is.
    fn ask<'a>(&'a self, order: &'a StepOrder) -> BoxFuture<'a, Result<StepReport, AgentError>>;
}

impl<A: HostAgent + ?Sized> HostAgent for &A {
    fn ask<'a>(&'a self, order: &'a StepOrder) -> BoxFuture<'a, Result<StepReport, AgentError>> {
        (**self).ask(order)
    }
}

/// The most bytes of an answer. It is a few words; what is longer is something else.
const ANSWER_MAX: usize = 64 << 10;

/// Characters kept of what a host says.
const SAID_MAX: usize = 2_000;

/// Characters kept of what is wrong with an answer.
const WRONG_MAX: usize = 300;

/// Reads an answer. Whatever the bytes are, this ends, and what it gives can be stored: size and nesting are
/// bounded, and texts are legible.
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
    use broker::LeaseTerm;
    use proptest::prelude::*;
    use uuid::Uuid;

    pub(crate) fn order(number: u128, step: Step) -> StepOrder {
        StepOrder {
            move_id: Uuid::from_u128(number),
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
    fn the_contract_is_what_is_written() {
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

    /// Bytes like those of an answer, and others.
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
        /// Whatever a host answers is read or refused, and what is kept of it can be stored.
        #[test]
        fn whatever_a_host_answers_can_be_stored(answer in bytes()) {
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
