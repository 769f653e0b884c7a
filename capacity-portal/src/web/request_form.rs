//! The form that asks for capacity, as it is shown.

use super::frame::Reader;
use super::picture::Picture;
use super::request::Fields;
use crate::api::authority::Role;
use fleet::{HardwareTypeIx, Name, Reservation, ReservationKind};
use maud::{Markup, html};

/// What the names of the fields with values of hardware types begin with.
pub(super) const VALUE: &str = "rru.";

/// What the names of the fields with shares of datacenters begin with.
pub(super) const AFFINITY: &str = "affinity.";

/// What the names of the fields of allowed datacenters begin with.
pub(super) const ALLOWED: &str = "allowed.";

/// The fields of a reservation as it is.
pub(super) fn fields(of: &Reservation, picture: &Picture) -> Fields {
    let mut fields: Fields = Vec::new();
    let mut say = |name: &str, value: String| fields.push((name.to_owned(), value));
    say("reservation", of.id.to_string());
    say("owner", of.owner.to_string());
    say("capacity_rru", of.capacity.to_string());
    say("priority", of.priority.to_string());
    if of.msb_buffer {
        say("msb_buffer", "on".to_owned());
    }
    for &(ty, value) in &of.rru {
        let name = &picture.region().hardware_types[ty.ix()];
        say(&format!("{VALUE}{name}"), value.to_string());
    }
    for (name, value) in SHARES.iter().zip([of.msb_alpha, of.rack_alpha, of.affinity_theta]) {
        say(name.name, value.map_or_else(String::new, |value| value.to_string()));
    }
    for &(datacenter, share) in &of.affinity {
        let name = &picture.region().datacenters[datacenter.ix()].id;
        say(&format!("{AFFINITY}{name}"), share.to_string());
    }
    for datacenter in &of.allowed_datacenters {
        let name = &picture.region().datacenters[datacenter.ix()].id;
        say(&format!("{ALLOWED}{name}"), "on".to_owned());
    }
    if let Some(rule) = of.replica_rule {
        say("replicas", rule.replicas.to_string());
        say("replicas_per_msb", rule.per_msb.to_string());
    }
    if let Some(profile) = &of.host_profile {
        say("host_profile", profile.to_string());
    }
    fields
}

/// The value of a field; empty, if there is none.
pub(super) fn field<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    fields.iter().find(|(of, _)| of == name).map_or("", |(_, value)| value.trim())
}

/// A field that overrides a rule of the region.
struct Share {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
}

const SHARES: [Share; 3] = [
    Share { name: "msb_alpha", label: "Most in one MSB", hint: "as a share, such as 0.05" },
    Share { name: "rack_alpha", label: "Most in one rack", hint: "as a share, such as 0.01" },
    Share { name: "affinity_theta", label: "May differ by", hint: "from the shares below" },
];

/// The form, and what it is filled in with.
pub(super) struct FormView<'a> {
    pub(super) reader: &'a Reader,
    pub(super) picture: Option<&'a Picture>,
    pub(super) fields: &'a [(String, String)],
    /// The names of RRU profiles.
    pub(super) profiles: Vec<Name>,
}

