//! Writes the files of `seeds/`. Run it when a format gets a new version, and keep the old files.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use twixt_capture::PcapWriter;
use twixt_flow::{FlowWriter, SelectorNotice, WriterConfig};
use twixt_fuzz::LINK_TYPES;
use twixt_measure::{FILE_HEADER, Meter, MeterConfig, frame_record};
use twixt_model::{
    Batch, ClassId, Epoch, EpochRule, FlowEnd, FlowHash, FlowRecord, Observation, PacketDigest,
    PointId, Span, Timestamp,
};
use twixt_store::{Durability, EpochEntry, Log, Options, Section, SectionReader};
use twixt_synopsis::{Lda, LdaConfig, Synopsis};
use twixt_wire::LinkType;

const HEADER_BYTES: usize = 5;
const CHECKSUM_BYTES: usize = 8;
/// State of a seed's synopsis.
const SYNOPSIS_BYTES: u64 = 512;

fn main() -> io::Result<()> {
    bundles()?;
    captures()?;
    filters()?;
    frames()?;
    logs()?;
    messages()?;
    records()?;
    synopses()?;
    topologies()
}

fn write(target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

/// A released bundle as it is, and its sections apart, so that they can be changed.
fn bundles() -> io::Result<()> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/golden/bundle-v1.twxb");
    let bundle = fs::read(golden)?;
    write("bundle", "accepted-file.twxb", &bundle)?;
    write("bundle", "refused-cut.twxb", &bundle[..bundle.len() / 2])?;
    let mut reader = SectionReader::new(bundle.as_slice()).map_err(io::Error::other)?;
    let mut apart = Vec::new();
    while let Some(Section { kind, content }) = reader.next().map_err(io::Error::other)? {
        // Epochs are fuzzed by themselves; without them the seed is short.
        let (Ok(length), true) = (u16::try_from(content.len()), kind <= 3) else { continue };
        apart.push(kind as u8);
        apart.extend_from_slice(&length.to_le_bytes());
        apart.extend_from_slice(&content);
    }
    write("bundle", "accepted-sections", &apart)
}

fn captures() -> io::Result<()> {
    let mut writer = PcapWriter::new(Vec::new(), 1, 96).map_err(io::Error::other)?;
    for time_ns in [1_700_000_000_123_456_789, 1_700_000_001_000_000_000] {
        let frame = ethernet_udp();
        writer
            .write(Timestamp::from_nanos(time_ns), &frame, frame.len() as u32)
            .map_err(io::Error::other)?;
    }
    let pcap = writer.into_inner();
    write("capture", "accepted-nanoseconds.pcap", &pcap)?;
    write("capture", "accepted-cut.pcap", &pcap[..pcap.len() - 10])?;
    write("capture", "accepted-interfaces.pcapng", &pcapng())?;
    write("capture", "accepted-zstd.pcap.zst", &zstd::encode_all(pcap.as_slice(), 3)?)?;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&pcap)?;
    write("capture", "accepted-gzip.pcap.gz", &gzip.finish()?)?;
    write("capture", "refused-text.txt", b"these are no packets")
}

