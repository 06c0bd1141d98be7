//! One example of everything that travels, with every field set that can be.

use std::collections::BTreeMap;

use muster_shared::blueprint::StepOutcome;
use muster_shared::conflict::Side;
use muster_shared::flow::rights::Allowed;
use muster_shared::flow::{
    About, Action, Advice, Answered, Arm, Awaited, Bid, Budget, CallForProposals, CapabilityQuery, Capable,
    Citation, Claim, ClaimValue, ConflictStep, ContextAuthor, ContextEntry, ContextRead, ContextRequest,
    ContextWrite, Contradiction, CorpusRef, DecidedBy, Dissent, DraftRemark, DraftReview, DraftVerdict,
    Ending, FailureKind, Finding, Finite, Goal, Grantor, GroupVerdict, GuardVerdict, Guarded, HelpRequest,
    Hook, Information, InformationShare, LeafRef, ModelCall, Note, Observation, ObservationStatus, OnTimeout,
    Outcome, Parent, Pattern, Peer, PeerAnswer, PeerRequest, Plan, PlanDraft, PlanTask, Product, Question,
    Reading, ReadingRule, RefineOperation, Reflection, RefusedOperation, Reply, Report, Response, Revision,
    Rights, Ruling, RunLimits, Said, Step, StepDigest, StoredMessage, TaskDraft, TaskOffered, TaskResult,
    TaskRights, TemplateRef, TextPart, Thought, ToolNote, TrialMark, Usage, Use, View, Wait, Work,
};
use muster_shared::ids::{
    AgentId, Attempt, Generation, QuestionId, Queue, Role, RunId, Seq, TaskId, TaskIndex,
};
use muster_shared::run::event::{
    ApprovalGiven, AskedAbout, AuctionOpened, BidHeld, ChildAsked, ChildBegun, ChildEnded, ConflictExamined,
    ConflictFound, ConflictResolved, ContextWritten, DeadlockEnded, DraftReviewBegun, DraftReviewMissed,
    DraftReviewed, ErrorBudgetUsedUp, FailureAnswered, GoalEdited, GuardsAnswered, GuardsAsked,
    HandOverRefused, InformationShared, LessonsRecalled, MembersBegun, MembersDiscuss, MembersSettled,
    PlanAdopted, PlanDrafted, PlanEdited, PlanIterated, PlanRefined, PlanRefused, PlanningSkipped,
    QuestionAnswered, QuestionAsked, QuestionPassedOn, QuestionWithdrawn, RefinementWanted, Reflected,
    ReplanWanted, Replanned, RequestRefused, RunAborted, RunCompleted, RunCreated, RunFailed, RunForked,
    RunGivenUp, RunPaused, RunResumed, ShadowAsked, StepsExpanded, TaskAborted, TaskAnswered, TaskAwarded,
    TaskBlocked, TaskCompleted, TaskDelegated, TaskFailed, TaskOrphaned, TaskParked, TaskQuarantined,
    TaskReleased, TaskReopened, TaskRetried, TaskSkipped, TaskStarted, TaskTakenBack, TaskWaits,
    TrialWithdrawn, VerificationAdded, WordsUncovered, WritingBegan,
};
use muster_shared::run::{
    Checked, ChildEnd, ConflictEnd, Decided, Evidence, FailedPlan, Inherited, Input, Origin, Phase, Released,
    Request, RequestAction, RunEvent, RunStatus, Settling, SettlingFor, SignedOrder, SignerKind, Started,
    StopReason, TaskState, ToolStarted,
};
use muster_shared::time::Millis;
use muster_shared::track_record::Tally;
use muster_shared::wire::ask::{Accepted, Ask, Refused};
use muster_shared::wire::{
    Body, Command, ControlMessage, Encoding, Envelope, Heartbeat, Live, LiveKind, MessageKind, OwnerAnswer,
    OwnerMessage, Profile, StoredBody, TraceContext,
};
use serde_json::json;
use uuid::Uuid;

/// Every example under the name of its file.
pub(crate) fn envelopes() -> Vec<(String, Envelope)> {
    let mut found: Vec<(String, Body)> = Vec::new();
    let mut add = |name: &str, body: Body| found.push((name.to_owned(), body));
    add("decided", Body::Decided(decided()));
    add("decided_offering", Body::Decided(offering()));
    add("decided_loss", Body::Decided(loss()));
    add("decided_silence", Body::Decided(silence()));
    add("decided_forked", Body::Decided(forked()));
    for (name, work) in works() {
        add(&format!("offered_{name}"), Body::Offered(offered(work)));
    }
    add("started", Body::Started(started()));
    let key = "0190a1b2c3d4700080000000000000aa/1-2/1/1".to_owned();
    add("tool_started", Body::ToolStarted(ToolStarted { step: step(), idempotency_key: key }));
    add("step", Body::Step(step()));
    add(
        "released",
        Body::Released(Released {
            reason: "the agent leaves".to_owned(),
            parked: false,
            usage: Usage::default(),
            wait: None,
        }),
    );
    for (name, product) in products() {
        add(&format!("outcome_{name}"), Body::Outcome(outcome(product)));
    }
    let id = Some("invoice 4711".to_owned());
    add("ask_submit", Body::Ask(Ask::Submit { goal: Box::new(goal()), id, run: None }));
    add("accepted", Body::Accepted(Accepted { run: run(), queued: false }));
    let reason = "field body.content.ending: unknown variant `success`".to_owned();
    add("error", Body::Error(Refused { reason, run: Some(run()), later: true }));
    add("decided_unreadable", Body::Decided(unreadable()));
    add("command_submit", Body::Command(Command::Submit { run: run(), goal: Box::new(goal()) }));
    add(
        "command_cancel",
        Body::Command(Command::Request(Request::new(run(), RequestAction::Cancel).because("enough"))),
    );
    for (name, command) in commands() {
        add(&format!("command_{name}"), Body::Command(command));
    }
    add("decided_controlled", Body::Decided(controlled()));
    add("decided_out_of_time", Body::Decided(out_of_time()));
    add("decided_read", Body::Decided(read()));
    add("decided_expanded", Body::Decided(expanded()));
    add("decided_planning", Body::Decided(replanned()));
    add("decided_nested", Body::Decided(nested()));
    let (id, goal) = (Some(Uuid::from_u128(3)), Box::new(child_goal()));
    add("command_attend", Body::Command(Command::Attend { run: child(), goal, id }));
    let end = Box::new(child_end());
    add("command_child_ended", Body::Command(Command::ChildEnded { run: run(), child: child(), end, id }));
    add("released_parked", Body::Released(parked()));
    add("released_waiting", Body::Released(waiting()));
    add("decided_answered", Body::Decided(answered()));
    add("decided_approved", Body::Decided(approved()));
    for (name, request) in peer_requests() {
        let reason = format!("it waits for the answer to a {}", request.in_words());
        let wait = Some(Box::new(Awaited { step: 2, wait: Wait::Peer(Box::new(request)) }));
        add(
            &format!("released_{name}"),
            Body::Released(Released { reason, parked: true, usage: usage(), wait }),
        );
    }
    add("decided_peers", Body::Decided(asked_of_peers()));
    add("decided_context", Body::Decided(written()));
    add("decided_responses", Body::Decided(answered_failures()));
    add("decided_loop", Body::Decided(loop_detected()));
    add("decided_trials", Body::Decided(tried()));
    add("offered_heard", Body::Offered(heard()));
    add("offered_rights", Body::Offered(narrowed()));
    add("step_denied", Body::Step(denied()));
    add("decided_by_members", Body::Decided(by_members()));
    add("offered_answered", Body::Offered(going_on()));
    add("heartbeat", Body::Heartbeat(Heartbeat { agent: agent(), busy: 1, slots: 8, states: Vec::new() }));
    add("profile", Body::Profile(profile()));
    let (name, quiet_ms) = ("worker-1".to_owned(), 600_000);
    add("profile_named", Body::Profile(Profile { name, quiet_ms, ..profile() }));
    for (name, kind) in live() {
        add(&format!("live_{name}"), Body::Live(kind));
    }
    for (name, control) in controls() {
        add(&format!("control_{name}"), Body::Control(control));
    }
    add("call", Body::Call(call()));
    add("bid", Body::Bid(bid()));
    add("decided_conflict", Body::Decided(contradicting()));
    add("decided_auction", Body::Decided(auctioned()));
    add("decided_draft_review", Body::Decided(draft_reviewed()));
    add("decided_guards", Body::Decided(guarded()));
    let hash = "ab".repeat(32);
    add("stored", Body::Stored(StoredBody { kind: MessageKind::Step, hash, bytes: 200_000 }));
    found.into_iter().map(|(name, body)| (name, envelope(body))).collect()
}

