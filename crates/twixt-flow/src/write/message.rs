//! One message in the making: header, sets, and their lengths.

/// Messages must hold a template and a record of any kind: the longest are those of IPv6 with
/// labels, class and point, 72 and 94 bytes, beside a header of 16 and two of sets.
pub const MESSAGE_BYTES_MIN: u16 = 256;

pub(super) const HEADER_BYTES: usize = 16;
pub(super) const SET_HEADER_BYTES: usize = 4;
const VERSION: u16 = 10;

/// A message that is being filled.
#[derive(Clone, Debug)]
pub(super) struct Message {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// Number and place of the set that is being filled.
    set: Option<(u16, usize)>,
    records: u32,
}

impl Message {
    pub(super) fn new(domain: u32, bytes_max: usize) -> Self {
        let mut bytes = Vec::with_capacity(bytes_max);
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.extend_from_slice(&[0; 10]); // length, time, sequence
        bytes.extend_from_slice(&domain.to_be_bytes());
        Self { bytes, bytes_max, set: None, records: 0 }
    }

    pub(super) fn start(&mut self, seconds: u32, sequence: u32) {
        self.set_time(seconds);
        self.bytes[8..12].copy_from_slice(&sequence.to_be_bytes());
    }

    pub(super) fn set_time(&mut self, seconds: u32) {
        self.bytes[4..8].copy_from_slice(&seconds.to_be_bytes());
    }

    /// Data records so far.
    pub(super) const fn records(&self) -> u32 {
        self.records
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= self.bytes_max
    }

    /// Adds a template to a set of that number.
    pub(super) fn template(&mut self, set: u16, template: &[u8]) {
        self.open(set);
        self.bytes.extend_from_slice(template);
    }

    /// Adds a record to a set of that number.
    pub(super) fn record(&mut self, set: u16, record: &[u8]) {
        self.open(set);
        self.bytes.extend_from_slice(record);
        self.records += 1;
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.close();
        let length = u16::try_from(self.bytes.len()).expect("the room is 16 bits of bytes");
        self.bytes[2..4].copy_from_slice(&length.to_be_bytes());
        self.bytes
    }

    fn open(&mut self, set: u16) {
        if self.set.is_some_and(|(open, _)| open == set) {
            return;
        }
        self.close();
        self.set = Some((set, self.bytes.len()));
        self.bytes.extend_from_slice(&set.to_be_bytes());
        self.bytes.extend_from_slice(&[0; 2]);
    }

    fn close(&mut self) {
        let Some((_, at)) = self.set.take() else { return };
        let length = u16::try_from(self.bytes.len() - at).expect("a set is within its message");
        self.bytes[at + 2..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}
