//! The offline model at work from plan to report.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use muster_shared::flow::{Citation, LeafRef, PlanTask, Product, Report, TaskOffered, TaskResult};
use muster_shared::ids::{Role, TaskIndex};
use proptest::prelude::*;

use super::testing::{Documents, Ran, Tools, execute, offer, plan_of, run, run_task, write};
use super::writer::UNSURE;

const GUIDE: &str = "# Guide\n\n## Delegation\n\nA task may be handed on. Delegation loops are refused: the chain of\n\
    agents is tracked, and its depth is limited to 5.\n\n## Death of a worker\n\nWhen a worker dies, its task is \
    redelivered.\nAnother worker goes on from the last step, so no\nfinished call is repeated. It takes 250 ms.\n\n\
    | setting | meaning | default |\n|---|---|---|\n| max_depth | Most levels of the plan | 3 |\n";
const COOKING: &str =
    "Soup needs salt. Bread needs time and a hot oven. A worker bee never sleeps in the kitchen.\n";

fn documents() -> Documents {
    Documents::new(&[("docs/guide.md", GUIDE), ("cooking.txt", COOKING)])
}

fn ask(goal: &str) -> Ran {
    run(&offer(goal), &mut documents())
}

fn cited(ran: &Ran) -> Vec<Citation> {
    ran.leaves
        .iter()
        .flat_map(|(leaf, _)| &leaf.result.findings)
        .flat_map(|found| found.citations.clone())
        .collect()
}

#[test]
fn two_questions_are_answered_with_true_places() {
    let ran = ask("What limits delegation loops, and how does a run survive the death of a worker?");
    let body = &ran.report.body;
    assert!(body.contains("its depth is limited to 5. (`docs/guide.md:5`)"), "{body}");
    assert!(body.contains("goes on from the last step"), "{body}");
    assert!(body.contains("No language model was used"), "{body}");
    assert!(ran.report.offline);
    assert!(body.contains('✓'), "{body}");
}

/// The report on two tasks, of which the second uses what the first gave: the goal of the second as it stands in the plan,
/// and as it is put to whoever does it.
fn report_with_reference(planned: &str, put: &str) -> Report {
    let base = offer("Tell me all about it");
    let leaf = |number, name: &str, planned: &str, put: &str| {
        let index = TaskIndex::top(number);
        let work = execute(&PlanTask::new(name, put, Role::Researcher), &[]);
        let (product, steps) = run_task(&TaskOffered { work, ..base.clone() }, &mut documents());
        let Product::Result(result) = product else { panic!("no result: {product:?}") };
        let (name, goal) = (name.to_owned(), planned.to_owned());
        (LeafRef { index, name, goal, query: None, result }, steps)
    };
    let first = "What limits delegation loops?";
    write(&base, &[leaf(1, "First look", first, first), leaf(2, "Second look", planned, put)], &[])
}

#[test]
fn references_to_other_tasks_are_told_by_their_names() {
    let (planned, put) = (
        "How does a worker go on after {{1.result}}?",
        "How does a worker go on after the death of a worker?",
    );
    let report = report_with_reference(planned, put);
    let body = &report.body;
    assert!(body.contains("## How does a worker go on after “First look”?"), "{body}");
    assert!(body.contains("- **How does a worker go on after “First look”?** "), "{body}");
    assert!(!body.contains("{{"), "{body}");
}

#[test]
fn report_starts_with_a_conclusion_that_comes_without_statements() {
    let (index, name, goal) = (TaskIndex::top(1), "Tea".to_owned(), "Brew tea.".to_owned());
    let result = TaskResult { conclusion: "The tea is ready.".into(), ..TaskResult::default() };
    let report =
        write(&offer("Make tea"), &[(LeafRef { index, name, goal, query: None, result }, Vec::new())], &[]);
    assert!(report.body.starts_with("# Make tea\n\nThe tea is ready.\n"), "{}", report.body);
}

#[test]
fn an_open_question_with_a_reference_is_told_once_and_in_words() {
    let (planned, put) = ("Who fed penguins in {{context.place}}?", "Who fed penguins in Antarctica?");
    let report = report_with_reference(planned, put);
    assert_eq!(report.unanswered, ["Who fed penguins in “place”?"]);
    assert_eq!(report.body.matches("Who fed penguins").count(), 2, "{}", report.body);
}

