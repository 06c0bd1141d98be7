//! Tasks that wait: for people, and for tasks that they hand work over to.

use muster_shared::flow::{
    About, CallForm, Ending, Form, FormReply, Given, ObservationStatus, OnTimeout, People, Question,
    RunLimits, TaskDraft, TaskOffered, TaskStatus, Wait, Work,
};
use muster_shared::ids::{Generation, QuestionId, TaskId, TaskIndex};
use muster_shared::run::{QuestionEnd, RequestAction, RunStatus};
use muster_shared::time::Millis;

use super::fleet::{Fleet, failed, good, leaf, result};
use super::review::tasks;
use super::tables::status;
use crate::decide::{in_work, next_deadline};

fn question() -> Question {
    Question { default: Some("2025".into()), within_ms: Some(60_000), ..Question::new("Which year?") }
}

fn begun(people: People) -> Fleet {
    Fleet::planned(RunLimits { people, ..RunLimits::default() }, tasks())
}

fn wait(fleet: &mut Fleet, offer: &TaskOffered, wait: Wait) {
    fleet.start(offer);
    fleet.wait(offer, wait);
}

/// A run whose first task asks a person, and the offer of that task.
fn asking(people: People, question: Question) -> (Fleet, TaskOffered) {
    let mut fleet = begun(people);
    let one = fleet.find("1");
    wait(&mut fleet, &one, Wait::Answer(question));
    (fleet, one)
}

fn reply(fleet: &mut Fleet, n: u128, id: u32, text: &str) {
    let (question, text) = (QuestionId(id), text.to_owned());
    fleet.ask(n, RequestAction::Answer { question, text });
}

fn observation(offer: &TaskOffered) -> (ObservationStatus, &str) {
    let answered = offer.answered.as_deref().unwrap();
    assert_eq!(answered.step, 1);
    (answered.observation.status, &answered.observation.content)
}

#[test]
fn a_task_that_waits_holds_no_slot_and_goes_on_with_the_answer() {
    let (mut fleet, _) = asking(People::default(), question());
    let waiting = fleet.run().planned(&TaskIndex::top(1)).unwrap();
    assert_eq!((waiting.status, waiting.waiting.as_ref().unwrap().step), (TaskStatus::Waiting, 1));
    assert_eq!(in_work(fleet.run()).values().sum::<u32>(), 1, "only the other task is in work");
    assert_eq!(next_deadline(fleet.run()), Some(Millis(fleet.now.0 + 60_000)));

    // What else there is to do is done; the run does not end without the one that waits.
    fleet.work(|offer| good(offer, &tasks()));
    assert_eq!(fleet.status(), RunStatus::Processing);

    reply(&mut fleet, 1, 1, " in 2024 ");
    let again = fleet.find("1");
    assert_eq!((again.generation, again.continues), (Generation(2), Some(Generation(1))));
    assert_eq!(observation(&again), (ObservationStatus::Success, "ann answers: in 2024"));
    assert!(fleet.run().planned(&TaskIndex::top(1)).unwrap().waiting.is_none());
    fleet.finish(&tasks());
}

#[test]
fn an_answer_reaches_the_task_through_pauses_and_lost_agents() {
    let (mut fleet, one) = asking(People::default(), question());
    fleet.ask(1, RequestAction::Pause);
    reply(&mut fleet, 2, 1, "2024");
    assert!(fleet.open.iter().all(|offer| offer.task != one.task), "nothing is offered while it is paused");
    fleet.ask(3, RequestAction::Resume { deadline_ms: None });
    let two = fleet.find("1");
    assert_eq!(observation(&two).1, "ann answers: 2024");
    // It is put down again before its agent could write the step.
    fleet.ask(4, RequestAction::Pause);
    fleet.ask(5, RequestAction::Resume { deadline_ms: None });
    let three = fleet.find("1");
    assert_eq!((three.generation, observation(&three).1), (Generation(3), "ann answers: 2024"));
    fleet.finish(&tasks());
}

