// llama.cpp states what it takes for granted with GGML_ASSERT, which ends the process. A file can make it wrong: a
// model with strange counts, say. While an AssertionGuard lives, a failed assertion on its thread is thrown as
// cria::Error instead. Only for calls that work on the calling thread alone, such as loading: an assertion on ggml's
// threads still ends the process, for those that wait for them would wait forever.
#pragma once

#include <string>

namespace cria {

class AssertionGuard {
   public:
    // `subject`: what is loaded, for the error.
    explicit AssertionGuard(const std::string & subject);
    ~AssertionGuard();
    AssertionGuard(const AssertionGuard &) = delete;
    AssertionGuard & operator=(const AssertionGuard &) = delete;

    // Once for the process, before the first guard.
    static void install();

   private:
    const std::string subject_;
    const AssertionGuard * const outer_;  // of the same thread

    friend void throw_assertion(const char *);
};

}  // namespace cria
