//! One test for each file of `living/*.scn`. `REWRITE=1` accepts the current output: read the
//! difference before you commit it.

use scenarios::{Living, Statement};

fn run(file: &str) {
    let path = format!("{}/living/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut found = false;
    datadriven::walk(&path, |file| {
        found = true;
        let mut region = Living::default();
        file.run(|case| {
            let first = Statement::new(case.directive.clone(), case.args.clone());
            let rest = case.input.lines().filter_map(Statement::parse);
            region.run(std::iter::once(first).chain(rest))
        });
    });
    assert!(found, "{path}: no such file");
}

include!(concat!(env!("OUT_DIR"), "/living.rs"));
