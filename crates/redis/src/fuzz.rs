//! Access to the private reader of Redis replies for the fuzz targets. Not for any other use.

use crate::resp;

/// The replies in a stream as text, up to the first invalid one, and the kind of its error. `numbers` expects sets of numbers.
pub fn answers(stream: impl std::io::Read, numbers: bool) -> (Vec<String>, std::io::ErrorKind) {
    let shape = if numbers { resp::Shape::Numbers } else { resp::Shape::Any };
    let (mut reader, mut found) = (resp::Reader::new(stream), Vec::new());
    loop {
        match reader.reply(shape) {
            Ok(reply) => found.push(format!("{reply:?}")),
            Err(error) => return (found, error.kind()),
        }
    }
}
