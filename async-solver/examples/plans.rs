//! How far plans of requests are below what is possible, on real fleets and on generated ones like them.
//!
//! `cargo run -p async-solver --example plans -- DATA [COUNT] [SEED] [PLAN_SECONDS] [SOLVE_SECONDS] [FLEET...]`
//!
//! `DATA` is the folder with `google2019_cell_a`, `alibaba_gpu_v2023` and `helios_venus`; what it lacks is left out.
//! Each fleet is solved and loaded once. Then each request, drawn from the seed, is planned with a deadline. Where it
//! is not granted in full, the smaller amount that is offered instead is asked for; where no proof says that no more
//! is possible, the region with the request in it is solved as well. One line for each request, then one for each
//! fleet. Amounts are RRU.

mod fleets;

use async_solver::random::Random;
use async_solver::{
    Concession, Means, OfferedPlan, QuoteContext, Quoted, SolveEnv, SolveOutcome, SolverConfig,
    WarmStart, quote, solve,
};
use fleet::audit::audit;
use fleet::{
    CapacityRequest, HardwareTypeName, RegionSnapshot, ReservationIx, ReservationKind, Rru,
    SnapshotParts, Targets,
};
use fleets::{OnThreads, now, parts};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::Duration;

/// Share of the servers of guaranteed reservations that run containers (RAS section 4.6).
const LOADED: f64 = 0.8;

/// Share of the bound below which a plan has missed what is possible.
const NEAR: f64 = 0.98;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().ok_or("the folder of the fleets is missing")?;
    let number =
        |at: usize, default: u64| arguments.get(at).map_or(Ok(default), |text| text.parse::<u64>());
    let (count, seed) = (number(1, 60)?, number(2, 1)?);
    let (plan, solve) = (number(3, 5)?, number(4, 20)?);
    let seconds = (Duration::from_secs(plan), Duration::from_secs(solve));
    let only = arguments.get(5..).unwrap_or_default();
    println!(
        "| fleet | request | asked | plan | offered | bound | next solve | plan s | solve s | says |\n\
         |---|---|---|---|---|---|---|---|---|---|"
    );
    let mut sums = Vec::new();
    for fleet in ["google2019_cell_a", "alibaba_gpu_v2023", "helios_venus", "research", "switches"]
    {
        if !only.is_empty() && !only.iter().any(|name| name == fleet) {
            continue;
        }
        let Some(parts) = parts(fleet, Path::new(folder))? else {
            println!("{fleet}: not in {folder}");
            continue;
        };
        let measured = Measured::new(fleet, parts, seconds, seed)?;
        let mut random = Random::new(seed);
        let mut sum = Sum::default();
        for number in 0..count {
            let (what, request) = measured.request(&mut random, number);
            sum.add(&measured.compare(&what, &request)?);
        }
        sums.push((fleet, sum));
    }
    println!(
        "\n| fleet | requests | in full | below the next solve | below {} % of the bound | worst share of the bound | \
         proved | offers granted | costs more than the offer | plan s: median, longest |\n|---|---|---|---|---|---|---|---|---|---|",
        NEAR * 100.0
    );
    for (fleet, sum) in sums {
        println!("| {fleet} {}", sum.row());
    }
    Ok(())
}

/// A fleet after a solve.
struct Measured {
    name: &'static str,
    region: RegionSnapshot,
    warm: WarmStart,
    config: SolverConfig,
    plan: Duration,
    solve: Duration,
}

/// What became of one request.
struct Compared {
    asked: f64,
    plan: f64,
    bound: f64,
    /// `None`: it left another reservation with less than it has before the request.
    next_solve: Option<f64>,
    plan_seconds: f64,
    is_most: bool,
    /// Whether what was offered instead was granted, each.
    offers: Vec<bool>,
    /// Whether a part was granted at a higher price than the same amount was offered for.
    dearer: bool,
}

impl Measured {
    fn new(
        name: &'static str,
        parts: SnapshotParts,
        (plan, solve): (Duration, Duration),
        seed: u64,
    ) -> Result<Measured, Box<dyn Error>> {
        let config = SolverConfig { threads: 2, ..SolverConfig::default() };
        let empty = RegionSnapshot::new(parts)?;
        let solved = solved(&empty, &config, 2 * solve, None);
        let mut parts = solved.targets.apply(&empty);
        let mut random = Random::new(seed);
        let guaranteed = |id: &fleet::ReservationName| {
            empty.reservation(id).is_some_and(|ix| is_guaranteed(&empty, ix))
        };
        for server in &mut parts.servers {
            let holds = server.current_reservation.as_ref().is_some_and(guaranteed);
            server.in_use = holds && random.unit() < LOADED;
        }
        let region = RegionSnapshot::new(parts)?;
        Ok(Measured { name, region, warm: solved.warm, config, plan, solve })
    }

