//! Memory use and limits of this process (Linux).

use rustix::process::{Resource, Rlimit};
use std::fs;

/// Peak resident memory of this process, in bytes; `None` if unknown.
pub fn peak_of_this_process() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

/// Limits the address space of this process. The kernel cannot limit resident memory.
///
/// # Errors
/// The system's error.
pub fn limit(bytes: u64) -> std::io::Result<()> {
    let hard = rustix::process::getrlimit(Resource::As).maximum;
    let limit = hard.map_or(bytes, |hard| hard.min(bytes));
    let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
    Ok(rustix::process::setrlimit(Resource::As, limit)?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn this_process_took_some() {
        let peak = super::peak_of_this_process().expect("Linux says");
        assert!(peak > 100_000, "{peak}");
    }
}
