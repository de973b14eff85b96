//! One point, one pass, into a synopsis that learns from that point alone.

use twixt_model::{DigestHash, DigestProfile, Needs, Span};
use twixt_observe::{PacketPath, PathCounts, SynopsisFeed};
use twixt_offline::ChosenAlgorithm;
use twixt_synopsis::AnySynopsis;
use twixt_wire::{Digester, HashKey};

use crate::args::TrafficArgs;
use crate::exit::{Exit, usage};
use crate::frame_input::SourceArgs;

/// What was seen, and what the synopsis kept of it.
pub(crate) struct SeenAtPoint {
    pub(crate) synopsis: Box<dyn AnySynopsis>,
    pub(crate) counts: PathCounts,
    /// From the first packet to the last; `None` if there was none.
    pub(crate) span: Option<Span>,
    /// The capture or the interface.
    pub(crate) name: String,
    /// How the command ends.
    pub(crate) exit: Exit,
}

/// Reads a source once, and at most `most` packets of this traffic.
pub(crate) fn read(
    source: &SourceArgs,
    traffic: &TrafficArgs,
    chosen: &ChosenAlgorithm,
    most: Option<u64>,
) -> anyhow::Result<SeenAtPoint> {
    let mut path = path(traffic, chosen, most)?;
    let mut source = source.open()?;
    source.read(&mut path)?;
    let counts = path.counts(source.counts());
    let mut feed = path.into_sink();
    Ok(SeenAtPoint {
        counts,
        span: feed.take_span(),
        synopsis: feed.finish(),
        name: source.name(),
        exit: source.conclude(Exit::Done),
    })
}

fn path(
    traffic: &TrafficArgs,
    chosen: &ChosenAlgorithm,
    most: Option<u64>,
) -> anyhow::Result<PacketPath<SynopsisFeed>> {
    if traffic.has_classes() {
        return Err(usage("this command has no classes: use a filter"));
    }
    // Hashes never leave this command: a fixed key will do.
    let key = HashKey::from_seed(0);
    let digester = Digester::new(DigestProfile::Headers, DigestHash::Xxh3, 0, key);
    let needs = Needs { detail: true, ..chosen.prototype.needs() };
    let feed = SynopsisFeed::new(chosen.prototype.fresh());
    let path = PacketPath::new(traffic.observer(needs, digester)?, feed);
    Ok(path.toward(traffic.toward).within(traffic.within()?).at_most(most))
}
