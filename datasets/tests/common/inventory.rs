//! A small inventory in CSV, and ways to write it wrongly.

use super::{midnight, said};
use chrono::{DateTime, Utc};
use datasets::import::{ImportOptions, LogFormat, import_csv, parse_instant};
use std::path::PathBuf;

pub const SERVERS: &str = "\
server_id,datacenter,msb,rack,hardware_type,first_seen_s,gone_since_s,mixed,colour
a,d0,m0,r0,T,0.0,,x,red
b,d0,m0,r1,U,0.0,1000.5,y,red
c,d1,m1,r2,T,600,,x,blue
";
pub const REQUESTS: &str = "\
name,capacity,unit,eligible_types,rru,spread,dc_affinity,source
web,1.5,cpu,T|U,T:1;U:0.387,msb,d0:0.5;d1:0.5,guess
batch,7302.4,core,U,U:2,none,,guess
";
pub const EVENTS: &str = "\
server_id,kind,start,end
a,removed,10.25,900
b,removed,1000.5,
b,software,20,30
c,planned_maintenance,650,
";

/// What the Google trace counts from, and these logs do.
pub fn epoch() -> DateTime<Utc> {
    "2019-05-01T00:00:00Z".parse().unwrap()
}

/// Files of one import in a folder of their own.
pub struct Files {
    pub dir: tempfile::TempDir,
}

impl Files {
    pub fn new() -> Files {
        let files = Files { dir: tempfile::tempdir().unwrap() };
        files.put("servers.csv", SERVERS);
        files.put("requests.csv", REQUESTS);
        files.put("events.csv", EVENTS);
        files
    }

    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let file = self.dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    pub fn options(&self) -> ImportOptions {
        ImportOptions {
            requests: Some(self.dir.path().join("requests.csv")),
            ..ImportOptions::new("region-a", self.dir.path().join("servers.csv"), midnight())
        }
    }

    pub fn at(&self, at: &str) -> ImportOptions {
        ImportOptions {
            taken_at: parse_instant(at, Some(epoch())).unwrap(),
            as_of: true,
            log: LogFormat { epoch: Some(epoch()), ..LogFormat::default() },
            events: vec![self.dir.path().join("events.csv")],
            ..self.options()
        }
    }

    /// What is said of one file with a piece of text replaced.
    pub fn refusal(&self, file: &str, from: &str, to: &str, options: &ImportOptions) -> String {
        let path = self.dir.path().join(file);
        let good = std::fs::read_to_string(&path).unwrap();
        assert!(good.contains(from), "{from} is not in {file}");
        std::fs::write(&path, good.replacen(from, to, 1)).unwrap();
        let error = import_csv(options).expect_err("imported");
        std::fs::write(&path, good).unwrap();
        said(&error).replace(&format!("{}/", self.dir.path().display()), "")
    }
}
