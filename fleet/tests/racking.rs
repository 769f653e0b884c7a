//! Fault domains of servers that are racked, moved and decommissioned.

use crate::world::World;
use fleet::edit::{Racked, Relocated, ServerDomains, ServerEdit, WrongField, plan_servers};
use fleet::{DomainName, PartitionColumn, SnapshotParts};
use std::collections::{BTreeMap, BTreeSet};

/// Rack `one` is behind switch `s0`; in rack `two` one server is behind `s1` and the other behind none.
fn parts() -> SnapshotParts {
    let mut parts = World::new().servers("dc/m", "t", 4).build().to_parts();
    let ids = ["a", "b", "c", "d"];
    for (row, (id, rack)) in
        parts.servers.iter_mut().zip(ids.iter().zip(["one", "one", "two", "two"]))
    {
        (row.server_id, row.rack) = ((*id).into(), rack.into());
    }
    let domains = [("a", "s0"), ("b", "s0"), ("c", "s1")];
    let domains = domains.map(|(server, domain)| (server.into(), domain.into()));
    let column = PartitionColumn { name: "switch".into(), domains: domains.into() };
    parts.crossing.partitions.push(column);
    parts
}

fn domains(said: &[(&str, Option<&str>)]) -> ServerDomains {
    said.iter().map(|(name, of)| ((*name).into(), of.map(DomainName::from))).collect()
}

fn racked(server: &str, rack: &str, said: &[(&str, Option<&str>)]) -> Racked {
    Racked {
        server: server.into(),
        datacenter: None,
        msb: Some("m".into()),
        rack: rack.into(),
        hardware_type: "t".into(),
        power_watts: None,
        domains: domains(said),
    }
}

/// The switch of each server after an edit.
fn after(edit: &ServerEdit) -> Result<String, Vec<WrongField>> {
    let mut parts = parts();
    let known = BTreeSet::from(["t".into()]);
    plan_servers(&mut parts, edit, &known, &BTreeSet::new())?;
    fleet::RegionSnapshot::new(parts.clone()).expect("valid after an edit");
    let domains: BTreeMap<String, String> = (parts.crossing.partitions[0].domains.iter())
        .map(|(server, domain)| (server.to_string(), domain.to_string()))
        .collect();
    let text = domains.iter().map(|(server, domain)| format!("{server} {domain}"));
    Ok(text.collect::<Vec<_>>().join(", "))
}

fn refused(edit: &ServerEdit) -> (&'static str, String) {
    let wrong = after(edit).expect_err("refused");
    assert_eq!((wrong.len(), &*wrong[0].field), (1, "servers[0].domains"));
    (wrong[0].reason, wrong[0].detail.clone())
}

#[test]
fn racked_server_has_the_domains_of_its_rack() {
    let add = |of: Racked| ServerEdit::Add(vec![of]);
    assert_eq!(after(&add(racked("e", "one", &[]))).as_deref(), Ok("a s0, b s0, c s1, e s0"));
    // What is said counts.
    let said = racked("e", "one", &[("switch", Some("s7"))]);
    assert_eq!(after(&add(said)).as_deref(), Ok("a s0, b s0, c s1, e s7"));
    assert_eq!(
        after(&add(racked("e", "one", &[("switch", None)]))).as_deref(),
        Ok("a s0, b s0, c s1")
    );
    // Where the rack does not tell, it must be said: a server in no domain would seem to survive every loss.
    assert_eq!(
        refused(&add(racked("e", "new", &[]))),
        (
            "missing",
            "rack \"new\" is new: say in which domain of \"switch\" it is, null for none"
                .to_owned()
        )
    );
    let (reason, detail) = refused(&add(racked("e", "two", &[])));
    assert!(reason == "missing" && detail.contains("in different domains"), "{detail}");
    let said = racked("e", "new", &[("switch", Some("s1"))]);
    assert_eq!(after(&add(said)).as_deref(), Ok("a s0, b s0, c s1, e s1"));
    let (reason, detail) = refused(&add(racked("e", "one", &[("feed", Some("A"))])));
    assert!(reason == "unknown_partition" && detail.ends_with("domains of switch"), "{detail}");
}

#[test]
fn moved_and_removed_servers_leave_their_domains() {
    let to = |server: &str, rack: &str, said: &[(&str, Option<&str>)]| {
        ServerEdit::Move(vec![Relocated {
            server: server.into(),
            datacenter: None,
            msb: None,
            rack: rack.into(),
            domains: domains(said),
        }])
    };
    assert_eq!(after(&to("c", "one", &[])).as_deref(), Ok("a s0, b s0, c s0"));
    let said = to("a", "two", &[("switch", Some("s1"))]);
    assert_eq!(after(&said).as_deref(), Ok("a s1, b s0, c s1"));
    assert_eq!(after(&ServerEdit::Remove(vec!["b".into()])).as_deref(), Ok("a s0, c s1"));
}
