//! The capacity that maintenance may take at once: a share of an MSB, and nothing that a guarantee needs.
//!
//! Windows are checked when they are planned, beside all planned windows, and again when their drain and
//! when their work begins, beside those that have begun.
//!
//! A guarantee needs what the certificate states (`fleet::audit::certificate`): C while no MSB is lost; with
//! any one MSB lost, C minus a quarter of the embedded buffer at once, when every maintained server counts
//! as missing, and C within 30 minutes, when recallable servers are back. Each of these conditions that
//! holds without any maintenance must hold with all servers that are out at the same time. A condition that
//! does not hold even without maintenance is ignored: otherwise the servers of that reservation could never
//! be maintained. A reservation that survives the loss of domains of other partitions ([`crate::domains`]) needs the same
//! with any one of them lost.

use crate::domains::{Domain, Loss};
use chrono::{DateTime, Utc};
use fleet::audit::needed_at_once;
use fleet::{MsbName, RackName, ReservationName, Rru, ServerName};
use std::collections::{BTreeMap, BTreeSet};

/// The default share of an MSB's servers under maintenance at once, in millionths. Embedded buffers cover
/// maintenance; when an MSB is lost, three quarters of them must be available at once (RAS section 3.3.1: "our
/// maintenance scheduling system limits concurrent maintenance operations to 25% of an MSB").
pub const SHARE_MICRO: u32 = 250_000;

/// The reservation that has a server, and the value of the server to it; zero if the server has failed.
pub type Held = Option<(ReservationName, Rru)>;

/// A server of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its name.
    pub server: ServerName,
    /// Its rack.
    pub rack: RackName,
    /// Its MSB.
    pub msb: MsbName,
    /// Its domains of the partitions that one of those reservations survives.
    pub domains: Vec<Domain>,
    /// The guaranteed reservation that owns it now, and the one that will own it after its open move.
    /// Maintenance must keep the guarantees of both.
    pub held: [Held; 2],
}

impl Site {
    /// The reservation that holds it: the target of an open move, else the owner.
    pub fn holder(&self) -> Option<&(ReservationName, Rru)> {
        self.held[1].as_ref()
    }
}

/// The promise to a reservation, and the servers that it has. Failed servers are left out; maintained ones are
/// included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promised {
    /// C.
    pub capacity: Rru,
    /// Whether the capacity must survive the loss of any one MSB.
    pub msb_buffer: bool,
    /// RRU by MSB: now, and after all open moves.
    pub by_msb: [BTreeMap<MsbName, Rru>; 2],
    /// The same by domain, of the partitions that it survives.
    pub by_domain: [BTreeMap<Domain, Rru>; 2],
}

impl Promised {
    /// RRU of the reservation after all open moves.
    pub fn available(&self) -> Rru {
        self.by_msb[1].values().copied().sum()
    }
}

/// Servers that are out of service together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out {
    /// The start.
    pub from: DateTime<Utc>,
    /// The end, not included.
    pub until: DateTime<Utc>,
    /// The servers, by number.
    pub servers: BTreeSet<i32>,
    /// Whether a recall returns them within 30 minutes.
    pub recallable: bool,
}

/// The view of a decision about maintenance. Servers have the numbers that the caller gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Every server of every [`Out`].
    pub sites: BTreeMap<i32, Site>,
    /// Number of servers of their MSBs.
    pub msbs: BTreeMap<MsbName, u64>,
    /// Their owners and holders.
    pub reservations: BTreeMap<ReservationName, Promised>,
}

/// The capacity that a reservation needs at an instant, and the capacity that maintenance leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The reservation.
    pub reservation: ReservationName,
    /// What is assumed lost; `None`: nothing is.
    pub lost: Option<Loss>,
    /// RRU needed at once: C minus a quarter of the embedded buffer, or C while nothing is lost.
    pub needed_at_once: Rru,
    /// RRU left at once: every maintained server counts as missing.
    pub left_at_once: Rru,
    /// RRU needed within 30 minutes: C.
    pub needed: Rru,
    /// RRU left within 30 minutes, when recalled servers are back. While nothing is lost, nothing is recalled.
    pub left: Rru,
}

