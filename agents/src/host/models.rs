//! Which model thinks: what the run asks for, else settings, else the environment, else the offline rules.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use muster_shared::ids::Role;

use crate::model::capability::Capabilities;
use crate::model::chat::ChatModel;
use crate::model::provider::{Provider, ProviderClient};
use crate::model::retry::Resilient;
use crate::model::target::{ModelProvider, ModelTarget, TargetSettings};
use crate::react::model::{ChatClient, ModelClient};
use crate::settings::AgentSettings;
use muster_offline::OfflineModel;
use muster_shared::sync::lock;

/// Longest key file that is read, in bytes.
const MAX_KEY_FILE: u64 = 64 * 1024;
/// Most different models that one process keeps ready.
const MAX_KEPT: usize = 32;

/// Makes the mind for a model that a run asks for, or for the agent's own choice when it asks for none.
///
/// The error says what to do.
pub type ModelClientFactory = Arc<dyn Fn(Option<&str>) -> Result<ModelClient, String> + Send + Sync>;

/// Minds by settings and the conventional environment variables; each is made once.
#[must_use]
pub fn minds_from_environment(settings: AgentSettings, role: Role) -> ModelClientFactory {
    let made: Mutex<BTreeMap<Option<String>, ModelClient>> = Mutex::new(BTreeMap::new());
    let client = ProviderClient::default();
    Arc::new(move |asked: Option<&str>| {
        let key = asked.map(str::to_owned);
        let mut made = lock(&made);
        if let Some(model) = made.get(&key) {
            return Ok(model.clone());
        }
        let model = make(&settings, &role, asked, &client)?;
        if made.len() >= MAX_KEPT {
            made.clear();
        }
        made.insert(key, model.clone());
        Ok(model)
    })
}

fn make(
    settings: &AgentSettings,
    role: &Role,
    asked: Option<&str>,
    client: &ProviderClient,
) -> Result<ModelClient, String> {
    let primary = target(settings, asked.or_else(|| settings.model_of(role)), asked.is_none())?;
    let capabilities = Capabilities::of(primary.provider.name(), &primary.model, &settings.capabilities);
    let Some(primary) = provider(settings, primary, client) else {
        return Ok(ModelClient::Offline(OfflineModel));
    };
    let mut fallbacks = Vec::new();
    for model in &settings.fallback_models {
        fallbacks.extend(provider(settings, target(settings, Some(model), false)?, client));
    }
    let model = Resilient::new(primary, fallbacks, settings.retries);
    let chat = ChatClient::new(Arc::new(model), capabilities.tools);
    Ok(ModelClient::Chat(chat.with(capabilities)))
}

/// The settings' endpoint and key belong to the settings' own model.
fn target(settings: &AgentSettings, spec: Option<&str>, own: bool) -> Result<ModelTarget, String> {
    let same = own || spec == settings.model.as_deref();
    let wanted = TargetSettings {
        spec: spec.map(str::to_owned),
        endpoint: settings.endpoint.clone().filter(|_| same),
        key_file: settings.key_file.clone().filter(|_| same),
    };
    let variable = |name: &str| std::env::var(name).ok();
    ModelTarget::resolve(&wanted, &variable, &read_key).map_err(|error| error.to_string())
}

fn read_key(path: &str) -> Result<String, String> {
    crate::input::text(std::path::Path::new(path), MAX_KEY_FILE)
        .map_err(|why| format!("cannot be used: {why}"))
}

fn provider(
    settings: &AgentSettings,
    target: ModelTarget,
    client: &ProviderClient,
) -> Option<Arc<dyn ChatModel>> {
    if target.provider == ModelProvider::Offline {
        return None;
    }
    let provider = Provider::new(target, settings.calls, client.clone())?;
    Some(Arc::new(provider))
}
