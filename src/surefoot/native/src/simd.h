/* Vectors of VL floats by the compiler's own vector types, and the functions of them that networks need.
 *
 * Included by kernel.inc, once per instruction set. The same text serves AVX-512, AVX2, SSE2 and NEON; intrinsics are used only
 * where GCC does not find the single instruction by itself (clamp, total).
 * Accuracy is a few units in the last place of float32 (tests/unit/native/test_functions.py holds it). */

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define VB (VL * 4)
typedef float vf __attribute__((vector_size(VB)));
typedef int32_t vi __attribute__((vector_size(VB)));
typedef uint32_t vu __attribute__((vector_size(VB))); /* bits, whose sums may wrap */
typedef float vf_loose __attribute__((vector_size(VB), aligned(4), may_alias));
typedef int32_t vi_loose __attribute__((vector_size(VB), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE vf load(const float *p) { return *(const vf_loose *)p; }
INLINE vi load_int(const int32_t *p) { return *(const vi_loose *)p; }
INLINE void store(float *p, vf x) { *(vf_loose *)p = x; }
INLINE vf splat(float x) { return x - (vf){0}; }
INLINE vf pick(vi which, vf a, vf b) { return (vf)(((vi)a & which) | ((vi)b & ~which)); }
INLINE vf vmax(vf a, vf b) { return pick(a > b, a, b); }
/* A NaN stays one: the machine's minimum and maximum give back their second operand then. */
INLINE vf clamp(vf x, float low, float high) {
#if defined(__AVX512F__) && VL == 16
    return (vf)_mm512_max_ps((__m512)splat(low), _mm512_min_ps((__m512)splat(high), (__m512)x));
#elif defined(__AVX__) && VL == 8
    return (vf)_mm256_max_ps((__m256)splat(low), _mm256_min_ps((__m256)splat(high), (__m256)x));
#elif defined(__SSE__) && VL == 4
    return (vf)_mm_max_ps((__m128)splat(low), _mm_min_ps((__m128)splat(high), (__m128)x));
#else
    return pick(x < low, splat(low), pick(x > high, splat(high), x));
#endif
}
INLINE vf vabs(vf x) { return (vf)((vi)x & 0x7fffffff); }

/* Sum over the lanes, pairwise: the upper half is added to the lower until one is left. */
INLINE float total(vf x) {
#if defined(__SSE3__) && VL <= 8 || defined(__AVX512F__) && VL == 16
#if VL == 16
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256((__m512)x), _mm512_extractf32x8_ps((__m512)x, 1));
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
#elif VL == 8
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
#else
    __m128 sum = (__m128)x;
#endif
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
#else
    float a[VL];
    memcpy(a, &x, sizeof a);
    for (int half = VL / 2; half; half /= 2)
        for (int i = 0; i < half; i++) a[i] += a[i + half];
    return a[0];
#endif
}

/* x · P(x²) / Q(x²), a minimax fit of tanh on [-8, 8]; beyond, tanh is 1 to within 2e-7. Q begins with 1: an addition costs
 * less than a multiplication, and multiplications are the bottleneck. */
INLINE vf vtanh(vf x) {
    x = clamp(x, -8.0f, 8.0f);
    const vf z = x * x;
    vf p = splat(1.787093654e-02f);
    p = p * z + 2.569059181e+01f;
    p = p * z + 4.190816895e+03f;
    p = p * z + 1.577541562e+05f;
    p = p * z + 1.173373375e+06f;
    vf q = z + 4.002717285e+02f;
    q = q * z + 3.070065625e+04f;
    q = q * z + 5.488785625e+05f;
    q = q * z + 1.173373375e+06f;
    return x * p / q; /* a division does not keep the multipliers busy, Newton's steps would */
}

/* e^x: x = n ln 2 + r with |r| <= ln 2 / 2, a Taylor polynomial in r, n added to the exponent. Clamped to finite results. */
INLINE vf vexp(vf x) {
    x = clamp(x, -87.0f, 88.0f);
    const float magic = 12582912.0f; /* 1.5 · 2^23: adding it rounds to an integer, which is then in the low bits */
    const vf shifted = x * 1.44269504f + magic;
    const vf n = shifted - magic;
    vf r = x - n * 0.693359375f; /* ln 2 in two parts, the first exact in few bits */
    r = r + n * 2.12194440e-4f;
    vf p = splat(1.0f / 5040.0f);
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    const vu exponent = ((vu)shifted - 0x4b400000u) << 23;
    return pick(x == x, (vf)((vu)p + exponent), x);
}

/* e^x - 1, accurate for small x too: 2t / (1 - t) with t = tanh(x/2). */
INLINE vf vexpm1(vf x) {
    const vf t = vtanh(clamp(x, -1.0f, 1.0f) * 0.5f);
    return pick(vabs(x) < 1.0f, 2.0f * t / (1.0f - t), vexp(x) - 1.0f);
}

/* log x for x > 0 and normal: x = m 2^n with m in [√½, √2), then 2 artanh((m - 1) / (m + 1)) as a series. */
INLINE vf vlog(vf x) {
    const vu bits = (vu)x;
    const vi n = (vi)(bits - 0x3f3504f3u) >> 23;
    const vf m = (vf)(bits - ((vu)n << 23));
    const vf s = (m - 1.0f) / (m + 1.0f), z = s * s;
    vf p = splat(2.0f / 11.0f);
    p = p * z + 2.0f / 9.0f;
    p = p * z + 2.0f / 7.0f;
    p = p * z + 2.0f / 5.0f;
    p = p * z + 2.0f / 3.0f;
    p = p * z + 2.0f;
    const vf whole = __builtin_convertvector(n, vf);
    return pick(x == x, whole * 0.693359375f + (p * s - whole * 2.12194440e-4f), x);
}
