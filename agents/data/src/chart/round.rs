//! Pies and rings: shares of a whole, with their names and parts beside them.

use std::f64::consts::{PI, TAU};

use super::data::Plot;
use super::scale;
use super::svg::{Anchor, Area, At, Svg, colour, place};

/// Most slices that are told apart; what is smaller is drawn as one.
const MAX_SLICES: usize = 12;

struct Slice {
    name: String,
    value: f64,
}

/// Draws the first series as shares.
pub(super) fn draw(svg: &mut Svg, plot: &Plot, area: Area, is_ring: bool) {
    let slices = slices(plot);
    let total: f64 = slices.iter().map(|slice| slice.value).sum();
    let radius = (area.height.min(area.width * 0.55) / 2.0 - 4.0).max(20.0);
    let middle = At { x: area.left + radius + 4.0, y: area.top + area.height / 2.0 };
    let hole = if is_ring { radius * 0.55 } else { 0.0 };
    let mut begun = -PI / 2.0;
    for (number, slice) in slices.iter().enumerate() {
        let part = slice.value / total;
        let shows = format!("{}: {} ({})", slice.name, scale::number(slice.value), percent(part));
        svg.path(&outline(middle, radius, hole, [begun, begun + part * TAU]), colour(number), &shows);
        begun += part * TAU;
        let y = area.top + 16.0 + 18.0 * f64::from(u32::try_from(number).unwrap_or(0));
        let left = middle.x + radius + 24.0;
        svg.bar(Area { left, top: y - 10.0, width: 12.0, height: 12.0 }, colour(number), &slice.name);
        svg.text(At { x: left + 18.0, y }, Anchor::Start, 12, &shows);
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// The shares, those beyond the largest as one.
fn slices(plot: &Plot) -> Vec<Slice> {
    let values = plot.series.first().map(|series| series.values.as_slice()).unwrap_or_default();
    let named = values
        .iter()
        .enumerate()
        .filter_map(|(at, value)| Some(Slice { name: plot.x.words(at), value: (*value)? }));
    let mut slices: Vec<Slice> = named.filter(|slice| slice.value > 0.0).collect();
    if slices.len() > MAX_SLICES {
        slices.sort_by(|one, other| other.value.total_cmp(&one.value));
        let rest = slices.split_off(MAX_SLICES - 1);
        let value = rest.iter().map(|slice| slice.value).sum();
        slices.push(Slice { name: format!("{} others", rest.len()), value });
    }
    slices
}

/// A slice from one angle to another; a whole circle as two halves, as an arc cannot end where it begins.
fn outline(middle: At, radius: f64, hole: f64, [from, to]: [f64; 2]) -> String {
    if to - from > TAU - 1e-6 {
        let half = from + PI;
        return format!(
            "{} {}",
            outline(middle, radius, hole, [from, half]),
            outline(middle, radius, hole, [half, from + TAU - 1e-6])
        );
    }
    let at = |angle: f64, radius: f64| {
        format!("{} {}", place(middle.x + radius * angle.cos()), place(middle.y + radius * angle.sin()))
    };
    let large = u8::from(to - from > PI);
    let outer = format!("M{} A{r} {r} 0 {large} 1 {}", at(from, radius), at(to, radius), r = place(radius));
    if hole > 0.0 {
        format!("{outer} L{} A{r} {r} 0 {large} 0 {} Z", at(to, hole), at(from, hole), r = place(hole))
    } else {
        format!("{outer} L{} {} Z", place(middle.x), place(middle.y))
    }
}
