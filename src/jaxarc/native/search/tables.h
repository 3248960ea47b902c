// Which sets of sources have a table without a contradiction, and which foresee most, for tables.py.
#pragma once

#include "pieces.h"

namespace jaxarc::search {

// Sources at the cells that differ, and what a table costs; the caller's arrays, in the order of search_library.py.
struct TableTask {
  const Bits* bits;            // [sources, words], see PairBits
  const Bits* allowed;         // [words]
  const uint8_t* are_few;      // [sources] whether one has few values, so that three may stand together
  const uint8_t* codes;        // [sources, cells] the values of the demonstrations, numbered
  const uint8_t* asked_codes;  // [sources, asked] those of the test input
  const int64_t* num_values;   // [sources]
  const int64_t* costs;        // [sources]
  const uint8_t* colors;       // [cells]
  const uint8_t* pairs;        // [cells] their demonstrations
  const uint8_t* copied;       // [cells] the color that a row may copy, or none
  int64_t num_sources;
  int64_t words;
  int64_t count;  // cells of the demonstrations
  int64_t num_asked;
  int64_t base_cost;      // of copying
  int64_t most_rows;      // of a table
  int64_t tried;          // sets of sources, where one is copied from
  int64_t keeps_unknown;  // whether a row that only the test input has keeps the color of the input
  int64_t unknown_cost;
  int64_t unforeseen_cost;
  int64_t rows_of_one_cost;
};

using Chosen = std::array<int32_t, 4>;  // sources, kNone at the end

struct RightTable {
  Chosen chosen;
  int32_t cost;
};

// Whether the table of some sources is right on all cells: a row has one color or, where it has several, all of its
// cells have the color that is copied. With a source to copy from there must be such a row.
class TableCheck {
 public:
  explicit TableCheck(const TableTask& task) : task_(task) {}

  bool is_right(const Chosen& chosen) {
    rows_ = num_rows(chosen);
    if (rows_ < 2 || rows_ > task_.most_rows) return false;
    table_.assign(static_cast<size_t>(rows_), kOpen);
    bool has_several = false;
    for (int64_t i = 0; i < task_.count; i++) {
      uint8_t& color = table_[row(chosen, task_.codes, task_.count, i)];
      if (color == task_.colors[i] || color == kSeveral) continue;
      if (color == kOpen) {
        color = task_.colors[i];
        continue;
      }
      if (task_.copied == nullptr) return false;
      color = kSeveral;
      has_several = true;
    }
    if (task_.copied == nullptr) return true;
    if (!has_several) return false;
    for (int64_t i = 0; i < task_.count; i++) {
      if (task_.copied[i] == task_.colors[i]) continue;
      if (table_[row(chosen, task_.codes, task_.count, i)] == kSeveral) return false;
    }
    return true;
  }

  // What a table costs; -1 where the test input has a row that it lacks, and nothing is kept. It is dear if it lacks a
  // row, or if a demonstration has a row that no other one has.
  int32_t cost(const Chosen& chosen) {
    constexpr uint8_t kNobody = 255, kMany = 254;
    owners_.assign(static_cast<size_t>(num_rows(chosen)), kNobody);
    for (int64_t i = 0; i < task_.count; i++) {
      uint8_t& owner = owners_[row(chosen, task_.codes, task_.count, i)];
      owner = owner == kNobody || owner == task_.pairs[i] ? task_.pairs[i] : kMany;
    }
    int64_t cost = task_.base_cost - 2, known = 0;
    for (int32_t source : chosen) cost += source == kNone ? 0 : task_.costs[source] + 2;
    for (int64_t i = 0; i < task_.num_asked; i++) {
      known += owners_[row(chosen, task_.asked_codes, task_.num_asked, i)] != kNobody;
    }
    if (known < task_.num_asked) {
      if (task_.keeps_unknown == 0) return -1;
      const double share = static_cast<double>(known) / static_cast<double>(task_.num_asked);
      cost += task_.unknown_cost + static_cast<int64_t>(static_cast<double>(task_.unknown_cost) * (1 - share));
    }
    bool is_unforeseen[256] = {};
    int64_t filled = 0, unforeseen = 0;
    for (uint8_t owner : owners_) {
      filled += owner != kNobody;
      if (owner == kNobody || owner == kMany || is_unforeseen[owner]) continue;
      is_unforeseen[owner] = true;
      unforeseen++;
    }
    return static_cast<int32_t>(cost + filled / task_.rows_of_one_cost + task_.unforeseen_cost * unforeseen);
  }

 private:
  static constexpr uint8_t kOpen = 254, kSeveral = 255;

  int64_t num_rows(const Chosen& chosen) const {
    int64_t rows = 1;
    for (int32_t source : chosen) rows *= source == kNone ? 1 : task_.num_values[source];
    return rows;
  }

