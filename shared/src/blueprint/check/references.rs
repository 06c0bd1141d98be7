//! What texts, conditions and lists of a blueprint refer to.

use super::super::expression::{Expression, Kind};
use super::super::names::{Path, StepField, hint};
use super::super::template::{TextPiece, paths, pieces};
use super::super::{Blueprint, BlueprintStep, ParamKind};
use super::Finder;

/// Most references to results in one text.
const MAX_REFERENCES: usize = 8;

impl Finder<'_> {
    /// A text with references. Only goals of steps may refer to results: those are put in when the step is offered.
    pub(super) fn text(&mut self, at: &str, text: &str, step: Option<&BlueprintStep>, results: bool) {
        self.length(at, text);
        if paths(text).filter(|path| path.step().is_some()).count() > MAX_REFERENCES {
            self.add(
                at,
                format!("more than {MAX_REFERENCES} references to results: name other steps in `after`"),
            );
        }
        for piece in pieces(text) {
            match piece {
                TextPiece::Words(_) => {}
                TextPiece::Wrong(why) => self.add(at, why),
                TextPiece::Path(path) => {
                    if let Path::Step(_, field) = &path {
                        let shown = matches!(field, StepField::Result | StepField::Findings);
                        if !results || !shown {
                            let why = if results {
                                format!("{{{{{path}}}}} cannot stand in a text: write .result or .findings")
                            } else {
                                format!("{{{{{path}}}}} can stand in the goal of a step only")
                            };
                            self.add(at, why);
                            continue;
                        }
                    }
                    self.path(at, &path, step);
                }
            }
        }
    }

    pub(super) fn condition(&mut self, at: &str, text: &str, step: &BlueprintStep) {
        let read = match Expression::read(text) {
            Ok(read) => read,
            Err(why) => return self.add(at, why),
        };
        for path in read.paths() {
            if *path == Path::Item {
                self.add(at, "a condition decides on the whole step: `item` means nothing here");
            } else {
                self.path(at, path, Some(step));
            }
        }
        if let Err(why) = read.kind(&|path| kind(self.blueprint, path)) {
            self.add(at, why);
        }
    }

    pub(super) fn list(&mut self, at: &str, text: &str, step: &BlueprintStep) {
        match Path::read(text.trim()) {
            Err(why) => self.add(at, why),
            Ok(Path::Item | Path::Step(_, StepField::Ok)) => {
                self.add(
                    at,
                    "this is no list: write params.NAME, STEP.findings, STEP.result or STEP.unanswered",
                );
            }
            Ok(path) => {
                self.path(at, &path, Some(step));
                if let Path::Param(name) = &path
                    && let Some(param) = self.blueprint.params.get(name)
                    && param.kind != ParamKind::List
                {
                    self.add(at, format!("params.{name} is no list: give it `type = \"list\"`"));
                }
            }
        }
    }

    fn path(&mut self, at: &str, path: &Path, step: Option<&BlueprintStep>) {
        match path {
            Path::Param(name) => {
                if !self.blueprint.params.contains_key(name) {
                    let near = hint(name, self.blueprint.params.keys().map(String::as_str));
                    self.add(at, format!("there is no parameter {name:?}{near}"));
                }
            }
            Path::Item => {
                if step.is_none_or(|step| step.for_each.is_none()) {
                    self.add(at, "`item` stands for nothing here: only steps with for_each have one");
                }
            }
            Path::Step(id, _) => self.known_step(at, id, step),
        }
    }

    pub(super) fn known_step(&mut self, at: &str, id: &str, own: Option<&BlueprintStep>) {
        let ids = || self.blueprint.steps.iter().map(|step| step.id.as_str());
        if own.is_some_and(|own| own.id == id) {
            self.add(at, format!("step {id:?} cannot use what it gives itself"));
        } else if !ids().any(|known| known == id) {
            let near = hint(id, ids());
            self.add(at, format!("there is no step {id:?}{near}"));
        }
    }
}

fn kind(blueprint: &Blueprint, path: &Path) -> Option<Kind> {
    match path {
        Path::Param(name) => blueprint.params.get(name).map(|param| match param.kind {
            ParamKind::String => Kind::Text,
            ParamKind::Integer | ParamKind::Number => Kind::Number,
            ParamKind::Boolean => Kind::Flag,
            ParamKind::List => Kind::List,
        }),
        Path::Item | Path::Step(_, StepField::Result) => Some(Kind::Text),
        Path::Step(_, StepField::Findings | StepField::Unanswered) => Some(Kind::List),
        Path::Step(_, StepField::Ok) => Some(Kind::Flag),
    }
}
