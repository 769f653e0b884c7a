//! Where a run took place, as Linux tells it.

use serde::Serialize;
use std::fs;

/// A machine.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Processors that this process may use.
    pub cores: usize,
    /// Memory, in bytes; `None` where the system does not say.
    pub memory_bytes: Option<u64>,
    /// The processor's name; `None` where the system does not say.
    pub processor: Option<String>,
    /// Whether this program was built for speed.
    pub optimised_build: bool,
}

impl Machine {
    /// This one.
    pub fn here() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Machine {
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_bytes: memory(&read("/proc/meminfo")),
            processor: processor(&read("/proc/cpuinfo")),
            optimised_build: !cfg!(debug_assertions),
        }
    }

    /// In a few words.
    pub fn sentence(&self) -> String {
        let processor = self.processor.as_deref().unwrap_or("unknown processor");
        let memory = self
            .memory_bytes
            .map_or_else(String::new, |bytes| format!(", {}", ras::quantity::show_bytes(bytes)));
        let build = if self.optimised_build { "" } else { ", debug build" };
        format!("{} cores ({processor}){memory}{build}", self.cores)
    }
}

fn memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

fn processor(cpuinfo: &str) -> Option<String> {
    let named = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(named.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_says_is_read() {
        assert_eq!(memory("MemTotal:       2 kB\nMemFree: 1 kB\n"), Some(2048));
        assert_eq!(processor("processor : 0\nmodel name\t: A B C\n").as_deref(), Some("A B C"));
        assert_eq!((memory(""), processor("")), (None, None));
    }
}
