//! Draws a plot. Pure.

use super::data::{Along, Plot};
use super::scale::{self, Extent, Scale, Spacing, Tick};
use super::svg::{Anchor, Area, At, MAX_LABEL, Svg, colour, dashes, label};
use super::{Kind, Wish, round};

/// Size of labels, in pixels.
const SMALL: u32 = 12;
/// Size of the title, in pixels.
const LARGE: u32 = 16;
/// About how wide a character of a label is, in pixels.
const CHARACTER: f64 = 6.6;
/// Most dots at the points of a line.
const MAX_DOTS: usize = 60;

/// Draws a plot as an SVG document.
pub(super) fn draw(plot: &Plot, wish: &Wish, shows: &str) -> String {
    let (width, height) = (f64::from(wish.width), f64::from(wish.height));
    let mut svg = Svg::new(width, height, &wish.title, shows);
    let mut top = 12.0;
    if !wish.title.is_empty() {
        svg.text(At { x: width / 2.0, y: 24.0 }, Anchor::Middle, LARGE, &wish.title);
        top = 38.0;
    }
    match wish.kind {
        Kind::Pie | Kind::Donut => {
            let area = Area { left: 12.0, top, width: width - 24.0, height: height - top - 12.0 };
            round::draw(&mut svg, plot, area, wish.kind == Kind::Donut);
        }
        Kind::Heatmap => {
            super::heat::draw(&mut svg, plot, wish, Area { left: 0.0, top, width, height: height - top })
        }
        Kind::Line | Kind::Bar | Kind::Area | Kind::Scatter | Kind::Histogram | Kind::Box => {
            let names: Vec<&str> = plot.series.iter().map(|series| series.name.as_str()).collect();
            if names.len() > 1 {
                top = legend(&mut svg, &names, top, width);
            }
            on_axes(&mut svg, plot, wish, Area { left: 0.0, top, width, height: height - top });
        }
    }
    svg.ends()
}

/// The names of the series with their colours. Gives where the drawing goes on below.
fn legend(svg: &mut Svg, names: &[&str], top: f64, width: f64) -> f64 {
    let (mut x, mut y) = (16.0, top + 10.0);
    for (at, name) in names.iter().enumerate() {
        let wide = 30.0 + length(name);
        if x + wide > width && x > 16.0 {
            (x, y) = (16.0, y + 18.0);
        }
        svg.bar(Area { left: x, top: y - 9.0, width: 12.0, height: 12.0 }, colour(at), name);
        svg.text(At { x: x + 17.0, y: y + 1.0 }, Anchor::Start, SMALL, name);
        x += wide;
    }
    y + 14.0
}

/// About how wide a label is, in pixels.
pub(super) fn length(text: &str) -> f64 {
    let characters = u16::try_from(text.chars().count().min(MAX_LABEL)).unwrap_or(u16::MAX);
    f64::from(characters) * CHARACTER
}

/// What marks are drawn by: the place of each value in both directions.
struct Axes {
    x: Placing,
    y: Scale,
    area: Area,
}

/// Where what stands along the axis is.
enum Placing {
    /// By its value.
    Values(Scale, Vec<f64>),
    /// In a band of its own; how many there are.
    Bands(f64),
}

impl Axes {
    /// The middle of what stands at this number along the axis.
    fn x(&self, at: usize) -> f64 {
        match &self.x {
            Placing::Values(scale, values) => scale.place(values.get(at).copied().unwrap_or_default()),
            Placing::Bands(count) => self.area.left + (number(at) + 0.5) * self.area.width / count,
        }
    }

    fn band(&self) -> f64 {
        match &self.x {
            Placing::Values(..) => 0.0,
            Placing::Bands(count) => self.area.width / count,
        }
    }

    /// Where marks begin that reach up from nothing.
    fn base(&self) -> f64 {
        self.y.place(self.y.low().max(0.0))
    }
}

fn number(at: usize) -> f64 {
    f64::from(u32::try_from(at).unwrap_or(u32::MAX))
}

