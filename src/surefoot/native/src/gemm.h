/* C (+)= A·B for matrices that a network has: B in panels of NR columns, A by any strides, C by rows.
 *
 * One tile of C, MR rows by NR columns, stays in registers while k runs. Panels are the outer loop, so that a panel of B
 * stays in the first cache while the rows of A go by. */

#define NR (NV * VL)
#define KC 384 /* a panel of KC · NR floats fits into the first cache */

INLINE void tile(const int mr, int k, const float *a, int64_t row, int64_t column, const float *b, int64_t ldb, float *c,
                 int64_t ldc, const float *bias, int add, int columns) {
    vf sum[MR][NV];
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) sum[r][j] = (vf){0};
    for (int i = 0; i < k; i++) {
        vf right[NV];
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) right[j] = load(b + j * VL);
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            const vf left = splat(a[r * row]);
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++) sum[r][j] += left * right[j];
        }
        a += column;
        b += ldb;
    }
    if (bias)
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) {
            const vf offset = load(bias + j * VL);
#pragma GCC unroll 16
            for (int r = 0; r < mr; r++) sum[r][j] += offset;
        }
    if (columns == NR) {
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++) {
                float *at = c + r * ldc + j * VL;
                store(at, add ? sum[r][j] + load(at) : sum[r][j]);
            }
        return;
    }
    float edge[MR][NR];
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) store(&edge[r][j * VL], sum[r][j]);
    for (int r = 0; r < mr; r++)
        for (int j = 0; j < columns; j++) c[r * ldc + j] = edge[r][j] + (add ? c[r * ldc + j] : 0.0f);
}

static void tiles(int m, int k, const float *a, int64_t row, int64_t column, const float *b, int64_t ldb, float *c,
                  int64_t ldc, const float *bias, int add, int columns) {
    int r = 0;
    for (; r + MR <= m; r += MR)
        tile(MR, k, a + r * row, row, column, b, ldb, c + r * ldc, ldc, bias, add, columns);
    a += r * row;
    c += r * ldc;
    switch (m - r) {
#define REST(mr) \
    case mr: tile(mr, k, a, row, column, b, ldb, c, ldc, bias, add, columns); break;
        REST(1)
        REST(2)
        REST(3)
#if MR > 4
        REST(4)
        REST(5)
#endif
#if MR > 6
        REST(6)
        REST(7)
#endif
#undef REST
    default: break;
    }
}

/* C[m][n] (+)= A[m][k]·B with B packed: panel p begins at b + p·k·NR. C must have room for whole panels unless `exact`. */
static void multiply(int m, int n, int k, const float *a, int64_t row, int64_t column, const float *b, float *c,
                     int64_t ldc, const float *bias, int add, int exact) {
    for (int k0 = 0; k0 < k; k0 += KC) {
        const int depth = k - k0 < KC ? k - k0 : KC;
        for (int j = 0; j < n; j += NR) {
            const int columns = exact && n - j < NR ? n - j : NR;
            tiles(m, depth, a + k0 * column, row, column, b + (int64_t)j * k + (int64_t)k0 * NR, NR, c + j, ldc,
                  bias && k0 == 0 ? bias + j : NULL, add || k0 > 0, columns);
        }
    }
}

/* C[m][n] += Aᵀ-like·B with B by rows, its rows padded to whole vectors at least; `packed` is room for KC · NR floats. */
static void multiply_rows(int m, int n, int k, const float *a, int64_t row, int64_t column, const float *b, int64_t ldb,
                          float *c, int64_t ldc, float *packed) {
    for (int k0 = 0; k0 < k; k0 += KC) {
        const int depth = k - k0 < KC ? k - k0 : KC;
        for (int j = 0; j < n; j += NR) {
            const int columns = n - j < NR ? n - j : NR;
            const float *panel = b + (int64_t)k0 * ldb + j;
            int64_t stride = ldb;
            if (ldb > 288) { /* far apart rows fall onto few cache sets and many pages */
                for (int i = 0; i < depth; i++)
                    for (int v = 0; v < NV; v++) store(packed + i * NR + v * VL, load(panel + i * ldb + v * VL));
                panel = packed;
                stride = NR;
            }
            tiles(m, depth, a + k0 * column, row, column, panel, stride, c + j, ldc, NULL, 1, columns);
        }
    }
}

/* W[outputs][inputs] as panels of Wᵀ: panels[p][i][j] = W[p·NR + j][i], 0 beyond the last output. */
static void pack_forward(const float *w, int outputs, int inputs, float *panels) {
    for (int o = 0; o < outputs; o += NR) {
        const int columns = outputs - o < NR ? outputs - o : NR;
        float *to = panels + (int64_t)o * inputs;
        int i = 0;
        for (; i + 8 <= inputs; i += 8) /* eight columns at a time, so that each line of W is read once */
            for (int j = 0; j < columns; j++) {
                const float *from = w + (int64_t)(o + j) * inputs + i;
                for (int d = 0; d < 8; d++) to[(i + d) * NR + j] = from[d];
            }
        for (; i < inputs; i++)
            for (int j = 0; j < columns; j++) to[i * NR + j] = w[(int64_t)(o + j) * inputs + i];
    }
}

/* W[outputs][inputs] as panels of itself: panels[p][o][j] = W[o][p·NR + j], 0 beyond the last input. */
static void pack_backward(const float *w, int outputs, int inputs, float *panels) {
    for (int i = 0; i < inputs; i += NR) {
        const int columns = inputs - i < NR ? inputs - i : NR;
        float *to = panels + (int64_t)i * outputs;
        for (int o = 0; o < outputs; o++) memcpy(to + o * NR, w + (int64_t)o * inputs + i, columns * sizeof(float));
    }
}