/// A limit that maintenance would exceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// The share of an MSB.
    Share {
        /// The MSB.
        msb: MsbName,
        /// Servers that would be out at once.
        out: u64,
        /// All servers of the MSB.
        servers: u64,
        /// Servers that may be out at once.
        most: u64,
    },
    /// The guarantee of a reservation.
    Guarantee {
        /// Needed and remaining capacity.
        left: Left,
        /// The MSB of the servers that would be out.
        msb: MsbName,
    },
}

/// The number of servers of a share in millionths, rounded down.
pub fn most(servers: u64, share_micro: u32) -> u64 {
    let most = u128::from(servers) * u128::from(share_micro) / 1_000_000;
    u64::try_from(most).unwrap_or(u64::MAX)
}

/// Checks that servers may be out beside the others, at every instant of their window.
///
/// # Errors
/// The first limit that would be exceeded.
pub fn check(view: &View, others: &[&Out], ours: &Out, share_micro: u32) -> Result<(), TooMuch> {
    check_accepting(view, others, ours, share_micro, &BTreeSet::new())
}

/// [`check`], with reservations whose shortage an operator has accepted.
///
/// # Errors
/// The first limit that would be exceeded.
pub fn check_accepting(
    view: &View,
    others: &[&Out],
    ours: &Out,
    share_micro: u32,
    accepted: &BTreeSet<ReservationName>,
) -> Result<(), TooMuch> {
    // The set of servers that are out grows only where a window begins.
    let begin = others.iter().map(|other| other.from);
    let during = begin.filter(|from| ours.from < *from && *from < ours.until);
    let instants: BTreeSet<DateTime<Utc>> = during.chain([ours.from]).collect();
    for at in instants {
        let at_once = others.iter().filter(|other| other.from <= at && at < other.until);
        let out: Vec<&Out> = at_once.copied().chain([ours]).collect();
        check_instant(view, &out, ours, share_micro, accepted)?;
    }
    Ok(())
}

fn check_instant(
    view: &View,
    out: &[&Out],
    ours: &Out,
    share_micro: u32,
    accepted: &BTreeSet<ReservationName>,
) -> Result<(), TooMuch> {
    let all: BTreeSet<i32> = out.iter().flat_map(|of| &of.servers).copied().collect();
    let sites = |servers: &BTreeSet<i32>| -> Vec<&Site> {
        servers.iter().filter_map(|id| view.sites.get(id)).collect()
    };
    let (everything, ours) = (sites(&all), sites(&ours.servers));
    for msb in ours.iter().map(|site| &site.msb).collect::<BTreeSet<_>>() {
        let servers = view.msbs.get(msb).copied().unwrap_or(0);
        let out = everything.iter().filter(|site| site.msb == *msb).count() as u64;
        let most = most(servers, share_micro);
        if out > most {
            return Err(TooMuch::Share { msb: msb.clone(), out, servers, most });
        }
    }
    // If two windows cover a server, the one that cannot be recalled counts.
    let stays: BTreeSet<i32> =
        out.iter().filter(|of| !of.recallable).flat_map(|of| &of.servers).copied().collect();
    for lens in [0, 1] {
        let touched: BTreeMap<&ReservationName, &MsbName> = (ours.iter())
            .filter_map(|site| Some((site.held[lens].as_ref()?, &site.msb)))
            .filter(|((_, value), _)| *value > Rru::ZERO)
            .map(|((holder, _), msb)| (holder, msb))
            .collect();
        for (reservation, msb) in touched {
            let promised = view.reservations.get(reservation);
            let Some(promised) = promised.filter(|_| !accepted.contains(reservation)) else {
                continue;
            };
            let taken = |servers: &BTreeSet<i32>| Taken::of(view, servers, reservation, lens);
            let (gone, stays) = (taken(&all), taken(&stays));
            let none = Taken::default();
            let without = figures(reservation, promised, lens, &none, &none);
            let with = figures(reservation, promised, lens, &gone, &stays);
            let broken = without.into_iter().zip(with).find(|(without, with)| {
                let lost = |left: fn(&Left) -> (Rru, Rru)| {
                    let ((had, needs), (has, _)) = (left(without), left(with));
                    had >= needs && has < needs
                };
                lost(|of| (of.left_at_once, of.needed_at_once)) || lost(|of| (of.left, of.needed))
            });
            if let Some((_, left)) = broken {
                return Err(TooMuch::Guarantee { left, msb: msb.clone() });
            }
        }
    }
    Ok(())
}

