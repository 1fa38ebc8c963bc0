// The engine without Node, used from many threads at once, for ThreadSanitizer: clients that submit, abort, fork and
// dispose, with the live policy and with versions of their own, a trainer that steps and flushes, and readers. First it
// tests the parts of each CPU kernel. scripts/nightly/sanitizers.mjs builds and runs it.
//
//   engine_races <model.gguf> <seconds>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <random>
#include <thread>

#include "cria/engine.h"
#include "cria/runtime.h"
#include "kernel_parts.h"

namespace {

using namespace cria;
using Clock = std::chrono::steady_clock;

std::atomic<long> requests{0}, accepted_drafts{0}, aborted{0}, steps{0}, streamed{0}, refused{0}, aborted_jobs{0},
    versions{0}, takeovers{0}, failures{0};

int between(std::mt19937 & random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

std::vector<int32_t> draw_tokens(std::mt19937 & random, int count) {
    std::vector<int32_t> tokens(size_t(count), 0);
    for (auto & token : tokens) token = between(random, 0, 255);
    return tokens;
}

// Turns of one sequence, some aborted, some disposed while they run; a fork in between, or another version.
void converse(
    Engine & engine, std::mt19937 & random, PolicyVersion version = kLivePolicy, PolicyVersion other = kLivePolicy) {
    Scheduler & scheduler = engine.scheduler();
    SequenceId sequence = scheduler.create_sequence(version);
    for (int turn = between(random, 1, 4); turn > 0; turn--) {
        auto ended = std::make_shared<std::promise<void>>();
        GenerateParams params;
        params.max_tokens = between(random, 0, 12);
        // Greedy text repeats itself, so that it is drafted.
        if (between(random, 0, 1) == 0) params.temperature = 0;
        params.seed = uint32_t(random());
        const RequestId id = scheduler.submit(
            sequence, draw_tokens(random, between(random, 1, 20)), params, [ended](const GenerateResult & result) {
            requests++;
            if (result.finish_reason == FinishReason::aborted) aborted++;
            ended->set_value();
        }, [](const std::string & text) { streamed += long(text.size()); });
        const int fate = between(random, 0, 9);
        if (fate == 0) scheduler.abort(id);
        if (fate == 1) scheduler.dispose(sequence);
        try {
            if (fate == 2) scheduler.submit(sequence, {1}, params, [](const GenerateResult &) {}, nullptr);
        } catch (const Error &) {
            refused++;
        }
        ended->get_future().wait();
        if (fate == 1) return;
        if (fate == 3) {
            const SequenceId fork = scheduler.fork(sequence);
            scheduler.dispose(sequence);
            sequence = fork;
        }
        if (fate == 4) scheduler.reset(sequence);
        if (fate > 6 && other != kLivePolicy) {
            scheduler.take_over(sequence, fate == 9 ? version : other);
            takeovers++;
        }
        if (scheduler.token_count(sequence) > 60) break;
    }
    scheduler.tokens(sequence);
    scheduler.dispose(sequence);
}

// Conversations of two versions that are kept for them: they share batches with those of other versions.
void converse_by_version(Engine & engine, std::mt19937 & random) {
    Scheduler & scheduler = engine.scheduler();
    const PolicyVersion first = scheduler.keep_version(), second = scheduler.keep_version();
    for (int i = between(random, 1, 3); i > 0; i--) converse(engine, random, first, second);
    for (const PolicyVersion version : {first, second}) {
        try {
            scheduler.drop_version(version);
            versions++;
        } catch (const Error &) {
            // Disposed while it ran, and not yet ended.
            refused++;
        }
    }
}

// Runs `work` on the job thread, as the binding does.
void run_job(Engine & engine, std::function<void()> work) {
    std::promise<void> ended;
    engine.jobs().submit([&] {
        try {
            work();
        } catch (const Error & error) {
            // An aborted forward leaves no activations for backward.
            if (error.code() == "aborted" || error.code() == "no-forward") {
                aborted_jobs++;
            } else {
                failures++;
                std::fprintf(stderr, "%s: %s: %s\n", error.subject().c_str(), error.what(), error.received().c_str());
            }
        }
        ended.set_value();
    }, [&] { ended.set_value(); });
    ended.get_future().wait();
}

void train(Engine & engine, std::mt19937 & random, const std::string & folder) {
    MicroBatch batch;
    batch.rows = 2;
    batch.row_length = 16;
    batch.tokens = draw_tokens(random, 32);
    batch.ends.assign(32, 16);
    for (int i = 0; i < 32; i++) {
        batch.positions.push_back(i % 16);
        if (i % 16 == 15) continue;
        batch.sources.push_back(i);
        batch.targets.push_back(batch.tokens[size_t(i) + 1]);
    }
    run_job(engine, [&] { engine.trainer().forward(batch, true); });
    run_job(engine, [&] {
        const size_t count = batch.targets.size();
        engine.trainer().backward({std::vector<float>(count, 0.01f), std::vector<float>(count, 0.0f), {}});
    });
    run_job(engine, [&] {
        engine.trainer().step(AdamW());
        steps++;
    });
    run_job(engine, [&] {
        const std::string name = engine.model().adapter() ? "blk.0.attn_q.weight.lora_b" : "output.weight";
        engine.trainer().write_tensor(name, "value", engine.trainer().read_tensor(name, "value"));
    });
    std::promise<void> flushed;
    engine.scheduler().flush([&] { flushed.set_value(); });
    flushed.get_future().wait();
    if (between(random, 0, 3) == 0)
        run_job(engine, [&] { save_adapter(engine.model(), folder + "/races-adapter.gguf"); });
}

void look(Engine & engine, std::mt19937 & random) {
    engine.scheduler().stats();
    engine.model().detokenize(engine.model().tokenize("What is 12 + 7?", true), true);
    engine.trainer().tensors();
    engine.trainer().set_step_count(engine.trainer().step_count() + 1);
    engine.trainer().kept_layers();
    start_runtime();
    if (between(random, 0, 20) == 0) engine.abort_training();
    std::this_thread::sleep_for(std::chrono::milliseconds(between(random, 0, 5)));
}

// One engine from load to close; the last requests are in flight when it closes.
void run_engine(const std::string & path, Clock::time_point end) {
    EngineOptions options;
    options.model.path = path;
    options.model.device = "cpu";
    // ggml's own threads meet at barriers that ThreadSanitizer cannot see (kernel_parts.h).
    options.model.threads = 1;
    options.model.trainable = Trainable::lora;
    options.model.lora = LoraOptions();
    options.scheduler.context_size = 128;
    options.scheduler.max_sequences = 3;
    options.scheduler.swap_bytes = 300000;
    Engine engine(options);
    std::atomic<bool> stopping{false};
    std::vector<std::thread> threads;
    const auto start = [&](unsigned seed, auto work) {
        threads.emplace_back([&, seed, work] {
            std::mt19937 random(seed);
            while (!stopping) work(random);
        });
    };
    for (unsigned i = 0; i < 3; i++) start(i, [&](std::mt19937 & random) { converse(engine, random); });
    for (unsigned i = 3; i < 6; i++) start(i, [&](std::mt19937 & random) { converse_by_version(engine, random); });
    start(10, [&](std::mt19937 & random) { train(engine, random, path.substr(0, path.rfind('/') + 1)); });
    start(11, [&](std::mt19937 & random) { look(engine, random); });
    while (Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    stopping = true;
    for (auto & thread : threads) thread.join();
    accepted_drafts += long(engine.scheduler().stats().accepted_draft_tokens);
    for (int i = 0; i < 5; i++) {
        GenerateParams params;
        params.max_tokens = 100;
        engine.scheduler().submit(engine.scheduler().create_sequence(), {1, 2, 3}, params,
            [](const GenerateResult &) { requests++; }, nullptr);
    }
    engine.close();
}

}  // namespace

int main(int argc, char ** argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: engine_races <model.gguf> <seconds>\n"), 2;
    try {
        start_runtime();
        if (!check_kernel_parts()) return 1;
        const double seconds = std::atof(argv[2]);
        for (int i = 1; i <= 3; i++)
            run_engine(argv[1], Clock::now() + std::chrono::milliseconds(long(seconds * 1000 / 3)));
    } catch (const Error & error) {
        return std::fprintf(stderr, "%s: %s\n", error.subject().c_str(), error.what()), 1;
    }
    std::printf(
        "{\"requests\": %ld, \"aborted\": %ld, \"steps\": %ld, \"abortedJobs\": %ld, \"streamedBytes\": %ld, "
        "\"refused\": %ld, \"versions\": %ld, \"takeovers\": %ld, \"acceptedDrafts\": %ld}\n",
        requests.load(), aborted.load(), steps.load(), aborted_jobs.load(), streamed.load(), refused.load(),
        versions.load(), takeovers.load(), accepted_drafts.load());
    return failures > 0 ? 1 : 0;
}
