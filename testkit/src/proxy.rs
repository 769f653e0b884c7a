//! Faults between a client and its Postgres: a unix socket in front of the real one that delays, holds,
//! loses or refuses messages.
//!
//! Clients send a statement's text once for each connection, so a statement is recognised by words
//! of it. A commit is the text `COMMIT`.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// Treatment of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// They pass.
    #[default]
    Open,
    /// Those of clients are delayed by this duration.
    Slow(Duration),
    /// Connections are cut, and new ones refused.
    Refused,
    /// They are held, without an error on either side.
    Silent,
    /// The first commit on a connection that sent these words before is forwarded; when its answer
    /// is there, the connection is cut instead. What comes after passes.
    LoseCommitAfter(&'static str),
    /// Messages with the words `at` are held, on a connection that sent `after` before.
    Hold {
        /// Words of an earlier message.
        after: &'static str,
        /// Words of the message to hold.
        at: &'static str,
    },
    /// They pass; the answer to the first commit after these words is held.
    HoldAnswer {
        /// Words of an earlier message.
        after: &'static str,
    },
}

/// What all connections share, and a bell for its changes.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    way: Way,
    /// Counts changes: what was held before is cut, not forwarded.
    turn: u64,
    /// The fault happened.
    reached: bool,
    connections: Vec<Weak<Connection>>,
}

/// A proxy that runs until its process ends.
pub struct Proxy {
    socket: PathBuf,
    shared: Arc<Shared>,
}

/// The name Postgres gives its socket.
const SOCKET: &str = ".s.PGSQL.5432";

impl Proxy {
    /// Starts in front of the Postgres whose socket is in `server`. Its own socket is in `folder`, which
    /// is created.
    ///
    /// # Panics
    /// If the socket cannot be bound.
    pub fn start(folder: &Path, server: &Path) -> Proxy {
        std::fs::create_dir_all(folder).expect("made");
        let socket = folder.join(SOCKET);
        let server = server.join(SOCKET);
        let listener = UnixListener::bind(&socket).expect("a short path");
        let shared = Arc::new(Shared::default());
        let sharing = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A server that is not there cuts, and so do we.
                if sharing.lock().way != Way::Refused
                    && let Ok(upstream) = UnixStream::connect(&server)
                {
                    let connection = Connection::start(client, upstream, &sharing);
                    sharing.lock().connections.push(Arc::downgrade(&connection));
                }
            }
        });
        Proxy { socket, shared }
    }

    /// The folder of its socket.
    pub fn folder(&self) -> &Path {
        self.socket.parent().expect("a folder")
    }

    /// Treats messages this way from now on, and cuts connections with held messages.
    pub fn set(&self, way: Way) {
        let mut state = self.shared.lock();
        (state.way, state.turn, state.reached) = (way, state.turn + 1, false);
        if way == Way::Refused {
            state.connections.drain(..).filter_map(|c| c.upgrade()).for_each(|c| c.cut());
        }
        self.shared.changed.notify_all();
    }

    /// Keeps held messages, and passes those of new connections.
    pub fn leave_behind(&self) {
        self.shared.lock().way = Way::Open;
    }

    /// Waits until the fault has happened.
    ///
    /// # Panics
    /// If it has not by then.
    pub fn wait_until_reached(&self, at_most: Duration) {
        let waited =
            self.shared.changed.wait_timeout_while(self.shared.lock(), at_most, |s| !s.reached);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "{:?} was not reached", state.way);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> (Way, u64) {
        let state = self.lock();
        (state.way, state.turn)
    }

    fn reach(&self, state: &mut State) {
        state.reached = true;
        self.changed.notify_all();
    }
}

/// One client and its connection to the server.
struct Connection {
    shared: Arc<Shared>,
    client: UnixStream,
    server: UnixStream,
    /// The turn in which it is between a commit and its answer.
    committing: Mutex<Option<u64>>,
}

impl Connection {
    fn start(client: UnixStream, server: UnixStream, shared: &Arc<Shared>) -> Arc<Connection> {
        let shared = shared.clone();
        let connection = Connection { shared, client, server, committing: Mutex::new(None) };
        let connection = Arc::new(connection);
        for pass in [Connection::requests, Connection::answers] {
            let connection = connection.clone();
            thread::spawn(move || {
                pass(&connection);
                connection.cut();
            });
        }
        connection
    }

    fn cut(&self) {
        for end in [&self.client, &self.server] {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn requests(&self) {
        // Everything said so far, for words that come in several pieces.
        let mut said = String::new();
        let mut piece = vec![0; 1 << 16];
        let (mut from, mut to) = (&self.client, &self.server);
        while let Ok(length) = from.read(&mut piece) {
            if length == 0 {
                return;
            }
            let text = String::from_utf8_lossy(&piece[..length]).into_owned();
            if !self.may_pass(&said, &text) || to.write_all(&piece[..length]).is_err() {
                return;
            }
            said.push_str(&text);
        }
    }

    /// Waits as the way is; false: it is to be cut.
    fn may_pass(&self, said: &str, text: &str) -> bool {
        let (way, turn) = self.shared.now();
        let commits = text.contains("COMMIT\0");
        match way {
            Way::Open => true,
            Way::Refused => false,
            Way::Slow(by) => {
                let same = |state: &mut State| state.turn == turn;
                drop(self.shared.changed.wait_timeout_while(self.shared.lock(), by, same));
                true
            }
            Way::Silent => self.hold(turn),
            Way::Hold { after, at } if said.contains(after) && text.contains(at) => self.hold(turn),
            Way::LoseCommitAfter(after) | Way::HoldAnswer { after }
                if commits && said.contains(after) =>
            {
                *self.committing.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
                true
            }
            Way::Hold { .. } | Way::LoseCommitAfter(_) | Way::HoldAnswer { .. } => true,
        }
    }

    /// Holds until the way is another one; then what is held is cut.
    fn hold(&self, turn: u64) -> bool {
        let mut state = self.shared.lock();
        self.shared.reach(&mut state);
        let _held = self.shared.changed.wait_while(state, |state| state.turn == turn);
        false
    }

    fn answers(&self) {
        let mut piece = vec![0; 1 << 16];
        let (mut from, mut to) = (&self.server, &self.client);
        while let Ok(length) = from.read(&mut piece) {
            let committing = *self.committing.lock().unwrap_or_else(PoisonError::into_inner);
            let (way, turn) = self.shared.now();
            if length == 0 || way == Way::Silent && !self.hold(turn) {
                return;
            }
            if committing == Some(turn) {
                // The server answered, so it has happened.
                if matches!(way, Way::HoldAnswer { .. }) {
                    self.hold(turn);
                    return;
                }
                let mut state = self.shared.lock();
                state.way = Way::Open;
                self.shared.reach(&mut state);
                return;
            }
            if to.write_all(&piece[..length]).is_err() {
                return;
            }
        }
    }
}
