//! The language of the scenarios: a description of a cluster, line by line, and what is printed of it.

use super::exhaustive::{Least, least};
use placement::{
    Amount, Cluster, Failovers, GroupIx, LevelIx, Limits, NodeIx, NodeState, Objective, Role, Rule,
    ServiceIx, Violation, audit, search,
};
use std::collections::BTreeMap;
use std::fmt::Write;

type Outcome<T> = Result<T, String>;

#[derive(Clone)]
struct Node {
    name: String,
    state: NodeState,
    capacity: BTreeMap<String, Amount>,
    labels: BTreeMap<String, String>,
}

#[derive(Clone)]
struct Replica {
    node: Option<String>,
    demand: BTreeMap<String, Amount>,
    cost: f64,
}

#[derive(Clone, Default)]
struct Service {
    name: String,
    /// Whether no two replicas share a node.
    is_partition: bool,
    replicas: Vec<Replica>,
    /// Labels with the values that a node must have one of.
    allow: BTreeMap<String, Vec<String>>,
    /// Labels with values that a node must not have.
    block: Vec<(String, String)>,
    blocked_nodes: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    PerDomain,
    Spread,
    AtLeast,
    AtMost,
    Near(String),
    Apart(String),
}

/// A cluster that lines describe and change.
#[derive(Default)]
pub struct World {
    transient: Vec<String>,
    nodes: Vec<Node>,
    services: Vec<Service>,
    groups: BTreeMap<String, Vec<String>>,
    /// Number by group, level and kind.
    rules: BTreeMap<(String, String, Kind), u32>,
    fragmentation: f64,
    levels: Vec<String>,
    /// Moves of the last placement, by service.
    moved: BTreeMap<String, usize>,
}

/// Words without and with a value.
fn arguments<'l>(words: &[&'l str]) -> (Vec<&'l str>, Vec<(&'l str, &'l str)>) {
    let names = words.iter().filter(|word| !word.contains('=')).copied().collect();
    (names, words.iter().filter_map(|word| word.split_once('=')).collect())
}

fn number<T: std::str::FromStr>(word: &str) -> Outcome<T> {
    word.parse().map_err(|_| format!("{word}: not a number"))
}

/// A level, which may be in the plural.
fn level(word: &str) -> String {
    word.strip_suffix('s').unwrap_or(word).to_owned()
}

