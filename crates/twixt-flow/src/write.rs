//! Writing flow records as IPFIX (RFC 7011).
//!
//! A [`FlowWriter`] is given records and hands out whole messages, each no longer than what carries
//! it may take. Templates come before the first record that needs them, and again as often as an
//! unreliable carrier asks for. Nothing here sends anything.

mod layout;
mod message;

#[cfg(test)]
mod tests;

pub use message::MESSAGE_BYTES_MIN;

use std::collections::{BTreeSet, VecDeque};

use twixt_model::{Delay, FlowKey, FlowRecord, Timestamp};

use crate::element::{EXAMPLE_ENTERPRISE, TimeUnit};
use crate::notice::SelectorNotice;
use layout::Layout;
use message::Message;

/// How to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterConfig {
    /// Observation domain.
    pub domain: u32,
    /// Enterprise number of our own elements.
    pub enterprise: u32,
    /// observationPointId of every record, if it shall have one.
    pub observation_point: Option<u32>,
    /// Whether records say their class.
    pub classes: bool,
    /// Write times no finer than this, for collectors that read nothing finer; as fine as they are
    /// if `None`.
    pub time_unit: Option<TimeUnit>,
    /// Bytes of a message at most; from [`MESSAGE_BYTES_MIN`] on.
    pub message_bytes_max: u16,
    /// Send templates again after so many messages; never if `None`.
    pub templates_every: Option<u32>,
}

impl WriterConfig {
    /// For files and TCP: long messages, templates once.
    pub const STREAM: Self = Self {
        domain: 0,
        enterprise: EXAMPLE_ENTERPRISE,
        observation_point: None,
        classes: false,
        time_unit: None,
        message_bytes_max: 16_384,
        templates_every: None,
    };

    /// For UDP: messages that fit a packet on any Ethernet, through a tunnel or two, and templates
    /// with every twentieth, for collectors that started late.
    pub const UDP: Self =
        Self { message_bytes_max: 1_400, templates_every: Some(20), ..Self::STREAM };
}

impl Default for WriterConfig {
    fn default() -> Self {
        Self::STREAM
    }
}

/// What became of the packets of a flow between two points, as a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayRecord {
    /// The directed flow.
    pub key: FlowKey,
    /// First packet that it is about, upstream.
    pub first: Timestamp,
    /// Last packet that it is about, upstream.
    pub last: Timestamp,
    /// Packets that it rests on.
    pub packets: u64,
    /// Mean delay.
    pub mean: Delay,
    /// Shortest and longest delay, if known.
    pub extremes: Option<(Delay, Delay)>,
}

/// Why something cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowWriteError {
    /// A message could not hold a template and a record. Allow longer messages.
    #[error("messages of {found} bytes, at least {MESSAGE_BYTES_MIN} are needed")]
    MessageBytes {
        /// How many were allowed.
        found: u16,
    },
    /// IPFIX cannot say the time: it lies outside 1970 to 2104. Correct the times of the capture.
    #[error("the time {nanoseconds} ns after 1970 cannot be written")]
    Time {
        /// The time.
        nanoseconds: i64,
    },
    /// IPFIX cannot say a negative delay, nor one beyond 71 minutes. Correct the clocks first.
    #[error("a delay of {nanoseconds} ns cannot be written")]
    Delay {
        /// The delay.
        nanoseconds: i64,
    },
    /// Source and destination are of different versions of IP.
    #[error("the addresses of the flow differ in IP version")]
    Addresses,
}

/// Writes records into messages. Take them with [`FlowWriter::poll`] after each record, and no more
/// than a few are ever held.
#[derive(Clone, Debug)]
pub struct FlowWriter {
    config: WriterConfig,
    message: Option<Message>,
    finished: VecDeque<Vec<u8>>,
    /// Data records in all messages so far.
    sequence: u32,
    /// Every layout that was used, and those sent to collectors since templates were last
    /// sent.
    used: BTreeSet<Layout>,
    announced: BTreeSet<Layout>,
    messages_since_templates: u32,
}

