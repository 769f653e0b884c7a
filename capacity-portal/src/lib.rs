//! What is asked and said over HTTP: whether a region is served, how it is, what is out of use, and
//! which servers containers may be placed on. The only crate that knows HTTP.
//!
//! | path | answer |
//! |---|---|
//! | `/live` | 200, as long as the process answers at all |
//! | `/ready` | 200 if Postgres answers, else 503 and why |
//! | `/status` | what is stored, as JSON; else 503 and why |
//! | `/metrics` | numbers for monitoring, as Prometheus reads them; `ras_postgres_up 0` alone if Postgres does not answer |
//! | `/schemas/capacity-request.json` | requests as files, for editors |
//! | `/openapi.json`, `/api` | every path below, described; a page to browse that by |
//! | `POST /ops/v1/events` | unavailability events, one or many: what became of each |
//! | `POST /ops/v1/alertmanager` | the same from Alertmanager's webhook |
//! | `POST /ops/v1/usage` | which servers are in use |
//! | `GET /v1/whoami` | whose a token is, and what it is good for |
//! | `/sign-in`, `/sign-out` | sessions for people, with a token |
//! | `GET, POST /v1/reservations`, `GET, PATCH, DELETE /v1/reservations/{name}` | what is promised and what there is of it; asks for a new one, a change, its end |
//! | `GET /v1/requests`, `/{id}`, `POST /{id}/cancel`, `/submit` | what was asked and what became of it |
//! | `POST /v1/plans`, `GET /v1/plans/{id}`, `POST /{id}/apply` | what changes would come to, really solved; applied, if that is still so |
//! | `GET /v1/operations/{id}` | what a 202 points to |
//! | `GET, PATCH /ops/v1/region` | prices, default limits, the buffer fraction |
//! | `GET, POST /ops/v1/hardware-types`, `GET, PUT, DELETE /ops/v1/shared-buffers/{type}` | hardware types, and their shared buffers in servers |
//! | `GET, PUT, DELETE /ops/v1/elastic-reservations/{name}` | who borrows idle buffers |
//! | `POST /ops/v1/servers`, `/remove`, `/move` | servers racked, decommissioned, moved: all of a list or none |
//! | `GET /ops/v1/quotas`, `PUT /ops/v1/quotas/{owner}` | how much may be promised to owners |
//! | `GET /v1/reservations/{name}/servers` | what a reservation owns, gets or borrows, and what may be done with each |
//! | `GET /v1/reservations/{name}/changes` | the same as server-sent events, from an entry of the audit trail on |
//! | `POST /ops/v1/maintenance` | plans a window, or says why it cannot be; `GET` lists them, `/{id}` one window or plan |
//! | `POST /ops/v1/emergencies` | asks for capacity at once; `GET` lists them, `/{id}` one, `POST /{id}/end` ends it |
//! | `GET, POST /ops/v1/give-way` | who would give way to whom when several MSBs are lost; doing it |
//! | `GET /ops/v1/replacements`, `/outages`, `/loans` | what the mover decided between two solves |
//! | `GET /ops/v1/moves/under-way` | moves under way, why they wait, and what is stuck |
//! | `GET /ops/v1/contracts`, `PUT, DELETE /ops/v1/contracts/{reservation}` | churn contracts and their use |
//! | `GET /ops/v1/check` | invariants of the stored region that are broken |
//! | `POST /ops/v1/maintenance/{id}/end`, `/cancel` | work is done early; or will not be |
//!
//! Whoever says something needs a token with the role for it, in a header or a session's cookie, and
//! its name stands in the audit trail; `guard` knows whose it is, and `shield` stands before
//! everything. Errors under `/v1` and `/ops/v1` are `application/problem+json`
//! (RFC 9457).
//!
//! It knows nothing of solves and moves but what the broker says. Start with [`Portal`].
//!
//! `examples/serve.rs` serves a region: `cargo run -p capacity-portal --example serve`.

mod api;
mod archive;
mod guard;
mod limits;
mod local;
mod metrics;
mod rehearsal;
mod secret;
mod shield;
mod tls;
mod web;

pub use api::authority::{Authority, Role, Token, TokenError};
pub use api::openapi::text as openapi;
pub use api::probes::region_status;
pub use api::schemas::capacity_request as capacity_request_schema;
pub use archive::{Archive, ArchiveError, ArchivedFile, Chunks};
pub use local::{LocalSocket, local_actor, socket_path};
pub use rehearsal::{Rehearse, Rehearsed, Stand};
pub use secret::{NoChance, Secret};
pub use tls::{TlsError, TlsFiles};

