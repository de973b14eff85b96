//! Random decisions of a test, the same in every run that has the same seed.

/// Draws numbers by xorshift.
pub(crate) struct Dice(u64);

impl Dice {
    /// A seed of 0 would draw nothing but 0.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(if seed == 0 { 1 } else { seed })
    }

    /// A number below `sides`.
    pub(crate) const fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// How often processes are killed: `TWIXT_KILL_ROUNDS`, or by default fewer times.
pub(crate) fn kill_rounds(default: u32) -> u32 {
    let rounds = std::env::var("TWIXT_KILL_ROUNDS").ok();
    let rounds = rounds.map_or(default, |text| text.parse().expect("a number of rounds"));
    println!("{rounds} rounds");
    rounds
}
