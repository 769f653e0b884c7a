//! Which file of a crate imports which: a scanner of `use` items and of paths that begin with `crate` or `super`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The path of a module below its crate.
type ModulePath = Vec<String>;

/// The modules of a crate and their sources, without comments and unit tests.
pub struct Modules {
    files: BTreeMap<ModulePath, String>,
}

/// One `use`: the path, and the name it has here.
struct Import {
    path: Vec<String>,
    name: String,
    public: bool,
}

impl Modules {
    /// Reads the sources below a folder.
    ///
    /// # Panics
    /// If a file cannot be read.
    pub fn read(folder: &Path) -> Modules {
        let files = sources(folder).into_iter().map(|(path, text)| {
            let path = path.strip_prefix(folder).expect("below the folder").with_extension("");
            let mut parts: ModulePath =
                path.iter().map(|part| part.to_str().expect("UTF-8").to_owned()).collect();
            if parts.last().is_some_and(|last| last == "mod")
                || parts == ["lib"]
                || parts == ["main"]
            {
                parts.pop();
            }
            let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
            (parts, text[..end].to_owned())
        });
        Modules { files: files.collect() }
    }

    /// The module a path leads to from another; `None`: it leads out of the crate.
    fn resolve(&self, from: &[String], path: &[String], relative: bool) -> Option<ModulePath> {
        let mut at = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "super" | "self" => from.to_vec(),
            first => {
                let child = [from, &[first.to_owned()]].concat();
                (relative && self.files.contains_key(&child)).then(|| from.to_vec())?
            }
        };
        let mut rest = path;
        while let Some((first, more)) = rest.split_first() {
            let child = [&at[..], std::slice::from_ref(first)].concat();
            match first.as_str() {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                _ if self.files.contains_key(&child) => at = child,
                _ => return Some(self.defined_in(&at, first).unwrap_or(at)),
            }
            rest = more;
        }
        Some(at)
    }

    /// The module that a public import of a module takes a name from.
    fn defined_in(&self, module: &[String], name: &str) -> Option<ModulePath> {
        let imports = imports(self.files.get(module)?);
        let exported = imports.iter().filter(|import| import.public);
        exported.into_iter().find_map(|import| {
            let all = import.name == "*";
            if !all && import.name != name {
                return None;
            }
            let mut path = import.path.clone();
            if all {
                path.pop();
                path.push(name.to_owned());
            }
            let found = self.resolve(module, &path, true).filter(|found| found != module)?;
            (!all || defines(&self.files[&found], name)).then_some(found)
        })
    }

    /// The modules that a module names by `crate`, `super` or `self`. A parent that declares its children and
    /// re-exports their names does not import them.
    fn uses(&self, module: &[String]) -> BTreeSet<ModulePath> {
        let text = &self.files[module];
        let imports = imports(text).into_iter().filter(|of| !of.public).map(|of| of.path);
        let all = imports.chain(inline_paths(text));
        let found = all.filter_map(|path| self.resolve(module, &path, false));
        found.filter(|found| !found.is_empty() && found != module).collect()
    }

    /// Groups of modules each of which reaches all others of its group.
    pub fn cycles(&self) -> Vec<Vec<String>> {
        let uses: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
            self.files.keys().map(|module| (module, self.uses(module))).collect();
        let reach = |from: &ModulePath| {
            let (mut found, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(module) = open.pop() {
                let next = uses[module].iter().filter(|next| found.insert((*next).clone()));
                open.extend(next);
            }
            found
        };
        let reached: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
            self.files.keys().map(|module| (module, reach(module))).collect();
        let groups = self.files.keys().filter(|module| reached[module].contains(*module));
        let groups: BTreeSet<Vec<String>> = (groups)
            .map(|module| {
                let both = reached[module].iter().filter(|other| reached[other].contains(module));
                both.map(|path| path.join("/")).collect()
            })
            .collect();
        groups.into_iter().collect()
    }
}

fn defines(text: &str, name: &str) -> bool {
    ["struct", "enum", "trait", "fn", "const", "static", "type", "macro_rules!"].iter().any(
        |kind| {
            text.match_indices(&format!("{kind} {name}")).any(|(at, found)| {
                !text[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        },
    )
}

/// Every `use` of a source, groups taken apart.
fn imports(text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let before = text[..at].rsplit(['\n', ';']).next().unwrap_or_default().trim_start();
        let public = before.starts_with("pub") && !before.contains(['=', '"', '{']);
        if !before.is_empty() && !public {
            continue;
        }
        let tree = text[at + 4..].split(';').next().unwrap_or_default();
        take_apart(&[], tree, &mut |path, name| {
            found.push(Import { path, name, public });
        });
    }
    found
}

fn take_apart(before: &[String], tree: &str, found: &mut impl FnMut(Vec<String>, String)) {
    let (mut depth, mut begin, mut items) = (0, 0, Vec::new());
    for (at, c) in tree.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&tree[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    items.push(&tree[begin..]);
    for item in items.into_iter().map(str::trim).filter(|item| !item.is_empty()) {
        let parts = |path: &str| -> Vec<String> {
            let parts = path.split("::").map(str::trim).filter(|part| !part.is_empty());
            before.iter().cloned().chain(parts.map(str::to_owned)).collect()
        };
        if let Some((path, group)) = item.split_once('{') {
            let group = group.trim_end().strip_suffix('}').unwrap_or(group);
            take_apart(&parts(path), group, found);
            continue;
        }
        let (path, alias) = item.split_once(" as ").map_or((item, None), |(p, a)| (p, Some(a)));
        let path = parts(path);
        let name = alias.or(path.last().map(String::as_str)).unwrap_or_default().trim().to_owned();
        found(path, name);
    }
}

/// Paths outside of imports that begin with `crate::` or `super::`.
fn inline_paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for word in ["crate::", "super::"] {
        for (at, _) in text.match_indices(word) {
            let inner = text[..at].ends_with(|c: char| c.is_alphanumeric() || "_:$".contains(c));
            let line = text[..at].rsplit(['\n', ';']).next().unwrap_or_default();
            if inner || line.contains("use ") {
                continue;
            }
            let path =
                text[at..].split(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).next();
            let parts = path.unwrap_or_default().split("::").filter(|part| !part.is_empty());
            found.push(parts.map(str::to_owned).collect());
        }
    }
    found
}

/// Rust files below a folder, and their lines without comments.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("UTF-8");
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                files.push((path, code.collect::<Vec<_>>().join("\n")));
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::Modules;

    #[test]
    fn imports_resolve_to_the_file_that_defines_the_name() {
        let files = [
            ("", "mod a; mod b; pub use a::Thing;"),
            ("a", "use crate::b::{self, c::{Deep, other as another}}; pub struct Thing;"),
            ("b", "pub mod c; pub use c::*;"),
            ("b::c", "use super::super::Thing; pub struct Deep; pub(crate) fn other() {}"),
        ];
        let files = files.map(|(name, text)| {
            let parts = name.split("::").filter(|part| !part.is_empty());
            (parts.map(str::to_owned).collect(), text.to_owned())
        });
        let modules = Modules { files: files.into() };
        assert_eq!(modules.cycles(), [["a", "b/c"]]);
    }
}
