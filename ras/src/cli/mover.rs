//! Arguments of `ras mover` and `ras ops moves`.

use super::postgres::StoreOptions;
use super::read::{Watching, watching};
use super::server::ServerOptions;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::str::FromStr;

/// The host agent and its credentials: for `up` and `mover`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Moves")]
pub struct MoverOptions {
    /// The host agent, which executes the steps of moves: https://HOST:PORT/PATH, program:FILE,
    /// simulated, or none
    /// [default: none]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<AgentPlace>,
    /// File with the key that signs HTTP requests
    #[arg(long, value_name = "FILE")]
    pub agent_key: Option<PathBuf>,
    /// File with CA certificates (PEM) to trust instead of the system's
    #[arg(long, value_name = "FILE")]
    pub agent_ca: Option<PathBuf>,
    /// Send unsigned requests: any client that reaches the host agent can have servers wiped
    #[arg(long)]
    pub agent_unsigned: bool,
    /// Allow plain http to other machines: anyone on the network path can read and change requests
    #[arg(long)]
    pub agent_cleartext: bool,
}

/// The host agent that executes the steps of moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentPlace {
    /// No agent: targets are not executed.
    Nowhere,
    /// An HTTP service at this URL.
    Http(String),
    /// A program, run once for each step.
    Program(PathBuf),
    /// Simulated: every step succeeds immediately (for testing).
    Simulated,
}

impl FromStr for AgentPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<AgentPlace, String> {
        match text {
            "none" => Ok(AgentPlace::Nowhere),
            "simulated" => Ok(AgentPlace::Simulated),
            _ if text.starts_with("https://") || text.starts_with("http://") => {
                Ok(AgentPlace::Http(text.to_owned()))
            }
            _ => match text.strip_prefix("program:") {
                Some(file) if !file.is_empty() => Ok(AgentPlace::Program(file.into())),
                _ => Err(format!(
                    "{text:?} is not one of https://HOST:PORT/PATH, http://HOST:PORT/PATH, \
                     program:FILE, simulated, none"
                )),
            },
        }
    }
}

const MOVER_HELP: &str = "\
Moves servers to their targets: for every move the host agent is asked for one step after another
(preempt, clean_up, reconfigure), within limits, and the server is bound when the last is done. Any
number of movers may run; one acts, the others stand by.

A request to the host agent is a POST of JSON, or a program run with it on standard input:
  {\"move\": \"0198...\", \"step\": \"clean_up\", \"server\": \"s17\", \"source\": \"web\", \"target\": \"ads\",
   \"host_profile\": \"linux-6\", \"version\": 12, \"epoch\": 7}
It answers with one of
  {\"state\": \"done\"}
  {\"state\": \"under_way\", \"again_after_seconds\": 30}
  {\"state\": \"refused\", \"why\": \"no power\"}
  {\"state\": \"outdated\", \"epoch\": 8}
A program may also answer by its exit code: 0 done, 3 under way, 4 refused, 5 outdated. Every step may be
requested again, so it must be idempotent.

The epoch is a fencing token: it counts movers, and a mover that was suspended may send a request after another
has taken over and bound the server. So the host agent must store the highest epoch seen for each server,
durably, before it acts, and must answer a request with a lower one \"outdated\" and do nothing. Between two
requests of one epoch the higher version wins.

When an MSB is lost, servers in planned maintenance elsewhere get the step end_maintenance: stop the work and
bring the server back into service, with its owner's host profile. \"move\" is then the id of the recall, and
source and target are the owner. \"done\" means that it is back, \"refused\" that it stays out.

A request can have a server wiped, so it is signed with the key of --agent-key: it has X-Ras-Timestamp
(seconds since 1970) and X-Ras-Signature, the HMAC-SHA256 of timestamp, a dot and the body, in hexadecimal.
It is sent by https, or by http to this machine (localhost, 127.0.0.1, ::1). The mover does not start without a
key, or with http to another machine, unless --agent-unsigned or --agent-cleartext allows it.

ras.toml:
  [mover]
  agent = \"https://automation.example:8443/steps\"
  agent_key = \"/etc/ras/agent.key\"
  agent_ca = \"/etc/ras/ca.pem\"      # trusted instead of the system's CAs
  agent_unsigned = false      # true: no signature
  agent_cleartext = false     # true: http to other machines, too
  agent_timeout = \"30s\"
  give_up_after = \"24h\"       # a move that takes longer is given up, and the next solve decides again
  [mover.limits]              # limits of moves, for servers in use and for idle ones
  window_seconds = 3600
  region = { in_use = { at_once = 2000, per_window = 5000 }, idle = { at_once = 10000 } }
  msb = { in_use = { at_once = 200 } }
  rack = { in_use = { at_once = 4 } }
  reservation = { in_use = { at_once = 100 } }
  [mover]
  settle = \"1s\"               # how long a failure must last before it is replaced: it may be one of many
  give_way_after = \"15m\"      # two MSBs lost for this long: preempt less important reservations [default: never]
  [mover.storm_guard]         # if this much of an MSB fails together, it counts as lost: nothing is replaced
  share = 0.1
  servers = 20                # at least this many; half of an MSB with fewer than twice as many
  within = \"10m\"             # within this time
  lasts = \"2h\"               # a storm ends this long after its failures, even if servers are still missing
  [mover.elastic]
  shared_kept = 0.25          # share of each shared buffer that is never lent
  shares = { batch = 2.0 }    # weights between borrowers; 1 for those not listed";

/// `ras mover`
#[derive(Debug, Args)]
#[command(after_help = MOVER_HELP)]
pub struct Mover {
    /// The host agent.
    #[command(flatten)]
    pub mover: MoverOptions,
    /// The store to use.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras ops moves`
#[derive(Debug, Args)]
#[command(
    after_help = concat!("\
A move is stuck if it has been in one state for too long: pending 2 h, preempting 30 min, cleaning up or
reconfiguring 1 h. So are replacements owed for 2 h or on their way for 1 h, emergencies unanswered for a
minute, solves that wait for 1 h or run for 2 h, and jobs older than a day. A server left unfinished, because
its move failed after clean-up began, is stuck at once.", watching!()),
    args_conflicts_with_subcommands = true
)]
pub struct Moves {
    /// Only moves that are stuck
    #[arg(long)]
    pub stuck: bool,
    /// List at most this many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub limit: usize,
    /// Whether to watch them.
    #[command(flatten)]
    pub watching: Watching,
    /// The action; without one, moves are listed.
    #[command(subcommand)]
    pub action: Option<MovesAction>,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// The actions on moves.
#[derive(Debug, Subcommand)]
pub enum MovesAction {
    /// Stop moves: no step begins until `ras ops moves resume`
    Stop {
        /// Reason, recorded in the audit trail
        why: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Resume moves
    Resume {
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}
