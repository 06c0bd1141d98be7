//! Who may do what in the dashboard: one table. Pure.

use muster_bus::credentials::DashboardRole;
use strum::VariantArray as _;

/// What somebody does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Deed {
    /// Looks at something.
    Look,
    /// Has decisions made again and compared.
    Replay,
    /// Has a goal worked on, or a run begun from another one.
    #[strum(serialize = "run")]
    Ask,
    /// Pauses, resumes, cancels, skips, redoes, edits.
    Steer,
    /// Answers questions, approves, rejects.
    Answer,
    /// Asks a model in the playground.
    Playground,
    /// Starts and stops processes.
    Fleet,
    /// Tries dead letters again, or throws them away.
    Dead,
    /// Has lessons forgotten.
    Forget,
}

impl Deed {
    /// What it is, for whoever may not do it.
    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            Self::Look => "look at runs",
            Self::Replay => "replay runs",
            Self::Ask => "begin runs",
            Self::Steer => "steer runs",
            Self::Answer => "answer questions or approve plans",
            Self::Playground => "ask models in the playground",
            Self::Fleet => "start or stop processes",
            Self::Dead => "retry or drop dead letters",
            Self::Forget => "have lessons forgotten",
        }
    }
}

/// Whether somebody in this role may do it.
pub(crate) const fn may(role: DashboardRole, deed: Deed) -> bool {
    match role {
        DashboardRole::Viewer => matches!(deed, Deed::Look),
        DashboardRole::Auditor => matches!(deed, Deed::Look | Deed::Replay),
        DashboardRole::Operator => matches!(
            deed,
            Deed::Look
                | Deed::Replay
                | Deed::Ask
                | Deed::Steer
                | Deed::Answer
                | Deed::Playground
                | Deed::Fleet
        ),
        DashboardRole::Admin => true,
    }
}

/// What somebody in this role may do, as the page is told.
pub(crate) fn all(role: DashboardRole) -> Vec<&'static str> {
    Deed::VARIANTS.iter().filter(|deed| may(role, **deed)).map(Into::into).collect()
}

/// The way in which a request asks for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// To be shown something.
    ToRead,
    /// To have something done.
    ToDo,
}

/// What a request under `/api/` does; nothing where there is no such thing. What is not in this table is refused.
pub(crate) fn deed(asks: Asks, path: &str) -> Option<Deed> {
    let parts: Vec<&str> = path.strip_prefix("/api/")?.split('/').collect();
    if asks == Asks::ToRead {
        return Some(Deed::Look);
    }
    Some(match parts.as_slice() {
        ["logout"] => Deed::Look,
        ["runs"] => Deed::Ask,
        ["runs", _, "fork"] => Deed::Ask,
        ["runs", _, "replay"] => Deed::Replay,
        ["runs", _, "pause" | "resume" | "cancel" | "plan"] => Deed::Steer,
        ["runs", _, "plan", "check"] => Deed::Look,
        ["runs", _, "tasks", _, "skip" | "redo"] => Deed::Steer,
        ["runs", _, "approve" | "reject"] => Deed::Answer,
        ["runs", _, "questions", _, "answer"] => Deed::Answer,
        ["questions", _, "answer"] => Deed::Answer,
        ["playground"] => Deed::Playground,
        ["fleet", "start" | "stop"] => Deed::Fleet,
        ["dead", _, "retry" | "drop"] => Deed::Dead,
        ["lessons", _, "forget"] => Deed::Forget,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_what_the_page_on_the_dashboard_says() {
        let manual = include_str!("../../docs/dashboard.md");
        for &deed in Deed::VARIANTS {
            let mark = |role| if may(role, deed) { "yes" } else { "no" };
            let marks = DashboardRole::ALL.map(mark).join(" | ");
            let line = format!("| {} | {marks} |", deed.in_words());
            assert!(manual.contains(&line), "docs/dashboard.md has no line {line}");
        }
    }

    #[test]
    fn whatever_changes_something_is_in_the_table() {
        let run = "/api/runs/0193c2d4e5f6";
        let table = [
            ("/api/logout".to_owned(), Deed::Look),
            ("/api/runs".to_owned(), Deed::Ask),
            (format!("{run}/fork"), Deed::Ask),
            (format!("{run}/replay"), Deed::Replay),
            (format!("{run}/pause"), Deed::Steer),
            (format!("{run}/resume"), Deed::Steer),
            (format!("{run}/cancel"), Deed::Steer),
            (format!("{run}/plan"), Deed::Steer),
            (format!("{run}/plan/check"), Deed::Look),
            (format!("{run}/tasks/1-2/skip"), Deed::Steer),
            (format!("{run}/tasks/1-2/redo"), Deed::Steer),
            (format!("{run}/approve"), Deed::Answer),
            (format!("{run}/reject"), Deed::Answer),
            (format!("{run}/questions/1/answer"), Deed::Answer),
            ("/api/playground".to_owned(), Deed::Playground),
            ("/api/fleet/start".to_owned(), Deed::Fleet),
            ("/api/fleet/stop".to_owned(), Deed::Fleet),
            ("/api/dead/7/retry".to_owned(), Deed::Dead),
            ("/api/dead/7/drop".to_owned(), Deed::Dead),
            ("/api/lessons/0193c2d4e5f6/forget".to_owned(), Deed::Forget),
        ];
        for (path, wanted) in &table {
            assert_eq!(deed(Asks::ToDo, path), Some(*wanted), "{path}");
            assert_eq!(deed(Asks::ToDo, &format!("{path}/")), None, "{path}/");
        }
        for path in [
            "/",
            "/api",
            "/api/",
            "/api/me",
            "/api/login/x",
            "/api/runs/a/b",
            "/api//fork",
            "/api/fleet/kill",
        ] {
            assert_eq!(deed(Asks::ToDo, path), None, "{path}");
        }
    }

    #[test]
    fn who_has_more_rights_has_all_of_the_lesser_ones() {
        for &deed in Deed::VARIANTS {
            for (less, more) in [
                (DashboardRole::Viewer, DashboardRole::Auditor),
                (DashboardRole::Auditor, DashboardRole::Operator),
                (DashboardRole::Operator, DashboardRole::Admin),
            ] {
                assert!(!may(less, deed) || may(more, deed), "{less} {more} {deed:?}");
            }
        }
    }
}
