#!/usr/bin/env bash
# Measures Cria on a CUDA machine without network: see README.md. Prints one table; exit code 1 when a check failed.
#   run.sh FOLDER [--cpu]
# FOLDER is what prepare.mjs made. Built things go to $CRIA_GPU_WORK (default: a temporary folder), results.jsonl and
# table.md to $OUT too where that is set. --cpu: the same steps with tiny sizes on the repository's own build.
set -euo pipefail

usage() { echo "usage: run.sh FOLDER [--cpu]   (FOLDER: made by prepare.mjs)" >&2; exit 2; }
[ $# -ge 1 ] || usage
FOLDER=$1
MODE=gpu
if [ $# -eq 2 ]; then [ "$2" = --cpu ] || usage; MODE=cpu; elif [ $# -gt 2 ]; then usage; fi
for file in node.tar.xz cria.tar.xz llama.tar.xz; do
  [ -f "$FOLDER/$file" ] || { echo "$FOLDER/$file is not there; make it with prepare.mjs" >&2; exit 2; }
done
FOLDER=$(cd "$FOLDER" && pwd)
SCRIPT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PYTHON=${PYTHON:-python3}
JOBS=$(nproc)
START=$SECONDS
LIMIT=${CRIA_GPU_SECONDS:-525}
say() { echo "[$((SECONDS - START)) s] $*" >&2; }
need() { command -v "$1" >/dev/null || { echo "$1 is not there: $2" >&2; exit 2; }; }
need "$PYTHON" "the table and PyTorch's side need it"
need tar "to unpack"
need xz "to unpack"

if [ "$MODE" = gpu ]; then
  export PATH=$PATH:/usr/local/cuda/bin
  need nvidia-smi "no NVIDIA driver; run.sh FOLDER --cpu checks the script without one"
  need nvcc "CUDA 13's compiler"
  need cmake "llama.cpp and the addon are compiled"
  need g++ "llama.cpp and the addon are compiled"
  nvcc --version | grep -q "release 13" || { echo "nvcc is not of CUDA 13" >&2; exit 2; }
  ARCH=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -1
fi

WORK=${CRIA_GPU_WORK:-$(mktemp -d)}
mkdir -p "$WORK"
cd "$WORK"
for file in node cria llama; do tar xJf "$FOLDER/$file.tar.xz"; done
. cria/versions.sh
RESULTS=$WORK/results.jsonl
: >"$RESULTS"

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

# cuBLAS from the toolkit, else from Python's packages.
find_cublas() {
  local root
  for root in /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib /usr/lib/x86_64-linux-gnu \
    $("$PYTHON" -c 'import glob, site, sys; print(*[p for s in set(site.getsitepackages() + sys.path) for p in glob.glob(s + "/nvidia/cu13/lib") + glob.glob(s + "/nvidia/cublas/lib")])'); do
    if [ -e "$root/libcublas.so.13" ]; then echo "$root"; return; fi
  done
}

build_llama() {
  local options=(-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAMA_BUILD_COMMON=OFF
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF
    # Attention without flash kernels, as trainable models decode; they are half of all that would be compiled.
    -DGGML_CUDA=ON -DGGML_CUDA_FA=OFF -DGGML_CUDA_NCCL=OFF "-DCMAKE_CUDA_ARCHITECTURES=$ARCH")
  local cublas
  cublas=$(find_cublas)
  if [ -n "$cublas" ]; then
    options+=("-DCUDA_cublas_LIBRARY=$cublas/libcublas.so.13" "-DCUDA_cublasLt_LIBRARY=$cublas/libcublasLt.so.13")
    export LD_LIBRARY_PATH=$cublas:${LD_LIBRARY_PATH:-}
    [ -d "$cublas/../include" ] && export CPATH=$cublas/../include:${CPATH:-}
  fi
  cmake -S llama.cpp -B llama.cpp/build "${options[@]}" >llama.log 2>&1 &&
    cmake --build llama.cpp/build --target ggml-base -j "$JOBS" >>llama.log 2>&1 || { tail -20 llama.log >&2; exit 1; }
}

build_kernels() {
  local flags=(-O3 -std=c++17 "-gencode=arch=compute_$ARCH,code=sm_$ARCH" -Xcompiler -fPIC,-fvisibility=hidden -cudart static)
  local sources=cria/native/kernels pids=() pid
  mkdir -p kernels
  for file in "$sources"/*.cu; do
    nvcc "${flags[@]}" -c "$file" -o "kernels/$(basename "$file").o" & pids+=($!)
  done
  nvcc -O2 -std=c++17 "-gencode=arch=compute_$ARCH,code=sm_$ARCH" -I"$sources" -Illama.cpp/ggml/include \
    -c "$sources/tests/check_kernels.cu" -o kernels/check.o & pids+=($!)
  g++ -O2 -std=c++17 -I"$sources" -c "$sources/reference.cc" -o kernels/reference.o & pids+=($!)
  for pid in "${pids[@]}"; do wait "$pid"; done
  nvcc -shared -cudart static kernels/*.cu.o -o kernels/libcria-cuda.so
  nvcc -cudart static kernels/*.cu.o kernels/check.o kernels/reference.o -o kernels/check_kernels \
    -L"$WORK/llama.cpp/build/bin" -lggml-base -Xlinker "-rpath=$WORK/llama.cpp/build/bin"
}

build_addon() {
  local bins=$WORK/llama.cpp/build/bin
  cmake -S cria/native -B addon -DCMAKE_BUILD_TYPE=Release -DCMAKE_JS_INC="$WORK/cria/node-api" -DNODE_ADDON_API="$WORK/cria/node-addon-api" \
    -DLLAMA_SOURCE="$WORK/llama.cpp" -DLLAMA_BINS="$bins" -DLLAMA_LIBRARY="$bins/libllama.so" -DGGML_LIBRARY="$bins/libggml.so" \
    -DGGML_BASE_LIBRARY="$bins/libggml-base.so" -DLLAMA_RELEASE="$LLAMA_RELEASE" -DGGML_RELEASE="$GGML_RELEASE"
  cmake --build addon -j "$JOBS"
}

measure() { ./node cria/measure.mjs "$@" --folder "$WORK"; }
export -f measure
if [ "$MODE" = gpu ]; then
  say "llama.cpp for compute capability $ARCH, with $JOBS jobs"
  build_llama
  build_kernels >kernels.log 2>&1 &
  KERNELS=$!
  cmake --build llama.cpp/build --target llama --target ggml -j "$JOBS" >>llama.log 2>&1 || { tail -20 llama.log >&2; exit 1; }
  wait $KERNELS || { tail -20 kernels.log >&2; exit 1; }
  say "the addon"
  build_addon >addon.log 2>&1 || { tail -20 addon.log >&2; exit 1; }
  cp kernels/libcria-cuda.so addon/Release/
  export CRIA_ADDON=$WORK/addon/Release/cria.node
  DEVICE=cuda SIZE=full
  step kernels kernels/check_kernels --time
else
  ROOT=${CRIA_REPOSITORY:-$SCRIPT/../..}
  [ -f "$ROOT/native/build/Release/cria.node" ] || { echo "--cpu needs this repository's addon: npm run bootstrap" >&2; exit 2; }
  say "the kernels' emulation"
  read -r CHECK CRIA_EMULATED_KERNELS < <(./node --input-type=module -e "
    const { buildEmulation } = await import('$ROOT/native/kernels/tests/build-emulation.mjs');
    const { check, library } = await buildEmulation();
    console.log(check, library);")
  export CRIA_EMULATED_KERNELS CRIA_ADDON=$ROOT/native/build/Release/cria.node
  DEVICE=cpu SIZE=tiny
  step kernels "$CHECK"
fi
step parts bash -c "measure parts >&2"
step gradients bash -c "measure check --device $DEVICE"
step decode bash -c "measure decode --device $DEVICE --size $SIZE"
step train bash -c "measure train --device $DEVICE --size $SIZE"
step peer "$PYTHON" cria/peer.py cria/cases.json "$SIZE" "$DEVICE"
say "done"

CODE=0
"$PYTHON" cria/table.py "$RESULTS" | tee table.md || CODE=1
if [ -n "${OUT:-}" ]; then cp "$RESULTS" table.md "$OUT/"; fi
exit $CODE
