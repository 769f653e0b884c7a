//! Demands of the past by class, and demands in future drawn from them. SIL eq. 13 and 14.

use super::broken::{Broken, broken};
use super::limits::{MOST, SUM};
use super::objective::CapacityOf;
use super::schema::{HistoryOf, Root, SeriesOf};
use placement::{Amount, Cluster, Forecast, Futures, Trace};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The longest step and the farthest horizon, in minutes: ten years.
const MINUTES: u32 = 5_256_000;
/// The most samples times horizons of a replica.
const DRAWN: usize = 10_000;
/// The most amounts drawn for all replicas: 2 GiB.
const DRAWN_OF_ALL: usize = 1 << 28;
/// Random instants of the past of which a sample takes the one that is most like now: at most this
/// number, and at most one in as many, so that the samples of a short history are not all the same.
const CANDIDATES: usize = 16;

/// Demands of the past.
#[derive(Clone, Debug)]
pub struct History {
    /// Minutes of a step.
    pub step_minutes: u32,
    /// The series of each class.
    pub classes: BTreeMap<String, Vec<Trace>>,
    /// How demands in future are drawn from them: as the objective says, or by default.
    pub forecast: Forecast,
}

impl History {
    pub(super) fn read(
        of: &HistoryOf,
        metrics: &HashMap<&str, usize>,
        capacity: Option<&CapacityOf>,
    ) -> Result<History, Broken> {
        if !(1..=MINUTES).contains(&of.step_minutes) {
            let rule = format!("must be from 1 to {MINUTES}");
            return Err(broken("history.step_minutes", rule));
        }
        let mut classes: BTreeMap<String, Vec<Trace>> = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (position, series) in of.series.iter().enumerate() {
            let at = format!("history.series[{position}]");
            for (member, text) in [("class", &series.class), ("name", &series.name)] {
                if text.is_empty() {
                    return Err(broken(format!("{at}.{member}"), "is empty"));
                }
            }
            if names.insert((&series.class, &series.name), ()).is_some() {
                let rule = format!("{:?} stands twice in its class", series.name);
                return Err(broken(format!("{at}.name"), rule));
            }
            let trace = trace(&at, series, metrics)?;
            classes.entry(series.class.clone()).or_default().push(trace);
        }
        let forecast = match capacity {
            Some(capacity) => forecast(capacity, of.step_minutes)?,
            None => forecast(&CapacityOf::default(), of.step_minutes)?,
        };
        Ok(History { step_minutes: of.step_minutes, classes, forecast })
    }

    /// How samples of a class are drawn.
    fn forecast_of(&self, traces: &[Trace]) -> Forecast {
        let instants: usize = traces.iter().map(Trace::steps).sum();
        let candidates = (instants / CANDIDATES).clamp(1, CANDIDATES);
        Forecast { candidates, ..self.forecast.clone() }
    }

