#include "assertions.h"

#include <cstdio>

#include "cria/error.h"
#include "cria/runtime.h"
#include "ggml.h"

namespace cria {

namespace {

thread_local const AssertionGuard * innermost = nullptr;

}  // namespace

// ggml calls it with "file:line: GGML_ASSERT(...) failed", and ends the process if it returns.
void throw_assertion(const char * message) {
    if (!innermost) {
        // The log says more than the message: which call of CUDA failed, and why.
        std::fprintf(stderr, "%s\n%s\n", message, take_log_errors().c_str());
        return;
    }
    // llama.cpp may catch it on the way and log what(): the message must be in there.
    throw Error("assertion-failed", std::string("violates an assumption of llama.cpp: ") + message)
        .subject(innermost->subject_)
        .remedy(
            "the file is damaged, badly converted, or of a kind that llama.cpp does not know: fetch or convert it "
            "again");
}

AssertionGuard::AssertionGuard(const std::string & subject) : subject_(subject), outer_(innermost) { innermost = this; }

AssertionGuard::~AssertionGuard() { innermost = outer_; }

void AssertionGuard::install() { ggml_set_abort_callback(throw_assertion); }

}  // namespace cria
