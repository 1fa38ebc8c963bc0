#include "cria/trainer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>

#include "architecture.h"
#include "cria/error.h"
#include "llama-model.h"
#include "train/backward.h"
#include "train/compute.h"
#include "train/head.h"
#include "train/layer.h"
#include "train/parameters.h"
#include "train/tree_places.h"
#include "train/value_head.h"

namespace cria {

namespace {

void flag_output(ggml_tensor * tensor) {
    if (!tensor) return;
    ggml_set_output(tensor);
    if (tensor->view_src) ggml_set_output(tensor->view_src);
}

// A layer's forward graph whose activations stay in memory until the next use of the tape.
struct Tape {
    AllocatorPtr allocator;
    std::optional<Graph> graph;
    LayerActivations activations{};
};

ggml_tensor * leaf(Graph & g, ggml_tensor * t) { return t ? g.ref(t) : nullptr; }

LayerActivations as_leaves(Graph & g, const LayerActivations & a) {
    const auto leaf = [&](ggml_tensor * t) { return cria::leaf(g, t); };
    const AttentionState & t = a.attention;
    const ConvolutionState & v = a.convolution;
    const DeltaState & d = a.delta;
    const MambaState & m = a.mamba;
    const ExpertState & e = a.experts;
    return {leaf(a.attn_in), leaf(a.query_in), leaf(a.q_raw), leaf(a.k_raw), leaf(a.query_gate),
        {leaf(t.q), leaf(t.k), leaf(t.v), leaf(t.out), leaf(t.kept)}, {leaf(v.gates), leaf(v.conv), leaf(v.out)},
        {leaf(d.mixed), leaf(d.conv), leaf(d.gate), leaf(d.alpha), leaf(d.beta), leaf(d.rule), leaf(d.out)},
        {leaf(m.projected), leaf(m.conv), leaf(m.rule), leaf(m.out)}, leaf(a.attn_raw), leaf(a.residual),
        leaf(a.ffn_in), leaf(a.gate), leaf(a.up), leaf(a.ffn_mid),
        {{leaf(e.choice.experts), leaf(e.choice.rows)}, leaf(e.weights), leaf(e.gate), leaf(e.up), leaf(e.mid)},
        leaf(a.ffn_raw)};
}

void require(bool condition, const char * what) {
    if (!condition) throw Error("bad-batch", what).subject("micro-batch");
}

}  // namespace

// Adjacent tokens of a micro-batch that are vectors of images.
struct VectorRun {
    int64_t start;
    std::vector<int32_t> ids;
};

// The state of one micro-batch between forward and backward.
struct Session {
    BatchShape shape{};
    bool kept = false;
    int first_kept_layer = 0;
    std::unique_ptr<TensorPool> pool;
    AttentionPlan plan, last_plan;                // visibility on the CPU; in the last layer, if it has `wanted`
    AttentionPlan window_plan;                    // in layers with a window
    StatePlan state_plan;                         // of layers with a state
    ggml_tensor * ends = nullptr;                 // the same for kernels: [T]
    ggml_tensor * mask = nullptr;                 // and for ggml's operations: [S, S, 1, 1 or B]
    ggml_tensor * window_mask = nullptr;          // in layers with a window
    ggml_tensor * positions = nullptr;            // [T], or [4T]: see LayerInputs
    ggml_tensor * ancestors = nullptr;            // [T, taps - 1]: see LayerInputs
    ggml_tensor *query_scales = nullptr, *wanted_scales = nullptr;  // [1, 1, T] and [1, 1, Q]: see LayerInputs
    ggml_tensor *tokens = nullptr, *sources = nullptr;  // sources: columns of the last output
    // Tokens whose last output is read, [Q], and their positions, [Q] or [4Q]: null if the last layer computes all
    // tokens.
    ggml_tensor *wanted = nullptr, *wanted_positions = nullptr;
    std::vector<ggml_tensor *> x;  // input of each layer [d, T], then the last output [d, Q]
    ggml_tensor *picked = nullptr,
                *d_picked = nullptr;  // hidden states that predict targets [d, R], and their gradient
    ggml_tensor *dy = nullptr, *d_last = nullptr;  // [d, T]; for the last output [d, Q]
    std::vector<VectorRun> vectors;
    ScoredTokens scored;
};

struct Trainer::Impl {
    std::shared_ptr<Model> model;
    TrainerOptions options;
    const Architecture & arch;
    const TokenPlaces places;
    Compute compute;
    ParameterSet parameters;
    Head head;
    ValueHead value_head;
    AllocatorPtr scratch;
    std::vector<Tape> tapes;
    Session session;
    std::atomic<int> kept_layers{0};  // in the last forward; read from any thread, also during one