#[test]
fn a_goal_that_is_one_question_is_told_once() {
    for goal in ["How does a run survive the death of a worker?", "Who won the regatta?", "x"] {
        let ran = ask(goal);
        let body = &ran.report.body;
        let told =
            body.lines().filter(|line| line.trim_start_matches(['#', '-', ' ']).eq_ignore_ascii_case(goal));
        assert_eq!(told.count(), 1, "{body}");
    }
}

#[test]
fn what_the_documents_do_not_say_is_said_to_be_open() {
    let ran = ask("How are penguins fed in Antarctica?");
    assert_eq!(ran.report.unanswered, ["How are penguins fed in Antarctica?"]);
    assert!(ran.report.body.contains("## Not answered by the documents"), "{}", ran.report.body);
}

/// Whoever decides takes a task for not done that reached fewer milestones than were set, has it done again, and says in
/// the report that not all went well. What no document says is nothing that a user could mend.
#[test]
fn a_search_in_vain_is_done_all_the_same() {
    for goal in ["How are penguins fed in Antarctica?", "What limits delegation loops?"] {
        let planned = plan_of(&offer(goal)).tasks;
        let ran = ask(goal);
        for task in planned {
            let leaf = ran.leaves.iter().map(|(leaf, _)| leaf).find(|leaf| leaf.name == task.name);
            let reached = leaf.expect("the task was done").result.milestones.len();
            assert!(reached == 0 || reached >= task.milestones.len(), "{goal}: {}: {reached}", task.name);
        }
    }
}

/// What is given with few of the question's words near it says so.
#[test]
fn an_answer_that_is_not_sure_says_so() {
    let text = "# Hives\n\nBees are counted in spring.\n";
    let mut documents = Documents::new(&[("a.md", text)]);
    let body = |goal: &str, documents: &mut Documents| run(&offer(goal), documents).report.body;
    assert!(!body("When are bees counted?", &mut documents).contains(UNSURE), "sure");
    let unsure = body("When are bees counted by the warden?", &mut documents);
    assert!(unsure.contains("counted in spring") && unsure.contains("“warden”"), "{unsure}");
}

/// A list that answers is shown whole, below its heading and with its place; what one sentence says is one sentence.
#[test]
fn what_answers_is_shown_whole_and_no_longer_than_it_must_be() {
    let text = "# Kiln\n\n## Firing\n\n1. Load the shelves.\n2. Close the door.\n3. Heat to 900 degrees.\n\n\
                ## Glazes\n\n| glaze | cone |\n|---|---|\n| celadon | 9 |\n| tin | 4 |\n\nThe kiln cools for 14 hours.\n";
    let mut documents = Documents::new(&[("kiln.md", text)]);
    let body = |goal: &str, documents: &mut Documents| run(&offer(goal), documents).report.body;
    let steps = body("How do I fire the kiln?", &mut documents);
    let list = "- **Firing** (`kiln.md:5`) ✓\n\n  1. Load the shelves.\n  2. Close the door.\n  3. Heat to 900 degrees.\n";
    assert!(steps.contains(list), "{steps}");
    assert!(!steps.contains("\n\n\n"), "{steps}");
    let table = body("Which glazes are there?", &mut documents);
    assert!(table.contains("  | glaze | cone |\n  |---|---|\n  | celadon | 9 |\n  | tin | 4 |\n"), "{table}");
    let one = body("How long does the kiln cool?", &mut documents);
    assert!(one.contains("- The kiln cools for 14 hours. (`kiln.md:16`) ✓\n"), "{one}");
    assert!(!one.contains("celadon"), "{one}");
}

#[test]
fn a_question_with_the_answer_of_another_keeps_its_place() {
    let mut documents = Documents::new(&[("a.md", "The record is the only truth.\n")]);
    let ran = run(&offer("What is the record? Why is the record the only truth?"), &mut documents);
    let body = &ran.report.body;
    assert!(body.contains("**Why is the record the only truth?** See `a.md:1`"), "{body}");
}

/// Two designs in the same words, of which only the first lines and the names of the files tell what they are about.
fn designs() -> Documents {
    let design = |name: &str, kept: &str| {
        format!(
            "# {name}: a design\n\n{name} runs workers that reason and act.\n\n## Tools\n\nTools are listed by name, each \
             with what it may touch.\nA tool that fails is told to the worker.\n\n## Memory\n\nNotes of earlier work are kept for \
             {kept}, then dropped.\n"
        )
    };
    let (kestrel, loom) = (design("Kestrel", "thirty days"), design("Loom", "the length of one session"));
    let lantern = design("Lantern", "seven days");
    Documents::new(&[("kestrel-design.md", &kestrel), ("lantern.md", &lantern), ("loom-pattern.md", &loom)])
}

