//! Comments, strings, test names and Markdown use the terms of the trade: phrases that
//! `tests/language/banned.txt` lists must not appear, except where `tests/language/allowed.txt` says why.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// Migrations up to this one were applied to databases, so their text is frozen.
const LAST_FROZEN_MIGRATION: &str = "migrations/0081";

/// Fewer files than this mean that the walk is broken.
const FILES_AT_LEAST: usize = 500;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the project")
}

/// A phrase as one set of alternatives per word, and what to write instead.
struct Rule {
    words: Vec<Vec<String>>,
    phrase: String,
    instead: String,
}

/// A banned phrase in a file.
struct Hit<'a> {
    path: String,
    line: usize,
    rule: &'a Rule,
}

/// The rows of a list: cells between bars, comments left out.
fn rows<const N: usize>(text: &str) -> Vec<[String; N]> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let cells = lines.map(|line| {
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().to_owned()).collect();
        cells.try_into().unwrap_or_else(|_| panic!("{N} cells expected: {line}"))
    });
    cells.collect()
}

fn list(name: &str) -> String {
    let path = root().join("tests/language").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rules(text: &str) -> Vec<Rule> {
    let rule = |[phrase, instead]: [String; 2]| {
        let words = phrase.split(' ');
        let words = words.map(|word| word.split('/').map(str::to_owned).collect()).collect();
        Rule { words, phrase, instead }
    };
    rows(text).into_iter().map(rule).collect()
}

/// The words of a text in order. `None` separates passages: no phrase crosses it.
#[derive(Default)]
struct Words {
    words: Vec<Option<Range<usize>>>,
}

impl Words {
    fn end(&mut self) {
        if self.words.last().is_some_and(Option::is_some) {
            self.words.push(None);
        }
    }

    /// Takes prose. Spaces, hyphens, quotes and emphasis separate words, any other sign passages.
    fn prose(&mut self, text: &[u8], range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            let byte = text[at];
            if is_word(byte) {
                let begin = at;
                while at < range.end && is_word(text[at]) {
                    at += 1;
                }
                self.words.push(Some(begin..at));
                continue;
            }
            if !byte.is_ascii_whitespace() && !b"-'*/>#".contains(&byte) {
                self.end();
            }
            at += 1;
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Prose of Markdown: all but fenced code.
fn markdown(text: &str) -> Words {
    let mut words = Words::default();
    let (mut at, mut fenced) = (0, false);
    for line in text.split_inclusive('\n') {
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        if fence || line.trim().is_empty() {
            words.end();
        }
        if !fence && !fenced {
            words.prose(text.as_bytes(), at..at + line.len());
        }
        fenced ^= fence;
        at += line.len();
    }
    words
}

/// Comments, string literals and names of tests of a Rust file.
fn rust(text: &str) -> Words {
    let text = text.as_bytes();
    let mut words = Words::default();
    let mut at = 0;
    // Where the item begins that the scanner is in, to find the attributes before `fn`.
    let mut item = 0;
    while at < text.len() {
        let rest = &text[at..];
        let begin = at;
        if rest.starts_with(b"//") {
            at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            words.prose(text, begin + 2 + usize::from(rest.get(2) == Some(&b'!'))..at);
        } else if rest.starts_with(b"/*") {
            at += find(rest, b"*/") + 2;
            words.prose(text, begin..at.min(text.len()));
        } else if let Some((open, close)) = raw_string(rest) {
            let length = find(&rest[open..], &close);
            words.end();
            words.prose(text, begin + open..begin + open + length);
            words.end();
            at += open + length + close.len();
        } else if rest[0] == b'"' {
            at = string(text, at, &mut words);
        } else if rest[0] == b'\'' {
            at += character(rest);
        } else if is_word(rest[0]) {
            while at < text.len() && is_word(text[at]) {
                at += 1;
            }
            words.end();
            if text[..begin].ends_with(b"fn ") && is_test(&text[item..begin]) {
                test_name(text, begin..at, &mut words);
            }
        } else {
            if matches!(rest[0], b';' | b'{' | b'}') {
                item = at;
            }
            if !rest[0].is_ascii_whitespace() {
                words.end();
            }
            at += 1;
        }
    }
    words
}

fn find(text: &[u8], what: &[u8]) -> usize {
    text.windows(what.len()).position(|window| window == what).unwrap_or(text.len())
}

fn is_test(before: &[u8]) -> bool {
    let found = |what: &[u8]| find(before, what) < before.len();
    found(b"#[test]") || found(b"#[tokio::test")
}

/// How long the opening of a raw string is, and what closes it.
fn raw_string(rest: &[u8]) -> Option<(usize, Vec<u8>)> {
    let prefix = ["r", "br", "cr"].iter().find(|prefix| rest.starts_with(prefix.as_bytes()))?;
    let hashes = rest[prefix.len()..].iter().take_while(|&&byte| byte == b'#').count();
    let open = prefix.len() + hashes;
    let close = [&b"\""[..], &vec![b'#'; hashes]].concat();
    (rest.get(open) == Some(&b'"')).then_some((open + 1, close))
}

/// Takes the words of a string literal that begins here; returns where it ends.
fn string(text: &[u8], quote: usize, words: &mut Words) -> usize {
    words.end();
    let (mut begin, mut at) = (quote + 1, quote + 1);
    while at < text.len() && text[at] != b'"' {
        if text[at] != b'\\' {
            at += 1;
            continue;
        }
        words.prose(text, begin..at);
        // A line that goes on in the next separates words; other escapes separate passages.
        if text.get(at + 1) != Some(&b'\n') {
            words.end();
        }
        at += 2;
        begin = at;
    }
    words.prose(text, begin..at.min(text.len()));
    words.end();
    at + 1
}

/// The length of a character literal, or of the quote of a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        return 3 + find(rest.get(3..).unwrap_or_default(), b"'") + 1;
    }
    let close = rest.iter().skip(2).take(4).position(|&byte| byte == b'\'');
    // A lifetime may have a quote behind it as well, as in `<'a, 'b>`: a literal has one character.
    match close {
        Some(0) => 3,
        Some(more) if !rest[1].is_ascii() => more + 3,
        _ => 1,
    }
}

fn test_name(text: &[u8], name: Range<usize>, words: &mut Words) {
    words.end();
    let mut begin = name.start;
    for part in text[name].split(|&byte| byte == b'_') {
        words.words.push(Some(begin..begin + part.len()));
        begin += part.len() + 1;
    }
    words.end();
}

/// Where the text has banned phrases: the line, and which rule.
fn hits<'a>(text: &str, words: &Words, rules: &'a [Rule]) -> Vec<(usize, &'a Rule)> {
    let at = |index: usize| {
        let range = words.words.get(index)?.clone()?;
        Some(&text[range])
    };
    let is = |index: usize, alternatives: &Vec<String>| {
        at(index).is_some_and(|word| alternatives.iter().any(|a| a.eq_ignore_ascii_case(word)))
    };
    let mut found = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for (index, word) in words.words.iter().enumerate() {
        let Some(range) = word else { continue };
        let matches = |rule: &&Rule| {
            rule.words.iter().enumerate().all(|(offset, word)| is(index + offset, word))
        };
        for rule in rules.iter().filter(matches) {
            line += text[counted..range.start].matches('\n').count();
            counted = range.start;
            found.push((line, rule));
        }
    }
    found
}

