//! A private Postgres with a small region, a portal and a client.

use crate::allocator::Allocator;
use crate::requests::{ADMIN, OWNER_A, OWNER_B};
use api_types::problem::Problem;
use broker::{Broker, ImportOptions, Publication, PublicationId, TargetRow};
use capacity_portal::{Authority, Portal, PortalSettings, Rehearse, Rehearsed, Role, Stand, Token};
use decisions::preemption::{Preemption, RegionHeld, Standing, plan};
use fleet::{MsbIx, RegionSnapshot};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use testkit::postgres::{Database, Server};
use testkit::rows::{snapshot, two_reservations};

/// Timeout of everything here; a machine under load is slow.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub const WATCH: &str = "secret-of-the-watch";
pub const READER: &str = "secret-of-a-reader";
pub const ROOT: &str = "secret-of-an-operator";

/// A portal on a database of the tests' Postgres.
pub struct Place {
    pub broker: Broker,
    pub base: String,
    pub client: reqwest::Client,
    portal: tokio::task::JoinHandle<()>,
    postgres: Postgres,
}

enum Postgres {
    Shared(Box<Database>),
    Own(Box<Server>),
}

impl Drop for Place {
    fn drop(&mut self) {
        self.portal.abort();
    }
}

/// 24 servers: eight of `a`, eight of `b/ü`, eight free.
pub fn region() -> RegionSnapshot {
    snapshot(&two_reservations(["a", "b/ü"], 4.5, 1.25))
}

/// The tokens of the settings.
pub fn tokens() -> Vec<Token> {
    vec![
        Token::new("watch", &[Role::Health], WATCH).expect("a token"),
        Token::new("reader", &[Role::Viewer], READER).expect("a token"),
        Token::new("root", &[Role::Operator, Role::Emergency], ROOT).expect("a token"),
    ]
}

/// Owners, an administrator and a planner: requests are decided.
pub fn deciding() -> PortalSettings {
    let mut tokens = tokens();
    for (name, owner, secret) in [("owner-a", "a", OWNER_A), ("owner-b", "b/ü", OWNER_B)] {
        tokens.push(Token::scoped(name, &[Role::Owner], Some(owner), secret).expect("a token"));
    }
    tokens.push(Token::new("admin", &[Role::Admin], ADMIN).expect("a token"));
    let authority = Authority::new(tokens, true).expect("tokens");
    let planner = Some(Arc::new(Allocator) as _);
    PortalSettings { authority, planner, ..PortalSettings::default() }
}

/// The mover's own functions, as `ras` gives them.
#[derive(Debug)]
pub struct Decisions;

impl Rehearse for Decisions {
    fn loss(&self, _: &RegionSnapshot, _: MsbIx) -> Rehearsed {
        Rehearsed::default()
    }

    fn preemptions(&self, held: &RegionHeld) -> (Vec<Preemption>, Vec<Stand>) {
        let (moves, standings) = plan(held);
        let stand = |of: Standing| Stand {
            reservation: of.reservation,
            priority: of.priority,
            capacity: of.capacity,
            before: of.before,
            after: of.after,
        };
        (moves, standings.into_iter().map(stand).collect())
    }
}

impl Place {
    /// 24 servers in six racks and three MSBs: eight of `a`, eight of `b/ü`, eight free.
    pub async fn new() -> Place {
        Place::with(Authority::new(tokens(), false).expect("three tokens")).await
    }

    /// A place where reads need a token, too.
    pub async fn closed() -> Place {
        let authority = Authority::new(tokens(), true).expect("three tokens");
        let rehearsal = Some(Arc::new(Decisions) as _);
        Place::set(PortalSettings { authority, rehearsal, ..PortalSettings::default() }).await
    }

    /// One with an archive.
    pub async fn keeping(archive: Arc<dyn capacity_portal::Archive>) -> Place {
        let authority = Authority::new(tokens(), false).expect("three tokens");
        let archive = Some(archive);
        Place::set(PortalSettings { authority, archive, ..PortalSettings::default() }).await
    }

    pub async fn with(authority: Authority) -> Place {
        Place::set(PortalSettings { authority, ..PortalSettings::default() }).await
    }

    pub async fn set(settings: PortalSettings) -> Place {
        Place::of(Some(&region()), settings).await
    }

    /// One with another region, or none.
    pub async fn of(region: Option<&RegionSnapshot>, settings: PortalSettings) -> Place {
        let database = match region {
            Some(region) => Database::with(region).await,
            None => Database::new().await,
        };
        let broker = database.broker.clone();
        Place::serve(broker, settings, Postgres::Shared(Box::new(database))).await
    }

    /// A place whose store was changed by SQL before the portal began.
    pub async fn after(sql: &str) -> Place {
        let authority = Authority::new(tokens(), false).expect("three tokens");
        Place::set_after(sql, PortalSettings { authority, ..PortalSettings::default() }).await
    }

