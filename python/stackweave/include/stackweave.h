/* Stackweave: which Python and native code is running here, as one woven stack, and that as an integer.
 *
 * Written by scripts/check-header from the sources of crates/stackweave-capi: change those. What may be called where
 * (with locks held, in signal handlers, after fork) is in docs/reference/c-interface.md.
 */

#ifndef STACKWEAVE_H
#define STACKWEAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A request for everything. */
#define STACKWEAVE_REQUEST_INIT { sizeof(stackweave_request), STACKWEAVE_ALL, 0, 0 }
/* A block of nothing, on the first device. */
#define STACKWEAVE_BLOCK_INIT { sizeof(stackweave_block), 0, 0, 0, 0, 0, NULL, 0, 0 }
/* The history of everything. */
#define STACKWEAVE_MEMORY_OPTIONS_INIT { sizeof(stackweave_memory_options), STACKWEAVE_MEMORY_HISTORY, 0, 0, 0, 0, 0 }

// Python frames.
#define STACKWEAVE_PYTHON 1

// Native frames.
#define STACKWEAVE_NATIVE 2

// Frames of registered sources.
#define STACKWEAVE_SCRIPT 4

// Frames of all kinds.
#define STACKWEAVE_ALL 7

// Every event is in the file.
#define STACKWEAVE_MEMORY_HISTORY 0

// Only figures for each stack are: a small file.
#define STACKWEAVE_MEMORY_AGGREGATE 1

// Some allocations are, chosen by their bytes, so that estimates are unbiased: for production.
#define STACKWEAVE_MEMORY_SAMPLED 2

// Stacks without native frames.
#define STACKWEAVE_MEMORY_NO_NATIVE 1

// Blocks are given back with a stack, too.
#define STACKWEAVE_MEMORY_FREE_STACKS 2

// Mappings are not recorded.
#define STACKWEAVE_MEMORY_NO_MAPPINGS 4

// A file that is there already is replaced.
#define STACKWEAVE_MEMORY_OVERWRITE 8

// Forked children record nothing.
#define STACKWEAVE_MEMORY_NO_FORKS 16

// No stack.
#define STACKWEAVE_NO_STACK 0

// How a call went.
typedef enum stackweave_status {
  // It did what it says.
  STACKWEAVE_OK = 0,
  // A null pointer, an unknown flag, or a structure whose size is wrong.
  STACKWEAVE_BAD_ARGUMENT = 1,
  // No stack that this copy of the library has captured.
  STACKWEAVE_UNKNOWN_STACK = 2,
  // No handle of a source or of extra frames, or one that was removed.
  STACKWEAVE_UNKNOWN_HANDLE = 3,
  // The system has no memory, or there is no number left for a new stack.
  STACKWEAVE_NO_MEMORY = 4,
  // No Python is initialised in this process, or none that can be read; the last error says why.
  STACKWEAVE_NO_PYTHON = 5,
  // The answer does not fit; its length was written.
  STACKWEAVE_BUFFER_TOO_SMALL = 6,
  // The callback asked to stop.
  STACKWEAVE_STOPPED = 7,
  // Not from inside a callback, or not while another thread does the same.
  STACKWEAVE_BUSY = 8,
  // No more sources, or extra frames, can be registered.
  STACKWEAVE_TOO_MANY = 9,
  // A fault of the library. The call has done nothing, or a part of what it says.
  STACKWEAVE_INTERNAL = 10,
  // Dumps were not prepared, or the text could not be written. It says why itself, where it can.
  STACKWEAVE_NO_DUMP = 11,
  // There is no recording, or it can't be begun, or not all of it could be written; the last error says why.
  STACKWEAVE_NO_RECORDING = 12,
} stackweave_status;

