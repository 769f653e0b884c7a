//! Forms of the settings. A rejected form keeps what was typed, with the errors beside the fields.

use crate::http::Problem;
use crate::web::ui;
use api_types::problem::FieldError;
use broker::EditError;

use fleet::edit::WrongField;
use maud::{Markup, html};
use serde::Serialize;
use std::collections::BTreeMap;

/// A form of the page.
#[derive(Debug)]
pub(super) struct Form {
    /// Id and heading of its section.
    pub(super) section: (&'static str, &'static str),
    /// Prefix of the ids of its fields.
    pub(super) id: &'static str,
    /// Visible fields: name and label.
    pub(super) fields: &'static [(&'static str, &'static str)],
}

impl Form {
    fn label(&self, field: &str) -> Option<&'static str> {
        self.fields.iter().find(|(name, _)| *name == field).map(|(_, label)| *label)
    }
}

/// A form that was rejected: its values and the reason.
#[derive(Debug)]
pub(super) struct Rejected {
    form: &'static Form,
    /// Values by name of the field, hidden fields included.
    values: BTreeMap<String, String>,
    problem: Problem,
}

/// A wrong field of a rejected form.
struct Wrong {
    /// Name of the form field; empty if the error belongs to no visible field.
    field: String,
    detail: String,
}

impl Rejected {
    /// `values`: the form as it was sent, a struct of strings.
    pub(super) fn new(form: &'static Form, values: &impl Serialize, problem: Problem) -> Rejected {
        let values = serde_json::to_value(values).and_then(serde_json::from_value);
        Rejected { form, values: values.unwrap_or_default(), problem }
    }

    pub(super) fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The value that was sent for a field.
    pub(super) fn value(&self, field: &str) -> Option<&str> {
        self.values.get(field).map(String::as_str)
    }

    /// The rejected form if it is this one.
    pub(super) fn of<'a>(rejected: Option<&'a Rejected>, form: &Form) -> Option<&'a Rejected> {
        rejected.filter(|rejected| rejected.form.id == form.id)
    }

    /// The rejected form if it is this one, in the row of this hardware type.
    pub(super) fn of_type<'a>(
        rejected: Option<&'a Rejected>,
        form: &Form,
        name: &str,
    ) -> Option<&'a Rejected> {
        Rejected::of(rejected, form)
            .filter(|rejected| rejected.value("hardware_type") == Some(name))
    }

    fn wrong(&self) -> Vec<Wrong> {
        let errors = ui::field_errors(&self.problem);
        if errors.is_empty() {
            return vec![Wrong { field: String::new(), detail: self.problem.detail().to_owned() }];
        }
        let wrong = |of: &FieldError| {
            let (field, part) = of.field.split_once('.').unwrap_or((of.field.as_str(), ""));
            let detail = if part.is_empty() {
                ui::field_error(of)
            } else {
                format!("{part}: {}", ui::field_error(of))
            };
            let field = self.form.label(field).map_or("", |_| field);
            Wrong { field: field.to_owned(), detail }
        };
        errors.iter().map(wrong).collect()
    }

    /// Errors of a field; with an empty name, errors of no visible field.
    fn wrong_with(&self, field: &str) -> Vec<String> {
        self.wrong().into_iter().filter(|of| of.field == field).map(|of| of.detail).collect()
    }

    /// Errors of no visible field, to be shown beside the form.
    pub(super) fn rest(rejected: Option<&Rejected>) -> Markup {
        let wrong = rejected.map(|rejected| rejected.wrong_with("")).unwrap_or_default();
        html! { @for detail in wrong { p.error { (detail) } } }
    }

    /// The notice at the top of the page.
    pub(super) fn notice(&self) -> Markup {
        let (section, title) = self.form.section;
        // A form in the row of a hardware type names the type.
        let is_in_row = self.form.label("hardware_type").is_none();
        let of = self.value("hardware_type").filter(|_| is_in_row);
        html! {
            div.notice.bad #wrong role="alert" {
                strong.verdict { "Nothing was changed: " a href={ "#" (section) } { (title) } }
                ul { @for wrong in self.wrong() { li {
                    @if let Some(name) = of { (name) ": " }
                    @if let Some(label) = self.form.label(&wrong.field) { (label) ": " }
                    (wrong.detail)
                } } }
            }
        }
    }
}

