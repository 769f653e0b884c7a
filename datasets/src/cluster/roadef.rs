//! Instances of the ROADEF/EURO challenge 2012 (Google machine reassignment): a model and an
//! assignment, whole numbers separated by white space, plain or gzip.

use super::ClusterError;
use super::numbers::{Numbers, SUM};
use super::whole_file::write_whole;
use placement::{
    Amount, Balance, Cluster, DomainIx, Group, GroupIx, Level, LevelIx, Metric, MetricIx, Node,
    NodeIx, NodeState, Objective, Reassignment, Replica, ReplicaIx, Role, Rule, Service, ServiceIx,
};
use std::path::Path;

fn small(number: Amount) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Reads a model and its initial assignment.
pub fn read(model: &Path, assignment: &Path) -> Result<Cluster, ClusterError> {
    let mut numbers = Numbers::open(model)?;
    let resources = numbers.count("the number of resources")?;
    let (mut metrics, mut load) = (Vec::new(), Vec::new());
    for resource in 0..resources {
        let transient = numbers.next("transient", 1)? == 1;
        metrics.push(Metric { name: format!("r{resource}"), transient });
        load.push(numbers.amount("a load cost weight")? as f64);
    }
    let machines = numbers.count("the number of machines")?;
    let mut nodes = Vec::new();
    let (mut places, mut safety, mut between) = ([Vec::new(), Vec::new()], Vec::new(), Vec::new());
    for machine in 0..machines {
        for (of, what) in places.iter_mut().zip(["a neighbourhood", "a location"]) {
            of.push(numbers.count(what)?);
        }
        let capacity = numbers.list(resources, |n| n.amount("a capacity").map(Some))?;
        safety.push(numbers.list(resources, |n| n.amount("a safety capacity"))?);
        let costs = numbers.list(machines, |n| n.next("a move cost", Amount::from(u32::MAX)))?;
        between.push(costs.into_iter().map(small).collect());
        nodes.push(Node { name: format!("m{machine}"), state: NodeState::Up, capacity });
    }
    let own: Vec<usize> = (0..machines).collect();
    let [neighbourhoods, locations] = places;
    let levels = vec![
        level("node", "m", &own),
        level("neighbourhood", "n", &neighbourhoods),
        level("location", "l", &locations),
    ];
    let count = numbers.count("the number of services")?;
    let (mut services, mut spread, mut depends) = (Vec::new(), Vec::new(), Vec::new());
    for service in 0..count {
        spread.push(small(numbers.next("a spread minimum", Amount::from(u32::MAX))?));
        let dependencies = numbers.count("the number of dependencies")?;
        depends.push(numbers.list(dependencies, |n| n.index("a dependency", count))?);
        services.push(Service { name: format!("s{service}"), allowed: None });
    }
    let processes = numbers.count("the number of processes")?;
    let mut groups: Vec<Group> = (services.iter())
        .map(|service| Group { name: service.name.clone(), members: Vec::new() })
        .collect();
    let mut replicas = Vec::new();
    for process in 0..processes {
        let service = numbers.index("the service of a process", count)?;
        let demand = numbers.list(resources, |n| n.amount("a requirement"))?;
        let move_cost = numbers.amount("a process move cost")? as f64;
        groups[service].members.push(ReplicaIx::new(process));
        replicas.push(Replica {
            name: format!("p{process}"),
            service: ServiceIx::new(service),
            role: Role::Instance,
            node: None,
            demand,
            move_cost,
        });
    }
    let pairs = numbers.count("the number of balance costs")?;
    let balance = numbers.list(pairs, |n| {
        Ok(Balance {
            first: MetricIx::new(n.index("a balance resource", resources)?),
            second: MetricIx::new(n.index("a balance resource", resources)?),
            target: n.next("a balance target", 1_000)?,
            weight: n.amount("a balance weight")? as f64,
        })
    })?;
    let mut weight = |what| numbers.amount(what).map(|weight| weight as f64);
    let objective = Objective::Reassignment(Reassignment {
        load,
        safety,
        balance,
        replica_moves: weight("the weight of process moves")?,
        service_moves: weight("the weight of service moves")?,
        node_moves: weight("the weight of machine moves")?,
        between,
    });
    numbers.end()?;
    for resource in 0..resources {
        let capacity: Amount = nodes.iter().filter_map(|node| node.capacity[resource]).sum();
        let required: Amount = replicas.iter().map(|replica| replica.demand[resource]).sum();
        if capacity > SUM || required > SUM {
            let rule = format!("capacities or requirements of resource {resource} exceed {SUM}");
            return Err(numbers.broken(rule));
        }
    }
    for (replica, node) in replicas.iter_mut().zip(solution(assignment, processes, machines)?) {
        replica.node = Some(node);
    }
    Ok(Cluster {
        name: model.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        metrics,
        levels,
        nodes,
        services,
        replicas,
        rules: rules(&groups, &spread, &depends),
        groups,
        objective,
    })
}

