//! Calls that a person approves before they are made (T8): asked for, and gone on with.

use muster_shared::flow::{Action, CallToApprove, CallVerdict, Note, Step, Use, Wait};

use super::super::approval::to_approve;
use super::super::decide::ChosenAction;
use super::super::journal::Journal;
use super::super::resources::TaskResources;
use super::{Clock, End, Failure, TaskSession, Toolbox};

impl TaskSession<'_> {
    /// Puts the task down until a person has decided on the next call of an answer that needs it. The answer, with what was
    /// said of its other calls, stands in the record before.
    pub(super) async fn approve_calls(
        &mut self,
        journal: &mut Journal,
        chosen: &ChosenAction,
        resources: &TaskResources,
        clock: Clock,
    ) -> Result<(), Failure> {
        let why = |tool: &str| resources.engine.approval(tool, &resources.context);
        let Some(call) = to_approve(chosen, why) else { return Ok(()) };
        self.keep(journal, chosen, clock).await?;
        self.pending.clear();
        Err(self.waits(Wait::Approval(Box::new(call))))
    }

    /// Goes on by what a person said of a call. Arguments that they gave and that do not fit are asked about again.
    pub(super) async fn take_verdict(
        &mut self,
        journal: &mut Journal,
        toolbox: &mut Toolbox,
        mut step: Step,
        verdict: &CallVerdict,
    ) -> Result<Option<End>, Failure> {
        if let Err(again) = self.may_be_made(&step, verdict, &toolbox.resources) {
            return Err(self.waits(Wait::Approval(again)));
        }
        step.notes.push(Note::Approval { verdict: verdict.clone() });
        self.go_on_from(journal, toolbox, step).await
    }

    /// What to ask again where a call cannot be made as a person changed it.
    fn may_be_made(
        &self,
        step: &Step,
        verdict: &CallVerdict,
        resources: &TaskResources,
    ) -> Result<(), Box<CallToApprove>> {
        let at = usize::try_from(verdict.at).unwrap_or(usize::MAX);
        let (Some(arguments), Some((Action { name, .. }, _))) = (verdict.arguments(), step.acts().nth(at))
        else {
            return Ok(());
        };
        let fits = resources.engine.fits(name, arguments).and_then(|()| {
            let uses = Use::of_call(name, arguments);
            self.offer.rights.allow_all(&uses).map_err(|refusal| refusal.to_string())
        });
        fits.map_err(|why| {
            let (tool, arguments) = (name.clone(), arguments.clone());
            let why = format!("the arguments that were given cannot be used: {why}");
            Box::new(CallToApprove { at: verdict.at, tool, arguments, why })
        })
    }
}
