//! Names and indices.
//!
//! Everything in a region is known outside by the name its owner gave it: UTF-8, 1 to 128
//! characters, ordered bytewise. Inside, names are interned once and a dense `u32` index in a
//! newtype of its own stands for them; an index is only meaningful with the snapshot it came from.

use std::sync::Arc;

/// A name as its owner wrote it, shared rather than copied.
pub type Name = Arc<str>;

/// The most characters a name may have.
pub const NAME_CHARS_MAX: usize = 128;

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Makes an index from a position in its table.
            ///
            /// # Panics
            /// If the position does not fit 32 bits: tables are bounded far below that.
            pub fn new(position: usize) -> Self {
                Self(u32::try_from(position).expect("tables hold fewer than 2^32 rows"))
            }

            /// The position in its table.
            pub const fn ix(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

index! {
    /// Position of a server in [`crate::RegionSnapshot::servers`].
    ServerIx,
    /// Position of a rack in [`crate::RegionSnapshot::racks`].
    RackIx,
    /// Position of an MSB in [`crate::RegionSnapshot::msbs`].
    MsbIx,
    /// Position of a datacenter in [`crate::RegionSnapshot::datacenters`].
    DatacenterIx,
    /// Position of a hardware type in [`crate::RegionSnapshot::hardware_types`].
    HardwareTypeIx,
    /// Position of a reservation in [`crate::RegionSnapshot::reservations`].
    ReservationIx,
}
