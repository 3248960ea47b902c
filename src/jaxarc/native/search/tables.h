// Which sets of sources have a table without a contradiction, and which foresee most, as in rules.py.
#pragma once

#include "pieces.h"

namespace jaxarc::search {

// Sources at the cells that differ: a number for each source and cell, and the color of each cell.
struct SourceCells {
  const uint8_t* codes;  // [sources, cells]
  const int64_t* num_values;
  const uint8_t* colors;
  int64_t count;    // cells
  const uint8_t* copied;  // the color that a row may copy, or none

  const uint8_t* of(int64_t source) const { return codes + source * count; }
};

using Chosen = std::array<int32_t, 3>;  // sources, kNone at the end

// Whether the table of some sources is right on all cells: a row has one color or, where it has several, all of its
// cells have the color that is copied. With a source to copy from there must be such a row.
class TableCheck {
 public:
  TableCheck(const SourceCells& cells, int64_t most_rows) : cells_(cells), most_rows_(most_rows) {}

  bool is_right(const Chosen& chosen) {
    int64_t rows = 1;
    for (int32_t source : chosen) rows *= source == kNone ? 1 : cells_.num_values[source];
    if (rows < 2 || rows > most_rows_) return false;
    constexpr uint8_t kOpen = 254, kSeveral = 255;
    table_.assign(static_cast<size_t>(rows), kOpen);
    bool has_several = false;
    for (int64_t i = 0; i < cells_.count; i++) {
      uint8_t& color = table_[row(chosen, i)];
      if (color == cells_.colors[i] || color == kSeveral) continue;
      if (color == kOpen) {
        color = cells_.colors[i];
        continue;
      }
      if (cells_.copied == nullptr) return false;
      color = kSeveral;
      has_several = true;
    }
    if (cells_.copied == nullptr) return true;
    if (!has_several) return false;
    for (int64_t i = 0; i < cells_.count; i++) {
      if (cells_.copied[i] != cells_.colors[i] && table_[row(chosen, i)] == kSeveral) return false;
    }
    return true;
  }

 private:
  size_t row(const Chosen& chosen, int64_t cell) const {
    size_t number = cells_.of(chosen[0])[cell];
    for (size_t k = 1; k < chosen.size() && chosen[k] != kNone; k++) {
      number = number * static_cast<size_t>(cells_.num_values[chosen[k]]) + cells_.of(chosen[k])[cell];
    }
    return number;
  }

  const SourceCells& cells_;
  int64_t most_rows_;
  std::vector<uint8_t> table_;
};

// A bit says that a source is equal at both cells of a pair of different colors. Sources tell every pair apart where
// no bit is left by `and`: of four pairs, `1100` and `0011` do together, `1100` and `0110` leave the second pair.
struct PairBits {
  const Bits* bits;     // [sources, words]
  const Bits* allowed;  // pairs that need to be told apart
  const uint8_t* are_few;  // whether a source has few values, so that three may stand together
  int64_t num_sources;
  int64_t words;

  bool leaves(std::initializer_list<int64_t> sources, bool with_all = false) const {
    for (int64_t w = 0; w < words; w++) {
      Bits rest = with_all ? ~Bits{0} : allowed[w];
      for (int64_t source : sources) rest &= bits[source * words + w];
      if (rest != 0) return true;
    }
    return false;
  }

  // Call `visit` for one to three sources that tell all pairs apart, three only with the first source, until it
  // returns false.
  template <typename Visit>
  void each(int64_t most, Visit visit) const {
    for (int64_t a = 0; a < num_sources; a++) {
      if (!leaves({a}) && !visit(Chosen{int32_t(a), kNone, kNone})) return;
    }
    for (int64_t a = 0; a < num_sources; a++) {
      for (int64_t b = a + 1; b < num_sources; b++) {
        if (!leaves({a, b}) && !visit(Chosen{int32_t(a), int32_t(b), kNone})) return;
      }
    }
    for (int64_t a = 1; a < num_sources && most > 2; a++) {
      for (int64_t b = a + 1; b < num_sources && are_few[a]; b++) {
        if (are_few[b] && !leaves({0, a, b}) && !visit(Chosen{0, int32_t(a), int32_t(b)})) return;
      }
    }
  }
};

// Find sets of sources whose table is right; with a source to copy from, look only at the first `tried` sets, and not
// at those that tell everything apart without copying.
inline std::vector<Chosen> right_tables(const PairBits& pairs, const SourceCells& cells, int64_t most_rows,
                                        int64_t tried) {
  std::vector<Chosen> found;
  TableCheck check(cells, most_rows);
  const bool copies = cells.copied != nullptr;
  pairs.each(copies ? 2 : 3, [&](const Chosen& chosen) {
    const int64_t a = chosen[0], b = chosen[1] == kNone ? a : chosen[1];
    const bool is_new = !copies || pairs.leaves({a, b}, true);
    if (is_new && check.is_right(chosen)) found.push_back(chosen);
    return !copies || --tried > 0;
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
