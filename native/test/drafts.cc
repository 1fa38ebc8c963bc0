// Drives Drafter and DraftLength by lines of standard input, for drafts.test.ts:
//   learn <token>...                 a text
//   propose <most> <token>...        prints what may follow, as token:chance
//   judge <0 or 1> <token>...        the first proposal behind these tokens was drawn, or was not
//   steps <count> <slots> <chance>,... <seconds with 1 row>,<with 2>,...
//                                    so many steps whose sequences have drafts of such chances, in turn; prints each
//                                    step's lengths and the rows that it costs, as length/length/...:rows
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <numeric>
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

std::vector<double> read_numbers(const std::string & text) {
    std::istringstream line(text);
    std::vector<double> numbers;
    for (std::string one; std::getline(line, one, ',');) numbers.push_back(std::stod(one));
    return numbers;
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
            std::string chances, times;
            line >> count >> slots >> chances >> times;
            const std::vector<double> seconds = read_numbers(times), each = read_numbers(chances);
            std::vector<std::vector<cria::DraftToken>> drafts;
            for (int i = 0; i < slots; i++)
                drafts.emplace_back(cria::kMostDrafted, cria::DraftToken{0, 0, each[size_t(i) % each.size()]});
            for (; count > 0; count--) {
                const std::vector<int> chosen = length.choose(drafts, slots, cria::most_drafted(slots));
                const int drafted = std::accumulate(chosen.begin(), chosen.end(), 0),
                          longest = *std::max_element(chosen.begin(), chosen.end()),
                          rows = cria::count_cost(slots + drafted, slots * (longest + 1));
                for (size_t i = 0; i < chosen.size(); i++) std::printf(i > 0 ? "/%d" : "%d", chosen[i]);
                std::printf(":%d ", rows);
                length.note(rows, seconds.at(size_t(rows) - 1));
            }
            std::printf("\n");
        }
    }
}
