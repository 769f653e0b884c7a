//! The form that requests capacity.

use super::layout::Reader;
use super::request_fields::{AFFINITY, ALLOWED, VALUE, value};
use crate::http::auth::Role;
use crate::region_summary::RegionSummary;
use fleet::{DatacenterName, HardwareTypeIx, Name, ReservationKind};
use maud::{Markup, html};

/// A field that overrides a default of the region.
struct Share {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
}

const SHARES: [Share; 3] = [
    Share { name: "msb_alpha", label: "Largest share in one MSB", hint: "for example 0.05" },
    Share { name: "rack_alpha", label: "Largest share in one rack", hint: "for example 0.01" },
    Share { name: "affinity_theta", label: "Tolerance", hint: "of the datacenter shares below" },
];

/// The form with its values.
pub(super) struct FormView<'a> {
    pub(super) reader: &'a Reader,
    pub(super) summary: Option<&'a RegionSummary>,
    pub(super) fields: &'a [(String, String)],
    /// Names of the RRU profiles.
    pub(super) profiles: Vec<Name>,
}

impl FormView<'_> {
    fn field(&self, name: &str) -> &str {
        value(self.fields, name)
    }

    pub(super) fn show(&self) -> Markup {
        let (reader, summary) = (self.reader, self.summary);
        let region = summary.map(RegionSummary::region);
        let known = region.into_iter().flat_map(|region| &region.reservations);
        let known =
            known.filter(|of| of.kind == ReservationKind::Guaranteed && reader.sees(&of.owner));
        // By default a new reservation has an embedded buffer.
        let is_new = self.fields.len() <= 1;
        html! {
            form.fields #request method="post" action="/request" data-plan="/request/live" {
                (reader.csrf())
                div.field { label for="reservation" { "Reservation" }
                    input #reservation type="text" name="reservation" required list="reservations" autocomplete="off"
                        maxlength="128" value=(self.field("reservation")) aria-describedby="reservation-hint";
                    span.hint #reservation-hint { "a new name, or the name of the reservation to change" }
                    datalist #reservations { @for of in known { option value=(of.id) {} } } }
                div.fields.two {
                    div.field { label for="capacity_rru" { "Capacity, RRU" }
                        input #capacity_rru type="text" inputmode="decimal" name="capacity_rru" required autocomplete="off"
                            value=(self.field("capacity_rru")); }
                    div.field { label for="owner" { "Owner" }
                        input #owner type="text" name="owner" autocomplete="off" maxlength="128" value=(self.field("owner"))
                            aria-describedby="owner-hint";
                        span.hint #owner-hint { "needed for a new reservation" } }
                    div.field { label for="priority" { "Priority" }
                        input #priority type="number" name="priority" min="0" step="1" value=(self.field("priority"))
                            aria-describedby="priority-hint";
                        span.hint #priority-hint { "0 is the most important" } }
                }
                label.check { input type="checkbox" name="msb_buffer" checked[is_new || self.field("msb_buffer") == "on"];
                    span { "Embedded buffer"
                        span.hint { "the reservation survives the loss of any one MSB" } } }
                (self.hardware())
                (self.placement())
                div.actions {
                    button.main type="submit" disabled[!reader.may(Role::Owner)] { "Show the plan" }
                    @if !reader.may(Role::Owner) { span.note { "Planning requires the role owner." } }
                }
            }
        }
    }

    /// RRU of a server of each hardware type: by a profile, or type by type.
    fn hardware(&self) -> Markup {
        let types = self.summary.map_or(&[][..], |summary| &summary.region().hardware_types);
        let chosen = self.field("profile");
        html! {
            fieldset {
                legend { "Hardware: RRU of one server" }
                @if !self.profiles.is_empty() {
                    div.field { label for="profile" { "RRU profile" }
                        select #profile name="profile" aria-describedby="profile-hint" {
                            option value="" selected[chosen.is_empty()] { "none, use the values below" }
                            @for name in &self.profiles { option value=(name) selected[chosen == &**name] { (name) } }
                        }
                        span.hint #profile-hint { "its current values replace those below" } }
                }
                span.hint { "Fill in each hardware type that the reservation accepts." }
                div.fields.slim { @for (position, name) in types.iter().enumerate() {
                    div.field {
                        @let id = format!("type-{position}");
                        label for=(id) { (name) }
                        input id=(id) type="text" inputmode="decimal" name={ (VALUE) (name) } autocomplete="off"
                            value=(self.field(&format!("{VALUE}{name}"))) aria-describedby={ (id) "-free" };
                        span.hint id={ (id) "-free" } { (free(self.summary, HardwareTypeIx::new(position))) " free" }
                    }
                } }
            }
        }
    }

    /// Spread, datacenters, replicas and host profile: most requests leave them empty.
    fn placement(&self) -> Markup {
        let datacenters = self.summary.map_or(&[][..], |summary| &summary.region().datacenters);
        let datacenters: Vec<&DatacenterName> = datacenters.iter().map(|of| &of.id).collect();
        let share = |name: &str| self.field(&format!("{AFFINITY}{name}"));
        let allowed = |name: &str| self.field(&format!("{ALLOWED}{name}")) == "on";
        let any = SHARES.iter().any(|of| !self.field(of.name).is_empty())
            || datacenters.iter().any(|name| !share(name).is_empty() || allowed(name))
            || !self.field("replicas").is_empty()
            || !self.field("host_profile").is_empty();
        html! {
            details open[any] { summary { "Spread, datacenters, replicas and host profile" }
                div.placement { span.hint { "Empty fields use the region's defaults." }
                div.fields.slim { @for of in &SHARES {
                    div.field { label for=(of.name) { (of.label) }
                        input id=(of.name) type="text" inputmode="decimal" name=(of.name) autocomplete="off"
                            value=(self.field(of.name)) aria-describedby={ (of.name) "-hint" };
                        span.hint id={ (of.name) "-hint" } { (of.hint) } }
                } }
                @if !datacenters.is_empty() {
                    fieldset { legend { "Share of each datacenter" }
                        span.hint { "of the capacity without its buffer; the shares add up to at most 1; empty for no preference" }
                        div.fields.slim { @for (position, name) in datacenters.iter().enumerate() {
                            div.field {
                                @let id = format!("datacenter-{position}");
                                label for=(id) { (name) }
                                input id=(id) type="text" inputmode="decimal" name={ (AFFINITY) (name) } autocomplete="off"
                                    value=(share(name)); }
                        } } }
                }
                @if !datacenters.is_empty() {
                    fieldset { legend { "Allowed datacenters" }
                        // Shows that the form has these checkboxes even if none is ticked.
                        input type="hidden" name=(ALLOWED) value="";
                        span.hint { "including the buffer; none ticked allows all" }
                        @for name in &datacenters {
                            label.check { input type="checkbox" name={ (ALLOWED) (name) } checked[allowed(name)];
                                span { (name) } }
                        } }
                }
                fieldset { legend { "Replica rule" }
                    span.hint { "limits the share of the capacity in one MSB, so that a quorum survives its loss; empty for no rule" }
                    div.fields.slim {
                        div.field { label for="replicas_per_msb" { "Replicas in one MSB, at most" }
                            input #replicas_per_msb type="number" name="replicas_per_msb" min="1" max="1000" step="1"
                                value=(self.field("replicas_per_msb")); }
                        div.field { label for="replicas" { "Replicas in total" }
                            input #replicas type="number" name="replicas" min="1" max="1000" step="1"
                                value=(self.field("replicas")); }
                    } }
                div.field { label for="host_profile" { "Host profile" }
                    input #host_profile type="text" name="host_profile" autocomplete="off" maxlength="128"
                        value=(self.field("host_profile")) aria-describedby="host-profile-hint";
                    span.hint #host-profile-hint { "OS configuration of the servers; empty for any" } }
                }
            }
        }
    }
}

fn free(summary: Option<&RegionSummary>, ty: HardwareTypeIx) -> String {
    report::number::count(summary.map_or(0, |summary| summary.types[ty.ix()].free))
}
