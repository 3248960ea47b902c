// The states of a search and the words that make them; graph.py calls them, and words.py says what words there are.
//
// A state is, for each input, a list of at most 16 images by number, or one image. What a word makes of an image is
// computed once and looked up afterwards: of 150 words on 60,000 states most images have been seen.
#pragma once

#include <map>

#include "lists.h"
#include "symmetry.h"

namespace jaxarc::search {

constexpr int32_t kUnknown = -2;

struct NamedKernel {
  std::string_view name;
  Kernel kernel;
};

constexpr NamedKernel kKernels[] = {
    {"keep_color", keep_color}, {"drop_color", drop_color}, {"paint", paint}, {"keep_commonest", keep_commonest},
    {"keep_rarest", keep_rarest}, {"drop_commonest", drop_commonest}, {"crop", crop},
    {"crop_to_color", crop_to_color}, {"peel", peel}, {"surround", surround}, {"box", fill_box}, {"invert", invert},
    {"fill_ground", fill_ground}, {"to_origin", to_origin}, {"to_center", to_center}, {"move", move},
    {"rigid", rigid}, {"shift", shift}, {"trail", trail}, {"pad_to", pad_to}, {"pad", pad}, {"half", half},
    {"upscale", upscale}, {"upscale_by_colors", upscale_by_colors}, {"tile", tile}, {"mirror_tile", mirror_tile},
    {"downscale", downscale}, {"drop_empty_lines", drop_empty_lines}, {"drop_repeated_lines", drop_repeated_lines},
    {"kronecker", kronecker}, {"colors_by_count", column_of_colors}, {"bars", bars},
    {"exchange_colors", exchange_colors}, {"smear", smear}, {"smear_dotted", smear_dotted}, {"connect", connect},
    {"corner", corner}, {"zigzag", zigzag}, {"fill_enclosed", fill_enclosed}, {"enclosed", enclosed},
    {"outline", outline}, {"interior", interior}, {"rim", rim}, {"frame", draw_frame},
    {"drop_single_cells", drop_single_cells}, {"keep_single_cells", keep_single_cells}, {"extend", extend},
    {"summary_of_parts", summary_of_parts}, {"attract", attract}, {"gravity", gravity},
    {"complete_symmetry", complete_symmetry}, {"complete_around", complete_around}, {"behind", behind},
    {"continue_pattern", continue_pattern}, {"continue_lines", continue_lines}, {"unit", unit},
};

// What a word acts on and what it makes.
enum class Kind { kImage, kSplit, kPick, kOdd, kOrder, kKeep, kItem, kStack, kJoin, kCompare };

constexpr std::pair<std::string_view, Kind> kListWords[] = {
    {"split", Kind::kSplit}, {"pick", Kind::kPick},   {"odd", Kind::kOdd},   {"order", Kind::kOrder},
    {"keep", Kind::kKeep},   {"item", Kind::kItem},   {"stack", Kind::kStack}, {"join", Kind::kJoin},
    {"compare", Kind::kCompare}};

struct Word {
  Kind kind = Kind::kImage;
  Kernel kernel = nullptr;  // of an image word
  Arguments arguments;
  size_t by = 0;               // the feature of a list word, in kFeatures
  bool is_most = false;        // whether it takes what has the highest value, or what is common or first
  bool is_not = false;         // whether it takes all others
  std::vector<int32_t> known;  // image -> what the word makes of it; of a split the first of its parts in `parts`
  std::vector<int32_t> parts;  // kListLength numbers for each image that is split
};

// Numbers of the images of one input: those of a list, or one image and kNone.
using List = std::array<int32_t, kListLength>;

class Graph {
 public:
  Graph(int frame, int num_inputs) : frame_(frame), num_inputs_(num_inputs) {}

  ImageStore& images() { return store_; }
  int64_t num_states() const { return index_.size(); }

  // Return the number of a word; kNone if there is none of this name.
  int declare(std::string_view name, const std::string& first, const std::string& second) {
    Word word;
    word.arguments.frame = frame_;
    word.arguments.text = first;
    word.arguments.steps = rays_of(name == "attract" ? "cross" : name == "connect" && first == "cross" ? "rows" : first);
    if (name == "connect" && first == "cross") {
      for (const Step& step : rays_of("columns")) word.arguments.steps.push_back(step);
    }
    word.arguments.first = std::atoi(first.c_str());
    word.arguments.second = std::atoi(second.c_str());
    word.by = static_cast<size_t>(std::find(std::begin(kFeatures), std::end(kFeatures), second) - kFeatures);
    word.is_most = first == "most" || first == "not_most" || first == "common" || first == "first" || first == "rows";
    word.is_not = first.rfind("not_", 0) == 0;
    for (const NamedKernel& named : kKernels) {
      if (named.name == name) word.kernel = named.kernel;
    }
    for (const auto& [list_word, kind] : kListWords) {
      if (list_word == name) word.kind = kind;
    }
    if (word.kernel == nullptr && word.kind == Kind::kImage) return kNone;
    words_.push_back(std::move(word));
    return static_cast<int>(words_.size()) - 1;
  }

