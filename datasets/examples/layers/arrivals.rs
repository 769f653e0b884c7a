//! Requests of months, made of those of three weeks.

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::path::Path;

/// Seconds of a step of the trace, and steps of a day.
pub const STEP: u32 = 300;
pub const STEPS_A_DAY: usize = 288;
/// Steps that repeat: three weeks.
const CYCLE: usize = 21 * STEPS_A_DAY;

/// A request of a virtual machine.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub cores: i64,
    /// Memory in MiB.
    pub memory: i64,
    /// Steps that it lives; 0 ends within its step.
    pub life: u32,
}

/// Cores and memory of a type, with the number of its column.
type Size = (i64, i64);

/// The real arrivals: by step the number of each type, and the lives of each type.
pub struct Trace {
    steps: Vec<Vec<(usize, u32)>>,
    sizes: Vec<Size>,
    lives: Vec<Vec<u32>>,
}

impl Trace {
    /// Reads a folder with `types.csv`, `arrivals_train_5min.csv` and `vms.parquet`.
    pub fn read(folder: &Path) -> Result<Trace, Box<dyn Error>> {
        let (mut names, mut sizes) = (Vec::new(), Vec::new());
        for row in csv::Reader::from_path(folder.join("types.csv"))?.records() {
            let row = row?;
            names.push(row[0].to_owned());
            sizes.push((row[1].parse()?, (row[2].parse::<f64>()? * 1024.0) as i64));
        }
        let mut steps = vec![Vec::new(); CYCLE];
        let mut sheet = csv::Reader::from_path(folder.join("arrivals_train_5min.csv"))?;
        let heads = sheet.headers()?.clone();
        let column = |name: String| {
            heads.iter().position(|head| head == name).ok_or_else(|| format!("no column {name}"))
        };
        let time = column("t_s".to_owned())?;
        let counts: Vec<usize> =
            names.iter().map(|name| column(format!("n_{name}"))).collect::<Result<_, _>>()?;
        for row in sheet.records() {
            let row = row?;
            let at = row[time].parse::<usize>()? / STEP as usize;
            for (of, count) in counts.iter().enumerate() {
                let count: u32 = row[*count].parse()?;
                if count > 0 && at < CYCLE {
                    steps[at].push((of, count));
                }
            }
        }
        let mut trace = Trace { steps, lives: vec![Vec::new(); sizes.len()], sizes };
        trace.add_window(&folder.join("vms.parquet"))?;
        Ok(trace)
    }

    /// Single requests: the first of them fill the rest of the three weeks, all of them say how long a type lives.
    fn add_window(&mut self, file: &Path) -> Result<(), Box<dyn Error>> {
        let mut late: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        for rows in ParquetRecordBatchReaderBuilder::try_new(File::open(file)?)?.build()? {
            let rows = rows?;
            let numbers = |name: &str| -> Result<Vec<f64>, Box<dyn Error>> {
                let column =
                    rows.column_by_name(name).ok_or_else(|| format!("no column {name}"))?;
                let column = super::cast(column).ok_or_else(|| format!("{name} has no numbers"))?;
                Ok(column.as_primitive::<Float64Type>().values().to_vec())
            };
            let (from, life) = (numbers("arrival_s")?, numbers("life_s_synthetic")?);
            let (cores, memory) = (numbers("cores")?, numbers("mem_gb")?);
            for row in 0..rows.num_rows() {
                let size = (cores[row] as i64, (memory[row] * 1024.0) as i64);
                let Some(of) = self.sizes.iter().position(|known| *known == size) else { continue };
                self.lives[of].push(life[row] as u32 / STEP);
                let at = from[row] as usize / STEP as usize;
                if at < CYCLE {
                    *late.entry((at, of)).or_default() += 1;
                }
            }
        }
        for ((at, of), count) in late {
            self.steps[at].push((of, count));
        }
        Ok(())
    }

    /// Requests by step: the three weeks again and again, of which each request comes with the chance of its day, and
    /// lives as long as a random request of its type.
    pub fn requests(
        &self,
        days: usize,
        chance: impl Fn(usize) -> f64,
        seed: u64,
    ) -> Vec<Vec<Request>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut steps = Vec::with_capacity(days * STEPS_A_DAY);
        for step in 0..days * STEPS_A_DAY {
            let chance = chance(step / STEPS_A_DAY);
            let mut requests = Vec::new();
            for (of, count) in &self.steps[step % CYCLE] {
                let (cores, memory) = self.sizes[*of];
                let lives = &self.lives[*of];
                for _ in 0..*count {
                    if lives.is_empty() || rng.random::<f64>() >= chance {
                        continue;
                    }
                    let life = lives[rng.random_range(0..lives.len())];
                    requests.push(Request { cores, memory, life });
                }
            }
            steps.push(requests);
        }
        steps
    }
}
