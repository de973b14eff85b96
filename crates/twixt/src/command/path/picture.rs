//! A path as a picture: where its delay comes from, from segment to segment, and its loss.

use twixt_model::Estimate;

use super::Section;
use super::breakdown::Breakdown;
use crate::output::units;
use crate::plot::{Axis, Bar, Colour, Layer, Panel, Picture, Quantity, Shape};

const LINE: f64 = 30.0;

/// `None` if no mean is known.
pub(super) fn picture(
    sections: &[Section<'_>],
    total: &Section<'_>,
    breakdown: &Breakdown,
) -> Option<Picture> {
    let names: Vec<String> = sections.iter().chain([total]).map(name).collect();
    let panels = [waterfall(breakdown, &names), losses(breakdown, &names)];
    let panels: Vec<Panel> = panels.into_iter().flatten().collect();
    let packets = breakdown.total.as_ref().map_or(0, |whole| whole.evidence.packets);
    (!panels.is_empty()).then(|| Picture {
        title: format!(
            "Path from {} to {}",
            total.files.upstream.display(),
            total.files.downstream.display()
        ),
        subtitle: format!("{} from end to end", units::counted(packets, "packet", "packets")),
        panels,
    })
}

fn name(section: &Section<'_>) -> String {
    let base = |path: &std::path::Path| {
        path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    };
    format!("{} → {}", base(section.files.upstream), base(section.files.downstream))
}

/// Each segment begins where the one before it ended; the whole, as measured, is last.
fn waterfall(breakdown: &Breakdown, names: &[String]) -> Option<Panel> {
    let mean = |estimate: &Option<Estimate>| Some(estimate.as_ref()?.delay?.mean_ns());
    let mut reached = 0.0;
    let mut bars = Vec::new();
    let mut texts = Vec::new();
    for (line, segment) in breakdown.segments.iter().enumerate() {
        let Some(ns) = mean(segment) else { continue };
        bars.push(bar(line, reached, reached + ns));
        texts.push(text(line, reached.max(reached + ns), units::duration(ns)));
        reached += ns;
    }
    let last = breakdown.segments.len();
    let whole = mean(&breakdown.total);
    texts.extend(whole.map(|ns| text(last, ns.max(0.0), units::duration(ns))));
    let ends = bars.iter().flat_map(|bar: &Bar| [bar.x.0, bar.x.1]).chain(whole).chain([0.0]);
    let low = ends.clone().reduce(f64::min)?;
    let high = ends.reduce(f64::max)?;
    if bars.is_empty() {
        return None;
    }
    let whole: Vec<Bar> = whole.map(|ns| bar(last, 0.0, ns)).into_iter().collect();
    let mut layers = vec![
        Layer::new("segments, one after the other", Colour::Series(0), Shape::Bars(bars)),
        Layer::new("the whole, as measured", Colour::Series(2), Shape::Bars(whole)),
    ];
    layers.extend(texts);
    Some(Panel {
        title: "Mean delay".to_owned(),
        height: LINE * names.len() as f64,
        x: Axis::new("delay", Quantity::Duration, low, high + (high - low) * 0.15),
        y: Axis::names("", names.to_vec()),
        layers,
    })
}

fn losses(breakdown: &Breakdown, names: &[String]) -> Option<Panel> {
    let share = |estimate: &Option<Estimate>| {
        let evidence = estimate.as_ref()?.evidence;
        Some((evidence.lost? as f64 / evidence.packets.max(1) as f64, evidence.lost?))
    };
    let all = breakdown.segments.iter().chain([&breakdown.total]);
    let known: Vec<(usize, (f64, u64))> =
        all.enumerate().filter_map(|(line, estimate)| Some((line, share(estimate)?))).collect();
    let most = known.iter().map(|(_, (loss, _))| *loss).reduce(f64::max)?.max(0.001);
    let lossy = known.iter().filter(|(_, (_, lost))| *lost > 0);
    let bars = lossy.map(|&(line, (loss, _))| bar(line, 0.0, loss)).collect();
    let mut layers = vec![Layer::new("", Colour::Loss, Shape::Bars(bars))];
    layers.extend(known.iter().map(|&(line, (loss, lost))| {
        let shown =
            format!("{} ({})", units::counted(lost, "packet", "packets"), units::percent(loss));
        text(line, loss, if lost == 0 { "none".to_owned() } else { shown })
    }));
    Some(Panel {
        title: "Loss".to_owned(),
        height: LINE * names.len() as f64,
        x: Axis::new("lost", Quantity::Share, 0.0, most * 1.35),
        y: Axis::names("", names.to_vec()),
        layers,
    })
}

fn bar(line: usize, from: f64, to: f64) -> Bar {
    let middle = line as f64 + 0.5;
    Bar { x: (from, to), y: (middle - 0.35, middle + 0.35) }
}

fn text(line: usize, x: f64, text: String) -> Layer {
    Layer::new("", Colour::Grey, Shape::Text { x, y: line as f64 + 0.5, text })
}