fn commands() -> Vec<(&'static str, Command)> {
    let task = index("1-2");
    let goal = "Look at the new sources".to_owned();
    let (key, value) = ("limit.hops".to_owned(), json!(20));
    let actions = [
        RequestAction::Pause,
        RequestAction::Resume { deadline_ms: Some(60_000) },
        RequestAction::Skip { task: task.clone() },
        RequestAction::Redo { task: task.clone() },
        RequestAction::Approve { question: None, arguments: None, plan: Some(Box::new(plan_draft())) },
        RequestAction::Reject { question: None },
        RequestAction::Answer { question: QuestionId(1), text: "2".to_owned() },
        RequestAction::SetContext { key, value, version: 1 },
        RequestAction::Edit { task: Some(task), goal },
    ];
    let command = |action: RequestAction| {
        let (name, request) = (action.name(), Request::new(run(), action));
        (name, Command::Request(request.because("the sources changed").with_id(Uuid::from_u128(3))))
    };
    actions.map(command).to_vec()
}

/// What Ada asks of the run.
fn asked(reason: &str, action: RequestAction) -> Input {
    let request = Request::new(run(), action).because(reason).with_id(Uuid::from_u128(3));
    Input::Request(Request { by: "ada".to_owned(), ..request })
}

fn child() -> RunId {
    "0190a1b2c3d3700080000000000000bb".parse().unwrap()
}

fn child_goal() -> Goal {
    let goals = vec![goal().text];
    let (task, rights) = (TaskId::Leaf(index("1-2")), TaskRights::default());
    let parent = Parent { run: run(), task, depth: 1, goals, rights, background: None };
    Goal { text: "Look into the hops.".to_owned(), parent: Some(Box::new(parent)), ..goal() }
}

fn child_end() -> ChildEnd {
    let reason = "cancelled by ada".to_owned();
    ChildEnd {
        status: RunStatus::Aborted(StopReason::Cancelled),
        reason,
        report: Some(report()),
        usage: usage(),
    }
}

/// A task that waits for a run of its own.
fn nested() -> Decided {
    let (run, end, goal) = (child(), Box::new(child_end()), Box::new(child_goal()));
    let task = TaskId::Leaf(index("1-2"));
    Decided {
        inputs: vec![Input::ChildEnded { child: run, end: end.clone() }],
        events: vec![
            RunEvent::ChildBegun(ChildBegun { task, generation: Generation(1), run, goal }),
            RunEvent::ChildAsked(ChildAsked { run }),
            RunEvent::ChildEnded(ChildEnded { run, end }),
        ],
        ..decided()
    }
}

/// A run by a blueprint that begins.
fn expanded() -> Decided {
    let text = muster_shared::blueprint::shipped("ticket_triage").unwrap();
    let params = BTreeMap::from([("tickets".to_owned(), json!(["the door sticks"]))]);
    let filled =
        muster_shared::blueprint::fill(&muster_shared::blueprint::parse(text).unwrap(), &params).unwrap();
    let goal = Goal { blueprint: Some(Box::new(filled)), ..goal() };
    let input = Input::Goal {
        goal: Box::new(goal),
        limits: limits(),
        secret: "ab".repeat(32),
        lessons: Vec::new(),
        signed: None,
    };
    let (tasks, note) = (vec![index("1-1")], "1 of 2 items are left out".to_owned());
    let placed = StepOutcome::Placed { tasks, fallback: vec![index("1-2")], note, left_out: 0 };
    let left_out = StepOutcome::LeftOut { reason: "it was not approved".to_owned() };
    let step_outcomes = BTreeMap::from([("tickets".to_owned(), placed), ("action".to_owned(), left_out)]);
    Decided {
        inputs: vec![input],
        offers: 0,
        continues: false,
        events: vec![RunEvent::StepsExpanded(StepsExpanded { step_outcomes, tasks: plan().tasks })],
        ..decided()
    }
}

/// A run that is stopped with what there is to report.
fn out_of_time() -> Decided {
    let report = Some(Box::new(Report { partial: true, ..report() }));
    let reason = "its time of 10 min is up".to_owned();
    Decided {
        inputs: vec![Input::Timer],
        events: vec![RunEvent::RunAborted(RunAborted { why: StopReason::DeadlinePassed, reason, report })],
        ..decided()
    }
}

fn plan_draft() -> PlanDraft {
    PlanDraft { goal: "Understand".to_owned(), tasks: vec![draft_task()], questions: Vec::new() }
}

/// A task that waits for a person.
fn waiting() -> Released {
    let reason = "it waits for an answer to: Which year?".to_owned();
    let wait = Some(Box::new(Awaited { step: 2, wait: Wait::Answer(question()) }));
    Released { reason, parked: true, usage: usage(), wait }
}

fn peer_requests() -> Vec<(&'static str, PeerRequest)> {
    let question = "Does the limit hold for children too?".to_owned();
    let to = Peer::Capability("delegation loops".to_owned());
    let why = "the report rests on it".to_owned();
    let (tasks, text) = (vec!["1-2".to_owned()], "The limit is 20, not 10.".to_owned());
    vec![
        ("help", PeerRequest::HelpRequest(HelpRequest { to, question: question.clone(), why })),
        ("share", PeerRequest::InformationShare(InformationShare { text, tasks: tasks.clone() })),
        ("context", PeerRequest::ContextRequest(ContextRequest { tasks, question })),
        ("context_read", PeerRequest::ContextRead(ContextRead { key: "limit.".to_owned(), prefix: true })),
        (
            "context_write",
            PeerRequest::ContextWrite(ContextWrite {
                key: "limit.hops".to_owned(),
                value: json!(20),
                version: 1,
            }),
        ),
        ("capability", PeerRequest::CapabilityQuery(CapabilityQuery { needs: vec!["citations".to_owned()] })),
    ]
}

fn information() -> Information {
    let text = "The limit is 20, not 10.".to_owned();
    Information { number: 1, from: Some(index("1-1")), name: "Look".to_owned(), text }
}

