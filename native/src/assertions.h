// llama.cpp checks its assumptions with GGML_ASSERT, which ends the process. A file can violate them, for example a
// model with strange counts. While an AssertionGuard lives, a failed assertion on its thread throws cria::Error
// instead. Use it only for calls that work entirely on the calling thread, such as loading: an assertion on ggml's own
// threads still ends the process, because threads that wait for them would wait forever.
#pragma once

#include <string>

namespace cria {

class AssertionGuard {
   public:
    // `subject`: name of the thing that is loaded, for the error.
    explicit AssertionGuard(const std::string & subject);
    ~AssertionGuard();
    AssertionGuard(const AssertionGuard &) = delete;
    AssertionGuard & operator=(const AssertionGuard &) = delete;

    // Call it once per process, before the first guard.
    static void install();

   private:
    const std::string subject_;
    const AssertionGuard * const outer_;  // the outer guard of the same thread

    friend void throw_assertion(const char *);
};

}  // namespace cria
