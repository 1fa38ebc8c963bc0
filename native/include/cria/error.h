// The one exception type of the addon. It never crosses N-API: bindings turn it into a JS error.
#pragma once

#include <stdexcept>
#include <string>

namespace cria {

// `code` is stable and machine-readable ("context-exceeded"); the message names subject, expected, received, remedy.
class Error : public std::runtime_error {
   public:
    Error(std::string code, const std::string & message) : std::runtime_error(message), code_(std::move(code)) {}
    const std::string & code() const noexcept { return code_; }

   private:
    std::string code_;
};

}  // namespace cria