use api::Site;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum_server::Server;
use axum_server::tls_rustls::RustlsAcceptor;
use broker::Broker;
use control::{Bell, Intake, PlanDesk, PlanQueue, Planner, RegionKeeper};
use decisions::emergency::{Pick, Stock};
use fleet::pace::Limits as MoveLimits;
use guard::Guard;
use hyper_util::rt::TokioTimer;
use limits::Limits;
use shield::{HEAD_WITHIN, Shield};
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tls::Tls;
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
    /// The unix socket of this machine's administrators cannot be served.
    #[error("unix socket {} cannot be served", path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The certificate or the key will not do.
    #[error("TLS")]
    Tls(#[from] TlsError),
    /// It ended.
    #[error("serving HTTP")]
    Serve(#[source] std::io::Error),
}

/// What may be chosen.
#[derive(Clone, Debug, Default)]
pub struct PortalSettings {
    /// Who may do what, beside the tokens of the database. By default everybody may read.
    pub authority: Authority,
    /// Who plans; `None`: nobody, and plans are refused.
    pub planner: Option<Arc<dyn Planner>>,
    /// Where solves leave their files; `None`: nobody reads them over HTTP.
    pub archive: Option<Arc<dyn Archive>>,
    /// Who says what would be done if an MSB were lost; `None`: drills say who keeps what, and no more.
    pub rehearsal: Option<Arc<dyn Rehearse>>,
    /// MoveLimits of moves, which explain why pending ones wait.
    pub move_limits: MoveLimits,
    /// How often one caller may ask in a second; `None`: a thousand times.
    pub requests_per_second: Option<NonZeroU32>,
    /// The certificate to serve with; `None`: without TLS.
    pub tls: Option<TlsFiles>,
    /// Whether a proxy in front ends TLS, so that cookies are for TLS alone.
    pub tls_before: bool,
    /// Which servers would serve an emergency: what the mover does, for whoever asks before; `None`:
    /// nobody knows.
    pub choose: Option<fn(&Stock) -> Vec<Pick>>,
}

/// A server that listens on a network address, a unix socket, or both.
pub struct Portal {
    network: Option<Network>,
    socket: Option<LocalSocket>,
    router: Router,
    region: RegionKeeper,
}

/// A network address that is listened on.
struct Network {
    listener: TcpListener,
    at: SocketAddr,
    tls: Option<Tls>,
}

impl fmt::Debug for Portal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("Portal");
        shown.field("at", &self.address()).field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Portal {
    /// Starts to listen on a network address only; port 0 is any free one.
    ///
    /// # Errors
    /// [`PortalError::Bind`], [`PortalError::Tls`].
    pub async fn bind(
        at: SocketAddr,
        broker: Broker,
        settings: PortalSettings,
    ) -> Result<Portal, PortalError> {
        Portal::open(Some(at), None, broker, settings).await
    }

    /// Starts to listen on the network address and the unix socket that are given.
    ///
    /// # Errors
    /// [`PortalError::Bind`], [`PortalError::Tls`].
    pub async fn open(
        at: Option<SocketAddr>,
        socket: Option<LocalSocket>,
        broker: Broker,
        settings: PortalSettings,
    ) -> Result<Portal, PortalError> {
        let network = match at {
            Some(at) => Some(Network::bind(at, settings.tls.as_ref()).await?),
            None => None,
        };
        let (router, region) = router(broker, settings);
        Ok(Portal { network, socket, router, region })
    }

    /// The network address that it listens on.
    pub fn address(&self) -> Option<SocketAddr> {
        self.network.as_ref().map(|network| network.at)
    }

    /// The unix socket that it listens on.
    pub fn socket(&self) -> Option<&LocalSocket> {
        self.socket.as_ref()
    }

    /// The region as it answers from it, for others who need all of it.
    pub fn region(&self) -> &RegionKeeper {
        &self.region
    }

    /// URL of the network address.
    pub fn url(&self) -> Option<String> {
        let network = self.network.as_ref()?;
        let scheme = if network.tls.is_some() { "https" } else { "http" };
        Some(format!("{scheme}://{}", network.at))
    }

    /// Answers until dropped.
    ///
    /// # Errors
    /// [`PortalError::Serve`].
    pub async fn serve(self) -> Result<(), PortalError> {
        let Portal { network, socket, router, .. } = self;
        let local = router.clone();
        let network = async {
            match network {
                Some(network) => network.serve(router).await,
                None => std::future::pending().await,
            }
        };
        let socket = async {
            match socket {
                Some(socket) => socket.serve(local).await,
                None => std::future::pending().await,
            }
        };
        let served = tokio::select! {
            served = network => served,
            served = socket => served,
        };
        served.map_err(PortalError::Serve)
    }
}

impl Network {
    async fn bind(at: SocketAddr, tls: Option<&TlsFiles>) -> Result<Network, PortalError> {
        let tls = tls.map(TlsFiles::load).transpose()?;
        let cannot = |source| PortalError::Bind { at, source };
        let listener = TcpListener::bind(at).await.map_err(cannot)?;
        let at = listener.local_addr().map_err(cannot)?;
        Ok(Network { listener, at, tls })
    }

    async fn serve(self, router: Router) -> std::io::Result<()> {
        let mut server = Server::<SocketAddr>::from_listener(self.listener).http1_only();
        let mut head = server.http_builder().http1();
        head.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        match self.tls {
            None => server.serve(service).await,
            Some(tls) => {
                let server = server.acceptor(RustlsAcceptor::new(tls.config()));
                tokio::select! {
                    served = server.serve(service) => served,
                    never = tls.renew() => never,
                }
            }
        }
    }
}

fn router(broker: Broker, settings: PortalSettings) -> (Router, RegionKeeper) {
    let bell = Bell::start(broker.clone());
    let secure = settings.tls.is_some() || settings.tls_before;
    let limits = Limits::start(settings.requests_per_second);
    let shield = Arc::new(Shield { limits: limits.clone(), secure });
    let decides = settings.planner.is_some();
    let region = RegionKeeper::start(broker.clone(), &bell);
    let site = Site {
        guard: Guard::start(settings.authority, broker.clone(), limits, secure),
        intake: Intake::start(broker.clone()),
        region: region.clone(),
        plans: PlanDesk::new(settings.planner),
        plan_queue: PlanQueue::new(broker.clone(), region.clone()),
        rehearsal: settings.rehearsal,
        choose: settings.choose,
        move_limits: settings.move_limits,
        region_summaries: web::RegionSummaries::default(),
        bell,
        archive: settings.archive,
        submitted: Arc::default(),
        broker,
    };
    if decides {
        tokio::spawn(control::admission::work(site.admission(), site.submitted.clone()));
    }
    let (described, _) = api::routes().split_for_parts();
    let router = described
        .merge(api::browse::routes())
        .merge(web::routes())
        .with_state(site)
        .layer(from_fn_with_state(shield, shield::stand));
    (router, region)
}
