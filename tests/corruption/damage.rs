//! Ways to damage a file, and a sweep of them over all its regions.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Once;

use super::sample::Files;

/// One damage.
#[derive(Clone, Debug)]
pub enum Damage {
    Flip {
        at: usize,
        bit: u8,
    },
    Zero(Range<usize>),
    Truncate(usize),
    /// Bytes that were never written, behind the end.
    Extend(usize),
    Remove,
}

impl Damage {
    /// The bundle with one file damaged; `None` when that changes nothing.
    pub fn apply(&self, files: &Files, file: &str) -> Option<Files> {
        let mut files = files.clone();
        let bytes = files.get_mut(file).expect("a file of the bundle");
        match self {
            Damage::Flip { at, bit } => bytes[*at] ^= 1 << bit,
            Damage::Zero(range) => {
                if bytes[range.clone()].iter().all(|byte| *byte == 0) {
                    return None;
                }
                bytes[range.clone()].fill(0);
            }
            Damage::Truncate(len) => bytes.truncate(*len),
            Damage::Extend(count) => bytes.extend((0..*count).map(|at| (at * 31) as u8 | 1)),
            Damage::Remove => {
                files.remove(file);
            }
        }
        Some(files)
    }

    /// Whether it changes or cuts bytes of `range`.
    pub fn touches(&self, range: Range<usize>) -> bool {
        match self {
            Damage::Flip { at, .. } => range.contains(at),
            Damage::Zero(zeroed) => zeroed.start < range.end && range.start < zeroed.end,
            Damage::Truncate(len) => *len < range.end,
            Damage::Extend(_) => false,
            Damage::Remove => true,
        }
    }
}

/// About `cases` damages of a file of `len` bytes, spread over it evenly: five flips to one zeroed range and one cut.
/// A short file gets each of its bytes flipped.
pub fn sweep(len: usize, cases: usize, seed: u64) -> Vec<Damage> {
    let mut damages =
        vec![Damage::Remove, Damage::Truncate(0), Damage::Extend(1), Damage::Extend(5000)];
    let flips = (cases * 5 / 7).min(len);
    for place in 0..flips {
        let at = place * len / flips;
        // The place within a stride changes with the seed, as does the bit.
        let at = (at + (seed as usize * 7 + place * 3) % (len / flips)).min(len - 1);
        damages.push(Damage::Flip { at, bit: ((place as u64 * 5 + seed) % 8) as u8 });
    }
    let others = (cases / 7).min(len);
    for place in 0..others {
        let at = place * len / others;
        let width = [1, 16, 200, 4096][place % 4];
        damages.push(Damage::Zero(at..(at + width).min(len)));
        damages.push(Damage::Truncate(at));
    }
    if len > 0 {
        damages.extend([Damage::Truncate(len - 1), Damage::Zero(0..len)]);
    }
    damages
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// From here on, panics of this thread that something catches are not printed: the catalog's library panics on some
/// damage, and the boundary around it answers with an error.
pub fn quiet_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let ours = info.location().is_some_and(|place| place.file().starts_with("tests/"));
            if ours || !QUIET.get() {
                print(info);
            }
        }));
    });
    QUIET.set(true);
}
