//! Could a request be granted, what would it take, and what could be granted instead?
//!
//! [`quote()`] puts the request into the region, plans for it ([`crate::plan`]), has the outcome
//! audited, and where it is not granted in full names the limits in its way and plans for the
//! nearest requests that would be.

use crate::config::SolverConfig;
use crate::group_limits::{GroupLimits, LimitUse};
use crate::means::Means;
use crate::offered::OfferedPlan;
use crate::params::PARAMS;
use crate::plan::{How, Plan, known, plan};
use crate::warm::WarmStart;
use fleet::audit::{AuditReport, ReservationAudit, audit, worse_ahead};
use fleet::explain::{Explainer, Limit, LimitName, Searched, Shortfall};
use fleet::quote::MoveCost;
use fleet::{
    CapacityRequest, DatacenterIx, HardwareTypeIx, RegionSnapshot, ReplicaRule, RequestChange,
    RequestError, Reservation, ReservationIx, Rru, Targets,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request as planned and audited: its grant, cost, and refusal.
#[derive(Clone, Debug)]
pub struct Quoted {
    /// The region with the request in it.
    pub region: RegionSnapshot,
    /// Its reservation there.
    pub reservation: ReservationIx,
    /// Whether the reservation is new, changed or ends.
    pub change: RequestChange,
    /// What is guaranteed to it today (eq. 6), by the request's values.
    pub today: Rru,
    /// What would be.
    pub granted: Rru,
    /// What it would take.
    pub plan: Plan,
    /// What the audit, which is not the solver's code, says of it.
    pub audit: AuditReport,
    /// Why not in full; `None` if it is.
    pub refusal: Option<Refusal>,
    /// The limits of groups that the plan keeps.
    pub limits: Arc<GroupLimits>,
}

/// Why a request is not granted in full.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// What is missing, and the reason, one of a closed list.
    pub shortfall: Shortfall,
    /// An irreducible set of limits that blocks the request.
    pub limits: Vec<Limit>,
    /// Requests near this one that would be granted in full, the cheapest in moves first.
    pub alternatives: Vec<Alternative>,
}

/// Limits of the groups of a region: they follow from its servers and reservations.
pub type LimitsOf<'a> = &'a (dyn Fn(&RegionSnapshot) -> Arc<GroupLimits> + Sync);

/// A request that would be granted in full.
#[derive(Clone, Debug)]
pub struct Alternative {
    /// What is given up, and how much.
    pub concession: Concession,
    /// What to ask for.
    pub request: CapacityRequest,
    /// What it would take.
    pub cost: MoveCost,
    /// Its plan: given to the next quote ([`QuoteContext::offered`]), it is the answer to the request.
    pub plan: OfferedPlan,
}

/// What an owner can give up.
#[derive(Clone, Debug, PartialEq)]
pub enum Concession {
    /// Less capacity.
    FewerRru(Rru),
    /// One more hardware type, at the value that others give it.
    OneMoreType(HardwareTypeIx, Rru),
    /// A larger tolerance of its datacenter shares; the least that does, in steps of 0.01.
    LooserAffinity(f64),
    /// One more datacenter that it is allowed in.
    OneMoreDatacenter(DatacenterIx),
    /// More of its replicas in one MSB.
    LooserReplicaRule(ReplicaRule),
    /// The survival of the loss of an MSB.
    WithoutBuffer,
}

/// Counts the moves of a plan for a reservation of a region.
pub fn move_cost(region: &RegionSnapshot, plan: &Plan, reservation: ReservationIx) -> MoveCost {
    let mut cost = MoveCost { price: plan.price, ..MoveCost::default() };
    for of in &plan.moves {
        cost.lent += usize::from(region.servers[of.server.ix()].loaned_to.is_some());
        *match (of.source, of.in_use) {
            (None, _) => &mut cost.acquired,
            (Some(source), true) if source == reservation => &mut cost.own_in_use,
            (Some(source), false) if source == reservation => &mut cost.own_idle,
            (Some(_), true) => &mut cost.in_use,
            (Some(_), false) => &mut cost.idle,
        } += 1;
    }
    cost
}

/// The region and the means of a quote.
pub struct QuoteContext<'a> {
    /// The region as it is.
    pub snapshot: &'a RegionSnapshot,
    /// Threads and seed.
    pub config: &'a SolverConfig,
    /// Prices that the last solve left.
    pub warm: Option<&'a WarmStart>,
    /// Plans that were offered before, the latest last.
    pub offered: &'a [OfferedPlan],
    /// Limits of groups of a region with the request in it; `None`: no limits.
    pub limits: Option<LimitsOf<'a>>,
    /// Clock, deadline and HiGHS.
    pub means: Means<'a>,
}

