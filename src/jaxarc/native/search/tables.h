// Which sets of sources have a table without a contradiction, and which foresee most, for tables.py.
#pragma once

#include "pieces.h"

namespace jaxarc::search {

// Sources at the cells that differ, and what a table costs; the caller's arrays, in the order of search_library.py.
struct TableTask {
  const Cell* values;          // [sources, cells] of the demonstrations
  const uint8_t* codes;        // [sources, cells] the values, numbered
  const uint8_t* asked_codes;  // [sources, asked] those of the test input
  const uint8_t* colors;       // [cells]
  const uint8_t* pairs;        // [cells] their demonstrations
  const int64_t* num_values;   // [sources]
  const int64_t* costs;        // [sources]
  const int64_t* counts;       // [cells] how many cells each stands for
  const uint8_t* have_colors;  // [sources] whether its values may be copied
  int64_t num_sources;
  int64_t count;  // cells of the demonstrations
  int64_t num_asked;
  int64_t most_rows;      // of a table
  int64_t keeps_unknown;  // whether a row that only the test input has keeps the color of the input
  int64_t unknown_cost;
  int64_t unforeseen_cost;
  int64_t rows_of_one_cost;
};

constexpr int64_t kHardest = 2048;  // pairs of cells that choose the sources
constexpr int64_t kFew = 8;         // values of a source that three may stand together with
constexpr size_t kCopied = 24;      // sources that a table may copy from: those that are right most often
constexpr int64_t kTried = 200;     // sets of sources for each of these

using Chosen = std::array<int32_t, 4>;  // sources, kNone at the end

struct RightTable {
  Chosen chosen;
  int32_t copied;  // the source whose color a row may copy, or kNone
  int32_t cost;
};

// Whether the table of some sources is right on all cells: a row has one color or, where it has several, all of its
// cells have the color that is copied. With a source to copy from there must be such a row.
class TableCheck {
 public:
  explicit TableCheck(const TableTask& task, int32_t copied = kNone)
      : task_(task), copied_(copied == kNone ? nullptr : task.values + copied * task.count),
        base_cost_(copied == kNone ? 0 : task.costs[copied] + 2) {}

  bool is_right(const Chosen& chosen) {
    const int64_t num_rows = this->num_rows(chosen);
    if (num_rows < 2 || num_rows > task_.most_rows) return false;
    table_.assign(static_cast<size_t>(num_rows), kOpen);
    uint8_t* table = table_.data();
    const int32_t* rows = numbered(chosen, task_.codes, task_.count);
    bool has_several = false;
    for (int64_t i = 0; i < task_.count; i++) {
      uint8_t& color = table[rows[i]];
      const uint8_t own = task_.colors[i];
      if (color == own || color == kSeveral) continue;
      if (color != kOpen && copied_ == nullptr) return false;
      has_several |= color != kOpen;
      color = color == kOpen ? own : kSeveral;
    }
    if (copied_ == nullptr) return true;
    if (!has_several) return false;
    for (int64_t i = 0; i < task_.count; i++) {
      if (copied_[i] != task_.colors[i] && table[rows[i]] == kSeveral) return false;
    }
    return true;
  }

