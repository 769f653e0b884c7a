//! Sizes against hardware, as a fluid: requests of all sizes shrink and grow together until each
//! hardware type can carry what is asked of it.

use super::services::{Service, TINY_SERVERS};

/// Share of each type's usable servers that the balance leaves free: more than the plan keeps in
/// reserve, because MSBs do not fit sizes exactly.
const TYPE_SLACK: f64 = 0.075;

/// Rounds of fitting the total; it is close after a few.
const TOTAL_ROUNDS: usize = 15;

/// Rounds of shifting demand between types for one total.
const TYPE_ROUNDS: usize = 12;

/// What is asked for.
pub(super) struct Demand<'a> {
    pub services: &'a [Service],
    /// Servers wanted by each, without buffers, as drawn.
    pub sizes: &'a [f64],
    /// Servers needed for each server wanted.
    pub overhead: &'a [f64],
}

/// Scales sizes until they take `target` servers, buffers included, as far as each type's supply
/// allows. Returns the sizes.
///
/// Each service takes its types in proportion to their supply and to how little else is asked of
/// them; what is then still too much for a type shrinks every service that needs it alike, so that the
/// sizes keep their distribution. Tiny requests keep their size: they are tiny in a region of any
/// size.
pub(super) fn balance(demand: &Demand, supply: &[usize], target: f64) -> Vec<f64> {
    let caps: Vec<f64> = supply.iter().map(|&n| n as f64 * (1.0 - TYPE_SLACK)).collect();
    let most = most(demand, &caps);
    let mut ease = vec![1.0; caps.len()];
    let mut factor = 1.0;
    let mut sizes = Vec::new();
    for _ in 0..TOTAL_ROUNDS {
        let wanted: Vec<f64> = (demand.sizes.iter().zip(demand.overhead).zip(&most))
            .map(|((&size, overhead), most)| {
                let tiny = size <= TINY_SERVERS as f64;
                if tiny { size * overhead } else { (size * factor * overhead).min(*most) }
            })
            .collect();
        let mut load = loads(demand, &caps, &ease, &wanted);
        for _ in 0..TYPE_ROUNDS {
            for ((ease, load), cap) in ease.iter_mut().zip(&load).zip(&caps) {
                *ease = (*ease * (cap / load.max(1e-9)).sqrt()).clamp(1e-6, 1e6);
            }
            load = loads(demand, &caps, &ease, &wanted);
        }
        let got: Vec<f64> = (demand.services.iter().zip(&wanted))
            .map(|(service, &wanted)| {
                let all: f64 = service.values.iter().map(|&(k, _)| caps[k] * ease[k]).sum();
                let pressure: f64 = (service.values.iter())
                    .map(|&(k, _)| caps[k] * ease[k] / all.max(1e-9) * load[k] / caps[k].max(1e-9))
                    .sum();
                wanted / pressure.max(1.0)
            })
            .collect();
        let total: f64 = got.iter().sum();
        sizes = (got.iter().zip(demand.overhead))
            .map(|(n, overhead)| (n / overhead).max(1.0))
            .collect();
        if total <= 0.0 || (total / target - 1.0).abs() < 0.001 {
            break;
        }
        factor *= (target / total).clamp(0.5, 1.5);
    }
    sizes
}

/// Servers of each type that the services take.
fn loads(demand: &Demand, caps: &[f64], ease: &[f64], wanted: &[f64]) -> Vec<f64> {
    let mut load = vec![0.0; caps.len()];
    for (service, wanted) in demand.services.iter().zip(wanted) {
        let all: f64 = service.values.iter().map(|&(k, _)| caps[k] * ease[k]).sum();
        if all > 0.0 {
            for &(k, _) in &service.values {
                load[k] += wanted * caps[k] * ease[k] / all;
            }
        }
    }
    load
}

/// The most servers of each service: a part of what it may choose from, and of the region, unless
/// there are only a handful of services.
fn most(demand: &Demand, caps: &[f64]) -> Vec<f64> {
    let handful = 4.0 / demand.services.len() as f64;
    let (of_choice, of_region) = (handful.clamp(0.4, 0.85), handful.clamp(0.1, 0.8));
    let region: f64 = caps.iter().sum();
    (demand.services.iter())
        .map(|service| {
            let choice: f64 = service.values.iter().map(|&(k, _)| caps[k]).sum();
            (choice * of_choice).min(region * of_region)
        })
        .collect()
}