    Impl(std::shared_ptr<Model> m, const TrainerOptions & o)
        : model(std::move(m)), options(o), arch(*model->architecture()), places(model->llama(), model->vectors()),
          compute(*model), parameters(*model, compute, o.value_head), head(arch, parameters),
          value_head(arch, parameters), scratch(compute.make_allocator()), tapes(size_t(arch.n_layer)) {
        if (!compute.notice.empty()) model->notice = compute.notice;
        if (!compute.on_cpu()) check_device();
    }

    // Checks, before any computation, that the device holds all weights and has every operation of a training step.
    void check_device() {
        const char * what = arch.experts_used > 0        ? "experts"
                            : arch.state.value_heads > 0 ? "layers with a state in place of attention"
                            : arch.layers.front().sinks  ? "sinks of attention"
                                                         : nullptr;
        if (what) {
            throw Error("unsupported-architecture", std::string(what) + " train on the CPU only")
                .subject(model->options().path)
                .received(ggml_backend_name(compute.backend()))
                .remedy("train on the CPU (device \"cpu\")");
        }
        for (const auto & [name, tensor] : model->weights()) {
            if (ggml_backend_supports_buft(compute.backend(), ggml_backend_buffer_get_type(tensor->buffer))) continue;
            throw Error("weights-elsewhere", "training needs all weights on one device")
                .subject(name)
                .expected(ggml_backend_name(compute.backend()))
                .received(ggml_backend_buffer_name(tensor->buffer))
                .remedy("leave gpuLayers out, or train on the CPU (device \"cpu\")");
        }
        // A whole step whose graphs are not run. It has two branches, because their graphs are larger.
        MicroBatch batch;
        batch.rows = 1;
        batch.row_length = 8;
        batch.tokens = batch.positions = std::vector<int32_t>(8, 0);
        batch.ends = {8, 8, 8, 8, 6, 6, 8, 8};
        batch.sources = batch.targets = {0, 4};
        compute.only_ask = true;
        forward(batch, true, {});
        backward({{0, 0}, {0, 0}, {}});
        parameters.step(AdamW{}, compute);
        compute.only_ask = false;
        parameters.step_count = 0;
        session = Session{};
        tapes = std::vector<Tape>(size_t(arch.n_layer));
    }

    void check(const MicroBatch & b) const {
        const size_t n = size_t(b.rows) * size_t(b.row_length);
        require(b.rows > 0 && b.row_length > 0, "has no tokens");
        require(b.tokens.size() == n && b.positions.size() == n && b.ends.size() == n, "has arrays of unequal length");
        require(b.sources.size() == b.targets.size() && !b.sources.empty(), "has no scored tokens");
        require(b.candidates.size() % b.targets.size() == 0, "has not as many candidates for each target");
        require(std::isfinite(b.temperature) && b.temperature > 0, "needs a positive temperature");
        const int64_t n_ids = arch.n_vocab + int64_t(b.vectors.size());
        for (const int32_t t : b.tokens) require(t >= 0 && t < n_ids, "has a token outside the vocabulary");
        for (const int32_t id : b.vectors) require(model->vectors().is_vector(id), "has a token for a vector");
        for (const int32_t t : b.targets) require(t >= 0 && t < arch.n_vocab, "has a target outside the vocabulary");
        for (const int32_t t : b.candidates)
            require(t >= 0 && t < arch.n_vocab, "has a candidate outside the vocabulary");
        check_trees(b);
        for (const int32_t s : b.sources)
            require(s >= 0 && size_t(s) < n && b.ends[size_t(s)] > 0, "has a source outside its rows");
        for (const int32_t p : b.positions) require(p >= 0, "has a negative position");
    }

