//! A request that waits for its response, and what may happen to it meanwhile.

use twixt_model::{ClassId, RoundTripKind, Timestamp};

use super::event::{FLIGHT_NS, Repeat, Variant, is_reused, repeat};

/// A request, as stores take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number that its response has too.
    pub id: u64,
    /// What it asks for.
    pub kind: RoundTripKind,
    /// When it passed.
    pub time: Timestamp,
    /// Its class of traffic.
    pub class: ClassId,
    /// Which way it went, of two.
    pub canonical: bool,
    /// Tells it from another request of this number.
    pub variant: Variant,
}

/// What a store did with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It waits for its response.
    Kept,
    /// It does not: the coin, or the table, was against it.
    Refused,
    /// It waits already.
    Repeated,
    /// It was sent again: its response will not count.
    Poisoned,
}

/// A response that met its request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// When the request passed.
    pub asked: Timestamp,
    /// How many round trips this one stands for.
    pub weight: f64,
    /// The request's class of traffic.
    pub class: ClassId,
    /// Which way the request went, of two.
    pub canonical: bool,
}

/// A request that waits: 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    id: u64,
    asked: Timestamp,
    /// A counter of the store when it came in.
    pub(super) stamp: u32,
    class: ClassId,
    /// The lower half is VACANT or an index in RoundTripKind::ALL. The upper half is the variant of
    /// the request or, of a handshake, whether it was relayed.
    kind: u8,
    /// The lowest three bits say what happened to it, the others belong to the store.
    marks: u8,
}

const _: () = assert!(size_of::<Entry>() == 24, "documentation and sizing count on it");

const VACANT: u8 = 0x0f;
const _: () = assert!(RoundTripKind::ALL.len() < VACANT as usize, "an index fits four bits");
const VARIANT_SHIFT: u8 = 4;
const RELAYED: u8 = 1 << VARIANT_SHIFT;
const POISONED: u8 = 1;
const ANSWERED: u8 = 2;
const CANONICAL: u8 = 4;
const NOTE_SHIFT: u8 = 3;
/// Largest note that a store can leave on an entry.
pub(super) const NOTE_MAX: u8 = u8::MAX >> NOTE_SHIFT;

impl Entry {
    /// A free entry.
    pub(super) const EMPTY: Self = Self {
        id: 0,
        asked: Timestamp::from_nanos(0),
        stamp: 0,
        class: ClassId(0),
        kind: VACANT,
        marks: 0,
    };

    /// Of a request; `note` is the store's own.
    #[inline]
    pub(super) fn new(request: &Request, stamp: u32, note: u8) -> Self {
        Self {
            id: request.id,
            asked: request.time,
            stamp,
            class: request.class,
            kind: request.kind as u8 | request.variant.bits() << VARIANT_SHIFT,
            marks: note << NOTE_SHIFT | if request.canonical { CANONICAL } else { 0 },
        }
    }

    /// Whether it is a request of that number.
    #[inline]
    pub(super) const fn is(&self, id: u64) -> bool {
        self.id == id && !self.is_vacant()
    }

    /// What it asks for; `None` if it is free.
    pub(super) fn kind(&self) -> Option<RoundTripKind> {
        RoundTripKind::ALL.get(usize::from(self.kind & VACANT)).copied()
    }

    const fn is_vacant(&self) -> bool {
        self.kind & VACANT == VACANT
    }

    const fn variant(&self) -> Variant {
        Variant::from_bits(self.kind >> VARIANT_SHIFT)
    }

    /// Whether no request waits here.
    pub(super) const fn is_idle(&self) -> bool {
        self.is_vacant() || self.marks & ANSWERED != 0
    }

    /// How long it has waited.
    pub(super) fn age_ns(&self, now: Timestamp) -> i64 {
        (now - self.asked).as_nanos()
    }

    /// What the store left.
    pub(super) const fn note(&self) -> u8 {
        self.marks >> NOTE_SHIFT
    }

    /// The same request again. It keeps its place, whatever becomes of it: no insertion.
    pub(super) fn meet(&mut self, request: &Request, stamp: u32, note: u8) -> Asked {
        if self.marks & ANSWERED != 0 {
            if !is_reused(request.kind) {
                return Asked::Repeated;
            }
            *self = Self::new(request, stamp, note);
            return Asked::Kept;
        }
        match repeat(request.kind) {
            Repeat::Renew if self.variant() != request.variant => {
                *self = Self::new(request, stamp, note);
                Asked::Kept
            }
            Repeat::Ignore | Repeat::Renew => Asked::Repeated,
            Repeat::Flight if self.age_ns(request.time) <= FLIGHT_NS => Asked::Repeated,
            Repeat::Flight | Repeat::Poison => {
                self.marks |= POISONED;
                Asked::Poisoned
            }
        }
    }

