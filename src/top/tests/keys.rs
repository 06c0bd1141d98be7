//! What keys do.

use muster_shared::run::RequestAction;

use super::super::state::{Focus, Over};
use super::*;
use crate::live::feed::Wish;

#[test]
fn views_are_reached_by_digits_tab_and_commands_and_what_passes_is_watched_only_there() {
    let model = model();
    let mut top = at(View::Runs);
    let (tap, untap) = (Effect::Wish(Wish::Tap), Effect::Wish(Wish::Untap));
    for (keys, view, effects) in [
        (vec![Key::Char('1')], View::Fleet, vec![]),
        (vec![Key::Tab], View::Runs, vec![]),
        (vec![Key::Char('4')], View::Traffic, vec![tap.clone()]),
        (vec![Key::BackTab], View::Run, vec![untap.clone()]),
        (vec![Key::BackTab, Key::BackTab, Key::BackTab], View::Questions, vec![]),
        (vec![Key::Tab], View::Fleet, vec![]),
    ] {
        assert_eq!((press(&mut top, &model, &keys), top.view), (effects, view), "{keys:?}");
    }
    for (command, view, effects) in [
        ("traffic", View::Traffic, vec![tap]),
        ("runs", View::Runs, vec![untap]),
        ("fl", View::Fleet, vec![]),
        ("run", View::Run, vec![]),
        ("questions", View::Questions, vec![]),
        ("  ", View::Questions, vec![]),
        ("nonsense", View::Questions, vec![]),
    ] {
        press(&mut top, &model, &[Key::Char(':')]);
        typed(&mut top, &model, command);
        assert_eq!((press(&mut top, &model, &[Key::Enter]), top.view), (effects, view), ":{command}");
    }
    assert!(text(&top, &model).contains("there is no command nonsense"));
    for quits in [
        vec![Key::Char('q')],
        vec![Key::F(10)],
        vec![Key::Ctrl('c')],
        vec![Key::Char(':'), Key::Char('q'), Key::Enter],
    ] {
        assert_eq!(press(&mut top, &model, &quits), [Effect::Quit], "{quits:?}");
    }
    assert_eq!(press(&mut top, &model, &[Key::Ctrl('z'), Key::Ctrl('l')]), [Effect::Suspend, Effect::Redraw]);
}

#[test]
fn a_run_is_opened_and_the_one_before_is_let_go() {
    let model = model();
    let mut top = at(View::Runs);
    let opened = |run| Effect::Wish(Wish::Open(run));
    // The newest stands first, by when it was asked; both were asked at the same time.
    let first = press(&mut top, &model, &[Key::Enter]);
    let [Effect::Wish(Wish::Open(first))] = first[..] else { panic!("{first:?}") };
    let other = if first == run(1) { run(2) } else { run(1) };
    assert_eq!((top.view, top.open), (View::Run, Some(first)));
    let short = other.to_string();
    press(&mut top, &model, &[Key::Char(':')]);
    typed(&mut top, &model, &format!("run {short}"));
    assert_eq!(press(&mut top, &model, &[Key::Enter]), [Effect::Wish(Wish::Close(first)), opened(other)]);
    press(&mut top, &model, &[Key::Char(':')]);
    typed(&mut top, &model, "run ffff");
    assert_eq!(press(&mut top, &model, &[Key::Enter]), []);
    assert!(text(&top, &model).contains("no run's id ends or begins with ffff"));
    // Back among the runs it stays open: who comes back sees it at once.
    assert_eq!(press(&mut top, &model, &[Key::Esc, Key::Esc]), []);
    assert_eq!((top.view, top.open), (View::Runs, Some(other)));
    assert_eq!(update(&mut top, &model, Event::Show(other)), []);
}

