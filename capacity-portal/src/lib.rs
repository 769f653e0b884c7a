//! The HTTP server: API and pages. The only crate that serves HTTP.
//!
//! | module | what it does |
//! |---|---|
//! | `http` | errors, state, authentication, limits: shared by API and pages |
//! | `api` | `/v1` for owners and allocators, `/ops/v1` for operators, probes, the OpenAPI description |
//! | `web` | pages for people |
//! | `region_summary` | the region summarized for pages |
//! | `sampler` | samples of the region over time |
//! | `autosize_advice` | which quantile and cooldown the history of a reservation recommends |
//! | `supply` | how long the servers of each hardware type last |
//! | `warm_capacity` | shared buffers that failures need, and headroom for growth |
//! | `local` | the unix socket for administrators of this machine |
//! | [`usage`] | servers and promises counted, and their series |
//! | `archive`, `rehearsal`, `policies` | interfaces that `ras` implements: files of solves, simulated decisions, the compiler of policies |
//!
//! `/openapi.json` describes every path; `/api` is a page to browse it. Writes need a token with the right role,
//! in a header or a session cookie; its name is the actor in the audit trail. Errors of the API are
//! `application/problem+json` (RFC 9457).
//!
//! Start with [`Portal`]. `examples/serve.rs` serves a region: `cargo run -p capacity-portal --example serve`.

mod api;
mod archive;
mod autosize_advice;
mod drill;
mod error;
mod http;
mod local;
mod policies;
mod region_summary;
mod rehearsal;
mod sampler;
mod supply;
pub mod usage;
mod warm_capacity;
mod web;

pub use api::probes::region_status;
pub use api::schemas::capacity_request as capacity_request_schema;
pub use api::token_view;
pub use archive::{Archive, ArchiveError, ArchivedFile, Chunks};
pub use error::PortalError;
pub use http::auth::authority::{Authority, Role, Token, TokenError};
pub use http::auth::secret::{NoRandomness, Secret};
pub use http::tls::{TlsError, TlsFiles};
pub use local::{LocalSocket, local_actor, socket_path};
pub use policies::{GroupNow, JudgePolicies, PolicyRefusal};
pub use rehearsal::{Rehearse, Rehearsed, Stand};

use api::described::{self, Described};
use autosize_advice::AutosizeAdvice;
use axum::Router;
use axum::middleware::{from_fn_with_state, map_request};
use axum_server::Server;
use axum_server::tls_rustls::RustlsAcceptor;
use broker::{AllocatorView, Broker};
use control::{
    ChangeNotifier, EventBatcher, LiveFeed, PlanQueue, Planner, RegionCache, RemotePlanner,
    admission, autosize, buffers,
};
use fleet::pace::Limits as MoveLimits;
use http::auth::cache::TokenCache;
use http::followers::PageFollowers;
use http::limits::{self, HEAD_WITHIN, RequestLimits};
use http::rate::RateLimits;
use http::state::Site;
use http::tls::Tls;
use hyper_util::rt::TokioTimer;
use region_summary::RegionSummaries;
use sampler::Sampler;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use supply::SupplyCache;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use warm_capacity::WarmCapacityCache;

/// The OpenAPI description, as served and as committed in the repository.
pub fn openapi() -> String {
    api::openapi::text(api::routes().into_openapi())
}

/// Settings of the server.
#[derive(Clone, Debug, Default)]
pub struct PortalSettings {
    /// Tokens beside those of the database. By default reads need no token.
    pub authority: Authority,
    /// Makes plans; `None`: plans are rejected.
    pub planner: Option<Arc<dyn Planner>>,
    /// Files of solves; `None`: not served.
    pub archive: Option<Arc<dyn Archive>>,
    /// Simulates decisions after the loss of an MSB; `None`: drills show only which reservations keep what.
    pub rehearsal: Option<Arc<dyn Rehearse>>,
    /// Compiles policies in SQL; `None`: changes of policies are rejected.
    pub policies: Option<Arc<dyn JudgePolicies>>,
    /// Limits of moves, which explain why pending moves wait.
    pub move_limits: MoveLimits,
    /// Servers in use of others that a plan may move without the approval of an operator; `None`: any number.
    pub approval_above: Option<u64>,
    /// Requests per second of one caller; `None`: 1,000.
    pub requests_per_second: Option<NonZeroU32>,
    /// Certificate and key; `None`: no TLS.
    pub tls: Option<TlsFiles>,
    /// Whether `/metrics` shows single reservations without a token even where reads need one.
    pub open_metrics: bool,
    /// Whether a proxy in front terminates TLS, so that cookies are for TLS only.
    pub tls_before: bool,
}