    // Checks that the ends of each row form a depth-first tree, followed by padding.
    static void check_trees(const MicroBatch & b) {
        std::vector<int32_t> open;  // ends of the tokens that the next one continues, the innermost last
        for (int64_t row = 0; row < b.rows; row++) {
            const int32_t * ends = b.ends.data() + row * b.row_length;
            const int32_t length = int32_t(std::find(ends, ends + b.row_length, 0) - ends);
            open.assign(1, length);
            for (int32_t i = 0; i < length; i++) {
                while (open.back() <= i) open.pop_back();
                require(
                    ends[i] > i && ends[i] <= open.back(), "has a token that ends before itself or behind its parent");
                if (ends[i] < open.back()) open.push_back(ends[i]);
            }
            for (int32_t i = length; i < b.row_length; i++) require(ends[i] == 0, "has a token behind padding");
        }
    }

    void start_session(const MicroBatch & b) {
        session = Session{};
        Session & s = session;
        s.shape = {b.row_length, b.rows};
        s.scored = {b.targets, b.candidates, b.temperature, b.adapter};
        const int64_t d = arch.n_embd, T = s.shape.tokens(), R = int64_t(b.targets.size()), S = b.row_length;
        const bool branches = has_branches(b);
        const std::vector<int32_t> positions = place_trees(b, int32_t(arch.n_vocab), places);
        const int64_t dimensions = int64_t(positions.size()) / T;
        s.pool = std::make_unique<TensorPool>(size_t(arch.n_layer) + 17);
        s.tokens = s.pool->add(GGML_TYPE_I32, {T});
        s.sources = s.pool->add(GGML_TYPE_I32, {R});
        s.positions = s.pool->add(GGML_TYPE_I32, {dimensions * T});
        if (arch.conv_taps > 1) s.ancestors = s.pool->add(GGML_TYPE_I32, {T, arch.conv_taps - 1});
        if (arch.query_step > 0) s.query_scales = s.pool->add(GGML_TYPE_F32, {1, 1, T});
        std::vector<int32_t> wanted = b.sources, sources = b.sources;
        std::sort(wanted.begin(), wanted.end());
        wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
        // DeepStack adds vectors to all columns of a layer's output, so the last layer must not be one of its layers.
        const bool trims = compute.on_cpu() && int64_t(wanted.size()) < T && arch.n_deepstack < arch.n_layer;
        const int64_t Q = trims ? int64_t(wanted.size()) : T;
        if (trims) {
            s.wanted = s.pool->add(GGML_TYPE_I32, {Q});
            s.wanted_positions = s.pool->add(GGML_TYPE_I32, {dimensions * Q});
            if (s.query_scales) s.wanted_scales = s.pool->add(GGML_TYPE_F32, {1, 1, Q});
            s.last_plan = plan_attention(b.ends, b.rows, S, arch.layers.back().math.window, &wanted);
            for (int32_t & source : sources)
                source = int32_t(std::lower_bound(wanted.begin(), wanted.end(), source) - wanted.begin());
        }
        if (compute.on_cpu()) {
            s.plan = plan_attention(b.ends, b.rows, S, 0);
            if (arch.window > 0) s.window_plan = plan_attention(b.ends, b.rows, S, arch.window);
            if (arch.state.value_heads > 0) s.state_plan = plan_states(b.ends, b.rows, S);
        } else if (is_blockwise(compute, arch)) {
            s.ends = s.pool->add(GGML_TYPE_I32, {T});
        } else {
            s.mask = s.pool->add(GGML_TYPE_F32, {S, S, 1, branches ? s.shape.rows : 1});
            if (arch.window > 0) s.window_mask = s.pool->add(GGML_TYPE_F32, {S, S, 1, branches ? s.shape.rows : 1});
        }
        for (int64_t i = 0; i <= arch.n_layer; i++)
            s.x.push_back(s.pool->add(GGML_TYPE_F32, {d, i < arch.n_layer ? T : Q}));
        s.picked = s.pool->add(GGML_TYPE_F32, {d, R});
        s.d_picked = s.pool->add(GGML_TYPE_F32, {d, R});
        s.dy = s.pool->add(GGML_TYPE_F32, {d, T});
        s.d_last = trims ? s.pool->add(GGML_TYPE_F32, {d, Q}) : s.dy;
        s.pool->allocate(compute, "the layers' inputs");
        const std::vector<int32_t> tokens = take_vectors(b);
        ggml_backend_tensor_set(s.tokens, tokens.data(), 0, size_t(T) * 4);
        ggml_backend_tensor_set(s.positions, positions.data(), 0, positions.size() * sizeof(int32_t));
        ggml_backend_tensor_set(s.sources, sources.data(), 0, size_t(R) * 4);
        if (s.query_scales) write_scales(s.query_scales, positions);
        if (s.ancestors) {
            const std::vector<int32_t> ancestors = find_ancestors(b, arch.conv_taps - 1);
            ggml_backend_tensor_set(s.ancestors, ancestors.data(), 0, ancestors.size() * sizeof(int32_t));
        }
        if (trims) {
            std::vector<int32_t> picked;
            picked.reserve(size_t(dimensions * Q));
            for (int64_t i = 0; i < dimensions; i++) {
                for (const int32_t token : wanted) picked.push_back(positions[size_t(i * T + token)]);
            }
            ggml_backend_tensor_set(s.wanted, wanted.data(), 0, size_t(Q) * 4);
            ggml_backend_tensor_set(s.wanted_positions, picked.data(), 0, picked.size() * sizeof(int32_t));
            if (s.wanted_scales) write_scales(s.wanted_scales, picked);
        }
        if (s.ends) ggml_backend_tensor_set(s.ends, b.ends.data(), 0, size_t(T) * 4);
        if (s.mask) fill_mask(b, branches, s.mask, 0);
        if (s.window_mask) fill_mask(b, branches, s.window_mask, arch.window);
    }

