//! Box plots: the median, the middle half, what lies within one and a half times its width (Tukey), and what lies outside.

use super::data::{Along, Plot};
use super::scale::{self, Scale};
use super::svg::{Area, At, Svg, colour};

/// Values that are drawn as one box.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub(super) name: String,
    /// In order.
    pub(super) values: Vec<f64>,
}

/// The groups: rows of one name are one, or, where there are several series, each of them is.
pub(super) fn groups(plot: &Plot) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let by_name = matches!((&plot.x, plot.series.len()), (Along::Names(_), 1));
    for series in &plot.series {
        for (at, value) in series.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let name = if by_name { plot.x.words(at) } else { series.name.clone() };
            match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => group.values.push(*value),
                None => groups.push(Group { name, values: vec![*value] }),
            }
        }
    }
    for group in &mut groups {
        group.values.sort_by(f64::total_cmp);
    }
    groups
}

/// Draws a group around a place.
pub(super) fn draw(svg: &mut Svg, group: &Group, x: f64, width: f64, y: &Scale) {
    let (low, middle, high) =
        (quantile(&group.values, 0.25), quantile(&group.values, 0.5), quantile(&group.values, 0.75));
    let reach = 1.5 * (high - low);
    let within = || group.values.iter().copied().filter(|value| (low - reach..=high + reach).contains(value));
    let (least, most) = (within().fold(low, f64::min), within().fold(high, f64::max));
    svg.line("axis", At { x, y: y.place(least) }, At { x, y: y.place(most) });
    let shows = format!(
        "{}: median {}, half between {} and {}, {} values",
        group.name,
        scale::number(middle),
        scale::number(low),
        scale::number(high),
        group.values.len()
    );
    let area =
        Area { left: x - width / 2.0, top: y.place(high), width, height: y.place(low) - y.place(high) };
    svg.bar(area, colour(0), &shows);
    svg.line("edge", At { x: area.left, y: y.place(middle) }, At { x: area.right(), y: y.place(middle) });
    for value in group.values.iter().filter(|value| !(least..=most).contains(*value)) {
        svg.dot(At { x, y: y.place(*value) }, 2.5, colour(4));
    }
}

/// A quantile of values in order, between them by their distances.
fn quantile(values: &[f64], part: f64) -> f64 {
    let last = f64::from(u32::try_from(values.len().saturating_sub(1)).unwrap_or(u32::MAX));
    let at = last * part;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place among the values")]
    let below = at.floor() as usize;
    let (Some(low), high) = (values.get(below), values.get(below + 1)) else { return 0.0 };
    high.map_or(*low, |high| low + (high - low) * (at - at.floor()))
}
