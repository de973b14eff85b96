//! How speech sounds after delay and loss: the E-model of ITU-T G.107, with codecs of G.113.
//!
//! All parameters but delay, loss and codec have the values that G.107 gives in its table 3, so that an
//! undisturbed connection has the rating 93.2. What is not known here: echo, loudness and noise at
//! the ends, and whatever lies outside the segment.

use crate::{Crossing, Delay};

/// What a codec does to speech.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codec {
    /// As people call it.
    pub name: &'static str,
    /// Equipment impairment factor *Ie*.
    pub impairment: f64,
    /// Packet-loss robustness factor *Bpl*.
    pub robustness: f64,
    /// How much speech behind a frame it waits for.
    pub lookahead: Delay,
}

impl Codec {
    /// G.711 with packet-loss concealment (G.113, table I.4; its appendix I).
    pub const G711: Self = Self::new("G.711", 0.0, 25.1, 0);
    /// G.723.1 at 6.3 kbit/s with voice activity detection.
    pub const G723: Self = Self::new("G.723.1", 15.0, 16.1, 7_500_000);
    /// G.729A with voice activity detection.
    pub const G729: Self = Self::new("G.729A", 11.0, 19.0, 5_000_000);

    const fn new(name: &'static str, impairment: f64, robustness: f64, lookahead_ns: i64) -> Self {
        Self { name, impairment, robustness, lookahead: Delay::from_nanos(lookahead_ns) }
    }
}

/// What a listener gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heard {
    /// From mouth to ear.
    pub delay: Delay,
    /// Share of packets that are lost, or too late to be played.
    pub loss: f64,
    /// How much longer runs of lost packets are than random losses make them (*BurstR*); at least 1.
    pub burst_ratio: f64,
}

/// The transmission rating factor *R*, at most 93.2 here.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rating(pub f64);

impl Rating {
    /// Of what a listener gets through a codec.
    #[must_use]
    pub fn of(heard: Heard, codec: Codec) -> Self {
        let delay_ms = (heard.delay.as_nanos() as f64 / 1e6).max(0.0);
        let loss_percent = 100.0 * heard.loss;
        // Equation 7-29.
        let lost = loss_percent / (loss_percent / heard.burst_ratio.max(1.0) + codec.robustness);
        let equipment = codec.impairment + (95.0 - codec.impairment) * lost;
        Self(SIGNAL_TO_NOISE - simultaneous(delay_ms) - delayed(delay_ms) - equipment)
    }

    /// Mean opinion score of a conversation (annex B), 1 to 4.5.
    #[must_use]
    pub fn mean_opinion_score(self) -> f64 {
        match self.0 {
            low if low <= 0.0 => 1.0,
            high if high >= 100.0 => 4.5,
            // Slightly below 1 for small ratings, where the polynomial has no meaning.
            r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
        }
    }
}

/// Speech that was played at a fixed delay after it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Playout {
    /// Delay on the segment, with waiting in the jitter buffer.
    pub delay: Delay,
    /// Packets that came later than that.
    pub late: u64,
    /// What a listener gets.
    pub heard: Heard,
    /// How it sounds.
    pub rating: Rating,
}

/// Delays that are tried at most.
const CANDIDATES: usize = 256;

impl Playout {
    /// With the fixed delay that sounds best: a longer one makes fewer packets late. `packets` are of one
    /// stream in the order in which they were sent; `frame` is the speech in each. `None` if no delay is
    /// known.
    #[must_use]
    pub fn best(packets: &[Crossing], frame: Delay, codec: Codec) -> Option<Self> {
        let mut delays: Vec<Delay> = packets.iter().filter_map(Crossing::delay).collect();
        delays.sort_unstable();
        // At most one packet in ten is given up for a shorter delay.
        let (first, count) = (delays.len() * 9 / 10, delays.len());
        let step = (count - first).div_ceil(CANDIDATES).max(1);
        let candidates = (first..count).rev().step_by(step).map(|index| delays[index]);
        let played = candidates.map(|delay| Self::at(delay, packets, frame, codec));
        played.reduce(|best, other| if other.rating > best.rating { other } else { best })
    }

