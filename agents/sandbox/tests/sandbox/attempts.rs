//! Attempts to get out, each a script in Python. One that gets out prints what it must not know, says `ESCAPED`, or harms
//! what is outside.

/// Whether the same is done without the sandbox, to see that it would get out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// It gets out.
    Escapes,
    /// It gets out where root does it.
    EscapesAsRoot,
    /// Not tried: it would harm this machine, or needs what not every machine has.
    NotTried,
}

/// An attempt to get out.
pub struct Attempt {
    pub name: &'static str,
    pub script: &'static str,
    pub outside: Outside,
}

const fn attempt(name: &'static str, script: &'static str) -> Attempt {
    Attempt { name, script, outside: Outside::Escapes }
}

const fn of_root(name: &'static str, script: &'static str) -> Attempt {
    Attempt { name, script, outside: Outside::EscapesAsRoot }
}

const fn untried(name: &'static str, script: &'static str) -> Attempt {
    Attempt { name, script, outside: Outside::NotTried }
}

/// Before each script: calls of the kernel by their numbers, and what happens where one is let.
pub const PRELUDE: &str = r"
import ctypes, os, socket, struct, sys, errno, glob
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    arguments = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *arguments)
    return result if result >= 0 else -ctypes.get_errno()
def let(result, *also):
    if result >= 0 or -result in also: print('ESCAPED', result)
def show(path):
    try: print(open(path, 'rb').read(4096))
    except OSError: pass
def reach(family, kind, address):
    s = socket.socket(family, kind); s.settimeout(3); s.connect(address); s.send(b'x'); print('ESCAPED')
";

pub const FILES: &[Attempt] = &[
    attempt("reads a file by its path", "show('{folder}/secret.txt')"),
    attempt("reads a file by way of ..", "show('../' * 12 + '{folder}/secret.txt')"),
    attempt("reads a file by a link", "os.symlink('{folder}/secret.txt', 'l'); show('l')"),
    attempt("reads a file by a link to the root", "os.symlink('/', 'l'); show('l{folder}/secret.txt')"),
    attempt(
        "reads a file by a hard link",
        "os.link('{folder}/secret.txt', '{folder}/h'); show('{folder}/h')",
    ),
    attempt("reads a file by the root of its own process", "show('/proc/self/root{folder}/secret.txt')"),
    attempt("reads a file by the root of another process", "show('/proc/{victim}/root{folder}/secret.txt')"),
    attempt(
        "reads a file by roots of all processes",
        "for p in glob.glob('/proc/[0-9]*'): show(p + '/root{folder}/secret.txt')",
    ),
    attempt(
        "reads a file by folders of all processes",
        "for p in glob.glob('/proc/[0-9]*'): show(p + '/cwd/../../../../..{folder}/secret.txt')",
    ),
    attempt("reads the environment of another process", "show('/proc/{victim}/environ')"),
    attempt("reads the environment of all processes", "for p in glob.glob('/proc/[0-9]*/environ'): show(p)"),
    attempt(
        "reads which programs run",
        // Some end while they are looked at.
        "for p in glob.glob('/proc/[0-9]*/cmdline'):\n    try:\n        if b'sleep\\x00600' in open(p, 'rb').read(): print('ESCAPED')\n    \
         except OSError: pass",
    ),
    attempt("lists a folder", "print(['ESCAPED' for n in os.listdir('{folder}') if 'secret' in n])"),
    attempt("lists the home of the user", "print('ESCAPED', os.listdir('{home}'))"),
    attempt("lists where services have their sockets", "print('ESCAPED', os.listdir('/run'))"),
    of_root("reads who has accounts", "open('/etc/shadow').read(1); print('ESCAPED')"),
    attempt("writes a file", "open('{folder}/new', 'w').write('x')"),
    attempt("changes a file", "open('{folder}/kept.txt', 'w').write('x')"),
    attempt("adds to a file", "open('{folder}/kept.txt', 'a').write('x')"),
    attempt("cuts a file short", "os.truncate('{folder}/kept.txt', 0)"),
    attempt("removes a file", "os.remove('{folder}/kept.txt')"),
    attempt("renames a file", "os.rename('{folder}/kept.txt', '{folder}/other')"),
    attempt(
        "moves a file out",
        "open('own', 'w').write('x'); os.replace('own', '{folder}/new') if os.stat('.').st_dev == os.stat('{folder}').st_dev else __import__('shutil').move('own', '{folder}/new')",
    ),
    attempt("changes when a file was written", "os.utime('{folder}/kept.txt', (1, 1))"),
    attempt("marks a file", "os.setxattr('{folder}/kept.txt', 'user.x', b'x'); print('ESCAPED')"),
    attempt("changes rights", "os.chmod('{folder}/secret.txt', 0o600)"),
    attempt("makes a folder", "os.mkdir('{folder}/new')"),
    attempt("makes a link", "os.symlink('/etc', '{folder}/new')"),
    attempt("makes a pipe", "os.mkfifo('{folder}/new')"),
    attempt(
        "makes a hard link outside",
        "open('{folder}/kept.txt'); os.link('{folder}/kept.txt', '{folder}/new')",
    ),
    attempt("writes through a link", "os.symlink('{folder}/kept.txt', 'l'); open('l', 'w').write('x')"),
    attempt("writes to shared memory", "open('/dev/shm/{name}', 'w').write('x')"),
    attempt("writes to the folder for temporary files", "open('/tmp/{name}', 'w').write('x')"),
    attempt("writes to the other one", "open('/var/tmp/{name}', 'w').write('x')"),
    untried("changes the system", "open('/usr/bin/{name}', 'w').write('x'); print('ESCAPED')"),
    untried("changes its own root", "open('/etc/{name}', 'w').write('x'); print('ESCAPED')"),
    untried(
        "changes settings of the kernel",
        "open('/proc/sys/kernel/hostname', 'w').write('x'); print('ESCAPED')",
    ),
    untried("asks the kernel to do things", "open('/proc/sysrq-trigger', 'w'); print('ESCAPED')"),
    untried("reads the memory of the machine", "open('/dev/mem', 'rb'); print('ESCAPED')"),
    of_root("makes a device", "os.mknod('{folder}/new', 0o600 | 0o060000, os.makedev(1, 3))"),
    of_root(
        "makes a device of its own",
        "os.mknod('disk', 0o600 | 0o020000, os.makedev(1, 3)); print('ESCAPED')",
    ),
];

