// A radix tree over the tokens of several holders (slots of the KV cache). One walk along a prompt finds the holders of
// its longest prefix, for any number of holders. Appending to a holder whose end no other holder shares, as decoding
// does, needs no walk. Pure data structure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace cria {

struct PrefixMatch {
    size_t length = 0;
    std::vector<int> holders;  // all holders of these first `length` tokens, ascending; empty when length is 0
};

class PrefixTree {
   public:
    explicit PrefixTree(int holders);
    ~PrefixTree();

    // Number of tokens of a holder.
    size_t length(int holder) const;
    void append(int holder, const int32_t * tokens, size_t count);
    // Keeps the first `length` tokens.
    void truncate(int holder, size_t length);
    // Swaps the tokens of two holders.
    void swap(int a, int b);
    void clear();
    // The longest prefix of the first `limit` tokens that any holder has.
    PrefixMatch find(const int32_t * tokens, size_t limit) const;
    // Number of nodes except the root; for tests and statistics.
    size_t node_count() const;

   private:
    struct Node;
    Node * split(Node * node, size_t kept);
    Node * add_child(Node * parent, const int32_t * tokens, size_t count);
    void leave(int holder);
    void tidy(Node * node);

    std::unique_ptr<Node> root_;
    std::vector<Node *> ends_;  // by holder: the node where its tokens end
};

}  // namespace cria
