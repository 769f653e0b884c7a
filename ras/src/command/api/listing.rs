//! Lists of a server: the route of each, and how its pages follow each other.

use super::rows::Row;
use api_types::emergencies::{Emergencies, Emergency};
use api_types::failures::{Borrowed, Loans, LostMsb, Outages, Replacement, Replacements};
use api_types::inventory::{RegionServer, RegionServers};
use api_types::maintenance::{MaintenanceWindow, MaintenanceWindows};
use api_types::moves::{Move, MovesPage, StuckThing, StuckThings};
use api_types::quotas::{Quota, Quotas};
use api_types::region::{RruProfile, RruProfiles};
use api_types::requests::{Request, Requests};
use api_types::reservations::{Reservation, Reservations, ServerOfReservation, ServersPage};
use api_types::servers::{EventView, EventsPage, TrailEntry, TrailPage};
use api_types::solves::{Solve, SolvesPage};
use api_types::tokens::{TokenOf, Tokens};
use serde::de::DeserializeOwned;

/// An answer that lists objects.
pub(super) trait Listing: DeserializeOwned {
    type Row: Row;
    /// Member with the rows.
    const ROWS: &'static str;
    /// Path of the list; empty: it depends on the query.
    const PATH: &'static [&'static str];
    /// The parameter that asks for the next page, and the member with its value.
    const NEXT: (&'static str, &'static str);

    /// The rows, and where the next page begins; `None`: this is the last.
    fn rows(self) -> (Vec<Self::Row>, Option<String>);
}

/// Lists whose pages have tokens.
const TOKENS: (&str, &str) = ("page_token", "next_page_token");

macro_rules! listings {
    ($($list:ident, $rows:ident: $row:ident, $path:expr, $parameter:expr, $next:expr;)*) => {$(
        impl Listing for $list {
            type Row = $row;
            const ROWS: &'static str = stringify!($rows);
            const PATH: &'static [&'static str] = &$path;
            const NEXT: (&'static str, &'static str) = $parameter;

            fn rows(self) -> (Vec<$row>, Option<String>) {
                let next: fn(&$list) -> &Option<String> = $next;
                let next = next(&self).clone();
                (self.$rows, next)
            }
        }
    )*};
}

listings! {
    Reservations, reservations: Reservation, ["v1", "reservations"], TOKENS, |of| &of.next_page_token;
    Requests, requests: Request, ["v1", "requests"], TOKENS, |of| &of.next_page_token;
    RegionServers, servers: RegionServer, ["ops", "v1", "servers"], TOKENS, |of| &of.next_page_token;
    ServersPage, servers: ServerOfReservation, [], ("after", "next"), |of| &of.next;
    SolvesPage, solves: Solve, ["ops", "v1", "solves"], TOKENS, |of| &of.next_page_token;
    MovesPage, moves: Move, ["ops", "v1", "moves"], TOKENS, |of| &of.next_page_token;
    EventsPage, events: EventView, ["ops", "v1", "unavailability"], TOKENS, |of| &of.next_page_token;
    TrailPage, entries: TrailEntry, ["ops", "v1", "trail"], TOKENS, |of| &of.next_page_token;
    MaintenanceWindows, windows: MaintenanceWindow, ["ops", "v1", "maintenance"], TOKENS, |of| &of.next_page_token;
    Emergencies, emergencies: Emergency, ["ops", "v1", "emergencies"], TOKENS, |of| &of.next_page_token;
    Replacements, replacements: Replacement, ["ops", "v1", "replacements"], TOKENS, |of| &of.next_page_token;
    Outages, outages: LostMsb, ["ops", "v1", "outages"], TOKENS, |of| &of.next_page_token;
    Loans, loans: Borrowed, ["ops", "v1", "loans"], TOKENS, |of| &of.next_page_token;
    StuckThings, stuck: StuckThing, ["ops", "v1", "stuck"], TOKENS, |of| &of.next_page_token;
    Quotas, quotas: Quota, ["ops", "v1", "quotas"], TOKENS, |of| &of.next_page_token;
    Tokens, tokens: TokenOf, ["ops", "v1", "tokens"], TOKENS, |of| &of.next_page_token;
    RruProfiles, profiles: RruProfile, ["ops", "v1", "rru-profiles"], TOKENS, |of| &of.next_page_token;
}