/// Plans a request and audits the plan.
///
/// # Errors
/// If the request makes no sense for the region.
pub fn quote(context: &QuoteContext, request: &CapacityRequest) -> Result<Quoted, RequestError> {
    let (region, change) = request.apply(context.snapshot)?;
    let reservation = region.reservation(&request.reservation_id).expect("it was just put there");
    let limits = context.limits.map_or_else(Arc::default, |of| of(&region));
    if let Some(answer) = context.as_offered((&region, &limits), reservation, change) {
        return Ok(answer);
    }
    let began = (context.means.elapsed)();
    let means = context.means.with_share(PARAMS.plan.search_share);
    let within = (&region, &*limits);
    let mut found = context.planned(within, reservation, &means, true);
    let mut audit = audit(&region, &found.after);
    let mut refusal = None;
    if audit.reservations[reservation.ix()].holding.shortfall > Rru::ZERO {
        let mut explainer = Explainer::new(&region, &found.after);
        let row = &audit.reservations[reservation.ix()];
        let offers = context.offers(request, within, row, reservation, &explainer, &found);
        // What is granted in part is granted in the cheapest way that was found.
        if let Some((report, cheaper)) = cheaper(within, reservation, &audit, &found, &offers) {
            (audit, found) = (report, cheaper);
            explainer = Explainer::new(&region, &found.after);
        }
        let mut shortfall =
            explainer.shortfall_of(reservation).expect("the audit says it is short");
        let mut named = explainer.limits(reservation);
        let granted = audit.reservations[reservation.ix()].holding.guaranteed;
        let policies = context.policies(within, reservation, &found, granted);
        let surely_missing = Rru::from_f64(found.surely_missing).unwrap_or_default();
        let searched = Searched {
            capacity: region.reservations[reservation.ix()].capacity,
            found: granted,
            surely_missing,
            is_most: found.is_most,
            within: context.means.deadline.map(|end| end.saturating_sub(began)),
            within_policies: policies.in_proof,
        };
        shortfall.searched(&searched);
        shortfall.lack_of_room(&policies.full, &searched);
        if surely_missing > Rru::ZERO && !policies.in_proof {
            named.iter_mut().for_each(Limit::proved);
        }
        if policies.in_proof && policies.is_known && policies.full.is_empty() {
            let sentence = "policies together, of which no group alone is full".to_owned();
            named.push(Limit { limit: LimitName::Policy, without: granted, sentence });
        }
        named.extend(policies.full);
        let mut alternatives: Vec<Alternative> =
            offers.into_iter().map(|of| of.alternative).collect();
        alternatives.sort_by(|a, b| {
            let moves = |of: &Alternative| (of.cost.in_use + of.cost.own_in_use, of.cost.idle);
            moves(a).cmp(&moves(b)).then(a.cost.price.total_cmp(&b.cost.price))
        });
        refusal = Some(Refusal { shortfall, limits: named, alternatives });
    }
    let row = &audit.reservations[reservation.ix()];
    let (today, granted) = (row.initial.guaranteed, row.holding.guaranteed);
    let plan = found;
    Ok(Quoted { reservation, change, today, granted, plan, audit, refusal, limits, region })
}

/// The plan of an offer of less that gives the request itself as much as its own plan, still short, for less.
fn cheaper(
    (region, limits): Within,
    ix: ReservationIx,
    audited: &AuditReport,
    found: &Plan,
    offers: &[Offer],
) -> Option<(AuditReport, Plan)> {
    let granted = audited.reservations[ix.ix()].holding.guaranteed;
    let same = |of: &&Offer| of.granted >= granted && of.plan.price < found.price - 1e-9;
    let Offer { plan, .. } = offers.iter().filter(|of| of.is_less()).find(same)?;
    let report = audit(region, &plan.after);
    let holding = &report.reservations[ix.ix()].holding;
    let is_part = holding.guaranteed >= granted && holding.shortfall > Rru::ZERO;
    (report.is_clean() && is_part && limits.are_kept(region, &plan.after)).then(|| {
        let plan = Plan {
            before: plan.before.clone(),
            after: plan.after.clone(),
            moves: plan.moves.clone(),
            price: plan.price,
            primal: found.primal + plan.price - found.price,
            ..found.clone()
        };
        (report, plan)
    })
}

