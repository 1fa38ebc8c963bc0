// The text of a turn as its tokens arrive: finds stop strings, and the part that may already be shown to a reader.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace cria {

class TextStream {
   public:
    explicit TextStream(const std::vector<std::string> & stops) : stops_(stops) {
        for (const auto & stop : stops_) longest_ = std::max(longest_, stop.size());
    }

    // Appends one token's bytes; true when a stop string is complete (the text then ends before it).
    bool append(const std::string & piece) {
        // A match can only end in the new piece.
        const size_t from = text_.size() >= longest_ ? text_.size() - longest_ + (longest_ > 0 ? 1 : 0) : 0;
        text_ += piece;
        size_t cut = std::string::npos;
        for (const auto & stop : stops_) {
            const size_t found = stop.empty() ? std::string::npos : text_.find(stop, from);
            if (found >= cut) continue;
            cut = found;
            stop_ = stop;
        }
        if (cut == std::string::npos) return false;
        text_.resize(cut);
        return true;
    }

    // The text that can be shown now and was not shown before: whole UTF-8 characters that cannot be the start of a
    // stop string.
    std::string take_ready(bool finished) {
        size_t end = text_.size();
        if (!finished) {
            for (size_t length = std::min(longest_ > 0 ? longest_ - 1 : 0, text_.size()); length > 0; length--) {
                const bool may_be_stop = std::any_of(stops_.begin(), stops_.end(), [&](const std::string & stop) {
                    return stop.size() > length && text_.compare(text_.size() - length, length, stop, 0, length) == 0;
                });
                if (may_be_stop) {
                    end = text_.size() - length;
                    break;
                }
            }
            end = whole_characters(end);
        }
        if (end <= shown_) return "";
        std::string ready = text_.substr(shown_, end - shown_);
        shown_ = end;
        return ready;
    }

    const std::string & text() const { return text_; }
    // The stop string that ended the text, if one did.
    const std::optional<std::string> & stop() const { return stop_; }

   private:
    // The largest end <= `end` that does not cut a UTF-8 character.
    size_t whole_characters(size_t end) const {
        for (size_t back = 1; back <= 4 && back <= end; back++) {
            const unsigned char byte = static_cast<unsigned char>(text_[end - back]);
            if ((byte & 0xc0) == 0x80) continue;
            const size_t needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
            return needed > back ? end - back : end;
        }
        return end;
    }

    std::vector<std::string> stops_;
    size_t longest_ = 0;
    std::string text_;
    std::optional<std::string> stop_;
    size_t shown_ = 0;
};

}  // namespace cria
