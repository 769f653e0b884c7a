//! Ctrl-C: once asks for an early end, twice ends at once.

use anyhow::{Context, Result};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often somebody asked this process to end. One counter, because signals are the process's.
static ASKED: AtomicUsize = AtomicUsize::new(0);
static LISTENING: Once = Once::new();

/// What a shell reports of a process that SIGINT ended.
const EXIT_INTERRUPTED: i32 = 130;

/// Starts to listen for Ctrl-C (SIGINT, SIGTERM, SIGHUP).
///
/// # Errors
/// If the system refuses the handler.
pub fn listen() -> Result<()> {
    let mut outcome = Ok(());
    LISTENING.call_once(|| {
        outcome = ctrlc::set_handler(|| {
            if ASKED.fetch_add(1, Ordering::SeqCst) > 0 {
                eprintln!("ras: ended at once; what was written before stands");
                std::process::exit(EXIT_INTERRUPTED);
            }
        });
    });
    outcome.context("listening for Ctrl-C")
}

/// Whether somebody asked for an early end.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst) > 0
}
