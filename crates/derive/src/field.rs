//! The code that reads one field.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Error, Field, GenericArgument, PathArguments, Result, Type};

use crate::attributes::{Fallback, FieldAttributes, ItemAttributes, Source};

/// How many values a field has, by the name of its type; with the type of one of them.
enum Shape<'a> {
    One(&'a Type),
    Optional(&'a Type),
    List(&'a Type),
    OptionalList(&'a Type),
}

impl<'a> Shape<'a> {
    fn of(ty: &'a Type) -> Self {
        if let Some(inner) = argument(ty, "Vec") {
            return Self::List(inner);
        }
        match argument(ty, "Option") {
            Some(inner) => argument(inner, "Vec").map_or(Self::Optional(inner), Self::OptionalList),
            None => Self::One(ty),
        }
    }

    fn value(&self) -> &'a Type {
        let (Self::One(ty) | Self::Optional(ty) | Self::List(ty) | Self::OptionalList(ty)) = self;
        ty
    }
}

/// The argument of a type with this name and one argument.
fn argument<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    match ty {
        // What a macro by example put in place of `$ty:ty`.
        Type::Group(group) => argument(&group.elem, name),
        Type::Path(path) if path.qself.is_none() => {
            let last = path.path.segments.last().filter(|last| last.ident == name)?;
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
            match (arguments.args.first()?, arguments.args.len()) {
                (GenericArgument::Type(ty), 1) => Some(ty),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The expression that reads a field of an item from the part `part`.
///
/// # Errors
/// The attributes are not valid, or do not fit the type.
pub(crate) fn expression(
    item: (&Ident, &ItemAttributes),
    (name, field): (&Ident, &Field),
    part: &Ident,
) -> Result<TokenStream> {
    let attributes = FieldAttributes::of(&field.attrs)?;
    let shape = Shape::of(&field.ty);
    let fallback = match &attributes.default {
        Some(Fallback::Value(value)) => Some(quote!(#value)),
        Some(Fallback::Default) => Some(quote!(::core::default::Default::default())),
        None => None,
    };
    let Some(source) = &attributes.source else {
        let fallback = fallback
            .or_else(|| attributes.skip.is_some().then(|| quote!(::core::default::Default::default())));
        return fallback.ok_or_else(|| {
            let what = format!(
                "`{name}` does not say where its value is: add #[item(css = \"...\")], #[item(xpath = \"...\")], #[item(json = \"...\")] or #[item(skip)]"
            );
            Error::new(name.span(), what)
        });
    };
    if let (Some(join), Shape::List(_) | Shape::OptionalList(_)) = (&attributes.join, &shape) {
        return Err(Error::new(
            join.span(),
            "`join` makes one value of all, and this field is a list of values",
        ));
    }
    let home = &item.1.home;
    let declared = declaration(item, name, (source, &attributes));
    if let Some(exists) = &attributes.exists {
        return match shape {
            Shape::One(_) => Ok(quote!({ #declared __FIELD.exists(#part)? })),
            _ => Err(Error::new_spanned(exists, "a field with `exists` is a bool")),
        };
    }
    let convert = match &attributes.with {
        Some(function) => quote!(#home::__item::with(#function)),
        None => {
            let ty = shape.value();
            quote!(#home::__item::value::<#ty>)
        }
    };
    let (some, none) = (quote!(::core::option::Option::Some), quote!(::core::option::Option::None));
    let (optional, list) =
        (quote!(__FIELD.optional(#part, #convert)?), quote!(__FIELD.list(#part, #convert)?));
    let optional_list = quote!(__FIELD.optional_list(#part, #convert)?);
    let read = match (shape, fallback) {
        (Shape::One(_), None) => quote!(__FIELD.one(#part, #convert)?),
        (Shape::One(_), Some(value)) => quote!(match #optional { #some(found) => found, #none => #value }),
        (Shape::Optional(_), None) => optional,
        (Shape::Optional(_), Some(value)) => quote!(match #optional { #none => #value, found => found }),
        (Shape::List(_), None) => list,
        (Shape::List(_), Some(value)) => {
            quote!(match #optional_list { #some(found) => found, #none => #value })
        }
        (Shape::OptionalList(_), None) => optional_list,
        (Shape::OptionalList(_), Some(value)) => {
            quote!(match #optional_list { #none => #value, found => found })
        }
    };
    Ok(quote!({ #declared #read }))
}

/// The static that has the selector of a field and what is made with its values.
fn declaration(
    (item, attributes): (&Ident, &ItemAttributes),
    name: &Ident,
    (source, field): (&Source, &FieldAttributes),
) -> TokenStream {
    let home = &attributes.home;
    let query = match source {
        Source::Css(css) => quote!(Css(#css)),
        Source::XPath(path) => {
            let prefixes = prefixes(attributes);
            quote!(XPath(#path, #prefixes))
        }
        Source::Json(path) => quote!(Json(#path)),
        Source::Url => quote!(Url),
    };
    let label = format!("{item}.{}", name.to_string().trim_start_matches("r#"));
    let mut made = quote!(#home::__item::Field::new(#label, #home::__item::Query::#query));
    if field.raw.is_some() {
        made.extend(quote!(.raw()));
    }
    if field.html.is_some() {
        made.extend(quote!(.html()));
    }
    if let Some(regex) = &field.regex {
        made.extend(quote!(.regex(#regex)));
    }
    if let Some(join) = &field.join {
        made.extend(quote!(.join(#join)));
    }
    quote!(static __FIELD: #home::__item::Field = #made;)
}

/// The prefixes of an item as a slice.
pub(crate) fn prefixes(attributes: &ItemAttributes) -> TokenStream {
    let pairs = attributes.prefixes.iter().map(|(prefix, uri)| quote!((#prefix, #uri)));
    quote!(&[#(#pairs),*])
}
