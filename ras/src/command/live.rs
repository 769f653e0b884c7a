//! `ras demo --live`: a living region to click through. It starts `ras up` on a generated region in a folder of its
//! own, asks it over its unix socket what an owner, a monitoring system and an operator would ask, and tells what came
//! of it. Everything is removed at the end.

use super::import::now;
use crate::client::login::{LocalServer, Place, Server};
use crate::client::problem::Problem;
use crate::client::{Ask, Client, operation, path};
use crate::context::Context;
use crate::exit::Verdict;
use crate::number::{amount, count, seconds};
use crate::service::Stop;
use crate::{executable, store, terminal};
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use api_types::failures::{LostMsb, Outages, Replacement, Replacements};
use api_types::requests::{Accepted, Request, RequestRefusal};
use api_types::reservations::{RegionCertificate, Reservation, ServersPage};
use api_types::solves::{SolveAsked, SolveDetail};
use api_types::status::RegionStatus;
use broker::{ReplacementState, SolveState, State as _};
use chrono::{DateTime, SecondsFormat, Utc};
use datasets::generate::{GenerateOptions, State, generate};
use fleet::{RegionSnapshot, Rru, Scope, UnavailabilityKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep, timeout};

/// The region: small enough for a laptop, with shared buffers that have spares of every type.
const SERVERS: usize = 2_000;
const RESERVATIONS: usize = 8;
const MSBS: usize = 9;
const SEED: u64 = 7;

/// The owner that the demo plays, its reservation, and the servers that it asks for.
const OWNER: &str = "shop";
const WEB: &str = "shop-web";
const WANTED: usize = 12;
/// Servers of it that fail.
const FAILING: usize = 2;
/// Deadline of a solve.
const SOLVE: &str = "15s";

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long anything may take that the region is expected to do.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the server may take to stop.
const STOP_WITHIN: Duration = Duration::from_secs(60);

/// Plays until Ctrl-C. `pace`: the pause before each event.
pub(super) fn run(pace: Duration, context: &Context) -> Result<Verdict> {
    store::run(async {
        let mut stop = Stop::listen()?;
        let folder = tempfile::Builder::new().prefix("ras-demo-").tempdir();
        let folder = folder.context("a folder for the demo")?;
        // A private Postgres may run as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))
            .context("a folder for the demo")?;
        let mut up = Up::start(folder.path())?;
        let played = async {
            let demo = Demo { client: up.client()?, pages: up.pages().await?, pace, context };
            demo.play().await?;
            Err(up.ended().await)
        };
        let played = tokio::select! {
            () = stop.asked() => Ok(()),
            played = played => played,
        };
        let stopped = up.stop().await;
        folder.close().context("removing the demo")?;
        played.and(stopped)
    })?;
    context.answer(
        || "the demo has ended, and everything of it is removed".to_owned(),
        &json!({ "event": "removed" }),
    )?;
    Ok(Verdict::Fine)
}

/// A server of the generated region.
struct Up {
    child: Child,
    /// Its standard input, which ends with this process. Waiting for the child would close its own.
    _input: Option<ChildStdin>,
    data: PathBuf,
    /// What it prints once it is ready.
    said: PathBuf,
}

/// The start of a server, as `ras up` prints it.
#[derive(Deserialize)]
struct Started {
    /// Its address.
    http: Option<String>,
}

impl Up {
    fn start(folder: &Path) -> Result<Up> {
        let options = GenerateOptions {
            region: "demo".to_owned(),
            reservations: RESERVATIONS,
            msbs: MSBS,
            seed: SEED,
            state: State::Steady,
            ..GenerateOptions::new(SERVERS)
        };
        let parts = generate(&options).context("generating the region of the demo")?;
        let snapshot = RegionSnapshot::new(parts).context("generating the region of the demo")?;
        let (region, data, said) =
            (folder.join("region"), folder.join("data"), folder.join("up.json"));
        datasets::write_snapshot(&region, &snapshot).context("the region of the demo")?;
        let out = fs::File::create(&said).context("the output of the demo's server")?;
        let mut command = Command::new(executable::path().context("the path of this program")?);
        command.arg("up").arg(&region).arg("--data").arg(&data);
        command.args(["--listen", "127.0.0.1:0", "--schedule", "never", "--agent", "simulated"]);
        command.args(["--deadline", SOLVE, "--output", "json", "--log", "error"]);
        // It ends with this process, even if that is killed.
        command.arg("--until-input-ends").stdin(Stdio::piped());
        command.env_remove("DATABASE_URL").stdout(out).kill_on_drop(true);
        let mut child = command.spawn().context("starting the demo's server")?;
        Ok(Up { _input: child.stdin.take(), child, data, said })
    }

