//! The parts of a region: places, hardware types, shared buffers, orders of hardware, RRU profiles; operators' edits; decommissions.

pub(crate) mod buffer_autosize;
pub(crate) mod decommission;
pub(crate) mod edit;
pub(crate) mod edit_error;
pub(crate) mod editing;
pub(crate) mod elastic;
pub(crate) mod hardware;
pub(crate) mod hardware_order;
pub(crate) mod places;
pub(crate) mod profile;
pub(crate) mod shared_buffer;

pub use buffer_autosize::{BufferAutosize, BufferAutosizeState, BufferDecision, BufferDue};
pub use decommission::Decommission;
pub use edit::{EditAnswer, StoredSettings};
pub use edit_error::EditError;
pub use elastic::{Elastic, ElasticEnd};
pub use hardware::{HardwareType, SharedBuffer};
pub use hardware_order::{
    HardwareOrder, HardwareOrderAnswer, HardwareOrderAsked, HardwareOrderChange,
};
pub use profile::{ProfileError, RruProfile};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[
    buffer_autosize::sql::ALL,
    decommission::sql::ALL,
    edit::sql::ALL,
    elastic::sql::ALL,
    hardware::sql::ALL,
    hardware_order::sql::ALL,
    places::sql::ALL,
    profile::sql::ALL,
];