  // Add the state of the inputs.
  void start(const int32_t* numbers) {
    std::vector<List> lists(static_cast<size_t>(num_inputs_));
    for (size_t input = 0; input < lists.size(); input++) lists[input] = one(numbers[input]);
    add(lists, false, kNone, kNone, 0);
  }

  // What a word with a kernel makes of an image.
  int32_t mapped(int word_number, int32_t number) {
    Word& word = words_[static_cast<size_t>(word_number)];
    make_room(word.known, kUnknown);
    if (word.known[static_cast<size_t>(number)] == kUnknown) {
      const bool has_answer = word.kernel(store_[number], word.arguments, picture_);
      const int32_t result = has_answer ? store_.add(picture_.image()) : kNone;
      word.known[static_cast<size_t>(number)] = result;
    }
    return word.known[static_cast<size_t>(number)];
  }

  int64_t level_size(int cost, bool is_list) { return static_cast<int64_t>(level(cost, is_list).size()); }

  // Apply a word to some states of a level; keep those that have an answer for every input and are new.
  void expand(int word_number, int cost, bool is_list, int64_t first, int64_t last, int target_cost, bool keeps_alone) {
    const Kind kind = words_[static_cast<size_t>(word_number)].kind;
    const bool makes_lists = kind == Kind::kImage ? is_list
                                                  : kind == Kind::kSplit || kind == Kind::kOrder || kind == Kind::kKeep;
    const std::vector<int32_t>& sources = level(cost, is_list);
    std::vector<List> lists(static_cast<size_t>(num_inputs_));
    for (int64_t place = first; place < last; place++) {
      const int32_t state = sources[static_cast<size_t>(place)];
      bool is_valid = true;
      bool has_two = false;
      for (int input = 0; input < num_inputs_ && is_valid; input++) {
        List& list = lists[static_cast<size_t>(input)];
        list = applied(word_number, list_of(state, input));
        is_valid = list[0] != kNone;
        has_two |= list[1] != kNone;
      }
      if (!is_valid || (makes_lists && !has_two && !keeps_alone)) continue;
      add(lists, makes_lists && has_two, state, word_number, target_cost);
    }
  }

  // Call `visit(state, numbers, cost)` for each state that is one image for each input.
  template <typename Visit>
  void each_image_state(Visit visit) const {
    for (int32_t state : image_states_) {
      visit(state, &numbers_[states_[static_cast<size_t>(state)].first], states_[static_cast<size_t>(state)].cost);
    }
  }

  int64_t num_image_states() const { return static_cast<int64_t>(image_states_.size()); }
  int32_t parent(int32_t state) const { return states_[static_cast<size_t>(state)].parent; }
  int32_t word(int32_t state) const { return states_[static_cast<size_t>(state)].word; }

 private:
  struct State {
    size_t first;  // of its numbers
    int32_t parent;
    int32_t word;
    int16_t cost;
    bool is_list;
  };

  static List one(int32_t number) {
    List list;
    list.fill(kNone);
    list[0] = number;
    return list;
  }

  std::vector<int32_t>& level(int cost, bool is_list) { return levels_[{cost, is_list}]; }

  List list_of(int32_t state, int input) const {
    const State& own = states_[static_cast<size_t>(state)];
    if (!own.is_list) return one(numbers_[own.first + static_cast<size_t>(input)]);
    List list;
    const size_t first = own.first + static_cast<size_t>(input) * kListLength;
    std::copy_n(numbers_.begin() + static_cast<int64_t>(first), kListLength, list.begin());
    return list;
  }

  template <typename Value>
  void make_room(std::vector<Value>& values, Value fill) const {
    const size_t wanted = static_cast<size_t>(store_.size());
    if (values.size() < wanted) values.resize(2 * wanted, fill);
  }

  void add(const std::vector<List>& lists, bool is_list, int32_t parent, int32_t word, int cost) {
    row_.clear();
    for (const List& list : lists) row_.insert(row_.end(), list.begin(), list.begin() + (is_list ? kListLength : 1));
    const auto [state, is_new] = index_.number(hash_of(row_.data(), row_.size() * sizeof(int32_t), is_list));
    if (!is_new) return;
    states_.push_back({numbers_.size(), parent, word, static_cast<int16_t>(cost), is_list});
    numbers_.insert(numbers_.end(), row_.begin(), row_.end());
    level(cost, is_list).push_back(state);
    if (!is_list) image_states_.push_back(state);
  }

