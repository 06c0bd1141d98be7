//! Where arguments go, where a document says it.

use muster_tools::ToolFailure;
use serde_json::{Map, Value};

use super::Http;

/// Where arguments go that are not in the path: what is in none of these goes nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::file) struct Places {
    /// Into the query.
    pub(in crate::file) query: Vec<String>,
    /// Into headers of the same names.
    pub(in crate::file) headers: Vec<String>,
    /// The one that is the whole body.
    pub(in crate::file) body: Option<String>,
}

impl Http {
    /// The same where a document says where each argument goes.
    pub(in crate::file) fn placing(self, places: Places) -> Self {
        Self { places: Some(places), ..self }
    }

    /// Whether requests have a body.
    pub(super) fn sends_a_body(&self) -> bool {
        match &self.places {
            Some(places) => places.body.is_some(),
            None => self.method.has_body(),
        }
    }

    /// The headers that arguments fill in. None of them breaks out of its line.
    pub(super) fn given_headers(
        &self,
        args: &Map<String, Value>,
    ) -> Result<Vec<(String, String)>, ToolFailure> {
        let names = self.places.iter().flat_map(|places| &places.headers);
        let given = names.filter_map(|name| Some((name, args.get(name).filter(|value| !value.is_null())?)));
        let one = |(name, value): (&String, &Value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
                true => Ok((name.clone(), text)),
                false => Err(ToolFailure::InvalidArguments(format!(
                    "`{name}` goes into a header, and takes letters without line breaks"
                ))),
            }
        };
        given.map(one).collect()
    }
}
