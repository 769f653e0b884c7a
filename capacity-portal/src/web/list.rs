//! Lists as tables: searched, filtered, sorted, with totals and numbered pages; or whole as CSV.

use super::link;
use super::ui::{self, Mood};
use crate::http::list::{ListKind, select};
use crate::http::list_filter::{Cell, Row};
use crate::http::{Problem, Site};
use axum::Json;
use axum::extract::{FromRequestParts, Query};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use report::number;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Rows on a page.
const ROWS: usize = 100;

/// Parameters of every list.
const COMMON: [&str; 5] = ["q", "order_by", "columns", "page", "format"];

/// The query of a page: pairs in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Params(Vec<(String, String)>);

impl FromRequestParts<Site> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Site) -> Result<Params, Problem> {
        let query = Query::try_from_uri(&parts.uri);
        let Query(pairs): Query<Vec<(String, String)>> =
            query.map_err(|error| Problem::bad_request("malformed", error.body_text()))?;
        if pairs.iter().any(|(name, value)| name.contains('\0') || value.contains('\0')) {
            return Err(Problem::zero_character());
        }
        Ok(Params(pairs))
    }
}

impl Params {
    /// The value of a parameter; empty if it is missing.
    pub(super) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(of, _)| of == name);
        found.map_or("", |(_, value)| value)
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    /// Refuses every other parameter.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => {
                Err(Problem::bad_request("malformed", format!("unknown parameter {name:?}")))
            }
            None => Ok(()),
        }
    }

    /// Path of a page with these parameters, of which one is changed; an empty value removes it.
    pub(super) fn path(&self, path: &str, changed: &[(&str, &str)]) -> String {
        let kept = self.0.iter().filter(|(name, _)| !changed.iter().any(|(of, _)| of == name));
        let kept = kept.map(|(name, value)| (name.as_str(), value.as_str()));
        with_query(path, kept.chain(changed.iter().copied()))
    }

    /// Hidden fields that keep the parameters in a form, without those that the form has.
    fn hidden(&self, without: &[&str]) -> Markup {
        html! {
            @for (name, value) in &self.0 {
                @if !value.is_empty() && !without.contains(&name.as_str()) {
                    input type="hidden" name=(name) value=(value);
                }
            }
        }
    }
}

/// A path with a query, without empty values.
pub(super) fn with_query<'a>(
    path: &str,
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut text = path.to_owned();
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    for (position, (name, value)) in pairs.enumerate() {
        let mark = if position == 0 { '?' } else { '&' };
        // Writing to a string does not fail.
        let _ = write!(text, "{mark}{name}={}", link::segment(value));
    }
    text
}

/// How a column is shown.
#[derive(Clone, Copy)]
pub(super) enum Shown {
    Text,
    /// A number, with the sum of all rows at the end.
    Count,
    /// A number without a sum.
    Number,
    /// A name that links to its page.
    Link(fn(&str) -> String),
    /// The use of a server, with its colour.
    Use,
    /// A state, with its colour.
    State(fn(&str) -> Mood),
    /// A word of a closed list, with spaces.
    Word,
    /// An instant.
    When,
    /// Anything else that is drawn from a row.
    Drawn(fn(&dyn Cells) -> Markup),
    /// The same, of text that may be long.
    Long(fn(&dyn Cells) -> Markup),
}

/// The values of a row.
pub(super) trait Cells {
    /// The value of a member.
    fn of(&self, member: &str) -> Cell<'_>;

    /// The text of a member; empty if it has none.
    fn text(&self, member: &str) -> String {
        match self.of(member) {
            Cell::Text(text) => text.into_owned(),
            _ => String::new(),
        }
    }
}

impl<R: Row> Cells for R {
    fn of(&self, member: &str) -> Cell<'_> {
        self.cell(member)
    }
}

/// A column of a list: a member of its rows.
pub(super) struct Column {
    pub(super) member: &'static str,
    pub(super) title: &'static str,
    pub(super) shown: Shown,
    /// Whether it is shown unless the reader chooses columns.
    pub(super) default: bool,
    /// Whether its values have an order.
    sorted: bool,
}

