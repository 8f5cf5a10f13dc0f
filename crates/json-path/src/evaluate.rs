//! Evaluates a path over a document, and counts what it looks at.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use jsonpath_rust::parser::model::{
    Comparable, Comparison, Filter, FilterAtom, FnArg, Literal, Segment, Selector, SingularQuery,
    SingularQuerySegment, Test, TestFunction,
};
use regex::{Regex, RegexBuilder};
use serde_json::{Number, Value};

use crate::path::Limits;

/// Steps that compiling a regular expression counts as.
const PATTERN_STEPS: usize = 10_000;
/// Regular expressions that an evaluation keeps; a document may bring as many as it has texts.
const MAX_PATTERNS: usize = 64;
/// Bytes that a compiled regular expression may take.
const MAX_PATTERN: usize = 1 << 20;
/// Deepest nesting of values that are compared with each other. Documents that were read nest less.
const MAX_COMPARED_DEPTH: usize = 512;

/// A limit that is exceeded, in words.
type Outcome<T> = Result<T, String>;

/// A value of a filter: one of the document or a literal; `None` where there is nothing.
type Operand<'a> = Option<Cow<'a, Value>>;

pub(crate) struct Evaluation<'a> {
    root: &'a Value,
    limits: Limits,
    steps: usize,
    /// By the pattern and whether it has to match the whole text; `None` if it is not valid.
    patterns: HashMap<(String, bool), Option<Regex>>,
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(root: &'a Value, limits: Limits) -> Self {
        Self { root, limits, steps: 0, patterns: HashMap::new() }
    }

    pub(crate) fn select(&mut self, segments: &[Segment]) -> Outcome<Vec<&'a Value>> {
        self.from(segments, self.root)
    }

    /// The steps that were taken until now.
    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    fn step(&mut self, steps: usize) -> Outcome<()> {
        self.steps += steps;
        match self.steps > self.limits.steps {
            true => Err(format!(
                "it needs more than the {} steps that are allowed; name the parts of the path instead of .. and *",
                self.limits.steps
            )),
            false => Ok(()),
        }
    }

    fn give(&mut self, value: &'a Value, out: &mut Vec<&'a Value>) -> Outcome<()> {
        self.step(1)?;
        if out.len() >= self.limits.results {
            return Err(format!("it selects more than the {} values that are allowed", self.limits.results));
        }
        out.push(value);
        Ok(())
    }

    fn from(&mut self, segments: &[Segment], start: &'a Value) -> Outcome<Vec<&'a Value>> {
        let mut values = vec![start];
        for segment in segments {
            let mut next = Vec::new();
            for value in values {
                self.segment(segment, value, &mut next)?;
            }
            values = next;
        }
        Ok(values)
    }

    fn segment(&mut self, segment: &Segment, value: &'a Value, out: &mut Vec<&'a Value>) -> Outcome<()> {
        match segment {
            Segment::Selector(selector) => self.selector(selector, value, out),
            Segment::Selectors(selectors) => {
                selectors.iter().try_for_each(|selector| self.selector(selector, value, out))
            }
            Segment::Descendant(inner) => {
                let mut open = vec![value];
                while let Some(value) = open.pop() {
                    self.step(1)?;
                    self.segment(inner, value, out)?;
                    let is_open = |value: &&Value| value.is_array() || value.is_object();
                    match value {
                        Value::Array(list) => open.extend(list.iter().rev().filter(is_open)),
                        Value::Object(map) => open.extend(map.values().rev().filter(is_open)),
                        _ => {}
                    }
                }
                Ok(())
            }
        }
    }

    fn selector(&mut self, selector: &Selector, value: &'a Value, out: &mut Vec<&'a Value>) -> Outcome<()> {
        match (selector, value) {
            (Selector::Name(name), Value::Object(map)) => {
                self.step(1)?;
                map.get(name).map_or(Ok(()), |found| self.give(found, out))
            }
            (Selector::Index(index), Value::Array(list)) => {
                self.step(1)?;
                place(*index, list.len()).map_or(Ok(()), |at| self.give(&list[at], out))
            }
            (Selector::Wildcard, Value::Array(list)) => {
                list.iter().try_for_each(|value| self.give(value, out))
            }
            (Selector::Wildcard, Value::Object(map)) => {
                map.values().try_for_each(|value| self.give(value, out))
            }
            (Selector::Slice(start, end, step), Value::Array(list)) => {
                slice((*start, *end, *step), list.len()).try_for_each(|at| self.give(&list[at], out))
            }
            (Selector::Filter(filter), Value::Array(list)) => self.keep(filter, list.iter(), out),
            (Selector::Filter(filter), Value::Object(map)) => self.keep(filter, map.values(), out),
            _ => Ok(()),
        }
    }

    fn keep(
        &mut self,
        filter: &Filter,
        values: impl Iterator<Item = &'a Value>,
        out: &mut Vec<&'a Value>,
    ) -> Outcome<()> {
        for value in values {
            if self.filter(filter, value)? {
                self.give(value, out)?;
            }
        }
        Ok(())
    }

    fn filter(&mut self, filter: &Filter, current: &'a Value) -> Outcome<bool> {
        self.step(1)?;
        match filter {
            Filter::Or(parts) => {
                for part in parts {
                    if self.filter(part, current)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Filter::And(parts) => {
                for part in parts {
                    if !self.filter(part, current)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Filter::Atom(FilterAtom::Filter { expr, not }) => Ok(self.filter(expr, current)? != *not),
            Filter::Atom(FilterAtom::Test { expr, not }) => Ok(self.test(expr, current)? != *not),
            Filter::Atom(FilterAtom::Comparison(comparison)) => self.compare(comparison, current),
        }
    }

    fn test(&mut self, test: &Test, current: &'a Value) -> Outcome<bool> {
        match test {
            Test::RelQuery(segments) => Ok(!self.from(segments, current)?.is_empty()),
            Test::AbsQuery(query) => Ok(!self.from(&query.segments, self.root)?.is_empty()),
            Test::Function(function) => match &**function {
                TestFunction::Match(text, pattern) => self.matches(text, pattern, true, current),
                TestFunction::Search(text, pattern) => self.matches(text, pattern, false, current),
                // Paths with these are refused when they are compiled.
                _ => Ok(false),
            },
        }
    }

    fn compare(&mut self, comparison: &Comparison, current: &'a Value) -> Outcome<bool> {
        let (left, right) = comparison.vals();
        let (left, right) = (self.operand(left, current)?, self.operand(right, current)?);
        let equal = |this: &mut Self| match (&left, &right) {
            (None, None) => Ok(true),
            (Some(left), Some(right)) => this.is_equal(left, right, 0),
            _ => Ok(false),
        };
        let order = match (left.as_deref(), right.as_deref()) {
            (Some(Value::Number(left)), Some(Value::Number(right))) => compare_numbers(left, right),
            (Some(Value::String(left)), Some(Value::String(right))) => Some(left.cmp(right)),
            _ => None,
        };
        Ok(match comparison {
            Comparison::Eq(..) => equal(self)?,
            Comparison::Ne(..) => !equal(self)?,
            Comparison::Lt(..) => order == Some(Ordering::Less),
            Comparison::Gt(..) => order == Some(Ordering::Greater),
            Comparison::Lte(..) => order == Some(Ordering::Less) || equal(self)?,
            Comparison::Gte(..) => order == Some(Ordering::Greater) || equal(self)?,
        })
    }

    fn operand(&mut self, comparable: &Comparable, current: &'a Value) -> Outcome<Operand<'a>> {
        match comparable {
            Comparable::Literal(literal) => Ok(Some(Cow::Owned(value_of(literal)))),
            Comparable::Function(function) => self.function(function, current),
            Comparable::SingularQuery(query) => {
                let (start, segments) = match query {
                    SingularQuery::Current(segments) => (current, segments),
                    SingularQuery::Root(segments) => (self.root, segments),
                };
                self.step(1 + segments.len())?;
                let found = segments.iter().try_fold(start, |value, segment| match segment {
                    SingularQuerySegment::Name(name) => value.as_object()?.get(name),
                    SingularQuerySegment::Index(index) => {
                        let list = value.as_array()?;
                        list.get(place(*index, list.len())?)
                    }
                });
                Ok(found.map(Cow::Borrowed))
            }
        }
    }

    fn function(&mut self, function: &TestFunction, current: &'a Value) -> Outcome<Operand<'a>> {
        let number = |number: usize| Some(Cow::Owned(Value::from(number)));
        match function {
            TestFunction::Length(argument) => {
                let argument = self.argument(argument, current)?;
                Ok(match argument.as_deref() {
                    Some(Value::String(text)) => {
                        self.step(text.len() / 64)?;
                        number(text.chars().count())
                    }
                    Some(Value::Array(list)) => number(list.len()),
                    Some(Value::Object(map)) => number(map.len()),
                    _ => None,
                })
            }
            TestFunction::Count(argument) => Ok(number(self.values(argument, current)?.len())),
            TestFunction::Value(argument) => {
                let values = self.values(argument, current)?;
                Ok(if let [one] = values[..] { Some(Cow::Borrowed(one)) } else { None })
            }
            // They give no value; paths that compare them are refused when they are compiled.
            TestFunction::Match(..) | TestFunction::Search(..) | TestFunction::Custom(..) => Ok(None),
        }
    }

    /// The values of an argument that is a path.
    fn values(&mut self, argument: &FnArg, current: &'a Value) -> Outcome<Vec<&'a Value>> {
        match argument {
            FnArg::Test(test) => match &**test {
                Test::RelQuery(segments) => self.from(segments, current),
                Test::AbsQuery(query) => self.from(&query.segments, self.root),
                Test::Function(_) => Ok(Vec::new()),
            },
            FnArg::Literal(_) | FnArg::Filter(_) => Ok(Vec::new()),
        }
    }

    /// The one value of an argument.
    fn argument(&mut self, argument: &FnArg, current: &'a Value) -> Outcome<Operand<'a>> {
        match argument {
            FnArg::Literal(literal) => Ok(Some(Cow::Owned(value_of(literal)))),
            FnArg::Test(test) => match &**test {
                Test::Function(function) => self.function(function, current),
                _ => Ok(self.values(argument, current)?.first().map(|value| Cow::Borrowed(*value))),
            },
            FnArg::Filter(_) => Ok(None),
        }
    }

    fn matches(&mut self, text: &FnArg, pattern: &FnArg, whole: bool, current: &'a Value) -> Outcome<bool> {
        let (text, pattern) = (self.argument(text, current)?, self.argument(pattern, current)?);
        let (Some(Value::String(text)), Some(Value::String(pattern))) = (text.as_deref(), pattern.as_deref())
        else {
            return Ok(false);
        };
        self.step(1 + text.len() / 64)?;
        let key = (pattern.clone(), whole);
        if !self.patterns.contains_key(&key) {
            self.step(PATTERN_STEPS)?;
            if self.patterns.len() >= MAX_PATTERNS {
                self.patterns.clear();
            }
            self.patterns.insert(key.clone(), compile(pattern, whole));
        }
        Ok(self.patterns[&key].as_ref().is_some_and(|regex| regex.is_match(text)))
    }

    fn is_equal(&mut self, left: &Value, right: &Value, depth: usize) -> Outcome<bool> {
        self.step(1)?;
        if depth > MAX_COMPARED_DEPTH {
            return Err(format!("it compares values that nest deeper than {MAX_COMPARED_DEPTH} levels"));
        }
        match (left, right) {
            (Value::Number(left), Value::Number(right)) => {
                Ok(compare_numbers(left, right) == Some(Ordering::Equal))
            }
            (Value::String(left), Value::String(right)) => {
                self.step(left.len().min(right.len()) / 64)?;
                Ok(left == right)
            }
            (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
                for (left, right) in left.iter().zip(right) {
                    if !self.is_equal(left, right, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
                for (name, left) in left {
                    let Some(right) = right.get(name) else { return Ok(false) };
                    if !self.is_equal(left, right, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Array(_) | Value::Object(_), _) => Ok(false),
            _ => Ok(left == right),
        }
    }
}

fn value_of(literal: &Literal) -> Value {
    match literal {
        Literal::Int(number) => Value::from(*number),
        Literal::Float(number) => Value::from(*number),
        Literal::String(text) => Value::from(text.as_str()),
        Literal::Bool(flag) => Value::from(*flag),
        Literal::Null => Value::Null,
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    let integer =
        |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// The place that an index means, from the end if it is negative.
fn place(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let at = if index < 0 { length.checked_add(index)? } else { index };
    usize::try_from(at).ok().filter(|_| at < length)
}

/// The places of a slice, by section 2.3.4.2 of the RFC.
fn slice(
    (start, end, step): (Option<i64>, Option<i64>, Option<i64>),
    length: usize,
) -> impl Iterator<Item = usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let step = step.unwrap_or(1);
    let normal = |index: i64| if index >= 0 { index } else { length.saturating_add(index) };
    let (first, last) = if step >= 0 { (0, length) } else { (length - 1, -1) };
    let (start, end) = (start.map_or(first, normal), end.map_or(last, normal));
    let (low, high) = if step >= 0 { (0, length) } else { (-1, length - 1) };
    let (start, end) = (start.clamp(low, high.max(low)), end.clamp(low, high.max(low)));
    let mut next = Some(start).filter(|_| step != 0);
    std::iter::from_fn(move || {
        let at = next?;
        let is_inside = if step > 0 { at < end } else { at > end };
        next = at.checked_add(step);
        usize::try_from(at).ok().filter(|_| is_inside)
    })
}

/// A regular expression of RFC 9485 (I-Regexp). Its dot matches neither line feed nor carriage return.
fn compile(pattern: &str, whole: bool) -> Option<Regex> {
    let mut translated = String::with_capacity(pattern.len() + 16);
    translated.push_str(if whole { r"\A(?:" } else { "(?:" });
    let (mut in_class, mut escaped) = (false, false);
    for character in pattern.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '.' if !in_class => {
                translated.push_str(r"[^\n\r]");
                continue;
            }
            _ => {}
        }
        translated.push(character);
    }
    translated.push_str(if whole { r")\z" } else { ")" });
    RegexBuilder::new(&translated).size_limit(MAX_PATTERN).build().ok()
}
