//! Service classes: what a server is worth to each (RAS, SOSP'21, section 2.3 and figure 3) and
//! which hardware types it can use (section 2.4 and figure 4).

use super::hardware::{Family, HardwareKind};
use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;

/// A kind of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Gains with every processor generation.
    Web,
    /// Gains with the second generation and not with the third.
    FeedRanking,
    /// Gains with the third generation and not with the second.
    FeedIndex,
    /// Gains nothing from a new processor.
    DataStore,
    /// Replicates over all of its servers: no embedded buffer (section 3.3.2).
    Storage,
    /// Wants memory.
    Cache,
    /// Moves much data: bound to datacenters (section 4.5).
    Query,
    /// Machine learning: needs accelerators, which only the newest MSBs have.
    Training,
    /// Everything else, valued at the fleet's average.
    Backend,
    /// Small services that count servers instead of RRU (section 3.1).
    Counted,
}

impl Class {
    /// All classes and how many of a hundred reservations belong to each.
    pub const SHARES: [(Class, f64); 10] = [
        (Class::Web, 14.0),
        (Class::FeedRanking, 8.0),
        (Class::FeedIndex, 8.0),
        (Class::DataStore, 11.0),
        (Class::Storage, 4.0),
        (Class::Cache, 9.0),
        (Class::Query, 4.0),
        (Class::Training, 4.0),
        (Class::Backend, 22.0),
        (Class::Counted, 16.0),
    ];

    /// The first part of its reservations' names.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Web => "web",
            Class::FeedRanking => "feed-ranking",
            Class::FeedIndex => "feed-index",
            Class::DataStore => "datastore",
            Class::Storage => "storage",
            Class::Cache => "cache",
            Class::Query => "query",
            Class::Training => "training",
            Class::Backend => "backend",
            Class::Counted => "counted",
        }
    }

    /// Relative value of the three processor generations. Web's numbers are the paper's; the
    /// others follow what its text says of figure 3, which has no numbers of its own.
    const fn gains(self) -> [f64; 3] {
        match self {
            Class::Web => [1.0, 1.47, 1.82],
            Class::FeedRanking => [1.0, 1.35, 1.35],
            Class::FeedIndex => [1.0, 1.0, 1.3],
            Class::Query | Class::Backend | Class::Cache => [1.0, 1.2, 1.4],
            Class::DataStore | Class::Storage | Class::Training | Class::Counted => [1.0; 3],
        }
    }

    /// RRU of one server of a type for a service of this class: generation and speed times what the
    /// class makes of the type's family and subtype, to two decimals. To classes that gain nothing from
    /// a processor, speed is nothing either.
    pub fn value(self, kind: &HardwareKind) -> f64 {
        let fit = match (self, kind.family) {
            (Class::Cache, Family::Memory) => 1.5,
            (Class::Storage, Family::Flash) => 0.5,
            (Class::Training, Family::Accelerator) => kind.subtype as f64,
            (Class::Web | Class::FeedRanking | Class::FeedIndex, Family::Compute)
                if kind.subtype > 1 =>
            {
                1.1
            }
            _ => 1.0,
        };
        let gains = self.gains();
        let speed = if gains == [1.0; 3] { 1.0 } else { kind.speed };
        (gains[kind.generation] * fit * speed * 100.0).round() / 100.0
    }

    /// Whether a type is of any use to the class.
    fn can_use(self, kind: &HardwareKind) -> bool {
        match self {
            Class::Training => kind.family == Family::Accelerator,
            Class::Storage => matches!(kind.family, Family::Disk | Family::Flash),
            _ => kind.family != Family::Accelerator,
        }
    }
}

/// Share of the types that [`Width::Most`] means.
const MOST: f64 = 0.85;

/// How many hardware types may fulfil a request: the columns of figure 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// One type, mostly the newest processor.
    One,
    /// Two to four.
    Few,
    /// Eight: one or two processor generations, with any other configuration.
    Eight,
    /// Ten to twelve: any generation and configuration.
    Any,
    /// Most of a great many: not of figure 4.
    Most,
}

