// Words that draw and move cells: rays, connections, fills, outlines, gravity, as in marks.py.
#pragma once

#include "shapes.h"

namespace jaxarc::search {

inline bool smear(const Image& image, const Arguments& word, Picture& out) {
  placed(image, image.row, image.column, out);
  Cell found[kMostCells];
  for (const Step& step : word.steps) {
    ray(image, image.cells, step, found);
    for (int i = 0; i < image.size(); i++) out.cells[i] = out.cells[i] == 0 ? found[i] : out.cells[i];
  }
  return true;
}

// In one direction every second cell takes the color of the cell two before it: `3 0 0 0 0` becomes `3 0 3 0 3`.
inline bool smear_dotted(const Image& image, const Arguments& word, Picture& out) {
  placed(image, image.row, image.column, out);
  Cell found[kMostCells];
  for (const Step& step : word.steps) {
    ray(image, image.cells, {2 * step.down, 2 * step.right}, found);
    for (int i = 0; i < image.size(); i++) out.cells[i] = out.cells[i] == 0 ? found[i] : out.cells[i];
  }
  return true;
}

// A cell of color 0 that sees one color on both sides of a line takes it.
inline bool connect(const Image& image, const Arguments& word, Picture& out) {
  placed(image, image.row, image.column, out);
  Cell first[kMostCells], second[kMostCells];
  for (size_t line = 0; line + 1 < word.steps.size(); line += 2) {
    ray(image, image.cells, word.steps[line], first);
    ray(image, image.cells, word.steps[line + 1], second);
    for (int i = 0; i < image.size(); i++) {
      if (out.cells[i] == 0 && first[i] == second[i]) out.cells[i] = first[i];
    }
  }
  return true;
}

inline bool corner(const Image& image, const Arguments&, Picture& out) {
  std::vector<int> places;
  for (int i = 0; i < image.size(); i++) {
    if (image.cells[i] != 0) places.push_back(i);
  }
  if (places.size() != 2 || image.cells[places[0]] == image.cells[places[1]]) return false;
  const bool is_first_low = image.cells[places[0]] < image.cells[places[1]];
  const int low = places[is_first_low ? 0 : 1], high = places[is_first_low ? 1 : 0];
  const int low_row = low / image.width, low_column = low % image.width;
  const int high_row = high / image.width, high_column = high % image.width;
  const auto between = [](int place, int a, int b) { return place >= std::min(a, b) && place <= std::max(a, b); };
  begin_same(image, out);
  return draw(out, [&](int r, int c) {
    const bool is_across = r == low_row && between(c, low_column, high_column);
    const bool is_down = c == high_column && between(r, low_row, high_row);
    return is_across || is_down ? image.cells[low] : 0;
  });
}

// In 3 columns a cell at the left goes on to the columns 1, 2, 1, 0, 1: those of `0 1 2 1` again and again.
inline bool zigzag(const Image& image, const Arguments&, Picture& out) {
  if (image.size() - counts_of(image)[0] != 1) return false;
  int place = 0;
  while (image.cells[place] == 0) place++;
  const int row = place / image.width, column = place % image.width, color = image.cells[place];
  const int period = std::max(2 * (image.width - 1), 1);
  begin_same(image, out);
  return draw(out, [&](int r, int c) {
    const int turn = (column + std::abs(r - row)) % period;
    return c == std::min(turn, period - turn) ? color : 0;
  });
}

// Mark the cells of color 0 from which no path of straight steps over color 0 leads to the edge.
inline void mark_enclosed(const Image& image, bool* enclosed) {
  uint16_t labels[kMostCells];
  const int count = label(image, false, false, [&](int i) { return image.cells[i] == 0; }, labels);
  bool is_open[kMostCells + 1] = {true};
  std::fill(is_open + 1, is_open + count + 1, false);
  for (int i = 0; i < image.size(); i++) {
    if (is_edge(image, i / image.width, i % image.width)) is_open[labels[i]] = true;
  }
  for (int i = 0; i < image.size(); i++) enclosed[i] = !is_open[labels[i]];
}

inline bool fill_enclosed(const Image& image, const Arguments&, Picture& out) {
  bool is_enclosed[kMostCells];
  mark_enclosed(image, is_enclosed);
  begin_same(image, out);
  const int common = common_color(image);
  for (int i = 0; i < image.size(); i++) out.cells[i] = is_enclosed[i] ? static_cast<Cell>(common) : image.cells[i];
  return true;
}

inline bool enclosed(const Image& image, const Arguments&, Picture& out) {
  bool is_enclosed[kMostCells];
  mark_enclosed(image, is_enclosed);
  begin_same(image, out);
  const int common = common_color(image);
  for (int i = 0; i < image.size(); i++) out.cells[i] = is_enclosed[i] ? static_cast<Cell>(common) : Cell{0};
  return true;
}

inline bool outline(const Image& image, const Arguments& word, Picture& out) {
  begin_same(image, out);
  const int common = common_color(image);
  const int neighbors = word.first != 0 ? 8 : 4;
  return draw(out, [&](int r, int c) {
    const bool is_beside = any_neighbor(image, r, c, neighbors, [](Cell cell) { return cell != 0; });
    return image.at(r, c) == 0 && is_beside ? common : 0;
  });
}

// Whether a cell touches color 0 or the edge of the image.
inline bool touches_ground(const Image& image, int r, int c) {
  return is_edge(image, r, c) || any_neighbor(image, r, c, 8, [](Cell cell) { return cell == 0; });
}

inline bool interior(const Image& image, const Arguments&, Picture& out) {
  begin_same(image, out);
  return draw(out, [&](int r, int c) { return touches_ground(image, r, c) ? Cell{0} : image.at(r, c); });
}

inline bool rim(const Image& image, const Arguments&, Picture& out) {
  begin_same(image, out);
  return draw(out, [&](int r, int c) { return touches_ground(image, r, c) ? image.at(r, c) : Cell{0}; });
}

inline bool draw_frame(const Image& image, const Arguments&, Picture& out) {
  begin_same(image, out);
  const int common = common_color(image);
  return draw(out, [&](int r, int c) { return is_edge(image, r, c) ? common : image.at(r, c); });
}

// Keep the cells with a neighbor of their color, or those without.
inline bool by_company(const Image& image, bool keeps_single, Picture& out) {
  begin_same(image, out);
  return draw(out, [&](int r, int c) {
    const Cell own = image.at(r, c);
    const bool has_company = any_neighbor(image, r, c, 8, [&](Cell cell) { return cell == own; });
    return own != 0 && has_company != keeps_single ? own : Cell{0};
  });
}

inline bool drop_single_cells(const Image& image, const Arguments&, Picture& out) {
  return by_company(image, false, out);
}

inline bool keep_single_cells(const Image& image, const Arguments&, Picture& out) {
  return by_company(image, true, out);
}

// Colored cells that begin no line stop a ray: they get a color of their own, which is not drawn.
inline bool extend(const Image& image, const Arguments& word, Picture& out) {
  constexpr Cell kBlock = 255;
  placed(image, image.row, image.column, out);
  Cell blocked[kMostCells], found[kMostCells];
  for (const Step& step : word.steps) {
    for (int r = 0; r < image.height; r++) {
      for (int c = 0; c < image.width; c++) {
        const Cell own = image.at(r, c);
        const bool is_line = image.seen(r - step.down, c - step.right) == own;
        blocked[r * image.width + c] = own != 0 && !is_line ? kBlock : own;
      }
    }
    ray(image, blocked, step, found);
    for (int i = 0; i < image.size(); i++) {
      if (out.cells[i] == 0 && found[i] != kBlock) out.cells[i] = found[i];
    }
  }
  return true;
}

// Rows and columns of one color but 0, from edge to edge, as bits.
struct FullLines {
  uint32_t rows = 0;
  uint32_t columns = 0;