/// The words of a file that is checked; `None` for others.
fn words_of(path: &str, text: &str) -> Option<Words> {
    let name = path.rsplit('/').next().expect("a name");
    let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
    let frozen =
        path.starts_with("migrations/") && path.split('_').next() <= Some(LAST_FROZEN_MIGRATION);
    let other = ["LICENSE", "NOTICE"].contains(&name) || path.contains("/vendor/");
    if other || (kind == "sql" && frozen) {
        return None;
    }
    match kind {
        "rs" => Some(rust(text)),
        "md" => Some(markdown(text)),
        "" | "css" | "js" | "mjs" | "py" | "scn" | "sql" | "toml" | "yml" => {
            let mut words = Words::default();
            words.prose(text.as_bytes(), 0..text.len());
            Some(words)
        }
        _ => None,
    }
}

/// Files of the project: what is tracked, and what will be.
fn files() -> Vec<String> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(arguments).current_dir(root()).output().expect("git");
    assert!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr));
    let files = String::from_utf8(output.stdout).expect("UTF-8");
    let files: BTreeSet<&str> = files.lines().collect();
    files.into_iter().filter(|path| root().join(path).is_file()).map(str::to_owned).collect()
}

#[test]
fn no_file_has_a_banned_phrase() {
    let (banned, allowed) = (rules(&list("banned.txt")), rows::<3>(&list("allowed.txt")));
    let mut used = BTreeSet::new();
    let mut found: Vec<Hit> = Vec::new();
    let mut read = 0;
    for path in files().into_iter().filter(|path| !path.starts_with("tests/language/")) {
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        let Some(words) = words_of(&path, &text) else { continue };
        read += 1;
        for (line, rule) in hits(&text, &words, &banned) {
            let place =
                allowed.iter().position(|[p, phrase, _]| *p == path && *phrase == rule.phrase);
            match place {
                Some(place) => _ = used.insert(place),
                None => found.push(Hit { path: path.clone(), line, rule }),
            }
        }
    }
    assert!(read >= FILES_AT_LEAST, "only {read} files read");
    for (place, [path, phrase, _]) in allowed.iter().enumerate() {
        assert!(used.contains(&place), "allowed.txt: {path} has no {phrase:?} any more");
    }
    let report: String = (found.iter())
        .map(|Hit { path, line, rule }| {
            format!("\n{path}:{line}: {:?}: {}", rule.phrase, rule.instead)
        })
        .collect();
    assert!(found.is_empty(), "{} banned phrases:{report}", found.len());
}

