//! Forms of the settings: what was typed stays when it is refused, with what is wrong beside the field.

use crate::api::problem::Problem;
use broker::EditError;
use fleet::Name;
use fleet::edit::WrongField;
use maud::{Markup, html};
use serde::Serialize;
use serde_json::Value;

/// A form of the page, as it is named in the page.
#[derive(Debug)]
pub(super) struct Form {
    /// The section it stands in: its id and its heading.
    pub(super) section: (&'static str, &'static str),
    /// What the ids of its fields begin with.
    pub(super) id: &'static str,
    /// The fields people see: name and label.
    pub(super) fields: &'static [(&'static str, &'static str)],
}

impl Form {
    fn label(&self, field: &str) -> Option<&'static str> {
        self.fields.iter().find(|(name, _)| *name == field).map(|(_, label)| *label)
    }
}

/// What was typed to no avail, and why.
#[derive(Debug)]
pub(super) struct Tried {
    form: &'static Form,
    said: Value,
    problem: Problem,
}

/// One thing that is wrong.
struct Wrong<'a> {
    /// Name of the form field; empty if the error belongs to no field.
    field: &'a str,
    detail: String,
}

impl Tried {
    pub(super) fn new(form: &'static Form, said: &impl Serialize, problem: Problem) -> Tried {
        Tried { form, said: serde_json::to_value(said).unwrap_or_default(), problem }
    }

    pub(super) fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What was typed into a field, or sent without being shown.
    pub(super) fn value(&self, field: &str) -> Option<&str> {
        self.said[field].as_str()
    }

    /// Of this form, if it is the one that was sent.
    pub(super) fn of<'a>(tried: Option<&'a Tried>, form: &Form) -> Option<&'a Tried> {
        tried.filter(|tried| tried.form.id == form.id)
    }

    /// Of this form in the row of a hardware type.
    pub(super) fn of_type<'a>(
        tried: Option<&'a Tried>,
        form: &Form,
        name: &Name,
    ) -> Option<&'a Tried> {
        Tried::of(tried, form).filter(|tried| tried.value("hardware_type") == Some(name))
    }

    fn wrong<'a>(&'a self) -> Vec<Wrong<'a>> {
        let Some(errors) = self.problem.member("errors").and_then(Value::as_array) else {
            return vec![Wrong { field: "", detail: self.problem.detail().to_owned() }];
        };
        let one = |of: &'a Value| {
            let text = |name: &str| of[name].as_str().unwrap_or_default();
            let (field, part) = text("field").split_once('.').unwrap_or((text("field"), ""));
            let mut detail = text("detail").to_owned();
            if !part.is_empty() {
                detail = format!("{part}: {detail}");
            }
            if let Some(nearest) = of["nearest"].as_f64() {
                detail = format!("{detail}; nearest: {nearest}");
            }
            Wrong { field: if self.form.label(field).is_some() { field } else { "" }, detail }
        };
        errors.iter().map(one).collect()
    }

    /// What is wrong with a field; with an empty name: with the rest.
    fn wrong_with(&self, field: &str) -> Vec<String> {
        self.wrong().into_iter().filter(|of| of.field == field).map(|of| of.detail).collect()
    }

    /// What is wrong with no field in particular, beside a form.
    pub(super) fn rest(tried: Option<&Tried>) -> Markup {
        let wrong = tried.map(|tried| tried.wrong_with("")).unwrap_or_default();
        html! { @for detail in wrong { p.error { (detail) } } }
    }

    /// Why nothing was changed.
    pub(super) fn show(&self) -> Markup {
        let (section, title) = self.form.section;
        // A form of a row says whose it is.
        let row = self.form.label("hardware_type").is_none();
        let of = self.value("hardware_type").filter(|_| row);
        html! {
            div.notice.bad #wrong role="alert" {
                strong.verdict { "Nothing was changed: " a href={ "#" (section) } { (title) } }
                ul { @for wrong in self.wrong() { li {
                    @if let Some(name) = of { (name) ": " }
                    @if let Some(label) = self.form.label(wrong.field) { (label) ": " }
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
    /// Tells the fields of rows apart; empty elsewhere.
    pub(super) row: &'a str,
    pub(super) hint: &'a str,
    /// What it holds before anybody types.
    pub(super) value: String,
    /// Whether that is what is stored, so that people may want to know it beside what they typed.
    pub(super) is_stored: bool,
    /// `text`, `decimal` or `numeric`.
    pub(super) mode: &'static str,
    pub(super) required: bool,
    /// It takes long lists.
    pub(super) wide: bool,
}

impl Field<'_> {
    /// A field for a text that must be there.
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

    /// With what was tried in it.
    pub(super) fn show(&self, tried: Option<&Tried>) -> Markup {
        let id = format!("{}-{}{}", self.form.id, self.name, self.row);
        let typed = tried.and_then(|tried| tried.value(self.name));
        let wrong = tried.map(|tried| tried.wrong_with(self.name)).unwrap_or_default();
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
                        "now " @if self.value.is_empty() { "empty" } @else { (self.value) }
                    }
                } }
            }
        }
    }
}

/// Fields as they are read, with all that is wrong with them.
#[derive(Debug, Default)]
pub(super) struct Reading(Vec<WrongField>);

impl Reading {
    /// Says that a field is wrong.
    pub(super) fn wrong(&mut self, field: &str, detail: impl Into<String>) {
        self.0.push(WrongField::new(field, "malformed", detail));
    }

    /// A number; NaN where the text is not one, which is then noted as wrong.
    pub(super) fn number(&mut self, field: &str, text: &str) -> f64 {
        let text = text.trim();
        let number = text.parse().ok().filter(|number: &f64| !number.is_nan());
        if number.is_none() {
            let said = format!("{text:?} is not a number");
            self.wrong(field, if text.is_empty() { "it needs a number".to_owned() } else { said });
        }
        number.unwrap_or(f64::NAN)
    }

    /// The same, where nothing may be said.
    pub(super) fn number_if_any(&mut self, field: &str, text: &str) -> Option<f64> {
        (!text.trim().is_empty()).then(|| self.number(field, text))
    }

    /// `NAME=NUMBER`, separated by commas or lines.
    pub(super) fn pairs(&mut self, field: &str, text: &str) -> Vec<(Name, f64)> {
        let mut pairs = Vec::new();
        for part in parts(text) {
            match part.rsplit_once('=') {
                Some((name, value)) => {
                    pairs.push((Name::from(name.trim()), self.number(field, value)))
                }
                None => self.wrong(field, format!("{part:?} is not NAME=NUMBER")),
            }
        }
        pairs
    }

    /// # Errors
    /// All that is wrong.
    pub(super) fn done(self) -> Result<(), Problem> {
        if self.0.is_empty() { Ok(()) } else { Err(EditError::Wrong(self.0).into()) }
    }
}

/// The parts of a list, separated by commas or lines.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty())
}
