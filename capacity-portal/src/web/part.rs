//! What pages are put together from: tiles, bars, legends, times, tables' odds and ends.

use crate::api::problem::Problem;
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, PreEscaped, html};
use report::number;
use serde_json::Value;

/// Good or bad news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Plain,
    Good,
    Warn,
    Bad,
}

impl Mood {
    /// The class of the style sheet.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Mood::Plain => "plain",
            Mood::Good => "good",
            Mood::Warn => "warn",
            Mood::Bad => "bad",
        }
    }
}

/// One figure that matters, in a `dl.tiles`.
pub(super) fn tile(mood: Mood, label: &str, value: &Markup, more: &Markup) -> Markup {
    html! {
        div class={ "tile " (mood.class()) } {
            dt { (label) }
            dd { div.value { (value) } div.more { (more) } }
        }
    }
}

/// A word for a state.
pub(super) fn state(mood: Mood, word: &str) -> Markup {
    html! { span class={ "state " (mood.class()) } { (word.replace('_', " ")) } }
}

/// A mark of a legend: class and words.
pub(super) fn legend<'a>(entries: impl IntoIterator<Item = (&'a str, String)>) -> Markup {
    html! {
        ul.legend {
            @for (class, words) in entries {
                li { span class={ "sw " (class) } {} (words) }
            }
        }
    }
}

/// What is wrong, field by field.
pub(super) fn errors(problem: &Problem) -> Markup {
    let errors = problem.member("errors").and_then(Value::as_array);
    html! { @if let Some(errors) = errors {
        ul { @for of in errors { li {
            code { (of["field"].as_str().unwrap_or_default()) } ": " (of["detail"].as_str().unwrap_or_default())
            @if let Some(nearest) = of["nearest"].as_f64() { "; nearest: " (nearest) }
        } } }
    } }
}

/// Says that there is nothing, and why.
pub(super) fn missing(why: &str) -> Markup {
    html! { p.missing { (why) } }
}

/// Parts of a whole as one bar: class and amount. What it shows stands beside it as text.
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

/// An instant, to the minute, in the form that programs read as well.
pub(super) fn when(at: DateTime<Utc>) -> Markup {
    html! {
        time datetime=(at.to_rfc3339()) title=(at.format("%Y-%m-%d %H:%M:%S UTC")) {
            (at.format("%Y-%m-%d %H:%M"))
        }
    }
}

/// How long ago, or until, in words: `12 min ago`, `in 3 h`.
pub(super) fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    let since = now - at;
    let length = span(since.abs());
    html! {
        time datetime=(at.to_rfc3339()) title=(at.format("%Y-%m-%d %H:%M:%S UTC")) {
            @if since.abs() < TimeDelta::seconds(2) { "just now" }
            @else if since > TimeDelta::zero() { (length) " ago" }
            @else { "in " (length) }
        }
    }
}

/// A length of time in its largest fitting unit.
pub(super) fn span(length: TimeDelta) -> String {
    let seconds = length.num_seconds();
    match seconds {
        0..=119 => format!("{seconds}\u{202f}s"),
        120..=7_199 => format!("{}\u{202f}min", seconds / 60),
        7_200..=172_799 => format!("{}\u{202f}h", seconds / 3_600),
        _ => format!("{}\u{202f}days", number::count((seconds / 86_400).unsigned_abs() as usize)),
    }
}

/// A count that the store keeps as a signed number.
pub(super) fn count(number: i64) -> String {
    number::count(usize::try_from(number).unwrap_or_default())
}

/// A chart that the script draws: its figures as JSON, which no name in it can leave.
pub(super) fn chart(label: &str, figures: &Value) -> Markup {
    let json = figures.to_string().replace('<', "\\u003c");
    html! {
        div.chart role="img" aria-label=(label) {
            script type="application/json" { (PreEscaped(json)) }
        }
    }
}

/// A proved gap: one that is not quite zero is not shown as zero.
pub(super) fn gap(share: f64) -> String {
    let least = 1e-6;
    if share > 0.0 && share < least {
        format!("< {}", number::percent(least))
    } else {
        number::percent(share)
    }
}

/// Steps through pages.
pub(super) fn pages(newer: Option<String>, older: Option<String>) -> Markup {
    html! {
        @if newer.is_some() || older.is_some() {
            nav.pages aria-label="Pages" {
                @if let Some(path) = newer { a href=(path) rel="prev" { "Newer" } }
                @if let Some(path) = older { a href=(path) rel="next" { "Older" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{bar, chart, span};
    use chrono::TimeDelta;

    #[test]
    fn lengths_have_the_unit_that_fits() {
        let of = |seconds| span(TimeDelta::seconds(seconds)).replace('\u{202f}', " ");
        assert_eq!([5, 130, 7_300, 200_000].map(of), ["5 s", "2 min", "2 h", "2 days"]);
    }

    #[test]
    fn nothing_leaves_a_chart() {
        let figures = serde_json::json!({ "label": "</script><b>" });
        let text = chart("x", &figures).into_string();
        assert!(!text.contains("</script><b>") && text.contains("\\u003c/script>"), "{text}");
    }

    #[test]
    fn a_bar_of_nothing_is_empty() {
        assert_eq!(bar(&[("free", 0.0)], 0.0).into_string().matches("<rect").count(), 1);
    }
}