pub const NETWORK: &[Attempt] = &[
    attempt("connects by TCP", "reach(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', {tcp}))"),
    attempt(
        "connects by TCP of the sixth version",
        "reach(socket.AF_INET6, socket.SOCK_STREAM, ('::1', {tcp6}) if {tcp6} != {tcp} else ('::ffff:127.0.0.1', {tcp}))",
    ),
    attempt("sends by UDP", "reach(socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', {udp}))"),
    attempt(
        "asks a name server",
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'\\0\\1\\1\\0\\0\\1' + b'\\0' * 6 + b'\\1a\\0\\0\\1\\0\\1', ('127.0.0.1', {udp})); print('ESCAPED')",
    ),
    attempt(
        "connects to a socket in a folder",
        "reach(socket.AF_UNIX, socket.SOCK_STREAM, '{folder}/socket')",
    ),
    attempt("connects to a socket without a path", "reach(socket.AF_UNIX, socket.SOCK_STREAM, '\\0{name}')"),
    attempt("opens the network of the kernel", "socket.socket(16, socket.SOCK_RAW, 0); print('ESCAPED')"),
    of_root("opens raw packets", "socket.socket(17, socket.SOCK_RAW, 0); print('ESCAPED')"),
    of_root("opens raw messages", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print('ESCAPED')"),
    untried("opens a ping", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1); print('ESCAPED')"),
    untried("reaches the machine below", "socket.socket(40, socket.SOCK_STREAM, 0); print('ESCAPED')"),
    untried("opens the ciphers of the kernel", "socket.socket(38, 5, 0); print('ESCAPED')"),
    untried("opens Bluetooth", "socket.socket(31, socket.SOCK_RAW, 1); print('ESCAPED')"),
    untried("looks a name up", "socket.getaddrinfo('one.one.one.one', 443); print('ESCAPED')"),
];

