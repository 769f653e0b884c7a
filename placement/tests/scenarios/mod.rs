//! Scenarios in text: each describes a small cluster, what happens to it, and what must follow.
//! `REWRITE=1` accepts the current output: read the difference before you commit it.
//!
//! A scenario begins with a title and the word `cluster`; `then` goes on with what was placed before.
//!
//! ```text
//! node n1 n2 cpu=10 rack=a     nodes; a number is a capacity, a word a label and a domain of that level
//! transient disk               a metric that a moving replica needs on both nodes
//! service db cpu=4 on=n1 new=2 cost=5   replicas of one partition: no two share a node
//! pods web cpu=1 on=n1,n1      replicas that may share a node
//! also db cpu=8 new=1          more replicas of it
//! group tier db web            a name for the replicas of several services
//! allow db disk=ssd,nvme       only nodes with one of these values
//! block db n3                  not on these nodes; `block db disk=hdd`: not on nodes with this value
//! at most 1 of db per rack     rules; one with the same subject replaces an earlier one
//! spread db over racks         at most the number of replicas over the number of domains, rounded up
//! db in at least 2 racks       also: `db in at most 2 racks`
//! db near web in rack          also: `db apart from web in rack`
//! fragmentation 0.05 over rack
//! drain n1                     also: `fail n1`, `up n1`
//! set n1 cpu=5                 changes capacities and labels
//! demand db cpu=6              changes the demand of all its replicas
//! remove db 1                  the last replicas of it are gone
//! check                        prints what is broken today
//! place                        places, and prints what follows; the answer is the today of what comes next
//! where db                     prints the nodes of its replicas
//! count db per rack            prints its replicas by domain; `sizes` leaves the names out
//! moved                        prints the number of moves by service
//! ```
//!
//! Where several answers are equally good, a scenario prints only what they have in common.
//! Each answer is audited and compared with its bound. Small clusters are searched exhaustively: `the least`
//! and `impossible` are proved so.

mod exhaustive;
mod world;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use world::World;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

fn run(name: &str) {
    let file = folder().join(format!("{name}.txt"));
    let text = fs::read_to_string(&file).expect("a scenario file");
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| **line == "cluster") {
        let is_titled = at > 0 && lines[at - 1].starts_with("# ") && line.len() > 2;
        assert!(is_titled, "{}:{}: a scenario needs a title", file.display(), at + 1);
    }
    datadriven::walk(file.to_str().expect("a path in Unicode"), |file| {
        let mut world = World::default();
        file.run(|case| -> Result<String, String> {
            match case.directive.as_str() {
                "cluster" => world = World::default(),
                "then" => {}
                other => return Err(format!("{other}: neither `cluster` nor `then`")),
            }
            world.run(&case.input)
        });
    });
}

/// A test for each file, and the list of them.
macro_rules! files {
    ($($name:ident)+) => {
        $(#[test] fn $name() { run(stringify!($name)); })+
        const FILES: &[&str] = &[$(stringify!($name)),+];
    };
}

files! {
    affinity apart applications basics block_lists capacity domains fragmentation kube_affinity kube_nodes
    kube_preemption kube_resources kube_spread move_costs nodes scale_out transient
}

#[test]
fn every_file_has_a_test() {
    let entries = fs::read_dir(folder()).expect("the scenarios");
    let names = entries.filter_map(|entry| {
        let name = entry.expect("a file").file_name();
        Some(name.to_str()?.strip_suffix(".txt")?.to_owned())
    });
    let names: BTreeSet<String> = names.collect();
    assert_eq!(names, FILES.iter().map(|name| (*name).to_owned()).collect());
}
