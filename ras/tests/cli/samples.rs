//! What help, hints and the manual tell people to type is what the command line takes.

use clap::{Command, CommandFactory, Parser};
use ras::cli::Cli;
use std::fs;
use std::path::{Path, PathBuf};

/// What samples call `ID`.
const UUID: &str = "0198a2c4-7d1e-7000-8000-000000000001";

/// The words of a line of shell, without comment, redirection and what follows a pipe.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(letter),
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            ('|' | '>' | '&', None) => break,
            (' ', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// The commands among lines of shell: those of `ras`, continued lines joined.
fn commands(text: &str) -> Vec<Vec<String>> {
    let text = text.replace("\\\n", " ");
    let of = text.lines().map(|line| words(line.trim().trim_start_matches('$')));
    of.filter_map(|words| {
        // Variables may be set in front.
        let ras = words.iter().position(|word| !word.contains('='))?;
        let words = words[ras..].iter().map(|word| if word == "ID" { UUID } else { word });
        (words.clone().next() == Some("ras")).then(|| words.map(str::to_owned).collect())
    })
    .collect()
}

fn failure(sample: &[String], place: &str) -> Option<String> {
    let error = Cli::try_parse_from(sample).err()?;
    // `--help` is an error to the parser.
    error.use_stderr().then(|| format!("{place}: {}\n  {error}", sample.join(" ")))
}

fn each(command: &Command, look: &mut impl FnMut(&Command)) {
    look(command);
    command.get_subcommands().for_each(|of| each(of, look));
}

#[test]
fn samples_in_help_are_commands() {
    let mut command = Cli::command();
    command.build();
    let (mut count, mut wrong) = (0, Vec::new());
    each(&command, &mut |of| {
        let help = of.get_after_help().map(ToString::to_string).unwrap_or_default();
        for sample in commands(&help) {
            count += 1;
            wrong.extend(failure(&sample, of.get_name()));
        }
    });
    assert!(count > 40, "{count} samples");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The project's files of this kind below a folder.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("reads").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|of| of == ending) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn samples_in_the_manual_are_commands() {
    let (mut count, mut wrong) = (0, Vec::new());
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    for file in files("docs/operations", "md").into_iter().chain([readme]) {
        let text = fs::read_to_string(&file).expect("text");
        for block in text.split("```sh\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            for sample in commands(block) {
                count += 1;
                wrong.extend(failure(&sample, &file.display().to_string()));
            }
        }
    }
    assert!(count > 40, "{count} samples");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first word of a hint that the command line does not know; `None`: it knows all.
fn unknown<'a>(hint: &'a str, root: &Command) -> Option<&'a str> {
    let mut command = root;
    for word in hint.split(' ').skip(1) {
        if let Some(option) = word.strip_prefix("--") {
            let option = option.split('=').next().unwrap_or_default();
            let known = |of: &Command| {
                of.get_arguments().any(|of| {
                    of.get_long_and_visible_aliases().is_some_and(|of| of.contains(&option))
                })
            };
            if option != "help" && !known(command) && !known(root) {
                return Some(word);
            }
        } else if let Some(of) = command.find_subcommand(word) {
            command = of;
        } else if command.has_subcommands()
            && word.chars().all(|of| of.is_ascii_lowercase() || of == '-')
        {
            return Some(word);
        }
    }
    None
}

#[test]
fn hints_name_commands_and_options_that_exist() {
    let mut root = Cli::command();
    root.build();
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files("ras/src", "rs").into_iter().chain(files("capacity-portal/src", "rs")) {
        let text = fs::read_to_string(&file).expect("text");
        for hint in
            text.split('`').skip(1).filter(|of| of.starts_with("ras ") && !of.contains('\n'))
        {
            count += 1;
            let word = unknown(hint, &root);
            wrong.extend(word.map(|word| format!("{}: `{hint}`: {word}", file.display())));
        }
    }
    assert!(count > 100, "{count} hints");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
