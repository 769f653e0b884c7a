//! Dilated causal convolutions with residual connections, and their gradients.
//!
//! A temporal convolutional network (Bai, Kolter and Koltun, 2018) with kernels 7, 2, 2, 2 and
//! dilations 1, 7, 14, 28: the first layer sees a week, the last one eight. Only its output at the
//! last day is used, and with these dilations that output depends on each earlier position once.
//! So a layer is evaluated where it is needed: each output from a block of inputs of its own.

use crate::random::Random;

/// Numbers of a day that the network sees.
pub const INPUTS: usize = 2;
/// Kernel sizes; the dilation of a layer is the product of those before it.
pub const KERNELS: [usize; 4] = [7, 2, 2, 2];
/// Days that the network sees: the product of the kernels.
pub const WINDOW: usize = 56;

/// A linear map inside the list of parameters: weights by input, then output; then biases.
#[derive(Clone, Copy, Debug)]
struct Linear {
    at: usize,
    inputs: usize,
    outputs: usize,
}

impl Linear {
    fn len(self) -> usize {
        (self.inputs + 1) * self.outputs
    }

    fn forward(self, parameters: &[f64], x: &[f64], y: &mut [f64]) {
        let own = &parameters[self.at..self.at + self.len()];
        let (weights, biases) = own.split_at(self.inputs * self.outputs);
        y.copy_from_slice(biases);
        for (x, row) in x.iter().zip(weights.chunks_exact(self.outputs)) {
            for (y, weight) in y.iter_mut().zip(row) {
                *y += x * weight;
            }
        }
    }

    /// Adds the gradients by its parameters, and those by its inputs to `by_x`.
    fn backward(
        self,
        parameters: &[f64],
        x: &[f64],
        by_y: &[f64],
        by_x: &mut [f64],
        gradient: &mut [f64],
    ) {
        let weights = &parameters[self.at..self.at + self.inputs * self.outputs];
        let own = &mut gradient[self.at..self.at + self.len()];
        let (by_weights, by_biases) = own.split_at_mut(self.inputs * self.outputs);
        for (by, by_y) in by_biases.iter_mut().zip(by_y) {
            *by += by_y;
        }
        let rows = weights.chunks_exact(self.outputs);
        let by_rows = by_weights.chunks_exact_mut(self.outputs);
        for (((x, by_x), row), by_row) in x.iter().zip(by_x).zip(rows).zip(by_rows) {
            let mut sum = 0.0;
            for ((by_y, weight), by) in by_y.iter().zip(row).zip(by_row) {
                *by += x * by_y;
                sum += weight * by_y;
            }
            *by_x += sum;
        }
    }
}

/// The sizes of a network.
#[derive(Clone, Debug)]
pub struct Shape {
    layers: Vec<Linear>,
    head: Linear,
    channels: usize,
}

/// What a forward pass computed, needed for the gradients, and room for them.
pub struct Pass {
    /// By layer: its inputs, then for each position its channels. The last one is the head's input.
    values: Vec<Vec<f64>>,
    /// By layer: the convolution before its rectifier.
    raw: Vec<Vec<f64>>,
    by_values: Vec<Vec<f64>>,
    by_raw: Vec<f64>,
    /// Places of all days, then log widths.
    pub outputs: Vec<f64>,
}

impl Shape {
    /// A network of `channels` channels for `horizon` days.
    pub fn new(channels: usize, horizon: usize) -> Shape {
        let mut at = 0;
        let mut linear = |inputs, outputs| {
            let linear = Linear { at, inputs, outputs };
            at += linear.len();
            linear
        };
        let mut width = INPUTS;
        let layers = KERNELS.map(|kernel| {
            let layer = linear(kernel * width, channels);
            width = channels;
            layer
        });
        let head = linear(channels, 2 * horizon);
        Shape { layers: layers.to_vec(), head, channels }
    }

    /// How many parameters it has.
    pub fn parameters(&self) -> usize {
        self.head.at + self.head.len()
    }

