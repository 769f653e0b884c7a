//! Parameter files of Service Fabric's balancer simulator, and the clusters that it draws from them
//! (`loadrandomplacement FILE SEED`): nodes with fault domains and capacities, services with block
//! lists, partitions with loads, and a random first placement, in the simulator's order of draws.

use super::ClusterError;
use placement::{
    Amount, Cluster, DomainIx, Evenness, Group, GroupIx, Level, LevelIx, Metric, Node, NodeIx,
    NodeState, Objective, Replica, ReplicaIx, Role, Rule, Service, ServiceIx,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The simulator's own seed.
pub const SEED: i32 = 54_321;
/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;
/// The largest number of nodes, metrics, services, partitions or replicas.
const MANY: usize = 1_000_000;
/// The largest number of services times nodes: each service has a list of nodes.
const PAIRS: usize = 1_000_000_000;
/// The largest number of metrics.
const METRICS: usize = 100;
/// The largest amount that can be drawn.
const MOST: f64 = 1e12;

/// A cluster, and how the file wants the balancer to run on it.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The cluster. Its objective is balance, with moves at their cost.
    pub cluster: Cluster,
    /// Settings of the balancer by name, as the file has them. The cluster does not depend on them.
    pub settings: BTreeMap<String, String>,
}

/// A distribution of amounts.
#[derive(Clone, Copy)]
enum Range {
    /// From the first to the second.
    Uniform(f64, f64),
    /// b u^(-a) + c, with u from 0.1 to 1.
    Power(f64, f64, f64),
}

impl Range {
    fn draw(self, random: &mut Random) -> Amount {
        let drawn = match self {
            Range::Uniform(low, high) => random.unit() * (high - low) + low,
            Range::Power(a, b, c) => b * random.unit().max(0.1).powf(-a) + c,
        };
        drawn.ceil() as Amount
    }
}

/// What a file says.
#[derive(Default)]
struct Parameters {
    settings: BTreeMap<String, String>,
    metrics: usize,
    nodes: usize,
    domains: Vec<String>,
    /// Partitions of each service, and replicas of each partition.
    partitions: Vec<usize>,
    replicas: Vec<usize>,
    capacity: Vec<Range>,
    primary: Vec<Range>,
    secondary: Vec<Range>,
    /// Pairs of services of one partition, and the replicas of each.
    pairs: (usize, usize),
}

/// Knuth's subtractive generator, as `System.Random` of .NET has it.
struct Random {
    numbers: [i32; 56],
    first: usize,
    second: usize,
}

impl Random {
    fn new(seed: i32) -> Random {
        let mut numbers = [0; 56];
        // The magnitude of the smallest seed does not fit.
        let mut last = 161_803_398 - seed.saturating_abs();
        numbers[55] = last;
        let mut next = 1;
        for at in 1..55 {
            let at = 21 * at % 55;
            numbers[at] = next;
            next = last - next;
            if next < 0 {
                next += i32::MAX;
            }
            last = numbers[at];
        }
        for _ in 0..4 {
            for at in 1..56 {
                numbers[at] = i32::wrapping_sub(numbers[at], numbers[1 + (at + 30) % 55]);
                if numbers[at] < 0 {
                    numbers[at] += i32::MAX;
                }
            }
        }
        Random { numbers, first: 0, second: 21 }
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        let next = |at: usize| if at < 55 { at + 1 } else { 1 };
        (self.first, self.second) = (next(self.first), next(self.second));
        let mut value = self.numbers[self.first] - self.numbers[self.second];
        if value < 0 {
            value += i32::MAX;
        }
        self.numbers[self.first] = value;
        f64::from(value) * (1.0 / f64::from(i32::MAX))
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.unit() * bound as f64) as usize
    }
}