/// What peers answer, and what they are told.
fn asked_of_peers() -> Decided {
    let task = TaskId::Leaf(index("1-2"));
    let (role, can) = ("loop_watcher".parse().unwrap(), vec!["delegation loops".to_owned()]);
    let capable = Capable { role, description: "Finds out what limits loops.".to_owned(), can };
    let answers = [
        PeerAnswer::HelpGiven { role: "loop_watcher".parse().unwrap(), task: index("1-3") },
        PeerAnswer::InformationShared { number: 1, to: vec![index("1-2")] },
        PeerAnswer::ContextGiven { tasks: vec![index("1-1")] },
        PeerAnswer::CapabilityFound { peers: vec![capable] },
    ];
    let answered = answers.into_iter().map(|answer| {
        RunEvent::TaskAnswered(TaskAnswered {
            task: task.clone(),
            step: 2,
            observation: observation(),
            answer: Some(Box::new(answer)),
            verdict: None,
            form: None,
        })
    });
    let Information { number, from, text, .. } = information();
    let (person, key) = (String::new(), None);
    let shared = RunEvent::InformationShared(InformationShared {
        number,
        from,
        person,
        key,
        to: vec![index("1-2")],
        text,
    });
    Decided { events: std::iter::once(shared).chain(answered).collect(), ..decided() }
}

/// Values that tasks share.
fn written() -> Decided {
    let (key, value) = ("limit.hops".to_owned(), json!(20));
    let agent = Some("worker-0000002a".parse().unwrap());
    let by = [ContextAuthor::Person("ada".to_owned()), ContextAuthor::Task { task: index("1-2"), agent }];
    let entry =
        ContextEntry { value: value.clone(), version: 2, by: by[1].clone(), at: Millis(1_700_000_000_000) };
    let answers = [
        PeerAnswer::ContextWritten { key: key.clone(), version: 2 },
        PeerAnswer::ContextFound { entries: std::collections::BTreeMap::from([(key.clone(), entry)]) },
    ];
    let answered = answers.into_iter().map(|answer| {
        RunEvent::TaskAnswered(TaskAnswered {
            task: TaskId::Leaf(index("1-2")),
            step: 2,
            observation: observation(),
            answer: Some(Box::new(answer)),
            verdict: None,
            form: None,
        })
    });
    let write = |(version, by)| {
        RunEvent::ContextWritten(ContextWritten { key: key.clone(), value: value.clone(), version, by })
    };
    Decided {
        inputs: vec![asked(
            "",
            RequestAction::SetContext { key: key.clone(), value: value.clone(), version: 0 },
        )],
        events: (1..).zip(by).map(write).chain(answered).collect(),
        ..decided()
    }
}

/// Failures that were answered, and a task that is not waited for any longer.
fn answered_failures() -> Decided {
    let (leaf, generation) = (TaskId::Leaf(index("1-2")), Generation(1));
    Decided {
        events: vec![
            RunEvent::FailureAnswered(FailureAnswered {
                task: leaf.clone(),
                generation,
                failure: FailureKind::QuestionTooLong,
                response: Response::OtherModel,
                model: Some("provider/large".to_owned()),
                marked: None,
                withheld: None,
            }),
            RunEvent::FailureAnswered(FailureAnswered {
                task: leaf.clone(),
                generation: Generation(2),
                failure: FailureKind::ToolFailed,
                response: Response::OtherTool,
                model: None,
                marked: None,
                withheld: Some("calculator".to_owned()),
            }),
            RunEvent::ErrorBudgetUsedUp(ErrorBudgetUsedUp { failures: 50, asked: true }),
        ],
        ..decided()
    }
}

/// Work that came back to where it was, and tasks that waited for each other.
fn loop_detected() -> Decided {
    let (task, chain) = (index("1-3"), vec![index("1-2"), index("1-3")]);
    let agent = Some("worker-0000002a".parse().unwrap());
    let reason = "it would come back to where it was".to_owned();
    Decided {
        events: vec![
            RunEvent::HandOverRefused(HandOverRefused {
                task: task.clone(),
                chain: chain.clone(),
                agent,
                reason: reason.clone(),
            }),
            RunEvent::DeadlockEnded(DeadlockEnded { task: TaskId::Leaf(task), circle: chain, reason }),
        ],
        ..decided()
    }
}

/// A task that a trial does, one that is done once more beside, and a trial that is withdrawn.
fn tried() -> Decided {
    let (trial, reason) = ("cheaper".to_owned(), "2 of its 10 tasks went well at once".to_owned());
    let mark = Box::new(TrialMark { trial: trial.clone(), arm: Arm::Canary });
    Decided {
        inputs: vec![Input::TrialWithdrawn {
            trial: "other".to_owned(),
            reason: "ann saw enough".to_owned(),
        }],
        events: vec![
            RunEvent::ShadowAsked(ShadowAsked {
                trial: "other".to_owned(),
                task: TaskId::Leaf(index("1-2")),
                generation: Generation(1),
                run: child(),
            }),
            RunEvent::TrialWithdrawn(TrialWithdrawn { trial, reason, by_rule: true }),
        ],
        offers: 0,
        offer: Some(Box::new(TaskOffered { trial: Some(mark), ..heard() })),
        ..decided()
    }
}

/// An offer of a task that was told something, and may ask.
fn heard() -> TaskOffered {
    TaskOffered {
        heard: vec![information()],
        may_ask_peers: true,
        chain: vec![index("1-1")],
        withheld: vec!["calculator".to_owned()],
        ..going_on()
    }
}

fn rights() -> TaskRights {
    let (tools, documents) = (Allowed::read(["corpus.*", "!corpus.read"]), Allowed::read(["docs"]));
    let (tools, documents) = (tools.unwrap(), documents.unwrap());
    let hosts = Allowed::read(["*.example.org:443"]).unwrap();
    let goal = Rights { tools, documents, hosts, ..Rights::default() };
    let budget = Budget { model_calls: Some(3), ..Budget::UNLIMITED };
    let (read_context, write_context) = (Allowed::read(["figures.*"]).unwrap(), Allowed::none());
    let step = Rights {
        read_context,
        write_context,
        people: false,
        hand_over: false,
        runs: false,
        write_files: false,
        budget,
        ..Rights::default()
    };
    let by = Grantor::Blueprint { name: "research".to_owned(), task: index("2") };
    TaskRights::default().narrowed_by(Grantor::Goal, &goal).narrowed_by(by, &step)
}

/// An offer of a task that may not use everything.
fn narrowed() -> TaskOffered {
    TaskOffered { rights: rights(), ..heard() }
}

/// A step with a call that its task has no right to.
fn denied() -> Step {
    let refusal = rights().allows(&Use::Tool("corpus.read")).unwrap_err();
    Step { notes: vec![Note::Denied { at: 1, refusal }], ..step() }
}

fn question() -> Question {
    Question {
        text: "Which year?".to_owned(),
        reason: "The figures differ from year to year".to_owned(),
        choices: vec!["2024".to_owned(), "2025".to_owned()],
        default: Some("2025".to_owned()),
        to: Some("ada".to_owned()),
        within_ms: Some(60_000),
        on_timeout: Some(OnTimeout::AskAnother),
        form: None,
    }
}

/// One of several people who have to approve, by a request that she signed.
fn approved() -> Decided {
    let signed = SignedOrder {
        by: "grace".to_owned(),
        kind: SignerKind::Person,
        subject: format!("cmd.{}.approve", run()),
        payload: "e30".to_owned(),
        signature: "c2ln.eyJ0.eyJzdWIi.c2ln".to_owned(),
    };
    let request = Request::new(run(), RequestAction::Approve { question: None, arguments: None, plan: None })
        .signed(Some(signed));
    Decided {
        inputs: vec![Input::Request(request)],
        events: vec![RunEvent::ApprovalGiven(ApprovalGiven {
            id: QuestionId(1),
            by: "grace".to_owned(),
            more: 1,
        })],
        ..decided()
    }
}

