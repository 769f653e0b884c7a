//! The floor: datacenters, MSBs, racks and servers, with a hardware mix that follows the age of
//! each MSB (RAS, SOSP'21, section 2.2 and figure 2).

use super::GenerateOptions;
use super::draw::{Concern, apportion, apportion_at_least_one, log_normal, stream, whole};
use fleet::{DatacenterName, MsbName, RackName, ServerName};
use rand::RngExt;
use std::borrow::Cow;

/// What a hardware category is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Compute,
    Memory,
    Flash,
    Disk,
    Accelerator,
}

/// A hardware type of the catalogue.
#[derive(Clone, Debug)]
pub(super) struct HardwareKind {
    /// `C<category>-S<subtype>`, as figure 2 names them.
    pub name: Cow<'static, str>,
    /// Processor generation, 0 to 2.
    pub generation: usize,
    /// Subtype within its category, from 1.
    pub subtype: usize,
    pub family: Family,
    /// What a server of it does, beyond what its generation says.
    pub speed: f64,
    /// When it was bought: from the oldest MSB (0) to the newest (1).
    pub bought: (f64, f64),
    /// Its share of what was bought while it was on sale.
    pub share: f64,
    /// Typical draw of one server under load.
    pub watts: f64,
    /// Servers in a rack of it, against a rack of compute servers.
    pub density: f64,
}

const fn kind(
    name: &'static str,
    (generation, subtype): (usize, usize),
    family: Family,
    bought: (f64, f64),
    share: f64,
    watts: f64,
    density: f64,
) -> HardwareKind {
    let (name, speed) = (Cow::Borrowed(name), 1.0);
    HardwareKind { name, generation, subtype, family, speed, bought, share, watts, density }
}

/// How many hardware types the catalogue has.
pub(super) const KINDS_MAX: usize = 20;

/// Hardware types in order of importance: a region of `n` types has the first `n`.
///
/// The first twelve are figure 2's nine categories in twelve subtypes, three processor generations
/// as in figure 3. The figures give no numbers for shares, draw and density: those here are chosen
/// so that general compute is most of the region and accelerators a few per cent of it, only in
/// its newest MSBs.
#[rustfmt::skip]
pub(super) static CATALOGUE: [HardwareKind; KINDS_MAX] = [
    kind("C3-S1", (1, 1), Family::Compute,     (0.15, 0.75), 1.00,  330.0, 1.0),
    kind("C6-S1", (2, 1), Family::Compute,     (0.50, 1.00), 1.10,  390.0, 1.0),
    kind("C1-S1", (0, 1), Family::Compute,     (0.00, 0.35), 1.00,  280.0, 1.0),
    kind("C6-S2", (2, 2), Family::Compute,     (0.60, 1.00), 0.60,  420.0, 1.0),
    kind("C3-S2", (1, 2), Family::Compute,     (0.25, 0.80), 0.60,  350.0, 1.0),
    kind("C4-S1", (1, 1), Family::Flash,       (0.10, 0.70), 0.45,  360.0, 0.8),
    kind("C7-S1", (2, 1), Family::Memory,      (0.55, 1.00), 0.40,  450.0, 0.9),
    kind("C2-S1", (0, 1), Family::Memory,      (0.00, 0.40), 0.40,  340.0, 0.9),
    kind("C9-S1", (2, 1), Family::Accelerator, (0.60, 1.00), 0.30, 2400.0, 0.4),
    kind("C8-S1", (2, 1), Family::Flash,       (0.50, 1.00), 0.45,  410.0, 0.8),
    kind("C5-S1", (1, 1), Family::Disk,        (0.20, 0.95), 0.40,  480.0, 0.6),
    kind("C7-S2", (2, 2), Family::Memory,      (0.78, 1.00), 0.35,  470.0, 0.9),
    kind("C6-S3", (2, 3), Family::Compute,     (0.80, 1.00), 0.40,  440.0, 1.0),
    kind("C9-S2", (2, 2), Family::Accelerator, (0.75, 1.00), 0.20, 3100.0, 0.4),
    kind("C1-S2", (0, 2), Family::Compute,     (0.00, 0.30), 0.40,  300.0, 1.0),
    kind("C5-S2", (2, 2), Family::Disk,        (0.55, 1.00), 0.30,  500.0, 0.6),
    kind("C4-S2", (1, 2), Family::Flash,       (0.30, 0.70), 0.25,  370.0, 0.8),
    kind("C8-S2", (2, 2), Family::Flash,       (0.70, 1.00), 0.25,  430.0, 0.8),
    kind("C2-S2", (0, 2), Family::Memory,      (0.10, 0.45), 0.20,  360.0, 0.9),
    kind("C3-S3", (1, 3), Family::Compute,     (0.20, 0.60), 0.30,  360.0, 1.0),
];

