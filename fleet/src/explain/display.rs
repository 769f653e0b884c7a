//! An explanation as text.

use super::text::{amount, amounts, counted, exact};
use super::{Explanation, Shortfall};
use std::fmt;

/// Rows of a table that are written out before the rest is only counted.
const ROWS_MAX: usize = 60;
/// Holders of usable servers that are written out before the rest is only counted.
const HOLDERS_MAX: usize = 12;

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domains = self.msb_buffer.then_some("MSB").into_iter();
        let domains: Vec<&str> = domains.chain(self.survives.iter().map(|of| &**of)).collect();
        let buffer = match (self.kind, domains.is_empty()) {
            ("guaranteed", false) => {
                format!(", survives the loss of any one {}", domains.join(" or "))
            }
            ("guaranteed", true) => ", without embedded buffer".to_owned(),
            _ => String::new(),
        };
        writeln!(
            out,
            "{} ({} of {}, priority {}{buffer})",
            self.reservation_id, self.kind, self.owner, self.priority
        )?;
        let [capacity, assigned, guaranteed] =
            amounts([self.capacity, self.assigned, self.guaranteed]);
        writeln!(
            out,
            "  {capacity} RRU asked, {assigned} RRU assigned, {guaranteed} RRU guaranteed"
        )?;
        if self.unavailable_servers > 0 {
            let servers = counted(self.unavailable_servers, "server");
            writeln!(out, "  {servers} it holds are unavailable and do not count")?;
        }
        if self.borrowed_servers > 0 {
            writeln!(out, "  borrows {}", counted(self.borrowed_servers, "server"))?;
        }
        self.tables(out)?;
        if let Some(worst) = &self.worst_msb {
            let (lost, left) = (amount(worst.lost), amount(worst.left));
            writeln!(
                out,
                "  worst MSB: {}, {lost} RRU; {left} RRU are left without it",
                worst.msb
            )?;
        }
        let Some(Shortfall { missing, reason, sentence, evidence, held_by, .. }) = &self.shortfall
        else {
            return match self.kind {
                "elastic" => Ok(()),
                _ => writeln!(out, "  its request is satisfied"),
            };
        };
        writeln!(out, "  short by {} RRU: {reason}", exact(*missing))?;
        writeln!(out, "    {sentence}")?;
        if !held_by.is_empty() {
            writeln!(out, "  reservations that hold servers of its types:")?;
        }
        for of in held_by.iter().take(HOLDERS_MAX) {
            writeln!(out, "    {of}")?;
        }
        if held_by.len() > HOLDERS_MAX {
            writeln!(out, "    and {} more", held_by.len() - HOLDERS_MAX)?;
        }
        if evidence.within_affinity >= self.capacity {
            return Ok(());
        }
        if self.relaxations.is_empty() {
            return writeln!(
                out,
                "  no single change would grant it with the servers that are free now"
            );
        }
        writeln!(
            out,
            "  each of these changes alone would grant it with the servers that are free now:"
        )?;
        for relaxation in &self.relaxations {
            writeln!(out, "    {relaxation}")?;
        }
        Ok(())
    }
}

impl Explanation {
    fn tables(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = self.by_type.iter().map(|row| (&*row.hardware_type, row.servers, row.amount));
        let msbs = self.by_msb.iter().map(|row| (&*row.msb, row.servers, row.amount));
        table(out, "hardware type", &types.collect::<Vec<_>>())?;
        table(out, "MSB", &msbs.collect::<Vec<_>>())
    }
}

fn table(
    out: &mut fmt::Formatter<'_>,
    title: &str,
    rows: &[(&str, usize, crate::rru::Rru)],
) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    let shown = &rows[..rows.len().min(ROWS_MAX)];
    let width = shown.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
    let width = width.max(title.len());
    writeln!(out, "  {title:<width$}  {:>9}  {:>12}", "servers", "RRU")?;
    for (name, servers, rru) in shown {
        writeln!(
            out,
            "  {name:<width$}  {:>9}  {:>12}",
            super::text::count(*servers),
            exact(*rru)
        )?;
    }
    if rows.len() > shown.len() {
        writeln!(out, "  and {} more", rows.len() - shown.len())?;
    }
    Ok(())
}
