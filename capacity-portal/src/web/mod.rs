//! Web pages, rendered on the server. Every page is complete without scripts.
//!
//! | module | what it has |
//! |---|---|
//! | `layout`, `errors` | document, navigation, readers of pages; errors as pages |
//! | `asset` | style sheet, script, chart library and icon |
//! | `events`, `live` | what has changed, for pages that follow; the parts of pages that follow, and their age |
//! | `arrival` | how many of the servers assigned to a reservation have arrived |
//! | `ui`, `link` | tiles, bars, legends, times; paths of pages |
//! | `overview`, `rack_map` | the region at a glance; maps of racks and the page of an MSB |
//! | `reservations`, `reservation`, `composition` | the list; one reservation; its hardware, explained |
//! | `reservation_actions` | churn contract and host profile roll-out of a reservation |
//! | `demand`, `autosize` | its demand over time with the forecast; whether its request follows demand |
//! | `request`, `request_form`, `request_fields`, `plan` | requests for capacity: page, form, fields; the plan and its application |
//! | `solves`, `solve`, `heat` | the list; one solve; shares of reservations in MSBs |
//! | `list`, `inventory` | lists as tables; servers, racks, MSBs and hardware types of the region; one rack |
//! | `supply`, `hardware_orders` | how long the servers of each hardware type last; servers on order |
//! | `warm_capacity` | shared buffers beside failures, headroom for growth |
//! | `search` | everything that has a name or an id |
//! | `servers`, `server` | servers of a reservation; one server and its history |
//! | `history`, `chart` | the region over time; charts with their tables |
//! | `moves` | moves of servers, and the switch that stops them |
//! | `requests` | requests with their outcome |
//! | `failures`, `give_way` | outages, events, replacements and loans as lists; preemption when several MSBs are lost |
//! | `maintenance`, `maintenance_form` | the calendar; the form that schedules a window |
//! | `drills` | simulated loss of an MSB |
//! | `emergencies` | capacity granted at once |
//! | `settings`, `server_edits` | prices, hardware types, RRU profiles, elastic reservations, quotas; adding, moving and removing servers |
//! | `policies` | policies in SQL, their state and the groups nearest to a limit |
//! | `tokens` | API tokens |
//! | `trail`, `stuck` | the audit trail; work that does not progress |
//! | `sign_in` | sessions |

mod approval;
mod arrival;
mod asset;
mod autosize;
mod chart;
mod composition;
mod demand;
mod drills;
mod emergencies;
mod errors;
mod events;
mod failures;
mod give_way;
mod hardware_orders;
mod heat;
mod history;
mod inventory;
mod layout;
mod link;
mod list;
mod live;
mod maintenance;
mod maintenance_form;
mod moves;
mod overview;
mod plan;
mod policies;
mod rack_map;
mod request;
mod request_fields;
mod request_form;
mod requests;
mod reservation;
mod reservation_actions;
mod reservations;
mod search;
mod server;
mod server_edits;
mod servers;
mod settings;
mod sign_in;
mod solve;
mod solves;
mod stuck;
mod supply;
mod tokens;
mod trail;
mod ui;
mod warm_capacity;

pub(crate) use errors::no_such_path;

use crate::http::Site;
use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{get, post};