/// Section header, interface with nanoseconds, enhanced packet, simple packet, statistics.
fn pcapng() -> Vec<u8> {
    let frame = ethernet_udp();
    let length = (frame.len() as u32).to_le_bytes();
    let padding = vec![0; frame.len().next_multiple_of(4) - frame.len()];
    let time = 1_700_000_000_123_456_789_u64;
    let (high, low) = (((time >> 32) as u32).to_le_bytes(), (time as u32).to_le_bytes());
    let section = [&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat();
    let nanoseconds = [9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    let interface = [&[1, 0, 0, 0, 0, 0, 4, 0][..], &nanoseconds].concat();
    let enhanced = [&[0; 4], &high, &low, &length, &length, frame.as_slice(), &padding].concat();
    let simple = [&length, frame.as_slice(), &padding].concat();
    let statistics = [&[0; 4][..], &high, &low, &[5, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]];
    [
        block(0x0a0d_0d0a, &section),
        block(1, &interface),
        block(6, &enhanced),
        block(3, &simple),
        block(5, &statistics.concat()),
    ]
    .concat()
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes(), &length, body, &length].concat()
}

fn filters() -> io::Result<()> {
    let accepted = [
        ("ports", "tcp dst port 80 or 443 and not src portrange 1000-2000"),
        ("networks", "(src net 10.0.0.0/8 && dst host 2001:db8::1) || !(vlan 5 or mpls)"),
        ("fields", "ip6 and dscp ef and less 100 and greater 40 and proto 47 or icmp"),
    ];
    for (name, text) in accepted {
        write("filter", &format!("accepted-{name}.txt"), text.as_bytes())?;
    }
    write("filter", "refused-unfinished.txt", b"(host 10.0.0.1 and")
}

fn frames() -> io::Result<()> {
    let plain = ethernet_udp();
    let tcp =
        [&[157, 120, 1, 187, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x18, 4, 0, 0, 0, 0, 0], &b"hello"[..]];
    let tagged = [&[0, 5, 0x86, 0xdd], ipv6(6, &tcp.concat()).as_slice()].concat();
    let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0], plain.as_slice()].concat();
    let cases = [
        ("udp", LinkType::ETHERNET, plain.clone()),
        ("vlan-ipv6-tcp", LinkType::ETHERNET, ethernet(0x8100, &tagged)),
        ("echo", LinkType::RAW, ipv4(1, &[8, 0, 0, 0, 0, 1, 0, 2])),
        ("vxlan", LinkType::ETHERNET, ethernet(0x0800, &ipv4(17, &udp(4789, &vxlan)))),
    ];
    for (name, link, frame) in cases {
        write("frame", &format!("accepted-{name}.bin"), &input(link, &frame))?;
    }
    write("frame", "refused-cut.bin", &input(LinkType::ETHERNET, &plain[..30]))
}

fn input(link: LinkType, frame: &[u8]) -> Vec<u8> {
    let index = LINK_TYPES.iter().position(|&known| known == link).expect("it is in the list");
    [&[index as u8, 0, 0], frame].concat()
}

fn ethernet_udp() -> Vec<u8> {
    ethernet(0x0800, &ipv4(17, &udp(1234, b"hello")))
}

fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12], &ether_type.to_be_bytes()[..], payload].concat()
}

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let header = [0x45, 0, high, low, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&header, payload].concat()
}

fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, high, low, next_header, 64], &[0x20; 32][..], payload].concat()
}

fn udp(destination_port: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let fields = [53, destination_port, length, 0].map(u16::to_be_bytes);
    [fields.as_flattened(), payload].concat()
}

/// A day of two records, with its index, without, and cut.
fn logs() -> io::Result<()> {
    let folder = std::env::temp_dir().join(format!("twixt-seeds-{}", std::process::id()));
    let log = Log::open(&folder, Options::default());
    let mut writer = log.writer("paris").map_err(io::Error::other)?;
    for (epoch, payload) in [(1, &b"short"[..]), (2, &[7; 100])] {
        let span = Span::at(Timestamp::from_nanos(epoch));
        let entry = EpochEntry { stream: "lda", span, epoch: Epoch(epoch) };
        writer.append(&entry, payload, Durability::Written).map_err(io::Error::other)?;
    }
    let data = fs::read(folder.join("paris/1970-01-01.twxl"))?;
    let index = fs::read(folder.join("paris/1970-01-01.twxi"))?;
    fs::remove_dir_all(&folder)?;
    let index_bytes = (index.len() as u16).to_le_bytes();
    let cut = &data[..data.len() - 5];
    write("log", "accepted-indexed.bin", &[&index_bytes, &data[..], &index].concat())?;
    write("log", "accepted-cut.bin", &[&[0, 0], cut].concat())?;
    write("log", "accepted-index-of-more.bin", &[&index_bytes, cut, &index].concat())?;
    write("log", "refused-header.bin", &[&[0, 0], &data[..16]].concat())
}

