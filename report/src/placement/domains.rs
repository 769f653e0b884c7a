//! Domains as a heat map: the load of each metric, by level.

use super::loads::{Load, Loads};
use crate::{number, svg};
use maud::{Markup, html};
use placement::{Cluster, Level, LevelIx};

/// Domains of a level that are drawn.
const DOMAINS: usize = 48;

/// Colour classes, and the upper ends of their loads but the last one's.
const CLASSES: [&str; 7] = ["h1", "h2", "h3", "h4", "h5", "h6", "h7"];
const ENDS: [f64; 6] = [0.25, 0.5, 0.7, 0.85, 0.95, 1.0];

pub fn section(cluster: &Cluster, loads: &Loads) -> Markup {
    let levels: Vec<&Level> = cluster.levels.iter().skip(LevelIx::NODE.ix() + 1).collect();
    html! {
        section #domains {
            h2 { "Domains" }
            @if levels.is_empty() || cluster.metrics.is_empty() {
                (svg::missing("The nodes have no domains beside themselves."))
            } @else {
                p.lead { "The load of all nodes of a domain after the moves, as a share of their capacity." }
                (svg::legend(legend()))
                @for level in levels { (map(cluster, loads, level)) }
            }
        }
    }
}

fn legend() -> Vec<(&'static str, String)> {
    let ends = CLASSES.into_iter().zip(ENDS);
    let mut entries: Vec<(&str, String)> =
        ends.map(|(class, end)| (class, format!("up to {}", number::percent_round(end)))).collect();
    entries.push((CLASSES[ENDS.len()], "above the capacity".to_owned()));
    entries
}

fn map(cluster: &Cluster, loads: &Loads, level: &Level) -> Markup {
    let nothing = Load { today: 0, after: 0, capacity: Some(0) };
    let mut sums = vec![vec![nothing; cluster.metrics.len()]; level.domains.len()];
    for (node, domain) in level.domain_of.iter().enumerate() {
        for (metric, sum) in sums[domain.ix()].iter_mut().enumerate() {
            *sum = sum.plus(loads.of(cluster, node, metric));
        }
    }
    let shown = level.domains.len().min(DOMAINS);
    html! {
        h3 { (level.name) ": " (number::counted(level.domains.len(), "domain")) }
        div.scroll tabindex="0" role="region" aria-label={ "Load by domain of level " (level.name) } {
            table.rows {
                tbody { @for (metric, of) in cluster.metrics.iter().enumerate() {
                    tr {
                        th scope="row" title=(of.name) { (of.name) }
                        td.c { svg width="100%" height="18" role="img" aria-label={ (of.name) " by " (level.name) } {
                            @for (position, (domain, sums)) in level.domains.iter().zip(&sums).take(shown).enumerate() {
                                (cell(domain, &sums[metric], position, shown))
                            }
                        } }
                    }
                } }
            }
        }
        (svg::left_out(shown, level.domains.len(), "domain"))
    }
}

fn cell(domain: &str, load: &Load, position: usize, of: usize) -> Markup {
    let said = |share: Option<f64>| share.map_or("no limit".to_owned(), number::percent);
    let class = load.share_after().filter(|_| load.after > 0).map_or("outline", class_of);
    let width = 1.0 / of as f64;
    html! {
        rect class=(class) x=(svg::percent(position as f64 * width)) width=(svg::percent(width * 0.94)) height="17"
            data-tip={ (domain) ": " (said(load.share_today())) " today, " (said(load.share_after())) " after" } {}
    }
}

fn class_of(share: f64) -> &'static str {
    CLASSES[ENDS.iter().take_while(|end| share > **end).count()]
}

#[cfg(test)]
mod tests {
    use super::class_of;

    #[test]
    fn full_domains_and_overloaded_domains_have_different_colours() {
        assert_eq!([0.1, 0.25, 0.96, 1.0, 1.01].map(class_of), ["h1", "h1", "h6", "h6", "h7"]);
    }
}
