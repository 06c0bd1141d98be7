//! What is seen.

use muster_shared::ids::TaskIndex;
use ratatui::style::Color;

use super::*;

fn settled(model: &mut Model, of: RunId) {
    model.take(Input::Opened(of));
    model.take(Input::Record { run: of, entries: record(of) });
}

#[test]
fn the_views_on_a_usual_terminal() {
    let mut model = model();
    ask(&mut model, About::Goal, &["the first", "the second"]);
    settled(&mut model, run(1));
    passes(&mut model, "a fault");
    let mut told = String::new();
    for view in View::ALL {
        let mut top = at(view);
        top.open = Some(run(1));
        told.push_str(&format!("=== {}\n{}\n", view, text(&top, &model)));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_wide_terminal_shows_what_a_task_does_beside_the_tasks() {
    let mut model = model();
    settled(&mut model, run(1));
    let mut top = Top::new(View::Run, (160, 20), NOW);
    top.open = Some(run(1));
    press(&mut top, &model, &[Key::Down]);
    insta::assert_snapshot!(text(&top, &model));
}

#[test]
fn a_small_terminal_shows_what_fits_and_one_too_small_says_so() {
    let model = model();
    let top = Top::new(View::Runs, (40, 10), NOW);
    let shown = text(&top, &model);
    assert!(shown.contains("RUN") && shown.contains("GOAL") && !shown.contains("CALLS"), "{shown}");
    for (width, height) in [(39, 24), (80, 9), (10, 3), (1, 1)] {
        for view in View::ALL {
            let top = Top::new(view, (width, height), NOW);
            let shown = text(&top, &model);
            assert!(
                shown.starts_with(&"too small"[..usize::from(width).min(3)]),
                "{width}x{height}: {shown}"
            );
        }
    }
    // Whatever the size, nothing falls.
    for width in (40..200).step_by(7) {
        for height in 10..40 {
            for view in View::ALL {
                let mut top = Top::new(view, (width, height), NOW);
                top.open = Some(run(1));
                assert_eq!(seen(&top, &model).len(), usize::from(height));
            }
        }
    }
}

#[test]
fn a_fleet_that_is_away_is_told_and_what_was_known_stays() {
    let mut model = model();
    model.take(Input::Link(Link::Away("the fleet is gone; waiting for `muster up`".into())));
    let shown = text(&at(View::Runs), &model);
    for part in ["fleet is away", "the fleet is gone; waiting for `muster up`", "completed"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    model.take(Input::Link(Link::Up("nats://127.0.0.1:4222".into())));
    assert!(text(&at(View::Runs), &model).contains("127.0.0.1:4222"));
}

#[test]
fn passwords_in_addresses_are_not_shown() {
    assert!(!text(&at(View::Runs), &model()).contains("secret"));
}

/// What others wrote, to steer a terminal, to be seen as what it is.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;mine\u{7}\u{9b}31m\u{202e}evil\r\u{8}\u{0}";

#[test]
fn texts_of_others_steer_no_terminal_wherever_they_stand() {
    let mut model = Model::new(Most::default());
    model.take(Input::Link(Link::Anew(format!("nats://{HOSTILE}"))));
    let profile = json!({
        "agent": "worker-1", "role": format!("w{HOSTILE}"), "host": HOSTILE, "model": HOSTILE, "pid": 1, "slots": 1,
    });
    model.take(Input::Processes {
        change: Box::new(RegistryChange::Joined(serde_json::from_value(profile).unwrap())),
        at: NOW,
    });
    let whole = record(run(2));
    let hostile = |text: &str| text.replace("What", &format!("What {HOSTILE}"));
    let entries: Vec<Arc<Entry>> = whole[..13]
        .iter()
        .map(|entry| {
            let mut entry = (**entry).clone();
            match &mut entry.event {
                RecordEvent::Decided(decided) => {
                    for event in &mut decided.events {
                        if let RunEvent::RunCreated(created) = event {
                            created.goal.text = hostile(&created.goal.text);
                        }
                        if let RunEvent::PlanAdopted(adopted) = event {
                            adopted.plan.tasks.values_mut().for_each(|task| task.name = HOSTILE.to_owned());
                            adopted.plan.tasks.values_mut().for_each(|task| task.goal = HOSTILE.to_owned());
                        }
                    }
                }
                RecordEvent::Agent(_, muster_shared::run::AgentEvent::Step(step)) => {
                    step.thought.text = HOSTILE.to_owned();
                    step.observation.iter_mut().for_each(|seen| seen.content = HOSTILE.to_owned());
                }
                RecordEvent::Agent(..) | RecordEvent::Offered(_) => {}
            }
            Arc::new(entry)
        })
        .collect();
    model.take(Input::Opened(run(2)));
    model.take(Input::Record { run: run(2), entries });
    let thought = muster_shared::wire::LiveKind::Thought { text: HOSTILE.repeat(3) };
    let task = muster_shared::ids::TaskId::Leaf(TaskIndex::top(1));
    let live = muster_shared::wire::Live {
        run: run(2),
        role: "worker".parse().unwrap(),
        task: task.clone(),
        generation: muster_shared::ids::Generation(1),
        step: 9,
        kind: thought,
    };
    model.take(Input::Live(live));
    ask(&mut model, About::Goal, &[HOSTILE]);
    passes(&mut model, HOSTILE);
    for (width, height) in [(80, 24), (200, 50)] {
        for view in View::ALL {
            for keys in [
                &[][..],
                &[Key::Down][..],
                &[Key::Enter],
                &[Key::Down, Key::Enter, Key::Enter],
                &[Key::Char('a')],
            ] {
                let mut top = Top::new(view, (width, height), NOW);
                top.open = Some(run(2));
                press(&mut top, &model, keys);
                update(&mut top, &model, Event::Paste(HOSTILE.into()));
                update(&mut top, &model, Event::Asked { id: Uuid::nil(), what: "this".into() });
                update(&mut top, &model, Event::Unheard { id: Uuid::nil(), why: HOSTILE.into() });
                let shown = seen(&top, &model).concat();
                let steers = shown.chars().find(|c| crate::render::safe::is_control(*c));
                assert_eq!(steers, None, "{view:?} after {keys:?}");
                assert!(!shown.contains('\u{202e}'));
            }
        }
    }
    let mut top = Top::new(View::Run, (80, 24), NOW);
    top.open = Some(run(2));
    press(&mut top, &model, &[Key::Down]);
    assert!(text(&top, &model).contains("\\u{1b}[2J"), "it is seen as what it is: {}", text(&top, &model));
}

#[test]
fn a_plan_of_a_thousand_tasks_is_scrolled_through() {
    let whole = record(run(2));
    let entries: Vec<Arc<Entry>> = whole[..5]
        .iter()
        .map(|entry| {
            changed(entry, |decided| {
                for event in &mut decided.events {
                    if let RunEvent::PlanAdopted(adopted) = event {
                        let task = adopted.plan.tasks.values().next().unwrap().clone();
                        for n in 1..=1_000 {
                            let named = muster_shared::flow::PlanTask {
                                name: format!("task number {n}"),
                                ..task.clone()
                            };
                            adopted.plan.tasks.insert(TaskIndex::top(n), named);
                        }
                    }
                }
            })
        })
        .collect();
    let mut model = Model::new(Most::default());
    model.take(Input::Opened(run(2)));
    model.take(Input::Record { run: run(2), entries });
    let mut top = at(View::Run);
    top.open = Some(run(2));
    assert!(text(&top, &model).contains("task number 1"), "{}", text(&top, &model));
    press(&mut top, &model, &[Key::Char('G')]);
    let shown = text(&top, &model);
    assert!(shown.contains("task number 1000") && !shown.contains("task number 1 "), "{shown}");
    press(&mut top, &model, &[Key::Char('/')]);
    typed(&mut top, &model, "number 777");
    press(&mut top, &model, &[Key::Enter]);
    let shown = text(&top, &model);
    assert!(shown.contains("task number 777") && !shown.contains("task number 1000"), "{shown}");
}

#[test]
fn without_colours_none_is_used_and_with_them_only_those_that_terminals_name() {
    let mut model = model();
    ask(&mut model, About::Goal, &[]);
    for view in View::ALL {
        let mut top = at(view);
        top.open = Some(run(1));
        for (look, is_coloured) in [(Look::new(false), false), (Look::new(true), true)] {
            let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
            terminal.draw(|frame| draw(frame, &top, &model, look)).unwrap();
            for cell in terminal.backend().buffer().content() {
                assert_eq!(cell.bg, Color::Reset, "a background fits one kind of terminal only");
                let named = [Color::Reset, Color::Cyan, Color::Green, Color::Yellow, Color::Red];
                assert!(
                    cell.fg == Color::Reset || (is_coloured && named.contains(&cell.fg)),
                    "{:?}",
                    cell.fg
                );
            }
        }
    }
}

#[test]
fn the_help_names_every_key_and_is_scrolled_where_it_does_not_fit() {
    let model = model();
    let mut top = at(View::Runs);
    press(&mut top, &model, &[Key::Char('?')]);
    let first = text(&top, &model);
    press(&mut top, &model, &[Key::End]);
    let last = text(&top, &model);
    for part in ["Tab", "Enter", "Ctrl-K", "Space"] {
        assert!(first.contains(part) || last.contains(part), "{part} in {first}{last}");
    }
    press(&mut top, &model, &[Key::Esc]);
    assert!(text(&top, &model).contains("RUN"));
}