  // What a table costs; -1 where the test input has a row that it lacks, and nothing is kept. It is dear if it lacks a
  // row, or if a demonstration has a row that no other one has.
  int32_t cost(const Chosen& chosen) {
    constexpr uint8_t kNobody = 255, kMany = 254;
    owners_.assign(static_cast<size_t>(num_rows(chosen)), kNobody);
    const int32_t* rows = numbered(chosen, task_.codes, task_.count);
    for (int64_t i = 0; i < task_.count; i++) {
      uint8_t& owner = owners_[static_cast<size_t>(rows[i])];
      owner = owner == kNobody || owner == task_.pairs[i] ? task_.pairs[i] : kMany;
    }
    int64_t cost = base_cost_ - 2, known = 0;
    for (int32_t source : chosen) cost += source == kNone ? 0 : task_.costs[source] + 2;
    rows = numbered(chosen, task_.asked_codes, task_.num_asked);
    for (int64_t i = 0; i < task_.num_asked; i++) known += owners_[static_cast<size_t>(rows[i])] != kNobody;
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

  // The row of each cell: with counts 3 and 4, the values 2 and 1 are number 9.
  const int32_t* numbered(const Chosen& chosen, const uint8_t* codes, int64_t count) {
    rows_.assign(static_cast<size_t>(count), 0);
    for (size_t k = 0; k < chosen.size() && chosen[k] != kNone; k++) {
      const uint8_t* own = codes + chosen[k] * count;
      const auto num_values = static_cast<int32_t>(task_.num_values[chosen[k]]);
      for (size_t i = 0; i < rows_.size(); i++) rows_[i] = rows_[i] * num_values + own[i];
    }
    return rows_.data();
  }

  const TableTask& task_;
  const Cell* copied_;  // [cells] the color that a row may copy, or none
  int64_t base_cost_;   // of copying
  std::vector<int32_t> rows_;
  std::vector<uint8_t> table_;
  std::vector<uint8_t> owners_;
};

// Pairs of cells of different colors, the hardest to tell apart of a sample. A bit says that a source is equal at both
// cells. Sources tell every pair apart where no bit is left by `and`: of four pairs, `1100` and `0011` do together,
// `1100` and `0110` leave the second pair. A pair whose cells both have the color that is copied needs no source.
class HardPairs {
 public:
  HardPairs(const TableTask& task, int64_t count, const int64_t* first, const int64_t* second) : task_(task) {
    const int64_t num_sources = task.num_sources;
    std::vector<uint8_t> rows(static_cast<size_t>(task.count * num_sources));  // [cells, sources]
    for (int64_t k = 0; k < num_sources; k++) {
      for (int64_t i = 0; i < task.count; i++) rows[static_cast<size_t>(i * num_sources + k)] = task.codes[k * task.count + i];
    }
    const auto row = [&](int64_t cell) { return &rows[static_cast<size_t>(cell * num_sources)]; };
    std::vector<std::vector<int64_t>> by_equal(static_cast<size_t>(num_sources + 1));  // pairs by their equal sources
    for (int64_t pair = 0; pair < count; pair++) {
      if (task.colors[first[pair]] == task.colors[second[pair]]) continue;
      const uint8_t *a = row(first[pair]), *b = row(second[pair]);
      int equal = 0;
      for (int64_t k = 0; k < num_sources; k++) equal += a[k] == b[k];
      by_equal[static_cast<size_t>(equal)].push_back(pair);
    }
    for (size_t equal = by_equal.size(); equal-- > 0;) {
      for (int64_t pair : by_equal[equal]) {
        if (static_cast<int64_t>(cells_.size()) < kHardest) cells_.push_back({first[pair], second[pair]});
      }
    }
    bits_.resize(static_cast<size_t>(num_sources * kWords), 0);
    for (size_t place = 0; place < cells_.size(); place++) {
      const uint8_t *a = row(cells_[place][0]), *b = row(cells_[place][1]);
      for (int64_t k = 0; k < num_sources; k++) {
        bits_[static_cast<size_t>(k * kWords) + place / 64] |= Bits{a[k] == b[k]} << place % 64;
      }
    }
    for (int64_t k = 0; k < num_sources; k++) first_.push_back(bits_[static_cast<size_t>(k * kWords)]);
  }

  bool empty() const { return cells_.empty(); }

  // Need no source for the pairs whose cells both have the color that is copied; false if there is no such pair.
  bool copy(int64_t source) {
    const Cell* values = task_.values + source * task_.count;
    bool has_some = false;
    open_ = kAll;
    for (size_t place = 0; place < cells_.size(); place++) {
      const auto [a, b] = cells_[place];
      if (values[a] != task_.colors[a] || values[b] != task_.colors[b]) continue;
      open_[place / 64] &= ~(Bits{1} << place % 64);
      has_some = true;
    }
    return has_some;
  }

  // Call `visit` for one to three sources that tell all open pairs apart, three only with the first source, until it
  // returns false.
  template <typename Visit>
  void each(int64_t most, Visit visit) const {
    const int64_t num_sources = task_.num_sources;
    const auto is_few = [&](int64_t source) { return task_.num_values[source] <= kFew; };
    for (int32_t a = 0; a < num_sources; a++) {
      if (is_none(left(open_, a)) && !visit(Chosen{a, kNone, kNone, kNone})) return;
    }
    for (int32_t a = 0; a < num_sources; a++) {
      const Words rest = left(open_, a);
      for (int32_t b = a + 1; b < num_sources; b++) {
        if (are_apart(rest, b) && !visit(Chosen{a, b, kNone, kNone})) return;
      }
    }
    for (int32_t a = 1; a < num_sources && most > 2; a++) {
      if (!is_few(a)) continue;
      const Words rest = left(left(open_, 0), a);
      for (int32_t b = a + 1; b < num_sources; b++) {
        if (is_few(b) && are_apart(rest, b) && !visit(Chosen{0, a, b, kNone})) return;
      }
    }
  }

  // Whether two sources leave some pair, were none copied.
  bool leaves_some(int64_t a, int64_t b) const { return !are_apart(left(kAll, a), b); }

 private:
  static constexpr int64_t kWords = kHardest / 64;
  using Words = std::array<Bits, kWords>;

  static Words all() {
    Words words;
    words.fill(~Bits{0});
    return words;
  }

  // The pairs of some that a source does not tell apart.
  Words left(Words pairs, int64_t source) const {
    for (size_t w = 0; w < pairs.size(); w++) pairs[w] &= bits_[static_cast<size_t>(source * kWords) + w];
    return pairs;
  }

