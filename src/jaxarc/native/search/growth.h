// Rules that draw on: a cell takes a color by its neighbors, again and again until nothing changes; growth.py runs them.
//
// A rule has the color of a cell, up to three of its neighbors, and the color that it takes. `0 left x = x` makes each
// color grow to the right: `3 0 0 0` becomes `3 3 0 0`, `3 3 3 0`, `3 3 3 3`. It also stands for its mirror images.
#pragma once

#include "pieces.h"

namespace jaxarc::search {

constexpr int kNear = 8;                // neighbors at a step
constexpr int kPlaces = 2 * kNear;     // and behind them those at two steps
constexpr int kOutside = 10;           // besides colors: the edge,
constexpr int kSame = 11, kOther = 12;  // color x, and any color but 0 and x
constexpr int kAny = 15;               // a neighbor that a rule does not look at
constexpr int kMostTests = 3;          // neighbors that a rule looks at
constexpr int kMostRules = 6;
constexpr int64_t kLeastCells = 2;     // that a rule explains; one for a single cell has learned it by heart
constexpr int kTrials = 12;            // rules that are run, of those that explain most cells
constexpr size_t kMostSets = 248;      // of one to three neighbors; see add_set
constexpr size_t kMostKinds = 2000;    // of cells that differ in their neighbors; a grid with more is a picture

// What a mirror image of a rule is, as factors of rows and columns, which are exchanged first or not.
struct Mirror {
  bool exchanges;
  int rows;
  int columns;
};

constexpr Mirror kMirrors[8] = {{false, 1, 1},  {false, -1, -1}, {true, -1, 1}, {true, 1, -1},
                                {false, 1, -1}, {false, -1, 1},  {true, 1, 1},  {true, -1, -1}};
// The mirror images of a kind: all, quarter turns, both flips, left and right, top and bottom, none.
constexpr int kKinds[6][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, -1}, {0, 1, 4, 5, -1}, {0, 4, -1}, {0, 5, -1}, {0, -1}};

struct GrowthRule {
  uint64_t places = 0;  // four bits for each neighbor: a color, kOutside, kSame, kOther or kAny
  int own = 0;
  int color = 0;  // or kSame

  int at(int place) const { return static_cast<int>(places >> (4 * place) & 15); }
  int num_tests() const {
    int count = 0;
    for (int place = 0; place < kPlaces; place++) count += at(place) != kAny;
    return count;
  }
};

// A grid with a border of two cells outside of it, so that all neighbors of a cell are there.
class GrowthGrid {
 public:
  static constexpr int kBorder = 2, kSide = kLargest + 2 * kBorder;

  GrowthGrid(int height, int width, const Cell* cells) : height(height), width(width) {
    std::fill_n(cells_, kSide * kSide, static_cast<Cell>(kOutside));
    for (int r = 0; r < height; r++) std::memcpy(cells_ + place(r, 0), cells + r * width, static_cast<size_t>(width));
  }

  static int place(int r, int c) { return (r + kBorder) * kSide + c + kBorder; }
  Cell& operator[](int place) { return cells_[place]; }
  Cell operator[](int place) const { return cells_[place]; }

  template <typename Visit>
  void each(Visit visit) const {
    for (int r = 0; r < height; r++) {
      for (int c = 0; c < width; c++) visit(place(r, c));
    }
  }

  int height;
  int width;

 private:
  Cell cells_[kSide * kSide];
};

class GrowthLearner {
 public:
  GrowthLearner(int kind, int places) {
    for (int p = 0; p < kPlaces; p++) {
      const Step step = kSteps[p % kNear].step;
      offsets_[p] = (step.down * GrowthGrid::kSide + step.right) * (1 + p / kNear);
    }
    for (int m = 0; m < 8 && kKinds[kind][m] >= 0; m++) {
      const Mirror& mirror = kMirrors[kKinds[kind][m]];
      std::array<int, kPlaces> turned{};
      for (int p = 0; p < kPlaces; p++) {
        Step step = kSteps[p % kNear].step;
        if (mirror.exchanges) std::swap(step.down, step.right);
        step = {step.down * mirror.rows, step.right * mirror.columns};
        for (int q = 0; q < kNear; q++) {
          if (kSteps[q].step.down != step.down || kSteps[q].step.right != step.right) continue;
          turned[static_cast<size_t>(p)] = q + p / kNear * kNear;
        }
      }
      mirrors_.push_back(turned);
    }
    // One or two neighbors, or three of which two are near and the third is near or behind one of them.
    for (int a = 0; a < places; a++) {
      add_set({a});
      for (int b = 0; b < a; b++) add_set({b, a});
      for (int b = 0; b < kNear && b != a; b++) {
        for (int c = 0; c < b; c++) {
          if (a < kNear || b == a - kNear || c == a - kNear) add_set({c, b, a});
        }
      }
    }
  }

