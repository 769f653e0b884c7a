//! Floors unlike Facebook's: many types of few servers, or many MSBs of one rack. Their racks mix
//! types.

use super::GenerateOptions;
use super::draw::{Concern, apportion_at_least_one, log_normal, stream};
use super::hardware::{Family, Filled, HardwareKind, MSBS_OF_A_KIND, on_sale, racks_by_msb};
use rand::RngExt;
use rand::seq::IndexedRandom;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;

/// The most MSBs that a type of a research grid is in.
pub(super) const MSBS_OF_A_RARE_KIND: usize = 3;

/// The families of a research grid's types, by share.
const FAMILIES: [(Family, f64); 5] = [
    (Family::Compute, 0.6),
    (Family::Memory, 0.12),
    (Family::Flash, 0.08),
    (Family::Disk, 0.08),
    (Family::Accelerator, 0.12),
];

/// Servers of one type in one MSB of a research grid, against each other: most are a few, the
/// largest about forty.
const CELL_SIGMA: f64 = 0.9;

/// Deviation of the logarithms of speeds in a research grid, and of the sizes of switches.
const SPEED_SIGMA: f64 = 0.4;
const SWITCH_SIGMA: f64 = 0.2;

/// Chance that a switch has servers of a second type, and then of a third.
const ANOTHER_KIND: f64 = 0.4;

/// Servers of one type in one MSB, against others.
struct Cell {
    msb: usize,
    kind: usize,
    weight: f64,
}

/// The floor of a research grid: each type was one purchase, for one MSB or up to three.
pub(super) fn many_types(options: &GenerateOptions) -> (Vec<HardwareKind>, Vec<Filled>) {
    let mut rng = stream(options.seed, Concern::HardwareMix);
    let kinds = options.hardware_types;
    let width = kinds.to_string().len().max(2);
    let catalogue =
        (0..kinds).map(|k| rare(format!("R{:0width$}", k + 1), k * 3 / kinds, &mut rng)).collect();
    let mut cells: Vec<Cell> = Vec::new();
    // Each MSB has a type, and each type an MSB.
    for n in 0..kinds.max(options.msbs) {
        let (kind, msb) = (n % kinds, n * options.msbs / kinds.max(options.msbs));
        let others = match rng.random_range(0..10) {
            0..6 => 1,
            6..9 => 2,
            _ => MSBS_OF_A_RARE_KIND,
        };
        let more = sample(&mut rng, options.msbs, others.min(options.msbs) - 1).into_iter();
        let all = std::iter::once(msb).chain(more.filter(|_| n < kinds));
        cells.extend(all.map(|msb| Cell {
            msb,
            kind,
            weight: log_normal(&mut rng, 1.0, CELL_SIGMA),
        }));
    }
    (catalogue, fill(options, cells))
}

/// A type that was bought once.
fn rare(name: String, generation: usize, rng: &mut ChaCha8Rng) -> HardwareKind {
    let family = FAMILIES.choose_weighted(rng, |&(_, share)| share);
    let family = family.map_or(Family::Compute, |&(family, _)| family);
    HardwareKind {
        name: name.into(),
        generation,
        subtype: 1,
        family,
        speed: log_normal(rng, 1.0, SPEED_SIGMA).clamp(0.4, 2.5),
        bought: (0.0, 1.0),
        share: 1.0,
        watts: if family == Family::Accelerator { 1_800.0 } else { 350.0 },
        density: 1.0,
    }
}

/// The floor of many switches: each has servers of a type of its time, often of more than one.
pub(super) fn many_msbs(options: &GenerateOptions, catalogue: &[HardwareKind]) -> Vec<Filled> {
    let mut rng = stream(options.seed, Concern::HardwareMix);
    let msbs = options.msbs;
    let mut cells: Vec<Cell> = Vec::new();
    for msb in 0..msbs {
        let age = (msb as f64 + 0.5) / msbs as f64;
        let size = log_normal(&mut rng, 1.0, SWITCH_SIGMA);
        let mut weight = size;
        loop {
            let bought = |&k: &usize| {
                let there = cells.iter().rev().take_while(|of| of.msb == msb);
                let again = there.into_iter().any(|of| of.kind == k);
                if again { 0.0 } else { catalogue[k].share * on_sale(&catalogue[k], age) }
            };
            let kinds: Vec<usize> = (0..catalogue.len()).collect();
            let kind = kinds.choose_weighted(&mut rng, bought).copied();
            let first = cells.last().is_none_or(|of| of.msb != msb);
            match kind {
                Ok(kind) => cells.push(Cell { msb, kind, weight }),
                // No type of a short catalogue is of this time.
                Err(_) if first => cells.push(Cell { msb, kind: 0, weight }),
                Err(_) => break,
            }
            if !rng.random_bool(ANOTHER_KIND) {
                break;
            }
            weight /= 2.0;
        }
    }
    for kind in 0..catalogue.len() {
        let there: Vec<usize> =
            cells.iter().filter(|of| of.kind == kind).map(|of| of.msb).collect();
        let others: Vec<usize> = (0..msbs).filter(|msb| !there.contains(msb)).collect();
        let missing = MSBS_OF_A_KIND.min(msbs).saturating_sub(there.len());
        let chosen: Vec<usize> = others.sample(&mut rng, missing).copied().collect();
        cells.extend(chosen.into_iter().map(|msb| Cell { msb, kind, weight: 0.5 }));
    }
    fill(options, cells)
}

/// Fills the racks of each MSB with its cells, one after the other.
fn fill(options: &GenerateOptions, mut cells: Vec<Cell>) -> Vec<Filled> {
    cells.sort_by_key(|cell| (cell.msb, cell.kind));
    let weights: Vec<f64> = cells.iter().map(|cell| cell.weight).collect();
    let sizes = apportion_at_least_one(options.servers, &weights);
    let racks = racks_by_msb(options);
    let mut by_msb: Vec<Vec<usize>> = vec![Vec::new(); options.msbs];
    for (cell, size) in cells.iter().zip(sizes) {
        by_msb[cell.msb].extend(std::iter::repeat_n(cell.kind, size));
    }
    let filled = by_msb.into_iter().zip(racks).enumerate().flat_map(|(msb, (kinds, racks))| {
        let in_rack = kinds.len().div_ceil(racks.max(1)).max(1);
        kinds.chunks(in_rack).map(|rack| (msb, rack.to_vec())).collect::<Vec<_>>()
    });
    filled.collect()
}
