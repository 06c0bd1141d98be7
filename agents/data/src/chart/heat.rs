//! Heat maps: a colour for each value, by columns along and series down.

use super::Wish;
use super::data::Plot;
use super::draw::{fitting, length};
use super::scale::{self, Extent};
use super::svg::{Anchor, Area, At, Svg};

/// From low to high: a scale that grows darker evenly, so that it is read without its colours (after viridis).
const SHADES: [[f64; 3]; 5] =
    [[253.0, 231.0, 37.0], [94.0, 201.0, 98.0], [33.0, 145.0, 140.0], [59.0, 82.0, 139.0], [68.0, 1.0, 84.0]];

/// Draws a cell for each value.
pub(super) fn draw(svg: &mut Svg, plot: &Plot, wish: &Wish, around: Area) {
    let names =
        plot.series.iter().map(|series| length(&series.name)).fold(0.0, f64::max).min(around.width / 4.0);
    let area = Area {
        left: around.left + names + 16.0,
        top: around.top + 8.0,
        width: (around.width - names - 36.0).max(20.0),
        height: (around.height - 72.0).max(20.0),
    };
    let count = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX)).max(1.0);
    let (wide, high) = (area.width / count(plot.x.len()), area.height / count(plot.series.len()));
    let values = plot.series.iter().flat_map(|series| series.values.iter().flatten().copied());
    let extent = Extent::of(values).unwrap_or(Extent { low: 0.0, high: 1.0 });
    for (row, series) in plot.series.iter().enumerate() {
        let top = area.top + f64::from(u32::try_from(row).unwrap_or(0)) * high;
        if high >= 10.0 || row % 2 == 0 {
            let name = fitting(&series.name, names / 6.6);
            svg.text(At { x: area.left - 6.0, y: top + high / 2.0 + 4.0 }, Anchor::End, 12, &name);
        }
        for (column, value) in series.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let left = area.left + f64::from(u32::try_from(column).unwrap_or(0)) * wide;
            let shows = format!("{}, {}: {}", plot.x.words(column), series.name, scale::number(*value));
            svg.bar(Area { left, top, width: wide, height: high }, &shade(*value, extent), &shows);
        }
    }
    let every = (1..=plot.x.len().max(1)).find(|every| count(*every) * wide >= 60.0).unwrap_or(1);
    for column in (0..plot.x.len()).step_by(every) {
        let x = area.left + (f64::from(u32::try_from(column).unwrap_or(0)) + 0.5) * wide;
        let name = fitting(&plot.x.words(column), count(every) * wide / 6.6);
        svg.text(At { x, y: area.bottom() + 18.0 }, Anchor::Middle, 12, &name);
    }
    key(svg, wish, plot, extent, area);
}

/// Which shades stand for what.
fn key(svg: &mut Svg, wish: &Wish, plot: &Plot, extent: Extent, area: Area) {
    let y = area.bottom() + 44.0;
    let x_name = wish.x_label.as_ref().unwrap_or(&plot.x_name);
    svg.text(At { x: area.left, y }, Anchor::Start, 12, x_name);
    let left = area.right() - 160.0;
    svg.text(At { x: left - 6.0, y }, Anchor::End, 12, &scale::number(extent.low));
    for part in 0..10 {
        let value = extent.low + (extent.high - extent.low) * f64::from(part) / 9.0;
        let shade = shade(value, extent);
        svg.bar(
            Area { left: left + f64::from(part) * 10.0, top: y - 10.0, width: 10.0, height: 12.0 },
            &shade,
            &scale::number(value),
        );
    }
    svg.text(At { x: left + 106.0, y }, Anchor::Start, 12, &scale::number(extent.high));
}

fn shade(value: f64, extent: Extent) -> String {
    let part = if extent.low < extent.high { (value - extent.low) / (extent.high - extent.low) } else { 0.5 };
    let at = part.clamp(0.0, 1.0) * 4.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 3")]
    let below = at.floor().min(3.0) as usize;
    let rest = at - at.floor().min(3.0);
    let mix = |n: usize| (SHADES[below][n] + (SHADES[below + 1][n] - SHADES[below][n]) * rest).round();
    format!("rgb({},{},{})", mix(0), mix(1), mix(2))
}
