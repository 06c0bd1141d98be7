//! Offers tools of this agent to others, where its settings say so.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use muster_bus::BusError;
use muster_tool_server::{LeaseRules, ToolServer};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::context::AgentContext;
use crate::tools::lent::{LenderRules, lent_tools};

/// Begins to lend what settings name for the role; what is given serves until told to stop. Of an agent that lends nothing, no
/// tool is made for it, and nothing is said or heard.
pub(super) async fn begin(
    context: &Arc<AgentContext>,
    stop: &CancellationToken,
) -> Result<BoxFuture<'static, ()>, BusError> {
    let (tool, role) = (&context.settings().tool, context.role().clone());
    let Some(lends) = tool.lend.get(&role).filter(|lends| !lends.is_empty()) else {
        return Ok(ready(()).boxed());
    };
    let own = context.tool_patterns();
    let may_use = |name: &str| own.iter().any(|pattern| muster_tools::patterns::means(pattern, name));
    let permissions = context.settings().permissions.get(&role).copied().unwrap_or_default();
    let tools =
        lent_tools(context.engine(), context.bus(), &LenderRules { lends, may_use: &may_use, permissions });
    let names: Vec<String> = tools.iter().map(|tool| tool.spec().name).collect();
    if names.is_empty() {
        tracing::warn!(
            ?lends,
            "nothing is lent: this agent has none of the tools that `tool.lend` names, or may not use them"
        );
        return Ok(ready(()).boxed());
    }
    tracing::info!(?names, "these tools are lent to others");
    let rules = LeaseRules { to: tool.lend_to.clone(), leases: tool.lease };
    let redactor = Arc::clone(context.redactor());
    let lender = ToolServer::lending(context.bus().clone(), role, rules, tool.server, redactor);
    // They stay what they are as long as the process lives.
    let (offer, offered) = watch::channel(tools);
    let serving = lender.begin(offered, stop.clone()).await?;
    Ok(async move {
        serving.await;
        drop(offer);
    }
    .boxed())
}
