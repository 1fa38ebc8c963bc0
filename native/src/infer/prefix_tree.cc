#include "infer/prefix_tree.h"

#include <algorithm>

namespace cria {

// An edge with its lower end. A node exists because a holder's tokens end in it, or because it branches.
struct PrefixTree::Node {
    std::vector<int32_t> label;  // the edge's tokens; only the root's are empty
    size_t depth = 0;            // tokens from the root to the end of the label
    Node * parent = nullptr;
    std::map<int32_t, std::unique_ptr<Node>> children;  // by first token of their labels
    std::vector<int> ends;                              // holders whose tokens end here

    bool is_only_end_of(int holder) const { return children.empty() && ends.size() == 1 && ends[0] == holder; }
    void collect(std::vector<int> & holders) const {
        holders.insert(holders.end(), ends.begin(), ends.end());
        for (const auto & [token, child] : children) child->collect(holders);
    }
    size_t count() const {
        size_t sum = 0;
        for (const auto & [token, child] : children) sum += 1 + child->count();
        return sum;
    }
};

PrefixTree::PrefixTree(int holders) : ends_(size_t(holders)) { clear(); }

PrefixTree::~PrefixTree() = default;

void PrefixTree::clear() {
    root_ = std::make_unique<Node>();
    for (size_t holder = 0; holder < ends_.size(); holder++) {
        ends_[holder] = root_.get();
        root_->ends.push_back(int(holder));
    }
}

size_t PrefixTree::length(int holder) const { return ends_[size_t(holder)]->depth; }

size_t PrefixTree::node_count() const { return root_->count(); }

// Cuts an edge after `kept` tokens of its label; returns the upper half, which is new.
PrefixTree::Node * PrefixTree::split(Node * node, size_t kept) {
    Node * parent = node->parent;
    auto upper = std::make_unique<Node>();
    upper->label.assign(node->label.begin(), node->label.begin() + long(kept));
    upper->depth = parent->depth + kept;
    upper->parent = parent;
    auto & place = parent->children.at(node->label.front());
    std::unique_ptr<Node> lower = std::move(place);
    lower->label.erase(lower->label.begin(), lower->label.begin() + long(kept));
    lower->parent = upper.get();
    upper->children[lower->label.front()] = std::move(lower);
    place = std::move(upper);
    return place.get();
}

PrefixTree::Node * PrefixTree::add_child(Node * parent, const int32_t * tokens, size_t count) {
    auto child = std::make_unique<Node>();
    child->label.assign(tokens, tokens + count);
    child->depth = parent->depth + count;
    child->parent = parent;
    auto & place = parent->children[*tokens];
    place = std::move(child);
    return place.get();
}

// Removes the holder's mark from its node, which may then be superfluous: call tidy().
void PrefixTree::leave(int holder) {
    auto & ends = ends_[size_t(holder)]->ends;
    ends.erase(std::find(ends.begin(), ends.end(), holder));
}

// Removes nodes where nothing ends and nothing branches, from here to the root.
void PrefixTree::tidy(Node * node) {
    while (node->parent && node->ends.empty() && node->children.size() < 2) {
        Node * parent = node->parent;
        auto & place = parent->children.at(node->label.front());
        if (node->children.size() == 1) {
            // Merges two edges into one.
            std::unique_ptr<Node> child = std::move(node->children.begin()->second);
            child->label.insert(child->label.begin(), node->label.begin(), node->label.end());
            child->parent = parent;
            place = std::move(child);
            return;
        }
        parent->children.erase(node->label.front());
        node = parent;
    }
}

void PrefixTree::append(int holder, const int32_t * tokens, size_t count) {
    if (count == 0) return;
    Node * const before = ends_[size_t(holder)];
    if (before->parent && before->is_only_end_of(holder)) {
        before->label.insert(before->label.end(), tokens, tokens + count);
        before->depth += count;
        return;
    }
    leave(holder);
    Node * node = before;
    for (size_t done = 0; done < count;) {
        const auto next = node->children.find(tokens[done]);
        if (next == node->children.end()) {
            node = add_child(node, tokens + done, count - done);
            break;
        }
        node = next->second.get();
        const size_t limit = std::min(node->label.size(), count - done);
        size_t same = 1;
        while (same < limit && node->label[same] == tokens[done + same]) same++;
        if (same < node->label.size()) node = split(node, same);
        done += same;
    }
    node->ends.push_back(holder);
    ends_[size_t(holder)] = node;
    tidy(before);
}

void PrefixTree::truncate(int holder, size_t length) {
    Node * const before = ends_[size_t(holder)];
    if (length >= before->depth) return;
    leave(holder);
    Node * node = before;
    while (node->parent && node->parent->depth >= length) node = node->parent;
    // The root has depth 0, so a node deeper than `length` has a parent.
    if (node->parent && node->depth > length) node = split(node, length - node->parent->depth);
    node->ends.push_back(holder);
    ends_[size_t(holder)] = node;
    tidy(before);
}

void PrefixTree::swap(int a, int b) {
    Node *& end_a = ends_[size_t(a)];
    Node *& end_b = ends_[size_t(b)];
    if (end_a == end_b) return;
    *std::find(end_a->ends.begin(), end_a->ends.end(), a) = b;
    *std::find(end_b->ends.begin(), end_b->ends.end(), b) = a;
    std::swap(end_a, end_b);
}

PrefixMatch PrefixTree::find(const int32_t * tokens, size_t limit) const {
    PrefixMatch match;
    const Node * node = root_.get();
    while (match.length < limit) {
        const auto next = node->children.find(tokens[match.length]);
        if (next == node->children.end()) break;
        node = next->second.get();
        const size_t most = std::min(node->label.size(), limit - match.length);
        size_t same = 1;
        while (same < most && node->label[same] == tokens[match.length + same]) same++;
        match.length += same;
        if (same < node->label.size()) break;
    }
    if (match.length > 0) node->collect(match.holders);
    std::sort(match.holders.begin(), match.holders.end());
    return match;
}

}  // namespace cria
