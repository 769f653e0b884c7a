//! Instances of vector bin packing in the form of Vectorpack (`.vbp`): the number of dimensions, the capacities of a
//! bin, the number of lines, and lines of sizes with how many items have them. Whole numbers, separated by white space.
//! Sizes may be less than zero: some published instances have such items.

use super::ClusterError;
use super::numbers::{Numbers, SUM};
use placement::{
    Amount, Cluster, DomainIx, Level, Metric, Node, NodeState, Objective, Replica, Role, Service,
    ServiceIx,
};
use std::path::Path;

/// The largest number of dimensions, and of items.
const DIMENSIONS: Amount = 1_000;
const ITEMS: usize = 100_000;

/// Reads an instance. Each item is a new replica; there are as many equal nodes as items, so that every item can have
/// one.
///
/// # Errors
///
/// The file cannot be read, or a number of it is missing, too large, or more than a bin holds.
pub fn read(file: &Path) -> Result<Cluster, ClusterError> {
    let mut numbers = Numbers::open(file)?;
    let dimensions = numbers.next("the number of dimensions", DIMENSIONS)?;
    if dimensions == 0 {
        return Err(numbers.broken("the number of dimensions must be 1 or more"));
    }
    let metrics: Vec<Metric> = (0..dimensions)
        .map(|dimension| Metric { name: format!("d{dimension}"), transient: false })
        .collect();
    let capacity = numbers.list(metrics.len(), |n| n.amount("a capacity"))?;
    let lines = numbers.count("the number of lines")?;
    let mut sizes: Vec<Vec<Amount>> = Vec::new();
    for _ in 0..lines {
        let mut limits = capacity.iter();
        let size = numbers.list(metrics.len(), |n| {
            let limit = limits.next().copied().unwrap_or_default();
            n.between("a size", -limit, limit)
        })?;
        let times = numbers.count("a number of items")?;
        if sizes.len() + times > ITEMS {
            return Err(numbers.broken(format!("there are more than {ITEMS} items")));
        }
        sizes.extend(std::iter::repeat_n(size, times));
    }
    numbers.end()?;
    for dimension in 0..metrics.len() {
        let total: Amount = sizes.iter().map(|size| size[dimension]).sum();
        if total > SUM || capacity[dimension].saturating_mul(sizes.len() as Amount) > SUM {
            return Err(numbers.broken(format!("the sum of dimension {dimension} exceeds {SUM}")));
        }
    }
    let names = |kind: &str| (0..sizes.len()).map(|at| format!("{kind}{at}")).collect::<Vec<_>>();
    let bins = names("bin");
    let node = |name: &String| Node {
        name: name.clone(),
        state: NodeState::Up,
        capacity: capacity.iter().copied().map(Some).collect(),
    };
    let nodes = bins.iter().map(node).collect();
    let items = names("item");
    let services = items.iter().map(|name| Service { name: name.clone(), allowed: None }).collect();
    let replicas = items.into_iter().zip(sizes).enumerate().map(|(at, (name, demand))| Replica {
        name,
        service: ServiceIx::new(at),
        role: Role::Instance,
        node: None,
        demand,
        move_cost: 1.0,
    });
    let replicas = replicas.collect();
    let domain_of = (0..bins.len()).map(DomainIx::new).collect();
    Ok(Cluster {
        name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        metrics,
        levels: vec![Level { name: "node".to_owned(), domains: bins, domain_of }],
        nodes,
        services,
        replicas,
        groups: Vec::new(),
        rules: Vec::new(),
        objective: Objective::FewestNodes,
    })
}

#[cfg(test)]
mod tests {
    use super::read;
    use placement::{Limits, search};
    use std::fs;

    #[test]
    fn instances_are_read_and_packed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("five.vbp");
        fs::write(&file, "2\n10 20\n3\n6 2 2\n4 9 2\n1 1 1\n").expect("writes");
        let cluster = read(&file).expect("a whole instance");
        assert_eq!((cluster.nodes.len(), cluster.replicas.len()), (5, 5));
        let found = search(&cluster, &Limits::rounds(10));
        // Two of 6 do not share a bin, and 21 of 10 do not fit into two.
        assert_eq!((found.value.total, found.bound), (3.0, 3.0));
        assert_eq!(found.violations, []);
    }

    #[test]
    fn broken_instances_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("broken.vbp");
        for (text, rule) in [
            ("0 1", "the number of dimensions must be 1 or more"),
            ("2 10", "a capacity is missing"),
            ("1 10 1 11 1", "a size is \"11\"; it must be from -10 to 10"),
            ("1 10 1 5 200000", "there are more than 100000 items"),
            ("1 10 1 5 1 7", "the file must end here"),
            ("1 1000000000000 1 1 5000", "the sum of dimension 0 exceeds"),
        ] {
            fs::write(&file, text).expect("writes");
            let error = read(&file).expect_err("it breaks a rule");
            assert!(error.to_string().contains(rule), "{error}");
        }
    }
}
