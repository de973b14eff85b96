//! From frames to observations: parsing, filter, class, hashes, and only what is needed.

use twixt_model::{
    ClassId, Detail, FlowHash, GroupId, Needs, Observation, PacketDigest, Timestamp,
};

use crate::digest::Digester;
use crate::filter::{Filter, Headers};
use crate::link::LinkType;
use crate::packet::Packet;
use crate::parse::{ParseOptions, parse_in, usual};
use crate::skip::Skip;
use crate::window::{FrameBytes, Space, Window};

/// Classes of one observer at most. Each packet may be compared with all of them.
pub const CLASSES_MAX: usize = 256;

/// The class of what no class filter selects.
pub const OTHER_CLASS: &str = "other";

/// How to observe.
#[derive(Clone, Debug)]
pub struct ObserverOptions {
    /// What to compute.
    pub needs: Needs,
    /// Measure the outermost IP packet, not the one inside the tunnels.
    pub outer: bool,
    /// Skip what this does not select.
    pub filter: Option<Filter>,
    /// Names and filters of classes; the first that matches counts.
    pub classes: Vec<(String, Filter)>,
    /// Computes digests and flow hashes.
    pub digester: Digester,
}

/// Why classes cannot be distinguished.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObserverError {
    /// Every packet would be compared with all of them. Use fewer classes.
    #[error("{found} classes, at most {CLASSES_MAX} are supported")]
    TooManyClasses {
        /// How many there are.
        found: usize,
    },
    /// Two classes share a name, or one has that of the rest, `other`. Rename it.
    #[error("class name {name:?} is a duplicate or reserved")]
    ClassName {
        /// The name.
        name: String,
    },
}

