//! What the fuzz targets reach of what is private: the answers of a Redis server. For nobody else.

use super::resp;

/// The answers of a server, in words, up to the first that is none, and why that is none. `numbers` expects sets of numbers.
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
