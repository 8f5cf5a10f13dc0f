//! Recognises errors of writing for which the user has to make room.

use std::io;

/// Why there was no room for a write, with advice; `None` if the error is another one. There is no room if the disk is
/// full, if the quota of the user is used up, or if the file would exceed the limit on file sizes (`ulimit -f`).
///
/// ```
/// use std::io;
///
/// let error = io::Error::from(io::ErrorKind::StorageFull);
/// assert_eq!(huntsman_files::no_room(&error), Some("no room is left on the disk; make room, then go on"));
/// assert_eq!(huntsman_files::no_room(&io::Error::from(io::ErrorKind::NotFound)), None);
/// ```
pub fn no_room(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull => Some("no room is left on the disk; make room, then go on"),
        io::ErrorKind::QuotaExceeded => Some("the disk quota is used up; make room, then go on"),
        io::ErrorKind::FileTooLarge => {
            Some("the file may not grow further; raise the limit on file sizes, then go on")
        }
        _ => None,
    }
}