    /// Parameters to start from: uniform by the root of the inputs (Glorot). The head starts near 0
    /// with widths of e^-2.
    pub fn start(&self, random: &mut Random) -> Vec<f64> {
        let mut parameters = vec![0.0; self.parameters()];
        for (linear, size) in
            self.layers.iter().map(|layer| (layer, 1.0)).chain([(&self.head, 0.1)])
        {
            let reach = size * (3.0 / linear.inputs as f64).sqrt();
            for weight in &mut parameters[linear.at..linear.at + linear.inputs * linear.outputs] {
                *weight = reach * (2.0 * random.unit() - 1.0);
            }
        }
        let widths = self.parameters() - self.head.outputs / 2;
        parameters[widths..].fill(-2.0);
        parameters
    }

    /// Room for a pass.
    pub fn pass(&self) -> Pass {
        let mut positions = WINDOW;
        let mut values = vec![vec![0.0; WINDOW * INPUTS]];
        let mut raw = Vec::new();
        for kernel in KERNELS {
            positions /= kernel;
            raw.push(vec![0.0; positions * self.channels]);
            values.push(vec![0.0; positions * self.channels]);
        }
        let by_raw = vec![0.0; self.channels];
        let outputs = vec![0.0; self.head.outputs];
        Pass { by_values: values.clone(), values, raw, by_raw, outputs }
    }

    /// Outputs of a window: `WINDOW` days, the oldest first, of [`INPUTS`] numbers each.
    pub fn forward(&self, parameters: &[f64], window: &[f64], pass: &mut Pass) {
        pass.values[0].copy_from_slice(window);
        for (at, layer) in self.layers.iter().enumerate() {
            let (before, after) = pass.values.split_at_mut(at + 1);
            let blocks = before[at].chunks_exact(layer.inputs);
            let raws = pass.raw[at].chunks_exact_mut(self.channels);
            let outs = after[0].chunks_exact_mut(self.channels);
            for ((block, raw), out) in blocks.zip(raws).zip(outs) {
                layer.forward(parameters, block, raw);
                // The residual connection: the last position of the block. The first layer has
                // inputs of another width, so it has none.
                let skip = if at == 0 { None } else { block.rchunks_exact(self.channels).next() };
                for (channel, (out, raw)) in out.iter_mut().zip(raw).enumerate() {
                    *out = raw.max(0.0) + skip.map_or(0.0, |skip| skip[channel]);
                }
            }
        }
        self.head.forward(parameters, &pass.values[KERNELS.len()], &mut pass.outputs);
    }

