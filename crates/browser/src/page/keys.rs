//! Keys by their names.

use serde_json::{Value, json};

/// Names, codes and texts of keys that have no character of their own.
const NAMED: &[(&str, u32, &str)] = &[
    ("ArrowDown", 40, ""),
    ("ArrowLeft", 37, ""),
    ("ArrowRight", 39, ""),
    ("ArrowUp", 38, ""),
    ("Backspace", 8, ""),
    ("Delete", 46, ""),
    ("End", 35, ""),
    ("Enter", 13, "\r"),
    ("Escape", 27, ""),
    ("Home", 36, ""),
    ("PageDown", 34, ""),
    ("PageUp", 33, ""),
    ("Space", 32, " "),
    ("Tab", 9, ""),
];

/// The events of a key that is pressed and let go; `None` if no key has this name.
pub(super) fn events(name: &str) -> Option<[Value; 2]> {
    let (key, code, text) = match NAMED.iter().find(|(named, _, _)| *named == name) {
        Some((_, code, text)) => (if name == "Space" { " " } else { name }, *code, *text),
        None => {
            let mut characters = name.chars();
            let (Some(character), None) = (characters.next(), characters.next()) else { return None };
            (name, u32::from(character.to_ascii_uppercase()), name)
        }
    };
    let event = |kind: &str, text: &str| {
        json!({
            "type": kind,
            "key": key,
            "code": if text.len() == 1 && text != "\r" { "" } else { name },
            "text": text,
            "windowsVirtualKeyCode": code,
            "nativeVirtualKeyCode": code,
        })
    };
    Some([event(if text.is_empty() { "rawKeyDown" } else { "keyDown" }, text), event("keyUp", "")])
}