    void write_scales(ggml_tensor * target, const std::vector<int32_t> & positions) const {
        const std::vector<float> scales = scale_queries(positions, arch);
        ggml_backend_tensor_set(target, scales.data(), 0, ggml_nbytes(target));
    }

    // The tokens, with 0 for each vector. Stores the vectors in the session.
    std::vector<int32_t> take_vectors(const MicroBatch & b) {
        std::vector<int32_t> tokens = b.tokens;
        for (size_t i = 0; i < tokens.size(); i++) {
            if (tokens[i] < arch.n_vocab) continue;
            std::vector<VectorRun> & runs = session.vectors;
            if (runs.empty() || runs.back().start + int64_t(runs.back().ids.size()) != int64_t(i))
                runs.push_back({int64_t(i), {}});
            runs.back().ids.push_back(b.vectors[size_t(tokens[i] - arch.n_vocab)]);
            tokens[i] = 0;
        }
        return tokens;
    }

    // Whether any row branches.
    static bool has_branches(const MicroBatch & b) {
        for (size_t i = 1; i < b.ends.size(); i++) {
            if (i % size_t(b.row_length) != 0 && b.ends[i] > 0 && b.ends[i] != b.ends[i - 1]) return true;
        }
        return false;
    }

    static void fill_mask(const MicroBatch & b, bool branches, ggml_tensor * target, int64_t window) {
        const int64_t S = b.row_length, rows = branches ? b.rows : 1;
        std::vector<float> mask(size_t(S) * size_t(S) * size_t(rows), -INFINITY);
        for (int64_t row = 0; row < rows; row++) {
            const int32_t * ends = b.ends.data() + row * S;
            const int32_t * positions = b.positions.data() + row * S;
            for (int64_t i = 0; i < S; i++) {
                float * line = mask.data() + (row * S + i) * S;
                // Without branches one causal mask serves every row: padding comes last and is never read.
                for (int64_t j = 0; j <= i; j++) {
                    const int64_t distance = branches ? positions[i] - positions[j] : i - j;
                    const bool is_near = window == 0 || distance < window;
                    if (j == i || (is_near && (!branches || i < ends[j]))) line[j] = 0.0f;
                }
            }
        }
        ggml_backend_tensor_set(target, mask.data(), 0, mask.size() * sizeof(float));
    }

    ggml_tensor * scale_embedding(Graph & g, ggml_tensor * x) const {
        return arch.embedding_scale == 1.0f ? x : ggml_scale(g.ctx(), x, arch.embedding_scale);
    }

    void embed() {
        Graph g(compute);
        g.write(scale_embedding(g, ggml_get_rows(g.ctx(), arch.token_embd, g.ref(session.tokens))), session.x[0]);
        g.run(scratch.get());
        for (const VectorRun & run : session.vectors) {
            std::vector<float> values = read_part(run, 0);
            for (float & value : values) value *= arch.vector_scale;
            ggml_tensor * x = session.x[0];
            ggml_backend_tensor_set(x, values.data(), size_t(run.start) * x->nb[1], values.size() * sizeof(float));
        }
    }

