// llama-batched-bench's main, but it waits for the logger's thread: lines that wait there at exit would be lost.
#include "log.h"

int llama_batched_bench(int argc, char ** argv);

int main(int argc, char ** argv) {
    const int code = llama_batched_bench(argc, argv);
    common_log_flush(common_log_main());
    return code;
}
