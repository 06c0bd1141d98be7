//! Nothing outlives a call, however it ends; nothing of ours goes into one.

use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use muster_sandbox::Sandbox;
use muster_tools::settings::SandboxSettings;
use muster_tools::{Program, ProgramLimits, ProgramRunner, ProgramStatus};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio_util::sync::CancellationToken;

use crate::help::{
    BOTH, Files, How, STAGE, limits, outside_folder, python, run, sandbox, settings, shell, text, until,
};
use crate::world::{SECRET, World, processes_with};

/// Leaves processes behind: in the background, in a session of their own, without a parent, deaf to signals.
fn leaving(marker: &str) -> String {
    format!(
        "sleep {marker}1 & setsid sleep {marker}2 & (setsid sh -c 'trap \"\" TERM HUP INT; sleep {marker}3; :' &) & \
         setsid setsid setsid sh -c 'sleep {marker}4 & exit' ; "
    )
}

/// A number for `sleep` that no other test has.
fn marker(number: u32) -> String {
    format!("{number}{}.", std::process::id())
}

#[tokio::test]
async fn what_a_program_leaves_behind_is_gone_when_it_ends() {
    let outside = marker(71);
    assert!(
        Command::new("/bin/sh")
            .args(["-c", &leaving(&outside)])
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    until("they live on outside", || processes_with(&format!("sleep\0{outside}")).len() >= 4).await;
    for pid in processes_with(&outside) {
        let _gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    for how in BOTH {
        let inside = marker(72);
        let end = run(how, shell(&format!("{} sleep 0.2; echo done", leaving(&inside)))).await;
        assert_eq!(text(&end.output), "done\n", "{how:?} {end:?}");
        assert_eq!(processes_with(&inside), Vec::<i32>::new(), "{how:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_or_stopped_leaves_nothing() {
    for how in BOTH {
        for is_dropped in [true, false] {
            let inside = marker(73);
            let files = Files::with(&[]);
            let script = format!("echo part > part.txt; {} sleep {inside}9", leaving(&inside));
            let program = Program { workspace: Some(files.clone()), ..shell(&script) };
            let (cancel, sandbox) = (CancellationToken::new(), sandbox(how));
            let (token, own) = (cancel.clone(), sandbox.clone());
            let call = tokio::spawn(async move { own.run(program, &token).await });
            until("all of them run", || processes_with(&format!("sleep\0{inside}")).len() >= 5).await;
            if is_dropped {
                call.abort();
            } else {
                cancel.cancel();
                assert!(call.await.unwrap().is_err());
                assert_eq!(processes_with(&inside), Vec::<i32>::new(), "{how:?}");
            }
            until("they are gone", || processes_with(&inside).is_empty()).await;
            assert_eq!(files.names(), Vec::<String>::new());
        }
    }
}

/// Not a test: what [`nothing_outlives_the_process_that_makes_the_call`] starts.
#[tokio::test]
#[ignore = "is started by another test"]
async fn a_process_that_makes_a_call() {
    let Ok(inside) = std::env::var("MUSTER_TEST_MARKER") else { return };
    let how = if std::env::var("MUSTER_TEST_PLAIN").is_ok() { How::Plain } else { How::Whole };
    run(how, shell(&format!("{} sleep {inside}9", leaving(&inside)))).await;
}

#[tokio::test]
async fn nothing_outlives_the_process_that_makes_the_call() {
    for how in BOTH {
        let inside = marker(74);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "lasting::a_process_that_makes_a_call", "--ignored"])
            .env("MUSTER_TEST_MARKER", &inside)
            .stdout(Stdio::null());
        if how == How::Plain {
            command.env("MUSTER_TEST_PLAIN", "1");
        }
        let mut process = command.spawn().unwrap();
        until("all of them run", || processes_with(&format!("sleep\0{inside}")).len() >= 5).await;
        process.kill().unwrap();
        process.wait().unwrap();
        until("they are gone", || processes_with(&inside).is_empty()).await;
    }
}

#[tokio::test]
async fn a_program_cannot_end_what_keeps_it_in() {
    let script = "import os, signal\nfor p in [1, os.getppid(), -1]:\n    for s in [19, 15, 9]:\n        try: os.kill(p, s)\n        except OSError: pass\nprint('still here')";
    for how in BOTH {
        let mut world = World::new();
        let files = Files::with(&[]);
        let script = format!("open('made.txt', 'w').write('made')\n{script}");
        let program = Program { workspace: Some(files.clone()), ..python(&script) };
        let end = run(how, program).await;
        // It may end itself by that, and nobody else.
        match end.status {
            ProgramStatus::Exited(0) => assert_eq!(files.names(), ["made.txt"], "{how:?} {end:?}"),
            status => assert_eq!(status, ProgramStatus::Signalled(9), "{how:?} {end:?}"),
        }
        assert_eq!(world.harm(), None);
    }
}

#[tokio::test]
async fn bombs_go_off_inside() {
    let mib = 1024 * 1024;
    let small = ProgramLimits {
        memory: 128 * mib,
        processes: 24,
        disk: 4 * mib,
        time: Duration::from_secs(3),
        ..limits()
    };
    for how in BOTH {
        let inside = marker(75);
        let forks = format!(
            "import os, time\n'{inside}'\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.01)"
        );
        let chain =
            format!("import os\n'{inside}'\nwhile True:\n    if os.fork(): os._exit(0)\n    os.setsid()");
        let memory = format!("'{inside}'\nb = []\nwhile True: b.append(bytearray(1 << 20))");
        for script in [forks, chain, memory] {
            let end = run(how, Program { limits: small, ..python(&script) }).await;
            assert_eq!(processes_with(&inside), Vec::<i32>::new(), "{how:?} {script} {:?}", end.status);
        }
    }
}

#[tokio::test]
async fn a_folder_is_filled_to_its_limit_and_is_gone_afterwards() {
    let mib = 1024 * 1024;
    let small = ProgramLimits { disk: 4 * mib, ..limits() };
    let scripts = [
        "for i in range(64):\n    open(f'f{i}', 'wb').write(b'x' * (1 << 20))",
        "open('one', 'wb').write(b'x' * (64 << 20))",
        "import os\nf = open('sparse', 'wb'); os.truncate('sparse', 1 << 40)",
        "import os\nf = os.open('long', os.O_CREAT | os.O_WRONLY); os.posix_fallocate(f, 0, 1 << 34)",
        "import os\nfor i in range(64):\n    open(f'/tmp/f{i}', 'wb').write(b'x' * (1 << 20))",
        "import os, time\nfor i in range(200000): open(f'f{i}', 'w')\ntime.sleep(5)",
    ];
    for how in BOTH {
        let place = outside_folder();
        let own = SandboxSettings { folder: Some(place.path().to_path_buf()), ..settings(how) };
        let sandbox = Sandbox::with_stage(own, STAGE);
        for script in scripts {
            let files = Files::with(&[]);
            let program = Program { workspace: Some(files.clone()), limits: small, ..python(script) };
            let end = sandbox.run(program, &CancellationToken::new()).await.unwrap();
            assert_ne!(end.status, ProgramStatus::Exited(0), "{how:?} {script} {end:?}");
            let size: usize = files.0.lock().unwrap().values().map(bytes::Bytes::len).sum();
            assert!(size as u64 <= 4 * mib && files.names().len() <= 1000, "{how:?} {script} {size}");
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "{how:?}");
    }
}

#[tokio::test]
async fn only_plain_files_with_proper_names_come_back() {
    let script = r"
import os, socket
os.symlink('/etc/passwd', 'link.txt'); os.symlink('/etc', 'folder'); os.mkfifo('pipe.txt')
os.remove('laid.txt'); os.symlink('/etc/passwd', 'laid.txt')
try: socket.socket(socket.AF_UNIX).bind('socket.txt')
except OSError: pass
for name in ['.hidden', 'a\x1b[31mred', 'new\nline', 'back\\slash', 'c:on', b'\xff\xfe', 'x' * 220, '\u202egnp']:
    try: open(name, 'w').write('x')
    except OSError: pass
os.makedirs('1/2/3/4/5/6/7/8/9'); open('1/2/3/4/5/6/7/8/9/deep', 'w').write('x')
open('locked.txt', 'w').write('locked'); os.mkdir('shut'); open('shut/in.txt', 'w').write('in')
for name in ['locked.txt', 'shut']:
    try: os.chmod(name, 0)
    except OSError: pass
os.mkdir('.git'); open('.git/config', 'w').write('x')
open('good.txt', 'w').write('good')
";
    for how in BOTH {
        let files = Files::with(&[("laid.txt", "laid"), ("kept.txt", "kept")]);
        let end = run(how, Program { workspace: Some(files.clone()), ..python(script) }).await;
        assert_eq!(end.status, ProgramStatus::Exited(0), "{how:?} {end:?}");
        let may = ["good.txt", "kept.txt", "laid.txt", "locked.txt", "shut/in.txt"];
        assert!(files.names().iter().all(|name| may.contains(&name.as_str())), "{how:?} {:?}", files.names());
        assert!(end.written.contains(&"good.txt".to_owned()), "{how:?} {end:?}");
        assert_eq!(files.get("laid.txt").unwrap(), "laid");
        let refused = end.refused.join("\n");
        for part in [
            "link.txt` was not kept: it is a link",
            "pipe.txt` was not kept: it is no plain file",
            "hidden",
            "8 parts",
        ] {
            assert!(refused.contains(part), "{how:?} {part}: {refused}");
        }
        assert!(!refused.contains('\x1b'), "{refused:?}");
    }
}

#[tokio::test]
async fn nothing_of_ours_goes_into_a_program() {
    let world = World::new();
    let secret = std::fs::File::open(world.path("secret.txt")).unwrap();
    // A copy that is handed to whatever is started, as careless libraries make them.
    let careless = nix::unistd::dup(&secret).unwrap();
    let script = format!(
        "import os\nfor fd in range(3, 20000):\n    try: print(fd, os.pread(fd, 100, 0))\n    except OSError as e:\n        if e.errno != 9: print(fd, e)\nprint(dict(os.environ))\nprint({:?})",
        "done"
    );
    assert!(careless.as_raw_fd() > 2);
    let outside = Command::new("/usr/bin/python3").args(["-I", "-c", &script]).output().unwrap();
    let outside = String::from_utf8_lossy(&outside.stdout).into_owned();
    assert!(outside.contains(SECRET) && outside.contains("CARGO"), "{outside}");
    for how in BOTH {
        let end = run(how, python(&script)).await;
        let output = text(&end.output);
        let (environment, rest) = output.split_once('\n').unwrap();
        assert_eq!(rest, "done\n", "{how:?} {output}");
        for ours in ["CARGO", "NEXTEST", "RUST", "MUSTER", "USER"] {
            assert!(!environment.contains(ours), "{how:?} {environment}");
        }
    }
}
