//! Which paths lie on a network file system, where locks and maps may not work.

use std::io;
use std::path::Path;

/// Network file systems by their magic numbers in `statfs(2)` and the kernel's `magic.h`.
#[cfg(target_os = "linux")]
const REMOTE_KINDS: [(u32, &str); 17] = [
    (0x0000_6969, "nfs"),
    (0x0000_517B, "smb"),
    (0xFF53_4D42, "cifs"),
    (0xFE53_4D42, "smb2"),
    (0x5346_414F, "afs"),
    (0x6B41_4653, "kafs"),
    (0x7375_7245, "coda"),
    (0x0000_564C, "ncp"),
    (0x00C3_6400, "ceph"),
    (0x0102_1997, "9p"),
    (0x0BD0_0BD0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x7461_636F, "ocfs2"),
    (0x0116_1970, "gfs2"),
    (0x2003_0528, "orangefs"),
    (0x1983_0326, "beegfs"),
    (0x786F_4256, "vboxsf"),
];

#[cfg(target_os = "linux")]
pub(super) fn remote_kind(path: &Path) -> io::Result<Option<&'static str>> {
    let found = rustix::fs::statfs(path)?.f_type as u32;
    Ok(REMOTE_KINDS.iter().find(|(magic, _)| *magic == found).map(|(_, name)| *name))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn remote_kind(path: &Path) -> io::Result<Option<&'static str>> {
    std::fs::metadata(path).map(|_| None)
}
