//! Errors of a server: problem documents (RFC 9457).

use crate::exit::Verdict;
use crate::layout::{BY_JSON, Rows};
use crate::plan_text;
use api_types::problem::{self, FieldError, ProblemMembers};
use fleet::quote::{Quote, QuoteFormat};
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;

/// Characters shown of an answer that is no problem document.
const FOREIGN_CHARS_MAX: usize = 200;

/// An error of a server.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Problem {
    status: StatusCode,
    /// As it was sent.
    document: Value,
    /// What it says; of any other answer, such as one from a proxy, a text.
    read: Result<Box<problem::Problem>, String>,
}

impl Problem {
    /// The problem in an answer with any body.
    pub fn new(status: StatusCode, document: Value) -> Problem {
        let read = match &document {
            Value::Object(members) if members.contains_key("code") => {
                serde_path_to_error::deserialize(&document).map_err(|error| {
                    format!("cannot read the server's answer ({error}): {document}")
                })
            }
            Value::Null => Err(status.canonical_reason().unwrap_or("no answer").to_owned()),
            Value::String(text) => Err(text.chars().take(FOREIGN_CHARS_MAX).collect()),
            other => Err(other.to_string().chars().take(FOREIGN_CHARS_MAX).collect()),
        };
        Problem { status, document, read }
    }

    /// The problem of a failed operation or a refused request; `None`: it is no document.
    pub fn of_result(document: &Value) -> Option<Problem> {
        document.is_object().then(|| Problem::new(StatusCode::CONFLICT, document.clone()))
    }

    /// Its HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Its machine-readable type; empty if it is no problem document.
    pub fn code(&self) -> &str {
        self.read.as_ref().map_or("", |of| &of.code)
    }

    /// The whole document.
    pub fn json(&self) -> &Value {
        &self.document
    }

    /// Members that not every code has.
    pub fn members(&self) -> Option<&ProblemMembers> {
        self.read.as_ref().ok().map(|of| &of.members)
    }

    /// The plan that was refused, as text.
    pub fn planned(&self) -> Option<String> {
        self.members()?.answer.as_deref().map(text)
    }

    /// Whether an earlier request with this idempotency key is still in progress.
    pub fn is_still_running(&self) -> bool {
        self.status == StatusCode::CONFLICT && self.code() == "key_in_use"
    }

    /// Whether the object changed since it was read.
    pub fn is_changed(&self) -> bool {
        self.status == StatusCode::PRECONDITION_FAILED
    }

    /// Whether the request was refused or is out of date; `None` for other errors.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.code() {
            "plan_stale" | "plan_over" => Some(Verdict::Stale),
            _ if self.is_changed() => Some(Verdict::Stale),
            "not_granted" | "quota_exceeded" | "cancelled" | "expired" => Some(Verdict::Short),
            // Maintenance.
            "share" | "guarantee" | "outage_now" => Some(Verdict::Short),
            _ => self.members()?.reasons.as_ref().map(|_| Verdict::Short),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match &self.read {
            Ok(of) => of,
            Err(text) => return out.write_str(text),
        };
        let ProblemMembers { errors, reasons, limits, alternatives, .. } = &of.members;
        let planned = self.planned();
        // A plan has the reason itself.
        let said = of.detail.as_deref();
        let said = said.filter(|said| planned.as_ref().is_none_or(|plan| !plan.contains(said)));
        let errors: Vec<String> = errors.iter().flatten().map(wrong_field).collect();
        match (&errors[..], said) {
            // The text has these already.
            ([error], Some(said)) if said == error => out.write_str(error)?,
            (errors, Some(said)) if said == errors.join("; ") => {
                write!(out, "{} fields are invalid", errors.len())?;
            }
            (_, said) => out.write_str(said.unwrap_or("the request is refused"))?,
        }
        write!(out, " ({})", of.code)?;
        for error in errors.iter().filter(|error| said != Some(*error)) {
            write!(out, "\n  {error}")?;
        }
        // A plan has reasons and alternatives in full.
        if let Some(answer) = planned {
            return write!(out, "\n{answer}");
        }
        let limits = limits.as_deref().unwrap_or_default();
        // The sentence of a limit includes its name, with its numbers.
        let limited = |reason: &str| limits.iter().any(|limit| limit.limit.as_str() == reason);
        for reason in reasons.iter().flatten().filter(|reason| !limited(reason)) {
            write!(out, "\n  {reason}")?;
        }
        for of in limits {
            let reservation = of.reservation.iter().map(|of| format!("{of}: ")).collect::<String>();
            write!(out, "\n  {reservation}{}: {}", of.limit.as_str(), of.sentence)?;
        }
        let alternatives = alternatives.as_deref().unwrap_or_default();
        if !alternatives.is_empty() {
            out.write_str("\neach of these would be granted:")?;
        }
        for of in alternatives {
            write!(out, "\n  {}: {}", of.concession.as_str(), of.sentence)?;
        }
        match of.request_id.as_ref().filter(|_| self.status.is_server_error()) {
            Some(id) => write!(out, "\nrequest {id}"),
            None => Ok(()),
        }
    }
}

/// The plan's answer to a request as text; `None` if the document is of another kind.
pub fn planned(document: &Value) -> Option<String> {
    if document["format"] != QuoteFormat::V1.as_str() {
        return None;
    }
    Some(match Quote::deserialize(document) {
        Ok(quote) => text(&quote),
        Err(error) => format!("cannot read the server's answer ({error}): {document}"),
    })
}

fn text(quote: &Quote) -> String {
    plan_text::text(quote, Rows::First(BY_JSON))
}

/// The invalid field and its error.
fn wrong_field(FieldError { field, detail, .. }: &FieldError) -> String {
    format!("{field}: {detail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_names_fields_reasons_and_alternatives() {
        let problem = Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            json!({
                "code": "not_granted", "detail": "nothing of 12 RRU can be granted",
                "errors": [{"field": "rru.C9", "detail": "there is no such hardware type"}],
                "reasons": ["not_enough_hardware", "quota", "region"],
                "limits": [{"limit": "region", "without_rru": 3.0, "sentence": "there is no more",
                    "reservation": "web"}],
                "alternatives": [{"concession": "fewer_rru", "sentence": "requesting 3 RRU",
                    "request": {"reservation": "web"}}],
            }),
        );
        let said = problem.to_string();
        for part in [
            "nothing of 12 RRU can be granted (not_granted)",
            "\n  rru.C9: there is no such hardware type",
            "\n  not_enough_hardware",
            "\n  quota\n  web: region: there is no more",
            "\n  fewer_rru: requesting 3 RRU",
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(problem.verdict(), Some(Verdict::Short));
    }

    #[test]
    fn what_is_no_document_is_shown_as_it_is() {
        let problem = Problem::new(StatusCode::BAD_GATEWAY, Value::String("no backend".into()));
        assert_eq!(problem.to_string(), "no backend");
        assert_eq!(problem.verdict(), None);
        let problem = Problem::new(StatusCode::NOT_FOUND, Value::Null);
        assert_eq!(problem.to_string(), "Not Found");
    }

    #[test]
    fn a_problem_that_lacks_a_member_is_no_refusal() {
        let lacks = json!({ "code": "quota_exceeded", "detail": "too much",
            "quotas": [{ "quota": "servers", "limit": 3.0 }] });
        let problem = Problem::new(StatusCode::CONFLICT, lacks);
        assert!(problem.to_string().contains("missing field `would_be`"), "{problem}");
        assert_eq!((problem.code(), problem.verdict()), ("", None));
    }
}
