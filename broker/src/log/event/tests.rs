//! Every detail, byte for byte. Stored trails have these members: a line may gain members, and loses none.

use super::{
    AcceptShort, BufferSize, ElasticTerms, EmergencyAnswer, Event, GaveWay, Handover, LimitSet,
    Loaded, MaintenanceChange, Ordered, PromiseChange, Unavailable,
};
use crate::access::role::Role;
use crate::incidents::emergency_refusal::EmergencyRefusal;
use crate::infra::id::{
    EmergencyId, MaintenancePlanId, MoveId, PublicationId, RequestId, SolveId, TokenId, WindowId,
};
use crate::infra::state::{EmergencyState, MaintenanceState, RecallState, RequestState};
use crate::log::affected::AffectedServers;
use crate::log::trail::{Action, Entry, Seq, TargetVersion};
use crate::moves::origin::MoveReason;
use crate::queue::cause::Cause;
use crate::requests::request::{GrantPolicy, RequestChangeKind, RequestSpec};
use chrono::{DateTime, Utc};
use decisions::maintenance::lifecycle::MaintenanceReason;
use decisions::outage::OutageReason;
use decisions::preemption::Preemption;
use fleet::edit::{ElasticAsked, Racked, RegionSettings, Relocated};
use fleet::{
    CapacityRequest, DatacenterName, HardwareTypeName, MsbName, Name, ReservationKind,
    ReservationName, Scope, ServerName, UnavailabilityKind,
};
use std::collections::{BTreeMap, BTreeSet};

const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// What the details refer to.
struct Things {
    web: ReservationName,
    ads: ReservationName,
    server: ServerName,
    servers: Vec<String>,
    rack: Name,
    msb: MsbName,
    hardware_type: HardwareTypeName,
    datacenter: DatacenterName,
    reasons: Vec<String>,
    accepted: BTreeSet<ReservationName>,
    asking: RequestSpec,
    settings: RegionSettings,
    elastic: ElasticAsked,
    racked: Vec<Racked>,
    relocated: Vec<Relocated>,
    preempted: Preemption,
}

impl Things {
    fn new() -> Things {
        let change = CapacityRequest {
            reservation_id: "web".into(),
            capacity_rru: Some(2.5),
            ..CapacityRequest::default()
        };
        Things {
            web: "web".into(),
            ads: "ads".into(),
            server: "s1".into(),
            servers: vec!["s1".to_owned(), "s2".to_owned()],
            rack: "r0".into(),
            msb: "m0".into(),
            hardware_type: "C1".into(),
            datacenter: "dc1".into(),
            reasons: vec!["too_few".to_owned()],
            accepted: ["ads".into()].into(),
            asking: RequestSpec {
                kind: RequestChangeKind::Create,
                owner: "owner".into(),
                change,
                policy: GrantPolicy::All,
                starts_at: None,
                ends_at: None,
                labels: None,
                contract: None,
                why: None,
            },
            settings: RegionSettings {
                weights: fleet::Weights::default(),
                shared_buffer_fraction: 0.02,
            },
            elastic: ElasticAsked {
                owner: "lab".into(),
                rru: [("C1".into(), 1.0)].into(),
                priority: 5,
                host_profile: None,
            },
            racked: vec![Racked {
                server: "s1".into(),
                datacenter: None,
                msb: None,
                rack: "r0".into(),
                hardware_type: "C1".into(),
                power_watts: None,
                domains: BTreeMap::new(),
            }],
            relocated: vec![Relocated {
                server: "s1".into(),
                datacenter: None,
                msb: None,
                rack: "r0".into(),
                domains: BTreeMap::new(),
            }],
            preempted: Preemption {
                source: Some("ads".into()),
                target: "web".into(),
                msb: "m0".into(),
                hardware_type: "C1".into(),
                in_use: true,
                count: 2,
            },
        }
    }

    fn amounts(&self) -> BTreeMap<&HardwareTypeName, f64> {
        [(&self.hardware_type, 1.5)].into()
    }