  size_t row(const Chosen& chosen, const uint8_t* codes, int64_t count, int64_t cell) const {
    size_t number = codes[chosen[0] * count + cell];
    for (size_t k = 1; k < chosen.size() && chosen[k] != kNone; k++) {
      number = number * static_cast<size_t>(task_.num_values[chosen[k]]) + codes[chosen[k] * count + cell];
    }
    return number;
  }

  const TableTask& task_;
  int64_t rows_ = 0;
  std::vector<uint8_t> table_;
  std::vector<uint8_t> owners_;
};

// A bit says that a source is equal at both cells of a pair of different colors. Sources tell every pair apart where
// no bit is left by `and`: of four pairs, `1100` and `0011` do together, `1100` and `0110` leave the second pair.
struct PairBits {
  const TableTask& task;

  bool leaves(std::initializer_list<int64_t> sources, bool with_all = false) const {
    for (int64_t w = 0; w < task.words; w++) {
      Bits rest = with_all ? ~Bits{0} : task.allowed[w];
      for (int64_t source : sources) rest &= task.bits[source * task.words + w];
      if (rest != 0) return true;
    }
    return false;
  }

  // Call `visit` for one to three sources that tell all pairs apart, three only with the first source, until it
  // returns false.
  template <typename Visit>
  void each(int64_t most, Visit visit) const {
    for (int64_t a = 0; a < task.num_sources; a++) {
      if (!leaves({a}) && !visit(Chosen{int32_t(a), kNone, kNone, kNone})) return;
    }
    for (int64_t a = 0; a < task.num_sources; a++) {
      for (int64_t b = a + 1; b < task.num_sources; b++) {
        if (!leaves({a, b}) && !visit(Chosen{int32_t(a), int32_t(b), kNone, kNone})) return;
      }
    }
    for (int64_t a = 1; a < task.num_sources && most > 2; a++) {
      for (int64_t b = a + 1; b < task.num_sources && task.are_few[a]; b++) {
        if (task.are_few[b] && !leaves({0, a, b}) && !visit(Chosen{0, int32_t(a), int32_t(b), kNone})) return;
      }
    }
  }
};

// Find sets of sources whose table is right; with a source to copy from, look only at the first `tried` sets, and not
// at those that tell everything apart without copying.
inline std::vector<RightTable> right_tables(const TableTask& task) {
  std::vector<RightTable> found;
  const PairBits pairs = {task};
  TableCheck check(task);
  const bool copies = task.copied != nullptr;
  int64_t tried = 0;
  pairs.each(copies ? 2 : 3, [&](const Chosen& chosen) {
    const int64_t a = chosen[0], b = chosen[1] == kNone ? a : chosen[1];
    const bool is_new = !copies || pairs.leaves({a, b}, true);
    if (is_new && check.is_right(chosen)) {
      const int32_t cost = check.cost(chosen);
      if (cost >= 0) found.push_back({chosen, cost});
    }
    return !copies || ++tried < task.tried;
  });
  return found;
}

// Cells of the demonstrations, which the tables of all others are to foresee.
struct VotingCells {
  const uint8_t* codes;  // [sources, cells]
  const int64_t* num_values;
  const int64_t* rows;  // of the sources that are chosen already
  int64_t num_rows;
  const int64_t* colors;  // numbered from 0
  const int64_t* pairs;   // demonstrations
  const double* weights;
  const uint8_t* are_copied;  // whether the color is that of the input
  int64_t count;
  int64_t num_pairs;
  int64_t num_colors;
};

// Return how many cells a table with one more source does not foresee. A row votes for a color, or for that of the
// input (vote 0), and counts what its demonstration did not vote for.
inline double faults(const VotingCells& cells, int64_t source, std::vector<double>& votes) {
  const int64_t values = cells.num_values[source], num_votes = cells.num_colors + 1;
  const int64_t stride = cells.num_pairs * num_votes;
  votes.assign(static_cast<size_t>(cells.num_rows * values * stride), 0);
  const uint8_t* codes = cells.codes + source * cells.count;
  double total = 0;
  for (int64_t i = 0; i < cells.count; i++) {
    double* own = &votes[static_cast<size_t>((cells.rows[i] * values + codes[i]) * stride + cells.pairs[i] * num_votes)];
    own[1 + cells.colors[i]] += cells.weights[i];
    if (cells.are_copied[i] != 0) own[0] += cells.weights[i];
    total += cells.weights[i];
  }
  double right = 0;
  double sums[256];
  for (int64_t row = 0; row < cells.num_rows * values; row++) {
    const double* all = &votes[static_cast<size_t>(row * stride)];
    std::fill(sums, sums + num_votes, 0);
    for (int64_t i = 0; i < stride; i++) sums[i % num_votes] += all[i];
    for (int64_t pair = 0; pair < cells.num_pairs; pair++) {
      const double* own = all + pair * num_votes;
      int64_t best = 0;
      for (int64_t vote = 1; vote < num_votes; vote++) {
        if (sums[vote] - own[vote] > sums[best] - own[best]) best = vote;
      }
      right += own[best];
    }
  }
  return total - right;
}

}  // namespace jaxarc::search
