// The differences between versions of torch, detected by the members that its headers declare.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>
#include <type_traits>

namespace {

namespace allocators = c10::cuda::CUDACachingAllocator;
using allocators::CUDAAllocator;
using allocators::SnapshotInfo;
using allocators::TraceEntry;

template <class T, class = void>
struct Annotate {
  static constexpr int action = -1;
};
template <class T>
struct Annotate<T, std::void_t<decltype(T::ANNOTATE)>> {
  static constexpr int action = static_cast<int>(T::ANNOTATE);
};

template <class Pair>
uint64_t pool_number(const Pair &pool) {
  return pool.first != 0 ? (uint64_t{1} << 63) | pool.first : pool.second;
}
template <class T>
auto pool_of(const T &entry, int) -> decltype(pool_number(entry.mempool_)) {
  return pool_number(entry.mempool_);
}
template <class T>
uint64_t pool_of(const T &, long) {
  return 0;
}

template <class T>
auto text_of(const T &entry, int) -> decltype(entry.user_metadata_.c_str()) {
  return entry.user_metadata_.empty() ? nullptr : entry.user_metadata_.c_str();
}
template <class T>
const char *text_of(const T &, long) {
  return nullptr;
}

template <class T>
auto snapshot_of(T *allocator, int) -> decltype(allocator->snapshot({0, 0}, false)) {
  return allocator->snapshot({0, 0}, false);
}
template <class T>
auto snapshot_of(T *allocator, long) -> decltype(allocator->snapshot()) {
  return allocator->snapshot();
}

template <class Number>
uint64_t stream_number(Number stream) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(stream));
}

}  // namespace