/// Reads a file, and draws its cluster.
pub fn read(file: &Path, seed: i32) -> Result<Simulated, ClusterError> {
    let broken = |(line, rule): Broken| ClusterError::Line { file: file.to_owned(), line, rule };
    let length = fs::metadata(file).map_err(ClusterError::file(file))?.len();
    if length > LARGEST {
        return Err(broken((
            1,
            format!("the file has {length} bytes; at most {LARGEST} are read"),
        )));
    }
    let text = fs::read_to_string(file).map_err(ClusterError::file(file))?;
    let parameters = parse(&text).map_err(broken)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Simulated {
        cluster: generate(&name, &parameters, &mut Random::new(seed)),
        settings: parameters.settings,
    })
}

/// A line, from 1, and the rule that it breaks.
type Broken = (usize, String);

fn parse(text: &str) -> Result<Parameters, Broken> {
    let mut of = Parameters { pairs: (0, 1), ..Parameters::default() };
    let mut is_in_settings = false;
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let broken = |rule: String| (number, rule);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with("<Config") {
            is_in_settings = true;
        } else if is_in_settings && line.starts_with('>') {
            is_in_settings = false;
        } else if is_in_settings {
            let (key, value) = line
                .split_once('=')
                .ok_or_else(|| broken(format!("{line:?} is not a setting: NAME = VALUE")))?;
            of.settings.insert(key.trim().to_owned(), value.trim().to_owned());
        } else {
            let (key, value) = line
                .split_once(':')
                .ok_or_else(|| broken(format!("{line:?} is not a parameter: NAME:VALUE")))?;
            if lines.insert(key, number).is_some() {
                return Err(broken(format!("{key} stands twice")));
            }
            let value = value.trim_matches([' ', '{', '}']);
            let items: Vec<&str> = value.split(',').map(str::trim).collect();
            parameter(&mut of, key, &items).map_err(broken)?;
        }
    }
    if is_in_settings {
        return Err((text.lines().count(), "the settings do not end with \">\"".to_owned()));
    }
    check(&of, &lines)?;
    Ok(of)
}

fn parameter(of: &mut Parameters, key: &str, items: &[&str]) -> Result<(), String> {
    match key {
        "MetricCount" => of.metrics = one(items, 1, METRICS)?,
        "NodeCount" => of.nodes = one(items, 1, MANY)?,
        "FaultDomains" => of.domains = items.iter().map(|&item| item.to_owned()).collect(),
        "PartitionCount" => of.partitions = counts(items, 0, MANY)?,
        "ReplicaCountPerPartition" => of.replicas = counts(items, 1, MANY)?,
        "NodeCapacityRange" => of.capacity = ranges(items)?,
        "PrimaryLoadRange" => of.primary = ranges(items)?,
        "SecondaryLoadRange" => of.secondary = ranges(items)?,
        "AffinitizedServicePair" => match counts(items, 0, MANY)?[..] {
            [pairs, replicas] if replicas > 0 => of.pairs = (pairs, replicas),
            _ => return Err("must be the number of pairs, and that of replicas".to_owned()),
        },
        _ => return Err(format!("there is no parameter {key:?}")),
    }
    Ok(())
}

fn counts(items: &[&str], least: usize, most: usize) -> Result<Vec<usize>, String> {
    let count = |item: &&str| match item.parse() {
        Ok(count) if (least..=most).contains(&count) => Ok(count),
        _ => Err(format!("{item:?} must be a whole number from {least} to {most}")),
    };
    items.iter().map(count).collect()
}

fn one(items: &[&str], least: usize, most: usize) -> Result<usize, String> {
    match counts(items, least, most)?[..] {
        [count] => Ok(count),
        _ => Err("must be one number".to_owned()),
    }
}

fn ranges(items: &[&str]) -> Result<Vec<Range>, String> {
    let range = |item: &&str| {
        let rule = || format!("{item:?} must be U/low/high or P/a/b/c of amounts up to {MOST}");
        let mut words = item.split('/');
        let kind = words.next().unwrap_or_default();
        let numbers: Option<Vec<f64>> = words
            .map(|word| word.parse().ok().filter(|n: &f64| (0.0..=MOST).contains(n)))
            .collect();
        let range = match (kind.to_ascii_uppercase().as_str(), &numbers.ok_or_else(rule)?[..]) {
            ("U", &[low, high]) if low <= high => Range::Uniform(low, high),
            ("P", &[a, b]) => Range::Power(a, b, 0.0),
            ("P", &[a, b, c]) => Range::Power(a, b, c),
            _ => return Err(rule()),
        };
        let is_limited = match range {
            Range::Uniform(..) => true,
            Range::Power(a, b, c) => b * 0.1_f64.powf(-a) + c <= MOST,
        };
        if is_limited { Ok(range) } else { Err(rule()) }
    };
    items.iter().map(range).collect()
}

