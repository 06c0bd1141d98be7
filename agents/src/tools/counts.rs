//! Counting calls of tools for the whole fleet.

use async_trait::async_trait;
use muster_bus::Allowances;
use muster_tools::{CallCount, CallCounter};

/// Counts calls where the whole fleet sees it.
#[derive(Clone)]
pub struct FleetCounts(pub Allowances);

#[async_trait]
impl CallCounter for FleetCounts {
    async fn count(&self, CallCount { key, most, kept, .. }: &CallCount) -> Result<bool, String> {
        self.0.count(&format!("tool.{key}"), *most, *kept).await.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use muster_bus::Bus;

    #[tokio::test]
    async fn what_one_process_calls_is_counted_for_all() {
        let bus = Bus::in_memory(&"tester-1".parse().unwrap());
        bus.provision().await.unwrap();
        let count = |key: &str| CallCount {
            key: key.to_owned(),
            most: 2,
            kept: Duration::from_secs(60),
            in_words: String::new(),
        };
        let (one, other) = (FleetCounts(bus.allowances()), FleetCounts(bus.allowances()));
        assert!(one.count(&count("web__.run.r")).await.unwrap());
        assert!(other.count(&count("web__.run.r")).await.unwrap());
        for process in [&one, &other] {
            assert!(!process.count(&count("web__.run.r")).await.unwrap(), "both were used");
        }
        assert!(one.count(&count("web__.run.another")).await.unwrap());
    }
}
