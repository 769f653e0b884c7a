//! Every number of the solver that was chosen rather than derived, in one table.
//!
//! [`SolverParams`] groups them by the part of the solver that uses them, and [`PARAMS`] holds their values.
//! `docs/solver-parameters.md` is the same table as a page; a test keeps it up to date. What an operator may
//! set for one solve is in [`crate::SolverConfig`].

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Group and name, as in `PARAMS`.
    pub name: &'static str,
    /// Value, as written in Rust.
    pub value: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Use of the parameter.
    pub what: &'static str,
    /// Experiment or reason behind the value.
    pub chosen: &'static str,
}

macro_rules! table {
    ($($(#[doc = $about:literal])* $group:ident: $type:ident {
        $($name:ident: $kind:ty = $value:expr, $unit:literal, $what:literal, $chosen:literal;)*
    })*) => {
        /// The parameters by group.
        #[derive(Clone, Copy, Debug)]
        pub struct SolverParams {
            $($(#[doc = $about])* pub $group: $type,)*
        }

        $(
            $(#[doc = $about])*
            #[derive(Clone, Copy, Debug)]
            pub struct $type {
                $(#[doc = $what] pub $name: $kind,)*
            }
        )*

        /// The values in use.
        pub const PARAMS: SolverParams = SolverParams {
            $($group: $type { $($name: $value),* },)*
        };

        /// The table, row by row.
        pub const ROWS: &[Row] = &[
            $($(Row {
                name: concat!(stringify!($group), ".", stringify!($name)),
                value: stringify!($value),
                unit: $unit,
                what: $what,
                chosen: $chosen,
            },)*)*
        ];
    };
}

table! {
    /// Time of a solve.
    time: TimeParams {
        reserve_share: f64 = 0.08, "share of the deadline",
            "Reserved for phase 2 and for the caller.", "A cold million by 15 s (docs/results.md).";
        reserve_per_million: f64 = 1.0, "s",
            "Added to the reserve per million servers.", "Phase 2 of a steady million.";
        reserve_per_million_missing: f64 = 7.0, "s",
            "Added to the reserve per million servers that shortfalls ask for: phase 2 finds racks for them.",
            "Phase 2 of a cold million.";
        ascent_share: f64 = 0.4, "share of the time left",
            "Longest ascent: prices are of no use without a search.", "Decision 0013.";
        budget_pass_share: f64 = 0.6, "share of the time left",
            "Longest pass of a solve under move budgets, so that the next pass has time.",
            "Not varied.";
    }
    /// Prices of shortfalls, and service in order of priority.
    priority: PriorityParams {
        ratio: f64 = 10.0, "factor",
            "Price of a priority level over the next less important one, while prices lead the search.",
            "Not varied; the order itself does not depend on it.";
        levels: usize = 4, "levels",
            "Levels with prices of their own; the rest share the last one.",
            "More would span more digits than a floating-point solver has.";
        level_margin: f64 = 2.0, "factor",
            "Price of a level over the next one, beyond the ratio of server values, once levels are served.",
            "Any factor above 1 keeps the order.";
        max_price_ratio: f64 = 1e6, "factor",
            "Highest price of a server over the lowest; further levels share it.",
            "Digits of a 64-bit float.";
        excess: f64 = 0.5, "share of the price of a missing server",
            "Price of the server that counts least of those by which a limit of a group is exceeded.",
            "Below 1: what is missing comes first. 25 moves of in-use servers at least.";
        excess_ratio: i64 = 16, "factor",
            "A server counts in that for no less than the one that counts most, divided by this.",
            "Not varied; digits of a 64-bit float.";
        tries: usize = 60, "exchanges",
            "Exchanges in a row without a smaller shortfall that end a level.",
            "tests/order.rs against brute force.";
        max_tries: usize = 400, "exchanges",
            "Exchanges at a level at most, besides one per reservation that is short.",
            "tests/order.rs against brute force.";
        full_range_reinsertions: usize = 16, "reservations",
            "Reservations of a level, largest shortfall first, that try largest MSB shares over the full range.",
            "Not varied.";
        ascent_steps: usize = 40, "steps",
            "Steps of the ascent to the prices of the problem in order.", "Not varied.";
        ascent_target: f64 = 1e-3, "share of the bound",
            "First target step of that ascent.", "Not varied.";
        limit_slack: f64 = 1e-10, "servers",
            "Tolerance of HiGHS on a limit of a shortfall.", "Below HiGHS' own tolerance.";
    }
    /// Domains that cross MSBs, and that a reservation survives the loss of.
    domains: DomainParams {
        share_tries: i32 = 4, "shares",
            "Largest shares of a domain that a fill of whole servers tries.", "Not varied.";
        share_growth: f64 = 1.15, "factor",
            "Each of them over the one before, and a server more.", "Not varied.";
        mend_steps: usize = 400, "servers",
            "Servers that are moved out of a domain, or added elsewhere, until its loss leaves the capacity.",
            "Not varied.";
    }
    /// Exchanges between racks, phase 2.
    racks: RackParams {
        sources: usize = 256, "racks",
            "Crowded racks from which paths are sought at a time.", "Not varied.";
        length: usize = 24, "arcs",
            "Longest path.", "12 and 40: decision 0032.";
    }
    /// Windows, which change counts where racks cost much: phase 2.
    windows: WindowParams {
        max_size: usize = 1_500, "pairs",
            "Pairs of a seat and a cell in a window at most.",
            "About 3,000 columns, as in other exchanges (decision 0035).";
        max_region: usize = 200_000, "pairs",
            "Pairs in a region beyond which windows are not sought: each would hold too little of what racks cost.",
            "Three times the size at which an even cost promises just enough (decision 0035).";
        max_whole: usize = 4_000, "pairs",
            "Pairs in a region up to which windows have proved rows, and one of all follows, at the root node only.", "Decision 0043.";
        reservations: usize = 2, "reservations", "Reservations of a window.", "Decision 0035.";
        time: f64 = 3.0, "s",
            "Time before a deadline that windows may take of phase 1 at most, for a region as large as one of them: in proportion to the size of a smaller one, with the square root of the size of a larger one.",
            "Google: 4 s. 20,000: 2 to 8 s instead of 37 s in proportion to its size (decision 0061).";
        min_gain: f64 = 0.02, "share of the gap",
            "What a window of the largest size must promise; a smaller one less in proportion.",
            "As for other steps.";
        min_gain_until_deadline: f64 = 0.002, "share of the gap",
            "The same where a deadline is given: its time is used while it pays.", "Not varied.";
    }
    /// The Lagrangian bound.
    bound: BoundParams {
        rounding: f64 = 1e-10, "share of the terms' magnitude",
            "Subtracted from every bound for rounding of its sums.",
            "Above the worst error of a sum of a million terms.";
        batch: usize = 8, "reservations",
            "Reservations that a thread takes at a time.", "Not varied; does not change results.";
    }
    /// The volume algorithm, which ascends to the pools' prices.
    ascent: AscentParams {
        smoothing: f64 = 0.05, "weight",
            "Weight of a new point in the smoothed usage.", "0.02, 0.1 and 0.2 lost: lab notes of 0013.";
        max_failures: u32 = 5, "steps",
            "Steps without a better bound after which the target step shrinks.",
            "2, 3, 10 and 20 lost: lab notes of 0013.";
        quick_smoothing: f64 = 0.1, "weight",
            "`smoothing` of a warm start.", "0.15 and 0.2 lost: lab notes of 0013.";
        quick_max_failures: u32 = 3, "steps",
            "`max_failures` of a warm start.", "As good a bound in half of the steps: lab notes of 0013.";
        shrink: f64 = 0.7, "factor", "Factor of a target step that shrinks.", "Not varied.";
        good_step: f64 = 0.5, "share of the target step",
            "Gain of a step that lets the target step grow.", "Not varied.";
        grow: f64 = 1.5, "factor", "Factor of a target step that grows.", "Not varied.";
        min_target: f64 = 1e-5, "share of the bound",
            "Target step below which the ascent has converged.", "Not varied.";
        max_steps: usize = 600, "steps", "Steps of an ascent at most.",
            "Ascents from zero converge within 430 to 480: lab notes of 0013.";
        burst_steps: usize = 20, "steps", "Steps of a burst beside the search.",
            "40 made no difference: lab notes of 0013.";
        min_gain_per_burst: f64 = 3e-5, "share of the bound",
            "Gain of a burst below which the first ascent of a warm start ends.",
            "1e-4 and 3e-4 cost up to 2.5 s in hard hours: lab notes of 0013.";
        target_cold: f64 = 1e-2, "share of the bound", "First target step from zero prices.",
            "Decision 0013.";
        target_warm: f64 = 3e-4, "share of the bound",
            "First target step from the last solve's prices.", "Lab notes of 0013.";
        target_warm_from_zero: f64 = 1e-3, "share of the bound",
            "First target step from zero in a warm start where the last prices are worse.",
            "Lab notes of 0013.";
    }
    /// Sweeps over all reservations.
    sweep: SweepParams {
        price_weights: [f64; 5] = [1.0, 0.7, 0.3, 0.0, 1.0], "factors",
            "Weight of the pools' prices in each pass: first avoid servers that others need, then take the rest.",
            "Decision 0001.";
        repair_tries: usize = 20, "neighbourhoods",
            "Neighbourhoods in a row without a smaller shortfall that end a repair.", "Lab notes of 0013.";
        min_gain: f64 = 0.02, "share of the gap",
            "Gain of a pass below which the sweep of a warm start ends.", "Lab notes of 0013.";
    }
    /// Reinsertion of one reservation.
    reinsert: ReinsertParams {
        share_tries: usize = 12, "shares",
            "Largest MSB shares tried in a row without gain.", "Not varied.";
        range_steps: i64 = 16, "shares", "Shares tried over the full range.", "Not varied.";
        range_rounds: usize = 3, "rounds", "Times the range narrows around the best share.",
            "Not varied.";
        max_counts: u32 = 256, "combinations",
            "Combinations of counts up to which all are tried.", "tests/truth.rs against brute force.";
    }
    /// Ruin and recreate.
    search: SearchParams {
        price_weights: [f64; 4] = [1.0, 0.8, 0.5, 0.2], "factors",
            "Weights of the pools' prices; each attempt takes one at random.", "Decision 0001.";
        round_tries: usize = 600, "attempts",
            "Attempts of a round at least; one per reservation where there are more.",
            "100 got stuck: lab notes of 0013.";
        detour: f64 = 0.02, "share of the gap", "Largest accepted step to the worse.",
            "Decision 0001.";
        stall_gain: f64 = 0.005, "share of the gap",
            "Gain of a round below which it counts as stalled.", "Not varied.";
    }
    /// Warm starts.
    warm: WarmParams {
        far_gap: f64 = 0.004, "gap",
            "Gap beyond which the ascent's fractional solution is swept before the search.",
            "Four times an ordinary gap: lab notes of 0013.";
        round_parts: usize = 4, "parts",
            "Parts of a round, after each of which the search may end.",
            "2 took 1.2 s an hour for 0.070 %, 4 took 1.0 s for 0.077 %: decision 0028.";
        min_gain_per_part: f64 = 0.05, "share of the gap",
            "Gain of a part below which the search ends.", "Decision 0028.";
        min_gain_per_turn: f64 = 0.1, "share of the gap",
            "Gain of a turn of search and ascent below which no other follows.", "Decision 0028.";
        cold_gap: f64 = 0.003, "gap",
            "Gap beyond which turns follow the first search, and a cold search follows them.",
            "Decision 0028.";
    }
    /// The LP relaxation of a tiny region.
    lp: LpParams {
        max_columns: usize = 4_000, "columns",
            "Size below which simplex solves it: that takes 0.1 s, and its prices lead the search better.",
            "Without, real fleets of some thousand servers end at 1.4 to 270 %: decision 0028.";
        max_columns_of_domains: usize = 60_000, "columns",
            "Size below which simplex solves it where a reservation that survives the loss of domains is short.",
            "6,000 servers, 12 switches: decision 0053.";
        ascent_steps: usize = 30, "steps", "Ascent from HiGHS' duals.", "Decision 0001.";
        ascent_target: f64 = 1e-4, "share of the bound", "First target step of it.",
            "Decision 0001.";
    }
    /// The steps after the search has stalled.
    intensify: IntensifyParams {
        hard_gap: f64 = 0.02, "gap",
            "Gap beyond which a region is hard: exchanges gain more there than the first search, and always follow.",
            "0.015 until racks were in it: a cold 20,000 ends at 1.3 %, and exchanges took minutes (decision 0029).";
        hard_stall_rounds: u32 = 2, "rounds",
            "Rounds without gain that end the first search of a hard region, unless it is tiny.",
            "Racks as MSBs: the first exchange begins after 5 s instead of 31 s (decision 0028).";
        columns: usize = 20_000, "columns",
            "Restarts in a row, times the columns of the region: at most this, unless a deadline is given.",
            "On larger regions they cost more time than they gain: decision 0028.";
        max_restarts: usize = 4, "restarts", "Restarts in a row at most, unless a deadline is given.", "Decision 0001.";
        min_gain: f64 = 0.02, "share of the gap",
            "Gain of a step below which it is not repeated.", "Decision 0001.";
        min_gain_until_deadline: f64 = 0.002, "share of the gap",
            "Gain of all steps below which they are not repeated, where a deadline is given.", "As for exchanges.";
    }
    /// Exchanges between a few reservations by sub-MIPs.
    exchange: ExchangeParams {
        reservations: usize = 5, "reservations", "Reservations placed again together.",
            "Eight gain as much in twice the time: decision 0028.";
        max_columns: [usize; 3] = [500, 900, 3_000], "columns",
            "Columns of a sub-MIP at most: small ones first, then larger ones.",
            "100,000 greedy: 900 gain more than 3,000 in a tenth of the time (decision 0038).";
        small_sizes: usize = 2, "sizes",
            "Sizes that are used where a region is not hard and no deadline is given.", "Decision 0038.";
        tiny_sizes: usize = 1, "sizes", "Sizes that are used on a tiny region.",
            "Larger ones took 85 % of the time for 0.1 % of the cost: decision 0043.";
        min_relaxed: f64 = 0.05, "servers",
            "Servers in the relaxation from which an item that a reservation neither has nor held is free.",
            "Decision 0038.";
        min_gap: f64 = 0.002, "gap",
            "Gap beyond which small ones follow where no deadline is given.", "Decision 0038.";
        min_gap_until_deadline: f64 = 0.001, "gap",
            "Gap beyond which they and restarts follow where a deadline is given: its time is used while it pays.",
            "Decision 0031.";
        min_gain: f64 = 0.02, "share of the gap",
            "Gain of a window of sub-MIPs below which no other follows.", "As for other steps.";
        min_gain_until_deadline: f64 = 0.002, "share of the gap",
            "The same where a deadline is given.", "As for windows.";
        min_report: f64 = 0.01, "share of the gap",
            "Gain after which an incumbent is reported: that takes as long as a small sub-MIP.", "Not varied.";
        reservations_per_sub_mip: usize = 10, "reservations",
            "Reservations for each sub-MIP of the window that ends exchanges.",
            "A window of two ended 97,200 greedy at 3.75 instead of 1.2 %: decision 0031.";
        reservations_per_small_sub_mip: usize = 50, "reservations",
            "The same where small ones follow without a deadline.", "Decision 0038.";
        min_window: usize = 4, "sub-MIPs", "The shortest window.", "Not varied.";
        max_window: usize = 100, "sub-MIPs", "The longest window.", "Not varied.";
    }
    /// Restarts near the incumbent.
    restart: RestartParams {
        stall_rounds: u32 = 2, "rounds",
            "Rounds without gain that end the search after a restart.",
            "8, as in the first search, ends a cold 1,000 at the same value 1.25 times as late (decision 0029).";
        patience_until_deadline: usize = 8, "restarts",
            "Restarts in a row with little gain that end them, where a deadline is given.",
            "Single ones often gain nothing: decision 0061.";
        ascent_steps: usize = 60, "steps",
            "Ascent of the relaxation in which leaving the incumbent costs.", "Decision 0028.";
        ascent_target: f64 = 1e-3, "share of the bound", "First target step of it.",
            "Decision 0028.";
    }
    /// The restricted master problem.
    master: MasterParams {
        max_steps: usize = 60, "masters", "Masters solved at most.", "Decision 0010.";
        columns: usize = 300_000, "columns",
            "Masters solved, times the columns of the region: at most this, unless a deadline is given.", "Decision 0028.";
        time_share: f64 = 0.15, "share of the time left",
            "Time of all of them where a deadline is given.", "Decision 0061.";
        first_radius: f64 = 0.03, "share of the mean price",
            "How far prices may move from the best ones at first.",
            "0.003 to 0.03 made little difference: decision 0010.";
        failures_to_halve: u32 = 10, "steps",
            "Steps without a better bound that halve the radius.", "5 lost: decision 0010.";
        failures_to_stop: u32 = 40, "steps",
            "Steps in a row without a better bound that end it.", "Decision 0010.";
        good_step: f64 = 0.3, "share of the promised gain",
            "Gain of a step that lets the radius grow.", "Not varied.";
        grow: f64 = 1.5, "factor", "Factor of a radius that grows.", "Not varied.";
        column_tries: usize = 12, "shares", "Largest MSB shares tried for a column.", "Not varied.";
    }
    /// Sub-MIPs and branch and bound.
    sub_mip: SubMipParams {
        whole_items: usize = 300, "items",
            "Size of a problem that branch and bound solves whole.", "Decision 0008.";
        whole_nodes: u32 = 2_000, "nodes", "Nodes of it at most.", "Decision 0008.";
        points: usize = 8, "points",
            "Points of the Lagrangian bound whose rows are in a sub-MIP.", "Decision 0043.";
        whole_safety: f64 = 1e-7, "share of the bound",
            "Subtracted from its bound for HiGHS' tolerances.", "HiGHS' tolerances.";
        gap: f64 = 0.01, "share of the gap", "Gap at which a sub-MIP ends.", "Decision 0008.";
        batch: usize = 2, "sub-MIPs",
            "Sub-MIPs solved at the same time; not the number of threads, which must not change results.",
            "Decision 0008.";
        rins_items: [usize; 2] = [100, 250], "items",
            "Items that RINS frees: those furthest from the fractional solution.",
            "200 and 400 lost: decision 0010.";
        rins_min_distance: f64 = 0.1, "servers",
            "Distance from the fractional solution below which an item stays fixed.", "Decision 0010.";
        rins_min_gain: f64 = 0.02, "share of the gap",
            "Gain of a round of RINS below which no other follows.", "Decision 0010.";
    }
    /// The relaxation of one reservation.
    relaxation: RelaxationParams {
        max_evaluations: usize = 240, "evaluations",
            "Evaluations of one search over the largest MSB share; its bound covers the rest.",
            "Not varied.";
        max_candidates: usize = 40, "shares",
            "Attainable shares tried one by one around the linear optimum.", "Not varied.";
        max_sums: usize = 4_000, "sums",
            "Attainable sums listed per MSB or reservation; beyond, the share is continuous.",
            "Memory of a million servers.";
    }
    /// The bound of one reservation in whole servers.
    whole_servers: WholeServersParams {
        max_residues: i64 = 1_024, "units",
            "Largest server value for which residues are listed; beyond, the convex line is the bound.",
            "Memory.";
        max_shift: i64 = 3, "servers of the largest value",
            "How far exchanges move a sum at most.", "Sum of distances 18.3 to 0.03 (docs/formulation.md).";
        max_prices: usize = 16, "prices", "Prices of the demand tried for a window at most.",
            "Not varied.";
        max_window: i64 = 6_000, "sums", "Sums in a window at most.", "Time of one evaluation.";
        max_combinations: usize = 24, "shares",
            "Largest shares whose combinations of sums are examined for a bound.",
            "Time of one evaluation.";
        max_fills: usize = 6, "shares",
            "Largest shares whose combinations of sums are examined for an assignment.",
            "Time of one reinsertion.";
        first_fill: u32 = 2, "raises", "Raises of the slack with which an assignment begins.",
            "Not varied.";
        slack: f64 = 0.006, "share of a server's worth",
            "Extra cost of combinations that are examined at first.", "Not varied.";
        max_raises: u32 = 3, "raises", "How often the slack is raised fourfold.", "Not varied.";
        rounding: f64 = 1e-13, "share of the terms' magnitude",
            "Subtracted from a bound for rounding.", "Worst error of its sums.";
        max_totals: i64 = 6_000, "totals", "Totals told apart on either side.", "Time of one pass.";
        same_cost: f64 = 1e-6, "share of the slack", "Difference below which costs are equal.",
            "Not varied.";
        max_sums: i64 = 20_000, "sums", "Sums examined in one MSB at most.", "Time of one pass.";
    }
    /// After phase 1.
    after: AfterParams {
        balance_rounds: usize = 8, "rounds",
            "Times that each reservation is balanced over MSBs at most.", "Decision 0003.";
        budget_partial_passes: usize = 2, "passes",
            "Passes under move budgets that pin only servers of exhausted budgets.", "Decision 0027.";
        budget_last_pass: usize = 8, "passes", "Pass that pins every server that need not move.",
            "Decision 0027.";
    }
    /// Plans of single requests.
    plan: PlanParams {
        ascent_steps: usize = 120, "steps", "Steps of an ascent from zero, without prices of a solve.",
            "Decision 0014.";
        ascent_target: f64 = 1e-2, "share of the bound", "First target step of it.",
            "Decision 0014.";
        warm_ascent_steps: usize = 12, "steps", "Steps of an ascent from the last solve's prices.",
            "Decision 0014.";
        warm_ascent_target: f64 = 1e-4, "share of the bound", "First target step of it.",
            "Decision 0014.";
        price_weights: [f64; 4] = [1.0, 0.5, 0.2, 0.0], "factors",
            "Weights of the pools' prices in reinsertions.", "Decision 0014.";
        tries_granted: usize = 100, "attempts",
            "Attempts in a row without gain that end the search, the request being granted.",
            "Decision 0014.";
        tries_short: usize = 400, "attempts",
            "Attempts in a row without gain that end the search while the request is short.",
            "Decision 0014.";
        max_servers_tried: usize = 400_000, "servers",
            "Servers reinserted without gain that end the search: a large reservation is tried less often.",
            "2 s for 100,000 servers (docs/results.md).";
        min_tries: usize = 30, "attempts", "Attempts at least, for any size.", "Decision 0014.";
        max_tries_factor: usize = 4, "multiple of the attempts without gain",
            "All attempts at most: the last RRU take most time and most moves.", "Decision 0014.";
        search_share: f64 = 0.9, "share of the time left",
            "Time of the plan; the rest is for what is offered instead.", "Decision 0044.";
        more_share: f64 = 0.9, "share of the time left",
            "Time of the search for more while the request is short; the rest is for saving moves.", "Decision 0039.";
        costly: f64 = 20.0, "server prices",
            "Price of a server that the request is missing, in exchanges and the LP: one is worth many moves.",
            "Decision 0030.";
        lp_items: usize = 8_000, "items", "Size up to which simplex solves the LP of a plan.",
            "Decision 0030.";
        lp_margin: f64 = 0.1, "share of the request", "What that LP asks for in addition.", "Decision 0030.";
        region_share: f64 = 0.85, "share of the time left",
            "Time of the search of a solve over the whole region, for a request that is short.", "Decision 0044.";
        exchange_first_share: f64 = 0.2, "share of the time left",
            "Time of exchanges before that search.", "Decision 0044.";
        exchange_tries: usize = 12, "sub-MIPs",
            "Exchanges in a row without gain that end a plan without a deadline.", "Decision 0030.";
        exchange_share: f64 = 0.7, "share of the time left",
            "Time of an exchange, after which HiGHS gives what it has found.", "Decision 0030.";
        exchange_columns_first: usize = 1_500, "columns", "Columns of the first exchanges at most.",
            "Decision 0030.";
        exchange_columns: usize = 6_000, "columns", "Columns of the last exchanges at most.",
            "Decision 0030.";
        exchange_nodes: u32 = 20, "nodes", "Nodes of an exchange at most.", "Decision 0030.";
        exchange_gap: f64 = 0.5, "server moves", "Gap at which an exchange ends: less than a move of a server in use.",
            "Not varied.";
        kept_price: f64 = 4.0, "costly servers",
            "Price of a server that another reservation must keep, in the rounding of the LP.", "Not varied.";
        cheaper_tries: usize = 3, "sub-MIPs",
            "Exchanges that save moves of a grant that moves servers in use of others.", "Decision 0030.";
        cheaper_columns: usize = 600, "columns", "Columns of such an exchange at most.", "Decision 0030.";
        exchange_luck: f64 = 0.5, "factor",
            "Weight of a reservation whose exchange gained nothing.", "As for other exchanges.";
        proof_steps: usize = 60, "steps", "Steps of the ascent that bounds the shortfall of a request.",
            "More steps find no further proof.";
        proof_target: f64 = 1e-2, "share of the bound", "First target step of it.", "Not varied.";
        proof_kept_price: f64 = 50.0, "objective units per RRU",
            "Price of an RRU that another reservation must keep in that bound.",
            "Just high enough: prices would rise to a higher one.";
        proof_min: f64 = 1e-6, "RRU", "Shortfall below which a bound counts as rounding.",
            "Micro-RRU.";
        max_more_types: usize = 4, "types", "Further hardware types tried as alternatives.",
            "Decision 0014.";
        max_types_offered: usize = 2, "types", "Alternatives with a further type offered at most.",
            "Decision 0014.";
        nearly_enough: f64 = 1.25, "factor",
            "Gain by exchanges beyond free servers for which an alternative is tried.",
            "Decision 0014.";
    }
}

#[cfg(test)]
mod tests {
    use super::ROWS;
    use std::fmt::Write;

    #[test]
    fn page_lists_every_parameter() {
        let mut page = String::from(
            "# Parameters of the solver\n\n\
             `async-solver/src/params.rs` as a page: every number of the solver that was chosen rather than derived. \
             A test writes and compares it (`EXPECTORATE=overwrite cargo test -p async-solver --lib params`).\n\n\
             | parameter | value | unit | use | chosen by |\n|---|---|---|---|---|\n",
        );
        for row in ROWS {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} | {} |",
                row.name, row.value, row.unit, row.what, row.chosen
            );
        }
        expectorate::assert_contents("../docs/solver-parameters.md", &page);
    }
}