/// Tasks that wait, and what people answer.
fn answered() -> Decided {
    let (id, by) = (QuestionId(1), index("1-2"));
    let (task, to) = (TaskId::Leaf(by.clone()), index("1-3"));
    let expires = Millis(1_700_000_060_000);
    let on_timeout = OnTimeout::AskAnother;
    let reply = Reply { question: id, text: Some("2025".to_owned()), by: Some("ada".to_owned()) };
    let wait = Wait::Answer(question());
    Decided {
        inputs: vec![
            asked(
                "",
                RequestAction::Approve {
                    question: None,
                    arguments: None,
                    plan: Some(Box::new(plan_draft())),
                },
            ),
            asked("", RequestAction::Reject { question: None }),
            asked("", RequestAction::Answer { question: id, text: "2".to_owned() }),
        ],
        events: vec![
            RunEvent::TaskWaits(TaskWaits { task: task.clone(), generation: Generation(1), step: 2, wait }),
            RunEvent::QuestionAsked(QuestionAsked {
                id,
                about: About::Task(task.clone()),
                question: question(),
                expires,
                on_timeout,
            }),
            RunEvent::QuestionPassedOn(QuestionPassedOn { id, to: "grace".to_owned(), expires }),
            RunEvent::QuestionAnswered(QuestionAnswered { reply }),
            RunEvent::QuestionWithdrawn(QuestionWithdrawn { id, reason: "the task was left out".to_owned() }),
            RunEvent::TaskAnswered(TaskAnswered {
                task,
                step: 2,
                observation: observation(),
                answer: None,
                verdict: None,
                form: None,
            }),
            RunEvent::TaskDelegated(TaskDelegated { task: by, to, plan: plan() }),
            RunEvent::PlanEdited(PlanEdited { plan: plan(), reason: "asked by ada".to_owned() }),
        ],
        ..decided()
    }
}

/// A task that several members do.
fn by_members() -> Decided {
    let (task, generation) = (index("1-2"), Generation(1));
    let members: Vec<TaskIndex> = ["1-2~a", "1-2~b"].into_iter().map(index).collect();
    let view = |member: &str, conclusion: &str| View {
        member: index(member),
        conclusion: conclusion.to_owned(),
        claims: Vec::new(),
        confidence: 70,
    };
    let views = vec![view("1-2~a", "30 %"), view("1-2~b", "15 %")];
    let dissent = Dissent { member: index("1-2~b"), says: "15 %".to_owned(), confidence: 70 };
    let agree = vec![index("1-2~z"), index("1-2~a")];
    let verdict =
        GroupVerdict { counts: index("1-2~z"), by: DecidedBy::Majority, agree, dissent: vec![dissent] };
    let pattern = Pattern::Committee { members: 2, rounds: 1 };
    Decided {
        events: vec![
            RunEvent::MembersBegun(MembersBegun { task: task.clone(), generation, pattern, members }),
            RunEvent::MembersDiscuss(MembersDiscuss {
                task: task.clone(),
                generation,
                round: 1,
                views: views.clone(),
            }),
            RunEvent::MembersSettled(MembersSettled { task, generation, verdict }),
        ],
        ..decided()
    }
}

fn call() -> CallForProposals {
    CallForProposals {
        run: run(),
        task: TaskId::Leaf(index("1-2")),
        number: 1,
        role: Role::Worker,
        name: "look".to_owned(),
        goal: "Look at the sources".to_owned(),
        needs: vec!["search".to_owned()],
        window_ms: 250,
    }
}

fn bid() -> Bid {
    Bid {
        agent: agent(),
        run: run(),
        task: TaskId::Leaf(index("1-2")),
        number: 1,
        millis: 1_200,
        cost_micros: 350,
        confidence: 80,
        note: "it lies at hand".to_owned(),
    }
}

/// Two results that contradict each other.
fn contradicting() -> Decided {
    let claim = |percent| Claim {
        subject: "chance of rain, Paris".to_owned(),
        value: ClaimValue::Number { value: Finite::new(percent).unwrap(), unit: "%".to_owned() },
        confidence: 80,
        evidence: vec![Citation { path: "a.md".to_owned(), line: 3, quote: String::new() }],
        method: "read off the forecast".to_owned(),
    };
    let sides = vec![Side::new(index("1-1"), claim(30.0)), Side::new(index("1-2"), claim(15.0))];
    let asked = Settling {
        conflict: 1,
        purpose: SettlingFor::Method(index("1-1")),
        task: Box::new(plan_task("Show how")),
    };
    let verdict = muster_shared::conflict::ConflictVerdict {
        value: sides[0].claim.value.clone(),
        by: ConflictStep::Methods,
        why: "the other had the wrong days".to_owned(),
        winners: vec![index("1-1")],
        losers: vec![index("1-2")],
        evidence: Vec::new(),
    };
    let until = Millis(1_700_000_600_000);
    Decided {
        events: vec![
            RunEvent::ConflictFound(ConflictFound {
                id: 1,
                subject: "chance of rain, Paris".to_owned(),
                sides,
                certain: true,
                until,
            }),
            RunEvent::ConflictExamined(ConflictExamined {
                id: 1,
                step: Some(ConflictStep::Methods),
                tasks: BTreeMap::from([(1, asked)]),
            }),
            RunEvent::VerificationAdded(VerificationAdded { id: 1, task: index("1-3"), plan: plan() }),
            RunEvent::ConflictResolved(ConflictResolved {
                id: 1,
                end: ConflictEnd::Settled(verdict),
                redone: vec![index("1-2")],
            }),
        ],
        ..decided()
    }
}

/// A decision that goes by what rules about language said, of each shape.
fn read() -> Decided {
    let contradiction = Contradiction { sides: vec![0, 2], named: 2, known: vec![1] };
    let said = [
        (ReadingRule::SameSubject, Said::Yes),
        (ReadingRule::SmallGoal, Said::Number(6)),
        (ReadingRule::SharedWords, Said::Numbers(vec![2, 0])),
        (ReadingRule::Verdict, Said::Word("yes".to_owned())),
        (ReadingRule::Unmet, Said::Texts(vec!["there is no JSON array".to_owned()])),
        (ReadingRule::Unanswered, Said::Parts(vec![TextPart { at: 17, len: 5 }])),
        (ReadingRule::Camps, Said::Groups(vec![vec![0, 1], vec![2]])),
        (ReadingRule::Value, Said::Value(ClaimValue::Verdict(true))),
        (ReadingRule::Contradictions, Said::Contradictions(vec![contradiction])),
    ];
    let readings =
        said.into_iter().zip(4_000_000_000..).map(|((rule, says), of)| Reading { rule, of, nth: 0, says });
    Decided { readings: readings.collect(), ..decided() }
}

/// A draft that was reviewed.
fn draft_reviewed() -> Decided {
    let (number, until) = (1, Millis(1_700_000_600_000));
    Decided {
        events: vec![
            RunEvent::DraftReviewBegun(DraftReviewBegun { number, until }),
            RunEvent::DraftReviewed(DraftReviewed { number, review: draft_review(), revise: true }),
            RunEvent::DraftReviewMissed(DraftReviewMissed {
                number: 2,
                reason: "its time was up before it ended".to_owned(),
            }),
        ],
        ..decided()
    }
}

