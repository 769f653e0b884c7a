//! Synthetic regions, shaped by what RAS (SOSP'21) publishes about Facebook's, or like two other fleets
//! ([`Profile`]).
//!
//! Everything here is made up: no server, owner or service of a generated region exists, and its
//! region and owners are named `generated...`. What follows the paper is the shape: hardware mix
//! by age of the MSB (figure 2), values by service class (figure 3), request sizes and numbers of
//! eligible types (figure 4), unavailability (figure 5). The requests of a generated region can
//! all be met together: the generator holds an assignment that meets them (see [`GenerateOptions`]).
//!
//! [`generate()`] is pure: the same options give the same rows. Each concern draws from a random
//! stream of its own, so that a change to one does not renumber the rest of the world.

mod balance;
mod classes;
mod draw;
mod events;
mod fill;
mod greedy;
mod hardware;
mod layout;
mod level;
mod mixed;
mod plan;
mod services;
mod steady;
mod switches;

use fleet::{
    AffinityRow, HardwareTypeName, MICRO, NAME_CHARS_MAX, Name, ReservationKind, ReservationName,
    ReservationRow, RruRow, SHARED_BUFFER_FRACTION_DEFAULT, SHARED_BUFFER_PREFIX, ServerRow,
    SnapshotParts, Weights,
};
use hardware::{Floor, KINDS_MAX};
use services::Service;
use std::ops::RangeInclusive;
use steady::{Binding, Holder};

/// What region to generate. [`GenerateOptions::of`] gives the defaults of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerateOptions {
    /// What fleet the region is like.
    pub profile: Profile,
    /// The region's name. Default: `generated`.
    pub region: String,
    /// Servers, 1,000 to 10,000,000; other profiles than `ras` from 200.
    pub servers: usize,
    /// Guaranteed reservations, at most one for ten servers. Two elastic ones come on top.
    /// Default: one for 300 servers, 5 to 2,000; 9 of `research`, 16 of `switches`.
    pub reservations: usize,
    /// MSBs, at least 2 and as many as datacenters; the first is the oldest. Default: 36; 42 of
    /// `research`, 261 of `switches`.
    pub msbs: usize,
    /// Datacenters. The MSBs of one follow each other in age. Default: 3; 8 of `research`.
    pub datacenters: usize,
    /// Hardware types, up to 20. Default: 12, in nine categories. Of `research` up to one for three
    /// servers; default: 161.
    pub hardware_types: usize,
    /// Racks, at least one for each MSB. Default: one for 40 servers, but six for each MSB, so
    /// that small regions mix hardware too; of `research` one for 12 servers, of `switches` one for
    /// each MSB.
    pub racks: Option<usize>,
    /// Network switches, at most one for each rack, that every reservation with an embedded buffer must survive the loss of;
    /// most have racks of two MSBs. Default: none. That all requests can be met does not count switches in.
    pub switches: Option<usize>,
    /// The seed of everything random. Default: 1.
    pub seed: u64,
    /// What is held already. Default: nothing.
    pub state: State,
    /// Share of the servers that meeting all requests takes, embedded and shared buffers
    /// included, 0.1 to 0.97. A region whose hardware fits its requests badly stays below.
    /// Default: 0.90.
    pub utilisation: f64,
}

impl GenerateOptions {
    /// The defaults for a region of this many servers.
    pub fn new(servers: usize) -> GenerateOptions {
        GenerateOptions::of(Profile::Ras, Some(servers))
    }

    /// The defaults of a profile, for a number of servers of its own or this one.
    pub fn of(profile: Profile, servers: Option<usize>) -> GenerateOptions {
        let servers = servers.unwrap_or(match profile {
            Profile::Ras => 20_000,
            Profile::Research => 939,
            Profile::Switches => 10_001,
        });
        let (reservations, msbs, datacenters, hardware_types) = match profile {
            Profile::Ras => ((servers / 300).clamp(5, 2_000), 36, 3, 12),
            Profile::Research => (9, 42, 8, 161),
            Profile::Switches => (16, 261, 3, 12),
        };
        GenerateOptions {
            profile,
            region: "generated".to_owned(),
            servers,
            reservations,
            msbs,
            datacenters,
            hardware_types,
            racks: None,
            switches: None,
            seed: 1,
            state: State::Cold,
            utilisation: 0.90,
        }
    }

    fn rack_count(&self) -> usize {
        let wanted = match self.profile {
            Profile::Ras => (self.servers / 40).max(self.msbs * 6),
            Profile::Research => (self.servers / 12).max(self.msbs),
            Profile::Switches => self.msbs,
        };
        self.racks.unwrap_or(wanted.min(self.servers))
    }

