//! Pages for people: written here, on the server, and complete without scripts.
//!
//! | module | one line |
//! |---|---|
//! | `frame` | what every page has, and how errors are shown |
//! | `asset` | style, script and charts, from this program |
//! | `part`, `link` | what pages are put together from; paths with names in them |
//! | `picture` | the region counted: by rack, MSB and type, with the audit |
//! | `overview`, `map` | the region at a glance; its racks |
//! | `reservations`, `reservation`, `composition` | all of them; one, with why it is as it is; why it is made of its hardware |
//! | `request`, `plan` | asking for capacity, what would come of it, and applying that |
//! | `solves`, `solve`, `heat` | what was decided, and how near to the best it is |
//! | `servers`, `server` | those of a reservation; one, and what became of it |
//! | `failures`, `maintenance`, `window` | what is out of use, what will be, and planning that |
//! | `give_way` | who would give way to whom, on the page of failures |
//! | `drills` | what the loss of an MSB would leave |
//! | `emergencies` | capacity at once, and what granting it breaks |
//! | `settings`, `racks` | prices, hardware types with shared buffers, elastic reservations, quotas; servers racked, decommissioned, moved |
//! | `trail`, `stuck` | who did what; what does not go on |
//! | `sign_in` | signing in with a token, and out |

mod asset;
mod composition;
mod drills;
mod emergencies;
mod failures;
mod frame;
mod give_way;
mod heat;
mod link;
mod maintenance;
mod map;
mod overview;
mod part;
mod picture;
mod plan;
mod racks;
mod request;
mod request_form;
mod reservation;
mod reservations;
mod server;
mod servers;
mod settings;
mod sign_in;
mod solve;
mod solves;
mod stuck;
mod trail;
mod window;

use crate::api::Site;
use crate::api::problem::Problem;
use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{get, post};
use control::{RegionError, RegionKeeper};
use picture::Picture;
use std::error::Error;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

/// The pages.
pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route("/", get(overview::show))
        .route("/msbs/{name}", get(map::show))
        .route("/reservations", get(reservations::show))
        .route("/reservations/{name}", get(reservation::show))
        .route("/reservations/{name}/servers", get(servers::show))
        .route("/servers/{name}", get(server::show))
        .route("/request", get(request::show).post(request::plan))
        .route("/request/live", post(request::live))
        .route("/plans/{id}", get(plan::show))
        .route("/plans/{id}/apply", post(plan::apply))
        .route("/solves", get(solves::show))
        .route("/solves/{id}", get(solve::show))
        .route("/failures", get(failures::show))
        .route("/failures/give-way", post(give_way::give_way))
        .route("/maintenance", get(maintenance::show))
        .route("/maintenance/plan", get(window::show).post(window::plan))
        .route("/maintenance/{id}/end", post(maintenance::end))
        .route("/maintenance/{id}/cancel", post(maintenance::cancel))
        .route("/drills", get(drills::show))
        .route("/emergencies", get(emergencies::show).post(emergencies::ask))
        .route("/emergencies/end", post(emergencies::end))
        .route("/settings", get(settings::show))
        .route("/settings/prices", post(settings::prices::set))
        .route("/settings/hardware-types", post(settings::hardware::add))
        .route("/settings/hardware-types/rename", post(settings::hardware::rename))
        .route("/settings/hardware-types/remove", post(settings::hardware::remove))
        .route("/settings/buffers", post(settings::hardware::set_buffer))
        .route("/settings/elastic", post(settings::elastic::set))
        .route("/settings/elastic/end", post(settings::elastic::end))
        .route("/settings/quotas", post(settings::quotas::set))
        .route("/settings/servers", get(racks::show).post(racks::submit))
        .route("/settings/servers/keep", post(racks::keep))
        .route("/trail", get(trail::show))
        .route("/stuck", get(stuck::show))
        .route("/sign-in", get(sign_in::page).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .layer(from_fn(frame::finish))
        .merge(asset::routes())
}

/// The region as it was counted last, for all pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pictures(Arc<Mutex<Option<Arc<Picture>>>>);

impl Pictures {
    /// The region as it is kept in memory, counted; `None`: none is loaded. It may be some seconds
    /// old, which pages say: reading all of it for every look would be too dear.
    async fn now(&self, keeper: &RegionKeeper) -> Result<Option<Arc<Picture>>, Problem> {
        let held = match keeper.latest() {
            Some(held) => held,
            None => match keeper.fresh().await {
                Ok(held) => held,
                Err(RegionError::NothingLoaded) => return Ok(None),
                Err(error @ (RegionError::Db(_) | RegionError::Silent(_))) => {
                    return Err(error.into());
                }
                Err(error) => return Err(unreadable(&error)),
            },
        };
        // Whoever comes meanwhile waits for the same picture.
        let mut last = self.0.lock().await;
        if let Some(picture) = last.as_ref().filter(|picture| Arc::ptr_eq(&picture.held, &held)) {
            return Ok(Some(picture.clone()));
        }
        let counted = spawn_blocking(move || Picture::of(held)).await;
        let picture = Arc::new(counted.map_err(|error| unreadable(&error))?);
        *last = Some(picture.clone());
        Ok(Some(picture))
    }
}

fn unreadable(error: &dyn Error) -> Problem {
    tracing::error!(%error, "the region cannot be shown");
    Problem::unavailable("region_unreadable", error.to_string())
}
