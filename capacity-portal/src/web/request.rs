//! Asking for capacity: a form that says while it is filled in what would come of it.

use super::frame::{Page, Place, Reader};
use super::picture::Picture;
use super::{link, plan};
use crate::api::Site;
use crate::api::authority::Role;
use crate::api::problem::Problem;
use crate::api::v1::plans;
use axum::extract::{Form, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use fleet::{HardwareTypeIx, Reservation, ReservationKind};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What the names of the fields with values of hardware types begin with.
const VALUE: &str = "rru.";

/// For which reservation; empty: a new one.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Asked {
    reservation: String,
}

/// A form as it is sent: a field may stand in it any number of times.
type Fields = Vec<(String, String)>;

/// The form.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Query(Asked { reservation }): Query<Asked>,
) -> Result<Html<String>, Problem> {
    let picture = site.pictures.now(&site.region).await?;
    let region = picture.as_deref().map(Picture::region);
    let found = region.and_then(|region| {
        let of = &region.reservations[region.reservation(&reservation)?.ix()];
        (of.kind == ReservationKind::Guaranteed && reader.sees(&of.owner)).then_some(of)
    });
    let fields = found.zip(picture.as_deref()).map_or_else(
        || vec![("reservation".to_owned(), reservation.clone())],
        |(of, picture)| fields(of, picture),
    );
    Ok(page(&reader, picture.as_deref(), &fields, None))
}

/// The fields of a reservation as it is.
fn fields(of: &Reservation, picture: &Picture) -> Fields {
    let mut fields = vec![
        ("reservation".to_owned(), of.id.to_string()),
        ("owner".to_owned(), of.owner.to_string()),
        ("capacity_rru".to_owned(), of.capacity.to_string()),
        ("priority".to_owned(), of.priority.to_string()),
    ];
    if of.msb_buffer {
        fields.push(("msb_buffer".to_owned(), "on".to_owned()));
    }
    for &(ty, value) in &of.rru {
        let name = &picture.region().hardware_types[ty.ix()];
        fields.push((format!("{VALUE}{name}"), value.to_string()));
    }
    fields
}

fn field<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    fields.iter().find(|(of, _)| of == name).map_or("", |(_, value)| value.trim())
}

/// What the form asks for, as the interface wants it. What is no number goes as it is, so that the
/// answer names the field.
fn asked(fields: &[(String, String)]) -> Value {
    let change = field(fields, "change");
    if !change.is_empty() {
        return serde_json::from_str(change).unwrap_or(Value::Null);
    }
    let number = |text: &str| match text.parse::<f64>() {
        Ok(number) => json!(number),
        Err(_) => json!(text),
    };
    let mut change = Map::new();
    change.insert("reservation".to_owned(), json!(field(fields, "reservation")));
    if !field(fields, "owner").is_empty() {
        change.insert("owner".to_owned(), json!(field(fields, "owner")));
    }
    change.insert("capacity_rru".to_owned(), number(field(fields, "capacity_rru")));
    change.insert("msb_buffer".to_owned(), json!(field(fields, "msb_buffer") == "on"));
    if let Ok(priority) = field(fields, "priority").parse::<i32>() {
        change.insert("priority".to_owned(), json!(priority));
    }
    let values: Map<String, Value> = (fields.iter())
        .filter_map(|(name, value)| Some((name.strip_prefix(VALUE)?, value.trim())))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), number(value)))
        .collect();
    if !values.is_empty() {
        change.insert("rru".to_owned(), Value::Object(values));
    }
    Value::Object(change)
}

/// A request of a plan's answer as a change of a plan.
pub(super) fn change(request: &Value) -> String {
    let mut change = request.clone();
    if let Value::Object(members) = &mut change
        && let Some(name) = members.remove("reservation_id")
    {
        members.insert("reservation".to_owned(), name);
    }
    change.to_string()
}

async fn planned(
    site: &Site,
    reader: &Reader,
    fields: &[(String, String)],
) -> Result<Value, Problem> {
    plans::made_for(site, reader.caller(), &json!({ "changes": [asked(fields)] })).await
}