#[test]
fn what_a_call_asks_a_person_for_is_answered_by_what_fits_and_by_nothing_else() {
    let schema = serde_json::json!({
        "type": "object", "properties": { "guests": { "type": "integer", "minimum": 1 } }, "required": ["guests"],
    });
    let form = |schema| Some(Box::new(CallForm { id: "q-1".into(), form: Form::Values(schema) }));
    let given = |offer: &TaskOffered| offer.answered.as_deref().unwrap().form.as_deref().unwrap().clone();
    let values = Given::Values(serde_json::json!({ "guests": 4 }));
    let (yes, no) = ((Some("4"), values, Some("ann")), (Some("decline"), Given::Declined, Some("ann")));
    for (text, came, by) in [yes, no, (None, Given::Nothing, None)] {
        let (mut fleet, _) =
            asking(People::default(), Question { form: form(schema.clone()), default: None, ..question() });
        reply(&mut fleet, 1, 1, "many");
        assert!(fleet.refusals()[0].contains("whole number"), "{:?}", fleet.refusals());
        match text {
            Some(text) => reply(&mut fleet, 2, 1, text),
            None => {
                fleet.pass(60_000);
            }
        }
        let again = given(&fleet.find("1"));
        assert_eq!(again, FormReply { id: "q-1".into(), given: came, by: by.map(str::to_owned) });
        fleet.finish(&tasks());
    }
    // What nobody can be asked for is asked in words.
    let mut fleet = begun(People::default());
    let one = fleet.find("1");
    let unsound = form(serde_json::json!({ "type": "string" }));
    wait(&mut fleet, &one, Wait::Answer(Question { form: unsound, ..question() }));
    reply(&mut fleet, 1, 1, "four");
    assert_eq!(observation(&fleet.find("1")).1, "ann answers: four");
}

#[test]
fn a_question_is_answered_once() {
    let (mut fleet, _) =
        asking(People::default(), Question { choices: vec!["Red".into(), "Blue".into()], ..question() });
    reply(&mut fleet, 1, 7, "1");
    reply(&mut fleet, 2, 1, "green");
    reply(&mut fleet, 3, 1, " ");
    reply(&mut fleet, 4, 1, "2");
    reply(&mut fleet, 5, 1, "red");
    let refused = fleet.refusals();
    assert_eq!(refused.len(), 4, "{refused:?}");
    assert!(
        refused[0].contains("no question 7") && refused[0].contains("wait for an answer: 1"),
        "{refused:?}"
    );
    assert!(refused[1].contains("1: Red; 2: Blue"), "{refused:?}");
    assert!(refused[2].contains("empty"), "{refused:?}");
    assert_eq!(refused[3], "question 1 was answered by ann: Blue");
    assert_eq!(observation(&fleet.find("1")).1, "ann answers: Blue");
    fleet.finish(&tasks());
}

#[test]
fn when_nobody_answers_the_policy_says_what_follows() {
    // The default is taken; without one, the task is told so.
    for (default, status, text) in [
        (Some("2025"), ObservationStatus::Success, "default is taken: 2025"),
        (None, ObservationStatus::Timeout, "there is no default"),
    ] {
        let mut fleet = begun(People::default());
        let one = fleet.find("1");
        let default = default.map(str::to_owned);
        wait(&mut fleet, &one, Wait::Answer(Question { default, ..question() }));
        fleet.pass(59_999);
        assert_eq!(fleet.run().open_questions().count(), 1);
        fleet.pass(1);
        let offer = fleet.find("1");
        assert_eq!(observation(&offer).0, status);
        assert!(observation(&offer).1.contains(text), "{:?}", observation(&offer));
        fleet.finish(&tasks());
    }

    // Others are asked one after the other, then the default is taken.
    let ask = vec!["ada".to_owned(), "grace".to_owned()];
    let (mut fleet, _) =
        asking(People { ask, on_timeout: OnTimeout::AskAnother, ..People::default() }, question());
    let mut asked = Vec::new();
    while fleet.run().open_questions().count() > 0 {
        asked.push(fleet.run().questions[&QuestionId(1)].asked_of.clone().unwrap());
        fleet.pass(60_000);
    }
    assert_eq!(asked, ["ada", "grace"]);
    assert!(observation(&fleet.find("1")).1.contains("default"));

    // The run is stopped.
    let (mut fleet, _) = asking(People { on_timeout: OnTimeout::Abort, ..People::default() }, question());
    fleet.pass(60_000);
    assert!(matches!(fleet.status(), RunStatus::Aborted(_)));
    assert!(fleet.reason().contains("nobody answered question 1"), "{}", fleet.reason());
}

#[test]
fn what_ends_the_wait_withdraws_the_question() {
    let (mut fleet, one) = asking(People::default(), question());
    fleet.ask(1, RequestAction::Skip { task: TaskIndex::top(1) });
    assert_eq!(status(&fleet, "1"), TaskStatus::Skipped);
    let asked = &fleet.run().questions[&QuestionId(1)];
    assert_eq!(asked.about, About::Task(one.task.clone()));
    assert!(matches!(asked.end, Some(QuestionEnd::Withdrawn(_))), "{:?}", asked.end);
    reply(&mut fleet, 2, 1, "2024");
    assert!(fleet.refusals()[0].contains("was withdrawn"), "{:?}", fleet.refusals());
    fleet.finish(&tasks());
}