  int64_t value(size_t by, int32_t number) {
    constexpr int64_t kNotKnown = INT64_MIN;
    std::vector<int64_t>& known = features_[by];
    make_room(known, kNotKnown);
    int64_t& found = known[static_cast<size_t>(number)];
    if (found == kNotKnown) found = feature(store_[number], kFeatures[by]);
    return found;
  }

  List applied(int word_number, const List& list) {
    Word& word = words_[static_cast<size_t>(word_number)];
    switch (word.kind) {
      case Kind::kImage: {
        List result = list;
        for (int32_t& number : result) {
          if (number != kNone) number = mapped(word_number, number);
        }
        return result;
      }
      case Kind::kSplit: return split_list(word, list[0]);
      case Kind::kItem: return one(list[static_cast<size_t>(word.arguments.first)]);
      case Kind::kPick:
      case Kind::kOdd:
      case Kind::kOrder:
      case Kind::kKeep: return chosen(word, list);
      default: return one(combined(word, list));
    }
  }

  List split_list(Word& word, int32_t number) {
    make_room(word.known, kUnknown);
    if (word.known[static_cast<size_t>(number)] == kUnknown) {
      List parts;
      parts.fill(kNone);
      size_t count = 0;
      const Image image = store_[number];
      split(image, word.arguments.text, [&](Picture& part) {
        if (count < kListLength) parts[count++] = store_.add(part.image());
      });
      word.known[static_cast<size_t>(number)] = static_cast<int32_t>(word.parts.size());
      word.parts.insert(word.parts.end(), parts.begin(), parts.end());
    }
    List parts;
    std::copy_n(word.parts.begin() + word.known[static_cast<size_t>(number)], kListLength, parts.begin());
    return parts;
  }

  // The images of a list with their values; without holes.
  struct Ranked {
    std::array<std::pair<int64_t, int32_t>, kListLength> images;
    size_t count = 0;

    const auto* begin() const { return images.data(); }
    const auto* end() const { return images.data() + count; }
  };

  // Choose images of a list by a feature.
  List chosen(const Word& word, const List& list) {
    Ranked known;
    for (int32_t number : list) {
      if (number != kNone) known.images[known.count++] = {value(word.by, number), number};
    }
    List result;
    result.fill(kNone);
    if (known.count == 0) return result;
    if (word.kind == Kind::kOdd) return one(odd(known, word.is_most));
    int64_t wanted = known.images[0].first;
    for (const auto& [value, number] : known) wanted = word.is_most ? std::max(wanted, value) : std::min(wanted, value);
    if (word.kind == Kind::kPick) {
      int32_t found = kNone;
      for (const auto& [value, number] : known) {
        if (value != wanted || number == found) continue;
        if (found != kNone) return result;
        found = number;
      }
      return one(found);
    }
    if (word.kind == Kind::kOrder) {
      std::stable_sort(known.images.begin(), known.images.begin() + static_cast<int64_t>(known.count),
                       [&](const auto& a, const auto& b) { return word.is_most ? a.first > b.first : a.first < b.first; });
    }
    size_t place = 0;
    for (const auto& [value, number] : known) {
      if (word.kind == Kind::kOrder || (value == wanted) != word.is_not) result[place++] = number;
    }
    return result;
  }

  // The image whose value no other has, or the first one with the commonest value.
  static int32_t odd(const Ranked& known, bool is_common) {
    int32_t found = kNone;
    int best = 1;
    for (const auto& [value, number] : known) {
      int same = 0;
      for (const auto& other : known) same += other.first == value;
      if (is_common) {
        if (same > best) found = number;
        best = std::max(best, same);
      } else if (same == 1) {
        if (found != kNone) return kNone;
        found = number;
      }
    }
    return found;
  }

  int32_t combined(const Word& word, const List& list) {
    std::vector<Image> images;
    for (int32_t number : list) {
      if (number != kNone) images.push_back(store_[number]);
    }
    bool has_answer = false;
    if (word.kind == Kind::kStack) has_answer = stack(images, word.is_most, frame_, picture_);
    if (word.kind == Kind::kJoin) has_answer = join(images, word.is_most, frame_, picture_);
    if (word.kind == Kind::kCompare && images.size() == 2 && list[1] != kNone) {
      has_answer = compare(images[0], images[1], word.arguments.text, picture_);
    }
    return has_answer ? store_.add(picture_.image()) : kNone;
  }

  int frame_;
  int num_inputs_;
  ImageStore store_;
  Picture picture_;
  std::vector<Word> words_;
  std::vector<int64_t> features_[std::size(kFeatures)];
  HashIndex index_;
  std::vector<State> states_;
  std::vector<int32_t> numbers_;  // of all states
  std::vector<int32_t> image_states_;
  std::map<std::pair<int, bool>, std::vector<int32_t>> levels_;
  std::vector<int32_t> row_;
};

}  // namespace jaxarc::search