/// Plans what the form asks for, and shows the plan; or the form again, and what is wrong with it.
pub(super) async fn plan(
    State(site): State<Site>,
    reader: Reader,
    Form(fields): Form<Fields>,
) -> Result<Response, Problem> {
    match planned(&site, &reader, &fields).await {
        Ok(made) => {
            let id = made["plan"].as_str().unwrap_or_default();
            Ok(Redirect::to(&format!("/plans/{}", link::segment(id))).into_response())
        }
        Err(problem) if problem.status() == StatusCode::UNPROCESSABLE_ENTITY => {
            let picture = site.pictures.now(&site.region).await?;
            let page = page(&reader, picture.as_deref(), &fields, Some(&problem));
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
        Err(problem) => Err(problem),
    }
}

/// The same while the form is filled in: a piece of the page, whatever comes of it.
pub(super) async fn live(
    State(site): State<Site>,
    reader: Reader,
    Form(fields): Form<Fields>,
) -> Html<String> {
    let piece = match planned(&site, &reader, &fields).await {
        Ok(made) => plan::answer(&made, &reader),
        Err(problem) => wrong(&problem),
    };
    Html(piece.into_string())
}

fn wrong(problem: &Problem) -> Markup {
    let errors = problem.member("errors").and_then(Value::as_array);
    html! {
        div.notice.bad role="alert" {
            strong.verdict { @if errors.is_some() { "Something is not right yet" } @else { "This cannot be planned" } }
            @match errors {
                Some(errors) => ul { @for error in errors { li { (said(error)) } } },
                None => p { (problem.detail()) },
            }
        }
    }
}

fn said(error: &Value) -> String {
    match error {
        Value::String(text) => text.clone(),
        error => {
            let member = |name: &str| error[name].as_str().unwrap_or_default();
            format!("{}: {}", member("field").trim_start_matches("changes[0]."), member("detail"))
        }
    }
}

fn page(
    reader: &Reader,
    picture: Option<&Picture>,
    fields: &[(String, String)],
    problem: Option<&Problem>,
) -> Html<String> {
    let body = html! {
        h1 { "Request capacity" }
        p.facts { span { "What you fill in is really solved on the region as it is. Nothing is changed before you apply it." } }
        div.flow {
            section.box aria-label="Request" { (form(reader, picture, fields)) }
            section #live aria-live="polite" aria-label="What would come of it" {
                @match problem {
                    Some(problem) => (wrong(problem)),
                    None => p.missing { "Fill in the form: what would come of it stands here." },
                }
            }
        }
    };
    let title = "Request capacity";
    Page { place: Place::Request, title, charts: false, body }.show(reader)
}

fn form(reader: &Reader, picture: Option<&Picture>, fields: &[(String, String)]) -> Markup {
    let region = picture.map(Picture::region);
    let known = region.into_iter().flat_map(|region| &region.reservations);
    let known = known.filter(|of| of.kind == ReservationKind::Guaranteed && reader.sees(&of.owner));
    let types = region.map_or(&[][..], |region| &region.hardware_types);
    // A new reservation is shown with the buffer that it has by default.
    let is_new = fields.len() <= 1;
    html! {
        form.fields #request method="post" action="/request" data-live="/request/live" {
            (reader.csrf())
            div.field { label for="reservation" { "Reservation" }
                input #reservation type="text" name="reservation" required list="reservations" autocomplete="off"
                    maxlength="128" value=(field(fields, "reservation")) aria-describedby="reservation-hint";
                span.hint #reservation-hint { "a new name, or one there is to change it" }
                datalist #reservations { @for of in known { option value=(of.id) {} } } }
            div.fields.two {
                div.field { label for="capacity_rru" { "Capacity, RRU" }
                    input #capacity_rru type="text" inputmode="decimal" name="capacity_rru" required autocomplete="off"
                        value=(field(fields, "capacity_rru")); }
                div.field { label for="owner" { "Owner" }
                    input #owner type="text" name="owner" autocomplete="off" maxlength="128" value=(field(fields, "owner"))
                        aria-describedby="owner-hint";
                    span.hint #owner-hint { "of a new reservation" } }
                div.field { label for="priority" { "Priority" }
                    input #priority type="number" name="priority" min="0" step="1" value=(field(fields, "priority"))
                        aria-describedby="priority-hint";
                    span.hint #priority-hint { "0 is the most important" } }
            }
            label.check { input type="checkbox" name="msb_buffer" checked[is_new || field(fields, "msb_buffer") == "on"];
                span { "Survives the loss of any one MSB"
                    span.hint { "an embedded buffer is kept for it" } } }
            fieldset {
                legend { "Hardware, RRU of one server" }
                span.hint { "of each type that will do; leave the others empty" }
                div.fields.slim { @for (position, name) in types.iter().enumerate() {
                    div.field {
                        @let id = format!("type-{position}");
                        label for=(id) { (name) }
                        input id=(id) type="text" inputmode="decimal" name={ (VALUE) (name) } autocomplete="off"
                            value=(field(fields, &format!("{VALUE}{name}"))) aria-describedby={ (id) "-free" };
                        span.hint id={ (id) "-free" } { (free(picture, HardwareTypeIx::new(position))) " free" }
                    }
                } }
            }
            div.actions {
                button.main type="submit" disabled[!reader.may(Role::Owner)] { "Plan it" }
                @if !reader.may(Role::Owner) { span.note { "Planning needs the role owner." } }
            }
        }
    }
}

fn free(picture: Option<&Picture>, ty: HardwareTypeIx) -> String {
    crate::number::count(picture.map_or(0, |picture| picture.types[ty.ix()].free))
}

#[cfg(test)]
mod tests {
    use super::{asked, change};
    use serde_json::json;

    #[test]
    fn a_form_asks_what_the_interface_takes() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let form = vec![
            field("reservation", " web "),
            field("capacity_rru", "12.5"),
            field("owner", ""),
            field("msb_buffer", "on"),
            field("rru.C1", "1.5"),
            field("rru.C2", ""),
            field("rru.C3", "many"),
        ];
        let wanted = json!({ "reservation": "web", "capacity_rru": 12.5, "msb_buffer": true,
            "rru": { "C1": 1.5, "C3": "many" } });
        assert_eq!(asked(&form), wanted);
        let other = change(&json!({ "reservation_id": "web", "capacity_rru": 3.0 }));
        assert_eq!(
            asked(&[field("change", &other)]),
            json!({ "reservation": "web", "capacity_rru": 3.0 })
        );
    }
}
