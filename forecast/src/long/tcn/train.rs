//! Training, and the model that it leaves.

use super::Output;
use super::network::{INPUTS, Pass, Shape, WINDOW};
use crate::long::cluster::{Clusters, shape};
use crate::long::daily::{FURTHEST, SHORT, scale};
use crate::long::point::same_weekday;
use crate::long::{Bands, MAX_HORIZON, Method, WEEK};
use crate::random::Random;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How networks are trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// What the outputs describe.
    pub output: Output,
    /// Days ahead, at most [`MAX_HORIZON`].
    pub horizon: usize,
    /// Clusters of similar series, at least 1: a network each.
    pub clusters: usize,
    /// Channels of each layer, at least 1.
    pub channels: usize,
    /// Passes over all examples.
    pub epochs: usize,
    /// Days between two examples of a series, at least 1.
    pub stride: usize,
    /// Where randomness starts: first weights, order of examples, first centre.
    pub seed: u64,
}

impl Training {
    /// What is used unless told otherwise: trained in a few minutes on 40 series of two years.
    pub fn new(output: Output, horizon: usize, seed: u64) -> Training {
        let horizon = horizon.clamp(1, MAX_HORIZON);
        Training { output, horizon, clusters: 3, channels: 16, epochs: 30, stride: 2, seed }
    }
}

/// Examples between two steps of Adam.
const BATCH: usize = 32;
/// The first step size; it falls to 0 as half a cosine.
const RATE: f64 = 3e-3;
/// Share of each weight that a step of size 1 takes away.
const DECAY: f64 = 1e-2;
/// The steepest gradient of a day: one day far off does not outweigh all others.
const STEEPEST: f64 = 30.0;

/// Trained networks, with what is needed to train the same ones again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Model {
    stored: Stored,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stored {
    /// SHA-256 over series and settings, the seed included.
    version: String,
    training: Training,
    clusters: Clusters,
    /// By cluster.
    networks: Vec<Vec<f64>>,
}

/// Why a stored model is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A count that does not fit the settings.
    #[error("the model has {found} {what}; its settings need {needed}")]
    Count {
        /// Of what.
        what: &'static str,
        /// As stored.
        found: usize,
        /// As the settings say.
        needed: usize,
    },
    /// A setting out of its range.
    #[error("the model's {0} is out of range")]
    Setting(&'static str),
    /// A parameter is not a finite number.
    #[error("network {0} of the model has a parameter that is not a finite number")]
    NotFinite(usize),
}

impl TryFrom<Stored> for Model {
    type Error = ModelError;

    fn try_from(stored: Stored) -> Result<Model, ModelError> {
        let training = &stored.training;
        if !(1..=MAX_HORIZON).contains(&training.horizon) {
            return Err(ModelError::Setting("horizon"));
        }
        if !(1..=1_024).contains(&training.channels) {
            return Err(ModelError::Setting("number of channels"));
        }
        let count = |what, found, needed| {
            if found == needed { Ok(()) } else { Err(ModelError::Count { what, found, needed }) }
        };
        count("networks", stored.networks.len(), stored.clusters.count())?;
        let needed = Shape::new(training.channels, training.horizon).parameters();
        for (at, network) in stored.networks.iter().enumerate() {
            count("parameters", network.len(), needed)?;
            if network.iter().any(|parameter| !parameter.is_finite()) {
                return Err(ModelError::NotFinite(at));
            }
        }
        Ok(Model { stored })
    }
}

impl From<Model> for Stored {
    fn from(model: Model) -> Stored {
        model.stored
    }
}

impl Model {
    /// SHA-256 over the series and the settings that it was trained with, as 64 hexadecimal digits.
    pub fn version(&self) -> &str {
        &self.stored.version
    }

    /// The settings that it was trained with.
    pub fn training(&self) -> &Training {
        &self.stored.training
    }

    /// Which of its networks forecasts a history.
    pub fn cluster(&self, history: &[f64]) -> usize {
        self.stored.clusters.of(&shape(history))
    }
}

impl Method for Model {
    fn name(&self) -> String {
        format!("TCN {}", self.stored.training.output.name())
    }

