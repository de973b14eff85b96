use super::*;

fn written(sections: &[(u16, &[u8])]) -> Vec<u8> {
    let mut writer = SectionWriter::new(Vec::new()).unwrap();
    sections.iter().for_each(|(kind, content)| writer.add(*kind, content).unwrap());
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<(u16, Vec<u8>)>, SectionError> {
    let mut reader = SectionReader::new(bytes)?;
    let mut found = Vec::new();
    while let Some(Section { kind, content }) = reader.next()? {
        found.push((kind, content));
    }
    assert!(reader.next()?.is_none(), "what is over stays over");
    Ok(found)
}

#[track_caller]
fn check_refused(bytes: &[u8], problem: &str) {
    let error = read(bytes).unwrap_err().to_string();
    assert!(error.contains(problem), "{error}");
}

fn three() -> Vec<u8> {
    written(&[(1, b"first"), (7, &[9; 10_000]), (1, b"")])
}

#[test]
fn what_is_written_reads_back() {
    let expected = [(1, b"first".to_vec()), (7, vec![9; 10_000]), (1, Vec::new())];
    assert_eq!(read(&three()).unwrap(), expected);
    assert!(read(&written(&[])).unwrap().is_empty());
    assert!(three().len() < 1_000, "what repeats is packed");
}

#[test]
fn a_file_that_was_cut_anywhere_is_refused() {
    let whole = three();
    for length in 0..whole.len() {
        assert!(read(&whole[..length]).is_err(), "{length} of {} bytes", whole.len());
    }
    check_refused(&[whole.clone(), b"x".to_vec()].concat(), "bytes follow its end");
    check_refused(&whole[..20], "ends early");
}

#[test]
fn no_bit_can_change_unnoticed() {
    let whole = three();
    for bit in 0..8 * whole.len() {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&changed).is_err(), "bit {bit}");
    }
}

#[test]
fn sections_are_valid_in_their_place_only() {
    let whole = written(&[(1, b"aaaa"), (1, b"bbbb")]);
    let section = HEAD_BYTES + 4;
    let (one, other) = (HEADER_BYTES..HEADER_BYTES + section, HEADER_BYTES + section);
    let first = whole[one].to_vec();
    let second = whole[other..other + section].to_vec();
    let end = &whole[other + section..];
    let swapped = [&whole[..HEADER_BYTES], &second, &first, end].concat();
    check_refused(&swapped, "does not match");
    let without = [&whole[..HEADER_BYTES], &first, end].concat();
    check_refused(&without, "does not match");
}

#[test]
fn other_files_and_newer_ones_are_told_from_damage() {
    check_refused(b"", "not a bundle");
    check_refused(b"these are no sections", "not a bundle");
    let mut newer = three();
    newer[..HEADER_BYTES].copy_from_slice(&header_of(2));
    check_refused(&newer, "version 2 is newer than 1");
}

#[test]
fn a_head_that_promises_much_is_not_believed() {
    let head = |stored_bytes, raw_bytes, packing, stored: &[u8]| {
        let head = Head { kind: 1, packing, stored_bytes, raw_bytes, checksum: xxh3_64(stored) };
        [&header_of(VERSION)[..], &head.to_bytes(0), stored].concat()
    };
    let most = SECTION_BYTES_MAX as u32;
    check_refused(&head(most + 1, 0, Packing::None, b""), "head of a section");
    check_refused(&head(most, most, Packing::None, b"few"), "ends early");
    let bomb = zstd::bulk::compress(&vec![0; 2 * SECTION_BYTES_MAX], 3).unwrap();
    check_refused(&head(bomb.len() as u32, 1_000, Packing::Zstd, &bomb), "unpacked");
    check_refused(&head(bomb.len() as u32, most, Packing::Zstd, &bomb), "unpacked");
}

#[test]
fn what_does_not_fit_is_not_written() {
    let mut writer = SectionWriter::new(io::sink()).unwrap();
    let error = writer.add(1, &vec![0; SECTION_BYTES_MAX + 1]).unwrap_err();
    assert!(matches!(error, SectionError::TooLong { .. }), "{error}");
}
