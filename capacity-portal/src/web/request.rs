//! Asking for capacity: a form that says while it is filled in what would come of it. The form itself is
//! in `request_form`.

use super::frame::{Page, Place, Reader};
use super::picture::Picture;
use super::request_form::{AFFINITY, ALLOWED, FormView, VALUE, field, fields};
use super::{link, plan};
use crate::api::problem::Problem;
use crate::api::v1::plans::{self, PlanView};
use crate::api::{Site, in_time};
use axum::extract::{Form, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use fleet::{CapacityRequest, ReservationKind};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// For which reservation; empty: a new one.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Asked {
    reservation: String,
}

/// A form as it is sent: a field may stand in it any number of times.
pub(super) type Fields = Vec<(String, String)>;

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
    page(&site, &reader, picture.as_deref(), &fields, None).await
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
    let group = |prefix: &str| -> Map<String, Value> {
        (fields.iter())
            .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value.trim())))
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.to_owned(), number(value)))
            .collect()
    };
    let values = group(VALUE);
    if !field(fields, "profile").is_empty() {
        // Chosen by hand, while the values may be those of today.
        change.insert("profile".to_owned(), json!(field(fields, "profile")));
    } else if !values.is_empty() {
        change.insert("rru".to_owned(), Value::Object(values));
    }
    // What is left empty is as the region has it; what the form does not have stays as it is.
    let has = |name: &str| fields.iter().any(|(of, _)| of.starts_with(name));
    for name in ["msb_alpha", "rack_alpha", "affinity_theta"].into_iter().filter(|name| has(name)) {
        let text = field(fields, name);
        change.insert(name.to_owned(), if text.is_empty() { Value::Null } else { number(text) });
    }
    if has("host_profile") {
        let name = Some(field(fields, "host_profile")).filter(|name| !name.is_empty());
        change.insert("host_profile".to_owned(), json!(name));
    }
    for name in ["replicas", "replicas_per_msb"].into_iter().filter(|name| has(name)) {
        let text = field(fields, name);
        let whole = || text.parse::<u64>().map_or_else(|_| json!(text), |whole| json!(whole));
        change.insert(name.to_owned(), if text.is_empty() { Value::Null } else { whole() });
    }
    if has(ALLOWED) {
        let ticked = fields.iter().filter(|(_, value)| value == "on");
        let names = ticked.filter_map(|(name, _)| name.strip_prefix(ALLOWED));
        change.insert("allowed_datacenters".to_owned(), names.collect());
    }
    if has(AFFINITY) {
        change.insert("affinity".to_owned(), Value::Object(group(AFFINITY)));
    }
    Value::Object(change)
}

/// A request of a plan's answer as a change of a plan.
pub(super) fn change(request: &CapacityRequest) -> String {
    let mut change = json!(request);
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
) -> Result<PlanView, Problem> {
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
            Ok(Redirect::to(&format!("/plans/{}", link::segment(&made.plan))).into_response())
        }
        Err(problem) if problem.status() == StatusCode::UNPROCESSABLE_ENTITY => {
            let picture = site.pictures.now(&site.region).await?;
            let page = page(&site, &reader, picture.as_deref(), &fields, Some(&problem)).await?;
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

async fn page(
    site: &Site,
    reader: &Reader,
    picture: Option<&Picture>,
    fields: &[(String, String)],
    problem: Option<&Problem>,
) -> Result<Html<String>, Problem> {
    let profiles = in_time(site.broker.rru_profiles(None)).await?;
    let profiles = profiles.into_iter().map(|of| of.profile).collect();
    let form = FormView { reader, picture, fields, profiles };
    let body = html! {
        h1 { "Request capacity" }
        p.facts { span { "What you fill in is really solved on the region as it is. Nothing is changed before you apply it." } }
        div.flow {
            section.box aria-label="Request" { (form.show()) }
            section #live aria-live="polite" aria-label="What would come of it" {
                @match problem {
                    Some(problem) => (wrong(problem)),
                    None => p.missing { "Fill in the form: what would come of it stands here." },
                }
            }
        }
    };
    let title = "Request capacity";
    Ok(Page { place: Place::Request, title, charts: false, body }.show(reader))
}

#[cfg(test)]
mod tests {
    use super::{asked, change};
    use fleet::CapacityRequest;
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
        let more = [
            field("profile", "general"),
            field("msb_alpha", "0.1"),
            field("rack_alpha", ""),
            field("affinity.dc1", "0.75"),
            field("affinity.dc2", " "),
            field("allowed.", ""),
            field("allowed.dc1", "on"),
            field("replicas", "3"),
            field("replicas_per_msb", "1"),
            field("host_profile", "realtime"),
        ];
        let wanted = json!({ "reservation": "web", "capacity_rru": 12.5, "msb_buffer": true,
            "profile": "general", "msb_alpha": 0.1, "rack_alpha": null,
            "affinity": { "dc1": 0.75 }, "allowed_datacenters": ["dc1"], "replicas": 3,
            "replicas_per_msb": 1, "host_profile": "realtime" });
        assert_eq!(asked(&[form, more.to_vec()].concat()), wanted);
        let other = change(&CapacityRequest {
            reservation_id: "web".into(),
            capacity_rru: Some(3.0),
            ..CapacityRequest::default()
        });
        assert_eq!(
            asked(&[field("change", &other)]),
            json!({ "reservation": "web", "capacity_rru": 3.0 })
        );
    }
}