    /// A request, and what it is in a few words.
    fn request(&self, random: &mut Random, number: u64) -> (String, CapacityRequest) {
        let region = &self.region;
        let large: Vec<ReservationIx> = (0..region.reservations.len())
            .map(ReservationIx::new)
            .filter(|&ix| is_guaranteed(region, ix))
            .filter(|&ix| region.reservations[ix.ix()].capacity > Rru::ZERO)
            .collect();
        let of = large[random.below(large.len())];
        let reservation = &region.reservations[of.ix()];
        let capacity = reservation.capacity.to_f64();
        let server = &region.servers[random.below(region.servers.len())];
        let any: Vec<usize> = (0..region.hardware_types.len()).collect();
        let count = |types: &[usize]| {
            let usable = region.servers.iter().filter(|of| of.available);
            usable.filter(|of| types.contains(&of.hardware_type.ix())).count() as f64
        };
        let one_each = |types: &[usize]| -> BTreeMap<HardwareTypeName, f64> {
            types.iter().map(|&ty| (region.hardware_types[ty].clone(), 1.0)).collect()
        };
        let new = CapacityRequest {
            reservation_id: format!("request-{number}").into(),
            owner: Some("measured".into()),
            ..CapacityRequest::default()
        };
        let part = random.unit();
        match random.below(4) {
            0 => {
                let times = 1.1 * (6.0_f64 / 1.1).powf(part);
                let request = CapacityRequest {
                    reservation_id: reservation.id.clone(),
                    capacity_rru: Some((capacity * times).ceil()),
                    ..CapacityRequest::default()
                };
                (format!("{} x {times:.2}", reservation.id), request)
            }
            1 => {
                let ty = [server.hardware_type.ix()];
                let amount = ((0.1 + 0.9 * part) * count(&ty)).ceil();
                let rru = Some(one_each(&ty));
                let what = format!("new, of {}", region.hardware_types[ty[0]]);
                (what, CapacityRequest { capacity_rru: Some(amount), rru, ..new })
            }
            2 => {
                let amount = ((0.02 + 0.4 * part) * count(&any)).ceil();
                let rru = Some(one_each(&any));
                let what = "new, of any type".to_owned();
                (what, CapacityRequest { capacity_rru: Some(amount), rru, ..new })
            }
            _ => {
                let amount = (capacity * (0.2 + 3.0 * part)).ceil();
                let named = |&(ty, value): &(fleet::HardwareTypeIx, Rru)| {
                    (region.hardware_types[ty.ix()].clone(), value.to_f64())
                };
                let rru = Some(reservation.rru.iter().map(named).collect());
                let what = format!("new, like {}", reservation.id);
                (what, CapacityRequest { capacity_rru: Some(amount), rru, ..new })
            }
        }
    }

    fn ask(
        &self,
        request: &CapacityRequest,
        offered: &[OfferedPlan],
    ) -> Result<(Quoted, f64), Box<dyn Error>> {
        let began = now();
        let context = QuoteContext {
            snapshot: &self.region,
            config: &self.config,
            warm: Some(&self.warm),
            offered,
            limits: None,
            means: Means {
                backend: &OnThreads,
                elapsed: &|| began.elapsed(),
                deadline: Some(self.plan),
                interrupted: &|| false,
            },
        };
        let answer = quote(&context, request)?;
        Ok((answer, began.elapsed().as_secs_f64()))
    }