fn on_axes(svg: &mut Svg, plot: &Plot, wish: &Wish, around: Area) {
    let spacing = if wish.log { Spacing::Log } else { Spacing::Linear };
    let extent = extent_of(plot, wish);
    let ticks = Scale::new(extent, spacing, 0.0, 1.0).ticks();
    let widest = ticks.iter().map(|tick| length(&tick.label)).fold(0.0, f64::max);
    let left = around.left + widest + 36.0;
    let area = Area {
        left,
        top: around.top + 8.0,
        width: (around.right() - 20.0 - left).max(40.0),
        height: (around.height - 60.0).max(40.0),
    };
    let y = Scale::new(extent, spacing, area.bottom(), area.top);
    let x = match &plot.x {
        Along::Numbers(values) => placing(values, Spacing::Linear, area),
        Along::Days(values) => placing(values, Spacing::Days, area),
        Along::Names(_) => Placing::Bands(number(bands(plot, wish)).max(1.0)),
    };
    let axes = Axes { x, y, area };
    frame(svg, &axes, &y.ticks());
    labels_along(svg, plot, wish, &axes);
    let (x_name, y_name) =
        (wish.x_label.as_ref().unwrap_or(&plot.x_name), wish.y_label.as_ref().unwrap_or(&plot.y_name));
    svg.text(At { x: area.left + area.width / 2.0, y: area.bottom() + 40.0 }, Anchor::Middle, SMALL, x_name);
    svg.upward(At { x: around.left + 16.0, y: area.top + area.height / 2.0 }, SMALL, y_name);
    marks(svg, plot, wish, &axes);
}

/// How many bands there are: of boxes one for each group, else one for each name.
fn bands(plot: &Plot, wish: &Wish) -> usize {
    if wish.kind == Kind::Box { super::boxes::groups(plot).len() } else { plot.x.len() }
}

fn placing(values: &[f64], spacing: Spacing, area: Area) -> Placing {
    let extent = Extent::of(values.iter().copied()).unwrap_or(Extent { low: 0.0, high: 1.0 });
    Placing::Values(Scale::new(extent, spacing, area.left, area.right()), values.to_vec())
}

/// What the values reach from and to: from 0 where marks begin there.
fn extent_of(plot: &Plot, wish: &Wish) -> Extent {
    let values = plot.series.iter().flat_map(|series| series.values.iter().flatten().copied());
    let extent = Extent::of(values).unwrap_or(Extent { low: 0.0, high: 1.0 });
    let from_nothing = matches!(wish.kind, Kind::Bar | Kind::Area | Kind::Histogram);
    if is_stacked(wish) {
        let sums = (0..plot.x.len())
            .map(|at| plot.series.iter().filter_map(|series| series.values.get(at).copied().flatten()).sum());
        return Extent::of(sums).unwrap_or(extent).with(0.0);
    }
    if from_nothing { extent.with(0.0) } else { extent }
}

fn is_stacked(wish: &Wish) -> bool {
    wish.stacked && matches!(wish.kind, Kind::Bar | Kind::Area)
}

fn frame(svg: &mut Svg, axes: &Axes, ticks: &[Tick]) {
    let area = axes.area;
    for tick in ticks {
        let y = axes.y.place(tick.value);
        svg.line("grid", At { x: area.left, y }, At { x: area.right(), y });
        svg.text(At { x: area.left - 6.0, y: y + 4.0 }, Anchor::End, SMALL, &tick.label);
    }
    svg.line("axis", At { x: area.left, y: axes.base() }, At { x: area.right(), y: axes.base() });
    svg.line("axis", At { x: area.left, y: area.top }, At { x: area.left, y: area.bottom() });
}

fn labels_along(svg: &mut Svg, plot: &Plot, wish: &Wish, axes: &Axes) {
    let y = axes.area.bottom() + 18.0;
    match &axes.x {
        Placing::Values(scale, _) => {
            for tick in scale.ticks() {
                svg.text(At { x: scale.place(tick.value), y }, Anchor::Middle, SMALL, &tick.label);
            }
        }
        Placing::Bands(_) => {
            let names: Vec<String> = if wish.kind == Kind::Box {
                super::boxes::groups(plot).into_iter().map(|group| group.name).collect()
            } else {
                (0..plot.x.len()).map(|at| plot.x.words(at)).collect()
            };
            let widest = names.iter().map(|name| length(name)).fold(0.0, f64::max) + 8.0;
            // Where not all have room, some are named, and those that are left are cut.
            let every = (0..names.len())
                .map(|n| n + 1)
                .find(|every| number(*every) * axes.band() >= widest.min(90.0))
                .unwrap_or(1);
            let room = number(every) * axes.band() / CHARACTER;
            for (at, name) in names.iter().enumerate().step_by(every) {
                svg.text(At { x: axes.x(at), y }, Anchor::Middle, SMALL, &fitting(name, room));
            }
        }
    }
}

