//! A path as people and programs read it.

use serde::Serialize;
use twixt_model::Estimate;
use twixt_offline::ChosenAlgorithm;

use super::Section;
use super::breakdown::{Breakdown, Rest, Summand};
use crate::output::{SegmentDocument, SegmentsDocument, Table, UNKNOWN, counts, delays, units};

/// `twixt path -F json`: the shape of several segments, with what they do not explain.
#[derive(Serialize)]
pub(super) struct PathDocument {
    #[serde(flatten)]
    pub(super) segments: SegmentsDocument,
    pub(super) rest: RestDocument,
    pub(super) most: MostDocument,
}

/// What the whole has beyond the sum of the segments.
#[derive(Serialize)]
pub(super) struct RestDocument {
    mean_ns: Option<i64>,
    ci95_low_ns: Option<i64>,
    ci95_high_ns: Option<i64>,
    variance_ns2: Option<f64>,
    lost: Option<i64>,
}

/// The segments that added the most.
#[derive(Serialize)]
pub(super) struct MostDocument {
    delay: Option<ShareDocument>,
    variance: Option<ShareDocument>,
    loss: Option<ShareDocument>,
}

#[derive(Serialize)]
struct ShareDocument {
    #[serde(flatten)]
    segment: SegmentDocument,
    share: f64,
}

impl From<Rest> for RestDocument {
    fn from(rest: Rest) -> Self {
        let at = |sign: f64| Some((rest.mean_ns? + sign * rest.half_width_ns?).round() as i64);
        Self {
            mean_ns: rest.mean_ns.map(|mean_ns| mean_ns.round() as i64),
            ci95_low_ns: at(-1.0),
            ci95_high_ns: at(1.0),
            variance_ns2: rest.variance_ns2,
            lost: rest.lost,
        }
    }
}

impl MostDocument {
    pub(super) fn new(sections: &[Section<'_>], breakdown: &Breakdown) -> Self {
        let most = |part| {
            let (index, share) = breakdown.most(part)?;
            Some(ShareDocument { segment: sections[index].files.into(), share })
        };
        Self {
            delay: most(Summand::Delay),
            variance: most(Summand::Variance),
            loss: most(Summand::Loss),
        }
    }
}

/// A table of the segments, the whole and the rest, and who added the most.
pub(super) fn report(
    chosen: &ChosenAlgorithm,
    sections: &[Section<'_>],
    total: &Section<'_>,
    breakdown: &Breakdown,
) -> String {
    let mut report = format!("{}   ({})\n\n", name(total), chosen.algorithm.name);
    report += &table(sections, total, breakdown).to_string();
    report += "\n";
    let parts =
        [("delay", Summand::Delay), ("variance", Summand::Variance), ("loss", Summand::Loss)];
    for (what, part) in parts {
        report += &match breakdown.most(part) {
            Some((index, share)) => {
                let (name, share) = (name(&sections[index]), units::percent(share));
                format!("most of the {what:<9} {name} ({share})\n")
            }
            None => format!("most of the {what:<9} {UNKNOWN} {}\n", why_nobody(breakdown, part)),
        };
    }
    report + &reasons(sections, total, breakdown)
}

fn table(sections: &[Section<'_>], total: &Section<'_>, breakdown: &Breakdown) -> Table {
    let headings = [
        "segment",
        "packets",
        "used",
        "lost",
        "mean ± 95 %",
        "deviation",
        "of delay",
        "of variance",
        "of loss",
    ];
    let mut table = Table::new(&headings);
    for (index, (section, estimate)) in sections.iter().zip(&breakdown.segments).enumerate() {
        let mut cells = cells(name(section), estimate.as_ref());
        for part in [Summand::Delay, Summand::Variance, Summand::Loss] {
            let share = breakdown.share(index, part);
            cells.push(share.map_or_else(|| UNKNOWN.to_owned(), units::percent));
        }
        table.row(cells);
    }
    table.row(cells(format!("measured   {}", name(total)), breakdown.total.as_ref()));
    table.row(rest_cells(breakdown.rest()));
    table
}

fn cells(name: String, estimate: Option<&Estimate>) -> Vec<String> {
    let mut cells = vec![name];
    match estimate {
        Some(estimate) => {
            cells.extend(counts(estimate));
            cells.extend(delays(estimate));
        }
        None => cells.extend(std::iter::repeat_n(UNKNOWN.to_owned(), 5)),
    }
    cells
}

/// The deviation of the rest is that whose square the variances lack, or have too much.
fn rest_cells(rest: Rest) -> Vec<String> {
    let unknown = || UNKNOWN.to_owned();
    let mean = match (rest.mean_ns, rest.half_width_ns) {
        (None, _) => unknown(),
        (Some(mean), Some(0.0)) => units::duration(mean),
        (Some(mean), Some(half)) => {
            format!("{} ± {}", units::duration(mean), units::duration(half))
        }
        (Some(mean), None) => format!("{} ± ?", units::duration(mean)),
    };
    let deviation =
        rest.variance_ns2.map(|variance| units::duration(variance.abs().sqrt().copysign(variance)));
    vec![
        "unexplained rest".to_owned(),
        String::new(),
        String::new(),
        rest.lost.map_or_else(unknown, |lost| lost.to_string()),
        mean,
        deviation.unwrap_or_else(unknown),
    ]
}

fn name(section: &Section<'_>) -> String {
    let files = &section.files;
    format!("{} → {}", files.upstream.display(), files.downstream.display())
}

fn why_nobody(breakdown: &Breakdown, part: Summand) -> &'static str {
    match breakdown.sum(part) {
        None => "unknown for some segments",
        Some(0.0) => "there is none",
        Some(_) => "a negative delay is due to clocks, and has no share",
    }
}

/// Why something is not known.
fn reasons(sections: &[Section<'_>], total: &Section<'_>, breakdown: &Breakdown) -> String {
    let all = sections.iter().zip(&breakdown.segments).chain([(total, &breakdown.total)]);
    let line = |(section, estimate): (&Section<'_>, &Option<Estimate>)| {
        let reason = estimate.as_ref()?.reason.as_ref()?;
        Some(format!("{UNKNOWN} {}: {reason}\n", name(section)))
    };
    all.filter_map(line).collect()
}
