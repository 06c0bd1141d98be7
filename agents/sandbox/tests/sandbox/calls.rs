//! What a call gives.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use muster_sandbox::{Sandbox, probe_with};
use muster_tools::settings::Part;
use muster_tools::{Program, ProgramLimits, ProgramRunner, ProgramStatus, ToolFailure};
use tokio_util::sync::CancellationToken;

use crate::help::{
    BOTH, Files, How, STAGE, limits, open_to_all, outside_folder, program, python, run, settings, shell,
    text, try_run, until,
};

#[tokio::test]
async fn a_program_reads_its_input_and_files_and_what_it_writes_comes_back() {
    for how in BOTH {
        let files = Files::with(&[("in/a.txt", "one\n"), ("same.txt", "same")]);
        let mut program =
            shell("cat; cat in/a.txt; echo to you >&2; echo two > in/a.txt; printf made > made.bin; exit 3");
        program.input = "from you\n".into();
        program.workspace = Some(files.clone());
        let end = run(how, program).await;
        assert_eq!(text(&end.output), "from you\none\n", "{how:?} {}", text(&end.errors));
        assert_eq!(text(&end.errors), "to you\n");
        assert_eq!(end.status, ProgramStatus::Exited(3));
        assert_eq!(end.written, ["in/a.txt", "made.bin"]);
        assert_eq!(end.refused, Vec::<String>::new());
        assert_eq!(files.get("in/a.txt").unwrap(), "two\n");
        assert_eq!(files.get("made.bin").unwrap(), "made");
    }
}

