use super::*;
use chrono::TimeDelta;
use fleet::{MsbName, RackName};
use proptest::prelude::*;

fn at(minute: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
}

fn out(from: i64, until: i64, servers: &[i32]) -> Out {
    let servers = servers.iter().copied().collect();
    Out { from: at(from), until: at(until), servers, recallable: false }
}

/// Two MSBs of 20 servers, in racks of five; half of each MSB is web's, at one RRU.
fn view(capacity: usize) -> View {
    let site = |id: i32| Site {
        server: format!("s{id}").into(),
        rack: format!("rack{}", id / 5).into(),
        msb: format!("msb{}", id / 20).into(),
        domains: Vec::new(),
        held: [(), ()].map(|()| (id % 2 == 0).then(|| ("web".into(), Rru::units(1)))),
    };
    let half =
        || BTreeMap::from([("msb0".into(), Rru::units(10)), ("msb1".into(), Rru::units(10))]);
    View {
        sites: (0..40).map(|id| (id, site(id))).collect(),
        msbs: [("msb0".into(), 20), ("msb1".into(), 20)].into(),
        reservations: [(
            "web".into(),
            Promised {
                capacity: Rru::units(capacity),
                msb_buffer: false,
                by_msb: [half(), half()],
                ..Promised::default()
            },
        )]
        .into(),
    }
}

#[test]
fn at_most_a_quarter_of_an_msb_is_out_at_once() {
    let view = view(0);
    let five = out(0, 60, &[0, 1, 2, 3, 4]);
    assert_eq!(check(&view, &[], &five, SHARE_MICRO), Ok(()));
    let too_much = |out| Err(TooMuch::Share { msb: "msb0".into(), out, servers: 20, most: 5 });
    let one = out(30, 90, &[5]);
    assert_eq!(check(&view, &[&five], &one, SHARE_MICRO), too_much(6));
    assert_eq!(check(&view, &[&one], &five, SHARE_MICRO), too_much(6), "in either order");
    assert_eq!(check(&view, &[&five], &out(60, 90, &[5]), SHARE_MICRO), Ok(()), "after it");
    assert_eq!(check(&view, &[&five], &out(30, 90, &[25]), SHARE_MICRO), Ok(()), "elsewhere");
    assert_eq!(check(&view, &[&five], &out(30, 90, &[3]), SHARE_MICRO), Ok(()), "the same one");
    assert_eq!(check(&view, &[&five], &one, 500_000), Ok(()), "a share of its own");
    // Two windows that do not overlap, and a third that overlaps both.
    let (early, late) = (out(0, 30, &[0, 1, 2]), out(30, 60, &[3, 4, 5]));
    assert_eq!(check(&view, &[&early, &late], &out(0, 60, &[6, 7]), SHARE_MICRO), Ok(()));
    let three = out(0, 60, &[6, 7, 8]);
    assert_eq!(check(&view, &[&early, &late], &three, SHARE_MICRO), too_much(6));
}

#[test]
fn window_that_breaks_a_guarantee_is_refused() {
    let three = out(0, 60, &[0, 2, 4]);
    assert_eq!(check(&view(17), &[], &three, SHARE_MICRO), Ok(()));
    let left = Left {
        reservation: "web".into(),
        lost: None,
        needed_at_once: Rru::units(18),
        left_at_once: Rru::units(17),
        needed: Rru::units(18),
        left: Rru::units(17),
    };
    let refused = Err(TooMuch::Guarantee { left, msb: "msb0".into() });
    assert_eq!(check(&view(18), &[], &three, SHARE_MICRO), refused);
    let elsewhere = out(30, 90, &[20]);
    assert_eq!(check(&view(18), &[&elsewhere], &out(0, 60, &[0, 2]), SHARE_MICRO), refused);
    assert_eq!(check(&view(18), &[&elsewhere], &out(0, 30, &[0, 2]), SHARE_MICRO), Ok(()));
    let idle = out(0, 60, &[1, 3]);
    assert_eq!(check(&view(18), &[&three], &idle, SHARE_MICRO), Ok(()), "free servers");
    assert_eq!(check(&view(21), &[], &three, SHARE_MICRO), Ok(()), "short without maintenance");
    let mut failed = view(20);
    let site = failed.sites.get_mut(&0).expect("a site");
    site.held = [(), ()].map(|()| Some(("web".into(), Rru::ZERO)));
    assert_eq!(check(&failed, &[], &out(0, 60, &[0]), SHARE_MICRO), Ok(()), "failed before");
}

