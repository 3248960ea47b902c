// The ids of the operations, as jaxarc/constants.py has them, and what each needs to apply.
#pragma once

#include <cstdint>

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

// Sets of operations, bit i for operation i.
inline constexpr uint64_t bits_from(int first, int last) { return (uint64_t{2} << last) - (uint64_t{1} << first); }
constexpr uint64_t kNeedsOneCell = bits_from(kFloodFill, kMoveUp - 1);
constexpr uint64_t kNeedsContent = bits_from(kPaste, kPaste);  // on the clipboard
constexpr uint64_t kNeedsCells = bits_from(kFill, kFloodFill - 1) | bits_from(kCopy, kCut) | bits_from(kResize, kResize);
constexpr uint64_t kKeepsGrid = bits_from(kCopy, kCopy) | bits_from(kSubmit, kSubmit);

inline bool is_in(uint64_t operations, int operation) { return (operations >> operation & 1) != 0; }

// Whether an operation can apply; one that cannot leaves the canvas as it was. Moves, turns and the rest always can.
inline bool can_apply(int operation, bool is_empty, bool is_single, bool holds_content) {
  if (operation < 0) return false;
  const uint64_t prevented =
      (is_empty ? kNeedsCells : 0) | (is_single ? 0 : kNeedsOneCell) | (holds_content ? 0 : kNeedsContent);
  return !is_in(prevented, operation);
}

}  // namespace jaxarc