  // Find rules that make each input its output; false if there are none.
  bool learn(const std::vector<GrowthGrid>& inputs, const std::vector<GrowthGrid>& outputs,
             std::vector<GrowthRule>& rules) {
    rules.clear();
    int64_t open = 0;
    for (size_t k = 0; k < inputs.size(); k++) {
      inputs[k].each([&](int place) { open += inputs[k][place] != outputs[k][place]; });
    }
    std::vector<GrowthGrid> states = inputs;
    while (open > 0) {
      if (rules.size() == kMostRules) return false;
      std::vector<GrowthRule> tried = candidates(inputs, states, outputs);
      int64_t least = open;
      GrowthRule best;
      std::vector<GrowthGrid> best_states;
      rules.emplace_back();
      for (const GrowthRule& rule : tried) {
        rules.back() = rule;
        std::vector<GrowthGrid> made = inputs;
        int64_t rest = 0;
        for (size_t k = 0; k < made.size() && rest >= 0; k++) rest = run(rules, made[k], &outputs[k], rest);
        if (rest < 0 || rest >= least) continue;
        least = rest;
        best = rule;
        best_states = made;
      }
      if (open - least < kLeastCells) return false;
      rules.back() = best;
      states = best_states;
      open = least;
    }
    return !rules.empty();
  }

  // Apply rules until nothing changes. With an output, return `before` and how many cells still differ, or -1 as soon
  // as a cell takes a wrong color.
  int64_t run(const std::vector<GrowthRule>& rules, GrowthGrid& grid, const GrowthGrid* output, int64_t before) {
    const std::vector<Tests> tests = all_tests(rules);
    std::vector<int> active, changed;
    std::vector<Cell> colors;
    grid.each([&](int place) { active.push_back(place); });
    std::array<uint8_t, GrowthGrid::kSide * GrowthGrid::kSide> is_done{}, is_active{};
    while (!active.empty()) {
      changed.clear();
      colors.clear();
      for (int place : active) {
        is_active[static_cast<size_t>(place)] = 0;
        if (is_done[static_cast<size_t>(place)] != 0) continue;
        const int color = color_by(tests, grid, place);
        if (color < 0) continue;
        if (output != nullptr && (*output)[place] != color) return -1;
        changed.push_back(place);
        colors.push_back(static_cast<Cell>(color));
      }
      active.clear();
      for (size_t i = 0; i < changed.size(); i++) {
        grid[changed[i]] = colors[i];
        is_done[static_cast<size_t>(changed[i])] = 1;
      }
      for (int place : changed) {
        for (int offset : offsets_) {
          const int next = place - offset;
          if (grid[next] == kOutside || is_done[static_cast<size_t>(next)] || is_active[static_cast<size_t>(next)]) {
            continue;
          }
          is_active[static_cast<size_t>(next)] = 1;
          active.push_back(next);
        }
      }
    }
    if (output != nullptr) grid.each([&](int place) { before += grid[place] != (*output)[place]; });
    return before;
  }

 private:
  // A mirror image of a rule, its tests by the way to the neighbor; those of color x come first, as others differ from it.
  struct Tests {
    int own;
    int color;
    int count;
    int offsets[kMostTests];
    int tokens[kMostTests];
  };

  std::vector<Tests> all_tests(const std::vector<GrowthRule>& rules) const {
    std::vector<Tests> found;
    for (const GrowthRule& rule : rules) {
      for (const auto& turned : mirrors_) {
        Tests tests = {rule.own, rule.color, 0, {}, {}};
        for (bool is_same : {true, false}) {
          for (int p = 0; p < kPlaces; p++) {
            if (rule.at(p) == kAny || (rule.at(p) == kSame) != is_same) continue;
            tests.offsets[tests.count] = offsets_[turned[static_cast<size_t>(p)]];
            tests.tokens[tests.count++] = rule.at(p);
          }
        }
        found.push_back(tests);
      }
    }
    return found;
  }