impl FormView<'_> {
    fn field(&self, name: &str) -> &str {
        field(self.fields, name)
    }

    pub(super) fn show(&self) -> Markup {
        let (reader, picture) = (self.reader, self.picture);
        let region = picture.map(Picture::region);
        let known = region.into_iter().flat_map(|region| &region.reservations);
        let known =
            known.filter(|of| of.kind == ReservationKind::Guaranteed && reader.sees(&of.owner));
        // A new reservation is shown with the buffer that it has by default.
        let is_new = self.fields.len() <= 1;
        html! {
            form.fields #request method="post" action="/request" data-live="/request/live" {
                (reader.csrf())
                div.field { label for="reservation" { "Reservation" }
                    input #reservation type="text" name="reservation" required list="reservations" autocomplete="off"
                        maxlength="128" value=(self.field("reservation")) aria-describedby="reservation-hint";
                    span.hint #reservation-hint { "a new name, or one there is to change it" }
                    datalist #reservations { @for of in known { option value=(of.id) {} } } }
                div.fields.two {
                    div.field { label for="capacity_rru" { "Capacity, RRU" }
                        input #capacity_rru type="text" inputmode="decimal" name="capacity_rru" required autocomplete="off"
                            value=(self.field("capacity_rru")); }
                    div.field { label for="owner" { "Owner" }
                        input #owner type="text" name="owner" autocomplete="off" maxlength="128" value=(self.field("owner"))
                            aria-describedby="owner-hint";
                        span.hint #owner-hint { "of a new reservation" } }
                    div.field { label for="priority" { "Priority" }
                        input #priority type="number" name="priority" min="0" step="1" value=(self.field("priority"))
                            aria-describedby="priority-hint";
                        span.hint #priority-hint { "0 is the most important" } }
                }
                label.check { input type="checkbox" name="msb_buffer" checked[is_new || self.field("msb_buffer") == "on"];
                    span { "Survives the loss of any one MSB"
                        span.hint { "an embedded buffer is kept for it" } } }
                (self.hardware())
                (self.wishes())
                div.actions {
                    button.main type="submit" disabled[!reader.may(Role::Owner)] { "Plan it" }
                    @if !reader.may(Role::Owner) { span.note { "Planning needs the role owner." } }
                }
            }
        }
    }

    /// What a server of each type is worth, by an RRU profile or one by one.
    fn hardware(&self) -> Markup {
        let types = self.picture.map_or(&[][..], |picture| &picture.region().hardware_types);
        let chosen = self.field("profile");
        html! {
            fieldset {
                legend { "Hardware, RRU of one server" }
                @if !self.profiles.is_empty() {
                    div.field { label for="profile" { "RRU profile" }
                        select #profile name="profile" aria-describedby="profile-hint" {
                            option value="" selected[chosen.is_empty()] { "none: the values below" }
                            @for name in &self.profiles { option value=(name) selected[chosen == &**name] { (name) } }
                        }
                        span.hint #profile-hint { "its values of now are taken in place of those below" } }
                }
                span.hint { "of each type that will do; leave the others empty" }
                div.fields.slim { @for (position, name) in types.iter().enumerate() {
                    div.field {
                        @let id = format!("type-{position}");
                        label for=(id) { (name) }
                        input id=(id) type="text" inputmode="decimal" name={ (VALUE) (name) } autocomplete="off"
                            value=(self.field(&format!("{VALUE}{name}"))) aria-describedby={ (id) "-free" };
                        span.hint id={ (id) "-free" } { (free(self.picture, HardwareTypeIx::new(position))) " free" }
                    }
                } }
            }
        }
    }

    /// What most leave as the region has it.
    fn wishes(&self) -> Markup {
        let datacenters = self.picture.map_or(&[][..], |picture| &picture.region().datacenters);
        let datacenters: Vec<&Name> = datacenters.iter().map(|of| &of.id).collect();
        let share = |name: &str| self.field(&format!("{AFFINITY}{name}"));
        let allowed = |name: &str| self.field(&format!("{ALLOWED}{name}")) == "on";
        let any = SHARES.iter().any(|of| !self.field(of.name).is_empty())
            || datacenters.iter().any(|name| !share(name).is_empty() || allowed(name))
            || !self.field("replicas").is_empty()
            || !self.field("host_profile").is_empty();
        html! {
            details open[any] { summary { "Spread, datacenters, replicas and host profile" }
                div.wishes { span.hint { "What is left empty is as the region has it." }
                div.fields.slim { @for of in &SHARES {
                    div.field { label for=(of.name) { (of.label) }
                        input id=(of.name) type="text" inputmode="decimal" name=(of.name) autocomplete="off"
                            value=(self.field(of.name)) aria-describedby={ (of.name) "-hint" };
                        span.hint id={ (of.name) "-hint" } { (of.hint) } }
                } }
                @if !datacenters.is_empty() {
                    fieldset { legend { "Share wanted in each datacenter" }
                        span.hint { "of the capacity, its buffer apart; 1 together at most; all empty: no share is wanted" }
                        div.fields.slim { @for (position, name) in datacenters.iter().enumerate() {
                            div.field {
                                @let id = format!("datacenter-{position}");
                                label for=(id) { (name) }
                                input id=(id) type="text" inputmode="decimal" name={ (AFFINITY) (name) } autocomplete="off"
                                    value=(share(name)); }
                        } } }
                }
                @if !datacenters.is_empty() {
                    fieldset { legend { "Only in these datacenters" }
                        // Says that the form has these fields, whatever is ticked.
                        input type="hidden" name=(ALLOWED) value="";
                        span.hint { "its buffer included; none ticked: it may lie in all" }
                        @for name in &datacenters {
                            label.check { input type="checkbox" name={ (ALLOWED) (name) } checked[allowed(name)];
                                span { (name) } }
                        } }
                }
                fieldset { legend { "Replicas of what it stores" }
                    span.hint { "no MSB holds more than this part of the capacity; empty: no such rule" }
                    div.fields.slim {
                        div.field { label for="replicas_per_msb" { "At most, in one MSB" }
                            input #replicas_per_msb type="number" name="replicas_per_msb" min="1" max="1000" step="1"
                                value=(self.field("replicas_per_msb")); }
                        div.field { label for="replicas" { "Of this many" }
                            input #replicas type="number" name="replicas" min="1" max="1000" step="1"
                                value=(self.field("replicas")); }
                    } }
                div.field { label for="host_profile" { "Host profile" }
                    input #host_profile type="text" name="host_profile" autocomplete="off" maxlength="128"
                        value=(self.field("host_profile")) aria-describedby="host-profile-hint";
                    span.hint #host-profile-hint { "the OS configuration of its servers; empty: any" } }
                }
            }
        }
    }
}

fn free(picture: Option<&Picture>, ty: HardwareTypeIx) -> String {
    report::number::count(picture.map_or(0, |picture| picture.types[ty.ix()].free))
}
