//! What of a region its limits follow from: regions that agree in it have the same limits.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use fleet::RegionSnapshot;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Tables and columns that policies read, by name. A column of another table with the same name counts as read, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    tables: BTreeSet<String>,
    columns: BTreeSet<String>,
}

impl Reads {
    /// Adds what a plan reads: it is not optimized, so each column that matters is named in it.
    pub(crate) fn add(&mut self, plan: &LogicalPlan) {
        let looked = plan.apply_with_subqueries(|node| {
            match node {
                LogicalPlan::TableScan(scan) => {
                    self.tables.insert(scan.table_name.table().to_owned());
                }
                // Rows that are compared as a whole.
                LogicalPlan::Distinct(_) => {
                    self.columns.extend(node.schema().fields().iter().map(|of| of.name().clone()));
                }
                _ => {}
            }
            node.apply_expressions(|expr| {
                expr.apply(|part| {
                    if let Expr::Column(column) | Expr::OuterReferenceColumn(_, column) = part {
                        self.columns.insert(column.name.clone());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        });
        debug_assert!(looked.is_ok(), "the closure does not fail");
    }

    pub(crate) fn extend(&mut self, other: Reads) {
        self.tables.extend(other.tables);
        self.columns.extend(other.columns);
    }

    pub(crate) fn reads_column(&self, name: &str) -> bool {
        self.columns.contains(name)
    }

    /// A number of all that is read of a region, the decided column aside. Servers count by their position.
    pub fn fingerprint(&self, region: &RegionSnapshot) -> u64 {
        let mut hasher = DefaultHasher::new();
        let of = &mut hasher;
        let [id, current, holder, available, in_use] =
            ["server_id", "current_reservation", "holder", "available", "in_use"]
                .map(|column| self.reads_column(column));
        region.servers.len().hash(of);
        for server in &region.servers {
            (server.rack, server.hardware_type, server.power_watts.map(f64::to_bits)).hash(of);
            (id.then_some(&*server.id), current.then_some(server.current)).hash(of);
            (holder.then(|| server.holder()), available.then_some(server.available)).hash(of);
            in_use.then_some(server.in_use).hash(of);
        }
        region.racks.iter().for_each(|rack| (&*rack.id, rack.msb).hash(of));
        region.msbs.iter().for_each(|msb| (&*msb.id, msb.datacenter).hash(of));
        region.datacenters.iter().for_each(|datacenter| datacenter.id.hash(of));
        region.hardware_types.hash(of);
        self.reservations(region, of);
        let defaults = ["msb_alpha", "rack_alpha", "affinity_theta"];
        if self.tables.contains("weights") || defaults.iter().any(|of| self.reads_column(of)) {
            format!("{:?}", region.weights).hash(of);
        }
        hasher.finish()
    }

    fn reservations(&self, region: &RegionSnapshot, of: &mut DefaultHasher) {
        let reads = |column| self.reads_column(column);
        let bits = |share: Option<f64>| share.map(f64::to_bits);
        for row in &region.reservations {
            (&*row.id, &*row.owner, row.kind.as_str()).hash(of);
            reads("capacity_rru").then_some(row.capacity).hash(of);
            reads("msb_buffer").then_some(row.msb_buffer).hash(of);
            reads("priority").then_some(row.priority).hash(of);
            reads("msb_alpha").then(|| bits(row.msb_alpha)).hash(of);
            reads("rack_alpha").then(|| bits(row.rack_alpha)).hash(of);
            reads("affinity_theta").then(|| bits(row.affinity_theta)).hash(of);
            self.tables.contains("rru").then_some(&row.rru).hash(of);
            if self.tables.contains("affinity") {
                row.affinity.len().hash(of);
                row.affinity.iter().for_each(|(at, share)| (at, share.to_bits()).hash(of));
            }
        }
    }
}