impl FlowWriter {
    /// A writer.
    ///
    /// # Errors
    ///
    /// If messages are too short.
    pub fn new(config: WriterConfig) -> Result<Self, FlowWriteError> {
        if config.message_bytes_max < MESSAGE_BYTES_MIN {
            return Err(FlowWriteError::MessageBytes { found: config.message_bytes_max });
        }
        Ok(Self {
            config,
            message: None,
            finished: VecDeque::new(),
            sequence: 0,
            used: BTreeSet::new(),
            announced: BTreeSet::new(),
            messages_since_templates: 0,
        })
    }

    /// Writes a record; `now` is the time of the message that holds it, on the meter's clock.
    ///
    /// # Errors
    ///
    /// If it says what IPFIX cannot. Nothing is written then.
    pub fn record(&mut self, record: &FlowRecord, now: Timestamp) -> Result<(), FlowWriteError> {
        let layout = Layout::of_record(record, &self.config)?;
        self.write(layout, &layout.record(record, &self.config)?, now)
    }

    /// Writes the delay of a flow.
    ///
    /// # Errors
    ///
    /// If it says what IPFIX cannot. Nothing is written then.
    pub fn delay(&mut self, delay: &DelayRecord, now: Timestamp) -> Result<(), FlowWriteError> {
        let layout = Layout::of_delay(delay)?;
        self.write(layout, &layout.delay(delay)?, now)
    }

    /// Writes how packets are selected, as an options record.
    ///
    /// # Errors
    ///
    /// If the time cannot be written.
    pub fn selector(
        &mut self,
        notice: &SelectorNotice,
        now: Timestamp,
    ) -> Result<(), FlowWriteError> {
        let layout = Layout::of_selector(notice);
        self.write(layout, &layout.selector(notice), now)
    }

    /// The next whole message.
    pub fn poll(&mut self) -> Option<Vec<u8>> {
        self.finished.pop_front()
    }

    /// Ends the message that is being filled, so that it can be sent.
    pub fn finish(&mut self) {
        if let Some(message) = self.message.take() {
            self.sequence = self.sequence.wrapping_add(message.records());
            self.finished.push_back(message.into_bytes());
            self.messages_since_templates += 1;
        }
    }

    fn write(
        &mut self,
        layout: Layout,
        record: &[u8],
        now: Timestamp,
    ) -> Result<(), FlowWriteError> {
        let seconds = now.as_nanos().div_euclid(1_000_000_000);
        let seconds = u32::try_from(seconds)
            .map_err(|_| FlowWriteError::Time { nanoseconds: now.as_nanos() })?;
        let template = layout.template(&self.config);
        // Room for the record, its set, and the template before it.
        let needed_bytes = record.len() + template.len() + 2 * message::SET_HEADER_BYTES;
        let full = |message: &Message| !message.has_room(needed_bytes);
        if self.message.as_ref().is_some_and(full) {
            self.finish();
        }
        if self.message.is_none() {
            self.begin(seconds);
        }
        let message = self.message.as_mut().expect("it was begun");
        message.set_time(seconds);
        if self.announced.insert(layout) {
            self.used.insert(layout);
            message.template(layout.set_number(), &template);
        }
        message.record(layout.template_number(), record);
        Ok(())
    }

    /// Begins a message, with all templates if it is time for them.
    fn begin(&mut self, seconds: u32) {
        let WriterConfig { domain, message_bytes_max, templates_every, .. } = self.config;
        let again = templates_every.is_some_and(|every| self.messages_since_templates >= every);
        let new = || Message::new(domain, usize::from(message_bytes_max));
        let mut message = new();
        message.start(seconds, self.sequence);
        if again {
            self.messages_since_templates = 0;
            for layout in &self.used {
                let template = layout.template(&self.config);
                if !message.has_room(template.len() + message::SET_HEADER_BYTES) {
                    self.finished.push_back(message.into_bytes());
                    message = new();
                    message.start(seconds, self.sequence);
                }
                message.template(layout.set_number(), &template);
            }
            // A record may need more than what the templates leave.
            if !message.has_room(usize::from(MESSAGE_BYTES_MIN) - message::HEADER_BYTES) {
                self.finished.push_back(message.into_bytes());
                message = new();
                message.start(seconds, self.sequence);
            }
        }
        self.message = Some(message);
    }
}