impl Column {
    pub(super) const fn new(member: &'static str, title: &'static str, shown: Shown) -> Column {
        Column { member, title, shown, default: true, sorted: true }
    }

    /// A column of lists or objects, which have no order.
    pub(super) const fn unsorted(self) -> Column {
        Column { sorted: false, ..self }
    }

    /// A column that is shown only if the reader chooses it.
    pub(super) const fn extra(self) -> Column {
        Column { default: false, ..self }
    }

    const fn is_number(&self) -> bool {
        matches!(self.shown, Shown::Count | Shown::Number)
    }

    /// Class of its cells.
    const fn class(&self) -> Option<&'static str> {
        match self.shown {
            Shown::Count | Shown::Number => Some("n"),
            Shown::When => Some("when"),
            Shown::Long(_) => Some("wide"),
            _ => None,
        }
    }

    fn markup<R: Row>(&self, row: &R) -> Markup {
        match (&row.cell(self.member), self.shown) {
            (_, Shown::Drawn(draw) | Shown::Long(draw)) => draw(row),
            (Cell::Null | Cell::Many(_), _) => html! { (number::NOTHING) },
            (Cell::Bool(of), _) => html! { @if *of { "yes" } @else { "no" } },
            (Cell::Number(of), _) => html! { (number::decimal(*of)) },
            (Cell::Text(of), Shown::Link(path)) => html! { a href=(path(of)) { (of) } },
            (Cell::Text(of), Shown::Use) => html! {
                span { span class={ "sw " (use_class(of)) } {} (of.replace('_', " ")) }
            },
            (Cell::Text(of), Shown::State(mood)) => ui::state(mood(of), of),
            (Cell::Text(of), Shown::Word) => html! { (of.replace('_', " ")) },
            (Cell::Text(of), Shown::When) => match DateTime::parse_from_rfc3339(of) {
                Ok(at) => ui::when(at.with_timezone(&Utc)),
                Err(_) => html! { (of) },
            },
            (Cell::Text(of), _) => html! { (of) },
        }
    }
}

/// Class of the style sheet of a use of servers.
fn use_class(word: &str) -> &'static str {
    match word {
        "in_use" => "in-use",
        "idle" => "idle",
        "shared_buffer" => "shared",
        "free" => "free",
        _ => "down",
    }
}

/// A filter that a list offers.
pub(super) struct Choice {
    /// Parameter of the page, and member of the rows.
    pub(super) member: &'static str,
    /// Members of which one has the value; empty: the one above.
    pub(super) any_of: &'static [&'static str],
    pub(super) label: &'static str,
    /// The values to choose from; empty: any text.
    pub(super) values: Vec<String>,
}

impl Choice {
    /// One of these values.
    pub(super) fn new<T: ToString>(
        member: &'static str,
        label: &'static str,
        values: impl IntoIterator<Item = T>,
    ) -> Choice {
        let values = values.into_iter().map(|of| of.to_string()).collect();
        Choice { member, any_of: &[], label, values }
    }

    /// Any text.
    pub(super) const fn text(member: &'static str, label: &'static str) -> Choice {
        Choice { member, any_of: &[], label, values: Vec::new() }
    }
}

/// A list of rows in memory.
pub(super) struct List {
    pub(super) kind: ListKind,
    /// A row, as a noun.
    pub(super) noun: &'static str,
    /// Path of the page.
    pub(super) path: String,
    /// Path of the same list in the API; `None`: the page itself answers in JSON.
    pub(super) api: Option<&'static str>,
    pub(super) columns: &'static [Column],
    /// What the search field covers: members and label.
    pub(super) search: (&'static [&'static str], &'static str),
    /// Members that always have these values.
    pub(super) fixed: Vec<(&'static str, String)>,
    /// Parameters of the page that say which rows there are.
    pub(super) own: &'static [&'static str],
}

