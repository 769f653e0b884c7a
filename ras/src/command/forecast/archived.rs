//! The history of a region from its archived snapshots: servers and promises over time, and failures as they were known at each.

use super::failures::{FailureHistory, OfType};
use crate::context::Context;
use crate::progress::Reporter;
use crate::service::Archive;
use crate::store;
use anyhow::{Context as _, Result, bail, ensure};
use broker::{TimeSpan, UsageAsked, UsageSamples, UsageSeries};
use capacity_portal::usage::counted;
use chrono::{DateTime, TimeDelta, Utc};
use control::failure_history::{Covered, mean_rru};
use datasets::SnapshotHead;
use fleet::{HardwareTypeIx, Name, RegionSnapshot, ReservationKind, ServerIx, Table};
use forecast::spares::Outage;
use futures_util::{StreamExt as _, TryStreamExt as _};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Snapshots that are fetched at a time.
const AT_A_TIME: usize = 8;

/// Snapshots between two lines of progress.
const TOLD_EVERY: usize = 250;

/// The time between two snapshots that solves leave by default, and the step of their series.
pub(super) const STEP: u32 = 3_600;

/// Which snapshots are read: those from one instant until another, without it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) from: DateTime<Utc>,
    pub(super) until: DateTime<Utc>,
}

impl Range {
    /// All of them.
    pub(super) const ALL: Range =
        Range { from: DateTime::<Utc>::MIN_UTC, until: DateTime::<Utc>::MAX_UTC };
}

/// What the snapshots of an archive say, in order of time.
#[derive(Debug)]
pub(super) struct ArchivedRegion {
    /// The region's name.
    pub(super) region: Name,
    /// When each was taken.
    pub(super) times: Vec<DateTime<Utc>>,
    usage: UsageSamples,
    failures: Failures,
    /// The hardware types of each snapshot.
    types: Vec<BTreeMap<String, TypeThen>>,
}

/// A hardware type in a snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TypeThen {
    servers: usize,
    rru: Option<f64>,
    /// Servers that its shared buffers asked for.
    pub(super) buffer: f64,
}

/// Whether a place is an archive: a URL, or a folder that is not itself a snapshot.
pub(super) fn is_archive(place: &Path) -> bool {
    let is_url = place.to_str().is_some_and(|place| place.contains("://"));
    is_url || (place.is_dir() && !place.join(Table::Region.file()).exists())
}

impl ArchivedRegion {
    /// Reads an archive, given by its folder or URL.
    pub(super) fn read(place: &str, range: Range, context: &Context) -> Result<ArchivedRegion> {
        let reporter = Reporter::new(context.global.quiet, context.began, None);
        let read = store::run(async {
            let archive = Archive::open_existing(place)?;
            read(&archive, range, &reporter).await.with_context(|| format!("archive {place}"))
        });
        reporter.finish();
        read
    }

    /// The end of the step of the last snapshot.
    pub(super) fn end(&self) -> DateTime<Utc> {
        let last = self.times.last().copied().unwrap_or_default().timestamp();
        let step = i64::from(STEP);
        DateTime::from_timestamp(last.div_euclid(step) * step + step, 0).unwrap_or_default()
    }

    /// Series of the last days.
    pub(super) fn series(&self, days: u16, asked: &UsageAsked) -> Vec<UsageSeries> {
        let until = self.times.last().copied().unwrap_or_default();
        self.usage.series(TimeSpan { from: until - TimeDelta::days(days.into()), until }, asked)
    }

    /// Series of all of the time.
    pub(super) fn all(&self, asked: &UsageAsked) -> Vec<UsageSeries> {
        let (from, until) = (Range::ALL.from, Range::ALL.until);
        self.usage.series(TimeSpan { from, until }, asked)
    }

    /// Failures as they were known from a snapshot and those before it.
    pub(super) fn failures(&self, snapshot: usize) -> FailureHistory {
        let mut history = self.failures.known(snapshot);
        history.until = self.times.get(snapshot).map(DateTime::timestamp);
        for (name, then) in self.types.get(snapshot).into_iter().flatten() {
            let of = history.types.entry(name.clone()).or_default();
            (of.rru, of.servers) = (then.rru, then.servers);
        }
        // Of a type without servers nothing can fail.
        history.types.retain(|_, of| of.servers > 0);
        history
    }

    /// The hardware types of a snapshot.
    pub(super) fn types(&self, snapshot: usize) -> &BTreeMap<String, TypeThen> {
        &self.types[snapshot]
    }

