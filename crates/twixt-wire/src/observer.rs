//! From frames to observations: parsing, filter, class, hashes, and nothing that nobody wants.

use twixt_model::{ClassId, Detail, FlowHash, GroupId, Observation, PacketDigest, Timestamp};

use crate::digest::Digester;
use crate::filter::Filter;
use crate::link::LinkType;
use crate::packet::Packet;
use crate::parse::{ParseOptions, parse_into};
use crate::skip::Skip;
use crate::window::Window;

/// Classes of one observer at most. Each packet may be compared with all of them.
pub const CLASSES_MAX: usize = 256;

/// The class of what no class filter selects.
pub const OTHER_CLASS: &str = "other";

/// What the algorithms in use read; the rest is not computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The packet digest; 0 otherwise.
    pub digest: bool,
    /// The flow hash; 0 otherwise.
    pub flow: bool,
    /// Flow key and TCP fields. A note for the caller, who then uses
    /// [`Observer::observe_detailed`].
    pub detail: bool,
    /// The group of its prefixes; 0 otherwise.
    pub group: bool,
}

/// How to observe.
#[derive(Clone, Debug)]
pub struct ObserverOptions {
    /// What to compute.
    pub wanted: Wanted,
    /// Measure the outermost IP packet, not the one inside the tunnels.
    pub outer: bool,
    /// Skip what this does not select.
    pub filter: Option<Filter>,
    /// Names and filters of classes; the first that matches counts.
    pub classes: Vec<(String, Filter)>,
    /// Computes digests and flow hashes.
    pub digester: Digester,
}

/// Why classes cannot be told apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObserverError {
    /// Every packet would be compared with all of them. Use fewer classes.
    #[error("{found} classes, at most {CLASSES_MAX} are possible")]
    TooManyClasses {
        /// How many there are.
        found: usize,
    },
    /// Two classes share a name, or one has that of the rest, `other`. Rename it.
    #[error("class name {name:?} is used twice, or reserved")]
    ClassName {
        /// The name.
        name: String,
    },
}

/// Turns the frames of one point into observations.
#[derive(Clone, Debug)]
pub struct Observer {
    options: ObserverOptions,
}

impl Observer {
    /// An observer.
    ///
    /// # Errors
    ///
    /// If the classes are too many or their names not distinct.
    pub fn new(options: ObserverOptions) -> Result<Self, ObserverError> {
        let classes = &options.classes;
        if classes.len() > CLASSES_MAX {
            return Err(ObserverError::TooManyClasses { found: classes.len() });
        }
        for (index, (name, _)) in classes.iter().enumerate() {
            if name == OTHER_CLASS || classes[..index].iter().any(|(other, _)| other == name) {
                return Err(ObserverError::ClassName { name: name.clone() });
            }
        }
        Ok(Self { options })
    }

    /// What one point knows of one packet. `wire_length` is that of the whole frame, of which
    /// `frame` may be the beginning.
    ///
    /// # Errors
    ///
    /// The reason why the frame is not measured.
    #[inline]
    pub fn observe(
        &self,
        link: LinkType,
        frame: &[u8],
        wire_length: u32,
        time: Timestamp,
    ) -> Result<Observation, Skip> {
        let (mut packet, mut space) = (Packet::BLANK, Window::SPACE);
        let window = Window::of(frame, &mut space);
        self.select(&mut packet, link, frame, window, wire_length)?;
        Ok(self.observation(&packet, frame, window, time))
    }

    /// As [`Observer::observe`], with flow key and TCP fields.
    ///
    /// # Errors
    ///
    /// The reason why the frame is not measured.
    #[inline]
    pub fn observe_detailed(
        &self,
        link: LinkType,
        frame: &[u8],
        wire_length: u32,
        time: Timestamp,
    ) -> Result<(Observation, Detail), Skip> {
        let (mut packet, mut space) = (Packet::BLANK, Window::SPACE);
        let window = Window::of(frame, &mut space);
        self.select(&mut packet, link, frame, window, wire_length)?;
        Ok((self.observation(&packet, frame, window, time), packet.detail(frame)))
    }

    /// As [`Observer::observe`], with the parsed packet.
    ///
    /// # Errors
    ///
    /// The reason why the frame is not measured.
    #[inline]
    pub fn observe_packet(
        &self,
        link: LinkType,
        frame: &[u8],
        wire_length: u32,
        time: Timestamp,
    ) -> Result<(Observation, Packet), Skip> {
        let (mut packet, mut space) = (Packet::BLANK, Window::SPACE);
        let window = Window::of(frame, &mut space);
        self.select(&mut packet, link, frame, window, wire_length)?;
        Ok((self.observation(&packet, frame, window, time), packet))
    }

    /// What is computed.
    #[must_use]
    pub const fn wanted(&self) -> Wanted {
        self.options.wanted
    }

    /// Computes digests and flow hashes.
    #[must_use]
    pub const fn digester(&self) -> &Digester {
        &self.options.digester
    }

    /// The names of the classes by number; the last is [`OTHER_CLASS`]. Without classes, that
    /// is the only one.
    pub fn class_names(&self) -> impl Iterator<Item = &str> {
        self.options.classes.iter().map(|(name, _)| name.as_str()).chain([OTHER_CLASS])
    }

    /// Parses a frame, and skips it unless the filter selects it.
    #[inline]
    fn select(
        &self,
        packet: &mut Packet,
        link: LinkType,
        frame: &[u8],
        window: Window<'_>,
        wire_length: u32,
    ) -> Result<(), Skip> {
        let options = ParseOptions { outer: self.options.outer, wire_length: Some(wire_length) };
        parse_into(packet, link, frame, window, options)?;
        match &self.options.filter {
            Some(filter) if !filter.matches(packet) => Err(Skip::Filtered),
            _ => Ok(()),
        }
    }

    #[inline]
    fn observation(
        &self,
        packet: &Packet,
        frame: &[u8],
        window: Window<'_>,
        time: Timestamp,
    ) -> Observation {
        let ObserverOptions { wanted, digester, .. } = &self.options;
        let digest = if wanted.digest {
            digester.digest_in(packet, frame, window)
        } else {
            PacketDigest::default()
        };
        let flow =
            if wanted.flow { digester.packet_flow_hash(packet) } else { FlowHash::default() };
        let group = if wanted.group { digester.packet_group(packet) } else { GroupId::default() };
        let (length, class) = (packet.length(), self.class_of(packet));
        Observation { time, digest, flow, length, class, group }
    }

    #[inline]
    fn class_of(&self, packet: &Packet) -> ClassId {
        let classes = &self.options.classes;
        let index = classes.iter().position(|(_, filter)| filter.matches(packet));
        // CLASSES_MAX keeps it within 16 bits.
        ClassId(index.unwrap_or(classes.len()) as u16)
    }
}
