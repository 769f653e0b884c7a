//! The protocol between parent and worker: one problem, one answer, little-endian.
//!
//! An array is its length (u64) and its elements; text is an array of bytes; an option is a byte
//! and, after 1, the value. Each message begins and ends with a magic number, so that noise in the
//! pipe and a worker that died half-way are detected. Both ends are the same binary, so the format
//! is private and has no version.

use async_solver::LpFailure;
use async_solver::backend::{LpProblem, LpRequest, LpSolution};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::time::Duration;

const PROBLEM: [u8; 8] = *b"ras-lp/1";
const ANSWER: [u8; 8] = *b"ras-lpA1";
const END: [u8; 8] = *b"lp-ends.";

/// Maximum length of an array: HiGHS indexes with 31 bits.
const LENGTH_MAX: u64 = 1 << 31;
/// Bytes converted at once: large enough for the pipe, small enough for the CPU cache.
const CHUNK_BYTES: usize = 1 << 15;

/// The worker's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The solution of HiGHS.
    pub outcome: std::result::Result<LpSolution, LpFailure>,
    /// Peak resident memory of the worker, in bytes; 0 if unknown.
    pub peak_memory: u64,
}

/// Sends a problem.
///
/// # Errors
/// If writing to the pipe fails.
pub fn write_problem(out: &mut impl Write, problem: &LpProblem, request: &LpRequest) -> Result<()> {
    // Destructured, so that a new field is a compile error here instead of a lost value.
    let LpProblem {
        cost,
        col_lower,
        col_upper,
        integer,
        row_lower,
        row_upper,
        starts,
        indices,
        values,
    } = problem;
    let LpRequest { solver, time_limit, threads, seed, start, mip_gap, mip_nodes } = request;
    out.write_all(&PROBLEM)?;
    write_text(out, solver)?;
    write_option(out, time_limit.as_ref(), |out, limit| write_f64(out, limit.as_secs_f64()))?;
    write_u64(out, u64::from(*threads))?;
    write_u64(out, u64::from(*seed))?;
    write_option(out, start.as_ref(), |out, start| write_floats(out, start))?;
    write_f64(out, *mip_gap)?;
    write_u64(out, u64::from(*mip_nodes))?;
    for array in [cost, col_lower, col_upper, row_lower, row_upper, values] {
        write_floats(out, array)?;
    }
    for array in [starts, indices] {
        write_array(out, array, |&index| index.to_le_bytes())?;
    }
    write_array(out, integer, |&integer| [u8::from(integer)])?;
    out.write_all(&END)
}

/// Receives a problem and checks that the lengths of its arrays are consistent: HiGHS does not
/// check them.
///
/// # Errors
/// If the pipe ends early or has anything else.
pub fn read_problem(input: &mut impl Read) -> Result<(LpProblem, LpRequest)> {
    expect(input, &PROBLEM, "the message does not begin with a problem's magic number")?;
    let request = LpRequest {
        solver: read_text(input)?,
        time_limit: read_option(input, |input| {
            Duration::try_from_secs_f64(read_f64(input)?)
                .map_err(|_| garbage("the time limit is not a duration"))
        })?,
        threads: narrow(read_u64(input)?)?,
        seed: narrow(read_u64(input)?)?,
        start: read_option(input, read_floats)?,
        mip_gap: read_f64(input)?,
        mip_nodes: narrow(read_u64(input)?)?,
    };
    let problem = LpProblem {
        cost: read_floats(input)?,
        col_lower: read_floats(input)?,
        col_upper: read_floats(input)?,
        row_lower: read_floats(input)?,
        row_upper: read_floats(input)?,
        values: read_floats(input)?,
        starts: read_array(input, u32::from_le_bytes)?,
        indices: read_array(input, u32::from_le_bytes)?,
        integer: read_array(input, |[byte]| byte != 0)?,
    };
    expect(input, &END, "the message does not end with a problem's magic number")?;
    check_shape(&problem)?;
    Ok((problem, request))
}

fn check_shape(problem: &LpProblem) -> Result<()> {
    let columns = problem.cost.len();
    let rows = problem.row_lower.len();
    let entries = problem.values.len();
    let starts = &problem.starts;
    let fits = problem.col_lower.len() == columns
        && problem.col_upper.len() == columns
        && (problem.integer.is_empty() || problem.integer.len() == columns)
        && problem.row_upper.len() == rows
        && problem.indices.len() == entries
        && problem.indices.iter().all(|&row| (row as usize) < rows)
        && starts.len() == columns + 1
        && starts.windows(2).all(|pair| pair[0] <= pair[1])
        && starts.first() == Some(&0)
        && starts.last().is_some_and(|&last| last as usize == entries);
    if fits { Ok(()) } else { Err(garbage("the arrays of the problem have inconsistent lengths")) }
}

