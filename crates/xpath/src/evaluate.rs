//! The evaluation of expressions.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::axes::walk;
use crate::document::{Document, Kind, Node};
use crate::error::Error;
use crate::expression::{Axis, Comparison, Expression, Named, Operator, Start, Step, Test};
use crate::functions;
use crate::scope::Scope;
use crate::value::{Value, number_of};
use crate::xpath::XPath;

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
            wanted: RefCell::default(),
            patterns: RefCell::default(),
        };
        let value = evaluation.value(&self.expression, Context { node, position: 1, size: 1 })?;
        Ok((value, scope.steps() - evaluation.left.get()))
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
    /// By the address of a step, the names that it wants.
    wanted: RefCell<HashMap<usize, Rc<Wanted>>>,
    /// The compiled regular expressions, by flags and text.
    pub(crate) patterns: RefCell<HashMap<(String, String), Rc<regex::Regex>>>,
}

/// A node test, resolved against the names of the document.
enum Wanted {
    All,
    Kind(Kind),
    /// The numbers of names.
    Names(Vec<u32>),
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

    pub(crate) fn value(&self, expression: &'a Expression, cx: Context) -> Result<Value, Error> {
        Ok(match expression {
            Expression::Or(_) | Expression::And(_) | Expression::Compare(..) => {
                Value::Boolean(self.boolean(expression, cx)?)
            }
            Expression::Arithmetic(operator, left, right) => {
                let (left, right) = (self.number(left, cx)?, self.number(right, cx)?);
                Value::Number(match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                    Operator::Modulo => left % right,
                })
            }
            Expression::Negate(value) => Value::Number(-self.number(value, cx)?),
            Expression::Union(terms) => {
                let mut all = Vec::new();
                for term in terms {
                    all.extend(self.nodes(term, cx, "|")?);
                    self.bound(&mut all)?;
                }
                Value::from(all)
            }
            Expression::Path(start, steps) => Value::Nodes(self.path(start, steps, cx)?),
            Expression::Literal(text) => Value::String(text.clone()),
            Expression::Number(number) => Value::Number(*number),
            Expression::Variable(named) => self.variable(named)?.clone(),
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
        wanted_by: &str,
    ) -> Result<Vec<Node>, Error> {
        match self.value(expression, cx)? {
            Value::Nodes(nodes) => Ok(nodes),
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
                let (left, right) = (self.value(left, cx)?, self.value(right, cx)?);
                self.compare(*comparison, &left, &right)
            }
            _ => Ok(self.value(expression, cx)?.boolean()),
        }
    }

    pub(crate) fn number(&self, expression: &'a Expression, cx: Context) -> Result<f64, Error> {
        Ok(match expression {
            Expression::Number(number) => *number,
            _ => self.value(expression, cx)?.number(self.document),
        })
    }

    /// The value as a string, borrowed where it is a text of the document or of the expression.
    pub(crate) fn string(&self, expression: &'a Expression, cx: Context) -> Result<Cow<'a, str>, Error> {
        let text = match expression {
            Expression::Literal(text) => Cow::Borrowed(text.as_str()),
            Expression::Path(start, steps) => match self.path(start, steps, cx)?.first() {
                Some(first) => Cow::Borrowed(self.document.value(*first)),
                None => Cow::Borrowed(""),
            },
            _ => Cow::Owned(self.value(expression, cx)?.string(self.document)),
        };
        self.spend_text(&text)?;
        Ok(text)
    }

    fn path(&self, start: &'a Start, steps: &'a [Step], cx: Context) -> Result<Vec<Node>, Error> {
        let mut nodes = match start {
            Start::Root => vec![self.document.root()],
            Start::Context => vec![cx.node],
            Start::Filtered(expression, predicates) => {
                let mut nodes = self.nodes(expression, cx, "a path or predicate")?;
                self.filter(&mut nodes, 0, predicates)?;
                nodes
            }
        };
        for step in steps {
            nodes = self.step(&nodes, step)?;
        }
        Ok(nodes)
    }

    /// The nodes to which a step leads from nodes in document order, again in document order.
    fn step(&self, from: &[Node], step: &'a Step) -> Result<Vec<Node>, Error> {
        let wanted = self.wanted(step)?;
        let mut found: Vec<Node> = Vec::new();
        // The descendants of what lies inside a node are among the descendants of the node.
        let is_nested =
            matches!(step.axis, Axis::Descendant | Axis::DescendantOrSelf) && step.predicates.is_empty();
        let mut covered = 0;
        for node in from {
            let entry = self.document.entry(*node);
            if is_nested && node.0 < covered && !matches!(entry.kind, Kind::Attribute | Kind::Namespace) {
                continue;
            }
            covered = covered.max(entry.end);
            let before = found.len();
            let seen = walk(self.document, step.axis, *node, |node| {
                if self.is_wanted(&wanted, node) {
                    found.push(node);
                }
            });
            self.spend(seen)?;
            self.filter(&mut found, before, &step.predicates)?;
            if step.axis.is_reverse() {
                found[before..].reverse();
            }
            self.bound(&mut found)?;
        }
        if from.len() > 1 && !found.is_sorted_by(|a, b| a < b) {
            self.spend(found.len() as u64)?;
            found.sort_unstable();
            found.dedup();
        }
        Ok(found)
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
            if let Expression::Number(wanted) = predicate {
                let kept =
                    (1..=size).find(|position| *position as f64 == *wanted).map(|at| nodes[from + at - 1]);
                nodes.truncate(from);
                nodes.extend(kept);
                continue;
            }
            let mut kept = from;
            for at in from..nodes.len() {
                let cx = Context { node: nodes[at], position: at - from + 1, size };
                self.spend(1)?;
                let holds = match predicate {
                    Expression::Or(_) | Expression::And(_) | Expression::Compare(..) => {
                        self.boolean(predicate, cx)?
                    }
                    _ => match self.value(predicate, cx)? {
                        Value::Number(number) => number == cx.position as f64,
                        other => other.boolean(),
                    },
                };
                if holds {
                    nodes[kept] = nodes[at];
                    kept += 1;
                }
            }
            nodes.truncate(kept);
        }
        Ok(())
    }