#[test]
fn the_document_of_the_subject_answers() {
    for (goal, path, said) in [
        ("For how long does the Loom keep notes of earlier work?", "loom-pattern.md", "one session"),
        ("For how long does Kestrel keep notes of earlier work?", "kestrel-design.md", "thirty days"),
    ] {
        let ran = run(&offer(goal), &mut designs());
        let places = cited(&ran);
        assert_eq!(places.first().map(|place| place.path.as_str()), Some(path), "{}", ran.report.body);
        assert!(ran.report.body.contains(said), "{}", ran.report.body);
    }
}

#[test]
fn what_two_documents_say_of_one_thing_is_told_of_both_with_their_names() {
    let ran = run(&offer("For how long are notes of earlier work kept?"), &mut designs());
    let body = &ran.report.body;
    for said in [
        "In kestrel-design.md: Notes of earlier work are kept for thirty days, then dropped. (`kestrel-design.md:12`)",
        "In lantern.md: Notes of earlier work are kept for seven days, then dropped. (`lantern.md:12`)",
    ] {
        assert!(body.contains(said), "{body}");
    }
}

#[test]
fn a_row_of_a_table_answers() {
    let ran = ask("What is the default of max_depth?");
    assert!(
        ran.report.body.contains("max_depth: Most levels of the plan; default: 3"),
        "{}",
        ran.report.body
    );
}

#[test]
fn arithmetic_is_computed() {
    let ran = ask("What is 12 % of 3400, and how does a run survive the death of a worker?");
    assert!(ran.report.body.contains("12% of 3400 = 408"), "{}", ran.report.body);
    assert!(ran.report.body.contains("goes on from the last step"), "{}", ran.report.body);
}

#[test]
fn without_documents_nothing_is_made_up() {
    let mut base = offer("What limits delegation loops?");
    base.corpus = None;
    let ran = run(&base, &mut documents());
    assert!(cited(&ran).is_empty());
    assert_eq!(ran.report.unanswered, ["What limits delegation loops?"]);
    assert!(ran.report.body.contains("--docs"), "{}", ran.report.body);
}

#[test]
fn every_question_has_its_section() {
    let ran = ask(
        "How deep is the chain of agents, how does a run survive the death of a worker, and who won the regatta?",
    );
    let body = &ran.report.body;
    let at = |text: &str| body.find(text).unwrap_or_else(|| panic!("no {text} in {body}"));
    let first = at("## How deep is the chain of agents?");
    let second = at("## How does a run survive the death of a worker?");
    let open = at("## Not answered by the documents\n\n- Who won the regatta?");
    assert!(first < second && second < open, "{body}");
    assert!(body.ends_with(".\n") && !body.contains("\n\n\n"), "{body}");
}

#[test]
fn a_wider_search_finds_what_is_said_in_other_words() {
    // A search for the question's own words meets only the beehive.
    let mut documents = Documents::new(&[
        ("bees.txt", "Nobody knows the outage of a hive.\n"),
        ("ops.md", "# Ops\n\nA node that stays silent is replaced, and its journal is replayed elsewhere.\n"),
    ]);
    let ran = run(&offer("How does a worker survive an outage?"), &mut documents);
    assert_eq!(ran.refinements, 1);
    let wider = ran.leaves.iter().find(|(leaf, _)| leaf.name.starts_with("Wider")).expect("a wider search");
    let found = |leaf: &muster_shared::flow::LeafRef| {
        leaf.result.findings.iter().any(|found| found.text.contains("journal is replayed"))
    };
    assert!(found(&wider.0), "{:?}", wider.0.result);
    assert!(!ran.leaves.iter().any(|(leaf, _)| leaf.name.starts_with("How") && found(leaf)));
    assert!(
        ran.report.body.contains("its journal is replayed elsewhere. (`ops.md:3`)"),
        "{}",
        ran.report.body
    );
}

#[test]
fn a_question_without_an_answer_is_searched_for_twice() {
    let ran = ask("What limits delegation loops, and who won the regatta in Lisbon?");
    assert_eq!(ran.refinements, 1);
    assert_eq!(ran.report.unanswered, ["Who won the regatta in Lisbon?"]);
}