#[test]
fn lists_are_moved_in_and_the_place_stays_with_what_it_is_about() {
    let model = model();
    let mut top = at(View::Fleet);
    // Orchestrators first, then by role.
    let chosen = |top: &Top| top.fleet.chosen_of(super::super::rows::fleet(&model, NOW)).unwrap();
    for (key, wanted) in [
        (Key::Down, "researcher-1"),
        (Key::Char('j'), "worker-1"),
        (Key::Char('j'), "worker-1"),
        (Key::Char('k'), "researcher-1"),
        (Key::Home, "orchestrator-1"),
        (Key::PageDown, "worker-1"),
        (Key::PageUp, "orchestrator-1"),
        (Key::Char('G'), "worker-1"),
    ] {
        press(&mut top, &model, &[key]);
        assert_eq!(chosen(&top), wanted, "{key:?}");
    }
    // By what is in hand, most first: the place goes with the process.
    press(&mut top, &model, &[Key::Char('P')]);
    let order = |top: &Top| {
        let shown = top.fleet.shown(super::super::rows::fleet(&model, NOW));
        shown.rows.iter().map(|row| row.key.clone()).collect::<Vec<_>>()
    };
    assert_eq!(order(&top), ["orchestrator-1", "worker-1", "researcher-1"]);
    assert_eq!(chosen(&top), "worker-1");
    press(&mut top, &model, &[Key::Char('P')]);
    assert_eq!(order(&top), ["researcher-1", "worker-1", "orchestrator-1"]);
    press(&mut top, &model, &[Key::Char('N'), Key::Char('I')]);
    assert_eq!(order(&top), ["worker-1", "researcher-1", "orchestrator-1"]);
    press(&mut top, &model, &[Key::Char('<'), Key::Char('>')]);
    assert_eq!(order(&top), ["orchestrator-1", "researcher-1", "worker-1"]);
}

#[test]
fn a_filter_holds_while_it_is_typed_and_escape_shows_all_again() {
    let model = model();
    let mut top = at(View::Fleet);
    press(&mut top, &model, &[Key::Char('/')]);
    typed(&mut top, &model, "RESEARCH");
    let shown = text(&top, &model);
    assert!(
        shown.contains("researcher-1") && !shown.contains("worker-1") && shown.contains("/RESEARCH"),
        "{shown}"
    );
    press(&mut top, &model, &[Key::Enter]);
    assert_eq!((&top.over, top.fleet.filter.as_str()), (&Over::Nothing, "RESEARCH"));
    press(&mut top, &model, &[Key::Char('/'), Key::Ctrl('u')]);
    typed(&mut top, &model, "!research");
    press(&mut top, &model, &[Key::Enter]);
    let shown = text(&top, &model);
    assert!(!shown.contains("researcher-1") && shown.contains("worker-1"), "{shown}");
    press(&mut top, &model, &[Key::Char('/'), Key::Ctrl('u')]);
    update(&mut top, &model, Event::Paste("nothing of\nthe kind".into()));
    assert!(text(&top, &model).contains("nothing here has what the filter wants"));
    press(&mut top, &model, &[Key::Enter, Key::Esc]);
    assert_eq!(top.fleet.filter, "");
}

#[test]
fn a_run_is_paused_and_cancelled_only_once_that_is_confirmed() {
    let model = model();
    let mut top = at(View::Runs);
    update(&mut top, &model, Event::Show(run(2)));
    for (key, action, word) in [
        (Key::Char('p'), RequestAction::Pause, "pause"),
        (Key::Char('x'), RequestAction::Cancel, "cancel"),
        (Key::F(9), RequestAction::Cancel, "cancel"),
        (Key::Ctrl('k'), RequestAction::Cancel, "cancel"),
    ] {
        assert_eq!(press(&mut top, &model, &[key]), []);
        let asked = format!("{word} run {}? y does it", run(2).short());
        assert!(text(&top, &model).contains(&asked), "{}", text(&top, &model));
        assert_eq!(press(&mut top, &model, &[Key::Enter]), [], "only y does it");
        let effects = press(&mut top, &model, &[key, Key::Char('y')]);
        let [Effect::Ask(order)] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!((order.run, &order.action), (run(2), &action));
    }
    update(&mut top, &model, Event::Show(run(1)));
    assert_eq!(press(&mut top, &model, &[Key::Char('x')]), []);
    assert!(text(&top, &model).contains("the run has ended"));
    assert_eq!(press(&mut top, &model, &[Key::Char('y')]), []);
    press(&mut top, &model, &[Key::Char('1'), Key::Char('x')]);
    assert!(text(&top, &model).contains("choose a run first"));
}

