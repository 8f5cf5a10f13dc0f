//! Parses the output of `strace` into calls, in the order in which they ended.

use std::collections::HashMap;

/// A system call that succeeded.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    /// Number of calls that had ended when this one began.
    pub(super) began: usize,
    pub(super) result: i64,
}

impl Call {
    pub(super) fn argument(&self, at: usize) -> &str {
        self.arguments.get(at).map_or("", String::as_str)
    }

    pub(super) fn number(&self, at: usize) -> i64 {
        number(self.argument(at)).unwrap_or_else(|| panic!("argument {at} is a number: {self:?}"))
    }

    pub(super) fn text(&self, at: usize) -> String {
        String::from_utf8(bytes(self.argument(at))).expect("names of files in tests are UTF-8")
    }
}

/// The successful calls with their results; calls that failed or never returned changed nothing.
pub(super) fn calls(log: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    // Beginnings of unfinished calls by thread: a call of another thread interrupted them in the log.
    let mut begun: HashMap<&str, (&str, usize)> = HashMap::new();
    for line in log.lines() {
        let Some((thread, rest)) = line.split_once(char::is_whitespace) else { continue };
        let rest = rest.trim_start();
        if rest.starts_with("---") || rest.starts_with("+++") {
            continue;
        }
        if let Some(beginning) = rest.strip_suffix("<unfinished ...>") {
            if beginning.starts_with("close(") {
                // The descriptor may be reused for another file before the log shows the end of this call.
                calls.extend(call(&format!("{}) = 0", beginning.trim_end()), calls.len()));
            } else {
                begun.insert(thread, (beginning, calls.len()));
            }
        } else if let Some((_, end)) =
            rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"))
        {
            if let Some((beginning, began)) = begun.remove(thread) {
                calls.extend(call(&format!("{beginning}{end}"), began));
            }
        } else {
            calls.extend(call(rest, calls.len()));
        }
    }
    calls
}

fn call(line: &str, began: usize) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let result = number(result.split_whitespace().next()?)?;
    let arguments = split(arguments.trim_end().strip_suffix(')')?);
    (result >= 0).then(|| Call { name: name.to_owned(), arguments, began, result })
}

/// Splits at commas outside of brackets. Strings are in hexadecimal, so they contain no commas.
fn split(list: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in list.chars() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is a part").push(c);
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The bytes of all strings in an argument: a single one, or the parts of a vector.
pub(super) fn bytes(argument: &str) -> Vec<u8> {
    assert!(!argument.contains("\"..."), "strace cut a text off");
    let digits = argument.split('"').skip(1).step_by(2).flat_map(|text| text.split("\\x").skip(1));
    digits.map(|byte| u8::from_str_radix(byte, 16).expect("a byte in hexadecimal")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_in_the_order_of_their_ends_and_know_what_was_over_before() {
        let log = r#"
7  openat(AT_FDCWD, "\x61\x2f\x62", O_RDWR|O_CREAT, 0600) = 3
7  fsync(3 <unfinished ...>
8  pwrite64(3, "\x2c\x29", 2, 10)       = 2
9  --- SIGCHLD {si_signo=SIGCHLD} ---
7  <... fsync resumed>)                = 0
8  writev(3, [{iov_base="\x61", iov_len=1}, {iov_base="\x62\x63", iov_len=2}], 2) = 3
8  unlink("\x61")                      = -1 ENOENT (No such file or directory)
8  close(3 <unfinished ...>
7  openat(AT_FDCWD, "\x61", O_RDONLY)  = 3
8  <... close resumed>)                = 0
8  read(0x3, 0x7ff, 0x40)              = 0x10
7  exit_group(0)                       = ?
"#;
        let calls = calls(log.trim());
        let names: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.began)).collect();
        assert_eq!(
            names,
            [
                ("openat", 0),
                ("pwrite64", 1),
                ("fsync", 1),
                ("writev", 3),
                ("close", 4),
                ("openat", 5),
                ("read", 6)
            ]
        );
        assert_eq!((calls[0].text(1), calls[1].number(3)), ("a/b".to_owned(), 10));
        assert_eq!(
            (bytes(calls[1].argument(1)), bytes(calls[3].argument(1))),
            (b",)".to_vec(), b"abc".to_vec())
        );
        assert_eq!((calls[6].number(0), calls[6].result), (3, 16));
    }
}
