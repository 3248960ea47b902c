// Words that choose colors, crop, mirror, move, scale and count, as in functions.py.
#pragma once

#include <numeric>
#include <string>

#include "grid.h"

namespace jaxarc::search {

// What a word has beside its image.
struct Arguments {
  int frame = kLargest;  // rows and columns that an image may have
  int first = 0;         // numbers of the word
  int second = 0;
  std::string text;         // its first argument as a text
  std::vector<Step> steps;  // the directions of that name
};

// Write what a word makes of an image; false where it has no answer.
using Kernel = bool (*)(const Image&, const Arguments&, Picture&);

inline bool keep_color(const Image& image, const Arguments& word, Picture& out) {
  return recolor(image, out, [&](Cell cell) { return cell == word.first ? cell : 0; });
}

inline bool drop_color(const Image& image, const Arguments& word, Picture& out) {
  return recolor(image, out, [&](Cell cell) { return cell == word.first ? 0 : cell; });
}

inline bool paint(const Image& image, const Arguments& word, Picture& out) {
  return recolor(image, out, [&](Cell cell) { return cell != 0 ? word.first : 0; });
}

inline bool keep_commonest(const Image& image, const Arguments&, Picture& out) {
  const int common = common_color(image);
  return recolor(image, out, [&](Cell cell) { return cell == common ? cell : 0; });
}

inline bool keep_rarest(const Image& image, const Arguments&, Picture& out) {
  const Counts counts = counts_of(image);
  int rarest = 0;
  for (int color = 1; color < kColors; color++) {
    if (counts[color] > 0 && (rarest == 0 || counts[color] < counts[rarest])) rarest = color;
  }
  return recolor(image, out, [&](Cell cell) { return cell == rarest ? cell : 0; });
}

inline bool drop_commonest(const Image& image, const Arguments&, Picture& out) {
  const int common = common_color(image);
  return recolor(image, out, [&](Cell cell) { return cell == common ? 0 : cell; });
}

inline bool crop(const Image& image, const Arguments& word, Picture& out) {
  return window(image, colored_box(image), word.frame, out);
}

inline bool crop_to_color(const Image& image, const Arguments& word, Picture& out) {
  return window(image, box_of(image, [&](Cell cell) { return cell == word.first; }), word.frame, out);
}

inline bool peel(const Image& image, const Arguments& word, Picture& out) {
  return window(image, {1, 1, image.height - 2, image.width - 2}, word.frame, out);
}

inline bool surround(const Image& image, const Arguments& word, Picture& out) {
  if (!begin(image, image.height + 2, image.width + 2, word.frame, out)) return false;
  out.row--;
  out.column--;
  const int common = common_color(image);
  return draw(out, [&](int r, int c) { return is_edge(out, r, c) ? common : image.at(r - 1, c - 1); });
}

inline bool fill_box(const Image& image, const Arguments&, Picture& out) {
  const int common = common_color(image);
  return recolor(image, out, [&](Cell) { return common; });
}

inline bool invert(const Image& image, const Arguments&, Picture& out) {
  const int common = common_color(image);
  return recolor(image, out, [&](Cell cell) { return cell == 0 ? common : 0; });
}

inline bool fill_ground(const Image& image, const Arguments&, Picture& out) {
  const int common = common_color(image);
  return recolor(image, out, [&](Cell cell) { return cell == 0 ? common : cell; });
}

// Copy an image to another position.
inline bool placed(const Image& image, int row, int column, Picture& out) {
  static_cast<Box&>(out) = {row, column, image.height, image.width};
  std::memcpy(out.cells, image.cells, static_cast<size_t>(image.size()));
  return true;
}

inline bool to_origin(const Image& image, const Arguments&, Picture& out) { return placed(image, 0, 0, out); }

inline bool to_center(const Image& image, const Arguments&, Picture& out) {
  return placed(image, -(image.height / 2), -(image.width / 2), out);
}

inline bool move(const Image& image, const Arguments& word, Picture& out) {
  return placed(image, image.row + word.first, image.column + word.second, out);
}

// First rows and columns may be exchanged, then rows and columns mirrored: turning left is both exchanged and rows
// mirrored, `1 2 / 3 4` becomes `1 3 / 2 4` and then `2 4 / 1 3`.
inline bool rigid(const Image& image, const Arguments& word, Picture& out) {
  const std::string& kind = word.text;
  const bool exchanges = kind == "turn_90" || kind == "turn_270" || kind == "transpose" || kind == "anti_transpose";
  const bool flips_rows = kind == "turn_90" || kind == "turn_180" || kind == "flip_rows" || kind == "anti_transpose";
  const bool flips_columns =
      kind == "turn_270" || kind == "turn_180" || kind == "flip_columns" || kind == "anti_transpose";
  const int height = exchanges ? image.width : image.height;
  const int width = exchanges ? image.height : image.width;
  if (!begin(image, height, width, word.frame, out)) return false;
  return draw(out, [&](int r, int c) {
    const int row = flips_rows ? height - 1 - r : r;
    const int column = flips_columns ? width - 1 - c : c;
    return exchanges ? image.at(column, row) : image.at(row, column);
  });
}

inline bool shift(const Image& image, const Arguments& word, Picture& out) {
  begin_same(image, out);
  return draw(out, [&](int r, int c) { return image.seen(r - word.first, c - word.second); });
}

inline bool trail(const Image& image, const Arguments& word, Picture& out) {
  const Box box = colored_box(image);
  const int down = word.first * box.height, right = word.second * box.width;
  placed(image, image.row, image.column, out);
  bool is_seen = box.height > 0;
  for (int count = 1; count < word.frame && is_seen; count++) {
    is_seen = false;
    for (int r = 0; r < image.height; r++) {
      for (int c = 0; c < image.width; c++) {
        const Cell cell = image.seen(r - count * down, c - count * right);
        is_seen |= cell != 0;
        if (out.at(r, c) == 0) out.at(r, c) = cell;
      }
    }
  }
  return true;
}

inline bool enlarged(const Image& image, int height, int width, int frame, Picture& out) {
  return window(image, {0, 0, height, width}, frame, out);
}

inline bool pad_to(const Image& image, const Arguments& word, Picture& out) {
  if (image.size() >= word.first * word.second || image.height > word.first || image.width > word.second) return false;
  return enlarged(image, word.first, word.second, word.frame, out);
}

inline bool pad(const Image& image, const Arguments& word, Picture& out) {
  return enlarged(image, image.height * word.first, image.width * word.second, word.frame, out);
}

inline bool half(const Image& image, const Arguments& word, Picture& out) {
  const std::string& side = word.text;
  const int height = side == "top" || side == "bottom" ? image.height / 2 : image.height;
  const int width = side == "left" || side == "right" ? image.width / 2 : image.width;
  const int top = side == "bottom" ? image.height - height : 0;
  const int left = side == "right" ? image.width - width : 0;
  return window(image, {top, left, height, width}, word.frame, out);
}

inline bool upscaled(const Image& image, int down, int right, int frame, Picture& out) {
  if (!begin(image, image.height * down, image.width * right, frame, out)) return false;
  return draw(out, [&](int r, int c) { return image.at(r / down, c / right); });
}

inline bool upscale(const Image& image, const Arguments& word, Picture& out) {
  return upscaled(image, word.first, word.second, word.frame, out);
}

inline bool upscale_by_colors(const Image& image, const Arguments& word, Picture& out) {
  const int number = static_cast<int>(colors_by_count(counts_of(image)).size());
  return number > 1 && upscaled(image, number, number, word.frame, out);
}

inline bool tile(const Image& image, const Arguments& word, Picture& out) {
  if (!begin(image, image.height * word.first, image.width * word.second, word.frame, out)) return false;
  return draw(out, [&](int r, int c) { return image.at(r % image.height, c % image.width); });
}

// The place in a line of which each copy is the mirror image of the one before: 0 1 2 2 1 0 0 1 2 ...
inline int mirrored_place(int place, int size) {
  place %= 2 * size;
  return place < size ? place : 2 * size - 1 - place;
}

inline bool mirror_tile(const Image& image, const Arguments& word, Picture& out) {
  if (!begin(image, image.height * word.first, image.width * word.second, word.frame, out)) return false;
  return draw(out, [&](int r, int c) {
    return image.at(mirrored_place(r, image.height), mirrored_place(c, image.width));
  });
}

inline bool rows_differ(const Image& image, int a, int b) {
  return std::memcmp(image.cells + a * image.width, image.cells + b * image.width,
                     static_cast<size_t>(image.width)) != 0;
}

inline bool columns_differ(const Image& image, int a, int b) {
  for (int r = 0; r < image.height; r++) {
    if (image.at(r, a) != image.at(r, b)) return true;
  }
  return false;
}

// `1 1 2 2 2 2` changes at 2 and ends at 6; blocks of their greatest common divisor, 2, give `1 2 2`.
inline bool downscale(const Image& image, const Arguments& word, Picture& out) {
  int down = image.height, right = image.width;
  for (int r = 1; r < image.height; r++) {
    if (rows_differ(image, r, r - 1)) down = std::gcd(down, r);
  }
  for (int c = 1; c < image.width; c++) {
    if (columns_differ(image, c, c - 1)) right = std::gcd(right, c);
  }
  if (!begin(image, image.height / down, image.width / right, word.frame, out)) return false;
  return draw(out, [&](int r, int c) { return image.at(r * down, c * right); });
}

inline bool kept_lines(const Image& image, const std::vector<int>& rows, const std::vector<int>& columns, int frame,
                       Picture& out) {
  if (!begin(image, static_cast<int>(rows.size()), static_cast<int>(columns.size()), frame, out)) return false;
  return draw(out, [&](int r, int c) { return image.at(rows[static_cast<size_t>(r)], columns[static_cast<size_t>(c)]); });
}

inline bool drop_empty_lines(const Image& image, const Arguments& word, Picture& out) {
  uint32_t some_rows = 0, some_columns = 0;
  for (int r = 0; r < image.height; r++) {
    for (int c = 0; c < image.width; c++) {
      if (image.at(r, c) == 0) continue;
      some_rows |= uint32_t{1} << r;
      some_columns |= uint32_t{1} << c;
    }
  }
  std::vector<int> rows, columns;
  for (int place = 0; place < kLargest; place++) {
    if (some_rows >> place & 1) rows.push_back(place);
    if (some_columns >> place & 1) columns.push_back(place);
  }
  return kept_lines(image, rows, columns, word.frame, out);
}

inline bool drop_repeated_lines(const Image& image, const Arguments& word, Picture& out) {
  std::vector<int> rows = {0}, columns = {0};
  for (int r = 1; r < image.height; r++) {
    if (rows_differ(image, r, r - 1)) rows.push_back(r);
  }
  for (int c = 1; c < image.width; c++) {
    if (columns_differ(image, c, c - 1)) columns.push_back(c);
  }
  return kept_lines(image, rows, columns, word.frame, out);
}

inline bool kronecker(const Image& image, const Arguments& word, Picture& out) {
  const int height = image.height, width = image.width;
  if (!begin(image, height * height, width * width, word.frame, out)) return false;
  return draw(out, [&](int r, int c) { return image.at(r / height, c / width) != 0 ? image.at(r % height, c % width) : 0; });
}

inline bool column_of_colors(const Image& image, const Arguments& word, Picture& out) {
  const std::vector<int> colors = colors_by_count(counts_of(image));
  if (!begin(image, static_cast<int>(colors.size()), 1, word.frame, out)) return false;
  return draw(out, [&](int r, int) { return colors[static_cast<size_t>(r)]; });
}

// A row of so many cells of the commonest color.
inline bool bar(const Image& image, int number, int frame, Picture& out) {
  if (!begin(image, 1, number, frame, out)) return false;
  const int common = common_color(image);
  return draw(out, [&](int, int) { return common; });
}

inline bool bars(const Image& image, const Arguments& word, Picture& out) {
  return bar(image, image.size() - counts_of(image)[0], word.frame, out);
}

inline bool exchange_colors(const Image& image, const Arguments&, Picture& out) {
  const std::vector<int> colors = colors_by_count(counts_of(image));
  if (colors.size() != 2) return false;
  return recolor(image, out, [&](Cell cell) { return cell == 0 ? 0 : cell == colors[0] ? colors[1] : colors[0]; });
}

}  // namespace jaxarc::search
