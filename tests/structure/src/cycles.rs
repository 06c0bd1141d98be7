//! Import cycles between sibling modules, by `use` and by path, through re-exports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::Crate;

type Module = Vec<String>;
type Graph = BTreeMap<String, BTreeSet<String>>;

#[expect(
    clippy::unwrap_used,
    reason = "the patterns are constants, and every test of this crate compiles them"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

static PATH: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b(?:crate|super|self)(?:::\w+)+"));
static USE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^\s*(pub(?:\([^)]*\))? )?use ([^;]+);"));
static FROM_ROOT: LazyLock<Regex> = LazyLock::new(|| pattern(r"crate::(\w+)"));

/// Modules of a crate, at any depth, that are in an import cycle with siblings.
#[must_use]
pub fn modules_in_cycles(one: &Crate) -> u64 {
    let mut imports: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
    let mut exports: BTreeMap<&Module, BTreeMap<String, Module>> = BTreeMap::new();
    for (module, text) in &one.modules {
        let mut paths: BTreeSet<String> =
            PATH.find_iter(text).map(|found| found.as_str().to_owned()).collect();
        for found in USE.captures_iter(text) {
            let tree = found[2].split_whitespace().collect::<Vec<_>>().join(" ");
            for path in expand(&tree) {
                if found.get(1).is_some() {
                    let target = absolute(&path, module).unwrap_or_else(|| joined(module, &path));
                    if let Some(name) = target.last().cloned() {
                        exports.entry(module).or_default().insert(name, target);
                    }
                }
                paths.insert(path);
            }
        }
        imports.insert(module, paths.iter().filter_map(|path| absolute(path, module)).collect());
    }
    let parents: BTreeSet<&[String]> =
        one.modules.keys().flat_map(|module| (0..module.len()).map(|depth| &module[..depth])).collect();
    let in_cycles = |parent: &&[String]| cyclic(&siblings(parent, one, &imports, &exports));
    parents.iter().map(in_cycles).map(|sizes| sizes.iter().sum::<usize>() as u64).sum()
}

/// Modules of the largest import cycle on the top level of a crate; 0 without one.
#[must_use]
pub fn top_level_modules_in_cycles(one: &Crate) -> u64 {
    let mut graph = Graph::new();
    for (module, text) in &one.modules {
        let Some(top) = module.first() else { continue };
        let targets = graph.entry(top.clone()).or_default();
        targets.extend(
            FROM_ROOT.captures_iter(text).map(|found| found[1].to_owned()).filter(|used| used != top),
        );
    }
    let known: BTreeSet<String> = graph.keys().cloned().collect();
    graph.values_mut().for_each(|targets| targets.retain(|target| known.contains(target)));
    cyclic(&graph).into_iter().max().unwrap_or(0) as u64
}

/// Imports between the children of one module.
fn siblings(
    parent: &[String],
    one: &Crate,
    imports: &BTreeMap<&Module, BTreeSet<Module>>,
    exports: &BTreeMap<&Module, BTreeMap<String, Module>>,
) -> Graph {
    let depth = parent.len();
    let child =
        |module: &Module| (module.len() > depth && module.starts_with(parent)).then(|| module[depth].clone());
    let mut graph: Graph = one.modules.keys().filter_map(child).map(|name| (name, BTreeSet::new())).collect();
    let re_exported = exports.get(&parent.to_vec());
    for (module, targets) in imports {
        let Some(from) = child(module) else { continue };
        for target in targets {
            let Some(mut to) = child(target) else { continue };
            if target.len() == depth + 1 && !graph.contains_key(&to) {
                let Some(origin) = re_exported.and_then(|names| names.get(&to)).and_then(child) else {
                    continue;
                };
                to = origin;
            }
            if to != from && graph.contains_key(&to) {
                graph.entry(from.clone()).or_default().insert(to);
            }
        }
    }
    graph
}

/// Paths of a use tree: `a::{b, c::{d, e}}` gives `a::b`, `a::c::d` and `a::c::e`.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree).trim();
        return if path.is_empty() { Vec::new() } else { vec![path.to_owned()] };
    };
    let rest = &rest[..rest.rfind('}').unwrap_or(rest.len())];
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, character) in rest.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&rest[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&rest[start..]);
    parts.iter().flat_map(|part| expand(part)).map(|path| format!("{}{path}", head.trim())).collect()
}