fn messages() -> io::Result<()> {
    let rule = EpochRule::every(1_000_000_000).expect("the length is positive");
    let config = MeterConfig::new(PointId("paris".to_owned()), rule);
    let mut meter = Meter::new(config, Box::new(small_lda())).map_err(io::Error::other)?;
    meter.observe(Batch::of(&observations()));
    meter.advance(Timestamp::from_nanos(3_000_000_000));
    let sealed = meter.poll().expect("the first epoch is over").to_bytes();
    let fields = &sealed[HEADER_BYTES..sealed.len() - CHECKSUM_BYTES];
    let synopsis_field_bytes = 4 + twixt_synopsis::encode(&small_lda()).len();
    let record = frame_record(&sealed).map_err(io::Error::other)?;
    let file = [&FILE_HEADER, record.as_slice(), &record, &record[..9]].concat();
    write("message", "accepted-sealed.bin", &sealed)?;
    write("message", "accepted-body.bin", fields)?;
    write("message", "accepted-fields.bin", &fields[..fields.len() - synopsis_field_bytes])?;
    write("message", "accepted-file.bin", &file)?;
    write("message", "refused-header.bin", &FILE_HEADER)
}

/// Exports of each version, alone and one after another.
fn records() -> io::Result<()> {
    let ipfix = ipfix()?;
    let netflow9 = netflow9();
    let netflow5 = netflow5();
    let prefixed = |message: &[u8]| [&(message.len() as u16).to_be_bytes(), message].concat();
    let several = [&ipfix, &netflow9, &netflow5, &ipfix].map(|message| prefixed(message));
    write("records", "accepted-ipfix.bin", &ipfix)?;
    write("records", "accepted-netflow9.bin", &netflow9)?;
    write("records", "accepted-netflow5.bin", &netflow5)?;
    write("records", "accepted-several.bin", &several.concat())?;
    write("records", "accepted-stream.bin", &[&ipfix[..], &ipfix, &ipfix[..9]].concat())?;
    write("records", "refused-version.bin", &[0, 8, 0, 1, 0, 0])?;
    write("records", "refused-cut.bin", &ipfix[..40])
}

fn ipfix() -> io::Result<Vec<u8>> {
    let record = FlowRecord {
        key: "tcp 10.0.0.1:5000 > 10.0.1.9:443".parse().map_err(io::Error::other)?,
        class: ClassId(1),
        first: Timestamp::from_nanos(1_700_000_000_123_456_789),
        last: Timestamp::from_nanos(1_700_000_001_000_000_000),
        packets: 7,
        bytes: 700,
        tcp_flags: 0x1b,
        first_label: Some(PacketDigest(1)),
        last_label: Some(PacketDigest(2)),
        end: FlowEnd::Idle,
        resolution_ns: 1,
    };
    let v6 = "udp [2001:db8::1]:1 > [2001:db8::2]:2".parse().map_err(io::Error::other)?;
    let mut writer = FlowWriter::new(WriterConfig { classes: true, ..WriterConfig::STREAM })
        .map_err(io::Error::other)?;
    let notice =
        SelectorNotice { algorithm: Some(6), packets: Some((9, 1)), ..SelectorNotice::default() };
    writer.selector(&notice, record.last).map_err(io::Error::other)?;
    for record in [record, FlowRecord { key: v6, first_label: None, ..record }] {
        writer.record(&record, record.last).map_err(io::Error::other)?;
    }
    writer.finish();
    Ok(writer.poll().expect("there are records"))
}

/// A template with uptimes, options with a sampling interval, and a record of each.
fn netflow9() -> Vec<u8> {
    let words = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let set = |number: u16, body: Vec<u8>| {
        [&number.to_be_bytes()[..], &(body.len() as u16 + 4).to_be_bytes(), &body].concat()
    };
    let header = [9 << 16 | 4, 60_000, 1_700_000_000, 1, 0_u32].map(u32::to_be_bytes).concat();
    let fields: Vec<u8> = words(&[256, 7, 8, 4, 12, 4, 4, 1, 2, 4, 1, 4, 22, 4, 21, 4]);
    let options: Vec<u8> = words(&[257, 4, 4, 1, 4, 34, 4]);
    let numbers = [7, 700, 50_000, 59_000_u32].map(u32::to_be_bytes).concat();
    let flow = [&[10, 0, 0, 1, 10, 0, 1, 9, 17][..], &numbers].concat();
    let said = [0, 100_u32].map(u32::to_be_bytes).concat();
    [header, set(0, fields), set(1, options), set(256, flow), set(257, said)].concat()
}

