// Words that move cells, objects as a whole, and copies of an object, as in moves.py.
#pragma once

#include "marks.h"

namespace jaxarc::search {

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

// All objects that nothing stops move by one cell at a time. What stands before an object that is stopped is stopped.
inline bool fall(const Image& image, const Arguments& word, Picture& out) {
  placed(image, image.row, image.column, out);
  const Step step = word.steps[0];
  const int height = image.height, width = image.width;
  uint16_t labels[kMostCells];
  const int count = label(image, true, false, [&](int i) { return image.cells[i] != 0; }, labels);
  // Rows and columns from the side where objects stop, so that a moved cell never covers one that still has to move.
  const auto each = [&](auto visit) {
    for (int i = 0; i < height; i++) {
      for (int k = 0; k < width; k++) {
        visit(step.down > 0 ? height - 1 - i : i, step.right > 0 ? width - 1 - k : k);
      }
    }
  };
  const auto is_inside = [&](int r, int c) { return r >= 0 && c >= 0 && r < height && c < width; };
  for (int turn = 0; turn < word.frame; turn++) {
    std::vector<char> is_stopped(static_cast<size_t>(count) + 1, 0);
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      each([&](int r, int c) {
        const uint16_t own = labels[r * width + c];
        if (own == 0 || is_stopped[own]) return;
        const int row = r + step.down, column = c + step.right;
        const uint16_t ahead = is_inside(row, column) ? labels[row * width + column] : uint16_t{0};
        if (is_inside(row, column) && (ahead == 0 || ahead == own || !is_stopped[ahead])) return;
        is_stopped[own] = 1;
        is_changed = true;
      });
    }
    bool is_moved = false;
    each([&](int r, int c) {
      const int place = r * width + c;
      if (labels[place] == 0 || is_stopped[labels[place]]) return;
      const int next = (r + step.down) * width + c + step.right;
      out.cells[next] = out.cells[place];
      labels[next] = labels[place];
      out.cells[place] = 0;
      labels[place] = 0;
      is_moved = true;
    });
    if (!is_moved) break;
  }
  return true;
}

// The objects of an image, joined by sides and corners, in reading order.
struct Objects {
  explicit Objects(const Image& image) {
    count = label(image, true, false, [&](int i) { return image.cells[i] != 0; }, labels);
    places.resize(static_cast<size_t>(count));
    for (int i = 0; i < image.size(); i++) {
      if (labels[i] != 0) places[labels[i] - 1u].push_back(i);
    }
    for (size_t k = 1; k < places.size(); k++) {
      if (places[k].size() > places[largest].size()) largest = k;
    }
  }

  int count;
  size_t largest = 0;  // of equals the first
  uint16_t labels[kMostCells];
  std::vector<std::vector<int>> places;  // the cells of each object
};

// How far an object goes straight down, or right, to the largest one: by the smallest gap in a column, or row, that
// holds cells of both. `2 0 0 5` moves 2 by two cells: `0 0 2 5`. False where it is not on one side of it.
inline bool gap_to_largest(const Image& image, const Objects& objects, size_t object, bool is_vertical, int& gap) {
  struct Extent {
    int first = kLargest, last = -1;
  };
  std::array<Extent, kLargest> own, other;
  const auto measure = [&](size_t number, std::array<Extent, kLargest>& extents) {
    for (int i : objects.places[number]) {
      const int r = i / image.width, c = i % image.width, along = is_vertical ? r : c;
      Extent& line = extents[static_cast<size_t>(is_vertical ? c : r)];
      line.first = std::min(line.first, along);
      line.last = std::max(line.last, along);
    }
  };
  measure(object, own);
  measure(objects.largest, other);
  bool is_level = false;
  int smallest = 0, side = 0;
  for (size_t line = 0; line < kLargest; line++) {
    if (own[line].last < 0 || other[line].last < 0) continue;
    const int after = own[line].last < other[line].first ? 1 : own[line].first > other[line].last ? -1 : 0;
    const int between = after > 0   ? other[line].first - own[line].last - 1
                        : after < 0 ? own[line].first - other[line].last - 1
                                    : 0;
    if (is_level && after != side) return false;
    smallest = is_level ? std::min(smallest, between) : between;
    side = after;
    is_level = true;
  }
  gap = smallest * side;
  return is_level;
}

// Each object goes straight to the largest one until it touches it; one that would leave the image stays.
inline bool gather(const Image& image, const Arguments&, Picture& out) {
  const Objects objects(image);
  placed(image, image.row, image.column, out);
  if (objects.count < 2) return true;
  for (int i = 0; i < image.size(); i++) {
    if (objects.labels[i] != objects.largest + 1) out.cells[i] = 0;
  }
  for (size_t object = 0; object < objects.places.size(); object++) {
    if (object == objects.largest) continue;
    const std::vector<int>& places = objects.places[object];
    int down = 0, right = 0;
    for (const bool is_vertical : {true, false}) {
      int gap = 0;
      if (!gap_to_largest(image, objects, object, is_vertical, gap)) continue;
      const bool stays_inside = std::all_of(places.begin(), places.end(), [&](int i) {
        const int along = (is_vertical ? i / image.width : i % image.width) + gap;
        return along >= 0 && along < (is_vertical ? image.height : image.width);
      });
      if (!stays_inside) continue;
      (is_vertical ? down : right) = gap;
      break;
    }
    for (int i : places) out.cells[i + down * image.width + right] = image.cells[i];
  }
  return true;
}

// A copy of the largest object for each single cell: `1 3 0 0 3` has the object `1 3` and a single 3, so the copy begins
// one cell before it: `1 3 0 1 3`.
inline bool stamp(const Image& image, const Arguments&, Picture& out) {
  const Objects objects(image);
  placed(image, image.row, image.column, out);
  if (objects.count < 2) return true;
  const std::vector<int>& largest = objects.places[objects.largest];
  for (const std::vector<int>& places : objects.places) {
    if (places.size() != 1) continue;
    const int single = places[0];
    const auto matches = [&](int i) { return image.cells[i] == out.cells[single]; };
    if (std::count_if(largest.begin(), largest.end(), matches) != 1) continue;
    const int anchor = *std::find_if(largest.begin(), largest.end(), matches);
    const int down = single / image.width - anchor / image.width, right = single % image.width - anchor % image.width;
    for (int i : largest) {
      const int r = i / image.width + down, c = i % image.width + right;
      if (r >= 0 && c >= 0 && r < image.height && c < image.width) out.at(r, c) = image.cells[i];
    }
  }
  return true;
}

}  // namespace jaxarc::search
