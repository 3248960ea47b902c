// The ids of the operations, as jaxarc/constants.py has them, and what each needs to apply.
#pragma once

namespace jaxarc {

enum Operation : int {
  kNoOperation = -1,  // leaves the canvas as it is
  kFill = 0,          // .. 9
  kFloodFill = 10,    // .. 19
  kMoveUp = 20,
  kMoveDown = 21,
  kMoveLeft = 22,
  kMoveRight = 23,
  kRotateClockwise = 24,
  kRotateCounterclockwise = 25,
  kFlipLeftRight = 26,
  kFlipUpDown = 27,
  kCopy = 28,
  kPaste = 29,
  kCut = 30,
  kClear = 31,
  kCopyInput = 32,
  kResize = 33,
  kSubmit = 34,
  kNextDemoPair = 35,
  kPreviousDemoPair = 36,
  kNextTestPair = 37,
  kPreviousTestPair = 38,
  kResetPair = 39,
  kFirstUnsolvedDemoPair = 40,
  kFirstUnsolvedTestPair = 41,
  kLastOperation = 41,
};

struct Offset {
  int down;
  int across;
};

inline bool is_fill(int operation) { return operation >= kFill && operation < kFloodFill; }
inline bool is_flood(int operation) { return operation >= kFloodFill && operation < kMoveUp; }
inline bool changes_pair(int operation) { return operation >= kNextDemoPair; }

// By how much a move shifts its cells; 0 and 0 for every other operation.
inline Offset move_offset(int operation) {
  return {(operation == kMoveDown) - (operation == kMoveUp), (operation == kMoveRight) - (operation == kMoveLeft)};
}

// Whether an operation can apply; one that cannot leaves the canvas as it was. Fills, copy, paste, cut and resize need
// a cell, a flood exactly one, a paste something on the clipboard; moves, turns and the rest always apply.
inline bool can_apply(int operation, bool is_empty, bool is_single, bool holds_content) {
  if (operation < 0) return false;
  if (is_flood(operation)) return is_single;
  switch (operation) {
    case kPaste:
      return !is_empty && holds_content;
    case kCopy:
    case kCut:
    case kResize:
      return !is_empty;
    default:
      return !is_fill(operation) || !is_empty;
  }
}

}  // namespace jaxarc
