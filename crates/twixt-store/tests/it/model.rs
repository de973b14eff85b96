//! Any records, any query: a scan finds what a list would.

use proptest::prelude::*;
use twixt_model::{Epoch, Span};
use twixt_store::{Depth, Durability, EpochEntry, Query};

use crate::support::{DAY, Folder, START, ask, span};

const POINTS: [&str; 2] = ["paris", "rome"];
const STREAMS: [&str; 3] = ["", "lda", "lds web"];

#[derive(Clone, Debug)]
struct Stored {
    point: &'static str,
    stream: &'static str,
    span: Span,
    epoch: i64,
    payload: Vec<u8>,
}

fn stored() -> impl Strategy<Value = Stored> {
    let time = START..START + 4 * DAY;
    let length = prop_oneof![0..DAY / 24, 0..3 * DAY];
    let payload = proptest::collection::vec(0..4_u8, 0..200);
    (0..2_usize, 0..3_usize, time, length, -3..3_i64, payload).prop_map(
        |(point, stream, start, length, epoch, payload)| Stored {
            point: POINTS[point],
            stream: STREAMS[stream],
            span: span(start, start + length),
            epoch,
            payload,
        },
    )
}

fn key(record: &Stored) -> (&'static str, i64) {
    (record.point, record.span.start.as_nanos().div_euclid(DAY))
}

proptest! {
    #![proptest_config(twixt_testing::cases(60))]

    #[test]
    fn a_scan_finds_what_a_list_would(
        records in proptest::collection::vec(stored(), 0..40),
        asked in (START - DAY..START + 6 * DAY, 0..2 * DAY),
        point in proptest::option::of(0..2_usize),
        stream in proptest::option::of(0..3_usize),
        lost_index in any::<bool>(),
    ) {
        let folder = Folder::new();
        std::fs::create_dir_all(folder.log.folder()).unwrap();
        let mut writers = POINTS.map(|point| folder.log.writer(point).unwrap());
        for record in &records {
            let Stored { stream, span, epoch, .. } = *record;
            let writer = &mut writers[usize::from(record.point == "rome")];
            let entry = EpochEntry { stream, span, epoch: Epoch(epoch) };
            writer.append(&entry, &record.payload, Durability::Written).unwrap();
        }
        drop(writers);
        if lost_index {
            let _ = std::fs::remove_file(folder.index());
        }
        let asked = span(asked.0, asked.0 + asked.1);
        let mut query = Query::between(asked);
        let mut expected: Vec<&Stored> = records.iter().filter(|record| {
            record.span.start <= asked.end && asked.start <= record.span.end
        }).collect();
        if let Some(point) = point {
            query = query.at_point(POINTS[point]);
            expected.retain(|record| record.point == POINTS[point]);
        }
        if let Some(stream) = stream {
            query = query.of_streams([STREAMS[stream]]);
            expected.retain(|record| record.stream == STREAMS[stream]);
        }
        expected.sort_by_key(|record| key(record));
        let (found, report) = ask(&folder.log, query.clone());
        prop_assert!(report.is_whole());
        prop_assert_eq!(found.len(), expected.len());
        for (record, stored) in found.iter().zip(expected) {
            prop_assert_eq!(&record.point, stored.point);
            prop_assert_eq!(&record.stream, stored.stream);
            prop_assert_eq!((record.span, record.epoch.0), (stored.span, stored.epoch));
            prop_assert_eq!(&record.payload, &stored.payload);
        }
        let (heads, _) = ask(&folder.log, query.to_depth(Depth::Heads));
        prop_assert_eq!(heads.len(), found.len());
    }
}
