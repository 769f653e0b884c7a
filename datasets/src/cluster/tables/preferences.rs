//! The rows of `preferences.parquet`: what services prefer.

use super::columns::Rows;
use crate::cluster::ClusterError;
use crate::cluster::schema::{PreferredOf, RoleOf, ServiceOf, SpreadOf};
use std::collections::BTreeMap;

/// Preferred nodes by service and number. The labels of one may be in several rows.
pub type Numbered = BTreeMap<(usize, i64), PreferredOf>;

/// Reads rows; `services` names the service of each. Soft spreads go to the services, preferred nodes to
/// `numbered`, because their rows may be far apart.
pub fn read(
    rows: &Rows,
    of_rows: &[usize],
    services: &mut [ServiceOf],
    numbered: &mut Numbered,
) -> Result<(), ClusterError> {
    let (kinds, weights) = (rows.names("preference")?, rows.numbers("weight"));
    let (numbers, roles) = (rows.whole("number")?, rows.texts("role"));
    let (keys, values) = (rows.texts("key"), rows.texts("value"));
    for row in 0..rows.count {
        let refused = |column: &str, rule: &str| rows.refused(row, column, rule);
        let weight = weights[row].ok_or_else(|| refused("weight", NULL))?;
        let service = of_rows[row];
        let key = keys[row].as_deref().map(str::to_owned);
        match &*kinds[row] {
            "spread_softly" => {
                let others = [("number", numbers[row].is_some()), ("value", values[row].is_some())];
                let others = others.into_iter().chain([("role", roles[row].is_some())]);
                if let Some((column, _)) = others.into_iter().find(|(_, has)| *has) {
                    return Err(refused(column, "must be null in a row of spread_softly"));
                }
                let level = key.ok_or_else(|| refused("key", NULL))?;
                services[service].spread_softly.push(SpreadOf { level, weight });
            }
            "preferred" => {
                let number = numbers[row].ok_or_else(|| refused("number", NULL))?;
                let role = role(rows, row, roles[row].as_deref())?;
                let new = || PreferredOf { labels: BTreeMap::new(), role, weight };
                let of = numbered.entry((service, number)).or_insert_with(new);
                if of.weight != weight || of.role != role {
                    let column = if of.role == role { "weight" } else { "role" };
                    let rule = "differs from another row of this service and number";
                    return Err(refused(column, rule));
                }
                let value = values[row].as_deref().map(str::to_owned);
                match (key, value) {
                    (Some(label), Some(value)) => of.labels.entry(label).or_default().push(value),
                    (None, None) => {}
                    (Some(_), None) => return Err(refused("value", NULL)),
                    (None, Some(_)) => return Err(refused("key", NULL)),
                }
            }
            other => {
                let rule = format!("is {other:?}; it must be preferred or spread_softly");
                return Err(rows.refused(row, "preference", rule));
            }
        }
    }
    Ok(())
}

const NULL: &str = "is null; it must have a value";

/// The role that a cell names.
pub fn role(rows: &Rows, row: usize, role: Option<&str>) -> Result<Option<RoleOf>, ClusterError> {
    Ok(Some(match role {
        None => return Ok(None),
        Some("primary") => RoleOf::Primary,
        Some("secondary") => RoleOf::Secondary,
        Some("instance") => RoleOf::Instance,
        Some(other) => {
            let rule = format!("is {other:?}; it must be primary, secondary or instance");
            return Err(rows.refused(row, "role", rule));
        }
    }))
}

/// A row.
#[derive(Default)]
pub struct PreferenceRow<'r> {
    pub service: &'r str,
    pub preference: &'static str,
    pub number: Option<i64>,
    pub key: Option<&'r str>,
    pub value: Option<&'r str>,
    pub role: Option<RoleOf>,
    pub weight: f64,
}

/// The rows of a service.
pub fn rows_of(of: &ServiceOf) -> Vec<PreferenceRow<'_>> {
    let mut rows = Vec::new();
    for (number, preferred) in (0..).zip(&of.preferred) {
        let row = |key, value| PreferenceRow {
            service: &of.name,
            preference: "preferred",
            number: Some(number),
            key,
            value,
            role: preferred.role,
            weight: preferred.weight,
        };
        if preferred.labels.is_empty() {
            rows.push(row(None, None));
        }
        for (label, values) in &preferred.labels {
            rows.extend(values.iter().map(|value| row(Some(label.as_str()), Some(value.as_str()))));
        }
    }
    for soft in &of.spread_softly {
        rows.push(PreferenceRow {
            service: &of.name,
            preference: "spread_softly",
            key: Some(&soft.level),
            weight: soft.weight,
            ..PreferenceRow::default()
        });
    }
    rows
}