fn lines(words: &Words, text: &str) -> Vec<(usize, String)> {
    let rules = rules("zounds | x\nis/are void | x\n");
    let found = hits(text, words, &rules);
    found.into_iter().map(|(line, rule)| (line, rule.phrase.clone())).collect()
}

#[test]
fn rust_scanner_reads_comments_strings_and_test_names() {
    let found = |text: &str| lines(&rust(text), text);
    let zounds = |line| vec![(line, "zounds".to_owned())];
    assert_eq!(found("// all\n/// Zounds's.\nfn a() {}"), zounds(2));
    assert_eq!(found("let zounds = zounds();"), []);
    assert_eq!(found("let a = ('\"', 'é', \"x\\\"zounds\", b'\\'');\n// void\n"), zounds(1));
    assert_eq!(found("let a = r#\"a \"zounds\" b\"#; let zounds = 1;"), zounds(1));
    assert_eq!(found("fn f<'a, 'b>(x: &'a str) -> &'a str {} // zounds"), zounds(1));
    assert_eq!(found("// there is\n// void\n"), [(1, "is/are void".to_owned())]);
    assert_eq!(found("// there is\nlet x = 1; // void\n"), []);
    assert_eq!(found("\"there are \\\n  void\""), [(1, "is/are void".to_owned())]);
    assert_eq!(found("#[test]\nfn zounds_loses() {}\nfn zounds_wins() {}"), zounds(2));
    assert_eq!(found("#[tokio::test]\nasync fn zounds_loses() {}"), zounds(2));
    assert_eq!(found("/* zounds */"), zounds(1));
}

#[test]
fn markdown_scanner_skips_fenced_code() {
    let text = "# Zounds\n\n```sh\nzounds\n```\nthere is\nvoid, *zounds*.\nis.\nVoid\n";
    let zounds = "zounds".to_owned();
    let expected = [(1, zounds.clone()), (6, "is/are void".to_owned()), (7, zounds)];
    assert_eq!(lines(&markdown(text), text), expected);
}