  // The color that a cell takes by the first rule that fits; -1 if none does.
  static int color_by(const std::vector<Tests>& rules, const GrowthGrid& grid, int place) {
    for (const Tests& rule : rules) {
      if (rule.own != grid[place]) continue;
      int same = 0;
      bool fits = true;
      for (int k = 0; k < rule.count && fits; k++) {
        const int seen = grid[place + rule.offsets[k]], wanted = rule.tokens[k];
        const bool is_color = seen != 0 && seen != kOutside;
        if (wanted == kSame) {
          fits = is_color && (same == 0 || seen == same);
          same = seen;
        } else {
          fits = wanted == kOther ? is_color && seen != same : seen == wanted;
        }
      }
      const int color = rule.color == kSame ? same : rule.color;
      if (fits && color != rule.own) return color;
    }
    return -1;
  }

  // What the cells say at which a rule without its color fits.
  struct Evidence {
    uint64_t places = 0;
    int own = 0;
    uint32_t targets = 0;    // bits of the colors that these cells have in the outputs
    bool is_same = true;     // whether they all have color x
    int32_t now = 0;         // open cells
    int32_t later = 0;       // that will be, when all others are as in the outputs
  };

  // Rules that no cell contradicts and that explain an open cell, those that explain most first.
  std::vector<GrowthRule> candidates(const std::vector<GrowthGrid>& inputs, const std::vector<GrowthGrid>& states,
                                     const std::vector<GrowthGrid>& outputs) {
    // Cells that are alike say the same: each kind is one number, of four bits for each neighbor and what else matters.
    std::vector<std::pair<uint64_t, int>> kinds;
    const auto note = [&](const GrowthGrid& grid, int place, int own, int target, bool is_now) {
      uint64_t kind = 0;
      for (int offset : offsets_) kind = kind << 4 | grid[place + offset];
      kinds.push_back({kind, (is_now ? 256 : 0) + own * 16 + target});
    };
    for (size_t k = 0; k < inputs.size(); k++) {
      inputs[k].each([&](int place) {
        const int own = inputs[k][place], target = outputs[k][place];
        if (states[k][place] == own) note(states[k], place, own, target, true);
        if (own == target || states[k][place] == own) note(outputs[k], place, own, target, false);
      });
    }
    std::sort(kinds.begin(), kinds.end());
    size_t num_kinds = 0;
    for (size_t i = 0; i < kinds.size(); i++) num_kinds += i == 0 || kinds[i] != kinds[i - 1];
    if (num_kinds > kMostKinds) return {};
    // Call `take(own, target, is_now, count, places, x)` for all that the kinds say, of those with `is_asked`.
    const auto each_kind = [&](auto is_asked, auto take) {
      for (size_t first = 0, last = 0; first < kinds.size(); first = last) {
        while (last < kinds.size() && kinds[last] == kinds[first]) last++;
        const auto [kind, more] = kinds[first];
        const int target = more & 15, own = more >> 4 & 15;
        const bool is_now = more >= 256;
        if (!is_asked(own, target, is_now)) continue;
        const bool is_closed = is_now && own == target;  // which says the same as it does later
        if (is_closed && std::binary_search(kinds.begin(), kinds.end(), std::pair{kind, more - 256})) continue;
        int seen[kPlaces];
        for (int p = 0; p < kPlaces; p++) seen[p] = kind >> (4 * (kPlaces - 1 - p)) & 15;
        const auto count = static_cast<int32_t>(last - first);
        each_key(seen, own, [&](uint64_t places, int same) { take(own, target, is_now, count, places, same); });
      }
    };
    // A rule has to explain an open cell, so that these say which rules there are, and all cells then what they do.
    HashIndex index;
    uint32_t owns = 0;  // bits of the colors of open cells
    const auto hash = [](uint64_t places, int own) { return mixed(places, static_cast<uint64_t>(own)); };
    each_kind([](int own, int target, bool is_now) { return is_now && own != target; },
              [&](int own, int, bool, int32_t, uint64_t places, int) {
                index.number(hash(places, own));
                owns |= uint32_t{1} << own;
              });
    // All that is no such rule is counted together, at the first place.
    std::vector<Evidence> found(static_cast<size_t>(1 + index.size()));
    found[0].targets = 1;
    std::vector<int32_t> order;  // in which they are seen first
    each_kind([&](int own, int, bool) { return (owns >> own & 1) != 0; },
              [&](int own, int target, bool is_now, int32_t count, uint64_t places, int same) {
                const int32_t place = 1 + index.known(hash(places, own));
                Evidence& one = found[static_cast<size_t>(place)];
                if (one.targets == 0) {
                  one.places = places;
                  one.own = own;
                  order.push_back(place);
                }
                one.targets |= uint32_t{1} << target;
                one.is_same &= same != 0 && same == target;  // where no neighbor is x there is no x to take
                if (own != target) (is_now ? one.now : one.later) += count;
              });
    std::vector<std::pair<std::array<int32_t, 3>, GrowthRule>> rules;
    for (int32_t place : order) {
      const Evidence& one = found[static_cast<size_t>(place)];
      const int color = one.is_same ? kSame : __builtin_popcount(one.targets) == 1 ? __builtin_ctz(one.targets) : kNone;
      if (color == kNone) continue;
      const GrowthRule rule = {one.places, one.own, color};
      rules.push_back({{-(one.now + one.later), rule.num_tests(), color == kSame ? 0 : 1}, rule});
    }
    const size_t count = std::min<size_t>(rules.size(), kTrials);
    const auto is_less = [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second.places < b.second.places;
    };
    std::partial_sort(rules.begin(), rules.begin() + static_cast<int64_t>(count), rules.end(), is_less);
    std::vector<GrowthRule> kept;
    for (size_t i = 0; i < count; i++) kept.push_back(rules[i].second);
    return kept;
  }

