#include "zephonc/sinks/lettering.h"

namespace zephon {
namespace {

// The letters from space to `~`, a letter a number: ten rows of six pixels, the upper left one in bit 59. They are
// those of X.Org's misc-fixed font 6x10, which is in the public domain.
// clang-format off
constexpr uint64_t kGlyphs[] = {
    0x000000000000000, 0x008208208008000, 0x014514000000000, 0x01453e53e514000, 0x00872870a708000,  //  !"#$
    0x012a94214aa4000, 0x010a2842a91a000, 0x008208000000000, 0x004210410204000, 0x010204104210000,  // %&'()
    0x000894f94880000, 0x000208f88200000, 0x000000000308400, 0x000000f80000000, 0x00000000021c200,  // *+,-.
    0x002084210820000, 0x0085228a2508000, 0x00862820823e000, 0x01c88231083e000, 0x03e08430289c000,  // /0123
    0x00431493e104000, 0x03e82cc8289c000, 0x00c420b3289c000, 0x03e084108410000, 0x01c8a272289c000,  // 45678
    0x01c8a6682118000, 0x00021c20021c200, 0x00021c200308400, 0x002108408102000, 0x00003e03e000000,  // 9:;<=
    0x010204084210000, 0x01c884208008000, 0x01c8a6aac81c000, 0x0085228be8a2000, 0x03c4927124bc000,  // >?@AB
    0x01c8a082089c000, 0x03c4924924bc000, 0x03e820f2083e000, 0x03e820f20820000, 0x01c8a082689c000,  // CDEFG
    0x0228a2fa28a2000, 0x01c20820821c000, 0x00e104104918000, 0x022928c28922000, 0x02082082083e000,  // HIJKL
    0x0228b6aa28a2000, 0x0228b2aa68a2000, 0x01c8a28a289c000, 0x03c8a2f20820000, 0x01c8a28a2a9c080,  // MNOPQ
    0x03c8a2f28922000, 0x01c8a070289c000, 0x03e208208208000, 0x0228a28a289c000, 0x0228a2514508000,  // RSTUV
    0x0228a2aaada2000, 0x0228942148a2000, 0x022894208208000, 0x03e08421083e000, 0x01c41041041c000,  // WXYZ[
    0x020810204082000, 0x01c10410411c000, 0x008522000000000, 0x000000000000f80, 0x204000000000000,  // \ ]^_`
    0x00001c09e89e000, 0x02082cca2cac000, 0x00001c8a089c000, 0x00209a9a299a000, 0x00001c8be81c000,  // abcde
    0x00c490f10410000, 0x00001e8a278289c, 0x02082cca28a2000, 0x00801820821c000, 0x00200608209248c,  // fghij
    0x020822938922000, 0x01820820821c000, 0x000034aaaaa2000, 0x00002cca28a2000, 0x00001c8a289c000,  // klmno
    0x00002cca2cac820, 0x00001a9a299a082, 0x00002cca0820000, 0x00001c81c0bc000, 0x01043c41048c000,  // pqrst
    0x0000228a299a000, 0x000022894508000, 0x0000228aaa94000, 0x000022508522000, 0x0000228a668289c,  // uvwxy
    0x00003e10843e000, 0x006204604206000, 0x008208208208000, 0x018108188118000, 0x012aa4000000000,  // z{|}~
};
// clang-format on
constexpr uint8_t kInk = 208;

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

int64_t letters_of(std::string_view text) {
  int64_t count = 0;
  for (char c : text) count += !continues(c);
  return count;
}

void draw_text(Picture& picture, int64_t top, int64_t left, std::string_view text) {
  for (char c : text) {
    if (continues(c)) continue;
    const uint64_t glyph = kGlyphs[(c < ' ' || c > '~' ? '?' : c) - ' '];
    for (int64_t y = 0; y < kGlyphHeight; ++y)
      for (int64_t x = 0; x < kGlyphWidth; ++x) {
        const bool ink = (glyph >> (59 - y * kGlyphWidth - x) & 1) != 0;
        if (!ink || top + y < 0 || top + y >= picture.height || left + x < 0 || left + x >= picture.width) continue;
        for (int64_t channel = 0; channel < 3; ++channel)
          picture.rgb[static_cast<size_t>(((top + y) * picture.width + left + x) * 3 + channel)] = kInk;
      }
    left += kGlyphWidth;
  }
}

}  // namespace zephon
