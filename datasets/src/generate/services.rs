//! The requests: who wants how much of what, under which policy (RAS, SOSP'21, section 2.4).

use super::classes::{Class, Width, eligible};
use super::draw::{Concern, apportion, log_normal, stream, whole};
use super::hardware::HardwareKind;
use super::{GenerateOptions, Profile};
use fleet::{MICRO, Name, OwnerName, ReservationName};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Deviation of the logarithm of request sizes: with it, a thousand requests over 300,000 servers
/// span one server to more than 10,000, as in figure 4.
const SIZE_SIGMA: f64 = 1.6;

/// The largest request, as a share of the region: figure 4's largest are close to 30,000 servers
/// in a region of several hundred thousand.
const LARGEST_SHARE: f64 = 0.08;

/// One request in this many is for one to ten servers, in regions of any size.
const TINY_ONE_IN: usize = 16;

/// The most servers of a tiny request.
pub(super) const TINY_SERVERS: usize = 10;

/// A guaranteed reservation to be.
pub(super) struct Service {
    pub id: ReservationName,
    pub owner: OwnerName,
    pub class: Class,
    /// Size wanted, in servers without any buffer.
    pub size: f64,
    /// C_r in whole RRU.
    pub capacity: i64,
    pub msb_buffer: bool,
    pub priority: i32,
    pub msb_alpha: Option<f64>,
    pub host_profile: Option<Name>,
    /// Micro-RRU of one server of each eligible type, ordered by type.
    pub values: Vec<(usize, i64)>,
    /// The datacenters it keeps to; empty: no affinity.
    pub datacenters: Vec<usize>,
    pub affinity_theta: Option<f64>,
    /// A_r for each of `datacenters`, once it is known what is possible.
    pub shares: Vec<f64>,
}

impl Service {
    /// Whether the whole request is a handful of servers.
    pub fn is_tiny(&self) -> bool {
        self.size <= TINY_SERVERS as f64
    }

    /// Micro-RRU of a server of a type; zero where it is not eligible.
    pub fn value(&self, kind: usize) -> i64 {
        self.values.iter().find(|&&(k, _)| k == kind).map_or(0, |&(_, v)| v)
    }

    /// Whether it may hold servers in a datacenter.
    pub fn allows(&self, datacenter: usize) -> bool {
        self.datacenters.is_empty() || self.datacenters.contains(&datacenter)
    }

    /// RRU of an average server of the types it may use, by their supply.
    pub fn average_value(&self, supply: &[usize]) -> f64 {
        let servers: usize = self.values.iter().map(|&(k, _)| supply[k]).sum();
        let rru: f64 = self.values.iter().map(|&(k, v)| supply[k] as f64 * v as f64).sum();
        rru / MICRO as f64 / servers.max(1) as f64
    }
}

/// Draws the services, in no order of size. `supply` counts usable servers of each type.
pub(super) fn draft(
    options: &GenerateOptions,
    catalogue: &[HardwareKind],
    supply: &[usize],
) -> Vec<Service> {
    let count = options.reservations;
    let sizes = sizes(options);
    let classes = classes(options.seed, count);
    let mut rng = stream(options.seed, Concern::EligibleTypes);
    let mut widths = widths(&mut rng, count);
    // The very largest are Web and Feed and take what they can get (section 2.4).
    for width in widths.iter_mut().take(count / 40 + 1) {
        *width = if rng.random_bool(0.6) { Width::Eight } else { Width::Any };
    }
    if options.profile == Profile::Research {
        widths.fill(Width::Most);
    }
    let mut services: Vec<Service> = (0..count)
        .map(|rank| {
            let class = classes[rank];
            let types = eligible(&mut rng, class, widths[rank], supply, catalogue);
            let values = types.into_iter().map(|k| (k, micro(class.value(&catalogue[k]))));
            blank(class, sizes[rank], values.collect())
        })
        .collect();
    policies(options, &mut services);
    services
}

fn blank(class: Class, size: f64, values: Vec<(usize, i64)>) -> Service {
    Service {
        id: "".into(),
        owner: "".into(),
        class,
        size,
        capacity: 0,
        msb_buffer: class != Class::Storage,
        priority: 1,
        msb_alpha: None,
        host_profile: None,
        values,
        datacenters: Vec::new(),
        affinity_theta: None,
        shares: Vec::new(),
    }
}

/// Micro-RRU of an amount of few decimals.
#[expect(clippy::cast_possible_truncation, reason = "values lie between 0.5 and 10")]
fn micro(value: f64) -> i64 {
    (value * MICRO as f64).round() as i64
}

/// Sizes in servers, largest first. Only their proportions count yet, but for the tiny ones.
fn sizes(options: &GenerateOptions) -> Vec<f64> {
    let mut rng = stream(options.seed, Concern::RequestSizes);
    let servers = options.servers as f64;
    let mean = servers * options.utilisation / options.reservations as f64;
    let median = mean / (SIZE_SIGMA * SIZE_SIGMA / 2.0).exp();
    let mut sizes: Vec<f64> = (0..options.reservations)
        .map(|ix| {
            let drawn = log_normal(&mut rng, median, SIZE_SIGMA);
            let tiny = rng.random_range(1..=TINY_SERVERS) as f64;
            // At least the first, however few there are.
            if ix % TINY_ONE_IN == 0 { tiny } else { drawn.clamp(1.0, servers * LARGEST_SHARE) }
        })
        .collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    sizes
}

