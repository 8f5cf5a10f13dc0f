//! Items that do not compile; see `tests/it/diagnostics.rs`.

/// Stands for the crate `huntsman`.
pub mod stand_in {
    pub struct Error;
    pub struct PagePart<'a>(pub &'a str);
    pub trait Item: Sized {
        fn from_part(part: &PagePart<'_>) -> Result<Self, Error>;
        fn prefixes() -> &'static [(&'static str, &'static str)] {
            &[]
        }
    }
}

use huntsman_derive::Item;

#[derive(Item)]
#[item(crate = stand_in)]
pub struct Selectors {
    #[item(css = "p::foo")] //~ "p::foo" => CSS selector "p::foo", character 2: there is no pseudo-element ::foo
    pub a: String,
    #[item(css = "div > ")] //~ "div => character 7: no selector follows the last combinator
    pub b: String,
    #[item(css = "")] //~ "" => character 1: a selector is missing
    pub c: String,
    #[item(xpath = "//a[")] //~ "//a[" => XPath "//a[", character 5: an operand is missing
    pub d: String,
    #[item(xpath = "foo(.)")] //~ "foo => character 1: there is no function "foo"
    pub e: String,
    #[item(xpath = "//a[. = $name]")] //~ "//a[ => character 9: the variable $name is not given
    pub f: String,
    #[item(json = "$.a[")] //~ "$.a[" => JSONPath "$.a["
    pub j: String,
    #[item(json = "name")] //~ "name" => a path begins with $
    pub k: String,
    #[item(json = "$.a", html)] //~ html => a value of JSON has no markup
    pub l: String,
    #[item(css = "p", re = r"(\d+")] //~ r"( => unclosed group
    pub g: String,
    #[item(css = "p", re = r"(?=x)")] //~ r"( => look-around
    pub h: String,
}

#[derive(Item)]
#[item(crate = stand_in)]
pub struct Keys {
    #[item(csss = "p")] //~ csss => there is no key `csss`; the keys of a field are css, xpath
    pub a: String,
    #[item(css = "p", css = "b")] //~ css = "b" => a field has one selector
    pub b: String,
    #[item(css = "p", xpath = "//b")] //~ xpath => a field has one selector
    pub c: String,
    #[item(css = "p", re = "a", re = "b")] //~ re = "b" => `re` is given twice
    pub d: String,
    #[item(css = "p", raw = true)] //~ raw => `raw` has no value
    pub e: String,
    #[item(css = "p", raw, html)] //~ raw => `html` keeps white space already
    pub f: String,
    #[item(css)] //~ css => `css` needs a text: css = "..."
    pub g: String,
    #[item(css = SELECTOR)] //~ SELECTOR => expected string literal
    pub h: String,
    #[item(css = "p", skip)] //~ skip => `skip` stands alone
    pub i: String,
    #[item(css = "p", exists, join = "")] //~ exists => beside `exists` there are only a selector and `re`
    pub j: bool,
    #[item(css = "p", exists)] //~ exists => a field with `exists` is a bool
    pub k: Option<bool>,
    #[item(css = "p", join = ", ")] //~ ", " => `join` makes one value of all
    pub l: Vec<String>,
    #[item(re = "x")] //~ "x" => a selector is missing
    pub m: String,
    #[item(with = str::parse)] //~ str::parse => a selector is missing
    pub n: u8,
    pub o: String, //~ o: => `o` does not say where its value is: add #[item(css = "...")]
    #[item(css = "p", with = )] //~ ) => expected an expression
    pub p: String,
}

#[derive(Item)]
pub struct Tuple(String); //~ (String) => the fields of an item need names

#[derive(Item)]
pub struct Nothing; //~ Nothing => an item needs fields

#[derive(Item)]
pub enum Kinds { //~ Kinds => an item is a struct
    One,
}

#[derive(Item)]
pub struct Generic<T> { //~ T> => an item has no generics
    pub a: T,
}

#[derive(Item)]
#[item(crate = stand_in, name = "x")] //~ name => an item has the keys crate and prefix
pub struct Unknown {
    #[item(skip)]
    pub a: String,
}

#[derive(Item)]
#[item(crate = stand_in, prefix(a = "urn:a", a = "urn:b"))] //~ a = "urn:b" => the prefix `a` is given twice
pub struct Prefixes {
    #[item(skip)]
    pub a: String,
}

#[derive(Item)]
#[item(crate = stand_in)]
pub struct Fine {
    #[item(skip)]
    pub a: String,
    #[item(default = 3)]
    pub b: u8,
}

/// An item that does not compile gives no further errors where it is used.
pub fn read(part: &stand_in::PagePart<'_>) -> Result<(Keys, Fine), stand_in::Error> {
    use stand_in::Item;
    Ok((Keys::from_part(part)?, Fine::from_part(part)?))
}
