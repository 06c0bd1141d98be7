//! Roles that users defined: planners are told of them, and tasks find them by what they need.

use muster_shared::flow::{RefineOperation, RunLimits, Specialty, TaskDraft, Work};
use muster_shared::ids::Role;
use muster_shared::run::{RecordEvent, RunStatus};

use super::fleet::{Fleet, advising, good, leaf, queue, refinement};
use crate::replay::replay;

fn auditor() -> Specialty {
    let role = "security_auditor".parse::<Role>().unwrap();
    Specialty {
        role,
        description: "finds weaknesses".into(),
        capabilities: vec!["security audit".into()],
        tools: vec!["nmap.scan".into()],
        gives: vec!["weaknesses".into()],
    }
}

fn tasks() -> Vec<TaskDraft> {
    let needing = |name: &str, role: Option<&str>| TaskDraft {
        role: role.map(str::to_owned),
        needs: vec!["Security audit".into()],
        ..leaf(name, &[])
    };
    vec![needing("doors", None), needing("windows", Some("locksmith")), needing("walls", Some("worker"))]
}

#[test]
fn tasks_without_a_role_go_to_the_specialist_that_can_do_what_they_need() {
    let mut fleet = Fleet::new();
    fleet.slots.insert(queue(auditor().role), 2);
    fleet.specialists = vec![auditor()];
    fleet.submit("is the house safe?", RunLimits::default());
    let Work::Plan { roles, specialists, .. } = fleet.find("plan").work else { panic!() };
    assert!(roles.contains(&"security_auditor".to_owned()), "{roles:?}");
    assert_eq!(specialists, [auditor()]);

    fleet.finish(&tasks());
    let role = |task: &str| {
        let task = task.parse().unwrap();
        fleet.offered().iter().find(|offer| offer.task == task).map(|offer| offer.queue.to_string())
    };
    assert_eq!(
        ["1", "2", "3"].map(|task| role(task).unwrap()),
        ["security_auditor", "security_auditor", "worker"]
    );
    // What was decided by stands in the record, where it made a difference and nowhere else.
    let told = fleet.record.iter().filter(|entry| match &entry.event {
        RecordEvent::Decided(decided) => !decided.specialists.is_empty(),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => false,
    });
    assert_eq!(told.count(), 2, "the offer of planning, and the plan");
    replay(super::fleet::ID, &fleet.record).unwrap();
}

#[test]
fn refiners_are_told_of_specialists_and_new_tasks_find_them() {
    let mut fleet = Fleet::new();
    fleet.slots.insert(queue(auditor().role), 2);
    fleet.specialists = vec![auditor()];
    fleet.submit("is the house safe?", RunLimits { max_refinements: 1, ..RunLimits::default() });
    let needing = TaskDraft { role: None, needs: vec!["security audit".into()], ..leaf("doors", &[]) };
    let add = RefineOperation::Add { after: "1".parse().unwrap(), tasks: vec![needing] };
    let mut told = Vec::new();
    fleet.work(|offer| match &offer.work {
        Work::Execute { task, .. } if task.name == "house" => advising("so", "the doors were forgotten"),
        Work::Refine { roles, specialists, tools, .. } => {
            told = specialists.clone();
            assert!(roles.contains(&"security_auditor".to_owned()), "{roles:?}");
            assert!(tools.contains(&"nmap.scan".to_owned()), "{tools:?}");
            refinement(vec![add.clone()])
        }
        _ => good(offer, &[leaf("house", &[])]),
    });
    assert_eq!((fleet.status(), told), (RunStatus::Completed, vec![auditor()]));
    let added = &fleet.run().plan.as_ref().unwrap().tasks[&"2".parse().unwrap()];
    assert_eq!(added.role, auditor().role);
    replay(super::fleet::ID, &fleet.record).unwrap();
}
