//! Records of options: what exporters say about themselves.

use super::counts::ReadCounts;
use super::stream::Stream;
use crate::bytes::number;
use crate::element::{self, Element, enterprise_element};
use crate::notice::SelectorNotice;

/// The fields of one options record that mean something to us.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OptionsDraft {
    notice: SelectorNotice,
    output: [Option<u64>; 2],
    selected: [Option<u64>; 2],
    packets: [Option<u64>; 2],
    started_ms: Option<u64>,
    describes_selector: bool,
}

impl OptionsDraft {
    /// Takes in one field.
    pub(super) fn field(&mut self, element: Element, bytes: &[u8], enterprise: u32) {
        let Some(value) = number(bytes) else { return };
        let notice = &mut self.notice;
        let known = match (element.enterprise, element.number) {
            (0, element::SYSTEM_INIT_MILLISECONDS) => {
                self.started_ms = Some(value);
                false
            }
            (0, element::SELECTOR_ID) => {
                notice.selector_id = value;
                false
            }
            (0, element::SELECTOR_ALGORITHM) => set(&mut notice.algorithm, value as u16),
            (0, element::HASH_IP_PAYLOAD_OFFSET) => set(&mut notice.payload_offset, value),
            (0, element::HASH_IP_PAYLOAD_SIZE) => set(&mut notice.payload_bytes, value),
            (0, element::HASH_OUTPUT_RANGE_MIN) => set(&mut self.output[0], value),
            (0, element::HASH_OUTPUT_RANGE_MAX) => set(&mut self.output[1], value),
            (0, element::HASH_SELECTED_RANGE_MIN) => set(&mut self.selected[0], value),
            (0, element::HASH_SELECTED_RANGE_MAX) => set(&mut self.selected[1], value),
            (0, element::HASH_INITIALISER_VALUE) => set(&mut notice.initialiser, value),
            (0, element::SELECTOR_PACKETS_OBSERVED) => set(&mut self.packets[0], value),
            (0, element::SELECTOR_PACKETS_SELECTED) => set(&mut self.packets[1], value),
            (
                0,
                element::SAMPLING_INTERVAL
                | element::SAMPLER_RANDOM_INTERVAL
                | element::SAMPLING_PACKET_INTERVAL,
            ) => set(&mut notice.interval, value),
            (owner, enterprise_element::SELECTOR_KEY_ID) if owner == enterprise => {
                set(&mut notice.key_id, value as u32)
            }
            _ => false,
        };
        self.describes_selector |= known;
    }

    /// Applies the record to the stream.
    pub(super) fn finish(mut self, stream: &mut Stream, counts: &mut ReadCounts) {
        counts.options_records += 1;
        if self.started_ms.is_some() {
            stream.started_ms = self.started_ms;
        }
        if self.describes_selector {
            self.notice.output = both(self.output);
            self.notice.selected = both(self.selected);
            self.notice.packets = both(self.packets);
            stream.notice(self.notice, counts);
        }
    }
}

fn set<T>(place: &mut Option<T>, value: T) -> bool {
    *place = Some(value);
    true
}

fn both([first, second]: [Option<u64>; 2]) -> Option<(u64, u64)> {
    first.zip(second)
}
