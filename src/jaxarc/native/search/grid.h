// What the kernels share: counts of colors, boxes, windows, directions, connected regions.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "image.h"

namespace jaxarc::search {

struct Step {
  int down;
  int right;
};

struct NamedStep {
  std::string_view name;
  Step step;
};

constexpr NamedStep kSteps[8] = {{"up", {-1, 0}},       {"down", {1, 0}},       {"left", {0, -1}},
                                 {"right", {0, 1}},     {"up_left", {-1, -1}},  {"up_right", {-1, 1}},
                                 {"down_left", {1, -1}}, {"down_right", {1, 1}}};

// The directions of a name, in the order in which they are drawn.
inline std::vector<Step> rays_of(std::string_view name) {
  const auto of = [](std::initializer_list<int> places) {
    std::vector<Step> steps;
    for (int place : places) steps.push_back(kSteps[place].step);
    return steps;
  };
  for (int place = 0; place < 8; place++) {
    if (kSteps[place].name == name) return of({place});
  }
  if (name == "rows") return of({2, 3});
  if (name == "columns") return of({0, 1});
  if (name == "cross") return of({2, 3, 0, 1});
  if (name == "falling") return of({4, 7});
  if (name == "rising") return of({5, 6});
  if (name == "diagonals") return of({4, 7, 5, 6});
  if (name == "star") return of({0, 1, 2, 3, 4, 5, 6, 7});
  return {};
}

using Counts = std::array<int, 256>;

inline Counts counts_of(const Image& image) {
  Counts counts{};
  for (int i = 0; i < image.size(); i++) counts[image.cells[i]]++;
  return counts;
}

// The commonest color but 0, of equals the lowest; 0 where there is none.
inline int common_of(const Counts& counts) {
  int best = 0;
  for (int color = 1; color < kColors; color++) {
    if (counts[color] > (best == 0 ? 0 : counts[best])) best = color;
  }
  return best;
}

inline int common_color(const Image& image) { return common_of(counts_of(image)); }

// The colors but 0 that are there, the commonest first, of equals the lowest.
inline std::vector<int> colors_by_count(const Counts& counts) {
  std::vector<int> colors;
  for (int color = 1; color < kColors; color++) {
    if (counts[color] > 0) colors.push_back(color);
  }
  std::stable_sort(colors.begin(), colors.end(), [&](int a, int b) { return counts[a] > counts[b]; });
  return colors;
}

// The box of the cells that match, in the coordinates of the image; empty where none does.
template <typename Matches>
Box box_of(const Image& image, Matches matches) {
  int top = image.height, left = image.width, bottom = -1, right = -1;
  const Cell* cell = image.cells;
  for (int r = 0; r < image.height; r++) {
    for (int c = 0; c < image.width; c++) {
      if (!matches(*cell++)) continue;
      top = std::min(top, r);
      bottom = r;
      left = std::min(left, c);
      right = std::max(right, c);
    }
  }
  return bottom < 0 ? Box{} : Box{top, left, bottom - top + 1, right - left + 1};
}

inline Box colored_box(const Image& image) {
  return box_of(image, [](Cell cell) { return cell != 0; });
}

// Begin a picture at the place of an image with another size; false where it is no image or leaves the frame.
inline bool begin(const Image& image, int height, int width, int frame, Picture& out) {
  if (height <= 0 || width <= 0 || height > frame || width > frame) return false;
  static_cast<Box&>(out) = {image.row, image.column, height, width};
  return true;
}

inline bool begin_same(const Image& image, Picture& out) {
  static_cast<Box&>(out) = image;
  return true;
}

// Write each cell of a picture that is begun by its row and column.
template <typename Color>
bool draw(Picture& out, Color color) {
  Cell* cell = out.cells;
  for (int r = 0; r < out.height; r++) {
    for (int c = 0; c < out.width; c++) *cell++ = static_cast<Cell>(color(r, c));
  }
  return true;
}

// Write each cell of a picture of the same size by the color that it has.
template <typename Color>
bool recolor(const Image& image, Picture& out, Color color) {
  begin_same(image, out);
  for (int i = 0; i < image.size(); i++) out.cells[i] = static_cast<Cell>(color(image.cells[i]));
  return true;
}

// Cut out a window, which may begin or end outside of the image; its position moves along.
inline bool window(const Image& image, const Box& box, int frame, Picture& out) {
  if (!begin(image, box.height, box.width, frame, out)) return false;
  out.row += box.row;
  out.column += box.column;
  return draw(out, [&](int r, int c) { return image.seen(r + box.row, c + box.column); });
}

// Number the connected regions of the cells with `is_in(i)` from 1, in reading order; return how many there are.
// Regions of `by_color` have one color. Every region is filled from its first cell on with a stack of cells.
template <typename IsIn>
int label(const Image& image, bool has_diagonals, bool by_color, IsIn is_in, uint16_t* labels) {
  const int height = image.height, width = image.width;
  std::memset(labels, 0, static_cast<size_t>(image.size()) * sizeof(uint16_t));
  int count = 0;
  int stack[kMostCells];
  const int neighbors = has_diagonals ? 8 : 4;
  for (int start = 0; start < image.size(); start++) {
    if (labels[start] != 0 || !is_in(start)) continue;
    labels[start] = static_cast<uint16_t>(++count);
    int depth = 0;
    stack[depth++] = start;
    while (depth > 0) {
      const int place = stack[--depth];
      const int row = place / width, column = place % width;
      for (int n = 0; n < neighbors; n++) {
        const int r = row + kSteps[n].step.down, c = column + kSteps[n].step.right;
        if (r < 0 || c < 0 || r >= height || c >= width) continue;
        const int next = r * width + c;
        if (labels[next] != 0 || !is_in(next) || (by_color && image.cells[next] != image.cells[place])) continue;
        labels[next] = static_cast<uint16_t>(count);
        stack[depth++] = next;
      }
    }
  }
  return count;
}

inline bool is_edge(const Box& box, int r, int c) {
  return r == 0 || c == 0 || r == box.height - 1 || c == box.width - 1;
}

// Whether some neighbor has a property; those outside of the image count as color 0.
template <typename Matches>
bool any_neighbor(const Image& image, int r, int c, int neighbors, Matches matches) {
  for (int n = 0; n < neighbors; n++) {
    if (matches(image.seen(r + kSteps[n].step.down, c + kSteps[n].step.right))) return true;
  }
  return false;
}

// Extend each color in one direction until a cell that is not 0: `3 0 0 4 0` becomes `3 3 3 4 4` to the right.
inline void ray(const Box& box, const Cell* cells, Step step, Cell* out) {
  const int height = box.height, width = box.width;
  for (int i = 0; i < height; i++) {
    const int r = step.down < 0 ? height - 1 - i : i;
    for (int k = 0; k < width; k++) {
      const int c = step.right < 0 ? width - 1 - k : k;
      const int place = r * width + c;
      const int from_row = r - step.down, from_column = c - step.right;
      const bool is_known = from_row >= 0 && from_row < height && from_column >= 0 && from_column < width;
      out[place] = cells[place] != 0 || !is_known ? cells[place] : out[from_row * width + from_column];
    }
  }
}

}  // namespace jaxarc::search
