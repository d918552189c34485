//! The columns of the tables. `docs/reference/exports.md` describes them.

pub(super) const EVENTS: &str = "message events {
    REQUIRED BINARY kind (UTF8);
    REQUIRED INT32 thread;
    REQUIRED INT64 time (TIMESTAMP(NANOS,true));
    REQUIRED INT64 start_ns;
    OPTIONAL INT64 duration_ns;
    OPTIONAL INT64 self_ns;
    OPTIONAL INT64 span;
    OPTIONAL INT64 parent;
    OPTIONAL BOOLEAN is_outermost;
    OPTIONAL BOOLEAN is_unfinished;
    OPTIONAL BOOLEAN is_call;
    OPTIONAL INT32 frame;
    OPTIONAL INT32 caller;
    OPTIONAL INT32 stack;
    OPTIONAL DOUBLE value;
    OPTIONAL INT64 weight;
    OPTIONAL INT64 address (INTEGER(64,false));
    OPTIONAL INT64 size (INTEGER(64,false));
    OPTIONAL BINARY event (UTF8);
    OPTIONAL INT32 tag;
    OPTIONAL INT64 device;
    OPTIONAL INT64 stream (INTEGER(64,false));
    OPTIONAL INT64 pool (INTEGER(64,false));
    OPTIONAL BINARY details (UTF8);
}";

pub(super) const ALLOCATIONS: &str = "message allocations {
    REQUIRED INT64 time (TIMESTAMP(NANOS,true));
    REQUIRED INT64 start_ns;
    OPTIONAL INT64 lifetime_ns;
    REQUIRED INT32 thread;
    OPTIONAL INT32 freed_by;
    REQUIRED BINARY allocator (UTF8);
    REQUIRED INT64 address (INTEGER(64,false));
    REQUIRED INT64 size (INTEGER(64,false));
    REQUIRED INT64 device;
    OPTIONAL INT64 stream (INTEGER(64,false));
    OPTIONAL INT64 pool (INTEGER(64,false));
    OPTIONAL INT32 tag;
    OPTIONAL INT32 stack;
}";

pub(super) const STACKS: &str = "message stacks {
    REQUIRED INT32 stack;
    OPTIONAL INT32 callers;
    REQUIRED INT32 frame;
    REQUIRED INT32 depth;
}";

pub(super) const FRAMES: &str = "message frames {
    REQUIRED INT32 frame;
    REQUIRED INT32 function;
    REQUIRED BINARY kind (UTF8);
    REQUIRED BINARY name (UTF8);
    OPTIONAL BINARY qualname (UTF8);
    OPTIONAL BINARY filename (UTF8);
    OPTIONAL INT32 first_line;
    OPTIONAL INT32 line;
    OPTIONAL INT32 column;
    OPTIONAL INT32 module;
    OPTIONAL INT64 address (INTEGER(64,false));
    REQUIRED BOOLEAN is_inlined;
}";

pub(super) const MODULES: &str = "message modules {
    REQUIRED INT32 module;
    REQUIRED BINARY path (UTF8);
    OPTIONAL BINARY build_id (UTF8);
    REQUIRED INT64 bias (INTEGER(64,false));
    REQUIRED INT64 start (INTEGER(64,false));
    REQUIRED INT64 end (INTEGER(64,false));
}";

pub(super) const THREADS: &str = "message threads {
    REQUIRED INT32 thread;
    REQUIRED INT32 tid;
    REQUIRED BINARY name (UTF8);
}";

pub(super) const PROCESSES: &str = "message processes {
    REQUIRED INT32 pid;
    REQUIRED INT32 parent_pid;
    OPTIONAL INT32 forked_from;
    REQUIRED BINARY host (UTF8);
    REQUIRED BINARY boot_id (UTF8);
    REQUIRED BINARY executable (UTF8);
    REQUIRED BINARY command_line (UTF8);
    OPTIONAL BINARY python (UTF8);
    REQUIRED BINARY stackweave_version (UTF8);
    REQUIRED INT64 started (TIMESTAMP(NANOS,true));
    REQUIRED INT64 started_monotonic_ns (INTEGER(64,false));
    REQUIRED INT64 recorded_events;
    REQUIRED BINARY missing (UTF8);
}";
