// The sanitizer that a test is built with. GCC defines macros, clang has __has_feature.
#pragma once

#ifdef __has_feature
#define WARPSIGHT_HAS_FEATURE(feature) __has_feature(feature)
#else
#define WARPSIGHT_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || WARPSIGHT_HAS_FEATURE(address_sanitizer)
#define WARPSIGHT_ADDRESS_SANITIZER 1
#else
#define WARPSIGHT_ADDRESS_SANITIZER 0
#endif
#if defined(__SANITIZE_THREAD__) || WARPSIGHT_HAS_FEATURE(thread_sanitizer)
#define WARPSIGHT_THREAD_SANITIZER 1
#else
#define WARPSIGHT_THREAD_SANITIZER 0
#endif

namespace ws::test {

inline constexpr bool kAddressSanitizer = WARPSIGHT_ADDRESS_SANITIZER;
inline constexpr bool kThreadSanitizer = WARPSIGHT_THREAD_SANITIZER;
inline constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;  // times and memory mean nothing then

}  // namespace ws::test