/// Rules between parameters.
fn check(of: &Parameters, lines: &BTreeMap<&str, usize>) -> Result<(), Broken> {
    let line = |key: &str| lines.get(key).copied().unwrap_or(1);
    for key in [
        "MetricCount",
        "NodeCount",
        "FaultDomains",
        "PartitionCount",
        "ReplicaCountPerPartition",
        "PrimaryLoadRange",
        "SecondaryLoadRange",
    ] {
        if !lines.contains_key(key) {
            return Err((1, format!("the file has no {key}")));
        }
    }
    for (key, ranges) in [
        ("NodeCapacityRange", &of.capacity),
        ("PrimaryLoadRange", &of.primary),
        ("SecondaryLoadRange", &of.secondary),
    ] {
        if lines.contains_key(key) && ranges.len() != of.metrics {
            let rule = format!("{key} has {} ranges for {} metrics", ranges.len(), of.metrics);
            return Err((line(key), rule));
        }
    }
    if of.partitions.len() != of.replicas.len() {
        let rule = "PartitionCount and ReplicaCountPerPartition have different numbers of services";
        return Err((line("ReplicaCountPerPartition"), rule.to_owned()));
    }
    let (pairs, pair_replicas) = of.pairs;
    for (key, most) in [
        ("ReplicaCountPerPartition", of.replicas.iter().copied().max().unwrap_or(0)),
        ("AffinitizedServicePair", pair_replicas),
    ] {
        if most > of.nodes {
            let rule = format!("{most} replicas of a partition need as many nodes");
            return Err((line(key), rule));
        }
    }
    let mut domains: Vec<&String> = of.domains.iter().collect();
    domains.sort_unstable();
    if domains.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err((line("FaultDomains"), "a fault domain stands twice".to_owned()));
    }
    let services = of.partitions.len().saturating_add(pairs.saturating_mul(2));
    if services.saturating_mul(of.nodes) > PAIRS {
        let rule = format!("{services} services on {} nodes are too many block lists", of.nodes);
        return Err((line("NodeCount"), rule));
    }
    let of_services = of.partitions.iter().zip(&of.replicas).map(|(p, r)| p.saturating_mul(*r));
    let of_pairs = pairs.saturating_mul(2).saturating_mul(pair_replicas);
    let replicas = of_services.fold(of_pairs, usize::saturating_add);
    if replicas > MANY {
        let rule = format!("the file makes {replicas} replicas; at most {MANY} are made");
        return Err((line("PartitionCount"), rule));
    }
    Ok(())
}

/// A service to be made: its partitions, replicas of each, and the service that it is near.
struct Plan {
    partitions: usize,
    replicas: usize,
    near: Option<usize>,
}

