//! Routes under `/ops/v1`, for operators and for health reports.

mod alertmanager;
pub(crate) mod buffers;
mod certificate;
mod check;
pub(super) mod contracts;
mod drills;
mod elastic;
pub(crate) mod emergencies;
mod events;
mod files;
pub(crate) mod give_way;
mod hardware;
pub(crate) mod hardware_orders;
mod history;
pub(crate) mod incidents;
pub(crate) mod maintenance;
pub(crate) mod moves;
pub(crate) mod places;
mod profiles;
mod quotas;
pub(crate) mod racks;
pub(crate) mod region;
pub(crate) mod requests;
mod rollouts;
mod servers;
pub(crate) mod solves;
mod stuck;
pub(crate) mod supply;
pub(crate) mod tokens;
pub(crate) mod trail;
pub(crate) mod unavailability;
mod under_way;
mod usage;

use crate::http::Site;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes, to be nested under `/ops/v1`.
pub(super) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::new()
        .routes(routes!(events::take))
        .routes(routes!(usage::take))
        .routes(routes!(alertmanager::take))
        .routes(routes!(maintenance::list, maintenance::plan))
        .routes(routes!(maintenance::find))
        .routes(routes!(maintenance::end))
        .routes(routes!(maintenance::cancel))
        .routes(routes!(emergencies::list, emergencies::ask))
        .routes(routes!(emergencies::preview))
        .routes(routes!(emergencies::find))
        .routes(routes!(emergencies::end))
        .routes(routes!(incidents::replacements))
        .routes(routes!(incidents::outages))
        .routes(routes!(incidents::loans))
        .routes(routes!(give_way::find, give_way::run))
        .routes(routes!(solves::list, solves::ask))
        .routes(routes!(solves::find))
        .routes(routes!(solves::approve))
        .routes(routes!(solves::reject))
        .routes(routes!(solves::cancel))
        .routes(routes!(requests::approve))
        .routes(routes!(requests::reject))
        .routes(routes!(solves::report))
        .routes(routes!(history::list))
        .routes(routes!(supply::list))
        .routes(routes!(files::list))
        .routes(routes!(files::find))
        .routes(routes!(moves::list))
        .routes(routes!(under_way::list))
        .routes(routes!(moves::mover))
        .routes(routes!(moves::stop))
        .routes(routes!(moves::resume))
        .routes(routes!(rollouts::pause))
        .routes(routes!(rollouts::resume))
        .routes(routes!(places::servers, racks::add))
        .routes(routes!(places::racks))
        .routes(routes!(places::msbs))
        .routes(routes!(racks::remove))
        .routes(routes!(racks::drained))
        .routes(routes!(racks::keep))
        .routes(routes!(racks::relocate))
        .routes(routes!(region::find_settings, region::set_settings))
        .routes(routes!(hardware::list_types, hardware::add_types))
        .routes(routes!(hardware::rename_type, hardware::remove_type))
        .routes(routes!(buffers::list))
        .routes(routes!(buffers::list_headroom))
        .routes(routes!(buffers::find, buffers::set, buffers::remove))
        .routes(routes!(hardware::find_buffer, hardware::set_buffer, hardware::remove_buffer))
        .routes(routes!(hardware_orders::list, hardware_orders::add))
        .routes(routes!(hardware_orders::find, hardware_orders::patch))
        .routes(routes!(hardware_orders::arrive))
        .routes(routes!(hardware_orders::cancel))
        .routes(routes!(elastic::list_elastic))
        .routes(routes!(elastic::find_elastic, elastic::set_elastic, elastic::end_elastic))
        .routes(routes!(servers::find))
        .routes(routes!(servers::history))
        .routes(routes!(unavailability::list))
        .routes(routes!(trail::list))
        .routes(routes!(quotas::list))
        .routes(routes!(quotas::set, quotas::remove))
        .routes(routes!(profiles::list))
        .routes(routes!(profiles::find, profiles::set, profiles::remove))
        .routes(routes!(stuck::list))
        .routes(routes!(check::run))
        .routes(routes!(contracts::list))
        .routes(routes!(contracts::set, contracts::remove))
        .routes(routes!(certificate::list))
        .routes(routes!(drills::run))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
}