    /// Days past the horizon that was trained have the spread of its last day.
    fn forecast(&self, history: &[f64], horizon: usize, levels: &[f64]) -> Bands {
        let Training { output, horizon: trained, channels, .. } = self.stored.training;
        let network = self.stored.networks.get(self.cluster(history));
        let otherwise = history.last().copied().unwrap_or(0.0);
        let (Some(network), Some(unit)) = (network, scale(history)) else {
            return Bands::constant(levels, horizon, otherwise);
        };
        let shape = Shape::new(channels, trained);
        let mut pass = shape.pass();
        shape.forward(network, &window(history, unit), &mut pass);
        let day = |ahead: usize| {
            let base = same_weekday(history, ahead);
            let at = ahead.min(trained) - 1;
            let (place, width) = (pass.outputs[at], pass.outputs[trained + at]);
            let value = |level: &f64| base + unit * output.quantile(place, width, *level);
            levels.iter().map(value).collect()
        };
        Bands::new(levels, (1..=horizon).map(day).collect(), otherwise)
    }
}

/// What the network sees of a history, oldest day first: the value over the recent level, less 1,
/// and the growth over a week. Days before the history are as its first one.
fn window(history: &[f64], unit: f64) -> Vec<f64> {
    let value = |back: usize| {
        let at = history.len().saturating_sub(back);
        history.get(at).copied().unwrap_or(0.0)
    };
    let mut window = Vec::with_capacity(WINDOW * INPUTS);
    for back in (1..=WINDOW).rev() {
        let growth = (value(back) - value(back + WEEK)) / unit;
        window.push((value(back) / unit - 1.0).clamp(-3.0, 3.0));
        window.push(growth.clamp(-3.0, 3.0));
    }
    window
}

struct Example {
    window: Vec<f64>,
    /// What each day ahead adds to the last same weekday, over the level; as far as is known.
    targets: Vec<f64>,
}

fn examples<'a>(series: &'a [f64], training: &'a Training) -> impl Iterator<Item = Example> + 'a {
    let origins = (SHORT..series.len()).step_by(training.stride.max(1));
    origins.filter_map(|origin| {
        let (known, future) = series.split_at(origin);
        let future = &future[..future.len().min(training.horizon)];
        // What is not used and will not be used teaches nothing.
        let is_used = known[origin - SHORT..].iter().chain(future).any(|value| *value > 0.0);
        let unit = scale(known)?;
        let target = |(at, truth): (usize, &f64)| {
            ((truth - same_weekday(known, at + 1)) / unit).clamp(-FURTHEST, FURTHEST)
        };
        let targets = future.iter().enumerate().map(target).collect();
        is_used.then(|| Example { window: window(known, unit), targets })
    })
}

/// Trains a network for each cluster of series. The same series, settings and seed make the same
/// model. Costs time in proportion to days, channels squared and epochs.
pub fn train(series: &[&[f64]], training: &Training) -> Model {
    let training = Training {
        horizon: training.horizon.clamp(1, MAX_HORIZON),
        channels: training.channels.clamp(1, 1_024),
        ..training.clone()
    };
    let shapes: Vec<Vec<f64>> = series.iter().map(|series| shape(series)).collect();
    let clusters = Clusters::new(&shapes, training.clusters.max(1), training.seed);
    let of: Vec<usize> = shapes.iter().map(|shape| clusters.of(shape)).collect();
    let network = |cluster: usize| {
        let members = series.iter().zip(&of).filter(|(_, of)| **of == cluster);
        let examples = members.flat_map(|(series, _)| examples(series, &training)).collect();
        fit(examples, &training, training.seed.wrapping_add(cluster as u64))
    };
    let networks = (0..clusters.count()).map(network).collect();
    let version = version(series, &training);
    Model { stored: Stored { version, training, clusters, networks } }
}

