//! Which figures there are, with what they say.

use super::family::{Family, Kind};

/// Times from a hundredth of a second to ten minutes.
const TIMES: &[f64] = &[0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];

/// Times from a millisecond to five seconds: a guard holds up whoever asks it.
const SHORT: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// Parts of a whole.
const PARTS: &[f64] = &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// Declares figures: the field, its name, its kind, its unit, its labels, and what it says.
macro_rules! families {
    ($(#[doc = $about:literal])+ $name:ident { $($field:ident = $text:literal, $kind:expr, $unit:literal, [$($label:literal),*], $help:literal;)+ }) => {
        $(#[doc = $about])+
        #[derive(Debug)]
        pub(crate) struct $name {
            $(#[doc = $help] pub(crate) $field: Family,)+
        }

        impl $name {
            pub(crate) const fn new() -> Self {
                Self { $($field: Family::new($text, $help, $unit, $kind, &[$($label),*]),)+ }
            }

            /// All of them.
            pub(crate) fn all(&self) -> impl Iterator<Item = &Family> {
                [$(&self.$field),+].into_iter()
            }
        }
    };
}

families! {
    /// What is counted of the work of agents, by whoever writes it to the record: agents, and task gateways for programs.
    Work {
        steps = "muster_steps", Kind::Counter, "", ["role"], "Steps that were taken.";
        step_time = "muster_step_duration_seconds", Kind::Histogram(TIMES), "seconds", ["role"], "Time of a step.";
        model_calls = "muster_model_calls", Kind::Counter, "", ["provider", "model", "result"], "Calls of models: answered, or reused where an identical one was answered before.";
        model_time = "muster_model_call_duration_seconds", Kind::Histogram(TIMES), "seconds", ["provider", "model"], "Time until an answer of a model was complete.";
        tokens = "muster_model_tokens", Kind::Counter, "", ["provider", "model", "kind"], "Tokens: input (cached among them), cached and output.";
        cost = "muster_model_cost_dollars", Kind::Counter, "dollars", ["provider", "model"], "What answers cost, where the price is known.";
        window = "muster_context_window_used_ratio", Kind::Histogram(PARTS), "ratio", ["role"], "Part of the model's context that a request filled, where it is known; three bytes are taken for a token.";
        tool_calls = "muster_tool_calls", Kind::Counter, "", ["tool", "status"], "Calls of tools: success, error, timeout or refused.";
        tool_time = "muster_tool_call_duration_seconds", Kind::Histogram(TIMES), "seconds", ["tool"], "Time of a call of a tool that was made.";
        cached = "muster_tool_answers_reused", Kind::Counter, "", ["tool"], "Calls of tools that were answered from what the same call gave before.";
        retrievals = "muster_retrievals", Kind::Counter, "", ["result"], "Searches of documents: hit or miss.";
        started = "muster_task_attempts", Kind::Counter, "", ["role"], "Tries of tasks that were begun.";
        ended = "muster_task_outcomes", Kind::Counter, "", ["role", "ending"], "Tries of tasks that ended, by how.";
        wasted = "muster_model_calls_wasted", Kind::Counter, "", ["role"], "Calls of models that gave no answer, by what outcomes say.";
    }
}

families! {
    /// What is counted of decisions, by orchestrators.
    Orders {
        decisions = "muster_decisions", Kind::Counter, "", [], "Decisions that were written.";
        offers = "muster_offers", Kind::Counter, "", [], "Offers of tasks that were written.";
        events = "muster_run_events", Kind::Counter, "", ["event"], "Events of decisions, by kind.";
        takeovers = "muster_takeovers", Kind::Counter, "", ["cause"], "Tasks that went from one agent to another: lost, silent or handed_over.";
        ended = "muster_runs_ended", Kind::Counter, "", ["status"], "Runs that ended: completed, failed or aborted.";
        runs = "muster_runs_active", Kind::Gauge, "", [], "Runs that this orchestrator has in hand.";
        plan = "muster_plan_tasks", Kind::Gauge, "", ["state"], "Tasks of the plans of these runs: done or open.";
        progress = "muster_plan_progress_ratio", Kind::Gauge, "ratio", [], "Part of these tasks that is done.";
        questions = "muster_questions_waiting", Kind::Gauge, "", [], "Questions of these runs that wait for a person.";
        budget = "muster_run_budget_used_ratio", Kind::Gauge, "ratio", [], "The most that any of these runs has used of its budget of money.";
        sent = "muster_spans_sent", Kind::Counter, "", [], "Spans that a receiver of OTLP took.";
        dropped = "muster_spans_dropped", Kind::Counter, "", [], "Spans that were dropped: the receiver was away, too slow, or refused them.";
    }
}

families! {
    /// What is counted of a guard.
    Verdicts {
        given = "muster_guard_verdicts", Kind::Counter, "", ["hook", "verdict"], "Verdicts that a guard gave: allow, change or refuse.";
        time = "muster_guard_verdict_duration_seconds", Kind::Histogram(SHORT), "seconds", ["hook"], "Time until a guard had given its verdict.";
    }
}

families! {
    /// What is counted of tools that a process serves to others.
    Served {
        calls = "muster_served_calls", Kind::Counter, "", ["tool", "status"], "Calls of tools that were carried out for agents: success, error, timeout, refused or unavailable.";
        time = "muster_served_call_duration_seconds", Kind::Histogram(TIMES), "seconds", ["tool"], "Time of such a call.";
    }
}

families! {
    /// What is known of the fleet as a whole, by whoever asks the bus.
    Fleet {
        up = "muster_bus_up", Kind::Gauge, "", [], "Whether the bus can be asked.";
        processes = "muster_processes", Kind::Gauge, "", ["role"], "Processes in the registry.";
        slots = "muster_slots", Kind::Gauge, "", ["role"], "Tasks that these can do at the same time; of orchestrators, runs.";
        busy = "muster_slots_busy", Kind::Gauge, "", ["role"], "Of these, those in hand.";
        memory = "muster_process_memory_bytes", Kind::Gauge, "bytes", ["role"], "Resident memory of processes, by what they say.";
        queues = "muster_queue_tasks", Kind::Gauge, "", ["queue"], "Offers that wait in the queue of a role, and in those of single agents (agents).";
        dead = "muster_dead_letters", Kind::Gauge, "", [], "Dead letters that are kept.";
        log_used = "muster_event_log_used_ratio", Kind::Gauge, "ratio", [], "Used part of the event log's size limit.";
        restarts = "muster_process_restarts", Kind::Counter, "", ["name"], "Restarts of processes of the local fleet.";
        given_up = "muster_processes_given_up", Kind::Gauge, "", [], "Processes of the local fleet that died too often.";
    }
}

families! {
    /// What a process says of itself, under the usual names.
    Own {
        build = "muster_build_info", Kind::Gauge, "", ["version"], "The version of the program.";
        cpu = "process_cpu_seconds", Kind::Counter, "seconds", [], "Processor time that the process used.";
        memory = "process_resident_memory_bytes", Kind::Gauge, "bytes", [], "Resident memory.";
        files = "process_open_fds", Kind::Gauge, "", [], "Open files.";
        started = "process_start_time_seconds", Kind::Gauge, "seconds", [], "When the process started, in seconds since 1970.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure as it is declared.
    struct Declared {
        name: &'static str,
        help: &'static str,
        unit: &'static str,
        kind: Kind,
    }

    /// Words of ours in a text that look like names of figures.
    fn named(text: &str) -> std::collections::BTreeSet<&str> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.filter(|word| word.starts_with("muster_") || word.starts_with("process_")).collect()
    }

    /// The name, help, unit and kind of each figure.
    fn every() -> Vec<Declared> {
        let (work, orders, verdicts, served) = (Work::new(), Orders::new(), Verdicts::new(), Served::new());
        let (fleet, own) = (Fleet::new(), Own::new());
        let by_processes = work.all().chain(orders.all()).chain(verdicts.all()).chain(served.all());
        let declared = |&Family { name, help, unit, kind, .. }: &Family| Declared { name, help, unit, kind };
        by_processes.chain(fleet.all()).chain(own.all()).map(declared).collect()
    }

    #[test]
    fn what_is_shipped_and_told_names_figures_that_there_are() {
        let all = every();
        let known: Vec<String> = all
            .iter()
            .flat_map(|family| {
                let endings: &[&str] = match family.kind {
                    Kind::Counter => &["_total"],
                    Kind::Gauge => &[""],
                    Kind::Histogram(_) => &["_bucket", "_sum", "_count", ""],
                };
                endings.iter().map(|ending| format!("{}{ending}", family.name)).collect::<Vec<_>>()
            })
            .collect();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        for file in [
            "deploy/telemetry/alerts.yml",
            "deploy/telemetry/alerts_test.yml",
            "deploy/telemetry/grafana/dashboards/muster.json",
            "docs/telemetry.md",
        ] {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            let names = named(&text);
            assert!(names.len() > 5, "{file}");
            for name in names {
                assert!(known.iter().any(|known| known == name), "{file} names {name}, which there is not");
            }
        }
        let told = std::fs::read_to_string(root.join("docs/telemetry.md")).unwrap_or_default();
        for name in known
            .iter()
            .filter(|name| !name.ends_with("_bucket") && !name.ends_with("_sum") && !name.ends_with("_count"))
        {
            assert!(named(&told).contains(name.as_str()), "docs/telemetry.md does not tell of {name}");
        }
    }

    #[test]
    fn names_follow_the_rules() {
        for family in &every() {
            let Declared { name, help, unit, .. } = family;
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert!(help.ends_with('.'), "{name}: {help}");
            assert!(!name.ends_with("_total"), "{name}: written with its samples");
            assert!(unit.is_empty() || name.ends_with(unit), "{name}: base unit last");
            let is_of_ours = name.starts_with("muster_") || name.starts_with("process_");
            assert!(is_of_ours, "{name}");
        }
    }
}
