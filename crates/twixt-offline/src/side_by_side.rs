//! Two captures, read at the same time.
//!
//! Each is read by a thread of its own. Packets near the ends of the overlap are held back until both
//! threads have seen them, and sorted out together. Sealed epochs pass through short queues, so that
//! neither thread runs far ahead.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use twixt_measure::survey::{Edges, Place, resolve};
use twixt_model::{Epoch, Observation};

use crate::pairs::{Pairs, Sent};
use crate::parts::Part;
use crate::reading::CaptureReading;
use crate::report::{Pass, Progress, Reporter};
use crate::shortening::Shortening;

/// Reads both captures to their ends, and measures what lies between the edges.
pub(crate) fn read_part<'a>(
    part: &'a Part,
    pairs: &mut Pairs,
    up: &mut CaptureReading<'a>,
    down: &mut CaptureReading<'a>,
    reporter: &dyn Reporter,
) {
    let edges = &part.edges;
    let progress =
        reporter.progress(Pass::Measure, up.capture.size_bytes() + down.capture.size_bytes());
    let (up_until, down_until) = edges.start_until();
    thread::scope(|scope| {
        scope.spawn(|| down.read_start(down_until, progress.as_ref()));
        up.read_start(up_until, progress.as_ref());
    });
    sort_out(edges, Place::Start, up, down);
    let shortening = Shortening::new(part);
    let manner = Manner { progress: progress.as_ref(), reporter, shortening: Some(&shortening) };
    read_both(pairs, up, down, &manner);
    sort_out(part.shortened.get().unwrap_or(edges), Place::End, up, down);
}

/// Decides about the packets held back at one end of the overlap, and measures those that count.
fn sort_out(
    edges: &Edges,
    place: Place,
    up: &mut CaptureReading<'_>,
    down: &mut CaptureReading<'_>,
) {
    let at = |reading: &CaptureReading<'_>| -> Vec<Observation> {
        reading.path.sink().held_at(place).collect()
    };
    let resolved = resolve(edges, place, &at(up), &at(down));
    up.release(place, &resolved.upstream);
    down.release(place, &resolved.downstream);
}

/// Sealed epochs that wait for the other point at most.
const QUEUE_MAX: usize = 4;

/// How captures are read.
#[derive(Clone, Copy)]
pub(crate) struct Manner<'m, 'a> {
    pub(crate) progress: &'m dyn Progress,
    pub(crate) reporter: &'m dyn Reporter,
    /// Where they end if a person has seen enough; at once, if that is not known.
    pub(crate) shortening: Option<&'m Shortening<'a>>,
}

/// Reads both captures to their ends, and pairs epochs as they are sealed.
pub(crate) fn read_both<'a>(
    pairs: &mut Pairs,
    up: &mut CaptureReading<'a>,
    down: &mut CaptureReading<'a>,
    manner: &Manner<'_, 'a>,
) {
    thread::scope(|scope| {
        let read = |reading| {
            let (sender, receiver) = sync_channel(QUEUE_MAX);
            scope.spawn(move || read_on(reading, &sender, manner));
            receiver
        };
        let (upstream, downstream) = (read(up), read(down));
        pair_as_they_come(pairs, &[upstream, downstream]);
    });
}

fn read_on<'a>(
    reading: &mut CaptureReading<'a>,
    sender: &SyncSender<Sent>,
    manner: &Manner<'_, 'a>,
) {
    while manner.read_batch(reading) {
        while let Some(sealed) = reading.path.sink_mut().poll() {
            if sender.send(sealed).is_err() {
                return;
            }
        }
    }
}

impl<'a> Manner<'_, 'a> {
    /// Reads a batch; false at the end.
    fn read_batch(&self, reading: &mut CaptureReading<'a>) -> bool {
        let is_enough = self.reporter.is_enough();
        let Some(shortening) = self.shortening else {
            return !is_enough && reading.read_batch(self.progress);
        };
        let side = reading.path.sink().excerpt.side;
        if let Some(edges) = shortening.begin_batch(side, is_enough) {
            reading.end_at(edges);
        }
        let goes_on = reading.read_batch(self.progress);
        shortening.end_batch(side, reading.path.sink().latest);
        goes_on
    }
}

/// Always takes from the point that is behind, so that neither waits for many epochs of the other.
fn pair_as_they_come(pairs: &mut Pairs, receivers: &[Receiver<Sent>; 2]) {
    let mut reached = [Some(Epoch(i64::MIN)); 2];
    let behind = |reached: &[Option<Epoch>; 2]| {
        (0..2).filter(|&end| reached[end].is_some()).min_by_key(|&end| reached[end])
    };
    while let Some(end) = behind(&reached) {
        match receivers[end].recv() {
            Ok(sent) => {
                reached[end] = Some(sent.sealed.epoch);
                pairs.receive(sent);
            }
            Err(_) => reached[end] = None,
        }
    }
}
