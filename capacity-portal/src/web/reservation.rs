//! One reservation: promise, holdings, what an MSB loss would leave, shortfall with reasons, moves,
//! churn contract, history.

use super::chart::{Across, Chart, Scale, Series, Unit};
use super::composition::Composition;
use super::layout::{NavItem, Page, Reader};
use super::live::{AsOf, topics};
use super::ui::{self, Mood};
use super::{arrival, autosize, demand, link, reservation_actions, reservations, trail};
use crate::http::auth::Role;
use crate::http::{Problem, Site, in_time};
use crate::region_summary::RegionSummary;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Html;
use broker::{
    Arrivals, ContractUse, Entry, MoverStatus, OpenMove, PromiseVersion, Rollout, State as _,
};
use chrono::{DateTime, Utc};
use control::Topic;
use fleet::audit::{Certified, Standing};
use fleet::explain::{Explainer, Explanation, HeldBy, Limit};
use fleet::{MsbIx, Reservation, ReservationIx, ReservationKind, ReservationName, Rru, Targets};
use maud::{Markup, html};
use report::number;
use serde_json::json;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Versions of the promise read.
const VERSIONS: u32 = 50;

/// Entries of the audit trail read, and shown.
const ENTRIES: u32 = 1_000;
const ENTRIES_SHOWN: usize = 12;

/// Holders listed of servers that the reservation could use.
const HOLDERS: usize = 12;

/// Moves listed.
const MOVES_SHOWN: usize = 12;

/// Handler of `GET /reservations/{name}`.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Path(name): Path<String>,
) -> Result<Html<String>, Problem> {
    let broker = &site.broker;
    let unknown = || {
        let detail = format!("there is no reservation {name:?}");
        Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
    };
    let as_of = AsOf::begin(&site).await?;
    let mut summary = site.region_summaries.current(&site.region).await?.ok_or_else(unknown)?;
    if summary.region().reservation(&name).is_none() {
        // It may have been granted since the region was read: a plan that was applied links here at once.
        in_time(site.region.read_current()).await?;
        summary = site.region_summaries.current(&site.region).await?.ok_or_else(unknown)?;
    }
    let ix = summary.region().reservation(&name).ok_or_else(unknown)?;
    if !reader.sees(&summary.region().reservations[ix.ix()].owner) {
        return Err(unknown());
    }
    let as_of = as_of.with(&site, Some(&summary)).await?;
    let arrivals = in_time(broker.arrivals(&name)).await?;
    let mover = in_time(broker.mover_status()).await?;
    let promises = in_time(broker.promise_versions(&name, None, VERSIONS)).await?;
    let contract = in_time(broker.contracts(Some(&[name.as_str().into()]))).await?.pop();
    let moves = in_time(broker.moves_under_way()).await?;
    let card = in_time(broker.reservation_summary(&name)).await?;
    let entries = in_time(broker.reservation_history(&name, None, ENTRIES)).await?;
    let waiting = reservations::waiting(&site, &reader, Some(&name)).await?;
    let demand = demand::section(&site, &name, as_of.now()).await?;
    let of = &summary.region().reservations[ix.ix()];
    let autosize = match of.kind {
        ReservationKind::Guaranteed => autosize::section(&site, &reader, of, as_of.now()).await?,
        ReservationKind::SharedBuffer | ReservationKind::Elastic => html! {},
    };
    let Reasons { explanation, limits, composition } = explain(summary.clone(), ix).await?;
    let of = ReservationPage {
        reader: &reader,
        summary: &summary,
        ix,
        now: as_of.now(),
        as_of,
        arrivals,
        mover,
        promises,
        contract,
        moves,
        requested: card.as_ref().and_then(|card| card.in_force.and_then(|of| of.asked)),
        rollout: card.and_then(|card| card.rollout),
        entries,
        explanation,
        limits,
        composition,
        waiting,
        demand,
        autosize,
    };
    let body = of.body();
    Ok(Page { nav: NavItem::Reservations, title: &name, charts: true, body }.show(&reader))
}

/// The explanation of the current holdings.
struct Reasons {
    explanation: Explanation,
    limits: Vec<Limit>,
    composition: Composition,
}

