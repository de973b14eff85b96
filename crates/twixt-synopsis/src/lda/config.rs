//! Sizes and sampling rates of LDA, and how to choose them.

use serde::{Deserialize, Serialize};
use twixt_model::PacketDigest;

use super::LdaShape;
use crate::cells::Shape;
use crate::codec::{DecodeError, Reader, Writer};
use crate::interval::Z95;

/// Sizes and sampling rates of LDA. The default serves 0 to 10 % loss in 78 KiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct LdaConfig {
    rows: u32,          // in [1, ROWS_MAX]
    sampling: Vec<f64>, // in (0, 1], never increasing, at least one and at most BANKS_MAX
    /// `sampling` in units of 2^-32, as the update compares it.
    thresholds: Vec<u64>,
}

/// Keeps the derived bits apart from those of every other algorithm.
const SALT: u64 = 0x4c44_412d_6365_6c6c;
const BANKS_MAX: usize = 16;
const ROWS_MAX: u32 = 1 << 24;
const DEFAULT_BANKS: usize = 4;
const DEFAULT_ROWS: u32 = 1024;
/// Each bank of the default sampling gets this share of the one before it.
const DEFAULT_STEP: f64 = 0.125;

/// What users write. Everything has a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    banks: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sampling: Option<Vec<f64>>,
}

impl TryFrom<Settings> for LdaConfig {
    type Error = String;

    fn try_from(settings: Settings) -> Result<Self, String> {
        let rows = settings.rows.unwrap_or(DEFAULT_ROWS);
        let sampling = match (settings.banks, settings.sampling) {
            (Some(banks), Some(sampling)) if banks as usize != sampling.len() => {
                return Err(format!("{banks} banks, but {} sampling rates", sampling.len()));
            }
            (_, Some(sampling)) => sampling,
            (Some(banks), None) => steps(banks.min(BANKS_MAX as u32 + 1) as usize),
            (None, None) => steps(DEFAULT_BANKS),
        };
        Self::new(rows, &sampling)
    }
}

impl From<LdaConfig> for Settings {
    fn from(config: LdaConfig) -> Self {
        Self {
            banks: Some(config.sampling.len() as u32),
            rows: Some(config.rows),
            sampling: Some(config.sampling),
        }
    }
}

fn steps(banks: usize) -> Vec<f64> {
    (0..banks).map(|bank| DEFAULT_STEP.powi(bank as i32)).collect()
}

impl Default for LdaConfig {
    fn default() -> Self {
        Self::new(DEFAULT_ROWS, &steps(DEFAULT_BANKS)).expect("the defaults are valid")
    }
}

impl LdaConfig {
    /// `rows` cells in each of as many banks as there are sampling rates.
    ///
    /// Samples are nested and then taken apart: a packet that qualifies for several banks goes to
    /// the last, so bank j gets the share `sampling[j] - sampling[j + 1]` and no packet is
    /// counted twice.
    ///
    /// # Errors
    /// When a number is out of its range; the text says which.
    pub fn new(rows: u32, sampling: &[f64]) -> Result<Self, String> {
        if !(1..=ROWS_MAX).contains(&rows) {
            return Err(format!("rows must be between 1 and {ROWS_MAX}, not {rows}"));
        }
        if sampling.is_empty() || sampling.len() > BANKS_MAX {
            return Err(format!("banks must be between 1 and {BANKS_MAX}, not {}", sampling.len()));
        }
        if let Some(rate) = sampling.iter().find(|&&rate| !(rate > 0.0 && rate <= 1.0)) {
            return Err(format!("a sampling rate must be above 0 and at most 1, not {rate}"));
        }
        if sampling.windows(2).any(|pair| pair[0] < pair[1]) {
            return Err("sampling rates must not increase from bank to bank".to_owned());
        }
        let thresholds =
            sampling.iter().map(|rate| (rate * 2_f64.powi(32)).round() as u64).collect();
        Ok(Self { rows, sampling: sampling.to_vec(), thresholds })
    }

    /// As many rows as `memory_bytes` hold in the default number of banks; in one bank if that
    /// is so little that banks would have no rows to speak of.
    pub(super) fn within(memory_bytes: u64) -> Option<Self> {
        const ROWS_WORTH_A_BANK: u64 = 64;
        let cells = LdaShape.widths().cells_within(memory_bytes);
        let banks = (cells / ROWS_WORTH_A_BANK).clamp(1, DEFAULT_BANKS as u64);
        let rows = (cells / banks).min(u64::from(ROWS_MAX));
        Self::new(u32::try_from(rows).ok()?, &steps(banks as usize)).ok()
    }