    // One part of a run's vectors, as wide as a layer's input: part 0 is the input itself, the others are DeepStack's.
    std::vector<float> read_part(const VectorRun & run, int64_t part) const {
        const size_t d = size_t(arch.n_embd), width = model->vectors().width();
        std::vector<float> vectors(run.ids.size() * width), values;
        model->vectors().read(run.ids.data(), run.ids.size(), vectors.data());
        values.reserve(run.ids.size() * d);
        for (size_t i = 0; i < run.ids.size(); i++) {
            const auto begin = vectors.begin() + std::ptrdiff_t(i * width + size_t(part) * d);
            values.insert(values.end(), begin, begin + std::ptrdiff_t(d));
        }
        return values;
    }

    // Adds the DeepStack part of images' vectors to the output of one of the first layers. It is a constant, so
    // gradients pass unchanged.
    void add_deepstack(int64_t il) {
        ggml_tensor * x = session.x[size_t(il) + 1];
        for (const VectorRun & run : session.vectors) {
            const std::vector<float> values = read_part(run, il + 1);
            std::vector<float> columns(values.size());
            const size_t offset = size_t(run.start) * x->nb[1], bytes = columns.size() * sizeof(float);
            ggml_backend_tensor_get(x, columns.data(), offset, bytes);
            for (size_t i = 0; i < columns.size(); i++) columns[i] += values[i];
            ggml_backend_tensor_set(x, columns.data(), offset, bytes);
        }
    }

    LayerInputs leaf_inputs(Graph & g, int64_t il) const {
        const bool trimmed = session.wanted && il + 1 == arch.n_layer;
        const bool has_window = arch.layers[size_t(il)].math.window > 0;
        const AttentionPlan * plan = has_window ? &session.window_plan : &session.plan;
        LayerInputs inputs{g.ref(session.positions), {trimmed ? &session.last_plan : plan, leaf(g, session.ends),
                                                         leaf(g, has_window ? session.window_mask : session.mask)}};
        inputs.query_scales = leaf(g, trimmed ? session.wanted_scales : session.query_scales);
        inputs.ancestors = leaf(g, session.ancestors);
        inputs.state_plan = &session.state_plan;
        if (trimmed) {
            inputs.wanted = g.ref(session.wanted);
            inputs.wanted_positions = g.ref(session.wanted_positions);
        }
        return inputs;
    }

    // Runs layer `il`; a tape keeps its activations.
    void run_layer(int64_t il, Tape * tape) {
        std::optional<Graph> local;
        Graph & g = tape ? tape->graph.emplace(compute) : local.emplace(compute);
        LayerActivations a{};
        ggml_tensor * y = layer_forward(g, arch, parameters.layers()[size_t(il)], session.shape, leaf_inputs(g, il),
            g.ref(session.x[size_t(il)]), session.scored.adapter, a);
        if (tape) {
            for (ggml_tensor * t : a.list()) flag_output(t);
            tape->activations = a;
            if (!tape->allocator) tape->allocator = compute.make_allocator();
        }
        g.write(y, session.x[size_t(il) + 1]);
        g.run(tape ? tape->allocator.get() : scratch.get());
        if (il < arch.n_deepstack) add_deepstack(il);
    }

    Scores forward(const MicroBatch & batch, bool keep, const ScoreRequest & request) {
        check(batch);
        const int64_t ranked = request.top_below > 0 ? request.top_below : arch.n_vocab;
        require(request.top >= 0 && request.top <= ranked && ranked <= arch.n_vocab,
            "has fewer tokens than the most likely ones that are wanted");
        require(!options.value_head || (!request.squares && request.top == 0 && batch.candidates.empty()),
            "has a value head: there are no probabilities of tokens");
        require(!keep || batch.adapter || !model->adapter(), "cannot be trained with its adapter off");
        start_session(batch);
        embed();
        // Keeps the activations of as many layers as fit the budget; backward recomputes the first ones.
        const size_t per_layer = activation_bytes(arch, session.shape, is_blockwise(compute, arch));
        const int64_t fit =
            std::min<int64_t>(arch.n_layer, int64_t(options.memory_budget / std::max<size_t>(1, per_layer)));
        session.first_kept_layer = int(keep ? arch.n_layer - fit : arch.n_layer);
        kept_layers = int(arch.n_layer) - session.first_kept_layer;
        for (int64_t il = 0; il < arch.n_layer; il++)
            run_layer(il, il >= session.first_kept_layer ? &tapes[size_t(il)] : nullptr);
        Graph g(compute);
        g.write(ggml_get_rows(g.ctx(), g.ref(session.x.back()), g.ref(session.sources)), session.picked);
        g.run(scratch.get());
        Scores scores;
        if (options.value_head) {
            value_head.forward(compute, session.picked, scores.logprobs);
            scores.entropy.assign(scores.logprobs.size(), 0.0f);
        } else {
            scores = head.forward(compute, session.picked, session.scored, request, keep);
        }
        session.kept = keep;
        return scores;
    }