/// Explains the holdings of a reservation, on a blocking thread: it takes as long as an audit.
async fn explain(summary: Arc<RegionSummary>, ix: ReservationIx) -> Result<Reasons, Problem> {
    let explained = spawn_blocking(move || {
        let region = summary.region();
        let explainer = Explainer::new(region, &Targets::unchanged(region));
        let guaranteed = region.reservations[ix.ix()].kind == ReservationKind::Guaranteed;
        let limit = guaranteed.then(|| summary.audit.reservations[ix.ix()].msb_spread.limit);
        let composition = Composition {
            types: explainer.composition(ix, limit),
            further: explainer.further_types(ix),
        };
        Reasons { explanation: explainer.explain(ix), limits: explainer.limits(ix), composition }
    });
    explained.await.map_err(|error| Problem::unavailable("region_unreadable", error.to_string()))
}

struct ReservationPage<'a> {
    reader: &'a Reader,
    summary: &'a RegionSummary,
    ix: ReservationIx,
    now: DateTime<Utc>,
    as_of: AsOf,
    /// The servers that were assigned last.
    arrivals: Option<Arrivals>,
    mover: MoverStatus,
    promises: Vec<PromiseVersion>,
    contract: Option<ContractUse>,
    moves: Vec<OpenMove>,
    rollout: Option<Rollout>,
    /// What was requested last; `None`: the promise was loaded.
    requested: Option<Rru>,
    entries: Vec<Entry>,
    explanation: Explanation,
    limits: Vec<Limit>,
    composition: Composition,
    /// Notice about requests that start later.
    waiting: Markup,
    /// Request, held and used capacity over time.
    demand: Markup,
    /// Whether its request follows demand.
    autosize: Markup,
}

