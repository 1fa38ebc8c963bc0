// Drives Drafter and DraftLength by lines of standard input, for drafts.test.ts:
//   learn <token>...                 a text
//   propose <most> <token>...        prints what may follow, as token:chance
//   judge <0 or 1> <token>...        the first proposal behind these tokens was drawn, or was not
//   steps <count> <slots> <chance> <seconds with 1 row>,<with 2>,...
//                                    so many steps whose sequences have drafts of such chances; prints each step's
//                                    length
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "infer/draft_length.h"
#include "infer/drafter.h"

namespace {

std::vector<int32_t> read_tokens(std::istringstream & line) {
    std::vector<int32_t> tokens;
    for (int32_t token; line >> token;) tokens.push_back(token);
    return tokens;
}

}  // namespace

int main() {
    cria::Drafter drafter(1000);
    cria::DraftLength length;
    std::string text;
    while (std::getline(std::cin, text)) {
        std::istringstream line(text);
        std::string command;
        line >> command;
        if (command == "learn") {
            const auto tokens = read_tokens(line);
            drafter.observe(tokens, 0, tokens.size());
        } else if (command == "propose") {
            int most = 0;
            line >> most;
            for (const auto & [token, kind, chance] : drafter.propose(read_tokens(line), most, {999}))
                std::printf("%d:%.3f ", token, chance);
            std::printf("\n");
        } else if (command == "judge") {
            int is_right = 0;
            line >> is_right;
            const auto draft = drafter.propose(read_tokens(line), 1, {});
            if (!draft.empty()) drafter.judge(draft.front(), is_right != 0 ? draft.front().token : -1);
        } else if (command == "steps") {
            int count = 0, slots = 0;
            double chance = 0;
            line >> count >> slots >> chance;
            std::vector<double> seconds;
            for (std::string one; std::getline(line, one, ',');) seconds.push_back(std::stod(one));
            const std::vector<cria::DraftToken> draft(cria::kMostDrafted, {0, 0, chance});
            for (; count > 0; count--) {
                const int chosen = length.choose({size_t(slots), draft}, slots, cria::most_drafted(slots));
                std::printf("%d ", chosen);
                const int rows = slots * (chosen + 1);
                length.note(rows, seconds.at(size_t(rows) - 1));
            }
            std::printf("\n");
        }
    }
}
