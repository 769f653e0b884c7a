//! What a reservation holds, by hardware type and by MSB.

use crate::audit::as_rru;
use crate::id::{DatacenterName, HardwareTypeName, MsbName};
use crate::rru::Rru;
use serde::Serialize;

/// Available servers of one hardware type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldType {
    /// The type.
    pub hardware_type: HardwareTypeName,
    /// Servers.
    pub servers: usize,
    /// What they are worth; nothing where the type is not eligible or the datacenter not allowed.
    #[serde(rename = "rru", serialize_with = "as_rru")]
    pub amount: Rru,
}

/// Available servers in one MSB.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldMsb {
    /// The MSB.
    pub msb: MsbName,
    /// Its datacenter.
    pub datacenter: DatacenterName,
    /// Servers.
    pub servers: usize,
    /// What they are worth.
    #[serde(rename = "rru", serialize_with = "as_rru")]
    pub amount: Rru,
}

/// The MSB that holds most of a reservation, the first by name of equals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstMsb {
    /// The MSB.
    pub msb: MsbName,
    /// What would be lost.
    #[serde(rename = "lost_rru", serialize_with = "as_rru")]
    pub lost: Rru,
    /// What would be left.
    #[serde(rename = "left_rru", serialize_with = "as_rru")]
    pub left: Rru,
}