fn generate(name: &str, of: &Parameters, random: &mut Random) -> Cluster {
    let (nodes, fault_domains) = nodes(of, random);
    let plain = of.partitions.iter().zip(&of.replicas);
    let mut plans: Vec<Plan> = plain
        .map(|(partitions, replicas)| Plan {
            partitions: *partitions,
            replicas: *replicas,
            near: None,
        })
        .collect();
    let (pairs, replicas) = of.pairs;
    for _ in 0..pairs {
        let parent = plans.len();
        plans.push(Plan { partitions: 1, replicas, near: None });
        plans.push(Plan { partitions: 1, replicas, near: Some(parent) });
    }
    let services = plans.iter().enumerate().map(|(position, plan)| {
        let blocked = block_list(of.nodes, plan.replicas, random);
        let allowed = (0..of.nodes).map(|node| !blocked.contains(&node)).collect();
        Service { name: format!("s{position}"), allowed: Some(allowed) }
    });
    let services: Vec<Service> = services.collect();
    let node_level = Level {
        name: "node".to_owned(),
        domains: nodes.iter().map(|node| node.name.clone()).collect(),
        domain_of: (0..of.nodes).map(DomainIx::new).collect(),
    };
    let mut cluster = Cluster {
        name: name.to_owned(),
        metrics: (0..of.metrics)
            .map(|metric| Metric { name: format!("Metric{metric:02}"), transient: false })
            .collect(),
        levels: vec![node_level, fault_domains],
        nodes,
        services,
        replicas: Vec::new(),
        groups: Vec::new(),
        rules: Vec::new(),
        objective: Objective::Balance(Evenness::of(of.metrics)),
    };
    for (service, plan) in plans.iter().enumerate() {
        let first = GroupIx::new(cluster.groups.len());
        for partition in 0..plan.partitions {
            add_partition(&mut cluster, of, service, partition, plan.replicas, random);
        }
        if plan.near.is_some() {
            // The service that it is near has one partition, the group before this one.
            let to = GroupIx::new(first.ix() - 1);
            cluster.rules.push(Rule::Near { group: first, to, level: LevelIx::NODE });
        }
    }
    place(&mut cluster, of, random);
    cluster
}

fn nodes(of: &Parameters, random: &mut Random) -> (Vec<Node>, Level) {
    let (mut nodes, mut domain_of) = (Vec::new(), Vec::new());
    for node in 0..of.nodes {
        let mut capacity: Vec<Option<Amount>> =
            of.capacity.iter().map(|range| Some(range.draw(random))).collect();
        capacity.resize(of.metrics, None);
        domain_of.push(DomainIx::new(random.below(of.domains.len())));
        nodes.push(Node { name: format!("n{node}"), state: NodeState::Up, capacity });
    }
    (nodes, Level { name: "fault_domain".to_owned(), domains: of.domains.clone(), domain_of })
}

/// Nodes that a service may not use. The simulator draws their number once more before each of them.
fn block_list(nodes: usize, replicas: usize, random: &mut Random) -> BTreeSet<usize> {
    let mut blocked = BTreeSet::new();
    let mut drawn = 0;
    while drawn < random.below(nodes + 1 - replicas) {
        blocked.insert(random.below(nodes));
        drawn += 1;
    }
    blocked
}

/// One primary, and secondaries of one load; they never share a node, nor a fault domain where there
/// are enough.
fn add_partition(
    cluster: &mut Cluster,
    of: &Parameters,
    service: usize,
    partition: usize,
    replicas: usize,
    random: &mut Random,
) {
    let (mut primary, mut secondary) = (Vec::new(), Vec::new());
    for (of_primary, of_secondary) in of.primary.iter().zip(&of.secondary) {
        primary.push(of_primary.draw(random));
        secondary.push(of_secondary.draw(random));
    }
    let group = GroupIx::new(cluster.groups.len());
    let name = format!("s{service}/{partition}");
    let first = cluster.replicas.len();
    for replica in 0..replicas {
        let is_primary = replica == 0;
        cluster.replicas.push(Replica {
            name: format!("{name}/{replica}"),
            service: ServiceIx::new(service),
            role: if is_primary { Role::Primary } else { Role::Secondary },
            node: None,
            demand: if is_primary { primary.clone() } else { secondary.clone() },
            move_cost: 1.0,
        });
    }
    let members = (first..first + replicas).map(ReplicaIx::new).collect();
    cluster.groups.push(Group { name, members });
    let most = replicas.div_ceil(of.domains.len().max(1));
    let spread = u32::try_from(most).unwrap_or(u32::MAX);
    for (level, most) in [(LevelIx::NODE, 1), (LevelIx::new(1), spread)] {
        cluster.rules.push(Rule::PerDomain { group, level, most });
    }
}

