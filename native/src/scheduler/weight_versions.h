// Copies of the trained weights, the LoRA adapter's or the whole model's, as they were at some step, so that
// conversations go on under the policy that they began with while training changes the live ones.
//
// The graphs of a llama_context read tensors that nothing else reads, the stand-ins: they are pointed at the values of
// the version that the next batch is evaluated with, while the training graph reads the live ones. A context reserves
// its graph anew for each other adapter object, which costs more than a decode step; so it gets one adapter of its own.
// With full training the stand-ins are llama.cpp's own tensors of the model (Model::weights has the live ones). A graph
// that is used again keeps the addresses of views: no trainable architecture's graph has a view of a weight.
// Not thread-safe: guarded by the model's compute mutex.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cria/model.h"
#include "cria/policy_version.h"

struct ggml_tensor;
struct llama_context;

namespace cria {

class WeightVersions {
   public:
    struct Values;
    WeightVersions(const Model & model, llama_context * context);
    ~WeightVersions();
    WeightVersions(const WeightVersions &) = delete;
    WeightVersions & operator=(const WeightVersions &) = delete;

    // Copies the live weights, or the values of a file that save wrote for a policy of the same shape.
    // Throws Error("not-trainable" | "adapter-mismatch" | "model-mismatch" | ...).
    PolicyVersion keep(const std::string & path = "");
    void drop(PolicyVersion version);
    // Later evaluations use these values.
    void select(PolicyVersion version);
    // The trained tensors that the context's graphs read, and a version's values of them in that order, which live
    // until it is dropped. Throws Error("unknown-version").
    const std::vector<ggml_tensor *> & stand_ins() const { return stand_in_; }
    const std::vector<ggml_tensor *> & values_of(PolicyVersion version) const;
    // A version's values, which live as long as they are shared. Throws Error("unknown-version").
    std::shared_ptr<const Values> share(PolicyVersion version) const;
    // Writes them as a GGUF, as save_adapter or save_model does the live ones.
    static void save(const Model & model, const Values & values, const std::string & path);
    // Values of one of its tensors, by the name that the trainer has for the live one.
    // Throws Error("unknown-version" | "unknown-tensor" | "bad-tensor").
    std::vector<float> read(PolicyVersion version, const std::string & name) const;
    void write(PolicyVersion version, const std::string & name, const std::vector<float> & values);

   private:
    void list_tensors();
    void stand_in_for_adapter(llama_adapter_lora * live);
    void point_at(const std::vector<ggml_tensor *> & values);
    void read_file(Values & values, const std::string & path) const;
    ggml_tensor * find(PolicyVersion version, const std::string & name) const;

    const Model & model_;
    llama_context * context_;
    // The trained tensors, in one order: their names, the live ones, and those that the context's graphs read. Empty
    // until the first version is kept.
    std::vector<std::string> names_;
    std::vector<ggml_tensor *> live_, stand_in_;
    std::map<PolicyVersion, std::shared_ptr<Values>> kept_;
    PolicyVersion next_ = 1, selected_ = kLivePolicy;
};

}  // namespace cria