    /// The best single bank of `rows` cells for an epoch that loses `lost` packets.
    ///
    /// The expected number of usable packets p R (1 - p/m)^L is largest at p = m/L; the printed
    /// p = m/2L maximises a lower bound of it and gives a fifth fewer.
    ///
    /// # Errors
    /// When `rows` is out of its range.
    pub fn tuned(rows: u32, lost: u64) -> Result<Self, String> {
        Self::new(rows, &[(f64::from(rows) / lost.max(1) as f64).min(1.0)])
    }

    /// Banks for an epoch of `packets` packets whose loss lies anywhere from `loss_low` to
    /// `loss_high`, within `memory_bytes`. The first bank is tuned to the lowest loss, the last to
    /// the highest, those between in equal ratios; of all such configurations the one is taken
    /// whose worst sample, relative to that of a bank tuned to the very loss, is largest.
    #[must_use]
    pub fn for_loss(
        memory_bytes: u64,
        packets: u64,
        loss_low: f64,
        loss_high: f64,
    ) -> Option<Self> {
        let cells = LdaShape.widths().cells_within(memory_bytes);
        // From many banks to few: of equals the last, and so the simplest, is taken.
        let candidates = (1..=BANKS_MAX as u64).rev().filter_map(|banks| {
            let rows = u32::try_from((cells / banks).min(u64::from(ROWS_MAX))).ok()?;
            let best = |loss: f64| (f64::from(rows) / (loss * packets as f64).max(1.0)).min(1.0);
            let (first, last) = (best(loss_low), best(loss_high));
            let rates: Vec<f64> = match banks {
                1 => vec![(first * last).sqrt()],
                _ => {
                    let step = (last / first).powf(1.0 / (banks - 1) as f64);
                    (0..banks).map(|bank| first * step.powi(bank as i32)).collect()
                }
            };
            Self::new(rows, &rates).ok()
        });
        let worst = |config: &Self| config.worst_efficiency(cells, packets, loss_low, loss_high);
        candidates.max_by(|one, other| worst(one).total_cmp(&worst(other)))
    }

    /// The smallest expected sample over a range of losses, relative to what one bank of as many
    /// cells tuned to each loss would have.
    fn worst_efficiency(&self, cells: u64, packets: u64, loss_low: f64, loss_high: f64) -> f64 {
        const STEPS: u32 = 16;
        let rows = u32::try_from(cells).unwrap_or(ROWS_MAX).min(ROWS_MAX);
        let efficiency = |step: u32| {
            let share = f64::from(step) / f64::from(STEPS);
            let loss = loss_low.max(1e-9) * (loss_high.max(1e-9) / loss_low.max(1e-9)).powf(share);
            let lost = (loss * packets as f64).round() as u64;
            let tuned = Self::tuned(rows, lost).expect("rows are in their range");
            let received = packets - lost;
            self.expected_used(received, lost) / tuned.expected_used(received, lost)
        };
        (0..=STEPS).map(efficiency).fold(f64::INFINITY, f64::min)
    }

    /// Cells per bank.
    #[must_use]
    pub const fn rows(&self) -> u32 {
        self.rows
    }

    /// The share of packets that reaches each bank or a later one.
    #[must_use]
    pub fn sampling(&self) -> &[f64] {
        &self.sampling
    }

    /// The share of all packets that bank by bank is counted there.
    pub fn shares(&self) -> impl Iterator<Item = f64> {
        let later = self.sampling.iter().skip(1).copied().chain([0.0]);
        self.sampling.iter().zip(later).map(|(rate, later)| rate - later)
    }

    /// Expected number of packets in usable cells when `received` packets arrive and `lost` do
    /// not: a cell of a bank with share p is spared by one loss with probability 1 - p/m.
    #[must_use]
    pub fn expected_used(&self, received: u64, lost: u64) -> f64 {
        let spared = |share: f64| (-share / f64::from(self.rows)).ln_1p() * lost as f64;
        self.shares().map(|share| share * received as f64 * spared(share).exp()).sum()
    }

    /// Half the width of the 95 % interval of the mean to expect then, relative to the mean, if
    /// delays deviate by `variation` from it.
    #[must_use]
    pub fn expected_half_width(&self, received: u64, lost: u64, variation: f64) -> f64 {
        let used = self.expected_used(received, lost);
        // Of a finite number of packets: nothing is in doubt when all are measured.
        let unmeasured = (1.0 - used / received as f64).max(0.0);
        Z95 * variation * (unmeasured / used).sqrt()
    }

    pub(super) fn cells(&self) -> usize {
        self.sampling.len() * self.rows as usize
    }

