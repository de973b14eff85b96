//! Counts of the few cells that have more packets or bytes than a cell can count.

/// A table of bounded size, by cell.
#[derive(Clone, Debug)]
pub(super) struct Escapes {
    entries: Vec<Escape>,
    most: usize,
    /// Counts that were lost since the table was full.
    pub(super) refused: u64,
}

/// What is to be added to the counts of a cell, modulo 2^64.
#[derive(Clone, Copy, Debug)]
struct Escape {
    cell: u32,
    packets: u64,
    bytes: u64,
}

impl Escapes {
    /// Bytes of an entry.
    pub(super) const BYTES: usize = size_of::<Escape>();

    pub(super) fn new(most: usize) -> Self {
        Self { entries: Vec::with_capacity(most), most, refused: 0 }
    }

    /// Packets and bytes of a cell beyond what it counts itself.
    #[inline]
    pub(super) fn of(&self, cell: usize) -> (u64, u64) {
        if self.entries.is_empty() {
            return (0, 0);
        }
        let found = self.find(cell).map(|at| &self.entries[at]);
        found.map_or((0, 0), |entry| (entry.packets, entry.bytes))
    }

    /// Adds to the counts of a cell. If there is no room, that is counted.
    pub(super) fn add(&mut self, cell: usize, packets: u64, bytes: u64) {
        match self.find(cell) {
            Ok(at) => {
                let entry = &mut self.entries[at];
                entry.packets = entry.packets.wrapping_add(packets);
                entry.bytes = entry.bytes.wrapping_add(bytes);
            }
            Err(at) if self.entries.len() < self.most => {
                self.entries.insert(at, Escape { cell: cell as u32, packets, bytes });
            }
            Err(_) => self.refused = self.refused.saturating_add(1),
        }
    }

    pub(super) fn remove(&mut self, cell: usize) {
        if let Ok(at) = self.find(cell) {
            self.entries.remove(at);
        }
    }

    fn find(&self, cell: usize) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&cell, |entry| entry.cell as usize)
    }
}