fn netflow5() -> Vec<u8> {
    let header = [5 << 16 | 1, 60_000, 1_700_000_000, 5, 1, 100_u32].map(u32::to_be_bytes).concat();
    let flow = [0x0a00_0001, 0x0a00_0109, 0, 0, 7, 700, 50_000, 59_000, 0x0035_1388_u32];
    [&header[..], &flow.map(u32::to_be_bytes).concat(), &[0, 0x18, 6, 0], &[0; 8]].concat()
}

/// One of each algorithm, as small as it can be of use.
fn synopses() -> io::Result<()> {
    for algorithm in twixt_synopsis::ALGORITHMS {
        let settings = (algorithm.sized)(SYNOPSIS_BYTES).unwrap_or_default();
        let mut synopsis = (algorithm.start)(&settings).map_err(io::Error::other)?;
        synopsis.update_batch(Batch::of(&observations()));
        let encoded = twixt_synopsis::encode(synopsis.as_ref());
        let body = &encoded[HEADER_BYTES..encoded.len() - CHECKSUM_BYTES];
        // Several purposes have an algorithm of one name.
        let name = match algorithm.purpose {
            twixt_synopsis::Purpose::Delay => algorithm.name.to_owned(),
            purpose => format!("{}-{}", purpose.name(), algorithm.name),
        };
        write("synopsis", &format!("accepted-{name}.bin"), &encoded)?;
        write("synopsis", &format!("accepted-{name}-body.bin"), body)?;
        write("synopsis", &format!("refused-{name}-cut.bin"), &encoded[..encoded.len() - 1])?;
    }
    Ok(())
}

/// A small network in every format.
fn topologies() -> io::Result<()> {
    let rocketfuel = "# both ways\na b 2.5\nb a 2.5\nb c 1\nc b 1\na c 3.5\n";
    let json = r#"{"directed": false, "routers": ["a", "b", "c"],
        "links": [{"from": "a", "to": "b", "weight": 2.5}, {"from": "b", "to": "c"}]}"#;
    let gml = r#"graph [ directed 0 node [ id 0 label "M&#252;nchen" x [ y 1 ] ] node [ id 1 ]
        edge [ source 0 target 1 weight 0.5 ] ]"#;
    let graphml = r#"<graphml><key id="k" for="edge" attr.name="weight"><default>2</default></key>
        <key id="n" for="node" attr.name="label"/><graph edgedefault="undirected">
        <node id="a"><data key="n">&#65;&amp;</data></node><node id="b"/>
        <edge source="a" target="b" directed="true"><data key="k">1.5</data></edge></graph></graphml>"#;
    write("topology", "accepted-weights.intra", rocketfuel.as_bytes())?;
    write("topology", "accepted-network.json", json.as_bytes())?;
    write("topology", "accepted-network.gml", gml.as_bytes())?;
    write("topology", "accepted-network.graphml", graphml.as_bytes())?;
    write("topology", "refused-cut.gml", &gml.as_bytes()[..60])?;
    write("topology", "refused-cut.graphml", &graphml.as_bytes()[..200])
}

fn small_lda() -> Lda {
    Lda::new(&LdaConfig::new(4, &[1.0, 0.5]).expect("the sizes are valid"))
}

/// A few packets, the first near an epoch's start.
fn observations() -> Vec<Observation> {
    let seen = |packet: u64| Observation {
        time: Timestamp::from_nanos(packet as i64 * 250_000_000),
        digest: PacketDigest(packet.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        flow: FlowHash(packet % 2),
        length: 100,
        ..Observation::default()
    };
    (0..4).map(seen).collect()
}
