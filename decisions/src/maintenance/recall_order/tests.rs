use super::*;
use crate::maintenance::capacity::Promised;
use crate::maintenance::capacity::tests::even;
use fleet::ReservationName;

#[test]
fn work_that_restores_most_is_recalled_first() {
    let mut view = even();
    for (id, site) in view.sites.iter_mut().filter(|(id, _)| **id < 16) {
        let owner: ReservationName = if id % 8 < 4 { "ads".into() } else { "web".into() };
        site.held[0] = Some((owner, Rru::units(1)));
    }
    let by_msb = BTreeMap::from([("m0".into(), Rru::units(4)), ("m1".into(), Rru::units(4))]);
    let ads = Promised {
        capacity: Rru::units(8),
        msb_buffer: true,
        by_msb: [by_msb.clone(), by_msb],
        ..Promised::default()
    };
    view.reservations.insert("ads".into(), ads);
    let work = |event: &str, servers: &[i32], recall_minutes| Work {
        event: event.into(),
        servers: servers.iter().copied().collect(),
        recall_minutes,
    };
    let all = vec![
        work("free", &[99], 1),
        work("small", &[4], 5),
        work("ads", &[0, 1], 5),
        work("large", &[12, 13, 14], 25),
        work("quick", &[20, 21, 22], 20),
        work("gone", &[56, 57], 1),
    ];
    let order = |web, ads| {
        let priority = [("web".into(), web), ("ads".into(), ads)].into();
        let lost = ["m7".into()].into();
        let order = recall_order(&view, &lost, &priority, &BTreeSet::new(), all.clone());
        order.into_iter().map(|of| of.event.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(order(0, 1), ["quick", "large", "small", "ads", "free", "gone"]);
    assert_eq!(order(1, 0), ["ads", "quick", "large", "small", "free", "gone"]);
}