// Why a captured stack is not whole. More may be added.
typedef enum stackweave_stop {
  // It is whole. A thread that no interpreter knows is whole without its frames.
  STACKWEAVE_WHOLE = 0,
  // The request's limit was reached.
  STACKWEAVE_STOP_LIMIT = 1,
  // A reason that this version has no number for.
  STACKWEAVE_STOP_OTHER = 2,
  // Native: an address in no loaded module.
  STACKWEAVE_STOP_NO_MODULE = 16,
  // Native: no unwind entry for an address.
  STACKWEAVE_STOP_NO_UNWIND_ENTRY = 17,
  // Native: unwind tables that can't be understood.
  STACKWEAVE_STOP_UNSUPPORTED_RULE = 18,
  // Native: a frame outside the stack.
  STACKWEAVE_STOP_BAD_MEMORY = 19,
  // Native: more than 65,536 frames.
  STACKWEAVE_STOP_DEPTH_LIMIT = 20,
  // Native: stacks can't be captured on this platform.
  STACKWEAVE_STOP_UNSUPPORTED_PLATFORM = 21,
  // Interpreter: more frames than there is room for.
  STACKWEAVE_STOP_SOURCE_DEPTH_LIMIT = 32,
  // Interpreter: an implausible frame.
  STACKWEAVE_STOP_BAD_FRAME = 33,
  // Interpreter: a signal came while it entered or left a frame.
  STACKWEAVE_STOP_INTERRUPTED = 34,
  // Interpreter: it is shutting down.
  STACKWEAVE_STOP_FINALIZING = 35,
  // Interpreter: its frames can only be read with its lock, which the thread does not hold.
  STACKWEAVE_STOP_NO_GIL = 36,
  // Interpreter: no memory for a new code object.
  STACKWEAVE_STOP_SOURCE_NO_MEMORY = 37,
} stackweave_stop;

// What a frame is a frame of.
typedef enum stackweave_kind {
  // Machine code.
  STACKWEAVE_KIND_NATIVE = 1,
  // Python code.
  STACKWEAVE_KIND_PYTHON = 2,
  // Code of another interpreter: a registered source's.
  STACKWEAVE_KIND_SCRIPT = 3,
  // What the generated code of the Python frame inside it was made from.
  STACKWEAVE_KIND_EXTRA = 4,
  // A name that somebody gave to what happens, and not code.
  STACKWEAVE_KIND_LABEL = 5,
} stackweave_kind;

// What happens in a host's allocator, for stackweave_tell.
typedef enum stackweave_event {
  // A block was taken: as stackweave_alloc.
  STACKWEAVE_EVENT_ALLOC = 1,
  // A block is given back, and may be given out again at once: as stackweave_free.
  STACKWEAVE_EVENT_FREE = 2,
  // Room for blocks was got: as stackweave_segment.
  STACKWEAVE_EVENT_SEGMENT = 3,
  // Room is given back: as stackweave_segment_free.
  STACKWEAVE_EVENT_SEGMENT_FREE = 4,
  // A block is in use, and was when the recording began. It has no stack.
  STACKWEAVE_EVENT_PRESENT = 5,
  // The program gives a block back. A device may still use it.
  STACKWEAVE_EVENT_FREE_REQUESTED = 6,
  // What the program gave back may be given out again.
  STACKWEAVE_EVENT_FREE_COMPLETED = 7,
  // There is room for blocks, as there was when the recording began.
  STACKWEAVE_EVENT_SEGMENT_PRESENT = 8,
  // A part of a segment that grows has got memory behind it.
  STACKWEAVE_EVENT_SEGMENT_MAP = 9,
  // A part of a segment that grows loses the memory behind it.
  STACKWEAVE_EVENT_SEGMENT_UNMAP = 10,
  // Somebody has asked the allocator for an account.
  STACKWEAVE_EVENT_SNAPSHOT = 11,
  // There is no memory for a request of so many bytes. The address is how many bytes the device has free.
  STACKWEAVE_EVENT_OUT_OF_MEMORY = 12,
  // The program says something of a block: its text.
  STACKWEAVE_EVENT_ANNOTATE = 13,
  // What the calling thread takes from now on has the text as its tag; null: none.
  STACKWEAVE_EVENT_TAG = 14,
  // An account of all segments and blocks begins: of segments, each with its blocks behind it, by one thread. Flags: why
  // it is made (0 the recording ends, 1 out of memory, 2 somebody asks). Waits for the writer: not with a lock held that
  // the allocator takes.
  STACKWEAVE_EVENT_STATE_BEGIN = 15,
  // A segment in an account. Flags: 1 it is for large blocks, 2 it grows.
  STACKWEAVE_EVENT_SEGMENT_STATE = 16,
  // A block in an account, with its real bytes, and those that were asked for. Flags: 1 it is in use by the program, 2 it is
  // not to be given out yet. It gets the stack that it was taken on.
  STACKWEAVE_EVENT_BLOCK_STATE = 17,
  // The account ends.
  STACKWEAVE_EVENT_STATE_END = 18,
} stackweave_event;