/// Segments of a `crate::`, `super::` or `self::` path from the crate's root.
fn absolute(path: &str, module: &[String]) -> Option<Module> {
    let mut segments: Vec<&str> = path.split("::").collect();
    let mut base = module.to_vec();
    match *segments.first()? {
        "crate" => base.clear(),
        "self" => {}
        "super" => {
            while segments.first() == Some(&"super") {
                base.pop();
                segments.remove(0);
            }
            segments.insert(0, "super");
        }
        _ => return None,
    }
    base.extend(segments[1..].iter().map(|segment| (*segment).to_owned()));
    Some(base)
}

fn joined(module: &[String], path: &str) -> Module {
    module.iter().cloned().chain(path.split("::").map(str::to_owned)).collect()
}

/// Sizes of the strongly connected components with more than one node (Tarjan 1972).
fn cyclic(graph: &Graph) -> Vec<usize> {
    let mut search = Search { graph, ..Search::default() };
    for node in graph.keys() {
        if !search.index.contains_key(node.as_str()) {
            search.visit(node);
        }
    }
    search.sizes
}

struct Search<'a> {
    graph: &'a Graph,
    index: BTreeMap<&'a str, usize>,
    low: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    sizes: Vec<usize>,
}

impl Default for Search<'_> {
    fn default() -> Self {
        static NONE: Graph = Graph::new();
        Self {
            graph: &NONE,
            index: BTreeMap::new(),
            low: BTreeMap::new(),
            stack: Vec::new(),
            sizes: Vec::new(),
        }
    }
}

impl<'a> Search<'a> {
    fn visit(&mut self, node: &'a str) {
        let number = self.index.len();
        self.index.insert(node, number);
        self.low.insert(node, number);
        self.stack.push(node);
        for next in self.graph.get(node).into_iter().flatten() {
            let reached = match self.index.get(next.as_str()) {
                None => {
                    self.visit(next);
                    self.low[next.as_str()]
                }
                Some(number) if self.stack.contains(&next.as_str()) => *number,
                Some(_) => continue,
            };
            let low = self.low[node].min(reached);
            self.low.insert(node, low);
        }
        if self.low[node] == number {
            let start = self.stack.iter().position(|on| *on == node).unwrap_or(0);
            let size = self.stack.split_off(start).len();
            if size > 1 {
                self.sizes.push(size);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(modules: &[(&str, &str)]) -> Crate {
        let path = |name: &str| name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let modules = modules.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect();
        Crate { modules, tokens: 0 }
    }

    #[test]
    fn use_trees_expand_to_paths() {
        assert_eq!(expand("a::{b, c::{d, e as f}}"), ["a::b", "a::c::d", "a::c::e"]);
        assert_eq!(expand("super::x"), ["super::x"]);
    }

    #[test]
    fn siblings_that_import_each_other_are_a_cycle() {
        let one = of(&[("a", "use crate::b::X;"), ("b", "fn f() { super::a::g() }"), ("c", "use crate::a;")]);
        assert_eq!(modules_in_cycles(&one), 2);
        assert_eq!(top_level_modules_in_cycles(&of(&[("a", "crate::b"), ("b", "crate::a"), ("c", "")])), 2);
    }

    #[test]
    fn a_cycle_through_a_re_export_counts() {
        let one = of(&[("", "pub use b::Y;"), ("a", "use crate::Y;"), ("b", "use crate::a::X;")]);
        assert_eq!(modules_in_cycles(&one), 2);
    }

    #[test]
    fn a_tree_of_imports_has_no_cycle() {
        let one = of(&[
            ("a", "use crate::b::X;"),
            ("b", "use crate::c::d::X;"),
            ("c::d", ""),
            ("c::e", "use super::d::X;"),
        ]);
        assert_eq!(modules_in_cycles(&one), 0);
        assert_eq!(top_level_modules_in_cycles(&one), 0);
    }

    #[test]
    fn deep_cycles_count() {
        let one = of(&[("c::d", "use super::e::X;"), ("c::e", "use super::d::X;"), ("c", "")]);
        assert_eq!(modules_in_cycles(&one), 2);
    }
}