/// What a list answers with.
pub(super) enum Answer {
    /// Part of a page.
    Part(Markup),
    /// A file.
    File(Response),
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl List {
    /// The filter of the API that selects the rows.
    fn filter(&self, params: &Params, choices: &[Choice]) -> Option<String> {
        let mut terms: Vec<String> = self
            .fixed
            .iter()
            .map(|(member, value)| format!("{member}={}", quoted(value)))
            .collect();
        for choice in choices {
            let value = params.get(choice.member);
            if !value.is_empty() {
                let members =
                    if choice.any_of.is_empty() { &[choice.member][..] } else { choice.any_of };
                let each = members.iter().map(|member| format!("{member}={}", quoted(value)));
                terms.push(each.collect::<Vec<_>>().join(" OR "));
            }
        }
        let wanted = params.get("q").trim();
        if !wanted.is_empty() {
            let each = self.search.0.iter().map(|member| format!("{member}:{}", quoted(wanted)));
            terms.push(each.collect::<Vec<_>>().join(" OR "));
        }
        (!terms.is_empty()).then(|| terms.join(" AND "))
    }

    /// Answers a request for this list. The columns are those of the query, or the default ones.
    pub(super) fn answer<R: Row>(
        &self,
        params: &Params,
        choices: &[Choice],
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Answer, Problem> {
        let members = choices.iter().map(|choice| choice.member);
        let known: Vec<&str> =
            COMMON.iter().copied().chain(self.own.iter().copied()).chain(members).collect();
        params.only(&known)?;
        let filter = self.filter(params, choices);
        let order_by = Some(params.get("order_by")).filter(|order| !order.is_empty());
        let page = params.get("page").parse::<usize>().unwrap_or(1).max(1);
        let chosen: Vec<&str> = params.all("columns").collect();
        let columns: Vec<&Column> = self
            .columns
            .iter()
            .enumerate()
            .filter(|(position, column)| match chosen.is_empty() {
                true => column.default,
                // The first column names the row.
                false => *position == 0 || chosen.contains(&column.member),
            })
            .map(|(_, column)| column)
            .collect();
        let mut sums = vec![0.0; columns.len()];
        let format = params.get("format");
        let whole = matches!(format, "csv" | "json");
        let from = if whole { 0 } else { (page - 1).saturating_mul(ROWS) };
        let range = if whole { 0..usize::MAX } else { from..from.saturating_add(ROWS) };
        let selected = select(self.kind, (filter.as_deref(), order_by), rows, range, |row: &R| {
            for (column, sum) in columns.iter().zip(&mut sums) {
                if let (Shown::Count, Cell::Number(of)) = (column.shown, row.cell(column.member)) {
                    *sum += of;
                }
            }
        })?;
        if whole {
            return Ok(Answer::File(match format {
                "csv" => self.csv(&columns, &selected.rows),
                _ => self.json(&selected.rows),
            }));
        }
        let query = [
            ("filter", filter.as_deref().unwrap_or_default()),
            ("order_by", order_by.unwrap_or_default()),
        ];
        let json = match self.api {
            Some(api) => with_query(api, query),
            None => params.path(&self.path, &[("format", "json"), ("page", "")]),
        };
        let (total, rows) = (selected.total, &selected.rows[..]);
        Ok(Answer::Part(html! {
            (self.toolbar(params, choices))
            div.tools {
                span.dim {
                    (number::counted(total, self.noun))
                    @if rows.len() < total && !rows.is_empty() {
                        ", " (number::count(from + 1)) " to " (number::count(from + rows.len()))
                    }
                }
                (self.chooser(params, &columns))
                a href=(params.path(&self.path, &[("format", "csv"), ("page", "")])) download { "CSV" }
                a href=(json) { "JSON" }
            }
            @if rows.is_empty() { (ui::missing(if total == 0 { "Nothing matches." } else { "There are no more rows." })) }
            @else { (self.table(params, &columns, rows, &sums)) }
            (self.numbers(params, page, total))
        }))
    }

    /// What is said below the newest rows of a table that has more, with a link to older ones. `cursor`: the parameter
    /// and its value for them.
    pub(super) fn older(&self, params: &Params, read: usize, cursor: (&str, &str)) -> Markup {
        let path = params.path(&self.path, &[cursor, ("page", "")]);
        html! {
            p.note { "Listed are the newest " (number::counted(read, self.noun)) ". "
                a href=(path) rel="next" { "Older ones" } }
        }
    }

    fn toolbar(&self, params: &Params, choices: &[Choice]) -> Markup {
        let own: Vec<&str> =
            ["q", "page", "format"].into_iter().chain(choices.iter().map(|of| of.member)).collect();
        html! {
            form.toolbar role="search" method="get" action=(self.path) {
                (params.hidden(&own))
                div.field { label for="q" { (self.search.1) }
                    input #q type="search" name="q" value=(params.get("q")) autocomplete="off"; }
                @for choice in choices {
                    @let chosen = params.get(choice.member);
                    div.field { label for=(choice.member) { (choice.label) }
                        @if choice.values.is_empty() {
                            input id=(choice.member) type="search" name=(choice.member) value=(chosen) autocomplete="off";
                        } @else { select id=(choice.member) name=(choice.member) {
                            option value="" { "Any" }
                            // An unknown value of the query stays chosen, so that the page shows its own filter.
                            @if !chosen.is_empty() && !choice.values.iter().any(|of| of == chosen) {
                                option value=(chosen) selected { (chosen) }
                            }
                            @for of in &choice.values {
                                option value=(of) selected[of == chosen] { (of.replace('_', " ")) }
                            }
                        } } }
                }
                button type="submit" { "Show" }
            }
        }
    }

    /// The choice of columns.
    fn chooser(&self, params: &Params, shown: &[&Column]) -> Markup {
        let is_shown = |column: &Column| shown.iter().any(|of| of.member == column.member);
        html! {
            details.menu {
                summary { "Columns" }
                form method="get" action=(self.path) {
                    (params.hidden(&["columns", "format"]))
                    // The first column is always shown; with its name in the query, no other column is chosen by default.
                    input type="hidden" name="columns" value=(self.columns[0].member);
                    @for column in &self.columns[1..] {
                        label.check { input type="checkbox" name="columns" value=(column.member) checked[is_shown(column)];
                            (column.title) }
                    }
                    button type="submit" { "Apply" }
                }
            }
        }
    }

    fn head(&self, params: &Params, column: &Column) -> Markup {
        let current = params.get("order_by");
        let current = if current.is_empty() { self.kind.order } else { current };
        let descending = format!("{} desc", column.member);
        // Largest first, where numbers are compared.
        let (first, then) = match column.is_number() {
            true => (descending.as_str(), column.member),
            false => (column.member, descending.as_str()),
        };
        let next = if current == first { then } else { first };
        let sorted = match current {
            of if of == column.member => Some("ascending"),
            of if of == descending => Some("descending"),
            _ => None,
        };
        let path = params.path(&self.path, &[("order_by", next), ("page", "")]);
        html! {
            th scope="col" role="columnheader" class=[column.is_number().then_some("n")] aria-sort=[sorted] {
                @if column.sorted { a.sort href=(path) { (column.title) } } @else { (column.title) } }
        }
    }

    fn table<R: Row>(
        &self,
        params: &Params,
        columns: &[&Column],
        rows: &[R],
        sums: &[f64],
    ) -> Markup {
        let totals = columns.iter().any(|column| matches!(column.shown, Shown::Count));
        html! {
            // Narrow screens show each row as a card, so roles are given: changed `display` would remove them.
            div.scroll { table.cards role="table" {
                caption.quiet { (self.noun) " list" }
                thead role="rowgroup" { tr role="row" { @for column in columns { (self.head(params, column)) } } }
                tbody role="rowgroup" { @for row in rows { tr role="row" {
                    @for (position, column) in columns.iter().enumerate() {
                        @let cell = column.markup(row);
                        @if position == 0 { th scope="row" role="rowheader" class=[column.is_number().then_some("n")] { (cell) } }
                        @else { td role="cell" class=[column.class()] data-label=(column.title) { (cell) } }
                    }
                } } }
                @if totals { tfoot role="rowgroup" { tr role="row" {
                    @for (position, (column, sum)) in columns.iter().zip(sums).enumerate() {
                        @if position == 0 { th scope="row" role="rowheader" { "All" } }
                        @else if let Shown::Count = column.shown {
                            td.n role="cell" data-label=(column.title) { (number::decimal(*sum)) }
                        } @else { td.empty role="cell" {} }
                    }
                } } }
            } }
        }
    }

    /// Links to numbered pages: the first, the last, and those around this one.
    fn numbers(&self, params: &Params, page: usize, total: usize) -> Markup {
        let last = total.div_ceil(ROWS).max(1);
        let near = page.saturating_sub(2).max(1)..=page.saturating_add(2).min(last);
        let mut shown: Vec<usize> = [1].into_iter().chain(near).chain([last]).collect();
        shown.sort_unstable();
        shown.dedup();
        let to = |page: usize| params.path(&self.path, &[("page", &page.to_string())]);
        html! {
            @if last > 1 { nav.pages aria-label="Pages" {
                @if page > 1 { a href=(to(page - 1)) rel="prev" { "Previous" } }
                @for (position, of) in shown.iter().enumerate() {
                    @if position > 0 && shown[position - 1] + 1 < *of { span.dim { "…" } }
                    a href=(to(*of)) aria-current=[(*of == page).then_some("page")] { (number::count(*of)) }
                }
                @if page < last { a href=(to(page + 1)) rel="next" { "Next" } }
            } }
        }
    }

    fn json<R: Row>(&self, rows: &[R]) -> Response {
        let rows: Vec<Value> = rows.iter().map(Row::json).collect();
        Json(json!({ self.kind.rows: rows })).into_response()
    }

    fn csv<R: Row>(&self, columns: &[&Column], rows: &[R]) -> Response {
        let members: Vec<String> = columns.iter().map(|column| field(column.member)).collect();
        let mut text = members.join(",") + "\r\n";
        for row in rows {
            for (position, column) in columns.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                match row.cell(column.member) {
                    Cell::Null => {}
                    Cell::Bool(of) => text.push_str(if of { "true" } else { "false" }),
                    Cell::Number(of) => text.push_str(&of.to_string()),
                    Cell::Text(of) => text.push_str(&field(&of)),
                    Cell::Many(of) => text.push_str(&field(&of.to_string())),
                }
            }
            text.push_str("\r\n");
        }
        let name = format!("attachment; filename=\"{}.csv\"", self.kind.rows);
        ([(CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, name)], text)
            .into_response()
    }
}

/// Links between lists that belong together, given by path and title.
pub(super) fn switch(lists: &[(&str, &str)], path: &str) -> Markup {
    html! {
        nav aria-label="Lists" { ul.switch {
            @for (to, title) in lists { li { a href=(to) aria-current=[(*to == path).then_some("page")] { (title) } } }
        } }
    }
}

/// A field of CSV (RFC 4180).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Params, field, quoted, with_query};

    #[test]
    fn changed_parameter_replaces_its_value() {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let params = Params([("msb", "m 1"), ("page", "3"), ("q", "")].map(pair).to_vec());
        assert_eq!(params.path("/servers", &[("page", "4")]), "/servers?msb=m%201&page=4");
        assert_eq!(params.path("/servers", &[("page", "")]), "/servers?msb=m%201");
        assert_eq!(with_query("/servers", []), "/servers");
    }

    #[test]
    fn text_is_quoted_in_csv_and_filters() {
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("plain"), "plain");
        assert_eq!(quoted("a\"b\\"), "\"a\\\"b\\\\\"");
    }
}
