//! Requests of virtual machines, pods and servers, as the two data sets have them.

use arrow_array::{
    Array, BooleanArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    RecordBatch, UInt8Array, UInt16Array, UInt32Array,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::error::Error;
use std::fs::File;
use std::path::Path;

/// A request of a virtual machine.
#[derive(Clone, Debug)]
pub struct Request {
    /// Requests of one tenant in one step of five minutes share a batch.
    pub batch: u32,
    /// Seconds of the trace at which it starts and ends; `None` ends after the trace.
    pub from: u32,
    /// See `from`.
    pub to: Option<u32>,
    /// Processors.
    pub cores: i64,
    /// Memory in MiB.
    pub memory: i64,
}

/// The requests of `vms.parquet`, in the order of their arrival.
pub fn requests(file: &Path) -> Result<Vec<Request>, Box<dyn Error>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file)?)?.build()?;
    let mut requests = Vec::new();
    for rows in reader {
        let rows = rows?;
        let (batch, from) = (numbers(&rows, "batch")?, numbers(&rows, "arrival_s")?);
        let (cores, memory) = (numbers(&rows, "cores")?, numbers(&rows, "mem_gb")?);
        let (life, censored) = (numbers(&rows, "life_s_synthetic")?, numbers(&rows, "censored")?);
        for row in 0..rows.num_rows() {
            let from = from[row] as u32;
            requests.push(Request {
                batch: batch[row] as u32,
                from,
                to: (censored[row] == 0.0).then_some(from + life[row] as u32),
                cores: cores[row] as i64,
                memory: (memory[row] * 1024.0) as i64,
            });
        }
    }
    Ok(requests)
}

fn numbers(rows: &RecordBatch, name: &str) -> Result<Vec<f64>, Box<dyn Error>> {
    let column = rows.column_by_name(name).ok_or_else(|| format!("no column {name}"))?.as_any();
    macro_rules! of {
        ($($array:ty),+) => {$(
            if let Some(array) = column.downcast_ref::<$array>() {
                return Ok(array.values().iter().map(|value| *value as f64).collect());
            }
        )+};
    }
    of!(
        UInt8Array,
        UInt16Array,
        UInt32Array,
        Int8Array,
        Int16Array,
        Int32Array,
        Int64Array,
        Float32Array,
        Float64Array
    );
    if let Some(array) = column.downcast_ref::<BooleanArray>() {
        return Ok((0..array.len()).map(|row| f64::from(u8::from(array.value(row)))).collect());
    }
    Err(format!("column {name} has no numbers").into())
}

/// Milli-cores, MiB and thousandths of a GPU of each row of `pods.csv` or `servers.csv`.
pub fn amounts(file: &Path, columns: [&str; 3]) -> Result<Vec<[i64; 3]>, Box<dyn Error>> {
    let mut sheet = csv::Reader::from_path(file)?;
    let heads = sheet.headers()?.clone();
    let column = |name: &str| {
        heads.iter().position(|head| head == name).ok_or_else(|| format!("no column {name}"))
    };
    let [cpu, memory, gpu] = columns;
    let (cpu, memory, gpu) = (column(cpu)?, column(memory)?, column(gpu)?);
    let mut rows = Vec::new();
    for row in sheet.records() {
        let row = row?;
        let amount = |at: usize, scale: f64| -> Result<i64, Box<dyn Error>> {
            Ok((row[at].parse::<f64>()? * scale).round() as i64)
        };
        rows.push([amount(cpu, 1000.0)?, amount(memory, 1024.0)?, amount(gpu, 1000.0)?]);
    }
    Ok(rows)
}
