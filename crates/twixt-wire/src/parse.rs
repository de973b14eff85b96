//! From a frame to the IP packet that is measured.
//!
//! One walk over offsets, layer by layer, without allocation. It stops at the first IP packet
//! that is not a tunnel, or, where the inside of a tunnel cannot be read, at the tunnel's own
//! packet. It knows nothing of where frames come from.

mod ethernet;
mod ip;
mod tunnel;
mod usual;

use crate::link::LinkType;
use crate::packet::{NO_VLAN, Packet};
use crate::skip::Skip;
use crate::window::{Space, Window};
pub(crate) use ethernet::ip_by_version;
pub(crate) use usual::usual;

/// Layers of one frame at most, every VLAN tag and MPLS label counted; a VXLAN tunnel is three.
/// More is an attack or a loop, and is skipped.
pub const LAYERS_MAX: usize = 24;

/// Extension headers of one IPv6 packet at most. RFC 8200 foresees seven.
pub const EXTENSIONS_MAX: usize = 10;

/// Bytes of a frame that are looked at. No real frame is longer.
pub const FRAME_BYTES_MAX: usize = 1 << 24;

/// What a caller may decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// Measure the outermost IP packet, not the one inside the tunnels.
    pub outer: bool,
    /// Length of the frame on the wire, of which the capture may hold the beginning only. It is
    /// needed where an IP header says length zero, as before segmentation offload; without it,
    /// the captured bytes are then taken for all.
    pub wire_length: Option<u32>,
}

/// Finds the IP packet that is measured in a frame: the innermost that can be read.
///
/// A tunnel whose inside is not IP (VXLAN that carries ARP), or is cut off, is itself the packet.
/// A first fragment of a tunnel is opened; later ones are measured as they are.
///
/// # Errors
///
/// The reason why there is nothing to measure. [`Skip::TooDeep`] is never mended by an outer
/// packet, so that both points skip such a frame.
pub fn parse(link: LinkType, frame: &[u8], options: ParseOptions) -> Result<Packet, Skip> {
    let mut space = Space::default();
    parse_in(link, frame, Window::of(frame.into(), &mut space), options)
}

/// As [`parse`], with the window of the frame at hand.
#[inline]
pub(crate) fn parse_in(
    link: LinkType,
    frame: &[u8],
    window: Window<'_>,
    options: ParseOptions,
) -> Result<Packet, Skip> {
    if link == LinkType::ETHERNET
        && let Some(packet) = usual(window, frame.len(), options.outer)
            .or_else(|| usual::rarer(window, frame.len(), options.outer))
    {
        return Ok(packet);
    }
    walk(link, frame, options)
}

#[inline(never)]
fn walk(link: LinkType, frame: &[u8], options: ParseOptions) -> Result<Packet, Skip> {
    let frame = &frame[..frame.len().min(FRAME_BYTES_MAX)];
    let wire_end = options.wire_length.map_or(frame.len(), |length| length as usize);
    let walk = Walk { frame, wire_end, vlan: NO_VLAN, mpls: false };
    walk.run(link.first(frame)?, options.outer)
}

/// What begins at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Ethernet,
    /// The content for this Ethernet type.
    EtherType(u16),
    PppoeSession,
    Ppp,
    Ipv4,
    Ipv6,
}

/// A layer, and the offset at which it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(pub(crate) Layer, pub(crate) usize);

struct Walk<'a> {
    /// Ends where the innermost packet so far ends.
    frame: &'a [u8],
    /// Where that packet ended on the wire.
    wire_end: usize,
    /// The outermost tag.
    vlan: u16,
    mpls: bool,
}

impl Walk<'_> {
    fn run(mut self, mut place: Place, outer: bool) -> Result<Packet, Skip> {
        let mut packet = Packet::BLANK;
        let mut around: Option<Packet> = None;
        for _ in 0..LAYERS_MAX {
            let Place(layer, at) = place;
            let step = match layer {
                Layer::Ipv4 => self.ipv4(at, &mut packet).map(|()| None),
                Layer::Ipv6 => self.ipv6(at, &mut packet).map(|()| None),
                _ => self.below_ip(layer, at).map(Some),
            };
            match step {
                Ok(Some(next)) => place = next,
                Ok(None) if outer => return Ok(packet),
                Ok(None) => match self.enter(&packet) {
                    Some(inside) => (place, around) = (inside, Some(packet)),
                    None => return Ok(packet),
                },
                Err(Skip::TooDeep) => break,
                Err(skip) => return around.ok_or(skip),
            }
        }
        Err(Skip::TooDeep)
    }

    /// The first layer inside `packet`, if it is a tunnel. From then on nothing is read beyond the
    /// packet's end.
    #[inline]
    fn enter(&mut self, packet: &Packet) -> Option<Place> {
        if !tunnel::is_possible(packet) {
            return None;
        }
        self.frame = &self.frame[..packet.end as usize];
        self.wire_end = packet.ip_at as usize + packet.length as usize;
        tunnel::inside(packet, self.frame)
    }
}
