//! Workload W as a bare loop: tokio and reqwest, nothing kept, nothing checked.

use serde_json::{Value, json};

/// Leaves of workload W that run side by side.
pub const LEAVES: usize = 8;
/// Tool steps of each leaf before its answer.
pub const TOOL_STEPS: usize = 3;

/// Runs workload W once: a plan call, eight leaves of four calls each followed by a reflect call, a write call.
///
/// # Errors
/// When a call fails.
pub async fn run(client: &reqwest::Client, endpoint: &str) -> Result<(), reqwest::Error> {
    ask(client, endpoint, "plan", 0).await?;
    let leaves = (0..LEAVES).map(|_| leaf(client, endpoint));
    futures::future::try_join_all(leaves).await?;
    ask(client, endpoint, "write", 0).await?;
    Ok(())
}

async fn leaf(client: &reqwest::Client, endpoint: &str) -> Result<(), reqwest::Error> {
    for step in 0..=TOOL_STEPS {
        ask(client, endpoint, "leaf", step).await?;
    }
    ask(client, endpoint, "reflect", 0).await?;
    Ok(())
}

async fn ask(
    client: &reqwest::Client,
    endpoint: &str,
    what: &str,
    step: usize,
) -> Result<Value, reqwest::Error> {
    let body = json!({
        "model": "bare",
        "messages": [{ "role": "user", "content": format!("bare {what} {step}") }],
    });
    let url = format!("{}/chat/completions", endpoint.trim_end_matches('/'));
    client.post(url).json(&body).send().await?.error_for_status()?.json().await
}
