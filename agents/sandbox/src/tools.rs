//! Tools that run code: `shell`, `python`, `javascript`. An agent has them only where its role is given them by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use muster_shared::flow::Use;
use muster_shared::text::beginning;
use muster_tools::workspace::Workspace;
use muster_tools::{
    Permission, Program, ProgramEnd, ProgramNetwork, ProgramRunner, ProgramStatus, Tool, ToolContext,
    ToolFailure, ToolOutput, ToolSpec,
};
use serde_json::{Value, json};

use crate::paths::find_program;
use crate::reading::Reading;
use muster_tools::settings::SandboxSettings;

/// Longest code, in characters: it is an argument of its interpreter, and the kernel lets none be longer than 128 KiB.
const LONGEST_CODE: usize = 32_000;

/// Longest input, in characters.
const LONGEST_INPUT: usize = 1_000_000;

/// Most characters of the output, and of the errors, that a model is shown.
const SHOWN_OUTPUT: usize = 20_000;
const SHOWN_ERRORS: usize = 6_000;

/// Time beside that of the program: to wait for a turn, to lay files in and to take them out.
const AROUND: Duration = Duration::from_secs(60);

/// A language that code may be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// A script for bash, or for sh where there is none.
    Shell,
    /// Python 3.
    Python,
    /// JavaScript, by Node.
    Javascript,
}

impl Language {
    /// Every language there is.
    pub const ALL: [Self; 3] = [Self::Shell, Self::Python, Self::Javascript];

    /// The name of its tool.
    #[must_use]
    pub const fn tool(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Python => "python",
            Self::Javascript => "javascript",
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::Shell => "a shell script (bash, or sh where there is none)",
            Self::Python => "Python 3 code",
            Self::Javascript => "JavaScript code with Node",
        }
    }

    /// Its interpreters, the first one that is there being taken, and the argument before the code.
    const fn interpreters(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Shell => (&["bash", "sh"], "-c"),
            Self::Python => (&["python3"], "-c"),
            Self::Javascript => (&["node", "nodejs"], "-e"),
        }
    }

    fn command(self, code: &str) -> Result<Vec<String>, ToolFailure> {
        let (interpreters, before) = self.interpreters();
        let found = interpreters.iter().find(|name| find_program(name).is_some()).ok_or_else(|| {
            let name = interpreters.first().unwrap_or(&"");
            ToolFailure::NotFound(format!(
                "there is no {name} on this machine; go on without `{}`",
                self.tool()
            ))
        })?;
        Ok([*found, before, code].map(str::to_owned).to_vec())
    }
}

/// Runs code in the sandbox.
pub struct CodeTool {
    language: Language,
    runner: Arc<dyn ProgramRunner>,
    settings: SandboxSettings,
}

impl CodeTool {
    /// A tool for code in this language.
    #[must_use]
    pub fn new(language: Language, runner: Arc<dyn ProgramRunner>, settings: SandboxSettings) -> Self {
        Self { language, runner, settings }
    }

