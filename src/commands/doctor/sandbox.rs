//! The sandbox of tools that run programs.

use crate::app::App;
use crate::render::checks::Check;
use crate::render::figures;

/// Checks which restrictions of the sandbox this machine supports.
pub(super) fn check(app: &App) -> Check {
    let settings = &app.settings().tool.sandbox;
    let report = muster_sandbox::probe();
    let holds = report.parts.iter().map(|one| match one.by.first() {
        Some(_) => format!("{} ({})", one.part, words(&one.by)),
        None => format!("no {}", one.part),
    });
    let found = figures::list(holds);
    match report.refusal(&settings.require) {
        None => Check::ok("sandbox", found),
        Some(why) => Check::warn(
            "sandbox",
            format!("{found}; {}", report.reasons.join("; ")),
            format!("{why}; tools that run programs are refused. docs/sandbox.md says what it needs"),
        ),
    }
}

fn words(by: &[muster_sandbox::Mechanism]) -> String {
    by.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ")
}