    fn add(&mut self, snapshot: &RegionSnapshot) {
        let number = self.times.len();
        self.times.push(snapshot.taken_at);
        self.usage.add(snapshot.taken_at, &counted(snapshot));
        self.failures.add(number, snapshot);
        let mut types: BTreeMap<String, TypeThen> = BTreeMap::new();
        let name = |of: HardwareTypeIx| snapshot.hardware_types[of.ix()].to_string();
        for server in &snapshot.servers {
            types.entry(name(server.hardware_type)).or_default().servers += 1;
        }
        for (at, of) in snapshot.hardware_types.iter().enumerate() {
            if let Some(then) = types.get_mut(of.as_ref()) {
                then.rru = mean_rru(snapshot, HardwareTypeIx::new(at));
            }
        }
        let buffers =
            snapshot.reservations.iter().filter(|of| of.kind == ReservationKind::SharedBuffer);
        for buffer in buffers {
            for (of, _) in &buffer.rru {
                types.entry(name(*of)).or_default().buffer += buffer.capacity.to_f64();
            }
        }
        self.types.push(types);
    }
}

/// A snapshot of the archive.
struct Found {
    url: String,
    head: SnapshotHead,
}

async fn read(archive: &Archive, range: Range, reporter: &Reporter) -> Result<ArchivedRegion> {
    let scratch = tempfile::tempdir().context("making a folder for snapshots")?;
    let urls = archive.snapshots().await?;
    ensure!(!urls.is_empty(), "has no snapshots (folders with region.json and its tables)");
    let heads = futures_util::stream::iter(urls.into_iter().enumerate().map(|(number, url)| {
        let folder = scratch.path().join(format!("head-{number}"));
        async move { head(archive, url, &folder).await }
    }));
    let mut all: Vec<Found> = heads.buffered(AT_A_TIME).try_collect().await?;
    // Of two that were taken at an instant the order of names decides; a solve that was tried twice has both.
    all.sort_by(|one, other| {
        one.head.taken_at.cmp(&other.head.taken_at).then(one.url.cmp(&other.url))
    });
    let [first, .., last] = all.as_slice() else {
        bail!("has one snapshot, of {}; a history needs two", show(all[0].head.taken_at));
    };
    let what = format!(
        "it has {} snapshots from {} to {}",
        all.len(),
        show(first.head.taken_at),
        show(last.head.taken_at)
    );
    let region = last.head.region.clone();
    all.retain(|of| (range.from..range.until).contains(&of.head.taken_at));
    all.dedup_by_key(|of| of.head.taken_at);
    ensure!(
        all.len() >= 2,
        "fewer than two snapshots are from {} until {}; {what}",
        show(range.from),
        show(range.until)
    );
    if let Some(other) = all.iter().find(|of| of.head.region != region) {
        bail!(
            "snapshot {} is of region {:?}, and the last one, {}, of {region:?}: an archive of several regions has no history",
            other.url,
            &*other.head.region,
            show(last_of(&all)),
        );
    }
    let count = all.len();
    let mut read = ArchivedRegion {
        region,
        times: Vec::new(),
        usage: UsageSamples::default(),
        failures: Failures::default(),
        types: Vec::new(),
    };
    let folders = futures_util::stream::iter(all.iter().enumerate().map(|(number, of)| {
        let folder = scratch.path().join(format!("snapshot-{number}"));
        async move { fetched(archive, &of.url, folder).await }
    }));
    let mut folders = folders.buffered(AT_A_TIME);
    for (number, of) in all.iter().enumerate() {
        let Some(folder) = folders.try_next().await? else { break };
        let snapshot = datasets::read_snapshot(folder.path())
            .with_context(|| format!("cannot read snapshot {}", of.url))?;
        folder.remove()?;
        read.add(&snapshot);
        if (number + 1).is_multiple_of(TOLD_EVERY) || number + 1 == count {
            reporter.note(&format!("read {} of {count} snapshots", number + 1));
        }
    }
    Ok(read)
}

fn last_of(all: &[Found]) -> DateTime<Utc> {
    all.last().map(|of| of.head.taken_at).unwrap_or_default()
}