#[test]
fn msb_is_divided_into_batches_of_whole_racks() {
    let racks = |sizes: &[u64]| -> BTreeMap<RackName, u64> {
        let named = |(number, size): (usize, &u64)| (format!("r{number}").into(), *size);
        sizes.iter().enumerate().map(named).collect()
    };
    let sizes = |sizes: &[u64], share| {
        let batches = batches(&"msb".into(), &racks(sizes), share);
        batches.map(|all| all.iter().map(Vec::len).collect::<Vec<_>>())
    };
    assert_eq!(sizes(&[5; 8], SHARE_MICRO), Ok(vec![2; 4]));
    assert_eq!(sizes(&[5, 1, 5, 1, 5, 3], SHARE_MICRO), Ok(vec![1, 1, 1, 1, 1, 1]));
    assert_eq!(sizes(&[5, 1, 5, 1, 5, 3], 500_000), Ok(vec![2, 2, 2]));
    assert_eq!(sizes(&[5; 4], 1_000_000), Ok(vec![4]));
    assert_eq!(sizes(&[], SHARE_MICRO), Ok(vec![]));
    let refused = TooMuch::Share { msb: "msb".into(), out: 5, servers: 10, most: 2 };
    assert_eq!(sizes(&[5, 5], SHARE_MICRO), Err(refused));
}

proptest! {
    /// For windows in any order: at every instant the accepted ones take at most a quarter of an MSB, and no
    /// guaranteed capacity.
    #[test]
    fn accepted_windows_never_exceed_share_or_guarantee(
        capacity in 8_usize..22,
        windows in prop::collection::vec((0_i64..40, 1_i64..20,
            prop::collection::btree_set(0_i32..40, 1..5)), 1..30),
    ) {
        let view = view(capacity);
        let mut planned: Vec<Out> = Vec::new();
        for (from, length, servers) in windows {
            let until = at(from + length);
            let ours = Out { from: at(from), until, servers, recallable: false };
            let others: Vec<&Out> = planned.iter().collect();
            if check(&view, &others, &ours, SHARE_MICRO).is_ok() {
                planned.push(ours);
            }
        }
        for minute in 0..60 {
            let now = planned.iter().filter(|p| p.from <= at(minute) && at(minute) < p.until);
            let out: BTreeSet<i32> = now.flat_map(|p| &p.servers).copied().collect();
            for msb in [0, 1] {
                prop_assert!(out.iter().filter(|id| **id / 20 == msb).count() <= 5);
            }
            let lost = out.iter().filter(|id| **id % 2 == 0).count();
            prop_assert!(capacity > 20 || 20 - lost >= capacity);
        }
    }
}
/// C = 56, with 64 RRU in eight MSBs of four racks of two servers.
pub(crate) fn even() -> View {
    let held = || [(), ()].map(|()| Some(("web".into(), Rru::units(1))));
    let msb = |id: i32| -> MsbName { format!("m{}", id / 8).into() };
    let eight = || (0..8).map(|number| (msb(number * 8), Rru::units(8))).collect();
    View {
        sites: (0..64)
            .map(|id| {
                let rack = format!("m{}-r{}", id / 8, id % 8 / 2).into();
                let server = format!("s{id}").into();
                (id, Site { server, rack, msb: msb(id), domains: Vec::new(), held: held() })
            })
            .collect(),
        msbs: (0..8).map(|number| (msb(number * 8), 8)).collect(),
        reservations: [(
            "web".into(),
            Promised {
                capacity: Rru::units(56),
                msb_buffer: true,
                by_msb: [eight(), eight()],
                ..Promised::default()
            },
        )]
        .into(),
    }
}