    fn check(&self) -> Result<(), GenerateError> {
        let within = |option: &'static str, value: usize, range: RangeInclusive<usize>| {
            if range.contains(&value) {
                return Ok(());
            }
            let (from, until) = range.into_inner();
            Err(GenerateError::OutOfRange { option, value, from, until })
        };
        let (least, kinds) = match self.profile {
            Profile::Ras => (1_000, KINDS_MAX),
            Profile::Research => (200, self.servers / mixed::MSBS_OF_A_RARE_KIND),
            Profile::Switches => (200, KINDS_MAX),
        };
        within("servers", self.servers, least..=10_000_000)?;
        within("reservations", self.reservations, 1..=self.servers / 10)?;
        within("datacenters", self.datacenters, 1..=100)?;
        within("msbs", self.msbs, self.datacenters.max(2)..=(self.servers / 10).min(1_000))?;
        within("hardware types", self.hardware_types, 1..=kinds)?;
        within("racks", self.rack_count(), self.msbs..=self.servers)?;
        if let Some(switches) = self.switches {
            within("switches", switches, 2..=self.rack_count())?;
        }
        if !(0.1..=0.97).contains(&self.utilisation) {
            return Err(GenerateError::Utilisation { value: self.utilisation });
        }
        match self.region.chars().count() {
            1..=NAME_CHARS_MAX => Ok(()),
            chars => Err(GenerateError::RegionName { chars }),
        }
    }
}

/// What fleet a region is like: defaults of the other options, and the mix of hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Facebook's, as the paper shows it: MSBs of many racks, each rack of one type.
    #[default]
    Ras,
    /// A research grid: a great many types of a few servers each, in one to three MSBs.
    Research,
    /// A fleet whose fault domain is the switch: a great many MSBs of one rack each.
    Switches,
}

/// What is held at the region's instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing: every request is new.
    #[default]
    Cold,
    /// Everything, for months: then 5 % of the requests were resized, 0.3 % of the servers failed
    /// and a few moves are under way.
    Steady,
    /// Capacities without embedded buffers, after half a year under a greedy allocator that spreads
    /// nothing.
    Greedy,
}

impl State {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Cold => "cold",
            State::Steady => "steady",
            State::Greedy => "greedy",
        }
    }

    /// Reads the word for it.
    pub fn parse(word: &str) -> Option<State> {
        [State::Cold, State::Steady, State::Greedy].into_iter().find(|state| state.as_str() == word)
    }
}

/// No region can be generated from these options.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// A number is too small or too large, in itself or for the others.
    #[error("{option}: {value} is not within {from} to {until}")]
    #[expect(missing_docs, reason = "the message says what they are")]
    OutOfRange { option: &'static str, value: usize, from: usize, until: usize },
    /// The utilisation is not a share that leaves room to solve anything.
    #[error("utilisation: {value} is not within 0.1 to 0.97")]
    #[expect(missing_docs, reason = "the message says what it is")]
    Utilisation { value: f64 },
    /// The region's name breaks the format's rule.
    #[error("region: the name must have 1 to {NAME_CHARS_MAX} characters, not {chars}")]
    #[expect(missing_docs, reason = "the message says what it is")]
    RegionName { chars: usize },
}

/// Generates a region.
///
/// All of its requests can be met together, after the loss of any MSB, with the shared buffers of the
/// default fraction and within the affinity shares; in the steady state even if
/// nothing moves but what shrunk requests hand back.
///
/// # Errors
/// Options out of range.
pub fn generate(options: &GenerateOptions) -> Result<SnapshotParts, GenerateError> {
    options.check()?;
    let floor = layout::lay_out(options);
    let mut log = events::Log::new();
    let share = match options.state {
        State::Cold => events::UNPLANNED_SHARE,
        State::Steady | State::Greedy => steady::OLD_UNPLANNED,
    };
    let mut usable = events::unplanned(options, &floor, &mut log, share);
    let supply = fill::by_kind(&floor, &fill::count_pools(&floor, |ix| usable[ix]));
    let mut services = services::draft(options, &floor.catalogue, &supply);
    let elastic = ELASTIC.len();
    let bindings = match options.state {
        State::Cold => {
            plan::settle(options, &floor, &mut services, &usable);
            vec![Binding::default(); floor.servers.len()]
        }
        State::Steady => {
            let plan = plan::settle(options, &floor, &mut services, &usable);
            steady::age(options, &floor, &mut services, plan, &mut usable, &mut log, elastic)
        }
        State::Greedy => {
            let failed = greedy::fail_since(options, &floor, &mut usable, &mut log);
            plan::settle(options, &floor, &mut services, &usable);
            greedy::pass(options, &floor, &services, &usable, &failed, elastic)
        }
    };
    events::planned(options, &floor, &mut log);
    events::past(options, &floor, &mut log);
    Ok(SnapshotParts {
        region: options.region.as_str().into(),
        taken_at: events::taken_at(),
        weights: Weights::default(),
        shared_buffer_fraction: Some(SHARED_BUFFER_FRACTION_DEFAULT),
        servers: server_rows(&floor, &services, &bindings),
        reservations: reservation_rows(&services),
        rru: rru_rows(&floor, &services),
        affinity: affinity_rows(&floor, &services),
        allowed_datacenters: Vec::new(),
        unavailability: log.rows,
        ahead: fleet::AheadParts::default(),
        crossing: options
            .switches
            .map(|count| switches::add(&floor, &services, count))
            .unwrap_or_default(),
    })
}