// Where a callback puts the places it was asked for, by stackweave_locations_add, before it returns.
typedef struct stackweave_locations stackweave_locations;

// What to capture. Set with STACKWEAVE_REQUEST_INIT, and then what is to differ.
typedef struct stackweave_request {
  // The size of this structure, in bytes.
  size_t size;
  // Which frames: STACKWEAVE_PYTHON, STACKWEAVE_NATIVE, STACKWEAVE_SCRIPT, at least one.
  uint32_t flags;
  // How many of the innermost frames to leave out. The library's own are not there to begin with.
  uint32_t skip;
  // How many frames to keep at most, the innermost; 0: all.
  uint32_t limit;
} stackweave_request;

// A captured stack: a number. Equal stacks have equal numbers, whichever thread they were captured on. It means
// something in this process, and its forked children, and to this copy of the library.
//
// All captured stacks share their frames in one table, which only grows: a stack that was captured a million
// times is kept once. So a number may be copied, compared and forgotten as one likes.
typedef uint64_t stackweave_stack;

// A code generator of the host. Its callback may be called on any thread, several times at once. It must not throw or
// jump out.
typedef struct stackweave_extra_frames {
  // The size of this structure, in bytes.
  size_t size;
  // Passed to the callback.
  void *data;
  // Adds the original frames, innermost first, that stand behind a line of a generated Python file, by
  // stackweave_locations_add; adds none if the file is not its own. Called when stacks are resolved, with no lock of
  // the library held.
  void (*frames_behind)(void *data,
                        const char *filename,
                        uint32_t line,
                        struct stackweave_locations *frames);
} stackweave_extra_frames;

// A place in source code. Texts are in UTF-8 and copied. A number that is not known is 0: lines and columns count from 1.
typedef struct stackweave_location {
  // The size of this structure, in bytes.
  size_t size;
  // The function.
  const char *name;
  // The function with what is around it; null if there is no such name.
  const char *qualname;
  // The file.
  const char *filename;
  // Where the place begins.
  uint32_t line;
  // As `line`, in UTF-8 bytes.
  uint32_t column;
  // Where it ends.
  uint32_t end_line;
  // The column before which it ends.
  uint32_t end_column;
} stackweave_location;

// A block of the host's allocator, or room that it gives out blocks of. Set with STACKWEAVE_BLOCK_INIT, and then what is
// to differ.
typedef struct stackweave_block {
  // The size of this structure, in bytes.
  size_t size;
  // Where the block is. Blocks of different devices may have the same address.
  uint64_t address;
  // Its bytes.
  uint64_t bytes;
  // The device that it lies on, from 0; -1: the process's own memory.
  int64_t device;
  // The stream that it is used on.
  uint64_t stream;
  // The pool that it comes from.
  uint64_t pool;
  // What an annotation or a tag says: a C string, or null.
  const char *text;
  // In an account: the bytes that were asked for.
  uint64_t asked;
  // In an account: see stackweave_event.
  uint64_t flags;
} stackweave_block;

// How memory is recorded. Set with STACKWEAVE_MEMORY_OPTIONS_INIT, and then what is to differ.
typedef struct stackweave_memory_options {
  // The size of this structure, in bytes.
  size_t size;
  // STACKWEAVE_MEMORY_HISTORY, STACKWEAVE_MEMORY_AGGREGATE or STACKWEAVE_MEMORY_SAMPLED.
  uint32_t mode;
  // Any of STACKWEAVE_MEMORY_NO_NATIVE, STACKWEAVE_MEMORY_FREE_STACKS, STACKWEAVE_MEMORY_NO_MAPPINGS,
  // STACKWEAVE_MEMORY_OVERWRITE, STACKWEAVE_MEMORY_NO_FORKS.
  uint32_t flags;
  // How many bytes there are to a sample; 0: 512 KiB.
  uint64_t sample_every;
  // How many innermost frames of a stack are kept; 0: all.
  uint32_t depth;
  // A block is temporary if it is given back before its thread has taken more than so many others. 0: as if it were 1.
  uint32_t temporary;
  // How many bytes of events may wait for the file before threads do; 0: 8 MiB, beyond which nothing gets
  // faster.
  uint64_t buffers;
} stackweave_memory_options;

