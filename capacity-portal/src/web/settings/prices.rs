//! Section of prices and default limits.

use super::answered;
use super::form::{Field, Form, Reading, Rejected};
use crate::api::ops::region::changed;
use crate::http::auth::Role;
use crate::http::{Problem, Site, in_time};
use crate::web::layout::{Reader, RegionReader};
use api_types::region::RegionSettingsAsked;
use axum::extract::{self, State};
use axum::response::Response;
use broker::StoredSettings;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

static PRICES: Form = Form {
    section: ("prices", "Prices and limits"),
    id: "price",
    fields: &[
        ("move_in_use", "Price of moving a server in use"),
        ("move_idle", "Price of moving an idle server"),
        ("spread_beta", "Price of an RRU beyond a spread limit"),
        ("buffer_tau", "Price of an RRU in the largest MSB share"),
        ("msb_alpha", "Largest share in one MSB"),
        ("rack_alpha", "Largest share in one rack"),
        ("affinity_theta", "Tolerance of datacenter shares"),
        ("shared_buffer_fraction", "Shared buffer fraction"),
    ],
};

/// Meaning and range of each setting.
const HINTS: [&str; 8] = [
    "M of expression 1; at least 0",
    "M of expression 1; at least 0",
    "beta of expressions 2 and 3; at least 0",
    "tau of expression 4; at least 0",
    "above 0, at most 1; empty for the default rule",
    "above 0, at most 1; empty for the default rule",
    "theta of eq. 7; at least 0",
    "of each hardware type; at least 0, below 1",
];

pub(super) fn section(of: &StoredSettings, reader: &Reader, rejected: Option<&Rejected>) -> Markup {
    let values = serde_json::json!(of.settings);
    let shown = |name: &str| values[name].as_f64().map(|value| value.to_string());
    let rejected = Rejected::of(rejected, &PRICES);
    let rows = || PRICES.fields.iter().copied().zip(HINTS);
    let field = |name, hint| Field {
        hint,
        value: shown(name).unwrap_or_default(),
        is_stored: true,
        mode: "decimal",
        required: false,
        ..Field::new(&PRICES, name)
    };
    html! {
        section id=(PRICES.section.0) {
            h2 { (PRICES.section.1) }
            @if reader.may(Role::Operator) {
                form.fields.two method="post" action="/settings/prices" {
                    (reader.csrf())
                    input type="hidden" name="version" value=(of.version());
                    @for ((name, _), hint) in rows() { (field(name, hint).show(rejected)) }
                    div.actions { button type="submit" { "Save prices and limits" } }
                }
            } @else {
                div.scroll { table.slim {
                    caption.quiet { "Prices of the model and default limits" }
                    thead { tr { th scope="col" { "Setting" } th.n scope="col" { "Value" } th scope="col" { "Meaning" } } }
                    tbody { @for ((name, label), hint) in rows() { tr {
                        th scope="row" { (label) }
                        td.n { (shown(name).unwrap_or_else(|| "default rule".to_owned())) } td { (hint) }
                    } } }
                } }
            }
        }
    }
}

/// The form.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct PricesForm {
    version: String,
    move_in_use: String,
    move_idle: String,
    spread_beta: String,
    buffer_tau: String,
    msb_alpha: String,
    rack_alpha: String,
    affinity_theta: String,
    shared_buffer_fraction: String,
}

/// Handler of `POST /settings/prices`.
pub(in crate::web) async fn set(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    extract::Form(form): extract::Form<PricesForm>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let done = async {
        let mut read = Reading::default();
        let asked = RegionSettingsAsked {
            move_in_use: Some(read.number("move_in_use", &form.move_in_use)),
            move_idle: Some(read.number("move_idle", &form.move_idle)),
            spread_beta: Some(read.number("spread_beta", &form.spread_beta)),
            buffer_tau: Some(read.number("buffer_tau", &form.buffer_tau)),
            msb_alpha: Some(read.number_if_any("msb_alpha", &form.msb_alpha)),
            rack_alpha: Some(read.number_if_any("rack_alpha", &form.rack_alpha)),
            affinity_theta: Some(read.number("affinity_theta", &form.affinity_theta)),
            shared_buffer_fraction: Some(
                read.number("shared_buffer_fraction", &form.shared_buffer_fraction),
            ),
        };
        read.done()?;
        let now = in_time(site.broker.region_settings()).await?;
        let wanted = changed(&asked, &now.settings);
        in_time(site.broker.set_region_settings(&actor, &wanted, Some(&form.version))).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, &reader, &PRICES, &form, done).await
}
