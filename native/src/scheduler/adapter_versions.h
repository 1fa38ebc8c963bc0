// Copies of the LoRA adapter as it was at some step, so that conversations go on under the policy that they began with
// while training changes the live adapter.
//
// A llama_context reserves its graph anew for each other adapter object, which costs more than a decode step. So the
// context gets one adapter object of its own, the stand-in, whose tensors are pointed at the values of the version that
// the next batch is evaluated with; the training graph reads the live tensors meanwhile.
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

class AdapterVersions {
   public:
    AdapterVersions(const Model & model, llama_context * context);
    ~AdapterVersions();
    AdapterVersions(const AdapterVersions &) = delete;
    AdapterVersions & operator=(const AdapterVersions &) = delete;

    // Copies the live adapter, or the values of an adapter's file that has the live one's shape.
    // Throws Error("no-adapter" | "adapter-mismatch" | ...).
    PolicyVersion keep(const std::string & path = "");
    void drop(PolicyVersion version);
    // What is evaluated from now on uses these values.
    void select(PolicyVersion version);
    // Writes a version as a GGUF, as save_adapter does the live one.
    void save(PolicyVersion version, const std::string & path) const;
    // Values of one of its tensors, by the name that the trainer has for the live one.
    // Throws Error("unknown-version" | "unknown-tensor" | "bad-tensor").
    std::vector<float> read(PolicyVersion version, const std::string & name) const;
    void write(PolicyVersion version, const std::string & name, const std::vector<float> & values);

   private:
    struct Values;
    void make_stand_in();
    void point_at(const std::vector<ggml_tensor *> & values);
    // Throws Error("unknown-version").
    const Values & values_of(PolicyVersion version) const;
    ggml_tensor * find(PolicyVersion version, const std::string & name) const;

    const Model & model_;
    llama_context * context_;
    // A and B of each weight, in one order: the live ones, and those that the context's graphs read. Empty until the
    // first version is kept.
    std::vector<ggml_tensor *> live_, stand_in_;
    std::map<PolicyVersion, std::unique_ptr<Values>> kept_;
    PolicyVersion next_ = 1, selected_ = kLivePolicy;
};

}  // namespace cria
