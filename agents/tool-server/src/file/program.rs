//! A tool that runs a program: arguments as JSON on its standard input, the result on its standard output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use muster_shared::secret::Redactor;
use muster_shared::text::within_bytes;
use muster_tools::{
    Program, ProgramEnd, ProgramNetwork, ProgramRunner, ProgramStatus, Tool, ToolContext, ToolFailure,
    ToolOutput, ToolSpec,
};
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::Own;

/// The most of what a program complains of that a model is told, in bytes.
const MOST_COMPLAINT: usize = 4 * 1024;
/// The variable in which a program finds the key of its call: the same whoever makes the call and however often.
const KEY: &str = "MUSTER_CALL_KEY";

/// A tool that runs a program.
pub(super) struct ProgramTool {
    pub(super) own: Own,
    pub(super) command: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) runner: Arc<dyn ProgramRunner>,
}

impl ProgramTool {
    /// The command with paths instead of what is relative to the file: its folder is not where the program starts.
    fn command(&self) -> Vec<String> {
        let resolved = |word: &String| {
            if is_beside(word) { self.own.folder.join(word).display().to_string() } else { word.clone() }
        };
        self.command.iter().map(resolved).collect()
    }

    /// What it may read: the files that it is made of, and those that it names.
    fn reads(&self) -> Vec<PathBuf> {
        let made_of = self.command.iter().filter(|word| is_beside(word)).map(PathBuf::from);
        made_of.chain(self.own.file.files.iter().cloned()).map(|path| self.own.folder.join(path)).collect()
    }

    fn program(&self, ctx: &ToolContext, args: &Value, secrets: BTreeMap<String, String>) -> Program {
        let hosts = &self.own.file.hosts;
        let network = if hosts.is_empty() {
            ProgramNetwork::Nothing
        } else {
            ProgramNetwork::Hosts { hosts: hosts.clone(), rights: Arc::clone(&ctx.rights) }
        };
        let mut environment = self.environment.clone();
        environment.extend(secrets);
        environment.extend(ctx.idempotency_key.clone().map(|key| (KEY.to_owned(), key)));
        Program {
            command: self.command(),
            input: Bytes::from(args.to_string()),
            environment,
            workspace: None,
            reads: self.reads(),
            network,
            limits: self.own.file.limits,
        }
    }
}

/// Whether a word of a command is a path from the folder of the file.
pub(super) fn is_beside(word: &str) -> bool {
    word.starts_with("./")
        && !Path::new(word).components().any(|part| part == std::path::Component::ParentDir)
}

#[async_trait]
impl Tool for ProgramTool {
    fn spec(&self) -> ToolSpec {
        self.own.spec()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let secrets = self.own.secrets()?;
        let redactor = Redactor::new(secrets.values().cloned().map(SecretString::from));
        let end = self.runner.run(self.program(ctx, &args, secrets), &ctx.cancel).await?;
        read(&self.own.file.name, &end, &redactor)
    }
}

/// What a program gave, without its secrets.
fn read(name: &str, end: &ProgramEnd, redactor: &Redactor) -> Result<ToolOutput, ToolFailure> {
    let text = |bytes: &Bytes| redactor.redact(&String::from_utf8_lossy(bytes)).into_owned();
    let failed = |how: String| {
        let mut words = format!("`{name}` {how}");
        let complaint = text(&end.errors);
        if !complaint.trim().is_empty() {
            words.push_str(&format!(": {}", within_bytes(complaint.trim(), MOST_COMPLAINT)));
        }
        for refused in &end.refused {
            words.push_str(&format!("\n{refused}"));
        }
        ToolFailure::Failed(words)
    };
    match end.status {
        ProgramStatus::Exited(0) => {}
        ProgramStatus::Exited(code) => return Err(failed(format!("failed (exit status {code})"))),
        ProgramStatus::Signalled(signal) => return Err(failed(format!("was ended by signal {signal}"))),
        ProgramStatus::TimedOut => return Err(failed("was ended: its time was up".to_owned())),
        ProgramStatus::Exceeded(what) => {
            return Err(failed(format!("was ended: it used more {what} than it may")));
        }
    }
    let printed = text(&end.output);
    let mut output = output(printed.trim_end());
    if end.cut {
        output.content.push_str("\n[cut: it printed more than is kept]");
    }
    Ok(output)
}

/// A JSON object with `content` and `data`, or one of them, is both; anything else is text.
fn output(printed: &str) -> ToolOutput {
    let object: Option<Map<String, Value>> = serde_json::from_str(printed).ok();
    let Some(mut object) = object
        .filter(|object| object.keys().all(|key| key == "content" || key == "data") && !object.is_empty())
    else {
        return ToolOutput::text(printed);
    };
    let data = object.remove("data").filter(|data| !data.is_null());
    let content = match object.remove("content") {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => data.as_ref().map(Value::to_string).unwrap_or_default(),
    };
    ToolOutput { data, ..ToolOutput::text(content) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_printed_is_text_or_content_and_data() {
        let table = [
            ("hello\n", "hello\n", None),
            (r#"{"content": "two", "data": {"n": 2}}"#, "two", Some(json!({ "n": 2 }))),
            (r#"{"data": [1]}"#, "[1]", Some(json!([1]))),
            (r#"{"content": 3}"#, "3", None),
            (r#"{"n": 2}"#, r#"{"n": 2}"#, None),
            ("{}", "{}", None),
            ("[1, 2]", "[1, 2]", None),
            ("", "", None),
        ];
        for (printed, content, data) in table {
            let read = output(printed);
            assert_eq!((read.content.as_str(), read.data), (content, data), "{printed}");
        }
    }
}
