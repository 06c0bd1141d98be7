//! What tests of the loop share.

use muster_shared::flow::{RolePermissions, TaskOffered};

use super::decide::StepContext;
use super::limits::StepLimits;
use crate::roles::rules_for;
use crate::testing::toolset;

/// A step of this task, with the tools of [`toolset`] and every gate open.
pub(super) fn in_case<T>(
    offer: &TaskOffered,
    has_model: bool,
    limits: StepLimits,
    then: impl FnOnce(&StepContext<'_>) -> T,
) -> T {
    let (rules, toolset) = (rules_for(&offer.work), toolset(offer));
    let permissions = RolePermissions::OPEN;
    then(&StepContext { offer, rules, toolset: &toolset, permissions, has_model, limits })
}
