//! A region over time, driven by commands.

use crate::region;
use crate::show;
use crate::solve::solve;
use crate::statement::Statement;
use fleet::audit::audit;
use fleet::{RegionSnapshot, Scope, SnapshotParts, Targets};

/// A region as it stands, and the last solve of it.
#[derive(Default)]
pub struct World {
    parts: Option<SnapshotParts>,
    /// The region before the last solve was carried out, and its targets.
    last: Option<(RegionSnapshot, Targets)>,
}

impl World {
    /// Carries a block of commands out, one a line, and returns what they print. A command that
    /// is refused prints why, and ends the block.
    pub fn run(&mut self, block: impl IntoIterator<Item = Statement>) -> String {
        let mut text = String::new();
        for statement in block {
            match self.step(statement) {
                Ok(said) => text.push_str(&said),
                Err(error) => {
                    text.push_str(&format!("refused: {error}\n"));
                    break;
                }
            }
        }
        text
    }

    fn step(&mut self, mut said: Statement) -> Result<String, String> {
        let verb = said.verb.clone();
        if verb == "region" {
            *self = World { parts: Some(region::region(&mut said)?), last: None };
            said.finish()?;
            return Ok(String::new());
        }
        let parts = self.parts.as_mut().ok_or("there is no region yet")?;
        let change = match verb.as_str() {
            "servers" => region::servers(parts, &mut said),
            "domain" => region::domain(parts, &mut said),
            "reservation" => region::reservation(parts, &mut said),
            "resize" => region::resize(parts, &mut said),
            "hold" => region::hold(parts, &mut said),
            "use" => region::start(parts, &mut said),
            "moving" => region::moving(parts, &mut said),
            "allow" => region::hold_to(parts, &mut said),
            "lend" => region::lend(parts, &mut said),
            "fail" | "maintain" => region::event(parts, &mut said),
            "repair" => {
                parts.unavailability.clear();
                Ok(())
            }
            _ => return self.question(said),
        };
        change?;
        said.finish()?;
        Ok(String::new())
    }

    /// Commands that print.
    fn question(&mut self, mut said: Statement) -> Result<String, String> {
        let verb = said.verb.clone();
        let again = verb == "solve" && said.flag("again");
        let name = match verb.as_str() {
            "explain" | "where" => said.value("name")?,
            _ => String::new(),
        };
        let by = if verb == "where" { said.optional("by")? } else { None };
        said.finish()?;
        let now = self.snapshot()?;
        match verb.as_str() {
            "solve" => Ok(self.solve(now, again)),
            "audit" => Ok(show::audit(&now)),
            "certify" => Ok(show::certificate(&now)),
            "losses" => Ok(show::losses(&audit(&now, &Targets::unchanged(&now)))),
            "where" => {
                show::place(&now, &name, &by.unwrap_or_else(|| Scope::Msb.as_str().to_owned()))
            }
            "explain" => {
                let (snapshot, targets) = self.last.as_ref().ok_or("nothing was solved yet")?;
                show::explanation(snapshot, targets, &name)
            }
            _ => Err(format!("{verb} means nothing")),
        }
    }

    fn snapshot(&self) -> Result<RegionSnapshot, String> {
        let parts = self.parts.clone().ok_or("there is no region yet")?;
        RegionSnapshot::new(parts).map_err(|error| error.to_string())
    }

    /// Solves the region and carries the targets out. `again`: only what moves is of interest.
    fn solve(&mut self, snapshot: RegionSnapshot, again: bool) -> String {
        let solved = solve(&snapshot);
        let mut text: String =
            solved.objections.iter().map(|objection| format!("WRONG: {objection}\n")).collect();
        if !again {
            text.push_str(&show::holdings(&snapshot, &solved));
        }
        text.push_str(&show::moves(&snapshot, &solved.targets));
        self.parts = Some(solved.targets.apply(&snapshot));
        self.last = Some((snapshot, solved.targets));
        text
    }
}
