// The one exception type of the addon. It never crosses N-API: bindings turn it into a JS error.
#pragma once

#include <stdexcept>
#include <string>

namespace cria {

// `code` is stable and machine-readable ("context-exceeded"). what() holds only the summary; subject, expected,
// received and remedy are separate fields, which the JS side joins into one message:
//   throw Error("bad-option", "is out of range").subject("maxSequences").expected("1 to 256").received("0");
class Error : public std::runtime_error {
   public:
    Error(std::string code, const std::string & summary) : std::runtime_error(summary), code_(std::move(code)) {}

    Error & subject(std::string text) {
        subject_ = std::move(text);
        return *this;
    }
    Error & expected(std::string text) {
        expected_ = std::move(text);
        return *this;
    }
    Error & received(std::string text) {
        received_ = std::move(text);
        return *this;
    }
    Error & remedy(std::string text) {
        remedy_ = std::move(text);
        return *this;
    }

    const std::string & code() const noexcept { return code_; }
    const std::string & subject() const noexcept { return subject_; }
    const std::string & expected() const noexcept { return expected_; }
    const std::string & received() const noexcept { return received_; }
    const std::string & remedy() const noexcept { return remedy_; }

   private:
    std::string code_, subject_, expected_, received_, remedy_;
};

}  // namespace cria
