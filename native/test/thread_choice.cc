// Tells which numbers of threads ThreadChoice chooses where evaluations take given times:
//   thread_choice <threads> <most> [<evaluations>:<seconds with 1 thread>,<with 2>,...]...
// prints, for each phase of evaluations, the number of threads of each.
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "threads/thread_choice.h"

int main(int count, char ** arguments) {
    cria::ThreadChoice choice(std::atoi(arguments[1]));
    const int most = std::atoi(arguments[2]);
    for (int i = 3; i < count; i++) {
        std::istringstream phase(arguments[i]);
        std::string evaluations, seconds;
        std::getline(phase, evaluations, ':');
        std::vector<double> times;
        while (std::getline(phase, seconds, ',')) times.push_back(std::atof(seconds.c_str()));
        for (int k = std::atoi(evaluations.c_str()); k > 0; k--) {
            const int threads = choice.choose(7, most);
            std::printf("%d%c", threads, k > 1 ? ' ' : '\n');
            choice.note(times.at(size_t(threads) - 1));
        }
    }
}
