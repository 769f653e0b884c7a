//! A living region: the real store in a private Postgres, the admission worker with the real planner,
//! the solver, and the mover with simulated host agents.
//!
//! The first commands describe the region, as in other scenarios. The first command that needs a living
//! region loads it into a database. The mover acts during `run` only, until the region is at rest,
//! so that a scenario can look at the region before and after.

mod act;
mod history;
mod orders;
mod print;

use crate::statement::Statement;
use crate::{region, show};
use act::Windows;
use async_solver::backend::InProcess;
use broker::{Broker, EmergencyId, Export};
use control::{Admission, ChangeNotifier, PlanQueue, RegionCache, RemotePlanner};
use fleet::audit::audit;
use fleet::{RegionSnapshot, Scope, SnapshotParts, Targets};
use history::Seen;
use online_mover::agent::simulated::SimulatedAgent;
use online_mover::{Mover, MoverSettings};
use ras::service::SolvingPlanner;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use testkit::postgres::Database;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

/// Longest duration of one command; a machine under load is slow.
const PATIENCE: Duration = Duration::from_secs(100);

/// Actor of everything that a scenario does.
const ACTOR: &str = "scenario";

/// A region over time. Fields are dropped in this order: the runtime last.
pub struct Living {
    described: Option<SnapshotParts>,
    settings: MoverSettings,
    /// Servers in use of others that a plan may move without approval.
    approval_above: Option<u64>,
    stored: Option<Stored>,
    runtime: Runtime,
}

/// A region in a database, and the services that act on it.
struct Stored {
    broker: Broker,
    mover: Mover<SimulatedAgent>,
    /// Rung for each submitted request; the admission worker ends when it is dropped.
    submitted: Arc<Notify>,
    windows: Windows,
    /// Emergencies without a decision yet.
    emergencies: Vec<EmergencyId>,
    seen: Seen,
    _database: Database,
}

impl Default for Living {
    fn default() -> Living {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Living {
            described: None,
            settings: MoverSettings {
                look_every: Duration::from_millis(100),
                pause: Duration::from_millis(5),
                pause_max: Duration::from_millis(20),
                settle: Duration::from_millis(50),
                ..MoverSettings::default()
            },
            approval_above: None,
            stored: None,
            runtime: runtime.expect("a runtime"),
        }
    }
}

impl Living {
    /// Runs a block of commands, one a line, and returns their output. A command that cannot be
    /// carried out prints the reason and ends the block.
    pub fn run(&mut self, block: impl IntoIterator<Item = Statement>) -> String {
        let mut text = String::new();
        for statement in block {
            match self.step(statement) {
                Ok(output) => text.push_str(&output),
                Err(error) => {
                    text.push_str(&format!("error: {error}\n"));
                    break;
                }
            }
        }
        text
    }

    fn step(&mut self, mut said: Statement) -> Result<String, String> {
        if let Some(change) = self.describe(&mut said) {
            change?;
            said.finish()?;
            return Ok(String::new());
        }
        if self.stored.is_none() {
            let parts = self.described.take().ok_or("there is no region yet")?;
            let snapshot = RegionSnapshot::new(parts).map_err(|error| error.to_string())?;
            let stored = Stored::new(&snapshot, self.settings.clone(), self.approval_above);
            self.stored = Some(within(&self.runtime, stored)?);
        }
        let stored = self.stored.as_mut().ok_or("there is no region yet")?;
        let output = within(&self.runtime, stored.step(&mut said))??;
        said.finish()?;
        Ok(output)
    }

    /// Commands that describe the region before it is stored, or set mover and admission; `None`: another
    /// command.
    fn describe(&mut self, said: &mut Statement) -> Option<Result<(), String>> {
        let verb = said.verb.clone();
        let parts = match (verb.as_str(), &mut self.described) {
            ("region", _) => {
                self.stored = None;
                let made = region::region(said);
                return Some(made.map(|parts| self.described = Some(parts)));
            }
            ("mover", _) => return Some(self.set_mover(said)),
            ("admission", _) => return Some(self.set_admission(said)),
            (_, Some(parts)) => parts,
            _ => return None,
        };
        Some(match verb.as_str() {
            "servers" => region::servers(parts, said),
            "domain" => region::domain(parts, said),
            "reservation" => region::reservation(parts, said),
            "hold" => region::hold(parts, said),
            "use" => region::start(parts, said),
            _ => return None,
        })
    }

