//! The functions (section 4 of the recommendation), and those of EXSLT and parsel.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use regex::{Regex, RegexBuilder};

use crate::document::Node;
use crate::error::Error;
use crate::evaluate::{Context, Evaluation};
use crate::expression::{Expression, Function, Named};
use crate::index::Key;
use crate::lexer::is_space;
use crate::operand::{Operand, number_of};
use crate::scope::{REGULAR, SETS};

/// The greatest size of a compiled regular expression in bytes.
const REGEX_SIZE: usize = 1 << 20;
/// Compiled regular expressions kept per thread.
const MAX_PATTERNS: usize = 32;
/// The longest string that a function makes, in bytes.
const MAX_STRING: usize = 64 << 20;

pub(crate) fn call<'a>(
    on: &Evaluation<'a>,
    (named, function): (&'a Named, Function),
    arguments: &'a [Expression],
    cx: Context,
) -> Result<Operand<'a>, Error> {
    let document = on.document;
    in_namespace(on, named, function)?;
    let nodes = |at: usize| on.nodes(&arguments[at], cx, format_args!("{}()", named.name));
    let string = |at: usize| on.string(&arguments[at], cx);
    let number = |at: usize| on.number(&arguments[at], cx);
    // The first argument, or the context node.
    let text = || {
        if !arguments.is_empty() {
            return string(0);
        }
        let own = document.value(cx.node);
        on.spend_text(own)?;
        Ok(Cow::Borrowed(own))
    };
    let node = || {
        if arguments.is_empty() { Ok(Some(cx.node)) } else { nodes(0).map(|nodes| nodes.first().copied()) }
    };
    Ok(match function {
        Function::Last => Operand::Number(cx.size as f64),
        Function::Position => Operand::Number(cx.position as f64),
        Function::Count => {
            Operand::Number(on.count(&arguments[0], cx, format_args!("{}()", named.name))? as f64)
        }
        Function::Id => Operand::nodes(with_ids(on, on.operand(&arguments[0], cx)?)?),
        Function::LocalName => Operand::text(node()?.map_or("", |node| document.local_name(node))),
        Function::NamespaceUri => Operand::text(node()?.map_or("", |node| document.namespace(node))),
        Function::Name => {
            Operand::Text(node()?.map_or(Cow::Borrowed(""), |node| document.written_name(node)))
        }
        Function::String => Operand::Text(text()?),
        Function::Concat => {
            let mut all = String::new();
            for at in 0..arguments.len() {
                all.push_str(&string(at)?);
                bounded(on, named, &all)?;
            }
            Operand::text(all)
        }
        Function::StartsWith => Operand::Boolean(string(0)?.starts_with(&*string(1)?)),
        Function::Contains => Operand::Boolean(string(0)?.contains(&*string(1)?)),
        Function::SubstringBefore => {
            let (text, mark) = (string(0)?, string(1)?);
            let end = text.find(&*mark).unwrap_or(0);
            Operand::Text(part(text, 0..end))
        }
        Function::SubstringAfter => {
            let (text, mark) = (string(0)?, string(1)?);
            let (from, end) = (text.find(&*mark).map(|at| at + mark.len()), text.len());
            Operand::Text(part(text, from.unwrap_or(end)..end))
        }
        Function::Substring => {
            let length = if arguments.len() == 3 { number(2)? } else { f64::INFINITY };
            Operand::text(substring(&string(0)?, number(1)?, length))
        }
        Function::StringLength => Operand::Number(text()?.chars().count() as f64),
        Function::NormalizeSpace => Operand::Text(normalized(text()?)),
        Function::Translate => Operand::text(translated(&string(0)?, &string(1)?, &string(2)?)),
        Function::Boolean => Operand::Boolean(on.boolean(&arguments[0], cx)?),
        Function::Not => Operand::Boolean(!on.boolean(&arguments[0], cx)?),
        Function::True => Operand::Boolean(true),
        Function::False => Operand::Boolean(false),
        Function::Lang => Operand::Boolean(is_of_language(on, cx.node, &string(0)?)?),
        Function::Number if arguments.is_empty() => Operand::Number(number_of(&text()?)),
        Function::Number => Operand::Number(number(0)?),
        Function::Sum => {
            let mut sum = 0.0;
            for node in &*nodes(0)? {
                on.spend_text(document.value(*node))?;
                sum += number_of(document.value(*node));
            }
            Operand::Number(sum)
        }
        Function::Floor => Operand::Number(number(0)?.floor()),
        Function::Ceiling => Operand::Number(number(0)?.ceil()),
        Function::Round => Operand::Number(round(number(0)?)),
        Function::HasClass => {
            on.spend(document.declared(cx.node).count() as u64)?;
            let class = document.attribute(cx.node, "class").unwrap_or_default();
            on.spend_text(class)?;
            let mut has_all = true;
            for at in 0..arguments.len() {
                let wanted = string(at)?;
                has_all &= class.split(is_html_space).any(|given| !given.is_empty() && given == wanted);
            }
            Operand::Boolean(has_all)
        }
        Function::Test => {
            let flags = if arguments.len() == 3 { string(2)? } else { Cow::Borrowed("") };
            let (text, pattern) = (string(0)?, string(1)?);
            Operand::Boolean(regex(on, named, &pattern, &flags)?.is_match(&text))
        }
        Function::Replace => {
            let (text, pattern, flags, by) = (string(0)?, string(1)?, string(2)?, string(3)?);
            let regex = regex(on, named, &pattern, &flags)?;
            let by = regex::NoExpand(&by);
            let most = if flags.contains('g') { 0 } else { 1 };
            let replaced = regex.replacen(&text, most, by).into_owned();
            bounded(on, named, &replaced)?;
            Operand::text(replaced)
        }
        Function::Difference => {
            let others = nodes(1)?;
            let is_other = |node: &Node| others.binary_search(node).is_ok();
            Operand::nodes(nodes(0)?.iter().copied().filter(|node| !is_other(node)).collect())
        }
        Function::Intersection => {
            let others = nodes(1)?;
            let is_other = |node: &Node| others.binary_search(node).is_ok();
            Operand::nodes(nodes(0)?.iter().copied().filter(is_other).collect())
        }
        Function::HasSameNode => {
            let others = nodes(1)?;
            let is_other = |node: &Node| others.binary_search(node).is_ok();
            Operand::Boolean(nodes(0)?.iter().any(is_other))
        }
        Function::Distinct => {
            let (mut seen, mut distinct) = (HashSet::new(), Vec::new());
            for node in &*nodes(0)? {
                on.spend_text(document.value(*node))?;
                if seen.insert(document.value(*node)) {
                    distinct.push(*node);
                }
            }
            Operand::nodes(distinct)
        }
    })
}