/// The value of servers to a reservation.
#[derive(Default)]
struct Taken<'a> {
    all: Rru,
    by_msb: BTreeMap<&'a MsbName, Rru>,
    by_domain: BTreeMap<&'a Domain, Rru>,
}

impl<'a> Taken<'a> {
    fn of(
        view: &'a View,
        servers: &BTreeSet<i32>,
        reservation: &ReservationName,
        lens: usize,
    ) -> Taken<'a> {
        let mut taken = Taken::default();
        let none = BTreeMap::new();
        let shares = view.reservations.get(reservation).map_or(&none, |of| &of.by_domain[lens]);
        for site in servers.iter().filter_map(|id| view.sites.get(id)) {
            if let Some((_, value)) = site.held[lens].as_ref().filter(|of| of.0 == *reservation) {
                taken.all += *value;
                *taken.by_msb.entry(&site.msb).or_default() += *value;
                let counts = |at: &&Domain| shares.contains_key(*at);
                for domain in site.domains.iter().filter(counts) {
                    *taken.by_domain.entry(domain).or_default() += *value;
                }
            }
        }
        taken
    }
}

/// The remaining capacity of a reservation: without a loss, then for the loss of each MSB or domain in which it has
/// servers. The loss of any other costs it nothing.
fn figures(
    reservation: &ReservationName,
    promised: &Promised,
    lens: usize,
    gone: &Taken,
    stays: &Taken,
) -> Vec<Left> {
    let (msbs, domains) = (&promised.by_msb[lens], &promised.by_domain[lens]);
    let all: Rru = msbs.values().copied().sum();
    let needed = promised.capacity;
    let in_service = all - gone.all;
    let left = |lost, needed_at_once, left_at_once, left| Left {
        reservation: reservation.clone(),
        lost,
        needed_at_once,
        left_at_once,
        needed,
        left,
    };
    let mut figures = vec![left(None, needed, in_service, in_service)];
    let msbs = msbs.iter().filter(|_| promised.msb_buffer).map(|(msb, here)| {
        let of = |taken: &Taken| taken.by_msb.get(msb).copied().unwrap_or_default();
        (Loss::Msb(msb.clone()), *here, of(gone), of(stays))
    });
    let domains = domains.iter().map(|(domain, here)| {
        let of = |taken: &Taken| taken.by_domain.get(domain).copied().unwrap_or_default();
        (Loss::Domain(domain.clone()), *here, of(gone), of(stays))
    });
    let losses: Vec<(Loss, Rru, Rru, Rru)> = msbs.chain(domains).collect();
    let buffer = losses.iter().map(|(_, here, ..)| *here).max().unwrap_or_default();
    let at_once = needed_at_once(needed, buffer);
    figures.extend(losses.into_iter().map(|(lost, here, gone, stay)| {
        let (now, later) = (in_service - (here - gone), all - stays.all - (here - stay));
        left(Some(lost), at_once, now, later)
    }));
    figures
}

/// Divides the racks of an MSB, given with their numbers of servers, into batches within the share, in order of
/// name. Racks are never divided.
///
/// # Errors
/// [`TooMuch::Share`] if a rack alone exceeds the share.
pub fn batches(
    msb: &MsbName,
    racks: &BTreeMap<RackName, u64>,
    share_micro: u32,
) -> Result<Vec<Vec<RackName>>, TooMuch> {
    let servers = racks.values().sum();
    let most = most(servers, share_micro);
    let mut batches: Vec<Vec<RackName>> = Vec::new();
    let mut taken = u64::MAX;
    for (rack, &out) in racks {
        if out > most {
            return Err(TooMuch::Share { msb: msb.clone(), out, servers, most });
        }
        if taken.saturating_add(out) > most {
            batches.push(Vec::new());
            taken = 0;
        }
        taken += out;
        batches.last_mut().expect("one was begun").push(rack.clone());
    }
    Ok(batches)
}

#[cfg(test)]
pub(crate) mod tests;