    fn program(&self, ctx: &ToolContext, args: &Value) -> Result<Program, ToolFailure> {
        let text = |name: &str| args[name].as_str().unwrap_or_default();
        let may_write = ctx.rights.allow(&Use::WriteFile);
        let workspace = ctx.workspace.clone().map(|own| -> Arc<dyn Workspace> {
            if may_write { own } else { Arc::new(Reading(own)) }
        });
        let network = if self.settings.hosts.is_empty() {
            ProgramNetwork::Nothing
        } else {
            ProgramNetwork::Hosts { hosts: self.settings.hosts.clone(), rights: Arc::clone(&ctx.rights) }
        };
        Ok(Program {
            command: self.language.command(text("code"))?,
            input: Bytes::copy_from_slice(text("input").as_bytes()),
            // What an interpreter keeps for the next time is nothing that the run made.
            environment: BTreeMap::from([("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned())]),
            workspace,
            reads: Vec::new(),
            network,
            limits: self.settings.limits(),
        })
    }
}

#[async_trait]
impl Tool for CodeTool {
    fn spec(&self) -> ToolSpec {
        let network = if self.settings.hosts.is_empty() {
            "There is no network.".to_owned()
        } else {
            format!(
                "Of the network, only these hosts are reached, by HTTP: {}.",
                self.settings.hosts.join(", ")
            )
        };
        let description = format!(
            "Runs {} in a sandbox and gives its exit status, what it printed, and the files it wrote. The files of the \
             workspace are in the current folder; those that are changed or made there are kept in the workspace. {network} \
             It has {} and {} MiB of memory. Nothing else is kept from one call to the next.",
            self.language.in_words(),
            muster_shared::span::text(self.settings.time),
            self.settings.memory / (1024 * 1024),
        );
        let properties = json!({
            "code": {"type": "string", "minLength": 1, "maxLength": LONGEST_CODE, "description": "The code to run."},
            "input": {"type": "string", "maxLength": LONGEST_INPUT, "description": "What it reads from its standard input."}
        });
        ToolSpec::with_properties(self.language.tool(), description, properties, &["code"])
            .until_allowed()
            .needing(Permission::Execute)
            .needing(Permission::ReadWorkspace)
            .needing(Permission::WriteWorkspace)
            .with_side_effects()
            .with_timeout(self.settings.time.saturating_add(AROUND))
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let end = self.runner.run(self.program(ctx, &args)?, &ctx.cancel).await?;
        Ok(ToolOutput::text(in_words(&end)).with_data(as_data(&end)))
    }
}

/// What came of a program, in words for a model.
fn in_words(end: &ProgramEnd) -> String {
    let mut parts = vec![match end.status {
        ProgramStatus::Exited(code) => format!("Exit status {code}."),
        ProgramStatus::Signalled(signal) => format!("It was ended by signal {signal}."),
        ProgramStatus::TimedOut => "It took too long and was ended. Do less at once.".to_owned(),
        ProgramStatus::Exceeded(what) => format!("It used too much {what} and was ended. Do less at once."),
    }];
    for (name, bytes, most) in [("Output", &end.output, SHOWN_OUTPUT), ("Errors", &end.errors, SHOWN_ERRORS)]
    {
        if !bytes.is_empty() {
            let text = String::from_utf8_lossy(bytes);
            parts.push(format!("{name}:\n{}", beginning(text.trim_end(), most)));
        }
    }
    if end.cut {
        parts.push("More was printed than is kept: write it to a file, or print less.".to_owned());
    }
    if !end.written.is_empty() {
        parts.push(format!("Files written: {}", end.written.join(", ")));
    }
    if !end.refused.is_empty() {
        parts.push(format!("Not done:\n- {}", end.refused.join("\n- ")));
    }
    parts.join("\n")
}

fn as_data(end: &ProgramEnd) -> Value {
    let status = match end.status {
        ProgramStatus::Exited(code) => json!({"exited": code}),
        ProgramStatus::Signalled(signal) => json!({"signalled": signal}),
        ProgramStatus::TimedOut => json!("timed_out"),
        ProgramStatus::Exceeded(what) => json!({"exceeded": what}),
    };
    json!({
        "status": status,
        "output": String::from_utf8_lossy(&end.output),
        "errors": String::from_utf8_lossy(&end.errors),
        "cut": end.cut,
        "written": end.written,
        "refused": end.refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_whole_and_nothing_that_is_not() {
        let end = ProgramEnd {
            status: ProgramStatus::Exited(2),
            output: "out\n".into(),
            errors: "bad\n".into(),
            cut: true,
            written: vec!["a.txt".to_owned()],
            refused: vec!["`x` was not kept: it is a link".to_owned()],
        };
        let told = in_words(&end);
        let expected = "Exit status 2.\nOutput:\nout\nErrors:\nbad\nMore was printed than is kept: write it to a file, or \
            print less.\nFiles written: a.txt\nNot done:\n- `x` was not kept: it is a link";
        assert_eq!(told, expected);
        let status = ProgramStatus::Exceeded("memory");
        let bare = ProgramEnd {
            status,
            output: Bytes::new(),
            errors: Bytes::new(),
            cut: false,
            written: vec![],
            refused: vec![],
        };
        assert_eq!(in_words(&bare), "It used too much memory and was ended. Do less at once.");
    }
}
