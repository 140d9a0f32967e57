#include "profiling/base/text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ws {
namespace {

TEST(Text, CountsLettersNotBytes) {
  EXPECT_EQ(formatted("{:>6}|{:<6}|", "µs", "σ"), "    µs|σ     |");
  EXPECT_EQ(formatted("{:8.3f} {:+.1f} {}", 1.23456, 2.0, uint64_t{7}), "   1.235 +2.0 7");
}

TEST(Text, FixedHasNoNegativeZero) {
  EXPECT_EQ(fixed(-0.001, 2), "0.00");
  EXPECT_EQ(fixed(-0.31, 2), "-0.31");
  EXPECT_EQ(fixed(NAN, 2), "–");
  EXPECT_EQ(signed_fixed(0.4, 1), "+0.4");
  EXPECT_EQ(signed_fixed(0.001, 1), "0.0");
  EXPECT_EQ(signed_fixed(-1.5, 1), "-1.5");
}

TEST(Text, SignificantKeepsThreeDigits) {
  EXPECT_EQ(significant(0.01932), "0.0193");
  EXPECT_EQ(significant(12345), "12345");
  EXPECT_EQ(significant(2.356e6), "2.36 M");
  EXPECT_EQ(significant(3.21e-5), "3.2e-05");
  EXPECT_EQ(significant(0), "0");
}

TEST(Text, CountsAreGroupedByThousands) {
  EXPECT_EQ(count_text(56280), "56 280");
  EXPECT_EQ(count_text(-1234567), "-1 234 567");
  EXPECT_EQ(count_text(-123), "-123");
  EXPECT_EQ(count_text(999), "999");
}

TEST(Text, BytesTakeTheUnitThatFits) {
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(4200), "4.1 KiB");
  EXPECT_EQ(bytes_text(16 << 20), "16.00 MiB");
  EXPECT_EQ(bytes_text(-1.5 * (1 << 30)), "-1.50 GiB");
  EXPECT_EQ(bytes_text(std::pow(2, 51)), "2048.00 TiB");
}

TEST(Text, DurationsCarryIntoTheNextUnit) {
  EXPECT_EQ(duration_text(0.0028), "2.8 ms");
  EXPECT_EQ(duration_text(0.0151), "0.015 s");
  EXPECT_EQ(duration_text(0.4), "0.40 s");
  EXPECT_EQ(duration_text(9.4), "9.4 s");
  EXPECT_EQ(duration_text(59.7), "1 min 0 s");
  EXPECT_EQ(duration_text(725), "12 min 5 s");
  EXPECT_EQ(duration_text(1799), "30 min");
  EXPECT_EQ(duration_text(3720), "1 h 2 min");
  EXPECT_EQ(duration_text(-1), "–");
}

TEST(Text, TimesAndShares) {
  EXPECT_EQ(time_text(27.14), "27.1 µs");
  EXPECT_EQ(time_text(1840), "1.84 ms");
  EXPECT_EQ(time_text(2e6), "2.00 s");
  EXPECT_EQ(percent(0.976), "97.6 %");
  EXPECT_EQ(percent(0.976, 0), "98 %");
}

TEST(Text, NamesAreJoinedWithCommasAndAWordBeforeTheLast) {
  const auto joined = [](const std::vector<std::string>& names) { return joined_names(names); };
  EXPECT_EQ(joined({}), "");
  EXPECT_EQ(joined({"loss"}), "loss");
  EXPECT_EQ(joined({"forward", "loss"}), "forward and loss");
  EXPECT_EQ(joined({"forward", "loss", "backward"}), "forward, loss and backward");
  EXPECT_EQ(joined_names(std::vector<std::string>{"remove all syncs", "use one CUDA graph"}, ", then "), "remove all syncs, then use one CUDA graph");
}

TEST(Text, ACapitalIsPutOnPlainWordsOnly) {
  EXPECT_EQ(with_capital("syncs take"), "Syncs take");
  EXPECT_EQ(with_capital("train.py:3 calls"), "train.py:3 calls");
  EXPECT_EQ(with_capital("dX is"), "dX is");
  EXPECT_EQ(with_capital(""), "");
}

TEST(ColumnLetters, GoOnAfterZ) {
  EXPECT_EQ(column_letters(0), "A");
  EXPECT_EQ(column_letters(23), "Z");
  EXPECT_EQ(column_letters(24), "AA");
  EXPECT_EQ(column_letters(47), "AZ");
  EXPECT_EQ(column_letters(48), "BA");
  EXPECT_EQ(column_letters(599), "ZZ");
  EXPECT_EQ(column_letters(600), "AAA");
}

TEST(ColumnLetters, LeaveOutThoseThatLookLikeDigits) {
  EXPECT_EQ(column_letters(7), "H");
  EXPECT_EQ(column_letters(8), "J");
  EXPECT_EQ(column_letters(12), "N");
  EXPECT_EQ(column_letters(13), "P");
}

}  // namespace
}  // namespace ws
