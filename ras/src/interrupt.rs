//! Ctrl-C: the first requests an early end, the second exits at once. Also ends a child process
//! when its parent ends.

use anyhow::{Context, Result};
use rustix::process::Signal;
use std::io::Read;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of signals received. One counter, because signals are per process.
static ASKED: AtomicUsize = AtomicUsize::new(0);
static LISTENING: Once = Once::new();

/// The exit code that shells report for a process ended by SIGINT.
const EXIT_INTERRUPTED: i32 = 130;

/// Starts listening for Ctrl-C (SIGINT, SIGTERM, SIGHUP).
///
/// # Errors
/// If the system refuses the handler.
pub fn listen() -> Result<()> {
    let mut outcome = Ok(());
    LISTENING.call_once(|| {
        outcome = ctrlc::set_handler(|| {
            if ASKED.fetch_add(1, Ordering::SeqCst) > 0 {
                crate::terminal::tell("stopped at once; results already written stay");
                std::process::exit(EXIT_INTERRUPTED);
            }
        });
    });
    outcome.context("listening for Ctrl-C")
}

/// Whether an early end was requested.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst) > 0
}

/// Ends this process when its standard input ends.
///
/// # Errors
/// If no thread can be started.
pub fn end_with_standard_input() -> Result<()> {
    end_with(std::io::stdin())
}

/// Ends this process when an input ends. The parent keeps the other end open while it wants the
/// answer; the end of the input means that the job was dropped or the parent died. Uses SIGKILL,
/// because an orderly exit would run the destructors of HiGHS while it runs in another thread.
///
/// # Errors
/// If no thread can be started.
pub fn end_with(mut input: impl Read + Send + 'static) -> Result<()> {
    let watch = move || {
        let mut ignored = [0; 64];
        while let Ok(1..) = input.read(&mut ignored) {}
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    };
    let thread = std::thread::Builder::new().name("lifeline".to_owned()).spawn(watch);
    thread.map(|_| ()).context("starting the thread that watches the parent")
}
