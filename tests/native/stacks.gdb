# Runs a program up to SIGTRAP, and prints the frames that are on its stack: address and function, innermost first.
# Frames that gdb derives from debug information, for inlined and for tail calls, are on no stack.
set debuginfod enabled off
set auto-load off
set pagination off
set confirm off
set startup-with-shell off
set backtrace past-main on
set backtrace past-entry on
run
python
frame = gdb.newest_frame()
while frame is not None:
    if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
        print("frame", hex(frame.pc()), frame.function() or frame.name())
    frame = frame.older()
end
kill
