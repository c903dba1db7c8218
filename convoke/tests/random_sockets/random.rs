//! Chance that follows from a seed, and bytes that show where in a stream they belong.

/// Splitmix: small, and every seed is a good one.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// For somebody else, who then does not depend on what others ask.
    pub(crate) fn split(&mut self) -> Self {
        Self(self.next())
    }
}

/// So many bytes of a stream from there on. The period is odd, so that pieces in a wrong order are seen to be.
pub(crate) fn numbered(from: u64, length: usize) -> Vec<u8> {
    (from..from + length as u64).map(|place| (place % 253) as u8).collect()
}
