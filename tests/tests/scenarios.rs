//! One test for each file of `scenarios/*.scn`. `REWRITE=1` accepts the current output: read the
//! difference before you commit it.

use scenarios::{Statement, World};

fn run(file: &str) {
    let path = format!("{}/scenarios/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut found = false;
    datadriven::walk(&path, |file| {
        found = true;
        let mut world = World::default();
        file.run(|case| {
            let first = Statement::new(case.directive.clone(), case.args.clone());
            let rest = case.input.lines().filter_map(Statement::parse);
            world.run(std::iter::once(first).chain(rest))
        });
    });
    assert!(found, "{path}: no such file");
}

include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));