/// A name, cut to the room for this many characters.
pub(super) fn fitting(name: &str, room: f64) -> String {
    let name = label(name);
    if number(name.chars().count()) <= room.max(3.0) {
        return name;
    }
    let mut cut: String = name
        .chars()
        .enumerate()
        .take_while(|(at, _)| number(*at) < room.max(3.0) - 1.0)
        .map(|(_, c)| c)
        .collect();
    cut.push('…');
    cut
}

fn marks(svg: &mut Svg, plot: &Plot, wish: &Wish, axes: &Axes) {
    match wish.kind {
        Kind::Line => lines(svg, plot, axes),
        Kind::Scatter => dots(svg, plot, axes, 3.5),
        Kind::Area => areas(svg, plot, wish, axes),
        Kind::Bar | Kind::Histogram => bars(svg, plot, wish, axes),
        Kind::Box => {
            for (at, group) in super::boxes::groups(plot).iter().enumerate() {
                super::boxes::draw(svg, group, axes.x(at), axes.band() * 0.5, &axes.y);
            }
        }
        // Drawn without axes.
        Kind::Pie | Kind::Donut | Kind::Heatmap => {}
    }
}

fn points(values: &[Option<f64>], axes: &Axes) -> Vec<Vec<At>> {
    let mut runs = vec![Vec::new()];
    for (at, value) in values.iter().enumerate() {
        match (value, runs.last_mut()) {
            (Some(value), Some(run)) => run.push(At { x: axes.x(at), y: axes.y.place(*value) }),
            (Some(_), None) => {}
            (None, _) => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

fn lines(svg: &mut Svg, plot: &Plot, axes: &Axes) {
    for (number, series) in plot.series.iter().enumerate() {
        let runs = points(&series.values, axes);
        let few = series.values.len() <= MAX_DOTS;
        for run in &runs {
            if run.len() > 1 {
                svg.curve(run, colour(number), dashes(number));
            }
            // A point between gaps has no line that shows it.
            for at in run.iter().filter(|_| few || run.len() == 1) {
                svg.dot(*at, 3.0, colour(number));
            }
        }
    }
}

fn dots(svg: &mut Svg, plot: &Plot, axes: &Axes, radius: f64) {
    for (number, series) in plot.series.iter().enumerate() {
        for at in points(&series.values, axes).into_iter().flatten() {
            svg.dot(at, radius, colour(number));
        }
    }
}

fn areas(svg: &mut Svg, plot: &Plot, wish: &Wish, axes: &Axes) {
    let mut below = vec![0.0; plot.x.len()];
    for (number, series) in plot.series.iter().enumerate() {
        let mut upper = Vec::new();
        let mut lower = Vec::new();
        for (at, floor) in below.iter_mut().enumerate() {
            let value = series.values.get(at).copied().flatten();
            if !is_stacked(wish) && value.is_none() {
                continue;
            }
            let from = if is_stacked(wish) { axes.y.place(*floor) } else { axes.base() };
            let top = value.unwrap_or(0.0) + if is_stacked(wish) { *floor } else { 0.0 };
            upper.push(At { x: axes.x(at), y: axes.y.place(top) });
            lower.push(At { x: axes.x(at), y: from });
            *floor = top;
        }
        let opacity = if is_stacked(wish) { 0.85 } else { 0.35 };
        let outline: Vec<At> = upper.iter().copied().chain(lower.into_iter().rev()).collect();
        svg.shape(&outline, colour(number), opacity);
        svg.curve(&upper, colour(number), dashes(number));
    }
}

fn bars(svg: &mut Svg, plot: &Plot, wish: &Wish, axes: &Axes) {
    let wide = axes.band() * if wish.kind == Kind::Histogram { 1.0 } else { 0.8 };
    let each = if is_stacked(wish) { wide } else { wide / number(plot.series.len()).max(1.0) };
    for at in 0..plot.x.len() {
        let mut floor = 0.0;
        for (place, series) in plot.series.iter().enumerate() {
            let Some(value) = series.values.get(at).copied().flatten() else { continue };
            let from = if is_stacked(wish) { floor } else { 0.0 };
            let (low, high) = (axes.y.place(from), axes.y.place(from + value));
            let offset = if is_stacked(wish) { 0.0 } else { number(place) * each };
            let area = Area {
                left: axes.x(at) - wide / 2.0 + offset,
                top: low.min(high),
                width: each,
                height: (low - high).abs(),
            };
            let shows = format!("{}, {}: {}", plot.x.words(at), series.name, scale::number(value));
            svg.bar(area, colour(place), &shows);
            floor = from + value;
        }
    }
}
