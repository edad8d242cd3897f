#include "heddle/base/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heddle/base/random.h"

namespace heddle {
namespace {

TEST(FormatUs, TakesTheUnitThatLeavesThreeDigits) {
  EXPECT_EQ(format_us(12.3), "12.3 us");
  EXPECT_EQ(format_us(4560), "4.56 ms");
  EXPECT_EQ(format_us(1.2e6), "1.20 s");
  EXPECT_EQ(format_us(0), "0 us");
  EXPECT_EQ(format_us(0.25), "250 ns");
  EXPECT_EQ(format_us(0.0000004), "0.0004 ns");
  EXPECT_EQ(format_us(-12.3), "-12.3 us");
  EXPECT_EQ(format_us(3600e6), "3600 s");
  EXPECT_EQ(format_us(7.2e10), "20 h");
}

TEST(FormatUs, RoundsIntoTheNextUnitAndNeverToFourDigits) {
  EXPECT_EQ(format_us(999.4), "999 us");
  EXPECT_EQ(format_us(999.6), "1.00 ms");
  EXPECT_EQ(format_us(999600), "1.00 s");
  EXPECT_EQ(format_us(0.9996), "1.00 us");
  EXPECT_EQ(format_us(9.996), "10.0 us");
  EXPECT_EQ(format_us(99.96), "100 us");
}

TEST(FormatUs, NamesWhatIsNotFinite) {
  EXPECT_EQ(format_us(kInfinity), "inf");
  EXPECT_EQ(format_us(-kInfinity), "-inf");
  EXPECT_EQ(format_us(std::nan("")), "nan");
}

TEST(FormatBytes, UsesBinaryMultiples) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(int64_t{2} << 30), "2.0 GiB");
  EXPECT_EQ(format_bytes(1048575), "1.0 MiB");
  EXPECT_EQ(format_bytes(INT64_MAX), "8.0 EiB");
  EXPECT_EQ(format_bytes(INT64_MIN), "-8.0 EiB");
}

TEST(FormatRequests, AreWholeFromAThousandOn) {
  EXPECT_EQ(format_requests(0), "0 req/s");
  EXPECT_EQ(format_requests(1.136), "1.14 req/s");
  EXPECT_EQ(format_requests(999.4), "999 req/s");
  EXPECT_EQ(format_requests(999.6), "1,000 req/s");
  EXPECT_EQ(format_requests(1234567), "1,234,567 req/s");
}

TEST(FormatSi, UsesDecimalMultiples) {
  EXPECT_EQ(format_si(3.2e9, "FLOP"), "3.20 GFLOP");
  EXPECT_EQ(format_si(999.6, "B/s"), "1.00 kB/s");
  EXPECT_EQ(format_si(0, "B/s"), "0 B/s");
  EXPECT_EQ(format_si(0.0125, "FLOP"), "0.0125 FLOP");
  EXPECT_EQ(format_si(kInfinity, "B/s"), "inf B/s");
}

TEST(ParseBytes, TakesDecimalAndBinaryMultiples) {
  EXPECT_EQ(parse_bytes("1024"), 1024);
  EXPECT_EQ(parse_bytes("16GiB"), int64_t{16} << 30);
  EXPECT_EQ(parse_bytes("512 MB"), 512000000);
  EXPECT_EQ(parse_bytes("1.5GB"), 1500000000);
  EXPECT_EQ(parse_bytes(" 2k "), 2000);
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("7EiB"), int64_t{7} << 60);
}

TEST(ParseBytes, RefusesWhatIsMalformedOrOutOfRange) {
  for (const char* text : {"",      " ",     "GB",    "-1",   "+1",
                           "1.5",   "1.5 B", "1 GBs", "1Gb",  "inf",
                           "nan",   "0x10",  "1e400", "8EiB", "9223372036854775808",
                           "1,5GB", "1G B",  "1ki",   "1iB",  "1..2"}) {
    EXPECT_EQ(parse_bytes(text), text == std::string("1ki") ? std::optional<int64_t>(1024) : std::nullopt)
        << text;
  }
}