    fn terms(&self) -> ElasticTerms<'_> {
        ElasticTerms { asked: &self.elastic, share: Some(2.0) }
    }

    fn ordered(&self, servers: u32) -> Ordered<'_> {
        let (hardware_type, datacenter) = (&self.hardware_type, &self.datacenter);
        Ordered { hardware_type, datacenter, servers, expected_on: AT.date_naive() }
    }

    /// At least one event of each action, and one of each form of its detail.
    fn events(&self) -> Vec<Event<'_>> {
        let [r#move, other] = [1, 2].map(MoveId::from_u128);
        let (window, request) = (WindowId::from_u128(3), RequestId::from_u128(4));
        let (emergency, token) = (EmergencyId::from_u128(5), TokenId::from_u128(6));
        let version = TargetVersion(7);
        let loaded = || Loaded { added: 1, changed: 2, removed: 3 };
        let (scope, scope_id) = (Scope::Rack, self.rack.as_ref());
        let began = |r#move, recalled_from| Event::UnavailabilityRecorded {
            of: Unavailable::Began {
                scope,
                scope_id,
                kind: UnavailabilityKind::Software,
                started_at: AT,
                ended_at: None,
                r#move,
                recalled_from,
            },
        };
        let cleared = |kind, at| Event::UnavailabilityCleared {
            scope,
            scope_id,
            kind,
            started_at: kind.and(at),
            ended_at: at,
        };
        let changed = |servers| Event::MaintenanceChanged {
            window,
            to: MaintenanceChange::State {
                state: MaintenanceState::Paused,
                reason: Some(MaintenanceReason::Recalled),
                detail: None,
                scope,
                scope_id: &self.rack,
                servers,
            },
        };
        let planned = |accept_short| Event::MaintenancePlanned {
            plan: MaintenancePlanId::from_u128(8),
            asked_for: Scope::Msb,
            scope,
            scope_id: &self.rack,
            msb: &self.msb,
            starts_at: AT,
            ends_at: AT,
            drain_seconds: 600,
            share_micro: 50_000,
            recall_minutes: Some(20),
            why: "firmware",
            servers: 2,
            accept_short,
        };
        let gave_way = |cause| Event::ReservationsGaveWay {
            cause,
            plan: vec![Handover::from(&self.preempted)],
            servers: &self.servers,
        };
        let limit = || LimitSet { of: "servers".to_owned(), limit: 3.0 };
        let lost = &self.servers[..1];
        let names = || vec![&self.server];
        vec![
            Event::SnapshotLoaded {
                version,
                servers: loaded(),
                reservations: loaded(),
                unavailability: loaded(),
                domains_changed: 7,
                bindings_changed: 4,
                bindings_freed: 5,
                contradictions: 6,
            },
            Event::TargetsPublished {
                taken: 3,
                skipped: 2,
                kept_back: 1,
                publication: PublicationId::from_u128(9),
                solve: Some(SolveId::from_u128(10)),
            },
            began(None, None),
            began(Some(r#move), None),
            began(None, Some("maintenance/1")),
            Event::UnavailabilityRecorded {
                of: Unavailable::StaysOut {
                    scope,
                    scope_id,
                    recall: RecallState::Refused,
                    why: "no",
                },
            },
            cleared(None, None),
            cleared(None, Some(AT)),
            cleared(Some(UnavailabilityKind::RandomFailure), Some(AT)),
            Event::MovesOpened { opened: 2, superseded: 1, maintenance: None },
            Event::MovesOpened { opened: 2, superseded: 0, maintenance: Some(window) },
            Event::ServerBound {
                r#move: other,
                source: None,
                target: Some("web"),
                version,
                origin: "targets",
            },
            Event::MoveEnded {
                r#move,
                target: Some("web"),
                reason: MoveReason::HostRefused,
                said: "no",
            },
            Event::MoverStopped { why: "a drill" },
            Event::MoverResumed {},
            Event::ServerReplaced { reservation: &self.web, spare: &self.server, exceeds: &[] },
            Event::ServerReplaced {
                reservation: &self.web,
                spare: &self.server,
                exceeds: &self.servers,
            },
            Event::ReplacementOwed { reservation: "web" },
            Event::ServerReturns { reservation: &self.web, spare: &self.server },
            Event::SpareReturns { reservation: "web", server: "s1" },
            Event::OutageBegan {
                reason: OutageReason::Storm,
                servers: 24,
                out: 6,
                failed_lately: 5,
                lent: Some(7),
            },
            Event::OutageEnded { servers: 24, out: 0 },
            Event::ServersLent { servers: &self.servers },
            Event::ServersRecalled { servers: &self.servers },
            Event::UsageReported { in_use: vec!["s1"], idle: vec!["s2"] },
            planned(None),
            planned(Some(AcceptShort { reservations: &self.accepted, why: "agreed" })),
            changed(Some(self.servers.clone())),
            changed(None),
            Event::MaintenanceChanged {
                window,
                to: MaintenanceChange::Recalled {
                    state: MaintenanceState::Recalling,
                    detail: "MSB m1 is lost",
                    due_at: AT,
                    place: 1,
                    servers: names(),
                },
            },
            Event::MaintenanceChanged {
                window,
                to: MaintenanceChange::Later {
                    ends_at: AT,
                    servers: [],
                    detail: "the clock was set forward".to_owned(),
                },
            },
            Event::ContractSet {
                in_use_micro: 400_000,
                window_seconds: 86_400,
                zone: "Europe/Berlin",
                quiet: vec!["08:00-18:00".to_owned()],
            },
            Event::ContractRemoved {},
            Event::AutosizeSet {
                metric: "used_rru",
                quantile_micro: 990_000,
                min_rru: 10.0,
                max_rru: 40.5,
                cooldown_seconds: 86_400,
            },
            Event::AutosizeRemoved {},
            Event::PolicySet { version: 2, edition: 7, why: "breakers were replaced" },
            Event::PolicyWithdrawn { version: 3, edition: 8, why: "" },
            Event::EmergencyAsked {
                emergency,
                rru: 30.0,
                why: "site outage",
                max_servers: 9,
                beyond_limits: false,
            },
            Event::EmergencyGranted {
                emergency,
                answer: EmergencyAnswer::Granted {
                    rru: 30.0,
                    servers: self.servers.clone(),
                    from_shared: 1,
                    exceeds: Vec::new(),
                },
            },
            Event::EmergencyGranted {
                emergency,
                answer: EmergencyAnswer::Refused {
                    refused: EmergencyRefusal::NothingFits,
                    servers: [],
                },
            },
            Event::EmergencyEnded { emergency, state: EmergencyState::Ended },
            gave_way(GaveWay::Operator { why: "site outage", anyway: true, lost }),
            gave_way(GaveWay::Delay { after_seconds: 2, since: AT, lost }),
            Event::TokenCreated { token, role: Role::Owner, owner: Some("owner"), expires_at: AT },
            Event::TokenRevoked { token, role: Role::Owner },
            Event::RequestSubmitted {
                request,
                state: RequestState::Submitted,
                asking: &self.asking,
            },
            Event::RequestRefused { request, code: "not_granted", reasons: Some(&self.reasons) },
            Event::RequestRefused { request, code: "expired", reasons: None },
            Event::RequestCancelled { request, before: RequestState::Submitted },
            Event::PlanApplied {
                requests: vec![request],
                reservations: vec![&self.web, &self.ads],
                promises: vec![
                    PromiseChange { reservation: &self.web, before_rru: None, rru: 2.25 },
                    PromiseChange { reservation: &self.ads, before_rru: Some(2.0), rru: 1.5 },
                ],
                servers: names(),
            },
            Event::ReservationRemoved { kind: None },
            Event::ReservationRemoved { kind: Some(ReservationKind::Elastic) },
            Event::QuotaSet {
                before: vec![limit()],
                limits: Vec::new(),
                before_max_priority: Some(1),
                max_priority: None,
            },
            Event::SolveRequested { cause: Cause::Demand },
            Event::SolveCancelled {},
            Event::ProfileSet { before_rru: None, rru: self.amounts() },
            Event::ProfileSet { before_rru: Some(self.amounts()), rru: self.amounts() },
            Event::ProfileRemoved { before_rru: self.amounts() },
            Event::RegionSettingsSet { before: &self.settings, after: &self.settings },
            Event::SharedBufferSet { before: None, servers: None, listed: false, why: None },
            Event::SharedBufferSet {
                before: Some(BufferSize { servers: 2, listed: true }),
                servers: Some(3.0),
                listed: true,
                why: Some("failures"),
            },
            Event::BufferAutosizeSet {
                chance_micro: 10_000,
                min_servers: 4,
                max_servers: 40,
                cooldown_seconds: 86_400,
            },
            Event::BufferAutosizeRemoved {},
            Event::ElasticSet { before: None, after: Some(self.terms()) },
            Event::ElasticEnded { before: self.terms(), borrows: 2 },
            Event::HardwareTypeAdded {},
            Event::ServersRacked { servers: &self.racked },
            Event::ServersDecommissioned { servers: names() },
            Event::ServersRelocated { servers: &self.relocated },
            Event::DecommissionAsked { servers: vec!["s1"], again: false },
            Event::DecommissionAsked { servers: vec!["s1"], again: true },
            Event::DecommissionCancelled { servers: ["s1"].into() },
            Event::HardwareTypeRenamed { name: "C2" },
            Event::HardwareTypeRemoved {},
            Event::HardwareOrdered { of: self.ordered(8) },
            Event::HardwareOrderChanged { before: self.ordered(8), after: self.ordered(6) },
            Event::HardwareOrderArrived { of: self.ordered(6) },
            Event::HardwareOrderCancelled { of: self.ordered(6) },
            Event::RolloutPaused { why: "a look" },
            Event::RolloutResumed {},
            Event::SolveAwaitsApproval { in_use_moves: 7, servers: 8 },
            Event::SolveApproved { version },
            Event::SolveRejected { why: "not now" },
            Event::RequestAwaitsApproval { request, in_use_moves: 7 },
            Event::RequestApproved { request, in_use_moves: 7 },
        ]
    }
}