/// Turns the frames of one point into observations.
#[derive(Clone, Debug)]
pub struct Observer {
    options: ObserverOptions,
    /// Neither filter nor classes look at packets.
    takes_all: bool,
    /// The filter or a class looks at the outermost header, which is not the one that is measured.
    needs_outermost: bool,
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
        let takes_all = options.filter.is_none() && classes.is_empty();
        let mut filters = classes.iter().map(|(_, filter)| filter).chain(&options.filter);
        let needs_outermost = !options.outer && filters.any(Filter::needs_outermost);
        Ok(Self { options, takes_all, needs_outermost })
    }

    /// What one point knows of one packet. `wire_length` is that of the whole frame, of which
    /// `frame` may be the beginning.
    ///
    /// # Errors
    ///
    /// The reason why the frame is not measured.
    #[inline(always)]
    pub fn observe<'a>(
        &self,
        link: LinkType,
        frame: impl Into<FrameBytes<'a>>,
        wire_length: u32,
        time: Timestamp,
    ) -> Result<Observation, Skip> {
        let frame = frame.into();
        let mut space = Space::default();
        let window = Window::of(frame, &mut space);
        match self.usual(link, frame, window) {
            Some(packet) => Ok(self.hashed(&packet, frame, window, time)),
            None => Ok(self.walked(link, frame, wire_length, time)?.0),
        }
    }

    /// As [`Observer::observe`], of frames that need no walk over their layers; `None` for others.
    #[inline(always)]
    pub fn observe_usual(
        &self,
        link: LinkType,
        frame: FrameBytes<'_>,
        time: Timestamp,
    ) -> Option<Observation> {
        let mut space = Space::default();
        let window = Window::of(frame, &mut space);
        let packet = self.usual(link, frame, window)?;
        Some(self.hashed(&packet, frame, window, time))
    }

    /// As [`Observer::observe`], with flow key and TCP fields.
    ///
    /// # Errors
    ///
    /// The reason why the frame is not measured.
    #[inline(always)]
    pub fn observe_detailed<'a>(
        &self,
        link: LinkType,
        frame: impl Into<FrameBytes<'a>>,
        wire_length: u32,
        time: Timestamp,
    ) -> Result<(Observation, Detail), Skip> {
        let frame = frame.into();
        let mut space = Space::default();
        let window = Window::of(frame, &mut space);
        let (observation, packet) = match self.usual(link, frame, window) {
            Some(packet) => (self.hashed(&packet, frame, window, time), packet),
            None => self.walked(link, frame, wire_length, time)?,
        };
        Ok((observation, packet.detail(frame.bytes())))
    }

    /// As [`Observer::observe`], with the parsed packet.
    ///
    /// # Errors
    ///
    /// The reason why the frame is not measured.
    #[inline(always)]
    pub fn observe_packet<'a>(
        &self,
        link: LinkType,
        frame: impl Into<FrameBytes<'a>>,
        wire_length: u32,
        time: Timestamp,
    ) -> Result<(Observation, Packet), Skip> {
        let frame = frame.into();
        let mut space = Space::default();
        let window = Window::of(frame, &mut space);
        match self.usual(link, frame, window) {
            Some(packet) => Ok((self.hashed(&packet, frame, window, time), packet)),
            None => {
                // Taken apart and rebuilt, so that usual packets, which need not have an
                // address for a call to write to, stay in registers.
                let (observation, packet) = self.walked(link, frame, wire_length, time)?;
                Ok((observation, packet))
            }
        }
    }

    /// The same without flow hashes, for callers that compute them where they are needed.
    #[must_use]
    pub const fn without_flow(mut self) -> Self {
        self.options.needs.flow = false;
        self
    }

    /// What is computed.
    #[must_use]
    pub const fn needs(&self) -> Needs {
        self.options.needs
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

    /// The packet of a frame that needs no walk, if no filter looks at packets.
    #[inline(always)]
    fn usual(&self, link: LinkType, frame: FrameBytes<'_>, window: Window<'_>) -> Option<Packet> {
        let is_quick = self.takes_all && link == LinkType::ETHERNET;
        if is_quick { usual(window, frame.bytes().len(), self.options.outer) } else { None }
    }

    /// Any frame: parsed, and skipped unless the filter selects it.
    #[inline(never)]
    fn walked(
        &self,
        link: LinkType,
        frame: FrameBytes<'_>,
        wire_length: u32,
        time: Timestamp,
    ) -> Result<(Observation, Packet), Skip> {
        let options = ParseOptions { outer: self.options.outer, wire_length: Some(wire_length) };
        let mut space = Space::default();
        let window = Window::of(frame, &mut space);
        let packet = parse_in(link, frame.bytes(), window, options)?;
        let outermost = match self.needs_outermost {
            true => parse_in(link, frame.bytes(), window, ParseOptions { outer: true, ..options })?,
            false => packet,
        };
        let headers = Headers { measured: &packet, outermost: &outermost };
        match &self.options.filter {
            Some(filter) if !filter.matches(headers) => return Err(Skip::Filtered),
            _ => {}
        }
        let class = self.class_of(headers);
        Ok((Observation { class, ..self.hashed(&packet, frame, window, time) }, packet))
    }

    /// All but the class, which is 0 without classes. In one straight line with parsing, so that
    /// packets need not be written to memory.
    #[inline(always)]
    fn hashed(
        &self,
        packet: &Packet,
        frame: FrameBytes<'_>,
        window: Window<'_>,
        time: Timestamp,
    ) -> Observation {
        let ObserverOptions { needs, digester, .. } = &self.options;
        let digest = match needs.digest {
            true => digester.digest_in(packet, frame.bytes(), window),
            false => PacketDigest::default(),
        };
        let flow = match needs.flow {
            true => digester.packet_flow_hash(packet),
            false => FlowHash::default(),
        };
        let group = if needs.group { digester.packet_group(packet) } else { GroupId::default() };
        Observation { time, digest, flow, length: packet.length(), class: ClassId(0), group }
    }

    fn class_of(&self, headers: Headers<'_>) -> ClassId {
        let classes = &self.options.classes;
        let index = classes.iter().position(|(_, filter)| filter.matches(headers));
        // CLASSES_MAX keeps it within 16 bits.
        ClassId(index.unwrap_or(classes.len()) as u16)
    }
}
