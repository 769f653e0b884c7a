//! Relative links between Markdown pages lead to a file, and to a heading where they name one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the project")
}

/// Lines of a page outside fenced code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fence && !fenced
    })
}

/// Targets of the links of a page, without those to other sites.
fn links(page: &str) -> Vec<String> {
    let text = prose(page).collect::<Vec<_>>().join("\n");
    let targets = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    // A name alone is mathematics, such as `x[i](p)`.
    let local = |target: &&str| target.contains(['.', '#', '/']) && !target.contains("://");
    targets.filter(local).map(str::to_owned).collect()
}

/// The anchor that GitHub makes of a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Whether a link on a page leads somewhere.
fn leads(from: &Path, target: &str) -> bool {
    let (file, heading) = target.split_once('#').map_or((target, None), |(f, h)| (f, Some(h)));
    let path: PathBuf = match file {
        "" => from.to_owned(),
        file => from.parent().expect("a folder").join(file),
    };
    let Some(heading) = heading else { return path.exists() };
    let Ok(page) = fs::read_to_string(&path) else { return false };
    prose(&page).any(|line| line.starts_with('#') && anchor(line) == heading)
}

#[test]
fn links_between_pages_resolve() {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"];
    let output = Command::new("git").args(arguments).current_dir(root()).output().expect("git");
    let pages = String::from_utf8(output.stdout).expect("UTF-8");
    let mut checked = 0;
    let mut broken = Vec::new();
    for page in pages.lines().map(|page| root().join(page)).filter(|page| page.is_file()) {
        let text = fs::read_to_string(&page).expect("UTF-8");
        for link in links(&text) {
            checked += 1;
            if !leads(&page, &link) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(checked >= 50, "only {checked} links found");
}

#[test]
fn link_to_a_missing_file_or_heading_is_broken() {
    let here = root().join("docs/operations/README.md");
    assert!(leads(&here, "moves.md#limits"));
    assert!(!leads(&here, "moves.md#no-such-heading"));
    assert!(!leads(&here, "no-such-page.md"));
    assert_eq!(anchor("## Signals, and `Ctrl-C`"), "signals-and-ctrl-c");
    assert_eq!(links("[a](b.md#c)\n```\n[x](y)\n```\n[d](https://e)"), ["b.md#c"]);
}