#[test]
fn what_became_of_what_was_asked_is_told() {
    let model = model();
    let mut top = at(View::Runs);
    let ids = [1, 2, 3].map(Uuid::from_u128);
    for id in ids {
        update(&mut top, &model, Event::Asked { id, what: "pause run 7".into() });
    }
    assert!(text(&top, &model).contains("pause run 7: asked"));
    let decided = |id, refused: Option<&str>| {
        Event::Changed(Change::Request { id, refused: refused.map(str::to_owned) })
    };
    update(&mut top, &model, decided(ids[0], None));
    assert!(text(&top, &model).contains("pause run 7: done"));
    update(&mut top, &model, decided(ids[1], Some("it has ended")));
    assert!(text(&top, &model).contains("pause run 7: refused: it has ended"));
    update(&mut top, &model, Event::Unheard { id: ids[2], why: "you may not".into() });
    assert!(text(&top, &model).contains("pause run 7: you may not"));
    // What is decided already is not told to be unheard, and of what others asked nothing is told.
    update(&mut top, &model, Event::Unheard { id: ids[0], why: "late".into() });
    update(&mut top, &model, decided(Uuid::from_u128(9), Some("others")));
    assert!(text(&top, &model).contains("you may not"));
    press(&mut top, &model, &[Key::Esc]);
    assert!(!text(&top, &model).contains("you may not"));
}

#[test]
fn a_question_is_answered_approved_and_rejected_where_that_makes_sense() {
    let mut model = model();
    ask(&mut model, About::Goal, &["the first", "the second"]);
    let mut top = at(View::Questions);
    assert!(text(&top, &model).contains("Which of the two sources counts?"));
    press(&mut top, &model, &[Key::Char('y')]);
    assert!(text(&top, &model).contains("this is no matter of yes or no"));
    press(&mut top, &model, &[Key::Char('a'), Key::Enter]);
    assert!(text(&top, &model).contains("type something"), "{}", text(&top, &model));
    typed(&mut top, &model, "quit 2");
    assert!(
        text(&top, &model).contains("answer to 1 (1 the first, 2 the second): quit 2"),
        "{}",
        text(&top, &model)
    );
    assert_eq!(press(&mut top, &model, &[Key::Esc]), [], "it is not sent");
    press(&mut top, &model, &[Key::Char('a')]);
    update(&mut top, &model, Event::Paste(" 2\n".into()));
    let effects = press(&mut top, &model, &[Key::Enter]);
    let [Effect::Ask(order)] = &effects[..] else { panic!("{effects:?}") };
    let wanted = RequestAction::Answer { question: QuestionId(1), text: "2".into() };
    assert_eq!((order.run, &order.action), (run(2), &wanted));
    assert_eq!(press(&mut top, &model, &[Key::Char('o')]), [Effect::Wish(Wish::Open(run(2)))]);
}

#[test]
fn what_is_to_be_approved_is_approved_or_rejected_with_a_reason() {
    let mut model = model();
    ask(&mut model, About::Plan, &[]);
    let mut top = at(View::Questions);
    let effects = press(&mut top, &model, &[Key::Char('y'), Key::Char('y')]);
    let [Effect::Ask(order)] = &effects[..] else { panic!("{effects:?}") };
    let wanted = RequestAction::Approve { question: Some(QuestionId(1)), arguments: None, plan: None };
    assert_eq!(order.action, wanted);
    press(&mut top, &model, &[Key::Char('n')]);
    typed(&mut top, &model, "too much");
    let effects = press(&mut top, &model, &[Key::Enter]);
    let [Effect::Ask(order)] = &effects[..] else { panic!("{effects:?}") };
    let wanted = RequestAction::Reject { question: Some(QuestionId(1)) };
    assert_eq!((&order.action, order.reason.as_str()), (&wanted, "too much"));
}