TEST(ParseBandwidth, KnowsBitsFromBytes) {
  EXPECT_EQ(parse_bandwidth("12GB/s"), 12e9);
  EXPECT_EQ(parse_bandwidth("100Gbit/s"), 12.5e9);
  EXPECT_EQ(parse_bandwidth("25 Gbps"), 3.125e9);
  EXPECT_EQ(parse_bandwidth("1e9"), 1e9);
  EXPECT_EQ(parse_bandwidth("1GiB/s"), 1073741824.0);
  for (const char* text : {"", "GB/s", "12GB", "12G", "-1GB/s", "12GB/h", "infGB/s", "1e308GB/s"}) {
    EXPECT_EQ(parse_bandwidth(text), std::nullopt) << text;
  }
}

TEST(ParseTime, GivesMicroseconds) {
  EXPECT_EQ(parse_seconds("1.5"), 1.5);
  EXPECT_EQ(parse_seconds("500ms"), 0.5);
  EXPECT_EQ(parse_seconds("10s"), 10);
  EXPECT_EQ(parse_seconds("10k"), std::nullopt);
  EXPECT_EQ(parse_seconds("-1"), std::nullopt);
  EXPECT_EQ(parse_rate("200"), 200);
  EXPECT_EQ(parse_rate("12k/s"), 12000);
  EXPECT_EQ(parse_rate("600/min"), 10);
  EXPECT_EQ(parse_rate("3/d"), std::nullopt);
  EXPECT_EQ(parse_count("10k"), 10'000);
  EXPECT_EQ(parse_count("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_count("-3"), -3);
  EXPECT_EQ(parse_count("2.5M"), 2'500'000);
  EXPECT_EQ(parse_count("1.5"), std::nullopt);
  EXPECT_EQ(parse_count("9E3"), 9000);
  EXPECT_EQ(parse_count("10E"), std::nullopt);
  EXPECT_EQ(parse_count("5 apples"), std::nullopt);
  EXPECT_EQ(parse_time_us("5us"), 5);
  EXPECT_EQ(parse_time_us("1.5ms"), 1500);
  EXPECT_EQ(parse_time_us("2s"), 2e6);
  EXPECT_EQ(parse_time_us("7"), 7);
  EXPECT_EQ(parse_time_us("250ns"), 0.25);
  EXPECT_EQ(parse_time_us("3 \xc2\xb5s"), 3);
  EXPECT_EQ(parse_time_us("1h"), 3600e6);
  for (const char* text : {"", "us", "-1us", "1 sec", "1m", "1e400s", "1e305h", "nan"}) {
    EXPECT_EQ(parse_time_us(text), std::nullopt) << text;
  }
}

TEST(ParseFlops, TakesTheUsualSpellings) {
  EXPECT_EQ(parse_flops("15.7TFLOPS"), 15.7 * 1e12);
  EXPECT_EQ(parse_flops("1e12"), 1e12);
  EXPECT_EQ(parse_flops("2 GFLOP/s"), 2e9);
  for (const char* text : {"", "TFLOPS", "1 TOPS", "-1", "1TFLOPSs"})
    EXPECT_EQ(parse_flops(text), std::nullopt) << text;
}

TEST(Units, WhatIsFormattedParsesBackWithinItsPrecision) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const double us = std::pow(10.0, random.uniform(-1, 9));
    const auto time = parse_time_us(format_us(us));
    ASSERT_TRUE(time) << format_us(us);
    EXPECT_NEAR(*time, us, us * 0.006) << format_us(us);
    const auto bytes = static_cast<int64_t>(std::pow(10.0, random.uniform(0, 18)));
    const auto size = parse_bytes(format_bytes(bytes));
    ASSERT_TRUE(size) << format_bytes(bytes);
    EXPECT_NEAR(static_cast<double>(*size), static_cast<double>(bytes), 0.06 * static_cast<double>(bytes));
  }
}

TEST(Units, RandomTextNeverCrashesAParser) {
  static constexpr char kAlphabet[] = "0123456789.eE+-kKMGTPiBbps/ nuFLO\xc2\xb5\0";
  Random random(2);
  for (int i = 0; i < 50000; ++i) {
    std::string text(random.below(10), ' ');
    for (char& c : text) c = kAlphabet[random.below(sizeof kAlphabet)];
    const auto bytes = parse_bytes(text);
    EXPECT_TRUE(!bytes || *bytes >= 0) << text;
    for (const auto& value : {parse_bandwidth(text), parse_time_us(text), parse_flops(text)}) {
      EXPECT_TRUE(!value || (std::isfinite(*value) && *value >= 0)) << text;
    }
  }
}

}  // namespace
}  // namespace heddle
