//! `ras completions` and `ras man`

use crate::cli::Cli;
use crate::exit::Verdict;
use crate::terminal::print;
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

pub(super) fn completions(shell: Shell) -> Result<Verdict> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ras", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Verdict::Fine)
}

/// One page for the whole program, with all subcommands and their options.
pub(super) fn man() -> Result<Verdict> {
    let mut page = Vec::new();
    let mut command = Cli::command();
    command.build();
    render(&command, &mut page)?;
    print(&String::from_utf8_lossy(&page))?;
    Ok(Verdict::Fine)
}

/// A page for each command, in a folder.
pub(super) fn manual(folder: &Path) -> Result<Verdict> {
    let name = || format!("manual pages in {}", folder.display());
    std::fs::create_dir_all(folder).with_context(name)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(name)?;
    Ok(Verdict::Fine)
}

fn render(command: &clap::Command, page: &mut Vec<u8>) -> Result<()> {
    clap_mangen::Man::new(command.clone()).render(page).context("writing the manual page")?;
    for subcommand in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        if subcommand.get_name() != "help" {
            render(subcommand, page)?;
        }
    }
    Ok(())
}
