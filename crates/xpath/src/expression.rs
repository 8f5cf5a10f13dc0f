//! Compiled expressions.

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Or(Vec<Expression>),
    And(Vec<Expression>),
    Compare(Comparison, Box<Expression>, Box<Expression>),
    Arithmetic(Operator, Box<Expression>, Box<Expression>),
    Negate(Box<Expression>),
    Union(Vec<Expression>),
    Path(Start, Vec<Step>),
    Literal(String),
    Number(f64),
    Variable(Named),
    Call(Named, Function, Vec<Expression>),
}

/// A name in an expression, and the byte where it stands, for errors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// Where a path begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Start {
    Root,
    Context,
    /// At the nodes of an expression that all predicates hold for.
    Filtered(Box<Expression>, Vec<Expression>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) axis: Axis,
    pub(crate) test: Test,
    pub(crate) predicates: Vec<Expression>,
    /// Whether a predicate may depend on positions.
    pub(crate) counts: bool,
    /// Its number among the steps of the whole expression.
    pub(crate) number: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Following,
    FollowingSibling,
    Namespace,
    Parent,
    Preceding,
    PrecedingSibling,
    Itself,
    /// `//name[1]`: the children of a node and of its descendants, with positions among those of one parent.
    ChildOfAny,
    /// `//@name`: the attributes of a node and of its descendants.
    AttributeOfAny,
}

impl Axis {
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "ancestor" => Self::Ancestor,
            "ancestor-or-self" => Self::AncestorOrSelf,
            "attribute" => Self::Attribute,
            "child" => Self::Child,
            "descendant" => Self::Descendant,
            "descendant-or-self" => Self::DescendantOrSelf,
            "following" => Self::Following,
            "following-sibling" => Self::FollowingSibling,
            "namespace" => Self::Namespace,
            "parent" => Self::Parent,
            "preceding" => Self::Preceding,
            "preceding-sibling" => Self::PrecedingSibling,
            "self" => Self::Itself,
            _ => return None,
        })
    }

    /// Whether positions count against the document order.
    pub(crate) fn is_reverse(self) -> bool {
        matches!(self, Self::Ancestor | Self::AncestorOrSelf | Self::Preceding | Self::PrecedingSibling)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    /// `*`
    AnyName,
    /// `prefix:*`
    AnyOf(Named),
    /// A name; the prefix is empty if there is none.
    Name {
        prefix: Named,
        local: String,
    },
    Node,
    Text,
    Comment,
    Instruction(Option<String>),
}

/// A function; the parser checks the number of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Last,
    Position,
    Count,
    Id,
    LocalName,
    NamespaceUri,
    Name,
    String,
    Concat,
    StartsWith,
    Contains,
    SubstringBefore,
    SubstringAfter,
    Substring,
    StringLength,
    NormalizeSpace,
    Translate,
    Boolean,
    Not,
    True,
    False,
    Lang,
    Number,
    Sum,
    Floor,
    Ceiling,
    Round,
    HasClass,
    Test,
    Replace,
    Difference,
    Intersection,
    Distinct,
    HasSameNode,
}

impl Function {
    /// The function with a name, and the least and the greatest number of its arguments.
    pub(crate) fn of(name: &str) -> Option<(Self, usize, usize)> {
        const MANY: usize = usize::MAX;
        if let Some((_, local)) = name.split_once(':') {
            // Which namespace the prefix means is known when the expression is evaluated.
            return Some(match local {
                "test" => (Self::Test, 2, 3),
                "replace" => (Self::Replace, 4, 4),
                "difference" => (Self::Difference, 2, 2),
                "intersection" => (Self::Intersection, 2, 2),
                "distinct" => (Self::Distinct, 1, 1),
                "has-same-node" => (Self::HasSameNode, 2, 2),
                _ => return None,
            });
        }
        Some(match name {
            "last" => (Self::Last, 0, 0),
            "position" => (Self::Position, 0, 0),
            "count" => (Self::Count, 1, 1),
            "id" => (Self::Id, 1, 1),
            "local-name" => (Self::LocalName, 0, 1),
            "namespace-uri" => (Self::NamespaceUri, 0, 1),
            "name" => (Self::Name, 0, 1),
            "string" => (Self::String, 0, 1),
            "concat" => (Self::Concat, 2, MANY),
            "starts-with" => (Self::StartsWith, 2, 2),
            "contains" => (Self::Contains, 2, 2),
            "substring-before" => (Self::SubstringBefore, 2, 2),
            "substring-after" => (Self::SubstringAfter, 2, 2),
            "substring" => (Self::Substring, 2, 3),
            "string-length" => (Self::StringLength, 0, 1),
            "normalize-space" => (Self::NormalizeSpace, 0, 1),
            "translate" => (Self::Translate, 3, 3),
            "boolean" => (Self::Boolean, 1, 1),
            "not" => (Self::Not, 1, 1),
            "true" => (Self::True, 0, 0),
            "false" => (Self::False, 0, 0),
            "lang" => (Self::Lang, 1, 1),
            "number" => (Self::Number, 0, 1),
            "sum" => (Self::Sum, 1, 1),
            "floor" => (Self::Floor, 1, 1),
            "ceiling" => (Self::Ceiling, 1, 1),
            "round" => (Self::Round, 1, 1),
            "has-class" => (Self::HasClass, 1, MANY),
            _ => return None,
        })
    }
}
