//! Which tasks of a draft wait for which: what cannot be, or is missing, is mended.

use std::collections::{BTreeSet, HashMap};

use super::super::check::cycles;
use super::super::tree::{GoalPart, Id};
use super::Mender;

impl Mender<'_> {
    pub(super) fn settle_dependencies(&mut self) {
        self.drop_family();
        self.depend_on_references();
        self.cut_cycles();
        self.unlink_references();
    }

    fn drop_family(&mut self) {
        for id in self.tree.all() {
            let needs = &self.tree.item(id).needs;
            let family = |other: &&Id| self.is_family(id, **other);
            let wrong: Vec<Id> = needs.iter().filter(family).copied().collect();
            for other in wrong {
                self.tree.item_mut(id).needs.remove(&other);
                self.note_cut(id, other, "is part of it or the other way round");
            }
        }
    }

    fn depend_on_references(&mut self) {
        for id in self.tree.all() {
            for target in self.targets(id) {
                if !self.is_family(id, target) && !self.waits_for(id, target) {
                    self.tree.item_mut(id).needs.insert(target);
                    let (name, other) = (self.name(id), self.name(target));
                    self.note(format!("{name} now waits for {other}, whose result it uses"));
                }
            }
        }
    }

    /// Cuts, of every knot, dependencies that point forward in the plan until it is none any more.
    fn cut_cycles(&mut self) {
        while let Some((id, needed)) = self.forward_in_a_knot() {
            self.tree.item_mut(id).needs.remove(&needed);
            self.note_cut(id, needed, "waits for it as well");
        }
    }

    fn forward_in_a_knot(&self) -> Option<(Id, Id)> {
        let plan = self.tree.plan();
        let knots = cycles(&plan);
        if knots.is_empty() {
            return None;
        }
        let order = self.tree.all();
        let ids: HashMap<_, Id> = plan.tasks.keys().zip(order.iter().copied()).collect();
        let position: HashMap<Id, usize> = order.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let knots: Vec<BTreeSet<Id>> = knots
            .iter()
            .map(|knot| knot.iter().filter_map(|index| ids.get(index).copied()).collect())
            .collect();
        let forward = order.iter().flat_map(|id| self.tree.item(*id).needs.iter().map(move |to| (*id, *to)));
        let mut forward = forward.filter(|(from, to)| position.get(to) > position.get(from));
        forward.find(|(from, to)| {
            let within =
                |knot: &BTreeSet<Id>, id: Id| self.tree.leaves_of(id).iter().any(|leaf| knot.contains(leaf));
            knots.iter().any(|knot| within(knot, *from) && within(knot, *to))
        })
    }

    /// What a task refers to without waiting for it becomes words.
    fn unlink_references(&mut self) {
        for id in self.tree.all() {
            for target in self.targets(id) {
                if self.is_family(id, target) || !self.waits_for(id, target) {
                    let name = self.name(target);
                    for piece in &mut self.tree.item_mut(id).goal {
                        if matches!(piece, GoalPart::Given(other, _) if *other == target) {
                            *piece = GoalPart::Text(name.clone());
                        }
                    }
                }
            }
        }
    }

    fn targets(&self, id: Id) -> BTreeSet<Id> {
        let given = self.tree.item(id).goal.iter().filter_map(|piece| match piece {
            GoalPart::Given(other, _) => Some(*other),
            GoalPart::Text(_) => None,
        });
        given.collect()
    }

    /// Whether all leaves of `target` end before `id` starts, by its own needs or those of a task above.
    fn waits_for(&self, id: Id, target: Id) -> bool {
        let own_and_above = std::iter::successors(Some(id), |at| self.tree.parent(*at));
        let needed: BTreeSet<Id> = own_and_above
            .flat_map(|at| self.tree.item(at).needs.iter().flat_map(|to| self.tree.leaves_of(*to)))
            .collect();
        self.tree.leaves_of(target).iter().all(|leaf| needed.contains(leaf))
    }

    fn is_family(&self, one: Id, other: Id) -> bool {
        self.tree.is_within(one, other) || self.tree.is_within(other, one)
    }

    fn note_cut(&mut self, id: Id, needed: Id, why: &str) {
        let (name, other) = (self.name(id), self.name(needed));
        self.note(format!("{name} no longer waits for {other}, which {why}"));
    }
}
