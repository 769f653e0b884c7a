//! Commands about hardware that is on order and arrives.

use super::{ACTOR, Stored};
use crate::statement::Statement;
use broker::{HardwareOrder, HardwareOrderAsked, HardwareOrderChange, State as _};
use chrono::Days;
use fleet::edit::{Racked, ServerEdit};

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Stored {
    /// `order`: enters an order of servers for tomorrow; with `arrived` or `cancelled`, what became of it.
    pub(super) async fn order(&mut self, said: &mut Statement) -> Result<String, String> {
        let (ended, servers) = (end(said), said.optional("count")?);
        let hardware_type: String = said.value("type")?;
        let (_, now) = self.export().await?;
        let datacenter = now.datacenters.first().ok_or("the region has no datacenter")?.id.clone();
        match (ended, servers) {
            (None, Some(servers)) => {
                let tomorrow = self.broker.clock().await.map_err(text)?.date_naive() + Days::new(1);
                let hardware_type = hardware_type.as_str().into();
                let asked = HardwareOrderAsked {
                    hardware_type,
                    datacenter,
                    servers,
                    expected_on: tomorrow,
                };
                self.broker.add_hardware_orders(ACTOR, &[asked], None).await.map_err(text)?;
            }
            (Some(to), None) => {
                let open = self.on_order().await?;
                let open = open.iter().find(|order| *order.of.hardware_type == *hardware_type);
                let id = open.ok_or_else(|| format!("order: no {hardware_type} is on order"))?.id;
                let id = id.to_string();
                let ended = self.broker.change_hardware_order(ACTOR, &id, to, None, None);
                ended.await.map_err(text)?;
            }
            _ => return Err("order: say count=, arrived or cancelled".to_owned()),
        }
        let counts: Vec<String> = (self.on_order().await?.iter())
            .map(|order| format!("{} {}", order.of.servers, order.of.hardware_type))
            .collect();
        Ok(match counts.is_empty() {
            true => "on order: nothing\n".to_owned(),
            false => format!("on order: {}\n", counts.join(", ")),
        })
    }

    async fn on_order(&self) -> Result<Vec<HardwareOrder>, String> {
        let mut orders = self.broker.hardware_orders().await.map_err(text)?;
        orders.retain(|order| !order.state.is_terminal());
        Ok(orders)
    }

    /// `rack`: servers are racked in an MSB, in a rack of their own.
    pub(super) async fn rack(&mut self, said: &mut Statement) -> Result<String, String> {
        let (msb, hardware_type): (String, String) = (said.value("msb")?, said.value("type")?);
        let count: usize = said.value("count")?;
        let rack = format!("{msb}-new");
        let racked = (0..count).map(|n| Racked {
            server: format!("{rack}-s{n}").into(),
            datacenter: None,
            msb: Some(msb.as_str().into()),
            rack: rack.as_str().into(),
            hardware_type: hardware_type.as_str().into(),
            power_watts: None,
            domains: Default::default(),
        });
        let edit = ServerEdit::Add(racked.collect());
        let plan = self.broker.edit_servers(ACTOR, &edit, false, None).await.map_err(text)?;
        Ok(format!("racked: {} servers in {msb}\n", plan.servers))
    }
}

/// What became of an order.
fn end(said: &mut Statement) -> Option<HardwareOrderChange> {
    let ends =
        [("arrived", HardwareOrderChange::Arrived), ("cancelled", HardwareOrderChange::Cancelled)];
    ends.into_iter().find(|(word, _)| said.flag(word)).map(|(_, to)| to)
}
