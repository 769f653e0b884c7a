//! Shared elements of pages: tiles, bars, legends, times, links to further pages.

use crate::http::Problem;
use api_types::problem::FieldError;
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};
use report::number;

/// How a figure or a state is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Plain,
    Good,
    Warn,
    Bad,
}

impl Mood {
    /// Class of the style sheet.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Mood::Plain => "plain",
            Mood::Good => "good",
            Mood::Warn => "warn",
            Mood::Bad => "bad",
        }
    }
}

/// A labelled figure with a line below it, for a `dl.tiles`.
pub(super) fn tile(mood: Mood, label: &str, value: &Markup, more: &Markup) -> Markup {
    html! {
        div class={ "tile " (mood.class()) } {
            dt { (label) }
            dd { div.value { (value) } div.more { (more) } }
        }
    }
}

/// A state as a coloured label.
pub(super) fn state(mood: Mood, word: &str) -> Markup {
    html! { span class={ "state " (mood.class()) } { (word.replace('_', " ")) } }
}

/// A legend of colour classes and their labels.
pub(super) fn legend<'a>(entries: impl IntoIterator<Item = (&'a str, String)>) -> Markup {
    html! {
        ul.legend {
            @for (class, label) in entries {
                li { span class={ "sw " (class) } {} (label) }
            }
        }
    }
}

/// What is wrong with a field, with the nearest number that would be accepted.
pub(super) fn field_error(of: &FieldError) -> String {
    match of.broken.as_ref().and_then(|broken| broken.nearest) {
        Some(nearest) => format!("{}; nearest accepted value: {nearest}", of.detail),
        None => of.detail.clone(),
    }
}

/// The wrong fields that a problem names; empty if it names none.
pub(super) fn field_errors(problem: &Problem) -> &[FieldError] {
    problem.members().errors.as_deref().unwrap_or_default()
}

/// The wrong fields that a problem names, as a list.
pub(super) fn errors(problem: &Problem) -> Markup {
    let errors = field_errors(problem);
    html! { @if !errors.is_empty() {
        ul { @for of in errors { li { code { (of.field) } ": " (field_error(of)) } } }
    } }
}

/// The message shown in place of an empty list or chart.
pub(super) fn missing(message: &str) -> Markup {
    html! { p.missing { (message) } }
}

/// A stacked bar of classes and amounts. It is hidden from screen readers: the numbers are beside it as text.
pub(super) fn bar(parts: &[(&str, f64)], whole: f64) -> Markup {
    let whole = if whole > 0.0 { whole } else { 1.0 };
    let mut from = 0.0;
    let at = |amount: f64| format!("{:.3}", 100.0 * amount / whole);
    html! {
        svg.bar viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
            rect.none width="100" height="10" {}
            @for &(class, amount) in parts {
                @if amount > 0.0 {
                    rect class=(class) x=(at(from)) width=(at(amount)) height="10" {}
                }
                @let () = from += amount;
            }
        }
    }
}

/// An instant in UTC to the minute; the title has the seconds. The script shows it in the reader's time zone.
pub(super) fn when(at: DateTime<Utc>) -> Markup {
    html! {
        time data-instant datetime=(at.to_rfc3339()) title=(at.format("%Y-%m-%d %H:%M:%S UTC")) {
            (at.format("%Y-%m-%d %H:%M"))
        }
    }
}

/// Where a page is: links to the pages above it, the outermost first.
pub(super) fn crumbs(above: &[(&str, &str)]) -> Markup {
    html! {
        nav.kicker aria-label="Breadcrumb" { ol.crumbs {
            @for (path, title) in above { li { a href=(path) { (title) } } }
        } }
    }
}

/// A name or id that the script adds a button to copy it to.
pub(super) fn copyable(text: &str) -> Markup {
    html! { span data-copy=(text) { (text) } }
}

/// The distance of an instant from now: `12 min ago`, `in 3 h`.
pub(super) fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    let since = now - at;
    let length = duration(since.abs());
    html! {
        time datetime=(at.to_rfc3339()) title=(at.format("%Y-%m-%d %H:%M:%S UTC")) {
            @if since.abs() < TimeDelta::seconds(2) { "just now" }
            @else if since > TimeDelta::zero() { (length) " ago" }
            @else { "in " (length) }
        }
    }
}

/// A duration in its largest fitting unit.
pub(super) fn duration(length: TimeDelta) -> String {
    let seconds = length.num_seconds();
    match seconds {
        0..=119 => format!("{seconds}\u{202f}s"),
        120..=7_199 => format!("{}\u{202f}min", seconds / 60),
        7_200..=172_799 => format!("{}\u{202f}h", seconds / 3_600),
        _ => format!("{}\u{202f}days", number::count((seconds / 86_400).unsigned_abs() as usize)),
    }
}

/// A count that the database stores as a signed number.
pub(super) fn count(number: i64) -> String {
    number::count(usize::try_from(number).unwrap_or_default())
}

/// A proved gap; one above zero is never shown as zero.
pub(super) fn gap(share: f64) -> String {
    let least = 1e-6;
    if share > 0.0 && share < least {
        format!("< {}", number::percent(least))
    } else {
        number::percent(share)
    }
}

#[cfg(test)]
mod tests {
    use super::{bar, duration};
    use chrono::TimeDelta;

    #[test]
    fn duration_has_the_largest_fitting_unit() {
        let of = |seconds| duration(TimeDelta::seconds(seconds)).replace('\u{202f}', " ");
        assert_eq!([5, 130, 7_300, 200_000].map(of), ["5 s", "2 min", "2 h", "2 days"]);
    }

    #[test]
    fn bar_of_zero_is_empty() {
        assert_eq!(bar(&[("free", 0.0)], 0.0).into_string().matches("<rect").count(), 1);
    }
}
