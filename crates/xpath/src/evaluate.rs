//! The evaluation of expressions.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;

use crate::axes::walk;
use crate::document::{Document, Kind, Node};
use crate::error::Error;
use crate::expression::{Axis, Comparison, Expression, Function, Named, Operator, Start, Step, Test};
use crate::functions;
use crate::index::Key;
use crate::operand::{Operand, number_of};
use crate::scope::Scope;
use crate::value::Value;
use crate::xpath::XPath;

/// From this number of nodes on, the lists of nodes by name are used: below, a walk costs less than making and searching them.
const MANY_NODES: u32 = 64;
/// The longest path whose steps are taken inside each other.
const MAX_NESTED: usize = 4;

impl XPath {
    /// Evaluates the expression at a node.
    ///
    /// # Errors
    /// A prefix or variable is not in the scope, a function got something else than nodes, a regular expression is not valid, or the steps
    /// were used up.
    pub fn evaluate(&self, document: &Document, node: Node, scope: &Scope) -> Result<Value, Error> {
        self.evaluate_counted(document, node, scope).map(|(value, _)| value)
    }

    /// Like [`evaluate`](Self::evaluate), with the number of steps that were used, for callers with a limit over many evaluations.
    ///
    /// # Errors
    /// As for `evaluate`.
    pub fn evaluate_counted(
        &self,
        document: &Document,
        node: Node,
        scope: &Scope,
    ) -> Result<(Value, u64), Error> {
        let evaluation = Evaluation {
            text: &self.text,
            document,
            scope,
            left: Cell::new(scope.steps()),
            wanted: (0..self.steps).map(|_| OnceCell::new()).collect(),
            patterns: RefCell::default(),
        };
        let value = evaluation.operand(&self.expression, Context { node, position: 1, size: 1 })?;
        Ok((value.into_value(), scope.steps() - evaluation.left.get()))
    }
}

/// The node at which an expression is evaluated, its position among the nodes of the step, and their number.
#[derive(Clone, Copy)]
pub(crate) struct Context {
    pub(crate) node: Node,
    pub(crate) position: usize,
    pub(crate) size: usize,
}

pub(crate) struct Evaluation<'a> {
    pub(crate) text: &'a str,
    pub(crate) document: &'a Document,
    pub(crate) scope: &'a Scope,
    /// The steps that are left.
    left: Cell<u64>,
    /// By the number of a step, the nodes that its test wants.
    wanted: Vec<OnceCell<Wanted>>,
    /// The compiled regular expressions, by flags and text.
    pub(crate) patterns: RefCell<HashMap<(String, String), Rc<regex::Regex>>>,
}

/// A node test, resolved against the names of the document.
enum Wanted {
    All,
    Kind(Kind),
    /// The nodes of a kind with one of these numbers of names.
    Named(Kind, Vec<u32>),
}

/// What visiting the nodes of a path one after the other gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Visits {
    /// Perhaps a node more than once.
    Repeated,
    /// Each node once.
    Distinct,
    /// Each node once, in document order.
    Ordered,
}