#[test]
fn a_task_that_waits_can_be_done_again_from_its_beginning() {
    let (mut fleet, _) = asking(People::default(), question());
    fleet.ask(1, RequestAction::Redo { task: TaskIndex::top(1) });
    assert!(fleet.refusals().is_empty(), "{:?}", fleet.refusals());
    let again = fleet.find("1");
    assert_eq!((again.continues, again.answered), (None, None));
    assert_eq!(fleet.run().open_questions().count(), 0);
    fleet.finish(&tasks());
}

#[test]
fn part_of_a_task_is_done_by_another_and_its_end_is_the_observation() {
    for succeeds in [true, false] {
        let mut fleet = begun(People::default());
        let one = fleet.find("1");
        wait(
            &mut fleet,
            &one,
            Wait::Task(Box::new(TaskDraft { role: Some("researcher".into()), ..leaf("part", &[]) })),
        );
        let part = fleet.find("3");
        assert!(matches!(&part.work, Work::Execute { task, .. } if task.goal == "find out about part"));
        assert!(fleet.open.iter().all(|offer| offer.task != one.task));
        if succeeds {
            fleet.start(&part);
            fleet.end(&part, result("the part is so"));
        } else {
            for _ in 0..3 {
                fleet.do_task("3", failed(Ending::ModelFailed, "no model answers"));
            }
        }
        let again = fleet.find("1");
        let (status, text) = observation(&again);
        if succeeds {
            assert_eq!(status, ObservationStatus::Success);
            assert!(text.contains("the part is so"), "{text}");
        } else {
            assert_eq!(status, ObservationStatus::Error);
            assert!(text.contains("no model answers"), "{text}");
        }
        fleet.finish(&tasks());
    }
}

#[test]
fn work_does_not_come_back_to_where_it_was() {
    let mut fleet = begun(People::default());
    let as_role = |name: &str, role: &str| {
        Wait::Task(Box::new(TaskDraft { role: Some(role.into()), ..leaf(name, &[]) }))
    };
    let one = fleet.find("1");
    wait(&mut fleet, &one, as_role("part", "researcher"));
    let part = fleet.find("3");
    assert_eq!((one.chain.len(), part.chain.as_slice()), (0, &[TaskIndex::top(1)][..]));
    // Back to a worker.
    wait(&mut fleet, &part, as_role("part of the part", "worker"));
    let again = fleet.find("3");
    assert_eq!(observation(&again).0, ObservationStatus::Refused);
    assert!(observation(&again).1.contains("come back"), "{:?}", observation(&again));
    // The very same.
    wait(&mut fleet, &again, as_role("one", "researcher"));
    let again = fleet.find("3");
    assert!(observation(&again).1.contains("what 1 is to do"), "{:?}", observation(&again));
    // Over and over.
    wait(&mut fleet, &again, as_role("deeper", "researcher"));
    let deeper = fleet.find("4");
    assert_eq!(deeper.chain, [TaskIndex::top(1), TaskIndex::top(3)]);
    wait(&mut fleet, &deeper, as_role("deepest", "researcher"));
    assert!(
        observation(&fleet.find("4")).1.contains("2 times already"),
        "{:?}",
        observation(&fleet.find("4"))
    );
    fleet.finish(&tasks());
}

#[test]
fn what_is_wrong_with_a_part_is_told_to_who_wants_it_done() {
    let mut fleet = begun(People::default());
    let one = fleet.find("1");
    let astronaut = TaskDraft { role: Some("astronaut".into()), ..leaf("part", &[]) };
    wait(&mut fleet, &one, Wait::Task(Box::new(astronaut)));
    let again = fleet.find("1");
    assert_eq!(observation(&again).0, ObservationStatus::Refused);
    assert!(observation(&again).1.contains("astronaut"), "{:?}", observation(&again));
    // The planner itself has nothing to hand over.
    let mut fleet = Fleet::submitted(RunLimits::default());
    let planning = fleet.find("plan");
    wait(&mut fleet, &planning, Wait::Task(Box::new(leaf("part", &[]))));
    assert_eq!(fleet.find("plan").task, TaskId::Plan);
    assert_eq!(observation(&fleet.find("plan")).0, ObservationStatus::Refused);
}

#[test]
fn a_run_whose_time_is_up_does_not_wait_on() {
    let (mut fleet, _) = asking(People::default(), Question { within_ms: Some(u64::MAX), ..question() });
    fleet.work(|offer| good(offer, &tasks()));
    let expires = fleet.run().questions[&QuestionId(1)].expires;
    assert!(expires < fleet.run().deadline, "something is to be done with the answer");
    fleet.at(fleet.run().deadline);
    assert!(fleet.status().is_ended());
}
