//! What RFC 9535 asks of a path beyond its grammar: functions that exist, with arguments of the right type (section 2.4.3).

use jsonpath_rust::parser::model::{
    Comparable, Comparison, Filter, FilterAtom, FnArg, JpQuery, Segment, Selector, Test, TestFunction,
};

/// The part of the path that is wrong, and why.
pub(crate) type Fault = (String, String);

pub(crate) fn query(query: &JpQuery) -> Result<(), Fault> {
    segments(&query.segments)
}

fn segments(segments: &[Segment]) -> Result<(), Fault> {
    segments.iter().try_for_each(segment)
}

fn segment(segment: &Segment) -> Result<(), Fault> {
    match segment {
        Segment::Descendant(inner) => self::segment(inner),
        Segment::Selector(selector) => self::selector(selector),
        Segment::Selectors(selectors) => selectors.iter().try_for_each(selector),
    }
}

fn selector(selector: &Selector) -> Result<(), Fault> {
    match selector {
        Selector::Filter(filter) => self::filter(filter),
        _ => Ok(()),
    }
}

fn filter(filter: &Filter) -> Result<(), Fault> {
    match filter {
        Filter::Or(parts) | Filter::And(parts) => parts.iter().try_for_each(self::filter),
        Filter::Atom(FilterAtom::Filter { expr, .. }) => self::filter(expr),
        Filter::Atom(FilterAtom::Test { expr, .. }) => match &**expr {
            Test::RelQuery(inner) => segments(inner),
            Test::AbsQuery(inner) => query(inner),
            Test::Function(called) => {
                function(called)?;
                match &**called {
                    TestFunction::Match(..) | TestFunction::Search(..) => Ok(()),
                    _ => Err((
                        format!("{}(", name(called)),
                        format!("{}() gives a value: compare it, as in {0}(@.x) > 0", name(called)),
                    )),
                }
            }
        },
        Filter::Atom(FilterAtom::Comparison(comparison)) => {
            let (Comparison::Eq(left, right)
            | Comparison::Ne(left, right)
            | Comparison::Gt(left, right)
            | Comparison::Gte(left, right)
            | Comparison::Lt(left, right)
            | Comparison::Lte(left, right)) = &**comparison;
            [left, right].into_iter().try_for_each(|side| match side {
                Comparable::Function(called) => function(called),
                Comparable::Literal(_) | Comparable::SingularQuery(_) => Ok(()),
            })
        }
    }
}

fn function(function: &TestFunction) -> Result<(), Fault> {
    let fault = |what: String| Err((format!("{}(", name(function)), what));
    match function {
        TestFunction::Length(argument) => value(argument, function),
        TestFunction::Match(text, pattern) | TestFunction::Search(text, pattern) => {
            value(text, function)?;
            value(pattern, function)
        }
        TestFunction::Count(argument) | TestFunction::Value(argument) => match argument {
            FnArg::Test(test) => match &**test {
                Test::RelQuery(inner) => segments(inner),
                Test::AbsQuery(inner) => query(inner),
                Test::Function(_) => fault(format!("{}() takes a path, such as @.*", name(function))),
            },
            FnArg::Literal(_) | FnArg::Filter(_) => {
                fault(format!("{}() takes a path, such as @.*", name(function)))
            }
        },
        TestFunction::Custom(..) => fault(format!(
            "there is no function {}(); there are length, count, value, match and search",
            name(function)
        )),
    }
}

/// An argument that has to be one value.
fn value(argument: &FnArg, of: &TestFunction) -> Result<(), Fault> {
    let is_one = match argument {
        FnArg::Literal(_) => true,
        FnArg::Filter(_) => false,
        FnArg::Test(test) => match &**test {
            Test::RelQuery(inner) => is_singular(inner),
            Test::AbsQuery(inner) => is_singular(&inner.segments),
            Test::Function(called) => {
                function(called)?;
                matches!(**called, TestFunction::Length(_) | TestFunction::Count(_) | TestFunction::Value(_))
            }
        },
    };
    let what = || format!("{}() takes a value or a path to one, such as @.name", name(of));
    if is_one { Ok(()) } else { Err((format!("{}(", name(of)), what())) }
}

/// Whether a path selects at most one value, whatever the document.
fn is_singular(segments: &[Segment]) -> bool {
    segments
        .iter()
        .all(|segment| matches!(segment, Segment::Selector(Selector::Name(_) | Selector::Index(_))))
}

fn name(function: &TestFunction) -> &str {
    match function {
        TestFunction::Length(_) => "length",
        TestFunction::Count(_) => "count",
        TestFunction::Value(_) => "value",
        TestFunction::Match(..) => "match",
        TestFunction::Search(..) => "search",
        TestFunction::Custom(name, _) => name,
    }
}