/// A server that listens on a network address, a unix socket, or both.
pub struct Portal {
    network: Option<Network>,
    socket: Option<LocalSocket>,
    router: Router,
    region: RegionCache,
    sampler: Sampler,
}

/// A bound network address.
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
    /// Binds only a network address; port 0 chooses a free port.
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

    /// Binds the network address, and serves it and the unix socket.
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
        let (router, sampler) = router(broker, settings);
        let region = sampler.region.clone();
        Ok(Portal { network, socket, router, region, sampler })
    }

    /// The bound network address.
    pub fn address(&self) -> Option<SocketAddr> {
        self.network.as_ref().map(|network| network.at)
    }

    /// The unix socket.
    pub fn socket(&self) -> Option<&LocalSocket> {
        self.socket.as_ref()
    }

    /// Its region cache, for other users of the whole region.
    pub fn region(&self) -> &RegionCache {
        &self.region
    }

    /// Base URL of the network address.
    pub fn url(&self) -> Option<String> {
        let network = self.network.as_ref()?;
        let scheme = if network.tls.is_some() { "https" } else { "http" };
        Some(format!("{scheme}://{}", network.at))
    }

    /// Serves until dropped.
    ///
    /// # Errors
    /// [`PortalError::Serve`].
    pub async fn serve(self) -> Result<(), PortalError> {
        let Portal { network, socket, router, sampler, .. } = self;
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
            never = sampler.run() => match never {},
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
                    never = tls.reload() => never,
                }
            }
        }
    }
}

fn router(broker: Broker, settings: PortalSettings) -> (Router, Sampler) {
    let notifier = ChangeNotifier::start(broker.clone());
    let secure = settings.tls.is_some() || settings.tls_before;
    let rate = RateLimits::start(settings.requests_per_second);
    let limits = Arc::new(RequestLimits { rate: rate.clone(), secure });
    let decides = settings.planner.is_some();
    let summaries = RegionSummaries::default();
    let region = RegionCache::start(broker.clone(), &notifier);
    let (supply, warm) = (SupplyCache::default(), WarmCapacityCache::default());
    let sampler = Sampler {
        broker: broker.clone(),
        region: region.clone(),
        summaries: summaries.clone(),
        supply: supply.clone(),
        warm: warm.clone(),
    };
    let site = Site {
        tokens: TokenCache::start(settings.authority, broker.clone(), rate, secure),
        allocators: AllocatorView::new(broker.clone()),
        batcher: EventBatcher::start(broker.clone()),
        live: LiveFeed::start(broker.clone(), &notifier, &region),
        page_followers: PageFollowers::default(),
        region: region.clone(),
        plan_queue: PlanQueue::new(settings.planner),
        remote_planner: RemotePlanner::new(broker.clone(), region.clone()),
        rehearsal: settings.rehearsal,
        policies: settings.policies,
        judging: Arc::new(Semaphore::new(1)),
        move_limits: settings.move_limits,
        approval_above: settings.approval_above,
        region_summaries: summaries,
        supply,
        warm,
        autosize_advice: AutosizeAdvice::default(),
        notifier,
        archive: settings.archive,
        open_metrics: settings.open_metrics,
        submitted: Arc::default(),
        broker,
    };
    if decides {
        tokio::spawn(admission::worker::run(site.admission(), site.submitted.clone()));
        let running = || Arc::downgrade(&site.submitted);
        tokio::spawn(autosize::run(site.broker.clone(), running()));
        tokio::spawn(buffers::run(site.broker.clone(), site.region.clone(), running()));
    }
    let (routes, description) = api::routes().split_for_parts();
    let description = Arc::new(Described::new(&description));
    let router = routes
        .layer(from_fn_with_state(description, described::check))
        .merge(api::browse::routes(openapi()))
        .merge(web::routes())
        .fallback(web::no_such_path)
        .with_state(site)
        .layer(from_fn_with_state(limits, limits::enforce));
    // Around the router, because the path decides the route.
    let router = Router::new().fallback_service(router).layer(map_request(limits::dot_segments));
    (router, sampler)
}