/// Puts each replica on a random node, different ones within a partition, without a look at any other
/// rule. Services in pairs stay without a node.
fn place(cluster: &mut Cluster, of: &Parameters, random: &mut Random) {
    let mut next = 0;
    for (partitions, replicas) in of.partitions.iter().zip(&of.replicas) {
        for _ in 0..*partitions {
            let mut used = BTreeSet::new();
            for _ in 0..*replicas {
                let node = loop {
                    let node = random.below(of.nodes);
                    if used.insert(node) {
                        break node;
                    }
                };
                cluster.replicas[next].node = Some(NodeIx::new(node));
                next += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, SEED, Simulated, read};
    use crate::cluster::ClusterError;
    use placement::{Cluster, NodeIx, ReplicaIx, Role, Rule, audit, evaluate};
    use std::collections::BTreeSet;
    use std::fs;

    /// The parameters of randdata001.txt.
    const SMALL: &str = "# 1\n<Config\nLoadBalancingEnabled = true\n>\n\nMetricCount:1\n\
        FaultDomains:{dc1,dc2,dc3,dc4}\nNodeCount:10\nPartitionCount:{100, 100, 100, 100}\n\
        ReplicaCountPerPartition:{3, 3, 3, 3}\nPrimaryLoadRange:{P/5/10/0}\nSecondaryLoadRange:{U/5/10}";
    /// The parameters of randdata006.txt.
    const PAIRED: &str = "MetricCount:2\nFaultDomains:{dc1,dc2,dc3,dc4}\nNodeCount:100\n\
        PartitionCount:{1000, 1000, 1000, 1000}\nReplicaCountPerPartition:{3, 3, 3, 3}\n\
        NodeCapacityRange:{P/5/10000/10000,P/5/10000/10000}\nPrimaryLoadRange:{P/5/10/0,P/5/10/0}\n\
        SecondaryLoadRange:{U/5/10,U/5/10}\nAffinitizedServicePair:500,2\n";

    fn draw(text: &str) -> Result<Simulated, ClusterError> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("parameters.txt");
        fs::write(&file, text).expect("writes");
        read(&file, SEED)
    }

    fn loads(cluster: &Cluster, metric: usize) -> Vec<i64> {
        let mut loads = vec![0; cluster.nodes.len()];
        for replica in &cluster.replicas {
            if let Some(node) = replica.node {
                loads[node.ix()] += replica.demand[metric];
            }
        }
        loads
    }

    fn blocked(cluster: &Cluster) -> usize {
        let is_blocked = |(position, node): (usize, Option<NodeIx>)| {
            node.is_some_and(|node| !cluster.may_run(ReplicaIx::new(position), node))
        };
        cluster.today().into_iter().enumerate().filter(|of| is_blocked(*of)).count()
    }

    /// Partitions with two replicas in a fault domain.
    fn crowded(cluster: &Cluster) -> usize {
        let is_crowded = |members: &[ReplicaIx]| {
            let nodes = members.iter().filter_map(|member| cluster.replicas[member.ix()].node);
            let domains: Vec<_> =
                nodes.map(|node| cluster.levels[1].domain_of[node.ix()]).collect();
            domains.iter().collect::<BTreeSet<_>>().len() < domains.len()
        };
        cluster.groups.iter().filter(|group| is_crowded(&group.members)).count()
    }

    /// First numbers of `new Random(seed).NextDouble()` of .NET.
    #[test]
    fn random_numbers_are_those_of_dot_net() {
        for (seed, first) in [(0, 0.726_243_269_967_959_8), (42, 0.668_106_465_911_542)] {
            assert!((Random::new(seed).unit() - first).abs() < 1e-15, "seed {seed}");
        }
    }

    /// What the simulator's generator says of its first file.
    #[test]
    fn small_file_becomes_the_cluster_of_the_simulator() {
        let Simulated { cluster, settings } = draw(SMALL).expect("it is whole");
        assert_eq!(settings["LoadBalancingEnabled"], "true");
        let mut per_domain = vec![0; 4];
        cluster.levels[1].domain_of.iter().for_each(|domain| per_domain[domain.ix()] += 1);
        assert_eq!(per_domain, [1, 5, 2, 2]);
        assert_eq!(cluster.replicas.len(), 1_200);
        let loads = loads(&cluster, 0);
        assert_eq!(loads.iter().sum::<i64>(), 55_008_750);
        assert_eq!(loads.iter().max(), Some(&9_176_421));
        let deviation = evaluate(&cluster, &cluster.today()).terms["deviation"];
        assert!((deviation - 2_054_515.8).abs() < 0.1, "{deviation}");
        assert_eq!((blocked(&cluster), crowded(&cluster)), (296, 241));
    }

    /// What the generator says of its sixth file, which has capacities and pairs.
    #[test]
    fn pairs_have_no_node_and_are_near() {
        let Simulated { cluster, .. } = draw(PAIRED).expect("it is whole");
        let open = cluster.replicas.iter().filter(|replica| replica.node.is_none()).count();
        assert_eq!((cluster.replicas.len(), open, cluster.services.len()), (14_000, 2_000, 1_004));
        for (metric, load, most, capacity) in [
            (0, 472_272_282_i64, 9_196_747_i64, 10_638_094_246_i64),
            (1, 474_263_216, 12_395_413, 8_707_586_643),
        ] {
            let loads = loads(&cluster, metric);
            assert_eq!((loads.iter().sum::<i64>(), loads.iter().max()), (load, Some(&most)));
            let limits = cluster.nodes.iter().filter_map(|node| node.capacity[metric]);
            assert_eq!(limits.sum::<i64>(), capacity);
        }
        assert_eq!((blocked(&cluster), crowded(&cluster)), (1_329, 2_438));
        let near = cluster.rules.iter().filter(|rule| matches!(rule, Rule::Near { .. })).count();
        assert_eq!(near, 500);
        let primaries = cluster.replicas.iter().filter(|replica| replica.role == Role::Primary);
        assert_eq!(primaries.count(), 5_000);
        assert!(audit(&cluster, &cluster.today()).len() > 1_329 + 2_000 + 96);
    }

    #[test]
    fn broken_files_are_refused_with_line_and_rule() {
        for (text, rule) in [
            (
                SMALL.replace("MetricCount:1", "MetricCount:x"),
                "line 6: \"x\" must be a whole number",
            ),
            (SMALL.replace("NodeCount:10", "NodeCount:0"), "line 8: \"0\" must be a whole number"),
            (SMALL.replace("NodeCount:10", "NodeCount=10"), "line 8: \"NodeCount=10\" is not a"),
            (SMALL.replace("NodeCount:10", "NodeCount:2"), "3 replicas of a partition need"),
            (SMALL.replace("NodeCount", "RackCount"), "line 8: there is no parameter"),
            (SMALL.replace("P/5/10/0", "P/5/1e12/0"), "line 11: \"P/5/1e12/0\" must be"),
            (SMALL.replace("P/5/10/0", "U/9/5"), "line 11: \"U/9/5\" must be"),
            (SMALL.replace("U/5/10", "U/5/10,U/5/10"), "SecondaryLoadRange has 2 ranges for 1"),
            (SMALL.replace("dc2", "dc1"), "line 7: a fault domain stands twice"),
            (SMALL.replace("{3, 3, 3, 3}", "{3, 3}"), "line 10: PartitionCount and"),
            (SMALL.replace("100}", "900000}"), "at most 1000000 are made"),
            (SMALL.replace("NodeCount:10", "NodeCount:1000000000"), "line 8"),
            ("<Config\nA = 1\n".to_owned(), "line 2: the settings do not end"),
            (format!("{SMALL}\nNodeCount:10"), "line 13: NodeCount stands twice"),
            (SMALL.replace("NodeCount:10\n", ""), "the file has no NodeCount"),
            (format!("{SMALL}\nAffinitizedServicePair:5"), "line 13: must be the number of pairs"),
        ] {
            let error = draw(&text).expect_err("it breaks a rule");
            assert!(error.to_string().contains(rule), "{error} is not {rule}");
        }
    }
}