// How much memory was used. Set `size` before asking.
typedef struct stackweave_memory_usage {
  // The size of this structure, in bytes.
  size_t size;
  // How often memory was taken.
  uint64_t allocations;
  // The bytes of all that was taken.
  uint64_t bytes;
  // Blocks that are not given back.
  uint64_t live_blocks;
  // Their bytes.
  uint64_t live_bytes;
  // Blocks that were live when most bytes were.
  uint64_t peak_blocks;
  // Their bytes.
  uint64_t peak_bytes;
  // Blocks that were given back.
  uint64_t frees;
  // Frees of what was not seen to be taken.
  uint64_t unknown_frees;
} stackweave_memory_usage;

// A named frame. Texts are in UTF-8, and valid during the call that they are passed to. A number that is not known is 0:
// lines and columns, of all kinds of frames, count from 1.
typedef struct stackweave_frame {
  // The size of this structure, in bytes, in the library's version.
  size_t size;
  // What it is a frame of.
  enum stackweave_kind kind;
  // Whether the call of this function was inlined into the next frame's.
  bool is_inlined;
  // The function; its place, such as `libfoo.so+0x1234`, if it has no name. Never null.
  const char *name;
  // The function with the classes and functions around it; null if its language has no such names.
  const char *qualname;
  // The source file; null if it is not known.
  const char *filename;
  // The file name of the module that holds a native frame, without folders; null for others.
  const char *module;
  // Where the call, or the instruction, begins.
  uint32_t line;
  // As `line`; for Python in UTF-8 bytes.
  uint32_t column;
  // Where it ends.
  uint32_t end_line;
  // The column before which it ends.
  uint32_t end_column;
  // The address of a native frame; 0 for others.
  uint64_t address;
} stackweave_frame;

// Called for each frame: of the `stack`-th of the stacks that were asked for, its `frame`-th frame from the innermost.
// Anything but 0 ends the call. No lock of the library is held. It must not throw or jump out.
typedef int (*stackweave_frame_callback)(void *data,
                                         size_t stack,
                                         size_t frame,
                                         const struct stackweave_frame *named);

// What a source gets for one walk.
typedef struct stackweave_walk {
  // The size of this structure, in bytes, in the library's version.
  size_t size;
  // Where the frames go, innermost first: what the source calls the place in its code, in 53 bits. Equal words are the
  // same place.
  uint64_t *words;
  // As long: where on the C stack each frame runs, an address in the native frame that runs it, such as that of a local
  // variable of the interpreter's loop. The frame then stands just inside that native frame. Outward they grow. 0 where
  // it is not known: the frame then follows the one before it; the first is innermost of all.
  uint64_t *activations;
  // How many frames there is room for.
  size_t capacity;
  // The source's own on this thread, `memory_words` long: zeros at first, then what the last walk left. A guess, not a
  // promise: the memory of a thread that has ended is handed on to another.
  uint64_t *memory;
  // May be 0.
  size_t memory_words;
  // Whether the capture runs in a signal handler, which may have interrupted the interpreter anywhere.
  bool in_signal_handler;
  // To be set if frames are missing.
  bool is_cut;
} stackweave_walk;

// An interpreter of the host. Both callbacks may be called on any thread, several at once. They must not throw or
// jump out.
typedef struct stackweave_source {
  // The size of this structure, in bytes.
  size_t size;
  // Passed to the callbacks.
  void *data;
  // Writes the frames of the calling thread and returns how many. Called inside every capture: inside allocators, with
  // anybody's locks held, in signal handlers. So it takes no lock and allocates nothing, unless it knows that it may.
  size_t (*walk)(void *data, struct stackweave_walk *walk);
  // Adds the place that a word stands for, by stackweave_locations_add; adds none if it does not know it. Called when
  // stacks are resolved, with no lock of the library held.
  void (*locate)(void *data, uint64_t word, struct stackweave_locations *place);
} stackweave_source;

