//! Which edges of a graph are part of a cycle.
//!
//! An edge is part of a cycle if a path leads from its end back to its start, that is, if both are in one strongly connected
//! component. Tarjan's algorithm finds all of these in one pass over the edges. To look for a path from each edge anew would cost
//! the square of their number, and the author of a catalogue chooses that number. The pass is a loop and no recursion: a chain
//! of dependencies may be as long as the catalogue, and no thread's stack is.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// The number of a node: where it is in the list of nodes.
type Node = usize;

/// The cycles of a graph.
#[derive(Debug, Default)]
pub(crate) struct Cycles {
    /// The nodes that are in a cycle, each with the number of its strongly connected component. As a rule there are none.
    connected: HashMap<Node, Node, RandomState>,
}

impl Cycles {
    /// The cycles of the graph in which edges lead from each node to these others.
    pub(crate) fn find(edges: &[Vec<Node>]) -> Self {
        let mut search = Search {
            edges,
            visits: vec![Visit { order: UNVISITED, lowest: UNVISITED, is_pending: false }; edges.len()],
            visited: 0,
            pending: Vec::new(),
            path: Vec::new(),
            found: Self::default(),
        };
        for root in 0..edges.len() {
            search.visit_all_from(root);
        }
        search.found
    }

    /// Whether there is none, which is so for almost every graph.
    pub(crate) fn is_empty(&self) -> bool {
        self.connected.is_empty()
    }

    /// Whether an edge from one node to another is part of a cycle.
    pub(crate) fn contain(&self, from: Node, to: Node) -> bool {
        let connected = self.connected.get(&from);
        connected.is_some() && connected == self.connected.get(&to)
    }
}

const UNVISITED: usize = usize::MAX;

/// What is known of a node.
#[derive(Clone, Copy)]
struct Visit {
    /// How many nodes were visited before it.
    order: usize,
    /// The least order of the pending nodes that it is known to lead to.
    lowest: usize,
    /// Whether its strongly connected component is not complete yet.
    is_pending: bool,
}

/// Tarjan's algorithm, in progress.
struct Search<'a> {
    edges: &'a [Vec<Node>],
    /// By the node.
    visits: Vec<Visit>,
    /// How many nodes were visited.
    visited: usize,
    /// The pending nodes, in the order of their visits.
    pending: Vec<Node>,
    /// The way from a root to the node that is visited now, each with how many of its edges were followed.
    path: Vec<(Node, usize)>,
    found: Cycles,
}

impl Search<'_> {
    fn visit_all_from(&mut self, root: Node) {
        if self.visits[root].order == UNVISITED {
            self.enter(root);
        }
        while let Some((node, followed)) = self.path.last_mut() {
            let node = *node;
            let Some(to) = self.edges[node].get(*followed).copied() else {
                self.leave(node);
                continue;
            };
            *followed += 1;
            note_edge();
            let known = self.visits[to];
            if known.order == UNVISITED {
                self.enter(to);
            } else if known.is_pending {
                self.lower(node, known.order);
            }
        }
    }

    fn enter(&mut self, node: Node) {
        self.visits[node] = Visit { order: self.visited, lowest: self.visited, is_pending: true };
        self.visited += 1;
        self.pending.push(node);
        self.path.push((node, 0));
    }

    fn lower(&mut self, node: Node, order: usize) {
        let lowest = &mut self.visits[node].lowest;
        *lowest = order.min(*lowest);
    }

    /// All edges of a node were followed. If it leads to no node before it, it and the pending ones after it lead to one another.
    fn leave(&mut self, node: Node) {
        self.path.pop();
        let Visit { order, lowest, .. } = self.visits[node];
        if let Some((parent, _)) = self.path.last().copied() {
            self.lower(parent, lowest);
        }
        if lowest < order {
            return;
        }
        let start = self.pending.iter().rposition(|pending| *pending == node).unwrap_or_default();
        let connected = self.pending.split_off(start);
        let is_cycle = connected.len() > 1 || self.edges[node].contains(&node);
        for member in connected {
            self.visits[member].is_pending = false;
            if is_cycle {
                self.found.connected.insert(member, node);
            }
        }
    }
}

#[cfg(test)]
thread_local! {
    /// How many edges this thread has followed: tests show by it that a change follows each only a few times.
    pub(crate) static FOLLOWED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn note_edge() {
    #[cfg(test)]
    FOLLOWED.set(FOLLOWED.get() + 1);
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// Whether a path leads from one node to another, or begins there.
    fn reaches(edges: &[Vec<Node>], from: Node, to: Node) -> bool {
        let (mut seen, mut open) = (vec![false; edges.len()], vec![from]);
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            if !std::mem::replace(&mut seen[at], true) {
                open.extend(&edges[at]);
            }
        }
        false
    }

    proptest! {
        #[test]
        fn an_edge_is_part_of_a_cycle_if_its_end_reaches_its_start(
            edges in (1..12_usize).prop_flat_map(|nodes| vec(vec(0..nodes, 0..4), nodes)),
        ) {
            let cycles = Cycles::find(&edges);
            let mut is_any = false;
            for (from, ends) in edges.iter().enumerate() {
                for to in ends {
                    let expected = reaches(&edges, *to, from);
                    is_any |= expected;
                    prop_assert_eq!(cycles.contain(from, *to), expected, "{} to {}", from, to);
                }
            }
            prop_assert_eq!(cycles.is_empty(), !is_any);
        }
    }

    #[test]
    fn each_edge_is_followed_once_and_the_longest_chain_needs_no_stack() {
        const NODES: usize = 200_000;
        let chain = |last: Node| -> Vec<Vec<Node>> {
            (0..NODES).map(|node| vec![if node + 1 < NODES { node + 1 } else { last }]).collect()
        };
        for (last, is_cycle) in [(0, true), (NODES - 1, false)] {
            let before = FOLLOWED.get();
            let cycles = Cycles::find(&chain(last));
            assert_eq!(FOLLOWED.get() - before, NODES);
            assert_eq!(cycles.contain(5, 6), is_cycle);
        }
    }
}