impl ReservationPage<'_> {
    fn reservation(&self) -> &Reservation {
        &self.summary.region().reservations[self.ix.ix()]
    }

    fn audit(&self) -> &fleet::audit::ReservationAudit {
        &self.summary.audit.reservations[self.ix.ix()]
    }

    fn body(&self) -> Markup {
        let of = self.reservation();
        html! {
            div.head { div {
                (ui::crumbs(&[("/reservations", "Reservations"), (&link::reservations_of(&of.owner), &of.owner)]))
                h1 { (of.id) }
                p.facts #facts data-live=(topics(&[Topic::Region, Topic::Moves])) {
                    (reservations::state(self.audit(), self.summary))
                    @if of.kind != ReservationKind::Guaranteed { span { (of.kind.as_str().replace('_', " ")) } }
                    span { "priority " (of.priority) }
                    @if of.msb_buffer { span { "survives the loss of any one MSB" } }
                    @for partition in &of.survives {
                        span { "survives the loss of any one " (self.summary.region().partitions[partition.ix()].name) }
                    }
                    @if let Some(profile) = &of.host_profile { span { "host profile " code { (profile) } } }
                    @if let Some(rollout) = self.rollout.as_ref().filter(|of| of.outdated > 0 || of.paused.is_some()) {
                        span { "host profile rolled out to " (rollout.done()) " of " (rollout.servers) " servers"
                            @if rollout.refused > 0 { ", refused by " (rollout.refused) }
                            @if let Some(paused) = &rollout.paused { ", paused by " (paused.by) ": " (paused.why) } }
                    }
                    @if let Some(promise) = self.promises.first() { span { "promise version " (promise.version) } }
                }
                (self.domains())
                p.facts { (self.as_of.show()) }
            }
                div.actions {
                    a.button href=(link::servers(&of.id)) { "Servers" }
                    @if of.kind == ReservationKind::Guaranteed {
                        a.button href={ "/request?reservation=" (link::segment(&of.id)) } { "Change" }
                        @if self.reader.may(Role::Owner) { (self.end()) }
                    }
                }
            }
            @if let Some(rollout) = self.rollout.as_ref().filter(|of| of.outdated > 0 || of.paused.is_some()) {
                @if self.reader.may(Role::Operator) { (reservation_actions::rollout_form(&of.id, rollout, self.reader)) }
            }
            div #standing data-live=(topics(&[Topic::Region, Topic::Moves, Topic::Requests])) {
                (self.waiting)
                (self.arriving())
                (self.shortfall())
                (self.tiles())
            }
            div #composition data-live=(topics(&[Topic::Region])) {
                (self.composition.section(&of.id, self.summary, self.explanation.shortfall.as_ref().map(|short| &short.hardware)))
            }
            (self.demand)
            (self.autosize)
            div.columns { (self.by_msb()) div { (self.moves()) (self.contract()) } }
            (self.history())
        }
    }

    /// The button that plans the end of the reservation. The plan asks before anything changes.
    fn end(&self) -> Markup {
        let change = json!({ "reservation": self.reservation().id, "remove": true });
        html! {
            form method="post" action="/request" {
                (self.reader.csrf())
                input type="hidden" name="change" value=(change);
                button.danger type="submit" { "End" }
            }
        }
    }

    /// How many of the servers assigned last have arrived, and what the rest bring.
    fn arriving(&self) -> Markup {
        let row = self.audit();
        let arriving = reservations::arriving(row, self.summary);
        html! {
            @if let Some(of) = &self.arrivals { (arrival::show(of, &self.mover)) }
            @if let Some(of) = arriving { p.note {
                (number::rru(of.rru)) " RRU are assigned and arriving. "
                @if self.summary.figures(row).is_decided() { "The promise is in force once all servers have arrived." }
                @else { "The promised capacity is not reached even when they have arrived." }
            } }
        }
    }

    fn shortfall(&self) -> Markup {
        let Some(short) = &self.explanation.shortfall else { return html! {} };
        let figures = self.summary.figures(self.audit());
        let is_short = figures.standing() == Standing::Short;
        html! {
            div class={ "notice " @if is_short { "bad" } @else { "warn" } } {
                strong.verdict {
                    @if is_short { (number::rru(figures.missing_now())) " RRU are missing now" }
                    @else if figures.missing_after_loss() > Rru::ZERO { "All promised capacity is there now; "
                        (number::rru(figures.missing_after_loss())) " RRU would be missing after one more " (self.loss()) }
                    @else { "The promise holds now, and not once all moves are done" }
                }
                p { "With all moves done, " (number::rru(short.missing)) " RRU of the guarantee are missing: "
                    (short.reason.as_str().replace('_', " ")) "." }
                p { (short.sentence) }
                @if !short.held_by.is_empty() {
                    p { "Reservations that hold servers of its hardware types:" }
                    ul { @for of in short.held_by.iter().take(HOLDERS) { li { (self.holder(of)) } } }
                }
                @if !self.limits.is_empty() {
                    p { "In the way of the missing capacity:" }
                    ul { @for limit in &self.limits { li { (limit.sentence) } } }
                }
                @if !self.explanation.relaxations.is_empty() {
                    p { "Each of these changes alone would make the promise possible with the servers that are free now:" }
                    ul { @for relaxation in &self.explanation.relaxations { li { (relaxation) } } }
                }
            }
        }
    }

    /// A reservation that holds servers which this one could use, and why it keeps them. Its name is shown to
    /// readers who may see it.
    fn holder(&self, of: &HeldBy) -> Markup {
        html! {
            @if self.reader.sees(&of.owner) { a href=(link::reservation(&of.reservation_id)) { (of.reservation_id) } }
            @else { "another reservation" }
            " (priority " (of.priority) ") holds " (number::counted(of.servers, "server")) ": " (of.right.sentence())
        }
    }

    fn tiles(&self) -> Markup {
        let (of, row) = (self.reservation(), self.audit());
        let figures = self.summary.figures(row);
        let has = self.summary.held.statuses.get(&of.id).cloned().unwrap_or_default();
        let decided = reservations::is_decided(row, self.summary);
        let largest = has.worst_msb.as_ref().map_or(Rru::ZERO, |(_, rru)| *rru);
        let requested = self.requested.unwrap_or(figures.promised);
        let mood = |missing: Rru, bad: Mood| match missing > Rru::ZERO {
            true if decided => Mood::Warn,
            true => bad,
            false => Mood::Good,
        };
        let rru = |amount: Rru| html! { (number::rru(amount)) };
        let survives = of.msb_buffer || !of.survives.is_empty();
        if of.kind == ReservationKind::Elastic {
            return html! { dl.tiles {
                (ui::tile(Mood::Plain, "Borrowed servers", &html! { (number::count(self.explanation.borrowed_servers)) },
                    &html! { "from idle buffers; recalled when needed" }))
            } };
        }
        html! {
            dl.tiles {
                (ui::tile(Mood::Plain, "Promised, RRU", &rru(figures.promised),
                    &html! { (number::rru(requested)) " requested"
                        @if let Some(promise) = self.promises.first() { "; since " (ui::when(promise.promised_at)) } }))
                (ui::tile(mood(figures.missing_now(), Mood::Bad), "Held now, RRU", &rru(figures.held),
                    &html! { @if figures.missing_now() > Rru::ZERO { (number::rru(figures.missing_now())) " missing now; " }
                        (number::counted(has.owned.servers, "server"))
                        @if has.out_of_use.servers > 0 { ", " (number::count(has.out_of_use.servers)) " more out of service" } }))
                (ui::tile(mood(figures.missing_after_loss(), Mood::Warn), "Guaranteed now, RRU", &rru(figures.guaranteed()),
                    &html! { @if figures.missing_after_loss() > Rru::ZERO {
                            (number::rru(figures.missing_after_loss())) @if survives { " missing after one more " (self.loss()) } @else { " missing" }
                            @if decided { ", until servers arrive" } }
                        @else if survives { "all of it, after one more " (self.loss()) } @else { "all of it, while no MSB is lost" } }))
                @if let Some(row) = self.certified().filter(|row| row.msb_buffer) {
                    (self.left("Left at once, RRU", row.left_at_once, row.needed_at_once()))
                    (self.left("Left within 30 minutes, RRU", row.left, row.capacity))
                }
                (ui::tile(Mood::Plain, "Largest MSB", &html! { @match &has.worst_msb { Some((msb, _)) => (self.reader.msb(msb)), None => (number::NOTHING) } },
                    &html! { (number::rru(largest)) " RRU, "
                        (number::percent(largest.to_f64() / has.owned.rru.to_f64().max(1e-9))) }))
                @if of.msb_buffer {
                    (ui::tile(Mood::Plain, "Embedded buffer", &html! { (number::percent(largest.to_f64() / of.capacity.to_f64().max(1e-9))) },
                        &html! { "of the promised capacity; lower bound "
                            (number::percent(row.smallest_buffer.to_f64() / of.capacity.to_f64().max(1e-9))) }))
                }
            }
        }
    }

    /// The losses that its promise counts with.
    fn loss(&self) -> &'static str {
        let of = self.reservation();
        match (of.msb_buffer, of.survives.is_empty()) {
            (_, true) => "MSB loss",
            (true, false) => "loss of an MSB or another fault domain",
            (false, false) => "loss of a fault domain",
        }
    }

    /// Tile with the RRU that the worst MSB loss would leave, and the RRU that must be left.
    fn left(&self, title: &str, left: Rru, needed: Rru) -> Markup {
        let mood = if left < needed { Mood::Bad } else { Mood::Good };
        ui::tile(
            mood,
            title,
            &html! { (number::rru(left)) },
            &html! { "of " (number::rru(needed)) " needed, after one more MSB loss, the worst" },
        )
    }

    /// What the loss of any one domain other than an MSB would leave, if it survives that.
    fn domains(&self) -> Markup {
        let Some(row) = self.certified() else { return html! {} };
        let Some((of, holds)) = row.domains.zip(row.survives_domains()) else { return html! {} };
        let region = self.summary.region();
        let survives = self.reservation().survives.iter();
        let names: Vec<&str> =
            survives.map(|partition| &*region.partitions[partition.ix()].name).collect();
        html! {
            p.facts #domains data-live=(topics(&[Topic::Region, Topic::Moves])) {
                span { "Any one " (names.join(" or ")) " lost: at least " (number::rru(of.left)) " RRU left, "
                    (number::rru(of.left_at_once)) " at once; at most " (number::rru(of.largest)) " in one domain" }
                @if !holds { (ui::state(Mood::Warn, "less than promised")) }
            }
        }
    }

    /// Row of the certificate; `None` if the reservation is not guaranteed.
    fn certified(&self) -> Option<&Certified> {
        self.summary.held.certificate.row(&self.reservation().id)
    }

    fn by_msb(&self) -> Markup {
        let row = self.audit();
        let certified = self.certified();
        let amounts = certified.map_or(&row.msb_amounts, |row| &row.by_msb);
        let most = amounts.iter().copied().max().unwrap_or_default();
        let region = self.summary.region();
        let msbs = self.summary.by_datacenter.iter().flatten().copied();
        let msbs: Vec<MsbIx> = msbs.filter(|msb| amounts[msb.ix()] > Rru::ZERO).collect();
        let left = |left: Rru, needed: Rru| {
            html! {
                td.n { @if row.msb_buffer && left < needed { strong.error { (number::rru(left)) } } @else { (number::rru(left)) } }
            }
        };
        html! {
            section #places data-live=(topics(&[Topic::Region])) {
                h2 { "By MSB" }
                @if msbs.is_empty() { (ui::missing("The reservation owns no available server.")) } @else {
                    p.lead { "The largest share is the embedded buffer: the RRU that the worst MSB loss would cost." }
                    div.scroll { table {
                        caption.quiet { "RRU owned in each MSB, and RRU left without that MSB" }
                        thead { tr { th scope="col" { "MSB" } th scope="col" { "" } th.n scope="col" { "Here, RRU" }
                            @if certified.is_some() {
                                th.n scope="col" { "Left at once" } th.n scope="col" { "In 30 minutes" }
                            } } }
                        tbody { @for msb in msbs {
                            @let here = amounts[msb.ix()];
                            @let of = &region.msbs[msb.ix()];
                            tr {
                                th scope="row" { (self.reader.msb(&of.id)) " " span.dim { (region.datacenters[of.datacenter.ix()].id) } }
                                td.graph { (ui::bar(&[(if here == most { "shared" } else { "in-use" }, here.to_f64())], most.to_f64())) }
                                td.n { a href={ (link::servers(&row.reservation_id)) "?msb=" (link::segment(&of.id)) } { (number::rru(here)) } }
                                @if let Some(row) = certified {
                                    (left(row.at_once_after_loss(msb), row.needed_at_once()))
                                    (left(row.after_loss(msb), row.capacity))
                                }
                            }
                        } }
                    } }
                    @if !row.datacenters.iter().all(|of| of.wanted.is_none()) { (self.affinity()) }
                }
            }
        }
    }

    fn affinity(&self) -> Markup {
        html! {
            h3 { "Datacenter shares" }
            div.scroll { table.slim {
                caption.quiet { "Shares of the requested capacity in each datacenter" }
                thead { tr { th scope="col" { "Datacenter" } th.n scope="col" { "Wanted" } th.n scope="col" { "Current" } th.n scope="col" { "Beyond tolerance, RRU" } } }
                tbody { @for of in &self.audit().datacenters { tr {
                    th scope="row" { (of.datacenter) }
                    td.n { (of.wanted.map_or(number::NOTHING.to_owned(), number::percent)) }
                    td.n { (of.share.map_or(number::NOTHING.to_owned(), number::percent)) }
                    td.n { (number::decimal((of.violation * 100.0).round() / 100.0)) }
                } } }
            } }
        }
    }

    fn moves(&self) -> Markup {
        let id = &self.reservation().id;
        let of = |end: &Option<ReservationName>| end.as_deref() == Some(&**id);
        let arriving: Vec<_> =
            self.moves.iter().filter(|m| of(&m.target) && !of(&m.source)).collect();
        let leaving: Vec<_> =
            self.moves.iter().filter(|m| of(&m.source) && !of(&m.target)).collect();
        let all = arriving.len() + leaving.len();
        let in_use = leaving.iter().filter(|m| m.in_use).count();
        html! {
            section #moves data-live=(topics(&[Topic::Moves])) {
                h2 { "Moves under way" }
                @if all == 0 { (ui::missing("No server is arriving or leaving.")) } @else {
                    p { (number::counted(arriving.len(), "server")) " arriving, " (number::counted(leaving.len(), "server"))
                        " leaving, " (number::count(in_use)) " of these in use." }
                    div.scroll { table {
                        caption.quiet { "Servers that are arriving or leaving" }
                        thead { tr { th scope="col" { "Server" } th scope="col" { "Direction" } th scope="col" { "State" } th scope="col" { "Since" } } }
                        tbody { @for m in arriving.iter().chain(&leaving).take(MOVES_SHOWN) { tr {
                            th scope="row" { a href=(link::server(&m.server)) { (m.server) } }
                            td { @if of(&m.target) { "arriving" } @else { "leaving" } }
                            td { (ui::state(Mood::Plain, m.state.as_str())) }
                            td.when { (ui::ago(m.state_at, self.now)) }
                        } } }
                    } }
                    @if all > MOVES_SHOWN { p.note { "Shown: " (MOVES_SHOWN) " of " (number::counted(all, "server")) ". "
                        a href=(link::servers(id)) { "All servers of the reservation" } } }
                }
            }
        }
    }

    fn contract(&self) -> Markup {
        html! {
            section #churn data-live=(topics(&[Topic::Region, Topic::Moves])) {
                h2 { "Churn contract" }
                @match &self.contract {
                    None => (ui::missing("There is no churn contract: the solver may move servers in use whenever the gain exceeds the price of the moves.")),
                    Some(of) => {
                        @let seconds = of.contract.window.as_secs_f64();
                        p { "At most " (number::percent_round(f64::from(of.contract.in_use_micro) / 1e6))
                            " of the servers in use may leave within " (number::seconds(seconds)) ". So far "
                            strong { (number::count(of.left as usize)) " of " (number::count(of.allowed() as usize)) } " have left, and "
                            (number::count(of.leaving as usize)) " are leaving." }
                        @if !of.contract.quiet.is_empty() {
                            p { "Quiet times (" (of.contract.zone) "): "
                                @for (position, quiet) in of.contract.quiet.iter().enumerate() { @if position > 0 { ", " } (quiet) }
                                @if of.quiet_now { " " (ui::state(Mood::Warn, "quiet now")) } }
                        }
                        p.note { "Set by " (of.set_by) ", " (ui::ago(of.set_at, self.now)) "." }
                    }
                }
                @if self.reservation().kind == ReservationKind::Guaranteed && self.reader.may(Role::Operator) {
                    (reservation_actions::contract_form(&self.reservation().id, self.contract.as_ref(), self.reader))
                }
            }
        }
    }

    fn history(&self) -> Markup {
        let oldest_first: Vec<_> = self.promises.iter().rev().collect();
        let mut at: Vec<f64> =
            oldest_first.iter().map(|of| of.promised_at.timestamp() as f64).collect();
        let mut values: Vec<f64> = oldest_first.iter().map(|of| of.capacity.to_f64()).collect();
        if let Some(last) = values.last().copied() {
            at.push(self.now.timestamp() as f64);
            values.push(last);
        }
        let shown = &self.entries[..self.entries.len().min(ENTRIES_SHOWN)];
        html! {
            section #history data-live=(topics(&[Topic::Region, Topic::Requests])) {
                h2 { "History" }
                @if self.promises.len() > 1 {
                    (Chart {
                        label: "Promised capacity over time", across: Across::Time, across_label: "When", unit: Unit::Rru,
                        scale: Scale::FromZero, stepped: true, at, span: None, zoom: None, series: vec![Series::new("Promised", "primal", values)],
                    }.show())
                }
                @if !self.promises.is_empty() {
                    div.scroll { table.slim {
                        caption { "Versions of the promise, newest first" }
                        thead { tr { th.n scope="col" { "Version" } th scope="col" { "Since" } th.n scope="col" { "RRU" } th.n scope="col" { "Priority" } th scope="col" { "Owner" } } }
                        tbody { @for of in self.promises.iter().take(ENTRIES_SHOWN) { tr {
                            td.n { (of.version) } td.when { (ui::when(of.promised_at)) } td.n { (number::rru(of.capacity)) } td.n { (of.priority) } td { (of.owner) }
                        } } }
                    } }
                }
                @if !shown.is_empty() {
                    (trail::table(shown, "Changes of the reservation, newest first", !self.reader.is_scoped()))
                    @if self.entries.len() > shown.len() && !self.reader.is_scoped() {
                        p.note { a href={ "/trail?subject=" (link::segment(&self.reservation().id)) } { "All changes" } }
                    }
                }
            }
        }
    }
}
