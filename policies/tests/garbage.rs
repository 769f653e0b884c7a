//! Text that is no policy, and policies that ask too much: an error with a place, never a panic.

use policies::{Model, Policies, World, audit};
use proptest::prelude::*;

const WORLD: &str = "
table servers: server_id text, msb text, watts decimal, cores integer, target text
  s0 m0 400.5 8 -
  s1 m1 -     4 web
table pools: pool text, cap integer
  web 9
  db 4
decide servers.target: web, db, -
";

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "HAVING",
    "JOIN",
    "ON",
    "AND",
    "OR",
    "NOT",
    "IN",
    "EXISTS",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "UNION ALL",
    "LIMIT",
    "OVER",
    "DISTINCT",
    "AS",
    "IS NULL",
    "BETWEEN",
    "servers",
    "pools",
    "s",
    "target",
    "cores",
    "watts",
    "msb",
    "pool",
    "cap",
    "sum(",
    "count(",
    "max(",
    "avg(",
    "all_different(",
    "coalesce(",
    "(",
    ")",
    ",",
    "*",
    "+",
    "-",
    "/",
    "=",
    "<>",
    "<=",
    ">",
    "1",
    "0",
    "0.1",
    "1e400",
    "9223372036854775807",
    "'web'",
    "''",
    "NULL",
    "true",
    ".",
    ";",
    "\"",
    "--",
    "@hard_constraint",
    "@soft_constraint [weight=",
    "]",
    "\n",
    "CREATE VIEW a AS",
];

fn world() -> World {
    World::parse(WORLD).unwrap_or_else(|error| panic!("{error}"))
}

/// Through all of it, as far as it goes.
fn run(text: &str) -> Result<(), String> {
    let policies = Policies::parse([("p.sql", text)]).map_err(|error| error.to_string())?;
    let world = world();
    let model = Model::compile(&policies, &world).map_err(|error| error.to_string())?;
    model.size().map_err(|error| error.to_string())?;
    audit(&policies, &world).map_err(|error| error.to_string())?;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        let _ = run(&text);
    }

    #[test]
    fn words_in_any_order_are_read_or_refused(
        predicate in proptest::collection::vec(proptest::sample::select(WORDS), 0..12),
        whole in any::<bool>(),
    ) {
        let words = predicate.join(" ");
        let text = if whole {
            words
        } else {
            format!("-- @hard_constraint\nCREATE VIEW p AS SELECT target FROM servers s WHERE {words}")
        };
        if let Err(message) = run(&text) {
            prop_assert!(message.starts_with("p.sql:"), "no place: {message}");
        }
    }
}

fn hard(query: &str) -> String {
    format!("-- @hard_constraint\nCREATE VIEW p AS {query}")
}

#[test]
fn what_asks_too_much_is_refused() {
    let deep = format!("SELECT * FROM servers WHERE {}true", "target = 'web' OR ".repeat(450));
    assert_eq!(run(&hard(&deep)), Ok(()));
    let deeper = format!("SELECT * FROM servers WHERE {}true", "target = 'web' OR ".repeat(5_000));
    let nested = format!("SELECT * FROM servers WHERE {}true{}", "(".repeat(900), ")".repeat(900));
    let product = "SELECT * FROM servers a, servers b, servers c, servers d, servers e, servers f, servers g, \
                   servers h, servers i, servers j, servers k, servers l, servers m, servers n, servers o, \
                   servers p, servers q, servers r, servers s, servers t, servers u WHERE a.target = 'web'";
    let cases = [
        (deeper.as_str(), "a statement has at most"),
        (nested.as_str(), "nested too deeply"),
        (product, "more than 1000000 rows"),
        ("SELECT * FROM servers WHERE cores * 1e30 * 1e30 > 0 AND target = 'web'", ""),
        ("SELECT * FROM servers WHERE target = 'web' AND random() < 0.5", ""),
        ("SELECT * FROM 'etc/passwd' WHERE true", "not found"),
        ("SELECT * FROM information_schema.tables WHERE true", ""),
    ];
    for (query, expected) in cases {
        let refused = run(&hard(query));
        let message = refused.expect_err(query);
        assert!(message.contains(expected), "{query}: {message}");
    }
}
