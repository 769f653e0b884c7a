//! Reads RRU by hardware type: of changes, and of RRU profiles.

use crate::http::field::FieldReader;
use api_types::problem::FieldError;
use fleet::{HardwareTypeName, RegionSnapshot};
use serde_json::Value;
use std::collections::BTreeMap;

/// Every member of an RRU profile.
const PROFILE_MEMBERS: [&str; 1] = ["rru"];

/// Reads the optional member `rru`: RRU of a server of each hardware type.
pub(super) fn read(
    fields: &mut FieldReader,
    region: Option<&RegionSnapshot>,
) -> Option<BTreeMap<HardwareTypeName, f64>> {
    let values: BTreeMap<HardwareTypeName, Value> =
        fields.optional("rru", "an object of RRU by hardware type")?;
    if values.is_empty() {
        fields.error("rru", "it names no hardware type");
    }
    let mut read = BTreeMap::new();
    for (ty, value) in &values {
        let field = format!("rru.{ty}");
        check_type(fields, &field, ty, region);
        match fields.amount(&field, value) {
            Some(0.0) => fields.error(&field, "it must be more than 0"),
            Some(amount) => drop(read.insert(ty.clone(), amount)),
            None => {}
        }
    }
    Some(read)
}

/// Reads the values of an RRU profile.
///
/// # Errors
/// Every invalid field.
pub(crate) fn profile(
    body: Value,
    region: Option<&RegionSnapshot>,
) -> Result<BTreeMap<HardwareTypeName, f64>, Vec<FieldError>> {
    let Value::Object(members) = body else {
        return Err(vec![FieldError::new("", "it is not an object")]);
    };
    let mut fields = FieldReader::new(&PROFILE_MEMBERS, members, String::new());
    let values = read(&mut fields, region);
    if values.is_none() && !fields.has_error("rru") {
        fields.error("rru", "it is missing");
    }
    fields.finish()?;
    Ok(values.unwrap_or_default())
}

/// Checks that the region has a hardware type.
pub(super) fn check_type(
    fields: &mut FieldReader,
    field: &str,
    ty: &HardwareTypeName,
    region: Option<&RegionSnapshot>,
) {
    if let Some(region) = region.filter(|region| !region.hardware_types.contains(ty)) {
        let few = region.hardware_types.iter().take(30).map(AsRef::as_ref).collect::<Vec<_>>();
        let detail = format!("the region has no hardware type {ty:?}; it has {}", few.join(", "));
        fields.error(field, detail);
    }
}
