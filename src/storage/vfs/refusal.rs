//! What the system says when it lets nobody write.

use std::io::{Error, ErrorKind};

/// Whether there is no room: the disk is full, or a quota or the limit of a file's size is reached.
pub fn is_full(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}

/// Whether writing is refused while reading may be allowed.
pub fn refuses_writes(error: &Error) -> bool {
    let denied =
        matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem);
    denied || is_full(error)
}
