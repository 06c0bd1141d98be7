//! `muster answer`: answers a question of a run.

use muster_shared::run::{QuestionState, RunState};
use muster_shared::wire::Command;

use super::order::Target;
use crate::app::App;
use crate::args::AnswerArgs;
use crate::exit::{Exit, Failure};

/// Answers a question.
pub(super) async fn answer(app: &App, args: &AnswerArgs) -> Result<Exit, Failure> {
    let (run, question) = (args.question.run(&args.order.run), args.question.at);
    let is_open = |state: &RunState| state.questions.get(&question).is_some_and(QuestionState::is_open);
    let target = Target::find_asking(app, &run, is_open).await?;
    let text = match (&args.text, args.choice) {
        (Some(text), _) => app.redactor.redact(text.trim()).into_owned(),
        (None, Some(choice)) => {
            let choices =
                target.state.questions.get(&question).map(|asked| asked.question.choices.as_slice());
            if choices.is_some_and(<[String]>::is_empty) {
                return Err(Failure::usage(format!("question {question} has no choices"))
                    .help("answer it in words; what is to be approved, `muster approve` approves"));
            }
            choice.to_string()
        }
        (None, None) => return Err(Failure::usage("there is no answer: give a text, or --choice N")),
    };
    let command = Command::Answer { run: target.run, question, text, id: None };
    target.order(&args.order, command).await
}