    fn compare(&self, what: &str, request: &CapacityRequest) -> Result<Compared, Box<dyn Error>> {
        let (answer, plan_seconds) = self.ask(request, &[])?;
        let region = &answer.region;
        let asked = region.reservations[answer.reservation.ix()].capacity;
        let granted = answer.granted.min(asked);
        let surely_missing = answer.plan.surely_missing;
        let bound = asked.to_f64() - surely_missing;
        let alternatives = answer.refusal.as_ref().map_or(&[][..], |of| &of.alternatives);
        let (mut offers, mut offered, mut dearer) = (Vec::new(), "-".to_owned(), false);
        for of in alternatives {
            let Concession::FewerRru(amount) = of.concession else { continue };
            let (other, _) = self.ask(&of.request, std::slice::from_ref(&of.plan))?;
            let is_granted = other.refusal.is_none();
            offered = format!("{amount}{}", if is_granted { "" } else { " refused" });
            dearer = amount >= granted && answer.plan.price > of.cost.price + 1e-6;
            offers.push(is_granted);
        }
        let is_open = granted < asked && !answer.plan.is_most;
        let next = is_open.then(|| self.next_solve(&answer));
        let (next_text, solve_seconds) = match &next {
            Some(next) if next.others_whole => (format!("{}", next.granted), next.seconds),
            Some(next) => (format!("{} others less", next.granted), next.seconds),
            None => ("-".to_owned(), 0.0),
        };
        let says = answer.refusal.as_ref().map_or("in full", |of| of.shortfall.reason.as_str());
        println!(
            "| {} | {what} | {asked} | {granted} | {offered} | {bound:.2} | {next_text} | {plan_seconds:.2} | \
             {solve_seconds:.1} | {says}{} |",
            self.name,
            if answer.plan.is_most { ", proved" } else { "" },
        );
        Ok(Compared {
            asked: asked.to_f64(),
            plan: granted.to_f64(),
            bound,
            next_solve: next.filter(|next| next.others_whole).map(|next| next.granted.to_f64()),
            plan_seconds,
            is_most: answer.plan.is_most,
            offers,
            dearer,
        })
    }
}

/// What a solve of the region with a request in it gives to the request.
struct NextSolve {
    granted: Rru,
    /// Whether no other reservation has less than before the request.
    others_whole: bool,
    seconds: f64,
}

impl Measured {
    fn next_solve(&self, answer: &Quoted) -> NextSolve {
        let (region, asking) = (&answer.region, answer.reservation.ix());
        let began = now();
        let next = solved(region, &self.config, self.solve, Some(&self.warm));
        let seconds = began.elapsed().as_secs_f64();
        let short = |targets: &Targets| -> Vec<Rru> {
            audit(region, targets).reservations.iter().map(|of| of.holding.shortfall).collect()
        };
        let (before, then) = (short(&answer.plan.before), short(&next.targets));
        let others = before.iter().zip(&then).enumerate().filter(|(at, _)| *at != asking);
        let others_whole = others.map(|(_, both)| both).all(|(before, then)| then <= before);
        let granted = (region.reservations[asking].capacity - then[asking]).or_zero();
        NextSolve { granted, others_whole, seconds }
    }
}

fn is_guaranteed(region: &RegionSnapshot, ix: ReservationIx) -> bool {
    region.reservations[ix.ix()].kind == ReservationKind::Guaranteed
}

fn solved(
    region: &RegionSnapshot,
    config: &SolverConfig,
    within: Duration,
    warm: Option<&WarmStart>,
) -> SolveOutcome {
    let began = now();
    let env = SolveEnv {
        elapsed: &|| began.elapsed(),
        deadline: Some(within),
        warm,
        ..SolveEnv::untimed(&OnThreads)
    };
    // What guarantees nothing is no grant.
    solve(region, &SolverConfig { unguaranteed: false, ..*config }, &env)
}

/// What became of all requests of a fleet.
#[derive(Default)]
struct Sum {
    requests: usize,
    in_full: usize,
    below_solve: usize,
    below_bound: usize,
    worst: Option<f64>,
    proved: usize,
    offers: usize,
    offers_granted: usize,
    dearer: usize,
    seconds: Vec<f64>,
}

impl Sum {
    fn add(&mut self, of: &Compared) {
        self.requests += 1;
        self.in_full += usize::from(of.plan >= of.asked);
        self.below_solve += usize::from(of.next_solve.is_some_and(|next| of.plan < next - 1e-6));
        let share = if of.bound > 0.0 { of.plan / of.bound } else { 1.0 };
        self.below_bound += usize::from(share < NEAR);
        self.worst = Some(self.worst.map_or(share, |worst| worst.min(share)));
        self.proved += usize::from(of.plan < of.asked && of.is_most);
        self.offers += of.offers.len();
        self.offers_granted += of.offers.iter().filter(|granted| **granted).count();
        self.dearer += usize::from(of.dearer);
        self.seconds.push(of.plan_seconds);
        self.seconds.sort_by(f64::total_cmp);
    }

    fn row(&self) -> String {
        let at = |at: usize| self.seconds.get(at).copied().unwrap_or(f64::NAN);
        format!(
            "| {} | {} | {} | {} | {:.3} | {} of {} | {} of {} | {} | {:.2}, {:.2} |",
            self.requests,
            self.in_full,
            self.below_solve,
            self.below_bound,
            self.worst.unwrap_or(f64::NAN),
            self.proved,
            self.requests - self.in_full,
            self.offers_granted,
            self.offers,
            self.dearer,
            at(self.seconds.len() / 2),
            at(self.seconds.len().saturating_sub(1)),
        )
    }
}