fn draft_review() -> DraftReview {
    DraftReview {
        verdict: DraftVerdict::Revise,
        remarks: vec![DraftRemark { place: "Limits".to_owned(), text: "which of them?".to_owned() }],
        unanswered: vec!["who sets them".to_owned()],
        unsupported: vec!["There are nine.".to_owned()],
    }
}

/// A report that guards were asked about, and changed.
fn guarded() -> Decided {
    let (number, hook) = (3, Hook::BeforeReport);
    let verdict = GuardVerdict {
        guard: "secrets".to_owned(),
        verdict: Ruling::Change,
        reason: "took out 1 IBAN".to_owned(),
        failed: true,
    };
    let said = Guarded { allowed: 1, verdicts: vec![verdict], changed: Some(json!({ "report": {} })) };
    let (task, generation, outcome) = (TaskId::Write, Generation(1), Seq(40));
    let until = Millis(1_700_000_605_000);
    let product = Some(Box::new(Product::Report(report())));
    Decided {
        inputs: vec![Input::GuardsSaid { number, outcome: Some(outcome), said: said.clone() }],
        events: vec![
            RunEvent::GuardsAsked(GuardsAsked {
                number,
                hook,
                about: Some(AskedAbout::Outcome { task, generation, outcome }),
                until,
            }),
            RunEvent::GuardsAnswered(GuardsAnswered { number, hook, said, product }),
        ],
        ..decided()
    }
}

/// A task that agents bid for.
fn auctioned() -> Decided {
    let (task, track_records) =
        (index("1-2"), BTreeMap::from([(agent(), Tally { done: 3, ..Tally::default() })]));
    Decided {
        inputs: vec![Input::Bids { task: task.clone(), number: 1, bids: vec![bid()], track_records }],
        events: vec![
            RunEvent::AuctionOpened(AuctionOpened {
                task: task.clone(),
                number: 1,
                closes: Millis(1_700_000_000_250),
            }),
            RunEvent::TaskAwarded(TaskAwarded {
                task: task.clone(),
                number: 1,
                bids: vec![bid()],
                to: Some(agent()),
                reasons: vec!["it won".to_owned()],
            }),
            RunEvent::BidHeld(BidHeld {
                task,
                agent: agent(),
                promised_ms: 1_200,
                took_ms: 1_100,
                kept: true,
            }),
        ],
        ..decided()
    }
}

/// Plans that are improved, or fail and are made anew.
fn replanned() -> Decided {
    let (reason, lines) = ("two tasks failed".to_owned(), vec!["new task 3 look elsewhere".to_owned()]);
    let failed = FailedPlan { tasks: vec!["[~] 1 look".to_owned()], reasons: vec![reason.clone()] };
    Decided {
        inputs: vec![Input::Agent { seq: Seq(44) }],
        events: vec![
            RunEvent::PlanningSkipped(PlanningSkipped { reason: "the goal is small".to_owned() }),
            RunEvent::PlanDrafted(PlanDrafted { plan: plan(), repairs: Vec::new() }),
            RunEvent::PlanIterated(PlanIterated { lessons: lines.clone(), changes: lines.clone() }),
            RunEvent::WordsUncovered(WordsUncovered {
                by: Checked::Plan,
                words: vec!["in Europe".to_owned()],
            }),
            RunEvent::ReplanWanted(ReplanWanted { number: 1, reason: reason.clone() }),
            RunEvent::Replanned(Replanned { number: 1, changes: lines.clone(), plan: plan() }),
            RunEvent::RunGivenUp(RunGivenUp {
                plans: vec![failed],
                lessons: lines,
                simpler: "What limits loops?".to_owned(),
                report: Some(Box::new(Report { partial: true, ..report() })),
            }),
            RunEvent::RunFailed(RunFailed { reason }),
        ],
        ..decided()
    }
}

fn observation() -> Observation {
    let content = "ada answers: 2025".to_owned();
    Observation { status: ObservationStatus::Success, content, millis: 1_200, truncated: false, cached: None }
}

fn parked() -> Released {
    Released { reason: "paused by ada".to_owned(), parked: true, usage: usage(), wait: None }
}

/// What people ask of a run, and what follows.
fn controlled() -> Decided {
    let wish = |action| asked("enough", action);
    let (task, reason, goal) = (index("1-2"), "asked by ada".to_owned(), "Look again".to_owned());
    Decided {
        inputs: vec![
            wish(RequestAction::Pause),
            wish(RequestAction::Resume { deadline_ms: Some(60_000) }),
            wish(RequestAction::Skip { task: task.clone() }),
            wish(RequestAction::Redo { task: task.clone() }),
            wish(RequestAction::Edit { task: Some(task.clone()), goal: goal.clone() }),
        ],
        events: vec![
            RunEvent::RunPaused(RunPaused { reason: reason.clone() }),
            RunEvent::TaskParked(TaskParked { task: TaskId::Leaf(task.clone()), generation: Generation(1) }),
            RunEvent::RunResumed(RunResumed {
                reason: reason.clone(),
                deadline: Some(Millis(1_700_000_060_000)),
            }),
            RunEvent::TaskReopened(TaskReopened { task: TaskId::Leaf(task.clone()), reason: reason.clone() }),
            RunEvent::GoalEdited(GoalEdited { task: Some(task), goal, reason: reason.clone() }),
            RunEvent::RequestRefused(RequestRefused { id: Uuid::from_u128(3), reason }),
        ],
        ..decided()
    }
}

fn envelope(body: Body) -> Envelope {
    let trace = TraceContext("00-0190a1b2c3d4700080000000000000aa-0000000000000001-01".to_owned());
    Envelope {
        receiver: Some("researcher-00000002".parse().unwrap()),
        expires: Some(Millis(1_700_000_060_000)),
        correlation: Some(Uuid::from_u128(2)),
        attempt: None,
        trace: Some(trace),
        run: Some(run()),
        task: Some(TaskId::Leaf(index("1-2"))),
        ..Envelope::new(Uuid::from_u128(1), agent(), Millis(1_700_000_000_000), body)
    }
}

fn run() -> RunId {
    "0190a1b2c3d4700080000000000000aa".parse().unwrap()
}

fn agent() -> AgentId {
    AgentId::new("worker", 1)
}

fn index(text: &str) -> TaskIndex {
    text.parse().unwrap()
}

fn limits() -> RunLimits {
    RunLimits { max_steps: 12, ..RunLimits::default() }
}

fn goal() -> Goal {
    Goal {
        text: "What limits delegation loops?".to_owned(),
        corpus: Some(corpus()),
        deadline_ms: Some(600_000),
        model: Some("openai/gpt-x".to_owned()),
        asked_by: "ada".to_owned(),
        encoding: Encoding::Json,
        set_limits: serde_json::Map::new(),
        limits: Some(limits()),
        budget: Budget::UNLIMITED,
        review: None,
        blueprint: None,
        planning: None,
        plan: None,
        role_name: String::new(),
        priority: 0,
        draft_review: None,
        wait_for_role_ms: None,
        blueprints: Vec::new(),
        domain: None,
        conversation: Vec::new(),
        unread: String::new(),
        fetched: Vec::new(),
        attended: false,
        parent: None,
        trace: None,
        shadow: None,
    }
}

fn corpus() -> CorpusRef {
    CorpusRef { id: "cd".repeat(32), files: 12, bytes: 34_567, outline: String::new() }
}

