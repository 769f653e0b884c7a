//! Ctrl-C: once asks for an early end, twice ends at once. And the end of the parent, of a child.

use anyhow::{Context, Result};
use rustix::process::Signal;
use std::io::Read;
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

/// Ends this process when its standard input ends.
///
/// # Errors
/// If the system gives no thread.
pub fn end_with_standard_input() -> Result<()> {
    end_with(std::io::stdin())
}

/// Ends this process when an input ends. The parent holds the other end open as long as it wants
/// the answer; an end of the input means that the job was dropped or the parent died. SIGKILL,
/// because an orderly exit would run the destructors of a HiGHS that is at work in another thread.
///
/// # Errors
/// If the system gives no thread.
pub fn end_with(mut input: impl Read + Send + 'static) -> Result<()> {
    let watch = move || {
        let mut ignored = [0; 64];
        while let Ok(1..) = input.read(&mut ignored) {}
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    };
    let thread = std::thread::Builder::new().name("lifeline".to_owned()).spawn(watch);
    thread.map(|_| ()).context("starting the thread that watches the parent")
}
