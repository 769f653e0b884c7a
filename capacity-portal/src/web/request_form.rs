//! The form that requests capacity. Every field has the name of its member in the API, and shows its errors.

use super::layout::Reader;
use super::request_fields::{
    AFFINITY, ALLOWED, CONTRACT, COUNT, FILLED_FROM, SERVERS, SURVIVES, TYPE, VALUE, field_of,
    value,
};
use super::ui;
use crate::http::auth::Role;
use crate::region_summary::RegionSummary;
use api_types::problem::FieldError;
use fleet::{
    DatacenterName, HardwareTypeIx, HardwareTypeName, Name, PRIORITY_DEFAULT, PartitionName,
    ReservationKind,
};
use maud::{Markup, html};

/// An input of the form, with what the common case needs.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) name: &'a str,
    pub(super) label: &'a str,
    pub(super) hint: &'a str,
    /// `text`, `number` or `datetime-local`.
    kind: &'static str,
    /// `decimal` if the text is a number with a decimal point.
    mode: &'static str,
    required: bool,
}

impl<'a> Input<'a> {
    const fn text(name: &'a str, label: &'a str, hint: &'a str) -> Input<'a> {
        Input { name, label, hint, kind: "text", mode: "text", required: false }
    }

    const fn decimal(name: &'a str, label: &'a str, hint: &'a str) -> Input<'a> {
        Input { mode: "decimal", ..Input::text(name, label, hint) }
    }

    const fn whole(name: &'a str, label: &'a str, hint: &'a str) -> Input<'a> {
        Input { kind: "number", mode: "numeric", ..Input::text(name, label, hint) }
    }

    const fn time(name: &'a str, label: &'a str, hint: &'a str) -> Input<'a> {
        Input { kind: "datetime-local", ..Input::text(name, label, hint) }
    }
}

const SHARES: [Input<'static>; 3] = [
    Input::decimal("msb_alpha", "Largest share in one MSB", "for example 0.05"),
    Input::decimal("rack_alpha", "Largest share in one rack", "for example 0.01"),
    Input::decimal("affinity_theta", "Tolerance", "of the datacenter shares below"),
];

const REPLICAS: [Input<'static>; 2] = [
    Input::whole("replicas_per_msb", "Replicas in one MSB, at most", ""),
    Input::whole("replicas", "Replicas in total", ""),
];

/// Fields of the churn contract, which is the disruption budget of a reservation.
pub(super) const BUDGET: [Input<'static>; 4] = [
    Input::decimal(
        "churn_contract.in_use_percent",
        "Servers in use that may leave, percent",
        "from 0 to 100",
    ),
    Input::decimal("churn_contract.window_seconds", "Within, hours", "for example 24"),
    Input::text("churn_contract.quiet", "Quiet times", "for example 08:00-18:00; none leave then"),
    Input::text("churn_contract.zone", "Time zone", "for example Europe/Berlin; empty for UTC"),
];

/// Values and labels of the grant policy.
const POLICIES: [(&str, &str); 3] = [
    ("all", "all of it, or nothing"),
    ("best_effort", "as much as there is"),
    ("at_least", "at least the amount beside"),
];

/// Fields, and groups of fields, beside those of hardware types and datacenters.
const FIELDS: [&str; 27] = [
    "reservation",
    "owner",
    "priority",
    "servers",
    "hardware_types",
    "capacity_rru",
    "rru",
    "profile",
    "msb_alpha",
    "rack_alpha",
    "affinity_theta",
    "affinity",
    "allowed_datacenters",
    "survives",
    "replicas",
    "replicas_per_msb",
    "host_profile",
    "starts_at",
    "ends_at",
    "grant_policy",
    "grant_policy.at_least_rru",
    "labels",
    "churn_contract",
    "churn_contract.in_use_percent",
    "churn_contract.window_seconds",
    "churn_contract.quiet",
    "churn_contract.zone",
];

/// The form with its values.
pub(super) struct FormView<'a> {
    pub(super) reader: &'a Reader,
    pub(super) summary: Option<&'a RegionSummary>,
    pub(super) fields: &'a [(String, String)],
    /// Names of the RRU profiles.
    pub(super) profiles: Vec<Name>,
    /// What the API found wrong.
    pub(super) errors: &'a [FieldError],
}

/// Id of the input of a field. Names of hardware types may contain characters that ids must not have.
pub(super) fn id(name: &str) -> String {
    name.chars().map(|of| if of.is_ascii_alphanumeric() || of == '_' { of } else { '-' }).collect()
}

impl FormView<'_> {
    fn field(&self, name: &str) -> &str {
        value(self.fields, name)
    }

    fn is_on(&self, name: &str) -> bool {
        self.field(name) == "on"
    }

    fn counts_servers(&self) -> bool {
        self.field(COUNT) == SERVERS
    }

    fn types(&self) -> &[HardwareTypeName] {
        self.summary.map_or(&[], |summary| &summary.region().hardware_types)
    }

    fn datacenters(&self) -> Vec<&DatacenterName> {
        let datacenters = self.summary.map_or(&[][..], |summary| &summary.region().datacenters);
        datacenters.iter().map(|of| &of.id).collect()
    }

    fn partitions(&self) -> impl Iterator<Item = &PartitionName> + Clone {
        let partitions = self.summary.map_or(&[][..], |summary| &summary.region().partitions);
        partitions.iter().map(|of| &of.name)
    }

    fn is_field(&self, name: &str) -> bool {
        FIELDS.contains(&name)
            || name.strip_prefix(VALUE).is_some_and(|of| self.types().iter().any(|ty| **ty == *of))
            || name
                .strip_prefix(AFFINITY)
                .is_some_and(|of| self.datacenters().iter().any(|dc| ***dc == *of))
    }

    /// What is wrong with a field; empty if nothing is.
    fn wrong(&self, name: &str) -> String {
        let at = |error: &FieldError| field_of(&error.field, |of| self.is_field(of)) == Some(name);
        let found = self.errors.iter().filter(|error| at(error)).map(ui::field_error);
        found.collect::<Vec<_>>().join("; ")
    }

    /// The element with what is wrong with a field.
    fn error(&self, name: &str) -> Markup {
        let wrong = self.wrong(name);
        html! { @if !wrong.is_empty() { span.error id={ (id(name)) "-wrong" } { (wrong) } } }
    }

    /// Ids of the elements that describe a field, and whether it is wrong.
    fn described(&self, name: &str, hinted: bool) -> (Option<String>, Option<&'static str>) {
        let wrong = !self.wrong(name).is_empty();
        let parts = [(wrong, "wrong"), (hinted, "hint")].into_iter().filter(|(there, _)| *there);
        let ids: Vec<String> = parts.map(|(_, part)| format!("{}-{part}", id(name))).collect();
        ((!ids.is_empty()).then(|| ids.join(" ")), wrong.then_some("true"))
    }

    fn input(&self, of: Input<'_>) -> Markup {
        let hinted = !of.hint.is_empty();
        let (described, invalid) = self.described(of.name, hinted);
        let long = (of.kind == "text").then_some("128");
        html! {
            div.field { label for=(id(of.name)) { (of.label) }
                input id=(id(of.name)) type=(of.kind) inputmode=(of.mode) name=(of.name) required[of.required]
                    autocomplete="off" maxlength=[long] value=(self.field(of.name))
                    aria-describedby=[described] aria-invalid=[invalid];
                (self.error(of.name))
                @if hinted { span.hint id={ (id(of.name)) "-hint" } { (of.hint) } } }
        }
    }

    pub(super) fn show(&self) -> Markup {
        let (reader, summary) = (self.reader, self.summary);
        let region = summary.map(RegionSummary::region);
        let known = region.into_iter().flat_map(|region| &region.reservations);
        let known =
            known.filter(|of| of.kind == ReservationKind::Guaranteed && reader.sees(&of.owner));
        // By default a new reservation has an embedded buffer.
        let is_new = self.fields.len() <= 1;
        let (described, invalid) = self.described("reservation", true);
        let priority = format!("0 is the most important; a new reservation has {PRIORITY_DEFAULT}");
        html! {
            form.fields #request method="post" action="/request" data-plan="/request/live" {
                (reader.csrf())
                input type="hidden" name=(FILLED_FROM) value=(self.field(FILLED_FROM));
                div.field { label for="reservation" { "Reservation" }
                    input #reservation type="text" name="reservation" required list="reservations" autocomplete="off"
                        maxlength="128" value=(self.field("reservation")) aria-describedby=[described] aria-invalid=[invalid];
                    (self.error("reservation"))
                    span.hint #reservation-hint { "a new name, or the name of the reservation to change" }
                    datalist #reservations { @for of in known { option value=(of.id) {} } } }
                div.fields.two {
                    (self.input(Input::text("owner", "Owner", "needed for a new reservation")))
                    (self.input(Input::whole("priority", "Priority", &priority)))
                }
                (self.capacity())
                label.check { input type="checkbox" name="msb_buffer" checked[is_new || self.is_on("msb_buffer")];
                    span { "Embedded buffer"
                        span.hint { "the reservation survives the loss of any one MSB" } } }
                (self.placement())
                (self.life())
                div.actions {
                    button.main type="submit" disabled[!reader.may(Role::Owner)] { "Show the plan" }
                    button type="submit" formaction="/request/submit" disabled[!reader.may(Role::Owner)] { "Submit the request" }
                    @if !reader.may(Role::Owner) { span.note { "Requests require the role owner." } }
                }
                p.hint { "A plan is applied when you have seen it. A submitted request is decided without another question: "
                    "now, or when it starts, and by its grant policy." }
            }
        }
    }

    /// The amount, in RRU with the value of each hardware type, or in servers of the ticked types. The style sheet
    /// hides the part that does not count.
    fn capacity(&self) -> Markup {
        let servers = self.counts_servers();
        let chosen = self.field("profile");
        html! {
            fieldset.capacity {
                legend { "Capacity" }
                div.switch-row role="radiogroup" aria-label="Count the capacity in" {
                    label.check { input type="radio" name=(COUNT) value="rru" checked[!servers]; span { "RRU" } }
                    label.check { input type="radio" name=(COUNT) value=(SERVERS) checked[servers];
                        span { "servers of any of these types" } }
                }
                div.fields.by-servers {
                    (self.input(Input::whole(SERVERS, "Servers", "each of the ticked types counts as one")))
                    fieldset { legend { "Accepted hardware types" }
                        (self.error("hardware_types"))
                        div.fields.slim { @for (position, name) in self.types().iter().enumerate() {
                            @let field = format!("{TYPE}{name}");
                            label.check { input type="checkbox" name=(field) checked[self.is_on(&field)];
                                span { (name) span.hint { (free(self.summary, HardwareTypeIx::new(position))) " free" } } }
                        } } }
                }
                div.fields.by-rru {
                    (self.input(Input::decimal("capacity_rru", "Capacity, RRU", "an RRU is your unit of work: a server of each type is worth as many as you say below")))
                    fieldset { legend { "Hardware: RRU of one server" }
                        (self.error("rru"))
                        @if !self.profiles.is_empty() {
                            div.field { label for="profile" { "RRU profile" }
                                select #profile name="profile" aria-describedby="profile-hint" {
                                    option value="" selected[chosen.is_empty()] { "none, use the values below" }
                                    @for name in &self.profiles { option value=(name) selected[chosen == &**name] { (name) } }
                                }
                                (self.error("profile"))
                                span.hint #profile-hint { "its current values replace those below" } }
                        }
                        span.hint { "Fill in each hardware type that the reservation accepts." }
                        div.fields.slim { @for (position, name) in self.types().iter().enumerate() {
                            @let (field, free) = (format!("{VALUE}{name}"), free(self.summary, HardwareTypeIx::new(position)));
                            (self.input(Input::decimal(&field, name, &format!("{free} free"))))
                        } } }
                }
            }
        }
    }

    /// Whether any of these fields has a value or an error, so that its part of the form is shown open.
    fn any<'f>(&self, names: impl IntoIterator<Item = &'f str>) -> bool {
        let used = |name: &str| !self.field(name).is_empty() || !self.wrong(name).is_empty();
        names.into_iter().any(used)
    }

    /// Spread, datacenters, replicas and host profile: most requests leave them empty.
    fn placement(&self) -> Markup {
        let datacenters = self.datacenters();
        let survives = |name: &PartitionName| format!("{SURVIVES}{name}");
        let allowed = |name: &DatacenterName| format!("{ALLOWED}{name}");
        let shares: Vec<String> =
            datacenters.iter().map(|name| format!("{AFFINITY}{name}")).collect();
        let fields = SHARES.iter().chain(&REPLICAS).map(|of| of.name);
        let fields = fields.chain(["host_profile", "affinity", "allowed_datacenters", "survives"]);
        let open = self.any(fields.chain(shares.iter().map(String::as_str)))
            || datacenters.iter().any(|name| self.is_on(&allowed(name)))
            || self.partitions().any(|name| self.is_on(&survives(name)));
        html! {
            details open[open] { summary { "Spread, datacenters, replicas and host profile" }
                div.placement { span.hint { "Empty fields use the region's defaults." }
                div.fields.slim { @for of in SHARES { (self.input(of)) } }
                @if !datacenters.is_empty() {
                    fieldset { legend { "Share of each datacenter" }
                        (self.error("affinity"))
                        span.hint { "of the capacity without its buffer; the shares add up to at most 1; empty for no preference" }
                        div.fields.slim { @for (name, field) in datacenters.iter().zip(&shares) {
                            (self.input(Input::decimal(field, name, "")))
                        } } }
                    fieldset { legend { "Allowed datacenters" }
                        (self.error("allowed_datacenters"))
                        span.hint { "including the buffer; none ticked allows all" }
                        @for name in &datacenters {
                            label.check { input type="checkbox" name=(allowed(name)) checked[self.is_on(&allowed(name))];
                                span { (name) } }
                        } }
                }
                @if self.partitions().next().is_some() {
                    fieldset { legend { "Other fault domains" }
                        (self.error("survives"))
                        span.hint { "the reservation survives the loss of any one domain of the ticked partitions, with or without an embedded buffer for MSBs" }
                        @for name in self.partitions() {
                            label.check { input type="checkbox" name=(survives(name)) checked[self.is_on(&survives(name))];
                                span { (name) } }
                        } }
                }
                fieldset { legend { "Replica rule" }
                    span.hint { "limits the share of the capacity in one MSB, so that a quorum survives its loss; empty for no rule" }
                    div.fields.slim { @for of in REPLICAS { (self.input(of)) } } }
                (self.input(Input::text("host_profile", "Host profile", "OS configuration of the servers; empty for any")))
                }
            }
        }
    }

    /// Dates, grant policy, disruption budget and labels.
    fn life(&self) -> Markup {
        let policy = self.field("grant_policy");
        let least = "grant_policy.at_least_rru";
        let fields = ["starts_at", "ends_at", "labels", "churn_contract", "grant_policy", least];
        let open = self.any(fields.into_iter().chain(BUDGET.iter().map(|of| of.name)));
        let (described, invalid) = self.described("labels", true);
        html! {
            details open[open] { summary { "Dates, grant policy, disruption budget and labels" }
                div.placement {
                div.fields.two {
                    (self.input(Input::time("starts_at", "Start, UTC", "of a submitted request: it is decided then, and no capacity is reserved before")))
                    (self.input(Input::time("ends_at", "End, UTC", "the servers are freed then; empty for no end")))
                    div.field { label for="grant_policy" { "Grant policy" }
                        select #grant_policy name="grant_policy" aria-describedby="grant_policy-hint" {
                            @for (word, text) in POLICIES { option value=(word) selected[policy == word] { (text) } }
                        }
                        (self.error("grant_policy"))
                        span.hint #grant_policy-hint { "of a submitted request: what counts as a grant" } }
                    (self.input(Input::decimal(least, "At least, RRU", "")))
                }
                fieldset { legend { "Disruption budget" }
                    (self.error(CONTRACT.trim_end_matches('.')))
                    span.hint { "limits how many servers in use the solver takes away; no share, no limit" }
                    div.fields.slim { @for of in BUDGET { (self.input(of)) } } }
                div.field { label for="labels" { "Labels" }
                    textarea #labels name="labels" rows="2" autocomplete="off" spellcheck="false"
                        aria-describedby=[described] aria-invalid=[invalid] { (self.field("labels")) }
                    (self.error("labels"))
                    span.hint #labels-hint { "NAME=VALUE, one on each line" } }
                }
            }
        }
    }
}

fn free(summary: Option<&RegionSummary>, ty: HardwareTypeIx) -> String {
    report::number::count(summary.map_or(0, |summary| summary.types[ty.ix()].free))
}
