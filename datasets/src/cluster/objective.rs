//! What a file wants to be minimized.

use super::broken::{Broken, broken};
use placement::{Cluster, Evenness, Failovers, LevelIx, Objective, Soft, Swaps};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// The largest weight that is read.
const MOST: f64 = 1e9;

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ObjectiveOf {
    /// Moves by weight, and failovers to expect because of fragmentation.
    Failovers {
        #[serde(default)]
        fragmentation: f64,
        #[serde(default)]
        levels: Vec<String>,
        /// Cost of an exchange of roles as a share of the primary's move cost.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        swap: f64,
        /// Cost of a deviation of the load by a whole node.
        #[serde(default, skip_serializing_if = "is_zero")]
        balance: f64,
        /// Cost of a node in use.
        #[serde(default, skip_serializing_if = "is_zero")]
        nodes: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        capacity: Option<CapacityOf>,
    },
    /// Even load with few moves.
    Balance {
        /// Weight by metric; a metric that is not named has 1.
        #[serde(default)]
        weights: BTreeMap<String, f64>,
        /// Weight of the cost of moves.
        #[serde(default = "one")]
        moves: f64,
    },
    /// Nodes with a replica.
    FewestNodes {},
}

/// Failovers to expect because of demands in future: SIL eq. 13 and 14, with the defaults of section 7.2.
#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CapacityOf {
    /// Their weight, in failovers: SIL's w_c.
    pub weight: f64,
    /// Number of samples of each replica's demand: SIL's |L|.
    pub samples: usize,
    /// Points in time of a sample, in minutes from now: SIL's O.
    pub horizons_minutes: Vec<u32>,
    /// Chooses the samples.
    pub seed: u64,
}

impl Default for CapacityOf {
    fn default() -> CapacityOf {
        let horizons_minutes = vec![5, 30, 60, 1_000, 5_000];
        CapacityOf { weight: 0.1, samples: 10, horizons_minutes, seed: 1 }
    }
}

impl Default for ObjectiveOf {
    fn default() -> ObjectiveOf {
        ObjectiveOf::Failovers {
            fragmentation: 0.0,
            levels: Vec::new(),
            swap: one(),
            balance: 0.0,
            nodes: 0.0,
            capacity: None,
        }
    }
}

fn one() -> f64 {
    1.0
}

fn is_one(share: &f64) -> bool {
    *share == one()
}

fn is_zero(weight: &f64) -> bool {
    *weight == 0.0
}

impl ObjectiveOf {
    /// What it says of demands in future.
    pub fn capacity(&self) -> Option<&CapacityOf> {
        match self {
            ObjectiveOf::Failovers { capacity, .. } => capacity.as_ref(),
            ObjectiveOf::Balance { .. } | ObjectiveOf::FewestNodes {} => None,
        }
    }

    /// The objective without demands in future, for metrics and levels by name.
    pub fn read(
        &self,
        metrics: &HashMap<&str, usize>,
        levels: &BTreeMap<&str, LevelIx>,
    ) -> Result<Objective, Broken> {
        match self {
            ObjectiveOf::Failovers {
                fragmentation, levels: named, swap, balance, nodes, ..
            } => failovers([*fragmentation, *swap, *balance, *nodes], named, levels),
            ObjectiveOf::Balance { weights, moves } => balance(weights, *moves, metrics),
            ObjectiveOf::FewestNodes {} => Ok(Objective::FewestNodes),
        }
    }
}

impl ObjectiveOf {
    /// The members of a cluster's objective.
    pub fn written(cluster: &Cluster) -> Result<ObjectiveOf, Broken> {
        match &cluster.objective {
            Objective::Failovers(Failovers { futures: Some(_), .. })
            | Objective::Balance(Evenness { futures: Some(_), .. }) => {
                Err(broken("objective", "has drawn demands in future; the format has a history"))
            }
            Objective::Failovers(of) => Ok(ObjectiveOf::Failovers {
                balance: weights_of(of)?.0,
                nodes: weights_of(of)?.1,
                swap: of.swaps.cost,
                fragmentation: of.fragmentation,
                levels: (of.levels.iter())
                    .map(|level| cluster.levels[level.ix()].name.clone())
                    .collect(),
                capacity: None,
            }),
            Objective::Balance(of) => Ok(ObjectiveOf::Balance {
                weights: (cluster.metrics.iter().zip(&of.weights))
                    .map(|(metric, weight)| (metric.name.clone(), *weight))
                    .collect(),
                moves: of.moves,
            }),
            Objective::FewestNodes => Ok(ObjectiveOf::FewestNodes {}),
            Objective::Reassignment(_) => {
                Err(broken("objective", "costs of the challenge have no members in the format"))
            }
        }
    }
}

