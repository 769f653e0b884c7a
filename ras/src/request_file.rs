//! A request for capacity as a file: YAML, and so JSON.

use anyhow::{Context, Result, anyhow, ensure};
use fleet::CapacityRequest;
use std::path::Path;

/// No request is longer.
const BYTES_MAX: u64 = 1 << 20;

/// Reads a request.
///
/// # Errors
/// If the file cannot be read, or is not one request; with line and column.
pub fn read(path: &Path) -> Result<CapacityRequest> {
    let name = || format!("request {}", path.display());
    let size = std::fs::metadata(path).with_context(name)?.len();
    ensure!(size <= BYTES_MAX, "{}: {size} bytes are no request", name());
    let text = std::fs::read_to_string(path).with_context(name)?;
    serde_saphyr::from_str(&text).map_err(|error| {
        // That it is an error goes without saying.
        let error = error.to_string();
        anyhow!("{}: {}", name(), error.strip_prefix("error: ").unwrap_or(&error))
    })
}