fn version(series: &[&[f64]], training: &Training) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{training:?}"));
    for series in series {
        hash.update((series.len() as u64).to_le_bytes());
        series.iter().for_each(|value| hash.update(value.to_le_bytes()));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fit(examples: Vec<Example>, training: &Training, seed: u64) -> Vec<f64> {
    let shape = Shape::new(training.channels, training.horizon);
    let mut random = Random::new(seed);
    let mut parameters = shape.start(&mut random);
    let mut pass = shape.pass();
    let mut adam = Adam::new(shape.parameters());
    let mut order: Vec<usize> = (0..examples.len()).collect();
    let steps = training.epochs * examples.len().div_ceil(BATCH);
    let mut step = 0;
    for _ in 0..training.epochs {
        random.shuffle(&mut order);
        for batch in order.chunks(BATCH) {
            let mut gradient = vec![0.0; shape.parameters()];
            for at in batch {
                learn(
                    &shape,
                    training.output,
                    &parameters,
                    &examples[*at],
                    &mut pass,
                    &mut gradient,
                );
            }
            gradient.iter_mut().for_each(|by| *by /= batch.len() as f64);
            let rest = 1.0 - step as f64 / steps as f64;
            adam.step(
                &mut parameters,
                &gradient,
                RATE * 0.5 * (1.0 - (rest * std::f64::consts::PI).cos()),
            );
            step += 1;
        }
    }
    parameters
}

/// Adds the gradient of the mean loss of an example.
fn learn(
    shape: &Shape,
    output: Output,
    parameters: &[f64],
    example: &Example,
    pass: &mut Pass,
    gradient: &mut [f64],
) {
    shape.forward(parameters, &example.window, pass);
    let horizon = pass.outputs.len() / 2;
    let mut by = vec![0.0; pass.outputs.len()];
    let share = 1.0 / example.targets.len() as f64;
    for (day, target) in example.targets.iter().enumerate() {
        let (place, log) = (pass.outputs[day], pass.outputs[horizon + day]);
        let (_, by_place, by_log) = output.loss(*target, place, log);
        by[day] = share * by_place.clamp(-STEEPEST, STEEPEST);
        by[horizon + day] = share * by_log.clamp(-STEEPEST, STEEPEST);
    }
    shape.backward(parameters, &by, pass, gradient);
}

/// Adam with decoupled weight decay (Kingma and Ba, 2015; Loshchilov and Hutter, 2019).
struct Adam {
    mean: Vec<f64>,
    square: Vec<f64>,
    /// What remains of the first values in the two means.
    rest: (f64, f64),
}

impl Adam {
    fn new(parameters: usize) -> Adam {
        Adam { mean: vec![0.0; parameters], square: vec![0.0; parameters], rest: (1.0, 1.0) }
    }

    fn step(&mut self, parameters: &mut [f64], gradient: &[f64], rate: f64) {
        const MEAN: f64 = 0.9;
        const SQUARE: f64 = 0.999;
        self.rest = (self.rest.0 * MEAN, self.rest.1 * SQUARE);
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((parameter, by), (mean, square)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *mean = MEAN * *mean + (1.0 - MEAN) * by;
            *square = SQUARE * *square + (1.0 - SQUARE) * by * by;
            let (mean, square) = (*mean / (1.0 - self.rest.0), *square / (1.0 - self.rest.1));
            *parameter -= rate * (mean / (square.sqrt() + 1e-8) + DECAY * *parameter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growing(slope: f64) -> Vec<f64> {
        let shape = [1.0, 1.1, 1.2, 1.2, 1.1, 0.7, 0.7];
        (0..300).map(|day| (100.0 + slope * f64::from(day)) * shape[day as usize % WEEK]).collect()
    }

    fn quick(seed: u64) -> Training {
        Training { channels: 8, clusters: 1, stride: 1, ..Training::new(Output::Laplace, 14, seed) }
    }

    #[test]
    fn growth_is_learned() {
        let (a, b) = (growing(0.5), growing(1.0));
        let model = train(&[&a[..250], &b[..250]], &quick(1));
        let path = model.forecast(&a[..270], 14, &[0.5]).path(0.5);
        let error = |forecast: &dyn Fn(usize) -> f64| -> f64 {
            (0..14).map(|day| (a[270 + day] - forecast(day)).abs()).sum()
        };
        let naive = error(&|day| same_weekday(&a[..270], day + 1));
        assert!(error(&|day| path[day]) < 0.5 * naive, "{} {naive}", error(&|day| path[day]));
    }

    #[test]
    fn the_seed_decides() {
        let series = growing(0.3);
        let one = train(&[&series], &Training { epochs: 1, ..quick(1) });
        assert_eq!(one, train(&[&series], &Training { epochs: 1, ..quick(1) }));
        let two = train(&[&series], &Training { epochs: 1, ..quick(2) });
        assert_ne!(one.stored.networks, two.stored.networks);
        assert_ne!(one.version(), two.version());
        assert_ne!(one.version(), train(&[&series[1..]], one.training()).version());
    }

    #[test]
    fn a_stored_model_is_checked() {
        let series = growing(0.3);
        let model = train(&[&series], &Training { epochs: 1, ..quick(1) });
        let mut stored = Stored::from(model.clone());
        assert_eq!(Model::try_from(stored.clone()), Ok(model));
        stored.networks[0].pop();
        assert!(matches!(Model::try_from(stored.clone()), Err(ModelError::Count { .. })));
        stored.networks[0].push(f64::NAN);
        assert_eq!(Model::try_from(stored.clone()), Err(ModelError::NotFinite(0)));
        stored.training.horizon = 0;
        assert_eq!(Model::try_from(stored), Err(ModelError::Setting("horizon")));
    }
}
