// The sanitizer that a test is built with. GCC defines macros, clang has __has_feature.
#pragma once

#ifdef __has_feature
#define WARPSCOPE_HAS_FEATURE(feature) __has_feature(feature)
#else
#define WARPSCOPE_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || WARPSCOPE_HAS_FEATURE(address_sanitizer)
#define WARPSCOPE_ADDRESS_SANITIZER 1
#else
#define WARPSCOPE_ADDRESS_SANITIZER 0
#endif
#if defined(__SANITIZE_THREAD__) || WARPSCOPE_HAS_FEATURE(thread_sanitizer)
#define WARPSCOPE_THREAD_SANITIZER 1
#else
#define WARPSCOPE_THREAD_SANITIZER 0
#endif

namespace ws::test {

inline constexpr bool kAddressSanitizer = WARPSCOPE_ADDRESS_SANITIZER;
inline constexpr bool kThreadSanitizer = WARPSCOPE_THREAD_SANITIZER;
inline constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;  // times and memory mean nothing then

}  // namespace ws::test
