// row_kernel.h's loops. The including file defines CRIA_KERNEL_VECTOR (the type of a register) and CRIA_KERNEL_NAME.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "cpu/vectors.h"
#include "math/row_kernel.h"
#include "math/softmax.h"

namespace cria {

namespace {

using Vec = CRIA_KERNEL_VECTOR;

constexpr int kWidth = sizeof(Vec) / sizeof(float);
constexpr int kLanes = 16, kVectors = kLanes / kWidth;
constexpr int kBlock = 256;  // floats summed in single precision before they join the double

typedef uint32_t Bits __attribute__((vector_size(sizeof(Vec)), aligned(4)));

// Number of entries that exist in a vector: all, known to the compiler, or fewer at the end of a row.
using Whole = std::integral_constant<int, kWidth>;

CRIA_INLINE Vec load(const float * from, Whole) { return *reinterpret_cast<const Vec *>(from); }
CRIA_INLINE Vec load(const float * from, int count) {
    Vec entries;
    load_first(from, count, entries);
    return entries;
}

CRIA_INLINE void store(float * to, Vec value, Whole) { *reinterpret_cast<Vec *>(to) = value; }
CRIA_INLINE void store(float * to, Vec value, int count) { store_first(to, count, value); }

// The entries that exist; `other` for the rest.
CRIA_INLINE Vec keep(Vec value, float, Whole) { return value; }
CRIA_INLINE Vec keep(Vec value, float other, int count) {
    Vec places;
    for (int i = 0; i < kWidth; i++) places[i] = float(i);
    return places < splat<Vec>(float(count)) ? value : splat<Vec>(other);
}

// visit(i, v, count) for the entries [i, i + count) of [begin, end), which belong to vector v of the lanes.
template <typename Visit>
CRIA_INLINE void for_each_vector(int64_t begin, int64_t end, const Visit & visit) {
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; v++) visit(i + v * kWidth, v, Whole());
    }
    for (int v = 0; i < end; i += kWidth, v++) {
        if (i + kWidth <= end) visit(i, v, Whole());
        else visit(i, v, int(end - i));
    }
}

// Sixteen sums, each of every sixteenth entry.
struct Lanes {
    Vec v[kVectors] = {};

    CRIA_INLINE float total() const {
        Vec4 quarters[4];
        std::memcpy(quarters, v, sizeof v);
        const Vec4 sums = (quarters[0] + quarters[2]) + (quarters[1] + quarters[3]);
        return (sums[0] + sums[2]) + (sums[1] + sums[3]);
    }
};

// exp for x <= 0 within 2e-7 relative: 2^k e^r with |r| <= ln 2 / 2 and a degree-6 polynomial (Cephes expf's
// coefficients). Below -87 the result would be subnormal and is 0.
CRIA_INLINE Vec fast_exp(Vec x) {
    // Adding 1.5 * 2^23 rounds to the nearest integer, and leaves it in the lowest bits.
    const Vec integer = splat<Vec>(12582912.0f), shifted = fuse(x, splat<Vec>(1.44269504f), integer),
              k = shifted - integer;
    const Vec r = fuse(k, splat<Vec>(2.12194440e-4f), fuse(k, splat<Vec>(-0.693359375f), x));
    Vec p = splat<Vec>(1.9875691500e-4f);
    p = fuse(p, r, splat<Vec>(1.3981999507e-3f));
    p = fuse(p, r, splat<Vec>(8.3334519073e-3f));
    p = fuse(p, r, splat<Vec>(4.1665795894e-2f));
    p = fuse(p, r, splat<Vec>(1.6666665459e-1f));
    p = fuse(p, r, splat<Vec>(5.0000001201e-1f));
    p = fuse(p * r, r, r) + splat<Vec>(1.0f);
    // p lies in [0.7, 1.42] and p 2^k is no less than the smallest normal number: k is added to the exponent.
    const Vec power = Vec(Bits(p) + (Bits(shifted) << 23));
    const Vec least = splat<Vec>(-87.0f), tiny = x < least ? Vec{} : x;  // x if it is NaN
    return x >= least ? power : tiny;
}

// Lower bound for an argument of exp whose result is multiplied by it: 0 * -inf must not become NaN.
CRIA_INLINE Vec bound(Vec x) { return larger(splat<Vec>(-88.0f), x); }

