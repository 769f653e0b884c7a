//! The warm start that a solve leaves for the next one, as a file beside its result.

use crate::progress::Reporter;
use anyhow::{Context, Result};
use async_solver::WarmStart;
use datasets::schema::WARM_FORMAT;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

/// Reads the warm start in a folder. Without one a solve takes longer but ends no worse, so a
/// missing or damaged file is only logged.
pub fn read(folder: &Path, reporter: &Reporter) -> Option<WarmStart> {
    let problem = match load(folder) {
        Ok(Some(warm)) => return Some(warm),
        Ok(None) => "not found".to_owned(),
        Err(error) => format!("{error:#}"),
    };
    let folder = folder.display();
    reporter.note(&format!("cold start: no warm start from {folder}: {problem}"));
    None
}

/// Reads the warm start in a folder; the caller reports if it is missing or damaged.
///
/// # Errors
/// If it cannot be read, or is not a warm start.
pub fn load(folder: &Path) -> Result<Option<WarmStart>> {
    datasets::read_warm(folder)?.map(of_json).transpose()
}

/// The serialized form.
pub fn to_json(warm: &WarmStart) -> Value {
    let mut document = serde_json::to_value(warm).expect("numbers and names");
    document["format"] = json!(WARM_FORMAT);
    document
}

fn of_json(mut json: Value) -> Result<WarmStart> {
    if let Some(members) = json.as_object_mut() {
        members.remove("format");
        // Earlier versions also stored the gap at which the solve ended.
        members.remove("gap");
    }
    WarmStart::deserialize(json).context("not a warm start of a solve")
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_solver::{WarmDomain, WarmLimit, WarmPrice};
    use std::time::Instant;

    #[test]
    fn what_is_missing_or_damaged_is_no_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let reporter = Reporter::new(true, Instant::now(), None);
        let file = folder.path().join(datasets::schema::WARM_FILE);
        assert_eq!(read(folder.path(), &reporter), None);
        let price = WarmPrice { msb: "m0".into(), hardware_type: "t".into(), price: 0.1 };
        let limit = WarmLimit { name: "power: m0".into(), price: 0.2 };
        let domain = WarmDomain {
            reservation: "web".into(),
            partition: "switch".into(),
            domain: "s0".into(),
            price: 0.3,
        };
        let warm = WarmStart { prices: vec![price], limits: vec![limit], domains: vec![domain] };
        let text = to_json(&warm).to_string();
        std::fs::write(&file, &text).expect("written");
        assert_eq!(read(folder.path(), &reporter), Some(warm.clone()));
        let earlier = text.replacen('{', r#"{"gap":0.001,"#, 1);
        std::fs::write(&file, earlier).expect("written");
        assert_eq!(read(folder.path(), &reporter), Some(warm), "an earlier version stored a gap");
        let cut = &text[..text.len() - 5];
        let other = text.replace("ras-warm/1", "ras-warm/2");
        let wrong = text.replace("price", "cost");
        for damaged in ["", "[]", "null", "{}", cut, &other, &wrong] {
            std::fs::write(&file, damaged).expect("written");
            assert_eq!(read(folder.path(), &reporter), None, "{damaged}");
        }
    }
}
