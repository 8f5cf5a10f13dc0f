//! Tokens of expressions (section 3.7 of the recommendation).

use crate::error::Error;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A punctuation mark or an operator of signs.
    Sign(&'static str),
    /// `and`, `or`, `div`, `mod`, or `*` as an operator.
    Operator(&'static str),
    Literal(String),
    Number(f64),
    /// `$name`
    Variable(String),
    /// A name with its prefix, `prefix:*` or `*`.
    Name(String),
    /// The name of a function or a node type: it stands before a parenthesis.
    Call(String),
    /// The name of an axis: it stands before `::`, which is part of the token.
    Axis(String),
}

/// The signs, longer ones first.
const SIGNS: [&str; 19] =
    ["..", "//", "!=", "<=", ">=", "(", ")", "[", "]", ".", "@", ",", "/", "|", "+", "-", "=", "<", ">"];

/// White space of XML.
pub(crate) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// The tokens of an expression, each with the byte where it begins.
pub(crate) fn tokens(expression: &str) -> Result<Vec<(Token, usize)>, Error> {
    let mut tokens: Vec<(Token, usize)> = Vec::new();
    let mut at = 0;
    loop {
        at += expression[at..].len() - expression[at..].trim_start_matches(is_space).len();
        let rest = &expression[at..];
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        // After an operand, `*` and the names of operators are operators.
        let after_operand = tokens.last().is_some_and(|(token, _)| match token {
            Token::Sign(sign) => matches!(*sign, ")" | "]" | "." | ".."),
            Token::Literal(_) | Token::Number(_) | Token::Variable(_) | Token::Name(_) => true,
            Token::Operator(_) | Token::Call(_) | Token::Axis(_) => false,
        });
        let (token, length) = match first {
            '"' | '\'' => {
                let end = rest[1..]
                    .find(first)
                    .ok_or_else(|| Error::at(expression, at, "the string does not end"))?;
                (Token::Literal(rest[1..=end].to_owned()), end + 2)
            }
            '0'..='9' => number(rest),
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => number(rest),
            '$' => {
                let length = name_length(&rest[1..]);
                if length == 0 {
                    return Err(Error::at(expression, at, "a variable needs a name after $"));
                }
                (Token::Variable(rest[1..=length].to_owned()), length + 1)
            }
            '*' if after_operand => (Token::Operator("*"), 1),
            '*' => (Token::Name("*".to_owned()), 1),
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (Token::Sign(sign), sign.len()),
                None => named(expression, at, after_operand)?,
            },
        };
        tokens.push((token, at));
        at += length;
    }
}

fn number(rest: &str) -> (Token, usize) {
    let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
    let length = match rest[whole..].strip_prefix('.') {
        Some(fraction) => whole + 1 + fraction.bytes().take_while(u8::is_ascii_digit).count(),
        None => whole,
    };
    (Token::Number(rest[..length].parse().unwrap_or(f64::NAN)), length)
}

fn named(expression: &str, at: usize, after_operand: bool) -> Result<(Token, usize), Error> {
    let rest = &expression[at..];
    let length = name_length(rest);
    if length == 0 {
        let sign = rest.chars().next().unwrap_or_default();
        return Err(Error::at(expression, at, format!("\"{}\" means nothing here", sign.escape_debug())));
    }
    let name = &rest[..length];
    if after_operand {
        let operator = ["and", "or", "div", "mod"].into_iter().find(|operator| *operator == name);
        let error = || Error::at(expression, at, format!("an operator is needed here, and not \"{name}\""));
        return Ok((Token::Operator(operator.ok_or_else(error)?), length));
    }
    if rest[length..].starts_with(":*") {
        return Ok((Token::Name(format!("{name}:*")), length + 2));
    }
    let after = rest[length..].trim_start_matches(is_space);
    if let Some(after) = after.strip_prefix("::") {
        return Ok((Token::Axis(name.to_owned()), rest.len() - after.len()));
    }
    let token = if after.starts_with('(') { Token::Call } else { Token::Name };
    Ok((token(name.to_owned()), length))
}

/// The length in bytes of the name at the beginning, with a prefix or without.
fn name_length(text: &str) -> usize {
    let part = |text: &str| {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\u{b7}');
        match text.chars().next() {
            Some(first) if first.is_alphabetic() || first == '_' => {
                text.find(|c| !is_part(c)).unwrap_or(text.len())
            }
            _ => 0,
        }
    };
    let first = part(text);
    match text[first..].strip_prefix(':').map(part) {
        Some(second) if first > 0 && second > 0 => first + 1 + second,
        _ => first,
    }
}