// A frame as it was captured, without names.
typedef struct stackweave_raw_frame {
  // The frame: equal words are the same place in code.
  uint64_t word;
  // Native: the address the call returns to, or of the instruction that a signal interrupted. A source's: its word.
  // Python: the offset of the instruction in its bytecode.
  uint64_t place;
  // What it is a frame of.
  enum stackweave_kind kind;
  // Native: whether the address is that of the interrupted instruction.
  bool is_exact;
} stackweave_raw_frame;

// Totals over all threads since the process began. Set `size` before asking.
typedef struct stackweave_stats {
  // The size of this structure, in bytes.
  size_t size;
  // Captured stacks.
  uint64_t captures;
  // Captures whose native walk ended early.
  uint64_t incomplete_native;
  // Captures whose walk of an interpreter's frames ended early.
  uint64_t incomplete_source;
  // Distinct stacks, with those that are only callers of others.
  uint64_t stacks;
  // Captures that got no number, for want of memory or of numbers.
  uint64_t refused;
  // Bytes of address space for all stacks.
  uint64_t stack_bytes;
  // Native frames whose rule was known.
  uint64_t native_hits;
  // Native frames whose rule had to be read from unwind tables.
  uint64_t native_misses;
  // Native frames that needed the general evaluator.
  uint64_t native_unsupported;
  // Times that a thread dropped its rules because a library was unloaded.
  uint64_t native_resets;
  // Distinct Python code objects.
  uint64_t python_codes;
  // Bytes of what is kept of them.
  uint64_t python_code_bytes;
  // Whether Python is enabled.
  bool python_is_enabled;
  // Whether its frames are read directly, and so without the GIL.
  bool python_is_direct;
} stackweave_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Captures the calling thread's stack, from the function that calls this outward: native frames and those of every
// interpreter that is known, woven, as a number. `request`: null for everything. `stop`: null, or where to write
// why the stack is not whole.
//
// May be called anywhere: with any lock held, with the GIL or without, inside an allocator, in a signal handler once the
// thread is prepared, after Python's end. It takes no lock and no GIL, and waits for nobody.
enum stackweave_status stackweave_capture(const struct stackweave_request *request,
                                          stackweave_stack *stack,
                                          enum stackweave_stop *stop);

// As stackweave_capture, of what a signal interrupted: to be called from its handler, on the thread that it interrupted,
// with the third argument of a handler that was installed with SA_SIGINFO.
enum stackweave_status stackweave_capture_from_context(const void *context,
                                                       const struct stackweave_request *request,
                                                       stackweave_stack *stack,
                                                       enum stackweave_stop *stop);

// Pays now what the first capture of this thread would pay. A thread whose first capture would otherwise be in a signal
// handler calls this first. Takes the dynamic loader's lock. STACKWEAVE_NO_MEMORY if the loader had no static thread-local
// memory left when the library was loaded: captures then work, but not in signal handlers.
enum stackweave_status stackweave_prepare(void);

// Chooses a real-time signal that has no handler, and installs one for it, by which threads are asked where they are. To be
// called before the first dump, outside signal handlers. Again is harmless, and needed only when somebody has put
// another handler in its place since.
enum stackweave_status stackweave_prepare_dumps(void);

// Writes the woven stacks of all threads to a file descriptor, as text, most recent call first: Python frames with their
// lines, native ones with their module and offset. Needs neither the GIL nor memory, and takes no lock, so it works
// while the GIL, the allocator or the loader is stuck. `timeout_ms`: how long threads have to answer, 0 for a second; those
// that don't are named. `context`: null, or in a signal handler its third argument.
enum stackweave_status stackweave_dump_threads(int fd,
                                               uint32_t timeout_ms,
                                               const void *context);

// Adds a code generator, which is asked about every Python frame that is resolved from now on. `handle`, to remove it
// by, is never 0. At most 64 at a time.
enum stackweave_status stackweave_register_extra_frames(const struct stackweave_extra_frames *extra,
                                                        uint64_t *handle);

// Removes a code generator. When this returns, its callback does not run and will not run any more. It waits for other
// threads that are asking it, so it must not be called with a lock held that the callback takes, nor in a callback.
enum stackweave_status stackweave_remove_extra_frames(uint64_t handle);

