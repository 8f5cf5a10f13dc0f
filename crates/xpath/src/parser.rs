//! The grammar of expressions (section 3 of the recommendation).

use crate::error::Error;
use crate::expression::{Axis, Comparison, Expression, Function, Named, Operator, Start, Step, Test};
use crate::lexer::{Token, tokens};

/// Deepest nesting of parentheses, predicates and arguments.
const MAX_DEPTH: usize = 64;
/// The most comparisons and calculations: they nest to the left.
const MAX_OPERATORS: usize = 256;
/// The most tokens of an expression.
const MAX_TOKENS: usize = 10_000;

/// The expression, and the number of its steps.
pub(crate) fn parse(text: &str) -> Result<(Expression, usize), Error> {
    let tokens = tokens(text)?;
    if tokens.len() > MAX_TOKENS {
        return Err(Error::at(text, 0, format!("it has more than {MAX_TOKENS} tokens")));
    }
    let mut parser = Parser { text, tokens, next: 0, depth: 0, operators: 0 };
    let mut expression = parser.expression()?;
    match parser.peek() {
        None => {
            let mut steps = 0;
            number(&mut expression, &mut steps);
            Ok((expression, steps))
        }
        Some(_) => Err(parser.error("the expression should end here, or an operator is missing")),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, usize)>,
    next: usize,
    depth: usize,
    operators: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(token, _)| token)
    }

    /// The byte where the next token begins.
    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.text.len(), |(_, at)| *at)
    }

    fn error(&self, what: impl std::fmt::Display) -> Error {
        Error::at(self.text, self.at(), what)
    }

    fn take(&mut self, wanted: &Token) -> bool {
        let is_it = self.peek() == Some(wanted);
        self.next += usize::from(is_it);
        is_it
    }

    fn sign(&mut self, sign: &'static str) -> bool {
        self.take(&Token::Sign(sign))
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), Error> {
        if self.sign(sign) { Ok(()) } else { Err(self.error(format!("\"{sign}\" is missing"))) }
    }

    /// Takes an operator whose operands are evaluated inside each other.
    fn operator(&mut self) -> Result<(), Error> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(self.error(format!("it has more than {MAX_OPERATORS} comparisons and calculations")));
        }
        self.next += 1;
        Ok(())
    }

    fn expression(&mut self) -> Result<Expression, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("it is nested more than {MAX_DEPTH} deep")));
        }
        let mut terms = vec![self.and()?];
        while self.take(&Token::Operator("or")) {
            terms.push(self.and()?);
        }
        self.depth -= 1;
        Ok(single(terms, Expression::Or))
    }

    fn and(&mut self) -> Result<Expression, Error> {
        let mut terms = vec![self.equality()?];
        while self.take(&Token::Operator("and")) {
            terms.push(self.equality()?);
        }
        Ok(single(terms, Expression::And))
    }

    fn equality(&mut self) -> Result<Expression, Error> {
        let mut left = self.relation()?;
        loop {
            let comparison = match self.peek() {
                Some(Token::Sign("=")) => Comparison::Equal,
                Some(Token::Sign("!=")) => Comparison::NotEqual,
                _ => return Ok(left),
            };
            self.operator()?;
            left = Expression::Compare(comparison, Box::new(left), Box::new(self.relation()?));
        }
    }

    fn relation(&mut self) -> Result<Expression, Error> {
        let mut left = self.sum()?;
        loop {
            let comparison = match self.peek() {
                Some(Token::Sign("<")) => Comparison::Less,
                Some(Token::Sign("<=")) => Comparison::LessOrEqual,
                Some(Token::Sign(">")) => Comparison::Greater,
                Some(Token::Sign(">=")) => Comparison::GreaterOrEqual,
                _ => return Ok(left),
            };
            self.operator()?;
            left = Expression::Compare(comparison, Box::new(left), Box::new(self.sum()?));
        }
    }

    fn sum(&mut self) -> Result<Expression, Error> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some(Token::Sign("+")) => Operator::Add,
                Some(Token::Sign("-")) => Operator::Subtract,
                _ => return Ok(left),
            };
            self.operator()?;
            left = Expression::Arithmetic(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expression, Error> {
        let mut left = self.negation()?;
        loop {
            let operator = match self.peek() {
                Some(Token::Operator("*")) => Operator::Multiply,
                Some(Token::Operator("div")) => Operator::Divide,
                Some(Token::Operator("mod")) => Operator::Modulo,
                _ => return Ok(left),
            };
            self.operator()?;
            left = Expression::Arithmetic(operator, Box::new(left), Box::new(self.negation()?));
        }
    }

    fn negation(&mut self) -> Result<Expression, Error> {
        let mut signs = 0;
        while self.sign("-") {
            signs += 1;
        }
        let value = self.union()?;
        // Of a number, two signs are none; of anything else they make a number.
        Ok(match signs {
            0 => value,
            odd if odd % 2 == 1 => Expression::Negate(Box::new(value)),
            _ => Expression::Negate(Box::new(Expression::Negate(Box::new(value)))),
        })
    }

    fn union(&mut self) -> Result<Expression, Error> {
        let mut terms = vec![self.path()?];
        while self.sign("|") {
            terms.push(self.path()?);
        }
        Ok(single(terms, Expression::Union))
    }

    fn path(&mut self) -> Result<Expression, Error> {
        if self.sign("//") {
            let mut steps = vec![any_descendant()];
            self.steps(&mut steps)?;
            return Ok(path(Start::Root, steps));
        }
        if self.sign("/") {
            let mut steps = Vec::new();
            if self.is_step() {
                self.steps(&mut steps)?;
            }
            return Ok(path(Start::Root, steps));
        }
        if self.is_step() {
            let mut steps = Vec::new();
            self.steps(&mut steps)?;
            return Ok(path(Start::Context, steps));
        }
        let primary = self.primary()?;
        let predicates = self.predicates()?;
        let mut steps = Vec::new();
        if self.sign("//") {
            steps.push(any_descendant());
            self.steps(&mut steps)?;
        } else if self.sign("/") {
            self.steps(&mut steps)?;
        }
        if predicates.is_empty() && steps.is_empty() {
            return Ok(primary);
        }
        Ok(path(Start::Filtered(Box::new(primary), predicates), steps))
    }

    /// Whether a step begins here, and not a primary expression.
    fn is_step(&self) -> bool {
        match self.peek() {
            Some(Token::Name(_) | Token::Axis(_) | Token::Sign("@" | "." | "..")) => true,
            Some(Token::Call(name)) => is_node_type(name),
            _ => false,
        }
    }

    fn steps(&mut self, steps: &mut Vec<Step>) -> Result<(), Error> {
        loop {
            steps.push(self.step()?);
            if self.sign("//") {
                steps.push(any_descendant());
            } else if !self.sign("/") {
                return Ok(());
            }
        }
    }

    fn step(&mut self) -> Result<Step, Error> {
        for (sign, axis) in [(".", Axis::Itself), ("..", Axis::Parent)] {
            if self.sign(sign) {
                return Ok(Step { axis, test: Test::Node, predicates: Vec::new(), counts: false, number: 0 });
            }
        }
        let mut axis = Axis::Child;
        if self.sign("@") {
            axis = Axis::Attribute;
        } else if let Some(Token::Axis(name)) = self.peek() {
            axis = Axis::of(name).ok_or_else(|| self.error(format!("there is no axis \"{name}\"")))?;
            self.next += 1;
        }
        let test = self.test()?;
        let predicates = self.predicates()?;
        let counts = predicates.iter().any(counts);
        Ok(Step { axis, test, predicates, counts, number: 0 })
    }

    fn test(&mut self) -> Result<Test, Error> {
        let at = self.at();
        match self.peek().cloned() {
            Some(Token::Name(name)) => {
                self.next += 1;
                Ok(match name.split_once(':') {
                    None if name == "*" => Test::AnyName,
                    None => Test::Name { prefix: Named { name: String::new(), at }, local: name },
                    Some((prefix, "*")) => Test::AnyOf(Named { name: prefix.to_owned(), at }),
                    Some((prefix, local)) => {
                        Test::Name { prefix: Named { name: prefix.to_owned(), at }, local: local.to_owned() }
                    }
                })
            }
            Some(Token::Call(name)) if is_node_type(&name) => {
                self.next += 1;
                self.expect("(")?;
                let test = match &*name {
                    "node" => Test::Node,
                    "text" => Test::Text,
                    "comment" => Test::Comment,
                    _ => match self.peek().cloned() {
                        Some(Token::Literal(target)) => {
                            self.next += 1;
                            Test::Instruction(Some(target))
                        }
                        _ => Test::Instruction(None),
                    },
                };
                self.expect(")")?;
                Ok(test)
            }
            _ => Err(self.error("a step is missing: a name, *, text(), node() or the like")),
        }
    }

    fn predicates(&mut self) -> Result<Vec<Expression>, Error> {
        let mut predicates = Vec::new();
        while self.sign("[") {
            predicates.push(self.expression()?);
            self.expect("]")?;
        }
        Ok(predicates)
    }

    fn primary(&mut self) -> Result<Expression, Error> {
        let at = self.at();
        match self.peek().cloned() {
            Some(Token::Literal(text)) => {
                self.next += 1;
                Ok(Expression::Literal(text))
            }
            Some(Token::Number(number)) => {
                self.next += 1;
                Ok(Expression::Number(number))
            }
            Some(Token::Variable(name)) => {
                self.next += 1;
                Ok(Expression::Variable(Named { name, at }))
            }
            Some(Token::Call(name)) => {
                let (function, least, most) = Function::of(&name)
                    .ok_or_else(|| self.error(format!("there is no function \"{name}\"")))?;
                self.next += 1;
                let arguments = self.arguments()?;
                if arguments.len() < least || arguments.len() > most {
                    let wanted = match (least, most) {
                        (least, most) if least == most => least.to_string(),
                        (least, usize::MAX) => format!("at least {least}"),
                        (least, most) => format!("{least} to {most}"),
                    };
                    let what = format!("{name}() takes {wanted} arguments, and not {}", arguments.len());
                    return Err(Error::at(self.text, at, what));
                }
                Ok(Expression::Call(Named { name, at }, function, arguments))
            }
            Some(Token::Sign("(")) => {
                self.next += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            _ => {
                Err(self.error("an operand is missing: a path, a string, a number, a variable or a function"))
            }
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, Error> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        if self.sign(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if !self.sign(",") {
                self.expect(")")?;
                return Ok(arguments);
            }
        }
    }
}

fn is_node_type(name: &str) -> bool {
    matches!(name, "node" | "text" | "comment" | "processing-instruction")
}

/// The only term, or all of them together.
fn single(mut terms: Vec<Expression>, many: impl Fn(Vec<Expression>) -> Expression) -> Expression {
    match terms.pop() {
        Some(only) if terms.is_empty() => only,
        last => {
            terms.extend(last);
            many(terms)
        }
    }
}

/// The step that `//` stands for.
fn any_descendant() -> Step {
    let axis = Axis::DescendantOrSelf;
    Step { axis, test: Test::Node, predicates: Vec::new(), counts: false, number: 0 }
}

/// A path, in which `//name` and `//@name` are one step instead of two.
fn path(start: Start, steps: Vec<Step>) -> Expression {
    let mut short: Vec<Step> = Vec::with_capacity(steps.len());
    for mut step in steps {
        let joined = match (step.axis, step.counts) {
            (Axis::Child, false) => Some(Axis::Descendant),
            (Axis::Child, true) => Some(Axis::ChildOfAny),
            (Axis::Attribute, false) => Some(Axis::AttributeOfAny),
            _ => None,
        };
        if let Some(axis) = joined.filter(|_| short.last() == Some(&any_descendant())) {
            short.pop();
            step.axis = axis;
        }
        short.push(step);
    }
    Expression::Path(start, short)
}

/// Numbers the steps of an expression, those of predicates and arguments included.
fn number(expression: &mut Expression, next: &mut usize) {
    match expression {
        Expression::Or(inner)
        | Expression::And(inner)
        | Expression::Union(inner)
        | Expression::Call(_, _, inner) => inner.iter_mut().for_each(|inner| number(inner, next)),
        Expression::Compare(_, left, right) | Expression::Arithmetic(_, left, right) => {
            number(left, next);
            number(right, next);
        }
        Expression::Negate(inner) => number(inner, next),
        Expression::Path(start, steps) => {
            if let Start::Filtered(inner, predicates) = start {
                number(inner, next);
                predicates.iter_mut().for_each(|inner| number(inner, next));
            }
            for step in steps {
                step.number = *next;
                *next += 1;
                step.predicates.iter_mut().for_each(|inner| number(inner, next));
            }
        }
        Expression::Literal(_) | Expression::Number(_) | Expression::Variable(_) => {}
    }
}

/// Whether a predicate may depend on positions: it may be a number, or asks for one.
fn counts(predicate: &Expression) -> bool {
    is_number(predicate) || asks_for_position(predicate)
}

fn is_number(expression: &Expression) -> bool {
    match expression {
        Expression::Number(_)
        | Expression::Arithmetic(..)
        | Expression::Negate(_)
        | Expression::Variable(_) => true,
        Expression::Call(_, function, _) => matches!(
            function,
            Function::Last
                | Function::Position
                | Function::Count
                | Function::StringLength
                | Function::Number
                | Function::Sum
                | Function::Floor
                | Function::Ceiling
                | Function::Round
        ),
        _ => false,
    }
}

/// Whether an expression uses the position or the number of the nodes that it is a predicate of. Predicates inside it have others.
fn asks_for_position(expression: &Expression) -> bool {
    match expression {
        Expression::Or(terms) | Expression::And(terms) | Expression::Union(terms) => {
            terms.iter().any(asks_for_position)
        }
        Expression::Compare(_, a, b) | Expression::Arithmetic(_, a, b) => {
            asks_for_position(a) || asks_for_position(b)
        }
        Expression::Negate(a) => asks_for_position(a),
        Expression::Path(Start::Filtered(a, _), _) => asks_for_position(a),
        Expression::Call(_, function, arguments) => {
            matches!(function, Function::Last | Function::Position) || arguments.iter().any(asks_for_position)
        }
        Expression::Path(..) | Expression::Literal(_) | Expression::Number(_) | Expression::Variable(_) => {
            false
        }
    }
}
