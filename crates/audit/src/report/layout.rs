//! Where the nodes of a graph are drawn: on circles around the start, one for each number of clicks, each beside the node from which it is reached.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

/// Width and height of the drawing.
pub(super) const SIZE: f64 = 760.0;
/// Room between the outer circle and the edge.
const EDGE: f64 = 34.0;

/// Room between two nodes, and the least radius of one.
const GAP: f64 = 2.0;
const LEAST: f64 = 2.0;

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// The number of its circle.
    pub(super) depth: u16,
    /// The node beside which it is placed, which is on an inner circle.
    pub(super) parent: Option<usize>,
    pub(super) radius: f64,
}

/// Nodes with their places.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) spots: Vec<Spot>,
    pub(super) points: Vec<(f64, f64)>,
    /// The radius of each circle, and its number.
    pub(super) rings: Vec<(f64, u16)>,
}

/// Places nodes. The same nodes have the same places each time.
pub(super) fn layout(spots: &[Spot]) -> Placed {
    let mut depths: Vec<u16> = spots.iter().map(|spot| spot.depth).collect();
    depths.sort_unstable();
    depths.dedup();
    let ring = |depth: u16| depths.binary_search(&depth).unwrap_or(0);
    let starts = spots.iter().filter(|spot| ring(spot.depth) == 0).count();
    // A single start stands in the middle; several are on a small circle.
    let inner = if starts == 1 { 0.0 } else { 0.5 };
    let outer = depths.len().saturating_sub(1) as f64 + inner;
    let step = (SIZE / 2.0 - EDGE) / if outer > 0.0 { outer } else { 1.0 };
    let radius_of = |depth: u16| (ring(depth) as f64 + inner) * step;
    let spots = thinned(spots, radius_of);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); spots.len()];
    let mut roots = Vec::new();
    for (at, spot) in spots.iter().enumerate() {
        match spot.parent.filter(|parent| spots.get(*parent).is_some_and(|inner| inner.depth < spot.depth)) {
            Some(parent) => children[parent].push(at),
            None => roots.push(at),
        }
    }
    let weights = weights(&spots, &children);
    let mut points = vec![(SIZE / 2.0, SIZE / 2.0); spots.len()];
    // Slices of the circle that are still to be divided.
    let mut slices = vec![(roots, 0.0, TAU)];
    while let Some((nodes, from, to)) = slices.pop() {
        let all: f64 = nodes.iter().map(|at| weights[*at]).sum();
        let mut at_angle = from;
        for node in nodes {
            let width = (to - from) * weights[node] / all.max(f64::MIN_POSITIVE);
            let angle = at_angle + width / 2.0 - TAU / 4.0;
            let radius = radius_of(spots[node].depth);
            points[node] = (SIZE / 2.0 + radius * angle.cos(), SIZE / 2.0 + radius * angle.sin());
            slices.push((std::mem::take(&mut children[node]), at_angle, at_angle + width));
            at_angle += width;
        }
    }
    let rings =
        depths.iter().map(|depth| (radius_of(*depth), *depth)).filter(|(radius, _)| *radius > 0.0).collect();
    Placed { spots, points, rings }
}

/// Makes the nodes of a circle smaller if they have no room beside each other.
fn thinned(spots: &[Spot], radius_of: impl Fn(u16) -> f64) -> Vec<Spot> {
    let mut needed: BTreeMap<u16, f64> = BTreeMap::new();
    for spot in spots {
        *needed.entry(spot.depth).or_default() += 2.0 * spot.radius + GAP;
    }
    let mut spots = spots.to_vec();
    for spot in &mut spots {
        let around = TAU * radius_of(spot.depth);
        if around > 0.0 && needed[&spot.depth] > around {
            spot.radius = (spot.radius * around / needed[&spot.depth]).max(LEAST);
        }
    }
    spots
}

/// How much of the circle each node needs: as much as what hangs on it, or itself.
fn weights(spots: &[Spot], children: &[Vec<usize>]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..spots.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(spots[*at].depth));
    let mut weights = vec![0.0; spots.len()];
    for at in order {
        let below: f64 = children[at].iter().map(|child| weights[*child]).sum();
        weights[at] = below.max(spots[at].radius + 2.0);
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(depth: u16, parent: Option<usize>) -> Spot {
        Spot { depth, parent, radius: 4.0 }
    }

    #[test]
    fn the_start_is_in_the_middle_and_others_are_on_the_circle_of_their_clicks() {
        let placed = layout(&[spot(0, None), spot(1, Some(0)), spot(1, Some(0)), spot(2, Some(2))]);
        let from_middle: Vec<f64> =
            placed.points.iter().map(|(x, y)| (x - SIZE / 2.0).hypot(y - SIZE / 2.0).round()).collect();
        assert_eq!(from_middle, [0.0, 173.0, 173.0, 346.0]);
        assert_eq!(placed.rings.iter().map(|(_, depth)| *depth).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn nodes_of_a_crowded_circle_become_smaller_and_keep_their_order_of_sizes() {
        let many: Vec<Spot> =
            (0..300).map(|at| Spot { radius: if at < 40 { 18.0 } else { 6.0 }, ..spot(0, None) }).collect();
        let placed = layout(&many);
        let wide: f64 = placed.spots.iter().map(|spot| 2.0 * spot.radius).sum();
        assert!(wide < TAU * (SIZE / 2.0), "{wide}");
        assert!(placed.spots[0].radius > placed.spots[299].radius && placed.spots[299].radius >= LEAST);
    }

    #[test]
    fn every_node_has_a_place_within_the_drawing_however_the_site_is_linked() {
        // A parent that is not nearer to the start, and nodes that nothing leads to.
        let odd = [spot(0, Some(1)), spot(0, Some(0)), spot(3, None), spot(3, Some(2)), spot(9, Some(3))];
        for spots in [&odd[..], &odd[..1], &[]] {
            let placed = layout(spots);
            assert_eq!(placed.points.len(), spots.len());
            for (x, y) in placed.points {
                assert!((0.0..=SIZE).contains(&x) && (0.0..=SIZE).contains(&y), "{x} {y}");
            }
        }
    }
}