fn usage() -> Usage {
    Usage {
        model_calls: 2,
        tool_calls: 1,
        input_tokens: 300,
        output_tokens: 40,
        cost_micros: 1_500,
        ..Usage::default()
    }
}

fn plan_task(name: &str) -> PlanTask {
    PlanTask {
        name: name.to_owned(),
        goal: format!("{name} with {{{{1-1.result}}}}"),
        role: Role::Researcher,
        criticism: "may find too little".to_owned(),
        milestones: vec!["first hit".to_owned()],
        expected_output: "three findings".to_owned(),
        needs: vec!["search".to_owned()],
        tools: Vec::new(),
        depends_on: vec![index("1-1")],
        critical: true,
        max_steps: None,
        priority: 0,
        pattern: None,
        blueprint: None,
        query: None,
        rights: None,
    }
}

fn plan() -> Plan {
    let first = PlanTask { goal: "Look".to_owned(), depends_on: Vec::new(), ..plan_task("Look") };
    let tasks = [
        (index("1"), PlanTask { goal: "All".to_owned(), depends_on: Vec::new(), ..plan_task("All") }),
        (index("1-1"), first),
        (index("1-2"), plan_task("Compare")),
    ];
    Plan { goal: "Understand the limits".to_owned(), tasks: BTreeMap::from(tasks) }
}

fn draft_task() -> TaskDraft {
    TaskDraft {
        name: "Look".to_owned(),
        goal: "Look it up".to_owned(),
        role: Some("researcher".to_owned()),
        criticism: "vague".to_owned(),
        milestones: vec!["found".to_owned()],
        expected_output: "a list".to_owned(),
        needs: vec!["search".to_owned()],
        tools: Vec::new(),
        depends_on: vec!["1-1".to_owned()],
        critical: true,
        max_steps: None,
        priority: 0,
        pattern: None,
        blueprint: None,
        query: None,
        rights: None,
        subtasks: vec![TaskDraft {
            name: "Part".to_owned(),
            goal: "A part".to_owned(),
            ..TaskDraft::default()
        }],
    }
}

fn reflection() -> Reflection {
    Reflection {
        summary: "Found two of three.".to_owned(),
        on_plan: vec!["too broad".to_owned()],
        on_tools: vec![ToolNote { tool: "search".to_owned(), note: "needs short queries".to_owned() }],
        uncovered: vec!["the depth limit".to_owned()],
        operations: Vec::new(),
        refine: Some("one subquestion is open".to_owned()),
    }
}

fn operations() -> Vec<RefineOperation> {
    vec![
        RefineOperation::Split { task: index("1-2"), into: vec![draft_task(), draft_task()] },
        RefineOperation::Add { after: index("1-2"), tasks: vec![draft_task()] },
        RefineOperation::Delete { task: index("1-2"), reason: "done already".to_owned() },
        RefineOperation::Exit { reason: "good enough".to_owned() },
    ]
}

fn result() -> TaskResult {
    let citation = Citation { path: "docs/a.md".to_owned(), line: 12, quote: "at most 20".to_owned() };
    TaskResult {
        conclusion: "Chains are limited to 20.".to_owned(),
        body: String::new(),
        findings: vec![Finding {
            text: "At most 20 levels".to_owned(),
            citations: vec![citation],
            subquestion: "limits".to_owned(),
            confidence: 90,
            verified: true,
            looked_up: false,
        }],
        milestones: vec!["found".to_owned()],
        unanswered: vec!["why 20".to_owned()],
        advice: Some(Advice {
            refine: true,
            reason: "one more question".to_owned(),
            plan: None,
            suggestions: vec!["read docs/b.md".to_owned()],
        }),
        claims: Vec::new(),
        data: None,
    }
}

fn report() -> Report {
    Report {
        title: "Limits".to_owned(),
        body: "# Limits\n\n20 levels (docs/a.md:12)\n".to_owned(),
        unanswered: vec!["why 20".to_owned()],
        offline: true,
        partial: false,
        artifacts: Vec::new(),
    }
}

fn step() -> Step {
    Step {
        number: 1,
        thought: Thought {
            text: "I should search".to_owned(),
            reasoning: "nothing known".to_owned(),
            plan: "search, then read".to_owned(),
            criticism: "may be too wide".to_owned(),
        },
        action: Action { name: "search".to_owned(), arguments: json!({ "most": 5, "query": "limits" }) },
        observation: Some(Observation {
            status: ObservationStatus::Success,
            content: "docs/a.md:12 at most 20".to_owned(),
            millis: 3,
            truncated: true,
            cached: None,
        }),
        more: Vec::new(),
        notes: Vec::new(),
        heard: Vec::new(),
        calls: vec![ModelCall {
            model: "offline/rules".to_owned(),
            template: TemplateRef {
                name: "worker".to_owned(),
                version: 1,
                hash: "0123456789abcdef".to_owned(),
            },
            request_hash: "ef".repeat(32),
            same_messages: 2,
            messages: vec![StoredMessage { role: "user".to_owned(), content: "Go on.".to_owned() }],
            aside: false,
            parameters: json!({ "temperature": 0 }),
            answer: "{}".to_owned(),
            calls_at: Vec::new(),
            signatures: Vec::new(),
            cut: false,
            usage: usage(),
            millis: 40,
        }],
        millis: 45,
        outside_millis: 43,
    }
}

fn started() -> Started {
    let ack = "$JS.ACK.TASKS.worker.1.2.3.4.5".to_owned();
    Started { attempt: Attempt(2), ack, pid: 4_242, host: "box".to_owned(), after_step: 3 }
}

fn products() -> Vec<(&'static str, Product)> {
    vec![
        ("plan", Product::Plan(plan_draft())),
        ("result", Product::Result(result())),
        ("reflection", Product::Reflection(reflection())),
        ("refinement", Product::Refinement(operations())),
        ("report", Product::Report(report())),
        ("draft_review", Product::DraftReview(draft_review())),
    ]
}

fn outcome(product: Product) -> Outcome {
    Outcome {
        ending: Ending::DonePartial,
        reason: "the limit of steps was reached".to_owned(),
        product: Some(product),
        last_step: Some(Box::new(Step { observation: None, ..step() })),
        steps: vec![StepDigest {
            number: 1,
            action: "search limits".to_owned(),
            status: Some(ObservationStatus::Timeout),
            millis: 45,
            more: Vec::new(),
        }],
        usage: usage(),
        contract_violation: None,
    }
}

/// An offer of a task that was answered.
fn going_on() -> TaskOffered {
    let (_, work) = works().swap_remove(1);
    let (answer, verdict, form) = (None, None, None);
    let answered = Some(Box::new(Answered { step: 2, observation: observation(), answer, verdict, form }));
    TaskOffered { generation: Generation(2), continues: Some(Generation(1)), answered, ..offered(work) }
}