/// Domains by number; numbers without a machine are left out.
fn level(name: &str, prefix: &str, of: &[usize]) -> Level {
    let mut used: Vec<usize> = of.to_vec();
    used.sort_unstable();
    used.dedup();
    let position = |number: &usize| DomainIx::new(used.binary_search(number).unwrap_or(0));
    Level {
        name: name.to_owned(),
        domain_of: of.iter().map(position).collect(),
        domains: used.iter().map(|number| format!("{prefix}{number}")).collect(),
    }
}

fn rules(groups: &[Group], spread: &[u32], depends: &[Vec<usize>]) -> Vec<Rule> {
    const NEIGHBOURHOOD: usize = 1;
    const LOCATION: usize = 2;
    let mut rules = Vec::new();
    for (service, of) in groups.iter().enumerate() {
        let group = GroupIx::new(service);
        if of.members.len() > 1 {
            rules.push(Rule::PerDomain { group, level: LevelIx::NODE, most: 1 });
        }
        if spread[service] > 1 {
            let (level, least) = (LevelIx::new(LOCATION), spread[service]);
            rules.push(Rule::AtLeast { group, level, least });
        }
        for to in &depends[service] {
            let (to, level) = (GroupIx::new(*to), LevelIx::new(NEIGHBOURHOOD));
            rules.push(Rule::Near { group, to, level });
        }
    }
    rules
}

/// Reads an assignment: one machine for each process.
pub fn solution(
    file: &Path,
    processes: usize,
    machines: usize,
) -> Result<Vec<NodeIx>, ClusterError> {
    let mut numbers = Numbers::open(file)?;
    let read = |n: &mut Numbers| n.index("the machine of a process", machines).map(NodeIx::new);
    let nodes = numbers.list(processes, read)?;
    numbers.end()?;
    Ok(nodes)
}

/// Writes an assignment in the form of the challenge, which its checkers read.
pub fn write(file: &Path, nodes: &[NodeIx]) -> Result<(), ClusterError> {
    let words: Vec<String> = nodes.iter().map(|node| node.ix().to_string()).collect();
    write_whole(file, |out| writeln!(out, "{}", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::{read, write};
    use crate::cluster::ClusterError;
    use placement::{NodeIx, Rule, audit};
    use std::fs;
    use std::path::Path;

    /// Two resources, two machines, two services of which the second depends on the first, three
    /// processes.
    const MODEL: &str = "2  1 10  0 100  2  0 0 30 400 16 80 0 1  0 1 10 240 8 160 1 0 \
        2  2 0  1 1 0  3  0 12 10 1000  0 10 20 100  1 6 200 1  1 0 1 20 10 1 10 100";

    fn files(
        folder: &Path,
        model: &str,
        assignment: &str,
    ) -> Result<placement::Cluster, ClusterError> {
        let (model_file, assignment_file) = (folder.join("model"), folder.join("assignment"));
        fs::write(&model_file, model).expect("writes");
        fs::write(&assignment_file, assignment).expect("writes");
        read(&model_file, &assignment_file)
    }

    #[test]
    fn model_becomes_a_cluster_and_its_solution_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let cluster = files(folder.path(), MODEL, "0 1 0").expect("a whole model");
        assert_eq!(
            (cluster.nodes.len(), cluster.replicas.len(), cluster.services.len()),
            (2, 3, 2)
        );
        let rules: Vec<&str> = (cluster.rules.iter())
            .map(|rule| match rule {
                Rule::PerDomain { .. } => "conflict",
                Rule::AtLeast { .. } => "spread",
                Rule::Near { .. } => "dependency",
                _ => "other",
            })
            .collect();
        assert_eq!(rules, ["conflict", "spread", "dependency"]);
        assert_eq!(audit(&cluster, &cluster.today()), []);
        let file = folder.path().join("solution");
        write(&file, &[NodeIx::new(1), NodeIx::new(0), NodeIx::new(1)]).expect("writes");
        assert_eq!(fs::read_to_string(file).expect("reads"), "1 0 1\n");
    }

    #[test]
    fn broken_models_are_refused_with_the_number_and_the_rule() {
        let folder = tempfile::tempdir().expect("a folder");
        for (model, assignment, rule) in [
            (
                "2 0 10 7".to_owned(),
                "0 1 0",
                "number 4: transient is \"7\"; it must be from 0 to 1",
            ),
            ("2 0 10".to_owned(), "0 1 0", "number 4: the file ends; transient is missing"),
            (MODEL.replace(" 400 ", " -4 "), "0 1 0", "a capacity is \"-4\""),
            (
                MODEL.replace(" 400 ", " 9000000000000 "),
                "0 1 0",
                "it must be from 0 to 1000000000000",
            ),
            (MODEL.replace("1 1 0  3", "1 1 2  3"), "0 1 0", "a dependency is \"2\""),
            (format!("{MODEL} 5"), "0 1 0", "the file must end here"),
            (
                MODEL.to_owned(),
                "0 1",
                "number 3: the file ends; the machine of a process is missing",
            ),
            (MODEL.to_owned(), "0 1 2", "number 3: the machine of a process is \"2\""),
        ] {
            let error = files(folder.path(), &model, assignment).expect_err("it breaks a rule");
            assert!(error.to_string().contains(rule), "{error}");
        }
    }
}
