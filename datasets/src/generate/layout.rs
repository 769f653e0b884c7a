//! The floor of each profile.

use super::hardware::{CATALOGUE, Floor, filled_with_one_type_each, name};
use super::{GenerateOptions, Profile, mixed};

/// Builds the floor.
pub(super) fn lay_out(options: &GenerateOptions) -> Floor {
    let catalogue = || CATALOGUE[..options.hardware_types].to_vec();
    let (catalogue, racks) = match options.profile {
        Profile::Ras => (catalogue(), filled_with_one_type_each(options)),
        Profile::Research => mixed::many_types(options),
        Profile::Switches => {
            let catalogue = catalogue();
            let racks = mixed::many_msbs(options, &catalogue);
            (catalogue, racks)
        }
    };
    name(options, catalogue, racks)
}
