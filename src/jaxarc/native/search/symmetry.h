// Words that complete an image by its own symmetry or tiling, as in symmetry.py.
#pragma once

#include <limits>

#include "marks.h"

namespace jaxarc::search {

struct Flips {
  bool rows;
  bool columns;
  bool exchanges;  // rows and columns
};

// A center is the sum of a row and of its mirror image, `row + mirrored = s`, and the same for columns.
struct Center {
  int rows = 0;
  int columns = 0;
  double value = 0;  // above 0: something speaks for it
};

inline std::vector<Flips> flips_of(std::string_view kind) {
  constexpr Flips kColumns = {false, true, false}, kRows = {true, false, false}, kTurn = {true, true, false};
  if (kind == "left_right") return {kColumns};
  if (kind == "top_bottom") return {kRows};
  if (kind == "half_turn") return {kTurn};
  if (kind == "both") return {kColumns, kRows, kTurn};
  return {kColumns, kRows, kTurn, {false, false, true}, {true, true, true}, {false, true, true}, {true, false, true}};
}

// The mirror image of a cell; an exchange goes along the diagonal through the center.
inline Cell mirrored(const Image& image, const Center& center, const Flips& flips, int r, int c) {
  int row = flips.rows ? center.rows - r : r, column = flips.columns ? center.columns - c : c;
  if (!flips.exchanges) return image.seen(row, column);
  const int difference = center.rows - center.columns;
  const int offset = difference >= 0 ? difference / 2 : -((1 - difference) / 2);
  row -= offset;
  column += offset;
  return image.seen(column, row);
}

// Fill cells of color 0 from their mirror images where no known cell contradicts its own.
inline void fill_mirrored(const Image& image, std::string_view kind, const Center& center, Picture& out) {
  placed(image, image.row, image.column, out);
  if (!(center.value > 0)) return;
  const std::vector<Flips> all = flips_of(kind);
  for (int r = 0; r < image.height; r++) {
    for (int c = 0; c < image.width; c++) {
      const Cell own = image.at(r, c);
      for (const Flips& flips : all) {
        const Cell copy = mirrored(image, center, flips, r, c);
        if (own == 0) {
          out.at(r, c) = std::max(out.at(r, c), copy);
        } else if (copy != 0 && copy != own) {
          placed(image, image.row, image.column, out);
          return;
        }
      }
    }
  }
}

constexpr double kFault = 100;  // agreeing cells that one contradiction outweighs

// Of equal centers the one nearest the middle is best, and none is in the outer quarters.
inline double near_middle(int sum, int size) {
  const int half = size / 2;
  if (sum < half || sum >= 2 * size - half - 1) return -std::numeric_limits<double>::infinity();
  return -1e-3 * std::abs(sum - size + 1);
}

// How many cells agree with their mirror image in each line, less the faults, for each sum of two places in a line.
// In the row `1 2 1 3` three cells agree at the sum 2: the 1s, and the 2 with itself. At 3 all four contradict.
inline std::vector<double> mirrors(const Image& image, bool over_columns, int frame) {
  std::vector<double> values(static_cast<size_t>(2 * frame - 1), 0);
  const int lines = over_columns ? image.height : image.width, size = over_columns ? image.width : image.height;
  const auto at = [&](int line, int place) { return over_columns ? image.at(line, place) : image.at(place, line); };
  for (int sum = size / 2; sum < 2 * size - size / 2 - 1; sum++) {  // others are not allowed
    int agree = 0, both = 0;
    for (int place = std::max(0, sum - size + 1); place <= std::min(size - 1, sum); place++) {
      for (int line = 0; line < lines; line++) {
        const Cell a = at(line, place), b = at(line, sum - place);
        both += a != 0 && b != 0;
        agree += a != 0 && a == b;
      }
    }
    values[static_cast<size_t>(sum)] = agree - kFault * (both - agree);
  }
  return values;
}

inline uint64_t reversed(uint32_t bits) {
  uint32_t result = 0;
  for (int place = 0; place < 32; place++) result |= (bits >> place & 1) << (31 - place);
  return result;
}

// The best center of a half turn. Rows of one color are bits: a row meets its mirror image where `and` leaves bits.
inline Center half_turn_center(const Image& image) {
  const int height = image.height, width = image.width;
  uint32_t planes[kColors][kLargest] = {};  // 0: any color
  for (int r = 0; r < height; r++) {
    for (int c = 0; c < width; c++) {
      if (image.at(r, c) == 0) continue;
      planes[0][r] |= uint32_t{1} << c;
      planes[image.at(r, c)][r] |= uint32_t{1} << c;
    }
  }
  uint64_t turned[kColors][kLargest];
  bool has[kColors] = {};
  for (int color = 0; color < kColors; color++) {
    for (int r = 0; r < height; r++) {
      turned[color][r] = reversed(planes[color][r]);
      has[color] |= planes[color][r] != 0;
    }
  }
  Center best{0, 0, -std::numeric_limits<double>::infinity()};
  for (int s = height / 2; s < 2 * height - height / 2 - 1; s++) {
    for (int t = width / 2; t < 2 * width - width / 2 - 1; t++) {
      int counts[2] = {0, 0};  // of both, of those that agree
      for (int color = 0; color < kColors; color++) {
        if (!has[color]) continue;
        for (int r = std::max(0, s - height + 1); r <= std::min(height - 1, s); r++) {
          const uint64_t mirror = t >= 31 ? turned[color][s - r] << (t - 31) : turned[color][s - r] >> (31 - t);
          counts[color > 0] += __builtin_popcountll(planes[color][r] & mirror);
        }
      }
      double value = counts[1] - kFault * (counts[0] - counts[1]);
      value += near_middle(s, height);
      value += near_middle(t, width);
      if (value > best.value) best = {s, t, value};
    }
  }
  return best;
}

inline Center best_center(const Image& image, const std::string& kind, int frame) {
  if (kind == "half_turn") return half_turn_center(image);
  const size_t count = static_cast<size_t>(2 * frame - 1);
  std::vector<double> columns(count, 0), rows(count, 0);
  if (kind != "top_bottom") columns = mirrors(image, true, frame);
  if (kind != "left_right") rows = mirrors(image, false, frame);
  for (size_t sum = 0; sum < count; sum++) {
    columns[sum] += near_middle(static_cast<int>(sum), image.width);
    rows[sum] += near_middle(static_cast<int>(sum), image.height);
  }
  const auto best_of = [](const std::vector<double>& values) {
    return static_cast<int>(std::max_element(values.begin(), values.end()) - values.begin());
  };
  if (kind == "all") {
    for (size_t sum = 0; sum < count; sum++) rows[sum] += columns[sum];
    const int best = best_of(rows);
    return {best, best, rows[static_cast<size_t>(best)]};
  }
  const int row = best_of(rows), column = best_of(columns);
  return {row, column, rows[static_cast<size_t>(row)] + columns[static_cast<size_t>(column)]};
}

// An image whose colors fill less than a fifth of their box has no answer: little would speak for a center.
inline bool complete(const Image& image, const std::string& kind, int frame, Picture& out) {
  const Box box = colored_box(image);
  const int colored = image.size() - counts_of(image)[0];
  if (box.height == 0 || 5 * colored < box.size()) return false;
  if (colored == image.size()) return placed(image, image.row, image.column, out);
  fill_mirrored(image, kind, best_center(image, kind, frame), out);
  return true;
}

inline bool complete_symmetry(const Image& image, const Arguments& word, Picture& out) {
  return complete(image, word.text, word.frame, out);
}

// In `1 2 3 9 9 1` of color 9 the hidden cells are `3 2`; the image must be symmetric both ways.
inline bool behind(const Image& image, const Arguments& word, Picture& out) {
  constexpr int kSmallestHidden = 4;  // cells
  const Box box = box_of(image, [&](Cell cell) { return cell == word.first; });
  if (box.size() < kSmallestHidden || counts_of(image)[static_cast<size_t>(word.first)] != box.size()) return false;
  Picture shown, completed;
  recolor(image, shown, [&](Cell cell) { return cell == word.first ? 0 : cell; });
  if (!complete(shown.image(), "both", word.frame, completed)) return false;
  return window(completed.image(), box, word.frame, out);
}

// Complete around the color with most cells that is symmetric by itself.
inline bool complete_around(const Image& image, const Arguments& word, Picture& out) {
  const Counts counts = counts_of(image);
  const std::vector<Flips> all = flips_of(word.text);
  Center best;
  Picture mask;
  for (int color = 1; color < kColors; color++) {
    if (counts[static_cast<size_t>(color)] <= best.value) continue;
    const Box box = box_of(image, [&](Cell cell) { return cell == color; });
    const Center center = {2 * box.row + box.height - 1, 2 * box.column + box.width - 1,
                           static_cast<double>(counts[static_cast<size_t>(color)])};
    if (word.text == "all" && (center.rows - center.columns) % 2 != 0) continue;
    recolor(image, mask, [&](Cell cell) { return cell == color; });
    const Image own = mask.image();
    bool is_symmetric = true;
    for (int i = 0; i < image.size() && is_symmetric; i++) {
      const int r = i / image.width, c = i % image.width;
      for (const Flips& flips : all) is_symmetric &= mirrored(own, center, flips, r, c) == own.cells[i];
    }
    if (is_symmetric) best = center;
  }
  if (!(best.value > 0)) return false;
  fill_mirrored(image, word.text, best, out);
  return true;
}

// The smallest tiling, straight or sheared, that no colored cell contradicts. With a shear of 1 each tile stands one
// column further right than the one above: diagonal stripes have a tile of one row.
inline bool continue_pattern(const Image& image, const Arguments&, Picture& out) {
  constexpr int kLargestSheared = 64;  // cells of a tile that is tried sheared
  placed(image, image.row, image.column, out);
  const int known = image.size() - counts_of(image)[0];
  if (known == image.size()) return true;
  for (int size = 1; size <= known / 2; size++) {
    for (int down = 1; down <= std::min(size, image.height); down++) {
      const int right = size / down;
      if (size % down != 0 || right > image.width) continue;
      for (int shear = 0; shear < (size <= kLargestSheared ? right : 1); shear++) {
        const auto place = [&](int r, int c) {
          const int column = (c - shear * (r / down)) % right;
          return r % down * right + (column < 0 ? column + right : column);
        };
        Cell tile[kMostCells] = {};
        bool is_right = true;
        for (int r = 0; r < image.height && is_right; r++) {
          for (int c = 0; c < image.width && is_right; c++) {
            const Cell own = image.at(r, c);
            Cell& cell = tile[place(r, c)];
            is_right = own == 0 || cell == 0 || cell == own;
            if (own != 0) cell = own;
          }
        }
        if (!is_right) continue;
        return draw(out, [&](int r, int c) { return image.at(r, c) != 0 ? image.at(r, c) : tile[place(r, c)]; });
      }
    }
  }
  return true;
}

// Continue lines by the smallest period with which they repeat, else by the even distance of the colored ones, else
// without a gap: `2 5 2 0 0` becomes `2 5 2 5 2` to the right, and `2 0 8 0 0 0 0` becomes `2 0 8 0 2 0 8`.
inline bool continue_lines(const Image& image, const Arguments& word, Picture& out) {
  if (word.steps.empty()) return false;  // no direction
  const Step way = word.steps[0];
  const int count = way.down != 0 ? image.height : image.width, length = way.down != 0 ? image.width : image.height;
  const auto at = [&](int line, int place) -> int {
    if (way.down + way.right < 0) line = count - 1 - line;
    return way.down != 0 ? image.at(line, place) : image.at(place, line);
  };
  std::vector<int> colored;
  for (int line = 0; line < count; line++) {
    bool is_colored = false;
    for (int place = 0; place < length; place++) is_colored |= at(line, place) != 0;
    if (is_colored) colored.push_back(line);
  }
  placed(image, image.row, image.column, out);
  if (colored.empty()) return true;
  const int first = colored.front(), known = colored.back() + 1 - first;
  int period = 1;
  for (; period < known; period++) {
    bool repeats = true;
    for (int line = first; line + period < first + known && repeats; line++) {
      for (int place = 0; place < length && repeats; place++) repeats = at(line, place) == at(line + period, place);
    }
    if (repeats) break;
  }
  if (period >= known && colored.size() > 1) {
    const int step = colored[1] - colored[0];
    bool is_even = true;
    for (size_t i = 2; i < colored.size(); i++) is_even &= colored[i] - colored[i - 1] == step;
    if (is_even) period = step * static_cast<int>(colored.size());
  }
  return draw(out, [&](int r, int c) {
    int line = way.down != 0 ? r : c;
    if (way.down + way.right < 0) line = count - 1 - line;
    const int place = way.down != 0 ? c : r, from = line < first ? line : (line - first) % period;
    return line < first ? 0 : from < known ? at(first + from, place) : 0;
  });
}

// In `1 2 1 2 1` the unit is `1 2`. An image that repeats nothing has no answer.
inline bool unit(const Image& image, const Arguments& word, Picture& out) {
  int height = image.height, width = image.width;
  for (int step = image.height / 2; step > 0; step--) {
    const size_t rest = static_cast<size_t>((image.height - step) * image.width);
    if (std::memcmp(image.cells + step * image.width, image.cells, rest) == 0) height = step;
  }
  for (int step = image.width / 2; step > 0; step--) {
    bool repeats = true;
    for (int r = 0; r < image.height && repeats; r++) {
      const Cell* row = image.cells + r * image.width;
      repeats = std::memcmp(row + step, row, static_cast<size_t>(image.width - step)) == 0;
    }
    if (repeats) width = step;
  }
  if (height == image.height && width == image.width) return false;
  return window(image, {0, 0, height, width}, word.frame, out);
}

}  // namespace jaxarc::search