  static bool is_none(const Words& pairs) { return pairs == Words{}; }

  // Whether a source tells some pairs apart; the first word, of the hardest ones, mostly says that it does not.
  bool are_apart(const Words& pairs, int64_t source) const {
    return (pairs[0] & first_[static_cast<size_t>(source)]) == 0 && is_none(left(pairs, source));
  }

  const TableTask& task_;
  const Words kAll = all();
  Words open_ = kAll;
  std::vector<std::array<int64_t, 2>> cells_;
  std::vector<Bits> bits_;   // [sources, words]
  std::vector<Bits> first_;  // [sources] the first words
};

// The sources that are right at most cells, of equals the first; those that have no colors are left out.
inline std::vector<int32_t> copied_sources(const TableTask& task) {
  std::vector<int64_t> shares(static_cast<size_t>(task.num_sources), 0);
  for (int64_t k = 0; k < task.num_sources; k++) {
    const Cell* values = task.values + k * task.count;
    for (int64_t i = 0; i < task.count; i++) shares[static_cast<size_t>(k)] += values[i] == task.colors[i] ? task.counts[i] : 0;
  }
  std::vector<int32_t> found(shares.size());
  std::iota(found.begin(), found.end(), 0);
  std::stable_sort(found.begin(), found.end(), [&](int32_t a, int32_t b) {
    return shares[static_cast<size_t>(a)] > shares[static_cast<size_t>(b)];
  });
  found.resize(std::min(found.size(), kCopied));
  found.erase(std::remove_if(found.begin(), found.end(), [&](int32_t k) { return task.have_colors[k] == 0; }), found.end());
  return found;
}

// Find sets of sources whose table is right: first without copying, then for each source to copy from, where only the
// first `kTried` sets are looked at, and not those that tell everything apart without copying.
inline std::vector<RightTable> right_tables(const TableTask& task, int64_t num_pairs, const int64_t* pairs, double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  const auto is_late = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > seconds; };
  std::vector<RightTable> found;
  HardPairs hard(task, num_pairs, pairs, pairs + num_pairs);
  if (hard.empty() || is_late()) return found;
  const auto look = [&](int32_t copied) {
    TableCheck check(task, copied);
    int64_t tried = 0;
    hard.each(copied == kNone ? 3 : 2, [&](const Chosen& chosen) {
      const bool is_new = copied == kNone || hard.leaves_some(chosen[0], chosen[1] == kNone ? chosen[0] : chosen[1]);
      if (is_new && check.is_right(chosen)) {
        const int32_t cost = check.cost(chosen);
        if (cost >= 0) found.push_back({chosen, copied, cost});
      }
      return copied == kNone || ++tried < kTried;
    });
  };
  look(kNone);
  for (int32_t copied : copied_sources(task)) {
    if (is_late()) break;
    if (hard.copy(copied)) look(copied);
  }
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
// input (vote 0), and counts what its demonstration did not vote for. `votes` are zeros, before and after.
inline double faults(const VotingCells& cells, int64_t source, std::vector<double>& votes) {
  const int64_t values = cells.num_values[source], num_votes = cells.num_colors + 1;
  const int64_t stride = cells.num_pairs * num_votes;
  votes.resize(std::max(votes.size(), static_cast<size_t>(cells.num_rows * values * stride)));
  std::vector<uint8_t> is_there(static_cast<size_t>(cells.num_rows * values), 0);
  const uint8_t* codes = cells.codes + source * cells.count;
  double total = 0;
  for (int64_t i = 0; i < cells.count; i++) {
    const int64_t row = cells.rows[i] * values + codes[i];
    double* own = &votes[static_cast<size_t>(row * stride + cells.pairs[i] * num_votes)];
    is_there[static_cast<size_t>(row)] = 1;
    own[1 + cells.colors[i]] += cells.weights[i];
    own[0] += cells.are_copied[i] * cells.weights[i];
    total += cells.weights[i];
  }
  double right = 0;
  double sums[256];
  for (int64_t row = 0; row < cells.num_rows * values; row++) {
    if (is_there[static_cast<size_t>(row)] == 0) continue;
    double* all = &votes[static_cast<size_t>(row * stride)];
    std::fill(sums, sums + num_votes, 0);
    for (int64_t pair = 0; pair < cells.num_pairs; pair++) {
      for (int64_t vote = 0; vote < num_votes; vote++) sums[vote] += all[pair * num_votes + vote];
    }
    for (int64_t pair = 0; pair < cells.num_pairs; pair++) {
      const double* own = all + pair * num_votes;
      int64_t best = 0;
      for (int64_t vote = 1; vote < num_votes; vote++) {
        if (sums[vote] - own[vote] > sums[best] - own[best]) best = vote;
      }
      right += own[best];
    }
    std::fill_n(all, stride, 0);
  }
  return total - right;
}

}  // namespace jaxarc::search
