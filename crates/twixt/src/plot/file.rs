//! Pictures as files.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use kuva::backend::png::PngBackend;
use kuva::backend::svg::SvgBackend;
use kuva::render::render::Scene;

use super::draw;
use super::picture::Picture;
use crate::exit::note;

/// `--plot FILE`: the ending says what kind of file it is.
#[derive(Clone, Debug)]
pub(crate) struct PlotFile {
    path: PathBuf,
    kind: FileKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Svg,
    Png,
    Html,
}

/// Turns light into dark and leaves hues as they are.
const DARK_STYLE: &str = "<style>@media (prefers-color-scheme: dark) \
                          { svg { filter: invert(1) hue-rotate(180deg); } }</style>";
const PAGE_STYLE: &str = "body { margin: 1rem auto; max-width: 60rem; background: #fff } \
     svg { width: 100%; height: auto } \
     @media (prefers-color-scheme: dark) { body { background: #000 } }";

impl FromStr for PlotFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let kind = match ending.to_ascii_lowercase().as_str() {
            "svg" => FileKind::Svg,
            "png" => FileKind::Png,
            "html" => FileKind::Html,
            _ => return Err("use a file name that ends in .svg, .png or .html".to_owned()),
        };
        Ok(Self { path, kind })
    }
}

impl PlotFile {
    /// Draws what there is, if there is something.
    pub(crate) fn write_any(&self, picture: Option<Picture>) -> anyhow::Result<()> {
        match picture {
            Some(picture) => self.write(&picture),
            None => {
                note(format_args!("{}: nothing to draw", self.path.display()));
                Ok(())
            }
        }
    }

    /// Draws the picture into the file.
    pub(crate) fn write(&self, picture: &Picture) -> anyhow::Result<()> {
        let scene = draw::scene(picture);
        let drawn = match self.kind {
            FileKind::Svg => svg(&scene).into_bytes(),
            FileKind::Png => {
                png(&scene).map_err(|problem| anyhow::anyhow!("cannot draw: {problem}"))?
            }
            FileKind::Html => page(&picture.title, &svg(&scene)).into_bytes(),
        };
        write(&self.path, &drawn)
    }
}

/// As SVG, light or dark as the reader likes it.
pub(super) fn svg(scene: &Scene) -> String {
    let drawn = SvgBackend::default().render_scene(scene);
    match drawn.find('>') {
        Some(end) if drawn.starts_with("<svg") => {
            format!("{}{DARK_STYLE}{}", &drawn[..=end], &drawn[end + 1..])
        }
        _ => drawn,
    }
}

/// As PNG, at twice the size for sharp screens.
pub(super) fn png(scene: &Scene) -> Result<Vec<u8>, String> {
    const SCALE: f32 = 2.0;
    PngBackend::new().with_scale(SCALE).render_scene(scene)
}

fn write(path: &Path, drawn: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, drawn).with_context(|| format!("cannot write {}", path.display()))
}

/// One file that needs no other.
fn page(title: &str, svg: &str) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{PAGE_STYLE}</style>\n</head>\n<body>\n{svg}\n</body>\n</html>\n"
    )
}