/// Checks that the prefix of a function of EXSLT is bound to its namespace.
fn in_namespace(on: &Evaluation<'_>, named: &Named, function: Function) -> Result<(), Error> {
    let wanted = match function {
        Function::Test | Function::Replace => REGULAR,
        Function::Difference | Function::Intersection | Function::Distinct | Function::HasSameNode => SETS,
        _ => return Ok(()),
    };
    let (prefix, local) = named.name.split_once(':').unwrap_or_default();
    match on.scope.uri(prefix) {
        Some(given) if given == wanted => Ok(()),
        Some(given) => Err(on.error(named, format!("there is no function \"{local}\" in {given}"))),
        None => Err(on.error(named, format!("the prefix \"{prefix}\" is not given"))),
    }
}

/// A part of a text, borrowed if the text is.
fn part(text: Cow<'_, str>, range: std::ops::Range<usize>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
        Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
    }
}

/// Spends the steps of a text that was made, which must not be too long.
fn bounded(on: &Evaluation<'_>, named: &Named, made: &str) -> Result<(), Error> {
    if made.len() > MAX_STRING {
        return Err(on.error(named, format!("{}() makes more than {} MiB", named.name, MAX_STRING >> 20)));
    }
    on.spend_text(made)
}

/// The elements with the ids of a text, or of the texts of nodes.
fn with_ids<'a>(on: &Evaluation<'a>, value: Operand<'a>) -> Result<Vec<Node>, Error> {
    let document = on.document;
    let texts: Vec<Cow<'_, str>> = match value {
        Operand::Nodes(nodes) => nodes.iter().map(|node| Cow::Borrowed(document.value(*node))).collect(),
        other => vec![other.string(document)],
    };
    let ids: HashSet<&str> =
        texts.iter().flat_map(|text| text.split(is_space)).filter(|id| !id.is_empty()).collect();
    let mut given = Vec::new();
    for name in document.index().named(document, "id") {
        if document.names[*name as usize].namespace.is_empty() {
            given.extend_from_slice(document.index().within(Key::Attribute(*name), 0..document.len() as u32));
        }
    }
    on.spend(1 + given.len() as u64)?;
    // Those of several prefixes.
    given.sort_unstable();
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    for attribute in given.into_iter().map(Node) {
        let id = document.value(attribute);
        if ids.contains(id) && known.insert(id) {
            found.extend(document.parent(attribute));
        }
    }
    Ok(found)
}

