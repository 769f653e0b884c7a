//! Every scenario of `scenarios/*.scn`. `REWRITE=1` takes what is printed now as right: read the
//! difference before committing it.

use scenarios::{Statement, World};

#[test]
fn scenarios() {
    let mut files = 0;
    datadriven::walk(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios"), |file| {
        if !file.filename.ends_with(".scn") {
            return;
        }
        files += 1;
        let mut world = World::default();
        file.run(|case| {
            let first = Statement::new(case.directive.clone(), case.args.clone());
            let rest = case.input.lines().filter_map(Statement::parse);
            world.run(std::iter::once(first).chain(rest))
        });
    });
    assert!(files > 0, "no scenario was found");
}
