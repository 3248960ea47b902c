// Pieces on the cells of the outputs, as in pieces.py.
#pragma once

#include "graph.h"

namespace jaxarc::search {

// Write an image on a canvas: as it is if all images of its state have the sizes of the outputs, else at its position.
inline void draw_on(const Image& image, bool is_exact, int height, int width, Cell* out) {
  const int top = is_exact ? 0 : image.row, left = is_exact ? 0 : image.column;
  for (int r = 0; r < height; r++) {
    for (int c = 0; c < width; c++) *out++ = image.seen(r - top, c - left);
  }
}

}  // namespace jaxarc::search