    fn client(&self) -> Result<Client> {
        let place = Place::Socket(LocalServer { data: self.data.clone(), named: true });
        Client::new(Server { place, token: None })
    }

    /// The address of its pages, once it is ready.
    async fn pages(&mut self) -> Result<String> {
        loop {
            let said = fs::read_to_string(&self.said).context("the output of the demo's server")?;
            if let Ok(started) = serde_json::from_str::<Started>(&said) {
                let at = started.http.context("the demo's server does not listen")?;
                return Ok(format!("http://{at}"));
            }
            if self.child.try_wait().context("the demo's server")?.is_some() {
                bail!("the demo's server ended before it was ready");
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn ended(&mut self) -> anyhow::Error {
        match self.child.wait().await {
            Ok(status) => anyhow!("the demo's server ended by itself: {status}"),
            Err(error) => anyhow!(error).context("waiting for the demo's server"),
        }
    }

    /// Stops it, with its Postgres.
    async fn stop(&mut self) -> Result<()> {
        if let Some(id) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            let id = rustix::process::Pid::from_raw(id).context("a process")?;
            // It may have ended, or may have seen Ctrl-C, too.
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
        let ended = timeout(STOP_WITHIN, self.child.wait()).await;
        ended.context("the demo's server does not stop")?.context("the demo's server").map(drop)
    }
}

/// What has happened.
struct Event {
    /// A word for programs.
    event: &'static str,
    text: String,
    /// Path of the page that shows it.
    page: String,
}

struct Demo<'a> {
    client: Client,
    pages: String,
    pace: Duration,
    context: &'a Context,
}

impl Demo<'_> {
    async fn play(&self) -> Result<()> {
        self.say(&self.region().await?)?;
        self.next(self.granted().await?).await?;
        self.next(self.replaced().await?).await?;
        self.next(self.refused().await?).await?;
        self.next(self.solved().await?).await?;
        let (lost, msb, since) = self.msb_lost().await?;
        self.next(lost).await?;
        self.next(self.msb_back(&msb, since).await?).await?;
        let text = "that is all that is played. The region lives on: look around, or ask for capacity yourself. \
                    Ctrl-C ends it and removes everything";
        self.say(&Event { event: "played", text: text.to_owned(), page: "/request".to_owned() })
    }

    /// Announces, and leaves time to look.
    async fn next(&self, event: Event) -> Result<()> {
        self.say(&event)?;
        sleep(self.pace).await;
        Ok(())
    }

    fn say(&self, event: &Event) -> Result<()> {
        let Event { event, text, page } = event;
        let (at, page) = (now(), format!("{}{page}", self.pages));
        if self.context.is_text() {
            let at = at.format("%H:%M:%S");
            return terminal::print(&format!("{at}  {text}\n          {page}"));
        }
        let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let line = json!({ "at": at, "event": event, "text": text, "page": page });
        terminal::print(&line.to_string())
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.client.get(path).await?.read()
    }

    async fn web(&self) -> Result<Reservation> {
        self.get(&path(&["v1", "reservations", WEB])).await
    }

    /// Looks until there is something.
    async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Result<Option<T>>) -> Result<T> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look().await? {
                return Ok(found);
            }
            ensure!(Instant::now() < until, "waited {} s: {what}", PATIENCE.as_secs());
            sleep(LOOK_EVERY).await;
        }
    }

    async fn region(&self) -> Result<Event> {
        let status: RegionStatus = self.get("/status").await?;
        let text = format!(
            "a region of {} servers with {} reservations runs, in a Postgres of its own",
            count(usize::try_from(status.servers.total).unwrap_or_default()),
            status.reservations.guaranteed
        );
        Ok(Event { event: "region", text, page: "/".to_owned() })
    }

    /// The request as it ended.
    async fn decided(&self, ask: &Ask) -> Result<Request> {
        let accepted: Accepted = self.client.ask(ask).await?.read()?;
        let operation = accepted.operation.context("the server decides no requests")?;
        match operation::wait(&self.client, &operation, WEB, true).await {
            Err(error) if error.downcast_ref::<Problem>().is_none() => return Err(error),
            _ => {}
        }
        self.get(&path(&["v1", "requests", &accepted.request])).await
    }

    async fn granted(&self) -> Result<Event> {
        let types = self.types().await?;
        let began = Instant::now();
        let asked = json!({
            "reservation": WEB, "owner": OWNER, "servers": WANTED, "hardware_types": types,
        });
        let request = self.decided(&Ask::post("/v1/reservations", asked)).await?;
        ensure!(request.granted_rru.is_some(), "{WEB} was not granted: {}", request.state);
        let took = seconds(began.elapsed().as_secs_f64());
        let web = self.until("its servers arrive", async || {
            let web = self.web().await?;
            Ok((web.guaranteed_rru >= web.promised_rru && web.arriving.servers == 0).then_some(web))
        });
        let text = format!(
            "{OWNER} asked for {WANTED} servers of {}: granted in {took}, whichever MSB is lost. Its {} servers have arrived",
            types.join(" or "),
            web.await?.owned.servers
        );
        Ok(Event { event: "granted", text, page: format!("/reservations/{WEB}") })
    }

    /// The types with most free servers.
    async fn types(&self) -> Result<Vec<String>> {
        const TYPES: usize = 2;
        #[derive(Deserialize)]
        struct FreeServers {
            servers: Vec<FreeServer>,
        }
        #[derive(Deserialize)]
        struct FreeServer {
            hardware_type: String,
        }
        let free = "/ops/v1/servers?filter=use%3Dfree&fields=hardware_type";
        let servers = self.client.get_all(free, "servers").await?;
        let mut by_type = std::collections::BTreeMap::<String, usize>::new();
        for server in servers.read::<FreeServers>()?.servers {
            *by_type.entry(server.hardware_type).or_default() += 1;
        }
        let mut types: Vec<(String, usize)> = by_type.into_iter().collect();
        types.sort_by_key(|(_, free)| std::cmp::Reverse(*free));
        Ok(types.into_iter().take(TYPES).map(|(name, _)| name).collect())
    }

    /// Reports an event, as a monitoring system does; `ended_at`: that it is over.
    async fn report(
        &self,
        scope: Scope,
        name: &str,
        since: DateTime<Utc>,
        ended_at: Option<DateTime<Utc>>,
    ) -> Result<()> {
        let kind = match scope {
            Scope::Server => UnavailabilityKind::RandomFailure,
            _ => UnavailabilityKind::CorrelatedFailure,
        };
        let event = json!({
            "event": format!("demo: {name}"), "scope": scope.as_str(), "scope_id": name,
            "kind": kind.as_str(), "started_at": since, "ended_at": ended_at,
        });
        self.client.ask(&Ask::post_once("/ops/v1/events", event)).await.map(drop)
    }

    async fn replaced(&self) -> Result<Event> {
        let servers: ServersPage = self.get(&path(&["v1", "reservations", WEB, "servers"])).await?;
        let failing: Vec<String> = (servers.servers.iter().filter(|of| of.bound))
            .take(FAILING)
            .map(|of| of.server.to_string())
            .collect();
        for name in &failing {
            self.report(Scope::Server, name, now(), None).await?;
        }
        let replaced = self.until("failed servers are replaced", async || {
            let all: Replacements = self.get("/ops/v1/replacements").await?;
            let ours: Vec<Replacement> =
                all.replacements.into_iter().filter(|of| failing.contains(&of.server)).collect();
            let settled = [ReplacementState::Bound, ReplacementState::Paid].map(|of| of.as_str());
            let done = ours.iter().all(|of| settled.contains(&&*of.state));
            Ok((ours.len() == failing.len() && done).then_some(ours))
        });
        let told: Vec<String> = (replaced.await?.iter())
            .map(|of| {
                let took = (of.state_at - of.recorded_at).as_seconds_f64();
                let spare = of.spare.as_deref().unwrap_or("a solve");
                format!("{} by {spare} after {}", of.server, seconds(took))
            })
            .collect();
        let text =
            format!("{FAILING} servers of {WEB} failed and were replaced: {}", told.join(", "));
        Ok(Event { event: "replaced", text, page: "/failures".to_owned() })
    }

    async fn refused(&self) -> Result<Event> {
        let asked = json!({ "capacity_rru": SERVERS });
        let ask = Ask::patch(path(&["v1", "reservations", WEB]), "*", asked);
        let request = self.decided(&ask).await?;
        let answer = request.answer.unwrap_or_default();
        let RequestRefusal::NotGranted(refused) =
            RequestRefusal::deserialize(answer).context("reading the refusal")?
        else {
            bail!("it was not refused for its size");
        };
        let refusal = refused.answer.refusal.context("all of it was granted")?;
        let instead = refusal.alternatives.first().map_or_else(String::new, |of| {
            format!(". Granted would be, for example: {}", of.sentence)
        });
        let text = format!(
            "{OWNER} asked for {} RRU: {}, because {}{instead}",
            count(SERVERS),
            request.state,
            refusal.sentence
        );
        Ok(Event { event: "refused", text, page: format!("/requests/{}", request.request) })
    }

    async fn outage(&self, msb: &str) -> Result<Option<LostMsb>> {
        let all: Outages = self.get("/ops/v1/outages").await?;
        Ok(all.outages.into_iter().find(|of| of.msb == msb))
    }

    /// Waits until no loss of an MSB leaves the reservation short.
    async fn guaranteed(&self) -> Result<Reservation> {
        self.until("its capacity is guaranteed", async || {
            let web = self.web().await?;
            Ok(Some(web).filter(|of| of.missing_after_loss_rru <= 0.0 && of.arriving.servers == 0))
        })
        .await
    }

    /// Loses the MSB with most servers of the reservation.
    async fn msb_lost(&self) -> Result<(Event, String, DateTime<Utc>)> {
        let web = self.web().await?;
        let msb = web.by_msb.iter().max_by_key(|(_, part)| part.servers);
        let (msb, part) = msb.context("it has no servers")?;
        let (msb, part, since) = (msb.clone(), part.servers, now());
        self.report(Scope::Msb, &msb, since, None).await?;
        let outage = self.until("the loss is noticed", async || self.outage(&msb).await).await?;
        let lost = self.until("its servers are out of use", async || {
            Ok(Some(self.web().await?).filter(|web| web.out_of_use.servers >= part))
        });
        let web = lost.await?;
        let all: RegionCertificate = self.get("/ops/v1/certificate?limit=1").await?;
        let rru = |of: f64| Rru::from_f64(of).map_or_else(|| of.to_string(), amount);
        let text = format!(
            "MSB {msb} is lost, with {} servers, {part} of them of {WEB}. {WEB} was promised {} RRU and has {} now: \
             its embedded buffer covers the loss. Of {} reservations, {} have less than promised",
            outage.servers,
            rru(web.promised_rru),
            rru(web.held_rru),
            all.of,
            all.short
        );
        Ok((Event { event: "msb_lost", text, page: format!("/msbs/{msb}") }, msb, since))
    }

    async fn msb_back(&self, msb: &str, since: DateTime<Utc>) -> Result<Event> {
        self.report(Scope::Msb, msb, since, Some(now())).await?;
        self.until("the MSB is back", async || {
            Ok(self.outage(msb).await?.filter(|of| of.ended_at.is_some()))
        })
        .await?;
        let standing = self.guaranteed().await?.standing.replace('_', " ");
        let text = format!("MSB {msb} is back, and {WEB} is {standing} again");
        Ok(Event { event: "msb_back", text, page: format!("/reservations/{WEB}") })
    }

    async fn solved(&self) -> Result<Event> {
        let asked = Ask::post("/ops/v1/solves", json!({}));
        let asked: SolveAsked = self.client.ask(&asked).await?.read()?;
        let place = path(&["ops", "v1", "solves", &asked.solve.to_string()]);
        let open = [SolveState::Requested, SolveState::Running].map(|of| of.as_str());
        let solved = self.until("the solve ends", async || {
            let solve: SolveDetail = self.get(&place).await?;
            Ok(Some(solve).filter(|of| !open.contains(&&*of.solve.state)))
        });
        let SolveDetail { solve, figures, .. } = solved.await?;
        self.guaranteed().await?;
        let moves = figures.and_then(|of| of.moves).context("the solve has no report")?;
        let text = format!(
            "a solve of the whole region is {}: {} servers in use and {} idle ones move",
            solve.state, moves.in_use, moves.idle
        );
        Ok(Event { event: "solved", text, page: format!("/solves/{}", solve.solve) })
    }
}
