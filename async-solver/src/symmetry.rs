//! Servers to equivalence classes, derived from the model.
//!
//! RAS (SOSP'21) section 3.5.2: servers with the same coefficients in every constraint and
//! objective are one integer variable. Nothing here lists what makes servers alike: each term of
//! the model names the coefficient it gives a server ([`Partition::refine`]), and what no term
//! tells apart stays together. A term that is added later cannot be forgotten here.

use fleet::RegionSnapshot;
use std::collections::BTreeMap;

/// A partition of the available servers, refined term by term.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Positions of the available servers in the snapshot, ascending.
    pub servers: Vec<u32>,
    /// The class of each of them; classes are numbered by their first server.
    pub class: Vec<u32>,
    /// How many classes there are.
    pub classes: usize,
}

impl Partition {
    /// One class of all available servers: no term has been looked at yet. (Eq. 5 treats all
    /// servers alike, and unavailable ones take no part.)
    pub fn of_available(snapshot: &RegionSnapshot) -> Partition {
        let servers: Vec<u32> = (0_u32..)
            .zip(&snapshot.servers)
            .filter_map(|(position, server)| server.available.then_some(position))
            .collect();
        let class = vec![0; servers.len()];
        let classes = usize::from(!servers.is_empty());
        Partition { servers, class, classes }
    }

    /// Splits classes so that servers stay together only where a term gives them the same
    /// coefficient.
    pub fn refine<K: Ord>(&mut self, coefficient: impl Fn(u32) -> K) {
        let mut numbers: BTreeMap<(u32, K), u32> = BTreeMap::new();
        let mut next = 0;
        for (class, &server) in self.class.iter_mut().zip(&self.servers) {
            *class = *numbers.entry((*class, coefficient(server))).or_insert_with(|| {
                next += 1;
                next - 1
            });
        }
        self.classes = numbers.len();
    }
}

/// Numbers the hardware types so that two types share a number exactly where every reservation
/// values them alike (or finds neither eligible): the coefficient V of eq. 2 to 7.
pub fn value_rows(snapshot: &RegionSnapshot) -> Vec<u32> {
    let mut rows: Vec<Vec<(usize, i64)>> = vec![Vec::new(); snapshot.hardware_types.len()];
    for (position, reservation) in snapshot.reservations.iter().enumerate() {
        for &(hardware_type, value) in &reservation.rru {
            rows[hardware_type.ix()].push((position, value.0));
        }
    }
    let mut numbers: BTreeMap<Vec<(usize, i64)>, u32> = BTreeMap::new();
    rows.into_iter()
        .map(|row| {
            let next = u32::try_from(numbers.len()).expect("fewer than 2^32 hardware types");
            *numbers.entry(row).or_insert(next)
        })
        .collect()
}
