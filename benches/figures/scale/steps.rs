//! What a run of one task costs as the steps of the task grow in number.

use std::time::Duration;

use muster_shared::flow::RunLimits;
use muster_support::growth;
use muster_support::model_server::{ModelServer, Script};

use super::cost::{HEADINGS, of_run};
use super::sizes;
use super::table::{Table, ms};
use crate::runs;

/// Steps of the task.
const STEPS: [usize; 3] = [3, 30, 300];

pub(crate) fn measure(wanted: &[usize]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let headings = [&["steps"][..], &HEADINGS, &["CPU of a step", "bytes of a step"]].concat();
    let table = Table::begin("one run of one task as its steps grow in number", &headings);
    for steps in sizes(wanted, &STEPS) {
        let model =
            ModelServer::start(Script::answering(move |request| growth::answer(request, steps)).keeping(0));
        let model = model.unwrap();
        let most = u32::try_from(steps).unwrap() + 10;
        let limit = format!("limits.max_steps={most}");
        let fleet = runs::fleet(&model, &["--set", &limit]);
        let limits = RunLimits { max_steps: most, ..RunLimits::default() };
        let cost = runtime.block_on(of_run(&fleet, "Add up a long list.", &limits));
        let count = u32::try_from(steps).unwrap();
        let cpu: Duration = (cost.server + cost.orchestrators + cost.agents) / count;
        let each = [ms(cpu), (cost.record_bytes / u64::from(count)).to_string()];
        table.line([steps.to_string()].into_iter().chain(cost.cells()).chain(each));
    }
}