/// The weights of an even load and of a node in use; other wishes are not written.
fn weights_of(of: &Failovers) -> Result<(f64, f64), Broken> {
    let (mut balance, mut nodes) = (0.0, 0.0);
    for soft in &of.soft {
        match soft {
            Soft::Balance { weight } => balance += weight,
            Soft::Nodes { weight } => nodes += weight,
            Soft::Preferred { .. } | Soft::Spread { .. } => {
                let rule = "has wishes of single groups; the format has those of services";
                return Err(broken("objective", rule));
            }
        }
    }
    Ok((balance, nodes))
}

/// A weight that is not above the limit.
pub fn weight(at: String, weight: f64) -> Result<f64, Broken> {
    match weight {
        0.0..=MOST => Ok(weight),
        _ => Err(broken(at, format!("must be from 0 to {MOST}"))),
    }
}

fn failovers(
    [fragmentation, swap, balance, nodes]: [f64; 4],
    named: &[String],
    levels: &BTreeMap<&str, LevelIx>,
) -> Result<Objective, Broken> {
    let at = "objective.failovers";
    for (member, share) in [("fragmentation", fragmentation), ("swap", swap)] {
        if !(0.0..=1.0).contains(&share) {
            return Err(broken(format!("{at}.{member}"), "must be from 0 to 1"));
        }
    }
    let level = |name: &String| {
        let unknown = || format!("no node has a domain of the level {name:?}");
        levels.get(name.as_str()).copied().ok_or_else(|| broken(format!("{at}.levels"), unknown()))
    };
    let levels = named.iter().map(level).collect::<Result<_, _>>()?;
    // Its partitions are those of the services.
    let swaps = Swaps { cost: swap, partitions: Vec::new() };
    let balance = weight(format!("{at}.balance"), balance)?;
    let nodes = weight(format!("{at}.nodes"), nodes)?;
    let soft = [Soft::Balance { weight: balance }, Soft::Nodes { weight: nodes }];
    let soft = soft.into_iter().zip([balance, nodes]).filter(|(_, weight)| *weight > 0.0);
    let soft = soft.map(|(soft, _)| soft).collect();
    Ok(Objective::Failovers(Failovers {
        fragmentation,
        levels,
        swaps,
        soft,
        ..Failovers::default()
    }))
}

fn balance(
    weights: &BTreeMap<String, f64>,
    moves: f64,
    metrics: &HashMap<&str, usize>,
) -> Result<Objective, Broken> {
    let at = "objective.balance";
    let mut of = Evenness::of(metrics.len());
    for (name, weight) in weights {
        let at = format!("{at}.weights.{name}");
        let Some(metric) = metrics.get(name.as_str()) else {
            return Err(broken(at, "there is no such metric"));
        };
        of.weights[*metric] = self::weight(at, *weight)?;
    }
    of.moves = weight(format!("{at}.moves"), moves)?;
    Ok(Objective::Balance(of))
}

#[cfg(test)]
mod tests {
    use super::ObjectiveOf;
    use placement::Objective;
    use serde_json::json;
    use std::collections::{BTreeMap, HashMap};

    #[test]
    fn weights_of_failovers_are_limited() {
        for (failovers, at) in [
            (json!({"fragmentation": 2.0}), "objective.failovers.fragmentation"),
            (json!({"swap": -0.5}), "objective.failovers.swap"),
            (json!({"balance": 1e10}), "objective.failovers.balance"),
            (json!({"nodes": -1.0}), "objective.failovers.nodes"),
        ] {
            let of: ObjectiveOf = serde_json::from_value(json!({"failovers": failovers}))
                .expect("its members are known");
            let read = of.read(&HashMap::new(), &BTreeMap::new());
            assert_eq!(read.expect_err("it breaks a rule").0, at);
        }
    }

    #[test]
    fn objective_of_balance_has_weights_by_metric() {
        let metrics = HashMap::from([("cpu", 0), ("disk", 1)]);
        let read = |balance: serde_json::Value| {
            let of: ObjectiveOf =
                serde_json::from_value(json!({"balance": balance})).expect("its members are known");
            of.read(&metrics, &BTreeMap::new())
        };
        let of = read(json!({"weights": {"disk": 0.5}})).expect("it is whole");
        let Objective::Balance(of) = &of else { panic!("another objective") };
        assert_eq!((of.weights.as_slice(), of.moves), (&[1.0, 0.5][..], 1.0));
        for (balance, at) in [
            (json!({"weights": {"gpu": 1.0}}), "objective.balance.weights.gpu"),
            (json!({"weights": {"cpu": -1.0}}), "objective.balance.weights.cpu"),
            (json!({"moves": 1e10}), "objective.balance.moves"),
        ] {
            let (found_at, _) = read(balance).expect_err("it breaks a rule");
            assert_eq!(found_at, at);
        }
    }
}