impl World {
    /// Reads lines, and returns what they print.
    pub fn run(&mut self, lines: &str) -> Outcome<String> {
        let mut out = String::new();
        for line in lines.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            self.line(&words, &mut out).map_err(|error| format!("{line}: {error}"))?;
        }
        Ok(out)
    }

    fn line(&mut self, words: &[&str], out: &mut String) -> Outcome<()> {
        match words {
            ["transient", metrics @ ..] => {
                self.transient = metrics.iter().map(|metric| (*metric).to_owned()).collect();
            }
            ["node", rest @ ..] => {
                let (names, values) = arguments(rest);
                for name in names {
                    self.nodes.push(Node {
                        name: name.to_owned(),
                        state: NodeState::Up,
                        capacity: BTreeMap::new(),
                        labels: BTreeMap::new(),
                    });
                    self.set(name, &values)?;
                }
            }
            ["set", name, rest @ ..] => self.set(name, &arguments(rest).1)?,
            ["drain", names @ ..] => self.state(names, NodeState::Draining)?,
            ["fail", names @ ..] => self.state(names, NodeState::Down)?,
            ["up", names @ ..] => self.state(names, NodeState::Up)?,
            [kind @ ("service" | "pods"), name, rest @ ..] => {
                let is_partition = *kind == "service";
                let name = (*name).to_owned();
                self.services.push(Service {
                    name: name.clone(),
                    is_partition,
                    ..Service::default()
                });
                self.replicas(&name, rest)?;
            }
            ["also", name, rest @ ..] => self.replicas(name, rest)?,
            ["remove", name, count] => {
                let (count, of) = (number::<usize>(count)?, self.service(name)?);
                of.replicas.truncate(of.replicas.len().saturating_sub(count));
            }
            ["group", name, services @ ..] => {
                let services = services.iter().map(|service| (*service).to_owned()).collect();
                self.groups.insert((*name).to_owned(), services);
            }
            ["demand", name, rest @ ..] => {
                for (metric, amount) in arguments(rest).1 {
                    let amount: Amount = number(amount)?;
                    for replica in &mut self.service(name)?.replicas {
                        replica.demand.insert(metric.to_owned(), amount);
                    }
                }
            }
            ["allow", name, rest @ ..] => {
                for (label, values) in arguments(rest).1 {
                    let values = values.split(',').map(str::to_owned).collect();
                    self.service(name)?.allow.insert(label.to_owned(), values);
                }
            }
            ["block", name, rest @ ..] => {
                let (nodes, labels) = arguments(rest);
                let of = self.service(name)?;
                of.blocked_nodes.extend(nodes.iter().map(|node| (*node).to_owned()));
                of.block.extend(labels.iter().map(|(l, v)| ((*l).to_owned(), (*v).to_owned())));
            }
            ["fragmentation", weight, "over", levels @ ..] => {
                self.fragmentation = number(weight)?;
                self.levels = levels.iter().map(|name| (*name).to_owned()).collect();
            }
            ["at", "most", most, "of", group, "per", at] => {
                self.rule(group, at, Kind::PerDomain, number(most)?);
            }
            ["spread", group, "over", at] => self.rule(group, at, Kind::Spread, 0),
            [group, "in", "at", "least", least, at] => {
                self.rule(group, at, Kind::AtLeast, number(least)?);
            }
            [group, "in", "at", "most", most, at] => {
                self.rule(group, at, Kind::AtMost, number(most)?);
            }
            [group, "near", to, "in", at] => {
                self.rule(group, at, Kind::Near((*to).to_owned()), 0);
            }
            [group, "apart", "from", other, "in", at] => {
                self.rule(group, at, Kind::Apart((*other).to_owned()), 0);
            }
            _ => return self.print(words, out),
        }
        Ok(())
    }

    fn print(&mut self, words: &[&str], out: &mut String) -> Outcome<()> {
        match words {
            ["check"] => {
                let cluster = self.cluster()?;
                let violations = audit(&cluster, &cluster.today());
                out.push_str(if violations.is_empty() {
                    "nothing is broken\n"
                } else {
                    "broken:\n"
                });
                out.push_str(&describe(&cluster, &violations));
            }
            ["place"] => out.push_str(&self.place()?),
            ["where", group] => {
                let mut nodes: Vec<&str> = Vec::new();
                for replica in self.members(group)? {
                    nodes.push(replica.node.as_deref().unwrap_or("-"));
                }
                nodes.sort_unstable();
                writeln!(out, "{group}: {}", nodes.join(" ")).expect("text");
            }
            [verb @ ("count" | "sizes"), group, "per", at] => {
                let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
                for replica in self.members(group)? {
                    let Some(name) = &replica.node else { continue };
                    let node = self.nodes.iter().find(|node| node.name == *name);
                    let label = node.and_then(|node| node.labels.get(*at)).unwrap_or(name);
                    *counts.entry(label).or_default() += 1;
                }
                let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
                if *verb == "sizes" {
                    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
                }
                let word = |(name, count): &(&str, usize)| match *verb {
                    "sizes" => count.to_string(),
                    _ => format!("{name}={count}"),
                };
                let words: Vec<String> = counts.iter().map(word).collect();
                writeln!(out, "{group} per {at}: {}", words.join(" ")).expect("text");
            }
            ["moved"] => {
                let word = |(name, count): (&String, &usize)| format!(" {name}={count}");
                let words: String = self.moved.iter().map(word).collect();
                writeln!(out, "moved:{words}").expect("text");
            }
            _ => return Err("is not understood".to_owned()),
        }
        Ok(())
    }

    fn service(&mut self, name: &str) -> Outcome<&mut Service> {
        let found = self.services.iter_mut().find(|service| service.name == name);
        found.ok_or_else(|| format!("there is no service {name}"))
    }

    /// Names of the services of a group.
    fn names(&self, group: &str) -> Vec<String> {
        self.groups.get(group).cloned().unwrap_or_else(|| vec![group.to_owned()])
    }

    fn members(&self, group: &str) -> Outcome<Vec<&Replica>> {
        let names = self.names(group);
        let services = self.services.iter().filter(|service| names.contains(&service.name));
        let members: Vec<&Replica> = services.flat_map(|service| &service.replicas).collect();
        Ok(members)
    }

    fn set(&mut self, name: &str, values: &[(&str, &str)]) -> Outcome<()> {
        let node = self.nodes.iter_mut().find(|node| node.name == name);
        let node = node.ok_or_else(|| format!("there is no node {name}"))?;
        for (key, value) in values {
            if let Ok(amount) = value.parse() {
                node.capacity.insert((*key).to_owned(), amount);
            } else {
                node.labels.insert((*key).to_owned(), (*value).to_owned());
            }
        }
        Ok(())
    }

    fn state(&mut self, names: &[&str], state: NodeState) -> Outcome<()> {
        for name in names {
            let node = self.nodes.iter_mut().find(|node| node.name == *name);
            node.ok_or_else(|| format!("there is no node {name}"))?.state = state;
        }
        Ok(())
    }

    fn replicas(&mut self, name: &str, words: &[&str]) -> Outcome<()> {
        let (mut nodes, mut demand, mut cost) = (Vec::new(), BTreeMap::new(), 1.0);
        for (key, value) in arguments(words).1 {
            match key {
                "on" => nodes
                    .splice(0..0, value.split(',').map(|node| Some(node.to_owned())))
                    .for_each(drop),
                "new" => nodes.extend(vec![None; number(value)?]),
                "cost" => cost = number(value)?,
                metric => drop(demand.insert(metric.to_owned(), number(value)?)),
            }
        }
        let replicas = nodes.into_iter().map(|node| Replica { node, demand: demand.clone(), cost });
        self.service(name)?.replicas.extend(replicas);
        Ok(())
    }

    fn rule(&mut self, group: &str, at: &str, kind: Kind, number: u32) {
        self.rules.insert((group.to_owned(), level(at), kind), number);
    }

    /// The cluster that has been described.
    fn cluster(&self) -> Outcome<Cluster> {
        let replicas = || self.services.iter().flat_map(|service| &service.replicas);
        let mut metrics: Vec<&String> = (self.nodes.iter().flat_map(|node| node.capacity.keys()))
            .chain(replicas().flat_map(|replica| replica.demand.keys()))
            .collect();
        metrics.sort();
        metrics.dedup();
        let mut builder = Cluster::builder("scenario");
        for metric in &metrics {
            builder = builder.metric(metric, self.transient.contains(metric));
        }
        for node in &self.nodes {
            let capacity = metrics.iter().map(|metric| node.capacity.get(*metric).copied());
            builder = builder.node(&node.name, capacity);
        }
        let mut levels: Vec<&String> = self.nodes.iter().flat_map(|of| of.labels.keys()).collect();
        levels.sort();
        levels.dedup();
        for level in &levels {
            let domain = |node: &'_ Node| {
                node.labels.get(*level).cloned().unwrap_or_else(|| format!("node {}", node.name))
            };
            let domains: Vec<String> = self.nodes.iter().map(domain).collect();
            builder = builder.level(level, domains.iter().map(String::as_str));
        }
        let mut positions: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut count = 0;
        for service in &self.services {
            for replica in &service.replicas {
                if let Some(name) = &replica.node
                    && self.nodes.iter().all(|node| node.name != *name)
                {
                    return Err(format!("there is no node {name}"));
                }
                let of = metrics.iter().map(|m| replica.demand.get(*m).copied().unwrap_or(0));
                builder = builder.replica(&service.name, replica.node.as_deref(), of);
                positions.entry(&service.name).or_default().push(count);
                count += 1;
            }
        }
        let level_ix = |name: &str| match levels.iter().position(|level| *level == name) {
            Some(at) => Ok(LevelIx::new(at + 1)),
            None if name == "node" => Ok(LevelIx::NODE),
            None => Err(format!("no node has a domain of level {name}")),
        };
        let mut groups: BTreeMap<String, GroupIx> = BTreeMap::new();
        let names = self.services.iter().map(|service| &service.name).chain(self.groups.keys());
        for (at, name) in names.enumerate() {
            let of = self.names(name);
            let members = of.iter().filter_map(|name| positions.get(name.as_str())).flatten();
            builder = builder.group(name, members.copied());
            groups.insert(name.clone(), GroupIx::new(at));
        }
        let group_ix = |name: &str| {
            groups.get(name).copied().ok_or_else(|| format!("there is no service or group {name}"))
        };
        for service in self.services.iter().filter(|service| service.is_partition) {
            let group = group_ix(&service.name)?;
            builder = builder.rule(Rule::PerDomain { group, level: LevelIx::NODE, most: 1 });
        }
        let mut rules = Vec::new();
        for ((group, at, kind), number) in &self.rules {
            let (members, level) = (self.members(group)?.len(), level_ix(at)?);
            let (group, number) = (group_ix(group)?, *number);
            rules.push(match kind {
                Kind::PerDomain => Rule::PerDomain { group, level, most: number },
                Kind::Spread => {
                    let domain = |node: &Node| node.labels.get(at).unwrap_or(&node.name).clone();
                    let mut domains: Vec<String> = self.nodes.iter().map(domain).collect();
                    domains.sort();
                    domains.dedup();
                    let most = u32::try_from(members.div_ceil(domains.len().max(1)));
                    Rule::PerDomain { group, level, most: most.expect("a few replicas") }
                }
                Kind::AtLeast => Rule::AtLeast { group, level, least: number },
                Kind::AtMost => Rule::AtMost { group, level, most: number },
                Kind::Near(to) => Rule::Near { group, to: group_ix(to)?, level },
                Kind::Apart(from) => Rule::Apart { group, from: group_ix(from)?, level },
            });
        }
        let builder = rules.into_iter().fold(builder, placement::Builder::rule);
        let levels = self.levels.iter().map(|name| level_ix(name)).collect::<Outcome<Vec<_>>>()?;
        let objective =
            Failovers { fragmentation: self.fragmentation, levels, ..Failovers::default() };
        let builder = builder.objective(Objective::Failovers(objective));
        Ok(builder.with(|cluster| self.complete(cluster)).build())
    }

    /// What the builder has no method for.
    fn complete(&self, cluster: &mut Cluster) {
        for (node, of) in cluster.nodes.iter_mut().zip(&self.nodes) {
            node.state = of.state;
        }
        cluster.services.clear();
        let mut replicas = cluster.replicas.iter_mut();
        for (position, service) in self.services.iter().enumerate() {
            let may_run = |node: &Node| {
                let has = |(label, values): (&String, &Vec<String>)| {
                    node.labels.get(label).is_some_and(|value| values.contains(value))
                };
                let has_not =
                    |(label, value): &(String, String)| node.labels.get(label) != Some(value);
                service.allow.iter().all(has)
                    && service.block.iter().all(has_not)
                    && !service.blocked_nodes.contains(&node.name)
            };
            let is_restricted = !service.allow.is_empty()
                || !service.block.is_empty()
                || !service.blocked_nodes.is_empty();
            let allowed = is_restricted.then(|| self.nodes.iter().map(may_run).collect());
            cluster.services.push(placement::Service { name: service.name.clone(), allowed });
            let partition = service.replicas.iter().zip(replicas.by_ref());
            for (number, (of, replica)) in partition.enumerate() {
                replica.name = format!("{}.{number}", service.name);
                replica.service = ServiceIx::new(position);
                replica.move_cost = of.cost;
                replica.role = match (service.is_partition, number) {
                    (false, _) => Role::Instance,
                    (true, 0) => Role::Primary,
                    (true, _) => Role::Secondary,
                };
            }
        }
    }

    /// Places, checks the answer, and makes it the today of what comes next.
    fn place(&mut self) -> Outcome<String> {
        let cluster = self.cluster()?;
        let found = search(&cluster, &Limits::rounds(10));
        let value = found.value.total;
        let violations = audit(&cluster, &found.assignment);
        assert_eq!(found.violations, violations, "the answer says what the audit says");
        let again = search(&cluster, &Limits::rounds(10));
        assert_eq!(found.assignment, again.assignment, "the same rounds give the same answer");
        let is_valid = violations.is_empty();
        assert!(!is_valid || value >= found.bound - 1e-9, "{value} is below {}", found.bound);
        let least = least(&cluster, is_valid.then_some(value));
        if let Least::Value(least) = least {
            assert!(least >= found.bound - 1e-9, "{least} is possible, below {}", found.bound);
        }

        self.moved.clear();
        let mut replicas = self.services.iter_mut().flat_map(|service| {
            let name = &service.name;
            service.replicas.iter_mut().map(move |replica| (name, replica))
        });
        for node in &found.assignment {
            let (name, replica) = replicas.next().expect("a node for each replica");
            let node = node.map(|node: NodeIx| cluster.nodes[node.ix()].name.clone());
            if node.is_some() && replica.node.is_some() && replica.node != node {
                *self.moved.entry(name.clone()).or_default() += 1;
            }
            replica.node = node;
        }
        let moved: usize = self.moved.values().sum();
        let moves = match moved {
            0 => "nothing moves".to_owned(),
            1 => "1 move".to_owned(),
            moved => format!("{moved} moves"),
        };
        let broken = describe(&cluster, &violations);
        let is_least = if moved > 0 || value > 0.0 { ", the least" } else { "" };
        let value = match self.fragmentation > 0.0 {
            true => format!("{moves}, value {value:.3}"),
            false if moved > 0 => format!("{moves}, cost {value}"),
            false => moves.clone(),
        };
        Ok(match (is_valid, least) {
            (true, Least::Value(least)) if least < found.value.total - 1e-9 => {
                format!("holds: {value}; {least:.3} is possible\n")
            }
            (true, Least::Value(_)) => format!("holds: {value}{is_least}\n"),
            (true, _) => format!("holds: {value}\n"),
            (false, Least::Impossible) => format!("impossible: {moves}\n{broken}"),
            (false, Least::Value(least)) => {
                format!("not found, {least} is possible: {moves}\n{broken}")
            }
            (false, Least::Unknown) => format!("not found: {moves}\n{broken}"),
        })
    }
}

/// Rules that are broken, a line each; replicas without a node by service.
fn describe(cluster: &Cluster, violations: &[Violation]) -> String {
    let mut unplaced: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lines = Vec::new();
    for violation in violations {
        if let Violation::Unplaced { replica } = violation {
            let of = cluster.replicas.iter().find(|of| of.name == *replica);
            let service = of.expect("a replica of the cluster").service;
            *unplaced.entry(&cluster.services[service.ix()].name).or_default() += 1;
        } else {
            lines.push(format!("  {violation}\n"));
        }
    }
    let unplaced =
        unplaced.iter().map(|(name, count)| format!("  {name}: {count} without a node\n"));
    unplaced.chain(lines).collect()
}