    /// With a fixed delay.
    fn at(delay: Delay, packets: &[Crossing], frame: Delay, codec: Codec) -> Self {
        let is_late = |packet: &Crossing| packet.delay().is_some_and(|took| took > delay);
        let is_missing = |packet: &Crossing| packet.is_lost() || is_late(packet);
        let missing = packets.iter().filter(|packet| is_missing(packet)).count();
        let runs = packets.chunk_by(|one, other| is_missing(one) == is_missing(other));
        let bursts = runs.filter(|run| is_missing(&run[0])).count();
        let loss = missing as f64 / packets.len().max(1) as f64;
        let burst_ratio = match bursts {
            0 => 1.0,
            // Random losses come in runs of 1 / (1 - loss) packets.
            bursts => (missing as f64 / bursts as f64 * (1.0 - loss)).max(1.0),
        };
        let heard = Heard { delay: delay + frame + codec.lookahead, loss, burst_ratio };
        let late = packets.iter().filter(|packet| is_late(packet)).count() as u64;
        Self { delay, late, heard, rating: Rating::of(heard, codec) }
    }

    /// How it sounds if delays are longer by so much than clocks show.
    #[must_use]
    pub fn rating_if_later(&self, later: Delay, codec: Codec) -> Rating {
        let delay = (self.heard.delay + later).max(Delay::ZERO);
        Rating::of(Heard { delay, ..self.heard }, codec)
    }
}

// Table 3 of G.107: loudness of sending and receiving, masking of sidetone, loss of echoes.
const SLR: f64 = 8.0;
const RLR: f64 = 2.0;
const STMR: f64 = 15.0;
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
/// Sum of all noise, equations 7-3 to 7-7: circuit −70 dBm0p, floor −64 dBmp, rooms 35 dB(A).
const NOISE: f64 = -61.179_214_386;
/// Basic signal-to-noise ratio *Ro*, equation 7-2: 15 − 1.5 (SLR + No).
const SIGNAL_TO_NOISE: f64 = 15.0 - 1.5 * (SLR + NOISE);

/// What happens to speech while it is spoken, *Is*: equations 7-8 to 7-17 with one quantising unit.
fn simultaneous(delay_ms: f64) -> f64 {
    let loudness = SLR + RLR + 0.2 * (64.0 + NOISE - RLR);
    let too_loud = 20.0 * ((1.0 + (loudness / 8.0).powi(8)).powf(0.125) - loudness / 8.0);
    let echo = (-delay_ms / 4.0).exp() * 10_f64.powf(-TELR / 10.0);
    let side = -10.0 * (10_f64.powf(-STMR / 10.0) + echo).log10();
    let sidetone = 12.0 * (1.0 + ((side - 13.0) / 6.0).powi(8)).powf(0.125)
        - 28.0 * (1.0 + ((side + 1.0) / 19.4).powi(35)).powf(1.0 / 35.0)
        - 13.0 * (1.0 + ((side - 3.0) / 33.0).powi(13)).powf(1.0 / 13.0)
        + 29.0;
    let quality = 37.0; // 37 - 15 log10(qdu)
    let grade = 1.07 + 0.258 * quality + 0.0602 * quality * quality;
    let y = (SIGNAL_TO_NOISE - 100.0) / 15.0 + 46.0 / 8.4 - grade / 9.0;
    let z = 46.0 / 30.0 - grade / 40.0;
    let quantising = 15.0 * (1.0 + 10_f64.powf(y) + 10_f64.powf(z)).log10();
    too_loud + sidetone + quantising
}

/// What delay does, *Id*: echoes to talker and listener, and too long a delay (equations 7-18 to 7-28).
fn delayed(delay_ms: f64) -> f64 {
    let late = delay_ms;
    let masking = 40.0 * ((1.0 + late / 10.0) / (1.0 + late / 150.0)).log10();
    let echo = TELR - masking + 6.0 * (-0.3 * late * late).exp();
    let (with_echo, without) = (80.0 + 2.5 * (echo - 14.0), -1.5 * (NOISE - RLR));
    let talker = half_wave(without - with_echo, 100.0) - 1.0;
    let talker = talker * (1.0 - (-late).exp());
    let listener_ratio = 10.5 * (WEPL + 7.0) * (2.0 * late + 1.0).powf(-0.25);
    let listener = half_wave(SIGNAL_TO_NOISE - listener_ratio, 169.0);
    talker + listener + too_long(delay_ms)
}

fn half_wave(difference: f64, softness: f64) -> f64 {
    difference / 2.0 + (difference * difference / 4.0 + softness).sqrt()
}