fn works() -> Vec<(&'static str, Work)> {
    let leaf = || LeafRef {
        index: index("1-1"),
        name: "Look".to_owned(),
        goal: "Look".to_owned(),
        query: None,
        result: result(),
    };
    let progress = || "[x] 1-1 Look\n".to_owned();
    vec![
        (
            "plan",
            Work::Plan {
                refused: vec!["a cycle".to_owned()],
                roles: vec!["worker".to_owned()],
                lessons: Vec::new(),
                specialists: Vec::new(),
                tools: Vec::new(),
                blueprints: Vec::new(),
                draft: None,
                replan: None,
                answers: Vec::new(),
                refused_plan: None,
                held_to: Box::default(),
            },
        ),
        (
            "execute",
            Work::Execute {
                task: plan_task("Compare"),
                inputs: vec![leaf()],
                parents: vec!["All".to_owned()],
                progress: progress(),
                lessons: vec!["short queries".to_owned()],
                failed_before: Some("no model".to_owned()),
                earlier: None,
                left_out: Vec::new(),
                may_plan: false,
                member: None,
            },
        ),
        (
            "reflect",
            Work::Reflect {
                index: index("1-2"),
                task: plan_task("Compare"),
                ending: Ending::Done,
                reason: "done".to_owned(),
                result: Some(result()),
                steps: outcome(Product::Result(result())).steps,
                progress: progress(),
                brief: false,
                refine: None,
            },
        ),
        (
            "refine",
            Work::Refine {
                plan: plan(),
                progress: progress(),
                reasons: vec!["one subquestion is open".to_owned()],
                reflections: vec![(index("1-1"), reflection())],
                results: vec![leaf()],
                operations_left: 4,
                held_to: Box::default(),
                roles: Vec::new(),
                specialists: Vec::new(),
                tools: Vec::new(),
                blueprints: Vec::new(),
            },
        ),
        (
            "write",
            Work::Write {
                results: vec![leaf()],
                failed: vec![(index("1-2"), "Compare".to_owned(), "gave up".to_owned())],
                uncovered: vec!["the depth limit".to_owned()],
                conflicts: Vec::new(),
                revision: None,
            },
        ),
        (
            "write_again",
            Work::Write {
                results: vec![leaf()],
                failed: Vec::new(),
                uncovered: Vec::new(),
                conflicts: Vec::new(),
                revision: Some(Box::new(Revision { draft: "# Limits".to_owned(), review: draft_review() })),
            },
        ),
        (
            "draft_review",
            Work::DraftReview {
                draft: Box::new(report()),
                results: vec![leaf()],
                failed: vec![(index("1-2"), "Compare".to_owned(), "gave up".to_owned())],
                uncovered: vec!["the depth limit".to_owned()],
                conflicts: Vec::new(),
                earlier: Some(Box::new(draft_review())),
            },
        ),
    ]
}

fn offered(work: Work) -> TaskOffered {
    TaskOffered {
        run: run(),
        task: TaskId::Leaf(index("1-2")),
        generation: Generation(1),
        queue: Queue::Agent(agent()),
        work,
        goal: goal().text,
        role_name: String::new(),
        conversation: Vec::new(),
        corpus: Some(corpus()),
        model: Some("openai/gpt-x".to_owned()),
        limits: limits(),
        budget: Budget::UNLIMITED,
        rights: TaskRights::default(),
        deadline: Millis(1_700_000_600_000),
        continues: None,
        answered: None,
        heard: Vec::new(),
        may_ask_peers: false,
        background: None,
        trace: None,
        trial: None,
        chain: Vec::new(),
        withheld: Vec::new(),
        alone: false,
        nonce: "0011223344556677".to_owned(),
        encoding: Encoding::Json,
    }
}

fn decided() -> Decided {
    let secret = "0123456789abcdef".repeat(4);
    Decided {
        batch: Uuid::from_u128(3),
        by: AgentId::new("orchestrator", 2),
        inputs: vec![
            Input::Goal {
                goal: Box::new(goal()),
                limits: limits(),
                secret: secret.clone(),
                lessons: Vec::new(),
                signed: None,
            },
            Input::Refuse {
                goal: Box::new(goal()),
                limits: limits(),
                reason: "the goal is empty".to_owned(),
                busy: false,
            },
            Input::Agent { seq: Seq(41) },
            Input::Capacity,
            Input::Timer,
            asked("enough", RequestAction::Cancel),
        ],
        now: Millis(1_700_000_000_000),
        basis: Seq(42),
        after: Seq(0),
        capacity: BTreeMap::from([(Queue::Role(Role::Worker), 3), (Queue::Agent(agent()), 1)]),
        offers: 2,
        continues: true,
        specialists: Vec::new(),
        placements: Vec::new(),
        readings: Vec::new(),
        events: run_events(secret),
        offer: None,
    }
}

fn forked() -> Decided {
    let (state, secret, deadline) = (Box::new(inherited()), "ab".repeat(32), Millis(1_700_000_600_000));
    let from = origin();
    let (goal, limits) = (Box::new(goal()), limits());
    let created = RunEvent::RunCreated(RunCreated {
        goal: goal.clone(),
        limits: limits.clone(),
        event_version: 1,
        secret: secret.clone(),
        deadline,
    });
    Decided {
        inputs: vec![Input::Fork { from, state: state.clone(), goal, limits, secret, signed: None }],
        offers: 0,
        continues: false,
        specialists: Vec::new(),
        placements: Vec::new(),
        readings: Vec::new(),
        events: vec![created, RunEvent::RunForked(RunForked { from, state })],
        ..decided()
    }
}

fn unreadable() -> Decided {
    let (task, generation) = (TaskId::Leaf(index("1-2")), Generation(1));
    let why = "field body.content.ending: unknown variant `success`".to_owned();
    let reason = format!("its agent wrote what cannot be read (outcome): {why}");
    Decided {
        inputs: vec![Input::Unreadable { seq: Seq(41), why }],
        after: Seq(40),
        offers: 0,
        continues: false,
        events: vec![RunEvent::TaskRetried(TaskRetried {
            task,
            generation,
            outcome: Some(Seq(41)),
            reason,
            keeps_steps: false,
        })],
        ..decided()
    }
}

fn offering() -> Decided {
    let (leaf, generation) = (TaskId::Leaf(index("1-1")), Generation(1));
    let decided = Decided {
        inputs: vec![Input::Agent { seq: Seq(41) }],
        continues: false,
        specialists: Vec::new(),
        placements: Vec::new(),
        readings: Vec::new(),
        events: vec![RunEvent::TaskCompleted(TaskCompleted { task: leaf, generation, outcome: Seq(41) })],
        ..decided()
    };
    let (_, execute) = works().into_iter().find(|(name, _)| *name == "execute").unwrap();
    decided.with_offers(vec![offered(execute)]).0
}

/// Agents were lost, and a task of theirs came into quarantine.
fn loss() -> Decided {
    let (task, generation, agent) = (TaskId::Leaf(index("1-2")), Generation(1), agent());
    let ack = "$JS.ACK.TASKS.worker.3.17.23.1700000000000000000.0".to_owned();
    let reason = "its connection ended (Client Closed)".to_owned();
    let evidence = Evidence { agents: vec![agent.clone()], last_step: 5, reason: "it died".to_owned() };
    Decided {
        inputs: vec![Input::AgentLost {
            agent: agent.clone(),
            reason: reason.clone(),
            steps: BTreeMap::from([(task.clone(), 5)]),
            elsewhere: 0,
        }],
        events: vec![
            RunEvent::TaskStarted(TaskStarted {
                task: task.clone(),
                generation,
                agent: agent.clone(),
                attempt: Attempt(3),
                ack,
                after_step: 5,
            }),
            RunEvent::TaskReleased(TaskReleased {
                task: task.clone(),
                generation,
                agent: agent.clone(),
                attempt: Attempt(2),
            }),
            RunEvent::TaskOrphaned(TaskOrphaned {
                task: task.clone(),
                generation,
                attempt: Attempt(3),
                agent,
                reason,
                last_step: 5,
                beside: 0,
            }),
            RunEvent::TaskQuarantined(TaskQuarantined { task, generation, evidence }),
        ],
        offers: 0,
        continues: false,
        specialists: Vec::new(),
        placements: Vec::new(),
        readings: Vec::new(),
        ..decided()
    }
}

