//! What is asked and said over HTTP: whether a region is served, how it is, what is out of use, and
//! which servers containers may be placed on. The only crate that knows HTTP.
//!
//! | path | answer |
//! |---|---|
//! | `/live` | 200, as long as the process answers at all |
//! | `/ready` | 200 if Postgres answers, else 503 and why |
//! | `/status` | what is stored, as JSON; else 503 and why |
//! | `/metrics` | numbers for monitoring, as Prometheus reads them; `ras_postgres_up 0` alone if Postgres does not answer |
//! | `/openapi.json`, `/api` | every path below, described; a page to browse that by |
//! | `POST /ops/v1/events` | unavailability events, one or many: what became of each |
//! | `POST /ops/v1/alertmanager` | the same from Alertmanager's webhook |
//! | `POST /ops/v1/usage` | which servers are in use |
//! | `GET /v1/reservations/{name}/servers` | what a reservation owns, gets or borrows, and what may be done with each |
//! | `GET /v1/reservations/{name}/changes` | the same as server-sent events, from an entry of the audit trail on |
//! | `POST /ops/v1/maintenance` | plans a window, or says why it cannot be; `GET` lists them, `/{id}` one window or plan |
//! | `POST /ops/v1/emergencies` | asks for capacity at once; `GET` lists them, `/{id}` one, `POST /{id}/end` ends it |
//! | `GET /ops/v1/replacements`, `/outages`, `/loans` | what the mover decided between two solves |
//! | `POST /ops/v1/maintenance/{id}/end`, `/cancel` | work is done early; or will not be |
//!
//! Whoever says something needs a bearer token with the role for it, and its name stands in the
//! audit trail. Errors under `/v1` and `/ops/v1` are `application/problem+json`
//! (RFC 9457).
//!
//! It knows nothing of solves and moves but what the broker says. Start with [`Portal`].

mod api;
mod archive;
mod bell;
mod intake;
mod metrics;
pub mod plan_desk;
mod planner;
pub mod region;

pub use api::authority::{Authority, Role, Token, TokenError};
pub use api::openapi::text as openapi;
pub use archive::{Archive, ArchiveError, ArchivedFile, Chunks};
pub use planner::{Grant, Granted, PlanRefused, Planned, Planner};

use api::Site;
use axum::Router;
use bell::Bell;
use broker::Broker;
use intake::Intake;
use plan_desk::PlanDesk;
use region::RegionKeeper;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How long Postgres may take to answer before the region counts as not ready: balancers ask every
/// few seconds and give up after about as long.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// How long it may take to answer anything else: Prometheus waits for ten seconds, and a Postgres
/// that is slow is not down.
const ANSWER_WITHIN: Duration = Duration::from_secs(9);

/// HTTP cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum PortalError {
    /// Nobody may listen there, or somebody does.
    #[error("http://{at} cannot be served")]
    Bind {
        /// The address.
        at: SocketAddr,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// It ended.
    #[error("serving HTTP")]
    Serve(#[source] std::io::Error),
}

/// What may be chosen.
#[derive(Clone, Debug, Default)]
pub struct PortalSettings {
    /// Who may do what. By default everybody may read and nobody may write.
    pub authority: Authority,
    /// Who plans; `None`: nobody, and plans are refused.
    pub planner: Option<Arc<dyn Planner>>,
    /// Where solves leave their files; `None`: nobody reads them over HTTP.
    pub archive: Option<Arc<dyn Archive>>,
}

/// An address that is listened on.
#[derive(Debug)]
pub struct Portal {
    listener: TcpListener,
    at: SocketAddr,
    router: Router,
}

impl Portal {
    /// Starts to listen; port 0 is any that is free.
    ///
    /// # Errors
    /// [`PortalError::Bind`].
    pub async fn bind(
        at: SocketAddr,
        broker: Broker,
        settings: PortalSettings,
    ) -> Result<Portal, PortalError> {
        let cannot = |source| PortalError::Bind { at, source };
        let listener = TcpListener::bind(at).await.map_err(cannot)?;
        let at = listener.local_addr().map_err(cannot)?;
        Ok(Portal { listener, at, router: router(broker, settings) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.at
    }

    /// Answers until dropped.
    ///
    /// # Errors
    /// [`PortalError::Serve`].
    pub async fn serve(self) -> Result<(), PortalError> {
        axum::serve(self.listener, self.router).await.map_err(PortalError::Serve)
    }
}

fn router(broker: Broker, settings: PortalSettings) -> Router {
    let bell = Bell::start(broker.clone());
    let site = Site {
        authority: Arc::new(settings.authority),
        intake: Intake::start(broker.clone()),
        region: RegionKeeper::start(broker.clone(), &bell),
        plans: PlanDesk::new(settings.planner),
        bell,
        archive: settings.archive,
        broker,
    };
    let (described, _) = api::routes().split_for_parts();
    described.merge(api::browse::routes()).with_state(site)
}