    void backward(const ScoreGradients & gradients) {
        if (!session.kept)
            throw Error("no-forward", "backward needs a forward pass that kept its activations").subject("training");
        const ScoredTokens & scored = session.scored;
        require(gradients.logprobs.size() == scored.targets.size() && gradients.entropy.size() == scored.targets.size(),
            "needs one gradient per scored token");
        require(gradients.candidates.size() == scored.candidates.size(), "needs one gradient per candidate");
        session.kept = false;
        parameters.begin_micro_batch(compute);
        if (options.value_head) {
            value_head.backward(compute, session.picked, session.d_picked, gradients.logprobs);
        } else {
            head.backward(compute, session.picked, session.d_picked, scored, gradients);
        }
        ggml_backend_tensor_memset(session.d_last, 0, 0, ggml_nbytes(session.d_last));
        add_picked_columns(compute, scratch.get(), session.d_picked, session.sources, session.d_last);
        for (int64_t il = arch.n_layer - 1; il >= 0; il--) {
            // Recomputed layers share one tape, that of the first layer, which is then not kept itself.
            Tape & tape = il >= session.first_kept_layer ? tapes[size_t(il)] : tapes[0];
            if (il < session.first_kept_layer) run_layer(il, &tape);
            Graph g(compute);
            ggml_tensor * dx = layer_backward(g, arch, parameters.layers()[size_t(il)], session.shape,
                leaf_inputs(g, il), as_leaves(g, tape.activations), g.ref(session.x[size_t(il)]),
                g.ref(il + 1 == arch.n_layer ? session.d_last : session.dy), il > 0 || inputs_trained());
            if (dx) g.write(dx, session.dy);
            g.run(scratch.get());
            tape.graph.reset();
        }
        if (ggml_tensor * d_embd = parameters.d_token_embd()) {
            // Vectors of images are constants: the gradient ends there.
            const size_t column = session.dy->nb[1];
            for (const auto & [start, ids] : session.vectors)
                ggml_backend_tensor_memset(session.dy, 0, size_t(start) * column, ids.size() * column);
            if (arch.embedding_scale != 1.0f) {
                Graph g(compute);
                g.write(scale_embedding(g, g.ref(session.dy)), session.dy);
                g.run(scratch.get());
            }
            add_picked_columns(compute, scratch.get(), session.dy, session.tokens, d_embd);
        }
        parameters.end_micro_batch(compute);
    }

    // Whether any parameter needs the gradient of the first layer's input.
    bool inputs_trained() const { return parameters.d_token_embd() || parameters.layers().front().attn_norm.d_weight; }

    // Any tensor by name: parameters first (adapter tensors among them), then frozen weights.
    ggml_tensor * find(const std::string & name, const std::string & what) const {
        const Parameter * p = parameters.find(name);
        if (p) {
            if (what == "value") return p->value;
            if (what == "gradient") return p->gradient;
            if (what == "moment1") return p->moment1;
            if (what == "moment2") return p->moment2;
        } else if (what == "value") {
            if (ggml_tensor * t = model->find_weight(name)) return t;
        }
        throw Error("unknown-tensor", p ? "has no such part" : "is not a tensor of this model, or is not trained")
            .subject(name)
            .expected("\"value\", \"gradient\", \"moment1\" or \"moment2\" of a trained tensor")
            .received('"' + what + '"');
    }
};

namespace {

// While it lives, layers of a micro-batch and decode steps take turns on the CPU: threads of both at once would wait
// for each other at every operation.
class Turns {
   public:
    Turns(Compute & compute, Model & model) : compute_(compute) {
        if (compute.on_cpu()) compute.take_turns(&model.compute_mutex());
    }
    ~Turns() { compute_.take_turns(nullptr); }
    Turns(const Turns &) = delete;
    Turns & operator=(const Turns &) = delete;