/// An instant as it is written in options.
pub(super) fn show(at: DateTime<Utc>) -> String {
    if at == Range::ALL.from {
        "the first".to_owned()
    } else if at == Range::ALL.until {
        "the last".to_owned()
    } else {
        at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

/// What a snapshot is of.
async fn head(archive: &Archive, url: String, folder: &Path) -> Result<Found> {
    let name = || format!("cannot read snapshot {url}");
    let head = match archive.folder_of(&url) {
        Some(there) => datasets::read_head(&there).with_context(name)?,
        None => {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            archive.get_file(&url, Table::Region.file(), folder).await.with_context(name)?;
            datasets::read_head(folder).with_context(name)?
        }
    };
    Ok(Found { url, head })
}

/// The folder of a snapshot.
enum Folder {
    /// In the archive, which is on this machine.
    There(PathBuf),
    /// Copied from it.
    Copied(PathBuf),
}

impl Folder {
    fn path(&self) -> &Path {
        let (Folder::There(path) | Folder::Copied(path)) = self;
        path
    }

    fn remove(self) -> Result<()> {
        match self {
            Folder::There(_) => Ok(()),
            Folder::Copied(path) => {
                std::fs::remove_dir_all(&path).with_context(|| path.display().to_string())
            }
        }
    }
}

async fn fetched(archive: &Archive, url: &str, folder: PathBuf) -> Result<Folder> {
    if let Some(there) = archive.folder_of(url) {
        return Ok(Folder::There(there));
    }
    archive.get(url, &folder).await.with_context(|| format!("cannot read snapshot {url}"))?;
    Ok(Folder::Copied(folder))
}

/// Unplanned events of servers and racks, each as it was at each snapshot.
#[derive(Debug, Default)]
struct Failures {
    /// The number of each server among those of its type.
    numbers: BTreeMap<String, BTreeMap<String, u32>>,
    events: BTreeMap<Name, Event>,
    /// Events that spares do not cover, by the first snapshot that has them.
    left_out: BTreeMap<Name, usize>,
}

#[derive(Debug)]
struct Event {
    /// Type and number.
    servers: Vec<(String, u32)>,
    /// The first snapshot that says so, its start and its end.
    versions: Vec<(usize, i64, Option<i64>)>,
}

impl Failures {
    fn add(&mut self, number: usize, snapshot: &RegionSnapshot) {
        let mut covered = Covered::of(snapshot);
        let listed: BTreeSet<&Name> = snapshot.unavailability.iter().map(|of| &of.id).collect();
        for event in &snapshot.unavailability {
            // What is announced has not failed.
            if event.started_at > snapshot.taken_at {
                continue;
            }
            let servers = covered.by(event);
            if servers.is_empty() {
                self.left_out.entry(event.id.clone()).or_insert(number);
                continue;
            }
            let (start, end) = (event.started_at.timestamp(), event.ended_at);
            let version = (number, start, end.map(|end| end.timestamp()));
            let numbers = &mut self.numbers;
            let known = self.events.entry(event.id.clone()).or_insert_with(|| Event {
                servers: servers.iter().map(|ix| numbered(numbers, snapshot, *ix)).collect(),
                versions: Vec::new(),
            });
            if known.versions.last().is_none_or(|(_, s, e)| (*s, *e) != (version.1, version.2)) {
                known.versions.push(version);
            }
        }
        for (id, event) in &mut self.events {
            // An event that was removed while it lasted is over.
            if let Some((_, start, None)) = event.versions.last().copied()
                && !listed.contains(id)
            {
                event.versions.push((number, start, Some(snapshot.taken_at.timestamp())));
            }
        }
    }

    fn known(&self, snapshot: usize) -> FailureHistory {
        let mut history = FailureHistory {
            left_out: self.left_out.values().filter(|first| **first <= snapshot).count(),
            ..FailureHistory::default()
        };
        for event in self.events.values() {
            let then = event.versions.iter().rev().find(|(first, ..)| *first <= snapshot);
            let Some((_, start, end)) = then.copied() else { continue };
            for (name, server) in &event.servers {
                let of: &mut OfType = history.types.entry(name.clone()).or_default();
                let end = end.unwrap_or(i64::MAX).max(start);
                of.outages.push(Outage { server: *server, start, end });
            }
        }
        history
    }
}

/// The type of a server, and its number among those of its type.
fn numbered(
    numbers: &mut BTreeMap<String, BTreeMap<String, u32>>,
    snapshot: &RegionSnapshot,
    server: ServerIx,
) -> (String, u32) {
    let of = &snapshot.servers[server.ix()];
    let name = snapshot.hardware_types[of.hardware_type.ix()].to_string();
    let known = numbers.entry(name.clone()).or_default();
    let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
    let number = *known.entry(of.id.to_string()).or_insert(next);
    (name, number)
}
