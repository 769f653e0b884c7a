//! The cluster of a file: its own format, a model of the challenge, pods of Kubernetes, or services on the servers of
//! a reservation.

use crate::cli::ClusterInput;
use crate::command::explain_result::suggestion;
use crate::mistake::Hinted;
use crate::results::read_snapshot;
use anyhow::{Result, bail};
use datasets::cluster::{self, kubernetes, roadef};
use placement::Cluster;

/// The cluster, and what of the input it leaves out.
pub(super) fn read(options: &ClusterInput) -> Result<(Cluster, Vec<String>)> {
    let file = &options.cluster;
    if let Some(assignment) = &options.assignment {
        return Ok((roadef::read(file, assignment)?, Vec::new()));
    }
    if !file.is_dir() && !file.to_string_lossy().ends_with(".json") {
        let what = format!("{}: is neither a .json file nor a folder", file.display());
        let hint = "a model of the ROADEF/EURO challenge needs --assignment FILE";
        return Err(Hinted::new(what, hint).into());
    }
    if let (Some(folder), Some(name)) = (&options.snapshot, &options.reservation) {
        let snapshot = read_snapshot(folder)?;
        let Some(reservation) = snapshot.reservation(name) else {
            bail!("no reservation {name:?}{}", suggestion(&snapshot, name));
        };
        return Ok((cluster::read_on(file, &snapshot, reservation)?, Vec::new()));
    }
    if file.is_file() && kubernetes::is_list(file) {
        let imported = kubernetes::read(file)?;
        return Ok((imported.cluster, imported.notes));
    }
    Ok((cluster::read(file)?, Vec::new()))
}
