//! The choices of the simulated disk: a small generator, equal for equal seeds on every machine.

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// A generator for `seed`; `salt` keeps the choices at different places apart.
    pub(super) fn new(seed: u64, salt: u64) -> Random {
        let mut random = Random(seed);
        let mixed = random.next();
        Random(mixed ^ salt.wrapping_mul(0xD134_2543_DE82_EF95))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not zero. The bias of the remainder does not matter here.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True `parts` times in 256.
    pub(super) fn chance(&mut self, parts: u64) -> bool {
        self.below(256) < parts
    }
}