/// An agent fell silent, and others were lost with several tasks in hand.
fn silence() -> Decided {
    let (task, generation, agent) = (TaskId::Leaf(index("1-2")), Generation(1), agent());
    let reason = "worker-1 wrote nothing about it for 61 s".to_owned();
    let (_, execute) = works().into_iter().find(|(name, _)| *name == "execute").unwrap();
    let decided = Decided {
        inputs: vec![
            Input::Silent { task: task.clone(), generation, agent: agent.clone(), for_ms: 61_000 },
            Input::AgentLost {
                agent: agent.clone(),
                reason: reason.clone(),
                steps: BTreeMap::new(),
                elsewhere: 3,
            },
        ],
        events: vec![
            RunEvent::TaskTakenBack(TaskTakenBack {
                task: task.clone(),
                generation,
                agent: agent.clone(),
                reason: reason.clone(),
            }),
            RunEvent::TaskOrphaned(TaskOrphaned {
                task,
                generation,
                attempt: Attempt(3),
                agent,
                reason,
                last_step: 5,
                beside: 2,
            }),
        ],
        ..decided()
    };
    decided.with_offers(vec![TaskOffered { alone: true, ..offered(execute) }]).0
}

fn origin() -> Origin {
    Origin::new(run(), Seq(12))
}

fn inherited() -> Inherited {
    Inherited {
        by_reflection: Default::default(),
        phase: Phase::Executing,
        plan: Some(plan()),
        expansion: BTreeMap::new(),
        refused_plans: Vec::new(),
        tasks: BTreeMap::from([(TaskId::Plan, TaskState::new())]),
        reflections: BTreeMap::new(),
        wanted: BTreeMap::new(),
        refinements: Vec::new(),
        lessons: Vec::new(),
        groups: BTreeMap::new(),
        conflicts: BTreeMap::new(),
        settling: BTreeMap::new(),
        planning: muster_shared::run::InheritedPlanning::default(),
        peers: muster_shared::run::PeerTalk::default(),
        drafts: muster_shared::run::DraftHistory::default(),
    }
}

fn run_events(secret: String) -> Vec<RunEvent> {
    let (leaf, generation) = (TaskId::Leaf(index("1-2")), Generation(1));
    let reason = || "because".to_owned();
    let deadline = Millis(1_700_000_600_000);
    let refused =
        vec![RefusedOperation { operation: RefineOperation::Exit { reason: reason() }, reason: reason() }];
    vec![
        RunEvent::RunCreated(RunCreated {
            goal: Box::new(goal()),
            limits: limits(),
            event_version: 1,
            secret,
            deadline,
        }),
        RunEvent::LessonsRecalled(LessonsRecalled { lessons: vec!["search for hops".to_owned()] }),
        RunEvent::PlanRefused(PlanRefused { reasons: vec![reason()] }),
        RunEvent::PlanAdopted(PlanAdopted { plan: plan(), repairs: vec![reason()] }),
        RunEvent::TaskStarted(TaskStarted {
            task: leaf.clone(),
            generation,
            agent: agent(),
            attempt: Attempt(1),
            ack: String::new(),
            after_step: 0,
        }),
        RunEvent::TaskCompleted(TaskCompleted { task: leaf.clone(), generation, outcome: Seq(41) }),
        RunEvent::TaskRetried(TaskRetried {
            keeps_steps: false,
            task: leaf.clone(),
            generation,
            outcome: None,
            reason: reason(),
        }),
        RunEvent::TaskFailed(TaskFailed {
            task: TaskId::Reflect(index("1-2")),
            generation,
            outcome: Some(Seq(43)),
            reason: reason(),
        }),
        RunEvent::TaskBlocked(TaskBlocked { task: index("1-2"), reason: reason() }),
        RunEvent::TaskAborted(TaskAborted { task: TaskId::Refine(1), reason: reason() }),
        RunEvent::TaskSkipped(TaskSkipped { task: index("1-2"), reason: reason(), by_person: false }),
        RunEvent::Reflected(Reflected { task: index("1-2"), reflection: reflection() }),
        RunEvent::RefinementWanted(RefinementWanted { number: 1, reason: reason() }),
        RunEvent::PlanRefined(PlanRefined {
            number: 1,
            changes: vec![reason()],
            refused,
            plan: plan(),
            by: None,
        }),
        RunEvent::WritingBegan(WritingBegan { from: None }),
        RunEvent::RunCompleted(RunCompleted { report: report() }),
        RunEvent::RunFailed(RunFailed { reason: reason() }),
        RunEvent::RunAborted(RunAborted { why: StopReason::DeadlinePassed, reason: reason(), report: None }),
    ]
}

fn profile() -> Profile {
    Profile {
        agent: agent(),
        role: "worker".to_owned(),
        pid: 4_242,
        host: "box".to_owned(),
        version: "0.1.0".to_owned(),
        event_version: 1,
        slots: 8,
        busy: 1,
        model: "offline/rules".to_owned(),
        tools: vec!["search".to_owned()],
        started_at: 1_700_000_000_000,
        resident_bytes: 9_000_000,
        specialist: None,
        name: String::new(),
        quiet_ms: 0,
        set_aside: Vec::new(),
        by_gateway: false,
        times_set_aside: 0,
        metrics: String::new(),
        presence: muster_shared::flow::Presence::default(),
    }
}

fn live() -> Vec<(&'static str, Live)> {
    let of = |kind| Live {
        run: run(),
        role: Role::Worker,
        task: TaskId::Leaf(index("1-2")),
        generation: Generation(1),
        step: 2,
        kind,
    };
    vec![
        ("thought", of(LiveKind::Thought { text: "Let".to_owned() })),
        ("answer", of(LiveKind::Answer { text: "20".to_owned() })),
        ("status", of(LiveKind::Status { text: "searching".to_owned(), usage: usage() })),
    ]
}

fn order() -> OwnerMessage {
    let command = Command::Request(Request::new(run(), RequestAction::Cancel).because("enough"));
    OwnerMessage::Order { command: Box::new(command), signed: None }
}

fn controls() -> Vec<(&'static str, ControlMessage)> {
    let (reason, task, generation) = ("enough".to_owned(), TaskId::Leaf(index("1-2")), Generation(1));
    vec![
        ("cancel_run", ControlMessage::CancelRun { run: run(), reason: reason.clone() }),
        (
            "cancel_task",
            ControlMessage::CancelTask { run: run(), task: task.clone(), generation, reason: reason.clone() },
        ),
        ("park_run", ControlMessage::ParkRun { run: run(), reason: reason.clone() }),
        ("park_task", ControlMessage::ParkTask { run: run(), task: task.clone(), generation, reason }),
        (
            "inform",
            ControlMessage::Inform {
                run: run(),
                task,
                generation,
                information: vec![information()],
                progress: String::new(),
            },
        ),
        ("shutdown", ControlMessage::Shutdown),
        ("order", ControlMessage::Owners(order())),
        ("order_answered", ControlMessage::Owners(OwnerMessage::Answer { answer: OwnerAnswer::Recorded })),
        ("due", ControlMessage::Owners(OwnerMessage::Due { run: run() })),
    ]
}
