//! Three words for each thread, in static TLS: the lane that was used last, the list of all, and how often it must not wait.

use stackweave_store::thread_word;

thread_word!(pub(super) fn lane, set_lane, "stackweave_recording_v0_lane");
thread_word!(pub(super) fn list, set_list, "stackweave_recording_v0_list");
thread_word!(pub(super) fn unwaiting, set_unwaiting, "stackweave_recording_v0_unwaiting");