  explicit FullLines(const Image& image) {
    for (int r = 0; r < image.height; r++) {
      bool is_full = image.at(r, 0) != 0;
      for (int c = 1; c < image.width && is_full; c++) is_full = image.at(r, c) == image.at(r, 0);
      rows |= uint32_t{is_full} << r;
    }
    for (int c = 0; c < image.width; c++) {
      bool is_full = image.at(0, c) != 0;
      for (int r = 1; r < image.height && is_full; r++) is_full = image.at(r, c) == image.at(0, c);
      columns |= uint32_t{is_full} << c;
    }
  }

  bool has(int r, int c) const { return (rows >> r & 1) != 0 || (columns >> c & 1) != 0; }
};

// Number the runs of places that are no line: with a line at 2 the places 0 1 2 3 4 are of the parts 0 0 - 1 1.
inline int number_parts(uint32_t lines, int size, int* part) {
  int count = 0;
  for (int place = 0; place < size; place++) {
    const bool is_line = lines >> place & 1;
    const bool begins = !is_line && (place == 0 || (lines >> (place - 1) & 1) != 0);
    count += begins;
    part[place] = count - 1;
  }
  return count;
}

inline bool summary_of_parts(const Image& image, const Arguments& word, Picture& out) {
  const FullLines lines(image);
  if (lines.rows == 0 && lines.columns == 0) return false;
  // A row whose cells all belong to lines is one, as it is where every column is a line.
  const uint32_t all_rows = (uint32_t{1} << image.height) - 1, all_columns = (uint32_t{1} << image.width) - 1;
  const uint32_t rows = lines.columns == all_columns ? all_rows : lines.rows;
  const uint32_t columns = lines.rows == all_rows ? all_columns : lines.columns;
  int row_part[kLargest], column_part[kLargest];
  const int height = number_parts(rows, image.height, row_part);
  const int width = number_parts(columns, image.width, column_part);
  if (!begin(image, height, width, word.frame, out)) return false;
  std::vector<std::array<int, 256>> counts(static_cast<size_t>(height * width), std::array<int, 256>{});
  for (int r = 0; r < image.height; r++) {
    for (int c = 0; c < image.width; c++) {
      if (!lines.has(r, c)) counts[static_cast<size_t>(row_part[r] * width + column_part[c])][image.at(r, c)]++;
    }
  }
  return draw(out, [&](int r, int c) { return common_of(counts[static_cast<size_t>(r * width + c)]); });
}

// Each single cell goes straight to a larger part of its color; one that sees none is cleared.
inline bool attract(const Image& image, const Arguments& word, Picture& out) {
  Picture parts, singles;
  by_company(image, false, parts);
  by_company(image, true, singles);
  const Image part = parts.image();
  placed(part, image.row, image.column, out);
  Cell path[kMostCells];
  for (const Step& step : word.steps) {
    ray(image, singles.cells, step, path);
    for (int r = 0; r < image.height; r++) {
      for (int c = 0; c < image.width; c++) {
        const Cell ahead = part.seen(r + step.down, c + step.right);
        const Cell moved = path[r * image.width + c];
        if (part.at(r, c) == 0 && ahead != 0 && moved == ahead) out.at(r, c) = moved;
      }
    }
  }
  return true;
}

// The cells of each row or column fall to one side and keep their order: `0 3 0 4` becomes `3 4 0 0` to the left.
inline bool gravity(const Image& image, const Arguments& word, Picture& out) {
  begin_same(image, out);
  const bool is_vertical = word.text == "up" || word.text == "down";
  const bool to_front = word.text == "up" || word.text == "left";
  const int lines = is_vertical ? image.width : image.height;
  const int length = is_vertical ? image.height : image.width;
  for (int line = 0; line < lines; line++) {
    const auto place = [&](int along) { return is_vertical ? along * image.width + line : line * image.width + along; };
    int colored = 0;
    for (int along = 0; along < length; along++) colored += image.cells[place(along)] != 0;
    int next = to_front ? 0 : length - colored;
    const int first = next;
    for (int along = 0; along < length; along++) {
      const Cell cell = image.cells[place(along)];
      if (cell != 0) out.cells[place(next++)] = cell;
    }
    for (int along = 0; along < length; along++) {
      if (along < first || along >= first + colored) out.cells[place(along)] = 0;
    }
  }
  return true;
}

}  // namespace jaxarc::search