float largest(const float * x, int n, float scale) {
    Vec best[kVectors];
    for (Vec & lanes : best) lanes = splat<Vec>(-INFINITY);
    for_each_vector(0, n, [&](int64_t i, int v, auto count) __attribute__((always_inline)) {
        best[v] = larger(keep(load(x + i, count) * splat<Vec>(scale), -INFINITY, count), best[v]);
    });
    float lanes[kLanes], largest = -INFINITY;
    std::memcpy(lanes, best, sizeof best);
    for (const float lane : lanes) largest = lane > largest ? lane : largest;
    return largest;
}

// exp(z - max) of some entries, 0 behind the row's end.
template <typename Count>
CRIA_INLINE Vec exp_at(const float * x, float scale, float max, Count count) {
    return keep(fast_exp(fuse(load(x, count), splat<Vec>(scale), splat<Vec>(-max))), 0.0f, count);
}

CRIA_INLINE float sum_block(const float * x, int begin, int end, float scale, float max) {
    Lanes sums;
    for_each_vector(begin, end, [&](int64_t i, int v, auto count) __attribute__((always_inline)) {
        sums.v[v] += exp_at(x + i, scale, max, count);
    });
    return sums.total();
}

CRIA_INLINE int end_of(int begin, int block, int n) { return begin + block < n ? begin + block : n; }

double sum_exp(const float * x, int n, float scale, float max) {
    double total = 0.0;
    for (int begin = 0; begin < n; begin += kBlock)
        total += double(sum_block(x, begin, end_of(begin, kBlock, n), scale, max));
    return total;
}

void exp_of(const float * x, int n, float scale, float offset, float * out) {
    for_each_vector(0, n, [&](int64_t i, int, auto count) __attribute__((always_inline)) {
        store(out + i, exp_at(x + i, scale, offset, count), count);
    });
}

float replace_by_exp(float * x, int n, float scale, float max) {
    Lanes sums;
    for_each_vector(0, n, [&](int64_t i, int v, auto count) __attribute__((always_inline)) {
        const Vec e = exp_at(x + i, scale, max, count);
        store(x + i, e, count);
        sums.v[v] += e;
    });
    return sums.total();
}

double replace_by_exp_times(float * x, int n, float scale, float max, double & weighted) {
    double total = 0.0;
    for (int begin = 0; begin < n; begin += kBlock) {
        Lanes sums, times;
        for_each_vector(
            begin, end_of(begin, kBlock, n), [&](int64_t i, int v, auto count) __attribute__((always_inline)) {
            const Vec shifted = bound(fuse(load(x + i, count), splat<Vec>(scale), splat<Vec>(-max)));
            const Vec e = keep(fast_exp(shifted), 0.0f, count);
            store(x + i, e, count);
            sums.v[v] += e;
            times.v[v] = fuse(e, shifted, times.v[v]);
        });
        total += double(sums.total());
        weighted += double(times.total());
    }
    return total;
}

void scale_row(float * x, int n, float factor) {
    for_each_vector(0, n, [&](int64_t i, int, auto count) __attribute__((always_inline)) {
        store(x + i, load(x + i, count) * splat<Vec>(factor), count);
    });
}

void backward(float * d, const float * p, int n, float scale, float delta) {
    for_each_vector(0, n, [&](int64_t i, int, auto count) __attribute__((always_inline)) {
        store(d + i, load(p + i, count) * (load(d + i, count) - splat<Vec>(delta)) * splat<Vec>(scale), count);
    });
}

void gradient(float * x, int n, float scale, float offset, float entropy, float c, float e) {
    for_each_vector(0, n, [&](int64_t i, int, auto count) __attribute__((always_inline)) {
        const Vec logprob = bound(fuse(load(x + i, count), splat<Vec>(scale), splat<Vec>(-offset)));
        const Vec slope = fuse(splat<Vec>(e), logprob + splat<Vec>(entropy), splat<Vec>(c));
        store(x + i, fast_exp(logprob) * slope * splat<Vec>(-scale), count);
    });
}

void swiglu_gradient(const float * gate, const float * up, const float * dy, float * d_gate, float * d_up, int64_t n) {
    const Vec one = splat<Vec>(1.0f);
    for_each_vector(0, n, [&](int64_t i, int, auto count) __attribute__((always_inline)) {
        const Vec x = load(gate + i, count), d = load(dy + i, count);
        // fast_exp takes no positive numbers: e^-|x| gives the sigmoid of either sign.
        const Vec e = fast_exp(x < Vec{} ? x : -x), sigmoid = (x < Vec{} ? e : one) / (one + e);
        store(d_up + i, d * x * sigmoid, count);
        store(d_gate + i, d * load(up + i, count) * sigmoid * fuse(x, one - sigmoid, one), count);
    });
}