#[test]
fn what_passes_is_followed_until_somebody_looks_closer() {
    let mut model = model();
    let mut top = at(View::Traffic);
    for n in 0..50 {
        passes(&mut model, &format!("fault {n}"));
    }
    let chosen = |top: &Top, model: &Model| top.traffic.chosen_of(super::super::rows::traffic(model));
    assert_eq!((top.traffic.follows, chosen(&top, &model)), (true, Some(50)));
    press(&mut top, &model, &[Key::Up]);
    passes(&mut model, "fault 50");
    assert_eq!((top.traffic.follows, chosen(&top, &model)), (false, Some(49)));
    assert!(text(&top, &model).contains("standing still"));
    press(&mut top, &model, &[Key::Enter]);
    assert!(text(&top, &model).contains("\"reason\": \"fault 48\""), "{}", text(&top, &model));
    press(&mut top, &model, &[Key::Esc, Key::Char('f')]);
    assert_eq!(chosen(&top, &model), Some(51));
    press(&mut top, &model, &[Key::Char(' ')]);
    passes(&mut model, "fault 51");
    assert_eq!(chosen(&top, &model), Some(51), "it stands still");
}

#[test]
fn in_a_run_keys_go_to_the_tasks_or_to_what_one_does() {
    let mut model = model();
    let mut top = at(View::Runs);
    update(&mut top, &model, Event::Show(run(1)));
    model.take(Input::Opened(run(1)));
    model.take(Input::Record { run: run(1), entries: record(run(1)) });
    press(&mut top, &model, &[Key::Down, Key::Right]);
    assert_eq!(top.focus, Focus::Detail);
    let newest = text(&top, &model);
    press(&mut top, &model, &[Key::Home]);
    let oldest = text(&top, &model);
    assert!(newest != oldest && oldest.contains("f follows"), "{oldest}");
    press(&mut top, &model, &[Key::Char('f')]);
    assert_eq!(text(&top, &model), newest);
    press(&mut top, &model, &[Key::Enter]);
    assert!(matches!(&top.over, Over::Text { text, .. } if text.contains("started 1")), "{:?}", top.over);
    press(&mut top, &model, &[Key::Esc, Key::Esc]);
    assert_eq!((top.focus, top.view), (Focus::Tree, View::Run));
}

#[test]
fn only_what_can_be_seen_makes_a_new_picture() {
    let mut model = model();
    ask(&mut model, About::Goal, &[]);
    let doing = || Change::Doing { run: run(2), task: muster_shared::ids::TaskId::Plan };
    for (view, change, wanted) in [
        (View::Runs, Change::Brief(run(1)), true),
        (View::Traffic, Change::Brief(run(1)), false),
        (View::Traffic, Change::Link, true),
        (View::Fleet, doing(), false),
        (View::Run, doing(), true),
        (View::Questions, Change::Questions, true),
    ] {
        let mut top = at(view);
        top.open = Some(run(2));
        top.drawn();
        let told = format!("{change:?} in {view:?}");
        update(&mut top, &model, Event::Changed(change));
        assert_eq!(top.is_stale(), wanted, "{told}");
    }
    // Clocks go on by the second, where there is one.
    let mut top = at(View::Run);
    top.drawn();
    update(&mut top, &model, Event::Tick(Millis(NOW.0 + 5_000)));
    assert!(!top.is_stale(), "no run is open");
    top.open = Some(run(2));
    update(&mut top, &model, Event::Tick(Millis(NOW.0 + 5_500)));
    assert!(!top.is_stale());
    update(&mut top, &model, Event::Tick(Millis(NOW.0 + 6_500)));
    assert!(top.is_stale());
}
