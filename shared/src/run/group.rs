//! Groups of a run: tasks that several members do, each as a task of its own.

use serde::{Deserialize, Serialize};

use super::state::RunState;
use crate::flow::{Budget, GroupVerdict, Pattern, TaskStatus, View};
use crate::ids::{TaskId, TaskIndex};

/// The members of one task. They stand in [`RunState::tasks`] and in no plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Group {
    /// How the task was given out.
    pub pattern: Pattern,
    /// The members, by letter.
    pub members: Vec<TaskIndex>,
    /// Which round of discussion it is; 0 while they work by themselves.
    #[serde(default)]
    pub round: u8,
    /// What members found before that round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<View>,
    /// Which result counts; nothing while that is open, or when there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<GroupVerdict>,
}

impl Group {
    /// What each member may use of what the task may use.
    #[must_use]
    pub fn share_of(&self, whole: &Budget) -> Budget {
        let members = u64::from(self.pattern.members().max(1));
        whole.map(|_, limit| (limit / members).max(1))
    }
}

impl RunState {
    /// The group of a task that its members have in work.
    #[must_use]
    pub fn group_in_work(&self, task: &TaskIndex) -> Option<&Group> {
        let group = self.groups.get(task)?;
        let in_work = self.planned(task).is_some_and(|state| state.status == TaskStatus::Processing);
        (in_work && group.verdict.is_none()).then_some(group)
    }

    /// Whether a task is done by members, and so in nobody's hands itself.
    #[must_use]
    pub fn is_shared(&self, task: &TaskId) -> bool {
        task.as_leaf().is_some_and(|index| self.group_in_work(index).is_some())
    }

    /// The members of groups that are in work, in order.
    pub fn members_in_work(&self) -> impl Iterator<Item = &TaskIndex> {
        let shared = self.groups.iter().filter(|(task, _)| self.group_in_work(task).is_some());
        shared.flat_map(|(_, group)| &group.members)
    }
}