fn too_long(delay_ms: f64) -> f64 {
    if delay_ms <= 100.0 {
        return 0.0;
    }
    let x = (delay_ms / 100.0).log2();
    let sixth = |value: f64| (1.0 + value.powi(6)).powf(1.0 / 6.0);
    25.0 * (sixth(x) - 3.0 * sixth(x / 3.0) + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CrossingFate, FlowHash, Timestamp};

    /// `(delay in ms, loss in per cent, burst ratio)`. The values are those of a program in
    /// another language that follows the equations of G.107 one by one, with noise and all else computed
    /// from table 3.
    #[track_caller]
    fn check((delay_ms, percent, burst_ratio): (i64, f64, f64), codec: Codec, expected: [f64; 2]) {
        let delay = Delay::from_nanos(delay_ms * 1_000_000);
        let rating = Rating::of(Heard { delay, loss: percent / 100.0, burst_ratio }, codec);
        let found = [rating.0, rating.mean_opinion_score()];
        let is_near = |(found, expected): (&f64, &f64)| (found - expected).abs() < 1e-3;
        assert!(found.iter().zip(&expected).all(is_near), "{found:?} is not {expected:?}");
    }

    #[test]
    fn ratings_are_those_of_g_107() {
        // An undisturbed connection: 93.2 by G.107, table 3.
        check((0, 0.0, 1.0), Codec::G711, [93.2062, 4.4094]);
        check((50, 0.0, 1.0), Codec::G711, [91.7562, 4.3796]);
        check((150, 0.0, 1.0), Codec::G711, [89.5391, 4.3275]);
        check((300, 0.0, 1.0), Codec::G711, [72.6664, 3.7194]);
        check((400, 0.0, 1.0), Codec::G711, [62.2468, 3.2156]);
        check((150, 1.0, 1.0), Codec::G711, [85.8993, 4.2261]);
        check((150, 5.0, 2.0), Codec::G711, [72.3290, 3.7042]);
        check((50, 2.0, 1.0), Codec::G729, [72.7562, 3.7235]);
        check((400, 10.0, 1.0), Codec::G723, [16.5955, 1.1603]);
    }

    /// Table B.1 of G.107.
    #[test]
    fn scores_are_those_of_the_published_table() {
        for (rating, expected) in
            [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)]
        {
            let score = Rating(rating).mean_opinion_score();
            assert!((score - expected).abs() < 0.01, "{score} for {rating}");
        }
        assert_eq!(
            [-5.0, 0.0, 3.0, 120.0].map(|r| Rating(r).mean_opinion_score()),
            [1.0, 1.0, 1.0, 4.5]
        );
    }

    /// Delays in milliseconds of packets 20 ms apart; `None` for lost ones.
    fn best(delays_ms: &[Option<i64>]) -> Playout {
        let packet = |(index, delay): (usize, &Option<i64>)| Crossing {
            sent: Timestamp::from_nanos(index as i64 * 20_000_000),
            flow: FlowHash(1),
            length: 200,
            fate: delay.map_or(CrossingFate::Lost, |ms| {
                CrossingFate::Took(Delay::from_nanos(ms * 1_000_000))
            }),
        };
        let packets: Vec<Crossing> = delays_ms.iter().enumerate().map(packet).collect();
        Playout::best(&packets, Delay::from_nanos(20_000_000), Codec::G711)
            .expect("delays are known")
    }

    #[test]
    fn one_packet_that_is_very_late_counts_as_lost() {
        let mut delays = vec![Some(30); 1000];
        delays[500] = Some(900);
        let found = best(&delays);
        assert_eq!((found.delay, found.late), (Delay::from_nanos(30_000_000), 1));
        assert_eq!(found.heard.delay, Delay::from_nanos(50_000_000));
        // Waiting up to 100 ms costs less than losing a third of the packets.
        delays[..330].fill(Some(45));
        assert_eq!(best(&delays).delay, Delay::from_nanos(45_000_000));
    }

    #[test]
    fn losses_in_a_row_sound_worse_than_as_many_alone() {
        let (mut alone, mut row) = (vec![Some(30); 1000], vec![Some(30); 1000]);
        (0..50).for_each(|number| alone[number * 20 + 5] = None);
        row[100..150].fill(None);
        let (alone, row) = (best(&alone), best(&row));
        assert_eq!((alone.heard.loss, row.heard.loss), (0.05, 0.05));
        assert_eq!((alone.heard.burst_ratio, row.heard.burst_ratio), (1.0, 47.5));
        assert!(row.rating < alone.rating);
    }
}