/// The elastic reservations of every region: what section 3.4 names as their users.
const ELASTIC: [&str; 2] = ["elastic-async-compute", "elastic-offline-training"];

fn kind_names(floor: &Floor) -> Vec<HardwareTypeName> {
    floor.catalogue.iter().map(|kind| kind.name.as_ref().into()).collect()
}

fn server_rows(floor: &Floor, services: &[Service], bindings: &[Binding]) -> Vec<ServerRow> {
    let kinds = kind_names(floor);
    let shared: Vec<ReservationName> =
        kinds.iter().map(|kind| format!("{SHARED_BUFFER_PREFIX}{kind}").into()).collect();
    let elastic = ELASTIC.map(ReservationName::from);
    let name = |holder: Holder| match holder {
        Holder::Service(ix) => services[ix].id.clone(),
        Holder::Shared(kind) => shared[kind].clone(),
    };
    (floor.servers.iter().zip(bindings))
        .map(|(server, binding)| {
            let rack = &floor.racks[server.rack];
            let msb = &floor.msbs[rack.msb];
            ServerRow {
                server_id: server.name.clone(),
                datacenter: floor.datacenters[msb.datacenter].clone(),
                msb: msb.name.clone(),
                rack: rack.name.clone(),
                hardware_type: kinds[server.kind].clone(),
                current_reservation: binding.current.map(name),
                target_reservation: binding.pending.flatten().map(name),
                target_pending: binding.pending.is_some(),
                in_use: binding.in_use,
                loaned_to: binding.loaned_to.map(|ix| elastic[ix].clone()),
                power_watts: Some(floor.catalogue[server.kind].watts),
            }
        })
        .collect()
}

fn reservation_rows(services: &[Service]) -> Vec<ReservationRow> {
    let kind: Name = ReservationKind::Guaranteed.as_str().into();
    let mut rows: Vec<ReservationRow> = services
        .iter()
        .map(|service| ReservationRow {
            reservation_id: service.id.clone(),
            owner: service.owner.clone(),
            kind: kind.clone(),
            capacity_rru: service.capacity as f64,
            msb_buffer: service.msb_buffer,
            priority: service.priority,
            msb_alpha: service.msb_alpha,
            rack_alpha: None,
            affinity_theta: service.affinity_theta,
            host_profile: service.host_profile.clone(),
            replicas: None,
            replicas_per_msb: None,
        })
        .collect();
    rows.extend(ELASTIC.map(|id| ReservationRow {
        reservation_id: id.into(),
        owner: "generated-unit-elastic".into(),
        kind: ReservationKind::Elastic.as_str().into(),
        capacity_rru: 0.0,
        msb_buffer: false,
        priority: 3,
        msb_alpha: None,
        rack_alpha: None,
        affinity_theta: None,
        host_profile: None,
        replicas: None,
        replicas_per_msb: None,
    }));
    rows.sort_by(|a, b| a.reservation_id.cmp(&b.reservation_id));
    rows
}

/// Values of the services, and of the elastic reservations, which may borrow any server.
fn rru_rows(floor: &Floor, services: &[Service]) -> Vec<RruRow> {
    let kinds = kind_names(floor);
    let row = |id: &ReservationName, kind: usize, rru: f64| RruRow {
        reservation_id: id.clone(),
        hardware_type: kinds[kind].clone(),
        rru,
    };
    let mut rows: Vec<RruRow> = services
        .iter()
        .flat_map(|s| s.values.iter().map(|&(k, v)| row(&s.id, k, v as f64 / MICRO as f64)))
        .collect();
    for id in ELASTIC.map(ReservationName::from) {
        rows.extend((0..floor.kinds).map(|kind| row(&id, kind, 1.0)));
    }
    rows.sort_by(|a, b| {
        (&a.reservation_id, &a.hardware_type).cmp(&(&b.reservation_id, &b.hardware_type))
    });
    rows
}

fn affinity_rows(floor: &Floor, services: &[Service]) -> Vec<AffinityRow> {
    let mut rows: Vec<AffinityRow> = services
        .iter()
        .flat_map(|s| s.datacenters.iter().zip(&s.shares).map(move |(&dc, &share)| (s, dc, share)))
        .map(|(service, datacenter, share)| AffinityRow {
            reservation_id: service.id.clone(),
            datacenter: floor.datacenters[datacenter].clone(),
            share,
        })
        .collect();
    rows.sort_by(|a, b| {
        (&a.reservation_id, &a.datacenter).cmp(&(&b.reservation_id, &b.datacenter))
    });
    rows
}
