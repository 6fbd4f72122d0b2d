//! Rate against bits per key as an SVG picture: logarithmic vertically, linear horizontally.

use std::fmt::Write as _;

use crate::number;

/// One kind of filter: (bits per key, rate), in order.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 600.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 60.0;
const MAX_BITS: f64 = 40.0;
/// Decades of rate shown: 1 to 10^-6.
const DECADES: f64 = 6.0;

/// Colours that stay apart in print and for most colour-blind eyes (after Paul Tol); dashes tell the second half of
/// the kinds from the first.
const COLOURS: [&str; 7] =
    ["#332288", "#CC3311", "#117733", "#EE7733", "#0077BB", "#AA4499", "#777777"];

fn x(bits: f64) -> f64 {
    LEFT + bits / MAX_BITS * (WIDTH - LEFT - RIGHT)
}

fn y(rate: f64) -> f64 {
    TOP - rate.log10() / DECADES * (HEIGHT - TOP - BOTTOM)
}

/// The picture.
pub(crate) fn rates(curves: &[Curve], capacity: u64) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(
        &mut svg,
        LEFT,
        30.0,
        "start",
        17,
        &format!("Rate by bits per key, {}", number::plural(capacity, "key")),
    );
    grid(&mut svg);
    for (i, curve) in curves.iter().enumerate() {
        draw(&mut svg, i, curve);
    }
    svg.push_str("</svg>\n");
    svg
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, size: u32, words: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{words}</text>"
    );
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), stroke: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {stroke}/>",
        from.0, from.1, to.0, to.1
    );
}

fn grid(svg: &mut String) {
    let (right, bottom) = (x(MAX_BITS), y(10f64.powf(-DECADES)));
    for bits in (0..=MAX_BITS as u32).step_by(4).map(f64::from) {
        line(svg, (x(bits), TOP), (x(bits), bottom), "stroke=\"#ddd\"");
        text(svg, x(bits), bottom + 20.0, "middle", 13, &bits.to_string());
    }
    for (decade, label) in
        ["1", "10 %", "1 %", "0.1 %", "0.01 %", "10⁻⁵", "10⁻⁶"].iter().enumerate()
    {
        let at = y(10f64.powi(-(decade as i32)));
        line(svg, (LEFT, at), (right, at), "stroke=\"#ddd\"");
        text(svg, LEFT - 8.0, at + 4.0, "end", 13, label);
    }
    text(svg, (LEFT + right) / 2.0, bottom + 44.0, "middle", 14, "bits per key");
    let middle = (TOP + bottom) / 2.0;
    let _ = writeln!(
        svg,
        "<text x=\"20\" y=\"{middle:.1}\" text-anchor=\"middle\" font-size=\"14\" \
         transform=\"rotate(-90 20 {middle:.1})\">rate (lower is better)</text>"
    );
}

fn draw(svg: &mut String, number: usize, curve: &Curve) {
    let bound = curve.name == "lower bound";
    let colour = if bound { "#000000" } else { COLOURS[number % COLOURS.len()] };
    let dash = match number / COLOURS.len() {
        _ if bound => " stroke-dasharray=\"2 3\"",
        0 => "",
        _ => " stroke-dasharray=\"7 4\"",
    };
    let stroke = format!("stroke=\"{colour}\" stroke-width=\"2\" fill=\"none\"{dash}");
    let shown = curve.points.iter().filter(|(bits, _)| *bits <= MAX_BITS);
    let path: Vec<String> = shown
        .map(|&(bits, rate)| format!("{:.1},{:.1}", x(bits), y(rate.clamp(1e-6, 1.0))))
        .collect();
    let _ = writeln!(svg, "<polyline points=\"{}\" {stroke}/>", path.join(" "));
    let (left, height) = (x(MAX_BITS) + 16.0, TOP + 10.0 + 22.0 * number as f64);
    line(svg, (left, height), (left + 28.0, height), &stroke);
    text(svg, left + 36.0, height + 4.0, "start", 13, &curve.name);
}
