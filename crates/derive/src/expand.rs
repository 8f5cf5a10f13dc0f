//! The code that a derive makes.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Result};

use crate::attributes::ItemAttributes;
use crate::field::{expression, prefixes};

/// The implementation of `Item` for a struct.
///
/// # Errors
/// It is no struct with named fields, or attributes are not valid. All bad fields are named.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let attributes = ItemAttributes::of(&input.attrs)?;
    let fields = named_fields(input)?;
    let part = Ident::new("part", Span::mixed_site());
    let (mut made, mut bad) = (Vec::new(), None::<Error>);
    for field in &fields {
        let name = field.ident.as_ref().expect("the fields of such a struct have names");
        match expression((&input.ident, &attributes), (name, field), &part) {
            Ok(read) => made.push(quote!(#name: #read)),
            Err(error) => match &mut bad {
                Some(all) => all.combine(error),
                None => bad = Some(error),
            },
        }
    }
    if let Some(bad) = bad {
        return Err(bad);
    }
    let (home, name) = (&attributes.home, &input.ident);
    let prefixes = (!attributes.prefixes.is_empty()).then(|| {
        let prefixes = prefixes(&attributes);
        quote! {
            fn prefixes() -> &'static [(&'static str, &'static str)] {
                #prefixes
            }
        }
    });
    Ok(quote! {
        #[automatically_derived]
        impl #home::Item for #name {
            fn from_part(
                #part: &#home::PagePart<'_>,
            ) -> ::core::result::Result<Self, #home::Error> {
                ::core::result::Result::Ok(Self { #(#made),* })
            }

            #prefixes
        }
    })
}

/// An implementation that is never run, for a struct whose attributes are not valid.
pub(crate) fn stub(input: &DeriveInput) -> TokenStream {
    let (Ok(_), Ok(attributes)) = (named_fields(input), ItemAttributes::of(&input.attrs)) else {
        return TokenStream::new();
    };
    let (home, name) = (&attributes.home, &input.ident);
    quote! {
        #[automatically_derived]
        impl #home::Item for #name {
            fn from_part(_: &#home::PagePart<'_>) -> ::core::result::Result<Self, #home::Error> {
                ::core::unreachable!("the item does not compile")
            }
        }
    }
}

fn named_fields(input: &DeriveInput) -> Result<Vec<Field>> {
    let Data::Struct(data) = &input.data else {
        let what = "an item is a struct; what has several forms is read by a function, `#[item(.., with = function)]`";
        return Err(Error::new(input.ident.span(), what));
    };
    if !input.generics.params.is_empty() {
        let what = "an item has no generics: its values are read from a page, and it owns them";
        return Err(Error::new(input.generics.params.span(), what));
    }
    match &data.fields {
        Fields::Named(fields) if !fields.named.is_empty() => Ok(fields.named.iter().cloned().collect()),
        Fields::Named(_) | Fields::Unit => {
            Err(Error::new(input.ident.span(), "an item needs fields: there is nothing to read"))
        }
        Fields::Unnamed(fields) => {
            let what =
                "the fields of an item need names, which its errors tell: `struct Book { title: String }`";
            Err(Error::new(fields.span(), what))
        }
    }
}