    /// The demands in future of all replicas. Those of a partition are drawn with the same seed, so that
    /// those of a class rise and fall together; those without a class need what they need now.
    pub(super) fn futures(
        &self,
        root: &Root,
        seed: u64,
        cluster: &Cluster,
    ) -> Result<Futures, Broken> {
        let Forecast { weight, samples, ref ahead, .. } = self.forecast;
        let width = samples * ahead.len();
        // A replica's demand may go to that of any other of its class: nothing is scaled.
        let mut classes = self.classes.clone();
        classes.values_mut().for_each(|traces| Trace::share_peak(traces));
        let metrics = cluster.metrics.len();
        let all = width.saturating_mul(metrics).saturating_mul(cluster.replicas.len());
        if all > DRAWN_OF_ALL {
            let rule = format!(
                "{} replicas of {metrics} metrics have {all} demands in future; at most {DRAWN_OF_ALL} \
                 are drawn",
                cluster.replicas.len()
            );
            return Err(broken("objective.failovers.capacity", rule));
        }
        let mut demand: Vec<Arc<[Amount]>> = Vec::with_capacity(cluster.replicas.len());
        let mut highest = vec![0_i128; metrics];
        for service in &root.services {
            for (number, partition) in service.partitions.iter().enumerate() {
                let seed = seed_of(seed, &service.name, number);
                for replica in partition {
                    let now = &cluster.replicas[demand.len()].demand;
                    let traces = replica.class.as_ref().and_then(|class| classes.get(class));
                    let peak = traces.and_then(|traces| traces.first()).map(Trace::peak);
                    for (metric, highest) in highest.iter_mut().enumerate() {
                        *highest += i128::from(peak.map_or(now[metric], |peak| peak[metric]));
                    }
                    demand.push(match (traces, peak) {
                        (Some(traces), Some(peak)) => {
                            self.forecast_of(traces).draw(traces, now, peak, seed).into()
                        }
                        _ => now.iter().copied().cycle().take(width * metrics).collect(),
                    });
                }
            }
        }
        if highest.iter().any(|sum| *sum > i128::from(SUM)) {
            let rule = format!("demands in future may add up to more than {SUM}");
            return Err(broken("objective.failovers.capacity", rule));
        }
        Ok(Futures { weight, samples, demand })
    }
}

/// How demands in future are drawn; horizons are rounded up to whole steps.
fn forecast(of: &CapacityOf, step_minutes: u32) -> Result<Forecast, Broken> {
    let at = |member: &str| format!("objective.failovers.capacity.{member}");
    if !(0.0..=1.0).contains(&of.weight) {
        return Err(broken(at("weight"), "must be from 0 to 1"));
    }
    if of.horizons_minutes.is_empty() {
        return Err(broken(at("horizons_minutes"), "names no horizon"));
    }
    if let Some(position) = of.horizons_minutes.iter().position(|of| !(1..=MINUTES).contains(of)) {
        let rule = format!("must be from 1 to {MINUTES}");
        return Err(broken(at(&format!("horizons_minutes[{position}]")), rule));
    }
    let most = DRAWN / of.horizons_minutes.len().min(DRAWN);
    if !(1..=most).contains(&of.samples) {
        let rule =
            format!("must be from 1 to {most}, so that there are at most {DRAWN} of all horizons");
        return Err(broken(at("samples"), rule));
    }
    let horizons = of.horizons_minutes.iter();
    Ok(Forecast {
        weight: of.weight,
        samples: of.samples,
        ahead: horizons.map(|minutes| minutes.div_ceil(step_minutes) as usize).collect(),
        candidates: CANDIDATES,
    })
}

/// A series' demands by step, then metric; it needs nothing of a metric that it does not name.
fn trace(at: &str, series: &SeriesOf, metrics: &HashMap<&str, usize>) -> Result<Trace, Broken> {
    let empty = format!("{at}.demand");
    let at = |metric: &str| format!("{at}.demand.{metric}");
    let steps = series.demand.values().map(Vec::len).max().unwrap_or(0);
    let mut demand = vec![0; steps * metrics.len()];
    for (name, amounts) in &series.demand {
        let Some(metric) = metrics.get(name.as_str()) else {
            return Err(broken(at(name), "there is no such metric"));
        };
        if amounts.len() != steps {
            let rule = format!("has {} demands where another metric has {steps}", amounts.len());
            return Err(broken(at(name), rule));
        }
        for (step, amount) in amounts.iter().enumerate() {
            if !(0..=MOST).contains(amount) {
                let rule = format!("is {amount} at step {step}; it must be from 0 to {MOST}");
                return Err(broken(at(name), rule));
            }
            demand[step * metrics.len() + metric] = *amount;
        }
    }
    Trace::new(metrics.len(), demand).ok_or_else(|| broken(empty, "has no demand"))
}