// What the last call that failed on this thread had to say, in UTF-8; empty if none has. Valid until the next call
// on this thread that fails. Capturing, retaining and releasing say nothing here: they may run in a signal handler.
const char *stackweave_last_error(void);

// Adds a place: the frame that was asked about, or behind a line the next frame, innermost first. For callbacks, with the
// `locations` they were called with.
enum stackweave_status stackweave_locations_add(struct stackweave_locations *locations,
                                                const struct stackweave_location *location);

// Something happens in the host's allocator. With any lock held, with the GIL or without, but where stackweave_event says
// otherwise.
//
// `place` is an address in the stack frame of a function of the host's, such as `__builtin_frame_address(0)`: the stack begins
// with the caller of that function. Null: with the function that calls this.
enum stackweave_status stackweave_tell(uint32_t what,
                                       const struct stackweave_block *block,
                                       const void *place);

// The host's allocator has taken a block: recorded with the calling thread's woven stack, from the function that calls this
// outward, if memory is recorded; by stackweave_memory_start, or by stackweave.memory in the Python of this process. Else
// it costs a few nanoseconds.
//
// To be called once the block is the caller's, so that nobody else can tell of that address meanwhile. With any lock held, with
// the GIL or without; it takes neither. If the file is slow for long it waits for it.
enum stackweave_status stackweave_alloc(const struct stackweave_block *block);

// The host's allocator gives a block back: its `address`, `device` and `stream` count. To be called while the block is still
// the caller's.
enum stackweave_status stackweave_free(const struct stackweave_block *block);

// The host's allocator has got room that it gives out blocks of. Segments are not counted as memory: their blocks are.
enum stackweave_status stackweave_segment(const struct stackweave_block *segment);

// The host's allocator gives room back: the `bytes` from `address` on, be it a segment or a part of one.
enum stackweave_status stackweave_segment_free(const struct stackweave_block *segment);

// Not for hosts: by this a recorder of another copy of Stackweave in this process, such as the Python package's, has told to it
// what hosts of this copy do. Puts `sink` in the place of `before`; null is none. STACKWEAVE_BUSY if another is there, or
// if this copy records itself.
enum stackweave_status stackweave_set_memory_sink(const void *sink,
                                                  const void *before);

// Begins to record every allocation of the process to a file: malloc and its kin, mappings, and what the host tells by
// stackweave_alloc, each with its woven stack. `options`: null for the history of everything. One recording at a time;
// STACKWEAVE_BUSY also while another copy of Stackweave in this process records, which gets what the host tells.
//
// The file is read by the stackweave command (`stackweave heap`, `stackweave export`) and by the Python package. If the
// process ends without stackweave_memory_stop, the file is ended then.
enum stackweave_status stackweave_memory_start(const char *path,
                                               const struct stackweave_memory_options *options);

// Records no more, and ends the file. STACKWEAVE_NO_RECORDING if there is no recording, or if not all of it could be
// written; the last error says why.
enum stackweave_status stackweave_memory_stop(void);

// Leaves out what is allocated until stackweave_memory_resume. What is given back meanwhile is still recorded, so that what is
// live stays right.
enum stackweave_status stackweave_memory_pause(void);

// Goes on after stackweave_memory_pause.
enum stackweave_status stackweave_memory_resume(void);

// Writes what is live now, and was at the peak, by stack into the file: what a reader finds if the process is killed. A
// recording that is stopped ends with one anyway.
enum stackweave_status stackweave_memory_snapshot(void);

// How much memory of a device was used, by now and at its peak; device -1 is the process's own memory. Of one that nobody
// has told of, nothing. Waits for the recording's writer.
enum stackweave_status stackweave_memory_get_usage(int64_t device,
                                                   struct stackweave_memory_usage *usage);

// In a forked child that goes on without another program: its own recording begins, in a file beside its parent's that has the
// child's number in its name. Until this is called a child records nothing. To be called on the thread that forked, where
// the child may allocate; not if another thread was in one of these calls at the fork.
enum stackweave_status stackweave_memory_forked(void);

// Finds the Python in this process, in whichever library it is, and adds its frames to every capture that asks for
// STACKWEAVE_PYTHON from now on, on all threads. Doing so again changes nothing.
//
// The only call that needs the GIL, once: if the thread does not have it, it waits for it. So it is to be called when the
// host starts, without a lock that a Python thread may wait for. With a Python exception set it does nothing.
enum stackweave_status stackweave_enable_python(void);

