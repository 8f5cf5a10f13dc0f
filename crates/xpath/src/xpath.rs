//! Compiled expressions as callers have them.

use crate::error::Error;
use crate::expression::{Expression, Named, Start};
use crate::parser;

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct XPath {
    pub(crate) text: String,
    pub(crate) expression: Expression,
    /// The number of steps of all its paths.
    pub(crate) steps: usize,
}

impl XPath {
    /// Compiles an expression.
    ///
    /// # Errors
    /// It is no XPath 1.0, names a function that does not exist, or is nested more than 64 deep. The message gives the place.
    pub fn new(expression: &str) -> Result<Self, Error> {
        let (parsed, steps) = parser::parse(expression)?;
        Ok(Self { text: expression.to_owned(), expression: parsed, steps })
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Checks that the expression has no variables, for places that cannot give any.
    ///
    /// # Errors
    /// It has one; the message gives the first.
    pub fn without_variables(&self) -> Result<(), Error> {
        match first_variable(&self.expression) {
            Some(Named { name, at }) => {
                Err(Error::at(&self.text, *at, format!("the variable ${name} is not given")))
            }
            None => Ok(()),
        }
    }
}

/// The first variable of an expression. Expressions are nested at most as deep as the parser lets them.
fn first_variable(expression: &Expression) -> Option<&Named> {
    match expression {
        Expression::Or(terms) | Expression::And(terms) | Expression::Union(terms) => any_variable(terms),
        Expression::Compare(_, left, right) | Expression::Arithmetic(_, left, right) => {
            first_variable(left).or_else(|| first_variable(right))
        }
        Expression::Negate(inner) => first_variable(inner),
        Expression::Path(start, steps) => {
            let filtered = match start {
                Start::Filtered(inner, predicates) => {
                    first_variable(inner).or_else(|| any_variable(predicates))
                }
                Start::Root | Start::Context => None,
            };
            filtered.or_else(|| steps.iter().find_map(|step| any_variable(&step.predicates)))
        }
        Expression::Literal(_) | Expression::Number(_) => None,
        Expression::Variable(named) => Some(named),
        Expression::Call(_, _, arguments) => any_variable(arguments),
    }
}

fn any_variable(expressions: &[Expression]) -> Option<&Named> {
    expressions.iter().find_map(first_variable)
}