    /// The same with other settings.
    pub async fn set_after(sql: &str, settings: PortalSettings) -> Place {
        let database = Database::with(&region()).await;
        database.execute(sql).await;
        let broker = database.broker.clone();
        Place::serve(broker, settings, Postgres::Shared(Box::new(database))).await
    }

    /// A region in a Postgres of its own, which the test may stop.
    pub async fn alone() -> Place {
        let server = Server::start().await;
        let broker = Broker::open(&server.address()).await.expect("opened");
        broker.load("test", &region(), ImportOptions::default()).await.expect("loaded");
        let authority = Authority::new(tokens(), false).expect("three tokens");
        let settings = PortalSettings { authority, ..PortalSettings::default() };
        Place::serve(broker, settings, Postgres::Own(Box::new(server))).await
    }

    async fn serve(broker: Broker, settings: PortalSettings, postgres: Postgres) -> Place {
        let at = "127.0.0.1:0".parse().expect("an address");
        let portal = Portal::bind(at, broker.clone(), settings).await;
        let portal = portal.expect("it listens");
        let base = format!("http://{}", portal.address().expect("an address"));
        let portal = tokio::spawn(async { portal.serve().await.expect("it serves") });
        let client = reqwest::Client::builder().build().expect("a client");
        Place { broker, base, client, portal, postgres }
    }

    /// The folder of the socket of its Postgres, and the name of its database.
    pub fn socket(&self) -> (PathBuf, String) {
        match &self.postgres {
            Postgres::Shared(database) => (database.socket(), database.name().to_owned()),
            Postgres::Own(server) => (server.socket(), "region".to_owned()),
        }
    }

    /// Executes SQL in its database.
    pub async fn execute(&self, sql: &str) {
        match &self.postgres {
            Postgres::Shared(database) => database.execute(sql).await,
            Postgres::Own(_) => panic!("for databases that tests share"),
        }
    }

    /// Waits until it has read the region.
    pub async fn ready(&self) {
        let ready = async {
            while self.send(Method::GET, "/ready", None, "").await.status() != 200 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ready).await.expect("it becomes ready");
    }

    /// Stops its Postgres.
    pub async fn stop_postgres(&mut self) {
        match &mut self.postgres {
            Postgres::Own(server) => server.stop().await,
            Postgres::Shared(_) => panic!("other tests use this Postgres: ask for Place::alone"),
        }
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: impl Into<reqwest::Body>,
    ) -> Response {
        let request = self.client.request(method, format!("{}{path}", self.base)).body(body);
        let request = match token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        };
        request.send().await.expect("an answer")
    }

    /// What is answered to a body, with the token that may do it.
    pub async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        answer(self.send(Method::POST, path, Some(WATCH), body.to_string()).await).await
    }

    pub async fn get(&self, path: &str) -> (StatusCode, Value) {
        answer(self.send(Method::GET, path, None, "").await).await
    }

    /// A reservation's servers, page by page, as they are listed; and where to follow from.
    pub async fn list(&self, reservation: &str) -> (i64, BTreeMap<String, Value>) {
        let (mut all, mut after, mut seq) = (BTreeMap::new(), String::new(), None);
        loop {
            let path = format!("/v1/reservations/{reservation}/servers?limit=3&after={after}");
            let (status, page) = self.get(&path).await;
            assert_eq!(status, 200, "{page}");
            seq = seq.or(page["seq"].as_i64());
            for row in page["servers"].as_array().expect("a list") {
                all.insert(row["server"].as_str().expect("a name").to_owned(), row.clone());
            }
            match page["next"].as_str() {
                Some(next) => after = next.to_owned(),
                None => return (seq.expect("a number"), all),
            }
        }
    }

    pub async fn publish(&self, server: usize, to: Option<&str>) {
        let export = self.broker.export(None).await.expect("exported");
        let target = TargetRow {
            server: export.parts.servers[server].server_id.clone(),
            generation: export.generations[server],
            target: to.map(Into::into),
        };
        let (id, parent) = (PublicationId::now_v7(), export.version);
        let publication = Publication { id, parent, solve: None, targets: vec![target] };
        self.broker.publish("test", &publication).await.expect("published");
    }
}

pub async fn answer(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let id = response.headers().get("x-request-id").cloned().expect("every answer has an id");
    let kind = response.headers().get("content-type").cloned().expect("a type");
    let text = response.text().await.expect("text");
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"));
    if status.is_client_error() || status.is_server_error() {
        assert_eq!(kind, "application/problem+json");
        assert_eq!(body["request_id"].as_str(), id.to_str().ok());
        assert_eq!(body["status"], status.as_u16());
        for member in ["type", "title", "code", "detail"] {
            assert!(body[member].is_string(), "no {member} in {body}");
        }
        // The form that clients read.
        let read = Problem::deserialize(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        let written = serde_json::to_value(&read.members).expect("JSON");
        for (member, value) in written.as_object().expect("members") {
            assert_eq!(&body[member], value, "{member}");
        }
    }
    (status, body)
}