/// Share of racks that hold a second type: racks are bought whole, and now and then repaired with
/// what is at hand.
const MIXED_RACKS: f64 = 0.03;

/// Chance that an MSB was filled without one of the types on sale at the time.
const SKIPPED_KINDS: f64 = 0.15;

/// Each type is in at least this many MSBs (if there are as many racks): a type in one MSB
/// can guarantee nothing.
pub(super) const MSBS_OF_A_KIND: usize = 4;

/// An MSB of the floor.
pub(super) struct Msb {
    pub name: MsbName,
    pub datacenter: usize,
}

/// A rack of the floor.
pub(super) struct Rack {
    pub name: RackName,
    pub msb: usize,
}

/// A server of the floor.
pub(super) struct Server {
    pub name: ServerName,
    pub rack: usize,
    /// Position in [`Floor::catalogue`].
    pub kind: usize,
}

/// All hardware of the region. MSBs are ordered from the oldest to the newest, and the
/// datacenters are contiguous in that order: they were built one after the other.
pub(super) struct Floor {
    pub datacenters: Vec<DatacenterName>,
    pub msbs: Vec<Msb>,
    pub racks: Vec<Rack>,
    pub servers: Vec<Server>,
    /// The hardware types.
    pub catalogue: Vec<HardwareKind>,
    /// How many there are.
    pub kinds: usize,
}

impl Floor {
    /// The pool of a server: its MSB and hardware type as one index, `msb * kinds + kind`.
    pub fn pool(&self, server: &Server) -> usize {
        self.racks[server.rack].msb * self.kinds + server.kind
    }

    /// How many pools there are, empty ones included.
    pub fn pools(&self) -> usize {
        self.msbs.len() * self.kinds
    }
}

/// A rack to be: its MSB, and the type of each server.
pub(super) type Filled = (usize, Vec<usize>);

/// Gives names to everything. Racks are in the order of their MSBs.
pub(super) fn name(
    options: &GenerateOptions,
    catalogue: Vec<HardwareKind>,
    filled: Vec<Filled>,
) -> Floor {
    let width = |count: usize| count.to_string().len();
    let datacenters: Vec<DatacenterName> =
        (1..=options.datacenters).map(|d| format!("dc{d}").into()).collect();
    let msb_width = width(options.msbs).max(2);
    let msbs: Vec<Msb> = (0..options.msbs)
        .map(|m| Msb {
            name: format!("m{:0msb_width$}", m + 1).into(),
            datacenter: m * options.datacenters / options.msbs,
        })
        .collect();
    let by_msb = filled.chunk_by(|a, b| a.0 == b.0).map(<[Filled]>::len);
    let rack_width = width(by_msb.max().unwrap_or(0)).max(3);
    let largest = filled.iter().map(|(_, kinds)| kinds.len()).max().unwrap_or(0);
    let server_width = width(largest).max(2);
    let mut racks: Vec<Rack> = Vec::with_capacity(filled.len());
    let mut servers = Vec::with_capacity(options.servers);
    let mut number = 0;
    for (msb, kinds) in filled {
        number = if racks.last().is_some_and(|last| last.msb == msb) { number + 1 } else { 1 };
        let name: RackName = format!("{}-r{number:0rack_width$}", msbs[msb].name).into();
        servers.extend(kinds.into_iter().enumerate().map(|(s, kind)| Server {
            name: format!("{name}-s{:0server_width$}", s + 1).into(),
            rack: racks.len(),
            kind,
        }));
        racks.push(Rack { name, msb });
    }
    let kinds = catalogue.len();
    Floor { datacenters, msbs, racks, servers, catalogue, kinds }
}

/// Racks bought whole, as in figure 2.
pub(super) fn filled_with_one_type_each(options: &GenerateOptions) -> Vec<Filled> {
    let mix = mixes(options, &racks_by_msb(options));
    let racks: Vec<(usize, usize)> = (mix.iter().enumerate())
        .flat_map(|(m, counts)| counts.iter().enumerate().map(move |(k, &n)| (m, k, n)))
        .flat_map(|(m, k, n)| std::iter::repeat_n((m, k), n))
        .collect();
    let mut rng = stream(options.seed, Concern::RackSizes);
    let weights: Vec<f64> =
        (racks.iter()).map(|&(_, k)| CATALOGUE[k].density * rng.random_range(0.92..1.08)).collect();
    let sizes = apportion_at_least_one(options.servers, &weights);
    let mut rng = stream(options.seed, Concern::MixedRacks);
    let filled = racks.into_iter().zip(sizes).map(|((m, kind), size)| {
        let second = second_kind(&mut rng, &mix[m], kind);
        let repaired = |s: usize| second.filter(|_| s * 4 >= size * 3);
        (m, (0..size).map(|s| repaired(s).unwrap_or(kind)).collect())
    });
    filled.collect()
}