/// The targets of a plan, with as little of what happens anyway as leaves no reservation worse off.
///
/// A reservation that loses a server by the plan depends on what it gains anyway: that is kept whole, and
/// so on for the reservations it is taken from. If the audit still finds one worse off, all of it is kept.
pub(crate) fn minimal_targets((region, limits): Within, plan: &Plan) -> Targets {
    let today = Targets::unchanged(region);
    let (today, before, after) = (today.holders(), plan.before.holders(), plan.after.holders());
    if today == before {
        return plan.after.clone();
    }
    let mut kept: Vec<bool> = before.iter().zip(after).map(|(was, is)| was != is).collect();
    let mut open: Vec<usize> = (0..kept.len()).filter(|&s| kept[s]).collect();
    let mut anyway: BTreeMap<ReservationIx, Vec<usize>> = BTreeMap::new();
    for s in (0..kept.len()).filter(|&s| !kept[s] && today[s] != before[s]) {
        if let Some(gains) = before[s] {
            anyway.entry(gains).or_default().push(s);
        }
    }
    while let Some(s) = open.pop() {
        for loses in [today[s], before[s]].into_iter().flatten() {
            for gained in anyway.remove(&loses).unwrap_or_default() {
                kept[gained] = true;
                open.push(gained);
            }
        }
    }
    let holders = (0..kept.len()).map(|s| if kept[s] { after[s] } else { today[s] }).collect();
    let few = Targets::new(region, holders);
    // What is handed back anyway may make the room in a limit that the plan takes.
    let is_kept = limits.are_kept(region, &few) || !limits.are_kept(region, &plan.after);
    if is_kept && audit(region, &few).is_clean() { few } else { plan.after.clone() }
}

/// The region with the servers pinned that planned maintenance needs: those of reservations that a plan takes a surplus
/// from, and that would be left with less than was promised meanwhile. `None`: it takes none.
fn held_ahead(within: Within, asking: ReservationIx, plan: &Plan) -> Option<RegionSnapshot> {
    let region = within.0;
    let mut worse = worse_ahead(region, &minimal_targets(within, plan));
    worse.retain(|of| *of != asking);
    if worse.is_empty() {
        return None;
    }
    let mut held = region.clone();
    for server in &mut held.servers {
        server.pinned |= server.holder().is_some_and(|holder| worse.contains(&holder));
    }
    Some(held)
}

impl Quoted {
    /// Whether what is carried out for it leaves no reservation worse off, and no limit of a group. What happens without it is not carried out, such
    /// as the release of a surplus that planned maintenance needs.
    pub fn is_clean(&self) -> bool {
        let within = (&self.region, &*self.limits);
        let carried_out = || minimal_targets(within, &self.plan);
        self.limits.are_kept(&self.region, &self.plan.after)
            && (self.audit.is_clean() || audit(&self.region, &carried_out()).is_clean())
    }
}

/// A region with a request in it, and its limits of groups.
type Within<'a> = (&'a RegionSnapshot, &'a GroupLimits);

/// An alternative as it was planned.
struct Offer {
    alternative: Alternative,
    granted: Rru,
    plan: Plan,
}

/// The audit of a plan, if the plan grants its request in full and can be carried out.
fn in_full(within: Within, ix: ReservationIx, plan: &Plan) -> Option<AuditReport> {
    let (region, limits) = within;
    let audit = audit(region, &plan.after);
    let is_full = audit.is_clean() && audit.reservations[ix.ix()].holding.shortfall == Rru::ZERO;
    let is_kept = is_full && limits.are_kept(region, &plan.after);
    (is_kept && held_ahead(within, ix, plan).is_none()).then_some(audit)
}

/// What limits of groups do to a request.
#[derive(Default)]
struct Policies {
    /// Those in its way: those with no room for a server that counts for it, and those that a plan for more exceeds.
    full: Vec<Limit>,
    /// Whether what is proved to be missing was not proved without them.
    in_proof: bool,
    /// Whether the search without them ended by itself: what it did not prove in the time that it had may be so all the same.
    is_known: bool,
}

impl Offer {
    /// Whether it is less of the same.
    fn is_less(&self) -> bool {
        matches!(self.alternative.concession, Concession::FewerRru(_))
    }
}