#[test]
fn details_keep_their_members() {
    let things = Things::new();
    let events = things.events();
    let lines =
        events.iter().map(|of| format!("{} {}\n", of.action().as_str(), of.detail().text()));
    let lines: String = lines.collect();
    assert_eq!(lines, include_str!("details.txt"), "\n{lines}");
    let seen: BTreeSet<Action> = events.iter().map(Event::action).collect();
    assert_eq!(seen, Action::ALL.into(), "each action has a line");
}

/// A watcher reads of each event which servers it affects; only where nothing is named, anything may be.
#[test]
fn watchers_read_each_detail() {
    let things = Things::new();
    let mut unclear = BTreeSet::new();
    for event in things.events() {
        let mut affected = AffectedServers::default();
        affected.add(&Entry {
            seq: Seq(1),
            at: AT,
            actor: "test".to_owned(),
            action: event.action().into(),
            subject: Some("7".to_owned()),
            detail: event.detail(),
        });
        if affected.anything {
            unclear.insert(format!("{} {}", event.action().as_str(), event.detail().text()));
        }
    }
    let words: Vec<&str> = unclear.iter().filter_map(|of| of.split(' ').next()).collect();
    let expected = [
        "hardware_type_renamed",
        // Of more servers than an entry names.
        "maintenance_changed",
        "servers_decommissioned",
        "servers_racked",
        "servers_relocated",
        "snapshot_loaded",
    ];
    assert_eq!(words, expected, "{unclear:?}");
}