/// Sends an answer.
///
/// # Errors
/// If writing to the pipe fails.
pub fn write_answer(out: &mut impl Write, answer: &Answer) -> Result<()> {
    out.write_all(&ANSWER)?;
    write_u64(out, answer.peak_memory)?;
    match &answer.outcome {
        Ok(solution) => {
            let LpSolution { optimal, objective, dual_bound, columns, row_duals, seconds } =
                solution;
            out.write_all(&[0, u8::from(*optimal)])?;
            for number in [objective, dual_bound, seconds] {
                write_f64(out, *number)?;
            }
            write_floats(out, columns)?;
            write_floats(out, row_duals)?;
        }
        Err(LpFailure::Status(status)) => {
            out.write_all(&[1])?;
            write_text(out, status)?;
        }
        Err(LpFailure::Process(detail)) => {
            out.write_all(&[2])?;
            write_text(out, detail)?;
        }
    }
    out.write_all(&END)
}

/// Receives an answer.
///
/// # Errors
/// If the pipe ends early or has anything else.
pub fn read_answer(input: &mut impl Read) -> Result<Answer> {
    expect(input, &ANSWER, "the message does not begin with an answer's magic number")?;
    let peak_memory = read_u64(input)?;
    let outcome = match read_byte(input)? {
        0 => {
            let optimal = read_byte(input)? != 0;
            let (objective, dual_bound) = (read_f64(input)?, read_f64(input)?);
            let seconds = read_f64(input)?;
            let (columns, row_duals) = (read_floats(input)?, read_floats(input)?);
            Ok(LpSolution { optimal, objective, dual_bound, columns, row_duals, seconds })
        }
        1 => Err(LpFailure::Status(read_text(input)?)),
        2 => Err(LpFailure::Process(read_text(input)?)),
        _ => return Err(garbage("the answer is neither a solution nor a failure")),
    };
    expect(input, &END, "the message does not end with an answer's magic number")?;
    Ok(Answer { outcome, peak_memory })
}

fn garbage(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what.to_owned())
}

fn expect(input: &mut impl Read, word: &[u8; 8], complaint: &str) -> Result<()> {
    let mut found = [0; 8];
    match input.read_exact(&mut found) {
        Ok(()) if found == *word => Ok(()),
        Ok(()) => Err(garbage(complaint)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(Error::new(ErrorKind::UnexpectedEof, "the pipe closed in the middle of a message"))
        }
        Err(error) => Err(error),
    }
}

fn write_u64(out: &mut impl Write, number: u64) -> Result<()> {
    out.write_all(&number.to_le_bytes())
}