impl QuoteContext<'_> {
    fn how<'b>(&'b self, limits: &'b GroupLimits, means: &'b Means<'b>, prove: bool) -> How<'b> {
        How { config: self.config, warm: self.warm, limits, prove, means }
    }

    /// Plans a request that is in a region, around what planned maintenance needs.
    fn planned(&self, within: Within, ix: ReservationIx, means: &Means, prove: bool) -> Plan {
        let (region, limits) = within;
        let found = plan(region, ix, &self.how(limits, means, prove));
        match held_ahead(within, ix, &found) {
            Some(held) => {
                let means = self.means.with_share(PARAMS.plan.search_share);
                plan(&held, ix, &self.how(limits, &means, prove))
            }
            None => found,
        }
    }

    /// What limits of groups do to a request that a plan leaves short, by a plan that does not have them.
    fn policies(
        &self,
        (region, limits): Within,
        ix: ReservationIx,
        found: &Plan,
        granted: Rru,
    ) -> Policies {
        if !(0..limits.limits().len()).any(|limit| limits.can_bind(limit)) {
            return Policies::default();
        }
        let means = self.means.with_share(PARAMS.plan.search_share);
        let other = self.planned((region, &GroupLimits::default()), ix, &means, false);
        let is_known = !means.must_stop();
        let without = audit(region, &other.after).reservations[ix.ix()].holding.guaranteed;
        let is_more = without > granted && !limits.are_kept(region, &other.after);
        let most = region.reservations[ix.ix()].capacity;
        let without = if is_more { without.min(most) } else { granted };
        let in_proof = other.surely_missing < found.surely_missing;
        if !is_more && !in_proof {
            return Policies::default();
        }
        let mut full = match is_more || is_known {
            true => limits.full_for(region, ix, &found.after),
            false => Vec::new(),
        };
        if is_more {
            let exceeded = limits.exceeded_by(region, &other.after, &found.after).into_iter();
            let further: Vec<_> = exceeded.filter(|of| !full.contains(of)).collect();
            full.extend(further);
        }
        let group = |LimitUse { name, most, after, .. }: LimitUse| {
            let name = name.replacen(": ", ", ", 1);
            let sentence = format!("policy {name}: {after} of {most}");
            Limit { limit: LimitName::Policy, without, sentence }
        };
        Policies { full: full.into_iter().map(group).collect(), in_proof, is_known }
    }

    /// The answer to a request that was offered, if it still holds.
    fn as_offered(
        &self,
        (region, limits): (&RegionSnapshot, &Arc<GroupLimits>),
        ix: ReservationIx,
        change: RequestChange,
    ) -> Option<Quoted> {
        let offered = self.offered.iter().rev().find(|of| of.answers(region, ix))?;
        let (before, after) = offered.targets(region)?;
        let plan = known(region, ix, (&before, &after), &self.how(limits, &self.means, true));
        let audit =
            in_full((region, limits), ix, &plan).filter(|_| offered.costs_no_more(plan.price))?;
        let row = &audit.reservations[ix.ix()];
        Some(Quoted {
            reservation: ix,
            change,
            today: row.initial.guaranteed,
            granted: row.holding.guaranteed,
            plan,
            audit,
            refusal: None,
            limits: Arc::clone(limits),
            region: region.clone(),
        })
    }

    /// Requests near one that would be granted in full, in the region with it and by its plan.
    fn offers(
        &self,
        request: &CapacityRequest,
        within: Within,
        row: &ReservationAudit,
        ix: ReservationIx,
        explainer: &Explainer,
        plan: &Plan,
    ) -> Vec<Offer> {
        let reservation = &within.0.reservations[ix.ix()];
        let concessions = concessions(reservation, ix, explainer, row);
        let (mut found, mut types) = (Vec::new(), 0);
        for (number, concession) in concessions.iter().enumerate() {
            let is_type = matches!(concession, Concession::OneMoreType(..));
            if is_type && types >= PARAMS.plan.max_types_offered {
                continue;
            }
            // Each has its share of the time that is left.
            let means = self.means.with_share(1.0 / (concessions.len() - number) as f64);
            let offer = self.grant(concession, request, within.0, ix, (plan, &means));
            types += usize::from(is_type && offer.is_some());
            found.extend(offer);
        }
        found
    }

    /// What a concession would take, if it is enough. `plan`: of the request as it is.
    fn grant(
        &self,
        concession: &Concession,
        request: &CapacityRequest,
        region: &RegionSnapshot,
        ix: ReservationIx,
        (plan, means): (&Plan, &Means),
    ) -> Option<Offer> {
        let mut other = region.clone();
        let reservation = &mut other.reservations[ix.ix()];
        let mut asked = request.clone();
        match *concession {
            Concession::FewerRru(capacity) => {
                reservation.capacity = capacity;
                asked.capacity_rru = Some(capacity.to_f64());
            }
            Concession::OneMoreType(ty, value) => {
                reservation.rru.push((ty, value));
                reservation.rru.sort_unstable();
                let named = |&(ty, value): &(HardwareTypeIx, Rru)| {
                    (region.hardware_types[ty.ix()].clone(), value.to_f64())
                };
                asked.rru = Some(reservation.rru.iter().map(named).collect::<BTreeMap<_, _>>());
            }
            Concession::LooserAffinity(theta) => {
                reservation.affinity_theta = Some(theta);
                asked.affinity_theta = Some(Some(theta));
            }
            Concession::OneMoreDatacenter(datacenter) => {
                reservation.allowed_datacenters.push(datacenter);
                reservation.allowed_datacenters.sort_unstable();
                let named = reservation.allowed_datacenters.iter();
                let named = named.map(|dc| region.datacenters[dc.ix()].id.clone());
                asked.allowed_datacenters = Some(named.collect());
            }
            Concession::LooserReplicaRule(rule) => {
                reservation.replica_rule = Some(rule);
                asked.replicas = Some(Some(rule.replicas.cast_signed()));
                asked.replicas_per_msb = Some(Some(rule.per_msb.cast_signed()));
            }
            Concession::WithoutBuffer => {
                reservation.msb_buffer = false;
                asked.msb_buffer = Some(false);
            }
        }
        // Limits count what another request would have of each server.
        let own = self.limits.map_or_else(Arc::default, |of| of(&other));
        let limits = &*own;
        let within = (&other, limits);
        let is_less = matches!(concession, Concession::FewerRru(_));
        // What was found of the request is a plan for that much, unless rules of places depend on how much is asked for.
        let is_found = is_less && !is_placed(&other.reservations[ix.ix()]);
        let targets = (&plan.before, &plan.after);
        let same = is_found.then(|| known(&other, ix, targets, &self.how(limits, means, false)));
        let same = same.and_then(|plan| Some((in_full(within, ix, &plan)?, plan)));
        let found = match same {
            Some(same) => Ok(same),
            None => {
                // Less may end at less still, which is planned in the time that is left then.
                let first = means.with_share(PARAMS.plan.search_share);
                let plan = self.planned(within, ix, &first, false);
                in_full(within, ix, &plan).map(|audit| (audit, plan.clone())).ok_or(plan)
            }
        };
        match (found, concession) {
            (Ok((audit, plan)), _) => {
                let cost = move_cost(&other, &plan, ix);
                let granted = audit.reservations[ix.ix()].holding.guaranteed;
                let offered = OfferedPlan::new(&other, ix, &plan);
                let concession = concession.clone();
                let alternative = Alternative { concession, request: asked, cost, plan: offered };
                Some(Offer { alternative, granted, plan })
            }
            // A search for less may end elsewhere, at less still; what is offered is what was planned.
            (Err(plan), Concession::FewerRru(capacity)) => {
                let report = audit(&other, &plan.after);
                let less = report.reservations[ix.ix()].holding.guaranteed;
                let less = (Rru(1)..*capacity).contains(&less).then_some(less)?;
                let less = Concession::FewerRru(less);
                self.grant(&less, request, region, ix, (&plan, means))
            }
            (Err(_), _) => None,
        }
    }
}