// Leaves Python's frames out of captures from now on. Those of stacks that were captured keep their names. Waits for
// captures of other threads. Nothing if Python is not enabled; needs no GIL, and may be called after Python's end.
enum stackweave_status stackweave_disable_python(void);

// Names the frames of `count` stacks, all in one batch, which is cheaper than one by one, and calls back for each frame:
// the stacks in their order, each innermost first. Calls that were inlined are frames of their own.
//
// Reads debug information, allocates and takes locks of its own, and may call sources and extra frames: not to be called
// inside an allocator, with a lock held that those take, or in a signal handler. It needs no GIL.
enum stackweave_status stackweave_resolve(const stackweave_stack *stacks,
                                          size_t count,
                                          stackweave_frame_callback callback,
                                          void *data);

// As stackweave_resolve, to JSON: a list of stacks, each a list of objects with `name`, `filename`, `line`, `kind`,
// `inlined`, and where they are known `qualname`, `column`, `end_line`, `end_column`, `module`, `address`. (There,
// Python's columns count from 0, as Python itself counts them.) The text is to be freed by stackweave_free_string.
enum stackweave_status stackweave_resolve_json(const stackweave_stack *stacks,
                                               size_t count,
                                               char **text);

// As stackweave_resolve_json, into a buffer of `capacity` bytes, with a null byte at the end. The length of the text,
// without that byte, is written to `length`. If it does not fit, the buffer gets an empty text, and the status says so.
enum stackweave_status stackweave_resolve_json_into(const stackweave_stack *stacks,
                                                    size_t count,
                                                    char *buffer,
                                                    size_t capacity,
                                                    size_t *length);

// Adds an interpreter, whose frames are in every capture that asks for STACKWEAVE_SCRIPT from now on. `handle`, to
// remove it by, is never 0. 256 can be added in the life of a process.
enum stackweave_status stackweave_register_source(const struct stackweave_source *source,
                                                  uint64_t *handle);

// Removes an interpreter. When this returns, neither of its callbacks runs or will run any more; its frames in
// stacks that were captured before, and not resolved yet, have no names.
//
// It waits for captures of other threads that are asking the source, so it must not be called with a lock held that the
// callbacks take, nor in a callback, nor in a signal handler.
enum stackweave_status stackweave_remove_source(uint64_t handle);

// For hosts that count references: says whether `stack` is one, and does nothing else.
//
// There is nothing to count. No stack holds a reference to an object of an interpreter, and none is ever freed, so
// none can be freed too early, twice, or with the wrong lock held. A few nanoseconds; may be called anywhere.
enum stackweave_status stackweave_retain(stackweave_stack stack);

// The counterpart of stackweave_retain; it does as little. Takes no lock and no GIL; may be called anywhere.
enum stackweave_status stackweave_release(stackweave_stack stack);

// How many frames a stack has, before calls that were inlined are told apart. May be called anywhere.
enum stackweave_status stackweave_frame_count(stackweave_stack stack,
                                              uint32_t *count);

// Writes the frames of a stack as they were captured, innermost first, and their number to `count`. If there are more
// than `capacity`, the innermost are written. `frames` may be null if `capacity` is 0. May be called anywhere.
enum stackweave_status stackweave_raw_frames(stackweave_stack stack,
                                             struct stackweave_raw_frame *frames,
                                             size_t capacity,
                                             size_t *count);

// Writes the totals to `stats`, as many fields as its size has room for. Takes no lock; not for signal handlers.
enum stackweave_status stackweave_get_stats(struct stackweave_stats *stats);

// A status in a few words, for ever. Any number is allowed. May be called anywhere.
const char *stackweave_status_text(int32_t status);

// A reason in a few words, for ever. Any number is allowed. May be called anywhere.
const char *stackweave_stop_text(int32_t stop);

// Frees a text that the library gave. Null is allowed. One that is not the library's, or was freed, is refused as far
// as that can be told.
enum stackweave_status stackweave_free_string(char *text);

// The version of the library, for ever: `major.minor.patch`. May be called anywhere.
const char *stackweave_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* STACKWEAVE_H */
