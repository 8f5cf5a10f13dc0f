//! The attribute `#[item(..)]` of structs and of fields.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Expr, LitStr, Path, Result, Token, parse_quote};

use crate::check;

/// The keys of a field, for messages.
const KEYS: &str = "css, xpath, json, url, re, join, with, default, exists, html, raw and skip";

/// What the attributes of a struct say.
pub(crate) struct ItemAttributes {
    /// The crate that has the trait.
    pub(crate) home: Path,
    /// Prefixes of namespaces.
    pub(crate) prefixes: Vec<(String, LitStr)>,
}

/// What the attributes of a field say.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub(crate) source: Option<Source>,
    pub(crate) regex: Option<LitStr>,
    pub(crate) join: Option<LitStr>,
    pub(crate) with: Option<Expr>,
    pub(crate) default: Option<Fallback>,
    /// The flags, each with the path that it was written as, for errors.
    pub(crate) exists: Option<Path>,
    pub(crate) html: Option<Path>,
    pub(crate) raw: Option<Path>,
    pub(crate) skip: Option<Path>,
}

/// Where the values of a field are.
pub(crate) enum Source {
    Css(LitStr),
    XPath(LitStr),
    Json(LitStr),
    Url,
}

/// The value of a field for which nothing was found.
pub(crate) enum Fallback {
    /// That of the type.
    Default,
    Value(Box<Expr>),
}

impl Default for ItemAttributes {
    fn default() -> Self {
        Self { home: parse_quote!(::huntsman), prefixes: Vec::new() }
    }
}

impl ItemAttributes {
    /// # Errors
    /// A key is unknown, or a value has another form.
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let (mut item, mut home) = (Self::default(), None);
        each(attributes, |meta| match key(&meta).as_str() {
            "crate" => once(&mut home, &meta, |meta| meta.value()?.parse()),
            "prefix" => meta.parse_nested_meta(|meta| {
                let prefix = key(&meta);
                if item.prefixes.iter().any(|(known, _)| *known == prefix) {
                    return Err(meta.error(format!("the prefix `{prefix}` is given twice")));
                }
                item.prefixes.push((prefix, text(&meta)?));
                Ok(())
            }),
            _ => {
                Err(meta
                    .error("an item has the keys crate and prefix; those of its values stand at the fields"))
            }
        })?;
        item.home = home.unwrap_or(item.home);
        Ok(item)
    }
}

impl FieldAttributes {
    /// # Errors
    /// A key is unknown or given twice, or a value is not valid.
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut field = Self::default();
        each(attributes, |meta| match key(&meta).as_str() {
            "css" => field.source(&meta, |meta| Ok(Source::Css(checked(meta, check::css)?))),
            "xpath" => field.source(&meta, |meta| Ok(Source::XPath(checked(meta, check::xpath)?))),
            "json" => field.source(&meta, |meta| Ok(Source::Json(checked(meta, check::json)?))),
            "url" => field.source(&meta, |_| Ok(Source::Url)),
            "re" => once(&mut field.regex, &meta, |meta| checked(meta, check::regex)),
            "join" => once(&mut field.join, &meta, text),
            "with" => once(&mut field.with, &meta, |meta| meta.value()?.parse()),
            "default" => once(&mut field.default, &meta, |meta| match meta.input.peek(Token![=]) {
                true => Ok(Fallback::Value(meta.value()?.parse()?)),
                false => Ok(Fallback::Default),
            }),
            "exists" => once(&mut field.exists, &meta, flag),
            "html" => once(&mut field.html, &meta, flag),
            "raw" => once(&mut field.raw, &meta, flag),
            "skip" => once(&mut field.skip, &meta, flag),
            other => Err(meta.error(format!("there is no key `{other}`; the keys of a field are {KEYS}"))),
        })?;
        field.agrees()?;
        Ok(field)
    }

    fn source(
        &mut self,
        meta: &ParseNestedMeta<'_>,
        read: impl FnOnce(&ParseNestedMeta<'_>) -> Result<Source>,
    ) -> Result<()> {
        if self.source.is_some() {
            return Err(meta.error("a field has one selector: css, xpath, json or url"));
        }
        self.source = Some(read(meta)?);
        Ok(())
    }

    /// Checks that the keys can stand together.
    fn agrees(&self) -> Result<()> {
        let Self { source, regex, join, with, default, exists, html, raw, skip } = self;
        let converts = regex.is_some() || join.is_some() || with.is_some();
        let shapes = html.is_some() || raw.is_some();
        if let Some(skip) = skip
            && (source.is_some() || converts || shapes || default.is_some() || exists.is_some())
        {
            return Err(Error::new_spanned(skip, "`skip` stands alone; `default = ..` gives another value"));
        }
        if let Some(exists) = exists
            && (join.is_some() || with.is_some() || shapes || default.is_some())
        {
            return Err(Error::new_spanned(exists, "beside `exists` there are only a selector and `re`"));
        }
        if let (Some(_), Some(raw)) = (html, raw) {
            return Err(Error::new_spanned(raw, "`html` keeps white space already"));
        }
        if let (Some(Source::Json(_)), Some(html)) = (source, html) {
            return Err(Error::new_spanned(html, "a value of JSON has no markup"));
        }
        match source {
            None if converts || shapes || exists.is_some() => {
                let at = [exists, html, raw].into_iter().flatten().next();
                let what = "a selector is missing: css, xpath, json or url";
                Err(match (at, regex.as_ref().or(join.as_ref()), with) {
                    (Some(at), ..) => Error::new_spanned(at, what),
                    (None, Some(text), _) => Error::new(text.span(), what),
                    (None, None, with) => Error::new_spanned(with, what),
                })
            }
            _ => Ok(()),
        }
    }
}

/// Calls a function for each key of the attributes `#[item(..)]`.
fn each(attributes: &[Attribute], mut read: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    let ours = attributes.iter().filter(|attribute| attribute.path().is_ident("item"));
    ours.into_iter().try_for_each(|attribute| attribute.parse_nested_meta(&mut read))
}

fn key(meta: &ParseNestedMeta<'_>) -> String {
    let segments = meta.path.segments.iter().map(|segment| segment.ident.to_string());
    segments.collect::<Vec<_>>().join("::")
}

fn once<T>(
    slot: &mut Option<T>,
    meta: &ParseNestedMeta<'_>,
    read: impl FnOnce(&ParseNestedMeta<'_>) -> Result<T>,
) -> Result<()> {
    if slot.is_some() {
        return Err(meta.error(format!("`{}` is given twice", key(meta))));
    }
    *slot = Some(read(meta)?);
    Ok(())
}

fn flag(meta: &ParseNestedMeta<'_>) -> Result<Path> {
    match meta.input.peek(Token![=]) {
        true => Err(meta.error(format!("`{}` has no value", key(meta)))),
        false => Ok(meta.path.clone()),
    }
}

fn text(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    if !meta.input.peek(Token![=]) {
        return Err(meta.error(format!("`{0}` needs a text: {0} = \"...\"", key(meta))));
    }
    meta.value()?.parse()
}

fn checked(meta: &ParseNestedMeta<'_>, check: fn(&LitStr) -> Result<()>) -> Result<LitStr> {
    let text = text(meta)?;
    check(&text)?;
    Ok(text)
}
