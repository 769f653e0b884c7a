//! Arguments of `ras region order`.

use super::server::ServerOptions;
use chrono::NaiveDate;
use clap::{Args, Subcommand};
use std::path::PathBuf;

const ORDER_HELP: &str = "\
An order is open until its servers are racked (`arrived`) or will not come (`cancel`). The date on which a
hardware type runs out counts it from the day on which it is expected. An order whose day has passed is
late: it does not count until it has another day. Of an order that arrives in parts, set the servers that have
not arrived.

Examples:
  ras region order add C4 dc2 --servers 20 --expected 2026-03-04
  ras region order add -f orders.csv            # hardware_type,datacenter,servers,expected_on
  ras forecast orders --output json | ras region order apply -f -
  ras region order list
  ras region order change 019b2c51-8a60-7d3e-b5c5-1f6f3f1f8a2e --expected 2026-03-11
  ras region order arrived 019b2c51-8a60-7d3e-b5c5-1f6f3f1f8a2e";

/// `ras region order`
#[derive(Debug, Args)]
#[command(after_help = ORDER_HELP)]
pub struct HardwareOrderOf {
    /// The action.
    #[command(subcommand)]
    pub action: HardwareOrderAction,
}

/// The actions on orders of hardware.
#[derive(Debug, Subcommand)]
pub enum HardwareOrderAction {
    /// List open orders, by the day on which they are expected
    List {
        /// Include those that have arrived or were cancelled
        #[arg(long)]
        all: bool,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Enter an order, or those of a file: all or none
    Add(AddOrders),
    /// Enter what `ras forecast orders --output json` recommends: its orders and its cancellations
    Apply(ApplyOrders),
    /// Change the number of servers or the day of an open order
    Change(ChangeOrder),
    /// The servers of an order are racked
    Arrived(OneOrder),
    /// The servers of an order will not come
    Cancel(OneOrder),
}

/// `ras region order add`
#[derive(Debug, Args)]
pub struct AddOrders {
    /// A hardware type of the region
    #[arg(required_unless_present = "file", requires_all = ["datacenter", "servers", "expected"])]
    pub hardware_type: Option<String>,
    /// The datacenter where the servers will be racked
    pub datacenter: Option<String>,
    /// How many servers
    #[arg(long, value_name = "COUNT")]
    pub servers: Option<u32>,
    /// The day on which they are expected to be in service, in UTC
    #[arg(long, value_name = "DATE")]
    pub expected: Option<NaiveDate>,
    /// CSV with the columns hardware_type, datacenter, servers and expected_on
    #[arg(short, long, value_name = "FILE",
          conflicts_with_all = ["hardware_type", "datacenter", "servers", "expected"])]
    pub file: Option<PathBuf>,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras region order apply`
#[derive(Debug, Args)]
pub struct ApplyOrders {
    /// The answer of `ras forecast orders --output json`; `-` is the standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Only show what would be entered
    #[arg(long)]
    pub preview: bool,
    /// Order also where an order is late. A forecast does not count late orders
    #[arg(long)]
    pub despite_late: bool,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// `ras region order change`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["servers", "expected"]))]
pub struct ChangeOrder {
    /// The order
    #[arg(value_name = "ID")]
    pub order: String,
    /// Servers that have not arrived
    #[arg(long, value_name = "COUNT")]
    pub servers: Option<u32>,
    /// The day on which they are expected
    #[arg(long, value_name = "DATE")]
    pub expected: Option<NaiveDate>,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// An order.
#[derive(Debug, Args)]
pub struct OneOrder {
    /// The order
    #[arg(value_name = "ID")]
    pub order: String,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}