/// The characters at the positions p with `round(from) <= p < round(from) + round(length)`; the first has position 1.
fn substring(text: &str, from: f64, length: f64) -> String {
    let from = round(from);
    let to = from + round(length);
    let is_inside = |(index, _): &(usize, char)| {
        let position = (index + 1) as f64;
        position >= from && position < to
    };
    text.chars().enumerate().filter(is_inside).map(|(_, c)| c).collect()
}

fn normalized(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut after_space = true;
    let is_normal = text.chars().all(|c| {
        let is_odd = is_space(c) && (c != ' ' || after_space);
        after_space = c == ' ';
        !is_odd
    });
    if is_normal && (!after_space || text.is_empty()) {
        return text;
    }
    let mut words = text.split(is_space).filter(|word| !word.is_empty());
    let mut normalized = String::with_capacity(text.len());
    normalized.push_str(words.next().unwrap_or_default());
    for word in words {
        normalized.push(' ');
        normalized.push_str(word);
    }
    Cow::Owned(normalized)
}

fn translated(text: &str, from: &str, to: &str) -> String {
    let mut table = std::collections::HashMap::new();
    let mut to = to.chars();
    for c in from.chars() {
        let by = to.next();
        table.entry(c).or_insert(by);
    }
    text.chars().filter_map(|c| table.get(&c).copied().unwrap_or(Some(c))).collect()
}

/// Halves are rounded up, also negative ones.
fn round(number: f64) -> f64 {
    if number.is_finite() { (number + 0.5).floor() } else { number }
}

fn is_of_language(on: &Evaluation<'_>, node: Node, wanted: &str) -> Result<bool, Error> {
    let document = on.document;
    let mut next = Some(node);
    while let Some(element) = next {
        on.spend(1 + document.declared(element).count() as u64)?;
        let declared = document.attributes(element).find(|attribute| {
            document.local_name(*attribute) == "lang"
                && (document.is_html() || document.namespace(*attribute) == crate::scope::XML)
        });
        if let Some(declared) = declared {
            let declared = document.value(declared);
            let (begin, rest) = declared.split_at_checked(wanted.len()).unwrap_or_default();
            return Ok(begin.eq_ignore_ascii_case(wanted)
                && !wanted.is_empty()
                && (rest.is_empty() || rest.starts_with('-')));
        }
        next = document.parent(element);
    }
    Ok(false)
}

/// White space between the classes of an element.
fn is_html_space(c: char) -> bool {
    is_space(c) || c == '\u{c}'
}

thread_local! {
    /// The regular expressions that this thread compiled, by flags and text: each costs as much as a hundred evaluations.
    static COMPILED: RefCell<HashMap<(String, String), Rc<Regex>>> = RefCell::default();
}

/// A regular expression, with `i` among the flags without regard to case. It costs steps in each evaluation, so that these do not depend on what was
/// evaluated before.
fn regex(on: &Evaluation<'_>, named: &Named, pattern: &str, flags: &str) -> Result<Rc<Regex>, Error> {
    let key = (flags.to_owned(), pattern.to_owned());
    if let Some(known) = on.patterns.borrow().get(&key) {
        return Ok(Rc::clone(known));
    }
    // Compiling costs about as much as reading some kilobytes.
    on.spend(1_000 + pattern.len() as u64)?;
    let kept = COMPILED.with_borrow(|kept| kept.get(&key).map(Rc::clone));
    let regex = match kept {
        Some(kept) => kept,
        None => {
            let compiled = RegexBuilder::new(pattern)
                .case_insensitive(flags.contains('i'))
                .size_limit(REGEX_SIZE)
                .build();
            let regex = Rc::new(compiled.map_err(|error| {
                let reason = error.to_string();
                let reason =
                    reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                on.error(named, format!("\"{}\" is no regular expression: {reason}", pattern.escape_debug()))
            })?);
            COMPILED.with_borrow_mut(|kept| {
                if kept.len() >= MAX_PATTERNS {
                    kept.clear();
                }
                kept.insert(key.clone(), Rc::clone(&regex));
            });
            regex
        }
    };
    on.patterns.borrow_mut().insert(key, Rc::clone(&regex));
    Ok(regex)
}
