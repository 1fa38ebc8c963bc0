#!/usr/bin/env bash
# Measures Cria on a machine with a GPU and without network: see README.md. Prints one table; exit code 1 when a check failed.
#   run.sh FOLDER [--cpu]
# FOLDER is what prepare.mjs made. Unpacks to $CRIA_GPU_WORK (default: a temporary folder); results.jsonl, table.md and
# logs.tar.gz go to $OUT too where that is set. --cpu: the same steps with tiny sizes on the CPU, in this repository.
set -euo pipefail

usage() { echo "usage: run.sh FOLDER [--cpu]   (FOLDER: made by prepare.mjs)" >&2; exit 2; }
[ $# -ge 1 ] || usage
FOLDER=$1
MODE=gpu
if [ $# -eq 2 ]; then [ "$2" = --cpu ] || usage; MODE=cpu; elif [ $# -gt 2 ]; then usage; fi
for file in project.tar.xz backend.tar.xz; do
  [ -f "$FOLDER/$file" ] || { echo "$FOLDER/$file is not there; make it with prepare.mjs" >&2; exit 2; }
done
FOLDER=$(cd "$FOLDER" && pwd)
SCRIPT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PYTHON=${PYTHON:-python3}
START=$SECONDS
LIMIT=${CRIA_GPU_SECONDS:-525}
say() { echo "[$((SECONDS - START)) s] $*" >&2; }
need() { command -v "$1" >/dev/null || { echo "$1 is not there: $2" >&2; exit 2; }; }
need "$PYTHON" "the table and PyTorch's side need it"
need tar "to unpack"
need xz "to unpack"
if [ "$MODE" = gpu ]; then
  need nvidia-smi "no NVIDIA driver; run.sh FOLDER --cpu checks the script without one"
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -1
fi

WORK=${CRIA_GPU_WORK:-$(mktemp -d)}
mkdir -p "$WORK"
cd "$WORK"
tar xJf "$FOLDER/project.tar.xz" &
tar xJf "$FOLDER/backend.tar.xz"
wait $!
cd project
mv ../libggml-cuda.so node_modules/@node-llama-cpp/linux-x64-cuda/bins/linux-x64-cuda/
RESULTS=$WORK/results.jsonl
: >"$RESULTS"
say "unpacked"

# Runs a step in what time is left; a step that fails or is cut off is a line of the table, not the end.
step() {
  local name=$1
  shift
  local left=$((LIMIT - (SECONDS - START)))
  if [ $left -lt 5 ]; then
    echo "{\"skipped\":\"$name: no time left\"}" >>"$RESULTS"
    return 0
  fi
  say "$name"
  timeout "$left" "$@" >>"$RESULTS" 2>"$WORK/$name.log" || {
    local code=$?
    tail -5 "$WORK/$name.log" >&2
    echo "{\"error\":\"$name ended with $code, see $name.log\"}" >>"$RESULTS"
  }
}

# The runtime and cuBLAS of CUDA 13, from the toolkit or from Python's packages.
find_libraries() {
  local root
  for root in /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib /usr/lib/x86_64-linux-gnu \
    $("$PYTHON" -c 'import glob, site, sys; print(*[p for s in set(site.getsitepackages() + sys.path) for p in glob.glob(s + "/nvidia/cu13/lib") + glob.glob(s + "/nvidia/cublas/lib")])'); do
    if [ -e "$root/$1" ]; then echo "$root"; return; fi
  done
}

if [ "$MODE" = gpu ]; then
  CRIA_CUDA_LIBRARIES=$(find_libraries libcudart.so.13):$(find_libraries libcublas.so.13)
  export CRIA_CUDA_LIBRARIES
  DEVICE=cuda SIZE=full
  CHECK=(./check_kernels --time)
else
  ROOT=${CRIA_REPOSITORY:-$SCRIPT/../..}
  say "the kernels' emulation"
  read -r CHECK CRIA_EMULATED_KERNELS < <(./node --input-type=module -e "
    const { buildEmulation } = await import('$ROOT/native/kernels/tests/build-emulation.mjs');
    const { check, library } = await buildEmulation();
    console.log(check, library);")
  export CRIA_EMULATED_KERNELS
  CHECK=("$CHECK")
  DEVICE=cpu SIZE=tiny
fi
export DEVICE SIZE
measure() { ./node measure.mjs "$@" --device "$DEVICE" --size "$SIZE" --folder ..; }
cria() { ./node node_modules/cria/bin/cria.mjs "$@"; }
# The same training, whose batches tools and threads make: it must end with the same adapter.
train_twice() {
  set -e
  local time equal=false
  for time in once again; do
    cria demo --steps "$1" trainer.device="$DEVICE" >&2
    mv runs/demo/adapter.gguf "../$time.gguf"
  done
  if cmp -s ../once.gguf ../again.gguf; then equal=true; fi
  echo "{\"check\":\"a training twice, the same bits\",\"error\":0,\"tolerance\":0,\"ok\":$equal}"
}
# Runs CUDA's compute-sanitizer over all kernels, and over a training at the widths of a real model.
sanitizers() {
  local tool errors
  sanitize() {
    tool=$1 errors=$(compute-sanitizer --tool "$1" "${@:3}" 2>&1 | tee -a /dev/stderr |
      sed -nE 's/^=+ (ERROR SUMMARY: |RACECHECK SUMMARY: )([0-9]+) .*/\2/p')
    echo "{\"check\":\"$tool over $2\",\"error\":${errors:-1},\"tolerance\":0,\"ok\":$([ "$errors" = 0 ] && echo true || echo false)}"
  }
  for tool in memcheck racecheck synccheck initcheck; do sanitize $tool "all kernels" ./check_kernels; done
  ./node measure.mjs models --device "$DEVICE" --size thin --folder .. >&2
  sanitize memcheck "a training" --target-processes all ./node measure.mjs train --device "$DEVICE" --size thin --folder ..
}
export -f measure cria train_twice sanitizers

# The large models are written meanwhile.
bash -c 'measure models --type f16 & measure models --type q8_0 & wait' 2>"$WORK/models.log" &
MODELS=$!
step parts bash -c "measure parts >&2"
step doctor bash -c "cria doctor >&2"
step kernels "${CHECK[@]}"
step gradients bash -c "measure check"
step bits bash -c "measure bits"
MODEL=$(echo node_modules/cria/dist/assets/models/*.gguf)
step check-model bash -c "cria check-model $MODEL --device $DEVICE >&2"
step demo bash -c "train_twice ${CRIA_GPU_STEPS:-8}"
wait $MODELS
step decode bash -c "measure decode"
step train bash -c "measure train"
if [ "$MODE" = gpu ]; then
  if command -v compute-sanitizer >/dev/null; then step sanitizers bash -c sanitizers
  else echo '{"skipped":"sanitizers: no compute-sanitizer of CUDA'"'"'s toolkit"}' >>"$RESULTS"; fi
fi
step peer "$PYTHON" peer.py cases.json "$SIZE" "$DEVICE"
say "done"

CODE=0
"$PYTHON" table.py "$RESULTS" | tee "$WORK/table.md" || CODE=1
if [ -n "${OUT:-}" ]; then
  cp "$RESULTS" "$WORK/table.md" "$OUT/"
  tar -C "$WORK" -czf "$OUT/logs.tar.gz" --ignore-failed-read $(cd "$WORK" && ls -- *.log)
fi
exit $CODE
