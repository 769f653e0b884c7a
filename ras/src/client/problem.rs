//! Errors of a server: problem documents (RFC 9457).

use crate::exit::Verdict;
use crate::layout::{BY_JSON, Rows};
use crate::plan_text;
use fleet::quote::{Quote, QuoteFormat};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fmt;

/// A problem document.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Problem {
    status: StatusCode,
    /// Its members.
    document: Map<String, Value>,
}

impl Problem {
    /// The problem in an answer with any body.
    pub fn new(status: StatusCode, body: Value) -> Problem {
        let document = match body {
            Value::Object(document) => document,
            // From a proxy, for example.
            other => {
                let title = status.canonical_reason().unwrap_or("no answer");
                let said = other.as_str().map(|said| said.chars().take(200).collect::<String>());
                Map::from_iter([
                    ("title".to_owned(), json!(title)),
                    ("detail".to_owned(), json!(said)),
                ])
            }
        };
        Problem { status, document }
    }

    /// The problem inside another document, such as a failed operation; `None` if the document has no problem.
    pub fn within(document: &Value) -> Option<Problem> {
        let members = document.as_object()?;
        let status = members.get("status").and_then(Value::as_u64).unwrap_or(409);
        let status = u16::try_from(status).ok().and_then(|of| StatusCode::from_u16(of).ok())?;
        Some(Problem { status, document: members.clone() })
    }

    /// Its HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Its machine-readable type.
    pub fn code(&self) -> &str {
        self.document.get("code").and_then(Value::as_str).unwrap_or_default()
    }

    /// The whole document.
    pub fn json(&self) -> Value {
        Value::Object(self.document.clone())
    }

    /// A member of the document.
    pub fn get(&self, member: &str) -> Option<&Value> {
        self.document.get(member).filter(|value| !value.is_null())
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
            _ => self.get("reasons").map(|_| Verdict::Short),
        }
    }

    fn list(&self, member: &str) -> &[Value] {
        self.document.get(member).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |member: &str| self.document.get(member).and_then(Value::as_str);
        let planned = self.get("answer").and_then(planned);
        let said = text("detail").or(text("reason")).or(text("title"));
        // A plan has the reason itself.
        let said = said.filter(|said| planned.as_ref().is_none_or(|plan| !plan.contains(said)));
        let errors: Vec<String> = self.list("errors").iter().map(wrong_field).collect();
        match (&errors[..], said) {
            // The text has these already.
            ([error], Some(said)) if said == error => out.write_str(error)?,
            (errors, Some(said)) if said == errors.join("; ") => {
                write!(out, "{} fields are invalid", errors.len())?;
            }
            (_, said) => out.write_str(said.unwrap_or("the request is refused"))?,
        }
        if !self.code().is_empty() {
            write!(out, " ({})", self.code())?;
        }
        for error in errors.iter().filter(|error| said != Some(*error)) {
            write!(out, "\n  {error}")?;
        }
        // A plan has reasons and alternatives in full.
        if let Some(answer) = planned {
            return write!(out, "\n{answer}");
        }
        // The sentence of a limit includes its name, with its numbers.
        let limits = self.list("limits");
        let limited = |reason: &Value| limits.iter().any(|limit| limit["limit"] == *reason);
        for reason in self.list("reasons").iter().filter(|reason| !limited(reason)) {
            write!(out, "\n  {}", sentence(reason))?;
        }
        for limit in limits {
            let of = limit["reservation"].as_str().map_or_else(String::new, |of| format!("{of}: "));
            write!(out, "\n  {of}{}", sentence(limit))?;
        }
        let alternatives = self.list("alternatives");
        if !alternatives.is_empty() {
            out.write_str("\neach of these would be granted:")?;
        }
        for alternative in alternatives {
            write!(out, "\n  {}", sentence(alternative))?;
        }
        let again = matches!(self.status.as_u16(), 500..);
        match text("request_id").filter(|_| again) {
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
        Ok(quote) => plan_text::text(&quote, Rows::First(BY_JSON)),
        Err(error) => format!("cannot read the server's answer ({error}): {document}"),
    })
}

/// The invalid field and its error.
fn wrong_field(error: &Value) -> String {
    let text = |member: &str| error.get(member).and_then(Value::as_str);
    let field = text("field").or(text("pointer"));
    match (field, text("detail").or(text("sentence"))) {
        (Some(field), Some(detail)) => format!("{field}: {detail}"),
        (None, Some(detail)) => detail.to_owned(),
        _ => plain(error),
    }
}

/// A reason or a concession: its name and its sentence.
fn sentence(of: &Value) -> String {
    let text = |member: &str| of.get(member).and_then(Value::as_str);
    let word = ["reason", "limit", "concession", "code"].into_iter().find_map(text);
    match (word, text("sentence").or(text("detail"))) {
        (Some(word), Some(sentence)) => format!("{word}: {sentence}"),
        (None, Some(sentence)) => sentence.to_owned(),
        _ => plain(of),
    }
}

fn plain(of: &Value) -> String {
    of.as_str().map_or_else(|| of.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_fields_reasons_and_alternatives() {
        let problem = Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            json!({
                "code": "not_granted", "detail": "nothing of 12 RRU can be granted",
                "errors": [{"field": "rru.C9", "detail": "there is no such hardware type"}],
                "reasons": [{"reason": "not_enough_hardware", "sentence": "there are 3"}, "quota", "region"],
                "limits": [{"limit": "region", "without_rru": 3.0, "sentence": "there is no more",
                    "reservation": "web"}],
                "alternatives": [{"concession": "fewer_rru", "sentence": "requesting 3 RRU"}],
            }),
        );
        let said = problem.to_string();
        for part in [
            "nothing of 12 RRU can be granted (not_granted)",
            "\n  rru.C9: there is no such hardware type",
            "\n  not_enough_hardware: there are 3",
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
        assert!(problem.to_string().contains("no backend"));
        assert_eq!(problem.verdict(), None);
        let problem = Problem::new(StatusCode::NOT_FOUND, Value::Null);
        assert_eq!(problem.to_string(), "Not Found");
    }
}