/// A field of a form.
pub(super) struct Field<'a> {
    pub(super) form: &'static Form,
    pub(super) name: &'static str,
    /// Suffix of the id, which tells the rows of a table apart; empty elsewhere.
    pub(super) row: &'a str,
    pub(super) hint: &'a str,
    /// The initial value.
    pub(super) value: String,
    /// Whether the initial value is the stored one, to be shown beside another that was typed.
    pub(super) is_stored: bool,
    /// `text`, `decimal` or `numeric`.
    pub(super) mode: &'static str,
    pub(super) required: bool,
    /// Whether the field takes long lists.
    pub(super) wide: bool,
}

impl Field<'_> {
    /// A required text field.
    pub(super) fn new(form: &'static Form, name: &'static str) -> Field<'static> {
        Field {
            form,
            name,
            row: "",
            hint: "",
            value: String::new(),
            is_stored: false,
            mode: "text",
            required: true,
            wide: false,
        }
    }

    /// The field; with the value and errors of a rejected form.
    pub(super) fn show(&self, rejected: Option<&Rejected>) -> Markup {
        let id = format!("{}-{}{}", self.form.id, self.name, self.row);
        let typed = rejected.and_then(|rejected| rejected.value(self.name));
        let wrong = rejected.map(|rejected| rejected.wrong_with(self.name)).unwrap_or_default();
        let stored = typed.filter(|typed| self.is_stored && *typed != self.value);
        let hinted = !self.hint.is_empty() || stored.is_some();
        let mut described: Vec<String> = Vec::new();
        if !wrong.is_empty() {
            described.push(format!("{id}-wrong"));
        }
        if hinted {
            described.push(format!("{id}-hint"));
        }
        let described = (!described.is_empty()).then(|| described.join(" "));
        let invalid = (!wrong.is_empty()).then_some("true");
        let value = typed.unwrap_or(&self.value);
        html! {
            div.field.whole[self.wide] {
                label for=(id) { (self.form.label(self.name).unwrap_or_default()) }
                @if self.wide {
                    textarea id=(id) name=(self.name) rows="3" required[self.required] autocomplete="off" spellcheck="false"
                        aria-describedby=[described] aria-invalid=[invalid] { (value) }
                } @else {
                    input id=(id) type="text" inputmode=(self.mode) name=(self.name) required[self.required] autocomplete="off"
                        value=(value) aria-describedby=[described] aria-invalid=[invalid];
                }
                @if !wrong.is_empty() { span.error id={ (id) "-wrong" } { (wrong.join("; ")) } }
                @if hinted { span.hint id={ (id) "-hint" } {
                    (self.hint)
                    @if stored.is_some() {
                        @if !self.hint.is_empty() { "; " }
                        "current value: " @if self.value.is_empty() { "empty" } @else { (self.value) }
                    }
                } }
            }
        }
    }
}

/// Reads fields and collects their errors.
#[derive(Debug, Default)]
pub(super) struct Reading(Vec<WrongField>);

impl Reading {
    /// Adds an error of a field.
    pub(super) fn wrong(&mut self, field: &str, detail: impl Into<String>) {
        self.0.push(WrongField::new(field, "malformed", detail));
    }

    /// A number; NaN with an error if the text is not a number.
    pub(super) fn number(&mut self, field: &str, text: &str) -> f64 {
        let text = text.trim();
        let number = text.parse().ok().filter(|number: &f64| !number.is_nan());
        if number.is_none() {
            let error = format!("{text:?} is not a number");
            self.wrong(
                field,
                if text.is_empty() { "a number is required".to_owned() } else { error },
            );
        }
        number.unwrap_or(f64::NAN)
    }

    /// A number; `None` if the field is empty.
    pub(super) fn number_if_any(&mut self, field: &str, text: &str) -> Option<f64> {
        (!text.trim().is_empty()).then(|| self.number(field, text))
    }

    /// `NAME=NUMBER`, separated by commas or lines.
    pub(super) fn pairs<N: for<'a> From<&'a str>>(
        &mut self,
        field: &str,
        text: &str,
    ) -> Vec<(N, f64)> {
        let mut pairs = Vec::new();
        for part in items(text) {
            match part.rsplit_once('=') {
                Some((name, value)) => pairs.push((name.trim().into(), self.number(field, value))),
                None => self.wrong(field, format!("{part:?} is not NAME=NUMBER")),
            }
        }
        pairs
    }

    /// # Errors
    /// All errors so far.
    pub(super) fn done(self) -> Result<(), Problem> {
        if self.0.is_empty() { Ok(()) } else { Err(EditError::Wrong(self.0).into()) }
    }
}

/// Items of a list that are separated by commas or lines.
pub(super) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty())
}
