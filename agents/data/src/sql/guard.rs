//! What keeps a query within its bounds: what it may do, how long, and how much memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, config::DbConfig};

use muster_shared::sync::lock;
use muster_tools::settings::SqlSettings;

/// Between how many steps of SQLite's machine the bounds are looked at. One step makes one cell at most.
const STEPS: i32 = 100;

/// Between which times the memory is measured.
const MEASURED: Duration = Duration::from_millis(1);

/// Functions that reach beyond the database, or tell of the machine.
const DENIED: [&str; 9] = [
    "load_extension",
    "fts3_tokenizer",
    "readfile",
    "writefile",
    "edit",
    "zipfile",
    "sqlite_compileoption_get",
    "sqlite_compileoption_used",
    "sqlite_log",
];

/// Pragmas that only show what the schema is.
const SHOWING: [&str; 6] =
    ["table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list"];

/// Why a query was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Nobody waits for it any more.
    GivenUp,
    /// Its time was up.
    Time,
    /// It used too much memory.
    Memory,
}

/// Watches one query.
#[derive(Clone)]
pub(crate) struct Watch {
    until: Instant,
    given_up: Arc<AtomicBool>,
    memory: u64,
    at_first: u64,
    stopped: Arc<Mutex<Option<Stopped>>>,
}

impl Watch {
    /// Begins now. `given_up` is raised when nobody waits any more.
    pub(crate) fn begin(settings: &SqlSettings, given_up: Arc<AtomicBool>) -> Self {
        let until = Instant::now() + settings.time;
        let at_first = resident().unwrap_or(0);
        Self { until, given_up, memory: settings.memory, at_first, stopped: Arc::default() }
    }

    /// Why it was stopped, if it was.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        *lock(&self.stopped)
    }

    /// Whether it has to end, by the time alone.
    pub(crate) fn is_over(&self) -> bool {
        let why = if self.given_up.load(Ordering::Relaxed) {
            Stopped::GivenUp
        } else if Instant::now() >= self.until {
            Stopped::Time
        } else {
            return false;
        };
        self.stop(why);
        true
    }

    /// Whether it has to end, by its memory.
    pub(crate) fn is_too_large(&self) -> bool {
        let grown = resident().map_or(0, |now| now.saturating_sub(self.at_first));
        if grown > self.memory {
            self.stop(Stopped::Memory);
        }
        grown > self.memory
    }

    fn stop(&self, why: Stopped) {
        lock(&self.stopped).get_or_insert(why);
    }
}

/// The memory of this process, in bytes; unknown where there is no `/proc`.
fn resident() -> Option<u64> {
    const PAGE: u64 = 4096;
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    pages.split(' ').nth(1)?.parse::<u64>().ok().map(|pages| pages * PAGE)
}

/// Tables that a query read, each as `schema.table`.
pub(crate) type Touched = Arc<Mutex<Vec<String>>>;

/// Puts the bounds on a connection in which everything is loaded. From then on it only reads.
pub(crate) fn confine(connection: &mut Connection, watch: &Watch) -> rusqlite::Result<Touched> {
    let touched = Touched::default();
    let seen = Arc::clone(&touched);
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, crate::MAX_CELL),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, crate::MAX_QUERY + 256),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 50),
        (Limit::SQLITE_LIMIT_VDBE_OP, 100_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 64),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 500),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, i32::try_from(most).unwrap_or(i32::MAX))?;
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    let (watch, mut measured) = (watch.clone(), Instant::now());
    connection.progress_handler(
        STEPS,
        Some(move || {
            if watch.is_over() {
                return true;
            }
            if measured.elapsed() < MEASURED {
                return false;
            }
            measured = Instant::now();
            watch.is_too_large()
        }),
    )?;
    connection.authorizer(Some(move |context: AuthContext<'_>| judge(&context, &seen)))?;
    Ok(touched)
}

/// What is not known to only read is refused.
fn judge(context: &AuthContext<'_>, touched: &Touched) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Read { table_name, .. } => {
            let place = format!("{}.{table_name}", context.database_name.unwrap_or("main"));
            let mut touched = lock(touched);
            if !touched.contains(&place) {
                touched.push(place);
            }
            Authorization::Allow
        }
        AuthAction::Function { function_name }
            if !DENIED.contains(&function_name.to_lowercase().as_str()) =>
        {
            Authorization::Allow
        }
        AuthAction::Pragma { pragma_name, .. } if SHOWING.contains(&pragma_name.to_lowercase().as_str()) => {
            Authorization::Allow
        }
        // The list of actions is open: whatever else there is or comes is refused.
        _ => Authorization::Deny,
    }
}
