//! Demands in future, drawn from demands of the past: SIL eq. 13, Monte Carlo.

use crate::cluster::Amount;
use crate::random::Random;

/// A demand over time. It starts again when it has ended.
#[derive(Clone, Debug)]
pub struct Trace {
    metrics: usize,
    /// By step, then metric.
    demand: Vec<Amount>,
    /// The largest demand by metric.
    peak: Vec<Amount>,
}

impl Trace {
    /// A trace of demands by step, then metric; `None` if there is no whole step.
    pub fn new(metrics: usize, demand: Vec<Amount>) -> Option<Trace> {
        let is_whole = metrics > 0 && !demand.is_empty() && demand.len().is_multiple_of(metrics);
        let of_metric = |metric| demand.iter().skip(metric).step_by(metrics).max().copied();
        let peak = is_whole.then(|| (0..metrics).filter_map(of_metric).collect())?;
        Some(Trace { metrics, demand, peak })
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.demand.len() / self.metrics
    }

    /// The demand at a step, by metric.
    pub fn at(&self, step: usize) -> &[Amount] {
        let first = step % self.steps() * self.metrics;
        &self.demand[first..first + self.metrics]
    }

    /// The largest demand by metric, or what it was measured in shares of.
    pub fn peak(&self) -> &[Amount] {
        &self.peak
    }

    /// Measures traces of the same kind in shares of the largest demand that any of them has, so that a
    /// draw among them takes their amounts as they are.
    pub fn share_peak(traces: &mut [Trace]) {
        let Some(first) = traces.first() else { return };
        let of_metric = |metric: usize| traces.iter().filter_map(|of| of.peak.get(metric)).max();
        let peak: Vec<Amount> = (0..first.metrics).filter_map(of_metric).copied().collect();
        for trace in traces {
            trace.peak.clone_from(&peak);
        }
    }
}

/// How demands in future are drawn from past ones: Monte Carlo samples of traces, scaled to a peak. A
/// sample begins where a trace is much like the demand now. SIL eq. 13; its defaults are in section 7.2.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// Weight of failovers because of violations in future, in failovers: SIL's w_c.
    pub weight: f64,
    /// Number of samples: SIL's |L|.
    pub samples: usize,
    /// Steps into the future that a sample has demands of: SIL's O.
    pub ahead: Vec<usize>,
    /// Random instants of traces of which a sample takes the one that is most like now.
    pub candidates: usize,
}

impl Forecast {
    /// Samples of the demand in future of what needs `now` and at most `peak`, by sample, time and metric;
    /// nothing if there is no trace. Traces are scaled from their peak to this one.
    pub fn draw(
        &self,
        traces: &[Trace],
        now: &[Amount],
        peak: &[Amount],
        seed: u64,
    ) -> Vec<Amount> {
        let mut random = Random::new(seed);
        let share = |amounts: &[Amount], peak: &[Amount], metric: usize| {
            amounts[metric] as f64 / peak[metric].max(1) as f64
        };
        let mut samples = Vec::new();
        if traces.is_empty() {
            return samples;
        }
        for _ in 0..self.samples {
            let mut nearest = (f64::INFINITY, 0, 0);
            for _ in 0..self.candidates.max(1) {
                let at = random.below(traces.len());
                let trace = &traces[at];
                let start = random.below(trace.steps());
                let apart = (0..now.len()).map(|metric| {
                    let theirs = share(trace.at(start), trace.peak(), metric);
                    (theirs - share(now, peak, metric)).abs()
                });
                let apart: f64 = apart.sum();
                if apart < nearest.0 {
                    nearest = (apart, at, start);
                }
            }
            let (_, at, start) = nearest;
            let trace = &traces[at];
            for ahead in &self.ahead {
                let then = trace.at(start + ahead);
                samples.extend((0..now.len()).map(|metric| {
                    (share(then, trace.peak(), metric) * peak[metric] as f64).round() as Amount
                }));
            }
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::{Forecast, Trace};

    #[test]
    fn samples_go_on_from_where_a_trace_is_like_now() {
        let rising = Trace::new(2, (0..100).flat_map(|step| [step, 2 * step]).collect());
        let traces = [rising.expect("it is whole")];
        let of = Forecast { weight: 0.1, samples: 20, ahead: vec![0, 5], candidates: 500 };
        // A tenth of the size: each step of the trace is 0.1 here.
        let samples = of.draw(&traces, &[5, 10], &[10, 20], 1);
        assert_eq!(samples.len(), 20 * 2 * 2);
        for sample in samples.chunks(4) {
            let [cpu, memory, cpu_then, memory_then] = sample else { panic!("{sample:?}") };
            assert!((4..=6).contains(cpu) && (8..=12).contains(memory), "{sample:?}");
            assert!((5..=6).contains(cpu_then) && (10..=12).contains(memory_then), "{sample:?}");
        }
        assert_eq!(samples, of.draw(&traces, &[5, 10], &[10, 20], 1));
        assert!(of.draw(&[], &[5, 10], &[10, 20], 1).is_empty());
    }

    #[test]
    fn traces_of_a_kind_keep_their_amounts() {
        let trace = |amount| Trace::new(1, vec![amount; 3]).expect("it is whole");
        let mut traces = [trace(10), trace(40)];
        Trace::share_peak(&mut traces);
        let of = Forecast { weight: 0.1, samples: 30, ahead: vec![1], candidates: 1 };
        let peak = traces[0].peak().to_vec();
        assert_eq!(peak, [40]);
        let samples = of.draw(&traces, &[12], &peak, 1);
        assert_ne!(samples, of.draw(&traces, &[12], &peak, 2));
        assert!(samples.contains(&10) && samples.contains(&40), "{samples:?}");
        assert!(samples.iter().all(|amount| [10, 40].contains(amount)), "{samples:?}");
    }
}