    fn wanted(&self, step: &Step) -> Result<Rc<Wanted>, Error> {
        let address = std::ptr::from_ref(step).addr();
        if let Some(known) = self.wanted.borrow().get(&address) {
            return Ok(Rc::clone(known));
        }
        let uri = |prefix: &Named| match &*prefix.name {
            "" => Ok(""),
            name => {
                let missing = || self.error(prefix, format!("the prefix \"{name}\" is not given"));
                self.scope.uri(name).ok_or_else(missing)
            }
        };
        let principal = match step.axis {
            Axis::Attribute => Kind::Attribute,
            Axis::Namespace => Kind::Namespace,
            _ => Kind::Element,
        };
        let names = &self.document.names;
        let numbers = |is_it: &dyn Fn(&crate::document::Name) -> bool| {
            Wanted::Names(
                (0..).zip(names).filter(|(_, name)| is_it(name)).map(|(number, _)| number).collect(),
            )
        };
        let wanted = match &step.test {
            Test::Node => Wanted::All,
            Test::Text => Wanted::Kind(Kind::Text),
            Test::Comment => Wanted::Kind(Kind::Comment),
            Test::AnyName => Wanted::Kind(principal),
            Test::Instruction(None) => Wanted::Kind(Kind::Instruction),
            Test::Instruction(Some(target)) => numbers(&|name| name.local == target.as_str().into()),
            Test::AnyOf(prefix) => {
                let uri = uri(prefix)?;
                numbers(&|name| &*name.namespace == uri)
            }
            // In HTML a colon is a part of the name.
            Test::Name { prefix, local } if self.document.is_html() && !prefix.name.is_empty() => {
                let whole = format!("{}:{local}", prefix.name);
                numbers(&|name| *name.local == *whole)
            }
            Test::Name { prefix, local } => {
                let uri = uri(prefix)?;
                numbers(&|name| &*name.local == local && &*name.namespace == uri)
            }
        };
        self.spend(1 + names.len() as u64)?;
        let wanted = Rc::new(wanted);
        self.wanted.borrow_mut().insert(address, Rc::clone(&wanted));
        Ok(wanted)
    }

    fn is_wanted(&self, wanted: &Wanted, node: Node) -> bool {
        let entry = self.document.entry(node);
        match wanted {
            Wanted::All => true,
            Wanted::Kind(kind) => entry.kind == *kind,
            Wanted::Names(names) => match names.as_slice() {
                _ if matches!(entry.kind, Kind::Root | Kind::Text | Kind::Comment) => false,
                [one] => entry.name == *one,
                many => many.contains(&entry.name),
            },
        }
    }

    /// Section 3.4 of the recommendation.
    fn compare(&self, comparison: Comparison, left: &Value, right: &Value) -> Result<bool, Error> {
        let document = self.document;
        match (left, right) {
            (Value::Nodes(_), Value::Boolean(value)) => {
                Ok(numbers(comparison, f64::from(u8::from(left.boolean())), f64::from(u8::from(*value))))
            }
            (Value::Boolean(value), Value::Nodes(_)) => {
                Ok(numbers(comparison, f64::from(u8::from(*value)), f64::from(u8::from(right.boolean()))))
            }
            (Value::Nodes(one), Value::Nodes(other)) => self.compare_nodes(comparison, one, other),
            (Value::Nodes(nodes), other) => {
                self.any(nodes, |text| single(comparison, text, other, document, false))
            }
            (other, Value::Nodes(nodes)) => {
                self.any(nodes, |text| single(comparison, text, other, document, true))
            }
            _ => {
                let is_order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
                let is = |wanted: fn(&Value) -> bool| wanted(left) || wanted(right);
                Ok(
                    if is_order
                        || is(|value| matches!(value, Value::Number(_)))
                            && !is(|value| matches!(value, Value::Boolean(_)))
                    {
                        numbers(comparison, left.number(document), right.number(document))
                    } else if is(|value| matches!(value, Value::Boolean(_))) {
                        (left.boolean() == right.boolean()) == (comparison == Comparison::Equal)
                    } else {
                        (left.string(document) == right.string(document)) == (comparison == Comparison::Equal)
                    },
                )
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
fn single(comparison: Comparison, text: &str, other: &Value, document: &Document, is_swapped: bool) -> bool {
    let is_order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    if let (Value::String(other), false) = (other, is_order) {
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
