//! Compiles changes of policies for the portal, and searches for an assignment that keeps them.

use super::plan_policies::PlanPolicies;
use super::planner::SolvingPlanner;
use crate::highs_process::HighsProcess;
use crate::region_policies::{RegionPolicies, RegionPoliciesError};
use crate::settings::Settings;
use anyhow::{Context, Result};
use api_types::policies::{PolicyGroup, PolicyOutlook, PolicySearch, PolicyView};
use async_solver::{Backend, GroupLimits, Leaving, SolveEnv, solve_within};
use capacity_portal::{GroupNow, JudgePolicies, PolicyRefusal};
use decisions::limits::Room;
use fleet::RegionSnapshot;
use fleet::audit::audit;
use std::cmp::Reverse;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Groups that are listed of each view.
const GROUPS: usize = 10;

/// Judges policies with the compiler and the solver.
pub struct SolvingJudge {
    /// Those in force, and what they leave room for.
    in_force: PlanPolicies,
    room: watch::Receiver<Room>,
    settings: Settings,
    backend: Box<dyn Backend + Send + Sync>,
}

impl fmt::Debug for SolvingJudge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SolvingJudge").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl SolvingJudge {
    /// With the settings of the service's solves, and the policies that plans know.
    ///
    /// # Errors
    /// If they are invalid, or this binary, which runs HiGHS, is not found.
    pub fn new(
        config: Option<&Path>,
        planner: &SolvingPlanner,
        room: watch::Receiver<Room>,
    ) -> Result<SolvingJudge> {
        let config = config.map(Into::into);
        let settings = Settings::new(&crate::cli::SolveOptions { config, ..Default::default() })?;
        let highs = HighsProcess::of_this_binary(settings.highs_memory)
            .context("cannot find the program's own executable, to run HiGHS")?;
        Ok(SolvingJudge { in_force: planner.policies(), room, settings, backend: Box::new(highs) })
    }

    /// Searches from an assignment in which the servers that have to leave are free.
    fn search(
        &self,
        region: &RegionSnapshot,
        policies: &RegionPolicies,
        leaving: &Leaving,
        within: Duration,
    ) -> Result<PolicySearch, RegionPoliciesError> {
        let began = Instant::now();
        let mut freed = region.ahead();
        for server in &leaving.servers {
            let server = &mut freed.servers[server.ix()];
            (server.current, server.pending, server.loaned_to) = (None, None, None);
            server.in_use = false;
        }
        let env = SolveEnv {
            elapsed: &|| began.elapsed(),
            deadline: Some(within),
            interrupted: &|| false,
            progress: &|_| {},
            on_incumbent: &|_| {},
            backend: &*self.backend,
            warm: None,
        };
        let found = solve_within(&freed, &policies.limits(), &self.settings.solver, &env);
        let counted = audit(region, &found.targets);
        let states = policies.of(&found.targets)?;
        Ok(PolicySearch {
            holds: states.iter().all(|of| of.fails == 0),
            moves_in_use: counted.moves.in_use,
            moves_idle: counted.moves.idle,
            shortfall_servers: counted.shortfall_servers,
            shortfall_today_servers: counted.initial_shortfall_servers,
            seconds: began.elapsed().as_secs_f64(),
        })
    }
}

impl JudgePolicies for SolvingJudge {
    fn judge(
        &self,
        region: &RegionSnapshot,
        files: &[(String, String)],
        search: Option<Duration>,
    ) -> Result<PolicyOutlook, PolicyRefusal> {
        let first = files.first().map_or("", |(name, _)| name);
        let refused = |error| refusal(error, first);
        let texts = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let policies = RegionPolicies::new(texts, region, &[]).map_err(refused)?;
        let limits = policies.limits();
        let leaving = limits.leaving(region);
        let today = policies.today();
        let search = match search.filter(|_| today.iter().any(|of| of.fails > 0)) {
            Some(within) => {
                Some(self.search(region, &policies, &leaving, within).map_err(refused)?)
            }
            None => None,
        };
        let usage = limits.usage(region.servers.iter().map(fleet::Server::holder));
        let views = today.into_iter().map(|of| PolicyView {
            groups: groups(&of.policy, &limits, &usage, &leaving),
            view: of.policy,
            policy: of.file,
            fails: of.fails,
            rows: of.rows,
        });
        Ok(PolicyOutlook { views: views.collect(), search })
    }

    fn room(&self) -> Room {
        self.room.borrow().clone()
    }

    fn now(&self) -> Option<Vec<GroupNow>> {
        let room = self.room();
        room.taken_at()?;
        let group = |(name, most, now): (&str, i64, i64)| {
            let view = name.split(": ").next().unwrap_or_default();
            GroupNow { policy: self.in_force.policy_of(view), name: name.to_owned(), most, now }
        };
        Some(room.rows().map(group).collect())
    }
}

/// The groups of a view that are nearest to their limit.
fn groups(view: &str, limits: &GroupLimits, usage: &[i64], leaving: &Leaving) -> Vec<PolicyGroup> {
    let rows = limits.limits().iter().zip(usage).zip(&leaving.fewest);
    let mut groups: Vec<PolicyGroup> = rows
        .filter_map(|((limit, today), leave)| {
            let (_, group) =
                Some(limit.policy_and_group()).filter(|(policy, _)| *policy == view)?;
            let (group, most, today, leave) = (group.to_owned(), limit.most, *today, *leave);
            Some(PolicyGroup { group, most, today, leave })
        })
        .collect();
    // By what is left, as a share of the limit: thousandths, as a limit may be zero.
    let fill = |of: &PolicyGroup| i128::from(of.today) * 1_000 / i128::from(of.most.max(1));
    groups.sort_by_key(|of| (Reverse(of.today > of.most), Reverse(fill(of))));
    groups.truncate(GROUPS);
    groups
}

fn refusal(error: RegionPoliciesError, first: &str) -> PolicyRefusal {
    match error {
        RegionPoliciesError::Policy(of) => PolicyRefusal {
            policy: of.file,
            line: of.line,
            column: of.column,
            view: of.policy,
            message: of.message,
            hint: of.hint,
        },
        RegionPoliciesError::World(error) => PolicyRefusal {
            policy: first.to_owned(),
            line: 1,
            column: 1,
            message: error.to_string(),
            ..PolicyRefusal::default()
        },
    }
}
