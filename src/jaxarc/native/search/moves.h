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

}  // namespace jaxarc::search