// A clamped value has no gradient.
void clamped_gradient(const float * gate, const float * up, const float * dy, float * d_gate, float * d_up, int64_t n) {
    const Vec one = splat<Vec>(1.0f), limit = splat<Vec>(kGateLimit);
    for_each_vector(0, n, [&](int64_t i, int, auto count) __attribute__((always_inline)) {
        const Vec whole = load(gate + i, count), other = load(up + i, count), d = load(dy + i, count);
        const Vec x = whole > limit ? limit : whole, below = other > limit ? limit : other,
                  y = below < -limit ? -limit : below;
        // Fused with a zero for the reason of gelu_sigmoid.
        const Vec z = fuse(x, splat<Vec>(kGateSlope), Vec{}), e = fast_exp(z < Vec{} ? z : -z),
                  sigmoid = (z < Vec{} ? e : one) / (one + e);
        store(d_up + i, y == other ? d * x * sigmoid : Vec{}, count);
        store(d_gate + i, x == whole ? d * (y + one) * sigmoid * fuse(z, one - sigmoid, one) : Vec{}, count);
    });
}

CRIA_INLINE Vec gelu_sigmoid(Vec x) {
    // fast_exp adds z, so it is fused with a sum, of zero: kernels have no rounded products that are added.
    const Vec one = splat<Vec>(1.0f), z = fuse(x, fuse(x * x, splat<Vec>(kGeluD), splat<Vec>(kGeluC)), Vec{});
    const Vec e = fast_exp(z < Vec{} ? z : -z);
    return (z < Vec{} ? e : one) / (one + e);
}

void add_products(const float * x, const float * w, float * sum, int64_t n) {
    for_each_vector(0, n, [&](int64_t i, int, auto count) __attribute__((always_inline)) {
        store(sum + i, fuse(load(x + i, count), load(w + i, count), load(sum + i, count)), count);
    });
}

void geglu(const float * gate, const float * up, float * out, int64_t n) {
    for_each_vector(0, n, [&](int64_t i, int, auto count) __attribute__((always_inline)) {
        const Vec x = load(gate + i, count);
        store(out + i, x * gelu_sigmoid(x) * load(up + i, count), count);
    });
}

void geglu_gradient(const float * gate, const float * up, const float * dy, float * d_gate, float * d_up, int64_t n) {
    const Vec one = splat<Vec>(1.0f);
    for_each_vector(0, n, [&](int64_t i, int, auto count) __attribute__((always_inline)) {
        const Vec x = load(gate + i, count), d = load(dy + i, count), sigmoid = gelu_sigmoid(x);
        const Vec slope = x * fuse(x * x, splat<Vec>(3.0f * kGeluD), splat<Vec>(kGeluC));
        store(d_up + i, d * x * sigmoid, count);
        store(d_gate + i, d * load(up + i, count) * sigmoid * fuse(slope, one - sigmoid, one), count);
    });
}

float exp_of_any(float x) {
    const Vec e = fast_exp(splat<Vec>(x < 0.0f ? x : -x));
    return x < 0.0f ? e[0] : 1.0f / e[0];
}

// Both loops take four rows of the state at a time, so that sums over rows stay in registers for as long. Sums are in
// the rows' order.
constexpr int kStateRows = 4;

