// Checks every kernel against its CPU reference, and on a GPU times it. Compiled by nvcc it runs on a GPU, by a C++
// compiler in the emulation (cuda_emulation.h). Prints one line of JSON for each case; exit code 1 when any is outside
// its tolerance.
//   check_kernels [--time]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cria_kernels.h"
#include "ggml.h"
#include "platform.cuh"
#include "reference.h"

namespace {

std::mt19937 generator(7);
bool timed = false, failed = false;

std::vector<float> normals(size_t count, float scale = 1.0f) {
    std::normal_distribution<float> normal(0.0f, scale);
    std::vector<float> values(count);
    for (float & x : values) x = normal(generator);
    return values;
}

// Device memory with guard words around it, which detect writes outside an array.
template <class T>
class OnDevice {
   public:
    explicit OnDevice(const std::vector<T> & values) : count_(values.size()) {
        std::vector<uint8_t> bytes(count_ * sizeof(T) + 2 * kFrame, kMark);
        std::memcpy(bytes.data() + kFrame, values.data(), count_ * sizeof(T));
        cudaMalloc(reinterpret_cast<void **>(&memory_), bytes.size());
        cudaMemcpy(memory_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    }
    // NaN until something is written.
    explicit OnDevice(size_t count) : OnDevice(std::vector<T>(count, T(NAN))) {}
    ~OnDevice() { cudaFree(memory_); }
    OnDevice(const OnDevice &) = delete;
    T * data() const { return reinterpret_cast<T *>(memory_ + kFrame); }
    std::vector<T> read() const {
        std::vector<uint8_t> bytes(count_ * sizeof(T) + 2 * kFrame);
        cudaMemcpy(bytes.data(), memory_, bytes.size(), cudaMemcpyDeviceToHost);
        for (size_t i = 0; i < kFrame; i++) {
            if (bytes[i] != kMark || bytes[bytes.size() - 1 - i] != kMark) {
                std::printf("{\"error\":\"a kernel wrote outside of its output\"}\n");
                failed = true;
                break;
            }
        }
        std::vector<T> values(count_);
        std::memcpy(values.data(), bytes.data() + kFrame, count_ * sizeof(T));
        return values;
    }

   private:
    static constexpr size_t kFrame = 256;
    static constexpr uint8_t kMark = 0xa5;
    size_t count_;
    uint8_t * memory_ = nullptr;
};

// || ours - reference || / || reference ||; NaN and unwritten values stay visible.
double difference(const std::vector<float> & ours, const std::vector<float> & reference) {
    double above = 0.0, below = 0.0;
    for (size_t i = 0; i < reference.size(); i++) {
        above += std::pow(double(ours[i]) - double(reference[i]), 2);
        below += std::pow(double(reference[i]), 2);
    }
    return std::sqrt(above / (below + 1e-30));
}

void require(const char * error) {
    if (!error) error = cria_kernels_wait();
    if (!error) return;
    std::printf("{\"error\":\"%s\"}\n", error);
    std::exit(1);
}

void report(const std::string & name, double error, double tolerance) {
    const bool good = error <= tolerance;
    failed = failed || !good;
    std::printf("{\"kernel\":\"%s\",\"error\":%.3g,\"tolerance\":%.3g,\"ok\":%s}\n", name.c_str(), error, tolerance,
        good ? "true" : "false");
    std::fflush(stdout);
}

// Prints the median milliseconds of one call, and the rate: `work` in 1e9 units per second.
template <class Call>
void time_call(const std::string & name, double work, const char * unit, Call call) {
    std::vector<double> times;
    for (int i = 0; i < 13; i++) {
        const auto start = std::chrono::steady_clock::now();
        require(call());
        times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(times.begin() + 3, times.end());
    const double median = times[8];
    std::printf("{\"kernel\":\"%s\",\"ms\":%.4f,\"rate\":%.1f,\"unit\":\"%s\"}\n", name.c_str(), median,
        work / median * 1e3, unit);
    std::fflush(stdout);
}

void check_softmax(int rows, int vocabulary, float scale, float spread) {
    const std::string name = std::to_string(rows) + " x " + std::to_string(vocabulary);
    std::vector<float> logits = normals(size_t(rows) * size_t(vocabulary), spread);
    std::vector<int32_t> targets;
    for (int i = 0; i < rows; i++) targets.push_back(int32_t(generator() % unsigned(vocabulary)));
    // One logit far above the others, one impossible token.
    logits[size_t(vocabulary / 2)] = 60.0f;
    logits[size_t(vocabulary) - 1] = -INFINITY;
    targets[0] = vocabulary / 3;
    const std::vector<float> c = normals(size_t(rows)), e = normals(size_t(rows), 0.3f);
    const OnDevice<float> z(logits), on_c(c), on_e(e), logprobs(static_cast<size_t>(rows)),
        entropy(static_cast<size_t>(rows));
    const OnDevice<int32_t> on_targets(targets);
    const cria_logit_rows given{z.data(), vocabulary, rows, vocabulary, scale, on_targets.data()};
    require(cria_logprobs(&given, logprobs.data(), entropy.data()));
    require(cria_logit_gradient(&given, on_c.data(), on_e.data()));
    std::vector<float> want_logprobs(logprobs.read().size()), want_entropy(want_logprobs.size());
    const cria_logit_rows wanted{logits.data(), vocabulary, rows, vocabulary, scale, targets.data()};
    cria_reference::logprobs(wanted, want_logprobs.data(), want_entropy.data());
    cria_reference::logit_gradient(wanted, c.data(), e.data());
    report("logprobs " + name, difference(logprobs.read(), want_logprobs), 2e-6);
    report("entropy " + name, difference(entropy.read(), want_entropy), 2e-5);
    report("logit gradient " + name, difference(z.read(), logits), 2e-5);
}

void time_softmax(int rows, int vocabulary) {
    const std::string name = std::to_string(rows) + " x " + std::to_string(vocabulary);
    const OnDevice<float> z(normals(size_t(rows) * size_t(vocabulary))), weights(normals(size_t(rows))),
        out(size_t(2 * rows));
    const OnDevice<int32_t> targets(std::vector<int32_t>(size_t(rows), 5));
    const cria_logit_rows given{z.data(), vocabulary, rows, vocabulary, 1.0f, targets.data()};
    const double gigabytes = 4e-9 * rows * vocabulary;
    time_call(
        "logprobs " + name, gigabytes, "GB/s", [&] { return cria_logprobs(&given, out.data(), out.data() + rows); });
    // Two reads and a write: a row may leave the cache between its statistics and its gradient.
    time_call("logit gradient " + name, 3 * gigabytes, "GB/s",
        [&] { return cria_logit_gradient(&given, weights.data(), weights.data()); });
}

struct QuantizedWeight {
    std::vector<uint8_t> bytes;
    std::vector<float> values;  // the dequantized weights
    int64_t step;
};

QuantizedWeight quantize(ggml_type type, int inputs, int outputs) {
    std::vector<float> values = normals(size_t(inputs) * size_t(outputs), 1.0f / std::sqrt(float(inputs)));
    QuantizedWeight w{std::vector<uint8_t>(ggml_row_size(type, inputs) * size_t(outputs)), values,
        int64_t(ggml_row_size(type, inputs))};
    if (type == GGML_TYPE_F32) {
        std::memcpy(w.bytes.data(), values.data(), w.bytes.size());
    } else {
        ggml_quantize_chunk(type, values.data(), w.bytes.data(), 0, outputs, inputs, nullptr);
        ggml_get_type_traits(type)->to_float(w.bytes.data(), w.values.data(), int64_t(values.size()));
    }
    return w;
}

void check_product(ggml_type type, int tokens, int inputs, int outputs, int splits) {
    const QuantizedWeight w = quantize(type, inputs, outputs);
    const std::vector<float> dy = normals(size_t(tokens) * size_t(outputs));
    const OnDevice<uint8_t> weight(w.bytes);
    const OnDevice<float> on_dy(dy), dx(size_t(splits) * size_t(tokens) * size_t(inputs));
    cria_transposed_product p{
        int32_t(type), inputs, outputs, tokens, weight.data(), w.step, on_dy.data(), outputs, dx.data(), splits};
    require(cria_multiply_transposed(&p));
    std::vector<float> want(size_t(tokens) * size_t(inputs));
    p.dy = dy.data();
    p.dx = want.data();
    cria_reference::run_transposed_product(p, w.values.data());
    // Operands are rounded to 10 bits of mantissa: about 3e-4 of a sum of random products.
    report(std::string("dY W of ") + ggml_type_name(type) + " " + std::to_string(tokens) + " x " +
               std::to_string(outputs) + " x " + std::to_string(inputs) +
               (splits > 1 ? " in " + std::to_string(splits) + " parts" : ""),
        difference(dx.read(), want), 1e-3);
}

void time_product(ggml_type type, int tokens, int inputs, int outputs, int splits) {
    const QuantizedWeight w = quantize(type, inputs, outputs);
    const OnDevice<uint8_t> weight(w.bytes);
    const OnDevice<float> dy(normals(size_t(tokens) * size_t(outputs))),
        dx(size_t(splits) * size_t(tokens) * size_t(inputs));
    const cria_transposed_product p{
        int32_t(type), inputs, outputs, tokens, weight.data(), w.step, dy.data(), outputs, dx.data(), splits};
    time_call(std::string("dY W of ") + ggml_type_name(type) + " " + std::to_string(tokens) + " x " +
                  std::to_string(outputs) + " x " + std::to_string(inputs),
        2e-9 * tokens * inputs * outputs, "GFLOP/s", [&] { return cria_multiply_transposed(&p); });
}

// q, k, v as one array of columns that lie apart, outputs and log-sums as another, as the trainer keeps them.
struct AttentionCase {
    int rows, row_length, heads, kv_heads, head_size;
    int64_t tokens() const { return int64_t(rows) * row_length; }
    int64_t step() const { return int64_t(heads + 2 * kv_heads) * head_size; }
    int64_t out_step() const { return int64_t(heads) * (head_size + 1); }
    cria_attention describe(float * qkv, float * out, const int32_t * ends) const {
        const int64_t at_k = int64_t(heads) * head_size, at_v = at_k + int64_t(kv_heads) * head_size;
        return {head_size, heads, kv_heads, row_length, rows, 1.0f / std::sqrt(float(head_size)), ends, qkv, qkv + at_k,
            qkv + at_v, step(), step(), step(), out, out + at_k, out_step(), out_step()};
    }
    cria_attention_gradients gradients(const float * d_out, float * d_qkv) const {
        const int64_t at_k = int64_t(heads) * head_size, at_v = at_k + int64_t(kv_heads) * head_size,
                      wide = step() + heads;
        return {d_out, d_qkv, d_qkv + at_k, d_qkv + at_v, d_qkv + step(), int64_t(heads) * head_size, wide, wide, wide,
            wide};
    }
};

// The ends of a tree of tokens that branches in two, `levels` times in succession, in the places `begin` to `end`.
void fill_tree(int32_t * ends, int begin, int end, int levels) {
    const int shared = levels == 0 ? end : begin + (end - begin) * 2 / 5, second = (shared + 2 * end) / 3;
    for (int i = begin; i < shared; i++) ends[i] = end;
    if (levels == 0) return;
    fill_tree(ends, shared, second, levels - 1);
    fill_tree(ends, second, end, levels - 1);
}

// Rows of unequal length, each a tree.
std::vector<int32_t> make_ends(const AttentionCase & c, int levels) {
    std::vector<int32_t> ends(size_t(c.tokens()), 0);
    for (int row = 0; row < c.rows; row++) {
        const int length = c.row_length - row * c.row_length / (2 * c.rows);
        fill_tree(ends.data() + size_t(row) * size_t(c.row_length), 0, length, levels);
    }
    return ends;
}

void check_attention(const AttentionCase & c, int levels) {
    std::vector<float> qkv = normals(size_t(c.tokens() * c.step())),
                       d_out = normals(size_t(c.tokens()) * size_t(c.heads * c.head_size));
    const std::vector<int32_t> ends = make_ends(c, levels);
    const OnDevice<float> on_qkv(qkv), on_d_out(d_out), out(size_t(c.tokens() * c.out_step())),
        d_qkv(size_t(c.tokens() * (c.step() + c.heads)));
    const OnDevice<int32_t> on_ends(ends);
    const cria_attention ours = c.describe(on_qkv.data(), out.data(), on_ends.data());
    const cria_attention_gradients our_gradients = c.gradients(on_d_out.data(), d_qkv.data());
    require(cria_attention_forward(&ours));
    require(cria_attention_backward(&ours, &our_gradients));
    std::vector<float> want_out(out.read().size()), want_d(d_qkv.read().size()), got_d = d_qkv.read();
    const cria_attention theirs = c.describe(qkv.data(), want_out.data(), ends.data());
    const cria_attention_gradients their_gradients = c.gradients(d_out.data(), want_d.data());
    cria_reference::run_attention(theirs);
    cria_reference::run_attention_backward(theirs, their_gradients);
    const std::string name = std::to_string(c.rows) + " x " + std::to_string(c.row_length) + ", " +
                             std::to_string(c.heads) + "/" + std::to_string(c.kv_heads) + " heads of " +
                             std::to_string(c.head_size) +
                             (levels > 0 ? ", branching " + std::to_string(levels) + " times" : "");
    report("attention " + name, difference(out.read(), want_out), 2e-3);
    // Compares each part separately: an error in d_k must not hide behind d_q. The scratch memory behind them is not
    // compared.
    const int64_t wide = c.step() + c.heads, part_ends[] = {0, int64_t(c.heads) * c.head_size,
                                                 int64_t(c.heads + c.kv_heads) * c.head_size, c.step()};
    const char * const parts[] = {"d_q", "d_k", "d_v"};
    for (int part = 0; part < 3; part++) {
        std::vector<float> got, want;
        for (int64_t token = 0; token < c.tokens(); token++) {
            for (int64_t i = part_ends[part]; i < part_ends[part + 1]; i++) {
                got.push_back(got_d[size_t(token * wide + i)]);
                want.push_back(want_d[size_t(token * wide + i)]);
            }
        }
        report(std::string("attention ") + parts[part] + " " + name, difference(got, want), 3e-3);
    }
}

void time_attention(const AttentionCase & c) {
    const OnDevice<float> qkv(normals(size_t(c.tokens() * c.step()))),
        d_out(normals(size_t(c.tokens()) * size_t(c.heads * c.head_size)));
    const OnDevice<float> out(size_t(c.tokens() * c.out_step())), d_qkv(size_t(c.tokens() * (c.step() + c.heads)));
    const OnDevice<int32_t> ends(std::vector<int32_t>(size_t(c.tokens()), c.row_length));
    const cria_attention t = c.describe(qkv.data(), out.data(), ends.data());
    const cria_attention_gradients g = c.gradients(d_out.data(), d_qkv.data());
    const std::string name =
        std::to_string(c.rows) + " x " + std::to_string(c.row_length) + ", heads of " + std::to_string(c.head_size);
    // Half of S x S is seen; two products forward, five backward.
    const double product = 1e-9 * c.rows * c.row_length * c.row_length * c.heads * c.head_size;
    time_call("attention " + name, 2 * product, "GFLOP/s", [&] { return cria_attention_forward(&t); });
    time_call("attention backward " + name, 5 * product, "GFLOP/s", [&] { return cria_attention_backward(&t, &g); });
}

}  // namespace

int main(int argc, char ** argv) {
    timed = argc > 1 && std::strcmp(argv[1], "--time") == 0;
    require(cria_kernels_start(0));
    check_softmax(5, 1000, 1.0f, 2.0f);
    check_softmax(3, 77, 1.25f, 8.0f);
    check_softmax(2, 33000, 1.0f, 3.0f);
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
             GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K}) {
        check_product(type, 24, 512, 80, 1);
    }
    check_product(GGML_TYPE_Q8_0, 136, 96, 200, 1);
    check_product(GGML_TYPE_F32, 8, 40, 1000, 7);
    check_product(GGML_TYPE_Q4_K, 130, 256, 330, 40);
    check_attention({2, 72, 4, 2, 16}, 0);
    check_attention({2, 136, 4, 2, 64}, 1);
    check_attention({1, 100, 3, 1, 80}, 1);
    check_attention({1, 70, 2, 2, 128}, 0);
    check_attention({2, 136, 4, 2, 32}, 2);
    check_attention({1, 200, 2, 1, 64}, 3);
    if (timed) {
        time_softmax(512, 151936);
        for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K})
            time_product(type, 4096, 1024, 4096, 1);
        time_product(GGML_TYPE_Q8_0, 256, 896, 151936, 8);
        time_attention({4, 1024, 14, 2, 64});
        time_attention({2, 2048, 16, 8, 128});
    }
    return failed ? 1 : 0;
}