#[test]
fn a_false_quotation_is_dropped() {
    struct Changed(Documents, usize);
    impl Tools for Changed {
        fn call(&mut self, name: &str, arguments: &serde_json::Value) -> muster_shared::flow::Observation {
            let mut observation = self.0.call(name, arguments);
            self.1 += usize::from(name == "corpus.search");
            if self.1 == 1 && name == "corpus.search" {
                observation.content = observation.content.replace("Soup needs salt", "Soup needs sugar");
            }
            observation
        }
    }
    let text = format!("Soup needs salt. It is good.\n{}", "\nNothing stands here at all.\n".repeat(20));
    let mut tools = Changed(Documents::new(&[("c.txt", &text)]), 0);
    let mut base = offer("What does soup need?");
    // No step is left to read the place again before it is quoted.
    base.limits.max_steps = 2;
    let ran = run(&base, &mut tools);
    let (check, _) = ran.leaves.iter().find(|(leaf, _)| leaf.name.starts_with("Check")).expect("a check");
    assert_eq!(check.result.milestones.last().expect("a milestone"), "dropped c.txt:1", "{:?}", ran.leaves);
    assert!(!ran.report.body.contains("sugar"), "{}", ran.report.body);
    assert!(ran.report.body.contains("left out"), "{}", ran.report.body);
}

#[test]
fn failing_tools_end_in_an_honest_report() {
    struct Broken;
    impl Tools for Broken {
        fn call(&mut self, _: &str, _: &serde_json::Value) -> muster_shared::flow::Observation {
            documents().call("unknown", &serde_json::Value::Null)
        }
    }
    let ran = run(&offer("What limits delegation loops?"), &mut Broken);
    assert_eq!(ran.report.unanswered, ["What limits delegation loops?"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_run_ends_and_cites_only_what_was_seen(
        goal in "(what (is|limits) [a-z]{3,8}\\? |how does [a-z]{4} [a-z]{3,5}, and |2 \\+ 2 |\\PC{0,15}|worker ){1,6}",
        text in "([A-Z][a-z ]{3,40}\\. |worker limits |\n|# H\n|- item |\\| a \\| b \\|\n|\\PC{0,20}){0,20}",
        max_steps in 2u32..10,
    ) {
        let mut base = offer(&goal);
        base.limits.max_steps = max_steps;
        let mut tools = Documents::new(&[("a.md", &text), ("b.rs", &text), ("c.txt", COOKING)]);
        let ran = run(&base, &mut tools);
        prop_assert!(ran.refinements <= 6);
        for (leaf, steps) in &ran.leaves {
            let seen: String = steps.iter().filter_map(|step| step.observation.as_ref()).map(|seen| seen.content.as_str()).collect();
            for finding in leaf.result.findings.iter().filter(|found| !found.verified) {
                for place in &finding.citations {
                    let first = place.quote.split_whitespace().next().unwrap_or_default();
                    prop_assert!(leaf.name.starts_with("Check") || seen.contains(first));
                    let document = &tools.0[&place.path];
                    prop_assert!(document.lines().nth(place.line as usize - 1).unwrap().contains(first));
                }
            }
        }
        prop_assert_eq!(&ran.report, &run(&base, &mut tools).report);
    }
}

#[test]
fn told_that_it_goes_in_circles_it_goes_by_what_it_saw_before() {
    use muster_shared::flow::{
        Action, Note, Observation, ObservationStatus, PlanTask, SpinLevel, Step, TaskQuery,
    };

    use super::OfflineModel;
    let task = PlanTask {
        query: Some(TaskQuery::Compute { expressions: vec!["1 + 1".to_owned(); 2] }),
        ..PlanTask::new("Compute", "Compute: 1 + 1; 1 + 1", muster_shared::ids::Role::Worker)
    };
    let leaf = muster_shared::flow::TaskOffered {
        work: super::testing::execute(&task, &[]),
        ..offer("What is 1 + 1?")
    };
    let mut steps: Vec<Step> = Vec::new();
    for (number, status) in [(1, ObservationStatus::Success), (2, ObservationStatus::Refused)] {
        let next = OfflineModel.next(&leaf, &steps);
        let content = if number == 1 { "1 + 1 = 2".to_owned() } else { "You did exactly this".to_owned() };
        let observation = Observation { status, content, millis: 0, truncated: false, cached: None };
        let spin = Note::Spin { level: SpinLevel::SameAction, times: 1 };
        let notes = if number == 1 { Vec::new() } else { vec![spin] };
        steps.push(Step { notes, ..super::testing::step(number, next, observation) });
    }
    let end = OfflineModel.next(&leaf, &steps);
    assert_eq!(end.action.name, Action::SUBMIT);
    let said = end.action.arguments.to_string();
    assert!(said.contains("1 + 1 = 2; 1 + 1 = 2") && !said.contains("exactly this"), "{said}");
}