/// The type that fills the last quarter of a mixed rack: another one of the same MSB. The number
/// of draws does not depend on the outcome.
fn second_kind(rng: &mut rand_chacha::ChaCha8Rng, counts: &[usize], first: usize) -> Option<usize> {
    let (mixed, pick): (f64, f64) = (rng.random(), rng.random());
    let general = |k: usize| CATALOGUE[k].family != Family::Accelerator;
    let others: Vec<usize> =
        (0..counts.len()).filter(|&k| k != first && counts[k] > 0 && general(k)).collect();
    if mixed >= MIXED_RACKS || others.is_empty() || !general(first) {
        return None;
    }
    Some(others[whole((pick * others.len() as f64).floor()).min(others.len() - 1)])
}

/// How many racks each MSB has: they vary a little.
pub(super) fn racks_by_msb(options: &GenerateOptions) -> Vec<usize> {
    let mut rng = stream(options.seed, Concern::MsbSizes);
    let weights: Vec<f64> = (0..options.msbs).map(|_| log_normal(&mut rng, 1.0, 0.08)).collect();
    apportion_at_least_one(options.rack_count(), &weights)
}

/// Racks of each type in each MSB.
fn mixes(options: &GenerateOptions, per_msb: &[usize]) -> Vec<Vec<usize>> {
    let kinds = options.hardware_types;
    let mut rng = stream(options.seed, Concern::HardwareMix);
    let mut mix = Vec::with_capacity(per_msb.len());
    for (m, &racks) in per_msb.iter().enumerate() {
        let age = (m as f64 + 0.5) / per_msb.len() as f64;
        let mut weights: Vec<f64> = CATALOGUE[..kinds]
            .iter()
            .map(|kind| {
                let noise = log_normal(&mut rng, 1.0, 0.3);
                let skipped = rng.random_bool(SKIPPED_KINDS);
                if skipped { 0.0 } else { kind.share * on_sale(kind, age) * noise }
            })
            .collect();
        if weights.iter().all(|&w| w <= 0.0) {
            // A short catalogue, or every type skipped: the one nearest in time.
            let nearest = (0..kinds).min_by(|&a, &b| {
                distance(&CATALOGUE[a], age).total_cmp(&distance(&CATALOGUE[b], age))
            });
            weights[nearest.unwrap_or(0)] = 1.0;
        }
        mix.push(apportion(racks, &weights));
    }
    for k in 0..kinds {
        stand_in_enough_msbs(&mut mix, k);
    }
    mix
}

/// Gives racks of the most common type of an MSB to a type that is in too few MSBs: those
/// nearest to its time first.
fn stand_in_enough_msbs(mix: &mut [Vec<usize>], k: usize) {
    let msbs = mix.len();
    let wanted = MSBS_OF_A_KIND.min(msbs);
    let mut order: Vec<usize> = (0..msbs).collect();
    let far = |m: usize| distance(&CATALOGUE[k], (m as f64 + 0.5) / msbs as f64);
    order.sort_by(|&a, &b| far(a).total_cmp(&far(b)).then(b.cmp(&a)));
    for m in order {
        if mix.iter().filter(|counts| counts[k] > 0).count() >= wanted {
            return;
        }
        let most = (0..mix[m].len()).max_by_key(|&other| (mix[m][other], other)).unwrap_or(k);
        if mix[m][k] == 0 && mix[m][most] > 1 {
            mix[m][most] -= 1;
            mix[m][k] += 1;
        }
    }
}

/// How far an age lies outside a type's time on sale; within it, how far from its middle, scaled
/// below anything outside.
fn distance(kind: &HardwareKind, age: f64) -> f64 {
    let (from, until) = kind.bought;
    let outside = (from - age).max(age - until);
    if outside > 0.0 { outside } else { ((from + until) / 2.0 - age).abs() * 1e-3 - 1.0 }
}

/// How much of a type was bought at an age: all of its share while on sale, fading on both sides.
pub(super) fn on_sale(kind: &HardwareKind, age: f64) -> f64 {
    const FADE: f64 = 0.06;
    let (from, until) = kind.bought;
    let outside = (from - age).max(age - until).max(0.0);
    (1.0 - outside / FADE).max(0.0)
}
