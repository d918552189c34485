#!/usr/bin/env bash
# Runs the tests that need a GPU, and then the measurements: benches/torch/run_all.sh OUTDIR. Continues after failures, and
# ends within nine minutes. PYTHON is the interpreter with torch (python3); the package is the one that it finds, or the one
# in STACKWEAVE_PACKAGE. Leaves summary.txt, tests.log, benches.log and the figures as JSON.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:?name the folder for the results}")
python=${PYTHON:-python3}
mkdir -p "$out"
: >"$out/summary.txt" >"$out/tests.log" >"$out/benches.log"
export PYTHONPATH="${STACKWEAVE_PACKAGE:+$STACKWEAVE_PACKAGE:}${PYTHONPATH:-}"
export STACKWEAVE_TEST_PYTHON=$python PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
failed=0
# No command may run past this second.
end=525

say() {
    echo "$*" | tee -a "$out/summary.txt"
}

# limited SECONDS LOG NAME COMMAND...
limited() {
    local seconds=$1 log=$2 name=$3 before=$SECONDS status
    shift 3
    if [ $((end - SECONDS)) -lt 10 ]; then
        say "$name: skipped, no time is left"
        failed=1
        return
    fi
    [ "$seconds" -le $((end - SECONDS)) ] || seconds=$((end - SECONDS))
    echo "=== $name" | tee -a "$out/$log"
    timeout --kill-after=5 "$seconds" "$@" 2>&1 | tee -a "$out/$log"
    status=${PIPESTATUS[0]}
    [ "$status" -eq 0 ] || failed=1
    say "$name: status $status, $((SECONDS - before)) s"
}

tests() {
    limited "$1" tests.log "$2" "$python" -X faulthandler -W ignore -m unittest -v "tests.$2"
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv 2>&1 | tee -a "$out/summary.txt"
# The first use builds the hook in torch, which must not count toward a test's time limit.
limited 120 tests.log first-use "$python" -X faulthandler -W ignore - <<'PYTHON'
import os, tempfile, time
import torch
import stackweave
print("torch", torch.__version__, torch.version.cuda, "stackweave", stackweave.__file__)
import stackweave.torch
before = time.perf_counter()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "out.swv")
    with stackweave.torch.cuda_memory(path) as memory:
        torch.empty(1000, device="cuda")
    print("first use", round(time.perf_counter() - before, 1), "s,", memory.stop())
    memory.recording.export(os.path.join(folder, "out.pickle"))
PYTHON
tests 20 test_torch_cuda_comparison
tests 110 test_torch_cuda_agreement
tests 60 test_torch_cuda_stacks
tests 150 test_torch_cuda_memory
tests 60 test_torch_cuda_snapshot
limited 120 benches.log cuda_memory "$python" -W ignore benches/torch/cuda_memory.py "$out/cuda_memory.json"
limited 80 benches.log training_step "$python" -W ignore benches/torch/training_step.py "$out/training_step.json"
limited 90 benches.log dropin "$python" -W ignore benches/torch/dropin.py "$out/dropin.json"
say "$SECONDS s in total; $([ $failed -eq 0 ] && echo 'everything passed' || echo 'something failed')"
exit $failed