  // Call `take(places, x)` for each set of neighbors by their colors, and for each color x by what is x; x is 0 where
  // there is none. Of mirror images only the first in order is taken. A set without a color says nothing.
  template <typename Take>
  void each_key(const int* seen, int own, Take take) const {
    uint32_t colors = 0;
    for (int p = 0; p < kPlaces; p++) {
      if (seen[p] != 0 && seen[p] != kOutside) colors |= uint32_t{1} << seen[p];
    }
    if (colors == 0) return;
    each_set(seen, [](int token) { return token != 0 && token != kOutside; }, [&](uint64_t key) { take(key, 0); });
    for (int same = 1; same < kColors; same++) {
      if ((colors >> same & 1) == 0 || same == own) continue;
      int tokens[kPlaces];  // the colors, as x and others
      for (int p = 0; p < kPlaces; p++) {
        tokens[p] = seen[p] == 0 || seen[p] == kOutside ? seen[p] : seen[p] == same ? kSame : kOther;
      }
      each_set(tokens, [](int token) { return token == kSame; }, [&](uint64_t key) { take(key, same); });
    }
  }

  // A set of neighbors, as bits, and for each mirror image ones in the four bits of all others.
  struct Set {
    uint32_t places = 0;
    std::array<uint64_t, 8> others;
  };

  void add_set(std::initializer_list<int> places) {
    Set set;
    set.others.fill(~uint64_t{0});
    for (int p : places) {
      set.places |= uint32_t{1} << p;
      for (size_t m = 0; m < mirrors_.size(); m++) {
        set.others[m] &= ~(uint64_t{15} << 4 * mirrors_[m][static_cast<size_t>(p)]);
      }
    }
    sets_.push_back(set);
  }

  // The key of a set is that of all neighbors with ones over those that it does not look at: kAny is four ones. All are
  // made before the first is taken, as a branch in between that often goes either way is slow.
  template <typename Needed, typename Take>
  void each_set(const int* tokens, Needed is_needed, Take take) const {
    uint32_t needed = 0;
    std::array<uint64_t, 8> keys{};  // of all neighbors, for each mirror image
    for (int p = 0; p < kPlaces; p++) {
      needed |= uint32_t{is_needed(tokens[p])} << p;
      for (size_t m = 0; m < mirrors_.size(); m++) {
        keys[m] |= static_cast<uint64_t>(tokens[p]) << 4 * mirrors_[m][static_cast<size_t>(p)];
      }
    }
    uint64_t found[kMostSets + 1];
    size_t count = 0;
    for (const Set& set : sets_) {
      uint64_t least = ~uint64_t{0};
      for (size_t m = 0; m < 4; m++) least = std::min(least, keys[m] | set.others[m]);
      for (size_t m = 4; m < 8 && mirrors_.size() > 4; m++) least = std::min(least, keys[m] | set.others[m]);
      found[count] = least;
      count += (set.places & needed) != 0;
    }
    for (size_t k = 0; k < count; k++) take(found[k]);
  }

  int offsets_[kPlaces];
  std::vector<std::array<int, kPlaces>> mirrors_;  // neighbor -> neighbor
  std::vector<Set> sets_;                          // of neighbors
};

}  // namespace jaxarc::search