void state_step(float * state, const StateToken & t, float * out) {
    const int rows = t.key_size, n = t.value_size;
    const Vec decay = splat<Vec>(exp_of_any(t.log_decay)), beta = splat<Vec>(t.beta);
    float change[kMostState] = {};  // what the state holds of this key, and then what is added to it
    for (int a = 0; a < rows; a += kStateRows) {
        float * first = state + a * n;
        for_each_vector(0, n, [&](int64_t b, int, auto count) __attribute__((always_inline)) {
            Vec sum = load(change + b, count);
#pragma GCC unroll 4
            for (int r = 0; r < kStateRows; r++) {
                const Vec kept = load(first + r * n + b, count) * decay;
                store(first + r * n + b, kept, count);
                sum = fuse(splat<Vec>(t.k[a + r]), kept, sum);
            }
            if (t.corrects) store(change + b, sum, count);
        });
    }
    for_each_vector(0, n, [&](int64_t b, int, auto count) __attribute__((always_inline)) {
        store(change + b, beta * (load(t.v + b, count) - load(change + b, count)), count);
        store(out + b, Vec{}, count);
    });
    for (int a = 0; a < rows; a += kStateRows) {
        float * first = state + a * n;
        for_each_vector(0, n, [&](int64_t b, int, auto count) __attribute__((always_inline)) {
            const Vec added = load(change + b, count);
            Vec sum = load(out + b, count);
#pragma GCC unroll 4
            for (int r = 0; r < kStateRows; r++) {
                const Vec next = fuse(splat<Vec>(t.k[a + r]), added, load(first + r * n + b, count));
                store(first + r * n + b, next, count);
                sum = fuse(splat<Vec>(t.q[a + r]), next, sum);
            }
            store(out + b, sum, count);
        });
    }
}

// With P = decay * before, u = P^T k if the rule corrects, else 0, and c = beta (v - u): the state is P + k c^T and the
// output its product with q.
void state_gradient(
    const float * before, const StateToken & t, const float * d_out, float * d_state, StateTokenGradient & d) {
    const int rows = t.key_size, n = t.value_size;
    const Vec decay = splat<Vec>(exp_of_any(t.log_decay)), beta = splat<Vec>(t.beta),
              d_beta = t.corrects ? -beta : Vec{};
    float change[kMostState] = {}, d_change[kMostState] = {}, by_row[kMostState];
    for (int a = 0; a < rows; a++) {
        Lanes products;
        const Vec q = splat<Vec>(t.q[a]), k = splat<Vec>(t.k[a]);
        for_each_vector(0, n, [&](int64_t b, int v, auto count) __attribute__((always_inline)) {
            const Vec kept = load(before + a * n + b, count) * decay, dy = load(d_out + b, count);
            const Vec d_next = fuse(q, dy, load(d_state + a * n + b, count));
            store(d_state + a * n + b, d_next, count);
            if (t.corrects) store(change + b, fuse(k, kept, load(change + b, count)), count);
            store(d_change + b, fuse(k, d_next, load(d_change + b, count)), count);
            products.v[v] = fuse(kept, dy, products.v[v]);
        });
        by_row[a] = products.total();
    }
    Lanes of_beta, outputs;
    for_each_vector(0, n, [&](int64_t b, int v, auto count) __attribute__((always_inline)) {
        const Vec missing = load(t.v + b, count) - load(change + b, count), d_added = load(d_change + b, count),
                  added = beta * missing;
        of_beta.v[v] = fuse(d_added, missing, of_beta.v[v]);
        outputs.v[v] = fuse(added, load(d_out + b, count), outputs.v[v]);
        store(change + b, added, count);
        store(d.v + b, beta * d_added, count);
        store(d_change + b, d_beta * d_added, count);  // of u
    });
    d.beta = of_beta.total();
    const float output = outputs.total();
    Lanes of_decay;
    for (int a = 0; a < rows; a++) {
        Lanes products;
        const Vec k = splat<Vec>(t.k[a]);
        for_each_vector(0, n, [&](int64_t b, int v, auto count) __attribute__((always_inline)) {
            const Vec kept = load(before + a * n + b, count) * decay, d_next = load(d_state + a * n + b, count),
                      d_u = load(d_change + b, count);
            products.v[v] = fuse(d_next, load(change + b, count), products.v[v]);
            products.v[v] = fuse(kept, d_u, products.v[v]);
            const Vec d_kept = fuse(k, d_u, d_next);
            of_decay.v[v] = fuse(d_kept, kept, of_decay.v[v]);
            store(d_state + a * n + b, d_kept * decay, count);
        });
        d.k[a] += products.total();
        d.q[a] += fuse(k, splat<Vec>(output), splat<Vec>(by_row[a]))[0];
    }
    d.log_decay = of_decay.total();
}

}  // namespace

const RowKernel CRIA_KERNEL_NAME = {largest, sum_exp, exp_of, replace_by_exp, replace_by_exp_times, scale_row,
    add_products, backward, gradient, swiglu_gradient, clamped_gradient, geglu, geglu_gradient, state_step,
    state_gradient};

}  // namespace cria
