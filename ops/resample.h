#pragma once
// Pillow's antialiased bilinear resize of HWC pictures, cut into the two passes that generated code fuses with.
//
// The method (Pillow 9.4, Resample.c): output x takes the input pixels within max(scale, 1) of (x + 1/2) scale, scale =
// in / out, weighted by a triangle of that half width, weights normalised to 1. u8: weights are rounded to multiples of
// 2^-22, a sum begins at one half, is cut to an integer and clamped; first along rows, then, from the u8 result, along
// columns. f32: the same passes with f64 weights and sums in order of position, each pass rounded to f32. Both equal
// Pillow's bits (modes L, RGB and F). Every instruction set gives the same bits.

#include <cstdint>
#include <string_view>

#include "graph/kernel.h"

namespace zephon {

/// Instruction sets that kernels are written for. Avx512: F, BW, VL, DQ and VNNI.
enum class CpuLevel : uint8_t { X86_64, Avx2, Avx512 };
/// The best that this machine has, or less where the environment variable ZEPHON_CPU says x86-64, avx2 or avx512.
CpuLevel cpu_level();

/// The pixels that output `x` is made of: [first, first + count), count <= max_taps(in, out).
struct TapRange {
  int64_t first = 0, count = 0;
};
int64_t max_taps(int64_t in_size, int64_t out_size);
TapRange tap_range(int64_t in_size, int64_t out_size, int64_t x);
/// Fills `weights` (room for max_taps) with the normalised f64 weights.
TapRange bilinear_taps(int64_t in_size, int64_t out_size, int64_t x, double* weights);

/// As ResampleKernel says, on the instructions of `level`. Sizes are at least 1; elem is U8 or F32. Scratch is 64-byte
/// aligned and holds the weights of both passes and the rows of the picture that are needed, after the horizontal pass.
size_t resample_scratch_bytes(Elem elem, const ResampleGeometry& geometry);
bool resample_horizontal(CpuLevel level, Elem elem, const void* in, int64_t row_stride,
                         const ResampleGeometry& geometry, void* scratch);
void resample_vertical(CpuLevel level, Elem elem, const void* scratch, int64_t y, void* row);

/// The above at cpu_level(), of whole pictures.
inline constexpr ResampleKernel kBilinearFunctions = {
    .scratch_bytes = resample_scratch_bytes,
    .horizontal =
        [](Elem elem, const void* in, int64_t row_stride, const ResampleGeometry& geometry, void* scratch) {
          return resample_horizontal(cpu_level(), elem, in, row_stride, geometry, scratch);
        },
    .vertical = [](Elem elem, const void* scratch, int64_t y,
                   void* row) { resample_vertical(cpu_level(), elem, scratch, y, row); },
};
extern const ResampleKernel kBilinearResample;

}  // namespace zephon
