//! Field errors, and a reader of JSON objects that reports every invalid field.

use super::problem::Problem;
use api_types::problem::FieldError;
use axum::http::StatusCode;
use fleet::{NAME_CHARS_MAX, NAME_RULE, NewName, RRU_MAX};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Limit of decimal places of an amount.
const PLACES_MAX: usize = 6;

/// The problem of a body with invalid fields.
pub(crate) fn invalid(errors: &[FieldError]) -> Problem {
    let named: Vec<String> =
        errors.iter().map(|error| format!("{}: {}", error.field, error.detail)).collect();
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", named.join("; "));
    problem.with_errors(errors.iter().cloned())
}

/// The reason that an operator gave for a rejection, trimmed.
///
/// # Errors
/// If it is empty.
pub(crate) fn reason_given(why: &str) -> Result<&str, Problem> {
    match why.trim() {
        "" => {
            let detail = "why: say why it is rejected";
            let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "malformed", detail);
            Err(problem.with_field("why"))
        }
        why => Ok(why),
    }
}

/// Reads an object member by member, and collects the errors.
pub(crate) struct FieldReader {
    /// Members of the schema.
    members: &'static [&'static str],
    /// Members not read yet.
    rest: Map<String, Value>,
    errors: Vec<FieldError>,
    /// Path of the object, before the names of its members.
    prefix: String,
}

impl FieldReader {
    /// Reads `object`, whose schema has these members.
    pub(crate) fn new(
        members: &'static [&'static str],
        object: Map<String, Value>,
        prefix: String,
    ) -> FieldReader {
        FieldReader { members, rest: object, errors: Vec::new(), prefix }
    }

    /// A reader of an object in member `name`. Pass it to [`Self::close`] when read.
    pub(crate) fn nested(
        &self,
        name: &str,
        members: &'static [&'static str],
        object: Map<String, Value>,
    ) -> FieldReader {
        FieldReader::new(members, object, format!("{}{name}.", self.prefix))
    }

    /// Ends a nested reader and takes over its errors.
    pub(crate) fn close(&mut self, mut nested: FieldReader) {
        nested.reject_unread();
        self.errors.append(&mut nested.errors);
    }

    /// Ends the reader.
    ///
    /// # Errors
    /// All errors: of the members read, and one for each unknown member.
    pub(crate) fn finish(mut self) -> Result<(), Vec<FieldError>> {
        self.reject_unread();
        if self.errors.is_empty() { Ok(()) } else { Err(self.errors) }
    }

    fn reject_unread(&mut self) {
        for field in self.rest.keys().cloned().collect::<Vec<_>>() {
            self.error(&field, "there is no such field");
        }
    }

    /// Takes a member that is not read further.
    pub(crate) fn remove(&mut self, field: &str) -> Option<Value> {
        debug_assert!(self.members.contains(&field), "{field:?} is not in the schema");
        self.rest.remove(field)
    }

    /// Adds an error of a member.
    pub(crate) fn error(&mut self, field: &str, detail: impl Into<String>) {
        let field = format!("{}{field}", self.prefix);
        self.errors.push(FieldError::new(field, detail));
    }

    /// Whether a member has an error.
    pub(crate) fn has_error(&self, field: &str) -> bool {
        let field = format!("{}{field}", self.prefix);
        self.errors.iter().any(|error| error.field == field)
    }

    /// Reads an optional member. `what`: the expected type, for the error.
    pub(crate) fn optional<T: DeserializeOwned>(&mut self, field: &str, what: &str) -> Option<T> {
        let value = self.remove(field)?;
        match serde_json::from_value(value) {
            Ok(read) => Some(read),
            Err(_) => {
                self.error(field, format!("it is not {what}"));
                None
            }
        }
    }

    /// Reads an optional member that may be null.
    pub(crate) fn nullable<T: DeserializeOwned>(
        &mut self,
        field: &str,
        what: &str,
    ) -> Option<Option<T>> {
        if self.rest.get(field)?.is_null() {
            self.remove(field);
            return Some(None);
        }
        self.optional(field, what).map(Some)
    }

    /// Checks an amount of RRU: from 0 to [`RRU_MAX`], with at most six decimal places.
    pub(crate) fn amount(&mut self, field: &str, value: &Value) -> Option<f64> {
        let Some(number) = value.as_number() else {
            self.error(field, "it is not a number of RRU");
            return None;
        };
        let amount = number.as_f64().unwrap_or(f64::NAN);
        if !(0.0..=RRU_MAX).contains(&amount) {
            self.error(field, format!("an amount must be from 0 to {RRU_MAX} RRU"));
            return None;
        }
        let text = format!("{amount}");
        if text.split_once('.').is_some_and(|(_, places)| places.len() > PLACES_MAX) {
            self.error(field, "an amount must have at most six decimal places");
            return None;
        }
        Some(amount)
    }

    /// Reads an optional amount of RRU.
    pub(crate) fn rru(&mut self, field: &str) -> Option<f64> {
        let value = self.remove(field)?;
        self.amount(field, &value)
    }

    /// Reads an optional name of something that may be there already. [`Self::check_new`] checks a new one.
    pub(crate) fn name<N: From<String>>(&mut self, field: &str) -> Option<N> {
        let text: String = self.optional(field, "a name")?;
        if (1..=NAME_CHARS_MAX).contains(&text.chars().count()) && !text.contains('\0') {
            return Some(text.into());
        }
        self.error(field, NAME_RULE);
        None
    }

    /// Reads an optional name that may be null.
    pub(crate) fn nullable_name<N: From<String>>(&mut self, field: &str) -> Option<Option<N>> {
        if self.rest.get(field)?.is_null() {
            self.remove(field);
            return Some(None);
        }
        self.name(field).map(Some)
    }

    /// Adds an error if a new name breaks the rule of names.
    pub(crate) fn check_new(&mut self, field: &str, name: &str) {
        if let Err(error) = NewName::parse(name) {
            self.error(field, error.to_string());
        }
    }

    /// Reads an optional number above the first bound, up to the second; or null.
    pub(crate) fn share(&mut self, field: &str, (above, most): (f64, f64)) -> Option<Option<f64>> {
        let share: Option<f64> = self.nullable(field, "a number or null")?;
        let within = |share: &f64| share.is_finite() && *share > above && *share <= most;
        if share.as_ref().is_none_or(within) {
            return Some(share);
        }
        self.error(field, format!("it must be more than {above} and at most {most}"));
        None
    }
}
