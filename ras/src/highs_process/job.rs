//! A running HiGHS process, on the parent's side.

use super::frame;
use async_solver::backend::{LpProblem, LpRequest, LpSolution};
use async_solver::{LpFailure, LpJob};
use std::io::{BufReader, BufWriter, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Maximum length of the child's last output in an error message.
const LAST_WORDS_BYTES: usize = 2_000;

/// Bytes written to the pipe at once.
const PIPE_CHUNK: usize = 1 << 16;

type Outcome = Result<LpSolution, LpFailure>;
type Answer = std::io::Result<frame::Answer>;

/// A job that failed before it began.
pub(super) struct Failed(Option<LpFailure>);

impl Failed {
    pub(super) fn new(failure: LpFailure) -> Failed {
        Failed(Some(failure))
    }
}

impl LpJob for Failed {
    fn wait(&mut self, _at_most: Duration) -> Option<Outcome> {
        self.0.take().map(Err)
    }
}

/// A running child process and the threads that communicate with it.
pub(super) struct ProcessJob {
    child: Child,
    answer: Receiver<Answer>,
    /// Keeps the child's input open, and so the child alive.
    _lifeline: Sender<()>,
    last_words: Option<LastWords>,
    peak: Arc<AtomicU64>,
    done: bool,
}

impl ProcessJob {
    /// Sends the problem to a new child with three pipes.
    pub(super) fn start(
        mut child: Child,
        problem: LpProblem,
        request: LpRequest,
        peak: Arc<AtomicU64>,
    ) -> std::io::Result<ProcessJob> {
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(std::io::Error::other("the child has no pipes"));
        };
        let (lifeline, cut) = mpsc::channel();
        let (answered, answer) = mpsc::channel();
        // From here on the job owns the child: dropping it on an error kills and reaps the child.
        let mut job =
            ProcessJob { child, answer, _lifeline: lifeline, last_words: None, peak, done: false };
        let name = |part: &str| thread::Builder::new().name(format!("highs-{part}"));
        name("in").spawn(move || send_problem(stdin, &problem, &request, &cut))?;
        name("out").spawn(move || {
            // The receiver is gone once the job is dropped; the result is not needed then.
            let _ = answered.send(read_answer(stdout));
        })?;
        let said = Arc::<Mutex<Vec<u8>>>::default();
        let listener = Arc::clone(&said);
        let thread = name("err").spawn(move || listen(stderr, &listener))?;
        job.last_words = Some(LastWords { said, thread });
        Ok(job)
    }

    fn finish(&mut self, answer: Answer) -> Outcome {
        self.done = true;
        let outcome = answer.map_err(|error| self.post_mortem(&error)).and_then(|answer| {
            self.peak.fetch_max(answer.peak_memory, Ordering::Relaxed);
            answer.outcome
        });
        self.end();
        if let Err(failure) = &outcome {
            tracing::warn!(%failure, "HiGHS gave no answer");
        }
        outcome
    }

    /// Why there is no answer: what the child said last and how it ended.
    fn post_mortem(&mut self, error: &std::io::Error) -> LpFailure {
        // It may be about to exit; if it continues to write instead, it is stopped.
        let mut ended = None;
        patiently(|| {
            ended = self.child.try_wait().ok().flatten();
            ended.is_some()
        });
        self.end();
        let ended = ended.map_or("it was stopped".to_owned(), |status| format!("{status}"));
        let words = self.last_words.as_ref().map_or_else(String::new, LastWords::heard);
        let words = match words.trim() {
            "" => String::new(),
            words => format!("; last output: {words}"),
        };
        LpFailure::Process(format!("{error} ({ended}){words}"))
    }

    /// Kills and reaps the child. Does nothing if it has exited.
    fn end(&mut self) {
        if let Err(error) = self.child.kill() {
            tracing::debug!(%error, "the HiGHS process could not be killed");
        }
        if let Err(error) = self.child.wait() {
            tracing::debug!(%error, "the HiGHS process could not be waited for");
        }
    }
}

impl LpJob for ProcessJob {
    fn wait(&mut self, at_most: Duration) -> Option<Outcome> {
        if self.done {
            return None;
        }
        match self.answer.recv_timeout(at_most) {
            Ok(answer) => Some(self.finish(answer)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(self.finish(Err(reader_gone()))),
        }
    }
}

impl Drop for ProcessJob {
    fn drop(&mut self) {
        if !self.done {
            self.end();
        }
    }
}

fn reader_gone() -> std::io::Error {
    std::io::Error::other("the thread that reads the answer ended")
}

/// Sends the problem, then holds the pipe open until the job is dropped.
fn send_problem(stdin: ChildStdin, problem: &LpProblem, request: &LpRequest, cut: &Receiver<()>) {
    let mut pipe = BufWriter::with_capacity(PIPE_CHUNK, stdin);
    let sent = frame::write_problem(&mut pipe, problem, request).and_then(|()| pipe.flush());
    if let Err(error) = sent {
        // The reader notices the end of the answer and reports it in more detail.
        tracing::debug!(%error, "cannot send the problem to the HiGHS process");
        return;
    }
    // No value is ever sent: this returns when the job drops its end.
    let _ = cut.recv();
}

fn read_answer(stdout: ChildStdout) -> Answer {
    frame::read_answer(&mut BufReader::with_capacity(PIPE_CHUNK, stdout))
}

/// The child's standard error so far.
struct LastWords {
    said: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl LastWords {
    /// Waits a moment for the end; a grandchild may keep the pipe open forever.
    fn heard(&self) -> String {
        patiently(|| self.thread.is_finished());
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// Reads to the end and keeps only the last part, so that a verbose child never blocks.
fn listen(mut stderr: ChildStderr, said: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut chunk) {
        let mut kept = said.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&chunk[..read]);
        let surplus = kept.len().saturating_sub(LAST_WORDS_BYTES);
        kept.drain(..surplus);
    }
}

/// Polls a condition for at most half a second.
fn patiently(mut is_so: impl FnMut() -> bool) {
    for _ in 0..50 {
        if is_so() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
}
