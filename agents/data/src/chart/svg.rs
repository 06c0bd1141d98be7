//! SVG, element by element: no scripts, nothing from outside, and every text escaped.

use std::fmt::Write as _;

use muster_shared::text::is_control;

/// Longest label, in characters.
pub(super) const MAX_LABEL: usize = 60;

/// Colours that people with any vision tell apart, and that are seen on white and on black: those of Okabe and Ito
/// without the two that vanish on one of them, then those of Tol.
const COLOURS: [&str; 12] = [
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#999933", "#AA4499", "#44AA99",
    "#882255", "#6699CC", "#888888",
];

/// Colours of the parts that are not data, in light and in dark.
const STYLE: &str = "text{font-family:system-ui,sans-serif;fill:#222}.bg{fill:#fff}.grid{stroke:#ddd}.axis{stroke:#666}\
.edge{stroke:#fff}@media (prefers-color-scheme:dark){text{fill:#ddd}.bg{fill:#16181c}.grid{stroke:#333}.axis{stroke:#999}\
.edge{stroke:#16181c}}";

/// The colour of the series of this number.
pub(super) fn colour(series: usize) -> &'static str {
    COLOURS[series % COLOURS.len()]
}

/// How the line of a series is broken, so that it is known without its colour.
pub(super) fn dashes(series: usize) -> &'static str {
    ["", "6 3", "2 3", "8 3 2 3"][series % 4]
}

/// Where a text stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// How a text stands at its place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// A drawing.
pub(super) struct Svg(String);

impl Svg {
    /// An empty drawing with what it is called and shows, for those who do not see it.
    pub(super) fn new(width: f64, height: f64, title: &str, shows: &str) -> Self {
        let mut text = String::new();
        let _ = write!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">{}</title>\n<desc id=\"desc\">{}</desc>\n\
             <style>{STYLE}</style>\n<rect class=\"bg\" fill=\"#fff\" width=\"{width}\" height=\"{height}\"/>\n",
            escaped(title),
            escaped(shows)
        );
        Self(text)
    }

    /// The document.
    pub(super) fn ends(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }

    pub(super) fn text(&mut self, at: At, anchor: Anchor, size: u32, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (place(at.x), place(at.y));
        let _ = writeln!(
            self.0,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{}</text>",
            escaped(&label(text))
        );
    }

    /// A text that is read from below.
    pub(super) fn upward(&mut self, at: At, size: u32, text: &str) {
        let (x, y) = (place(at.x), place(at.y));
        let _ = writeln!(
            self.0,
            "<text transform=\"translate({x} {y}) rotate(-90)\" text-anchor=\"middle\" font-size=\"{size}\">{}</text>",
            escaped(&label(text))
        );
    }

    pub(super) fn line(&mut self, class: &str, from: At, to: At) {
        let _ = writeln!(
            self.0,
            "<line class=\"{class}\" stroke=\"#999\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            place(from.x),
            place(from.y),
            place(to.x),
            place(to.y)
        );
    }

    /// A rectangle in a colour, with what it shows.
    pub(super) fn bar(&mut self, area: Area, colour: &str, shows: &str) {
        let _ = writeln!(
            self.0,
            "<rect class=\"edge\" fill=\"{colour}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
            place(area.left),
            place(area.top),
            place(area.width.max(0.0)),
            place(area.height.max(0.0)),
            escaped(&label(shows))
        );
    }

    pub(super) fn dot(&mut self, at: At, radius: f64, colour: &str) {
        let _ = writeln!(
            self.0,
            "<circle fill=\"{colour}\" fill-opacity=\"0.75\" cx=\"{}\" cy=\"{}\" r=\"{radius}\"/>",
            place(at.x),
            place(at.y)
        );
    }

    /// A line through points, broken in this way.
    pub(super) fn curve(&mut self, points: &[At], colour: &str, dashes: &str) {
        let dashes =
            if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
        let _ = writeln!(
            self.0,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\"{dashes} points=\"{}\"/>",
            joined(points)
        );
    }

    pub(super) fn shape(&mut self, points: &[At], colour: &str, opacity: f64) {
        let _ = writeln!(
            self.0,
            "<polygon fill=\"{colour}\" fill-opacity=\"{opacity}\" points=\"{}\"/>",
            joined(points)
        );
    }

    /// A path in a colour, with what it shows.
    pub(super) fn path(&mut self, path: &str, colour: &str, shows: &str) {
        let _ = writeln!(
            self.0,
            "<path class=\"edge\" fill=\"{colour}\" fill-rule=\"evenodd\" d=\"{path}\"><title>{}</title></path>",
            escaped(&label(shows))
        );
    }
}

fn joined(points: &[At]) -> String {
    let points: Vec<String> = points.iter().map(|at| format!("{},{}", place(at.x), place(at.y))).collect();
    points.join(" ")
}

/// A coordinate, to a tenth of a pixel.
pub(super) fn place(value: f64) -> f64 {
    let rounded = (value * 10.0).round() / 10.0;
    // There is no minus zero in a drawing.
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// A text as a label: in one line, not too long.
pub(super) fn label(text: &str) -> String {
    let mut cut: String =
        text.chars().take(MAX_LABEL).map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    if text.chars().count() > MAX_LABEL {
        cut.pop();
        cut.push('…');
    }
    cut
}

/// A text as it can stand in XML: what steers or is no character of XML is left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c if is_control(c) => {}
            c => escaped.push(c),
        }
    }
    escaped
}