   private:
    Compute & compute_;
};

}  // namespace

Trainer::Trainer(std::shared_ptr<Model> model, const TrainerOptions & options) {
    if (!model->architecture()) {
        throw Error("not-trainable", "the model was loaded for generation only")
            .subject(model->options().path)
            .expected("trainable \"lora\" or \"full\"")
            .received("trainable \"none\"")
            .remedy("load it with trainable \"lora\" and lora: {rank, alpha}");
    }
    impl_ = std::make_unique<Impl>(std::move(model), options);
}

Trainer::~Trainer() = default;

Scores Trainer::forward(const MicroBatch & batch, bool keep, const ScoreRequest & request) {
    impl_->compute.abort_flag() = false;
    const Turns turns(impl_->compute, *impl_->model);
    return impl_->forward(batch, keep, request);
}

void Trainer::backward(const ScoreGradients & gradients) {
    impl_->compute.abort_flag() = false;
    const Turns turns(impl_->compute, *impl_->model);
    impl_->backward(gradients);
}

StepResult Trainer::step(const AdamW & options) {
    impl_->compute.abort_flag() = false;
    const Locked lock(impl_->model->compute_mutex());
    return impl_->parameters.step(options, impl_->compute);
}

void Trainer::zero_gradients() { impl_->parameters.zero_gradients(); }

bool Trainer::attends_blockwise() const { return is_blockwise(impl_->compute, impl_->arch); }

int Trainer::kept_layers() const { return impl_->kept_layers; }

std::vector<TensorInfo> Trainer::tensors() const {
    std::vector<TensorInfo> list;
    const auto add = [&](const std::string & name, const ggml_tensor * t, bool trainable) {
        list.push_back({name, ggml_type_name(t->type), {t->ne, t->ne + ggml_n_dims(t)}, trainable});
    };
    for (const auto & [name, tensor] : impl_->model->weights())
        add(name, tensor, impl_->parameters.find(name) != nullptr);
    for (const auto & p : impl_->parameters.all()) {
        if (!impl_->model->find_weight(p.name)) add(p.name, p.value, true);
    }
    return list;
}

std::vector<float> Trainer::read_tensor(const std::string & name, const std::string & what) const {
    const ggml_tensor * t = impl_->find(name, what);
    std::vector<uint8_t> bytes(ggml_nbytes(t));
    ggml_backend_tensor_get(t, bytes.data(), 0, bytes.size());
    std::vector<float> values(size_t(ggml_nelements(t)));
    if (t->type == GGML_TYPE_F32) {
        std::memcpy(values.data(), bytes.data(), bytes.size());
    } else {
        ggml_get_type_traits(t->type)->to_float(bytes.data(), values.data(), int64_t(values.size()));
    }
    return values;
}

void Trainer::write_tensor(const std::string & name, const std::string & what, const std::vector<float> & values) {
    ggml_tensor * t = impl_->find(name, what);
    const bool trainable = impl_->parameters.find(name) != nullptr;
    if (!trainable || t->type != GGML_TYPE_F32 || values.size() != size_t(ggml_nelements(t))) {
        throw Error("bad-tensor", "cannot be written")
            .subject(name)
            .expected("a trained F32 tensor and " + std::to_string(ggml_nelements(t)) + " values")
            .received(std::string(trainable ? "a trained " : "a frozen ") + ggml_type_name(t->type) + " tensor and " +
                      std::to_string(values.size()) + " values");
    }
    const Locked lock(impl_->model->compute_mutex());
    ggml_backend_tensor_set(t, values.data(), 0, values.size() * sizeof(float));
    if (what == "gradient") impl_->parameters.expect_gradients();
}

int64_t Trainer::step_count() const { return impl_->parameters.step_count; }
void Trainer::set_step_count(int64_t count) { impl_->parameters.step_count = count; }
void Trainer::request_abort() { impl_->compute.abort_flag() = true; }

}  // namespace cria
