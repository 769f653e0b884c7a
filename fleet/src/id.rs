//! Names and indices.
//!
//! Everything in a region is known outside by the name its owner gave it: UTF-8, 1 to 128
//! characters, ordered bytewise. `NewName` has the rule of names that are created now. Inside, names are interned once and a dense `u32` index in a
//! newtype of its own stands for them; an index is only meaningful with the snapshot it came from.

use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A name as its owner wrote it, shared rather than copied.
pub type Name = Arc<str>;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Name);

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }

        impl From<Name> for $name {
            fn from(name: Name) -> Self {
                Self(name)
            }
        }

        impl From<$name> for Name {
            fn from(name: $name) -> Name {
                name.0
            }
        }
    )+};
}

names! {
    /// The name of a server.
    ServerName,
    /// The name of a rack.
    RackName,
    /// The name of an MSB.
    MsbName,
    /// The name of a datacenter.
    DatacenterName,
    /// The name of a hardware type.
    HardwareTypeName,
    /// The name of a reservation.
    ReservationName,
    /// The name of an owner: a business unit that requests capacity.
    OwnerName,
    /// The name of a partition into fault domains, such as `switch`.
    PartitionName,
    /// The name of a fault domain of a partition.
    DomainName,
}

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
    /// Position of a partition in [`crate::RegionSnapshot::partitions`].
    PartitionIx,
}
