//! Commands that change a living region.

use super::{ACTOR, Stored};
use crate::region::named_scope;
use crate::show;
use crate::solve::solve;
use crate::statement::{Statement, pairs};
use broker::{
    EmergencyId, EmergencyRequest, GrantPolicy, MaintenanceError, MaintenanceRequest,
    MaintenanceState, OperationId, Publication, PublicationId, Report, Reported, Request,
    RequestChangeKind, RequestFilter, RequestId, RequestSpec, RequestState, State, Submission,
    WindowId,
};
use control::admission::rejection;
use fleet::{CapacityRequest, RegionSnapshot, Rru, Scope, UnavailabilityKind};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// Interval of polls.
const POLL: Duration = Duration::from_millis(20);

/// A region is at rest if nothing has changed for this long: ten passes of the mover.
const REST: Duration = Duration::from_secs(1);

/// Maintenance windows by the name of their rack or server, and events under way by theirs.
#[derive(Default)]
pub(super) struct Windows {
    planned: BTreeMap<String, WindowId>,
    events: BTreeMap<String, Report>,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Stored {
    /// `request`: asks for a new reservation or a change, and waits for the decision.
    pub(super) async fn request(&mut self, said: &mut Statement) -> Result<String, String> {
        let name: String = said.value("name")?;
        let remove = said.flag("remove");
        let (_, now) = self.export().await?;
        let exists = now.reservation(&name).is_some();
        let mut types = pairs(&said.list("types"), 1.0)?;
        if types.is_empty() && !exists {
            types = now.hardware_types.iter().map(|name| (name.to_string(), 1.0)).collect();
        }
        let rru = types.into_iter().map(|(name, worth)| (name.into(), worth)).collect();
        let change = CapacityRequest {
            reservation_id: name.as_str().into(),
            remove,
            owner: (!exists).then(|| "owner".into()),
            capacity_rru: if remove { None } else { Some(said.value("rru")?) },
            msb_buffer: said.optional::<String>("buffer")?.map(|word| word == "yes"),
            priority: said.optional("priority")?,
            rru: (!exists).then_some(rru),
            ..CapacityRequest::default()
        };
        let kind = match (remove, exists) {
            (true, _) => RequestChangeKind::Remove,
            (false, true) => RequestChangeKind::Change,
            (false, false) => RequestChangeKind::Create,
        };
        let least: Option<f64> = said.optional("at_least")?;
        let least = least.map(|rru| Rru::from_f64(rru).ok_or("at_least is no amount"));
        let policy = least.transpose()?.map_or(GrantPolicy::All, GrantPolicy::AtLeast);
        let (starts_at, ends_at, labels, contract) = (None, None, None, None);
        let owner = "owner".into();
        let asking = RequestSpec {
            kind,
            owner,
            change,
            policy,
            starts_at,
            ends_at,
            labels,
            contract,
            why: None,
        };
        let id = RequestId::now_v7();
        let (operation, expected, key) = (Some(OperationId::now_v7()), None, None);
        let submission = Submission { id, operation, asking: &asking, expected, key };
        self.broker.submit_request(ACTOR, &submission).await.map_err(text)?;
        self.submitted.notify_one();
        let decided = self.decided(id).await?;
        Ok(super::print::decision(&name, &decided))
    }

    /// `approve`: approves the request of a reservation that awaits approval, and waits for the decision.
    pub(super) async fn approve(&mut self, said: &mut Statement) -> Result<String, String> {
        let name: String = said.value("name")?;
        let id = self.awaiting(&name).await?;
        self.broker.approve_request(ACTOR, id).await.map_err(text)?;
        self.submitted.notify_one();
        Ok(super::print::decision(&name, &self.decided(id).await?))
    }

    /// `reject`: rejects the request of a reservation that awaits approval.
    pub(super) async fn reject(&mut self, said: &mut Statement) -> Result<String, String> {
        let name: String = said.value("name")?;
        let id = self.awaiting(&name).await?;
        let refusal = rejection("not during the sale");
        self.broker.reject_request(ACTOR, id, &refusal).await.map_err(text)?;
        Ok(super::print::decision(&name, &self.decided(id).await?))
    }

    async fn awaiting(&self, name: &str) -> Result<RequestId, String> {
        let filter = RequestFilter {
            reservation: Some(name.to_owned()),
            state: Some(RequestState::AwaitingApproval),
            ..RequestFilter::default()
        };
        let found = self.broker.requests(&filter, None, 1).await.map_err(text)?;
        Ok(found.first().ok_or("no request awaits approval")?.id)
    }

    async fn decided(&self, id: RequestId) -> Result<Request, String> {
        loop {
            let request = self.broker.request(id).await.map_err(text)?;
            let request = request.ok_or("the request is gone")?;
            if !matches!(request.state, RequestState::Submitted | RequestState::Planned) {
                return Ok(request);
            }
            sleep(POLL).await;
        }
    }

    /// `fail`: reports that a server, rack, MSB or datacenter is unavailable.
    pub(super) async fn fail(&mut self, said: &mut Statement) -> Result<String, String> {
        let (scope, name) = named_scope(said)?;
        let kind = match scope {
            Scope::Server | Scope::Rack => UnavailabilityKind::RandomFailure,
            Scope::Msb | Scope::Datacenter => UnavailabilityKind::CorrelatedFailure,
        };
        let started_at = self.broker.clock().await.map_err(text)?;
        let event = format!("{} {name} {started_at}", scope.as_str()).into();
        let scope_id = name.as_str().into();
        let report = Report { event, scope, scope_id, kind, started_at, ended_at: None };
        self.windows.events.insert(name, report.clone());
        self.report(report).await
    }

    /// `repair`: reports the end of an event of this name.
    pub(super) async fn repair(&mut self, said: &mut Statement) -> Result<String, String> {
        let (_, name) = named_scope(said)?;
        let report = self.windows.events.remove(&name);
        let mut report = report.ok_or_else(|| format!("repair: {name} has not failed"))?;
        report.ended_at = Some(self.broker.clock().await.map_err(text)?);
        self.report(report).await
    }

    async fn report(&self, report: Report) -> Result<String, String> {
        let outcome = self.broker.report_unavailability(ACTOR, &[report]).await.map_err(text)?;
        match &outcome.rows[..] {
            [Reported::Recorded | Reported::Ended] => Ok(String::new()),
            rows => Err(format!("the report changed nothing: {rows:?}")),
        }
    }

    /// `emergency`: asks for capacity at once. The mover decides it in the next `run`.
    pub(super) async fn emergency(&mut self, said: &mut Statement) -> Result<String, String> {
        let (name, rru): (String, f64) = (said.value("name")?, said.value("rru")?);
        let rru = Rru::from_f64(rru).ok_or("rru is no amount")?;
        let id = EmergencyId::now_v7();
        let request = EmergencyRequest {
            id,
            reservation: &name,
            amount: rru,
            why: "a site is lost",
            max_servers: 10_000,
            beyond_limits: said.flag("beyond_limits"),
        };
        self.broker.ask_emergency(ACTOR, &request).await.map_err(text)?;
        self.emergencies.push(id);
        Ok(String::new())
    }

    /// `maintain`: plans a window on a server, a rack or an MSB. Times are in seconds.
    pub(super) async fn maintain(&mut self, said: &mut Statement) -> Result<String, String> {
        let (scope, name) = named_scope(said)?;
        let request = MaintenanceRequest {
            accept_short: None,
            scope,
            name: name.as_str().into(),
            starts_at: None,
            length: Duration::from_secs(said.value("length")?),
            drain: Duration::from_secs(said.optional("drain")?.unwrap_or(0)),
            share_micro: Some(1_000_000),
            recall_minutes: said.optional("recall_minutes")?,
            why: "new fans".to_owned(),
        };
        match self.broker.plan_maintenance(ACTOR, &request).await {
            Ok(windows) => {
                let count = windows.len();
                let first = windows.into_iter().next().ok_or("no window was planned")?;
                self.windows.planned.insert(name.clone(), first.id);
                Ok(format!("{name}: {}, {count} window\n", first.state.as_str()))
            }
            // What would be accepted instead names times of the clock.
            Err(MaintenanceError::Refused(refusal)) => {
                Ok(format!("{name}: refused: {}\n", refusal.without_instead()))
            }
            Err(error) => Err(text(error)),
        }
    }

    /// `end`: work in a window is done before its time.
    pub(super) async fn end(&mut self, said: &mut Statement) -> Result<String, String> {
        let (_, name) = named_scope(said)?;
        self.broker.end_maintenance(ACTOR, self.window(&name)?).await.map_err(text)?;
        Ok(String::new())
    }

    fn window(&self, name: &str) -> Result<WindowId, String> {
        self.windows.planned.get(name).copied().ok_or_else(|| format!("{name} has no window"))
    }

    /// `run`: the mover acts until the region is at rest, or until a window has reached a state.
    /// Prints what became of emergencies, servers and loans.
    pub(super) async fn run(&mut self, said: &mut Statement) -> Result<String, String> {
        let until: Option<String> = said.optional("until")?;
        let mut output = String::new();
        match until {
            None => tokio::select! {
                never = self.mover.run() => never,
                rested = self.rests() => rested?,
            },
            Some(word) => {
                let state = MaintenanceState::ALL.iter().find(|state| state.as_str() == word);
                let state = *state.ok_or_else(|| format!("run: until={word} is no state"))?;
                let (_, name) = named_scope(said)?;
                let id = self.window(&name)?;
                tokio::select! {
                    never = self.mover.run() => never,
                    reached = self.reaches(id, state) => reached?,
                }
                output.push_str(&format!("{name}: {word}\n"));
            }
        }
        for id in std::mem::take(&mut self.emergencies) {
            let emergency = self.broker.emergency(id).await.map_err(text)?;
            let emergency = emergency.ok_or("the emergency is gone")?;
            output.push_str(&super::print::emergency(&emergency));
        }
        let (_, now) = self.export().await?;
        output.push_str(&self.seen.difference(&now));
        let broken = self.broker.check().await.map_err(text)?;
        output.extend(broken.iter().map(|rule| format!("WRONG: {rule}\n")));
        Ok(output)
    }

    /// Returns once nothing is under way, every emergency is decided, and nothing has been written
    /// for [`REST`]. Moves of servers that are out of use wait for their return.
    async fn rests(&self) -> Result<(), String> {
        let (mut last, mut quiet) = (None, Duration::ZERO);
        while quiet < REST {
            sleep(POLL).await;
            let seq = self.broker.last_seq().await.map_err(text)?;
            let open = self.broker.moves_under_way().await.map_err(text)?;
            let pending = self.broker.mover_status().await.map_err(text)?.acting.is_none()
                || open.iter().any(|of| !of.out_of_use)
                || self.undecided().await?;
            quiet = if pending || last != Some(seq) { Duration::ZERO } else { quiet + POLL };
            last = Some(seq);
        }
        Ok(())
    }

    async fn undecided(&self) -> Result<bool, String> {
        for id in &self.emergencies {
            let emergency = self.broker.emergency(*id).await.map_err(text)?;
            if emergency.is_some_and(|of| of.state == broker::EmergencyState::Asked) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn reaches(&self, id: WindowId, state: MaintenanceState) -> Result<(), String> {
        loop {
            let windows = self.broker.maintenance(true, Some(id.into()), 1).await.map_err(text)?;
            if windows.iter().any(|window| window.state == state) {
                return Ok(());
            }
            sleep(POLL).await;
        }
    }

    /// `solve`: solves the stored region, audits and publishes the targets. `solve again` prints
    /// moves only. The next `run` executes them.
    pub(super) async fn solve(&mut self, said: &mut Statement) -> Result<String, String> {
        let again = said.flag("again");
        let (mut export, _) = self.export().await?;
        self.broker.look_ahead(&mut export.parts, broker::HORIZON).await.map_err(text)?;
        let snapshot = RegionSnapshot::new(export.parts).map_err(text)?;
        let solved = tokio::task::block_in_place(|| solve(&snapshot));
        let mut output: String =
            solved.objections.iter().map(|objection| format!("WRONG: {objection}\n")).collect();
        if !again {
            output.push_str(&show::holdings(&snapshot, &solved));
        }
        output.push_str(&show::moves(&snapshot, &solved.targets));
        let (id, generations) = (PublicationId::now_v7(), &export.generations);
        let publication =
            Publication::new(id, export.version, generations, &snapshot, &solved.targets);
        let published = self.broker.publish(ACTOR, &publication).await.map_err(text)?;
        if published.skipped > 0 {
            output.push_str(&format!("skipped: {}\n", published.skipped));
        }
        self.seen.solved();
        Ok(output)
    }
}
