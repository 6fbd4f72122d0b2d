//! Just enough SVG for two plots: a canvas, logarithmic axes, and labels that stay clear of each other.

use std::fmt::Write as _;

/// Height of a label.
const LABEL_HEIGHT: f64 = 14.0;
/// Mean width of a label character, rounded up.
const CHARACTER: f64 = 7.1;

/// A plot being drawn.
pub(crate) struct Canvas {
    svg: String,
    /// Areas that labels must avoid.
    taken: Vec<Area>,
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Area {
    fn around(x: f64, y: f64, radius: f64) -> Self {
        Self { left: x - radius, top: y - radius, right: x + radius, bottom: y + radius }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn contains(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right <= self.right
            && self.top <= other.top
            && other.bottom <= self.bottom
    }
}

/// A logarithmic axis: `low` lies at `from`, `high` at `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Scale {
    /// Creates an axis for these values, with some room at both ends.
    pub(crate) fn around(values: impl Iterator<Item = f64>, room: f64, from: f64, to: f64) -> Self {
        let (low, high) =
            values.fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), v| (l.min(v), h.max(v)));
        Self { low: low / room, high: high * room, from, to }
    }

    /// Position of a value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        self.from + share * (self.to - self.from)
    }

    /// Round numbers within the axis.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        (-3..12)
            .flat_map(|power| [1.0, 1.5, 2.0, 3.0, 5.0, 7.0].map(|digit| digit * 10f64.powi(power)))
            .filter(|tick| (self.low..=self.high).contains(tick))
            .collect()
    }
}

impl Canvas {
    /// Creates an empty white canvas.
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self {
            svg: format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
                 height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
                 <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
            ),
            taken: Vec::new(),
        }
    }

    /// Returns the finished SVG.
    pub(crate) fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }

    /// Draws text at a position; `style` holds further attributes.
    pub(crate) fn text(&mut self, x: f64, y: f64, style: &str, words: &str) {
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(self.svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{words}</text>");
    }

    /// Draws a line through points.
    pub(crate) fn line(&mut self, points: &[(f64, f64)], style: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        let _ = writeln!(self.svg, "<polyline points=\"{points}\" fill=\"none\" {style}/>");
    }

    /// Draws a point, which labels avoid.
    pub(crate) fn point(&mut self, x: f64, y: f64, style: &str) {
        self.taken.push(Area::around(x, y, 5.0));
        let _ = writeln!(self.svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" {style}/>");
    }

    /// Draws grid, ticks and titles of both axes.
    pub(crate) fn axes(
        &mut self,
        x: (&Scale, &str),
        y: (&Scale, &str),
        written: impl Fn(f64) -> String,
    ) {
        let ((x, x_title), (y, y_title)) = (x, y);
        for tick in x.ticks() {
            let at = x.at(tick);
            self.line(&[(at, y.from), (at, y.to)], "stroke=\"#e4e4e4\"");
            self.text(at, y.from + 18.0, "text-anchor=\"middle\" fill=\"#444\"", &written(tick));
        }
        for tick in y.ticks() {
            let at = y.at(tick);
            self.line(&[(x.from, at), (x.to, at)], "stroke=\"#e4e4e4\"");
            self.text(x.from - 8.0, at + 4.0, "text-anchor=\"end\" fill=\"#444\"", &written(tick));
        }
        self.line(&[(x.from, y.to), (x.from, y.from), (x.to, y.from)], "stroke=\"#444\"");
        let middle = x.from.midpoint(x.to);
        self.text(middle, y.from + 40.0, "text-anchor=\"middle\" font-size=\"13\"", x_title);
        let (left, middle) = (x.from - 50.0, y.from.midpoint(y.to));
        let turned = format!(
            "text-anchor=\"middle\" font-size=\"13\" transform=\"rotate(-90 {left:.1} {middle:.1})\""
        );
        self.text(left, middle, &turned, y_title);
    }

    /// Draws a label at the nearest free place beside a point, with a thin line back to it if it is not adjacent.
    pub(crate) fn label(&mut self, x: f64, y: f64, within: &Area, colour: &str, words: &str) {
        let width = words.chars().count() as f64 * CHARACTER;
        let place = places(x, y, width)
            .find(|place| within.contains(place) && !self.taken.iter().any(|t| t.overlaps(place)));
        let place = place.unwrap_or_else(|| box_at(x + 9.0, y, width));
        let nearest = (x.clamp(place.left, place.right), y.clamp(place.top, place.bottom));
        if (nearest.0 - x).hypot(nearest.1 - y) > 14.0 {
            let thin = format!("stroke=\"{colour}\" stroke-width=\"0.6\"");
            self.line(&[(x, y), nearest], &thin);
        }
        let (at, anchor) = if place.right < x {
            (place.right, "end")
        } else if place.left > x {
            (place.left, "start")
        } else {
            (place.left.midpoint(place.right), "middle")
        };
        let style = format!("fill=\"{colour}\" text-anchor=\"{anchor}\"");
        self.text(at, place.bottom - 3.5, &style, words);
        self.taken.push(place);
    }
}

/// The box of a label whose left edge is centred vertically at (x, y).
fn box_at(x: f64, y: f64, width: f64) -> Area {
    Area { left: x, top: y - LABEL_HEIGHT / 2.0, right: x + width, bottom: y + LABEL_HEIGHT / 2.0 }
}

/// Candidate places for a label around a point, best first: right, left, above, below, then farther away.
fn places(x: f64, y: f64, width: f64) -> impl Iterator<Item = Area> {
    let rings = (0..12).map(|ring| 9.0 + 8.0 * f64::from(ring));
    rings.flat_map(move |away| {
        [(1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (1, 1), (-1, -1), (-1, 1)].map(
            |(across, down)| {
                let left = match across {
                    1 => x + away,
                    -1 => x - away - width,
                    _ => x - width / 2.0,
                };
                let slack = if across == 0 { 4.0 } else { 0.0 };
                box_at(left, y + f64::from(down) * (away + slack), width)
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Area = Area { left: 0.0, top: 0.0, right: 600.0, bottom: 400.0 };

    #[test]
    fn labels_of_points_that_lie_together_do_not_overlap() {
        let mut canvas = Canvas::new(600.0, 400.0);
        let points: Vec<f64> = (0..9).map(|i| 200.0 + 3.0 * f64::from(i)).collect();
        for &at in &points {
            canvas.point(at, at, "");
        }
        let first_label = canvas.taken.len();
        for &at in &points {
            canvas.label(at, at, &PAGE, "black", "a long label");
        }
        let labels = &canvas.taken[first_label..];
        assert_eq!(labels.len(), points.len());
        for (i, label) in labels.iter().enumerate() {
            assert!(PAGE.contains(label));
            assert!(labels[..i].iter().all(|other| !other.overlaps(label)), "label {i}");
        }
    }

    #[test]
    fn a_logarithmic_axis_puts_the_geometric_mean_into_the_middle() {
        let scale = Scale { low: 1.0, high: 100.0, from: 0.0, to: 200.0 };
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        assert!(scale.ticks().contains(&50.0));
    }

    #[test]
    fn words_are_escaped() {
        let mut canvas = Canvas::new(10.0, 10.0);
        canvas.text(0.0, 0.0, "", "a < b & c");
        assert!(canvas.finish().contains("a &lt; b &amp; c"));
    }
}