/// The seed of a partition: the same for its name, in any cluster (FNV-1a, 64 bits).
fn seed_of(of: u64, service: &str, partition: usize) -> u64 {
    let bytes = service.bytes().chain(partition.to_le_bytes()).chain(of.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use crate::cluster::{convert, read, read_with_history};
    use placement::{Cluster, Futures, Objective};
    use serde_json::{Value, json};
    use std::fs;

    /// The CPU of class `web` rises from what it is to 90 in an hour, then falls; that of `flat` never
    /// changes.
    fn file() -> Value {
        let replica = |name: &str, class: Option<&str>, cpu: i64| json!({"name": name, "role": "instance", "class": class, "demand": {"cpu": cpu}});
        let mut file = json!({
            "format": "ras-cluster/1",
            "name": "shop",
            "metrics": [{"name": "cpu", "transient": false}, {"name": "memory", "transient": false}],
            "nodes": [{"name": "n1", "state": "up", "capacity": {"cpu": 100}}],
            "services": [
                {"name": "web", "move_cost": 1.0, "partitions": [
                    [replica("w0", Some("web"), 10), replica("w1", Some("web"), 10)],
                    [replica("w2", Some("web"), 60)]]},
                {"name": "db", "move_cost": 1.0, "partitions": [
                    [replica("d0", Some("flat"), 7), replica("d1", None, 5)]]}
            ],
            "history": {"step_minutes": 10, "series": [
                {"class": "web", "name": "a", "demand": {"cpu": [10, 20, 30, 40, 50, 60, 90, 50], "memory": [1, 1, 1, 1, 1, 1, 1, 1]}},
                {"class": "web", "name": "b", "demand": {"cpu": [15, 25, 20]}},
                {"class": "flat", "name": "a", "demand": {"cpu": [7, 7, 7]}}
            ]},
            "objective": {"failovers": {"fragmentation": 0.0, "levels": [],
                "capacity": {"weight": 0.2, "samples": 4, "horizons_minutes": [5, 10, 25], "seed": 3}}}
        });
        let bare = file.pointer_mut("/services/1/partitions/0/1").and_then(Value::as_object_mut);
        bare.expect("a replica").remove("class");
        file
    }

    fn read_json(file: &Value) -> Result<Cluster, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().join("a.json");
        fs::write(&name, file.to_string()).expect("writes");
        read(&name).map_err(|error| error.to_string().replace(&format!("{}: ", name.display()), ""))
    }

    fn futures(file: &Value) -> Futures {
        let cluster = read_json(file).expect("it is whole");
        let Objective::Failovers(of) = cluster.objective else { panic!("another objective") };
        of.futures.expect("demands in future")
    }

    #[test]
    fn demands_in_future_are_drawn_by_class() {
        let of = futures(&file());
        assert_eq!((of.weight, of.samples), (0.2, 4));
        // Samples times horizons times metrics.
        assert!(of.demand.iter().all(|demand| demand.len() == 4 * 3 * 2));
        let [w0, w1, _, d0, d1] = of.demand.as_slice() else { panic!("other replicas") };
        assert_eq!(w0, w1, "replicas of a partition rise together");
        for (demand, now) in [(d0, 7), (d1, 5)] {
            assert!(demand.chunks(2).all(|it| it == [now, 0]), "{demand:?}");
        }
        // Both first horizons are the next step.
        assert!(w0.chunks(6).all(|sample| sample[0] == sample[2]), "{w0:?}");
        assert!(w0.chunks(2).all(|it| [10, 15, 20, 25, 30, 40, 50, 60, 90].contains(&it[0])));
    }

    #[test]
    fn the_same_seed_draws_the_same_in_any_order_of_services() {
        let mut other = file();
        let first = futures(&other);
        assert_eq!(first.demand, futures(&other).demand);
        let mut services = other["services"].as_array().expect("services").clone();
        services.reverse();
        other["services"] = json!(services);
        assert_eq!(futures(&other).demand[2..], first.demand[..3]);
        other = file();
        other["objective"]["failovers"]["capacity"]["seed"] = json!(4);
        assert_ne!(futures(&other).demand, first.demand);
        other["objective"]["failovers"]["capacity"] = json!({});
        let defaults = futures(&other);
        assert_eq!((defaults.weight, defaults.samples), (0.1, 10));
        assert_eq!(defaults.demand[0].len(), 10 * 5 * 2);
    }

    #[test]
    fn tables_tell_the_same_history() {
        let folder = tempfile::tempdir().expect("a folder");
        let [json, tables, back] =
            ["a.json", "tables", "b.json"].map(|name| folder.path().join(name));
        fs::write(&json, file().to_string()).expect("writes");
        convert(&json, &tables).expect("is a cluster");
        convert(&tables, &back).expect("is a cluster");
        let again: Value =
            serde_json::from_slice(&fs::read(&back).expect("is there")).expect("JSON");
        assert_eq!(again, file());
        let (_, history) = read_with_history(&tables).expect("is a cluster");
        let history = history.expect("a history");
        assert_eq!((history.step_minutes, history.forecast.ahead), (10, vec![1, 1, 3]));
        let web = &history.classes["web"];
        assert_eq!((web.len(), web[1].at(2), web[1].peak()), (2, &[20, 0][..], &[25, 0][..]));

        fs::write(tables.join("cluster.json"), {
            let mut file = file();
            for member in ["nodes", "services", "history"] {
                file.as_object_mut().expect("members").remove(member);
            }
            file.to_string()
        })
        .expect("writes");
        let error = read(&tables).expect_err("it has no step").to_string();
        assert!(
            error.ends_with("history: is missing: history.parquet needs step_minutes"),
            "{error}"
        );
    }

    #[test]
    fn histories_that_break_a_rule_are_refused() {
        let capacity = "objective.failovers.capacity";
        for (pointer, value, said) in [
            ("/history/step_minutes", json!(0), "history.step_minutes: must be from 1"),
            (
                "/history/series/1/name",
                json!("a"),
                "history.series[1].name: \"a\" stands twice in its class",
            ),
            ("/history/series/1/class", json!(""), "history.series[1].class: is empty"),
            ("/history/series/1/demand", json!({}), "history.series[1].demand: has no demand"),
            (
                "/history/series/1/demand",
                json!({"gpu": [1]}),
                "history.series[1].demand.gpu: there is no such metric",
            ),
            (
                "/history/series/0/demand/memory",
                json!([1]),
                "history.series[0].demand.memory: has 1 demands where another metric has 8",
            ),
            (
                "/history/series/0/demand/cpu/3",
                json!(-4),
                "history.series[0].demand.cpu: is -4 at step 3; it must be from 0",
            ),
            (
                "/services/0/partitions/0/1/class",
                json!("api"),
                "services[0].partitions[0][1].class: the history has no series",
            ),
            (
                "/objective/failovers/capacity/weight",
                json!(1.5),
                &format!("{capacity}.weight: must be from 0 to 1"),
            ),
            (
                "/objective/failovers/capacity/samples",
                json!(0),
                &format!("{capacity}.samples: must be from 1 to 3333"),
            ),
            (
                "/objective/failovers/capacity/horizons_minutes",
                json!([]),
                &format!("{capacity}.horizons_minutes: names no horizon"),
            ),
            (
                "/objective/failovers/capacity/horizons_minutes/1",
                json!(0),
                &format!("{capacity}.horizons_minutes[1]: must be from 1"),
            ),
        ] {
            let mut file = file();
            *file.pointer_mut(pointer).expect("a member") = value;
            let error = read_json(&file).expect_err("it breaks a rule");
            assert!(error.starts_with(said), "{error}");
        }
        let mut file = file();
        file.as_object_mut().expect("members").remove("history");
        for service in file["services"].as_array_mut().expect("services") {
            for partition in service["partitions"].as_array_mut().expect("partitions") {
                for replica in partition.as_array_mut().expect("replicas") {
                    replica.as_object_mut().expect("members").remove("class");
                }
            }
        }
        let error = read_json(&file).expect_err("there is no history");
        assert_eq!(error, format!("{capacity}: needs a history"));
    }
}