/// The class of each service by rank of size: the largest are Web and Feed, and those with
/// special needs are of middling size.
fn classes(seed: u64, count: usize) -> Vec<Class> {
    let mut rng = stream(seed, Concern::ServiceClasses);
    let shares: Vec<f64> = Class::SHARES.iter().map(|&(_, share)| share).collect();
    let mut left = apportion(count, &shares);
    let mut classes: Vec<Option<Class>> = vec![None; count];
    let largest = [Class::Web, Class::FeedRanking, Class::FeedIndex];
    for (rank, &class) in largest.iter().cycle().take(count / 25).enumerate() {
        classes[rank] = take(&mut left, class);
    }
    let mut middle: Vec<usize> = (count / 12..count * 2 / 3).collect();
    middle.retain(|&rank| classes[rank].is_none());
    middle.shuffle(&mut rng);
    for class in [Class::Training, Class::Storage, Class::Query] {
        while let Some(&rank) = middle.last()
            && let Some(class) = take(&mut left, class)
        {
            classes[rank] = Some(class);
            middle.pop();
        }
    }
    let mut rest: Vec<Class> = (Class::SHARES.iter().zip(&left))
        .flat_map(|(&(class, _), &n)| std::iter::repeat_n(class, n))
        .collect();
    rest.shuffle(&mut rng);
    let mut rest = rest.into_iter();
    classes
        .into_iter()
        .map(|class| class.or_else(|| rest.next()).unwrap_or(Class::Backend))
        .collect()
}

/// Takes one of a class out of what is left of it, if any.
fn take(left: &mut [usize], class: Class) -> Option<Class> {
    let ix = Class::SHARES.iter().position(|&(other, _)| other == class)?;
    left[ix] = left[ix].checked_sub(1)?;
    Some(class)
}

fn widths(rng: &mut ChaCha8Rng, count: usize) -> Vec<Width> {
    let shares: Vec<f64> = Width::SHARES.iter().map(|&(_, share)| share).collect();
    let mut widths: Vec<Width> = (Width::SHARES.iter().zip(apportion(count, &shares)))
        .flat_map(|(&(width, _), n)| std::iter::repeat_n(width, n))
        .collect();
    widths.shuffle(rng);
    widths
}

/// Owners, priorities, host profiles and datacenters, then names in an order that says nothing
/// about sizes.
fn policies(options: &GenerateOptions, services: &mut [Service]) {
    let mut rng = stream(options.seed, Concern::Policies);
    let units = (services.len() / 8).max(1);
    let unit_width = units.to_string().len().max(2);
    for service in services.iter_mut() {
        // The product of two draws: some business units own much, many own little.
        let (a, b): (f64, f64) = (rng.random(), rng.random());
        let unit = whole((a * b * units as f64).floor()).min(units - 1);
        service.owner = format!("generated-unit-{:0unit_width$}", unit + 1).into();
        let draw: f64 = rng.random();
        service.priority = match draw {
            d if d < 0.08 => 0,
            d if d < 0.78 => 1,
            d if d < 0.94 => 2,
            _ => 3,
        };
        let profile = rng.random_range(0..16);
        if (1..=3).contains(&profile) {
            service.host_profile = Some(format!("generated-profile-{profile}").into());
        }
    }
    affinities(options, services);
    services.shuffle(&mut rng);
    let number_width = services.len().to_string().len().max(2);
    for (ix, service) in services.iter_mut().enumerate() {
        service.id = format!("{}-{:0number_width$}", service.class.name(), ix + 1).into();
    }
}

/// Query services keep to one datacenter or two, half of the training to the two newest. In the end only
/// those keep an affinity whose shares turn out to be possible.
fn affinities(options: &GenerateOptions, services: &mut [Service]) {
    let mut rng = stream(options.seed, Concern::Affinity);
    let newest = options.datacenters - 1;
    let bound = |class| matches!(class, Class::Query | Class::Training);
    for service in services.iter_mut().filter(|s| bound(s.class)) {
        let home = rng.random_range(0..options.datacenters);
        let second = rng.random_range(0..options.datacenters);
        let alone = rng.random_bool(0.5);
        let theta = [0.05, 0.08, 0.1][rng.random_range(0..3_usize)];
        let wanted = rng.random_bool(0.5);
        if options.datacenters < 2
            || service.is_tiny()
            || (service.class == Class::Training && !wanted)
        {
            continue;
        }
        let home = if service.class == Class::Training { newest } else { home };
        service.datacenters = vec![home];
        // One datacenter of accelerators cannot hold capacity and buffer within the tolerance.
        let second = if service.class == Class::Training { newest - 1 } else { second };
        if second != home && (!alone || service.class == Class::Training) {
            service.datacenters.push(second);
            service.datacenters.sort_unstable();
        }
        service.affinity_theta = Some(theta);
    }
}