impl<'a> Evaluation<'a> {
    /// Spends steps.
    pub(crate) fn spend(&self, steps: u64) -> Result<(), Error> {
        match self.left.get().checked_sub(steps) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(Error::at(
                self.text,
                0,
                format!(
                    "this document needs more than the {} steps that are allowed; ask for less, or raise the limit",
                    self.scope.steps()
                ),
            )),
        }
    }

    /// Spends the steps of reading a text.
    pub(crate) fn spend_text(&self, text: &str) -> Result<(), Error> {
        self.spend(1 + text.len() as u64 / 16)
    }

    pub(crate) fn error(&self, named: &Named, what: impl std::fmt::Display) -> Error {
        Error::at(self.text, named.at, what)
    }

    pub(crate) fn operand(&self, expression: &'a Expression, cx: Context) -> Result<Operand<'a>, Error> {
        Ok(match expression {
            Expression::Or(_) | Expression::And(_) | Expression::Compare(..) => {
                Operand::Boolean(self.boolean(expression, cx)?)
            }
            Expression::Arithmetic(operator, left, right) => {
                let (left, right) = (self.number(left, cx)?, self.number(right, cx)?);
                Operand::Number(match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                    Operator::Modulo => left % right,
                })
            }
            Expression::Negate(value) => Operand::Number(-self.number(value, cx)?),
            Expression::Union(terms) => {
                let mut all = Vec::new();
                for term in terms {
                    all.extend_from_slice(&self.nodes(term, cx, format_args!("|"))?);
                    self.bound(&mut all)?;
                }
                all.sort_unstable();
                all.dedup();
                Operand::nodes(all)
            }
            Expression::Path(start, steps) => Operand::nodes(self.path(start, steps, cx)?),
            Expression::Literal(text) => Operand::text(text),
            Expression::Number(number) => Operand::Number(*number),
            Expression::Variable(named) => Operand::from(self.variable(named)?),
            Expression::Call(named, function, arguments) => {
                functions::call(self, (named, *function), arguments, cx)?
            }
        })
    }

    fn variable(&self, named: &Named) -> Result<&'a Value, Error> {
        let name = &named.name;
        let missing = || self.error(named, format!("the variable ${name} is not given"));
        self.scope.value(name).ok_or_else(missing)
    }

    /// The value as nodes. `wanted_by` is the function or operator that needs them.
    pub(crate) fn nodes(
        &self,
        expression: &'a Expression,
        cx: Context,
        wanted_by: fmt::Arguments<'_>,
    ) -> Result<Cow<'a, [Node]>, Error> {
        match self.operand(expression, cx)? {
            Operand::Nodes(nodes) => Ok(nodes),
            other => {
                let shown = other.string(self.document);
                let what = format!("{wanted_by} takes nodes, and not the value \"{}\"", shown.escape_debug());
                Err(Error::at(self.text, 0, what))
            }
        }
    }

    pub(crate) fn boolean(&self, expression: &'a Expression, cx: Context) -> Result<bool, Error> {
        match expression {
            Expression::Or(terms) => {
                for term in terms {
                    if self.boolean(term, cx)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Expression::And(terms) => {
                for term in terms {
                    if !self.boolean(term, cx)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Expression::Compare(comparison, left, right) => {
                let by_visits = match (&**left, &**right) {
                    (path, Expression::Literal(_) | Expression::Number(_)) => Some((path, right, false)),
                    (Expression::Literal(_) | Expression::Number(_), path) => Some((path, left, true)),
                    _ => None,
                };
                if let Some((path, other, is_swapped)) = by_visits
                    && let Some((origin, steps)) = self.visited(path, cx, Visits::Distinct)
                {
                    let (other, document) = (self.operand(other, cx)?, self.document);
                    return self.each(origin, steps, &mut |node| {
                        let text = document.value(node);
                        self.spend_text(text)?;
                        Ok(single(*comparison, text, &other, document, is_swapped))
                    });
                }
                let (left, right) = (self.operand(left, cx)?, self.operand(right, cx)?);
                self.compare(*comparison, &left, &right)
            }
            Expression::Path(..) => match self.visited(expression, cx, Visits::Distinct) {
                Some((origin, steps)) => self.each(origin, steps, &mut |_| Ok(true)),
                None => Ok(self.operand(expression, cx)?.boolean()),
            },
            _ => Ok(self.operand(expression, cx)?.boolean()),
        }
    }

    pub(crate) fn number(&self, expression: &'a Expression, cx: Context) -> Result<f64, Error> {
        Ok(match expression {
            Expression::Number(number) => *number,
            Expression::Path(..) => {
                self.first(expression, cx)?.map_or(f64::NAN, |first| number_of(self.document.value(first)))
            }
            _ => self.operand(expression, cx)?.number(self.document),
        })
    }

    /// The value as a string, borrowed where it is a text of the document or of the expression.
    pub(crate) fn string(&self, expression: &'a Expression, cx: Context) -> Result<Cow<'a, str>, Error> {
        let text = match expression {
            Expression::Path(..) => {
                Cow::Borrowed(self.first(expression, cx)?.map_or("", |first| self.document.value(first)))
            }
            _ => self.operand(expression, cx)?.string(self.document),
        };
        self.spend_text(&text)?;
        Ok(text)
    }

    /// The number of nodes of a path or another expression.
    pub(crate) fn count(
        &self,
        expression: &'a Expression,
        cx: Context,
        wanted_by: fmt::Arguments<'_>,
    ) -> Result<usize, Error> {
        let Some((origin, steps)) = self.visited(expression, cx, Visits::Distinct) else {
            return Ok(self.nodes(expression, cx, wanted_by)?.len());
        };
        let mut count = 0;
        self.each(origin, steps, &mut |_| {
            count += 1;
            Ok(false)
        })?;
        Ok(count)
    }

    /// The first node of a path.
    fn first(&self, path: &'a Expression, cx: Context) -> Result<Option<Node>, Error> {
        let Some((origin, steps)) = self.visited(path, cx, Visits::Ordered) else {
            return Ok(self.nodes(path, cx, format_args!("a string or number"))?.first().copied());
        };
        let mut first = None;
        self.each(origin, steps, &mut |node| {
            first = Some(node);
            Ok(true)
        })?;
        Ok(first)
    }

    /// The origin and the steps of a path whose nodes need not be collected, because they can be visited as wanted.
    fn visited(&self, path: &'a Expression, cx: Context, wanted: Visits) -> Option<(Node, &'a [Step])> {
        let Expression::Path(start, steps) = path else { return None };
        let origin = match start {
            Start::Root => self.document.root(),
            Start::Context => cx.node,
            Start::Filtered(..) => return None,
        };
        (visits(steps) >= wanted).then_some((origin, steps))
    }

    /// Visits the nodes to which steps lead from a node, those of a step inside those of the one before, until a visit is the last.
    /// No predicate of the steps may depend on positions. Whether a visit was the last.
    fn each(
        &self,
        from: Node,
        steps: &'a [Step],
        visit: &mut dyn FnMut(Node) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let Some((step, rest)) = steps.split_first() else { return visit(from) };
        let wanted = self.wanted(step)?;
        let mut outcome = Ok(false);
        let seen = self.candidates(step.axis, wanted, from, |node| {
            outcome = self.holds_all(&step.predicates, node).and_then(|holds| match (holds, rest) {
                (false, _) => Ok(false),
                (true, []) => visit(node),
                (true, rest) => self.each(node, rest, visit),
            });
            match outcome {
                Ok(false) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        });
        let is_over = outcome?;
        self.spend(seen)?;
        Ok(is_over)
    }

    /// Whether predicates hold that do not depend on positions.
    fn holds_all(&self, predicates: &'a [Expression], node: Node) -> Result<bool, Error> {
        for predicate in predicates {
            self.spend(1)?;
            if !self.boolean(predicate, Context { node, position: 1, size: 1 })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Visits the nodes of an axis that a step wants, until the visitor breaks off, and returns the number of nodes that were looked at.
    fn candidates(
        &self,
        axis: Axis,
        wanted: &Wanted,
        from: Node,
        mut visit: impl FnMut(Node) -> ControlFlow<()>,
    ) -> u64 {
        if let Some(listed) = self.listed(axis, wanted, from) {
            let mut seen = 1;
            let _ = listed.iter().try_for_each(|node| {
                seen += 1;
                visit(Node(*node))
            });
            return seen;
        }
        walk(self.document, axis, from, |node| match self.is_wanted(wanted, node) {
            true => visit(node),
            false => ControlFlow::Continue(()),
        })
    }

    /// The nodes of an axis that a step wants, if it goes through much of the document and they are listed.
    fn listed(&self, axis: Axis, wanted: &Wanted, from: Node) -> Option<&'a [u32]> {
        let (document, end) = (self.document, self.document.entry(from).end);
        let range = match axis {
            Axis::Descendant | Axis::ChildOfAny | Axis::AttributeOfAny => from.0 + 1..end,
            Axis::DescendantOrSelf => from.0..end,
            Axis::Following => end..document.len() as u32,
            _ => return None,
        };
        if range.end.saturating_sub(range.start) < MANY_NODES {
            return None;
        }
        let key = match wanted {
            Wanted::Kind(Kind::Text) => Key::Text,
            Wanted::Kind(Kind::Comment) => Key::Comment,
            Wanted::Named(Kind::Element, names) => match names.as_slice() {
                [] => return Some(&[]),
                [one] => Key::Element(*one),
                _ => return None,
            },
            Wanted::Named(Kind::Attribute, names) => match names.as_slice() {
                [] => return Some(&[]),
                [one] => Key::Attribute(*one),
                _ => return None,
            },
            _ => return None,
        };
        Some(document.index().within(key, range))
    }

    fn path(&self, start: &'a Start, steps: &'a [Step], cx: Context) -> Result<Vec<Node>, Error> {
        let origin = match start {
            Start::Root => self.document.root(),
            Start::Context => cx.node,
            Start::Filtered(expression, predicates) => {
                let nodes = self.nodes(expression, cx, format_args!("a path or predicate"))?;
                let mut nodes = nodes.into_owned();
                self.filter(&mut nodes, 0, predicates)?;
                return self.steps(nodes, steps);
            }
        };
        match steps.split_first() {
            Some((first, rest)) => self.steps(self.step(&[origin], first)?, rest),
            None => Ok(vec![origin]),
        }
    }

    fn steps(&self, mut nodes: Vec<Node>, steps: &'a [Step]) -> Result<Vec<Node>, Error> {
        for step in steps {
            if nodes.is_empty() {
                // The other steps are resolved nevertheless: a prefix that is not given is an error on each page.
                self.wanted(step)?;
                continue;
            }
            nodes = self.step(&nodes, step)?;
        }
        Ok(nodes)
    }

    /// The nodes to which a step leads from nodes in document order, again in document order.
    fn step(&self, from: &[Node], step: &'a Step) -> Result<Vec<Node>, Error> {
        let wanted = self.wanted(step)?;
        let mut found: Vec<Node> = Vec::new();
        // What lies inside a node is looked through with the node.
        let is_nested = match step.axis {
            Axis::Descendant | Axis::DescendantOrSelf | Axis::AttributeOfAny => step.predicates.is_empty(),
            Axis::ChildOfAny => true,
            _ => false,
        };
        let mut covered = 0;
        for node in from {
            let entry = self.document.entry(*node);
            if is_nested && node.0 < covered && !matches!(entry.kind, Kind::Attribute | Kind::Namespace) {
                continue;
            }
            covered = covered.max(entry.end);
            let before = found.len();
            match self.listed(step.axis, wanted, *node) {
                Some(listed) => {
                    self.spend(1 + listed.len() as u64)?;
                    found.extend(listed.iter().map(|number| Node(*number)));
                }
                None => self.spend(walk(self.document, step.axis, *node, |node| {
                    if self.is_wanted(wanted, node) {
                        found.push(node);
                    }
                    ControlFlow::Continue(())
                }))?,
            }
            if step.axis == Axis::ChildOfAny {
                continue;
            }
            self.filter(&mut found, before, &step.predicates)?;
            if step.axis.is_reverse() {
                found[before..].reverse();
            }
            self.bound(&mut found)?;
        }
        if step.axis == Axis::ChildOfAny {
            found = self.filter_children(found, step)?;
        }
        if (from.len() > 1 || step.axis == Axis::ChildOfAny) && !found.is_sorted_by(|a, b| a < b) {
            self.spend(found.len() as u64)?;
            found.sort_unstable();
            found.dedup();
        }
        Ok(found)
    }

    /// Keeps of nodes those for which all predicates of a step hold among the children of their parent.
    fn filter_children(&self, mut nodes: Vec<Node>, step: &'a Step) -> Result<Vec<Node>, Error> {
        let parent = |node: &Node| self.document.entry(*node).parent;
        if !nodes.is_sorted_by_key(parent) {
            self.spend(nodes.len() as u64)?;
            nodes.sort_by_key(parent);
        }
        let mut kept = Vec::new();
        for children in nodes.chunk_by(|one, other| parent(one) == parent(other)) {
            let before = kept.len();
            kept.extend_from_slice(children);
            self.filter(&mut kept, before, &step.predicates)?;
        }
        Ok(kept)
    }

    /// Drops repetitions once there are more nodes than the document can have, so that memory is bounded by the document and not by the steps.
    fn bound(&self, nodes: &mut Vec<Node>) -> Result<(), Error> {
        if nodes.len() > 2 * self.document.len() {
            self.spend(nodes.len() as u64)?;
            nodes.sort_unstable();
            nodes.dedup();
        }
        Ok(())
    }

    /// Keeps of the nodes from an index on those for which all predicates hold.
    fn filter(&self, nodes: &mut Vec<Node>, from: usize, predicates: &'a [Expression]) -> Result<(), Error> {
        for predicate in predicates {
            let size = nodes.len() - from;
            let only = match predicate {
                // A number that is no position is none after the conversion, either.
                Expression::Number(wanted) => Some(*wanted as usize).filter(|at| *at as f64 == *wanted),
                Expression::Call(_, Function::Last, _) => Some(size),
                _ => {
                    self.filter_each(nodes, from, predicate)?;
                    continue;
                }
            };
            let kept = only.filter(|at| (1..=size).contains(at)).map(|at| nodes[from + at - 1]);
            nodes.truncate(from);
            nodes.extend(kept);
        }
        Ok(())
    }

    fn filter_each(
        &self,
        nodes: &mut Vec<Node>,
        from: usize,
        predicate: &'a Expression,
    ) -> Result<(), Error> {
        let (size, mut kept) = (nodes.len() - from, from);
        for at in from..nodes.len() {
            let cx = Context { node: nodes[at], position: at - from + 1, size };
            self.spend(1)?;
            let holds = match predicate {
                Expression::Or(_) | Expression::And(_) | Expression::Compare(..) | Expression::Path(..) => {
                    self.boolean(predicate, cx)?
                }
                _ => match self.operand(predicate, cx)? {
                    Operand::Number(number) => number == cx.position as f64,
                    other => other.boolean(),
                },
            };
            if holds {
                nodes[kept] = nodes[at];
                kept += 1;
            }
        }
        nodes.truncate(kept);
        Ok(())
    }

    fn wanted(&self, step: &Step) -> Result<&Wanted, Error> {
        let resolved = &self.wanted[step.number];
        if let Some(known) = resolved.get() {
            return Ok(known);
        }
        let wanted = self.resolve(step)?;
        Ok(resolved.get_or_init(|| wanted))
    }

    fn resolve(&self, step: &Step) -> Result<Wanted, Error> {
        let uri = |prefix: &Named| match &*prefix.name {
            "" => Ok(""),
            name => {
                let missing = || self.error(prefix, format!("the prefix \"{name}\" is not given"));
                self.scope.uri(name).ok_or_else(missing)
            }
        };
        let principal = match step.axis {
            Axis::Attribute | Axis::AttributeOfAny => Kind::Attribute,
            Axis::Namespace => Kind::Namespace,
            _ => Kind::Element,
        };
        let document = self.document;
        self.spend(1)?;
        Ok(match &step.test {
            Test::Node => Wanted::All,
            Test::Text => Wanted::Kind(Kind::Text),
            Test::Comment => Wanted::Kind(Kind::Comment),
            Test::AnyName => Wanted::Kind(principal),
            Test::Instruction(None) => Wanted::Kind(Kind::Instruction),
            Test::Instruction(Some(target)) => Wanted::Named(Kind::Instruction, self.names(target)?),
            Test::AnyOf(prefix) => {
                let uri = uri(prefix)?;
                self.spend(document.names.len() as u64)?;
                let all = (0..).zip(&document.names);
                let of_it = all.filter(|(_, name)| &*name.namespace == uri).map(|(number, _)| number);
                Wanted::Named(principal, of_it.collect())
            }
            // In HTML a colon is a part of the name.
            Test::Name { prefix, local } if document.is_html() && !prefix.name.is_empty() => {
                Wanted::Named(principal, self.names(&format!("{}:{local}", prefix.name))?)
            }
            Test::Name { prefix, local } => {
                let uri = uri(prefix)?;
                let mut names = self.names(local)?;
                names.retain(|number| &*document.names[*number as usize].namespace == uri);
                Wanted::Named(principal, names)
            }
        })
    }

    /// The numbers of the names with a local part.
    fn names(&self, local: &str) -> Result<Vec<u32>, Error> {
        let document = self.document;
        if document.len() >= MANY_NODES as usize {
            return Ok(document.index().named(document, local).to_vec());
        }
        self.spend(document.names.len() as u64)?;
        let all = (0..).zip(&document.names);
        Ok(all.filter(|(_, name)| &*name.local == local).map(|(number, _)| number).collect())
    }

    fn is_wanted(&self, wanted: &Wanted, node: Node) -> bool {
        let entry = self.document.entry(node);
        match wanted {
            Wanted::All => true,
            Wanted::Kind(kind) => entry.kind == *kind,
            Wanted::Named(kind, names) => {
                entry.kind == *kind
                    && match names.as_slice() {
                        [one] => entry.name == *one,
                        many => many.contains(&entry.name),
                    }
            }
        }
    }

    /// Section 3.4 of the recommendation.
    fn compare(
        &self,
        comparison: Comparison,
        left: &Operand<'_>,
        right: &Operand<'_>,
    ) -> Result<bool, Error> {
        let document = self.document;
        match (left, right) {
            (Operand::Nodes(_), Operand::Boolean(value)) => {
                Ok(numbers(comparison, f64::from(u8::from(left.boolean())), f64::from(u8::from(*value))))
            }
            (Operand::Boolean(value), Operand::Nodes(_)) => {
                Ok(numbers(comparison, f64::from(u8::from(*value)), f64::from(u8::from(right.boolean()))))
            }
            (Operand::Nodes(one), Operand::Nodes(other)) => self.compare_nodes(comparison, one, other),
            (Operand::Nodes(nodes), other) => {
                self.any(nodes, |text| single(comparison, text, other, document, false))
            }
            (other, Operand::Nodes(nodes)) => {
                self.any(nodes, |text| single(comparison, text, other, document, true))
            }
            (Operand::Text(one), Operand::Text(other))
                if matches!(comparison, Comparison::Equal | Comparison::NotEqual) =>
            {
                Ok((one == other) == (comparison == Comparison::Equal))
            }
            _ => {
                let is_order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
                let is_boolean = matches!(left, Operand::Boolean(_)) || matches!(right, Operand::Boolean(_));
                Ok(if is_boolean && !is_order {
                    (left.boolean() == right.boolean()) == (comparison == Comparison::Equal)
                } else {
                    numbers(comparison, left.number(document), right.number(document))
                })
            }
        }
    }

    fn any(&self, nodes: &[Node], holds: impl Fn(&str) -> bool) -> Result<bool, Error> {
        for node in nodes {
            let text = self.document.value(*node);
            self.spend_text(text)?;
            if holds(text) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether two of the nodes compare so; in linear time.
    fn compare_nodes(&self, comparison: Comparison, one: &[Node], other: &[Node]) -> Result<bool, Error> {
        let value = |node: &Node| self.document.value(*node);
        for node in one.iter().chain(other) {
            self.spend_text(value(node))?;
        }
        let extremes = |nodes: &[Node]| {
            let all = nodes.iter().map(|node| number_of(value(node))).filter(|number| !number.is_nan());
            all.fold(None, |range: Option<(f64, f64)>, number| {
                let (least, most) = range.unwrap_or((number, number));
                Some((least.min(number), most.max(number)))
            })
        };
        Ok(match comparison {
            Comparison::Equal => {
                let known: HashSet<&str> = one.iter().map(value).collect();
                other.iter().any(|node| known.contains(value(node)))
            }
            Comparison::NotEqual => match (one.first(), other.first()) {
                (Some(first), Some(_)) => {
                    let same = value(first);
                    other.iter().any(|node| value(node) != same) || one.iter().any(|node| value(node) != same)
                }
                _ => false,
            },
            _ => match (extremes(one), extremes(other)) {
                (Some((least, most)), Some((lower, upper))) => match comparison {
                    Comparison::Less | Comparison::LessOrEqual => numbers(comparison, least, upper),
                    _ => numbers(comparison, most, lower),
                },
                _ => false,
            },
        })
    }
}

/// Compares the text of a node with a value that is no set of nodes.
fn single(
    comparison: Comparison,
    text: &str,
    other: &Operand<'_>,
    document: &Document,
    is_swapped: bool,
) -> bool {
    let is_order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    if let (Operand::Text(other), false) = (other, is_order) {
        return (text == other) == (comparison == Comparison::Equal);
    }
    let (node, other) = (number_of(text), other.number(document));
    if is_swapped { numbers(comparison, other, node) } else { numbers(comparison, node, other) }
}

fn numbers(comparison: Comparison, left: f64, right: f64) -> bool {
    match comparison {
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
        Comparison::Less => left < right,
        Comparison::LessOrEqual => left <= right,
        Comparison::Greater => left > right,
        Comparison::GreaterOrEqual => left >= right,
    }
}

/// What visiting the nodes of some steps from one node gives.
fn visits(steps: &[Step]) -> Visits {
    if steps.len() > MAX_NESTED {
        return Visits::Repeated;
    }
    let mut visits = Visits::Ordered;
    let mut is_nested = false;
    for (at, step) in steps.iter().enumerate() {
        if step.counts {
            return Visits::Repeated;
        }
        visits = visits.min(match step.axis {
            Axis::Itself | Axis::Attribute => Visits::Ordered,
            // Of two nodes inside each other, the children of the inner one may come first.
            Axis::Child if is_nested => Visits::Distinct,
            Axis::Child => Visits::Ordered,
            Axis::Descendant | Axis::DescendantOrSelf | Axis::AttributeOfAny if !is_nested => Visits::Ordered,
            Axis::Following | Axis::FollowingSibling | Axis::Namespace if at == 0 => Visits::Ordered,
            Axis::Parent if at == 0 => Visits::Ordered,
            Axis::Ancestor | Axis::AncestorOrSelf | Axis::Preceding | Axis::PrecedingSibling if at == 0 => {
                Visits::Distinct
            }
            _ => return Visits::Repeated,
        });
        is_nested |= !matches!(step.axis, Axis::Itself | Axis::Attribute | Axis::Child | Axis::Parent);
    }
    visits
}
