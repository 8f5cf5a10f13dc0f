//! wip

/// Put into the extensions of a response that changed the jar: with new cookies the same address may answer differently.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CookiesChanged;