    /// `mover give_way_after=SECONDS`: reservations give way without an operator's decision.
    fn set_mover(&mut self, said: &mut Statement) -> Result<(), String> {
        if self.stored.is_some() {
            return Err("mover: the region lives already".to_owned());
        }
        self.settings.give_way_after = Some(Duration::from_secs(said.value("give_way_after")?));
        Ok(())
    }

    /// `admission approval_above=SERVERS`: plans that move more servers in use of others await approval.
    fn set_admission(&mut self, said: &mut Statement) -> Result<(), String> {
        if self.stored.is_some() {
            return Err("admission: the region lives already".to_owned());
        }
        self.approval_above = Some(said.value("approval_above")?);
        Ok(())
    }
}

/// Runs a command on the runtime, within [`PATIENCE`].
fn within<T>(runtime: &Runtime, command: impl Future<Output = T>) -> Result<T, String> {
    let waited = async { tokio::time::timeout(PATIENCE, command).await };
    runtime.block_on(waited).map_err(|_| format!("not done after {} s", PATIENCE.as_secs()))
}

impl Stored {
    /// Loads the region and starts the admission worker.
    async fn new(
        region: &RegionSnapshot,
        settings: MoverSettings,
        approval_above: Option<u64>,
    ) -> Stored {
        let database = Database::with(region).await;
        let broker = database.broker.clone();
        let notifier = ChangeNotifier::start(broker.clone());
        let cache = RegionCache::start(broker.clone(), &notifier);
        let planner = SolvingPlanner::with_backend(None, Box::new(InProcess))
            .expect("the default settings are valid");
        let admission = Admission {
            approval_above,
            broker: broker.clone(),
            region: cache.clone(),
            queue: PlanQueue::new(Some(Arc::new(planner))),
            remote: RemotePlanner::new(broker.clone(), cache),
        };
        let submitted = Arc::new(Notify::new());
        tokio::spawn(control::admission::worker::run(admission, submitted.clone()));
        let agent = SimulatedAgent::default();
        let mover = Mover::new(broker.clone(), agent, settings, "mover".to_owned());
        Stored {
            seen: Seen::of(region),
            broker,
            mover,
            submitted,
            windows: Windows::default(),
            emergencies: Vec::new(),
            _database: database,
        }
    }

    async fn step(&mut self, said: &mut Statement) -> Result<String, String> {
        match said.verb.as_str() {
            "request" => self.request(said).await,
            "approve" => self.approve(said).await,
            "reject" => self.reject(said).await,
            "fail" => self.fail(said).await,
            "repair" => self.repair(said).await,
            "emergency" => self.emergency(said).await,
            "maintain" => self.maintain(said).await,
            "end" => self.end(said).await,
            "run" => self.run(said).await,
            "solve" => self.solve(said).await,
            "thrash" => self.thrash().await,
            "order" => self.order(said).await,
            "rack" => self.rack(said).await,
            _ => self.question(said).await,
        }
    }

    /// Commands that only look.
    async fn question(&self, said: &mut Statement) -> Result<String, String> {
        let (_, now) = self.export().await?;
        match said.verb.as_str() {
            "show" => self.show(&now).await,
            "audit" => Ok(show::audit(&now)),
            "certify" => Ok(show::certificate(&now)),
            "losses" => Ok(show::losses(&audit(&now, &Targets::unchanged(&now)))),
            "where" => {
                let (name, by): (String, _) = (said.value("name")?, said.optional("by")?);
                show::place(&now, &name, &by.unwrap_or_else(|| Scope::Msb.as_str().to_owned()))
            }
            verb => Err(format!("{verb} is not a command")),
        }
    }

    /// The region as it is stored now.
    async fn export(&self) -> Result<(Export, RegionSnapshot), String> {
        let export = self.broker.export(None).await.map_err(|error| error.to_string())?;
        let snapshot = RegionSnapshot::new(export.parts.clone());
        Ok((export, snapshot.map_err(|error| error.to_string())?))
    }
}