    /// Bytes of state at one point.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        LdaShape.widths().state_bytes(self.cells())
    }

    /// Where a packet is counted; `None` if it is not sampled. The bank comes from the high half
    /// of the derived bits and the row from the low half: banks that sample little would
    /// otherwise use few of their rows.
    #[inline]
    pub(super) fn cell_for(&self, digest: PacketDigest) -> Option<usize> {
        let bits = digest.derive(SALT);
        let (high, low) = (bits >> 32, bits & 0xffff_ffff);
        let qualifies: usize = self.thresholds.iter().map(|&limit| usize::from(high < limit)).sum();
        let bank = qualifies.checked_sub(1)?;
        let row = (low * u64::from(self.rows)) >> 32;
        Some(bank * self.rows as usize + row as usize)
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u32(self.rows);
        out.u8(self.sampling.len() as u8);
        for &rate in &self.sampling {
            out.f64(rate);
        }
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let rows = input.u32("rows")?;
        let banks = input.u8("banks")?;
        let sampling = (0..banks).map(|_| input.f64("sampling")).collect::<Result<Vec<_>, _>>()?;
        Self::new(rows, &sampling).map_err(|problem| DecodeError::invalid("configuration", problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LdaConfig, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn the_default_is_below_80_kib() {
        assert!(LdaConfig::default().state_bytes() < 80 * 1024);
    }

    #[test]
    fn settings_are_checked() {
        assert_eq!(read("").unwrap(), LdaConfig::default());
        assert_eq!(read("sampling = [0.5]").unwrap().sampling.len(), 1);
        assert!(read("rows = 0").unwrap_err().contains("rows must be between"));
        assert!(read("banks = 99").unwrap_err().contains("banks must be between"));
        assert!(read("sampling = [0.5, 0.7]").unwrap_err().contains("must not increase"));
        assert!(read("sampling = [0.0]").unwrap_err().contains("above 0"));
        assert!(read("banks = 3\nsampling = [0.5]").unwrap_err().contains("3 banks, but 1"));
    }

    /// Nested samples, taken apart: "first seven bits zero" and else "first three bits zero".
    #[test]
    fn a_bank_gets_what_later_banks_leave() {
        let config = LdaConfig::new(8, &[0.125, 0.0078125]).unwrap();
        assert_eq!(config.shares().collect::<Vec<_>>(), [0.1171875, 0.0078125]);
        let mut counts = [0_u32; 2];
        let packets = 1_000_000_u64;
        for packet in 0..packets {
            if let Some(index) = config.cell_for(PacketDigest(packet)) {
                counts[index / 8] += 1;
            }
        }
        // Five standard deviations of a binomial count.
        for (count, share) in counts.into_iter().zip(config.shares()) {
            let (expected, variance) = (share * 1e6, share * (1.0 - share) * 1e6);
            assert!((f64::from(count) - expected).abs() < 5.0 * variance.sqrt(), "{counts:?}");
        }
    }

    #[test]
    fn unsampled_packets_are_nowhere_and_rare_banks_use_all_their_rows() {
        let config = LdaConfig::new(64, &[1.0, 0.01]).unwrap();
        let mut used = [false; 128];
        for packet in 0..200_000 {
            used[config.cell_for(PacketDigest(packet)).unwrap()] = true;
        }
        assert!(used.iter().all(|&used| used));
        let half = LdaConfig::new(64, &[0.5]).unwrap();
        assert!((0..100).any(|packet| half.cell_for(PacketDigest(packet)).is_none()));
    }

    /// A million packets, 2 % lost, 1024 rows: 15 216 packets at p = m/2L, 18 458 at p = m/L.
    #[test]
    fn the_expected_sample_is_largest_at_one_loss_per_row() {
        let (received, lost) = (980_000, 20_000);
        let half = LdaConfig::new(1024, &[0.5 * 1024.0 / 20_000.0]).unwrap();
        let best = LdaConfig::tuned(1024, lost).unwrap();
        assert_eq!(half.expected_used(received, lost).floor(), 15_216.0);
        assert_eq!(best.expected_used(received, lost).floor(), 18_458.0);
    }

    #[test]
    fn sizing_keeps_within_memory_and_spans_the_losses() {
        for memory_bytes in [100, 5_000, 9 * 1024, 1 << 20] {
            let config = LdaConfig::within(memory_bytes).unwrap();
            assert!(config.state_bytes() <= memory_bytes);
        }
        assert_eq!(LdaConfig::within(10), None);
        let config = LdaConfig::for_loss(96 * 1024, 5_000_000, 0.001, 0.1).unwrap();
        assert!(config.state_bytes() <= 96 * 1024);
        assert!(config.sampling.len() > 1);
        // At no loss in the range is less than a fifth of the best possible sample left.
        assert!(config.worst_efficiency(4095, 5_000_000, 0.001, 0.1) > 0.2);
        assert_eq!(LdaConfig::for_loss(96 * 1024, 1000, 0.01, 0.02).unwrap().sampling.len(), 1);
    }
}