#[tokio::test]
async fn interpreters_run_as_they_do_outside() {
    let table = [
        (
            "python3",
            "import json, sqlite3, ssl, subprocess, threading\nt = threading.Thread(target=print, args=('thread',), daemon=True); t.start(); t.join()\nprint(subprocess.check_output(['echo', 'hi']))",
            "thread\nb'hi\\n'\n",
        ),
        ("bash", "printf '%s\\n' a b | sort -r | tr '\\n' '-'", "b-a-"),
    ];
    for how in BOTH {
        for (interpreter, code, expected) in table {
            let end = run(how, program(&[interpreter, "-c", code])).await;
            assert_eq!(
                (text(&end.output).as_str(), end.status),
                (expected, ProgramStatus::Exited(0)),
                "{how:?} {end:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_holds_here_is_told_by_what_was_done() {
    let whole = probe_with(Path::new(STAGE), true);
    println!("{whole:?}");
    assert_eq!(whole.missing(&Part::ALL), [], "{whole:?}");
    let plain = probe_with(Path::new(STAGE), false);
    println!("{plain:?}");
    assert_eq!(plain.missing(&Part::ALL), [Part::Hosts], "{plain:?}");
    let no_stage = probe_with(Path::new("/bin/true"), true);
    assert_eq!(no_stage.missing(&Part::ALL), Part::ALL);
    assert!(no_stage.reasons[0].contains("child_main"), "{no_stage:?}");
}

#[tokio::test]
async fn where_a_required_promise_does_not_hold_nothing_is_run() {
    let mut settings = settings(How::Plain);
    settings.require = vec![Part::Files, Part::Hosts];
    let files = Files::with(&[]);
    let program = Program { workspace: Some(files.clone()), ..shell("echo ran > ran.txt") };
    let sandbox = Sandbox::with_stage(settings, STAGE);
    let refused = sandbox.run(program, &CancellationToken::new()).await.unwrap_err();
    assert!(
        matches!(&refused, ToolFailure::Refused(why) if why.contains("hosts") && why.contains("require")),
        "{refused}"
    );
    assert_eq!(files.names(), Vec::<String>::new());
}

#[tokio::test]
async fn what_cannot_be_run_is_told_in_words() {
    for how in BOTH {
        let table: [(Program, &str); 5] = [
            (program(&["no-such-program"]), "no program `no-such-program`"),
            (program(&[]), "no program"),
            (program(&["/bin/sh", "a\0b"]), "zero byte"),
            (program(&["/etc/ld.so.cache"]), "cannot be run"),
            (Program { reads: vec!["/proc/1".into()], ..shell("true") }, "/proc/1"),
        ];
        for (program, part) in table {
            let failure = try_run(how, program).await.unwrap_err();
            assert!(failure.to_string().contains(part), "{how:?} {failure:?}");
        }
    }
}

#[tokio::test]
async fn of_a_program_in_a_closed_folder_it_is_told_which_folder_that_is() {
    if !nix::unistd::geteuid().is_root() {
        // Nobody else runs programs as another user, to whom a folder could be closed.
        return;
    }
    let outside = outside_folder();
    let (closed, script) = (outside.path().join("closed"), outside.path().join("closed/tools/it.sh"));
    std::fs::create_dir_all(script.parent().unwrap()).unwrap();
    std::fs::write(&script, "#!/bin/sh\necho hello\n").unwrap();
    let mode = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    open_to_all(outside.path());
    mode(&script, 0o755);
    mode(&closed, 0o700);
    let asked = || Program { reads: vec![script.clone()], ..program(&[script.to_str().unwrap()]) };
    let said = try_run(How::Plain, asked()).await.unwrap_err().to_string();
    let told = format!("may not enter {}. Let everybody", closed.display());
    assert!(said.contains(&told), "{said}");
    mode(&closed, 0o711);
    assert_eq!(&*try_run(How::Plain, asked()).await.unwrap().output, b"hello\n");
    mode(&script, 0o700);
    let said = try_run(How::Plain, asked()).await.unwrap_err().to_string();
    assert!(said.contains("everybody has to be able to read and execute it"), "{said}");
}

#[tokio::test]
async fn limits_end_a_program_and_say_which() {
    for how in BOTH {
        let mib = 1024 * 1024;
        let small = ProgramLimits { memory: 128 * mib, processes: 16, disk: 4 * mib, ..limits() };
        let brief = ProgramLimits { time: Duration::from_millis(300), ..small };
        let lazy = ProgramLimits { cpu: Duration::from_millis(300), ..small };
        let spin = "import os\nfor _ in range(3): os.fork()\nwhile True: pass";
        // Each has less than a process may have: together they are too much.
        let share = "import os, time\nfor _ in range(2): os.fork()\nb = bytearray(60 << 20)\nb[::4096] = b'x' * len(b[::4096])\ntime.sleep(15)";
        let table = [
            (Program { limits: brief, ..shell("sleep 15") }, ProgramStatus::TimedOut),
            (Program { limits: lazy, ..python(spin) }, ProgramStatus::Exceeded("time of the processors")),
            (Program { limits: small, ..python(share) }, ProgramStatus::Exceeded("memory")),
            (Program { limits: small, ..shell("yes") }, ProgramStatus::Exceeded("output")),
        ];
        for (program, expected) in table {
            let what = program.command.clone();
            let begun = std::time::Instant::now();
            let end = run(how, program).await;
            assert_eq!(end.status, expected, "{how:?} {what:?}");
            assert!(begun.elapsed() < Duration::from_secs(12), "{how:?} {what:?} {:?}", begun.elapsed());
        }
    }
}

#[tokio::test]
async fn output_is_cut_and_the_program_runs_on() {
    for how in BOTH {
        let limits = ProgramLimits { output: 1000, ..limits() };
        let end =
            run(how, Program { limits, ..shell("head -c 100000 /dev/zero | tr '\\0' x; exit 7") }).await;
        assert_eq!(
            (end.output.len(), end.cut, end.status),
            (1000, true, ProgramStatus::Exited(7)),
            "{how:?}"
        );
    }
}

#[tokio::test]
async fn further_files_are_read_and_never_written() {
    for how in BOTH {
        let folder = outside_folder();
        let path = folder.path().join("given.txt");
        std::fs::write(&path, "given").unwrap();
        open_to_all(folder.path());
        let script =
            format!("cat {0}; echo bad > {0}; echo bad > {1}/new", path.display(), folder.path().display());
        let reads = vec![folder.path().to_path_buf()];
        let end = run(how, Program { reads, ..shell(&script) }).await;
        assert_eq!(text(&end.output), "given", "{how:?} {end:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "given");
        assert!(!folder.path().join("new").exists());
        // Without being given, it is not there.
        let end = run(how, shell(&script)).await;
        assert_eq!(text(&end.output), "", "{how:?}");
    }
}

#[tokio::test]
async fn a_sandbox_that_waits_is_used_and_ends_when_none_comes() {
    let mut settings = settings(How::Whole);
    settings.pool = 1;
    settings.pool_idle = Duration::from_millis(500);
    let sandbox = Sandbox::with_stage(settings, STAGE);
    assert_eq!(sandbox.waiting(), 0, "nothing is started before the first program");
    sandbox.run(shell("true"), &CancellationToken::new()).await.unwrap();
    until("one waits", || sandbox.waiting() == 1).await;
    let end = sandbox.run(shell("echo warm"), &CancellationToken::new()).await.unwrap();
    assert_eq!(text(&end.output), "warm\n");
    until("the next one waits", || sandbox.waiting() == 1).await;
    until("none waits any more", || sandbox.waiting() == 0).await;
}
