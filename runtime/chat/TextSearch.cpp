#include "runtime/chat/TextSearch.h"

#include <string.h>

namespace strata::chat {

size_t findFirst(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size())
    return std::string_view::npos;
  // memmem takes linear time whatever the texts; std::string_view::find does not.
  const void *place = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return place ? size_t(static_cast<const char *>(place) - text.data()) : std::string_view::npos;
}

std::vector<size_t> findAll(std::string_view text, std::string_view part, size_t limit) {
  std::vector<size_t> places;
  size_t at = 0;
  while (places.size() < limit && (at = findFirst(text, part, at)) != std::string_view::npos) {
    places.push_back(at);
    at += part.size();
  }
  return places;
}

std::vector<size_t> findAllBackward(std::string_view text, std::string_view part, size_t limit) {
  std::string backward(text.rbegin(), text.rend()), partBackward(part.rbegin(), part.rend());
  std::vector<size_t> places = findAll(backward, partBackward, limit);
  for (size_t &place : places)
    place = text.size() - place - part.size();
  return places;
}

Text escapeHtml(const Text &text) {
  Text out;
  size_t begin = 0;
  const std::string &bytes = text.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    static constexpr std::string_view special = "&<>'\"";
    static constexpr std::string_view entities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    size_t place = special.find(bytes[i]);
    if (place == std::string_view::npos)
      continue;
    out.append(text, begin, i);
    out.append(entities[place], text.originAt(i));
    begin = i + 1;
  }
  out.append(text, begin, bytes.size());
  out.markup = true;
  return out;
}

} // namespace strata::chat
