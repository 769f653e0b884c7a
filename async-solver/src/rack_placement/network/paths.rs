//! Paths and cycles below zero, by Bellman and Ford from crowded racks.

use super::{Cell, NEVER, NONE, Network, Seat, index};
use crate::params::PARAMS;
use std::collections::BTreeMap;

/// Shortest paths from every node at once. Labels never rise.
struct Labels {
    label: Vec<i64>,
    parent: Vec<u32>,
    /// Nodes whose label has fallen.
    next: Vec<u32>,
}

impl Labels {
    fn relax(&mut self, from: u32, to: u32, price: i64) {
        let label = self.label[from as usize] + price;
        if label < self.label[to as usize] {
            self.label[to as usize] = label;
            self.parent[to as usize] = from;
            self.next.push(to);
        }
    }
}

/// Nodes in the order of flow, from a cell to a cell: the same one in a cycle.
type Path = Vec<u32>;

impl Network<'_> {
    /// Applies paths and cycles below zero until none is left. Ends early if `must_stop`.
    pub fn exchange(&mut self, must_stop: &dyn Fn() -> bool) {
        loop {
            let mut changed = false;
            for sources in self.crowded().chunks(PARAMS.racks.sources) {
                changed |= self.relieve(sources, must_stop);
            }
            if !changed || must_stop() {
                break;
            }
        }
    }
    /// Cells from which the price falls if a server leaves.
    fn crowded(&self) -> Vec<u32> {
        let gains = |cell: &Cell| {
            let mut taken = cell.of.iter().filter(|entry| entry.count > 0);
            taken.any(|&entry| self.cell_price(cell, entry.seat, entry, false) < 0)
        };
        let cells = (0_u32..).zip(&self.cells);
        cells.filter(|(_, cell)| gains(cell)).map(|(at, _)| at).collect()
    }

    /// Applies paths that begin at one of some cells, and cycles they lead to.
    fn relieve(&mut self, sources: &[u32], must_stop: &dyn Fn() -> bool) -> bool {
        let mut changed = false;
        while !must_stop() {
            let paths = self.paths(sources);
            if paths.is_empty() {
                break;
            }
            let applied = paths.iter().filter(|path| self.try_path(path)).count();
            if applied == 0 {
                paths.iter().for_each(|path| self.close(path));
            }
            changed |= applied > 0;
        }
        changed
    }

    /// Paths and cycles below zero that share no node.
    fn paths(&self, sources: &[u32]) -> Vec<Path> {
        let nodes = self.cells.len() + self.seats.len() + self.hubs.len();
        let mut labels =
            Labels { label: vec![0; nodes], parent: vec![NONE; nodes], next: Vec::new() };
        let mut now = sources.to_vec();
        for _ in 0..PARAMS.racks.length {
            for &node in &now {
                self.relax(node, &mut labels);
            }
            now = std::mem::take(&mut labels.next);
            now.sort_unstable();
            now.dedup();
            let paths = self.ended(&now, &labels);
            if !paths.is_empty() || now.is_empty() {
                return paths;
            }
        }
        Vec::new()
    }

    /// Relaxes the arcs out of a node.
    fn relax(&self, node: u32, labels: &mut Labels) {
        let (cells, seats) = (index(self.cells.len()), index(self.seats.len()));
        if node < cells {
            let cell = &self.cells[node as usize];
            for &entry in &cell.of {
                if entry.count > 0 && !self.closed[entry.seat as usize] {
                    let price = self.cell_price(cell, entry.seat, entry, false);
                    labels.relax(node, cells + entry.seat, price);
                }
            }
            return;
        }
        if node < cells + seats {
            let seat_at = node - cells;
            let seat = &self.seats[seat_at as usize];
            for &item in &seat.items {
                let pool = self.model.terms[seat.term as usize].items[item as usize].pool;
                for cell_at in self.cells_of[pool as usize].clone() {
                    let cell = &self.cells[cell_at as usize];
                    let entry = self.entry(cell, seat_at);
                    labels.relax(node, cell_at, self.cell_price(cell, seat_at, entry, true));
                }
            }
            if seat.hub != NONE {
                labels.relax(node, self.hub_node(seat.hub), self.slice_price(seat, false));
            }
            return;
        }
        let hub = &self.hubs[(node - cells - seats) as usize];
        for &seat in hub {
            if !self.closed[seat as usize] {
                let price = self.slice_price(&self.seats[seat as usize], true);
                labels.relax(node, cells + seat, price);
            }
        }
    }

    /// What can be applied of the paths to nodes whose labels have fallen: cycles, and paths to cells with free
    /// servers, those of least price first.
    fn ended(&self, fallen: &[u32], labels: &Labels) -> Vec<Path> {
        let cells = index(self.cells.len());
        let mut taken = vec![false; labels.label.len()];
        let mut paths = Vec::new();
        // The walk that came by a node last.
        let mut walk = BTreeMap::new();
        for &start in fallen {
            let mut node = start;
            while node != NONE && !walk.contains_key(&node) {
                walk.insert(node, start);
                node = labels.parent[node as usize];
            }
            if node == NONE || walk[&node] != start {
                continue;
            }
            let (first, mut path) = (node, vec![node]);
            loop {
                node = labels.parent[node as usize];
                path.push(node);
                if node == first {
                    break;
                }
            }
            path.iter().for_each(|&node| taken[node as usize] = true);
            path.reverse();
            paths.push(path);
        }
        let mut ends: Vec<u32> = (fallen.iter().copied())
            .filter(|&node| node < cells && self.cells[node as usize].free > 0)
            .collect();
        ends.sort_by_key(|&node| (labels.label[node as usize], node));
        for end in ends {
            let (mut node, mut path) = (end, Vec::new());
            while node != NONE && !taken[node as usize] && path.len() <= labels.label.len() {
                path.push(node);
                node = labels.parent[node as usize];
            }
            let root = *path.last().unwrap_or(&NONE);
            if node == NONE && path.len() > 1 && root < cells {
                path.iter().for_each(|&node| taken[node as usize] = true);
                path.reverse();
                paths.push(path);
            }
        }
        paths
    }

    /// Applies a path if that lowers the price: its parts may gain more alone than together.
    fn try_path(&mut self, path: &[u32]) -> bool {
        let mut price = 0;
        for (at, arc) in path.windows(2).enumerate() {
            price += self.step(arc[0], arc[1], false);
            if price >= NEVER / 2 {
                self.undo(&path[..=at + 1]);
                return false;
            }
        }
        if price >= 0 {
            self.undo(path);
            return false;
        }
        let (first, last) = (path[0], path[path.len() - 1]);
        if first != last {
            self.cells[first as usize].free += 1;
            self.cells[last as usize].free -= 1;
        }
        true
    }

    fn undo(&mut self, path: &[u32]) {
        for arc in path.windows(2).rev() {
            self.step(arc[0], arc[1], true);
        }
    }

    fn close(&mut self, path: &[u32]) {
        let (cells, seats) = (index(self.cells.len()), index(self.seats.len()));
        for &node in path {
            if node >= cells && node < cells + seats {
                self.closed[(node - cells) as usize] = true;
            }
        }
    }

    /// Applies an arc and returns its price; `back` takes it back.
    fn step(&mut self, from: u32, to: u32, back: bool) -> i64 {
        let (cells, seats) = (index(self.cells.len()), index(self.seats.len()));
        let is_seat = |node: u32| node >= cells && node < cells + seats;
        let (cell_at, seat_at, more) = match (from < cells, to < cells) {
            (true, _) => (Some(from), to - cells, false),
            (_, true) => (Some(to), from - cells, true),
            _ => (None, if is_seat(from) { from - cells } else { to - cells }, !is_seat(from)),
        };
        let change = if more == back { -1 } else { 1 };
        let Seat { term, value, slice, .. } = self.seats[seat_at as usize];
        let Some(cell_at) = cell_at else {
            let price = self.slice_price(&self.seats[seat_at as usize], more);
            self.holders[term as usize].amounts[slice as usize] += change * value;
            return price;
        };
        let cell = &self.cells[cell_at as usize];
        let entry = self.entry(cell, seat_at);
        let (rack, price) = (
            cell.rack,
            match (more, entry.count) {
                (false, 0) => NEVER,
                _ => self.cell_price(cell, seat_at, entry, more),
            },
        );
        *self.load(rack, term) += change * value;
        let count = &mut self.cells[cell_at as usize].entry(seat_at).count;
        *count = count.wrapping_add_signed(i32::try_from(change).expect("one"));
        price
    }
}
