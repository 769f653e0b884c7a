//! The parts of a region: places, hardware types, RRU profiles; operators' edits; decommissions.

pub(crate) mod decommission;
pub(crate) mod edit;
pub(crate) mod hardware;
pub(crate) mod places;
pub(crate) mod profile;

pub use decommission::Decommission;
pub use edit::{
    EditAnswer, EditError, Elastic, ElasticEnd, HardwareType, SharedBuffer, StoredSettings,
    settings_json,
};
pub use profile::{ProfileError, RruProfile};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[
    decommission::sql::ALL,
    edit::buffer::sql::ALL,
    edit::elastic::sql::ALL,
    edit::sql::ALL,
    hardware::sql::ALL,
    places::sql::ALL,
    profile::sql::ALL,
];