    /// The other side has seen it. If that happens twice, its response may be to either.
    pub(super) const fn relay(&mut self) {
        if self.kind & RELAYED != 0 && self.marks & ANSWERED == 0 {
            self.marks |= POISONED;
        }
        self.kind |= RELAYED;
    }

    /// Its response came, at a time that says nothing.
    pub(super) const fn spoil(&mut self) {
        self.marks |= ANSWERED | POISONED;
    }

    /// Its response came: when it was asked, unless it was answered before, or that is unknown, or
    /// it had to be relayed and was not.
    pub(super) fn answer(&mut self, weight: f64) -> Option<Answer> {
        let relayed = self.kind() != Some(RoundTripKind::TcpHandshake) || self.kind & RELAYED != 0;
        let usable = relayed && self.marks & (ANSWERED | POISONED) == 0;
        self.marks |= ANSWERED;
        usable.then_some(Answer {
            asked: self.asked,
            weight,
            class: self.class,
            canonical: self.marks & CANONICAL != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: RoundTripKind, at_ns: i64) -> Request {
        let time = Timestamp::from_nanos(at_ns);
        let variant = Variant::default();
        Request { id: 1, kind, time, class: ClassId(3), canonical: true, variant }
    }

    #[track_caller]
    fn check(kind: RoundTripKind, again_after_ns: i64, expected: Asked, asked_ns: Option<i64>) {
        let mut entry = Entry::new(&request(kind, 0), 9, 5);
        assert_eq!(entry.meet(&request(kind, again_after_ns), 0, 0), expected);
        let answer = entry.answer(2.0);
        assert_eq!(answer.map(|answer| answer.asked.as_nanos()), asked_ns);
        assert_eq!((entry.note(), entry.stamp), (5, 9));
        assert_eq!(entry.answer(2.0), None, "the second answer");
    }

    #[test]
    fn what_is_sent_again_is_ambiguous_where_that_matters() {
        check(RoundTripKind::TcpSequence, 10, Asked::Poisoned, None);
        check(RoundTripKind::Dns, 10, Asked::Poisoned, None);
        check(RoundTripKind::TcpTimestamp, 10, Asked::Repeated, Some(0));
        check(RoundTripKind::TcpDuration, 10, Asked::Repeated, Some(0));
        check(RoundTripKind::QuicHandshake, FLIGHT_NS, Asked::Repeated, Some(0));
        check(RoundTripKind::QuicHandshake, FLIGHT_NS + 1, Asked::Poisoned, None);
    }

    #[test]
    fn a_handshake_is_relayed_once() {
        let request = request(RoundTripKind::TcpHandshake, 7);
        let answered = |relays: u8| {
            let mut entry = Entry::new(&request, 0, 0);
            (0..relays).for_each(|_| entry.relay());
            entry.answer(1.0).map(|answer| answer.asked.as_nanos())
        };
        assert_eq!([answered(0), answered(1), answered(2)], [None, Some(7), None]);
        let mut spoiled = Entry::new(&request, 0, 0);
        spoiled.relay();
        spoiled.spoil();
        assert_eq!(spoiled.answer(1.0), None);
    }

    #[test]
    fn a_connection_that_never_ended_gives_way_to_the_next() {
        let of = |name: u32, at_ns| {
            let variant = Variant::of(name);
            Request { variant, ..request(RoundTripKind::TcpDuration, at_ns) }
        };
        let other = (1..).find(|&name| Variant::of(name) != Variant::of(0)).unwrap();
        let mut entry = Entry::new(&of(0, 0), 0, 0);
        assert_eq!(entry.meet(&of(0, 5), 0, 0), Asked::Repeated);
        assert_eq!(entry.meet(&of(other, 9), 0, 0), Asked::Kept);
        assert_eq!(entry.answer(1.0).unwrap().asked.as_nanos(), 9);
    }

    #[test]
    fn an_answered_number_is_used_again_by_some() {
        let mut entry = Entry::new(&request(RoundTripKind::Dns, 0), 0, 0);
        entry.answer(1.0);
        assert_eq!(entry.meet(&request(RoundTripKind::Dns, 50), 0, 0), Asked::Kept);
        assert_eq!(entry.answer(1.0).unwrap().asked.as_nanos(), 50);
        let mut entry = Entry::new(&request(RoundTripKind::TcpTimestamp, 0), 0, 0);
        entry.answer(1.0);
        assert_eq!(entry.meet(&request(RoundTripKind::TcpTimestamp, 50), 0, 0), Asked::Repeated);
        assert_eq!(entry.answer(1.0), None);
    }
}
