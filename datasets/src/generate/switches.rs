//! Network switches, each over racks of neighbouring MSBs: fault domains that cross MSBs.

use super::hardware::Floor;
use super::services::Service;
use fleet::{DomainName, PartitionColumn, PartitionParts, SurvivesRow};

/// The name of the partition.
const SWITCH: &str = "switch";

/// Gives every rack a switch and every service with an embedded buffer the rule to survive the loss of any one.
///
/// The racks of the floor are cut into runs of nearly equal length, half a run beside the borders where as many switches as
/// MSBs would end: so most switches have racks of two MSBs.
pub(super) fn add(floor: &Floor, services: &[Service], switches: usize) -> PartitionParts {
    let racks = floor.racks.len();
    let digits = switches.saturating_sub(1).to_string().len();
    let names: Vec<DomainName> =
        (0..switches).map(|number| format!("switch-{number:0digits$}").into()).collect();
    let half = racks / switches / 2;
    let of_rack = |rack: usize| (rack + half) % racks * switches / racks;
    let domains = floor.servers.iter();
    let domains =
        domains.map(|server| (server.name.clone(), names[of_rack(server.rack)].clone())).collect();
    let mut survives: Vec<SurvivesRow> = (services.iter().filter(|service| service.msb_buffer))
        .map(|service| SurvivesRow { reservation_id: service.id.clone(), partition: SWITCH.into() })
        .collect();
    survives.sort_by(|a, b| a.reservation_id.cmp(&b.reservation_id));
    let partitions = vec![PartitionColumn { name: SWITCH.into(), domains }];
    PartitionParts { partitions, survives }
}