impl Width {
    /// All widths and how many of a hundred requests have each, read off figure 4's circles.
    pub const SHARES: [(Width, f64); 4] =
        [(Width::One, 28.0), (Width::Few, 20.0), (Width::Eight, 36.0), (Width::Any, 16.0)];
}

/// Draws the hardware types a request may be fulfilled with, ordered; never empty if any type of
/// the region has supply. `supply` counts usable servers of each type.
pub(super) fn eligible(
    rng: &mut ChaCha8Rng,
    class: Class,
    width: Width,
    supply: &[usize],
    catalogue: &[HardwareKind],
) -> Vec<usize> {
    let stocked = |k: &usize| supply[*k] > 0;
    let mut usable: Vec<usize> =
        (0..supply.len()).filter(|k| stocked(k) && class.can_use(&catalogue[*k])).collect();
    if usable.is_empty() {
        // A short catalogue has no accelerators and perhaps no disks; any server must do.
        usable = (0..supply.len()).filter(stocked).collect();
    }
    let mut chosen = match (class, width) {
        (Class::Training | Class::Storage, _) => usable,
        (_, Width::One) => vec![single(rng, class, &usable, supply, catalogue)],
        (_, Width::Few) => few(rng, class, &usable, catalogue),
        (_, Width::Eight) => {
            // Either the two newest generations, any memory and flash; or any generation, as
            // long as it is no storage. Both are eight of the first twelve types.
            let late = rng.random_bool(0.5);
            let mut eight = usable;
            eight.retain(|&k| match catalogue[k].family {
                Family::Compute | Family::Memory => !late || catalogue[k].generation > 0,
                Family::Flash => late,
                Family::Disk | Family::Accelerator => false,
            });
            eight.shuffle(rng);
            eight.truncate(8);
            eight
        }
        (_, Width::Any) => {
            // Those without a preference leave out the accelerators, and mostly the disks.
            let wanted = rng.random_range(10..=12);
            let mut any = usable;
            any.shuffle(rng);
            any.sort_by_key(|&k| catalogue[k].family == Family::Disk);
            any.truncate(wanted);
            any
        }
        (_, Width::Most) => {
            let mut most = usable;
            most.retain(|_| rng.random_bool(MOST));
            most
        }
    };
    if chosen.is_empty() {
        chosen = (0..supply.len()).filter(stocked).collect();
    }
    chosen.sort_unstable();
    chosen
}

/// One type: seven times of ten a general one of the newest generation, else one the class likes.
fn single(
    rng: &mut ChaCha8Rng,
    class: Class,
    usable: &[usize],
    supply: &[usize],
    catalogue: &[HardwareKind],
) -> usize {
    let newest = rng.random_bool(0.7);
    let liked = |k: usize| {
        let family = catalogue[k].family;
        match class {
            Class::Cache => family == Family::Memory,
            Class::DataStore => family == Family::Flash,
            _ if newest => family == Family::Compute && catalogue[k].generation == 2,
            _ => family != Family::Disk,
        }
    };
    let mut choice: Vec<usize> = usable.iter().copied().filter(|&k| liked(k)).collect();
    if choice.is_empty() {
        choice = usable.to_vec();
    }
    let picked = choice.choose_weighted(rng, |&k| supply[k]).copied();
    picked.unwrap_or(usable[0])
}

/// Two to four types of neighbouring generations, the class's own family first.
fn few(
    rng: &mut ChaCha8Rng,
    class: Class,
    usable: &[usize],
    catalogue: &[HardwareKind],
) -> Vec<usize> {
    let wanted = rng.random_range(2..=4);
    let newest: usize = rng.random_range(0..=2);
    let mut near: Vec<(bool, usize, usize)> = usable
        .iter()
        .map(|&k| {
            let kind = &catalogue[k];
            let own = match class {
                Class::Cache => kind.family == Family::Memory,
                Class::DataStore => kind.family == Family::Flash,
                _ => kind.family == Family::Compute,
            };
            (!own, newest.abs_diff(kind.generation), k)
        })
        .collect();
    near.sort_unstable();
    near.truncate(wanted);
    near.into_iter().map(|(_, _, k)| k).collect()
}