/// Whether limits of places follow from the amount that is asked for.
fn is_placed(reservation: &Reservation) -> bool {
    !reservation.affinity.is_empty() || reservation.replica_rule.is_some()
}

/// What may be worth giving up: what could be enough with the servers that are free, or nearly.
fn concessions(
    reservation: &Reservation,
    ix: ReservationIx,
    explainer: &Explainer,
    row: &ReservationAudit,
) -> Vec<Concession> {
    let near =
        |found: Rru| found.to_f64() * PARAMS.plan.nearly_enough >= reservation.capacity.to_f64();
    let mut found = Vec::new();
    if row.holding.guaranteed > Rru::ZERO {
        found.push(Concession::FewerRru(row.holding.guaranteed));
    }
    found.extend(explainer.looser_affinity(ix).map(Concession::LooserAffinity));
    found.extend(explainer.looser_replica_rule(ix).map(Concession::LooserReplicaRule));
    let more = explainer.more_datacenters(ix).into_iter();
    found.extend(more.map(Concession::OneMoreDatacenter));
    let further = explainer.further_types(ix).into_iter();
    let further = further.filter(|of| near(row.holding.guaranteed + of.value.times(of.free)));
    let further = further.take(PARAMS.plan.max_more_types);
    found.extend(further.map(|of| Concession::OneMoreType(of.hardware_type, of.value)));
    if reservation.msb_buffer && near(row.holding.assigned) {
        found.push(Concession::WithoutBuffer);
    }
    found
}