#[cfg(target_arch = "x86_64")]
pub const KERNEL: &[Attempt] = &[
    attempt("ends another process", "os.kill({victim}, 9)"),
    attempt("ends another process by a handle", "f = os.pidfd_open({victim}); call(424, f, 9, 0, 0)"),
    attempt(
        "ends another process by limits",
        "import resource; resource.prlimit({victim}, resource.RLIMIT_CPU, (1, 1)); print('ESCAPED')",
    ),
    attempt("slows another process down", "os.setpriority(os.PRIO_PROCESS, {victim}, 19); print('ESCAPED')"),
    attempt("binds another process", "os.sched_setaffinity({victim}, [0]); print('ESCAPED')"),
    attempt("looks into another process", "let(call(101, 16, {victim}, 0, 0))"),
    attempt("is looked into", "let(call(101, 0, 0, 0, 0))"),
    attempt(
        "reads memory of processes",
        "b = ctypes.create_string_buffer(b'x'); v = (ctypes.c_ulong * 2)(ctypes.addressof(b), 1); let(call(310, os.getpid(), v, 1, v, 1, 0))",
    ),
    attempt("takes descriptors of processes", "let(call(438, os.pidfd_open(os.getpid()), 0, 0))"),
    attempt("compares processes", "let(call(312, os.getpid(), os.getpid(), 0, 0, 0))"),
    attempt("makes a user namespace", "let(call(272, 0x10000000))"),
    of_root("makes a network namespace", "let(call(272, 0x40000000))"),
    attempt(
        "makes namespaces by clone",
        "p = call(56, 0x10000000 | 17, 0, 0, 0, 0)\nif p == 0: os._exit(0)\nlet(p)",
    ),
    attempt("makes namespaces by the newer clone", "let(call(435, 0, 88), errno.EFAULT, errno.EINVAL)"),
    of_root("joins a namespace", "f = os.open('/proc/self/ns/uts', 0); let(call(308, f, 0))"),
    of_root("changes its root", "os.chroot('.'); print('ESCAPED')"),
    untried("mounts a file system", "os.mkdir('m'); let(call(165, b'none', b'm', b'tmpfs', 0, 0))"),
    attempt("takes a mount apart", "let(call(166, b'/nowhere', 0), errno.ENOENT)"),
    untried("opens a file system", "let(call(430, b'tmpfs', 0))"),
    of_root("opens files by handles", "let(call(304, -100, 0, 0), errno.EFAULT)"),
    of_root("becomes root by a call", "os.setresuid(0, 0, 0); os.chown('.', 0, 0); print('ESCAPED')"),
    attempt(
        "runs programs with rights of others",
        "print('ESCAPED' if call(157, 39, 0, 0, 0, 0) == 0 else '')",
    ),
    of_root(
        "has capabilities left",
        "h = (ctypes.c_uint * 2)(0x20080522, 0); d = (ctypes.c_uint * 6)(); call(125, h, d)\nprint('ESCAPED' if any(d) else '')",
    ),
    of_root("gives a file to root", "open('own', 'w'); os.chown('own', 0, 0); print('ESCAPED')"),
    attempt("reads keys of the session", "let(call(250, 0, -4, 1))"),
    attempt("adds a key", "let(call(248, b'user', b'{name}', b'x', 1, -1))"),
    of_root("loads a program into the kernel", "let(call(321, 0, (ctypes.c_uint * 32)(2, 4, 4, 1), 72))"),
    of_root("watches the kernel", "a = (ctypes.c_uint * 32)(1, 128); let(call(298, a, 0, -1, -1, 0))"),
    of_root("handles faults of memory", "let(call(323, 0))"),
    attempt("opens a ring to the kernel", "let(call(425, 1, ctypes.create_string_buffer(120)))"),
    attempt("makes memory that is nobody's", "let(call(319, b'x', 0))"),
    attempt(
        "makes memory that outlives it",
        "s = call(29, 0, 4096, 0o1600)\nif s >= 0: call(31, s, 0, 0)\nlet(s)",
    ),
    untried("loads a module", "let(call(175, b'x' * 64, 64, b''), errno.ENOEXEC)"),
    of_root("sets the clock", "let(call(227, 0, 0), errno.EFAULT)"),
    attempt("reads how the clock is set", "let(call(159, ctypes.create_string_buffer(256)))"),
    untried("names the machine", "let(call(170, b'escaped', 7))"),
    of_root("starts the machine anew", "let(call(169, 0, 0, 0, 0), errno.EINVAL)"),
    of_root("reads the log of the kernel", "let(call(103, 10, 0, 0))"),
    of_root("turns accounting on", "let(call(163, b'/nowhere'), errno.ENOENT)"),
    of_root("swaps to a file", "let(call(167, b'/nowhere', 0), errno.ENOENT)"),
    attempt(
        "types into a terminal",
        "import fcntl\ntry: fcntl.ioctl(0, 0x5412, b'x')\nexcept OSError as e: let(-e.errno, errno.ENOTTY)",
    ),
    attempt("changes how programs are run", "let(call(135, 0x0400000))"),
];

#[cfg(not(target_arch = "x86_64"))]
pub const KERNEL: &[Attempt] = &[attempt("ends another process", "os.kill({victim}, 9)")];