/// Web holds eight servers in each of eight MSBs; switch `s` has those whose numbers end with `s` in base eight. Web
/// survives the loss of a switch and not that of an MSB.
#[test]
fn a_switch_counts_as_an_msb_does_for_those_who_survive_it() {
    let switch =
        |id: i32| Domain { partition: "switch".into(), name: format!("s{}", id % 8).into() };
    let mut view = even();
    view.sites.iter_mut().for_each(|(id, site)| site.domains = vec![switch(*id)]);
    let web = view.reservations.get_mut("web").expect("there");
    web.msb_buffer = false;
    let shares = || (0..8).map(|id| (switch(id), Rru::units(8))).collect();
    web.by_domain = [shares(), shares()];
    // Two of eight servers of one switch, of different MSBs.
    let two = |recallable| Out { recallable, ..out(0, 60, &[0, 8]) };
    assert_eq!(check(&view, &[], &two(true), SHARE_MICRO), Ok(()));
    let left = |lost, at_once, later| Left {
        reservation: "web".into(),
        lost: Some(Loss::Domain(switch(lost))),
        needed_at_once: Rru::units(54),
        left_at_once: Rru::units(at_once),
        needed: Rru::units(56),
        left: Rru::units(later),
    };
    let refused = |left: Left| Err(TooMuch::Guarantee { left, msb: "m1".into() });
    assert_eq!(check(&view, &[], &two(false), SHARE_MICRO), refused(left(1, 54, 54)));
    let other = out(0, 60, &[17, 25]);
    let other = Out { recallable: true, ..other };
    assert_eq!(check(&view, &[&other], &two(true), SHARE_MICRO), refused(left(2, 52, 56)));
    let text = format!("{}", Loss::Domain(switch(2)));
    assert_eq!(text, "switch \"s2\"");
    // One that survives MSBs alone is not asked.
    view.reservations.get_mut("web").expect("there").by_domain = Default::default();
    assert_eq!(check(&view, &[&other], &two(false), SHARE_MICRO), Ok(()));
}

#[test]
fn a_recallable_quarter_of_the_buffer_may_be_out() {
    let view = even();
    let rack = |first: i32, recallable| Out { recallable, ..out(0, 60, &[first, first + 1]) };
    let one = rack(0, true);
    assert_eq!(check(&view, &[], &one, SHARE_MICRO), Ok(()));
    let refused = |lost: &str, at_once, later, msb: &str| {
        let left = Left {
            reservation: "web".into(),
            lost: Some(Loss::Msb(lost.into())),
            needed_at_once: Rru::units(54),
            left_at_once: Rru::units(at_once),
            needed: Rru::units(56),
            left: Rru::units(later),
        };
        Err(TooMuch::Guarantee { left, msb: msb.into() })
    };
    assert_eq!(
        check(&view, &[], &rack(0, false), SHARE_MICRO),
        refused("m1", 54, 54, "m0"),
        "within 30 minutes two are missing"
    );
    assert_eq!(
        check(&view, &[&one], &rack(8, true), SHARE_MICRO),
        refused("m2", 52, 56, "m1"),
        "at once half of the buffer is missing"
    );
    let after = Out { from: at(60), until: at(90), ..rack(8, true) };
    assert_eq!(check(&view, &[&one], &after, SHARE_MICRO), Ok(()), "one after another");
    // Both the present and the state after open moves are checked.
    let mut moving = even();
    for site in moving.sites.values_mut().filter(|site| &*site.msb == "m7") {
        site.held[1] = None;
    }
    let need = |view: &mut View, units| {
        let promised = view.reservations.get_mut("web").expect("web");
        promised.by_msb[1].remove("m7");
        promised.capacity = Rru::units(units);
    };
    need(&mut moving, 48);
    let slow = rack(0, false);
    assert!(check(&moving, &[], &slow, SHARE_MICRO).is_err(), "48 of 56 will be left, less 2");
    need(&mut moving, 46);
    assert_eq!(check(&moving, &[], &slow, SHARE_MICRO), Ok(()));
}