fn read_u64(input: &mut impl Read) -> Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn read_byte(input: &mut impl Read) -> Result<u8> {
    let mut byte = [0];
    input.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn narrow(number: u64) -> Result<u32> {
    u32::try_from(number).map_err(|_| garbage("a count is larger than 32 bits"))
}

fn write_f64(out: &mut impl Write, number: f64) -> Result<()> {
    out.write_all(&number.to_le_bytes())
}

fn read_f64(input: &mut impl Read) -> Result<f64> {
    Ok(f64::from_bits(read_u64(input)?))
}

fn write_floats(out: &mut impl Write, array: &[f64]) -> Result<()> {
    write_array(out, array, |number| number.to_le_bytes())
}

fn read_floats(input: &mut impl Read) -> Result<Vec<f64>> {
    read_array(input, f64::from_le_bytes)
}

fn write_text(out: &mut impl Write, text: &str) -> Result<()> {
    write_array(out, text.as_bytes(), |&byte| [byte])
}

fn read_text(input: &mut impl Read) -> Result<String> {
    let bytes = read_array(input, |[byte]| byte)?;
    String::from_utf8(bytes).map_err(|_| garbage("a text is not UTF-8"))
}

fn write_option<W: Write, T>(
    out: &mut W,
    value: Option<&T>,
    write: impl Fn(&mut W, &T) -> Result<()>,
) -> Result<()> {
    out.write_all(&[u8::from(value.is_some())])?;
    value.map_or(Ok(()), |value| write(out, value))
}

fn read_option<I: Read, T>(input: &mut I, read: impl Fn(&mut I) -> Result<T>) -> Result<Option<T>> {
    match read_byte(input)? {
        0 => Ok(None),
        1 => read(input).map(Some),
        _ => Err(garbage("an option is neither 0 nor 1")),
    }
}

fn write_array<T, const BYTES: usize>(
    out: &mut impl Write,
    array: &[T],
    encode: impl Fn(&T) -> [u8; BYTES],
) -> Result<()> {
    write_u64(out, array.len() as u64)?;
    let mut buffer: Vec<u8> = Vec::with_capacity(CHUNK_BYTES);
    for part in array.chunks(CHUNK_BYTES / BYTES) {
        buffer.clear();
        buffer.extend(part.iter().flat_map(&encode));
        out.write_all(&buffer)?;
    }
    Ok(())
}

fn read_array<T, const BYTES: usize>(
    input: &mut impl Read,
    decode: impl Fn([u8; BYTES]) -> T,
) -> Result<Vec<T>> {
    let length = read_u64(input)?;
    if length > LENGTH_MAX {
        return Err(garbage("an array is longer than the limit"));
    }
    // Grows with the data received: a length alone never allocates memory.
    let mut array = Vec::new();
    let mut left = usize::try_from(length).map_err(|_| garbage("an array is too long"))?;
    let mut buffer = vec![0; CHUNK_BYTES.min(left * BYTES)];
    while left > 0 {
        let count = left.min(CHUNK_BYTES / BYTES);
        let bytes = &mut buffer[..count * BYTES];
        input.read_exact(bytes)?;
        let (elements, _) = bytes.as_chunks::<BYTES>();
        array.extend(elements.iter().map(|&element| decode(element)));
        left -= count;
    }
    Ok(array)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem() -> (LpProblem, LpRequest) {
        let problem = LpProblem {
            cost: vec![1.0, -2.5, 0.0],
            col_lower: vec![0.0, f64::NEG_INFINITY, -1.0],
            col_upper: vec![f64::INFINITY, 4.0, 1e-300],
            integer: vec![false, true, false],
            row_lower: vec![1.0, 2.0],
            row_upper: vec![3.0, f64::INFINITY],
            starts: vec![0, 1, 3, 3],
            indices: vec![0, 0, 1],
            values: vec![1.0, 2.0, 0.1],
        };
        let request = LpRequest {
            solver: "ipx".to_owned(),
            time_limit: Some(Duration::from_millis(1500)),
            threads: 2,
            seed: 7,
            start: Some(vec![0.5; 3]),
            mip_gap: 1e-4,
            mip_nodes: 100,
        };
        (problem, request)
    }

    fn written() -> Vec<u8> {
        let (problem, request) = problem();
        let mut bytes = Vec::new();
        write_problem(&mut bytes, &problem, &request).expect("memory takes it");
        bytes
    }

    #[test]
    fn a_problem_arrives_as_it_was_sent() {
        assert_eq!(read_problem(&mut written().as_slice()).expect("reads"), problem());
    }

    #[test]
    fn arrays_longer_than_a_chunk_arrive_whole() {
        let array: Vec<f64> = (0..10_001).map(f64::from).collect();
        let mut bytes = Vec::new();
        write_floats(&mut bytes, &array).expect("memory takes it");
        assert_eq!(read_floats(&mut bytes.as_slice()).expect("reads"), array);
    }

    #[test]
    fn answers_arrive_as_they_were_sent() {
        let solution = LpSolution {
            optimal: true,
            objective: 1.5,
            dual_bound: 1.25,
            columns: vec![1.0, 2.0],
            row_duals: vec![-1.0],
            seconds: 0.25,
        };
        let outcomes = [
            Ok(solution),
            Err(LpFailure::Status("Infeasible".to_owned())),
            Err(LpFailure::Process("bad problem".to_owned())),
        ];
        for outcome in outcomes {
            let answer = Answer { outcome, peak_memory: 42 };
            let mut bytes = Vec::new();
            write_answer(&mut bytes, &answer).expect("memory takes it");
            assert_eq!(read_answer(&mut bytes.as_slice()).expect("reads"), answer);
            for length in 0..bytes.len() {
                assert!(read_answer(&mut &bytes[..length]).is_err(), "cut at {length}");
            }
        }
    }

    #[test]
    fn a_problem_cut_short_or_damaged_is_refused() {
        let bytes = written();
        for length in 0..bytes.len() {
            assert!(read_problem(&mut &bytes[..length]).is_err(), "cut at {length}");
        }
        let mut huge = bytes;
        // The length of the solver's name.
        huge[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(read_problem(&mut huge.as_slice()).is_err());
    }

    #[test]
    fn arrays_that_do_not_fit_each_other_are_refused() {
        let broken: [fn(&mut LpProblem); 5] = [
            |p| p.indices[2] = 2,
            |p| p.starts[1] = 9,
            |p| p.col_upper.truncate(2),
            |p| p.integer.push(true),
            |p| p.starts.clear(),
        ];
        for damage in broken {
            let (mut problem, request) = problem();
            damage(&mut problem);
            let mut bytes = Vec::new();
            write_problem(&mut bytes, &problem, &request).expect("memory takes it");
            assert!(read_problem(&mut bytes.as_slice()).is_err());
        }
    }
}
