//! What may be asked of the mover.

use super::{ServerOptions, StoreOptions};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::str::FromStr;

/// Who does the steps of moves: for `up` and `mover`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Moves")]
pub struct MoverOptions {
    /// Who does the steps of moves: https://HOST:PORT/PATH, program:FILE, simulated, or none
    /// [default: none]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<AgentPlace>,
    /// The file with the key that HTTP requests are signed with
    #[arg(long, value_name = "FILE")]
    pub agent_key: Option<PathBuf>,
    /// The file with the certificates of authorities (PEM) that are trusted in place of the system's
    #[arg(long, value_name = "FILE")]
    pub agent_ca: Option<PathBuf>,
    /// Send orders without a signature: whoever reaches the automation can have servers wiped
    #[arg(long)]
    pub agent_unsigned: bool,
    /// Send orders by http to other machines: whoever is on the way can read and change them
    #[arg(long)]
    pub agent_cleartext: bool,
}

/// Where the steps of moves are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentPlace {
    /// Nowhere: targets stay what they are.
    Nowhere,
    /// By automation behind a URL.
    Http(String),
    /// By a program that is run for each step.
    Program(PathBuf),
    /// By nobody, but it is said that they are done: to try things out.
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
Brings the owners of servers to the targets: every move is asked of the operator's automation step by
step (preempt, clean_up, reconfigure), within limits, and bound when the host says that it is done.
Any number of movers may run; one acts, the others stand by.

The automation is asked with a POST of JSON, or by running a program with it on standard input:
  {\"move\": \"0198...\", \"step\": \"clean_up\", \"server\": \"s17\", \"source\": \"web\", \"target\": \"ads\",
   \"host_profile\": \"linux-6\", \"version\": 12, \"epoch\": 7}
It answers with one of
  {\"state\": \"done\"}
  {\"state\": \"under_way\", \"again_after_seconds\": 30}
  {\"state\": \"refused\", \"why\": \"no power\"}
  {\"state\": \"outdated\", \"epoch\": 8}
A program may also say it by its exit code: 0 done, 3 under way, 4 refused, 5 outdated. Every step may be
asked for again and must bear that.

The automation must keep the highest epoch that it was given for each server, durably, before it acts, and
must answer an order with a lower one by \"outdated\" and do nothing: the epoch counts movers, and one that was
stopped for a while may send an order after another has taken over and bound the server. Between two orders of
one epoch the higher version counts.

When an MSB is lost, servers in planned maintenance elsewhere are asked for the step end_maintenance: stop the
work and bring the server back into service, with its owner's host profile. \"move\" is the id of the recall then,
and source and target are the owner. \"done\" means that it is back, \"refused\" that it stays out.

An order can have a server wiped, so it is signed with the key of --agent-key: a request has X-Ras-Timestamp
(seconds since 1970) and X-Ras-Signature, the HMAC-SHA256 of timestamp, a dot and the body, in hexadecimal.
It goes by https, or by http to this machine (localhost, 127.0.0.1, ::1). The mover does not start without a
key, or with http to another machine, unless --agent-unsigned or --agent-cleartext waives that.

ras.toml:
  [mover]
  agent = \"https://automation.example:8443/steps\"
  agent_key = \"/etc/ras/agent.key\"
  agent_ca = \"/etc/ras/ca.pem\"      # trusted in place of the authorities of the system
  agent_unsigned = false      # true: without a signature
  agent_cleartext = false     # true: http to other machines, too
  agent_timeout = \"30s\"
  give_up_after = \"24h\"       # a move that takes longer is given up; the next solve decides anew
  [mover.limits]              # of moves, for servers in use and idle ones
  window_seconds = 3600
  region = { in_use = { at_once = 2000, per_window = 5000 }, idle = { at_once = 10000 } }
  msb = { in_use = { at_once = 200 } }
  rack = { in_use = { at_once = 4 } }
  reservation = { in_use = { at_once = 100 } }
  [mover]
  settle = \"1s\"               # a failure is left alone for so long: was it one of many?
  give_way_after = \"15m\"      # two MSBs lost for so long: less important reservations give way [default: never]
  [mover.storm_guard]         # so much of an MSB failing together is its loss: nothing is replaced
  share = 0.1
  servers = 20                # at least; half of an MSB that has fewer than twice as many
  within = \"10m\"             # so close together
  lasts = \"2h\"               # after its failures a storm is over, whatever came back
  [mover.elastic]
  shared_kept = 0.25          # the share of each shared buffer that is not lent
  shares = { batch = 2.0 }    # by which borrowers are served; 1 for those that are not named";

/// `ras mover`
#[derive(Debug, Args)]
#[command(after_help = MOVER_HELP)]
pub struct Mover {
    /// Who does the steps.
    #[command(flatten)]
    pub mover: MoverOptions,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// `ras moves`
#[derive(Debug, Args)]
#[command(
    after_help = "\
A move is stuck if it has been in its state for longer than any should: pending 2 h, preempting 30 min,
cleaning up or reconfiguring 1 h. So are replacements owed for 2 h or on their way for 1 h, emergencies that
nobody answered for a minute, solves that wait for 1 h or run for 2 h, and jobs of a day. A server
that is unfinished, because its move failed after clean-up began, is stuck at once.

A server that is named is asked; else a store that is named (--data, --database-url, DATABASE_URL,
--config); else the server of `ras login`; else the store in the default folder.",
    args_conflicts_with_subcommands = true
)]
pub struct Moves {
    /// Only those that are stuck
    #[arg(long)]
    pub stuck: bool,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub limit: usize,
    /// What to do with them.
    #[command(subcommand)]
    pub action: Option<MovesAction>,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
    /// Where the region is kept.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// What may be done with moves.
#[derive(Debug, Subcommand)]
pub enum MovesAction {
    /// Pull the stop switch: no step begins until it is released
    Stop {
        /// Why, for those who wonder
        why: String,
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
        /// Where the region is kept.
        #[command(flatten)]
        store: StoreOptions,
    },
    /// Release the stop switch
    Resume {
        /// Which server.
        #[command(flatten)]
        server: ServerOptions,
        /// Where the region is kept.
        #[command(flatten)]
        store: StoreOptions,
    },
}