/// Routes of all pages and assets.
pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route("/", get(overview::show))
        .route("/search", get(search::show))
        .route("/servers", get(inventory::servers))
        .route("/racks", get(inventory::racks))
        .route("/racks/{name}", get(inventory::rack))
        .route("/hardware-types", get(inventory::hardware_types))
        .route("/supply", get(supply::show))
        .route("/warm-capacity", get(warm_capacity::show))
        .route("/warm-capacity/{hardware_type}/autosize", post(warm_capacity::set))
        .route("/warm-capacity/{hardware_type}/autosize/remove", post(warm_capacity::remove))
        .route("/supply/orders", post(hardware_orders::add))
        .route("/supply/orders/{id}/change", post(hardware_orders::change))
        .route("/supply/orders/{id}/arrive", post(hardware_orders::arrive))
        .route("/supply/orders/{id}/cancel", post(hardware_orders::cancel))
        .route("/msbs", get(inventory::msbs))
        .route("/msbs/{name}", get(rack_map::show))
        .route("/reservations", get(reservations::show))
        .route("/reservations/{name}", get(reservation::show))
        .route("/reservations/{name}/servers", get(servers::show))
        .route("/reservations/{name}/contract", post(reservation_actions::set_contract))
        .route("/reservations/{name}/contract/remove", post(reservation_actions::remove_contract))
        .route("/reservations/{name}/autosize", post(autosize::set))
        .route("/reservations/{name}/autosize/remove", post(autosize::remove))
        .route("/reservations/{name}/rollout/pause", post(reservation_actions::pause_rollout))
        .route("/reservations/{name}/rollout/resume", post(reservation_actions::resume_rollout))
        .route("/servers/{name}", get(server::show))
        .route("/request", get(request::show).post(request::plan))
        .route("/request/live", post(request::live))
        .route("/request/submit", post(request::submit))
        .route("/requests", get(requests::list))
        .route("/requests/{id}", get(requests::show))
        .route("/requests/{id}/cancel", post(requests::cancel))
        .route("/requests/{id}/approve", post(requests::approve))
        .route("/requests/{id}/reject", post(requests::reject))
        .route("/plans/{id}", get(plan::show))
        .route("/plans/{id}/apply", post(plan::apply))
        .route("/solves", get(solves::show).post(solves::ask))
        .route("/solves/{id}", get(solve::show))
        .route("/solves/{id}/approve", post(solves::approve))
        .route("/solves/{id}/reject", post(solves::reject))
        .route("/solves/{id}/cancel", post(solve::cancel))
        .route("/history", get(history::show))
        .route("/moves", get(moves::show))
        .route("/moves/stop", post(moves::stop))
        .route("/moves/resume", post(moves::resume))
        .route("/failures", get(failures::show))
        .route("/failures/events", get(failures::events))
        .route("/failures/replacements", get(failures::replacements))
        .route("/failures/loans", get(failures::loans))
        .route("/failures/give-way", post(give_way::give_way))
        .route("/maintenance", get(maintenance::show))
        .route("/maintenance/plan", get(maintenance_form::show).post(maintenance_form::plan))
        .route("/maintenance/{id}/end", post(maintenance::end))
        .route("/maintenance/{id}/cancel", post(maintenance::cancel))
        .route("/drills", get(drills::show))
        .route("/emergencies", get(emergencies::show).post(emergencies::ask))
        .route("/emergencies/end", post(emergencies::end))
        .route("/policies", get(policies::show))
        .route("/settings", get(settings::show))
        .route("/settings/prices", post(settings::prices::set))
        .route("/settings/hardware-types", post(settings::hardware::add))
        .route("/settings/hardware-types/rename", post(settings::hardware::rename))
        .route("/settings/hardware-types/remove", post(settings::hardware::remove))
        .route("/settings/buffers", post(settings::hardware::set_buffer))
        .route("/settings/elastic", post(settings::elastic::set))
        .route("/settings/elastic/end", post(settings::elastic::end))
        .route("/settings/profiles", post(settings::profiles::set))
        .route("/settings/profiles/remove", post(settings::profiles::remove))
        .route("/settings/quotas", post(settings::quotas::set))
        .route("/settings/tokens", get(tokens::show).post(tokens::create))
        .route("/settings/tokens/revoke", post(tokens::revoke))
        .route("/settings/servers", get(server_edits::show).post(server_edits::submit))
        .route("/settings/servers/keep", post(server_edits::keep))
        .route("/trail", get(trail::show))
        .route("/stuck", get(stuck::show))
        .route("/sign-in", get(sign_in::page).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .layer(from_fn(errors::error_pages))
        .route("/events", get(events::follow))
        .merge(asset::routes())
}
