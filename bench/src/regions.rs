//! Names of regions to generate, as `--regions` takes them.

use ras::cli::{FleetProfile, State};
use std::fmt;
use std::str::FromStr;

/// Sizes, starts and fleets that are measured beside each other.
const HEADLINE: &str = "20000x80-cold,20000x80-steady,20000x80-greedy,20000x80-churned,100000x400-cold,\
    100000x400-steady,100000x400-greedy,300000x1000-cold,300000x1000-steady,300000x1000-greedy,1000000x2000-cold,\
    1000000x2000-steady,1000000x2000-greedy,research-cold,switches-cold";

/// A region to generate. What is `None` is the profile's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedRegion {
    /// What fleet it is like.
    pub profile: FleetProfile,
    /// Its servers.
    pub servers: Option<usize>,
    /// Its MSBs.
    pub msbs: Option<usize>,
    /// Its hardware types.
    pub hardware_types: Option<usize>,
    /// Its guaranteed reservations.
    pub reservations: Option<usize>,
    /// What it holds already.
    pub state: State,
}

impl fmt::Display for GeneratedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.generated().as_str();
        let state = if self.state == State::Churned { "churned" } else { state };
        match (self.profile, self.servers, self.reservations) {
            (FleetProfile::Ras, Some(servers), Some(reservations)) => {
                write!(f, "{servers}x{reservations}-{state}")
            }
            (FleetProfile::Ras, ..) => write!(f, "ras-{state}"),
            (FleetProfile::Research, ..) => write!(f, "research-{state}"),
            (FleetProfile::Switches, ..) => write!(f, "switches-{state}"),
        }
    }
}

impl FromStr for GeneratedRegion {
    type Err = String;

    fn from_str(text: &str) -> Result<GeneratedRegion, String> {
        let wrong = || {
            format!(
                "{text:?} is not headline, SERVERSxRESERVATIONS-STATE, research-STATE or switches-STATE, such as \
                 20000x80-greedy; states are cold, steady, greedy and churned"
            )
        };
        let (fleet, state) = text.split_once('-').ok_or_else(wrong)?;
        let state = <State as clap::ValueEnum>::from_str(state, false).map_err(|_| wrong())?;
        let (profile, servers, reservations) = match fleet {
            "research" => (FleetProfile::Research, None, None),
            "switches" => (FleetProfile::Switches, None, None),
            size => {
                let (servers, reservations) = size.split_once('x').ok_or_else(wrong)?;
                let count = |text: &str| text.parse::<usize>().map(Some).map_err(|_| wrong());
                (FleetProfile::Ras, count(servers)?, count(reservations)?)
            }
        };
        let (msbs, hardware_types) = (None, None);
        Ok(GeneratedRegion { profile, servers, msbs, hardware_types, reservations, state })
    }
}

/// Several regions to generate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions(pub Vec<GeneratedRegion>);

impl FromStr for Regions {
    type Err = String;

    fn from_str(text: &str) -> Result<Regions, String> {
        let names = text.split(',').map(str::trim).flat_map(|name| match name {
            "headline" => HEADLINE.split(','),
            name => name.split(','),
        });
        names.map(str::parse).collect::<Result<_, _>>().map(Regions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_regions_read_back() {
        let headline: Regions = "headline".parse().expect("the list parses");
        let names: Vec<String> = headline.0.iter().map(ToString::to_string).collect();
        assert_eq!(names.join(","), HEADLINE);
        let one: Regions = "research-greedy, 2000x40-churned".parse().expect("two names");
        assert_eq!(one.0[0].profile, FleetProfile::Research);
        assert_eq!((one.0[1].servers, one.0[1].reservations), (Some(2_000), Some(40)));
        assert_eq!(
            "20x1-cold,headline".parse::<Regions>().expect("a list").0.len(),
            headline.0.len() + 1
        );
        for wrong in ["", "20000x80", "20000-cold", "20000x80-warm", "ax80-cold", "headline,x"] {
            let error = wrong.parse::<Regions>().expect_err(wrong);
            assert!(error.contains("SERVERSxRESERVATIONS-STATE"), "{error}");
        }
    }
}
