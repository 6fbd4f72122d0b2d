//! Sorting nodes by their means, exactly as t-digest-c does: nodes of equal means and different weights are merged in the order
//! in which they stand, which decides the last bits of answers.
//!
//! Quicksort in three parts (smaller, equal, larger) around the median of first, middle and last; parts of up to 17 nodes
//! by insertion; heapsort where it goes too deep, so that no order of numbers makes it slow.

use super::Node;

/// Parts whose last and first index differ by no more are sorted by insertion.
const SMALL: usize = 16;

pub(super) fn sort(nodes: &mut [Node]) {
    if nodes.len() > 1 {
        quicksort(nodes, 2 * nodes.len().ilog2());
    }
}

fn quicksort(mut nodes: &mut [Node], mut depth: u32) {
    while nodes.len() > SMALL + 1 {
        if depth == 0 {
            return heapsort(nodes);
        }
        depth -= 1;
        let (smaller, larger) = partition(nodes);
        let (left, right) = nodes.split_at_mut(larger);
        let left = &mut left[..smaller];
        // The smaller part first, so that the stack stays short.
        if left.len() < right.len() {
            quicksort(left, depth);
            nodes = right;
        } else {
            quicksort(right, depth);
            nodes = left;
        }
    }
    insertion_sort(nodes);
}

/// Orders nodes in three parts. The length of the first, and where the last begins.
fn partition(nodes: &mut [Node]) -> (usize, usize) {
    let last = nodes.len() - 1;
    let middle = last / 2;
    for (left, right) in [(0, middle), (0, last), (middle, last)] {
        if nodes[right].mean < nodes[left].mean {
            nodes.swap(left, right);
        }
    }
    let pivot = nodes[middle].mean;
    // [0, smaller) below the pivot, [smaller, i) equal, [larger, …) above.
    let (mut smaller, mut i, mut larger) = (0, 0, nodes.len());
    while i < larger {
        let mean = nodes[i].mean;
        if mean < pivot {
            nodes.swap(smaller, i);
            smaller += 1;
            i += 1;
        } else if mean > pivot {
            larger -= 1;
            nodes.swap(i, larger);
        } else {
            i += 1;
        }
    }
    (smaller, larger)
}

fn insertion_sort(nodes: &mut [Node]) {
    for i in 1..nodes.len() {
        let node = nodes[i];
        let mut at = i;
        while at > 0 && nodes[at - 1].mean > node.mean {
            nodes[at] = nodes[at - 1];
            at -= 1;
        }
        nodes[at] = node;
    }
}

fn heapsort(nodes: &mut [Node]) {
    for root in (0..nodes.len() / 2).rev() {
        sift_down(nodes, root);
    }
    for end in (1..nodes.len()).rev() {
        nodes.swap(0, end);
        sift_down(&mut nodes[..end], 0);
    }
}

fn sift_down(nodes: &mut [Node], mut root: usize) {
    loop {
        let mut child = 2 * root + 1;
        if child >= nodes.len() {
            return;
        }
        if child + 1 < nodes.len() && nodes[child].mean < nodes[child + 1].mean {
            child += 1;
        }
        if nodes[root].mean >= nodes[child].mean {
            return;
        }
        nodes.swap(root, child);
        root = child;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    fn assert_sorts(means: Vec<f64>, sort: impl Fn(&mut [Node])) {
        let mut nodes: Vec<Node> = means.iter().map(|&mean| Node { mean, weight: 1 }).collect();
        sort(&mut nodes);
        let mut expected = means;
        expected.sort_by(f64::total_cmp);
        assert!(nodes.iter().map(|node| node.mean).eq(expected));
    }

    #[test]
    fn any_order_is_sorted() {
        for len in [0, 1, 2, 3, 16, 17, 18, 19, 100, 1000] {
            for distinct in [1, 2, 5, 1 << 20] {
                let mean = |i: usize| (mix64(i as u64) % distinct) as f64;
                assert_sorts((0..len).map(mean).collect(), sort);
                assert_sorts((0..len).map(mean).collect(), heapsort);
            }
            assert_sorts((0..len).map(|i| i as f64).collect(), sort);
            assert_sorts((0..len).rev().map(|i| i as f64).collect(), sort);
        }
    }
}
