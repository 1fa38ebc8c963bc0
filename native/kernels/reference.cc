#include "reference.h"

#include <cmath>
#include <vector>

namespace cria_reference {

namespace {

std::vector<double> log_softmax(const float * z, int count, double scale) {
    double max = -INFINITY, sum = 0.0;
    for (int j = 0; j < count; j++) max = std::max(max, scale * z[j]);
    for (int j = 0; j < count; j++) sum += std::exp(scale * z[j] - max);
    std::vector<double> log_p(size_t(count), 0.0);
    for (int j = 0; j < count; j++) log_p[size_t(j)] = scale * z[j] - max - std::log(sum);
    return log_p;
}

double entropy_of(const std::vector<double> & log_p) {
    double entropy = 0.0;
    for (const double l : log_p) entropy -= l > -INFINITY ? std::exp(l) * l : 0.0;
    return entropy;
}

bool sees(const cria_attention & t, int64_t base, int query, int key) {
    return key <= query && query < t.ends[base + key];
}

double dot(const float * a, const float * b, int count) {
    double sum = 0.0;
    for (int d = 0; d < count; d++) sum += double(a[d]) * double(b[d]);
    return sum;
}

// Probabilities of one query over the row's keys; all 0 when it sees none.
std::vector<double> probabilities(const cria_attention & t, int64_t base, int query, int head, double * log_sum) {
    const int kv = head / (t.heads / t.kv_heads);
    const float * q = t.q + (base + query) * t.q_step + head * t.head_size;
    std::vector<double> p(size_t(t.row_length), -INFINITY);
    double max = -INFINITY, sum = 0.0;
    for (int key = 0; key < t.row_length; key++) {
        if (!sees(t, base, query, key)) continue;
        p[size_t(key)] = t.scale * dot(q, t.k + (base + key) * t.k_step + kv * t.head_size, t.head_size);
        max = std::max(max, p[size_t(key)]);
    }
    for (double & x : p) sum += x = max > -INFINITY ? std::exp(x - max) : 0.0;
    for (double & x : p) x = sum > 0 ? x / sum : 0.0;
    *log_sum = sum > 0 ? max + std::log(sum) : 0.0;
    return p;
}

}  // namespace

void logprobs(const cria_logit_rows & rows, float * logprobs, float * entropy) {
    for (int i = 0; i < rows.rows; i++) {
        const auto log_p = log_softmax(rows.logits + i * rows.step, rows.vocabulary, rows.scale);
        logprobs[i] = float(log_p[size_t(rows.targets[i])]);
        entropy[i] = float(entropy_of(log_p));
    }
}

void logit_gradient(const cria_logit_rows & rows, const float * d_logprobs, const float * d_entropy) {
    for (int i = 0; i < rows.rows; i++) {
        float * z = rows.logits + i * rows.step;
        const auto log_p = log_softmax(z, rows.vocabulary, rows.scale);
        const double entropy = entropy_of(log_p), c = d_logprobs[i], e = d_entropy[i];
        for (int j = 0; j < rows.vocabulary; j++) {
            const double l = log_p[size_t(j)], p = std::exp(l);
            z[j] =
                float(rows.scale * ((j == rows.targets[i] ? c : 0.0) - c * p - (p > 0 ? e * p * (l + entropy) : 0.0)));
        }
    }
}

void run_transposed_product(const cria_transposed_product & p, const float * weight) {
    std::vector<double> sums(size_t(p.inputs));
    for (int m = 0; m < p.tokens; m++) {
        sums.assign(size_t(p.inputs), 0.0);
        for (int k = 0; k < p.outputs; k++) {
            const double dy = p.dy[m * p.dy_step + k];
            for (int n = 0; n < p.inputs; n++) sums[size_t(n)] += dy * weight[int64_t(k) * p.inputs + n];
        }
        for (int n = 0; n < p.inputs; n++) p.dx[int64_t(m) * p.inputs + n] = float(sums[size_t(n)]);
    }
}

void run_attention(const cria_attention & t) {
    for (int row = 0; row < t.rows; row++) {
        const int64_t base = int64_t(row) * t.row_length;
        for (int query = 0; query < t.row_length; query++) {
            for (int head = 0; head < t.heads; head++) {
                double log_sum = 0.0;
                const auto p = probabilities(t, base, query, head, &log_sum);
                const float * v = t.v + base * t.v_step + head / (t.heads / t.kv_heads) * t.head_size;
                for (int d = 0; d < t.head_size; d++) {
                    double sum = 0.0;
                    for (int key = 0; key < t.row_length; key++) sum += p[size_t(key)] * v[key * t.v_step + d];
                    t.out[(base + query) * t.out_step + head * t.head_size + d] = float(sum);
                }
                t.log_sums[(base + query) * t.log_sums_step + head] = float(log_sum);
            }
        }
    }
}

void run_attention_backward(const cria_attention & t, const cria_attention_gradients & g) {
    const int D = t.head_size, group = t.heads / t.kv_heads;
    const size_t tokens = size_t(t.rows) * size_t(t.row_length);
    std::vector<double> d_k(tokens * size_t(t.kv_heads * D)), d_v(d_k.size());
    for (int row = 0; row < t.rows; row++) {
        const int64_t base = int64_t(row) * t.row_length;
        for (int query = 0; query < t.row_length; query++) {
            for (int head = 0; head < t.heads; head++) {
                const int kv = head / group;
                double log_sum = 0.0;
                const auto p = probabilities(t, base, query, head, &log_sum);
                const float * q = t.q + (base + query) * t.q_step + head * D;
                const float * d_out = g.d_out + (base + query) * g.d_out_step + head * D;
                std::vector<double> d_p(size_t(t.row_length)), d_q(size_t(D), 0.0);
                double delta = 0.0;
                for (int key = 0; key < t.row_length; key++) {
                    d_p[size_t(key)] = dot(d_out, t.v + (base + key) * t.v_step + kv * D, D);
                    delta += p[size_t(key)] * d_p[size_t(key)];
                }
                for (int key = 0; key < t.row_length; key++) {
                    const double ds = t.scale * p[size_t(key)] * (d_p[size_t(key)] - delta);
                    const size_t at = size_t((base + key) * t.kv_heads + kv) * size_t(D);
                    for (int d = 0; d < D; d++) {
                        d_q[size_t(d)] += ds * t.k[(base + key) * t.k_step + kv * D + d];
                        d_k[at + size_t(d)] += ds * q[d];
                        d_v[at + size_t(d)] += p[size_t(key)] * d_out[d];
                    }
                }
                for (int d = 0; d < D; d++) g.d_q[(base + query) * g.d_q_step + head * D + d] = float(d_q[size_t(d)]);
            }
        }
    }
    for (size_t token = 0; token < tokens; token++) {
        for (int i = 0; i < t.kv_heads * D; i++) {
            g.d_k[int64_t(token) * g.d_k_step + i] = float(d_k[token * size_t(t.kv_heads * D) + size_t(i)]);
            g.d_v[int64_t(token) * g.d_v_step + i] = float(d_v[token * size_t(t.kv_heads * D) + size_t(i)]);
        }
    }
}

}  // namespace cria_reference