    /// Adds to `gradient` the gradient of a loss, given its gradient by the outputs of the last
    /// [`Shape::forward`].
    pub fn backward(
        &self,
        parameters: &[f64],
        by_outputs: &[f64],
        pass: &mut Pass,
        gradient: &mut [f64],
    ) {
        let Pass { values, raw, by_values, by_raw, .. } = pass;
        by_values.iter_mut().for_each(|values| values.fill(0.0));
        let last = KERNELS.len();
        self.head.backward(parameters, &values[last], by_outputs, &mut by_values[last], gradient);
        for (at, layer) in self.layers.iter().enumerate().rev() {
            let (before, after) = by_values.split_at_mut(at + 1);
            let blocks = values[at].chunks_exact(layer.inputs);
            let by_blocks = before[at].chunks_exact_mut(layer.inputs);
            let raws = raw[at].chunks_exact(self.channels);
            let by_outs = after[0].chunks_exact(self.channels);
            for (((block, by_block), raw), by_out) in blocks.zip(by_blocks).zip(raws).zip(by_outs) {
                for ((by_raw, raw), by_out) in by_raw.iter_mut().zip(raw).zip(by_out) {
                    *by_raw = if *raw > 0.0 { *by_out } else { 0.0 };
                }
                layer.backward(parameters, block, by_raw, by_block, gradient);
                if at > 0 {
                    let start = by_block.len() - self.channels;
                    for (by, by_out) in by_block[start..].iter_mut().zip(by_out) {
                        *by += by_out;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::long::tcn::Output;

    /// A convolution by its definition, at every day, with the dilation of its layer: what `forward`
    /// leaves out because the last day does not need it.
    fn by_definition(shape: &Shape, parameters: &[f64], window: &[f64]) -> Vec<f64> {
        let mut days: Vec<Vec<f64>> = window.chunks(INPUTS).map(<[f64]>::to_vec).collect();
        let mut dilation = 1;
        for (layer, kernel) in shape.layers.iter().zip(KERNELS) {
            let weight =
                |input: usize, output: usize| parameters[layer.at + input * layer.outputs + output];
            let width = days[0].len();
            let mut next = vec![vec![0.0; shape.channels]; days.len()];
            for day in 0..days.len() {
                for (channel, out) in next[day].iter_mut().enumerate() {
                    let mut sum = weight(layer.inputs, channel);
                    for tap in 0..kernel {
                        let back = (kernel - 1 - tap) * dilation;
                        let Some(earlier) = day.checked_sub(back) else { continue };
                        for (input, value) in days[earlier].iter().enumerate() {
                            sum += weight(tap * width + input, channel) * value;
                        }
                    }
                    let skip = if width == shape.channels { days[day][channel] } else { 0.0 };
                    *out = sum.max(0.0) + skip;
                }
            }
            dilation *= kernel;
            days = next;
        }
        let last = &days[days.len() - 1];
        let head = |output: usize| {
            let weight =
                |input: usize| parameters[shape.head.at + input * shape.head.outputs + output];
            weight(shape.channels) + (0..shape.channels).map(|i| weight(i) * last[i]).sum::<f64>()
        };
        (0..shape.head.outputs).map(head).collect()
    }

    fn example() -> (Shape, Vec<f64>, Vec<f64>) {
        let shape = Shape::new(5, 3);
        let mut random = Random::new(5);
        let mut parameters = shape.start(&mut random);
        parameters.iter_mut().for_each(|p| *p += 0.2 * (random.unit() - 0.5));
        let window = (0..WINDOW * INPUTS).map(|_| random.unit() - 0.5).collect();
        (shape, parameters, window)
    }

    #[test]
    fn the_last_day_is_that_of_the_whole_convolution() {
        let (shape, parameters, window) = example();
        let mut pass = shape.pass();
        shape.forward(&parameters, &window, &mut pass);
        let whole = by_definition(&shape, &parameters, &window);
        for (fast, whole) in pass.outputs.iter().zip(&whole) {
            assert!((fast - whole).abs() < 1e-12, "{fast} {whole}");
        }
    }

    #[test]
    fn gradients_agree_with_differences() {
        let (shape, mut parameters, window) = example();
        let truths = [0.3, -0.2, 0.1];
        for output in Output::ALL {
            let mut pass = shape.pass();
            let mut loss = |parameters: &[f64], by: &mut [f64], gradient: Option<&mut [f64]>| {
                shape.forward(parameters, &window, &mut pass);
                let mut sum = 0.0;
                for (day, truth) in truths.iter().enumerate() {
                    let (place, log) = (pass.outputs[day], pass.outputs[3 + day]);
                    let (loss, by_place, by_log) = output.loss(*truth, place, log);
                    sum += loss;
                    (by[day], by[3 + day]) = (by_place, by_log);
                }
                if let Some(gradient) = gradient {
                    shape.backward(parameters, by, &mut pass, gradient);
                }
                sum
            };
            let mut by = [0.0; 6];
            let mut gradient = vec![0.0; shape.parameters()];
            loss(&parameters, &mut by, Some(&mut gradient));
            assert!(gradient.iter().filter(|g| g.abs() > 1e-6).count() > shape.parameters() / 3);
            for at in 0..shape.parameters() {
                let (kept, step) = (parameters[at], 1e-6);
                parameters[at] = kept + step;
                let above = loss(&parameters, &mut by, None);
                parameters[at] = kept - step;
                let below = loss(&parameters, &mut by, None);
                parameters[at] = kept;
                let slope = (above - below) / (2.0 * step);
                let near = (slope - gradient[at]).abs() < 1e-4 * (1.0 + slope.abs());
                assert!(near, "{output:?} parameter {at}: {slope} {}", gradient[at]);
            }
        }
    }
}
