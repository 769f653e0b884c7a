//! Search over everything that has a name or an id: from the field in the header of every page.

use super::layout::{NavItem, Page, Reader};
use super::list::Params;
use super::{link, ui};
use crate::http::{Problem, Site, in_time};
use crate::region_summary::RegionSummary;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Redirect, Response};
use fleet::RegionSnapshot;
use maud::{Markup, html};
use report::number;
use std::collections::BTreeSet;
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// Results listed of each kind.
const SHOWN: usize = 20;

/// Results of one kind.
struct Group {
    /// Plural of the kind.
    title: &'static str,
    /// Number of all that match.
    count: usize,
    /// The first ones: path, name, and what it is.
    first: Vec<(String, String, String)>,
}

impl Group {
    fn new(title: &'static str) -> Group {
        Group { title, count: 0, first: Vec::new() }
    }

    fn add(&mut self, result: impl FnOnce() -> (String, String, String)) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(result());
        }
    }
}

/// What is looked for, in lower case.
struct Wanted(String);

impl Wanted {
    fn is_in(&self, name: &str) -> bool {
        // Most names are ASCII and far shorter than a search over a million of them may allocate.
        name.len() >= self.0.len() && name.to_ascii_lowercase().contains(&self.0)
    }
}

/// Handler of `GET /search`. The only result is opened at once.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    params: Params,
) -> Result<Response, Problem> {
    let text = params.get("q").trim().to_owned();
    let mut groups = Vec::new();
    if !text.is_empty() {
        if let Ok(id) = text.parse::<Uuid>() {
            groups.extend(by_id(&site, &reader, id).await?);
        }
        if let Some(summary) = site.region_summaries.current(&site.region).await? {
            let (wanted, scope) =
                (Wanted(text.to_ascii_lowercase()), reader.scope().map(str::to_owned));
            let found = spawn_blocking(move || by_name(&summary, &wanted, scope.as_deref()));
            groups.extend(found.await.expect("it neither panics nor is cancelled"));
        }
    }
    groups.retain(|group| group.count > 0);
    let exact = groups.iter().flat_map(|group| &group.first).find(|(_, name, _)| *name == text);
    let only =
        (groups.iter().map(|group| group.count).sum::<usize>() == 1).then(|| &groups[0].first[0]);
    if let Some((path, ..)) = exact.or(only) {
        return Ok(Redirect::to(path).into_response());
    }
    Ok(page(&text, &groups, &reader).into_response())
}

/// What has this id: a solve, a request, or a plan.
async fn by_id(site: &Site, reader: &Reader, id: Uuid) -> Result<Vec<Group>, Problem> {
    let mut groups = Vec::new();
    let text = id.to_string();
    let mut found = |title, path: String, what: &str| {
        let mut group = Group::new(title);
        group.add(|| (path, text.clone(), what.to_owned()));
        groups.push(group);
    };
    if let Some(of) = in_time(site.broker.request(id.into())).await?
        && reader.sees(&of.asking.owner)
    {
        found("Requests", link::request(&id.to_string()), of.asking.reservation());
    }
    if !reader.is_scoped() && in_time(site.broker.solve(id.into())).await?.is_some() {
        found("Solves", format!("/solves/{id}"), "solve");
    }
    Ok(groups)
}

fn by_name(summary: &RegionSummary, wanted: &Wanted, scope: Option<&str>) -> Vec<Group> {
    let region: &RegionSnapshot = summary.region();
    let mut reservations = Group::new("Reservations");
    let mut owners = Group::new("Owners");
    let mut known = BTreeSet::new();
    for of in region.reservations.iter().filter(|of| scope.is_none_or(|scope| *of.owner == *scope))
    {
        if wanted.is_in(&of.id) {
            let what = format!("{}, owner {}", of.kind.as_str().replace('_', " "), of.owner);
            reservations.add(|| (link::reservation(&of.id), of.id.to_string(), what));
        }
        if wanted.is_in(&of.owner) && known.insert(&of.owner) {
            let path = link::reservations_of(&of.owner);
            owners.add(|| (path, of.owner.to_string(), "owner of reservations".to_owned()));
        }
    }
    let mut groups = vec![reservations, owners];
    if scope.is_some() {
        return groups;
    }
    let datacenter =
        |msb: fleet::MsbIx| &region.datacenters[region.msbs[msb.ix()].datacenter.ix()].id;
    let mut msbs = Group::new("MSBs");
    for (at, of) in region.msbs.iter().enumerate().filter(|(_, of)| wanted.is_in(&of.id)) {
        let what = format!("in datacenter {}", datacenter(fleet::MsbIx::new(at)));
        msbs.add(|| (link::msb(&of.id), of.id.to_string(), what));
    }
    let mut racks = Group::new("Racks");
    for of in region.racks.iter().filter(|of| wanted.is_in(&of.id)) {
        let what = || format!("in MSB {}", region.msbs[of.msb.ix()].id);
        racks.add(|| (link::rack(&of.id), of.id.to_string(), what()));
    }
    let mut types = Group::new("Hardware types");
    for of in region.hardware_types.iter().filter(|of| wanted.is_in(of)) {
        types.add(|| (link::servers_of_type(of), of.to_string(), "hardware type".to_owned()));
    }
    let mut servers = Group::new("Servers");
    for of in region.servers.iter().filter(|of| wanted.is_in(&of.id)) {
        let what = || {
            let rack = &region.racks[of.rack.ix()];
            format!("{} in rack {}", region.hardware_types[of.hardware_type.ix()], rack.id)
        };
        servers.add(|| (link::server(&of.id), of.id.to_string(), what()));
    }
    groups.extend([msbs, racks, types, servers]);
    groups
}

fn page(text: &str, groups: &[Group], reader: &Reader) -> Html<String> {
    let body = html! {
        h1 { "Search" }
        form.toolbar role="search" method="get" action="/search" {
            div.field { label for="q" { "Name or id" }
                input #q type="search" name="q" value=(text) autocomplete="off" autofocus; }
            button type="submit" { "Search" }
        }
        @if text.is_empty() { p.missing { "Search for servers, racks, MSBs, hardware types, reservations, owners, and ids of requests and solves." } }
        @else if groups.is_empty() { (ui::missing("Nothing has this name or id.")) }
        @for group in groups { (list(group, text)) }
    };
    Page { nav: NavItem::Elsewhere, title: "Search", charts: false, body }.show(reader)
}

fn list(group: &Group, text: &str) -> Markup {
    html! {
        section {
            h2 { (group.title) " " span.ref { (number::count(group.count)) } }
            ul.found { @for (path, name, what) in &group.first { li { a href=(path) { (name) } " " span.dim { (what) } } } }
            @if group.count > group.first.len() {
                p.note { "The first " (group.first.len()) " of " (number::count(group.count)) ". "
                    @match group.title {
                        "Servers" => a href={ "/servers?q=" (link::segment(text)) } { "All servers with this name" },
                        "Racks" => a href={ "/racks?q=" (link::segment(text)) } { "All racks with this name" },
                        _ => "Type more of the name.",
                    } }
            }
        }
    }
}
