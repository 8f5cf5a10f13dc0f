//! Values of `autocomplete` (HTML, section "Autofill").

/// What a field may hold.
const FIELDS: &str = "name honorific-prefix given-name additional-name family-name honorific-suffix nickname username new-password current-password one-time-code organization-title organization street-address address-line1 address-line2 address-line3 address-level4 address-level3 address-level2 address-level1 country country-name postal-code cc-name cc-given-name cc-additional-name cc-family-name cc-number cc-exp cc-exp-month cc-exp-year cc-csc cc-type transaction-currency transaction-amount language bday bday-day bday-month bday-year sex url photo";
/// What may belong to a home, to work, or to one device.
const CONTACTS: &str = "tel tel-country-code tel-national tel-area-code tel-local tel-local-prefix tel-local-suffix tel-extension email impp";
/// Words in place of on and off: no standard has them, and what they mean is clear (axe-core leaves them out, too).
const SWITCHES: &str = "on off none false true disabled enabled undefined null xoff xon";

/// Whether browsers understand a value, or it is meant to switch them off.
pub(super) fn is_valid(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let is_in = |list: &str, word: &str| list.split(' ').any(|known| known == word);
    let mut words: Vec<&str> = value.split_ascii_whitespace().collect();
    if words.is_empty() || (words.len() == 1 && is_in(SWITCHES, words[0])) {
        return true;
    }
    if words.last() == Some(&"webauthn") {
        words.pop();
    }
    let Some(field) = words.pop() else { return true };
    let is_place = words.last().is_some_and(|word| is_in("home work mobile fax pager", word));
    if is_place {
        words.pop();
    }
    if words.last().is_some_and(|word| matches!(*word, "shipping" | "billing")) {
        words.pop();
    }
    if words.last().is_some_and(|word| word.starts_with("section-")) {
        words.pop();
    }
    words.is_empty() && (is_in(CONTACTS, field) || (!is_place && is_in(FIELDS, field)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_judged_by_their_order_and_words() {
        for value in [
            "",
            "on",
            "OFF",
            "email",
            "work email",
            "section-a shipping street-address",
            "billing home tel",
            "username webauthn",
            "false",
        ] {
            assert!(is_valid(value), "{value}");
        }
        for value in
            ["e-mail", "email work", "home street-address", "shipping section-a name", "phone", "on email"]
        {
            assert!(!is_valid(value), "{value}");
        }
    }
}
